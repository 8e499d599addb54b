/* Expressions, by precedence:  or < and < not < comparison < + - < * / % @ < unary minus < ^ < call, member.
 * A new line continues an expression when it begins with a binary operator. */
#include "frontend/fe.h"

#include <string.h>

static fe_expr *parse_binary(fe_parser *p, int least);

static fe_expr *new_expr(fe_parser *p, fe_expr_kind kind, base_span span) {
    fe_expr *e = base_arena_alloc(p->c->arena, sizeof *e);
    e->kind = kind;
    e->span = span;
    e->height = 1;
    return e;
}

static fe_expr *bad_expr(fe_parser *p) { return new_expr(p, FE_EXPR_BAD, fe_peek(p, 0)->span); }

static void grow(fe_parser *p, fe_expr *e, const fe_expr *child) {
    if (e->height <= child->height)
        e->height = child->height + 1;
    if (e->height > FE_MAX_HEIGHT && !p->panic)
        fe_fail(p, FE_E0104, (base_span){child->span.begin, child->span.begin + 1},
                "an expression of more than %d operations inside one another", FE_MAX_HEIGHT);
}

static fe_lit wider(fe_lit a, fe_lit b) { return a == FE_LIT_NO || b == FE_LIT_NO ? FE_LIT_NO : a > b ? a : b; }

/* A call of a function on literals only is itself a literal: `sqrt(2) * x` is as exact as x. */
static fe_lit lit_of_call(const fe_expr *e) {
    const fe_func *f = fe_func_find(e->name->text);
    if (!f || f->form == FE_FILL || f->form == FE_DOT || f->form == FE_FOLD || f->cls == FE_BOOL)
        return FE_LIT_NO;
    size_t from = f->form == FE_SELECT ? 1 : 0;
    if (e->n_args <= from || (f->form == FE_PICK && e->n_args != 2))
        return FE_LIT_NO;
    if (f->cls == FE_COMPLEX)
        return FE_LIT_NO;
    fe_lit lit = fe_class_is_fraction(f->cls) ? FE_LIT_FLOAT : FE_LIT_INT;
    for (size_t i = from; i < e->n_args; i++)
        lit = e->args[i].name ? FE_LIT_NO : wider(lit, e->args[i].value->lit);
    return lit == FE_LIT_IMAG ? FE_LIT_NO : lit; /* abs(3 + 4i) is real */
}

/* ---- primaries --------------------------------------------------------------------------------------------------- */
static void parse_args(fe_parser *p, fe_expr *e) {
    base_span open = fe_peek(p, 0)->span;
    fe_expect(p, FE_TOK_LPAREN, "and the arguments");
    while (!p->panic && !fe_at(p, FE_TOK_RPAREN)) {
        fe_arg a = {0};
        if (fe_at(p, FE_TOK_NAME) && fe_peek(p, 1)->kind == FE_TOK_ASSIGN) {
            a.name = fe_expect_name(p, "a name", &a.name_span);
            fe_next(p);
        }
        a.value = fe_parse_expr(p);
        base_push(p->c->arena, e->args, e->n_args, e->cap_args, a);
        grow(p, e, a.value);
        if (!fe_take(p, FE_TOK_COMMA))
            break;
    }
    e->span.end = fe_peek(p, 0)->span.end;
    fe_expect_close(p, FE_TOK_RPAREN, open, "or ',' after the argument");
}

/* (a, b, c) behind the first value. */
static fe_expr *parse_list(fe_parser *p, base_span open, fe_expr *first) {
    fe_expr *e = new_expr(p, FE_EXPR_LIST, open);
    fe_arg a = {.value = first};
    base_push(p->c->arena, e->args, e->n_args, e->cap_args, a);
    grow(p, e, first);
    while (fe_take(p, FE_TOK_COMMA) && !fe_at(p, FE_TOK_RPAREN)) {
        a.value = fe_parse_expr(p);
        base_push(p->c->arena, e->args, e->n_args, e->cap_args, a);
        grow(p, e, a.value);
    }
    e->span.end = fe_peek(p, 0)->span.end;
    return e;
}

