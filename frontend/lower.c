/* Kernels and programs: heads, statements, return; and the whole file.
 *
 * Heads of all kernels come first, so that programs may call kernels written below them.  A program in which the two
 * ends of a graph turn out to be one dimension is lowered again with that known from the start. */
#include "frontend/fe.h"

#include <string.h>

/* ---- heads ------------------------------------------------------------------------------------------------------- */
static ir_role role_of(fe_tok_kind k) {
    switch ((int)k) {
    case FE_TOK_SRC:
        return IR_SRC;
    case FE_TOK_DST:
        return IR_DST;
    case FE_TOK_NODE:
        return IR_NODE;
    case FE_TOK_EDGE:
        return IR_EDGE_FIELD;
    default:
        return IR_PARAM_FIELD;
    }
}

static void add_param(fe_lower *l, const fe_param *p, ir_role role, ir_type type) {
    ir_func *f = l->b.f;
    ir_param q = {.name = p->name->text, .role = role, .type = type, .span = p->span};
    base_push(l->c->arena, f->params, f->n_params, f->cap_params, q);
}

static bool add_results(fe_lower *l, const fe_decl *d) {
    ir_func *f = l->b.f;
    bool ok = true;
    for (size_t i = 0; i < d->n_results; i++) {
        const fe_result *r = &d->results[i];
        ir_param q = {.name = r->name ? r->name->text : "out", .role = IR_OUT_ROW, .span = r->span};
        ok &= fe_type_of(l, &r->type, &q.type);
        if (d->kind == FE_TOK_KERNEL)
            q.type.space = r->edge ? IR_EDGE : IR_ROW;
        else if (r->edge) {
            fe_label(l->c, fe_report(l->c, FE_E0222, r->span, "only a kernel has edge results"),
                     "write the shape: f32[g.edge]");
            ok = false;
        }
        q.role = r->edge ? IR_OUT_EDGE : IR_OUT_ROW;
        for (size_t k = 0; k < i; k++)
            if (strcmp(f->results[k].name, q.name) == 0) {
                fe_note_at(l->c, fe_report(l->c, FE_E0205, r->span, "result '%s' is defined twice", q.name),
                           f->results[k].span, "the first is here");
                ok = false;
            }
        base_push(l->c->arena, f->results, f->n_results, f->cap_results, q);
    }
    return ok;
}

static ir_func *new_func(fe_context *c, const fe_decl *d) {
    ir_func *f = ir_func_new(c->module, d->name->text, d->kind == FE_TOK_KERNEL ? IR_LEVEL_KERNEL : IR_LEVEL_PROGRAM);
    f->signature = d->signature;
    f->exported = true;
    f->span = d->span;
    return f;
}

/* Does a dimension stand anywhere but in the list of its declaration? */
static bool is_mentioned(const fe_lower *l, const fe_symbol *s) {
    const fe_decl *d = l->decl;
    bool found = d->end_token == 0 || d->n_syms > 64; /* made by an export; too many to look for each */
    for (size_t i = d->first_token; i < d->end_token && !found; i++)
        found = l->c->tokens[i].name == s->name && l->c->tokens[i].span.begin != s->span.begin;
    for (size_t i = 0; i < l->c->n_defines && !found; i++)
        found = strcmp(l->c->defines[i].name, s->name->text) == 0;
    return found;
}

/* One that nothing mentions gets a warning later and is no argument of what is called. */
static void bind_symbols(fe_lower *l) {
    for (size_t i = 0; i < l->decl->n_syms; i++) {
        const fe_symbol *s = &l->decl->syms[i];
        if (is_mentioned(l, s))
            fe_bind_dim(l, s->name, s->span);
        else
            fe_bind(l, FE_BIND_DIM, s->name, s->span, "dimension")->dim = 1;
    }
}

static bool sum_has(const char *sum, const char *name) {
    base_size_term t;
    while (*sum && base_size_next(&sum, &t))
        for (uint32_t i = 0; i < t.n_names; i++)
            if (strlen(name) == t.length[i] && memcmp(name, t.name[i], t.length[i]) == 0)
                return true;
    return false;
}

