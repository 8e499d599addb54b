/* Task functions to C: the emitted host function follows the task IR line by line.  The runtime is reached only through
 * the tiga_host table; every call is checked, and the first that fails ends the function. */
#include "codegen/cg.h"

#include <string.h>

typedef struct host {
    const ir_module *m;
    const ir_func *f;
    base_arena *arena;
    cg_helpers *help;
    base_str *err;
    cg_text w;
    cg_names names;
    const char **text; /* by id: the value as an operand */
    const char ***carried; /* by id of a repeat: its variables */
    uint32_t *n_uses;
    const char **dim;
    bool *dim_used, failed;
} host;

static void region(host *h, const ir_region *r, ir_id loop);

static void count_uses(host *h, const ir_region *r) {
    for (size_t i = 0; i < r->n; ++i) {
        const ir_op *op = ir_at(h->f, r->ops[i]);
        for (uint32_t k = 0; k < op->n_args; ++k)
            h->n_uses[op->args[k]]++;
        if (op->region)
            count_uses(h, op->region);
    }
}

static const char *ctype(ir_dtype t) {
    return t == IR_INSTANCE_T ? "tiga_instance *" : t == IR_I64 ? "int64_t " : NULL;
}

static void expression(host *h, ir_id id) {
    const ir_op *op = ir_at(h->f, id);
    const char *args[3] = {NULL, NULL, NULL};
    if (!h->n_uses[id])
        return;
    for (uint32_t i = 0; i < op->n_args; ++i)
        args[i] = h->text[op->args[i]];
    ir_dtype in = ir_at(h->f, op->args[op->code == IR_SELECT ? 1 : 0])->type.dtype;
    bool atom = op->code == IR_MUL; /* of sizes: one that no int64_t holds is asked for as the largest, and refused */
    const char *e = atom ? base_arena_printf(h->arena, "TIGA_SIZE_MUL(%s, %s)", args[0], args[1])
                         : cg_expr(h->help, h->arena, op->code, in, op->type.dtype, args, &atom);
    h->text[id] = cg_name(&h->names, base_arena_printf(h->arena, "t%u", id));
    cg_line(&h->w, "const %s %s = %s;", cg_ctype(op->type.dtype), h->text[id], e);
}

static void bind(host *h, ir_id id) {
    const ir_op *op = ir_at(h->f, id);
    const char *kind = ir_word(op, IR_ATTR_KIND);
    h->text[id] = cg_name(&h->names, ir_word(op, IR_ATTR_NAME));
    cg_line(&h->w, "tiga_instance *%s;", h->text[id]);
    cg_line(&h->w, "TIGA_TRY(host->bind_%s(frame, %lld, &%s));", kind, (long long)ir_int(op, IR_ATTR_INDEX, 0),
            h->text[id]);
}

static const char *tier(host *h, const ir_op *op) {
    static const char *const tiers[][2] = {{"host", "TIGA_TIER_HOST"},
                                           {"device", "TIGA_TIER_DEVICE"},
                                           {"pinned", "TIGA_TIER_PINNED"},
                                           {"disk", "TIGA_TIER_DISK"}};
    const char *word = ir_word(op, IR_ATTR_TIER);
    for (size_t i = 0; word && i < 4; ++i)
        if (!strcmp(tiers[i][0], word))
            return tiers[i][1];
    h->failed = !cg_fail(h->err, "%s: no tier '%s'", h->f->name, word ? word : "");
    return "";
}

static void instance(host *h, ir_id id) {
    const ir_op *op = ir_at(h->f, id);
    const char *name = ir_word(op, IR_ATTR_NAME);
    long long version = (long long)ir_int(op, IR_ATTR_VERSION, 0);
    if (!name)
        name = "buffer";
    h->text[id] = cg_name(&h->names, base_arena_printf(h->arena, "%s_%lld", name, version));
    cg_line(&h->w, "tiga_instance *%s;", h->text[id]);
    base_str *literal = base_arena_str(h->arena);
    cg_text one = {.out = literal};
    cg_string_literal(&one, name);
    cg_line(&h->w, "TIGA_TRY(host->alloc(frame, %s, %lld, %s, %s, &%s));", base_str_text(literal), version, tier(h, op),
            h->text[op->args[0]], h->text[id]);
}

