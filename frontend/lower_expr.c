/* Expressions to operations, dtypes checked.
 *
 * An expression of literals only has no dtype of its own: `want` says which it takes, and fe_lower_unify finds that
 * out from the operands beside it. */
#define _GNU_SOURCE
#include "frontend/fe.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool fe_class_has(fe_class k, ir_dtype t) {
    bool is_float = ir_dtype_is_float(t), is_int = ir_dtype_is_int(t);
    switch (k) {
    case FE_NUM:
        return is_float || is_int;
    case FE_FLOAT:
        return is_float;
    case FE_INT:
        return is_int;
    case FE_BOOL:
        return t == IR_BOOL;
    case FE_ANY:
        return t < IR_DTYPE_COUNT;
    case FE_LINEAR:
        return is_float || is_int || ir_dtype_is_complex(t);
    case FE_QUOTIENT:
        return is_float || ir_dtype_is_complex(t);
    case FE_COMPLEX:
        return ir_dtype_is_complex(t);
    }
    return false;
}

const char *fe_class_text(fe_class k) {
    static const char *const TEXTS[] = {
        "real numbers", "floats (f32, f64)", "integers (i8, u8, i32, i64)", "bool",
        "any type",     "numbers",           "floats and complex numbers",  "complex numbers (c64, c128)"};
    return TEXTS[k];
}

/* ---- literals ---------------------------------------------------------------------------------------------------- */
/* strtod of the C locale, whatever the program that we are part of has set. */
static double parse_float(const char *text, ir_dtype t) {
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* a constant of the C library, nothing is allocated */
    double v = t == IR_F32 ? (double)strtof_l(text, NULL, c) : strtod_l(text, NULL, c);
    freelocale(c);
    return v;
}

static bool all_zero(const char *s) {
    for (; *s && *s != 'e' && *s != 'E'; s++)
        if (*s >= '1' && *s <= '9')
            return false;
    return true;
}

static ir_id float_literal(fe_lower *l, const fe_expr *e, base_span span, bool minus, ir_dtype t) {
    if (e->name) /* inf, nan */
        return fe_float(l, span, t, e->name->text[0] == 'n' ? NAN : minus ? -INFINITY : INFINITY);
    char *text = base_arena_strndup(l->c->arena, l->c->source + e->span.begin, e->span.end - e->span.begin);
    double v = parse_float(text, t);
    if (isinf(v) || (v == 0 && !all_zero(text))) {
        fe_report(l->c, FE_E0211, span, "this number is too %s for %s", isinf(v) ? "large" : "small", ir_dtype_text(t));
        return 0;
    }
    return fe_float(l, span, t, minus ? -v : v);
}

static ir_id int_literal(fe_lower *l, const fe_expr *e, base_span span, bool minus, ir_dtype t) {
    int64_t least, most;
    ir_dtype_limits(t, &least, &most);
    uint64_t limit = minus ? 0 - (uint64_t)least : (uint64_t)most, v = 0;
    for (uint32_t i = e->span.begin; i < e->span.end; i++) {
        uint64_t digit = (uint64_t)(l->c->source[i] - '0');
        if (digit > limit || v > (limit - digit) / 10) {
            fe_report(l->c, FE_E0211, span, "this number is too %s for %s", minus ? "small" : "large",
                      ir_dtype_text(t));
            return 0;
        }
        v = v * 10 + digit;
    }
    return fe_number(l, span, t, minus ? (int64_t)(0 - v) : (int64_t)v);
}

static ir_id imaginary_literal(fe_lower *l, const fe_expr *e, base_span span, bool minus, ir_dtype t) {
    ir_dtype part = ir_dtype_part(t);
    char *text = base_arena_strndup(l->c->arena, l->c->source + e->span.begin, e->span.end - e->span.begin - 1);
    double v = parse_float(text, part);
    if (isinf(v)) {
        fe_report(l->c, FE_E0211, span, "this number is too large for %s", ir_dtype_text(t));
        return 0;
    }
    return fe_map2(l, span, IR_COMPLEX, fe_float(l, span, part, 0), fe_float(l, span, part, minus ? -v : v));
}

