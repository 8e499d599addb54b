/* Loop functions that do the same are emitted once: the same operations on the same types, whatever their fields are called
 * and whatever numbers they add and multiply.  The numbers that differ stand in a table of each twin, which the one function
 * is given at a launch: steps of a method with their coefficients, layers with their factors.
 *
 * Not every constant may become an argument: only floats that a compiler can do nothing with.  0, 1 and -1 stay, as do
 * divisors that are powers of two and exponents. */
#include "codegen/cg_c.h"

#include <math.h>
#include <string.h>

typedef struct number {
    ir_id id;
    const char *text; /* in C */
} number;

typedef struct member {
    const ir_func *f;
    const char *shape; /* everything but names and the numbers that may be arguments */
    number *numbers;
    size_t n_numbers, cap_numbers;
    struct member *first, *next; /* the first of its kind, then in the order of the module */
} member;

typedef struct search {
    base_arena *arena;
    member **buckets;
    size_t mask;
} search;

/* ---- which constants --------------------------------------------------------------------------------------------- */
static bool is_plain(double v) { return isfinite(v) && v != 0 && v != 1 && v != -1; }

static double float_of(const ir_op *op) {
    ir_scalar_value v = ir_find_attr(op, IR_ATTR_VALUE)->v;
    return op->type.dtype == IR_F32 ? (double)v.f : v.d;
}

static bool is_power_of_two(double v) {
    int exponent;
    return fabs(frexp(v, &exponent)) == 0.5;
}

/* Whether operand k of an operation may as well be a variable; v: its value. */
static bool takes_variable(const ir_op *user, uint32_t k, double v) {
    switch ((int)user->code) {
    case IR_ADD:
    case IR_SUB:
    case IR_MUL:
    case IR_MIN:
    case IR_MAX:
    case IR_EQ:
    case IR_NE:
    case IR_LT:
    case IR_LE:
    case IR_GT:
    case IR_GE:
        return true;
    case IR_DIV:
        return k == 0 || !is_power_of_two(v);
    case IR_SELECT:
    case IR_SET:
    case IR_STORE:
        return k > 0;
    default:
        return false;
    }
}

static void bar(const ir_func *f, const ir_region *r, bool *barred) {
    for (size_t i = 0; i < r->n; ++i) {
        const ir_op *op = ir_at(f, r->ops[i]);
        ir_dtype t = op->type.dtype;
        if (op->code == IR_CONST && ((t != IR_F32 && t != IR_F64) || !is_plain(float_of(op))))
            barred[r->ops[i]] = true;
        for (uint32_t k = 0; k < op->n_args; ++k) {
            const ir_op *from = ir_at(f, op->args[k]);
            bool is_free = from->code == IR_CONST && !barred[op->args[k]];
            if (is_free && !takes_variable(op, k, float_of(from)))
                barred[op->args[k]] = true;
        }
        if (op->region)
            bar(f, op->region, barred);
    }
}

/* ---- a function as text ------------------------------------------------------------------------------------------ */
static void add_type(base_str *out, const ir_type *t) {
    base_str_addf(out, " %d", (int)t->dtype);
    for (uint32_t i = 0; i < t->rank; ++i)
        base_str_addf(out, ",%lld", (long long)t->dim[i]);
}

static void add_attrs(base_str *out, const ir_op *op, bool barred) {
    for (uint32_t k = 0; k < op->n_attrs; ++k) {
        const ir_attr *a = &op->attrs[k];
        if (a->key == IR_ATTR_NAME || (a->key == IR_ATTR_VALUE && !barred))
            continue;
        base_str_addf(out, " %d:%lld:%a:%s", (int)a->key, (long long)a->i, a->d, a->word ? a->word : "");
        if (a->key == IR_ATTR_VALUE)
            ir_print_scalar(op->type.dtype, a->v, out);
    }
}

typedef struct writer {
    search *s;
    member *to;
    base_str *out;
    const bool *barred;
    uint32_t *place, last;
} writer;

static void add_region(writer *w, const ir_region *r) {
    const ir_func *f = w->to->f;
    for (size_t i = 0; i < r->n; ++i) {
        const ir_op *op = ir_at(f, r->ops[i]);
        w->place[r->ops[i]] = ++w->last;
        base_str_addf(w->out, "\n%d", (int)op->code);
        for (uint32_t k = 0; k < op->n_args; ++k)
            base_str_addf(w->out, " %%%u", w->place[op->args[k]]);
        bool barred = op->code != IR_CONST || w->barred[r->ops[i]];
        add_attrs(w->out, op, barred);
        add_type(w->out, &op->type);
        if (!barred) {
            const char *text = cg_const(w->s->arena, op->type.dtype, ir_find_attr(op, IR_ATTR_VALUE)->v);
            number fresh = {r->ops[i], text};
            base_push(w->s->arena, w->to->numbers, w->to->n_numbers, w->to->cap_numbers, fresh);
        }
        if (op->region) {
            base_str_add(w->out, "{");
            add_region(w, op->region);
            base_str_add(w->out, "}");
        }
    }
}

