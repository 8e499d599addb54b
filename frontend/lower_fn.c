/* Functions of the user: inlined at each use, generic in the dtype T and in shape and space. */
#include "frontend/fe.h"

#include <string.h>

#define MAX_NOTES 4 /* calls inside calls that are shown with an error */

static bool is_generic(const fe_type *t) { return strcmp(t->dtype->text, "T") == 0; }

/* "x y z", for fe_match_args */
static const char *param_list(fe_lower *l, const fe_decl *fn) {
    size_t n = 1;
    for (size_t i = 0; i < fn->n_params; i++)
        n += strlen(fn->params[i].name->text) + 1;
    char *list = base_arena_alloc(l->c->arena, n), *at = list;
    for (size_t i = 0; i < fn->n_params; i++) {
        size_t length = strlen(fn->params[i].name->text);
        memcpy(at, fn->params[i].name->text, length);
        at[length] = ' ';
        at += length + 1;
    }
    return list;
}

/* The arguments of type T, to one dtype. */
static bool generic_args(fe_lower *l, const fe_decl *fn, const fe_expr **slots, ir_dtype want, ir_id *out) {
    const fe_expr **some = base_arena_new_array(l->c->arena, const fe_expr *, fn->n_params + 1);
    ir_id *ids = base_arena_new_array(l->c->arena, ir_id, fn->n_params + 1);
    size_t n = 0;
    for (size_t i = 0; i < fn->n_params; i++)
        if (is_generic(&fn->params[i].type))
            some[n++] = slots[i];
    bool to_t = is_generic(&fn->results[0].type);
    if (!fe_lower_unify(l, some, n, to_t ? want : IR_NONE, ids))
        return false;
    n = 0;
    for (size_t i = 0; i < fn->n_params; i++)
        if (is_generic(&fn->params[i].type))
            out[i] = ids[n++];
    return true;
}

static bool fixed_arg(fe_lower *l, const fe_param *p, const fe_expr *e, ir_id *out) {
    ir_dtype t;
    if (!fe_dtype_of(l, &p->type, &t))
        return false;
    *out = fe_settle(l, e->span, t, fe_lower_value(l, e, t));
    if (!*out)
        return false;
    ir_dtype have = fe_type_at(l, *out)->dtype;
    if (have == t)
        return true;
    fe_label(l->c,
             fe_report(l->c, FE_E0203, e->span, "parameter '%s' is %s, this is %s", p->name->text, ir_dtype_text(t),
                       ir_dtype_text(have)),
             "cast it: %s(...)", ir_dtype_text(t));
    return false;
}

/* The body with the parameters bound to values, in a frame of its own. */
static ir_id body(fe_lower *l, fe_decl *fn, const ir_id *args, ir_dtype generic) {
    uint32_t frame = l->frame;
    bool in_fn = l->in_fn;
    size_t mark = l->n_binds;
    l->frame = ++l->n_frames;
    l->in_fn = true;
    fn->open = true;
    for (size_t i = 0; i < fn->n_params; i++)
        fe_bind(l, FE_BIND_VALUE, fn->params[i].name, fn->params[i].span, "(parameter")->id = args[i];
    ir_dtype t = generic;
    bool known = is_generic(&fn->results[0].type) || fe_dtype_of(l, &fn->results[0].type, &t);
    ir_id id = known ? fe_settle(l, fn->value->span, t, fe_lower_value(l, fn->value, t)) : 0;
    for (size_t i = mark; i < l->n_binds; i++)
        if (l->binds[i]->used)
            fn->params_used |= (uint64_t)1 << ((i - mark) & 63);
    fn->open = false;
    fe_close_block(l, mark);
    l->frame = frame;
    l->in_fn = in_fn;
    if (id && fe_type_at(l, id)->dtype != t) {
        const char *have = ir_dtype_text(fe_type_at(l, id)->dtype);
        fe_label(l->c,
                 fe_report(l->c, FE_E0203, fn->value->span, "function '%s' returns %s, its body is %s", fn->name->text,
                           ir_dtype_text(t), have),
                 "is %s", have);
        return 0;
    }
    return id;
}

ir_id fe_lower_inline(fe_lower *l, const fe_expr *e, fe_decl *fn, ir_dtype want) {
    fe_context *c = l->c;
    const fe_expr **slots = base_arena_new_array(c->arena, const fe_expr *, fn->n_params + e->n_args + 1);
    ir_id *args = base_arena_new_array(c->arena, ir_id, fn->n_params + 1);
    if (fn->bad)
        return 0;
    if (fn->open) {
        fe_report(c, FE_E0217, e->name_span, "function '%s' calls itself", fn->name->text);
        return 0;
    }
    if (!fe_match_args(l, e, param_list(l, fn), slots))
        return 0;
    bool ok = generic_args(l, fn, slots, want, args);
    ir_dtype t = IR_NONE;
    for (size_t i = 0; i < fn->n_params; i++) {
        if (!is_generic(&fn->params[i].type))
            ok &= fixed_arg(l, &fn->params[i], slots[i], &args[i]);
        else if (ok && t == IR_NONE)
            t = fe_type_at(l, args[i])->dtype;
    }
    if (!ok)
        return 0;
    size_t before = c->diags->n;
    ir_id id = body(l, fn, args, t);
    for (size_t i = before; i < c->diags->n; i++)
        if (c->diags->items[i]->n_notes < MAX_NOTES)
            fe_note_at(c, c->diags->items[i], e->span, "in this call of '%s'", fn->name->text);
    return id;
}

