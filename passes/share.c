/* share: kernels that passes made and that are the same but for names become one.
 *
 * A program that does the same in fifty places -- layers, steps of a solver, calls of one program -- has one kernel for it, so
 * what is compiled grows with what is different.  Kernels of the user keep their names and stay.
 *
 * Two kernels are the same when their domains, symbols, roles, types and operations are; symbols are bound by name in the
 * program that calls, so their names count, and those of fields do not. */
#include "passes/pass_util.h"

#include <string.h>

typedef struct entry {
    const char *text;
    const ir_func *kernel;
    struct entry *next;
} entry;

enum { BUCKETS = 4096 };

typedef struct sharer {
    ir_module *m;
    base_arena *scratch;
    entry *buckets[BUCKETS];
    const char **use; /* by mark of a kernel: the name to call instead */
} sharer;

/* ---- a kernel as text -------------------------------------------------------------------------------------------- */
static void add_type(base_str *out, const ir_func *f, const ir_type *t) {
    base_str_addf(out, " %d", (int)t->space);
    ir_print_type(f, t, out);
}

static void add_attr(base_str *out, const ir_op *op, const ir_attr *a) {
    if (a->key == IR_ATTR_NAME)
        return;
    base_str_addf(out, " %d:%lld:%a:%s", (int)a->key, (long long)a->i, a->d, a->word ? a->word : "");
    if (a->key == IR_ATTR_VALUE)
        ir_print_scalar(op->type.dtype, a->v, out);
}

static void add_region(base_str *out, const ir_func *f, const ir_region *r, uint32_t *number, uint32_t *last) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(f, r->ops[i]);
        number[r->ops[i]] = ++*last;
        base_str_addf(out, "\n%d", (int)op->code);
        for (uint32_t k = 0; k < op->n_args; k++)
            base_str_addf(out, " %%%u", number[op->args[k]]);
        for (uint32_t k = 0; k < op->n_attrs; k++)
            add_attr(out, op, &op->attrs[k]);
        if (op->type.dtype != IR_NONE)
            add_type(out, f, &op->type);
        if (op->region) {
            base_str_add(out, "{");
            add_region(out, f, op->region, number, last);
            base_str_add(out, "}");
        }
    }
}

static const char *text_of(sharer *s, const ir_func *f) {
    base_str *out = base_arena_str(s->scratch);
    uint32_t last = 0;
    base_str_addf(out, "%s %d", f->domain, f->needs_square);
    for (size_t i = 0; i < f->n_syms; i++)
        base_str_addf(out, " %s", f->syms[i]);
    for (size_t i = 0; i < f->n_params; i++) {
        base_str_addf(out, "\np%d", (int)f->params[i].role);
        add_type(out, f, &f->params[i].type);
    }
    for (size_t i = 0; i < f->n_results; i++) {
        base_str_add(out, "\nr");
        add_type(out, f, &f->results[i].type);
    }
    add_region(out, f, &f->body, base_arena_new_array(s->scratch, uint32_t, f->n_ops), &last);
    return out->failed ? NULL : base_str_text(out);
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */
/* The kernel that is the same, or this one. */
static const ir_func *first_like(sharer *s, const ir_func *f) {
    const char *text = text_of(s, f);
    if (!text) /* out of memory: alone is always right */
        return f;
    base_hash128 h = base_hash_bytes(text, strlen(text));
    uint64_t at;
    memcpy(&at, &h, sizeof at);
    entry **bucket = &s->buckets[at % BUCKETS];
    for (const entry *e = *bucket; e; e = e->next)
        if (!strcmp(e->text, text))
            return e->kernel;
    entry *fresh = base_arena_new_array(s->scratch, entry, 1);
    *fresh = (entry){text, f, *bucket};
    *bucket = fresh;
    return f;
}

static void redirect(sharer *s, const ir_func *f, const ir_region *r) {
    for (size_t i = 0; i < r->n; i++) {
        ir_op *op = ir_at(f, r->ops[i]);
        const ir_func *callee =
            op->code == IR_CALL ? ir_func_find(s->m, ir_word(op, IR_ATTR_CALLEE), IR_LEVEL_KERNEL) : NULL;
        if (callee && s->use[callee->mark])
            ir_set_word(s->m, op, IR_ATTR_CALLEE, s->use[callee->mark]);
        if (op->region)
            redirect(s, f, op->region);
    }
}

/* What was told of a kernel that is gone is told of the one in its place. */
static const char *name_now(const sharer *s, const char *name) {
    const ir_func *k = ir_func_find(s->m, name, IR_LEVEL_KERNEL);
    return k && s->use[k->mark] ? s->use[k->mark] : name;
}

static void tell_again(const sharer *s, pass_context *ctx) {
    if (!ctx->notes)
        return;
    pass_notes old = *ctx->notes;
    *ctx->notes = (pass_notes){0};
    for (size_t i = 0; i < old.n; i++) {
        pass_note n = old.items[i];
        n.kernel = name_now(s, n.kernel);
        n.other = n.kind == PASS_NOTE_REFUSED || n.kind == PASS_NOTE_ONCE ? name_now(s, n.other) : n.other;
        pass_note_add(ctx, s->m, n); /* two that are one now are told once */
    }
}

bool pass_share(ir_module *m, pass_context *ctx, base_str *err) {
    (void)err;
    sharer *s = base_arena_new_array(ctx->scratch, sharer, 1);
    s->m = m;
    s->scratch = ctx->scratch;
    s->use = base_arena_new_array(ctx->scratch, const char *, m->n_funcs + 1);
    bool any = false;
    for (size_t i = 0; i < m->n_funcs; i++) {
        ir_func *f = m->funcs[i];
        f->mark = (uint32_t)i;
        const ir_func *first = f->level == IR_LEVEL_KERNEL && !f->exported ? first_like(s, f) : f;
        s->use[i] = first != f ? first->name : NULL;
        any |= first != f;
    }
    for (size_t i = 0; any && i < m->n_funcs; i++)
        if (m->funcs[i]->level == IR_LEVEL_PROGRAM)
            redirect(s, m->funcs[i], &m->funcs[i]->body);
    if (any)
        tell_again(s, ctx);
    for (size_t i = m->n_funcs; any && i-- > 0;)
        if (s->use[m->funcs[i]->mark])
            ir_func_remove(m, m->funcs[i]);
    return true;
}