static bool types_show(const ir_func *f, const ir_param *p, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < p[i].type.rank; k++)
            if (ir_dim_is_sym(p[i].type.dim[k]) && sum_has(f->syms[ir_dim_sym_index(p[i].type.dim[k])], name))
                return true;
    return false;
}

/* The size of an open dimension comes from an array that has it as an axis. */
static void check_shown(fe_lower *l, const fe_decl *d) {
    const ir_func *f = l->b.f;
    for (size_t i = 0; i < d->n_syms && i < 64; i++) {
        const char *name = d->syms[i].name->text;
        uint32_t sym;
        if (!ir_sym_find(f, name, &sym) || types_show(f, f->params, f->n_params, name) ||
            types_show(f, f->results, f->n_results, name))
            continue;
        base_diag *e = fe_report(l->c, FE_E0228, d->syms[i].span, "nothing shows the size of '%s'", name);
        fe_label(l->c, e, "no %s and no result has this axis; give the size as a param, or fix it with -D %s=8",
                 d->kind == FE_TOK_KERNEL ? "field" : "parameter", name);
    }
}

static void bind_fields(fe_lower *l, fe_decl *d) {
    for (size_t i = 0; i < d->n_params; i++) {
        fe_binding *b = fe_bind(l, FE_BIND_FIELD, d->params[i].name, d->params[i].span, "parameter");
        b->index = (uint32_t)i;
        b->role = d->params[i].role;
    }
}

static fe_lower start(fe_context *c, fe_decl *d, ir_func *f) {
    fe_lower l = {.c = c, .decl = d, .program = d->kind == FE_TOK_PROGRAM, .body = ++c->n_bodies};
    l.b = (ir_builder){.m = c->module, .f = f, .r = &f->body};
    return l;
}

/* Types of fields and results.  The names are bound again when the body is lowered. */
static void kernel_head(fe_context *c, fe_decl *d) {
    size_t before = c->diags->n_errors;
    d->func = new_func(c, d);
    fe_lower l = start(c, d, d->func);
    bind_symbols(&l);
    for (size_t i = 0; i < d->n_params; i++) {
        ir_type type;
        if (!fe_type_of(&l, &d->params[i].type, &type))
            d->bad = true;
        add_param(&l, &d->params[i], role_of(d->params[i].role), type);
        if (d->params[i].role == FE_TOK_NODE)
            d->func->needs_square = true;
    }
    if (!add_results(&l, d) || c->diags->n_errors > before)
        d->bad = true;
    else
        check_shown(&l, d);
    d->bad |= c->diags->n_errors > before;
    for (size_t i = 0; i < l.n_binds; i++) { /* unused ones are found out with the body */
        d->syms_used |= l.binds[i]->used && i < 64 ? (uint64_t)1 << i : 0;
        l.binds[i]->what = "(dimension";
    }
    fe_close_block(&l, 0);
}

/* ---- return ------------------------------------------------------------------------------------------------------ */
static bool names_edge(const fe_expr *e) { return e->kind == FE_EXPR_NAME; }

/* The field that makes a value an edge value: down the first operand that is one. */
static ir_id edge_origin(fe_lower *l, ir_id id) {
    for (;;) {
        const ir_op *op = ir_at(l->b.f, id);
        if (op->code == IR_FIELD)
            return id;
        ir_id next = 0;
        for (uint32_t i = 0; i < op->n_args && !next; i++)
            if (fe_type_at(l, op->args[i])->space == IR_EDGE)
                next = op->args[i];
        if (!next)
            return 0;
        id = next;
    }
}

