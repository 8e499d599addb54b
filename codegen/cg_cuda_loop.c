/* Loops of CUDA kernels.  A spread loop is dealt out: thread t takes iterations t, t + team, ... .  An unrolled loop has a
 * constant number of steps with a guard, so that local arrays are indexed by constants and stay in registers. */
#include "codegen/cg_cuda.h"

#include <string.h>

static const char *operand(const cg_cuda *c, ir_id id) {
    BASE_CHECK(c->text[id]);
    return c->text[id];
}

/* "++e" or "e += 16" */
static const char *advance(cg_cuda *c, const char *name, bool spread) {
    return spread ? base_arena_printf(c->arena, "%s += %d", name, c->team) : base_arena_printf(c->arena, "++%s", name);
}

static const char *fresh(cg_cuda *c, const char *want) { return cg_name(&c->names, want); }

static void body(cg_cuda *c, ir_id loop) { cg_cu_region(c, ir_at(c->f, loop)->region); }

static void unroll(cg_cuda *c, int steps) {
    if (steps)
        cg_line(&c->w, "#pragma unroll %d", steps);
    else
        cg_line(&c->w, "#pragma unroll");
}

/* ---- rows and tiles ---------------------------------------------------------------------------------------------- */

static void rows_loop(cg_cuda *c, ir_id id) {
    ir_id arg = cg_cu_loop_arg(c, id, 0);
    const char *row = c->text[arg] = fresh(c, "row");
    cg_open(&c->w, "for (int64_t %s = %s + %s; %s < %s; %s += %s)", row, c->row_begin, c->slice, row, c->row_end, row,
            c->n_slices);
    body(c, id);
    cg_close(&c->w, "");
}

static void tiles_loop(cg_cuda *c, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    ir_id begin = cg_cu_loop_arg(c, id, 0), width = cg_cu_loop_arg(c, id, 1);
    long long most = (long long)ir_int(op, IR_ATTR_WIDTH, 1);
    const char *n = operand(c, op->args[0]), *k0 = c->text[begin] = fresh(c, "k0");
    cg_open(&c->w, "for (int64_t %s = 0; %s < %s; %s += %lld)", k0, k0, n, k0, most);
    int64_t w;
    if (cg_cu_const(c, width, &w))
        c->text[width] = base_arena_printf(c->arena, "%lld", (long long)w);
    else
        cg_cu_arg(c, width, "w",
                  base_arena_printf(c->arena, "%s - %s < %lld ? %s - %s : %lld", n, k0, most, n, k0, most));
    body(c, id);
    cg_close(&c->w, "");
}

/* ---- lanes ------------------------------------------------------------------------------------------------------- */

static const char *plus(cg_cuda *c, const char *a, const char *b) {
    return !strcmp(a, "0") ? b : base_arena_printf(c->arena, "%s + %s", a, b);
}

static void set_slots(cg_cuda *c, ir_id k, const char *of_k, ir_id l, const char *of_l) {
    if (k)
        c->slot[k] = of_k;
    if (l)
        c->slot[l] = of_l;
}

/* Unrolled, element l decides (the base is a multiple of the team wherever it matters). */
static void lanes_by_l(cg_cuda *c, ir_id id, const char *n, const char *base) {
    const cg_cu_site *s = &c->site[id];
    ir_id k = cg_cu_loop_arg(c, id, 0), l = cg_cu_loop_arg(c, id, 1);
    const char *step = fresh(c, "s"), *lane = step;
    int64_t count, first;
    unroll(c, 0);
    cg_open(&c->w, "for (int64_t %s = 0; %s < %lld; ++%s)", step, step, (long long)s->steps, step);
    if (s->spread) {
        lane = fresh(c, "l");
        cg_cu_optional(
            c, lane, base_arena_printf(c->arena, "const int64_t %s = %s * %d + %s;", lane, step, c->team, cg_cu_t(c)));
    }
    bool full = cg_cu_const(c, ir_at(c->f, id)->args[0], &count) && count == s->steps * (s->spread ? c->team : 1);
    if (!full)
        cg_line(&c->w, "if (%s >= %s) continue;", lane, n);
    c->text[l] = lane;
    if (!strcmp(base, "0"))
        c->text[k] = lane;
    else
        cg_cu_arg(c, k, "k", base_arena_printf(c->arena, "%s + %s", base, lane));
    if (s->spread) {
        bool known = ir_at(c->f, id)->n_args < 2 || cg_cu_const(c, ir_at(c->f, id)->args[1], &first);
        if (ir_at(c->f, id)->n_args < 2)
            first = 0;
        const char *from = known ? base_arena_printf(c->arena, "%lld", (long long)(first / c->team))
                                 : base_arena_printf(c->arena, "%s / %d", base, c->team);
        set_slots(c, k, plus(c, from, step), l, step);
    }
    body(c, id);
    cg_close(&c->w, "");
}

