/* The op table, the kinds and the attribute keys as data, and the op list of docs/ir.md. */
#include "ir/ir.h"
#include "ir/ir_private.h"

#include <string.h>

/* The level column: any of these letters together. */
enum {
    K = IR_LEVEL_K,
    P = IR_LEVEL_P,
    L = IR_LEVEL_L,
    T = IR_LEVEL_T,
    KP = K | P,
    KL = K | L,
    PT = P | T,
    KPL = K | P | L,
    KPT = K | P | T,
    PLT = P | L | T,
    KPLT = K | P | L | T
};

static const ir_op_desc ops[IR_OP_COUNT] = {
    [IR_OP_NONE] = {"none", 0, IR_CLASS_OTHER, 0, 0, "no operation"},
#define IR_OP(NAME, text, levels, cls, lo, hi, doc) [IR_##NAME] = {text, levels, IR_CLASS_##cls, lo, hi, doc},
#include "ir/ir_ops.def"
#undef IR_OP
};

const ir_op_desc *ir_op_describe(ir_opcode code) {
    BASE_CHECK((unsigned)code < IR_OP_COUNT);
    return &ops[code];
}

bool ir_is_combining(ir_opcode code) {
    bool leaf = code == IR_ARG || code == IR_CONST || code == IR_DIMSIZE || code == IR_BROADCAST;
    return leaf || ir_class_is_elementwise(ir_op_describe(code)->cls);
}

bool ir_is_shape_op(ir_opcode code) { return code >= IR_RESHAPE && code <= IR_MATMUL; }

bool ir_op_from_text(const char *text, ir_opcode *out) {
    for (int i = IR_OP_NONE + 1; i < IR_OP_COUNT; i++)
        if (strcmp(ops[i].text, text) == 0) {
            *out = (ir_opcode)i;
            return true;
        }
    return false;
}

static const char *const kinds[IR_KIND_COUNT_] = {
    [IR_KIND_SUM] = "sum",         [IR_KIND_PROD] = "prod",
    [IR_KIND_MIN] = "min",         [IR_KIND_MAX] = "max",
    [IR_KIND_AND] = "and",         [IR_KIND_OR] = "or",
    [IR_KIND_ARGMIN] = "argmin",   [IR_KIND_ARGMAX] = "argmax",
    [IR_KIND_SOFTMAX] = "softmax", [IR_KIND_LOGSUMEXP] = "logsumexp",
    [IR_KIND_VAR] = "var",         [IR_KIND_STD] = "std",
    [IR_KIND_MEAN] = "mean",       [IR_KIND_COUNT] = "count",
    [IR_KIND_ANY] = "any",         [IR_KIND_ALL] = "all",
};

const char *ir_kind_text(ir_kind k) {
    BASE_CHECK((unsigned)k < IR_KIND_COUNT_);
    return kinds[k];
}

bool ir_kind_from_text(const char *text, ir_kind *out) {
    for (int i = 0; i < IR_KIND_COUNT_; i++)
        if (strcmp(kinds[i], text) == 0) {
            *out = (ir_kind)i;
            return true;
        }
    return false;
}

static const struct {
    const char *text;
    ir_attr_form form;
} attrs[IR_ATTR_COUNT] = {
#define IR_ATTR(NAME, text, kind) {text, IR_FORM_##kind},
#include "ir/ir_attrs.def"
#undef IR_ATTR
};

const char *ir_attr_text(ir_attr_key key) { return attrs[key].text; }

ir_attr_form ir_attr_form_of(ir_attr_key key) { return attrs[key].form; }

bool ir_attr_from_text(const char *text, ir_attr_key *out) {
    for (int i = 0; i < IR_ATTR_COUNT; i++)
        if (strcmp(attrs[i].text, text) == 0) {
            *out = (ir_attr_key)i;
            return true;
        }
    return false;
}

static const char *const class_text[] = {"leaf",    "unary",  "binary", "ternary", "comparison",
                                         "reduces", "region", "effect", "other"};

static void add_levels(base_str *out, unsigned levels) {
    static const char letters[] = "KPLT";
    for (int i = 0; i < 4; i++)
        if (levels >> i & 1)
            base_str_add_n(out, letters + i, 1);
}

/* A '|' would end the cell. */
static void add_cell(base_str *out, const char *text) {
    for (; *text; text++)
        if (*text == '|')
            base_str_add(out, "\\|");
        else
            base_str_add_n(out, text, 1);
}

void ir_ops_markdown(base_str *out) {
    base_str_add(out, "| operation | levels | class | operands | meaning |\n|---|---|---|---|---|\n");
    for (int i = IR_OP_NONE + 1; i < IR_OP_COUNT; i++) {
        const ir_op_desc *d = &ops[i];
        base_str_addf(out, "| `%s` | ", d->text);
        add_levels(out, d->levels);
        base_str_addf(out, " | %s | %d", class_text[d->cls], d->min_args);
        if (d->max_args < 0)
            base_str_add(out, "+");
        else if (d->max_args != d->min_args)
            base_str_addf(out, "-%d", d->max_args);
        base_str_add(out, " | ");
        add_cell(out, d->doc);
        base_str_add(out, " |\n");
    }
}
