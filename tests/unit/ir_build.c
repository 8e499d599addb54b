/* Building and changing modules: ids stay, operations do not move, attributes are in order. */
#include "ir_support.h"

Test(build, operations_do_not_move_and_ids_stay) {
    base_arena *a = base_arena_new();
    ir_module *m = ir_module_new(a, "m", NULL);
    ir_func *f = ir_func_new(m, "f", IR_LEVEL_PROGRAM);
    ir_builder b = {m, f, &f->body, {3, 9}};
    ir_id first = ir_emit_i64(&b, 0);
    const ir_op *p = ir_at(f, first);
    for (int i = 1; i < 1000; i++)
        cr_assert_eq(ir_emit_i64(&b, i), first + (ir_id)i);
    cr_assert_eq(ir_at(f, first), p);
    cr_assert_eq(p->span.end, 9);
    for (int i = 0; i < 1000; i++)
        cr_assert_eq(ir_find_attr(ir_at(f, first + (ir_id)i), IR_ATTR_VALUE)->v.i, i);
    cr_assert_eq(f->body.n, 1000);
}

Test(build, attributes_are_kept_in_order_and_replaced) {
    base_arena *a = base_arena_new();
    ir_module *m = ir_module_new(a, "m", NULL);
    ir_func *f = ir_func_new(m, "f", IR_LEVEL_LOOP);
    ir_op *op = ir_at(f, ir_op_new(m, f, IR_EDGES, ir_scalar(IR_NONE), NULL, 0));
    char word[] = "sum";
    ir_set_int(m, op, IR_ATTR_PREFETCH, 8);
    ir_set_word(m, op, IR_ATTR_KIND, word);
    ir_set_int(m, op, IR_ATTR_LANES, 1);
    ir_set_int(m, op, IR_ATTR_LANES, 16);
    word[0] = 'x';
    cr_assert_eq(op->n_attrs, 3);
    for (uint32_t i = 1; i < op->n_attrs; i++)
        cr_assert_lt(op->attrs[i - 1].key, op->attrs[i].key);
    cr_assert_eq(ir_int(op, IR_ATTR_LANES, 0), 16);
    cr_assert_eq(ir_int(op, IR_ATTR_WIDTH, -7), -7);
    cr_assert_str_eq(ir_word(op, IR_ATTR_KIND), "sum");
    cr_assert_null(ir_word(op, IR_ATTR_NAME));
    cr_assert_eq(ir_kind_of(op), IR_KIND_SUM);
    ir_drop_attr(op, IR_ATTR_KIND);
    ir_drop_attr(op, IR_ATTR_KIND);
    cr_assert_null(ir_find_attr(op, IR_ATTR_KIND));
    cr_assert_eq(ir_int(op, IR_ATTR_PREFETCH, 0), 8);
}

Test(build, regions_insert_erase_and_find) {
    base_arena *a = base_arena_new();
    ir_module *m = ir_module_new(a, "m", NULL);
    ir_region *r = ir_region_new(m);
    for (ir_id id = 1; id <= 20; id++)
        ir_insert(m, r, 0, id);
    ir_insert(m, r, 10, 99);
    size_t at = 0;
    cr_assert(ir_region_find(r, 99, &at));
    cr_assert_eq(at, 10);
    ir_erase(r, 10);
    cr_assert_not(ir_region_find(r, 99, &at));
    for (size_t i = 0; i < 20; i++)
        cr_assert_eq(r->ops[i], 20 - i);
}

Test(build, functions_and_symbols) {
    base_arena *a = base_arena_new();
    ir_module *m = ir_module_new(a, "m", NULL);
    ir_func *k = ir_func_new(m, "f", IR_LEVEL_KERNEL), *l = ir_func_new(m, "f", IR_LEVEL_LOOP);
    cr_assert_eq(ir_func_find(m, "f", IR_LEVEL_KERNEL), k);
    cr_assert_eq(ir_func_find(m, "f", IR_LEVEL_LOOP), l);
    cr_assert_null(ir_func_find(m, "f", IR_LEVEL_TASK));
    ir_func_remove(m, k);
    cr_assert_null(ir_func_find(m, "f", IR_LEVEL_KERNEL));
    cr_assert_eq(m->n_funcs, 1);
    cr_assert_eq(ir_sym(m, l, "F"), 0);
    cr_assert_eq(ir_sym(m, l, "g.dst"), 1);
    cr_assert_eq(ir_sym(m, l, "F"), 0);
    uint32_t at;
    cr_assert(ir_sym_find(l, "g.dst", &at) && at == 1);
    cr_assert_not(ir_sym_find(l, "g", &at));
    cr_assert_eq(ir_dim_sym_index(ir_dim_sym(7)), 7);
    cr_assert_not(ir_dim_is_sym(IR_DIM_TILE));
    cr_assert_not(ir_dim_is_sym(0));
}

