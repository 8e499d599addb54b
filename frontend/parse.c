/* Tokens to declarations and statements; parse_expr.c has the expressions.
 *
 * Recovery: the first error of a statement sets `panic`, everything returns, and the statement skips to where the next
 * one can begin.  An error in a head skips to the body.  A declaration with an error is kept, marked `bad`, so that
 * its name is known and its uses are silent. */
#include "frontend/fe.h"

#include <string.h>

/* ---- tokens ------------------------------------------------------------------------------------------------------ */
const fe_token *fe_peek(const fe_parser *p, size_t ahead) {
    size_t at = p->at + ahead, last = p->c->n_tokens - 1;
    return &p->c->tokens[at < last ? at : last];
}

bool fe_at(const fe_parser *p, fe_tok_kind k) { return fe_peek(p, 0)->kind == k; }

const fe_token *fe_next(fe_parser *p) {
    const fe_token *t = fe_peek(p, 0);
    if (t->kind == FE_TOK_LPAREN || t->kind == FE_TOK_LBRACKET)
        p->brackets++;
    else if ((t->kind == FE_TOK_RPAREN || t->kind == FE_TOK_RBRACKET) && p->brackets)
        p->brackets--;
    if (t->kind != FE_TOK_EOF)
        p->at++;
    return t;
}

bool fe_take(fe_parser *p, fe_tok_kind k) {
    if (p->panic || !fe_at(p, k))
        return false;
    fe_next(p);
    return true;
}

base_diag *fe_fail(fe_parser *p, fe_error_id id, base_span span, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    base_diag *d = fe_vreport(p->c, id, span, fmt, ap);
    va_end(ap);
    p->panic = true;
    return d;
}

/* How the next token is called in "found ...". */
static const char *found(fe_parser *p) {
    const fe_token *t = fe_peek(p, 0);
    switch ((int)t->kind) {
    case FE_TOK_EOF:
        return "the end of the file";
    case FE_TOK_NAME:
        return base_arena_printf(p->c->arena, "'%s'", t->name->text);
    case FE_TOK_INT:
    case FE_TOK_FLOAT:
    case FE_TOK_IMAGINARY:
        return "a number";
    default:
        return base_arena_printf(p->c->arena, "'%s'", fe_tok_text(t->kind));
    }
}

bool fe_expect(fe_parser *p, fe_tok_kind k, const char *what) {
    if (p->panic)
        return false;
    if (fe_take(p, k))
        return true;
    if (fe_at(p, FE_TOK_BAD)) { /* reported by the lexer */
        p->panic = true;
        return false;
    }
    fe_fail(p, FE_E0102, fe_peek(p, 0)->span, "expected '%s'%s%s, found %s", fe_tok_text(k), what ? " " : "",
            what ? what : "", found(p));
    return false;
}

/* Behind the token before, where something is missing at the end of a line. */
static base_span behind(const fe_parser *p) {
    uint32_t end = p->at ? p->c->tokens[p->at - 1].span.end : 0;
    return (base_span){end, end + 1};
}

/* `a // b` is not a quotient. */
static bool comment_follows(const fe_parser *p) {
    const char *s = p->c->source + behind(p).begin;
    while (*s == ' ' || *s == '\t')
        s++;
    return s[0] == '/' && s[1] == '/';
}

void fe_expect_close(fe_parser *p, fe_tok_kind k, base_span open, const char *what) {
    const fe_token *t = fe_peek(p, 0);
    if (p->panic || t->kind == k || t->kind == FE_TOK_BAD) {
        fe_expect(p, k, what);
        return;
    }
    base_diag *d = fe_fail(p, FE_E0102, t->newline ? behind(p) : t->span, "expected '%s' %s, found %s", fe_tok_text(k),
                           what, t->newline && t->kind != FE_TOK_EOF ? "the end of the line" : found(p));
    if (t->kind == FE_TOK_ASSIGN)
        fe_label(p->c, d, "equality is '=='");
    else if (t->kind == FE_TOK_LPAREN)
        fe_label(p->c, d, "a function stands before its arguments: sum(x), not x.sum()");
    else if (t->newline && comment_follows(p))
        fe_label(p->c, d, "// begins a comment; integers are divided by div(a, b)");
    if (t->newline)
        fe_note_at(p->c, d, open, "the bracket is opened here");
}

fe_name *fe_expect_name(fe_parser *p, const char *what, base_span *span) {
    const fe_token *t = fe_peek(p, 0);
    if (p->panic)
        return NULL;
    if (t->kind == FE_TOK_NAME) {
        fe_next(p);
        if (span)
            *span = t->span;
        return t->name;
    }
    if (t->kind == FE_TOK_BAD)
        p->panic = true;
    else if (t->kind >= FE_TOK_KERNEL && t->kind <= FE_TOK_PARAM)
        fe_label(p->c, fe_fail(p, FE_E0102, t->span, "expected %s, found %s", what, found(p)), "is a keyword");
    else
        fe_fail(p, FE_E0102, t->span, "expected %s, found %s", what, found(p));
    return NULL;
}