static void describe(search *s, member *to) {
    const ir_func *f = to->f;
    bool *barred = base_arena_new_array(s->arena, bool, f->n_ops);
    writer w = {s, to, base_arena_str(s->arena), barred, base_arena_new_array(s->arena, uint32_t, f->n_ops), 0};
    bar(f, &f->body, barred);
    base_str_addf(w.out, "%s %lld %lld %zu", f->domain ? f->domain : "", (long long)f->rows_per_unit,
                  (long long)f->team, f->n_syms);
    const ir_winners *v = &f->winners;
    base_str_addf(w.out, " %d %u %u %u %u", v->known, v->x, v->best, v->which, v->given);
    for (size_t i = 0; i < f->n_params; ++i) {
        base_str_addf(w.out, "\np%d", (int)f->params[i].role);
        add_type(w.out, &f->params[i].type);
    }
    add_region(&w, &f->body);
    to->shape = base_str_text(w.out); /* out of memory is told at the end by base_arena_str_failed */
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */
static void join(search *s, member *m) {
    size_t at = (size_t)base_hash_bytes(m->shape, strlen(m->shape)).lo & s->mask;
    while (s->buckets[at] && strcmp(s->buckets[at]->shape, m->shape))
        at = (at + 1) & s->mask;
    m->first = s->buckets[at] ? s->buckets[at] : m;
    if (!s->buckets[at]) {
        s->buckets[at] = m;
        return;
    }
    member *last = m->first;
    while (last->next)
        last = last->next;
    last->next = m;
}

/* Number k differs somewhere in the group. */
static bool differs(const member *first, size_t k) {
    for (const member *m = first->next; m; m = m->next)
        if (strcmp(m->numbers[k].text, first->numbers[k].text))
            return true;
    return false;
}

static void fill_group(search *s, const member *first, cg_twin *twins) {
    size_t n = 0, *which = base_arena_new_array(s->arena, size_t, first->n_numbers + 1);
    for (size_t k = 0; k < first->n_numbers; ++k)
        if (differs(first, k))
            which[n++] = k;
    for (const member *m = first; m; m = m->next) {
        cg_twin *t = &twins[m->f->mark];
        *t = (cg_twin){.first = first->f, .n_numbers = n};
        t->id = base_arena_new_array(s->arena, ir_id, n + 1);
        t->text = base_arena_new_array(s->arena, const char *, n + 1);
        for (size_t k = 0; k < n; ++k) {
            t->id[k] = m->numbers[which[k]].id;
            t->text[k] = m->numbers[which[k]].text;
        }
    }
}

cg_twin *cg_find_twins(const ir_module *m, base_arena *arena, size_t *n_bodies) {
    search s = {.arena = arena, .mask = 15};
    member *members = base_arena_new_array(arena, member, m->n_funcs + 1);
    cg_twin *twins = base_arena_new_array(arena, cg_twin, m->n_funcs + 1);
    size_t n = 0;
    while (s.mask < 2 * m->n_funcs)
        s.mask = 2 * s.mask + 1;
    s.buckets = base_arena_new_array(arena, member *, s.mask + 1);
    for (size_t i = 0; i < m->n_funcs; ++i) {
        if (m->funcs[i]->level != IR_LEVEL_LOOP)
            continue;
        cg_kernel_index(m, m->funcs[i]->name); /* numbers the loop functions */
        members[n].f = m->funcs[i];
        describe(&s, &members[n]);
        join(&s, &members[n++]);
    }
    *n_bodies = 0;
    for (size_t i = 0; i < n; ++i) {
        *n_bodies += members[i].first == &members[i];
        if (members[i].first == &members[i])
            fill_group(&s, &members[i], twins);
    }
    return twins;
}

const char *cg_twin_numbers(const cg_twin *t, base_arena *arena) {
    base_str *list = base_arena_str(arena);
    for (size_t i = 0; i < t->n_numbers; ++i)
        base_str_addf(list, "%s%s", i ? ", " : "", t->text[i]);
    return base_str_text(list);
}