Test(build, shapes_broadcast_from_the_right) {
    ir_type a = {.rank = 3, .dim = {ir_dim_sym(0), 1, 4}}, b = {.rank = 2, .dim = {ir_dim_sym(1), 4}},
            c = {.rank = 1, .dim = {1}};
    ir_type out = ir_scalar(IR_F32);
    cr_assert(ir_broadcast(&a, &b, &out));
    cr_assert_eq(out.rank, 3);
    cr_assert_eq(out.dim[0], ir_dim_sym(0));
    cr_assert_eq(out.dim[1], ir_dim_sym(1));
    cr_assert_eq(out.dim[2], 4);
    cr_assert(ir_broadcast(&c, &b, &c));
    cr_assert(ir_shape_equal(&c, &b));
    ir_type three = {.rank = 1, .dim = {3}};
    cr_assert_not(ir_broadcast(&a, &three, &out));
    ir_type sym = {.rank = 1, .dim = {ir_dim_sym(0)}}, other = {.rank = 1, .dim = {ir_dim_sym(1)}};
    cr_assert_not(ir_broadcast(&sym, &other, &out));
}

Test(build, the_builder_works_out_elementwise_types) {
    base_arena *a = base_arena_new();
    ir_module *m = ir_module_new(a, "m", NULL);
    ir_func *f = ir_func_new(m, "f", IR_LEVEL_KERNEL);
    ir_builder b = {m, f, &f->body, {0, 0}};
    ir_type row = {.dtype = IR_F32, .space = IR_ROW, .rank = 1, .dim = {4}}, edge = {.dtype = IR_F32, .space = IR_EDGE};
    ir_id x = ir_emit(&b, IR_FIELD, row, NULL, 0), y = ir_emit(&b, IR_FIELD, edge, NULL, 0);
    const ir_type *t = &ir_at(f, ir_emit_elementwise(&b, IR_LT, (ir_id[]){x, y}, 2))->type;
    cr_assert(t->dtype == IR_BOOL && t->space == IR_EDGE && t->rank == 1 && t->dim[0] == 4);
    ir_id c = ir_emit_elementwise(&b, IR_LT, (ir_id[]){x, x}, 2);
    t = &ir_at(f, ir_emit_elementwise(&b, IR_SELECT, (ir_id[]){c, y, y}, 3))->type;
    cr_assert(t->dtype == IR_F32 && t->space == IR_EDGE && t->rank == 1);
    t = &ir_at(f, ir_emit_cast(&b, IR_I64, x))->type;
    cr_assert(t->dtype == IR_I64 && t->space == IR_ROW && t->rank == 1);
    cr_assert_eq(ir_find_attr(ir_at(f, ir_emit_f(&b, edge, 0.5)), IR_ATTR_VALUE)->v.f, 0.5f);
    cr_assert_eq(ir_at(f, ir_emit_dimsize(&b, 64))->code, IR_CONST);
    cr_assert_eq(ir_at(f, ir_emit_dimsize(&b, ir_dim_sym(0)))->code, IR_DIMSIZE);
}

static void collect(void *ctx, ir_func *f, ir_region *r, ir_id id) {
    (void)r;
    base_str_addf(ctx, "%s ", ir_op_describe(ir_at(f, id)->code)->text);
}

Test(build, loops_walk_and_clone) {
    base_arena *a = base_arena_new();
    ir_module *m = ir_module_new(a, "m", NULL);
    ir_func *f = ir_func_new(m, "f", IR_LEVEL_LOOP);
    f->domain = "rows";
    ir_builder b = {m, f, &f->body, {0, 0}};
    ir_id r[1], kl[2], loop;
    ir_id n = ir_emit_i64(&b, 4);
    ir_region *top = ir_begin_loop(&b, IR_ROWS, ir_scalar(IR_NONE), NULL, 0, 1, r, &loop);
    ir_region *rows = ir_begin_loop(&b, IR_LANES, ir_scalar(IR_NONE), &n, 1, 2, kl, NULL);
    ir_id sum = ir_emit2(&b, IR_ADD, ir_scalar(IR_I64), r[0], kl[0]);
    ir_end_loop(&b, rows);
    ir_id after = ir_emit_i64(&b, 7);
    ir_end_loop(&b, top);
    cr_assert_eq(b.r, &f->body);
    base_str seen = {0};
    ir_walk(f, collect, &seen);
    cr_assert_str_eq(seen.data, "const rows arg lanes arg arg add const ");

    ir_func *c = ir_func_clone(m, f, "copy");
    uint32_t uses[16];
    ir_id map[16] = {0};
    map[kl[0]] = after;
    ir_remap(c, map);
    ir_count_uses(c, uses);
    cr_assert_eq(uses[after], 1);
    cr_assert_eq(ir_at(f, sum)->args[1], kl[0], "the original stays");
    ir_erase(&c->body, 1);
    cr_assert_eq(f->body.n, 2);
    cr_assert(ir_has_effect(ir_at(f, loop)));
    cr_assert_not(ir_has_effect(ir_at(f, sum)));
}