static void edge_in_row(fe_lower *l, const fe_expr *e, ir_id id, const ir_param *r) {
    fe_context *c = l->c;
    const char *what = names_edge(e) ? base_arena_printf(c->arena, "'%s'", e->name->text) : "this";
    base_diag *d =
        fe_report(c, FE_E0207, e->span, "%s is a value per edge; a row kernel returns one value per destination", what);
    if (e->kind == FE_EXPR_CALL && fe_reducer_find(e->name->text))
        fe_label(c, d, "%s folds the features of one edge; over the edges of a row: reduce %s(...)", e->name->text,
                 e->name->text);
    else
        fe_label(c, d, "reduce it, or declare the result '-> edge %s'", fe_type_text(l, &r->type));
    ir_id origin = edge_origin(l, id);
    if (!origin)
        return;
    const ir_op *field = ir_at(l->b.f, origin);
    fe_note_at(c, d, field->span, "%s depends on %s.%s", what, ir_word(field, IR_ATTR_AT),
               l->b.f->params[ir_int(field, IR_ATTR_FIELD, 0)].name);
}

static ir_id one_result(fe_lower *l, const fe_expr *e, const ir_param *r) {
    ir_id id = fe_settle(l, e->span, r->type.dtype, fe_lower_value(l, e, r->type.dtype));
    if (!id || l->decl->bad)
        return 0;
    const ir_type *have = fe_type_at(l, id);
    if (have->dtype != r->type.dtype) {
        base_diag *d = fe_report(l->c, FE_E0203, e->span, "result '%s' is %s, this is %s", r->name,
                                 ir_dtype_text(r->type.dtype), ir_dtype_text(have->dtype));
        fe_label(l->c, d, "cast it: %s(...)", ir_dtype_text(r->type.dtype));
        return 0;
    }
    if (have->space > r->type.space) {
        edge_in_row(l, e, id, r);
        return 0;
    }
    return fe_widen_to(l, e->span, id, &r->type, base_arena_printf(l->c->arena, "result '%s'", r->name));
}

static const fe_expr *returned(fe_lower *l, const fe_stmt *s, const ir_param *r, bool complain) {
    for (size_t i = 0; i < s->n_returns; i++)
        if (strcmp(s->returns[i].name->text, r->name) == 0)
            return s->returns[i].value;
    if (complain)
        fe_report(l->c, FE_E0215, s->span, "return gives no value for the result '%s'", r->name);
    return NULL;
}

static bool check_names(fe_lower *l, const fe_stmt *s) {
    const fe_target *t = &l->target;
    bool ok = true;
    for (size_t i = 0; i < s->n_returns; i++) {
        fe_nearest near = {.wanted = s->returns[i].name->text};
        bool known = false, twice = false;
        for (size_t k = 0; k < t->n; k++) {
            known |= strcmp(t->results[k].name, s->returns[i].name->text) == 0;
            fe_nearest_try(&near, t->results[k].name);
        }
        for (size_t k = 0; k < i; k++)
            twice |= s->returns[k].name == s->returns[i].name;
        if (known && !twice)
            continue;
        ok = false;
        base_diag *d =
            fe_report(l->c, FE_E0215, s->returns[i].name_span,
                      twice ? "result '%s' is given twice" : "there is no result '%s'", s->returns[i].name->text);
        if (!known && fe_nearest_get(&near))
            fe_label(l->c, d, "did you mean '%s'?", fe_nearest_get(&near));
    }
    return ok;
}

static void lower_return(fe_lower *l, const fe_stmt *s) {
    const fe_target *t = &l->target;
    bool named = l->decl->n_results && l->decl->results[0].name;
    ir_id *ids = t->values ? t->values : base_arena_new_array(l->c->arena, ir_id, t->n + 1);
    if (named && !s->n_returns && t->n > 1) {
        base_diag *d = fe_report(l->c, FE_E0215, s->value->span, "'%s' has %zu results", l->decl->name->text, t->n);
        fe_label(l->c, d, "write return (%s = ..., %s = ...)", t->results[0].name, t->results[1].name);
        return;
    }
    bool ok = check_names(l, s), all = ok;
    for (size_t i = 0; i < t->n; i++) {
        const fe_expr *e = s->n_returns ? returned(l, s, &t->results[i], all) : s->value;
        ids[i] = e ? one_result(l, e, &t->results[i]) : 0;
        ok &= ids[i] != 0;
    }
    if (ok && !t->values)
        fe_put(l, s->span, IR_RET, (ir_type){.dtype = IR_NONE}, ids, t->n);
}

