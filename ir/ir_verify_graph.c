/* Rules of graph kernels and programs: types follow from operands, fields are read at an end they have, reductions go
 * from edges to rows, calls fit their kernels, and what is returned is what was declared. */
#include "ir/ir_check.h"

#include <string.h>

static bool check_field(ir_check *c, const ir_op *op) {
    const ir_param *p;
    if (!ir_check_param_index(c, op, &p))
        return false;
    const char *at = ir_word(op, IR_ATTR_AT);
    bool src = strcmp(at, "src") == 0, dst = strcmp(at, "dst") == 0;
    bool ok = p->role == IR_SRC          ? src
              : p->role == IR_DST        ? dst
              : p->role == IR_NODE       ? src || dst
              : p->role == IR_EDGE_FIELD ? strcmp(at, "edge") == 0
                                         : p->role == IR_PARAM_FIELD && strcmp(at, "param") == 0;
    if (!ok)
        return ir_check_fail(c, "a %s field cannot be read at '%s'", ir_role_text(p->role), at);
    ir_type want = p->type;
    want.space = dst ? IR_ROW : p->role == IR_PARAM_FIELD ? IR_UNIFORM : IR_EDGE;
    return ir_check_type_is(c, op, want);
}

static bool check_param(ir_check *c, const ir_op *op) {
    const ir_param *p;
    if (!ir_check_param_index(c, op, &p))
        return false;
    if (p->role != IR_PARAM_FIELD)
        return ir_check_fail(c, "'%s' is a graph, not a tensor", p->name);
    return ir_check_type_is(c, op, p->type);
}

static bool check_const(ir_check *c, const ir_op *op) {
    return (op->type.dtype < IR_DTYPE_COUNT && op->type.space == IR_UNIFORM) ||
           ir_check_fail(c, "a constant is uniform and has an element type");
}

static bool check_broadcast(ir_check *c, const ir_op *op) {
    const ir_type *from = &ir_check_arg(c, op, 0)->type;
    ir_type want;
    if (from->dtype != op->type.dtype || from->dtype >= IR_DTYPE_COUNT)
        return ir_check_fail(c, "it keeps the element type");
    if (from->space > op->type.space)
        return ir_check_fail(c, "it cannot go to a narrower space");
    if (!ir_check_same_shape(c->f, from, &op->type) &&
        (!ir_broadcast(from, &op->type, &want) || !ir_shape_equal(&want, &op->type)))
        return ir_check_fail(c, "the operand does not stretch to the shape of the result");
    return true;
}

static bool check_newaxis(ir_check *c, const ir_op *op) {
    const ir_type *from = &ir_check_arg(c, op, 0)->type;
    uint64_t axes = (uint64_t)ir_int(op, IR_ATTR_AXES, 0);
    uint32_t added = (uint32_t)__builtin_popcountll(axes), rank = from->rank + added, at = 0;
    if (!added || rank > IR_MAX_RANK || axes >> rank)
        return ir_check_fail(c, "axes = %llu does not fit an operand of rank %u", (unsigned long long)axes, from->rank);
    if (c->f->level == IR_LEVEL_PROGRAM && axes & 1)
        return ir_check_fail(c, "in a program the first axis stays the first");
    ir_type want = {.dtype = from->dtype, .space = from->space, .rank = rank};
    for (uint32_t i = 0; i < rank; i++)
        want.dim[i] = axes >> i & 1 ? 1 : from->dim[at++];
    return from->dtype < IR_DTYPE_COUNT ? ir_check_type_is(c, op, want) : ir_check_fail(c, "it needs an element type");
}

static bool check_fold(ir_check *c, const ir_op *op) {
    const ir_type *from = &ir_check_arg(c, op, 0)->type;
    uint64_t axes = (uint64_t)ir_int(op, IR_ATTR_AXES, 0);
    ir_kind k;
    if (!ir_check_kind(c, op, &k) || !ir_check_kind_on(c, k, from->dtype))
        return false;
    if (!ir_kind_is_primitive(k))
        return ir_check_fail(c, "%s cannot fold", ir_kind_text(k));
    if (axes >> from->rank || (axes == 0 && from->rank))
        return ir_check_fail(c, "axes = %llu does not fit an operand of rank %u", (unsigned long long)axes, from->rank);
    ir_type want = {.dtype = from->dtype, .space = from->space};
    for (uint32_t i = 0; i < from->rank; i++)
        if (!(axes >> i & 1))
            want.dim[want.rank++] = from->dim[i];
    return ir_check_type_is(c, op, want);
}

