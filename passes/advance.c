/* advance: a call in a `repeat` of a program that nothing of a round goes into is made once, in front of it.
 *
 * Runs when calls have been fused: what is still a call of its own makes arrays, and arrays made in a loop are there from
 * before it until behind it.  So this takes no memory, also for arrays with a number per edge, which `invariants` leaves to the
 * walks that may compute them on the way.  Calls in arms of an `if` stay there: they may never run. */
#include "passes/pass_util.h"

#include <string.h>

typedef struct advance {
    ir_module *m;
    ir_func *f;
    pass_context *ctx;
    const ir_region **home; /* by id */
} advance;

static bool may_move(const advance *s, const ir_op *op, const ir_region *loop) {
    if (op->code != IR_CALL && op->code != IR_GET)
        return false;
    for (uint32_t i = 0; i < op->n_args; i++)
        if (s->home[op->args[i]] == loop)
            return false;
    return true;
}

/* It may have been told that `invariants` left it. */
static void note(const advance *s, const char *kernel) {
    pass_notes *notes = s->ctx->notes;
    size_t n = 0;
    for (size_t i = 0; notes && i < notes->n; i++) {
        const pass_note *x = &notes->items[i];
        if (x->kind != PASS_NOTE_EACH || strcmp(x->program, s->f->name) != 0 || strcmp(x->other, kernel) != 0)
            notes->items[n++] = *x;
    }
    if (notes)
        notes->n = n;
    pass_note_add(s->ctx, s->m, (pass_note){PASS_NOTE_ONCE, .program = s->f->name, .kernel = "", .other = kernel});
}

static void move(advance *s, ir_id id, ir_region *out) {
    const ir_op *op = ir_at(s->f, id);
    s->home[id] = out;
    ir_append(s->m, out, id);
    if (op->code == IR_CALL)
        note(s, ir_word(op, IR_ATTR_CALLEE));
}

/* Loops in loops first: what leaves one may leave the next. */
static ir_region advance_region(advance *s, const ir_region *r) {
    ir_region *out = ir_region_new(s->m);
    for (size_t i = 0; i < r->n; i++) {
        ir_op *op = ir_at(s->f, r->ops[i]);
        if (op->region)
            *op->region = advance_region(s, op->region);
        size_t kept = 0;
        for (size_t k = 0; op->code == IR_REPEAT && k < op->region->n; k++) {
            ir_id id = op->region->ops[k];
            s->home[id] = op->region;
            if (may_move(s, ir_at(s->f, id), op->region))
                move(s, id, out);
            else
                op->region->ops[kept++] = id;
        }
        if (op->code == IR_REPEAT)
            op->region->n = kept;
        ir_append(s->m, out, r->ops[i]);
    }
    return *out;
}

static bool advance_func(ir_module *m, ir_func *f, pass_context *ctx, base_str *err) {
    (void)err;
    advance s = {.m = m, .f = f, .ctx = ctx};
    s.home = base_arena_new_array(ctx->scratch, const ir_region *, f->n_ops);
    f->body = advance_region(&s, &f->body);
    return true;
}

bool pass_advance(ir_module *m, pass_context *ctx, base_str *err) {
    return pass_each_func(m, 1u << IR_LEVEL_PROGRAM, advance_func, ctx, err);
}
