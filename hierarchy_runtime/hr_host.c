/* The table that a module's host function calls.  Every step is checked against the state of its instances; a step out
 * of order is a fault of the schedule (E_INTERNAL), never undefined behaviour.  A run is synchronous, so "waits for the
 * last write" is an assertion here: the write has ended, or the schedule is wrong. */
#include "hierarchy_runtime/hierarchy_runtime.h"

#include <string.h>

static int32_t keep(hr_frame *f, tiga_status status) {
    if (status != TIGA_OK && f->status == TIGA_OK)
        f->status = status;
    return (int32_t)status;
}

static int32_t fail_step(hr_frame *f, const char *step, const tiga_instance *i, const char *why) {
    return keep(f, rt_fail(f->ctx, TIGA_E_INTERNAL, "%s: %s '%s@%lld': %s", f->fn->name, step, i ? i->name : "?",
                           i ? (long long)i->version : 0, why));
}

/* ---- launches ---- */
static int64_t graph_bytes(const tiga_kernel_code *code, const tiga_csr *g) {
    int64_t columns = ((code->reads & TIGA_READS_SOURCE) != 0) + ((code->reads & TIGA_READS_EDGE_OF) != 0);
    return (g->n_dst + 1) * 8 + columns * g->n_edges * (g->source_bits / 8);
}

/* A launch may wait for the next one, so that the two go over their rows together.  What it writes counts as written meanwhile:
 * whatever looks at memory, or gives some back, runs it first. */
static tiga_status run(hr_frame *f, const rt_launch *l) {
    f->stats.launches++;
    f->stats.rows += l->n_rows;
    if (l->graph) {
        f->stats.edges += l->graph->n_edges;
        f->stats.bytes_read += graph_bytes(l->code, l->graph);
    }
    return keep(f, rt_launch_run(f->ctx, l));
}

tiga_status hr_run_ahead(hr_frame *f) {
    if (!f->ahead.waits)
        return TIGA_OK;
    f->ahead.waits = false;
    return run(f, &f->ahead.l);
}

static int32_t run_ahead(hr_frame *f) { return (int32_t)hr_run_ahead(f); }

static bool is_ahead(const hr_frame *f, const tiga_instance *i) {
    for (int32_t k = 0; f->ahead.waits && k < f->ahead.l.code->n_buffers; k++)
        if (f->ahead.of[k] == i)
            return true;
    return false;
}

enum { FEW_BUFFERS = 32 };

static int32_t find_graph(hr_frame *f, const tiga_kernel_code *code, int32_t graph, int64_t n_rows, rt_launch *l) {
    l->graph = NULL;
    if (!code->walks_edges)
        return TIGA_OK;
    int32_t index = f->fn->is_program ? graph : 0;
    if (index < 0 || (f->fn->is_program && index >= f->fn->n_params) || !f->graph_of[index])
        return fail_step(f, "launch of", &(tiga_instance){.name = code->name}, "it walks edges and has no graph");
    l->graph = f->graph_of[index];
    if (code->walks_edges == 2) {
        tiga_status status =
            rt_graph_transposed(f->ctx, f->handle_of[index], &l->graph, &l->edge_of, &f->stats.transposes);
        if (status != TIGA_OK)
            return keep(f, status);
    }
    if (n_rows != (code->walks_edges == 3 ? l->graph->n_src : l->graph->n_dst))
        return fail_step(f, "launch of", &(tiga_instance){.name = code->name}, "its rows are not those of the graph");
    return TIGA_OK;
}

static int32_t pin_check(hr_frame *f, const tiga_kernel_code *code, tiga_instance *const *buffers, void **data,
                         int64_t *written) {
    int32_t n_in = code->n_buffers - code->n_outputs;
    for (int32_t k = 0; k < code->n_buffers; k++) {
        tiga_instance *i = buffers[k];
        bool read = i && (i->readers || (i->writing && i->valid)); /* written: a result takes its place */
        if (!i || i->released || (k < n_in ? !read : !i->writing))
            return fail_step(f, "launch with", i,
                             k < n_in ? "it was not acquired for reading" : "it was not acquired for writing");
        for (int32_t o = n_in; o < k; o++)
            if (buffers[o] == i)
                return fail_step(f, "launch with", i, "it is two outputs");
        data[k] = i->data;
        f->stats.bytes_read += k < n_in && !is_ahead(f, i) ? i->bytes : 0;
        *written += k < n_in ? 0 : i->bytes;
    }
    f->stats.bytes_written += *written;
    return TIGA_OK;
}

