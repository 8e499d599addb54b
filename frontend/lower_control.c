/* repeat, while and if in programs.
 *
 * Variables from outside that a body assigns become values carried by the operation: its region's arguments and what it
 * yields for a loop, what both arms yield for an if.  A `let` that both arms of an if make with one type is also known
 * after it. */
#include "frontend/fe.h"

/* Variables from outside that are assigned in the block, in order of first assignment. */
typedef struct carried {
    fe_binding **items;
    size_t n, cap;
} carried;

static void find_carried(fe_lower *l, const fe_block *b, carried *out) {
    for (size_t i = 0; i < b->n; i++) {
        const fe_stmt *s = b->items[i];
        find_carried(l, &s->body, out);
        find_carried(l, &s->other, out);
        fe_binding *v = s->kind == FE_STMT_ASSIGN ? s->name->local : NULL;
        if (!v || v->frame != l->frame || v->kind != FE_BIND_VAR || !v->id || v->carried)
            continue;
        v->carried = true;
        base_push(l->c->arena, out->items, out->n, out->cap, v);
    }
}

static void forget_marks(const carried *v) {
    for (size_t i = 0; i < v->n; i++)
        v->items[i]->carried = false;
}

static bool in_program(fe_lower *l, const fe_stmt *s, const char *word) {
    if (l->program)
        return true;
    fe_label(l->c, fe_report(l->c, FE_E0222, s->span, "%s belongs into a program", word),
             s->kind == FE_STMT_IF ? "select(condition, a, b) chooses between two values"
                                   : "a kernel walks over edges only");
    return false;
}

static ir_id lower_count(fe_lower *l, const fe_expr *e) {
    ir_id id = fe_lower_value(l, e, IR_I64);
    if (!id)
        return 0;
    const ir_type *t = fe_type_at(l, id);
    if (t->dtype == IR_I64 && t->rank == 0)
        return id;
    fe_label(l->c, fe_report(l->c, FE_E0307, e->span, "the count of rounds is one i64, this is %s", fe_type_text(l, t)),
             t->rank ? "a scalar is needed" : "cast it: i64(...)");
    return 0;
}

static ir_id lower_condition(fe_lower *l, const fe_expr *e, const char *word) {
    ir_id id = fe_lower_value(l, e, IR_BOOL);
    if (!id)
        return 0;
    const ir_type *t = fe_type_at(l, id);
    if (t->dtype == IR_BOOL && t->rank == 0)
        return id;
    base_diag *d =
        fe_report(l->c, FE_E0311, e->span, "the condition of %s is one bool, this is %s", word, fe_type_text(l, t));
    if (t->dtype == IR_BOOL)
        fe_label(l->c, d, "fold it with any(...) or all(...)");
    else
        fe_label(l->c, d, "compare it: x > 0");
    return 0;
}

static ir_id get_member(fe_lower *l, const fe_stmt *s, ir_id tuple, size_t i, const ir_type *type) {
    ir_id get = tuple ? fe_put(l, s->span, IR_GET, *type, &tuple, 1) : 0;
    if (get)
        ir_set_int(l->c->module, ir_at(l->b.f, get), IR_ATTR_INDEX, (int64_t)i);
    return get;
}

/* ---- repeat and while -------------------------------------------------------------------------------------------- */
static void begin_region(fe_lower *l, const fe_stmt *s, const carried *v) {
    for (size_t i = 0; i < v->n; i++) {
        ir_id arg = fe_put(l, s->span, IR_ARG, *fe_type_at(l, v->items[i]->id), NULL, 0);
        if (arg)
            ir_set_int(l->c->module, ir_at(l->b.f, arg), IR_ATTR_INDEX, (int64_t)i);
        v->items[i]->id = arg;
    }
}

static void lower_body(fe_lower *l, const fe_stmt *s) {
    size_t mark = l->n_binds;
    if (s->kind == FE_STMT_WHILE) {
        ir_id condition = lower_condition(l, s->value, "while");
        fe_put(l, s->value->span, IR_WHILE, (ir_type){.dtype = IR_NONE}, &condition, 1);
    }
    fe_lower_block(l, &s->body);
    fe_close_block(l, mark);
}

/* Start values become region arguments; what the variables are at the end of the body is yielded. */
void fe_lower_loop(fe_lower *l, const fe_stmt *s) {
    bool until = s->kind == FE_STMT_WHILE;
    if (!in_program(l, s, until ? "while" : "repeat"))
        return;
    carried v = {0};
    ir_id count = lower_count(l, until ? s->limit : s->value);
    find_carried(l, &s->body, &v);
    forget_marks(&v);
    ir_id *ids = base_arena_new_array(l->c->arena, ir_id, v.n + 1);
    ids[0] = count;
    for (size_t i = 0; i < v.n; i++)
        ids[i + 1] = v.items[i]->id;
    ir_region *outer = l->b.r;
    ir_id loop = count && v.n ? fe_put(l, s->span, IR_REPEAT, ir_scalar(IR_TUPLE), ids, v.n + 1) : 0;
    l->b.r = ir_region_new(l->c->module); /* without carried values it stays outside of everything */
    if (loop)
        ir_at(l->b.f, loop)->region = l->b.r;
    begin_region(l, s, &v);
    lower_body(l, s);
    ir_id *last = base_arena_new_array(l->c->arena, ir_id, v.n + 1);
    for (size_t i = 0; i < v.n; i++)
        last[i] = v.items[i]->id;
    fe_put(l, s->span, IR_YIELD, (ir_type){.dtype = IR_NONE}, last, v.n);
    l->b.r = outer;
    for (size_t i = 0; i < v.n; i++)
        v.items[i]->id = last[i] ? get_member(l, s, loop, i, fe_type_at(l, ids[i + 1])) : 0;
}