/* Unrolled, element k decides: the base is constant and no multiple of the team. */
static void lanes_by_k(cg_cuda *c, ir_id id, const char *n, const char *base) {
    const cg_cu_site *s = &c->site[id];
    ir_id k = cg_cu_loop_arg(c, id, 0), l = cg_cu_loop_arg(c, id, 1);
    int64_t first;
    BASE_CHECK(cg_cu_const(c, ir_at(c->f, id)->args[1], &first));
    long long from = first / c->team;
    const char *step = fresh(c, "s"), *element = fresh(c, "k");
    unroll(c, 0);
    cg_open(&c->w, "for (int64_t %s = %lld; %s < %lld; ++%s)", step, from, step, from + (long long)s->steps, step);
    cg_line(&c->w, "const int64_t %s = %s * %d + %s;", element, step, c->team, cg_cu_t(c));
    cg_line(&c->w, "if (%s < %s || %s >= %s + %s) continue;", element, base, element, base, n);
    c->text[k] = element;
    cg_cu_arg(c, l, "l", base_arena_printf(c->arena, "%s - %s", element, base));
    set_slots(c, k, step, l, NULL);
    body(c, id);
    cg_close(&c->w, "");
}

/* A plain loop, dealt out or not. */
static void lanes_plain(cg_cuda *c, ir_id id, const char *n, const char *base) {
    const cg_cu_site *s = &c->site[id];
    ir_id k = cg_cu_loop_arg(c, id, 0), l = cg_cu_loop_arg(c, id, 1);
    bool based = strcmp(base, "0") != 0;
    const char *lane = fresh(c, "l"), *from = "0";
    if (s->spread && s->by_k)
        from = base_arena_printf(c->arena, "(%s - %s) & %d", cg_cu_t(c), base, c->team - 1);
    else if (s->spread)
        from = cg_cu_t(c);
    cg_open(&c->w, "for (int64_t %s = %s; %s < %s; %s)", lane, from, lane, n, advance(c, lane, s->spread));
    c->text[l] = lane;
    if (based)
        cg_cu_arg(c, k, "k", base_arena_printf(c->arena, "%s + %s", base, lane));
    else
        c->text[k] = lane;
    if (s->spread)
        set_slots(c, k, c->text[k] ? base_arena_printf(c->arena, "%s / %d", c->text[k], c->team) : NULL, l,
                  base_arena_printf(c->arena, "%s / %d", lane, c->team));
    body(c, id);
    cg_close(&c->w, "");
}

/* ---- loops in steps of sixteen: accumulator j belongs to step j ---------------------------------------------------- */

static const char *open_sixteen(cg_cuda *c, const char *n, const char **lane) {
    const char *group = fresh(c, "group"), *j = fresh(c, "j");
    *lane = fresh(c, "lane");
    cg_open(&c->w, "for (int64_t %s = 0; %s < %s; %s += 16)", group, group, n, group);
    unroll(c, 0);
    cg_open(&c->w, "for (int64_t %s = 0; %s < 16; ++%s)", j, j, j);
    cg_line(&c->w, "const int64_t %s = %s + %s;", *lane, group, j);
    cg_line(&c->w, "if (%s >= %s) break;", *lane, n);
    return j;
}

static void close_sixteen(cg_cuda *c) {
    cg_close(&c->w, "");
    cg_close(&c->w, "");
}

static void lanes_loop(cg_cuda *c, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    const char *n = operand(c, op->args[0]), *base = op->n_args > 1 ? operand(c, op->args[1]) : "0", *lane;
    const cg_cu_site *s = &c->site[id];
    if (s->sixteen) {
        ir_id k = cg_cu_loop_arg(c, id, 0), l = cg_cu_loop_arg(c, id, 1);
        const char *j = open_sixteen(c, n, &lane);
        c->text[k] = c->text[l] = lane;
        set_slots(c, k, j, l, j);
        body(c, id);
        close_sixteen(c);
        set_slots(c, k, NULL, l, NULL);
    } else if (s->unrolled && s->by_k) {
        lanes_by_k(c, id, n, base);
    } else if (s->unrolled) {
        lanes_by_l(c, id, n, base);
    } else {
        lanes_plain(c, id, n, base);
    }
}

/* ---- edges and range: iteration `lane` is element first + lane ----------------------------------------------------- */

static bool is_simple(const cg_cuda *c, ir_id loop) { /* worth taking a few iterations' loads at once */
    size_t n = 0;
    for (ir_id id = 1; id < c->f->n_ops; ++id) {
        if (!c->site[id].live)
            continue;
        ir_id outer = c->site[id].loop, outer2 = outer ? c->site[outer].loop : 0;
        if (outer != loop && outer2 != loop)
            continue;
        const ir_op *op = ir_at(c->f, id);
        if (op->region && (op->code != IR_LANES || outer != loop))
            return false;
        n++;
    }
    return n <= CG_CU_BODY;
}

typedef struct counted { /* first <= item < end */
    ir_id item, lane;
    const char *item_name, *first, *end;
} counted;