static bool is_prefix(const ir_type *a, const ir_type *b) {
    return a->rank <= b->rank && memcmp(a->dim, b->dim, sizeof a->dim[0] * a->rank) == 0;
}

static bool check_softmax(ir_check *c, const ir_op *op) {
    const ir_type *score = &ir_check_arg(c, op, 0)->type, *value = &ir_check_arg(c, op, 1)->type;
    if (!ir_dtype_is_float(score->dtype) || score->dtype != value->dtype)
        return ir_check_fail(c, "softmax needs two operands of one float type");
    if (!is_prefix(score, value))
        return ir_check_fail(c, "the shape of the score is not a prefix of the shape of the value");
    ir_type want = *value;
    want.space = IR_ROW;
    return ir_check_type_is(c, op, want);
}

/* The element type of the result, IR_NONE when the kind does not work on t. */
static ir_dtype reduced(ir_kind k, ir_dtype t) {
    switch (k) {
    case IR_KIND_SUM:
    case IR_KIND_PROD:
    case IR_KIND_MIN:
    case IR_KIND_MAX:
    case IR_KIND_AND:
    case IR_KIND_OR:
        return ir_eval_defined(ir_kind_opcode(k), t) ? t : IR_NONE;
    case IR_KIND_ARGMIN:
    case IR_KIND_ARGMAX:
        return ir_eval_defined(IR_LT, t) ? IR_I64 : IR_NONE;
    case IR_KIND_MEAN:
        return ir_dtype_is_float(t) || ir_dtype_is_complex(t) ? t : IR_NONE;
    case IR_KIND_LOGSUMEXP:
    case IR_KIND_VAR:
    case IR_KIND_STD:
        return ir_dtype_is_float(t) ? t : IR_NONE;
    case IR_KIND_COUNT:
        return t == IR_BOOL ? IR_I64 : IR_NONE;
    case IR_KIND_ANY:
    case IR_KIND_ALL:
        return t == IR_BOOL ? t : IR_NONE;
    case IR_KIND_SOFTMAX:
    case IR_KIND_COUNT_:
        break;
    }
    return IR_NONE;
}

static bool check_reduce(ir_check *c, const ir_op *op) {
    ir_kind k;
    if (!ir_check_kind(c, op, &k))
        return false;
    if (!ir_walks(c->f))
        return ir_check_fail(c, "a kernel over rows has no edges");
    uint32_t n = k == IR_KIND_SOFTMAX ? 2 : 1;
    if (op->n_args != n && !(k == IR_KIND_COUNT && op->n_args == 0))
        return ir_check_fail(c, "%s takes %u operands", ir_kind_text(k), n);
    if (k == IR_KIND_SOFTMAX)
        return check_softmax(c, op);
    ir_type want = {.dtype = IR_I64};
    if (op->n_args) {
        want = ir_check_arg(c, op, 0)->type;
        want.dtype = reduced(k, want.dtype);
        if (want.dtype == IR_NONE)
            return ir_check_fail(c, "%s does not work on %s", ir_kind_text(k),
                                 ir_dtype_text(ir_check_arg(c, op, 0)->type.dtype));
    }
    want.space = IR_ROW;
    return ir_check_type_is(c, op, want);
}

static bool check_total(ir_check *c, const ir_op *op) {
    const ir_type *from = &ir_check_arg(c, op, 0)->type;
    ir_kind k;
    if (!ir_check_kind(c, op, &k) || !ir_check_kind_on(c, k, from->dtype))
        return false;
    if (!ir_kind_is_primitive(k) || from->space == IR_EDGE)
        return ir_check_fail(c, "it takes a primitive kind and a row value");
    ir_type want = ir_scalar(from->dtype);
    if (op->type.rank) {
        want = *from;
        want.space = IR_UNIFORM;
    }
    return ir_check_type_is(c, op, want);
}

