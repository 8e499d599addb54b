/* Element types and shapes. */
#include "ir/ir.h"

#include <string.h>

typedef enum family { FAMILY_BOOL, FAMILY_INT, FAMILY_UINT, FAMILY_FLOAT, FAMILY_HALF, FAMILY_COMPLEX } family;

static const struct {
    const char *text;
    size_t bytes;
    family family;
} dtypes[IR_DTYPE_COUNT] = {
#define IR_DTYPE(NAME, text, ctype, bytes, family, npy) {text, bytes, FAMILY_##family},
#include "ir/ir_types.def"
#undef IR_DTYPE
};

const char *ir_dtype_text(ir_dtype t) {
    if (t < IR_DTYPE_COUNT)
        return dtypes[t].text;
    return t == IR_TUPLE ? "tuple" : t == IR_GRAPH ? "graph" : t == IR_INSTANCE_T ? "instance" : "none";
}

size_t ir_dtype_bytes(ir_dtype t) { return t < IR_DTYPE_COUNT ? dtypes[t].bytes : 0; }

static bool is_of(ir_dtype t, family f) { return t < IR_DTYPE_COUNT && dtypes[t].family == f; }

bool ir_dtype_is_float(ir_dtype t) { return is_of(t, FAMILY_FLOAT); }
bool ir_dtype_is_half(ir_dtype t) { return is_of(t, FAMILY_HALF); }
bool ir_dtype_is_int(ir_dtype t) { return is_of(t, FAMILY_INT) || is_of(t, FAMILY_UINT); }

bool ir_dtype_is_complex(ir_dtype t) { return is_of(t, FAMILY_COMPLEX); }
bool ir_dtype_has_gradient(ir_dtype t) { return ir_dtype_is_float(t) || ir_dtype_is_half(t) || ir_dtype_is_complex(t); }
ir_dtype ir_dtype_cotangent(ir_dtype t) { return ir_dtype_is_half(t) ? IR_F32 : t; }
ir_dtype ir_dtype_part(ir_dtype t) { return t == IR_C64 ? IR_F32 : t == IR_C128 ? IR_F64 : t; }

void ir_dtype_limits(ir_dtype t, int64_t *least, int64_t *most) {
    bool is_signed = is_of(t, FAMILY_INT);
    size_t bits = t == IR_BOOL ? 1 : 8 * ir_dtype_bytes(t) - is_signed;
    *most = (int64_t)(bits == 63 ? (uint64_t)INT64_MAX : (UINT64_C(1) << bits) - 1);
    *least = is_signed ? -*most - 1 : 0;
}

bool ir_dtype_from_text(const char *text, size_t n, ir_dtype *out) {
    for (int t = 0; t < IR_DTYPE_COUNT; t++)
        if (strlen(dtypes[t].text) == n && memcmp(dtypes[t].text, text, n) == 0) {
            *out = (ir_dtype)t;
            return true;
        }
    return false;
}

ir_type ir_scalar(ir_dtype t) { return (ir_type){.dtype = t, .space = IR_UNIFORM, .rank = 0}; }

bool ir_shape_equal(const ir_type *a, const ir_type *b) {
    return a->rank == b->rank && memcmp(a->dim, b->dim, sizeof a->dim[0] * a->rank) == 0;
}

bool ir_type_equal(const ir_type *a, const ir_type *b) {
    return a->dtype == b->dtype && a->space == b->space && ir_shape_equal(a, b);
}

bool ir_broadcast(const ir_type *a, const ir_type *b, ir_type *out) {
    const ir_type *wide = a->rank >= b->rank ? a : b, *narrow = a->rank >= b->rank ? b : a;
    uint32_t lead = wide->rank - narrow->rank;
    ir_dim dim[IR_MAX_RANK];
    for (uint32_t i = 0; i < wide->rank; i++) {
        ir_dim p = wide->dim[i], q = i < lead ? 1 : narrow->dim[i - lead];
        if (p != q && p != 1 && q != 1)
            return false;
        dim[i] = p == 1 ? q : p;
    }
    uint32_t rank = wide->rank;
    out->rank = rank; /* out may be a or b */
    memset(out->dim, 0, sizeof out->dim);
    memcpy(out->dim, dim, sizeof dim[0] * rank);
    return true;
}

const char *ir_space_text(ir_space s) { return s == IR_EDGE ? "edge" : s == IR_ROW ? "row" : "uniform"; }

static const char *const roles[] = {"src", "dst", "node", "edge", "param", "graph", "outrow", "outedge", "outparam"};

const char *ir_role_text(ir_role r) { return roles[r]; }

bool ir_role_from_text(const char *text, ir_role *out) {
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (strcmp(roles[i], text) == 0) {
            *out = (ir_role)i;
            return true;
        }
    return false;
}

bool ir_role_is_out(ir_role r) { return r == IR_OUT_ROW || r == IR_OUT_EDGE || r == IR_OUT_PARAM; }

static bool elements(const ir_func *f, const ir_type *t, ir_sum *out) {
    ir_sum axis;
    *out = ir_sum_number(1);
    for (uint32_t i = 0; i < t->rank; i++)
        if (!ir_sum_of(f, t->dim[i], &axis) || !ir_sum_calc(IR_MUL, out, &axis, out))
            return false;
    return true;
}

bool ir_same_elements(const ir_func *f, const ir_type *a, const ir_type *b) {
    ir_sum x, y, rest;
    int64_t n;
    return elements(f, a, &x) && elements(f, b, &y) && ir_sum_calc(IR_SUB, &x, &y, &rest) &&
           ir_sum_is_number(&rest, &n) && n == 0;
}
