/* The body of a reducer: state, lift, combine, finalize, each once and in this order; `commutative` may stand before the
 * closing brace.  The four words are names everywhere else. */
#include "frontend/fe.h"

#include <string.h>

static bool at_word(const fe_parser *p, const char *word) {
    const fe_token *t = fe_peek(p, 0);
    return t->kind == FE_TOK_NAME && strcmp(t->name->text, word) == 0;
}

static bool take_word(fe_parser *p, const char *word, base_span *span) {
    if (p->panic)
        return false;
    *span = fe_peek(p, 0)->span;
    if (at_word(p, word)) {
        fe_next(p);
        return true;
    }
    fe_label(p->c, fe_fail(p, FE_E0102, *span, "expected '%s'", word),
             "a reducer has state, lift, combine and finalize, in this order");
    return false;
}

static void parse_state(fe_parser *p, fe_reducer_body *r) {
    do {
        fe_state s = {0};
        s.name = fe_expect_name(p, "the name of a state", &s.span);
        if (!s.name || !fe_expect(p, FE_TOK_COLON, "and the type"))
            return;
        fe_parse_type(p, &s.type);
        if (!fe_expect(p, FE_TOK_ASSIGN, "and the value it starts with"))
            return;
        s.start = fe_parse_expr(p);
        base_push(p->c->arena, r->states, r->n_states, r->cap_states, s);
    } while (fe_take(p, FE_TOK_COMMA));
}

/* (x, y, z), or one value without brackets */
static void parse_values(fe_parser *p, fe_values *v) {
    if (!fe_at(p, FE_TOK_LPAREN)) {
        base_push(p->c->arena, v->items, v->n, v->cap, fe_parse_expr(p));
        return;
    }
    fe_next(p);
    do {
        if (fe_at(p, FE_TOK_RPAREN) && v->n)
            break;
        base_push(p->c->arena, v->items, v->n, v->cap, fe_parse_expr(p));
    } while (fe_take(p, FE_TOK_COMMA));
    fe_expect(p, FE_TOK_RPAREN, "or ',' after the value");
}

static void parse_clauses(fe_parser *p, fe_reducer_body *r) {
    base_span span;
    if (take_word(p, "state", &span))
        parse_state(p, r);
    fe_end_of_stmt(p);
    if (take_word(p, "lift", &r->lift.span))
        parse_values(p, &r->lift);
    fe_end_of_stmt(p);
    if (take_word(p, "combine", &r->combine.span))
        parse_values(p, &r->combine);
    fe_end_of_stmt(p);
    if (take_word(p, "finalize", &span))
        r->finalize = fe_parse_expr(p);
    fe_end_of_stmt(p);
    r->commutative = !p->panic && at_word(p, "commutative");
    if (r->commutative)
        fe_next(p);
}

void fe_parse_reducer(fe_parser *p, fe_decl *d) {
    d->reducer = base_arena_alloc(p->c->arena, sizeof *d->reducer);
    if (!fe_expect(p, FE_TOK_LBRACE, "and the body"))
        return;
    parse_clauses(p, d->reducer);
    if (!p->panic)
        fe_expect(p, FE_TOK_RBRACE, "after the reducer");
}