/* Alone, or behind the one that waits. */
static int32_t run_behind(hr_frame *f, const rt_launch *l, tiga_instance *const *buffers) {
    if (!f->ahead.waits)
        return (int32_t)run(f, l);
    bool follows = rt_launch_can_follow(&f->ahead.l, l);
    for (int32_t k = l->code->n_buffers - l->code->n_outputs; k < l->code->n_buffers; k++)
        follows &= !is_ahead(f, buffers[k]);
    if (!follows) {
        int32_t status = run_ahead(f);
        return status == TIGA_OK ? (int32_t)run(f, l) : status;
    }
    f->ahead.l.then = l;
    f->stats.launches++;
    f->stats.rows += l->n_rows;
    return run_ahead(f);
}

static int32_t launch(void *frame, const tiga_kernel_code *code, int32_t graph, int64_t n_rows,
                      tiga_instance *const *buffers, const int64_t *dims) {
    hr_frame *f = frame;
    void *few[FEW_BUFFERS], **data = few;
    int64_t written = 0;
    rt_launch l = {.code = code, .n_rows = n_rows, .dims = dims};
    int32_t status = find_graph(f, code, graph, n_rows, &l);
    if (status != TIGA_OK)
        return status;
    if (code->n_buffers > FEW_BUFFERS) {
        data = base_alloc((size_t)code->n_buffers * sizeof *data);
        if (!data)
            return keep(f, rt_fail(f->ctx, TIGA_E_MEMORY, "%s: out of memory", f->fn->name));
    }
    status = pin_check(f, code, buffers, data, &written);
    l.buffers = data;
    l.output_bytes = written;
    if (status == TIGA_OK)
        status = run_behind(f, &l, buffers);
    if (data != few)
        base_free(data);
    return status;
}

static int32_t launch_ahead(void *frame, const tiga_kernel_code *code, int32_t graph, int64_t n_rows,
                            tiga_instance *const *buffers, const int64_t *dims) {
    hr_frame *f = frame;
    if (code->n_buffers > HR_AHEAD_BUFFERS || code->n_dims > HR_AHEAD_DIMS)
        return launch(frame, code, graph, n_rows, buffers, dims);
    int64_t written = 0;
    int32_t status = run_ahead(f);
    hr_ahead *a = &f->ahead;
    a->l = (rt_launch){.code = code, .n_rows = n_rows, .dims = a->dims, .buffers = a->data};
    if (status == TIGA_OK)
        status = find_graph(f, code, graph, n_rows, &a->l);
    if (status == TIGA_OK)
        status = pin_check(f, code, buffers, a->data, &written);
    if (status != TIGA_OK)
        return status;
    base_copy(a->dims, dims, (size_t)code->n_dims * sizeof *dims);
    base_copy(a->of, buffers, (size_t)code->n_buffers * sizeof *buffers);
    a->l.output_bytes = written;
    a->waits = true;
    return TIGA_OK;
}

/* ---- instances ---- */
static int32_t bind(hr_frame *f, int32_t index, int32_t first, int32_t n, tiga_instance **out) {
    *out = NULL;
    if (index < 0 || index >= n || !f->bound[first + index].bound)
        return keep(f,
                    rt_fail(f->ctx, TIGA_E_INTERNAL, "%s: binds array %d, which it does not have", f->fn->name, index));
    *out = &f->bound[first + index];
    return TIGA_OK;
}

static int32_t bind_param(void *frame, int32_t index, tiga_instance **out) {
    hr_frame *f = frame;
    return bind(f, index, 0, f->fn->n_params, out);
}

static int32_t bind_result(void *frame, int32_t index, tiga_instance **out) {
    hr_frame *f = frame;
    return bind(f, index, f->fn->n_params, f->fn->n_results, out);
}

static tiga_status allocate(hr_frame *f, tiga_instance *i) {
    if (hr_pool_take(f, i))
        return TIGA_OK;
    base_str what = {0};
    base_str_addf(&what, "%s: buffer '%s@%lld'", f->fn->name, i->name, (long long)i->version);
    const char *text = what.failed ? f->fn->name : base_str_text(&what);
    int64_t bytes = i->bytes;
    tiga_status status =
        bytes < 0 ? rt_fail(f->ctx, TIGA_E_MEMORY, "%s is larger than any memory", text) : hr_charge(f, bytes, text);
    if (status == TIGA_OK) {
        status = rt_mem_take(f->ctx, bytes, 1, false, text, &i->data);
        if (status != TIGA_OK)
            hr_discharge(f, bytes);
    }
    base_str_fini(&what);
    return status;
}