static const fe_tok_kind DECLS[] = {FE_TOK_KERNEL, FE_TOK_PROGRAM, FE_TOK_FN, FE_TOK_REDUCER, FE_TOK_EXPORT};
enum { N_DECLS = sizeof DECLS / sizeof DECLS[0] };

static bool begins_decl(fe_tok_kind k) {
    bool found = false;
    for (int i = 0; i < N_DECLS; i++)
        found |= DECLS[i] == k;
    return found;
}

/* "kernel, program, fn, reducer or export" */
static const char *decl_words(fe_parser *p) {
    const char *text = "";
    for (int i = 0; i < N_DECLS; i++)
        text = base_arena_printf(p->c->arena, "%s%s%s", text,
                                 i == 0             ? ""
                                 : i == N_DECLS - 1 ? " or "
                                                    : ", ",
                                 fe_tok_text(DECLS[i]));
    return text;
}

static bool at_decl(const fe_parser *p) {
    const fe_token *t = fe_peek(p, 0);
    return t->kind == FE_TOK_EOF || (t->newline && begins_decl(t->kind));
}

/* ---- types ------------------------------------------------------------------------------------------------------- */
static bool const_dim(fe_parser *p, fe_dim *d) {
    const fe_token *t = fe_next(p);
    d->kind = FE_DIM_CONST;
    d->span = t->span;
    for (uint32_t i = t->span.begin; i < t->span.end; i++) {
        d->value = d->value * 10 + (p->c->source[i] - '0');
        if (d->value > INT32_MAX)
            break;
    }
    if (d->value >= 1 && d->value <= INT32_MAX)
        return true;
    fe_fail(p, FE_E0216, t->span, "a fixed dimension is at least 1 and at most %d", INT32_MAX);
    return false;
}

static bool named_dim(fe_parser *p, fe_dim *d) {
    d->name = fe_expect_name(p, "a dimension (a name or a number)", &d->span);
    if (!d->name || !fe_take(p, FE_TOK_DOT))
        return d->name != NULL;
    base_span member;
    d->kind = FE_DIM_GRAPH;
    if (fe_at(p, FE_TOK_SRC) || fe_at(p, FE_TOK_DST) || fe_at(p, FE_TOK_EDGE)) {
        const fe_token *w = fe_next(p);
        member = w->span;
        d->member = fe_intern(p->c, fe_tok_text(w->kind), strlen(fe_tok_text(w->kind)));
    } else {
        d->member = fe_expect_name(p, "'dst', 'src' or 'edge'", &member);
    }
    if (d->member)
        d->span.end = member.end;
    return d->member != NULL;
}

static bool one_dim(fe_parser *p, fe_dim *d) {
    *d = (fe_dim){.kind = FE_DIM_NAME};
    return fe_at(p, FE_TOK_INT) ? const_dim(p, d) : named_dim(p, d);
}

/* D + K, 2 * F: * first, then from the left */
static bool joined_dim(fe_parser *p, fe_dim *d, bool product) {
    if (!(product ? one_dim(p, d) : joined_dim(p, d, true)))
        return false;
    for (;;) {
        fe_tok_kind op = fe_peek(p, 0)->kind;
        if (product ? op != FE_TOK_STAR : op != FE_TOK_PLUS && op != FE_TOK_MINUS)
            return true;
        fe_next(p);
        fe_dim *left = base_arena_alloc(p->c->arena, sizeof *left),
               *right = base_arena_alloc(p->c->arena, sizeof *right);
        *left = *d;
        if (!(product ? one_dim(p, right) : joined_dim(p, right, true)))
            return false;
        *d = (fe_dim){.kind = FE_DIM_SUM, .left = left, .right = right, .op = op};
        d->span = (base_span){left->span.begin, right->span.end};
    }
}

static void parse_dim(fe_parser *p, fe_type *t) {
    fe_dim d;
    if (joined_dim(p, &d, false))
        base_push(p->c->arena, t->dims, t->n, t->cap, d);
}

void fe_parse_dims(fe_parser *p, fe_type *t) {
    do {
        if (fe_at(p, FE_TOK_RBRACKET) && t->n)
            break;
        parse_dim(p, t);
    } while (fe_take(p, FE_TOK_COMMA));
    t->span.end = fe_peek(p, 0)->span.end;
    fe_expect(p, FE_TOK_RBRACKET, "after the dimensions");
}

