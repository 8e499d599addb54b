/* The text form of docs/ir.md.  Operations are numbered in the order of the text; what is in no region is left out. */
#include "ir/ir.h"
#include "ir/ir_private.h"

#include <inttypes.h>
#include <string.h>

typedef struct printer {
    const ir_func *f;
    base_str *out;
    uint32_t *number; /* by id, 0: not met yet */
    uint32_t last;
} printer;

static bool is_name(const char *s) {
    if (!*s || (*s >= '0' && *s <= '9'))
        return false;
    for (; *s; s++)
        if (!((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || (*s >= '0' && *s <= '9') || *s == '_' ||
              *s == '.'))
            return false;
    return true;
}

static void add_quoted(base_str *out, const char *s) {
    base_str_add(out, "\"");
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            base_str_addf(out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            base_str_addf(out, "\\x%02x", c);
        else
            base_str_add_n(out, s, 1);
    }
    base_str_add(out, "\"");
}

static void add_name(base_str *out, const char *s) {
    if (is_name(s))
        base_str_add(out, s);
    else
        add_quoted(out, s);
}

/* A symbol called "tile" is quoted, so that it is not taken for the width of a tile. */
static void add_symbol(const ir_func *f, uint32_t sym, base_str *out) {
    const char *name = sym < f->n_syms ? f->syms[sym] : "?";
    if (strcmp(name, "tile") == 0)
        add_quoted(out, name);
    else
        add_name(out, name);
}

static void add_dim(const ir_func *f, ir_dim d, base_str *out) {
    if (d == IR_DIM_TILE)
        base_str_add(out, "tile");
    else if (ir_dim_is_sym(d))
        add_symbol(f, ir_dim_sym_index(d), out);
    else
        base_str_addf(out, "%" PRId64, d);
}

void ir_print_type(const ir_func *f, const ir_type *t, base_str *out) {
    if (t->space != IR_UNIFORM)
        base_str_addf(out, "%s ", ir_space_text(t->space));
    base_str_add(out, ir_dtype_text(t->dtype));
    for (uint32_t i = 0; i < t->rank; i++) {
        base_str_add(out, i ? ", " : "[");
        add_dim(f, t->dim[i], out);
    }
    if (t->rank)
        base_str_add(out, "]");
}

void ir_print_scalar(ir_dtype t, ir_scalar_value v, base_str *out) {
    if (t == IR_F32)
        base_str_add_f32(out, v.f);
    else if (t == IR_F64)
        base_str_add_f64(out, v.d);
    else if (ir_dtype_is_half(t))
        base_str_add_f32(out, ir_eval(IR_CAST, t, IR_F32, &v).f);
    else if (ir_dtype_is_complex(t)) {
        base_str_add(out, "\"");
        ir_print_scalar(ir_dtype_part(t), ir_part(t, v, 0), out);
        base_str_add(out, " ");
        ir_print_scalar(ir_dtype_part(t), ir_part(t, v, 1), out);
        base_str_add(out, "\"");
    } else if (t == IR_BOOL)
        base_str_add(out, v.i ? "true" : "false");
    else
        base_str_addf(out, "%" PRId64, v.i);
}

static void add_attr(printer *p, const ir_op *op, const ir_attr *a) {
    base_str_addf(p->out, "%s = ", ir_attr_text(a->key));
    switch (ir_attr_form_of(a->key)) {
    case IR_FORM_INT:
        base_str_addf(p->out, "%" PRId64, a->i);
        break;
    case IR_FORM_FLOAT:
        base_str_add_f64(p->out, a->d);
        break;
    case IR_FORM_WORD:
        add_name(p->out, a->word ? a->word : "");
        break;
    case IR_FORM_DIM:
        add_dim(p->f, a->i, p->out);
        break;
    case IR_FORM_BITS:
        ir_print_scalar(op->type.dtype, a->v, p->out);
        break;
    }
}

static void indent(printer *p, int depth) {
    for (int i = 0; i < depth; i++)
        base_str_add(p->out, "  ");
}

static void print_region(printer *p, const ir_region *r, int depth);

static void print_op(printer *p, ir_id id, int depth) {
    const ir_op *op = ir_at(p->f, id);
    p->number[id] = ++p->last;
    indent(p, depth);
    if (op->type.dtype != IR_NONE)
        base_str_addf(p->out, "%%%u = ", p->number[id]);
    base_str_add(p->out, ir_op_describe(op->code)->text);
    for (uint32_t i = 0; i < op->n_args; i++) {
        ir_id arg = op->args[i];
        base_str_addf(p->out, "%s%%%u", i ? ", " : " ", arg < p->f->n_ops ? p->number[arg] : 0);
    }
    for (uint32_t i = 0; i < op->n_attrs; i++) {
        base_str_add(p->out, i ? ", " : " {");
        add_attr(p, op, &op->attrs[i]);
    }
    base_str_add(p->out, op->n_attrs ? "}" : "");
    if (op->type.dtype != IR_NONE) {
        base_str_add(p->out, " : ");
        ir_print_type(p->f, &op->type, p->out);
    }
    if (op->region) {
        base_str_add(p->out, " {\n");
        print_region(p, op->region, depth + 1);
        indent(p, depth);
        base_str_add(p->out, "}");
    }
    base_str_add(p->out, "\n");
}

static void print_region(printer *p, const ir_region *r, int depth) {
    for (size_t i = 0; i < r->n; i++)
        print_op(p, r->ops[i], depth);
}

static void print_header(const ir_func *f, base_str *out) {
    static const char *const words[] = {"kernel", "program", "loop", "task"};
    base_str_addf(out, "%s @", words[f->level]);
    add_name(out, f->name);
    for (size_t i = 0; i < f->n_syms; i++) {
        base_str_add(out, i ? ", " : "[");
        add_symbol(f, (uint32_t)i, out);
    }
    base_str_add(out, f->n_syms ? "](" : "(");
    for (size_t i = 0; i < f->n_params; i++) {
        base_str_addf(out, "%s%s ", i ? ", " : "", ir_role_text(f->params[i].role));
        add_name(out, f->params[i].name);
        base_str_add(out, ": ");
        ir_print_type(f, &f->params[i].type, out);
        if (f->params[i].begins) {
            base_str_add(out, " = ");
            add_name(out, f->params[f->params[i].begins - 1].name);
        }
    }
    base_str_add(out, ")");
    for (size_t i = 0; i < f->n_results; i++) {
        base_str_add(out, i ? ", " : " -> (");
        add_name(out, f->results[i].name);
        base_str_add(out, ": ");
        ir_print_type(f, &f->results[i].type, out);
    }
    base_str_add(out, f->n_results ? ")" : "");
}

/* A kernel's domain is dst when nothing is said; a loop function always says it. */
static void print_flags(const ir_func *f, base_str *out) {
    if (f->exported)
        base_str_add(out, " exported");
    if (f->needs_square)
        base_str_add(out, " square");
    for (size_t i = 0; i < f->n_same; i++) {
        base_str_add(out, i ? ", " : " same(");
        add_name(out, f->syms[f->same[i].of]);
        base_str_add(out, " = ");
        add_name(out, f->syms[f->same[i].is]);
    }
    if (f->n_same)
        base_str_add(out, ")");
    if (f->domain && (f->level == IR_LEVEL_LOOP || (f->level == IR_LEVEL_KERNEL && strcmp(f->domain, "dst") != 0))) {
        base_str_add(out, " domain = ");
        add_name(out, f->domain);
    }
    if (f->rows_per_unit != 1)
        base_str_addf(out, " unit = %" PRId64, f->rows_per_unit);
    if (f->winners.known) {
        const uint32_t at[] = {f->winners.x, f->winners.best, f->winners.which, f->winners.given};
        for (int i = 0; i < 4; i++) {
            base_str_add(out, i ? ", " : " winners(");
            add_name(out, f->params[at[i]].name);
        }
        base_str_add(out, ")");
    }
    if (f->team != 0)
        base_str_addf(out, " team = %" PRId64, f->team);
}

void ir_print_func(const ir_func *f, base_str *out) {
    printer p = {.f = f, .out = out, .number = base_alloc_zero(sizeof(uint32_t) * f->n_ops)};
    if (!p.number) {
        out->failed = true;
        return;
    }
    print_header(f, out);
    print_flags(f, out);
    base_str_add(out, " {\n");
    print_region(&p, &f->body, 1);
    base_str_add(out, "}\n");
    base_free(p.number);
}

static bool count_to(const ir_func *f, const ir_region *r, ir_id id, uint32_t *n) {
    for (size_t i = 0; i < r->n; i++) {
        ++*n;
        const ir_op *op = ir_at(f, r->ops[i]);
        if (r->ops[i] == id || (op->region && count_to(f, op->region, id, n)))
            return true;
    }
    return false;
}

uint32_t ir_printed_number(const ir_func *f, ir_id id) {
    uint32_t n = 0;
    return count_to(f, &f->body, id, &n) ? n : 0;
}

void ir_print(const ir_module *m, unsigned levels, base_str *out) {
    base_str_add(out, "module ");
    add_quoted(out, m->source_name ? m->source_name : "");
    base_str_add(out, "\n");
    for (size_t i = 0; i < m->n_funcs; i++)
        if (levels >> m->funcs[i]->level & 1) {
            base_str_add(out, "\n");
            ir_print_func(m->funcs[i], out);
        }
}
