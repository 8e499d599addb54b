/* The plan of a CUDA kernel: what is live, which loops are spread over the threads of a team, where vars live.
 *
 * Element e of an axis that is dealt out belongs to thread e mod team, in every loop that touches it; a loop that would
 * need another thread's element cannot be written, and the plan says so (such functions are scheduled with team = 1). */
#include "codegen/cg_cuda.h"

/* ---- places and uses --------------------------------------------------------------------------------------------- */

static void place(cg_cuda *c, ir_region *r, ir_id loop, ir_id tiles) {
    for (size_t i = 0; i < r->n; ++i) {
        cg_cu_site *s = &c->site[r->ops[i]];
        const ir_op *op = ir_at(c->f, r->ops[i]);
        s->region = r;
        s->loop = loop;
        s->tiles = tiles;
        s->axis = -1;
        if (op->region)
            place(c, op->region, r->ops[i], op->code == IR_TILES ? r->ops[i] : tiles);
    }
}

static void mark(cg_cuda *c, ir_id id);

static void mark_writers(cg_cuda *c, ir_id var, ir_opcode writer) {
    for (ir_id i = 1; i < c->f->n_ops; ++i)
        if (c->site[i].region && ir_at(c->f, i)->code == writer && ir_at(c->f, i)->args[0] == var)
            mark(c, i);
}

/* Live is what a store needs. */
static void mark(cg_cuda *c, ir_id id) {
    if (!id || c->site[id].live)
        return;
    const ir_op *op = ir_at(c->f, id);
    c->site[id].live = true;
    for (uint32_t i = 0; i < op->n_args; ++i)
        mark(c, op->args[i]);
    mark(c, c->site[id].loop);
    if (op->code == IR_READ)
        mark_writers(c, op->args[0], IR_SET);
    if (op->code == IR_COLLAPSE)
        mark_writers(c, op->args[0], IR_ACCUM);
}

static void count_uses(cg_cuda *c) {
    for (ir_id id = 1; id < c->f->n_ops; ++id) {
        if (!c->site[id].live)
            continue;
        const ir_op *op = ir_at(c->f, id);
        for (uint32_t i = 0; i < op->n_args; ++i) {
            c->site[op->args[i]].n_uses++;
            c->site[op->args[i]].user = id;
        }
    }
}

bool cg_cu_foldable(const cg_cuda *c, ir_id id) {
    const cg_cu_site *s = &c->site[id];
    bool elementwise = ir_class_is_elementwise(ir_op_describe(ir_at(c->f, id)->code)->cls);
    if (!elementwise || s->n_uses != 1 || c->site[s->user].region != s->region)
        return false;
    const ir_op *user = ir_at(c->f, s->user); /* which must write it once, and not in the head of a loop */
    return !user->region && !(user->code == IR_ACCUM && user->args[1] == id);
}

static int64_t tile_width(const cg_cuda *c, ir_id tiles) {
    return tiles ? ir_int(ir_at(c->f, tiles), IR_ATTR_WIDTH, -1) : -1;
}

/* The beginning and the width of a tile are constant when a constant axis is cut without a rest. */
static bool tile_const(const cg_cuda *c, ir_id arg, int64_t *out) {
    ir_id tiles = c->site[arg].loop;
    int64_t n, width = tile_width(c, tiles);
    if (!tiles || ir_at(c->f, tiles)->code != IR_TILES || !cg_cu_const(c, ir_at(c->f, tiles)->args[0], &n))
        return false;
    if (arg == cg_cu_loop_arg(c, tiles, 0))
        return n <= width ? (*out = 0, true) : false;
    if (n <= width)
        return *out = n, true;
    return n % width == 0 ? (*out = width, true) : false;
}