static int32_t host_alloc(void *frame, const char *name, int64_t version, int32_t tier, int64_t bytes,
                          tiga_instance **out) {
    hr_frame *f = frame;
    *out = NULL;
    static const char *const tiers[] = {"host", "device", "pinned", "disk"};
    if (tier != TIGA_TIER_HOST)
        return keep(f,
                    rt_fail(f->ctx, TIGA_E_UNSUPPORTED,
                            "%s: buffer '%s@%lld' asks for the %s tier; this runtime has host memory only", f->fn->name,
                            name ? name : "", (long long)version, tier > 0 && tier < 4 ? tiers[tier] : "unknown"));
    tiga_instance *i = hr_buffer_new(f);
    if (!i)
        return keep(f, rt_fail(f->ctx, TIGA_E_MEMORY, "%s: out of memory", f->fn->name));
    i->name = name ? name : "";
    i->version = version;
    i->tier = tier;
    i->bytes = bytes;
    tiga_status status = allocate(f, i);
    if (status != TIGA_OK)
        hr_buffer_release(f, i);
    else
        *out = i;
    return keep(f, status);
}

static int32_t acquire(void *frame, tiga_instance *i, int32_t write) {
    hr_frame *f = frame;
    const char *step = write ? "acquire for writing" : "acquire for reading";
    if (!i || i->released)
        return fail_step(f, step, i, "it was released");
    if (i->writing)
        return fail_step(f, step, i, "it is being written");
    if (!write && !i->valid)
        return fail_step(f, step, i, "it was never written");
    if (write && i->readers)
        return fail_step(f, step, i, "it is being read");
    if (write && i->origin == HR_PARAM)
        return fail_step(f, step, i, "it is an argument");
    if (write)
        i->writing = true;
    else
        i->readers++;
    return TIGA_OK;
}

static int32_t done(void *frame, tiga_instance *i) {
    hr_frame *f = frame;
    if (!i || (!i->writing && !i->readers))
        return fail_step(f, "done with", i, "it is not pinned");
    if (i->writing) {
        i->writing = false;
        i->valid = true;
    } else {
        i->readers--;
    }
    return TIGA_OK;
}

static int32_t release(void *frame, tiga_instance *i) {
    hr_frame *f = frame;
    if (!i || i->released)
        return fail_step(f, "release", i, "it was released before");
    if (i->writing || i->readers)
        return fail_step(f, "release", i, "it is pinned");
    if (is_ahead(f, i) && run_ahead(f) != TIGA_OK)
        return (int32_t)f->status;
    if (i->origin == HR_BUFFER)
        hr_buffer_release(f, i);
    else if (i->origin == HR_PARAM)
        i->released = true; /* the memory is the caller's */
    return TIGA_OK;
}

/* Whether it can be read, or written, without being pinned. */
static bool has_value(const tiga_instance *i) { return i && !i->released && i->valid && !i->writing; }
static bool is_writable(const tiga_instance *i) { return i && !i->released && !i->readers && i->origin != HR_PARAM; }

/* ---- copies, by all threads when they are large ---- */
enum { COPY_BLOCK = 1 << 20 };

typedef struct copying {
    char *to;
    const char *from;
    int64_t bytes;
} copying;

static void copy_block(void *arg, int64_t task, int thread) {
    const copying *c = arg;
    int64_t at = task * COPY_BLOCK, n = c->bytes - at < COPY_BLOCK ? c->bytes - at : COPY_BLOCK;
    (void)thread;
    memcpy(c->to + at, c->from + at, (size_t)n);
}

static int32_t copy_bytes(hr_frame *f, void *to, const void *from, int64_t bytes) {
    copying c = {to, from, bytes};
    if (bytes <= 0)
        return TIGA_OK;
    f->stats.bytes_read += bytes;
    f->stats.bytes_written += bytes;
    if (!rt_parallel_for(f->ctx, f->ctx->threads, (bytes - 1) / COPY_BLOCK + 1, copy_block, &c))
        return keep(f, rt_fail(f->ctx, TIGA_E_INTERRUPTED, "%s: interrupted", f->fn->name));
    return TIGA_OK;
}

