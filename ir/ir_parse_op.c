/* One operation of the text form: %id = name operands {attributes} : type {region */
#include "ir/ir_parse.h"
#include "ir/ir_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NUMBER 65536 /* of a value in a short text; a long one may count as far as it has bytes */

typedef struct draft {
    base_span span;
    bool has_number, has_value;
    uint32_t number;
    ir_opcode code;
    ir_id *args; /* as many as the text has */
    size_t n_args, cap_args;
    ir_token value; /* of {value = ...}: read when the type is known */
} draft;

/* ---- values ---- */
static bool number_of(ir_parser *p, uint32_t *out) {
    uint32_t limit = p->source_bytes > MAX_NUMBER ? p->source_bytes : MAX_NUMBER;
    errno = 0;
    unsigned long long n = strtoull(p->token.text, NULL, 10);
    if (errno || n == 0 || n > limit) {
        ir_parse_error(p, "E0905", p->token.span, "values are numbered from 1 to %u here", limit);
        return false;
    }
    *out = (uint32_t)n;
    return true;
}

static void bind_number(ir_parser *p, uint32_t number, ir_id id) {
    if (number >= p->n_ids) {
        uint32_t n = p->n_ids ? p->n_ids : 64;
        while (n <= number)
            n *= 2;
        p->ids = base_arena_grow(p->m->arena, p->ids, sizeof *p->ids * p->n_ids, sizeof *p->ids * n);
        p->n_ids = n;
    }
    p->ids[number] = id;
}

static bool parse_operand(ir_parser *p, draft *d) {
    uint32_t number;
    if (p->token.kind != IR_TOKEN_VALUE)
        return ir_parse_expected(p, "an operand such as %1");
    if (!number_of(p, &number))
        return false;
    if (number >= p->n_ids || !p->ids[number]) {
        ir_parse_error(p, "E0905", p->token.span, "%%%u is not defined before its use", number);
        return false;
    }
    base_push(p->m->arena, d->args, d->n_args, d->cap_args, p->ids[number]);
    ir_parse_next(p);
    return true;
}

static bool parse_operands(ir_parser *p, draft *d) {
    if (p->token.kind != IR_TOKEN_VALUE || p->token.first)
        return true;
    do
        if (!parse_operand(p, d))
            return false;
    while (ir_parse_take_mark(p, ','));
    return true;
}

/* ---- constants ---- */
static bool read_scalar(ir_dtype t, const char *text, ir_scalar_value *out);

/* "1.5 -2": both parts in quotes */
static bool read_complex(ir_dtype t, const char *text, ir_scalar_value *out) {
    char re[64];
    size_t n = strcspn(text, " ");
    ir_scalar_value part[2];
    if (n >= sizeof re || !text[n])
        return false;
    memcpy(re, text, n);
    re[n] = 0;
    if (!read_scalar(ir_dtype_part(t), re, &part[0]) || !read_scalar(ir_dtype_part(t), text + n + 1, &part[1]))
        return false;
    *out = ir_complex(t, part[0], part[1]);
    return true;
}

static bool read_scalar(ir_dtype t, const char *text, ir_scalar_value *out) {
    char *end;
    *out = (ir_scalar_value){.i = 0};
    if (t == IR_F32)
        return base_parse_f32(text, strlen(text), &out->f);
    if (t == IR_F64)
        return base_parse_f64(text, strlen(text), &out->d);
    if (t == IR_BOOL && (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)) {
        out->i = text[0] == 't';
        return true;
    }
    if (ir_dtype_is_complex(t))
        return read_complex(t, text, out);
    if (ir_dtype_is_half(t)) {
        if (!base_parse_f32(text, strlen(text), &out->f))
            return false;
        *out = ir_eval(IR_CAST, IR_F32, t, out);
        return true;
    }
    int64_t least, most;
    ir_dtype_limits(t, &least, &most);
    errno = 0;
    out->i = strtoll(text, &end, 10);
    return !*end && end != text && !errno && out->i >= least && out->i <= most;
}

static bool apply_value(ir_parser *p, ir_op *op, const ir_token *value) {
    ir_scalar_value v;
    if (op->type.dtype >= IR_DTYPE_COUNT) {
        ir_parse_error(p, "E0904", value->span, "a value needs an element type after ':'");
        return false;
    }
    if (!read_scalar(op->type.dtype, value->text, &v)) {
        ir_parse_error(p, "E0904", value->span, "'%s' is not a value of type %s", value->text,
                       ir_dtype_text(op->type.dtype));
        return false;
    }
    ir_set_value(p->m, op, v);
    return true;
}

/* ---- attributes ---- */
static bool parse_bits(ir_parser *p, draft *d) {
    if (p->token.kind != IR_TOKEN_NUMBER && p->token.kind != IR_TOKEN_NAME && p->token.kind != IR_TOKEN_QUOTED)
        return ir_parse_expected(p, "a number");
    d->value = p->token;
    d->has_value = true;
    ir_parse_next(p);
    return true;
}

