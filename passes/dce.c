/* dce: keeps what a result depends on, drops the rest.
 *
 * Marks from the operations whose effect is seen outside (stores, returned values, the steps of a schedule) and
 * follows operands.  A live operation keeps the loops around it; a var or partials that is live keeps its writers, so
 * a var that only its own writers read goes with them.  A repeat that is live keeps what it yields; an if yields only
 * what is taken from it.  While the module is graph IR, kernels made by passes that nobody calls go as well. */
#include "passes/pass_util.h"

#include <string.h>

typedef struct dce {
    ir_func *f;
    base_arena *scratch;
    bool *live;
    ir_id *parent;  /* the LOOP operation around, 0 at the top */
    ir_id *writers; /* of a place: first writer */
    ir_id *next;    /* of a writer: the next one of the same place */
    bool **taken;   /* of an if: by member; NULL until one is */
    ir_id *stack;
    size_t n, cap;
} dce;

/* set and accum live through the place they write; yield, while and arm through what they stand in. */
static bool is_root(const ir_op *op) {
    return op->code == IR_POP || (ir_op_describe(op->code)->cls == IR_CLASS_EFFECT && op->code != IR_SET &&
                                  op->code != IR_ACCUM && op->code != IR_YIELD && op->code != IR_WHILE);
}

static void mark(dce *s, ir_id id) {
    if (!id || s->live[id])
        return;
    s->live[id] = true;
    base_push(s->scratch, s->stack, s->n, s->cap, id);
}

static void scan(dce *s, ir_region *r, ir_id parent) {
    for (size_t i = 0; i < r->n; i++) {
        ir_id id = r->ops[i];
        ir_op *op = ir_at(s->f, id);
        s->parent[id] = parent;
        if (op->code == IR_SET || op->code == IR_ACCUM) {
            s->next[id] = s->writers[op->args[0]];
            s->writers[op->args[0]] = id;
        }
        if (is_root(op))
            mark(s, id);
        if (op->region)
            scan(s, op->region, id);
    }
}

/* What a live loop needs to be well-formed: its arguments, its end, both arms. */
static void mark_frame(dce *s, const ir_region *r) {
    for (size_t i = 0; i < r->n; i++) {
        ir_opcode c = ir_at(s->f, r->ops[i])->code;
        if (c == IR_ARG || c == IR_YIELD || c == IR_WHILE || c == IR_ARM)
            mark(s, r->ops[i]);
    }
}

/* ---- if: only members that somebody takes are yielded ---- */
static bool ends_arm(const dce *s, ir_id id) {
    return ir_at(s->f, id)->code == IR_YIELD && ir_at(s->f, s->parent[id])->code == IR_ARM;
}

static bool takes_choice(const dce *s, const ir_op *op) {
    return op->code == IR_GET && ir_at(s->f, op->args[0])->code == IR_IF;
}

static void mark_member(dce *s, const ir_op *get) {
    const ir_op *choice = ir_at(s->f, get->args[0]);
    bool **taken = &s->taken[get->args[0]];
    if (!*taken)
        *taken = base_arena_new_array(s->scratch, bool, ir_yield_of(s->f, choice)->n_args + 1);
    size_t index = (size_t)ir_int(get, IR_ATTR_INDEX, 0);
    (*taken)[index] = true;
    for (size_t i = 0; i < choice->region->n; i++)
        mark(s, ir_yield_of(s->f, ir_at(s->f, choice->region->ops[i]))->args[index]);
}

static void drop_members(dce *s, ir_module *m, const ir_region *r) {
    for (size_t i = 0; i < r->n; i++) {
        ir_id id = r->ops[i];
        ir_op *op = ir_at(s->f, id);
        if (!s->live[id])
            continue;
        if (op->region)
            drop_members(s, m, op->region);
        if (takes_choice(s, op)) {
            int64_t to = 0;
            for (int64_t k = 0; k < ir_int(op, IR_ATTR_INDEX, 0); k++)
                to += s->taken[op->args[0]][k];
            ir_set_int(m, op, IR_ATTR_INDEX, to);
        } else if (ends_arm(s, id)) {
            const bool *taken = s->taken[s->parent[s->parent[id]]];
            uint32_t n = 0;
            for (uint32_t k = 0; k < op->n_args; k++)
                if (taken && taken[k])
                    op->args[n++] = op->args[k];
            op->n_args = n;
        }
    }
}

static void propagate(dce *s) {
    while (s->n) {
        ir_id id = s->stack[--s->n];
        ir_op *op = ir_at(s->f, id);
        mark(s, s->parent[id]);
        for (uint32_t i = 0; i < op->n_args && !ends_arm(s, id); i++)
            mark(s, op->args[i]);
        if (takes_choice(s, op))
            mark_member(s, op);
        for (ir_id w = s->writers[id]; w; w = s->next[w])
            mark(s, w);
        if (op->region)
            mark_frame(s, op->region);
    }
}

static bool dce_func(ir_module *m, ir_func *f, pass_context *ctx, base_str *err) {
    (void)err;
    base_arena *a = ctx->scratch;
    dce s = {.f = f,
             .scratch = a,
             .live = base_arena_new_array(a, bool, f->n_ops),
             .parent = base_arena_new_array(a, ir_id, f->n_ops),
             .writers = base_arena_new_array(a, ir_id, f->n_ops),
             .next = base_arena_new_array(a, ir_id, f->n_ops),
             .taken = base_arena_new_array(a, bool *, f->n_ops)};
    scan(&s, &f->body, 0);
    propagate(&s);
    drop_members(&s, m, &f->body);
    pass_sweep(f, &f->body, s.live);
    return true;
}

static void mark_called(const ir_module *m, const ir_func *f, const ir_region *r) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(f, r->ops[i]);
        ir_func *callee = op->code == IR_CALL ? ir_func_find(m, ir_word(op, IR_ATTR_CALLEE), IR_LEVEL_KERNEL) : NULL;
        if (callee)
            callee->mark = 1;
        if (op->region)
            mark_called(m, f, op->region);
    }
}

/* Kernels made by passes that no program calls. */
static void drop_kernels(ir_module *m) {
    for (size_t i = 0; i < m->n_funcs; i++)
        m->funcs[i]->mark = 0;
    for (size_t i = 0; i < m->n_funcs; i++)
        if (m->funcs[i]->level == IR_LEVEL_PROGRAM)
            mark_called(m, m->funcs[i], &m->funcs[i]->body);
    for (size_t i = m->n_funcs; i-- > 0;) {
        const ir_func *f = m->funcs[i];
        if (f->level == IR_LEVEL_KERNEL && !f->exported && !f->mark)
            ir_func_remove(m, f);
    }
}

bool pass_dce(ir_module *m, pass_context *ctx, base_str *err) {
    if (!pass_each_func(m, PASS_ALL_LEVELS, dce_func, ctx, err))
        return false;
    if (!pass_has_level(m, IR_LEVEL_LOOP))
        drop_kernels(m);
    return true;
}
