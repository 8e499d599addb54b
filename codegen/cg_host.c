/* Task functions to C: sizes are computed first, everything else becomes a table of steps, one for each line of the task
 * IR that does something.  The function of cg_schedule.c follows the table.
 *
 * Instances and numbers (sizes, counters, what is read) are places of the call, by index.  Repeats, ifs and pages are jumps;
 * what a repeat carries are places of its own, assigned all at once at the end of a round. */
#include "codegen/cg_schedule.h"

#include <string.h>

typedef struct host_step {
    const char *code; /* "TIGA_DO_..." */
    int32_t a, b, c;
    const char *comment;
} host_step;

typedef struct host_leave { /* jumps out of the repeat that is written now, to be completed at its end */
    size_t step;
    struct host_leave *next;
} host_leave;

typedef struct host {
    const ir_module *m;
    const ir_func *f;
    base_arena *arena;
    cg_helpers *help;
    cg_follower *follower;
    base_str *err;
    cg_text w; /* computation of sizes */
    cg_names names;
    const char **text; /* by id: a number known before the first step, in C; the name of any other place for comments */
    int32_t *at; /* by id: 1 + its place; 0: none */
    bool *is_static; /* by id: a number known before the first step */
    int32_t **carried; /* by id of a repeat: its places */
    uint32_t *n_uses;
    const char **dim;
    bool *dim_used, failed;
    host_step *steps;
    size_t n_steps, cap_steps;
    const char **instances, **numbers; /* names for comments; what each number begins with */
    size_t n_instances, cap_instances, n_numbers, cap_numbers;
    base_str *launches, *buffers;
    int32_t n_launch_words, n_buffers, zero;
    host_leave *leave;
} host;

static void region(host *h, const ir_region *r, ir_id loop);

static void fail(host *h, const char *why, const char *what) {
    h->failed = !cg_fail(h->err, "%s: %s '%s'", h->f->name, why, what);
}

static void count_uses(host *h, const ir_region *r) {
    for (size_t i = 0; i < r->n; ++i) {
        const ir_op *op = ir_at(h->f, r->ops[i]);
        for (uint32_t k = 0; k < op->n_args; ++k)
            h->n_uses[op->args[k]]++;
        if (op->region)
            count_uses(h, op->region);
    }
}

/* ---- steps and places -------------------------------------------------------------------------------------------- */
static const char *const step_names[] = {
#define CG_STEP(NAME, text) "TIGA_DO_" #NAME,
    CG_STEPS
#undef CG_STEP
};

static size_t named_step(host *h, const char *code, int32_t a, int32_t b, int32_t c, const char *comment) {
    host_step fresh = {code, a, b, c, comment};
    base_push(h->arena, h->steps, h->n_steps, h->cap_steps, fresh);
    return h->n_steps - 1;
}

static size_t step(host *h, cg_step_code code, int32_t a, int32_t b, int32_t c, const char *comment) {
    h->follower->step[code] = true;
    return named_step(h, step_names[code], a, b, c, comment);
}

static int32_t new_instance(host *h, const char *name) {
    base_push(h->arena, h->instances, h->n_instances, h->cap_instances, name);
    return (int32_t)h->n_instances - 1;
}

static int32_t new_number(host *h, const char *start) {
    base_push(h->arena, h->numbers, h->n_numbers, h->cap_numbers, start);
    return (int32_t)h->n_numbers - 1;
}

static void place(host *h, ir_id id, int32_t at, const char *name) {
    h->at[id] = 1 + at;
    h->text[id] = name;
}

static int32_t at(host *h, ir_id id) {
    if (!h->at[id] && h->is_static[id])
        h->at[id] = 1 + new_number(h, h->text[id]);
    if (!h->at[id])
        fail(h, "a schedule has no place for the result of", ir_op_describe(ir_at(h->f, id)->code)->text);
    return h->at[id] - 1;
}

static int32_t zero(host *h) {
    if (!h->zero)
        h->zero = 1 + new_number(h, "0");
    return h->zero - 1;
}