static void edge_source(cg_cuda *c, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    ir_id e = cg_cu_loop_arg(c, id, 0);
    if (op->code == IR_EDGES)
        cg_cu_arg(c, cg_cu_loop_arg(c, id, 1), "src", base_arena_printf(c->arena, "%s[%s]", c->sources, operand(c, e)));
}

static void counted_sixteen(cg_cuda *c, ir_id id, const counted *r, const char *n) {
    const char *lane, *j = open_sixteen(c, n, &lane);
    c->text[r->item] = fresh(c, r->item_name);
    cg_line(&c->w, "const int64_t %s = %s + %s;", c->text[r->item], r->first, lane);
    c->text[r->lane] = lane;
    c->slot[r->lane] = j;
    edge_source(c, id);
    body(c, id);
    close_sixteen(c);
    c->slot[r->lane] = NULL;
}

static void counted_plain(cg_cuda *c, ir_id id, const counted *r) {
    const cg_cu_site *s = &c->site[id];
    const char *item = c->text[r->item] = fresh(c, r->item_name);
    const char *from = s->spread ? base_arena_printf(c->arena, "%s + %s", r->first, cg_cu_t(c)) : r->first;
    if (is_simple(c, id))
        unroll(c, 4);
    cg_open(&c->w, "for (int64_t %s = %s; %s < %s; %s)", item, from, item, r->end, advance(c, item, s->spread));
    cg_cu_arg(c, r->lane, "lane", base_arena_printf(c->arena, "%s - %s", item, r->first));
    edge_source(c, id);
    body(c, id);
    cg_close(&c->w, "");
}

/* Names that stand before the loop live as long as the region around it; the loop's own are free again after it. */
static void counted_loop(cg_cuda *c, ir_id id, const counted *r) {
    const char *n = NULL;
    if (c->site[id].sixteen) {
        n = fresh(c, "count");
        cg_line(&c->w, "const int64_t %s = %s - %s;", n, r->end, r->first);
    }
    size_t mark = cg_names_mark(&c->names);
    if (n)
        counted_sixteen(c, id, r, n);
    else
        counted_plain(c, id, r);
    cg_names_release(&c->names, mark);
}

static void edges_loop(cg_cuda *c, ir_id id) {
    const char *row = operand(c, ir_at(c->f, id)->args[0]), *first = fresh(c, "first"), *end = fresh(c, "end");
    cg_line(&c->w, "const int64_t %s = %s[%s];", first, c->offsets, row);
    cg_line(&c->w, "const int64_t %s = %s[%s + 1];", end, c->offsets, row);
    counted_loop(c, id, &(counted){cg_cu_loop_arg(c, id, 0), cg_cu_loop_arg(c, id, 2), "e", first, end});
}

static void range_loop(cg_cuda *c, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    counted_loop(c, id,
                 &(counted){cg_cu_loop_arg(c, id, 0), cg_cu_loop_arg(c, id, 1), "i", operand(c, op->args[0]),
                            operand(c, op->args[1])});
}

static void plain_loop(cg_cuda *c, ir_id id) {
    const char *n = operand(c, ir_at(c->f, id)->args[0]), *i = fresh(c, "i");
    c->text[cg_cu_loop_arg(c, id, 0)] = i;
    const cg_cu_site *s = &c->site[id];
    if (s->spread) {
        cg_open(&c->w, "for (int64_t %s = (%s - %s) & %d; %s < %s; %s)", i, cg_cu_t(c), operand(c, s->base),
                c->team - 1, i, n, advance(c, i, true));
        body(c, id);
        cg_close(&c->w, "");
        return;
    }
    bool unrolled = s->unrolled;
    if (unrolled)
        unroll(c, 0);
    cg_open(&c->w, "for (int64_t %s = 0; %s < %s; ++%s)", i, i, n, i);
    body(c, id);
    cg_close(&c->w, "");
}

static void uncounted_loop(cg_cuda *c, ir_id id) {
    size_t mark = cg_names_mark(&c->names);
    switch ((int)ir_at(c->f, id)->code) {
    case IR_ROWS:
        rows_loop(c, id);
        break;
    case IR_TILES:
        tiles_loop(c, id);
        break;
    case IR_LANES:
        lanes_loop(c, id);
        break;
    case IR_LOOP:
        plain_loop(c, id);
        break;
    default:
        BASE_BUG("%s is no loop", ir_op_describe(ir_at(c->f, id)->code)->text);
    }
    cg_names_release(&c->names, mark);
}

void cg_cu_loop(cg_cuda *c, ir_id id) {
    size_t mark = c->n_optional;
    switch ((int)ir_at(c->f, id)->code) {
    case IR_EDGES:
        edges_loop(c, id);
        break;
    case IR_RANGE:
        range_loop(c, id);
        break;
    default:
        uncounted_loop(c, id);
        break;
    }
    cg_cu_drop_unused(c, mark);
}