bool cg_cu_const(const cg_cuda *c, ir_id id, int64_t *out) {
    const ir_op *op = ir_at(c->f, id);
    if (op->code == IR_CONST && !ir_dtype_is_float(op->type.dtype))
        return *out = ir_find_attr(op, IR_ATTR_VALUE)->v.i, true;
    if (op->code == IR_DIMSIZE) {
        ir_dim d = ir_find_attr(op, IR_ATTR_DIM)->i;
        return d >= 0 ? (*out = d, true) : false;
    }
    return op->code == IR_ARG && tile_const(c, id, out);
}

ir_id cg_cu_loop_arg(const cg_cuda *c, ir_id loop, size_t index) {
    const ir_region *r = ir_at(c->f, loop)->region;
    for (size_t i = 0; i < r->n && ir_at(c->f, r->ops[i])->code == IR_ARG; ++i)
        if (ir_int(ir_at(c->f, r->ops[i]), IR_ATTR_INDEX, 0) == (int64_t)index)
            return r->ops[i];
    return 0;
}

int64_t cg_cu_extent(const cg_cuda *c, ir_id var, uint32_t axis) {
    ir_dim d = ir_at(c->f, var)->type.dim[axis];
    if (d == IR_DIM_TILE)
        return tile_width(c, c->site[var].tiles);
    return d >= 0 ? d : -1;
}

/* ---- which loops are spread -------------------------------------------------------------------------------------- */

static bool is_inside(const cg_cuda *c, ir_id id, ir_id loop) {
    for (ir_id at = c->site[id].loop; at; at = c->site[at].loop)
        if (at == loop)
            return true;
    return false;
}

static bool has_index(const ir_op *op, uint32_t first, uint32_t end, ir_id a, ir_id b) {
    for (uint32_t i = first; i < end; ++i)
        if (op->args[i] && (op->args[i] == a || op->args[i] == b))
            return true;
    return false;
}

/* May iterations of `loop` run on different threads, as far as this operation in it goes?  own, other: the arguments of
 * the loop that name the iteration; lane: the one that `accum` must use. */
static bool allows_spread(const cg_cuda *c, ir_id loop, ir_id id, ir_id own, ir_id other) {
    const ir_op *op = ir_at(c->f, id);
    bool lanes = ir_at(c->f, loop)->code == IR_LANES; /* whose iterations are independent but for what they set */
    switch ((int)op->code) {
    case IR_ACCUM:
        return is_inside(c, op->args[0], loop) || has_index(op, 1, 2, own, other);
    case IR_COLLAPSE:
        return is_inside(c, op->args[0], loop);
    case IR_SET:
        return is_inside(c, op->args[0], loop) || (lanes && has_index(op, 1, op->n_args - 1, own, other));
    case IR_STORE:
        return lanes || has_index(op, 0, op->n_args - 1, own, other);
    default:
        return true;
    }
}

/* `loop` does its iterations one after the other, but when all that they change are accumulators base + i, in order, those
 * with base + i mod team = t can be thread t's. */
static bool can_spread_from_base(cg_cuda *c, ir_id loop) {
    ir_id own = cg_cu_loop_arg(c, loop, 0), base = 0;
    for (ir_id id = 1; id < c->f->n_ops; ++id) {
        if (!c->site[id].live || !is_inside(c, id, loop))
            continue;
        const ir_op *op = ir_at(c->f, id);
        bool places = op->code == IR_SET || op->code == IR_READ || op->code == IR_COLLAPSE || op->code == IR_STORE;
        if (op->region || places)
            return false;
        if (op->code != IR_ACCUM)
            continue;
        const ir_op *lane = ir_at(c->f, op->args[1]);
        ir_id from = lane->code != IR_ADD || is_inside(c, op->args[0], loop) ? 0
                     : lane->args[1] == own                                  ? lane->args[0]
                                                                             : 0;
        if (!from || is_inside(c, from, loop) || (base && base != from))
            return false;
        base = from;
    }
    c->site[loop].base = base;
    return base != 0;
}

