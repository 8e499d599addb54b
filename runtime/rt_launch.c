/* Launching a kernel over the rows of a domain.
 *
 * Rows are cut into chunks of about equal cost, cost = edges + ROW_COST per row, by binary search in the offsets, so a
 * hub does not stall its neighbours.  Threads take chunks in order.  Every unit is computed alone, so nothing depends
 * on how many threads or chunks there are.
 *
 * A kernel that goes through all of the graph whatever its part is (walks_edges 3) gets a part for each thread, of equal
 * numbers of units, and not more than PARTS_PER_LINE for each line of cache of a row of its results.
 *
 * Whether threads are worth it: large launches always; a small one runs its first chunk here and is timed, and only
 * when the rest would take longer than starting threads does, they get it.  A chunk that took long is not believed before
 * a second one did: this thread may have lost its processor meanwhile.
 *
 * A launch that adds up blocks of rows may follow another over the same rows (`then`): a block is added up by the thread that
 * has done its rows, while they are in its cache; chunks end with blocks where they hold several.  Blocks that two chunks
 * share come last, and of launches that write little all do.  A block is one unit of that launch, so its bits are what they would be alone.
 *
 * Interruption is asked for between chunks, every millisecond or so between rows, and by kernels between the pieces of loops
 * that may be long.
 *
 * A kernel without a graph that needs scratch memory may begin each run of rows with a copy of a matrix (panels), so it gets
 * PANEL_UNITS at least where there are so many.  Where there are not, one chunk for each thread, of FEW_UNITS at least, and at
 * once when the product is large; its size is guessed from that of a panel, 64 bytes for each row of the matrix. */
#include "runtime/runtime.h"

#include <stdatomic.h>
#include <time.h>

enum {
    ROW_COST = 4,
    CHUNKS_PER_THREAD = 16,
    SCRATCH_ALIGN = 64,
    LINE = 64,
    PARTS_PER_LINE = 8,
    FIRST_UNITS = 64,
    PANEL_UNITS = 128,
    FEW_UNITS = 16,
    PANEL_ROW_BYTES = 64,
    FEW_BLOCKS = 8,
    FOLLOW_BYTES = 512 << 10,
    STEP_GROWTH = 16
};
static const double LARGE_BYTES = 2e6, CHUNK_MAX_BYTES = 4e6, CHUNK_MIN_BYTES = 16e3, LARGE_PRODUCT = 4e6,
                    START_SECONDS = 20e-6, STEP_SECONDS = 1e-3;

typedef struct job {
    const rt_launch *l;
    tiga_rows_fn fn;
    int64_t units, n_chunks, total_cost;
    char *scratch;
    int64_t scratch_each;
    int64_t first; /* chunk that task 0 stands for */
    char *added; /* by unit of l->then: it has run; NULL when nothing follows, or memory is short */
    tiga_context *ctx;
    atomic_bool gave_up; /* a unit was left unfinished */
} job;

/* Cost of all units before u. */
static inline int64_t cost_before(const job *j, int64_t u) {
    int64_t row = u == j->units ? j->l->n_rows : u * j->l->code->rows_per_unit;
    return (j->l->graph ? j->l->graph->offsets[row] : 0) + ROW_COST * row;
}

static bool takes_all(const job *j) { return j->l->code->walks_edges == 3; }

/* First unit of chunk k: the smallest u with cost_before(u) >= total * k / n_chunks. */
static int64_t chunk_begin(const job *j, int64_t k) {
    if (k <= 0 || k >= j->n_chunks)
        return k <= 0 ? 0 : j->units;
    if (takes_all(j))
        return (int64_t)((__int128)j->units * k / j->n_chunks);
    int64_t want = (int64_t)((__int128)j->total_cost * k / j->n_chunks), low = 0, high = j->units;
    while (low < high) {
        int64_t mid = low + (high - low) / 2;
        if (cost_before(j, mid) < want)
            low = mid + 1;
        else
            high = mid;
    }
    int64_t block = j->l->then ? j->l->then->code->rows_per_unit : 1;
    return j->units / j->n_chunks >= block ? low / block * block : low;
}

