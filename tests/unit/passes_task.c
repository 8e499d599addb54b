/* The whole pipeline on random programs: the task function, executed step by step with every launch interpreted, gives
 * the bits of the interpreted program, and keeps the rules of a schedule: nothing is launched on what is not pinned,
 * written while it is read, used after its release, or released twice; all that was made is released. */
#include "passes_random.h"

typedef struct instance {
    char *data;
    int64_t bytes;
    bool made, released;
    int readers, writers;
} instance;

typedef struct value {
    int64_t i;
    instance *inst;
    struct value *tuple;
} value;

typedef struct machine {
    base_arena *a;
    const ir_module *m;
    const ir_func *t;
    const arguments *x;
    value *v; /* by id */
    instance **made;
    size_t n_made, cap_made;
    size_t launches, inside; /* inside: of repeats and ifs */
    bool left; /* a while has ended the repeat */
} machine;

static int64_t bytes_of_param(machine *k, const ir_param *p, bool result) {
    return array_elements(k->t, p, result, k->x->dims, k->x->g) * (int64_t)ir_dtype_bytes(p->type.dtype);
}

static value bind(machine *k, const ir_op *op) {
    bool result = !strcmp(ir_word(op, IR_ATTR_KIND), "result");
    size_t i = (size_t)ir_int(op, IR_ATTR_INDEX, -1);
    instance *inst = base_arena_new_array(k->a, instance, 1);
    inst->bytes = bytes_of_param(k, result ? &k->t->results[i] : &k->t->params[i], result);
    inst->data = result ? k->x->out[i] : (void *)(uintptr_t)k->x->in[i];
    return (value){.inst = inst};
}

static value make_instance(machine *k, const ir_op *op) {
    instance *inst = base_arena_new_array(k->a, instance, 1);
    cr_assert_eq(k->inside, 0, "an instance is made inside a repeat or an if");
    *inst = (instance){.bytes = k->v[op->args[0]].i, .made = true};
    cr_assert(inst->bytes >= 0 && inst->bytes < 100000000);
    inst->data = base_alloc((size_t)inst->bytes); /* so that the sanitizer sees what leaves its bounds */
    memset(inst->data, 0x5a, (size_t)inst->bytes);
    base_push(k->a, k->made, k->n_made, k->cap_made, inst);
    return (value){.inst = inst};
}

static void acquire(machine *k, const ir_op *op) {
    instance *inst = k->v[op->args[0]].inst;
    bool write = !strcmp(ir_word(op, IR_ATTR_MODE), "write");
    cr_assert(!inst->released && !inst->writers && (!write || !inst->readers));
    *(write ? &inst->writers : &inst->readers) += 1;
}

static void done(machine *k, const ir_op *op) {
    instance *inst = k->v[op->args[0]].inst;
    cr_assert_eq(inst->readers + inst->writers, 1);
    inst->readers = inst->writers = 0;
}

static void release(machine *k, const ir_op *op) {
    instance *inst = k->v[op->args[0]].inst;
    cr_assert(inst->made && !inst->released && !inst->readers && !inst->writers && !k->inside);
    inst->released = true;
    memset(inst->data, 0x5a, (size_t)inst->bytes);
}

static void copy(machine *k, const ir_op *op) {
    instance *from = k->v[op->args[0]].inst, *to = k->v[op->args[1]].inst;
    cr_assert(from != to && !from->released && !to->released);
    cr_assert_eq(from->bytes, to->bytes);
    memcpy(to->data, from->data, (size_t)to->bytes);
}

