/* Stable counting sort by key, in parallel: the input is cut into parts, each part counts its keys, and a sum down the
 * parts gives every part its own places.  The result does not depend on the number of parts.
 *
 * Memory beyond the output: parts * n_keys * 8 bytes, kept below 8 bytes per element (or one part). */
#include "runtime/runtime.h"

#include <string.h>

typedef struct sort {
    const rt_sort *s;
    int64_t parts;
    int64_t *counts; /* [parts][n_keys]: first how many, then where the next one goes */
    int64_t key_tasks;
    int64_t *task_sum; /* [key_tasks] */
} sort;

static inline int64_t key_at(const rt_sort *s, int64_t i) {
    return s->key_bits == 32 ? ((const int32_t *)s->keys)[i] : ((const int64_t *)s->keys)[i];
}

static void count_task(void *arg, int64_t part, int thread) {
    (void)thread;
    sort *w = arg;
    int64_t begin, end, *counts = w->counts + part * w->s->n_keys;
    rt_task_range(w->s->n, w->parts, part, &begin, &end);
    for (int64_t i = begin; i < end; i++)
        counts[key_at(w->s, i)]++;
}

static void sum_task(void *arg, int64_t task, int thread) {
    (void)thread;
    sort *w = arg;
    int64_t begin, end, sum = 0, n_keys = w->s->n_keys;
    rt_task_range(n_keys, w->key_tasks, task, &begin, &end);
    for (int64_t part = 0; part < w->parts; part++)
        for (int64_t k = begin; k < end; k++)
            sum += w->counts[part * n_keys + k];
    w->task_sum[task] = sum;
}

static void place_task(void *arg, int64_t task, int thread) {
    (void)thread;
    sort *w = arg;
    int64_t begin, end, at = w->task_sum[task], n_keys = w->s->n_keys;
    rt_task_range(n_keys, w->key_tasks, task, &begin, &end);
    for (int64_t k = begin; k < end; k++) {
        w->s->offsets[k] = at;
        for (int64_t part = 0; part < w->parts; part++) {
            int64_t count = w->counts[part * n_keys + k];
            w->counts[part * n_keys + k] = at;
            at += count;
        }
    }
}

static inline void scatter_one(const rt_sort *s, int64_t i, int64_t to) {
    int64_t v = s->payload_bits == 32 ? ((const int32_t *)s->payload)[i] : ((const int64_t *)s->payload)[i];
    if (s->out_bits == 32)
        ((int32_t *)s->out_payload)[to] = (int32_t)v;
    else
        ((int64_t *)s->out_payload)[to] = v;
    if (s->payload8)
        s->out_payload8[to] = s->payload8[i];
    if (s->order && s->order_bits == 32)
        ((int32_t *)s->order)[to] = (int32_t)i;
    else if (s->order)
        ((int64_t *)s->order)[to] = i;
}

static void scatter_task(void *arg, int64_t part, int thread) {
    (void)thread;
    sort *w = arg;
    int64_t begin, end, *next = w->counts + part * w->s->n_keys;
    rt_task_range(w->s->n, w->parts, part, &begin, &end);
    for (int64_t i = begin; i < end; i++)
        scatter_one(w->s, i, next[key_at(w->s, i)]++);
}

static bool run(tiga_context *ctx, sort *w) {
    const rt_sort *s = w->s;
    if (!rt_parallel_for(ctx, 0, w->parts, count_task, w) || !rt_parallel_for(ctx, 0, w->key_tasks, sum_task, w))
        return false;
    int64_t at = 0;
    for (int64_t t = 0; t < w->key_tasks; t++) {
        int64_t sum = w->task_sum[t];
        w->task_sum[t] = at;
        at += sum;
    }
    s->offsets[s->n_keys] = s->n;
    return rt_parallel_for(ctx, 0, w->key_tasks, place_task, w) && rt_parallel_for(ctx, 0, w->parts, scatter_task, w);
}

tiga_status rt_sort_run(tiga_context *ctx, const rt_sort *s) {
    sort w = {.s = s, .parts = ctx->threads, .key_tasks = rt_n_tasks(s->n_keys, 1 << 14)};
    int64_t most = s->n_keys > 0 ? s->n / s->n_keys : 1;
    if (w.parts > most)
        w.parts = most;
    if (w.parts > s->n >> 12)
        w.parts = s->n >> 12;
    if (w.parts < 1)
        w.parts = 1;
    tiga_status status =
        rt_mem_take(ctx, w.parts * s->n_keys, 8, true, "counting the edges of each row", (void **)&w.counts);
    if (status == TIGA_OK)
        status = rt_mem_take(ctx, w.key_tasks, 8, false, "counting the edges of each row", (void **)&w.task_sum);
    if (status == TIGA_OK && !run(ctx, &w))
        status = rt_fail(ctx, TIGA_E_INTERRUPTED, "sorting the edges: interrupted");
    rt_mem_free(w.counts);
    rt_mem_free(w.task_sum);
    return status;
}