static bool can_spread(const cg_cuda *c, ir_id loop) {
    const ir_op *op = ir_at(c->f, loop);
    bool lanes = op->code == IR_LANES;
    if (!lanes && op->code != IR_EDGES && op->code != IR_RANGE)
        return false;
    ir_id own = cg_cu_loop_arg(c, loop, 0), lane = cg_cu_loop_arg(c, loop, op->code == IR_EDGES ? 2 : 1);
    for (ir_id id = 1; id < c->f->n_ops; ++id) {
        if (!c->site[id].live || !is_inside(c, id, loop))
            continue;
        const ir_op *in = ir_at(c->f, id);
        if (!lanes && in->region)
            return false; /* the loops inside are better spread, their loads lie side by side */
        ir_id first = !lanes && in->code == IR_ACCUM ? 0 : own;
        if (!allows_spread(c, loop, id, first, lane))
            return false;
    }
    return true;
}

static void spread_region(cg_cuda *c, const ir_region *r, ir_id spread_in) {
    for (size_t i = 0; i < r->n; ++i) {
        ir_id id = r->ops[i];
        cg_cu_site *s = &c->site[id];
        s->spread_in = spread_in;
        s->private = spread_in || c->team == 1;
        const ir_op *op = ir_at(c->f, id);
        if (!s->live || !op->region)
            continue;
        bool spread = op->code == IR_LOOP ? can_spread_from_base(c, id) : can_spread(c, id);
        s->spread = c->team > 1 && !spread_in && spread;
        spread_region(c, op->region, s->spread ? id : spread_in);
    }
}

/* ---- where arrays live ------------------------------------------------------------------------------------------- */

static bool is_array(const ir_op *var) { return var->code == IR_VAR && var->type.rank > 0; }

/* The axis of an access whose index is the iteration of the spread loop around it; -1: none. */
static int own_axis(const cg_cuda *c, ir_id access) {
    const ir_op *op = ir_at(c->f, access);
    ir_id loop = c->site[access].spread_in;
    if (!loop || ir_at(c->f, loop)->code != IR_LANES)
        return -1;
    ir_id k = cg_cu_loop_arg(c, loop, 0), l = cg_cu_loop_arg(c, loop, 1);
    uint32_t end = op->code == IR_SET ? op->n_args - 1 : op->n_args;
    for (uint32_t i = end; i-- > 1;)
        if (op->args[i] == k || op->args[i] == l)
            return (int)i - 1;
    return -1;
}

static bool is_access(const cg_cuda *c, ir_id id, ir_id var) {
    const ir_op *op = ir_at(c->f, id);
    return c->site[id].live && (op->code == IR_READ || op->code == IR_SET) && op->args[0] == var;
}

/* Dealt out when every access is to the thread's own element; whole in each thread when all threads make all writes. */
static bool choose_axis(cg_cuda *c, ir_id var) {
    cg_cu_site *s = &c->site[var];
    bool foreign = false, spread_write = false;
    s->axis = -1;
    for (ir_id id = 1; !s->private && id < c->f->n_ops; ++id) {
        if (!is_access(c, id, var))
            continue;
        int axis = own_axis(c, id);
        if (axis < 0 || (s->axis >= 0 && axis != s->axis))
            foreign = true;
        else
            s->axis = axis;
        spread_write |= ir_at(c->f, id)->code == IR_SET && c->site[id].spread_in;
    }
    if (!foreign)
        return true;
    s->axis = -1;
    if (!spread_write)
        return true;
    return cg_fail(
        c->err, "@%s: array var %%%u is used at an element that another lane wrote, so its schedule must be team = 1",
        c->f->name, (unsigned)var);
}

static bool fits_locally(const cg_cuda *c, ir_id var) {
    int64_t n = 1;
    for (uint32_t i = 0; i < ir_at(c->f, var)->type.rank; ++i) {
        int64_t d = cg_cu_extent(c, var, i);
        if (d < 0 || (d > 0 && n > CG_CU_LOCAL_ELEMENTS / d))
            return false;
        n *= d;
    }
    return true;
}