static ir_id literal(fe_lower *l, const fe_expr *e, base_span span, bool minus, ir_dtype t) {
    if (e->lit == FE_LIT_IMAG)
        return imaginary_literal(l, e, span, minus, t);
    return ir_dtype_is_float(t) ? float_literal(l, e, span, minus, t) : int_literal(l, e, span, minus, t);
}

/* With nothing beside it. */
static ir_dtype of_literals(fe_lit lit) { return lit == FE_LIT_IMAG ? IR_C64 : lit == FE_LIT_FLOAT ? IR_F32 : IR_I64; }

/* The dtype that an expression of literals takes; IR_NONE after a complaint. */
static ir_dtype literal_type(fe_lower *l, const fe_expr *e, ir_dtype want) {
    if (want == IR_NONE)
        return of_literals(e->lit);
    if (e->lit == FE_LIT_IMAG && !ir_dtype_is_complex(want)) {
        fe_label(l->c, fe_report(l->c, FE_E0211, e->span, "an imaginary literal cannot become %s", ir_dtype_text(want)),
                 "cast the other side: c64(...)");
        return IR_NONE;
    }
    if (want == IR_BOOL) {
        fe_label(l->c, fe_report(l->c, FE_E0211, e->span, "a number cannot become bool"), "write true or false");
        return IR_NONE;
    }
    if (e->lit == FE_LIT_FLOAT && !ir_dtype_is_float(want)) {
        fe_label(l->c,
                 fe_report(l->c, FE_E0211, e->span, "a literal with a fraction cannot become %s", ir_dtype_text(want)),
                 "write a whole number, or cast the other side");
        return IR_NONE;
    }
    return want;
}

/* ---- several operands of one dtype ------------------------------------------------------------------------------- */
/* `var s = 0` is an i64 and `1.0` an f32 only because nothing stood beside the literal. */
static const fe_binding *by_literal(fe_lower *l, const fe_expr *e) {
    fe_binding *b = e->kind == FE_EXPR_NAME ? e->name->local : NULL;
    return b && b->frame == l->frame && b->lit != FE_LIT_NO ? b : NULL;
}

static bool label_by_literal(fe_lower *l, base_diag *d, const fe_expr *e, ir_dtype have, ir_dtype wanted) {
    const fe_binding *b = by_literal(l, e);
    if (!b || !ir_dtype_is_float(wanted) || ir_dtype_is_half(wanted))
        return false;
    fe_label(l->c, d, "'%s' is %s because it begins as a literal; let it begin as %s", b->name->text,
             ir_dtype_text(have),
             have == IR_I64 && wanted == IR_F32 ? "0.0, with a point"
                                                : base_arena_printf(l->c->arena, "%s(...)", ir_dtype_text(wanted)));
    fe_note_at(l->c, d, b->span, "it begins here");
    return true;
}

static void mixed(fe_lower *l, const fe_expr *a, ir_dtype s, const fe_expr *b, ir_dtype t) {
    const char *x = ir_dtype_text(s), *y = ir_dtype_text(t);
    base_diag *d = fe_report(l->c, FE_E0203, b->span, "%s and %s do not mix", x, y);
    if (label_by_literal(l, d, a, s, t) || label_by_literal(l, d, b, t, s))
        return;
    if (ir_dtype_is_complex(s) == ir_dtype_is_complex(t))
        fe_label(l->c, d, "is %s; cast one side, %s(...) or %s(...)", y, x, y);
    else
        fe_label(l->c, d, "is %s; make the real side complex, %s(...)", y, ir_dtype_is_complex(s) ? x : y);
    fe_note_at(l->c, d, a->span, "the other side is %s", x);
}