/* ---- dimensions computed from others ---- */
static const char *named(const ir_func *f, ir_dim d) {
    return ir_dim_is_sym(d) ? f->syms[ir_dim_sym_index(d)] : "a number";
}

Test(sums, equal_dimensions_are_one_symbol) {
    base_arena *a = base_arena_new();
    ir_module *m = ir_module_new(a, "m", NULL);
    ir_func *f = ir_func_new(m, "f", IR_LEVEL_KERNEL);
    ir_dim k = ir_dim_sym(ir_sym(m, f, "K")), d = ir_dim_sym(ir_sym(m, f, "D")), x, y, z;
    cr_assert(ir_dim_calc(m, f, IR_ADD, k, d, &x) && ir_dim_calc(m, f, IR_ADD, d, k, &y));
    cr_expect(x == y && !strcmp(named(f, x), "D+K"), "%s", named(f, x));
    cr_assert(ir_dim_calc(m, f, IR_SUB, x, d, &y) && y == k);
    cr_assert(ir_dim_calc(m, f, IR_SUB, x, x, &y) && y == 0);
    cr_assert(ir_dim_calc(m, f, IR_MUL, x, x, &y) && ir_dim_calc(m, f, IR_SUB, y, 3, &z));
    cr_expect_str_eq(named(f, z), "D*D+2*D*K+K*K-3");
    cr_assert(ir_dim_calc(m, f, IR_SUB, 7, d, &y));
    cr_expect_str_eq(named(f, y), "7-D");
    cr_expect(!ir_dim_calc(m, f, IR_SUB, 2, 3, &y), "less than nothing");

    cr_assert(ir_dim_calc(m, f, IR_SUB, 0, d, &y) == false, "-D is no size");
    for (uint32_t i = 0; i < f->n_syms; i++)
        cr_expect(!ir_sym_is_computed(f->syms[i]) || ir_sum_is_canonical(f, i), "%s", f->syms[i]);
    int64_t sizes[16] = {5, 3};
    cr_expect(!ir_compute_dims(f, (int64_t[16]){9, 9}), "7-D is -2");
    cr_assert(ir_compute_dims(f, sizes));
    cr_expect_eq(sizes[ir_dim_sym_index(x)], 8);
    cr_expect_eq(sizes[ir_dim_sym_index(z)], 61);
    base_arena_free(a);
}

Test(sums, what_is_too_long_is_refused) {
    base_arena *a = base_arena_new();
    ir_module *m = ir_module_new(a, "m", NULL);
    ir_func *f = ir_func_new(m, "f", IR_LEVEL_KERNEL);
    ir_dim d = ir_dim_sym(ir_sym(m, f, "D")), x = d, sum = 0;
    int n = 1;
    while (n < 100 && ir_dim_calc(m, f, IR_MUL, x, d, &x))
        n++;
    cr_expect_eq(n, BASE_SIZE_NAMES);
    for (n = 0; n < 100; n++)
        if (!ir_dim_calc(m, f, IR_ADD, sum, ir_dim_sym(ir_sym(m, f, base_arena_printf(a, "N%d", n))), &sum))
            break;
    cr_expect_eq(n, IR_SUM_TERMS);
    cr_assert(ir_dim_calc(m, f, IR_MUL, d, INT64_MAX, &x));
    cr_expect(!ir_dim_calc(m, f, IR_MUL, x, 2, &x), "a factor beyond 2^63");
    base_arena_free(a);
}

Test(sums, reshape_keeps_products) {
    base_arena *a = base_arena_new();
    ir_module *m = ir_module_new(a, "m", NULL);
    ir_func *f = ir_func_new(m, "f", IR_LEVEL_KERNEL);
    ir_dim h = ir_dim_sym(ir_sym(m, f, "H")), k = ir_dim_sym(ir_sym(m, f, "K")), hk;
    cr_assert(ir_dim_calc(m, f, IR_MUL, h, k, &hk));
    ir_type two = {.rank = 2, .dim = {h, k}}, one = {.rank = 1, .dim = {hk}}, other = {.rank = 2, .dim = {h, h}};
    cr_expect(ir_same_elements(f, &two, &one) && !ir_same_elements(f, &other, &one));
    base_arena_free(a);
}