static bool is_instance(const host *h, ir_id id) { return ir_at(h->f, id)->type.dtype == IR_INSTANCE_T; }

/* ---- numbers ----------------------------------------------------------------------------------------------------- */
static void dimsize(host *h, ir_id id) {
    ir_dim d = ir_find_attr(ir_at(h->f, id), IR_ATTR_DIM)->i;
    h->is_static[id] = true;
    if (d >= 0) {
        h->text[id] = base_arena_printf(h->arena, "%lld", (long long)d);
        return;
    }
    h->text[id] = h->dim[ir_dim_sym_index(d)];
    if (h->n_uses[id])
        h->dim_used[ir_dim_sym_index(d)] = true;
}

static void static_expression(host *h, ir_id id, ir_dtype in) {
    const ir_op *op = ir_at(h->f, id);
    const char *args[3] = {NULL, NULL, NULL};
    for (uint32_t i = 0; i < op->n_args; ++i)
        args[i] = h->text[op->args[i]];
    bool atom = op->code == IR_MUL; /* of sizes: one that no int64_t holds is asked for as the largest, and refused */
    const char *e = atom ? base_arena_printf(h->arena, "TIGA_SIZE_MUL(%s, %s)", args[0], args[1])
                         : cg_expr(h->help, h->arena, op->code, in, op->type.dtype, args, &atom);
    h->is_static[id] = true;
    h->text[id] = cg_name(&h->names, base_arena_printf(h->arena, "t%u", id));
    cg_line(&h->w, "const %s %s = %s;", cg_ctype(op->type.dtype), h->text[id], e);
}

static bool is_number(ir_dtype t) { return t == IR_I64 || t == IR_BOOL; }

/* Arithmetic on what was read while the schedule runs. */
static void step_of_arithmetic(host *h, ir_id id, ir_dtype in) {
    const ir_op *op = ir_at(h->f, id);
    ir_dtype out = op->type.dtype;
    if (!is_number(in) || !is_number(out)) {
        fail(h, "a schedule computes with i64 and bool only, not with", ir_op_describe(op->code)->text);
        return;
    }
    place(h, id, new_number(h, "0"), base_arena_printf(h->arena, "t%u", id));
    if (op->code == IR_SELECT) {
        step(h, CG_STEP_SET, at(h, id), at(h, op->args[2]), 0, h->text[id]);
        step(h, CG_STEP_GO_UNLESS, at(h, op->args[0]), (int32_t)h->n_steps + 1, 0, h->text[op->args[0]]);
        step(h, CG_STEP_SET, at(h, id), at(h, op->args[1]), 0, h->text[id]);
        return;
    }
    h->follower->op[op->code][in][out] = true;
    named_step(h, cg_step_op_name(h->arena, op->code, in, out), at(h, id), at(h, op->args[0]),
               op->n_args > 1 ? at(h, op->args[1]) : 0, h->text[id]);
}

static void expression(host *h, ir_id id) {
    const ir_op *op = ir_at(h->f, id);
    bool known = true;
    if (!h->n_uses[id])
        return;
    for (uint32_t i = 0; i < op->n_args; ++i)
        known = known && h->is_static[op->args[i]];
    ir_dtype in = ir_at(h->f, op->args[op->code == IR_SELECT ? 1 : 0])->type.dtype;
    if (known)
        static_expression(h, id, in);
    else
        step_of_arithmetic(h, id, in);
}

static void read_scalar(host *h, ir_id id, cg_step_code how) {
    const ir_op *op = ir_at(h->f, id);
    place(h, id, new_number(h, "0"), base_arena_printf(h->arena, "%s_value", h->text[op->args[0]]));
    step(h, how, at(h, id), at(h, op->args[0]), 0, h->text[op->args[0]]);
}

