/* Every elementwise operation of the table on every type it is defined on, as plain and as vector code, on ordinary values
 * and on NaN, infinities, -0, subnormals and the least integers: the bits of the evaluator. */
#include "codegen_support.h"

static ir_dtype result_of(ir_opcode code, ir_dtype t) { return ir_elementwise_dtype(code, t); }

static uint32_t add_param(ir_module *m, ir_func *f, const char *name, ir_role role, ir_dtype t) {
    ir_param p = {.name = base_arena_strdup(m->arena, name),
                  .role = role,
                  .type = {.dtype = t, .rank = 1, .dim = {ir_dim_sym(0)}}};
    base_push(m->arena, f->params, f->n_params, f->cap_params, p);
    return (uint32_t)f->n_params - 1;
}

static ir_id load(ir_builder *b, uint32_t field, ir_id row, ir_id k) {
    ir_id id = ir_emit2(b, IR_LOAD, ir_scalar(b->f->params[field].type.dtype), row, k);
    ir_set_int(b->m, ir_at(b->f, id), IR_ATTR_FIELD, field);
    return id;
}

static void store(ir_builder *b, const char *name, ir_id row, ir_id k, ir_id v) {
    ir_dtype t = ir_at(b->f, v)->type.dtype;
    ir_id id = ir_emit3(b, IR_STORE, (ir_type){.dtype = IR_NONE}, row, k, v);
    ir_set_int(b->m, ir_at(b->f, id), IR_ATTR_FIELD, add_param(b->m, b->f, name, IR_OUT_ROW, t));
}

/* One loop function: out_OP[i, k] = OP(a[i, k], b[i, k]), for all operations; casts to every type; select by a comparison. */
static void operations(ir_builder *b, ir_dtype t, uint32_t fa, uint32_t fb, uint32_t fc, ir_id row, ir_id k) {
    ir_id a = load(b, fa, row, k), c = load(b, fb, row, k), choice = load(b, fc, row, k);
    for (int code = 1; code < IR_OP_COUNT; ++code) {
        const ir_op_desc *d = ir_op_describe((ir_opcode)code);
        if (!ir_class_is_elementwise(d->cls) || !(d->levels & IR_LEVEL_L) || !ir_eval_defined((ir_opcode)code, t))
            continue;
        const char *name = base_arena_printf(b->m->arena, "out_%s", d->text);
        ir_id args[3] = {a, c, 0};
        if (code == IR_CAST)
            continue;
        if (code == IR_SELECT) {
            store(b, "out_choice", row, k, ir_emit3(b, IR_SELECT, ir_scalar(t), choice, a, c));
            if (!ir_eval_defined(IR_LE, t))
                continue;
            args[0] = ir_emit2(b, IR_LE, ir_scalar(IR_BOOL), a, c), args[1] = c, args[2] = a;
        }
        size_t n = d->cls == IR_CLASS_UNARY ? 1 : code == IR_SELECT ? 3 : 2;
        store(b, name, row, k, ir_emit(b, (ir_opcode)code, ir_scalar(result_of((ir_opcode)code, t)), args, n));
    }
    for (int to = 0; to < IR_DTYPE_COUNT; ++to)
        if (ir_cast_defined(t, (ir_dtype)to))
            store(b, base_arena_printf(b->m->arena, "out_to_%s", ir_dtype_text((ir_dtype)to)), row, k,
                  ir_emit1(b, IR_CAST, ir_scalar((ir_dtype)to), a));
    if (ir_eval_defined(IR_NE, t))
        store(b, "out_self", row, k, ir_emit2(b, IR_NE, ir_scalar(IR_BOOL), a, a));
}

/* The whole set in one lanes loop is plain code: booleans are stored.  {vector} splits them: one operation a loop. */
static void build(ir_module *m, ir_dtype t) {
    ir_func *f = ir_func_new(m, base_arena_printf(m->arena, "plain_%s", ir_dtype_text(t)), IR_LEVEL_LOOP);
    ir_builder b = {.m = m, .f = f, .r = &f->body};
    ir_sym(m, f, "F");
    f->domain = "rows";
    uint32_t fa = add_param(m, f, "a", IR_DST, t), fb = add_param(m, f, "b", IR_DST, t),
             fc = add_param(m, f, "c", IR_DST, IR_BOOL);
    ir_id n = ir_emit_dimsize(&b, ir_dim_sym(0)), row, loop, lane[2];
    ir_region *top = ir_begin_loop(&b, IR_ROWS, (ir_type){.dtype = IR_NONE}, NULL, 0, 1, &row, &loop);
    ir_region *rows = ir_begin_loop(&b, IR_LANES, (ir_type){.dtype = IR_NONE}, &n, 1, 2, lane, &loop);
    operations(&b, t, fa, fb, fc, row, lane[0]);
    ir_end_loop(&b, rows);
    ir_end_loop(&b, top);
}