void fe_parse_type(fe_parser *p, fe_type *t) {
    t->dtype = fe_expect_name(p, "a type", &t->dtype_span);
    t->span = t->dtype_span;
    if (t->dtype && fe_take(p, FE_TOK_LBRACKET))
        fe_parse_dims(p, t);
}

/* ---- heads ------------------------------------------------------------------------------------------------------- */
static void parse_symbols(fe_parser *p, fe_decl *d) {
    if (!fe_take(p, FE_TOK_LBRACKET))
        return;
    do {
        if (fe_at(p, FE_TOK_RBRACKET) && d->n_syms)
            break;
        fe_symbol s;
        s.name = fe_expect_name(p, "the name of a dimension", &s.span);
        if (s.name)
            base_push(p->c->arena, d->syms, d->n_syms, d->cap_syms, s);
    } while (fe_take(p, FE_TOK_COMMA));
    fe_expect(p, FE_TOK_RBRACKET, "after the dimensions");
}

static bool is_role(fe_tok_kind k) { return k >= FE_TOK_SRC && k <= FE_TOK_PARAM; }

static bool is_dtype(const fe_name *name) {
    ir_dtype t;
    return ir_dtype_from_text(name->text, strlen(name->text), &t);
}

/* A name without ':' and a type. */
static void no_type(fe_parser *p, const fe_decl *d, const fe_param *q) {
    const fe_token *t = fe_peek(p, 0);
    const char *role = d->kind == FE_TOK_KERNEL ? base_arena_printf(p->c->arena, "%s ", fe_tok_text(q->role)) : "";
    base_diag *e = fe_fail(p, FE_E0102, t->span, "expected ':' and the type, found %s", found(p));
    if (is_dtype(q->name) && t->kind == FE_TOK_NAME)
        fe_label(p->c, e, "the name comes first: %s%s: %s", role, t->name->text, q->name->text);
    else
        fe_label(p->c, e, "write %s%s: %s", role, q->name->text,
                 d->kind == FE_TOK_FN ? "T, any one type, or f32" : "f32 or f32[F]");
}

static void parse_param(fe_parser *p, fe_decl *d) {
    fe_param q = {.role = FE_TOK_PARAM};
    const fe_token *t = fe_peek(p, 0);
    if (d->kind == FE_TOK_KERNEL) {
        if (is_role(t->kind)) {
            q.role = fe_next(p)->kind;
        } else if (t->kind == FE_TOK_NAME) {
            const fe_token *next = fe_peek(p, 1);
            base_diag *e = fe_fail(p, FE_E0109, t->span, "a field begins with its role");
            if (is_dtype(t->name) && next->kind == FE_TOK_NAME)
                fe_label(p->c, e, "write src %s: %s (or dst, node, edge, param)", next->name->text, t->name->text);
            else if (next->kind == FE_TOK_COLON && fe_peek(p, 2)->kind == FE_TOK_NAME &&
                     strcmp(fe_peek(p, 2)->name->text, "graph") == 0)
                fe_label(p->c, e, "leave '%s' out: a kernel works on the graph that it is called with", t->name->text);
            else
                fe_label(p->c, e, "write src, dst, node, edge or param before '%s'", t->name->text);
            return;
        }
    } else if (is_role(t->kind)) {
        base_diag *e = fe_fail(p, FE_E0109, t->span, "only the fields of a kernel have roles");
        fe_label(p->c, e, "leave '%s' out", fe_tok_text(t->kind));
        return;
    }
    q.name =
        fe_expect_name(p, d->kind == FE_TOK_KERNEL && is_role(t->kind) ? "the field's name" : "a parameter", &q.span);
    if (q.name && !fe_at(p, FE_TOK_COLON) && !fe_at(p, FE_TOK_BAD))
        no_type(p, d, &q);
    if (!q.name || !fe_expect(p, FE_TOK_COLON, "and the type"))
        return;
    const fe_token *type = fe_peek(p, 0);
    if (type->kind == FE_TOK_NAME && strcmp(type->name->text, "graph") == 0) {
        fe_next(p);
        q.is_graph = true;
        q.type.span = type->span;
        if (d->kind != FE_TOK_PROGRAM)
            fe_label(p->c, fe_fail(p, FE_E0222, type->span, "only a program has a graph among its parameters"),
                     d->kind == FE_TOK_KERNEL ? "a kernel works on the graph it is called with" : "not here");
    } else {
        fe_parse_type(p, &q.type);
    }
    if (!p->panic)
        base_push(p->c->arena, d->params, d->n_params, d->cap_params, q);
}

