/* expand: the reducers that are sugar, in terms of the primitive ones.
 *
 *   mean v       div(reduce v {sum}, cast(degree))        count    degree
 *   any, all     reduce {or}, {and}                       count b  reduce (cast b) {sum}, as i64
 *
 * The operation keeps its id, so uses need no change.  How a mean treats empty rows (empty = v) is the frontend's
 * business: it has selected on the degree already. */
#include "passes/pass_util.h"

static ir_id before(ir_builder *b, size_t *at, ir_opcode code, ir_type type, const ir_id *args, size_t n_args) {
    ir_id id = ir_op_new(b->m, b->f, code, type, args, n_args);
    ir_at(b->f, id)->span = b->span;
    ir_insert(b->m, b->r, (*at)++, id);
    return id;
}

static void become(ir_module *m, ir_op *op, ir_opcode code, const ir_id *args, size_t n_args) {
    op->code = code;
    ir_drop_attr(op, IR_ATTR_KIND);
    ir_set_args(m, op, args, n_args);
}

static void expand_mean(ir_builder *b, size_t *at, ir_id id) {
    ir_op *op = ir_at(b->f, id);
    ir_type degree = ir_scalar(IR_I64), count = ir_scalar(op->type.dtype);
    degree.space = count.space = IR_ROW;
    ir_id sum = before(b, at, IR_REDUCE, op->type, op->args, 1);
    ir_set_word(b->m, ir_at(b->f, sum), IR_ATTR_KIND, "sum");
    ir_id d = before(b, at, IR_DEGREE, degree, NULL, 0);
    ir_id c = before(b, at, IR_CAST, count, &d, 1);
    become(b->m, op, IR_DIV, (ir_id[]){sum, c}, 2);
}

static void expand_count(ir_builder *b, size_t *at, ir_id id) {
    ir_op *op = ir_at(b->f, id);
    if (!op->n_args) {
        become(b->m, op, IR_DEGREE, NULL, 0);
        return;
    }
    ir_type type = ir_at(b->f, op->args[0])->type;
    type.dtype = IR_I64;
    ir_id one = before(b, at, IR_CAST, type, op->args, 1);
    op->args[0] = one;
    ir_set_word(b->m, op, IR_ATTR_KIND, "sum");
}

static bool expand_func(ir_module *m, ir_func *f, pass_context *ctx, base_str *err) {
    (void)ctx;
    (void)err;
    ir_builder b = {.m = m, .f = f, .r = &f->body};
    for (size_t i = 0; i < b.r->n; i++) {
        ir_id id = b.r->ops[i];
        ir_op *op = ir_at(f, id);
        if (op->code != IR_REDUCE)
            continue;
        b.span = op->span;
        ir_kind k = ir_kind_of(op);
        if (k == IR_KIND_MEAN)
            expand_mean(&b, &i, id);
        else if (k == IR_KIND_COUNT)
            expand_count(&b, &i, id);
        else if (k == IR_KIND_ANY || k == IR_KIND_ALL)
            ir_set_word(m, op, IR_ATTR_KIND, k == IR_KIND_ANY ? "or" : "and");
    }
    return true;
}

bool pass_expand(ir_module *m, pass_context *ctx, base_str *err) {
    return pass_each_func(m, 1u << IR_LEVEL_KERNEL, expand_func, ctx, err);
}
