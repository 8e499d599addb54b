/* Names, dimensions and types of one function.
 *
 * A name carries its binding; there is no shadowing inside a function, and an inlined function has a frame of its own
 * in which the names of its caller mean nothing. */
#include "frontend/fe.h"

#include <string.h>

bool fe_told(fe_lower *l, fe_name *name) {
    bool told = name->told == l->body;
    name->told = l->body;
    return told;
}

static bool visible(const fe_lower *l, const fe_binding *b) { return b && b->frame == l->frame; }

fe_binding *fe_bind(fe_lower *l, fe_binding_kind kind, fe_name *name, base_span span, const char *what) {
    fe_binding *b = base_arena_alloc(l->c->arena, sizeof *b);
    *b = (fe_binding){.kind = kind, .name = name, .span = span, .frame = l->frame, .what = what};
    fe_binding **slot = kind == FE_BIND_FIELD ? &name->field : &name->local;
    if (visible(l, *slot)) {
        base_diag *d = fe_report(l->c, FE_E0205, span, "'%s' is defined twice", name->text);
        if (kind == FE_BIND_FIELD)
            fe_label(l->c, d, "one array read at both ends is a node field; two arrays need two names");
        else if ((*slot)->kind == FE_BIND_VAR)
            fe_label(l->c, d, "a var is assigned without let: %s = ...", name->text);
        else
            fe_label(l->c, d, "a name means one thing in a body; choose another");
        fe_note_at(l->c, d, (*slot)->span, "the first is here");
        b->twice = true;
    }
    b->outer = *slot;
    *slot = b;
    base_push(l->c->arena, l->binds, l->n_binds, l->cap_binds, b);
    return b;
}

fe_binding *fe_lookup(fe_lower *l, fe_name *name) {
    if (!visible(l, name->local))
        return NULL;
    name->local->used = true;
    return name->local;
}

void fe_warn_unused(fe_lower *l, const fe_binding *b) {
    if (b->used || b->what[0] == '(' || b->name->text[0] == '_' || l->c->diags->n_errors || l->frame)
        return;
    fe_error_id id = b->kind == FE_BIND_DIM ? FE_W0003 : strcmp(b->what, "parameter") == 0 ? FE_W0001 : FE_W0002;
    fe_label(l->c, fe_report(l->c, id, b->span, "%s '%s' is never used", b->what, b->name->text),
             "a name that begins with '_' may stay unused");
}

void fe_close_block(fe_lower *l, size_t mark) {
    for (size_t i = mark; i < l->n_binds; i++)
        fe_warn_unused(l, l->binds[i]);
    fe_hide_block(l, mark);
}

void fe_hide_block(fe_lower *l, size_t mark) {
    while (l->n_binds > mark) {
        fe_binding *b = l->binds[--l->n_binds];
        *(b->kind == FE_BIND_FIELD ? &b->name->field : &b->name->local) = b->outer;
    }
}

/* ---- dimensions -------------------------------------------------------------------------------------------------- */
void fe_bind_dim(fe_lower *l, fe_name *name, base_span span) {
    fe_binding *b = fe_bind(l, FE_BIND_DIM, name, span, "dimension");
    for (size_t i = 0; i < l->c->n_defines; i++) {
        fe_define *d = &l->c->defines[i];
        if (strcmp(d->name, name->text) != 0)
            continue;
        d->used = true;
        b->dim = d->value;
        if (d->value < 1 || d->value > INT32_MAX) {
            fe_report(l->c, FE_E0216, span, "%s = %lld: a dimension is at least 1 and at most %d", name->text,
                      (long long)d->value, INT32_MAX);
            b->dim = 1;
        }
        return;
    }
    b->dim = ir_dim_sym(ir_sym(l->c->module, l->b.f, name->text));
}