static void parse_params(fe_parser *p, fe_decl *d) {
    if (!p->panic && fe_at(p, FE_TOK_LT))
        fe_label(p->c, fe_fail(p, FE_E0102, fe_peek(p, 0)->span, "expected '(' and the parameters, found '<'"),
                 "dimensions stand in brackets: %s %s[F](...)", fe_tok_text(d->kind), d->name->text);
    if (!fe_expect(p, FE_TOK_LPAREN, "and the parameters"))
        return;
    while (!p->panic && !fe_at(p, FE_TOK_RPAREN)) {
        parse_param(p, d);
        if (!fe_take(p, FE_TOK_COMMA))
            break;
    }
    if (!p->panic && (fe_at(p, FE_TOK_LPAREN) || fe_at(p, FE_TOK_LBRACKET)) && d->n_params)
        fe_label(
            p->c,
            fe_fail(p, FE_E0102, fe_peek(p, 0)->span, "expected ')' or ',' after the parameter, found %s", found(p)),
            "a shape stands in one pair of brackets: f32[F, G]");
    fe_expect(p, FE_TOK_RPAREN, "or ',' after the parameter");
}

static void parse_one_result(fe_parser *p, fe_decl *d, bool named, bool edge) {
    fe_result r = {.edge = edge, .span = fe_peek(p, 0)->span};
    if (named) {
        r.name = fe_expect_name(p, "the name of a result", &r.span);
        if (r.name && !fe_at(p, FE_TOK_COLON))
            fe_label(p->c, fe_fail(p, FE_E0102, r.span, "expected the name of a result and ':', found %s", found(p)),
                     fe_at(p, FE_TOK_RPAREN) ? "a single result without a name stands without (...)"
                                             : "each of several results has a name: -> (total: f32, n: i64)");
        fe_expect(p, FE_TOK_COLON, "and the type");
    }
    if (fe_take(p, FE_TOK_EDGE))
        r.edge = true;
    fe_parse_type(p, &r.type);
    if (!r.name)
        r.span = r.type.span;
    if (!p->panic)
        base_push(p->c->arena, d->results, d->n_results, d->cap_results, r);
}

static void parse_results(fe_parser *p, fe_decl *d) {
    if (!p->panic && !fe_at(p, FE_TOK_ARROW) && !fe_at(p, FE_TOK_BAD))
        fe_label(
            p->c,
            fe_fail(p, FE_E0102, fe_peek(p, 0)->span, "expected '->' and the type of the result, found %s", found(p)),
            p->decl->kind == FE_TOK_KERNEL ? "write -> f32 for one number per row" : "write -> f32, for example");
    if (!fe_expect(p, FE_TOK_ARROW, "and the type of the result"))
        return;
    bool edge = fe_take(p, FE_TOK_EDGE);
    if (!fe_take(p, FE_TOK_LPAREN)) {
        parse_one_result(p, d, false, edge);
        return;
    }
    do {
        if (fe_at(p, FE_TOK_RPAREN) && d->n_results)
            break;
        parse_one_result(p, d, true, edge);
    } while (fe_take(p, FE_TOK_COMMA));
    fe_expect(p, FE_TOK_RPAREN, "or ',' after the result");
}

/* The head on one line: tokens with one space where the text had any, none inside brackets. */
static const char *signature_of(fe_parser *p, size_t from, size_t to) {
    const fe_token *t = p->c->tokens;
    size_t n = 1;
    for (size_t i = from; i < to; i++)
        n += t[i].span.end - t[i].span.begin + 1;
    char *text = base_arena_alloc(p->c->arena, n), *at = text;
    for (size_t i = from; i < to; i++) {
        bool gap = i > from && t[i].span.begin > t[i - 1].span.end;
        bool tight =
            i > from && (t[i - 1].kind == FE_TOK_LPAREN || t[i - 1].kind == FE_TOK_LBRACKET ||
                         t[i].kind == FE_TOK_RPAREN || t[i].kind == FE_TOK_RBRACKET || t[i].kind == FE_TOK_COMMA);
        if (t[i].kind == FE_TOK_COMMA && i + 1 < to &&
            (t[i + 1].kind == FE_TOK_RPAREN || t[i + 1].kind == FE_TOK_RBRACKET))
            continue; /* a trailing comma */
        if (gap && !tight)
            *at++ = ' ';
        memcpy(at, p->c->source + t[i].span.begin, t[i].span.end - t[i].span.begin);
        at += t[i].span.end - t[i].span.begin;
    }
    return text;
}

/* ---- statements -------------------------------------------------------------------------------------------------- */
static bool begins_stmt(const fe_parser *p) {
    const fe_token *t = fe_peek(p, 0);
    switch ((int)t->kind) {
    case FE_TOK_LET:
    case FE_TOK_VAR:
    case FE_TOK_RETURN:
    case FE_TOK_REPEAT:
    case FE_TOK_WHILE:
    case FE_TOK_IF:
        return true;
    case FE_TOK_NAME:
        return p->brackets == 0 && fe_peek(p, 1)->kind == FE_TOK_ASSIGN;
    default:
        return false;
    }
}