/* ---- the check of a definition on its own ------------------------------------------------------------------------ */
static bool check_head(fe_lower *l, fe_decl *fn) {
    bool generic = false, ok = true;
    ir_dtype t;
    for (size_t i = 0; i < fn->n_params; i++) {
        fe_param *p = &fn->params[i];
        for (size_t k = 0; k < i; k++)
            if (fn->params[k].name == p->name) {
                fe_note_at(l->c, fe_report(l->c, FE_E0205, p->span, "'%s' is defined twice", p->name->text),
                           fn->params[k].span, "the first is here");
                ok = false;
            }
        if (p->type.n) {
            fe_label(l->c, fe_report(l->c, FE_E0206, p->type.span, "a parameter of a function has no dimensions"),
                     "a function takes any shape: write %s", p->type.dtype->text);
            ok = false;
        }
        if (is_generic(&p->type))
            generic = true;
        else
            ok &= fe_dtype_of(l, &p->type, &t);
    }
    const fe_type *r = &fn->results[0].type;
    if (fn->n_results != 1 || fn->results[0].name || fn->results[0].edge || r->n) {
        fe_label(l->c, fe_report(l->c, FE_E0206, r->span, "a function returns one value of a type without dimensions"),
                 "its shape comes from its arguments");
        return false;
    }
    if (!is_generic(r))
        return fe_dtype_of(l, r, &t) && ok;
    if (!generic) {
        fe_label(l->c, fe_report(l->c, FE_E0213, r->span, "T is not the type of any parameter"),
                 "write f32, or give a parameter the type T");
        return false;
    }
    return ok;
}

/* Arguments of a type that the user may have had in mind; rank 1, 0 or 2. */
static bool attempt(fe_context *c, fe_decl *fn, ir_dtype generic, uint32_t rank) {
    ir_module *scratch = ir_module_new(c->arena, "", NULL);
    fe_lower l = {.c = c, .n_frames = 0, .body = ++c->n_bodies};
    l.b = (ir_builder){.m = scratch, .f = ir_func_new(scratch, fn->name->text, IR_LEVEL_KERNEL)};
    l.b.r = &l.b.f->body;
    l.decl = fn;
    ir_type type = {.space = IR_ROW, .rank = rank};
    for (uint32_t i = 0; i < rank; i++)
        type.dim[i] = ir_dim_sym(ir_sym(scratch, l.b.f, i ? "B" : "A"));
    ir_id *args = base_arena_new_array(c->arena, ir_id, fn->n_params + 1);
    for (size_t i = 0; i < fn->n_params; i++) {
        type.dtype = generic;
        if (!is_generic(&fn->params[i].type))
            fe_dtype_of(&l, &fn->params[i].type, &type.dtype);
        args[i] = fe_put(&l, fn->params[i].span, IR_FIELD, type, NULL, 0);
    }
    ir_module *kept = c->module;
    c->module = scratch;
    fn->params_used = 0;
    ir_id id = body(&l, fn, args, generic);
    c->module = kept;
    return id != 0 && c->diags->n_errors == 0;
}

static void warn_params(fe_context *c, const fe_decl *fn) {
    for (size_t i = 0; i < fn->n_params && i < 64; i++)
        if (!(fn->params_used >> i & 1) && fn->params[i].name->text[0] != '_')
            fe_label(
                c, fe_report(c, FE_W0001, fn->params[i].span, "parameter '%s' is never used", fn->params[i].name->text),
                "a name that begins with '_' may stay unused");
}

void fe_check_fn(fe_context *c, fe_decl *fn) {
    fe_lower head = {.c = c, .decl = fn};
    if (fn->bad || !check_head(&head, fn)) {
        fn->bad = true;
        return;
    }
    static const ir_dtype DTYPES[] = {IR_F32, IR_I64, IR_BOOL, IR_F64, IR_I32};
    static const uint32_t RANKS[] = {1, 0, 2};
    base_diags *real = c->diags, first = {0};
    bool good = false;
    for (int k = 0; k < 15 && !good; k++) {
        base_diags tried;
        base_diags_init(&tried, c->arena, real->file_name, real->source);
        c->diags = &tried;
        good = attempt(c, fn, DTYPES[k % 5], RANKS[k / 5]);
        if (k == 0)
            first = tried;
    }
    c->diags = real;
    if (good) {
        if (!real->n_errors)
            warn_params(c, fn);
        return;
    }
    fn->bad = true;
    for (size_t i = 0; i < first.n; i++) {
        base_push(c->arena, real->items, real->n, real->cap, first.items[i]);
        real->n_errors += first.items[i]->severity == BASE_ERROR;
    }
    if (!first.n_errors && !real->n_errors) /* everything was silent */
        fe_report(c, FE_E0217, fn->span, "function '%s' calls a broken function", fn->name->text);
}