/* ---- statements -------------------------------------------------------------------------------------------------- */
/* let (a, b) = f(...): the results in their order. */
static void bind_names(fe_lower *l, const fe_stmt *s, ir_id id) {
    bool tuple = id && fe_type_at(l, id)->dtype == IR_TUPLE;
    size_t n = tuple ? fe_n_members(l, id) : 1;
    if (id && n != s->n_names) {
        base_diag *d = fe_report(l->c, FE_E0315, s->name_span, "%zu name%s for %zu result%s", s->n_names,
                                 s->n_names == 1 ? "" : "s", n, n == 1 ? "" : "s");
        if (!tuple)
            fe_label(l->c, d, "this is one value");
        id = 0;
    }
    for (size_t i = 0; i < s->n_names; i++)
        if (strcmp(s->names[i].name->text, "_") != 0) /* not wanted */
            fe_bind(l, FE_BIND_VALUE, s->names[i].name, s->names[i].span, "value")->id =
                tuple && id ? fe_call_result(l, id, i) : id;
}

static void lower_let(fe_lower *l, const fe_stmt *s) {
    bool var = s->kind == FE_STMT_VAR;
    if (var && !l->program)
        fe_label(l->c, fe_report(l->c, FE_E0222, s->span, "a kernel has no variables"), "write let");
    ir_id id = var ? fe_lower_value(l, s->value, IR_NONE) : fe_lower_expr(l, s->value, IR_NONE);
    if (s->n_names) {
        bind_names(l, s, id);
        return;
    }
    fe_binding *b = fe_bind(l, var ? FE_BIND_VAR : FE_BIND_VALUE, s->name, s->name_span, var ? "variable" : "value");
    const fe_expr *v = s->value;
    bool filled = v->kind == FE_EXPR_CALL && v->n_args && strcmp(v->name->text, "fill") == 0;
    b->id = id;
    b->lit = filled ? v->args[0].value->lit : v->lit;
}

static void not_assignable(fe_lower *l, const fe_stmt *s, const fe_binding *b) {
    fe_nearest near = {.wanted = s->name->text};
    base_diag *d;
    if (b) {
        d = fe_report(l->c, FE_E0305, s->name_span, "'%s' cannot be assigned", s->name->text);
        const char *what = b->what[0] == '(' ? b->what + 1 : b->what;
        if (!l->program)
            fe_label(l->c, d, "a kernel has no variables; give the new value a name of its own with let");
        else if (b->kind == FE_BIND_VALUE && strcmp(what, "value") == 0)
            fe_label(l->c, d, "only a var can; write var where it is made");
        else
            fe_label(l->c, d, "only a var can; make one before this: var y = %s", s->name->text);
        fe_note_at(l->c, d, b->span, "it is a %s", what);
        return;
    }
    for (size_t i = 0; i < l->n_binds; i++)
        if (l->binds[i]->kind == FE_BIND_VAR)
            fe_nearest_try(&near, l->binds[i]->name->text);
    d = fe_report(l->c, FE_E0305, s->name_span, "there is no variable '%s'", s->name->text);
    if (fe_nearest_get(&near))
        fe_label(l->c, d, "did you mean '%s'?", fe_nearest_get(&near));
    else
        fe_label(l->c, d, "write %s %s = ...", l->program ? "var" : "let", s->name->text);
}