/* ---- if ---------------------------------------------------------------------------------------------------------- */
typedef struct arm {
    ir_id op;
    ir_region *region;
    ir_id *vars; /* the carried variables at its end */
    fe_binding **lets; /* made in it, nested blocks left out */
    size_t n_lets;
} arm;

static arm lower_arm(fe_lower *l, const fe_stmt *s, const fe_block *b, const carried *v, const ir_id *start) {
    arm a = {.region = ir_region_new(l->c->module), .vars = base_arena_new_array(l->c->arena, ir_id, v->n + 1)};
    a.op = fe_put(l, s->span, IR_ARM, (ir_type){.dtype = IR_NONE}, NULL, 0);
    ir_region *outer = l->b.r;
    size_t mark = l->n_binds;
    if (a.op)
        ir_at(l->b.f, a.op)->region = a.region;
    l->b.r = a.region;
    for (size_t i = 0; i < v->n; i++)
        v->items[i]->id = start[i];
    fe_lower_block(l, b);
    for (size_t i = 0; i < v->n; i++)
        a.vars[i] = v->items[i]->id;
    a.n_lets = l->n_binds - mark;
    a.lets = base_arena_new_array(l->c->arena, fe_binding *, a.n_lets + 1);
    for (size_t i = 0; i < a.n_lets; i++)
        a.lets[i] = l->binds[mark + i];
    fe_hide_block(l, mark);
    l->b.r = outer;
    return a;
}

/* The value that arm b gives a name which arm a made as well, with one type; NULL when there is none. */
static fe_binding *twin(fe_lower *l, const fe_binding *of, const arm *b) {
    for (size_t i = 0; i < b->n_lets; i++) {
        fe_binding *other = b->lets[i];
        if (other->name != of->name || of->kind != FE_BIND_VALUE || other->kind != FE_BIND_VALUE || !of->id ||
            !other->id)
            continue;
        const ir_type *x = fe_type_at(l, of->id), *y = fe_type_at(l, other->id);
        return x->dtype < IR_DTYPE_COUNT && ir_type_equal(x, y) ? other : NULL;
    }
    return NULL;
}

/* What an if gives: the carried variables, then the names that both arms made. */
typedef struct gives {
    ir_id *first, *second; /* by arm */
    fe_binding **name; /* of the first arm; NULL for a carried variable */
    size_t n;
} gives;

static gives join_arms(fe_lower *l, const carried *v, const arm *a, const arm *b) {
    size_t most = v->n + a->n_lets + 1;
    gives g = {.first = base_arena_new_array(l->c->arena, ir_id, most),
               .second = base_arena_new_array(l->c->arena, ir_id, most),
               .name = base_arena_new_array(l->c->arena, fe_binding *, most),
               .n = v->n};
    for (size_t i = 0; i < v->n; i++) {
        g.first[i] = a->vars[i];
        g.second[i] = b->vars[i];
    }
    for (size_t i = 0; i < a->n_lets; i++) {
        fe_binding *one = a->lets[i], *two = twin(l, one, b);
        if (!two)
            continue;
        g.first[g.n] = one->id;
        g.second[g.n] = two->id;
        g.name[g.n++] = one;
        one->what = one->used || two->used ? "(value" : "value"; /* of the name after the if */
        one->used = two->used = true;
    }
    return g;
}

static void end_arm(fe_lower *l, const fe_stmt *s, const arm *a, const ir_id *values, size_t n) {
    l->b.r = a->region;
    fe_put(l, s->span, IR_YIELD, (ir_type){.dtype = IR_NONE}, values, n);
}

static void warn_lets(fe_lower *l, const arm *a) {
    for (size_t i = 0; i < a->n_lets; i++)
        fe_warn_unused(l, a->lets[i]);
}

void fe_lower_if(fe_lower *l, const fe_stmt *s) {
    if (!in_program(l, s, "if"))
        return;
    carried v = {0};
    ir_id condition = lower_condition(l, s->value, "if");
    find_carried(l, &s->body, &v);
    find_carried(l, &s->other, &v);
    forget_marks(&v);
    ir_id *start = base_arena_new_array(l->c->arena, ir_id, v.n + 1);
    for (size_t i = 0; i < v.n; i++)
        start[i] = v.items[i]->id;
    ir_region *outer = l->b.r;
    ir_id choice = fe_put(l, s->span, IR_IF, ir_scalar(IR_TUPLE), &condition, 1);
    ir_region *arms = ir_region_new(l->c->module); /* without a condition it stays outside of everything */
    if (choice)
        ir_at(l->b.f, choice)->region = arms;
    l->b.r = arms;
    arm a = lower_arm(l, s, &s->body, &v, start);
    arm b = lower_arm(l, s, &s->other, &v, start);
    gives g = join_arms(l, &v, &a, &b);
    end_arm(l, s, &a, g.first, g.n);
    end_arm(l, s, &b, g.second, g.n);
    l->b.r = outer;
    warn_lets(l, &a);
    warn_lets(l, &b);
    for (size_t i = 0; i < g.n; i++) {
        ir_id id = choice && g.first[i] ? get_member(l, s, choice, i, fe_type_at(l, g.first[i])) : 0;
        if (i < v.n)
            v.items[i]->id = id;
        else
            fe_bind(l, FE_BIND_VALUE, g.name[i]->name, g.name[i]->span, g.name[i]->what)->id = id;
    }
}