static void add_list(base_str *s, const host *h, const ir_id *ids, size_t n) {
    for (size_t i = 0; i < n; ++i)
        base_str_addf(s, "%s%s", i ? ", " : "", h->text[ids[i]]);
}

static void launch(host *h, const ir_op *op) {
    const char *callee = ir_word(op, IR_ATTR_CALLEE), *sizes = "NULL", *buffers = "NULL";
    size_t n = (size_t)ir_int(op, IR_ATTR_BUFFERS, 0), n_dims = op->n_args - n - 1;
    int64_t index = cg_kernel_index(h->m, callee);
    if (index < 0) {
        h->failed = !cg_fail(h->err, "%s: launch of '%s', which is no loop function", h->f->name, callee);
        return;
    }
    size_t mark = cg_names_mark(&h->names);
    base_str *list = base_arena_str(h->arena);
    base_str *dims = base_arena_str(h->arena);
    add_list(list, h, op->args, n);
    add_list(dims, h, op->args + n + 1, n_dims);
    cg_line(&h->w, "TIGA_TRY(host->poll(frame));");
    cg_open(&h->w, "%s", "");
    if (n)
        cg_line(&h->w, "tiga_instance *const %s[] = {%s};", buffers = cg_name(&h->names, "buffers"),
                base_str_text(list));
    if (n_dims)
        cg_line(&h->w, "const int64_t %s[] = {%s};", sizes = cg_name(&h->names, "sizes"), base_str_text(dims));
    cg_line(&h->w, "TIGA_TRY(host->launch(frame, &tiga_kernels[%lld] /* %s */, %lld, %s, %s, %s));", (long long)index,
            callee, (long long)ir_int(op, IR_ATTR_GRAPH, -1), h->text[op->args[n]], buffers, sizes);
    cg_close(&h->w, "");
    cg_names_release(&h->names, mark);
}

static void read_scalar(host *h, ir_id id, const char *how) {
    const ir_op *op = ir_at(h->f, id);
    h->text[id] = cg_name(&h->names, base_arena_printf(h->arena, "%s_value", h->text[op->args[0]]));
    cg_line(&h->w, "int64_t %s;", h->text[id]);
    cg_line(&h->w, "TIGA_TRY(host->%s(frame, %s, &%s));", how, h->text[op->args[0]], h->text[id]);
}

/* Both arms; an arm that does nothing is not written when it is the second. */
static void choice(host *h, ir_id id) {
    const ir_op *op = ir_at(h->f, id);
    const ir_region *first = ir_at(h->f, op->region->ops[0])->region, *second = ir_at(h->f, op->region->ops[1])->region;
    cg_open(&h->w, "if (%s)", h->text[op->args[0]]);
    region(h, first, op->region->ops[0]);
    if (second->n > 1) {
        cg_close(&h->w, " else {");
        h->w.indent++;
        region(h, second, op->region->ops[1]);
    }
    cg_close(&h->w, "");
}

static void pages(host *h, ir_id id) {
    const ir_op *op = ir_at(h->f, id);
    long long n = (long long)ir_int(op, IR_ATTR_PAGES, 1);
    size_t mark = cg_names_mark(&h->names);
    const char *page = cg_name(&h->names, "page");
    if (n == 1)
        cg_open(&h->w, "/* the one page */");
    else
        cg_open(&h->w, "for (int64_t %s = 0; %s < %lld; ++%s)", page, page, n, page);
    for (size_t i = 0; i < op->region->n; ++i)
        if (ir_at(h->f, op->region->ops[i])->code == IR_ARG)
            h->text[op->region->ops[i]] = n == 1 ? "0" : page;
    region(h, op->region, id);
    cg_close(&h->w, "");
    cg_names_release(&h->names, mark);
}