static fe_expr *parse_name(fe_parser *p) {
    const fe_token *t = fe_next(p);
    bool call = fe_at(p, FE_TOK_LPAREN) && !fe_peek(p, 0)->newline;
    fe_expr *e = new_expr(p, call ? FE_EXPR_CALL : FE_EXPR_NAME, t->span);
    e->name = t->name;
    e->name_span = t->span;
    if (call) {
        parse_args(p, e);
        e->lit = lit_of_call(e);
    } else if (strcmp(t->name->text, "inf") == 0 || strcmp(t->name->text, "nan") == 0) {
        e->kind = FE_EXPR_NUMBER;
        e->lit = FE_LIT_FLOAT;
    }
    return e;
}

static fe_expr *parse_field(fe_parser *p) {
    const fe_token *role = fe_next(p);
    fe_expr *e = new_expr(p, FE_EXPR_FIELD, role->span);
    e->op = role->kind;
    if (!fe_expect(p, FE_TOK_DOT, base_arena_printf(p->c->arena, "and a field after '%s'", fe_tok_text(role->kind))))
        return e;
    e->name = fe_expect_name(p, "the name of a field", &e->name_span);
    e->span.end = e->name ? e->name_span.end : role->span.end;
    return e;
}

static fe_expr *parse_reduce(fe_parser *p) {
    fe_expr *e = new_expr(p, FE_EXPR_REDUCE, fe_next(p)->span);
    if (fe_at(p, FE_TOK_VAR)) { /* a reducer, and a keyword elsewhere */
        e->name_span = fe_next(p)->span;
        e->name = fe_intern(p->c, "var", 3);
    } else if (!fe_at(p, FE_TOK_NAME) && !fe_at(p, FE_TOK_BAD)) {
        fe_label(p->c,
                 fe_fail(p, FE_E0102, fe_peek(p, 0)->span, "expected a reducer, found '%s'",
                         fe_tok_text(fe_peek(p, 0)->kind)),
                 "write reduce sum(...): a reducer (sum, max, mean ...) and its arguments");
    } else {
        e->name = fe_expect_name(p, "a reducer", &e->name_span);
    }
    if (e->name)
        parse_args(p, e);
    return e;
}

static fe_expr *parse_shape(fe_parser *p) {
    fe_expr *e = new_expr(p, FE_EXPR_SHAPE, fe_next(p)->span);
    fe_tok_kind first = fe_peek(p, 0)->kind;
    if (first >= FE_TOK_SRC && first <= FE_TOK_EDGE) {
        fe_label(p->c, fe_fail(p, FE_E0102, e->span, "values do not stand in [...]"),
                 "[...] is a shape; arguments stand one by one: concat(x, y)");
        return e;
    }
    e->shape = base_arena_alloc(p->c->arena, sizeof *e->shape);
    e->shape->span = e->span;
    fe_parse_dims(p, e->shape);
    e->span = e->shape->span;
    return e;
}

static void no_value(fe_parser *p, const fe_token *t) {
    base_diag *d = fe_fail(p, FE_E0102, t->span, "expected a value, found '%s'", fe_tok_text(t->kind));
    const fe_token *last = p->at ? t - 1 : t;
    if (t->kind == FE_TOK_STAR && last->kind == FE_TOK_STAR && last->span.end == t->span.begin)
        fe_label(p->c, d, "a power is written x ^ 2");
    else if (t->kind == FE_TOK_DOT && fe_peek(p, 1)->kind == FE_TOK_INT)
        fe_label(p->c, d, "a digit stands before the point: 0.5");
    else if (t->kind == FE_TOK_SLASH && fe_peek(p, 1)->kind == FE_TOK_STAR)
        fe_label(p->c, d, "a comment begins with //");
}