static bool place_arrays(cg_cuda *c) {
    for (ir_id id = 1; id < c->f->n_ops; ++id) {
        cg_cu_site *s = &c->site[id];
        if (!s->live || !is_array(ir_at(c->f, id)))
            continue;
        if (!choose_axis(c, id))
            return false;
        s->where = fits_locally(c, id) ? CG_CU_LOCAL : CG_CU_SCRATCH;
        if (s->where == CG_CU_SCRATCH)
            base_push(c->arena, c->scratch, c->n_scratch, c->cap_scratch, id);
    }
    return true;
}

/* ---- how loops are written --------------------------------------------------------------------------------------- */

static size_t count_ops(const cg_cuda *c, ir_id loop) {
    size_t n = 0;
    for (ir_id id = 1; id < c->f->n_ops; ++id)
        n += c->site[id].live && is_inside(c, id, loop);
    return n;
}

/* Is the first index of a lanes loop known to be a multiple of the team? */
static bool base_is_aligned(const cg_cuda *c, ir_id loop) {
    const ir_op *op = ir_at(c->f, loop);
    int64_t v;
    if (op->n_args < 2)
        return true;
    if (cg_cu_const(c, op->args[1], &v))
        return v % c->team == 0;
    const ir_op *base = ir_at(c->f, op->args[1]);
    ir_id tiles = c->site[op->args[1]].loop;
    return base->code == IR_ARG && ir_at(c->f, tiles)->code == IR_TILES && op->args[1] == cg_cu_loop_arg(c, tiles, 0) &&
           tile_width(c, tiles) % c->team == 0;
}

/* Which of k and l do the spread parts of a lanes loop use as the name of an element? */
static void element_names(const cg_cuda *c, ir_id loop, bool *by_k, bool *by_l) {
    ir_id k = cg_cu_loop_arg(c, loop, 0), l = cg_cu_loop_arg(c, loop, 1);
    *by_k = *by_l = false;
    for (ir_id id = 1; id < c->f->n_ops; ++id) {
        const ir_op *op = ir_at(c->f, id);
        if (!c->site[id].live || c->site[id].spread_in != loop)
            continue;
        ir_id index = 0;
        if (op->code == IR_ACCUM && !is_inside(c, op->args[0], loop))
            index = op->args[1];
        if ((op->code == IR_READ || op->code == IR_SET) && c->site[op->args[0]].axis >= 0)
            index = op->args[c->site[op->args[0]].axis + 1];
        *by_k |= index && index == k;
        *by_l |= index && index == l;
    }
}

/* The most steps the loop can take, -1 when only run time knows. */
static int64_t most_steps(const cg_cuda *c, ir_id loop) {
    const ir_op *op = ir_at(c->f, loop);
    int64_t n;
    if ((op->code != IR_LANES && op->code != IR_LOOP))
        return -1;
    if (cg_cu_const(c, op->args[0], &n))
        return n;
    ir_id tiles = c->site[op->args[0]].loop;
    bool width = tiles && ir_at(c->f, tiles)->code == IR_TILES && op->args[0] == cg_cu_loop_arg(c, tiles, 1);
    return width ? tile_width(c, tiles) : -1;
}

static bool indexes_local(const cg_cuda *c, ir_id loop) {
    ir_id a = cg_cu_loop_arg(c, loop, 0), b = cg_cu_loop_arg(c, loop, 1);
    for (ir_id id = 1; id < c->f->n_ops; ++id) {
        const ir_op *op = ir_at(c->f, id);
        if (!c->site[id].live || (op->code != IR_READ && op->code != IR_SET) || !is_inside(c, id, loop))
            continue;
        if (c->site[op->args[0]].where == CG_CU_LOCAL && has_index(op, 1, op->n_args - (op->code == IR_SET), a, b))
            return true;
    }
    return false;
}

