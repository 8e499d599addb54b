/* Rules of task functions: instances are bound or made, launches fit their loop function, and what a launch touches is
 * acquired in the way it is touched. */
#include "ir/ir_check.h"

#include <string.h>

static bool is_one_of(const char *word, const char *const *words) {
    for (; *words; words++)
        if (strcmp(word, *words) == 0)
            return true;
    return false;
}

static bool check_instances(ir_check *c, const ir_op *op, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (ir_check_arg(c, op, i)->type.dtype != IR_INSTANCE_T)
            return ir_check_fail(c, "operand %u must be an instance", i);
    return true;
}

static bool check_bind(ir_check *c, const ir_op *op) {
    const char *kind = ir_word(op, IR_ATTR_KIND);
    int64_t i = ir_int(op, IR_ATTR_INDEX, -1);
    bool param = strcmp(kind, "param") == 0;
    if (!param && strcmp(kind, "result") != 0)
        return ir_check_fail(c, "its kind is param or result, not '%s'", kind);
    if (i < 0 || (uint64_t)i >= (param ? c->f->n_params : c->f->n_results))
        return ir_check_fail(c, "there is no %s %lld", kind, (long long)i);
    if (param && c->f->params[i].role == IR_GRAPH_FIELD)
        return ir_check_fail(c, "parameter '%s' is a graph", c->f->params[i].name);
    return ir_check_type_is(c, op, ir_scalar(IR_INSTANCE_T));
}

static bool check_instance(ir_check *c, const ir_op *op) {
    static const char *const tiers[] = {"host", "device", "pinned", "disk", NULL};
    if (!is_one_of(ir_word(op, IR_ATTR_TIER), tiers))
        return ir_check_fail(c, "there is no tier '%s'", ir_word(op, IR_ATTR_TIER));
    if (ir_int(op, IR_ATTR_VERSION, -1) < 0)
        return ir_check_fail(c, "a version is not negative");
    return ir_check_scalar_arg(c, op, 0, IR_I64) && ir_check_type_is(c, op, ir_scalar(IR_INSTANCE_T));
}

/* What holds an instance from here on; undone at the end of the region. */
static bool hold(ir_check *c, ir_id instance, unsigned char how) {
    if (c->n_undo == c->cap_undo) {
        size_t cap = c->cap_undo ? 2 * c->cap_undo : 64;
        ir_check_hold *more = base_realloc(c->undo, cap * sizeof *more);
        if (!more)
            return ir_check_fail(c, "out of memory");
        c->undo = more;
        c->cap_undo = cap;
    }
    c->undo[c->n_undo++] = (ir_check_hold){instance, c->held[instance]};
    c->held[instance] = how;
    return true;
}

static bool check_acquire(ir_check *c, const ir_op *op) {
    static const char *const modes[] = {"read", "write", NULL};
    if (!check_instances(c, op, 1))
        return false;
    if (!is_one_of(ir_word(op, IR_ATTR_MODE), modes))
        return ir_check_fail(c, "its mode is read or write, not '%s'", ir_word(op, IR_ATTR_MODE));
    return hold(c, op->args[0], strcmp(ir_word(op, IR_ATTR_MODE), "write") ? IR_HELD_READ : IR_HELD_WRITE);
}

static bool walks_edges(const ir_func *f) {
    for (ir_id id = 1; id < f->n_ops; id++) {
        ir_opcode code = ir_at(f, id)->code;
        if (code == IR_EDGES || code == IR_DEGREE || code == IR_SOURCE)
            return true;
    }
    return false;
}

static bool check_launch_graph(ir_check *c, const ir_op *op, const ir_func *callee) {
    int64_t graph = ir_int(op, IR_ATTR_GRAPH, -1);
    bool named = false; /* a task made of a kernel has no graph parameter: its one graph is 0 */
    for (size_t i = 0; i < c->f->n_params; i++)
        named |= c->f->params[i].role == IR_GRAPH_FIELD;
    if (graph < -1 ||
        (graph >= 0 && named && (graph >= (int64_t)c->f->n_params || c->f->params[graph].role != IR_GRAPH_FIELD)))
        return ir_check_fail(c, "parameter %lld is no graph", (long long)graph);
    return graph >= 0 || !walks_edges(callee) || ir_check_fail(c, "@%s walks edges, so it needs a graph", callee->name);
}