static int32_t copy(void *frame, tiga_instance *from, tiga_instance *to) {
    hr_frame *f = frame;
    if (!has_value(from))
        return fail_step(f, "copy from", from, "it has no value");
    if (!is_writable(to))
        return fail_step(f, "copy to", to, "it cannot be written");
    if (from->bytes != to->bytes)
        return fail_step(f, "copy to", to, "the sizes differ");
    int32_t status = run_ahead(f);
    if (status == TIGA_OK && from != to)
        status = copy_bytes(f, to->data, from->data, from->bytes);
    to->valid |= status == TIGA_OK;
    return status;
}

static int32_t push(void *frame, tiga_instance *from) {
    hr_frame *f = frame;
    if (!has_value(from))
        return fail_step(f, "push", from, "it has no value");
    if (run_ahead(f) != TIGA_OK)
        return (int32_t)f->status;
    tiga_instance *i = hr_buffer_new(f);
    if (!i)
        return keep(f, rt_fail(f->ctx, TIGA_E_MEMORY, "%s: out of memory", f->fn->name));
    i->name = from->name;
    i->bytes = from->bytes;
    tiga_status status = allocate(f, i);
    if (status != TIGA_OK) {
        hr_buffer_release(f, i);
        return keep(f, status);
    }
    int32_t copied = copy_bytes(f, i->data, from->data, i->bytes);
    i->below = f->saved;
    f->saved = i;
    return copied;
}

static int32_t restore(void *frame, tiga_instance *to) {
    hr_frame *f = frame;
    tiga_instance *i = f->saved;
    if (!is_writable(to))
        return fail_step(f, "restore", to, "it cannot be written");
    if (!i || i->bytes != to->bytes)
        return fail_step(f, "restore", to, i ? "the sizes differ" : "the stack is empty");
    int32_t status = run_ahead(f);
    if (status == TIGA_OK)
        status = copy_bytes(f, to->data, i->data, i->bytes);
    to->valid |= status == TIGA_OK;
    f->saved = i->below;
    hr_buffer_release(f, i);
    return status;
}

/* ---- scalars ---- */
static int32_t read_i64(void *frame, tiga_instance *i, int64_t *out) {
    hr_frame *f = frame;
    *out = 0;
    if (!i || i->readers == 0)
        return fail_step(f, "read of", i, "it was not acquired for reading");
    if (run_ahead(f) != TIGA_OK)
        return (int32_t)f->status;
    if (run_ahead(f) != TIGA_OK)
        return (int32_t)f->status;
    int32_t v;
    bool wide = i->dtype == TIGA_I64 || (i->dtype < 0 && i->bytes >= 8);
    bool narrow = i->dtype == TIGA_I32 || (i->dtype < 0 && i->bytes == 4);
    if (wide && i->bytes >= 8) {
        memcpy(out, i->data, 8);
    } else if (narrow && i->bytes >= 4) {
        memcpy(&v, i->data, 4);
        *out = v;
    } else {
        return fail_step(f, "read of", i, "it holds no integer");
    }
    return TIGA_OK;
}

static int32_t read_bool(void *frame, tiga_instance *i, int64_t *out) {
    hr_frame *f = frame;
    *out = 0;
    if (!i || i->readers == 0)
        return fail_step(f, "read of", i, "it was not acquired for reading");
    if (run_ahead(f) != TIGA_OK)
        return (int32_t)f->status;
    if (run_ahead(f) != TIGA_OK)
        return (int32_t)f->status;
    if (i->bytes < 1 || (i->dtype >= 0 && i->dtype != TIGA_BOOL))
        return fail_step(f, "read of", i, "it holds no bool");
    *out = *(const uint8_t *)i->data != 0;
    return TIGA_OK;
}

static int32_t poll_interrupt(void *frame) {
    hr_frame *f = frame;
    return rt_interrupted(f->ctx) ? keep(f, rt_fail(f->ctx, TIGA_E_INTERRUPTED, "%s: interrupted", f->fn->name))
                                  : TIGA_OK;
}

const tiga_host hr_host_table = {
    .abi_version = TIGA_ABI_VERSION,
    .bind_param = bind_param,
    .bind_result = bind_result,
    .alloc = host_alloc,
    .acquire = acquire,
    .done = done,
    .release = release,
    .copy = copy,
    .push = push,
    .restore = restore,
    .launch = launch,
    .launch_ahead = launch_ahead,
    .read_i64 = read_i64,
    .read_bool = read_bool,
    .poll = poll_interrupt,
};