bool fe_lower_unify(fe_lower *l, const fe_expr *const *e, size_t n, ir_dtype want, ir_id *out) {
    ir_dtype t = IR_NONE;
    const fe_expr *first = NULL;
    fe_lit lit = FE_LIT_INT;
    bool ok = true;
    for (size_t i = 0; i < n; i++) {
        if (e[i]->lit != FE_LIT_NO) {
            lit = e[i]->lit > lit ? e[i]->lit : lit;
            continue;
        }
        out[i] = fe_to_f32(l, e[i]->span, fe_lower_value(l, e[i], IR_NONE));
        ok &= out[i] != 0;
        if (!out[i])
            continue;
        ir_dtype have = fe_type_at(l, out[i])->dtype;
        if (!first) {
            first = e[i];
            t = have;
        } else if (have != t) {
            mixed(l, first, t, e[i], have);
            ok = false;
        }
    }
    if (t == IR_NONE && ok)
        t = want != IR_NONE && (lit != FE_LIT_IMAG || ir_dtype_is_complex(want)) ? want : of_literals(lit);
    for (size_t i = 0; i < n && ok; i++) {
        if (e[i]->lit != FE_LIT_NO)
            out[i] = fe_lower_value(l, e[i], t);
        ok &= out[i] != 0;
    }
    return ok;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */
/* In combine: the name of a state, without saying of which side. */
static bool is_half_a_state(const fe_lower *l, const char *name) {
    for (size_t i = 0; i < l->n_binds; i++)
        for (size_t k = 0; l->binds[i]->kind == FE_BIND_STATE && k < l->binds[i]->states->n_states; k++)
            if (strcmp(l->binds[i]->states->states[k].name->text, name) == 0)
                return true;
    return false;
}

/* The statement that makes this name, wherever it stands in the body. */
static const fe_stmt *maker(const fe_block *b, const fe_name *name, base_span *at) {
    for (size_t i = 0; i < b->n; i++) {
        const fe_stmt *s = b->items[i], *inner = maker(&s->body, name, at);
        if (!inner)
            inner = maker(&s->other, name, at);
        if (inner)
            return inner;
        for (size_t k = 0; k < s->n_names; k++)
            if (s->names[k].name == name)
                return *at = s->names[k].span, s;
        if (s->name == name && s->kind != FE_STMT_ASSIGN)
            return *at = s->name_span, s;
    }
    return NULL;
}

static bool label_maker(fe_lower *l, base_diag *d, const fe_expr *e) {
    base_span at = {0};
    const fe_stmt *s = l->decl && !l->in_fn ? maker(&l->decl->body, e->name, &at) : NULL;
    if (!s)
        return false;
    bool inside = s->value && s->value->span.begin <= e->span.begin && e->span.end <= s->value->span.end;
    fe_label(l->c, d, "%s",
             inside ? "is only known after its own statement"
             : at.begin > e->span.begin
                 ? "is made further down; its statement has to stand before this"
                 : "ended with the block that made it; make a var before the block and assign it there");
    fe_note_at(l->c, d, at, "'%s' is made here", e->name->text);
    return true;
}

static bool in_combine(const fe_lower *l) {
    bool any = false;
    for (size_t i = 0; i < l->n_binds && !any; i++)
        any = l->binds[i]->kind == FE_BIND_STATE;
    return any;
}

static void unknown_name(fe_lower *l, const fe_expr *e) {
    if (fe_told(l, e->name))
        return;
    fe_nearest near = {.wanted = e->name->text};
    for (size_t i = 0; i < l->n_binds; i++)
        if (l->binds[i]->frame == l->frame && l->binds[i]->kind != FE_BIND_FIELD)
            fe_nearest_try(&near, l->binds[i]->name->text);
    base_diag *d = fe_report(l->c, FE_E0201, e->span, "unknown name '%s'", e->name->text);
    if (is_half_a_state(l, e->name->text))
        fe_label(l->c, d, "write a.%s or b.%s", e->name->text, e->name->text);
    else if (e->name->decl || fe_func_find(e->name->text))
        fe_label(l->c, d, "is a function; call it: %s(...)", e->name->text);
    else if (in_combine(l))
        fe_label(l->c, d, "the two states are called a and b");
    else if (!label_maker(l, d, e))
        fe_label_word(l->c, d, FE_WORD_NAME, &near);
}

static ir_id lower_name(fe_lower *l, const fe_expr *e) {
    fe_binding *b = fe_lookup(l, e->name);
    if (b && b->kind == FE_BIND_GRAPH) {
        fe_label(l->c, fe_report(l->c, FE_E0310, e->span, "'%s' is a graph, not a value", e->name->text),
                 "its sizes are %s.num_dst, %s.num_src, %s.num_edges", e->name->text, e->name->text, e->name->text);
        return 0;
    }
    if (b && b->kind == FE_BIND_STATE) {
        fe_label(l->c, fe_report(l->c, FE_E0226, e->span, "'%s' is a whole state", e->name->text), "write %s.%s",
                 e->name->text, b->states->states[0].name->text);
        return 0;
    }
    if (b && b->kind == FE_BIND_DIM) {
        l->b.span = e->span;
        return ir_dim_is_sym(b->dim) ? ir_emit_dimsize(&l->b, b->dim) : fe_number(l, e->span, IR_I64, b->dim);
    }
    if (b)
        return b->id;
    const fe_binding *f = e->name->field;
    if (f && f->frame == l->frame) {
        const char *role = f->role == FE_TOK_NODE ? "src" : fe_tok_text(f->role);
        fe_label(l->c,
                 fe_report(l->c, FE_E0212, e->span, "'%s' is a field of role %s", e->name->text, fe_tok_text(f->role)),
                 "write %s.%s%s%s", role, e->name->text, f->role == FE_TOK_NODE ? " or dst." : "",
                 f->role == FE_TOK_NODE ? e->name->text : "");
        return 0;
    }
    unknown_name(l, e);
    return 0;
}

static const fe_binding *find_field(fe_lower *l, const fe_expr *e) {
    fe_binding *f = e->name->field;
    const char *role = fe_tok_text(e->op), *name = e->name->text;
    if (l->in_fn) {
        fe_label(l->c, fe_report(l->c, FE_E0222, e->span, "a function sees no fields"),
                 "make it a parameter of the function");
        return NULL;
    }
    if (l->program) {
        fe_label(l->c, fe_report(l->c, FE_E0222, e->span, "%s.%s: only a kernel has fields", role, name),
                 "in a program write the tensor's name");
        return NULL;
    }
    if (!f || f->frame != l->frame) {
        base_diag *d;
        if (e->op == FE_TOK_EDGE && (strcmp(name, "displacement") == 0 || strcmp(name, "distance") == 0)) {
            d = fe_report(l->c, FE_E0815, e->span, "generated edge field '%s' is not supported yet", name);
            fe_label(l->c, d, "declare it: edge %s: f32", name);
            return NULL;
        }
        fe_nearest near = {.wanted = name};
        for (size_t i = 0; i < l->n_binds; i++)
            if (l->binds[i]->kind == FE_BIND_FIELD)
                fe_nearest_try(&near, l->binds[i]->name->text);
        d = fe_report(l->c, FE_E0201, e->span, "there is no field '%s'", name);
        if (fe_nearest_get(&near))
            fe_label(l->c, d, "did you mean '%s'?", fe_nearest_get(&near));
        return NULL;
    }
    f->used = true;
    if (f->twice)
        return NULL;
    bool ends = e->op == FE_TOK_SRC || e->op == FE_TOK_DST;
    if (f->role == FE_TOK_PARAM)
        fe_label(l->c, fe_report(l->c, FE_E0212, e->span, "'%s' is a param, the same for all rows and edges", name),
                 "write it bare: %s", name);
    else if (f->role == FE_TOK_NODE && !ends)
        fe_label(l->c,
                 fe_report(l->c, FE_E0212, e->span, "'%s' is a node field; it is read at an end of the edge", name),
                 "write src.%s or dst.%s", name, name);
    else if (f->role != FE_TOK_NODE && f->role != e->op)
        fe_label(l->c, fe_report(l->c, FE_E0212, e->span, "'%s' is a field of role %s", name, fe_tok_text(f->role)),
                 ends && f->role != FE_TOK_EDGE ? "write %s.%s, or make it a node field, which is read at both ends"
                                                : "write %s.%s",
                 fe_tok_text(f->role), name);
    else
        return f;
    return NULL;
}

static ir_id lower_field(fe_lower *l, const fe_expr *e) {
    const fe_binding *f = find_field(l, e);
    if (!f || l->decl->bad)
        return 0;
    ir_type type = l->b.f->params[f->index].type;
    type.space = e->op == FE_TOK_DST ? IR_ROW : IR_EDGE;
    ir_id id = fe_put(l, e->span, IR_FIELD, type, NULL, 0);
    if (id) {
        ir_set_int(l->c->module, ir_at(l->b.f, id), IR_ATTR_FIELD, f->index);
        ir_set_word(l->c->module, ir_at(l->b.f, id), IR_ATTR_AT, fe_tok_text(e->op));
    }
    return id;
}

/* ---- members: sizes of a graph, results of a kernel -------------------------------------------------------------- */
static ir_id graph_member(fe_lower *l, const fe_expr *e, const fe_binding *g) {
    static const char *const WORDS[] = {"num_dst", "num_src", "num_edges"};
    for (uint32_t k = 0; k < 3; k++)
        if (strcmp(e->name->text, WORDS[k]) == 0) {
            l->b.span = e->span;
            return ir_emit_dimsize(&l->b, fe_graph_dim(l, g->id, k));
        }
    const char *text = e->name->text;
    base_diag *d = fe_report(l->c, FE_E0308, e->name_span, "a graph has no '%s'", text);
    bool dim = strcmp(text, "dst") == 0 || strcmp(text, "src") == 0 || strcmp(text, "edge") == 0;
    if (dim)
        fe_label(l->c, d, "a dimension, for types and fill(0.0, [%s.%s]); the size is num_%s", e->a->name->text, text,
                 text[0] == 'e' ? "edges" : text);
    else
        fe_label(l->c, d, "it has num_dst, num_src and num_edges");
    return 0;
}

static ir_id state_member(fe_lower *l, const fe_expr *e, const fe_binding *s) {
    fe_nearest near = {.wanted = e->name->text};
    for (size_t i = 0; i < s->states->n_states; i++) {
        if (s->states->states[i].name == e->name)
            return s->values[i];
        fe_nearest_try(&near, s->states->states[i].name->text);
    }
    base_diag *d = fe_report(l->c, FE_E0226, e->name_span, "the reducer has no state '%s'", e->name->text);
    if (fe_nearest_get(&near))
        fe_label(l->c, d, "did you mean '%s'?", fe_nearest_get(&near));
    return 0;
}

/* `scr.x` in a kernel that has a field x */
static bool unknown_role(fe_lower *l, const fe_expr *e) {
    fe_binding *f = e->name->field;
    if (l->program || !f || f->frame != l->frame || e->a->name->field)
        return false;
    if (fe_told(l, e->a->name))
        return true;
    const char *role = f->role == FE_TOK_NODE ? "src or dst" : fe_tok_text(f->role);
    base_diag *d = fe_report(l->c, FE_E0201, e->a->span, "unknown name '%s'", e->a->name->text);
    if (f->role == FE_TOK_PARAM)
        fe_label(l->c, d, "'%s' is a param: write it bare", e->name->text);
    else
        fe_label(l->c, d, "'%s' is a field of role %s: write %s.%s", e->name->text, fe_tok_text(f->role), role,
                 e->name->text);
    f->used = true;
    return true;
}

/* "total or n" */
static const char *result_names(fe_lower *l, const ir_func *f) {
    const char *text = "";
    for (size_t i = 0; i < f->n_results; i++)
        text = base_arena_printf(l->c->arena, "%s%s%s", text,
                                 i == 0                  ? ""
                                 : i + 1 == f->n_results ? " or "
                                                         : ", ",
                                 f->results[i].name);
    return text;
}

static ir_id lower_member(fe_lower *l, const fe_expr *e) {
    if (e->a->kind == FE_EXPR_NAME) {
        const fe_binding *g = fe_lookup(l, e->a->name);
        if (!g && unknown_role(l, e))
            return 0;
        if (g && g->kind == FE_BIND_GRAPH)
            return graph_member(l, e, g);
        if (g && g->kind == FE_BIND_STATE)
            return state_member(l, e, g);
    }
    ir_id tuple = fe_lower_expr(l, e->a, IR_NONE);
    if (!tuple)
        return 0;
    if (fe_type_at(l, tuple)->dtype != IR_TUPLE) {
        base_diag *d = fe_report(l->c, FE_E0309, e->name_span, "this value has no member '%s'", e->name->text);
        const char *advice = fe_word_advice(FE_WORD_MEMBER, e->name->text);
        fe_label(l->c, d, "is %s%s%s", fe_type_text(l, fe_type_at(l, tuple)), advice ? "; " : "", advice ? advice : "");
        return 0;
    }
    if (ir_at(l->b.f, tuple)->code == IR_GRAD)
        return fe_grad_member(l, tuple, e);
    const fe_decl *callee = fe_callee_of(l, tuple);
    const ir_func *f = callee->func;
    fe_nearest near = {.wanted = e->name->text};
    for (size_t i = 0; i < f->n_results; i++) {
        if (strcmp(f->results[i].name, e->name->text) == 0)
            return fe_call_result(l, tuple, i);
        fe_nearest_try(&near, f->results[i].name);
    }
    base_diag *d = fe_report(l->c, FE_E0309, e->name_span, "%s '%s' has no result '%s'", fe_tok_text(callee->kind),
                             callee->name->text, e->name->text);
    if (fe_nearest_get(&near))
        fe_label(l->c, d, "did you mean '%s'?", fe_nearest_get(&near));
    else
        fe_label(l->c, d, "it has %s", result_names(l, f));
    return 0;
}

/* ---- operators --------------------------------------------------------------------------------------------------- */
static ir_id lower_unary(fe_lower *l, const fe_expr *e, ir_dtype want) {
    if (e->op == FE_TOK_MINUS && e->a->kind == FE_EXPR_NUMBER)
        return literal(l, e->a, e->span, true, want);
    ir_id a = fe_to_f32(l, e->a->span, fe_lower_value(l, e->a, want));
    if (!a)
        return 0;
    ir_dtype t = fe_type_at(l, a)->dtype;
    bool minus = e->op == FE_TOK_MINUS;
    if (!fe_class_has(minus ? FE_LINEAR : FE_BOOL, t)) {
        fe_label(l->c,
                 fe_report(l->c, FE_E0210, e->span, "'%s' takes %s, not %s", fe_tok_text(e->op),
                           fe_class_text(minus ? FE_LINEAR : FE_BOOL), ir_dtype_text(t)),
                 minus ? "'not' is for bool" : "compare it: x != 0");
        return 0;
    }
    return fe_map1(l, e->span, minus ? IR_NEG : IR_NOT, a);
}

typedef struct operator{
    ir_opcode code;
    fe_class cls;
}
operator;

static operator operator_of(fe_tok_kind k) {
    switch ((int)k) {
    case FE_TOK_PLUS:
        return (operator){IR_ADD, FE_LINEAR};
    case FE_TOK_MINUS:
        return (operator){IR_SUB, FE_LINEAR};
    case FE_TOK_STAR:
        return (operator){IR_MUL, FE_LINEAR};
    case FE_TOK_SLASH:
        return (operator){IR_DIV, FE_QUOTIENT};
    case FE_TOK_PERCENT:
        return (operator){IR_REM, FE_NUM};
    case FE_TOK_CARET:
        return (operator){IR_POW, FE_NUM};
    case FE_TOK_EQ:
        return (operator){IR_EQ, FE_ANY};
    case FE_TOK_NE:
        return (operator){IR_NE, FE_ANY};
    case FE_TOK_LT:
        return (operator){IR_LT, FE_NUM};
    case FE_TOK_LE:
        return (operator){IR_LE, FE_NUM};
    case FE_TOK_GT:
        return (operator){IR_GT, FE_NUM};
    case FE_TOK_GE:
        return (operator){IR_GE, FE_NUM};
    default:
        BASE_BUG("operator %d", (int)k);
    }
}

static void wrong_class(fe_lower *l, const fe_expr *e, fe_class cls, ir_dtype t) {
    if (e->op == FE_TOK_SLASH && fe_class_has(FE_INT, t)) {
        fe_label(l->c, fe_report(l->c, FE_E0208, e->name_span, "'/' on %s", ir_dtype_text(t)),
                 "write f32(a) / f32(b), or div(a, b)");
        return;
    }
    base_diag *d = fe_report(l->c, FE_E0210, e->name_span, "'%s' takes %s, not %s", fe_tok_text(e->op),
                             fe_class_text(cls), ir_dtype_text(t));
    if (cls == FE_NUM && ir_dtype_is_complex(t) && e->op != FE_TOK_PERCENT)
        fe_label(l->c, d,
                 e->op == FE_TOK_CARET ? "write exp(y * log(x)), or a literal power 2, 3, 4"
                                       : "complex numbers have no order; compare abs(x) or real(x)");
}

/* x ^ 2, 3, 4 with a literal exponent; 0 otherwise. */
static int small_power(const fe_lower *l, const fe_expr *e) {
    if (e->op != FE_TOK_CARET || e->b->kind != FE_EXPR_NUMBER || e->b->lit != FE_LIT_INT ||
        e->b->span.end - e->b->span.begin != 1)
        return 0;
    int n = l->c->source[e->b->span.begin] - '0';
    return n >= 2 && n <= 4 ? n : 0;
}

static ir_id power(fe_lower *l, const fe_expr *e, int n, ir_dtype want) {
    ir_id a = fe_to_f32(l, e->a->span, fe_lower_value(l, e->a, want));
    if (!a)
        return 0;
    ir_dtype t = fe_type_at(l, a)->dtype;
    if (!fe_class_has(FE_LINEAR, t)) {
        wrong_class(l, e, FE_LINEAR, t);
        return 0;
    }
    ir_id square = fe_map2(l, e->span, IR_MUL, a, a);
    return n == 2 ? square : fe_map2(l, e->span, IR_MUL, square, n == 3 ? a : square);
}

static ir_id logic(fe_lower *l, const fe_expr *e, ir_opcode code) {
    const fe_expr *sides[2] = {e->a, e->b};
    ir_id args[2];
    bool ok = true;
    for (int i = 0; i < 2; i++) {
        args[i] = fe_lower_value(l, sides[i], IR_BOOL);
        if (args[i] && fe_type_at(l, args[i])->dtype != IR_BOOL) {
            fe_label(l->c,
                     fe_report(l->c, FE_E0210, sides[i]->span, "'%s' takes bool, not %s", fe_tok_text(e->op),
                               ir_dtype_text(fe_type_at(l, args[i])->dtype)),
                     "compare it: x != 0");
            ok = false;
        }
        ok &= args[i] != 0;
    }
    return ok ? fe_elementwise(l, e->span, code, args, 2) : 0;
}

static ir_id lower_binary(fe_lower *l, const fe_expr *e, ir_dtype want) {
    int n = small_power(l, e);
    if (n)
        return power(l, e, n, want);
    if (e->op == FE_TOK_AT)
        return fe_lower_matmul(l, e, want);
    if (e->op == FE_TOK_AND || e->op == FE_TOK_OR)
        return logic(l, e, e->op == FE_TOK_AND ? IR_AND : IR_OR);
    operator op = operator_of(e->op);
    bool compares = ir_op_describe(op.code)->cls == IR_CLASS_COMPARE;
    ir_id args[2];
    if (!fe_lower_unify(l, (const fe_expr *const[]){e->a, e->b}, 2, compares ? IR_NONE : want, args))
        return 0;
    ir_dtype t = fe_type_at(l, args[0])->dtype;
    if (!fe_class_has(op.cls, t)) {
        wrong_class(l, e, op.cls, t);
        return 0;
    }
    return fe_elementwise(l, e->span, op.code, args, 2);
}

/* ---- one expression ---------------------------------------------------------------------------------------------- */
static ir_id lower_kind(fe_lower *l, const fe_expr *e, ir_dtype want) {
    switch (e->kind) {
    case FE_EXPR_BAD:
        return 0;
    case FE_EXPR_NUMBER:
        return literal(l, e, e->span, false, want);
    case FE_EXPR_BOOL:
        return fe_number(l, e->span, IR_BOOL, e->op == FE_TOK_TRUE);
    case FE_EXPR_NAME:
        return lower_name(l, e);
    case FE_EXPR_FIELD:
        return lower_field(l, e);
    case FE_EXPR_MEMBER:
        return lower_member(l, e);
    case FE_EXPR_CALL:
        return fe_lower_call(l, e, want);
    case FE_EXPR_REDUCE:
        return fe_lower_reduce(l, e);
    case FE_EXPR_UNARY:
        return lower_unary(l, e, want);
    case FE_EXPR_BINARY:
        return lower_binary(l, e, want);
    case FE_EXPR_LIST:
        fe_label(l->c, fe_report(l->c, FE_E0222, e->span, "a list is not a value"),
                 "it is the second argument of grad");
        return 0;
    case FE_EXPR_SHAPE:
        fe_label(l->c, fe_report(l->c, FE_E0222, e->span, "a shape is not a value"),
                 "it is the second argument of fill");
        return 0;
    }
    return 0;
}

ir_id fe_lower_expr(fe_lower *l, const fe_expr *e, ir_dtype want) {
    if (l->full || l->c->diags->n_errors >= FE_MAX_ERRORS) /* enough is known */
        return 0;
    if (l->depth >= FE_MAX_DEPTH || ++l->c->work > FE_MAX_WORK) {
        bool deep = l->depth >= FE_MAX_DEPTH;
        l->full = true;
        if (deep)
            fe_report(l->c, FE_E0104, e->span, "functions and expressions more than %d deep", FE_MAX_DEPTH);
        else if (!l->c->exhausted)
            fe_report(l->c, FE_E0104, e->span, "more than %u expressions in a file, inlined functions included",
                      FE_MAX_WORK);
        l->c->exhausted |= !deep;
        return 0;
    }
    if (ir_dtype_is_half(want)) /* numbers are computed in f32; the place rounds */
        want = IR_F32;
    if (ir_dtype_is_complex(want) && e->lit != FE_LIT_NO && e->lit != FE_LIT_IMAG) /* 2 beside a complex number */
        return fe_cast(l, e->span, want, fe_lower_expr(l, e, ir_dtype_part(want)));
    if (e->lit != FE_LIT_NO && (want = literal_type(l, e, want)) == IR_NONE)
        return 0;
    l->depth++;
    ir_id id = lower_kind(l, e, want);
    l->depth--;
    return id;
}

ir_id fe_lower_value(fe_lower *l, const fe_expr *e, ir_dtype want) {
    ir_id id = fe_lower_expr(l, e, want);
    if (!id || fe_type_at(l, id)->dtype != IR_TUPLE)
        return id;
    bool grad = ir_at(l->b.f, id)->code == IR_GRAD;
    base_diag *d = fe_report(l->c, FE_E0309, e->span, "this %s has several results",
                             grad ? "grad" : fe_tok_text(fe_callee_of(l, id)->kind));
    if (e->kind == FE_EXPR_NAME && !grad)
        fe_label(l->c, d, "write %s.%s", e->name->text, fe_callee_of(l, id)->func->results[0].name);
    else if (grad)
        fe_label(l->c, d, "name it, let d = ..., and take one of them, d.x");
    else
        fe_label(l->c, d, "name it, let r = ..., and take one of them, r.%s",
                 fe_callee_of(l, id)->func->results[0].name);
    return 0;
}
