/* Rules of repeat, while, if and yield, which are the same for programs and task functions; and of get, which takes the
 * tuples apart that they and calls give. */
#include "ir/ir_check.h"

/* The operation whose region this one stands in; NULL in the body. */
static const ir_op *around(const ir_check *c, int levels) {
    return c->depth >= levels ? ir_at(c->f, c->loops[c->depth - levels]) : NULL;
}

static bool ends_with_yield(ir_check *c, const ir_op *op) {
    const ir_region *r = op->region;
    ir_id last = r->n ? r->ops[r->n - 1] : 0;
    return (last > 0 && last < c->f->n_ops && ir_at(c->f, last)->code == IR_YIELD) ||
           ir_check_fail(c, "its region does not end with yield");
}

static bool check_get(ir_check *c, const ir_op *op) {
    const ir_op *tuple = ir_check_arg(c, op, 0);
    uint64_t index = (uint64_t)ir_int(op, IR_ATTR_INDEX, -1);
    if (tuple->type.dtype != IR_TUPLE)
        return ir_check_fail(c, "the operand is no tuple");
    if (tuple->code == IR_CALL)
        return ir_check_get_call(c, op, tuple, index);
    if (tuple->code == IR_COMBINE)
        return ir_check_get_state(c, op, tuple, index);
    uint64_t first = 2 * (uint64_t)ir_int(tuple, IR_ATTR_OUTPUTS, 0);
    if (tuple->code == IR_GRAD)
        return index < tuple->n_args && first + index < tuple->n_args
                   ? ir_check_type_is(c, op, ir_check_arg(c, tuple, (uint32_t)(first + index))->type)
                   : ir_check_fail(c, "the tuple has no member %llu", (unsigned long long)index);
    bool choice = tuple->code == IR_IF;
    const ir_op *like = choice ? ir_yield_of(c->f, tuple) : tuple; /* its operands have the types of the members */
    if (index >= UINT32_MAX || index + !choice >= like->n_args)
        return ir_check_fail(c, "the tuple has no member %llu", (unsigned long long)index);
    return ir_check_type_is(c, op, ir_check_arg(c, like, (uint32_t)index + !choice)->type);
}

static bool check_repeat(ir_check *c, const ir_op *op) {
    if (!ir_check_scalar_arg(c, op, 0, IR_I64) || !ir_check_type_is(c, op, ir_scalar(IR_TUPLE)))
        return false;
    ir_type *types = base_alloc(sizeof *types * op->n_args);
    if (!types)
        return ir_check_fail(c, "out of memory");
    for (uint32_t i = 1; i < op->n_args; i++)
        types[i - 1] = ir_check_arg(c, op, i)->type;
    bool ok = ir_check_region_args(c, op, op->n_args - 1, types);
    base_free(types);
    return ok && ends_with_yield(c, op);
}

static bool check_while(ir_check *c, const ir_op *op) {
    const ir_op *repeat = around(c, 1);
    if (!repeat || repeat->code != IR_REPEAT)
        return ir_check_fail(c, "it stands in the region of a repeat");
    return ir_check_scalar_arg(c, op, 0, IR_BOOL);
}

static bool check_if(ir_check *c, const ir_op *op) {
    if (!ir_check_scalar_arg(c, op, 0, IR_BOOL) || !ir_check_type_is(c, op, ir_scalar(IR_TUPLE)))
        return false;
    bool two = op->region->n == 2;
    for (size_t i = 0; i < 2 && two; i++) {
        ir_id arm = op->region->ops[i];
        two = arm > 0 && arm < c->f->n_ops && ir_at(c->f, arm)->code == IR_ARM;
    }
    return two || ir_check_fail(c, "its region is two arms");
}

static bool check_arm(ir_check *c, const ir_op *op) {
    const ir_op *choice = around(c, 1);
    if (!choice || choice->code != IR_IF)
        return ir_check_fail(c, "it stands in the region of an if");
    return ends_with_yield(c, op);
}

static bool same_types(ir_check *c, const ir_op *op, const ir_op *like, uint32_t from, const char *what) {
    if (op->n_args + from != like->n_args)
        return ir_check_fail(c, "%u values for %u of %s", op->n_args, like->n_args - from, what);
    for (uint32_t i = 0; i < op->n_args; i++) {
        const ir_type *a = &ir_check_arg(c, op, i)->type, *b = &ir_check_arg(c, like, i + from)->type;
        if (a->dtype != b->dtype || !ir_check_same_shape(c->f, a, b))
            return ir_check_fail(c, "value %u is of another type than that of %s", i, what);
    }
    return true;
}

static bool check_yield_of_arm(ir_check *c, const ir_op *op) {
    if (c->f->level == IR_LEVEL_TASK)
        return op->n_args == 0 || ir_check_fail(c, "in a task function an arm yields nothing");
    for (uint32_t i = 0; i < op->n_args; i++)
        if (ir_check_arg(c, op, i)->type.dtype >= IR_DTYPE_COUNT)
            return ir_check_fail(c, "value %u is no tensor", i);
    const ir_op *first = ir_yield_of(c->f, around(c, 2)); /* has been checked by the time of the second */
    return first == op || same_types(c, op, first, 0, "the first arm");
}

static bool check_yield(ir_check *c, const ir_op *op) {
    const ir_op *in = around(c, 1);
    if (in && in->code == IR_COMBINE)
        return ir_check_yield_state(c, op, in);
    if (!in || (in->code != IR_REPEAT && in->code != IR_ARM) || !c->is_last)
        return ir_check_fail(c, "it ends the region of a repeat or an arm");
    return in->code == IR_ARM ? check_yield_of_arm(c, op) : same_types(c, op, in, 1, "the repeat");
}

bool ir_check_control(ir_check *c, const ir_op *op, bool *holds) {
    static const struct {
        ir_opcode code;
        bool (*check)(ir_check *c, const ir_op *op);
    } rules[] = {{IR_GET, check_get}, {IR_REPEAT, check_repeat}, {IR_WHILE, check_while},
                 {IR_IF, check_if},   {IR_ARM, check_arm},       {IR_YIELD, check_yield}};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (rules[i].code != op->code)
            continue;
        *holds = rules[i].check(c, op);
        return true;
    }
    return false;
}