static void build_vector(ir_module *m, ir_dtype t, int width) {
    ir_func *f = ir_func_new(m, base_arena_printf(m->arena, "vector%d_%s", width, ir_dtype_text(t)), IR_LEVEL_LOOP);
    ir_builder b = {.m = m, .f = f, .r = &f->body};
    ir_sym(m, f, "F");
    f->domain = "rows";
    uint32_t fa = add_param(m, f, "a", IR_DST, t), fb = add_param(m, f, "b", IR_DST, t);
    ir_id n = ir_emit_dimsize(&b, ir_dim_sym(0)), row, loop, lane[2];
    ir_region *top = ir_begin_loop(&b, IR_ROWS, (ir_type){.dtype = IR_NONE}, NULL, 0, 1, &row, &loop);
    for (int code = 1; code < IR_OP_COUNT + IR_DTYPE_COUNT; ++code) {
        bool is_cast = code >= IR_OP_COUNT;
        ir_opcode op = is_cast ? IR_CAST : (ir_opcode)code;
        const ir_op_desc *d = ir_op_describe(op);
        if (!ir_class_is_elementwise(d->cls) || !ir_eval_defined(op, t) || (code == IR_CAST || code == IR_SELECT))
            continue;
        if (is_cast && (code - IR_OP_COUNT == IR_BOOL || !ir_cast_defined(t, (ir_dtype)(code - IR_OP_COUNT))))
            continue;
        ir_region *rows = ir_begin_loop(&b, IR_LANES, (ir_type){.dtype = IR_NONE}, &n, 1, 2, lane, &loop);
        ir_set_int(m, ir_at(f, loop), IR_ATTR_VECTOR, width);
        ir_id a = load(&b, fa, row, lane[0]), c = load(&b, fb, row, lane[0]), args[3] = {a, c, 0};
        ir_type type = ir_scalar(is_cast ? (ir_dtype)(code - IR_OP_COUNT) : result_of(op, t));
        ir_id v = ir_emit(&b, op, type, args, d->cls == IR_CLASS_UNARY ? 1 : 2);
        if (type.dtype == IR_BOOL && ir_dtype_is_complex(t))
            v = ir_emit3(&b, IR_SELECT, ir_scalar(t), v, a, c);
        else if (type.dtype == IR_BOOL) { /* a mask: choose by it, and by its opposite */
            ir_id both = ir_emit2(&b, IR_OR, type, v, ir_emit1(&b, IR_NOT, type, ir_emit2(&b, IR_AND, type, v, v)));
            ir_id x = ir_emit3(&b, IR_SELECT, ir_scalar(t), v, a, c),
                  y = ir_emit3(&b, IR_SELECT, ir_scalar(t), both, x, a);
            v = y;
        }
        store(&b, base_arena_printf(m->arena, "out_%s_%d", d->text, code), row, lane[0], v);
        ir_end_loop(&b, rows);
    }
    ir_end_loop(&b, top);
}

static void check(const ir_module *m, const tiga_module_info *const *info, size_t n_builds, const char *const *builds) {
    static const int64_t degrees[12] = {0};
    base_arena *a = base_arena_new();
    test_graph g = test_graph_new(a, 12, 12, degrees, 1);
    for (size_t i = 0; i < m->n_funcs; ++i)
        for (int special = 0; special < 2; ++special) {
            test_call c = {.f = m->funcs[i], .g = &g};
            test_prepare(&c, a, 53, 12);
            test_fill(&c, a, special, i);
            test_interpret(&c, m);
            for (size_t b = 0; b < n_builds; ++b) {
                test_run(&c, &info[b]->kernels[i], false);
                test_compare(&c, builds[b]);
            }
            test_release(&c);
        }
    base_arena_free(a);
}

static void every_operation_on(const ir_dtype *types, size_t n_types) {
    static const char *const builds[] = {"gcc -std=c11 -O0 -fsanitize=undefined -fsanitize-undefined-trap-on-error",
                                         TEST_CLANG_NATIVE, "gcc -std=gnu11 -O3 -march=native",
                                         "gcc -std=c11 -O1 -DTIGA_NO_VECTORS"};
    enum { N_BUILDS = sizeof builds / sizeof *builds };
    const tiga_module_info *info[N_BUILDS];
    base_arena *a = base_arena_new();
    base_str out = {0}, err = {0};
    ir_module *m = ir_module_new(a, "ops", NULL);
    for (size_t i = 0; i < n_types; ++i) {
        build(m, types[i]);
        if (types[i] != IR_BOOL)
            build_vector(m, types[i], 16);
        if (types[i] == IR_F64 || types[i] == IR_F16 || types[i] == IR_BF16)
            build_vector(m, types[i], 8);
        if (types[i] == IR_F16)
            build_vector(m, types[i], 4);
    }
    cr_assert(ir_verify(m, &err), "%s", base_str_text(&err));
    cr_assert(cg_emit_c(m, &test_options, &out, &err), "%s", base_str_text(&err));
    test_write(a, "ops.c", base_str_text(&out));
    for (size_t b = 0; b < N_BUILDS; ++b)
        info[b] = test_load(a, builds[b], "ops.c", base_arena_printf(a, "ops%zu.so", b));
    check(m, info, N_BUILDS, builds);
    test_remove_folder(a);
    base_str_fini(&out);
    base_arena_free(a);
}

Test(codegen_ops, every_operation_on_bool_and_floats, .timeout = 240) {
    every_operation_on((const ir_dtype[]){IR_BOOL, IR_F32, IR_F64}, 3);
}

Test(codegen_ops, every_operation_on_integers, .timeout = 240) {
    every_operation_on((const ir_dtype[]){IR_I32, IR_I64, IR_I8, IR_U8}, 4);
}

Test(codegen_ops, every_operation_on_complex_numbers, .timeout = 240) {
    every_operation_on((const ir_dtype[]){IR_C64, IR_C128}, 2);
}

Test(codegen_ops, every_operation_on_halves, .timeout = 240) {
    every_operation_on((const ir_dtype[]){IR_F16, IR_BF16}, 2);
}