/* ---- instances --------------------------------------------------------------------------------------------------- */
static void bind(host *h, ir_id id) {
    const ir_op *op = ir_at(h->f, id);
    bool param = !strcmp(ir_word(op, IR_ATTR_KIND), "param");
    const char *name = cg_identifier(h->arena, ir_word(op, IR_ATTR_NAME));
    place(h, id, new_instance(h, name), name);
    step(h, param ? CG_STEP_BIND_PARAM : CG_STEP_BIND_RESULT, at(h, id), (int32_t)ir_int(op, IR_ATTR_INDEX, 0), 0,
         name);
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
    fail(h, "no tier", word ? word : "");
    return "";
}

static void instance(host *h, ir_id id) {
    const ir_op *op = ir_at(h->f, id);
    const char *name = ir_word(op, IR_ATTR_NAME);
    long long version = (long long)ir_int(op, IR_ATTR_VERSION, 0);
    if (!name)
        name = "buffer";
    const char *text = base_arena_printf(h->arena, "%s@%lld", cg_identifier(h->arena, name), version);
    place(h, id, new_instance(h, text), text);
    base_str_add(h->buffers, "    {");
    cg_text one = {.out = h->buffers};
    cg_string_literal(&one, name);
    base_str_addf(h->buffers, ", %lld, %s},\n", version, tier(h, op));
    step(h, CG_STEP_ALLOC, at(h, id), at(h, op->args[0]), h->n_buffers++, text);
}

static void on_instance(host *h, cg_step_code code, const ir_op *op) {
    step(h, code, at(h, op->args[0]), 0, 0, h->text[op->args[0]]);
}

static void acquire(host *h, const ir_op *op) {
    const char *mode = ir_word(op, IR_ATTR_MODE);
    on_instance(h, mode && !strcmp(mode, "write") ? CG_STEP_WRITE : CG_STEP_READ, op);
}

static void copy(host *h, const ir_op *op) {
    step(h, CG_STEP_COPY, at(h, op->args[1]), at(h, op->args[0]), 0,
         base_arena_printf(h->arena, "%s from %s", h->text[op->args[1]], h->text[op->args[0]]));
}

/* An entry of the list of launches; the step names its beginning. */
static void launch(host *h, const ir_op *op) {
    const char *callee = ir_word(op, IR_ATTR_CALLEE);
    size_t n = (size_t)ir_int(op, IR_ATTR_BUFFERS, 0), n_sizes = op->n_args - n - 1;
    int64_t index = cg_kernel_index(h->m, callee);
    if (index < 0) {
        h->failed = !cg_fail(h->err, "%s: launch of '%s', which is no loop function", h->f->name, callee);
        return;
    }
    base_str *list = h->launches;
    base_str_addf(list, "    %lld, %lld, %d, %zu, %zu,", (long long)index, (long long)ir_int(op, IR_ATTR_GRAPH, -1),
                  at(h, op->args[n]), n, n_sizes);
    for (size_t i = 0; i < n; ++i)
        base_str_addf(list, " %d,", at(h, op->args[i]));
    for (size_t i = 0; i < n_sizes; ++i)
        base_str_addf(list, " %d,", at(h, op->args[n + 1 + i]));
    base_str_addf(list, " /* %s:", cg_identifier(h->arena, callee));
    for (size_t i = 0; i < n; ++i)
        base_str_addf(list, " %s", h->text[op->args[i]]);
    base_str_add(list, " */\n");
    step(h, ir_int(op, IR_ATTR_AHEAD, 0) ? CG_STEP_LAUNCH_AHEAD : CG_STEP_LAUNCH, h->n_launch_words, 0, 0,
         cg_identifier(h->arena, callee));
    h->n_launch_words += (int32_t)(5 + n + n_sizes);
    if (h->follower->most_buffers < n)
        h->follower->most_buffers = n;
    if (h->follower->most_sizes < n_sizes)
        h->follower->most_sizes = n_sizes;
}

/* ---- control flow ------------------------------------------------------------------------------------------------ */
/* A jump goes to the step before the one to go on with. */
static void land(host *h, size_t jump) { h->steps[jump].b = (int32_t)h->n_steps - 1; }

