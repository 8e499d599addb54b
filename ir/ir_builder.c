/* The builder: operations appended to a region, with the common types worked out. */
#include "ir/ir.h"

ir_id ir_emit(ir_builder *b, ir_opcode code, ir_type type, const ir_id *args, size_t n_args) {
    ir_id id = ir_op_new(b->m, b->f, code, type, args, n_args);
    ir_at(b->f, id)->span = b->span;
    ir_append(b->m, b->r, id);
    return id;
}

ir_id ir_emit1(ir_builder *b, ir_opcode code, ir_type type, ir_id a) { return ir_emit(b, code, type, &a, 1); }

ir_id ir_emit2(ir_builder *b, ir_opcode code, ir_type type, ir_id a, ir_id c) {
    return ir_emit(b, code, type, (ir_id[]){a, c}, 2);
}

ir_id ir_emit3(ir_builder *b, ir_opcode code, ir_type type, ir_id a, ir_id c, ir_id d) {
    return ir_emit(b, code, type, (ir_id[]){a, c, d}, 3);
}

ir_id ir_emit_const(ir_builder *b, ir_type type, ir_scalar_value v) {
    ir_id id = ir_emit(b, IR_CONST, type, NULL, 0);
    ir_set_value(b->m, ir_at(b->f, id), v);
    return id;
}

ir_id ir_emit_i64(ir_builder *b, int64_t v) { return ir_emit_const(b, ir_scalar(IR_I64), (ir_scalar_value){.i = v}); }

ir_id ir_emit_f(ir_builder *b, ir_type type, double v) {
    BASE_CHECK(ir_dtype_is_float(type.dtype) || ir_dtype_is_complex(type.dtype));
    ir_scalar_value x = {.i = 0};
    if (ir_dtype_is_complex(type.dtype)) {
        ir_scalar_value re = {.d = v};
        re = ir_eval(IR_CAST, IR_F64, ir_dtype_part(type.dtype), &re);
        x = ir_complex(type.dtype, re, (ir_scalar_value){.i = 0});
    } else if (type.dtype == IR_F32)
        x.f = (float)v;
    else
        x.d = v;
    return ir_emit_const(b, type, x);
}

ir_id ir_emit_dimsize(ir_builder *b, ir_dim d) {
    BASE_CHECK(d != IR_DIM_TILE);
    if (!ir_dim_is_sym(d))
        return ir_emit_i64(b, d);
    ir_id id = ir_emit(b, IR_DIMSIZE, ir_scalar(IR_I64), NULL, 0);
    ir_set_int(b->m, ir_at(b->f, id), IR_ATTR_DIM, d);
    return id;
}

ir_id ir_emit_cast(ir_builder *b, ir_dtype to, ir_id a) {
    ir_type type = ir_at(b->f, a)->type;
    type.dtype = to;
    return ir_emit1(b, IR_CAST, type, a);
}

ir_space ir_widest_space(const ir_func *f, const ir_id *args, size_t n_args) {
    ir_space widest = IR_UNIFORM;
    for (size_t i = 0; i < n_args; i++)
        if (ir_at(f, args[i])->type.space > widest)
            widest = ir_at(f, args[i])->type.space;
    return widest;
}

ir_id ir_emit_elementwise(ir_builder *b, ir_opcode code, const ir_id *args, size_t n_args) {
    ir_class cls = ir_op_describe(code)->cls;
    BASE_CHECK(ir_class_is_elementwise(cls) && code != IR_CAST && n_args > 0);
    ir_type type = ir_at(b->f, args[n_args - 1])->type; /* the last operand has the dtype of the result */
    for (size_t i = 0; i + 1 < n_args; i++) {
        const ir_type *t = &ir_at(b->f, args[i])->type;
        if (!ir_broadcast(&type, t, &type))
            BASE_BUG("%s: shapes do not broadcast", ir_op_describe(code)->text);
    }
    type.space = ir_widest_space(b->f, args, n_args);
    type.dtype = ir_elementwise_dtype(code, type.dtype);
    return ir_emit(b, code, type, args, n_args);
}

ir_region *ir_begin_loop(ir_builder *b, ir_opcode code, ir_type type, const ir_id *args, size_t n_args,
                         size_t n_region_args, ir_id *args_out, ir_id *loop_out) {
    ir_id loop = ir_emit(b, code, type, args, n_args);
    ir_region *outer = b->r;
    b->r = ir_at(b->f, loop)->region = ir_region_new(b->m);
    for (size_t i = 0; i < n_region_args; i++) {
        args_out[i] = ir_emit(b, IR_ARG, ir_scalar(IR_I64), NULL, 0);
        ir_set_int(b->m, ir_at(b->f, args_out[i]), IR_ATTR_INDEX, (int64_t)i);
    }
    if (loop_out)
        *loop_out = loop;
    return outer;
}

void ir_end_loop(ir_builder *b, ir_region *outer) { b->r = outer; }
