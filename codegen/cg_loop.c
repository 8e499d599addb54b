/* One loop function to C: the unpacking of its arguments in front of the statements, once for 32-bit and once for 64-bit
 * sources.  Only what the statements mention is unpacked. */
#include "codegen/cg_c.h"

#include <string.h>

static void take_names(cg_loop *c) {
    c->field = base_arena_new_array(c->arena, const char *, c->f->n_params + 1);
    c->dim = base_arena_new_array(c->arena, const char *, c->f->n_syms + 1);
    c->field_used = base_arena_new_array(c->arena, bool, c->f->n_params + 1);
    c->dim_used = base_arena_new_array(c->arena, bool, c->f->n_syms + 1);
    for (size_t i = 0; i < c->f->n_params; ++i)
        c->field[i] = cg_name(&c->names, c->f->params[i].name);
    for (size_t i = 0; i < c->f->n_syms; ++i)
        c->dim[i] = cg_name(&c->names, c->f->syms[i]);
    c->args = cg_name(&c->names, "args");
    c->offsets = cg_name(&c->names, "offsets");
    c->sources = cg_name(&c->names, "sources");
    c->wide = cg_name(&c->names, "wide");
    c->edge_of = cg_name(&c->names, "edge_of");
    c->first_row = c->row_begin = cg_name(&c->names, "row_begin");
    c->row_end = cg_name(&c->names, "row_end");
    c->n_rows = cg_name(&c->names, "n_rows");
    c->edge_end = cg_name(&c->names, "edge_end");
    c->ask_at = cg_name(&c->names, "ask_at");
    c->scratch = cg_name(&c->names, "scratch");
    size_t n = c->twin ? c->twin->n_numbers : 0;
    c->number = base_arena_new_array(c->arena, const char *, n + 1);
    for (size_t i = 0; i < n; ++i)
        c->number[i] = cg_name(&c->names, base_arena_printf(c->arena, "number_%zu", i));
    c->number_used = base_arena_new_array(c->arena, bool, n + 1);
    cg_collect_scratch(c);
}

static void unpack_column(const cg_loop *c, cg_text *w, const char *name, const char *from) {
    if (c->source_bits == CG_EITHER)
        cg_line(w, "const void *TIGA_RESTRICT %s = %s->%s;", name, c->args, from);
    else
        cg_line(w, "const int%d_t *TIGA_RESTRICT %s = (const int%d_t *)%s->%s;", c->source_bits, name, c->source_bits,
                c->args, from);
}

static void unpack(cg_loop *c, cg_text *w) {
    const char *a = c->args;
    for (size_t i = 0; i < c->f->n_syms; ++i)
        if (c->dim_used[i])
            cg_line(w, "const int64_t %s = %s->dims[%zu];", c->dim[i], a, i);
    if (c->uses_n_rows)
        cg_line(w, "const int64_t %s = %s->n_rows;", c->n_rows, a);
    if (c->uses_offsets)
        cg_line(w, "const int64_t *TIGA_RESTRICT %s = %s->graph.offsets;", c->offsets, a);
    if (c->uses_sources)
        unpack_column(c, w, c->sources, "graph.sources");
    if (c->uses_edge_of)
        unpack_column(c, w, c->edge_of, "edge_of");
    if ((c->uses_sources || c->uses_edge_of) && c->source_bits == CG_EITHER)
        cg_line(w, "const bool %s = %s->graph.source_bits == 64;", c->wide, a);
    for (size_t i = 0; i < c->f->n_params; ++i) {
        const ir_param *p = &c->f->params[i];
        const char *t = cg_storage(p->type.dtype), *cv = p->role >= IR_OUT_ROW ? "" : "const ";
        if (c->field_used[i])
            cg_line(w, "%s%s *TIGA_RESTRICT %s = (%s%s *)%s->buffers[%zu];", cv, t, c->field[i], cv, t, a, i);
    }
    for (size_t i = 0; c->twin && i < c->twin->n_numbers; ++i) {
        const char *t = cg_ctype(ir_at(c->f, c->twin->id[i])->type.dtype);
        if (c->number_used[i])
            cg_line(w, "const %s %s = (%s)%s->numbers[%zu];", t, c->number[i], t, a, i);
    }
    if (c->uses_edge_end)
        cg_line(w, "const int64_t %s = %s[%s];", c->edge_end, c->offsets, c->row_end);
    if (c->n_scratch)
        cg_line(w, "char *const %s = (char *)%s->scratch;", c->scratch, a);
    if (c->n_scratch)
        cg_scratch_lines(c, w, false);
}

static cg_loop begin(const cg_loop *like, ir_func *f, int bits, base_str *body) {
    cg_loop c = *like;
    c.f = f;
    c.source_bits = bits;
    cg_names_init(&c.names, c.arena);
    c.text = base_arena_new_array(c.arena, const char *, f->n_ops);
    c.place = base_arena_new_array(c.arena, cg_place, f->n_ops);
    c.lane_offset = -1;
    c.w = (cg_text){.out = body, .indent = 1};
    cg_analyse(&c);
    take_names(&c);
    c.n_scratch = f->winners.known ? 0 : c.n_scratch; /* the body is not emitted */
    return c;
}

static bool has_rows(const cg_loop *c) {
    for (ir_id id = 1; id < c->f->n_ops; ++id)
        if (ir_at(c->f, id)->code == IR_ROWS && c->site[id].live)
            return true;
    return false;
}