static bool parse_float(ir_parser *p, double *out) {
    if (p->token.kind != IR_TOKEN_NUMBER && p->token.kind != IR_TOKEN_NAME)
        return ir_parse_expected(p, "a number");
    if (!base_parse_f64(p->token.text, strlen(p->token.text), out)) {
        ir_parse_error(p, "E0904", p->token.span, "'%s' is not a number", p->token.text);
        return false;
    }
    ir_parse_next(p);
    return true;
}

static bool parse_attr_value(ir_parser *p, draft *d, ir_op *op, ir_attr_key key) {
    ir_attr_form form = ir_attr_form_of(key);
    if (form == IR_FORM_BITS)
        return parse_bits(p, d);
    ir_attr *a = ir_put_attr(p->m, op, key);
    switch (form) {
    case IR_FORM_INT:
        return ir_parse_integer(p, &a->i);
    case IR_FORM_FLOAT:
        return parse_float(p, &a->d);
    case IR_FORM_DIM:
        return ir_parse_dim(p, &a->i);
    case IR_FORM_WORD:
        a->word = ir_parse_name(p, "a word");
        return a->word != NULL;
    case IR_FORM_BITS:
        break;
    }
    return false;
}

static bool parse_attr(ir_parser *p, draft *d, ir_op *op) {
    base_span span = p->token.span;
    ir_attr_key key;
    const char *name = ir_parse_name(p, "an attribute");
    if (!name)
        return false;
    if (!ir_attr_from_text(name, &key)) {
        ir_parse_error(p, "E0903", span, "there is no attribute '%s'", name);
        return false;
    }
    if (ir_find_attr(op, key) || (key == IR_ATTR_VALUE && d->has_value)) {
        ir_parse_error(p, "E0903", span, "attribute '%s' is given twice", name);
        return false;
    }
    return ir_parse_need_mark(p, '=') && parse_attr_value(p, d, op, key);
}

/* A brace opens attributes when `name =` follows on it, and a region otherwise. */
static bool at_attrs(const ir_parser *p) {
    if (!ir_parse_at_mark(p, '{') || p->token.first || p->ahead.kind != IR_TOKEN_NAME)
        return false;
    uint32_t at = p->at;
    while (p->source[at] == ' ' || p->source[at] == '\t')
        at++;
    return p->source[at] == '=';
}

static bool parse_attrs(ir_parser *p, draft *d, ir_op *op) {
    if (!at_attrs(p))
        return true;
    ir_parse_next(p);
    do
        if (!parse_attr(p, d, op))
            return false;
    while (ir_parse_take_mark(p, ','));
    return ir_parse_need_mark(p, '}');
}

/* ---- the whole ---- */
static bool parse_number(ir_parser *p, draft *d) {
    if (p->token.kind != IR_TOKEN_VALUE)
        return true;
    if (!number_of(p, &d->number))
        return false;
    if (d->number < p->n_ids && p->ids[d->number]) {
        ir_parse_error(p, "E0906", p->token.span, "%%%u is defined twice", d->number);
        return false;
    }
    d->has_number = true;
    ir_parse_next(p);
    return ir_parse_need_mark(p, '=');
}

static bool parse_opcode(ir_parser *p, draft *d) {
    if (p->token.kind != IR_TOKEN_NAME)
        return ir_parse_expected(p, "an operation");
    if (!ir_op_from_text(p->token.text, &d->code)) {
        ir_parse_error(p, "E0902", p->token.span, "there is no operation '%s'", p->token.text);
        return false;
    }
    ir_parse_next(p);
    return true;
}

static bool parse_op_type(ir_parser *p, const draft *d, ir_op *op) {
    op->type.dtype = IR_NONE;
    bool has_type = !p->token.first && ir_parse_take_mark(p, ':');
    if (has_type && !ir_parse_type(p, &op->type))
        return false;
    if (has_type != d->has_number) {
        ir_parse_error(p, "E0901", d->span,
                       has_type ? "an operation with a type needs '%%id =' in front"
                                : "an operation with '%%id =' needs ': type'");
        return false;
    }
    return !d->has_value || apply_value(p, op, &d->value);
}

static bool finish(ir_parser *p, bool *opens) {
    *opens = !p->token.first && ir_parse_take_mark(p, '{');
    if (*opens || p->token.first || ir_parse_at_mark(p, '}') || p->token.kind == IR_TOKEN_END)
        return true;
    return ir_parse_expected(p, "the end of the line");
}

ir_op *ir_parse_op(ir_parser *p, ir_region *r, bool *opens) {
    draft d = {.span = p->token.span};
    if (!parse_number(p, &d) || !parse_opcode(p, &d) || !parse_operands(p, &d))
        return NULL;
    ir_id id = ir_op_new(p->m, p->f, d.code, ir_scalar(IR_NONE), d.args, d.n_args);
    ir_op *op = ir_at(p->f, id);
    ir_append(p->m, r, id);
    if (d.has_number) /* even of a broken operation: its uses are not errors of their own */
        bind_number(p, d.number, id);
    if (!parse_attrs(p, &d, op) || !parse_op_type(p, &d, op))
        return NULL;
    op->span = (base_span){d.span.begin, p->token.span.begin};
    return finish(p, opens) ? op : NULL;
}