/* Skips what is left of a broken statement, braces inside it included. */
static void recover_stmt(fe_parser *p, size_t begin) {
    size_t braces = 0;
    while (!at_decl(p)) {
        const fe_token *t = fe_peek(p, 0);
        if (braces == 0 && (t->kind == FE_TOK_RBRACE || (t->newline && p->at > begin && begins_stmt(p))))
            break;
        if (t->kind == FE_TOK_LBRACE)
            braces++;
        else if (t->kind == FE_TOK_RBRACE)
            braces--;
        fe_next(p);
    }
    p->panic = false;
    p->brackets = 0;
}

/* A word that was meant to be a keyword. */
static const char *near_keyword(const char *text, fe_tok_kind from, fe_tok_kind to) {
    fe_nearest near = {.wanted = text};
    for (int k = (int)from; k <= (int)to; k++)
        fe_nearest_try(&near, fe_tok_text((fe_tok_kind)k));
    return fe_nearest_get(&near);
}

static void label_end(fe_parser *p, base_diag *d) {
    const fe_token *t = fe_peek(p, 0), *last = p->at ? &p->c->tokens[p->at - 1] : t;
    const char *near = t->kind == FE_TOK_NAME && last->kind == FE_TOK_NAME
                           ? near_keyword(last->name->text, FE_TOK_REDUCE, FE_TOK_NOT)
                           : NULL;
    if (t->kind == FE_TOK_COMMA)
        fe_label(p->c, d, "several results have names: return (a = ..., b = ...)");
    else if (near)
        fe_label(p->c, d, "did you mean '%s %s'?", near, t->name->text);
    else if (t->kind == FE_TOK_NAME && fe_word_advice(FE_WORD_STMT, t->name->text))
        fe_label(p->c, d, "%s", fe_word_advice(FE_WORD_STMT, t->name->text));
}

/* Where a statement should begin. */
static void no_stmt(fe_parser *p) {
    const fe_token *t = fe_peek(p, 0), *next = fe_peek(p, 1);
    base_diag *d = fe_fail(p, FE_E0102, t->span, "expected a statement, found %s", found(p));
    if (t->kind == FE_TOK_SLASH && next->kind == FE_TOK_STAR)
        fe_label(p->c, d, "a comment begins with //");
    if (t->kind != FE_TOK_NAME)
        return;
    const char *name = t->name->text, *advice = fe_word_advice(FE_WORD_STMT, name),
               *near = near_keyword(name, FE_TOK_LET, FE_TOK_ELSE);
    bool updates = next->kind >= FE_TOK_PLUS && next->kind <= FE_TOK_SLASH && fe_peek(p, 2)->kind == FE_TOK_ASSIGN;
    if (updates)
        fe_label(p->c, d, "write %s = %s %s ...", name, name, fe_tok_text(next->kind));
    else if (advice)
        fe_label(p->c, d, "%s", advice);
    else if (near)
        fe_label(p->c, d, "did you mean '%s'?", near);
    else
        fe_label(p->c, d, "write let name = ..., or return ...");
}

void fe_end_of_stmt(fe_parser *p) {
    const fe_token *t = fe_peek(p, 0);
    if (p->panic || t->newline || t->kind == FE_TOK_RBRACE || t->kind == FE_TOK_EOF)
        return;
    if (t->kind == FE_TOK_BAD)
        p->panic = true;
    else if (t->kind == FE_TOK_ASSIGN)
        fe_label(p->c, fe_fail(p, FE_E0102, t->span, "expected the end of the statement, found '='"),
                 "only a name can be assigned; equality is '=='");
    else
        label_end(p, fe_fail(p, FE_E0102, t->span, "expected the end of the statement, found %s", found(p)));
}

static void parse_block(fe_parser *p, fe_block *b, unsigned depth);

static void parse_return(fe_parser *p, fe_stmt *s) {
    bool named = fe_at(p, FE_TOK_LPAREN) && fe_peek(p, 1)->kind == FE_TOK_NAME && fe_peek(p, 2)->kind == FE_TOK_ASSIGN;
    if (!named) {
        if (fe_peek(p, 0)->newline || fe_at(p, FE_TOK_RBRACE)) {
            fe_fail(p, FE_E0102, s->span, "return needs a value");
            return;
        }
        s->value = fe_parse_expr(p);
        return;
    }
    fe_next(p);
    do {
        if (fe_at(p, FE_TOK_RPAREN))
            break;
        fe_arg a = {0};
        a.name = fe_expect_name(p, "the name of a result", &a.name_span);
        if (!fe_expect(p, FE_TOK_ASSIGN, "and its value"))
            return;
        a.value = fe_parse_expr(p);
        base_push(p->c->arena, s->returns, s->n_returns, s->cap_returns, a);
    } while (fe_take(p, FE_TOK_COMMA));
    fe_expect(p, FE_TOK_RPAREN, "or ',' after the value");
}

