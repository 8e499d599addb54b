/* schedule_cuda: threads per row and widths of tiles.  Changes no bit of a result.
 *
 * A team of 16 threads deals out the lanes of loops over features; every array is then cut the same way, so each
 * element of an array must be touched only by the lane that it belongs to, or by all threads alike.  Where a function
 * breaks that, one thread computes a row. */
#include "passes/pass_util.h"

#define TEAM 16
#define TILE 64
#define LOCAL_ELEMENTS 4096 /* larger arrays, and open ones, are in memory that the threads of a team share */

typedef struct use {
    bool lanes;      /* some access at the lane's own element */
    bool alike;      /* some access by all threads alike, or at another element */
    bool lane_write; /* some write in a loop that is dealt out */
    bool mixed;      /* lanes along different axes */
    uint32_t axis;
} use;

typedef struct survey {
    const ir_func *f;
    use *uses; /* by id of var */
} survey;

static bool is_dealt_out(const ir_op *loop) {
    return loop->code == IR_LANES || (loop->code != IR_LOOP && ir_int(loop, IR_ATTR_LANES, 1) > 1);
}

static bool is_lane(const ir_func *f, const ir_op *lanes, ir_id index) {
    const ir_op *arg = ir_at(f, index);
    if (arg->code != IR_ARG)
        return false;
    for (size_t i = 0; i < lanes->region->n; i++)
        if (lanes->region->ops[i] == index)
            return true;
    return false;
}

static void note_access(survey *s, const ir_op *op, const ir_op *dealt) {
    use *u = &s->uses[op->args[0]];
    uint32_t end = op->code == IR_SET ? op->n_args - 1 : op->n_args, own = 0;
    for (uint32_t i = 1; dealt && dealt->code == IR_LANES && i < end; i++)
        if (is_lane(s->f, dealt, op->args[i]))
            own = i; /* the last one decides, as the emitter does */
    if (op->code == IR_SET && dealt)
        u->lane_write = true;
    if (own == 0) {
        u->alike = true;
        return;
    }
    u->mixed |= u->lanes && u->axis != own;
    u->lanes = true;
    u->axis = own;
}

static void look(survey *s, const ir_region *r, const ir_op *dealt) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(s->f, r->ops[i]);
        if ((op->code == IR_READ || op->code == IR_SET) && ir_at(s->f, op->args[0])->type.rank)
            note_access(s, op, dealt);
        if (op->region)
            look(s, op->region, dealt ? dealt : is_dealt_out(op) ? op : NULL);
    }
}

static bool is_shared(const ir_op *var) {
    int64_t n = 1;
    for (uint32_t i = 0; i < var->type.rank; i++) {
        ir_dim d = var->type.dim[i];
        if (d == IR_DIM_TILE)
            continue;
        if (d < 0 || (d > 0 && n > LOCAL_ELEMENTS / d))
            return true;
        n *= d;
    }
    return false;
}

static bool fits_team(const ir_func *f, const use *uses) {
    for (ir_id id = 1; id < f->n_ops; id++) {
        const use *u = &uses[id];
        if (u->mixed || (u->alike && (u->lanes || u->lane_write)))
            return false;
        if (u->alike && is_shared(ir_at(f, id)))
            return false; /* all threads would write one place, each before another has read it */
    }
    return true;
}

/* A team pays when there are lanes or accumulators to deal out. */
static bool has_lanes(const ir_func *f, const ir_region *r) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(f, r->ops[i]);
        if (op->code == IR_ACCUM || (op->region && (is_dealt_out(op) || has_lanes(f, op->region))))
            return true;
    }
    return false;
}

static void set_width(void *ctx, ir_func *f, ir_region *r, ir_id id) {
    (void)r;
    if (ir_at(f, id)->code == IR_TILES)
        ir_set_int(ctx, ir_at(f, id), IR_ATTR_WIDTH, TILE);
}

static bool schedule_func(ir_module *m, ir_func *f, pass_context *ctx, base_str *err) {
    (void)err;
    survey s = {.f = f, .uses = base_arena_new_array(ctx->scratch, use, f->n_ops)};
    look(&s, &f->body, NULL);
    f->team = has_lanes(f, &f->body) && fits_team(f, s.uses) ? TEAM : 1;
    ir_walk(f, set_width, m);
    return true;
}

bool pass_schedule_cuda(ir_module *m, pass_context *ctx, base_str *err) {
    return pass_each_func(m, 1u << IR_LEVEL_LOOP, schedule_func, ctx, err);
}
