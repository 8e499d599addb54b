/* Long loops in pieces, between which the caller is asked whether to give up: a row may have as many edges, and an edge as
 * much to do, as fit in memory, and nobody waits that long for a key that was pressed.
 *
 * Every place that asks takes time to compile, so only these do: walks, but for those that do little and pass 10^9
 * edges a second; and, outside of walks, loops over features with loops inside that may be long, or with functions that
 * take long; and what goes through tiles when it is long for certain.  Between rows the runtime asks.
 *
 * A piece is about a million operations, less than a millisecond; where sizes are known at run time only, so is the number
 * of steps.  A loop that is known to be shorter stays whole. */
#include "codegen/cg_c.h"

#include <string.h>

enum {
    WORK_PER_PIECE = 1 << 20,
    LONG_WORK = 1 << 24,
    MOST_STEPS = 1 << 16,
    LITTLE_WORK = 256,
    USUAL_DEGREE = 16,
    USUAL_COUNT = 16,
    MATH_WORK = 16,
    LANES_AT_ONCE = 8
};

/* A number of operations or of steps: of C, in doubles, when dimensions are in it. */
typedef struct amount {
    double value; /* when text is NULL */
    const char *text;
} amount;

static const char *text_of(cg_loop *c, amount a) {
    return a.text ? a.text : base_arena_printf(c->arena, "%g", a.value);
}

static amount plus(cg_loop *c, amount a, amount b) {
    amount sum = {.value = a.value + b.value};
    if (a.text || b.text)
        sum.text = base_arena_printf(c->arena, "%s + %s", text_of(c, a), text_of(c, b));
    return sum;
}

static amount times(cg_loop *c, amount a, amount b) {
    amount product = {.value = a.value * b.value};
    if (a.text || b.text)
        product.text = base_arena_printf(c->arena, "(%s) * (%s)", text_of(c, a), text_of(c, b));
    return product;
}

/* Of an operand that says how often: a guess where it is neither constant nor a dimension. */
static amount count(cg_loop *c, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    int64_t n = 0;
    if (cg_constant(c, id, &n))
        return (amount){.value = (double)n};
    if (op->code == IR_DIMSIZE)
        return (amount){.text = base_arena_printf(c->arena, "(double)%s",
                                                  cg_dim_text(c, (ir_dim)ir_find_attr(op, IR_ATTR_DIM)->i))};
    const ir_op *loop = op->code == IR_ARG ? ir_at(c->f, c->site[id].loop) : NULL;
    return (amount){.value = loop && loop->code == IR_TILES ? (double)ir_int(loop, IR_ATTR_WIDTH, 1) : USUAL_COUNT};
}

static amount steps_of(cg_loop *c, const ir_op *loop) {
    if (loop->code == IR_EDGES || !loop->n_args)
        return (amount){.value = USUAL_DEGREE};
    amount n = count(c, loop->args[loop->code == IR_RANGE ? 1 : 0]);
    double at_once = loop->code == IR_LANES   ? LANES_AT_ONCE
                     : loop->code == IR_TILES ? (double)ir_int(loop, IR_ATTR_WIDTH, 1)
                                              : 1;
    if (at_once == 1)
        return n;
    return plus(c, times(c, n, (amount){.value = 1 / at_once}), (amount){.value = 1});
}

static amount work_of(cg_loop *c, const ir_region *r) {
    amount sum = {.value = 1};
    for (size_t i = 0; i < r->n; ++i) {
        const ir_op *op = ir_at(c->f, r->ops[i]);
        if (!op->region)
            sum.value += ir_math_name(op->code, IR_F32) ? MATH_WORK : 1;
    }
    for (size_t i = 0; i < r->n; ++i) {
        const ir_op *op = ir_at(c->f, r->ops[i]);
        if (op->region)
            sum = plus(c, sum, times(c, steps_of(c, op), work_of(c, op->region)));
    }
    return sum;
}

/* An outer loop asks often enough; but a tile may have any number of edges. */
static bool inside_of_pieces(const cg_loop *c, ir_id id) {
    ir_opcode own = ir_at(c->f, id)->code;
    for (ir_id l = c->site[id].loop; l; l = c->site[l].loop) {
        ir_opcode code = ir_at(c->f, l)->code;
        if (code != IR_ROWS && (code != IR_TILES || own != IR_EDGES))
            return true;
    }
    return false;
}

