/* The plan of a module in words, for people: the launches of each function in order, what each reads and writes per edge and
 * per row, which calls were fused into it and which were not, and why.
 *
 * Walks and bytes are counted in the loop functions that will run; fusions are what the passes noted when they decided. */
#include "passes/passes.h"

#include <string.h>

typedef struct explainer {
    const ir_module *m;
    const pass_notes *notes;
    base_str *out;
    const ir_func *task;
    const char *ahead; /* the launch before, when this one follows it block by block */
} explainer;

static void add_indent(base_str *out, int depth) {
    for (int i = 0; i < depth; i++)
        base_str_add(out, "  ");
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */
typedef struct bytes { /* a sum, as it is found */
    int64_t constant;
    base_str open, parts; /* "4 F + 8 K", "4 (column) + 4 F (x)" */
} bytes;

static void add_part(bytes *b, const ir_func *f, const ir_type *t, const char *name) {
    int64_t n = t ? (int64_t)ir_dtype_bytes(t->dtype) : 0;
    base_str dims = {0};
    for (uint32_t i = 0; t && i < t->rank; i++)
        if (ir_dim_is_sym(t->dim[i]))
            base_str_addf(&dims, " %s", f->syms[ir_dim_sym_index(t->dim[i])]);
        else
            n *= t->dim[i];
    if (dims.len)
        base_str_addf(&b->open, "%s%lld%s", b->open.len ? " + " : "", (long long)n, base_str_text(&dims));
    else
        b->constant += n;
    base_str_addf(&b->parts, "%s%lld%s (%s)", b->parts.len ? " + " : "", (long long)n, base_str_text(&dims), name);
    base_str_fini(&dims);
}

static void add_fixed(bytes *b, int64_t n, const char *name) {
    b->constant += n;
    base_str_addf(&b->parts, "%s%lld (%s)", b->parts.len ? " + " : "", (long long)n, name);
}

/* "12 + 4 F bytes per edge: 4 (column) + ..." */
static void end_bytes(bytes *b, base_str *out, const char *per) {
    if (b->constant || !b->open.len)
        base_str_addf(out, "%lld%s", (long long)b->constant, b->open.len ? " + " : "");
    base_str_addf(out, "%s bytes per %s%s%s\n", base_str_text(&b->open), per, b->parts.len ? ": " : "",
                  base_str_text(&b->parts));
    base_str_fini(&b->open);
    base_str_fini(&b->parts);
}

/* ---- loop functions ---------------------------------------------------------------------------------------------- */
typedef struct walk {
    ir_id id; /* of the edges loop; 0: none, the rows */
    int64_t width; /* of the tiles around; 0: none */
    unsigned reads; /* of each edge, beside fields: IR_READS_* */
} walk;

typedef struct reader { /* over one loop function */
    const ir_func *f;
    walk walks[64];
    size_t n_walks;
    bool *seen; /* by walk (0: rows) and parameter */
    bool offsets; /* read without a walk, for the degree */
} reader;

static bool first_time(reader *r, size_t at, size_t param) {
    bool *seen = &r->seen[at * r->f->n_params + param];
    return !*seen && (*seen = true);
}

/* Is the index of the load the source of an edge? */
static bool is_source(const reader *r, const ir_op *op, const walk *w) {
    const ir_op *index = ir_at(r->f, op->args[0]);
    if (index->code == IR_SOURCE)
        return true;
    const ir_region *in = ir_at(r->f, w->id)->region;
    size_t at;
    return index->code == IR_ARG && ir_int(index, IR_ATTR_INDEX, 0) == 1 && ir_region_find(in, op->args[0], &at);
}

static void read_access(reader *r, const ir_op *op, size_t at) {
    size_t i = (size_t)ir_int(op, IR_ATTR_FIELD, 0);
    ir_role role = r->f->params[i].role;
    bool edge = role == IR_EDGE_FIELD || role == IR_OUT_EDGE || role == IR_SRC ||
                (role == IR_NODE && at && is_source(r, op, &r->walks[at]));
    if (role != IR_PARAM_FIELD && role != IR_OUT_PARAM)
        first_time(r, edge ? at : 0, i);
}

static void read_region(reader *r, const ir_region *region, size_t at, int64_t width) {
    for (size_t i = 0; i < region->n; i++) {
        const ir_op *op = ir_at(r->f, region->ops[i]);
        size_t inside = at;
        if (op->code == IR_LOAD || op->code == IR_STORE)
            read_access(r, op, at);
        r->offsets |= op->code == IR_DEGREE;
        if (op->code == IR_EDGES && r->n_walks < 64) {
            inside = r->n_walks++;
            r->walks[inside] = (walk){.id = region->ops[i], .width = width, .reads = ir_walk_reads(r->f, op)};
        }
        if (op->region)
            read_region(r, op->region, inside, op->code == IR_TILES ? ir_int(op, IR_ATTR_WIDTH, 0) : width);
    }
}

static void explain_walk(explainer *x, reader *r, size_t at, int depth) {
    bytes b = {0};
    add_indent(x->out, depth);
    base_str_addf(x->out, "walk");
    if (r->n_walks > 2)
        base_str_addf(x->out, " %zu", at);
    if (r->walks[at].width)
        base_str_addf(x->out, " for each %lld features", (long long)r->walks[at].width);
    base_str_add(x->out, ": ");
    if (r->walks[at].reads & IR_READS_SOURCE)
        add_fixed(&b, 4, "column");
    if (r->walks[at].reads & IR_READS_EDGE_OF)
        add_fixed(&b, 4, "edge number");
    for (size_t i = 0; i < r->f->n_params; i++)
        if (r->seen[at * r->f->n_params + i])
            add_part(&b, r->f, &r->f->params[i].type, r->f->params[i].name);
    end_bytes(&b, x->out, "edge");
}

static void explain_rows(explainer *x, const reader *r, int depth) {
    bytes b = {0};
    add_indent(x->out, depth);
    base_str_add(x->out, r->f->rows_per_unit > 1 ? "rows, summed up: " : "rows: ");
    if (r->n_walks > 1 || r->offsets)
        add_fixed(&b, 8, "offset");
    for (size_t i = 0; i < r->f->n_params; i++)
        if (r->seen[i] && !(r->f->rows_per_unit > 1 && ir_role_is_out(r->f->params[i].role)))
            add_part(&b, r->f, &r->f->params[i].type, r->f->params[i].name);
    end_bytes(&b, x->out, "row");
}

static void explain_begins(explainer *x, const ir_func *f, int depth) {
    for (size_t i = 0; i < f->n_params; i++) {
        if (!f->params[i].begins)
            continue;
        add_indent(x->out, depth);
        base_str_addf(x->out, "%s begins as a copy of %s\n", f->params[i].name,
                      f->params[f->params[i].begins - 1].name);
    }
}

static void explain_notes(explainer *x, const char *kernel, int depth) {
    static const char *const words[] = {[PASS_NOTE_FUSED] = "made of",
                                        [PASS_NOTE_REFUSED] = "not fused with",
                                        [PASS_NOTE_PRODUCTS] = "products:",
                                        [PASS_NOTE_ONCE] = "once, in front of the rounds:",
                                        [PASS_NOTE_EACH] = "not by itself in front of the rounds:"};
    for (size_t i = 0; i < x->notes->n; i++) {
        const pass_note *n = &x->notes->items[i];
        if ((*n->program && strcmp(n->program, x->task->name) != 0) || strcmp(n->kernel, kernel) != 0)
            continue;
        const char *between = n->kind == PASS_NOTE_REFUSED || n->kind == PASS_NOTE_EACH ? ": " : ", ";
        add_indent(x->out, depth);
        base_str_addf(x->out, "%s %s%s%s\n", words[n->kind], n->other, n->text ? between : "", n->text ? n->text : "");
    }
}

/* What runs instead of the walk. */
static void explain_winners(explainer *x, const ir_func *f, int depth) {
    const uint32_t at[] = {f->winners.which, f->winners.given, (uint32_t)f->n_params - 1};
    bytes b = {0};
    add_indent(x->out, depth);
    base_str_add(x->out, "rows of the graph, to the sources of the edges that won; rows where edges tie are walked: ");
    add_fixed(&b, 8, "offset");
    for (int i = 0; i < 3; i++)
        add_part(&b, f, &f->params[at[i]].type, f->params[at[i]].name);
    end_bytes(&b, x->out, "row");
}

static void explain_loop(explainer *x, const char *name, int depth) {
    const ir_func *f = ir_func_find(x->m, name, IR_LEVEL_LOOP);
    if (!f)
        return;
    reader r = {.f = f, .n_walks = 1};
    r.seen = base_alloc_zero(64 * (f->n_params + 1) * sizeof *r.seen);
    add_indent(x->out, depth);
    base_str_addf(x->out, "%s\n", name);
    if (!r.seen)
        return;
    read_region(&r, &f->body, 0, 0);
    for (size_t w = 1; w < r.n_walks && !f->winners.known; w++)
        explain_walk(x, &r, w, depth + 1);
    if (f->winners.known)
        explain_winners(x, f, depth + 1);
    else
        explain_rows(x, &r, depth + 1);
    explain_begins(x, f, depth + 1);
    explain_notes(x, name, depth + 1);
    base_free(r.seen);
}

/* ---- schedules --------------------------------------------------------------------------------------------------- */
static bool is_end_of_total(const char *name) {
    size_t n = strlen(name);
    return n > 6 && !strcmp(name + n - 6, ".total");
}

static void explain_launch(explainer *x, const ir_op *op, int depth) {
    explain_loop(x, ir_word(op, IR_ATTR_CALLEE), depth);
    if (x->ahead) {
        add_indent(x->out, depth + 1);
        base_str_addf(x->out, "follows %s block by block, while its rows are in the cache\n", x->ahead);
    }
    x->ahead = ir_int(op, IR_ATTR_AHEAD, 0) ? ir_word(op, IR_ATTR_CALLEE) : NULL;
}

static void explain_region(explainer *x, const ir_func *t, const ir_region *r, int depth) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(t, r->ops[i]);
        if (op->code == IR_LAUNCH && !is_end_of_total(ir_word(op, IR_ATTR_CALLEE)))
            explain_launch(x, op, depth);
        if (op->code == IR_REPEAT || op->code == IR_IF || op->code == IR_WHILE || (op->code == IR_ARM && i)) {
            add_indent(x->out, depth - (op->code == IR_ARM));
            base_str_addf(x->out, "%s\n", op->code == IR_ARM ? "else" : ir_op_describe(op->code)->text);
        }
        if (op->region)
            explain_region(x, t, op->region, depth + (op->code == IR_REPEAT || op->code == IR_IF));
    }
}

void pass_explain(const ir_module *m, const pass_notes *notes, base_str *out) {
    explainer x = {.m = m, .notes = notes, .out = out};
    for (size_t i = 0; i < m->n_funcs; i++) {
        const ir_func *t = m->funcs[i];
        if (t->level != IR_LEVEL_TASK)
            continue;
        bool program = ir_func_find(m, t->name, IR_LEVEL_PROGRAM) != NULL;
        base_str_addf(out, "%s%s %s\n", out->len ? "\n" : "", program ? "program" : "kernel", t->name);
        x.task = t;
        explain_notes(&x, "", 1);
        explain_region(&x, t, &t->body, 1);
    }
}