/* A kernel asks between the pieces of a long loop. */
static int32_t give_up(void *user) {
    job *j = user;
    if (!rt_interrupted_within(j->ctx))
        return 0;
    atomic_store_explicit(&j->gave_up, true, memory_order_relaxed);
    return 1;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static bool may_have_panels(const rt_launch *l) {
    return !l->graph && l->code->scratch_bytes && l->code->rows_per_unit == 1;
}

/* Multiplications and additions, of results of 4 bytes. */
static bool is_large_product(const rt_launch *l) {
    return may_have_panels(l) &&
           (double)l->code->scratch_bytes(l->dims) / PANEL_ROW_BYTES * (double)l->output_bytes / 4 >= LARGE_PRODUCT;
}

static tiga_launch_args args_of(job *j, const rt_launch *l) {
    tiga_launch_args args = {.n_rows = l->n_rows,
                             .dims = l->dims,
                             .buffers = l->buffers,
                             .edge_of = l->edge_of,
                             .numbers = l->code->numbers,
                             .give_up = give_up,
                             .user = j};
    if (l->graph)
        args.graph = *l->graph;
    return args;
}

/* A few units at a time, more when they turn out to be short: between them it may be over.  pace: how many, kept for more. */
static void run_own_units(job *j, int64_t begin, int64_t end, int thread, int64_t *pace) {
    if (begin == end)
        return;
    tiga_launch_args args = args_of(j, j->l);
    args.scratch = j->scratch ? j->scratch + thread * j->scratch_each : NULL;
    if (takes_all(j)) { /* it asks by itself */
        j->fn(&args, begin, end);
        return;
    }
    int64_t least = may_have_panels(j->l) ? PANEL_UNITS : 1, n = least > *pace ? least : *pace;
    double start = end - begin > n ? now() : 0;
    while (begin < end) {
        int64_t stop = end - begin > n ? begin + n : end;
        j->fn(&args, begin, stop);
        begin = stop;
        if (begin == end || give_up(j))
            return;
        double end_time = now(), took = end_time - start;
        start = end_time;
        if (took < STEP_SECONDS)
            n *= STEP_GROWTH;
        else if (took > 2 * STEP_SECONDS && n > least)
            n /= 2;
        *pace = n;
    }
}

/* ---- what follows ---- */
bool rt_launch_can_follow(const rt_launch *l, const rt_launch *then) {
    return l->n_rows == then->n_rows && l->n_rows > 0 && l->code->rows_per_unit == 1 && l->code->walks_edges != 3 &&
           then->code->rows_per_unit > 1 && !then->graph && !then->code->scratch_bytes && then->code->rows32;
}

static int64_t n_blocks(const job *j) { return (j->l->n_rows - 1) / j->l->then->code->rows_per_unit + 1; }

static void run_block(job *j, int64_t block) {
    tiga_launch_args args = args_of(j, j->l->then);
    j->l->then->code->rows32(&args, block, block + 1);
}

static void run_units(job *j, int64_t begin, int64_t end, int thread) {
    int64_t pace = FIRST_UNITS;
    if (!j->added) {
        run_own_units(j, begin, end, thread, &pace);
        return;
    }
    int64_t size = j->l->then->code->rows_per_unit;
    while (begin < end && !give_up(j)) {
        int64_t block = begin / size, stop = (block + 1) * size < end ? (block + 1) * size : end;
        run_own_units(j, begin, stop, thread, &pace);
        bool whole = begin == block * size && (stop == begin + size || stop == j->units);
        if (whole && !atomic_load_explicit(&j->gave_up, memory_order_relaxed)) {
            run_block(j, block);
            j->added[block] = 1;
        }
        begin = stop;
    }
}

static void block_task(void *arg, int64_t task, int thread) {
    job *j = arg;
    (void)thread;
    if (!j->added || !j->added[task])
        run_block(j, task);
}

/* The blocks that no chunk held whole. */
static bool run_left_blocks(tiga_context *ctx, job *j, int threads) {
    int64_t n = n_blocks(j), left = 0;
    for (int64_t k = 0; k < n; k++)
        left += !j->added || !j->added[k];
    return rt_parallel_for(ctx, left <= FEW_BLOCKS ? 1 : threads, n, block_task, j);
}

static void chunk_task(void *arg, int64_t task, int thread) {
    job *j = arg;
    int64_t k = j->first + task;
    run_units(j, chunk_begin(j, k), chunk_begin(j, k + 1), thread);
}

/* Scratch for `threads` threads, fewer when the budget does not allow all; kept in the context for the next launch. */
static tiga_status take_scratch(tiga_context *ctx, job *j, int *threads) {
    const tiga_kernel_code *code = j->l->code;
    int64_t each = code->scratch_bytes ? code->scratch_bytes(j->l->dims) : 0;
    if (each <= 0)
        return TIGA_OK;
    if (each > INT64_MAX / 8192)
        return rt_fail(ctx, TIGA_E_MEMORY, "%s: %lld bytes of scratch memory a thread", code->name, (long long)each);
    each = (each + SCRATCH_ALIGN - 1) / SCRATCH_ALIGN * SCRATCH_ALIGN;
    while (*threads > 1 && *threads * each > rt_room_left(ctx->account, TIGA_TIER_HOST))
        --*threads;
    tiga_status status = rt_account_take(ctx, *threads * each, code->name);
    if (status != TIGA_OK)
        return status;
    if (ctx->scratch_bytes < *threads * each) {
        rt_mem_free(ctx->scratch);
        ctx->scratch = NULL;
        ctx->scratch_bytes = 0;
        status = rt_mem_take(ctx, *threads * each, 1, false, code->name, &ctx->scratch);
        if (status != TIGA_OK) {
            rt_account_give(ctx, *threads * each);
            return status;
        }
        ctx->scratch_bytes = *threads * each;
    }
    j->scratch = ctx->scratch;
    j->scratch_each = each;
    return TIGA_OK;
}

/* Runs the chunks; false: interrupted. */
static bool run_chunks(tiga_context *ctx, job *j, double bytes, int threads) {
    if (threads <= 1 || j->n_chunks <= 1 || bytes >= LARGE_BYTES || is_large_product(j->l))
        return rt_parallel_for(ctx, threads, j->n_chunks, chunk_task, j);
    double each = 1, start = now();
    for (int64_t begin = 0; j->first < 2 && j->first < j->n_chunks;) {
        int64_t end = chunk_begin(j, ++j->first);
        run_units(j, begin, end, 0);
        begin = end;
        double end_time = now(), took = end_time - start;
        start = end_time;
        each = took < each ? took : each;
        if (each * (double)(j->n_chunks - j->first) < START_SECONDS) { /* in one go; who interrupts can wait for that */
            run_units(j, begin, j->units, 0);
            return !rt_interrupted(ctx);
        }
    }
    return rt_parallel_for(ctx, threads, j->n_chunks - j->first, chunk_task, j);
}

static void plan_parts(job *j, double bytes, int threads) {
    int64_t most = (1 + j->l->output_bytes / j->l->n_rows / LINE) * PARTS_PER_LINE;
    j->n_chunks = bytes < LARGE_BYTES ? 1 : threads < most ? threads : most;
}

static void plan_chunks(job *j, double bytes, int threads) {
    double n = bytes / CHUNK_MAX_BYTES, most = bytes / CHUNK_MIN_BYTES;
    double fair = threads > 1 ? (double)threads * CHUNKS_PER_THREAD : 1;
    n = n < fair ? fair : n;
    if (n > most && bytes >= LARGE_BYTES)
        n = most;
    if (may_have_panels(j->l) && n > (double)threads && n * PANEL_UNITS > (double)j->units) {
        n = (double)(j->units / PANEL_UNITS);
        if (n < threads) {
            double few = is_large_product(j->l) ? (double)(j->units / FEW_UNITS) : 1;
            n = few < threads ? few : threads;
        }
    }
    j->n_chunks = n < (double)j->units ? (int64_t)n : j->units;
    if (j->n_chunks < 1)
        j->n_chunks = 1;
}

/* What is small is still in a cache when all of it is done. */
static tiga_status run_both(tiga_context *ctx, const rt_launch *l) {
    rt_launch alone = *l;
    alone.then = NULL;
    tiga_status status = rt_launch_run(ctx, &alone);
    return status == TIGA_OK ? rt_launch_run(ctx, l->then) : status;
}

tiga_status rt_launch_run(tiga_context *ctx, const rt_launch *l) {
    const tiga_kernel_code *code = l->code;
    if (l->then && l->output_bytes < FOLLOW_BYTES)
        return run_both(ctx, l);
    job j = {.l = l, .ctx = ctx, .fn = l->graph && l->graph->source_bits == 64 ? code->rows64 : code->rows32};
    if (l->n_rows <= 0)
        return TIGA_OK;
    if (!j.fn || code->rows_per_unit < 1)
        return rt_fail(ctx, TIGA_E_INTERNAL, "%s: the module has no code for this graph", code->name);
    j.units = (l->n_rows - 1) / code->rows_per_unit + 1;
    j.total_cost = (l->graph ? l->graph->n_edges : 0) + ROW_COST * l->n_rows;
    double bytes = (double)j.total_cost * (8 + (double)l->output_bytes / (double)l->n_rows);
    int threads = ctx->threads < j.units ? ctx->threads : (int)j.units;
    if (takes_all(&j))
        plan_parts(&j, bytes, threads);
    else
        plan_chunks(&j, bytes, threads);
    tiga_status status = take_scratch(ctx, &j, &threads);
    if (status != TIGA_OK)
        return status;
    if (l->then)
        j.added = base_alloc_zero((size_t)n_blocks(&j));
    bool ran = run_chunks(ctx, &j, bytes, threads) && !atomic_load(&j.gave_up);
    if (ran && l->then)
        ran = run_left_blocks(ctx, &j, ctx->threads) && !atomic_load(&j.gave_up);
    base_free(j.added);
    if (!ran)
        status = rt_fail(ctx, TIGA_E_INTERRUPTED, "%s: interrupted", code->name);
    if (j.scratch)
        rt_account_give(ctx, threads * j.scratch_each);
    return status;
}
