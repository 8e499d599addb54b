/* schedule_cpu: widths of tiles, elements of a vector, distance of prefetches, rows that are emitted for some sizes too.
 * Changes no bit of a result.
 *
 * One vector width per function: an array can live in vector registers only when all its loops cut it alike.  Tiles are
 * as wide as the accumulators that fit into the vector registers; a constant axis is cut into equal parts. */
#include "passes/pass_util.h"

#define TILE_BYTES 256 /* of one accumulator: eight registers of 32 bytes */
#define VECTOR_BYTES 64 /* several registers at once hide the latency of an addition */
#define FETCH_ROW_BYTES 32 /* smaller rows of a source field: the processor runs far enough ahead by itself */
#define FETCH_BYTES 4096 /* to have on the way: measured best for random rows of 64 to 1024 bytes */
#define LEAST_AHEAD 8 /* edges, and at most */
#define MOST_AHEAD 32

/* ---- widest element ---- */
static bool is_element(const ir_op *op) {
    return op->code == IR_LOAD || op->code == IR_READ || op->code == IR_CAST || op->code == IR_SET ||
           op->code == IR_STORE;
}

static void look_for_wide(void *ctx, ir_func *f, ir_region *r, ir_id id) {
    bool *wide = ctx;
    (void)r;
    const ir_op *lanes = ir_at(f, id);
    if (lanes->code != IR_LANES)
        return;
    for (size_t i = 0; i < lanes->region->n; i++) {
        const ir_op *op = ir_at(f, lanes->region->ops[i]);
        ir_dtype t = op->type.dtype;
        if (op->code == IR_SET || op->code == IR_STORE)
            t = ir_at(f, op->args[op->n_args - 1])->type.dtype;
        if (is_element(op) && t < IR_DTYPE_COUNT && ir_dtype_bytes(ir_dtype_part(t)) == 8)
            *wide = true;
    }
}

/* ---- tiles ---- */
static int64_t tile_width(const ir_func *f, const ir_op *tiles, bool wide) {
    int64_t most = TILE_BYTES / (wide ? 8 : 4), step = VECTOR_BYTES / (wide ? 8 : 4);
    const ir_op *extent = ir_at(f, tiles->args[0]);
    if (extent->code != IR_CONST)
        return most;
    int64_t n = ir_find_attr(extent, IR_ATTR_VALUE)->v.i;
    if (n <= most)
        return most;
    int64_t parts = (n - 1) / most + 1, width = (n - 1) / parts + 1;
    return (width + step - 1) / step * step;
}

/* ---- prefetch ---- */
/* Bytes of a row; SIZE_OPEN when that is not known before the launch. */
#define SIZE_OPEN INT64_MAX
static int64_t row_bytes(const ir_type *t) {
    int64_t bytes = (int64_t)ir_dtype_bytes(t->dtype);
    for (uint32_t i = 0; i < t->rank; i++) {
        if (t->dim[i] == 0)
            return 0;
        if (t->dim[i] < 0)
            return SIZE_OPEN;
        bytes = t->dim[i] > FETCH_BYTES || bytes > FETCH_BYTES ? FETCH_BYTES : bytes * t->dim[i];
    }
    return bytes;
}

/* The widest row that is read at the source of an edge. */
static int64_t widest_row(const ir_func *f, const ir_region *r, ir_id source) {
    int64_t widest = 0;
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(f, r->ops[i]);
        int64_t bytes = op->region ? widest_row(f, op->region, source) : 0;
        if (op->code == IR_LOAD && op->n_args > 1 && op->args[0] == source)
            bytes = row_bytes(&f->params[ir_int(op, IR_ATTR_FIELD, 0)].type);
        widest = bytes > widest ? bytes : widest;
    }
    return widest;
}