static bool graph_dim(fe_lower *l, const fe_dim *d, ir_dim *out) {
    if (!l->program) {
        fe_report(l->c, FE_E0206, d->span, "'%s.%s' is a dimension of a program", d->name->text, d->member->text);
        return false;
    }
    fe_binding *b = fe_lookup(l, d->name);
    if (!b || b->kind != FE_BIND_GRAPH) {
        fe_nearest near = {.wanted = d->name->text};
        for (size_t i = 0; i < l->n_binds; i++)
            if (l->binds[i]->kind == FE_BIND_GRAPH)
                fe_nearest_try(&near, l->binds[i]->name->text);
        base_diag *e = fe_report(l->c, FE_E0206, d->span, "there is no graph '%s'", d->name->text);
        if (fe_nearest_get(&near))
            fe_label(l->c, e, "did you mean '%s.%s'?", fe_nearest_get(&near), d->member->text);
        return false;
    }
    static const char *const WORDS[] = {"dst", "src", "edge"};
    for (uint32_t k = 0; k < 3; k++) {
        if (strcmp(d->member->text, WORDS[k]) != 0)
            continue;
        *out = fe_graph_dim(l, b->id, k);
        return true;
    }
    const char *word = d->member->text;
    const char *meant = strcmp(word, "num_dst") == 0     ? "dst"
                        : strcmp(word, "num_src") == 0   ? "src"
                        : strcmp(word, "num_edges") == 0 ? "edge"
                                                         : NULL;
    if (fe_told(l, d->member))
        return false;
    base_diag *e = fe_report(l->c, FE_E0206, d->span, "a graph has no dimension '%s'", word);
    if (meant)
        fe_label(l->c, e, "that is a size; the dimension is %s.%s", d->name->text, meant);
    else
        fe_label(l->c, e, "it has dst, src and edge");
    return false;
}

static void unknown_dim(fe_lower *l, const fe_dim *d) {
    if (fe_told(l, d->name))
        return;
    fe_nearest near = {.wanted = d->name->text};
    for (size_t i = 0; i < l->n_binds; i++)
        if (l->binds[i]->kind == FE_BIND_DIM && visible(l, l->binds[i]))
            fe_nearest_try(&near, l->binds[i]->name->text);
    base_diag *e = fe_report(l->c, FE_E0206, d->span, "unknown dimension '%s'", d->name->text);
    if (fe_nearest_get(&near))
        fe_label(l->c, e, "did you mean '%s'?", fe_nearest_get(&near));
    else if (l->decl)
        fe_label(l->c, e, "declare it: %s %s[%s%s]", fe_tok_text(l->decl->kind), l->decl->name->text,
                 l->decl->n_syms ? "..., " : "", d->name->text);
}

bool fe_is_graph_dim(const fe_lower *l, ir_dim d) {
    return l->program && ir_dim_is_sym(d) && ir_dim_sym_index(d) < 3 * l->n_graphs;
}

static bool sum_of_dims(fe_lower *l, const fe_dim *d, ir_dim *out) {
    ir_dim a, b;
    ir_sum x, y;
    int64_t n;
    if (!fe_dim_of(l, d->left, &a) || !fe_dim_of(l, d->right, &b))
        return false;
    if (fe_is_graph_dim(l, a) || fe_is_graph_dim(l, b)) {
        fe_label(l->c, fe_report(l->c, FE_E0216, d->span, "rows and edges of a graph come alone in a shape"),
                 "only other dimensions may be added and multiplied");
        return false;
    }
    ir_opcode code = d->op == FE_TOK_PLUS ? IR_ADD : d->op == FE_TOK_MINUS ? IR_SUB : IR_MUL;
    if (!ir_sum_of(l->b.f, a, &x) || !ir_sum_of(l->b.f, b, &y) || !ir_sum_calc(code, &x, &y, &x)) {
        fe_label(l->c, fe_report(l->c, FE_E0216, d->span, "this dimension is computed from too many others"),
                 "give a part of it a name of its own");
        return false;
    }
    if (ir_sum_is_number(&x, &n) ? n >= 1 && n <= INT32_MAX : ir_sum_dim(l->c->module, l->b.f, &x, out)) {
        *out = ir_sum_is_number(&x, &n) ? n : *out;
        return true;
    }
    if (ir_sum_is_number(&x, &n))
        fe_report(l->c, FE_E0216, d->span, "this is %lld: a dimension is at least 1 and at most %d", (long long)n,
                  INT32_MAX);
    else
        fe_report(l->c, FE_E0216, d->span, "this is less than 1 for all sizes");
    return false;
}