static void launch(machine *k, const ir_op *op) {
    const ir_func *loop = ir_func_find(k->m, ir_word(op, IR_ATTR_CALLEE), IR_LEVEL_LOOP);
    size_t n = (size_t)ir_int(op, IR_ATTR_BUFFERS, 0), n_out = (size_t)ir_int(op, IR_ATTR_OUTPUTS, 0);
    int64_t graph = ir_int(op, IR_ATTR_GRAPH, -1);
    cr_assert(loop && op->n_args == n + 1 + loop->n_syms && loop->n_params == n);
    const void **in = base_arena_new_array(k->a, const void *, n + 1);
    void **out = base_arena_new_array(k->a, void *, n_out + 1);
    int64_t *dims = base_arena_new_array(k->a, int64_t, loop->n_syms + 1);
    for (size_t i = 0; i < n; i++) {
        const instance *inst = k->v[op->args[i]].inst;
        bool write = i >= n - n_out;
        cr_assert_eq(write, loop->params[i].role >= IR_OUT_ROW);
        cr_assert(write ? inst->writers == 1 : inst->readers == 1, "operand %zu is not pinned", i);
        if (write)
            out[i - (n - n_out)] = inst->data;
        else
            in[i] = inst->data;
    }
    for (size_t i = 0; i < loop->n_syms; i++)
        dims[i] = k->v[op->args[n + 1 + i]].i;
    ir_call_data call = {
        .graph = graph >= 0 ? k->x->g : NULL, .dims = dims, .in = in, .out = out, .n_rows = k->v[op->args[n]].i};
    base_str err = {0};
    if (!ir_interpret_loop(k->m, loop, &call, &err)) {
        ir_print_func(loop, &err);
        cr_assert_fail("%s: %s", loop->name, base_str_text(&err));
    }
    k->launches++;
}

static void run_region(machine *k, const ir_region *r, const value *args, value *yielded);

static value repeat(machine *k, const ir_op *op) {
    size_t n = op->n_args - 1;
    value *now = base_arena_new_array(k->a, value, n + 1), *next = base_arena_new_array(k->a, value, n + 1);
    for (size_t i = 0; i < n; i++)
        now[i] = k->v[op->args[i + 1]];
    k->inside++;
    for (int64_t c = 0; c < k->v[op->args[0]].i; c++) {
        run_region(k, op->region, now, next);
        if (k->left)
            break;
        memcpy(now, next, sizeof *now * n);
    }
    k->left = false;
    k->inside--;
    return (value){.tuple = now};
}

static void choose(machine *k, const ir_op *op) {
    ir_id arm = op->region->ops[k->v[op->args[0]].i ? 0 : 1];
    k->inside++;
    run_region(k, ir_at(k->t, arm)->region, NULL, NULL);
    k->inside--;
}

static int64_t scalar(machine *k, const ir_op *op) {
    ir_scalar_value v[3];
    for (uint32_t i = 0; i < op->n_args; i++)
        v[i].i = k->v[op->args[i]].i;
    return ir_eval(op->code, IR_I64, op->type.dtype, v).i;
}

static value run_op(machine *k, const ir_op *op, const value *args) {
    if (op->code == IR_CONST)
        return (value){.i = ir_find_attr(op, IR_ATTR_VALUE)->v.i};
    if (op->code == IR_DIMSIZE)
        return (value){.i = k->x->dims[ir_dim_sym_index(ir_int(op, IR_ATTR_DIM, 0))]};
    if (op->code == IR_BIND)
        return bind(k, op);
    if (op->code == IR_INSTANCE)
        return make_instance(k, op);
    if (op->code == IR_ARG)
        return args ? args[ir_int(op, IR_ATTR_INDEX, 0)] : (value){0};
    if (op->code == IR_GET)
        return k->v[op->args[0]].tuple[ir_int(op, IR_ATTR_INDEX, 0)];
    if (op->code == IR_REPEAT)
        return repeat(k, op);
    if (op->code == IR_READI) {
        const instance *inst = k->v[op->args[0]].inst;
        cr_assert(inst->readers == 1 && inst->bytes == 8);
        return (value){.i = ir_load_scalar(IR_I64, inst->data, 0).i};
    }
    if (op->code == IR_READB) {
        const instance *inst = k->v[op->args[0]].inst;
        cr_assert(inst->readers == 1 && inst->bytes == 1);
        return (value){.i = ir_load_scalar(IR_BOOL, inst->data, 0).i};
    }
    if (op->code == IR_WHILE)
        k->left = !k->v[op->args[0]].i;
    else if (op->code == IR_IF)
        choose(k, op);
    else if (op->code == IR_ACQUIRE)
        acquire(k, op);
    else if (op->code == IR_DONE)
        done(k, op);
    else if (op->code == IR_RELEASE)
        release(k, op);
    else if (op->code == IR_COPY)
        copy(k, op);
    else if (op->code == IR_LAUNCH)
        launch(k, op);
    else if (op->code == IR_PAGES)
        run_region(k, op->region, NULL, NULL);
    else if (ir_class_is_elementwise(ir_op_describe(op->code)->cls))
        return (value){.i = scalar(k, op)};
    else
        cr_assert_eq(op->code, IR_RET, "no rule for %s", ir_op_describe(op->code)->text);
    return (value){0};
}