static void emit_scratch_bytes(cg_loop *c, cg_text *w) {
    base_str *lines = base_arena_str(c->arena);
    cg_text body = {.out = lines, .indent = 1};
    bool uses_dims = false;
    for (size_t i = 0; i < c->f->n_syms; ++i) {
        c->dim[i] = base_arena_printf(c->arena, "dims[%zu]", i);
        c->dim_used[i] = false;
    }
    cg_scratch_lines(c, &body, true);
    for (size_t i = 0; i < c->f->n_syms; ++i)
        uses_dims = uses_dims || c->dim_used[i];
    cg_open(w, "%sint64_t %s_scratch_bytes(const int64_t *dims)", c->shared ? "" : "static ",
            cg_symbol(c->m, c->f->name));
    if (!uses_dims)
        cg_line(w, "(void)dims;");
    cg_raw(w, base_str_text(lines));
    cg_close(w, "\n");
}

static bool walks(const cg_loop *c) { return c->uses_sources || c->uses_offsets || c->f->winners.known; }

/* What the statements need in front of them, and they. */
static void emit_body(cg_loop *c, const base_str *body, cg_text *w) {
    size_t before = w->out->len;
    unpack(c, w);
    cg_steps_lines(c, w);
    if (c->first_ask)
        cg_line(w, "int64_t %s = %s;", c->ask_at, c->first_ask);
    if (w->out->len == before)
        cg_line(w, "(void)%s;", c->args);
    bool whole = has_rows(c) || c->f->winners.known;
    if (!whole)
        cg_line(w, "(void)%s;", c->row_begin);
    if (!whole)
        cg_line(w, "(void)%s;", c->row_end);
    cg_raw(w, base_str_text(body));
}

/* ---- sizes that are usual ---- */
/* The dimension that rows at the top of the function say, 0: none. */
static ir_dim sized_dim(const ir_func *f) {
    ir_dim d = 0;
    for (size_t i = 0; i < f->body.n && !d; ++i)
        d = ir_at(f, f->body.ops[i])->code == IR_ROWS ? ir_int(ir_at(f, f->body.ops[i]), IR_ATTR_SIZES, 0) : 0;
    return d < 0 ? d : 0;
}

static void write_statements(cg_loop *c) {
    if (c->f->winners.known)
        cg_winners(c);
    else
        cg_region(c, &c->f->body);
}

static bool emit_sizes(const cg_loop *like, ir_func *f, int bits, cg_text *w) {
    static const int64_t usual[] = {16, 32, 64, 128}; /* features */
    ir_dim dim = sized_dim(f);
    for (size_t i = 0; dim && i < sizeof usual / sizeof usual[0]; ++i) {
        base_str *body = base_arena_str(like->arena);
        cg_loop known = *like;
        known.sized = dim;
        known.size = usual[i];
        cg_loop c = begin(&known, f, bits, body);
        c.w.indent = 2;
        write_statements(&c);
        if (c.failed)
            return false;
        cg_open(w, "if (%s->dims[%u] == %lld)", c.args, (unsigned)ir_dim_sym_index(dim), (long long)usual[i]);
        emit_body(&c, body, w);
        cg_line(w, "return;");
        cg_close(w, "");
    }
    return true;
}

static bool emit_function(const cg_loop *like, cg_loop *c, const base_str *body, cg_text *w) {
    const char *bits = c->source_bits == 64 ? "64" : c->source_bits == CG_EITHER && walks(c) ? "_any" : "32";
    cg_open(w, "%svoid %s_rows%s(const tiga_launch_args *%s, int64_t %s, int64_t %s)", c->shared ? "" : "static ",
            cg_symbol(c->m, c->f->name), bits, c->args, c->row_begin, c->row_end);
    bool ok = !c->sizes || emit_sizes(like, c->f, c->source_bits, w);
    emit_body(c, body, w);
    cg_close(w, "\n");
    return ok;
}

/* The statements are written first: they tell what has to be unpacked, and with 32 bits the facts. */
static bool emit_rows(const cg_loop *like, ir_func *f, int bits, bool wanted, cg_text *w, cg_loop_facts *facts) {
    base_str *body = base_arena_str(like->arena);
    cg_loop c = begin(like, f, bits, body);
    write_statements(&c);
    if (bits != 64)
        *facts = (cg_loop_facts){.walks_edges = f->winners.known ? 3
                                                : walks(&c)      ? 1 + ir_transposed(f)
                                                                 : 0,
                                 .either = bits == CG_EITHER && walks(&c),
                                 .needs_scratch = c.n_scratch > 0};
    if (!c.failed && (wanted || !facts->walks_edges) && !emit_function(like, &c, body, w))
        return false;
    if (!c.failed && bits != 64 && c.n_scratch)
        emit_scratch_bytes(&c, w);
    return !c.failed;
}

bool cg_emit_loop(const ir_module *m, ir_func *f, const cg_twin *twin, int source_bits, cg_text w[2], cg_helpers *h,
                  cg_vectors *v, base_arena *arena, cg_loop_facts *facts, base_str *err) {
    cg_loop like = {
        .m = m, .twin = twin, .arena = arena, .help = h, .vec = v, .err = err, .shared = source_bits & CG_SHARED};
    if ((source_bits & ~CG_SHARED) == CG_EITHER)
        return emit_rows(&like, f, CG_EITHER, true, w, facts);
    like.sizes = true;
    if (!emit_rows(&like, f, 32, source_bits & 32, w, facts))
        return false;
    like.sizes = !(source_bits & 32); /* of two functions in the one for graphs of less than 2^31 nodes */
    return !(source_bits & 64) || !facts->walks_edges || emit_rows(&like, f, 64, true, &w[1], facts);
}

bool cg_needs_scratch(const ir_module *m, ir_func *f, base_arena *arena) {
    cg_loop like = {.m = m, .arena = arena};
    cg_loop c = begin(&like, f, 32, base_arena_str(arena));
    return c.n_scratch > 0;
}