/* The carried values are variables in front of the loop; `yield` assigns them all at once. */
static void repeat(host *h, ir_id id) {
    const ir_op *op = ir_at(h->f, id);
    uint32_t n = op->n_args - 1;
    const char **vars = h->carried[id] = base_arena_new_array(h->arena, const char *, n + 1);
    for (uint32_t i = 0; i < n; ++i) {
        const char *type = ctype(ir_at(h->f, op->args[i + 1])->type.dtype);
        if (!type) {
            h->failed = !cg_fail(h->err, "%s: repeat carries neither an instance nor an i64", h->f->name);
            return;
        }
        vars[i] = cg_name(&h->names, base_arena_printf(h->arena, "carried_%u", i));
        cg_line(&h->w, "%s%s = %s;", type, vars[i], h->text[op->args[i + 1]]);
    }
    size_t mark = cg_names_mark(&h->names);
    const char *round = cg_name(&h->names, "round");
    cg_open(&h->w, "for (int64_t %s = 0; %s < %s; ++%s)", round, round, h->text[op->args[0]], round);
    for (size_t i = 0; i < op->region->n; ++i) {
        const ir_op *arg = ir_at(h->f, op->region->ops[i]);
        if (arg->code == IR_ARG)
            h->text[op->region->ops[i]] = vars[ir_int(arg, IR_ATTR_INDEX, 0)];
    }
    region(h, op->region, id);
    cg_close(&h->w, "");
    cg_names_release(&h->names, mark);
}

static void yield(host *h, const ir_op *op, ir_id loop) {
    const char **vars = h->carried[loop], **next = base_arena_new_array(h->arena, const char *, op->n_args + 1);
    size_t mark = cg_names_mark(&h->names);
    for (uint32_t i = 0; i < op->n_args; ++i) {
        if (!strcmp(h->text[op->args[i]], vars[i]))
            continue;
        next[i] = cg_name(&h->names, base_arena_printf(h->arena, "next_%u", i));
        const char *type = ctype(ir_at(h->f, op->args[i])->type.dtype);
        cg_line(&h->w, "%s%s%s = %s;", type, type[0] == 't' ? "const " : "", next[i], h->text[op->args[i]]);
    }
    for (uint32_t i = 0; i < op->n_args; ++i)
        if (next[i])
            cg_line(&h->w, "%s = %s;", vars[i], next[i]);
    cg_names_release(&h->names, mark);
}

static void dimsize(host *h, ir_id id) {
    ir_dim d = ir_find_attr(ir_at(h->f, id), IR_ATTR_DIM)->i;
    if (d >= 0) {
        h->text[id] = base_arena_printf(h->arena, "%lld", (long long)d);
        return;
    }
    h->text[id] = h->dim[ir_dim_sym_index(d)];
    if (h->n_uses[id])
        h->dim_used[ir_dim_sym_index(d)] = true;
}

static void call1(host *h, const char *fn, const ir_op *op) {
    cg_line(&h->w, "TIGA_TRY(host->%s(frame, %s));", fn, h->text[op->args[0]]);
}

static void acquire(host *h, const ir_op *op) {
    bool write = !strcmp(ir_word(op, IR_ATTR_MODE) ? ir_word(op, IR_ATTR_MODE) : "read", "write");
    cg_line(&h->w, "TIGA_TRY(host->acquire(frame, %s, %d)); /* %s */", h->text[op->args[0]], write,
            write ? "write" : "read");
}