static void plan_unrolling(cg_cuda *c, ir_id loop) {
    cg_cu_site *s = &c->site[loop];
    int64_t n = most_steps(c, loop);
    if (n < 0 || !indexes_local(c, loop))
        return;
    int64_t first = 0, base;
    if (s->by_k && ir_at(c->f, loop)->n_args > 1) {
        if (!cg_cu_const(c, ir_at(c->f, loop)->args[1], &base))
            return;
        first = base % c->team;
    }
    s->steps = s->spread ? (first + n + c->team - 1) / c->team : n;
    s->unrolled = s->steps <= CG_CU_UNROLL && (s->steps <= 4 || count_ops(c, loop) <= CG_CU_BODY);
}

/* Thread mode: a loop whose own lane picks the accumulator. */
static bool feeds_partials(const cg_cuda *c, ir_id loop) {
    const ir_op *op = ir_at(c->f, loop);
    if (op->code != IR_EDGES && op->code != IR_RANGE && op->code != IR_LANES)
        return false;
    ir_id lane = cg_cu_loop_arg(c, loop, op->code == IR_LANES ? 0 : op->code == IR_EDGES ? 2 : 1);
    for (ir_id id = 1; id < c->f->n_ops; ++id) {
        const ir_op *in = ir_at(c->f, id);
        if (c->site[id].live && in->code == IR_ACCUM && c->site[id].loop == loop && in->args[1] == lane && lane)
            return true;
    }
    return false;
}

static bool plan_loop(cg_cuda *c, ir_id id) {
    cg_cu_site *s = &c->site[id];
    const ir_op *op = ir_at(c->f, id);
    if (s->spread && op->code == IR_LANES) {
        bool by_k, by_l;
        element_names(c, id, &by_k, &by_l);
        bool aligned = base_is_aligned(c, id);
        if (by_k && by_l && !aligned)
            return cg_fail(c->err,
                           "@%s: lanes %%%u begins inside of a group of %d lanes, so its schedule must be team = 1",
                           c->f->name, (unsigned)id, c->team);
        s->by_k = by_k && !aligned;
    }
    plan_unrolling(c, id);
    bool aligned = op->code != IR_LANES || op->n_args < 2;
    s->sixteen = s->private && !s->unrolled && aligned && feeds_partials(c, id) && count_ops(c, id) <= CG_CU_BODY;
    return true;
}

static bool check_rows(const cg_cuda *c) {
    for (ir_id id = 1; id < c->f->n_ops; ++id)
        if (c->site[id].live && ir_at(c->f, id)->code == IR_ROWS &&
            (c->site[id].loop || ir_int(ir_at(c->f, id), IR_ATTR_STEP, 1) > 1 ||
             ir_int(ir_at(c->f, id), IR_ATTR_BLOCK, 0)))
            return cg_fail(c->err, "@%s: its rows are scheduled for a CPU", c->f->name);
    return true;
}

static bool check_results_not_read(const cg_cuda *c) {
    for (ir_id id = 1; id < c->f->n_ops; ++id) {
        const ir_op *op = ir_at(c->f, id);
        if (!c->site[id].live || op->code != IR_LOAD)
            continue;
        const ir_param *p = &c->f->params[ir_int(op, IR_ATTR_FIELD, 0)];
        if (p->role >= IR_OUT_ROW)
            return cg_fail(c->err, "@%s loads from its result '%s'", c->f->name, p->name);
    }
    return true;
}

bool cg_cu_plan(cg_cuda *c) {
    c->site = base_arena_new_array(c->arena, cg_cu_site, c->f->n_ops);
    place(c, &c->f->body, 0, 0);
    for (ir_id id = 1; id < c->f->n_ops; ++id)
        if (c->site[id].region && ir_at(c->f, id)->code == IR_STORE)
            mark(c, id);
    count_uses(c);
    if (!check_rows(c) || !check_results_not_read(c))
        return false;
    spread_region(c, &c->f->body, 0);
    if (!place_arrays(c))
        return false;
    for (ir_id id = 1; id < c->f->n_ops; ++id)
        if (c->site[id].live && ir_at(c->f, id)->region && !plan_loop(c, id))
            return false;
    return true;
}