static fe_expr *parse_primary(fe_parser *p) {
    const fe_token *t = fe_peek(p, 0);
    fe_expr *e;
    switch ((int)t->kind) {
    case FE_TOK_INT:
    case FE_TOK_FLOAT:
    case FE_TOK_IMAGINARY:
        e = new_expr(p, FE_EXPR_NUMBER, fe_next(p)->span);
        e->lit = t->kind == FE_TOK_INT ? FE_LIT_INT : t->kind == FE_TOK_FLOAT ? FE_LIT_FLOAT : FE_LIT_IMAG;
        return e;
    case FE_TOK_TRUE:
    case FE_TOK_FALSE:
        e = new_expr(p, FE_EXPR_BOOL, fe_next(p)->span);
        e->op = t->kind;
        return e;
    case FE_TOK_NAME:
        return parse_name(p);
    case FE_TOK_SRC:
    case FE_TOK_DST:
    case FE_TOK_NODE:
    case FE_TOK_EDGE:
    case FE_TOK_PARAM:
        return parse_field(p);
    case FE_TOK_REDUCE:
        return parse_reduce(p);
    case FE_TOK_LBRACKET:
        return parse_shape(p);
    case FE_TOK_LPAREN:
        fe_next(p);
        e = fe_parse_expr(p);
        if (fe_at(p, FE_TOK_COMMA))
            e = parse_list(p, t->span, e);
        fe_expect_close(p, FE_TOK_RPAREN, t->span, "to close the parenthesis");
        return e;
    case FE_TOK_BAD:
        p->panic = true;
        return bad_expr(p);
    case FE_TOK_IF:
        fe_label(p->c, fe_fail(p, FE_E0102, t->span, "expected a value, found 'if'"),
                 "select(condition, a, b) chooses between two values");
        return bad_expr(p);
    default:
        no_value(p, t);
        return bad_expr(p);
    }
}

/* x[i] */
static void no_elements(fe_parser *p, const fe_expr *e, const fe_token *bracket) {
    base_diag *d = fe_fail(p, FE_E0814, bracket->span, "taking elements with [...] is not supported yet");
    for (size_t i = 0; e->kind == FE_EXPR_NAME && i < p->decl->n_params && p->decl->kind == FE_TOK_KERNEL; i++) {
        const fe_param *q = &p->decl->params[i];
        if (q->name != e->name || q->role == FE_TOK_PARAM)
            continue;
        fe_label(p->c, d, "each edge reads its own: write %s.%s", q->role == FE_TOK_NODE ? "src" : fe_tok_text(q->role),
                 e->name->text);
        return;
    }
    fe_label(p->c, d, "write slice(x, 0, 1), or gather(x, i, axis = 0)");
}

static fe_expr *parse_postfix(fe_parser *p) {
    fe_expr *e = parse_primary(p);
    while (!p->panic && !fe_peek(p, 0)->newline) {
        const fe_token *t = fe_peek(p, 0);
        if (t->kind == FE_TOK_LBRACKET) {
            no_elements(p, e, t);
        } else if (t->kind == FE_TOK_DOT) {
            fe_next(p);
            fe_expr *m = new_expr(p, FE_EXPR_MEMBER, e->span);
            m->a = e;
            grow(p, m, e);
            if (fe_at(p, FE_TOK_SRC) || fe_at(p, FE_TOK_DST) ||
                fe_at(p, FE_TOK_EDGE)) { /* g.dst, a better error later */
                const char *word = fe_tok_text(fe_peek(p, 0)->kind);
                m->name_span = fe_next(p)->span;
                m->name = fe_intern(p->c, word, strlen(word));
            } else {
                m->name = fe_expect_name(p, "a name after '.'", &m->name_span);
            }
            m->span.end = m->name ? m->name_span.end : t->span.end;
            e = m;
        } else {
            break;
        }
    }
    return e;
}