static void choice(host *h, ir_id id) {
    const ir_op *op = ir_at(h->f, id);
    const ir_region *first = ir_at(h->f, op->region->ops[0])->region, *second = ir_at(h->f, op->region->ops[1])->region;
    size_t past = step(h, CG_STEP_GO_UNLESS, at(h, op->args[0]), 0, 0,
                       base_arena_printf(h->arena, "if %s", h->text[op->args[0]]));
    region(h, first, op->region->ops[0]);
    if (second->n > 1) {
        size_t end = step(h, CG_STEP_GO, 0, 0, 0, "else");
        land(h, past);
        region(h, second, op->region->ops[1]);
        land(h, end);
    } else {
        land(h, past);
    }
}

typedef struct host_rounds {
    size_t head;
    int32_t counter;
    host_leave *outer;
} host_rounds;

static host_rounds begin_rounds(host *h, int32_t count, const char *comment) {
    host_rounds r = {.counter = new_number(h, "0"), .outer = h->leave};
    step(h, CG_STEP_SET, r.counter, zero(h), 0, comment);
    r.head = h->n_steps;
    host_leave *leave = base_arena_new_array(h->arena, host_leave, 1);
    leave->step = step(h, CG_STEP_GO_FROM, r.counter, 0, count, "no further round");
    h->leave = leave;
    return r;
}

static void end_rounds(host *h, host_rounds r) {
    step(h, CG_STEP_COUNT, r.counter, 0, 0, "next round");
    step(h, CG_STEP_GO, 0, (int32_t)r.head - 1, 0, "");
    for (host_leave *l = h->leave; l; l = l->next)
        land(h, l->step);
    h->leave = r.outer;
}

static void leave_unless(host *h, const ir_op *op) {
    host_leave *leave = base_arena_new_array(h->arena, host_leave, 1);
    leave->step = step(h, CG_STEP_GO_UNLESS, at(h, op->args[0]), 0, 0,
                       base_arena_printf(h->arena, "while %s", h->text[op->args[0]]));
    leave->next = h->leave;
    h->leave = leave;
}

static void pages(host *h, ir_id id) {
    const ir_op *op = ir_at(h->f, id);
    long long n = (long long)ir_int(op, IR_ATTR_PAGES, 1);
    if (n == 1) {
        for (size_t i = 0; i < op->region->n; ++i)
            if (ir_at(h->f, op->region->ops[i])->code == IR_ARG) {
                h->is_static[op->region->ops[i]] = true;
                h->text[op->region->ops[i]] = "0";
            }
        region(h, op->region, id);
        return;
    }
    host_rounds r = begin_rounds(h, new_number(h, base_arena_printf(h->arena, "%lld", n)), "pages");
    for (size_t i = 0; i < op->region->n; ++i)
        if (ir_at(h->f, op->region->ops[i])->code == IR_ARG)
            place(h, op->region->ops[i], r.counter, "page");
    region(h, op->region, id);
    end_rounds(h, r);
}

static void move(host *h, bool instance, int32_t to, int32_t from, const char *comment) {
    if (to != from)
        step(h, instance ? CG_STEP_USE : CG_STEP_SET, to, from, 0, comment);
}

static void repeat(host *h, ir_id id) {
    const ir_op *op = ir_at(h->f, id);
    uint32_t n = op->n_args - 1;
    int32_t *places = h->carried[id] = base_arena_new_array(h->arena, int32_t, n + 1);
    for (uint32_t i = 0; i < n; ++i) {
        const char *name = base_arena_printf(h->arena, "carried_%u", i);
        bool inst = is_instance(h, op->args[i + 1]);
        if (!inst && !is_number(ir_at(h->f, op->args[i + 1])->type.dtype)) {
            fail(h, "repeat carries neither an instance nor a number:", name);
            return;
        }
        places[i] = inst ? new_instance(h, name) : new_number(h, "0");
        const char *from = h->text[op->args[i + 1]];
        move(h, inst, places[i], at(h, op->args[i + 1]), base_arena_printf(h->arena, "%s is %s", name, from));
    }
    host_rounds r = begin_rounds(h, at(h, op->args[0]), base_arena_printf(h->arena, "repeat %s", h->text[op->args[0]]));
    for (size_t i = 0; i < op->region->n; ++i) {
        const ir_op *arg = ir_at(h->f, op->region->ops[i]);
        int64_t k = arg->code == IR_ARG ? ir_int(arg, IR_ATTR_INDEX, 0) : 0;
        if (arg->code == IR_ARG)
            place(h, op->region->ops[i], places[k], base_arena_printf(h->arena, "carried_%d", (int)k));
    }
    region(h, op->region, id);
    end_rounds(h, r);
}