static void lower_assign(fe_lower *l, const fe_stmt *s) {
    fe_binding *b = s->name->local && s->name->local->frame == l->frame ? s->name->local : NULL;
    if (!b || b->kind != FE_BIND_VAR) {
        not_assignable(l, s, b);
        fe_lower_value(l, s->value, IR_NONE); /* its own errors */
        return;
    }
    ir_id old = b->id;
    ir_dtype place = old ? fe_type_at(l, old)->dtype : IR_NONE;
    ir_id id = fe_settle(l, s->value->span, place, fe_lower_value(l, s->value, place));
    if (!old || !id) {
        b->id = 0;
        return;
    }
    const ir_type *was = fe_type_at(l, old), *is = fe_type_at(l, id);
    bool same = was->dtype == is->dtype && fe_fits(l, is, was);
    if (same) {
        b->id = fe_widen(l, s->value->span, id, was);
        return;
    }
    if (l->restart)
        return;
    base_diag *d = fe_report(l->c, FE_E0306, s->value->span, "variable '%s' is %s, this is %s", s->name->text,
                             fe_type_text(l, was), fe_type_text(l, is));
    if (was->dtype == is->dtype)
        fe_label(l->c, d, "give it this shape at the start, with fill");
    else if (b->lit == FE_LIT_INT && is->dtype == IR_F32)
        fe_label(l->c, d, "it begins as a whole number; let it begin with a point, 0.0");
    else
        fe_label(l->c, d, "cast it, %s(...), or let '%s' start as %s(...)", ir_dtype_text(was->dtype), s->name->text,
                 ir_dtype_text(is->dtype));
    fe_note_at(l->c, d, b->span, "'%s' was made here", s->name->text);
    b->id = 0; /* said once */
}

static void lower_stmt(fe_lower *l, const fe_stmt *s, bool top) {
    switch (s->kind) {
    case FE_STMT_LET:
    case FE_STMT_VAR:
        lower_let(l, s);
        return;
    case FE_STMT_ASSIGN:
        lower_assign(l, s);
        return;
    case FE_STMT_REPEAT:
    case FE_STMT_WHILE:
        fe_lower_loop(l, s);
        return;
    case FE_STMT_IF:
        fe_lower_if(l, s);
        return;
    case FE_STMT_RETURN:
        if (top)
            lower_return(l, s);
        else if (!l->returned)
            fe_label(l->c, fe_report(l->c, FE_E0107, s->span, "return inside a block"),
                     "a body returns once, at its end; let the blocks assign a var and return that");
        l->returned = true;
        return;
    }
}

static bool has_return(const fe_block *b) {
    bool any = false;
    for (size_t i = 0; i < b->n && !any; i++)
        any = b->items[i]->kind == FE_STMT_RETURN || has_return(&b->items[i]->body) || has_return(&b->items[i]->other);
    return any;
}

static void lower_block(fe_lower *l, const fe_block *b, bool top) {
    bool done = false;
    for (size_t i = 0; i < b->n; i++) {
        if (done) {
            fe_label(l->c, fe_report(l->c, FE_E0107, b->items[i]->span, "a statement after return"),
                     "it would never run");
            return;
        }
        lower_stmt(l, b->items[i], top);
        done = top && b->items[i]->kind == FE_STMT_RETURN;
    }
    if (top && !done && !has_return(b)) /* one in a block was reported, or stands in a block that was */
        fe_label(l->c, fe_report(l->c, FE_E0106, b->end, "'%s' ends without return", l->decl->name->text),
                 "return a value before this");
}

void fe_lower_block(fe_lower *l, const fe_block *b) { lower_block(l, b, false); }
void fe_lower_body(fe_lower *l, const fe_block *b) { lower_block(l, b, true); }

/* ---- bodies ------------------------------------------------------------------------------------------------------ */
static void kernel_body(fe_context *c, fe_decl *d) {
    fe_lower l = start(c, d, d->func);
    bind_symbols(&l);
    for (size_t i = 0; i < l.n_binds && i < 64; i++)
        l.binds[i]->used = d->syms_used >> i & 1;
    bind_fields(&l, d);
    for (size_t i = 0; i < d->n_params; i++) {
        if (d->params[i].role != FE_TOK_PARAM)
            continue;
        fe_binding *b = fe_bind(&l, FE_BIND_VALUE, d->params[i].name, d->params[i].span, "parameter");
        d->params[i].name->field->what = "(parameter"; /* one warning is enough */
        b->id = d->bad ? 0 : fe_put(&l, d->params[i].span, IR_FIELD, d->func->params[i].type, NULL, 0);
        if (!b->id)
            continue;
        ir_set_int(c->module, ir_at(d->func, b->id), IR_ATTR_FIELD, (int64_t)i);
        ir_set_word(c->module, ir_at(d->func, b->id), IR_ATTR_AT, "param");
    }
    l.target = (fe_target){.results = d->func->results, .n = d->func->n_results};
    lower_block(&l, &d->body, true);
    fe_close_block(&l, 0);
}