static bool is_square(const ir_func *f, const char *graph) {
    uint32_t dst, src;
    return f->needs_square || (ir_graph_sym(f, graph, "dst", &dst) && ir_graph_sym(f, graph, "src", &src) &&
                               ir_dim_canonical(f, ir_dim_sym(dst)) == ir_dim_canonical(f, ir_dim_sym(src)));
}

static bool check_call(ir_check *c, const ir_op *op) {
    const ir_func *callee = ir_func_find(c->m, ir_word(op, IR_ATTR_CALLEE), IR_LEVEL_KERNEL);
    int64_t graph = ir_int(op, IR_ATTR_GRAPH, -1);
    if (!callee)
        return ir_check_fail(c, "there is no kernel @%s", ir_word(op, IR_ATTR_CALLEE));
    if (graph < -1 || graph >= (int64_t)c->f->n_params || (graph >= 0 && c->f->params[graph].role != IR_GRAPH_FIELD))
        return ir_check_fail(c, "parameter %lld is no graph", (long long)graph);
    if (graph < 0 && (ir_walks(callee) || !ir_find_attr(op, IR_ATTR_DIM)))
        return ir_check_fail(c, "without a graph it needs a kernel over rows, and {dim}");
    if (graph >= 0 && ir_find_attr(op, IR_ATTR_DIM))
        return ir_check_fail(c, "the rows of a graph need no {dim}");
    if (callee->needs_square && graph >= 0 && !is_square(c->f, c->f->params[graph].name))
        return ir_check_fail(c, "@%s needs a square graph, so this function does", callee->name);
    if (op->n_args != callee->n_params)
        return ir_check_fail(c, "%u operands for the %zu parameters of @%s", op->n_args, callee->n_params,
                             callee->name);
    ir_dim *dims = base_alloc(sizeof *dims * (callee->n_syms + 1));
    base_str why = {0};
    if (!dims)
        return ir_check_fail(c, "out of memory");
    bool ok = ir_bind_call(c->f, op, callee, dims, &why);
    if (!ok)
        ir_check_fail(c, "%s", base_str_text(&why));
    else if (callee->n_results != 1)
        ok = ir_check_type_is(c, op, ir_scalar(IR_TUPLE));
    else {
        ir_type want;
        ok = ir_call_result(c->f, op, callee, dims, 0, &want, &why);
        bool single =
            want.rank && want.dim[0] == 1 && op->type.rank + 1 == want.rank; /* one row may be typed as none */
        if (ok && graph < 0 && single) {
            memmove(want.dim, want.dim + 1, sizeof want.dim[0] * --want.rank);
        }
        ok = ok ? ir_check_type_is(c, op, want) : ir_check_fail(c, "%s", base_str_text(&why));
    }
    base_str_fini(&why);
    base_free(dims);
    return ok;
}

static bool check_grad(ir_check *c, const ir_op *op) {
    int64_t n = ir_int(op, IR_ATTR_OUTPUTS, 0);
    if (n < 1 || 2 * (uint64_t)n >= op->n_args)
        return ir_check_fail(c, "it takes outputs, as many cotangents, and values with respect to which");
    for (uint32_t i = 0; i < op->n_args; i++)
        if (!ir_dtype_has_gradient(ir_check_arg(c, op, i)->type.dtype))
            return ir_check_fail(c, "operand %u holds no floats", i);
    for (uint32_t i = 0; i < n; i++) {
        const ir_type *y = &ir_check_arg(c, op, i)->type, *ct = &ir_check_arg(c, op, (uint32_t)n + i)->type;
        if (y->dtype != ct->dtype || !ir_check_same_shape(c->f, y, ct))
            return ir_check_fail(c, "cotangent %u is not of the type of its output", i);
    }
    return ir_check_type_is(c, op, ir_scalar(IR_TUPLE));
}