static void parse_inner(fe_parser *p, const fe_stmt *s, fe_block *b, unsigned depth) {
    if (fe_at(p, FE_TOK_LBRACE) && depth >= FE_MAX_NESTING / 4)
        fe_fail(p, FE_E0104, s->span, "more than %d blocks inside one another", FE_MAX_NESTING / 4);
    if (!p->panic)
        parse_block(p, b, depth);
}

static void parse_while(fe_parser *p, fe_stmt *s, unsigned depth) {
    s->value = fe_parse_expr(p);
    const fe_token *t = fe_peek(p, 0);
    if (!p->panic && (t->kind != FE_TOK_NAME || strcmp(t->name->text, "max") != 0)) {
        fe_label(p->c, fe_fail(p, FE_E0102, t->span, "expected 'max' and the most rounds, found %s", found(p)),
                 "write: while condition max 100 { ... }");
        return;
    }
    fe_next(p);
    s->limit = fe_parse_expr(p);
    parse_inner(p, s, &s->body, depth + 1);
}

static fe_stmt *parse_stmt(fe_parser *p, unsigned depth);

/* An `else if` is an else with one statement.  In IR an if is two regions deep. */
static void parse_if(fe_parser *p, fe_stmt *s, unsigned depth) {
    s->value = fe_parse_expr(p);
    parse_inner(p, s, &s->body, depth + 2);
    if (!fe_take(p, FE_TOK_ELSE))
        return;
    if (!fe_at(p, FE_TOK_IF)) {
        parse_inner(p, s, &s->other, depth + 2);
        return;
    }
    if (depth >= FE_MAX_NESTING / 4)
        fe_fail(p, FE_E0104, s->span, "more than %d blocks inside one another", FE_MAX_NESTING / 4);
    fe_stmt *next = p->panic ? NULL : parse_stmt(p, depth + 2);
    if (!p->panic)
        base_push(p->c->arena, s->other.items, s->other.n, s->other.cap, next);
}

/* let (a, b) = ... */
static void parse_names(fe_parser *p, fe_stmt *s) {
    fe_next(p);
    do {
        fe_symbol n;
        if (fe_at(p, FE_TOK_RPAREN) && s->n_names)
            break;
        n.name = fe_expect_name(p, "a name", &n.span);
        if (!n.name)
            return;
        base_push(p->c->arena, s->names, s->n_names, s->cap_names, n);
    } while (fe_take(p, FE_TOK_COMMA));
    s->name_span = (base_span){s->span.begin, fe_peek(p, 0)->span.end};
    fe_expect(p, FE_TOK_RPAREN, "or ',' after the name");
}

static fe_name *parse_let_name(fe_parser *p, fe_stmt *s) {
    bool list = s->kind == FE_STMT_VAR && fe_at(p, FE_TOK_LPAREN);
    fe_name *name = list ? NULL : fe_expect_name(p, "a name", &s->name_span);
    if (list || (name && fe_at(p, FE_TOK_COMMA)))
        fe_label(p->c, fe_fail(p, FE_E0102, fe_peek(p, 0)->span, "expected one name, found %s", found(p)),
                 "several results are named by let (a, b) = ...");
    return name;
}

static fe_stmt *parse_stmt(fe_parser *p, unsigned depth) {
    const fe_token *t = fe_peek(p, 0);
    fe_stmt *s = base_arena_alloc(p->c->arena, sizeof *s);
    s->span = t->span;
    switch ((int)t->kind) {
    case FE_TOK_LET:
    case FE_TOK_VAR:
        fe_next(p);
        s->kind = t->kind == FE_TOK_LET ? FE_STMT_LET : FE_STMT_VAR;
        if (s->kind == FE_STMT_LET && fe_at(p, FE_TOK_LPAREN))
            parse_names(p, s);
        else
            s->name = parse_let_name(p, s);
        if (s->name && fe_at(p, FE_TOK_COLON))
            fe_label(p->c, fe_fail(p, FE_E0102, fe_peek(p, 0)->span, "expected '=' and a value, found ':'"),
                     "the value says the type; a cast is f32(...)");
        if (fe_expect(p, FE_TOK_ASSIGN, "and a value"))
            s->value = fe_parse_expr(p);
        break;
    case FE_TOK_RETURN:
        fe_next(p);
        s->kind = FE_STMT_RETURN;
        parse_return(p, s);
        break;
    case FE_TOK_REPEAT:
        fe_next(p);
        s->kind = FE_STMT_REPEAT;
        s->value = fe_parse_expr(p);
        parse_inner(p, s, &s->body, depth + 1);
        break;
    case FE_TOK_WHILE:
        fe_next(p);
        s->kind = FE_STMT_WHILE;
        parse_while(p, s, depth);
        break;
    case FE_TOK_IF:
        fe_next(p);
        s->kind = FE_STMT_IF;
        parse_if(p, s, depth);
        break;
    case FE_TOK_NAME:
        if (fe_peek(p, 1)->kind == FE_TOK_ASSIGN) {
            s->kind = FE_STMT_ASSIGN;
            s->name = fe_expect_name(p, "a name", &s->name_span);
            fe_next(p);
            s->value = fe_parse_expr(p);
            break;
        }
        /* fall through */
    default:
        if (t->kind == FE_TOK_BAD)
            p->panic = true;
        else
            no_stmt(p);
    }
    fe_end_of_stmt(p);
    return s;
}