/* The kernel once more, without -D, if -D fixes a dimension of it: programs may call it with other sizes.  Where it needs a
 * fixed one there is no such version. */
static void open_kernel(fe_context *c, fe_decl *d) {
    size_t n = c->diags->n, n_errors = c->diags->n_errors, n_defines = c->n_defines;
    bool fixed = false;
    for (size_t i = 0; i < d->n_syms; i++)
        for (size_t k = 0; k < n_defines; k++)
            fixed |= strcmp(c->defines[k].name, d->syms[i].name->text) == 0;
    if (!fixed || n_errors)
        return;
    fe_decl *open = base_arena_alloc(c->arena, sizeof *open);
    *open = *d;
    const char *text = base_arena_printf(c->arena, "%s_open", d->name->text);
    for (open->name = fe_intern(c, text, strlen(text)); open->name->decl; open->name = fe_intern(c, text, strlen(text)))
        text = base_arena_printf(c->arena, "%s_", text);
    c->n_defines = 0;
    kernel_head(c, open);
    if (!open->bad)
        kernel_body(c, open);
    c->n_defines = n_defines;
    open->func->exported = false;
    d->unfixed = c->diags->n_errors == n_errors && !open->bad ? open : NULL;
    c->diags->n = n;
    c->diags->n_errors = n_errors;
    if (d->unfixed)
        open->name->decl = open;
    else
        ir_func_remove(c->module, open->func);
}

static void drop_unused(fe_context *c) {
    for (size_t i = 0; i < c->n_decls; i++) {
        const fe_decl *d = c->decls[i];
        if (!d->unfixed || d->unfixed_used)
            continue;
        d->unfixed->name->decl = NULL;
        ir_func_remove(c->module, d->unfixed->func);
    }
}

static void bind_graphs(fe_lower *l, fe_decl *d) {
    static const char *const WORDS[] = {"dst", "src", "edge"};
    for (size_t i = 0; i < d->n_params; i++) {
        if (!d->params[i].is_graph)
            continue;
        fe_binding *b = fe_bind(l, FE_BIND_GRAPH, d->params[i].name, d->params[i].span, "parameter");
        b->index = (uint32_t)i;
        b->id = (ir_id)l->n_graphs++;
        for (int k = 0; k < 3; k++) { /* one symbol each, even when two graphs have one name (an error) */
            const char *name = base_arena_printf(l->c->arena, "%s.%s", d->params[i].name->text, WORDS[k]);
            uint32_t have;
            if (ir_sym_find(l->b.f, name, &have))
                name = base_arena_printf(l->c->arena, "%s of parameter %zu", name, i);
            ir_sym(l->c->module, l->b.f, name);
        }
    }
}

/* Feature dimensions of a program come from the types of its parameters; a list after its name fixes their order. */
static void bind_features(fe_lower *l, fe_decl *d) {
    bind_symbols(l);
    for (size_t i = 0; i < d->n_params; i++)
        for (size_t k = 0; k < d->params[i].type.n; k++) {
            fe_dim *dim = &d->params[i].type.dims[k];
            if (dim->kind == FE_DIM_NAME && !(dim->name->local && dim->name->local->frame == l->frame))
                fe_bind_dim(l, dim->name, dim->span);
        }
}

static void program_params(fe_lower *l, fe_decl *d) {
    for (size_t i = 0; i < d->n_params; i++) {
        fe_param *p = &d->params[i];
        ir_type type = {.dtype = IR_GRAPH};
        if (!p->is_graph && !fe_type_of(l, &p->type, &type))
            d->bad = true;
        add_param(l, p, p->is_graph ? IR_GRAPH_FIELD : IR_PARAM_FIELD, type);
        if (p->is_graph)
            continue;
        fe_binding *b = fe_bind(l, FE_BIND_VALUE, p->name, p->span, "parameter");
        b->id = d->bad ? 0 : fe_put(l, p->span, IR_PARAM, type, NULL, 0);
        if (b->id)
            ir_set_int(l->c->module, ir_at(l->b.f, b->id), IR_ATTR_FIELD, (int64_t)i);
    }
}