bool ir_check_get_call(ir_check *c, const ir_op *op, const ir_op *call, uint64_t index) {
    const ir_func *callee = ir_func_find(c->m, ir_word(call, IR_ATTR_CALLEE), IR_LEVEL_KERNEL);
    if (!callee || index >= callee->n_results)
        return ir_check_fail(c, "the tuple has no member %llu", (unsigned long long)index);
    ir_dim *dims = base_alloc(sizeof *dims * (callee->n_syms + 1));
    base_str why = {0};
    ir_type want;
    if (!dims)
        return ir_check_fail(c, "out of memory");
    bool ok = ir_bind_call(c->f, call, callee, dims, &why) &&
              ir_call_result(c->f, call, callee, dims, (size_t)index, &want, &why);
    bool single = ok && ir_int(call, IR_ATTR_GRAPH, -1) < 0 && want.rank && want.dim[0] == 1;
    if (single && op->type.rank + 1 == want.rank)
        memmove(want.dim, want.dim + 1, sizeof want.dim[0] * --want.rank);
    ok = ok ? ir_check_type_is(c, op, want) : ir_check_fail(c, "%s", base_str_text(&why));
    base_str_fini(&why);
    base_free(dims);
    return ok;
}

static bool check_ret(ir_check *c, const ir_op *op) {
    if (!ir_check_last(c, op, true))
        return false;
    if (op->n_args != c->f->n_results)
        return ir_check_fail(c, "%u values for %zu results", op->n_args, c->f->n_results);
    for (uint32_t i = 0; i < op->n_args; i++) {
        const ir_type *a = &ir_check_arg(c, op, i)->type, *b = &c->f->results[i].type;
        if (a->dtype != b->dtype || !ir_check_same_shape(c->f, a, b))
            return ir_check_fail(c, "value %u is not of the type of result '%s'", i, c->f->results[i].name);
        if (a->space > b->space)
            return ir_check_fail(c, "value %u is a value per %s; result '%s' is not", i, ir_space_text(a->space),
                                 c->f->results[i].name);
    }
    return true;
}

bool ir_check_graph_op(ir_check *c, const ir_op *op) {
    if (c->f->level == IR_LEVEL_KERNEL && c->depth && !ir_check_in_combine(c, op))
        return false;
    if (c->f->level == IR_LEVEL_KERNEL && !ir_check_scanned(c, op))
        return false;
    if (ir_class_is_elementwise(ir_op_describe(op->code)->cls))
        return ir_check_elementwise(c, op);
    if (c->f->level == IR_LEVEL_KERNEL && op->type.space == IR_EDGE && !ir_walks(c->f))
        return ir_check_fail(c, "a kernel over rows has no edges");
    ir_type row_i64 = {.dtype = IR_I64, .space = IR_ROW};
    if (op->code == IR_CONST)
        return check_const(c, op);
    if (op->code == IR_FIELD)
        return check_field(c, op);
    if (op->code == IR_PARAM)
        return check_param(c, op);
    if (op->code == IR_DIMSIZE)
        return ir_check_type_is(c, op, ir_scalar(IR_I64));
    if (op->code == IR_DEGREE && op->n_args)
        return ir_check_fail(c, "in a kernel it takes no operand");
    if (op->code == IR_DEGREE)
        return ir_check_type_is(c, op, row_i64);
    if (op->code == IR_BROADCAST)
        return check_broadcast(c, op);
    if (op->code == IR_NEWAXIS)
        return check_newaxis(c, op);
    if (op->code == IR_FOLD)
        return check_fold(c, op);
    if (op->code == IR_REDUCE)
        return check_reduce(c, op);
    if (op->code == IR_TOTAL)
        return check_total(c, op);
    if (op->code == IR_COMBINE)
        return ir_check_combine(c, op);
    if (ir_is_shape_op(op->code))
        return ir_check_shape_op(c, op);
    if (op->code == IR_CALL)
        return check_call(c, op);
    if (op->code == IR_GRAD)
        return check_grad(c, op);
    if (op->code == IR_PUSH)
        return ir_check_arg(c, op, 0)->type.dtype < IR_DTYPE_COUNT || ir_check_fail(c, "the operand is no tensor");
    if (op->code == IR_POP)
        return op->type.dtype < IR_DTYPE_COUNT || ir_check_fail(c, "it is a tensor");
    bool holds;
    if (ir_check_control(c, op, &holds))
        return holds;
    if (op->code == IR_RET)
        return check_ret(c, op);
    return op->code == IR_ARG || ir_check_fail(c, "no rule for this operation");
}