bool fe_dim_of(fe_lower *l, const fe_dim *d, ir_dim *out) {
    if (d->kind == FE_DIM_SUM)
        return sum_of_dims(l, d, out);
    if (d->kind == FE_DIM_CONST) {
        *out = d->value;
        return true;
    }
    if (d->kind == FE_DIM_GRAPH)
        return graph_dim(l, d, out);
    fe_binding *b = fe_lookup(l, d->name);
    if (b && b->kind == FE_BIND_DIM) {
        *out = b->dim;
        return true;
    }
    if (!b) {
        unknown_dim(l, d);
    } else {
        base_diag *e = fe_report(l->c, FE_E0206, d->span, "'%s' is not a dimension", d->name->text);
        if (b->kind == FE_BIND_GRAPH)
            fe_label(l->c, e, "write %s.dst, %s.src or %s.edge", d->name->text, d->name->text, d->name->text);
    }
    return false;
}

/* ---- types ------------------------------------------------------------------------------------------------------- */
static const char *known_types(const fe_lower *l) {
    const char *text = "types are";
    for (int k = 0; k < IR_DTYPE_COUNT; k++)
        text = base_arena_printf(l->c->arena, "%s%s %s", text,
                                 k == 0                    ? ""
                                 : k == IR_DTYPE_COUNT - 1 ? " and"
                                                           : ",",
                                 ir_dtype_text((ir_dtype)k));
    return text;
}

bool fe_dtype_of(fe_lower *l, const fe_type *t, ir_dtype *out) {
    const char *text = t->dtype->text;
    if (ir_dtype_from_text(text, strlen(text), out))
        return true;
    base_diag *d = fe_report(l->c, FE_E0213, t->dtype_span, "unknown type '%s'", text);
    fe_nearest near = {.wanted = text};
    for (int k = 0; k < IR_DTYPE_COUNT; k++)
        fe_nearest_try(&near, ir_dtype_text((ir_dtype)k));
    if (fe_word_advice(FE_WORD_TYPE, text) || fe_nearest_get(&near))
        fe_label_word(l->c, d, FE_WORD_TYPE, &near);
    else
        fe_label(l->c, d, "%s", strcmp(text, "T") == 0 ? "only a fn is generic" : known_types(l));
    return false;
}

static bool check_dims(fe_lower *l, const fe_type *t, const ir_type *type) {
    double constant = 1;
    for (uint32_t i = 0; i < type->rank; i++) {
        if (i > 0 && fe_is_graph_dim(l, type->dim[i])) {
            fe_label(l->c, fe_report(l->c, FE_E0216, t->dims[i].span, "rows or edges of a graph come first in a shape"),
                     "only one such dimension, on the left");
            return false;
        }
        if (!ir_dim_is_sym(type->dim[i]))
            constant *= (double)type->dim[i];
    }
    if (constant <= 1099511627776.0) /* 2^40 */
        return true;
    fe_report(l->c, FE_E0216, t->span, "a shape of more than 2^40 elements");
    return false;
}

bool fe_type_of(fe_lower *l, const fe_type *t, ir_type *out) {
    *out = (ir_type){.dtype = IR_F32};
    bool ok = !t->dtype || fe_dtype_of(l, t, &out->dtype); /* no dtype: the shape of fill */
    size_t most = l->program ? IR_MAX_RANK : IR_MAX_RANK - 1;
    if (t->n > most) {
        fe_report(l->c, FE_E0216, t->span, "%zu dimensions; a %s has at most %zu", t->n,
                  l->program ? "tensor" : "field", most);
        return false;
    }
    out->rank = (uint32_t)t->n;
    for (size_t i = 0; i < t->n; i++)
        ok &= fe_dim_of(l, &t->dims[i], &out->dim[i]);
    return ok && check_dims(l, t, out);
}