/* What the program takes to be one, for those who check and compile it. */
static void tell_sizes(const fe_lower *l, ir_func *f) {
    f->needs_square = l->n_graphs > 0;
    for (uint32_t k = 0; k < l->n_graphs; k++)
        f->needs_square &= l->same[3 * k] == l->same[3 * k + 1];
    for (uint32_t s = 0; s < 3 * l->n_graphs; s++) {
        ir_same same = {.of = s, .is = l->same[s]};
        if (same.of != same.is && !(f->needs_square && s % 3 == 1))
            base_push(l->c->module->arena, f->same, f->n_same, f->cap_same, same);
    }
}

static void one_program(fe_lower *l, fe_decl *d) {
    size_t before = l->c->diags->n_errors;
    bind_graphs(l, d);
    bind_features(l, d);
    program_params(l, d);
    if (!add_results(l, d) || l->c->diags->n_errors > before)
        d->bad = true;
    else
        check_shown(l, d);
    l->target = (fe_target){.results = l->b.f->results, .n = l->b.f->n_results};
    lower_block(l, &d->body, true);
    fe_close_block(l, 0);
    fe_drop_turned(l);
    tell_sizes(l, l->b.f);
}

void fe_lower_program(fe_context *c, fe_decl *d) {
    uint32_t *same = base_arena_new_array(c->arena, uint32_t, 3 * d->n_params + 1);
    for (uint32_t i = 0; i < 3 * d->n_params; i++)
        same[i] = i;
    size_t n = c->diags->n, n_errors = c->diags->n_errors;
    d->func = new_func(c, d);
    for (;;) {
        fe_lower l = start(c, d, d->func);
        l.same = same;
        one_program(&l, d);
        if (!l.restart) {
            d->bad |= c->diags->n_errors > n_errors; /* callers are silent */
            return;
        }
        c->diags->n = n;
        c->diags->n_errors = n_errors;
        d->bad = false;
        ir_func *old = d->func;
        d->func = new_func(c, d);
        ir_func_replace(c->module, old, d->func);
    }
}

/* Programs were lowered callees first; in the module they stand as in the file. */
static void order_as_written(fe_context *c) {
    ir_module *m = c->module;
    size_t at = 0;
    for (size_t i = 0; i < c->n_decls; i++) {
        if (c->decls[i]->kind != FE_TOK_PROGRAM || !c->decls[i]->func)
            continue;
        while (m->funcs[at]->level != IR_LEVEL_PROGRAM)
            at++;
        m->funcs[at++] = c->decls[i]->func;
    }
}

void fe_lower_all(fe_context *c) {
    for (size_t i = 0; i < c->n_decls; i++) {
        fe_decl *d = c->decls[i];
        if (d->kind == FE_TOK_KERNEL && !d->bad)
            kernel_head(c, d);
    }
    for (size_t i = 0; i < c->n_decls; i++)
        if (c->decls[i]->kind == FE_TOK_FN)
            fe_check_fn(c, c->decls[i]);
    for (size_t i = 0; i < c->n_decls; i++)
        if (c->decls[i]->kind == FE_TOK_REDUCER)
            fe_check_reducer(c, c->decls[i]);
    for (size_t i = 0; i < c->n_decls; i++) {
        fe_decl *d = c->decls[i];
        if (d->kind == FE_TOK_KERNEL && d->func)
            kernel_body(c, d);
    }
    for (size_t i = 0; i < c->n_decls; i++)
        if (c->decls[i]->kind == FE_TOK_KERNEL && c->decls[i]->func && !c->decls[i]->bad)
            open_kernel(c, c->decls[i]);
    fe_order_programs(c);
    for (size_t i = 0; i < c->n_programs; i++)
        if (!c->programs[i]->bad)
            fe_lower_program(c, c->programs[i]);
    drop_unused(c);
    order_as_written(c);
    fe_lower_exports(c);
    fe_check_gradients(c);
}
