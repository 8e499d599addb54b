/* In which order the programs are lowered: what a program calls comes before it, so that what is wrong with the callee has
 * been said by then.  A program that calls itself, directly or through others, is an error. */
#include "frontend/fe.h"

#define MAX_CALLS_DEEP 100 /* programs that call programs that call ... */

typedef struct order {
    fe_context *c;
    unsigned depth;
} order;

static void visit(order *o, fe_decl *d);

static void scan_args(order *o, const fe_arg *args, size_t n, fe_decl *in);

static void scan_call(order *o, const fe_expr *e, fe_decl *in) {
    fe_decl *d = e->name->decl;
    if (!d || d->kind != FE_TOK_PROGRAM || d->bad)
        return;
    if (d->open) {
        fe_report(o->c, FE_E0312, e->name_span, "program '%s' calls itself%s", d->name->text,
                  d == in ? "" : " through other programs");
        in->bad = true;
    } else if (o->depth > MAX_CALLS_DEEP) {
        fe_report(o->c, FE_E0104, e->name_span, "programs that call one another more than %d deep", MAX_CALLS_DEEP);
        in->bad = true;
    } else {
        visit(o, d);
    }
}

static void scan_expr(order *o, const fe_expr *e, fe_decl *in) {
    if (!e)
        return;
    if (e->kind == FE_EXPR_CALL)
        scan_call(o, e, in);
    scan_expr(o, e->a, in);
    scan_expr(o, e->b, in);
    scan_args(o, e->args, e->n_args, in);
}

static void scan_args(order *o, const fe_arg *args, size_t n, fe_decl *in) {
    for (size_t i = 0; i < n; i++)
        scan_expr(o, args[i].value, in);
}

static void scan_block(order *o, const fe_block *b, fe_decl *in) {
    for (size_t i = 0; i < b->n; i++) {
        const fe_stmt *s = b->items[i];
        scan_expr(o, s->value, in);
        scan_expr(o, s->limit, in);
        scan_args(o, s->returns, s->n_returns, in);
        scan_block(o, &s->body, in);
        scan_block(o, &s->other, in);
    }
}

static void visit(order *o, fe_decl *d) {
    if (d->ordered)
        return;
    d->open = true;
    o->depth++;
    scan_block(o, &d->body, d);
    o->depth--;
    d->open = false;
    d->ordered = true;
    base_push(o->c->arena, o->c->programs, o->c->n_programs, o->c->cap_programs, d);
}

void fe_order_programs(fe_context *c) {
    order o = {.c = c};
    for (size_t i = 0; i < c->n_decls; i++)
        if (c->decls[i]->kind == FE_TOK_PROGRAM && !c->decls[i]->bad)
            visit(&o, c->decls[i]);
}