/* All at once: first what is given on, into places of its own, then from there. */
static void yield(host *h, const ir_op *op, ir_id loop) {
    const int32_t *places = h->carried[loop];
    int32_t *kept = base_arena_new_array(h->arena, int32_t, op->n_args + 1);
    for (int turn = 0; turn < 2; ++turn)
        for (uint32_t i = 0; i < op->n_args; ++i) {
            bool inst = is_instance(h, op->args[i]);
            int32_t from = at(h, op->args[i]);
            if (from == places[i])
                continue;
            const char *name = h->text[op->args[i]];
            if (turn == 0)
                kept[i] = inst ? new_instance(h, name) : new_number(h, "0");
            if (turn == 0)
                move(h, inst, kept[i], from, base_arena_printf(h->arena, "next_%u is %s", i, name));
            else
                move(h, inst, places[i], kept[i], base_arena_printf(h->arena, "carried_%u is next_%u", i, i));
        }
}

static void get(host *h, ir_id id) {
    const ir_op *op = ir_at(h->f, id);
    int64_t k = ir_int(op, IR_ATTR_INDEX, 0);
    place(h, id, h->carried[op->args[0]][k], base_arena_printf(h->arena, "carried_%d", (int)k));
}

/* ---- the walk ---------------------------------------------------------------------------------------------------- */
static void statement(host *h, ir_id id, ir_id loop) {
    const ir_op *op = ir_at(h->f, id);
    switch ((int)op->code) {
    case IR_CONST:
        h->is_static[id] = true;
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
        on_instance(h, CG_STEP_DONE, op);
        return;
    case IR_RELEASE:
        on_instance(h, CG_STEP_RELEASE, op);
        return;
    case IR_PUSH:
        on_instance(h, CG_STEP_PUSH, op);
        return;
    case IR_RESTORE:
        on_instance(h, CG_STEP_RESTORE, op);
        return;
    case IR_COPY:
        copy(h, op);
        return;
    case IR_LAUNCH:
        launch(h, op);
        return;
    case IR_PAGES:
        pages(h, id);
        return;
    case IR_READI:
        read_scalar(h, id, CG_STEP_READ_I64);
        return;
    case IR_READB:
        read_scalar(h, id, CG_STEP_READ_BOOL);
        return;
    case IR_WHILE:
        leave_unless(h, op);
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
        get(h, id);
        return;
    case IR_RET:
        step(h, CG_STEP_END, 0, 0, 0, "");
        return;
    case IR_ARG:
        return;
    default:
        break;
    }
    if (ir_class_is_elementwise(ir_op_describe(op->code)->cls))
        expression(h, id);
    else
        fail(h, "cannot emit in a task function:", ir_op_describe(op->code)->text);
}

static void region(host *h, const ir_region *r, ir_id loop) {
    for (size_t i = 0; i < r->n && !h->failed; ++i)
        statement(h, r->ops[i], loop);
}