static bool check_held(ir_check *c, const ir_op *op, uint32_t i, bool written) {
    unsigned char how = c->held[op->args[i]];
    if (!how)
        return ir_check_fail(c, "operand %u is not acquired here", i);
    return !written || how == IR_HELD_WRITE || ir_check_fail(c, "operand %u is written but acquired to read", i);
}

static bool check_launch(ir_check *c, const ir_op *op) {
    const ir_func *callee = ir_func_find(c->m, ir_word(op, IR_ATTR_CALLEE), IR_LEVEL_LOOP);
    if (!callee)
        return ir_check_fail(c, "there is no loop function @%s", ir_word(op, IR_ATTR_CALLEE));
    int64_t buffers = ir_int(op, IR_ATTR_BUFFERS, -1), outputs = ir_int(op, IR_ATTR_OUTPUTS, -1), out = 0;
    for (size_t i = 0; i < callee->n_params; i++)
        out += ir_role_is_out(callee->params[i].role);
    if (buffers != (int64_t)callee->n_params || outputs != out)
        return ir_check_fail(c, "@%s has %zu buffers, %lld of them written", callee->name, callee->n_params,
                             (long long)out);
    if (op->n_args != callee->n_params + 1 + callee->n_syms)
        return ir_check_fail(c, "%u operands for %zu buffers, the rows and %zu dimensions of @%s", op->n_args,
                             callee->n_params, callee->n_syms, callee->name);
    if (!check_launch_graph(c, op, callee) || !check_instances(c, op, (uint32_t)buffers))
        return false;
    for (uint32_t i = (uint32_t)buffers; i < op->n_args; i++)
        if (!ir_check_scalar_arg(c, op, i, IR_I64))
            return false;
    for (uint32_t i = 0; i < buffers; i++)
        if (!check_held(c, op, i, ir_role_is_out(callee->params[i].role)))
            return false;
    return true;
}

static bool check_read(ir_check *c, const ir_op *op) {
    ir_type type = ir_scalar(op->code == IR_READB ? IR_BOOL : IR_I64);
    return check_instances(c, op, 1) && check_held(c, op, 0, false) && ir_check_type_is(c, op, type);
}

static bool check_pages(ir_check *c, const ir_op *op) {
    if (ir_int(op, IR_ATTR_PAGES, 1) < 1)
        return ir_check_fail(c, "a schedule has at least one page");
    return ir_check_region_args(c, op, 1, NULL);
}

static bool check_end(ir_check *c, const ir_op *op) {
    return ir_check_last(c, op, true) && (op->n_args == 0 || ir_check_fail(c, "here it takes no operand"));
}

bool ir_check_task_op(ir_check *c, const ir_op *op) {
    if (op->type.rank)
        return ir_check_fail(c, "only scalars and instances exist on this level");
    if (ir_class_is_elementwise(ir_op_describe(op->code)->cls))
        return ir_check_elementwise(c, op);
    if (op->code == IR_BIND)
        return check_bind(c, op);
    if (op->code == IR_INSTANCE)
        return check_instance(c, op);
    if (op->code == IR_ACQUIRE)
        return check_acquire(c, op);
    if (op->code == IR_PUSH || op->code == IR_RESTORE)
        return check_instances(c, op, 1);
    if (op->code == IR_DONE || op->code == IR_RELEASE)
        return check_instances(c, op, 1) && hold(c, op->args[0], IR_HELD_NOT);
    if (op->code == IR_COPY)
        return check_instances(c, op, 2);
    if (op->code == IR_LAUNCH)
        return check_launch(c, op);
    if (op->code == IR_READI || op->code == IR_READB)
        return check_read(c, op);
    if (op->code == IR_PAGES)
        return check_pages(c, op);
    if (op->code == IR_DIMSIZE)
        return ir_check_type_is(c, op, ir_scalar(IR_I64));
    bool holds;
    if (ir_check_control(c, op, &holds))
        return holds;
    if (op->code == IR_RET)
        return check_end(c, op);
    return op->code == IR_ARG || op->code == IR_CONST || ir_check_fail(c, "no rule for this operation");
}