/* What is no body. */
static void no_body(fe_parser *p, const fe_token *t) {
    base_diag *d = fe_fail(p, FE_E0102, t->span, "expected '{' and the body, found %s", found(p));
    if (t->kind == FE_TOK_COLON || t->kind == FE_TOK_ASSIGN)
        fe_label(p->c, d, "a body stands in braces: { return ... }");
    else if (t->kind == FE_TOK_NAME && strcmp(t->name->text, "in") == 0)
        fe_label(p->c, d, "rounds have no number; write repeat n { ... }, and count with a var");
}

static void parse_block(fe_parser *p, fe_block *b, unsigned depth) {
    base_span open = fe_peek(p, 0)->span;
    if (!p->panic && !fe_at(p, FE_TOK_LBRACE) && !fe_at(p, FE_TOK_BAD))
        no_body(p, fe_peek(p, 0));
    if (!fe_expect(p, FE_TOK_LBRACE, "and the body"))
        return;
    p->brackets = 0;
    bool broken = false;
    while (!fe_at(p, FE_TOK_RBRACE) && !at_decl(p)) {
        size_t before = p->at;
        fe_stmt *s = parse_stmt(p, depth);
        if (!p->panic) {
            base_push(p->c->arena, b->items, b->n, b->cap, s);
            continue;
        }
        broken = true;
        recover_stmt(p, before);
        if (p->at == before && !fe_at(p, FE_TOK_RBRACE) && !at_decl(p))
            fe_next(p);
    }
    b->end = fe_peek(p, 0)->span;
    if (!fe_take(p, FE_TOK_RBRACE)) {
        base_diag *d = fe_report(p->c, FE_E0102, b->end, "expected '}', found %s", found(p));
        fe_note_at(p->c, d, open, "the body begins here");
        broken = true;
    }
    p->panic = broken;
}

/* ---- declarations ------------------------------------------------------------------------------------------------ */
/* After an error in a head: to its body, if it has one, or to the next declaration. */
static void recover_head(fe_parser *p) {
    while (!at_decl(p) && (!fe_at(p, FE_TOK_LBRACE) || p->decl->kind == FE_TOK_FN))
        fe_next(p);
    p->panic = false;
    p->brackets = 0;
}

static void parse_fn(fe_parser *p, fe_decl *d) {
    if (fe_at(p, FE_TOK_LBRACE))
        fe_label(p->c, fe_fail(p, FE_E0102, fe_peek(p, 0)->span, "expected '=', found '{'"),
                 "the body of a function is one expression: fn f(x: T) -> T = x * x");
    if (fe_expect(p, FE_TOK_ASSIGN, "and the value"))
        d->value = fe_parse_expr(p);
    fe_end_of_stmt(p);
}

static void register_decl(fe_context *c, fe_decl *d) {
    base_push(c->arena, c->decls, c->n_decls, c->cap_decls, d);
    const fe_func *f = d->kind == FE_TOK_FN || d->kind == FE_TOK_REDUCER ? NULL : fe_func_find(d->name->text);
    bool shared = f && (f->form == FE_FOLD || f->form == FE_PICK ||
                        f->form == FE_DOT); /* a call of a kernel begins with a graph */
    bool reducer = d->kind == FE_TOK_REDUCER && fe_reducer_find(d->name->text);
    if (reducer || (fe_is_builtin(d->name->text) && !shared)) {
        fe_report(c, FE_E0218, d->span, "'%s' is built in; choose another name", d->name->text);
        d->bad = true;
        return;
    }
    if (d->name->decl) {
        base_diag *e = fe_report(c, FE_E0205, d->span, "'%s' is defined twice", d->name->text);
        fe_note_at(c, e, d->name->decl->span, "the first is here");
        d->bad = true;
        return;
    }
    d->name->decl = d;
}