static void statement(host *h, ir_id id, ir_id loop) {
    const ir_op *op = ir_at(h->f, id);
    switch ((int)op->code) {
    case IR_CONST:
        h->text[id] = cg_const(h->arena, op->type.dtype, ir_find_attr(op, IR_ATTR_VALUE)->v);
        return;
    case IR_DIMSIZE:
        dimsize(h, id);
        return;
    case IR_BIND:
        bind(h, id);
        return;
    case IR_INSTANCE:
        instance(h, id);
        return;
    case IR_ACQUIRE:
        acquire(h, op);
        return;
    case IR_DONE:
        call1(h, "done", op);
        return;
    case IR_RELEASE:
        call1(h, "release", op);
        return;
    case IR_PUSH:
        call1(h, "push", op);
        return;
    case IR_RESTORE:
        call1(h, "restore", op);
        return;
    case IR_COPY:
        cg_line(&h->w, "TIGA_TRY(host->copy(frame, %s, %s));", h->text[op->args[0]], h->text[op->args[1]]);
        return;
    case IR_LAUNCH:
        launch(h, op);
        return;
    case IR_PAGES:
        pages(h, id);
        return;
    case IR_READI:
        read_scalar(h, id, "read_i64");
        return;
    case IR_READB:
        read_scalar(h, id, "read_bool");
        return;
    case IR_WHILE:
        cg_open(&h->w, "if (!%s)", h->text[op->args[0]]);
        cg_line(&h->w, "break;");
        cg_close(&h->w, "");
        return;
    case IR_IF:
        choice(h, id);
        return;
    case IR_REPEAT:
        repeat(h, id);
        return;
    case IR_YIELD:
        yield(h, op, loop);
        return;
    case IR_GET:
        h->text[id] = h->carried[op->args[0]][ir_int(op, IR_ATTR_INDEX, 0)];
        return;
    case IR_RET:
        cg_line(&h->w, "return 0;");
        return;
    case IR_ARG:
        return;
    default:
        break;
    }
    if (ir_class_is_elementwise(ir_op_describe(op->code)->cls))
        expression(h, id);
    else
        h->failed =
            !cg_fail(h->err, "%s: cannot emit '%s' in a task function", h->f->name, ir_op_describe(op->code)->text);
}

static void region(host *h, const ir_region *r, ir_id loop) {
    size_t mark = cg_names_mark(&h->names);
    for (size_t i = 0; i < r->n && !h->failed; ++i)
        statement(h, r->ops[i], loop);
    if (loop)
        cg_names_release(&h->names, mark);
}

static void task_banner(cg_text *w, const ir_func *f) {
    base_str plan = {0};
    ir_print_func(f, &plan);
    cg_comment(w, base_str_text(&plan));
    w->out->failed |= plan.failed;
    base_str_fini(&plan);
}

bool cg_emit_host(const ir_module *m, const ir_func *f, cg_text *w, cg_helpers *help, base_arena *arena,
                  base_str *err) {
    base_str *body = base_arena_str(arena);
    host h = {.m = m, .f = f, .arena = arena, .help = help, .err = err, .w = {.out = body, .indent = 1}};
    cg_names_init(&h.names, arena);
    static const char *const own[] = {"host", "frame", "dims"};
    for (size_t i = 0; i < 3; ++i)
        cg_name(&h.names, own[i]);
    h.text = base_arena_new_array(arena, const char *, f->n_ops);
    h.carried = base_arena_new_array(arena, const char **, f->n_ops);
    h.n_uses = base_arena_new_array(arena, uint32_t, f->n_ops);
    h.dim = base_arena_new_array(arena, const char *, f->n_syms + 1);
    h.dim_used = base_arena_new_array(arena, bool, f->n_syms + 1);
    for (size_t i = 0; i < f->n_syms; ++i)
        h.dim[i] = cg_name(&h.names, f->syms[i]);
    count_uses(&h, &f->body);
    region(&h, &f->body, 0);
    task_banner(w, f);
    cg_open(w, "TIGA_HOST_FN int32_t %s_host(const tiga_host *host, void *frame, const int64_t *dims)",
            cg_symbol(m, f->name));
    bool any = false;
    for (size_t i = 0; i < f->n_syms; ++i) {
        if (h.dim_used[i])
            cg_line(w, "const int64_t %s = dims[%zu];", h.dim[i], i);
        any = any || h.dim_used[i];
    }
    if (!any)
        cg_line(w, "(void)dims;");
    cg_raw(w, base_str_text(body));
    cg_close(w, "\n");
    return !h.failed;
}