/* ---- operators --------------------------------------------------------------------------------------------------- */
enum { LEVEL_OR = 1, LEVEL_AND, LEVEL_NOT, LEVEL_COMPARE, LEVEL_ADD, LEVEL_MUL, LEVEL_MINUS, LEVEL_POWER };

static int level_of(fe_tok_kind k) {
    switch ((int)k) {
    case FE_TOK_OR:
        return LEVEL_OR;
    case FE_TOK_AND:
        return LEVEL_AND;
    case FE_TOK_EQ:
    case FE_TOK_NE:
    case FE_TOK_LT:
    case FE_TOK_LE:
    case FE_TOK_GT:
    case FE_TOK_GE:
        return LEVEL_COMPARE;
    case FE_TOK_PLUS:
    case FE_TOK_MINUS:
        return LEVEL_ADD;
    case FE_TOK_STAR:
    case FE_TOK_SLASH:
    case FE_TOK_PERCENT:
    case FE_TOK_AT:
        return LEVEL_MUL;
    case FE_TOK_CARET:
        return LEVEL_POWER;
    default:
        return 0;
    }
}

static fe_expr *parse_unary(fe_parser *p) {
    const fe_token *t = fe_peek(p, 0);
    if (t->kind != FE_TOK_MINUS && t->kind != FE_TOK_NOT && t->kind != FE_TOK_PLUS)
        return parse_postfix(p);
    fe_next(p);
    if (t->kind == FE_TOK_PLUS) {
        fe_fail(p, FE_E0102, t->span, "there is no unary '+'");
        return bad_expr(p);
    }
    fe_expr *e = new_expr(p, FE_EXPR_UNARY, t->span);
    e->op = t->kind;
    e->name_span = t->span;
    e->a = parse_binary(p, t->kind == FE_TOK_MINUS ? LEVEL_MINUS : LEVEL_NOT);
    e->lit = t->kind == FE_TOK_MINUS ? e->a->lit : FE_LIT_NO;
    e->span.end = e->a->span.end;
    grow(p, e, e->a);
    return e;
}

static fe_expr *join(fe_parser *p, const fe_token *op, fe_expr *a, fe_expr *b) {
    fe_expr *e = new_expr(p, FE_EXPR_BINARY, (base_span){a->span.begin, b->span.end});
    e->op = op->kind;
    e->name_span = op->span;
    e->a = a;
    e->b = b;
    if (level_of(op->kind) >= LEVEL_ADD)
        e->lit = wider(a->lit, b->lit);
    grow(p, e, a);
    grow(p, e, b);
    return e;
}

static void chained(fe_parser *p, const fe_token *op) {
    fe_label(p->c, fe_fail(p, FE_E0105, op->span, "comparisons do not chain"), "write 'a < b and b < c'");
}

static fe_expr *parse_binary(fe_parser *p, int least) {
    if (p->depth >= FE_MAX_NESTING) {
        if (!p->panic)
            fe_fail(p, FE_E0104, fe_peek(p, 0)->span, "an expression nested more than %d deep", FE_MAX_NESTING);
        return bad_expr(p);
    }
    p->depth++;
    fe_expr *e = parse_unary(p);
    bool compared = false;
    while (!p->panic) {
        const fe_token *op = fe_peek(p, 0);
        int level = level_of(op->kind);
        if (!level || level < least)
            break;
        if (level == LEVEL_COMPARE && compared) {
            chained(p, op);
            break;
        }
        compared = level == LEVEL_COMPARE;
        fe_next(p);
        /* ^ is right associative and takes a minus on its right: 2 ^ -1 */
        e = join(p, op, e, parse_binary(p, level == LEVEL_POWER ? LEVEL_MINUS : level + 1));
    }
    p->depth--;
    return e;
}

fe_expr *fe_parse_expr(fe_parser *p) { return parse_binary(p, LEVEL_OR); }