static void run_region(machine *k, const ir_region *r, const value *args, value *yielded) {
    for (size_t i = 0; i < r->n && !k->left; i++) {
        const ir_op *op = ir_at(k->t, r->ops[i]);
        if (op->code != IR_YIELD) {
            k->v[r->ops[i]] = run_op(k, op, args);
            continue;
        }
        for (uint32_t j = 0; j < op->n_args; j++)
            yielded[j] = k->v[op->args[j]];
    }
}

static void run_task(base_arena *a, const ir_module *m, const ir_func *t, const arguments *x) {
    arguments mine = *x;
    mine.dims = sizes_of(a, t, x->g); /* it may have one more symbol, ".dst" */
    machine k = {.a = a, .m = m, .t = t, .x = &mine, .v = base_arena_new_array(a, value, t->n_ops)};
    run_region(&k, &t->body, NULL, NULL);
    for (size_t i = 0; i < k.n_made; i++) {
        cr_expect(k.made[i]->released, "an instance is never released");
        base_free(k.made[i]->data);
    }
}

static void check_module(const ir_module *m, const ir_module *compiled, const ir_graph_data *g, uint64_t seed,
                         const char *what) {
    for (size_t i = 0; i < m->n_funcs; i++) {
        const ir_func *f = m->funcs[i];
        if (!f->exported || f->level > IR_LEVEL_PROGRAM)
            continue;
        base_arena *a = base_arena_new();
        rng r = {seed};
        arguments x = random_arguments(a, &r, f, g);
        interpret(m, f, &x);
        void **want = x.out;
        new_outputs(a, f, &x);
        const ir_func *t = ir_func_find(compiled, f->name, IR_LEVEL_TASK);
        cr_assert(t, "%s: there is no task function %s", what, f->name);
        run_task(a, compiled, t, &x);
        expect_same(f, &x, want, what);
        base_arena_free(a);
    }
}

static void check_pipelines(const ir_module *m, uint64_t seed) {
    static const struct {
        int level;
        bool cuda;
    } ways[] = {{0, false}, {3, false}, {3, true}};
    base_arena *a = base_arena_new();
    rng r = {seed};
    const ir_graph_data *graphs[] = {random_graph(a, &r, 6, 6, 5), random_graph(a, &r, 0, 0, 0),
                                     random_graph(a, &r, 1, 1, 40)};
    for (size_t w = 0; w < 3; w++) {
        ir_module *compiled = copy_module(a, m);
        run_passes(compiled, NULL, ways[w].level, ways[w].cuda, a);
        const char *what = base_arena_printf(a, "seed %llu at -O%d%s", (unsigned long long)seed, ways[w].level,
                                             ways[w].cuda ? " cuda" : "");
        for (size_t k = 0; k < 3; k++)
            check_module(m, compiled, graphs[k], seed + k, what);
    }
    base_arena_free(a);
}

Test(passes_task, random_programs) {
    for (uint64_t seed = 1000; seed < 1150; seed++) {
        base_arena *a = base_arena_new();
        rng r = {seed};
        check_pipelines(random_program(a, &r), seed);
        base_arena_free(a);
    }
}

Test(passes_task, files) {
    static const char *const names[] = {"outline.pagerank", "outline.shapes", "outline.repeat",
                                        "outline.control",  "expand.all",     "cse.program"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        base_arena *a = base_arena_new();
        base_str text = {0}, err = {0};
        const char *path = base_arena_printf(a, TIGA_SOURCE_DIR "/tests/passes/%s.ir", names[i]);
        cr_assert(base_file_read(path, &text, &err), "%s", base_str_text(&err));
        check_pipelines(parse_text(a, names[i], base_str_text(&text)), 5 + i);
        base_str_fini(&text);
        base_arena_free(a);
    }
}