/* ---- the text ---------------------------------------------------------------------------------------------------- */
static host begin(const ir_module *m, const ir_func *f, cg_helpers *help, cg_follower *follower, base_arena *arena,
                  base_str *err) {
    host h = {.m = m, .f = f, .arena = arena, .help = help, .follower = follower, .err = err};
    h.w = (cg_text){.out = base_arena_str(arena), .indent = 1};
    h.launches = base_arena_str(arena);
    h.buffers = base_arena_str(arena);
    cg_names_init(&h.names, arena);
    static const char *const own[] = {"host", "frame", "dims", "instances", "numbers"};
    for (size_t i = 0; i < sizeof own / sizeof *own; ++i)
        cg_name(&h.names, own[i]);
    static const char *const tables[] = {"steps", "launches", "buffers"};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; ++i)
        cg_name(&h.names, base_arena_printf(arena, "%s_%s", cg_symbol(m, f->name), tables[i]));
    h.text = base_arena_new_array(arena, const char *, f->n_ops);
    h.at = base_arena_new_array(arena, int32_t, f->n_ops);
    h.is_static = base_arena_new_array(arena, bool, f->n_ops);
    h.carried = base_arena_new_array(arena, int32_t *, f->n_ops);
    h.n_uses = base_arena_new_array(arena, uint32_t, f->n_ops);
    h.dim = base_arena_new_array(arena, const char *, f->n_syms + 1);
    h.dim_used = base_arena_new_array(arena, bool, f->n_syms + 1);
    for (size_t i = 0; i < f->n_syms; ++i)
        h.dim[i] = cg_name(&h.names, f->syms[i]);
    count_uses(&h, &f->body);
    return h;
}

static void emit_steps(const host *h, const char *symbol, cg_text *w) {
    cg_open(w, "static const tiga_step %s_steps[] =", symbol);
    for (size_t i = 0; i < h->n_steps; ++i) {
        const host_step *s = &h->steps[i];
        if (*s->comment)
            cg_line(w, "{%s, %d, %d, %d}, /* %zu: %s */", s->code, s->a, s->b, s->c, i, s->comment);
        else
            cg_line(w, "{%s, %d, %d, %d}, /* %zu */", s->code, s->a, s->b, s->c, i);
    }
    cg_close(w, ";");
}

static const char *emit_list(const char *symbol, const char *type, const char *what, const base_str *lines, cg_text *w,
                             base_arena *arena) {
    if (!lines->len)
        return "NULL";
    const char *name = base_arena_printf(arena, "%s_%s", symbol, what);
    cg_open(w, "static const %s %s[] =", type, name);
    cg_raw(w, base_str_text(lines));
    cg_close(w, ";");
    return name;
}

static void emit_numbers(const host *h, cg_text *w) {
    base_str *list = base_arena_str(h->arena);
    for (size_t i = 0; i < h->n_numbers; ++i)
        base_str_addf(list, "%s%s", i ? ", " : "", h->numbers[i]);
    cg_line(w, "int64_t numbers[] = {%s};", h->n_numbers ? base_str_text(list) : "0");
}

static void emit_function(const host *h, const char *symbol, cg_text *w) {
    const char *launches = emit_list(symbol, "int32_t", "launches", h->launches, w, h->arena);
    const char *buffers = emit_list(symbol, "tiga_buffer", "buffers", h->buffers, w, h->arena);
    emit_steps(h, symbol, w);
    cg_open(w, "TIGA_HOST_FN int32_t %s_host(const tiga_host *host, void *frame, const int64_t *dims)", symbol);
    bool any = false;
    for (size_t i = 0; i < h->f->n_syms; ++i) {
        if (h->dim_used[i])
            cg_line(w, "const int64_t %s = dims[%zu];", h->dim[i], i);
        any = any || h->dim_used[i];
    }
    if (!any)
        cg_line(w, "(void)dims;");
    cg_raw(w, base_str_text(h->w.out));
    cg_line(w, "tiga_instance *instances[%zu];", h->n_instances + !h->n_instances);
    emit_numbers(h, w);
    cg_line(w, "return tiga_follow(host, frame, %s_steps, %s, %s, instances, numbers);", symbol, launches, buffers);
    cg_close(w, "\n");
}

bool cg_emit_host(const ir_module *m, const ir_func *f, cg_text *w, cg_helpers *help, cg_follower *follower,
                  base_arena *arena, base_str *err) {
    host h = begin(m, f, help, follower, arena, err);
    follower->n_tasks++;
    region(&h, &f->body, 0);
    if (h.failed)
        return false;
    cg_comment(w, base_arena_printf(arena, "the schedule of %s", f->name));
    emit_function(&h, cg_symbol(m, f->name), w);
    return true;
}