static ir_id source_arg(const ir_func *f, const ir_op *edges) {
    for (size_t i = 0; i < edges->region->n; i++) {
        const ir_op *op = ir_at(f, edges->region->ops[i]);
        if (op->code == IR_ARG && ir_int(op, IR_ATTR_INDEX, 0) == 1)
            return edges->region->ops[i];
    }
    return 0;
}

/* How far ahead rows at sources are asked for; where their size is open, the walk finds out. */
static void set_distance(ir_module *m, const ir_func *f, ir_op *edges) {
    ir_id source = source_arg(f, edges);
    int64_t bytes = source ? widest_row(f, edges->region, source) : 0;
    if (bytes < FETCH_ROW_BYTES)
        return;
    int64_t distance = FETCH_BYTES / bytes;
    bool open = bytes == SIZE_OPEN;
    ir_set_int(m, edges, IR_ATTR_PREFETCH,
               open || distance > MOST_AHEAD ? MOST_AHEAD
               : distance < LEAST_AHEAD      ? LEAST_AHEAD
                                             : distance);
    if (open)
        ir_set_int(m, edges, IR_ATTR_FETCH, FETCH_BYTES);
}

/* ---- sizes of their own ---- */
typedef struct open_sums {
    ir_dim dim; /* of the sums that walks keep, 0: there are none */
    bool differ;
} open_sums;

static void look_for_sets(open_sums *s, const ir_func *f, const ir_region *r, bool walk) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(f, r->ops[i]);
        const ir_type *t = op->code == IR_SET ? &ir_at(f, op->args[0])->type : NULL;
        if (walk && t && t->rank == 1 && ir_dim_is_sym(t->dim[0])) {
            s->differ = s->differ || (s->dim && s->dim != t->dim[0]);
            s->dim = t->dim[0];
        }
        if (op->region)
            look_for_sets(s, f, op->region, walk || op->code == IR_EDGES);
    }
}

/* Sums of a walk over an open number of features are in memory, where a known number of them is in registers: one walk
 * that has both those and the features of an edge to go through is emitted for some numbers too. */
static void set_sizes(ir_module *m, const ir_func *f, ir_op *rows) {
    open_sums s = {0};
    look_for_sets(&s, f, rows->region, false);
    bool products = ir_find_attr(rows, IR_ATTR_BLOCK); /* they would be compiled as often, and gain nothing */
    if (s.dim && !s.differ && !products)
        ir_set_int(m, rows, IR_ATTR_SIZES, s.dim);
}

/* ---- the pass ---- */
/* Tiles around the rows are as wide as `panels` has made them. */
static bool holds_rows(const ir_func *f, const ir_region *r) {
    for (size_t i = 0; i < r->n; i++)
        if (ir_at(f, r->ops[i])->code == IR_ROWS)
            return true;
    return false;
}

typedef struct schedule {
    ir_module *m;
    bool wide;
} schedule;

static void schedule_op(void *ctx, ir_func *f, ir_region *r, ir_id id) {
    const schedule *s = ctx;
    ir_op *op = ir_at(f, id);
    if (op->code == IR_TILES && !holds_rows(f, op->region))
        ir_set_int(s->m, op, IR_ATTR_WIDTH, tile_width(f, op, s->wide));
    else if (op->code == IR_LANES)
        ir_set_int(s->m, op, IR_ATTR_VECTOR, VECTOR_BYTES / (s->wide ? 8 : 4));
    else if (op->code == IR_EDGES)
        set_distance(s->m, f, op);
    else if (op->code == IR_ROWS && r == &f->body)
        set_sizes(s->m, f, op);
}

static bool schedule_func(ir_module *m, ir_func *f, pass_context *ctx, base_str *err) {
    (void)ctx;
    (void)err;
    schedule s = {.m = m};
    ir_walk(f, look_for_wide, &s.wide);
    ir_walk(f, schedule_op, &s);
    return true;
}

bool pass_schedule_cpu(ir_module *m, pass_context *ctx, base_str *err) {
    return pass_each_func(m, 1u << IR_LEVEL_LOOP, schedule_func, ctx, err);
}