static bool may_take_long(cg_loop *c, const ir_op *loop, const amount *work, int64_t width) {
    if (loop->code == IR_ROWS)
        return false;
    if (loop->code == IR_EDGES)
        return width == 1 || work->text || work->value >= LITTLE_WORK;
    if (loop->code == IR_TILES && !work->text)
        return steps_of(c, loop).value * work->value >= LONG_WORK;
    return work->text || work->value >= (double)(width * MATH_WORK);
}

/* Whether a loop is known to have no more than `most` steps. */
static bool is_short(const cg_loop *c, const ir_op *loop, double most) {
    int64_t from = 0, to = 0;
    if (loop->code == IR_EDGES || loop->code == IR_ROWS || !loop->n_args)
        return false;
    if (loop->code == IR_RANGE)
        return cg_constant(c, loop->args[0], &from) && cg_constant(c, loop->args[1], &to) &&
               (double)(to - from) <= most;
    return cg_constant(c, loop->args[0], &to) && (double)to <= most;
}

/* The constant for steps of so much work; declared in front of all loops. */
static const char *steps_name(cg_loop *c, const char *work) {
    size_t i = 0;
    while (i < c->n_steps && strcmp(c->steps[i], work))
        ++i;
    if (i == c->n_steps)
        base_push(c->arena, c->steps, c->n_steps, c->cap_steps, work);
    return base_arena_printf(c->arena, "tiga_steps_%zu", i);
}

const char *cg_piece_steps(cg_loop *c, ir_id id, int64_t width) {
    const ir_op *loop = ir_at(c->f, id);
    if (inside_of_pieces(c, id))
        return NULL;
    amount work = times(c, work_of(c, loop->region), (amount){.value = (double)width});
    if (!may_take_long(c, loop, &work, width))
        return NULL;
    if (work.text)
        return steps_name(c, work.text);
    int64_t steps = MOST_STEPS;
    while (steps > 1 && (double)steps * work.value > WORK_PER_PIECE)
        steps /= 2;
    return is_short(c, loop, (double)steps) ? NULL : base_arena_printf(c->arena, "%lld", (long long)steps);
}

void cg_steps_lines(const cg_loop *c, cg_text *w) {
    for (size_t i = 0; i < c->n_steps; ++i)
        cg_line(w, "const int64_t tiga_steps_%zu = TIGA_STEPS(%s);", i, c->steps[i]);
}

/* The loop over the pieces; returns the name of a piece's end. */
static const char *open_pieces(cg_loop *c, const char *i, const char *head, const char *end, int64_t width,
                               const char *steps) {
    const char *stop = cg_name(&c->names, base_arena_printf(c->arena, "%s_stop", i));
    cg_open(&c->w, "for (%s)", head);
    cg_line(&c->w, "const int64_t %s = TIGA_PIECE(%s, %s, %lld, %s);", stop, i, end, (long long)width, steps);
    return stop;
}

static void close_pieces(cg_loop *c, const char *more) {
    cg_line(&c->w, "if (TIGA_RARELY(%s) && tiga_ask(%s, 0, 0, 0) < 0)", more, c->args);
    cg_line(&c->w, "    return;");
    cg_close(&c->w, "");
}

void cg_open_steps(cg_loop *c, const char *pragma, const char *i, const char *head, const char *end,
                   const char *steps) {
    if (steps) {
        end = open_pieces(c, i, base_arena_printf(c->arena, "%s; %s < %s;", head, i, end), end, 1, steps);
        head = "";
    }
    if (pragma)
        cg_line(&c->w, "%s", pragma);
    cg_open(&c->w, "for (%s; %s < %s; ++%s)", head, i, end, i);
}

void cg_close_steps(cg_loop *c, const char *i, const char *end, const char *steps) {
    cg_close(&c->w, "");
    if (steps)
        close_pieces(c, base_arena_printf(c->arena, "%s < %s", i, end));
}

static const char *enough(cg_loop *c, const char *i, const char *end, int64_t width) {
    return base_arena_printf(c->arena, "%s + %lld <= %s", i, (long long)width, end);
}

void cg_open_vectors(cg_loop *c, const char *i, const char *end, int64_t width, const char *steps) {
    if (steps)
        end = open_pieces(c, i, base_arena_printf(c->arena, "; %s;", enough(c, i, end, width)), end, width, steps);
    cg_open(&c->w, "for (; %s; %s += %lld)", enough(c, i, end, width), i, (long long)width);
}

void cg_close_vectors(cg_loop *c, const char *i, const char *end, int64_t width, const char *steps) {
    cg_close(&c->w, "");
    if (steps)
        close_pieces(c, enough(c, i, end, width));
}