static void parse_decl(fe_parser *p) {
    size_t begin = p->at;
    fe_decl *d = base_arena_alloc(p->c->arena, sizeof *d);
    d->kind = fe_next(p)->kind;
    p->decl = d;
    const char *what = d->kind == FE_TOK_KERNEL    ? "the kernel's name"
                       : d->kind == FE_TOK_PROGRAM ? "the program's name"
                       : d->kind == FE_TOK_REDUCER ? "the reducer's name"
                                                   : "the function's name";
    d->name = fe_expect_name(p, what, &d->span);
    if (d->name) {
        if (d->kind != FE_TOK_FN)
            parse_symbols(p, d);
        parse_params(p, d);
        parse_results(p, d);
    }
    d->signature = signature_of(p, begin, p->at);
    if (p->panic) {
        d->bad = true;
        recover_head(p);
    } else if (d->kind == FE_TOK_FN || d->kind == FE_TOK_REDUCER) {
        if (d->kind == FE_TOK_FN)
            parse_fn(p, d);
        else
            fe_parse_reducer(p, d);
        d->bad |= p->panic;
    }
    if (d->kind != FE_TOK_FN && d->kind != FE_TOK_REDUCER && (fe_at(p, FE_TOK_LBRACE) || !d->bad)) {
        parse_block(p, &d->body, 0);
        d->bad |= p->panic;
    }
    d->first_token = begin;
    d->end_token = p->at;
    if (d->name)
        register_decl(p->c, d);
}

/* export vjp f(x, w): vjp is a word only here. */
static void parse_export(fe_parser *p) {
    fe_export e = {.span = fe_next(p)->span};
    base_span word;
    const fe_name *what = fe_expect_name(p, "'vjp'", &word);
    if (what && strcmp(what->text, "vjp") != 0)
        fe_label(p->c, fe_fail(p, FE_E0102, word, "expected 'vjp', found '%s'", what->text), "export vjp f(x, w)");
    e.name = p->panic ? NULL : fe_expect_name(p, "a kernel or a program", &e.name_span);
    if (e.name && !fe_at(p, FE_TOK_LPAREN))
        fe_label(p->c,
                 fe_fail(p, FE_E0102, e.name_span, "expected the parameters that get a gradient, found %s", found(p)),
                 "write export vjp %s(x, w)", e.name->text);
    if (!e.name || !fe_expect(p, FE_TOK_LPAREN, "and the parameters that get a gradient"))
        return;
    do {
        if (fe_at(p, FE_TOK_RPAREN) && e.n_wrt)
            break;
        fe_symbol s;
        s.name = fe_expect_name(p, "a parameter", &s.span);
        if (s.name)
            base_push(p->c->arena, e.wrt, e.n_wrt, e.cap_wrt, s);
    } while (fe_take(p, FE_TOK_COMMA));
    fe_expect(p, FE_TOK_RPAREN, "or ',' after the parameter");
    fe_end_of_stmt(p);
    if (!p->panic)
        base_push(p->c->arena, p->c->exports, p->c->n_exports, p->c->cap_exports, e);
}

static void no_decl(fe_parser *p) {
    const fe_token *t = fe_peek(p, 0);
    base_diag *d = fe_fail(p, FE_E0108, t->span, "expected %s, found %s", decl_words(p), found(p));
    if (t->kind != FE_TOK_NAME)
        return;
    const char *advice = fe_word_advice(FE_WORD_STMT, t->name->text),
               *near = near_keyword(t->name->text, FE_TOK_KERNEL, FE_TOK_EXPORT);
    if (advice || near)
        fe_label(p->c, d, advice ? "%s" : "did you mean '%s'?", advice ? advice : near);
}

static void parse_top(fe_parser *p) {
    const fe_token *t = fe_peek(p, 0);
    switch ((int)t->kind) {
    case FE_TOK_KERNEL:
    case FE_TOK_PROGRAM:
    case FE_TOK_FN:
    case FE_TOK_REDUCER:
        parse_decl(p);
        break;
    case FE_TOK_EXPORT:
        parse_export(p);
        break;
    case FE_TOK_BAD:
        break;
    default:
        no_decl(p);
    }
}

void fe_parse(fe_context *c) {
    fe_parser p = {.c = c};
    while (!fe_at(&p, FE_TOK_EOF)) {
        size_t before = p.at;
        bool decl = begins_decl(fe_peek(&p, 0)->kind);
        parse_top(&p);
        bool clean = decl && !p.panic && (at_decl(&p) || fe_peek(&p, 0)->newline);
        if (!clean && !p.panic && decl && p.at > before && !fe_at(&p, FE_TOK_BAD))
            fe_fail(&p, FE_E0102, fe_peek(&p, 0)->span, "expected a new line, found %s", found(&p));
        if (p.at == before)
            fe_next(&p);
        p.panic = false;
        p.brackets = 0;
        if (!clean)
            while (!at_decl(&p))
                fe_next(&p);
    }
}
