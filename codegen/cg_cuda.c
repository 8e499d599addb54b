/* CUDA C: one kernel for each loop function, NAME_rows32 and (when edges are walked) NAME_rows64, and NAME_launch, which
 * says how to launch it.  The text needs no headers: NVRTC takes it as it is.
 *
 * Arguments of every kernel, in this order: the arrays as declared, results last; offsets and sources when edges are
 * walked, and edge_of, as wide as the sources, when it is the transposed relation; the number of rows of the domain; the
 * open dimensions; the first unit and the one after the last; scratch memory (see NAME_launch; may be null when there is
 * none). */
#include "codegen/cg_cuda.h"

#include <string.h>

static int walks_edges(const ir_func *f) { return ir_walks(f) ? 1 + ir_transposed(f) : 0; }

/* ---- one kernel -------------------------------------------------------------------------------------------------- */

static void take_names(cg_cuda *c) {
    ir_func *f = c->f;
    c->field = base_arena_new_array(c->arena, const char *, f->n_params + 1);
    c->dim = base_arena_new_array(c->arena, const char *, f->n_syms + 1);
    for (size_t i = 0; i < f->n_params; ++i)
        c->field[i] = cg_name(&c->names, f->params[i].name);
    for (size_t i = 0; i < f->n_syms; ++i)
        c->dim[i] = cg_name(&c->names, f->syms[i]);
    c->offsets = cg_name(&c->names, "offsets");
    c->sources = cg_name(&c->names, "sources");
    c->edge_of = cg_name(&c->names, "edge_of");
    c->n_rows = cg_name(&c->names, "n_rows");
    c->row_begin = cg_name(&c->names, "row_begin");
    c->row_end = cg_name(&c->names, "row_end");
    c->scratch_arg = cg_name(&c->names, "scratch");
    c->t = cg_name(&c->names, "t");
    c->mask = cg_name(&c->names, "team_mask");
    c->slice = cg_name(&c->names, "team");
    c->n_slices = cg_name(&c->names, "n_teams");
    for (size_t i = 0; i < c->n_scratch; ++i) {
        const char *word = ir_word(ir_at(f, c->scratch[i]), IR_ATTR_NAME);
        c->text[c->scratch[i]] = cg_name(&c->names, word ? word : "var");
    }
}

static void signature(cg_cuda *c, const char *name) {
    const ir_func *f = c->f;
    cg_line(&c->w, "extern \"C\" __global__ void __launch_bounds__(%d, 1) %s_rows%d(", CG_CU_BLOCK, name,
            c->source_bits);
    for (size_t i = 0; i < f->n_params; ++i) {
        bool out = f->params[i].role >= IR_OUT_ROW;
        cg_line(&c->w, "    %s%s *__restrict__ %s,", out ? "" : "const ", cg_storage(f->params[i].type.dtype),
                c->field[i]);
    }
    if (walks_edges(f))
        cg_line(&c->w, "    const int64_t *__restrict__ %s, const int%d_t *__restrict__ %s,", c->offsets,
                c->source_bits, c->sources);
    if (ir_transposed(f))
        cg_line(&c->w, "    const int%d_t *__restrict__ %s,", c->source_bits, c->edge_of);
    cg_line(&c->w, "    int64_t %s,", c->n_rows);
    for (size_t i = 0; i < f->n_syms; ++i)
        cg_line(&c->w, "    int64_t %s,", c->dim[i]);
    cg_line(&c->w, "    int64_t %s, int64_t %s, unsigned char *%s)", c->row_begin, c->row_end, c->scratch_arg);
}

/* Arrays in scratch memory: dealt out, a team's part lies together; else element by element for all threads. */
static void scratch_arrays(cg_cuda *c) {
    for (size_t i = 0; i < c->n_scratch; ++i) {
        ir_id var = c->scratch[i];
        const char *type = cg_storage(ir_at(c->f, var)->type.dtype), *n = cg_cu_var_elements(c, var);
        if (ir_at(c->f, var)->type.dtype == IR_BOOL)
            type = "bool";
        int copies = c->site[var].axis < 0 ? c->team : 1;
        const char *size = base_arena_printf(c->arena, "%s * %d * (int64_t)sizeof(%s)", n, copies, type), *at;
        if (c->team == 1)
            at = c->slice;
        else if (copies == 1)
            at = base_arena_printf(c->arena, "%s * (%s)", c->slice, n);
        else
            at = base_arena_printf(c->arena, "%s * (%s) * %d + %s", c->slice, n, copies, cg_cu_t(c));
        cg_line(&c->w, "%s *const %s = (%s *)%s + %s;", type, c->text[var], type, c->scratch_arg, at);
        cg_line(&c->w, "%s += %s * ((%s + 15) / 16 * 16);", c->scratch_arg, c->n_slices, size);
    }
}

static void prologue(cg_cuda *c) {
    const char *per = c->team == 1 ? "" : base_arena_printf(c->arena, " / %d", c->team);
    if (c->uses_t)
        cg_line(&c->w, "const int %s = (int)threadIdx.x & %d; /* which thread of its team */", c->t, c->team - 1);
    if (c->uses_mask)
        cg_line(&c->w, "const unsigned %s = 0xffffu << (threadIdx.x & 16); /* the team's lanes of the warp */",
                c->mask);
    cg_line(&c->w, "const int64_t %s = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x)%s;", c->slice, per);
    cg_line(&c->w, "const int64_t %s = (int64_t)gridDim.x * blockDim.x%s;", c->n_slices, per);
}

/* The body is written first, into a string of its own: it decides what the prologue declares. */
static void kernel(cg_cuda *c, const char *name, cg_text *out) {
    base_str *body = base_arena_str(c->arena), *arrays = base_arena_str(c->arena);
    cg_names_init(&c->names, c->arena);
    c->text = base_arena_new_array(c->arena, const char *, c->f->n_ops);
    c->bare = base_arena_new_array(c->arena, const char *, c->f->n_ops);
    c->slot = base_arena_new_array(c->arena, const char *, c->f->n_ops);
    c->uses_t = c->uses_mask = false;
    take_names(c);
    c->w = (cg_text){body, 1};
    cg_cu_region(c, &c->f->body);
    c->w = (cg_text){arrays, 1};
    scratch_arrays(c);
    c->w = (cg_text){out->out, 0};
    signature(c, name);
    cg_open(&c->w, "%s", "");
    prologue(c);
    cg_raw(&c->w, base_str_text(arrays));
    cg_raw(&c->w, base_str_text(body));
    cg_close(&c->w, "");
    cg_blank(&c->w);
}

/* ---- how to launch it -------------------------------------------------------------------------------------------- */

static const char launch_struct[] =
    "/* How to launch a kernel: NAME_launch tells, and can be read from the loaded module.  Blocks have `block` "
    "threads;\n"
    " * any number of blocks will do, block / team units are computed by each at a time.  Scratch memory: for each of "
    "the\n"
    " * n_scratch arrays bytes * (product of shape), rounded up to 16, times grid * block / team.  A shape is a "
    "constant\n"
    " * >= 0, or -1 - i for dimension i. */\n"
    "struct tiga_cuda_scratch { int64_t bytes; int64_t rank; int64_t shape[6]; };\n"
    "struct tiga_cuda_launch {\n"
    "    int32_t version, block, team, walks_edges, n_buffers, n_outputs, n_dims, n_scratch;\n"
    "    int64_t rows_per_unit;\n"
    "    tiga_cuda_scratch scratch[32];\n"
    "};\n";

static void scratch_entry(cg_cuda *c, ir_id var) {
    const ir_type *t = &ir_at(c->f, var)->type;
    int copies = c->site[var].axis < 0 ? c->team : 1;
    base_str *shape = base_arena_str(c->arena);
    for (uint32_t i = 0; i < t->rank; ++i) {
        int64_t n = cg_cu_extent(c, var, i);
        base_str_addf(shape, "%s%lld", i ? ", " : "", (long long)(n >= 0 ? n : t->dim[i]));
    }
    cg_line(&c->w, "{%lld, %u, {%s}},", (long long)ir_dtype_bytes(t->dtype) * copies, (unsigned)t->rank,
            base_str_text(shape));
}

static void launch_entry(cg_cuda *c, const char *name, cg_text *out) {
    const ir_func *f = c->f;
    int outputs = 0;
    for (size_t i = 0; i < f->n_params; ++i)
        outputs += f->params[i].role >= IR_OUT_ROW;
    c->w = *out;
    cg_open(&c->w, "extern \"C\"");
    cg_open(&c->w, "__constant__ tiga_cuda_launch %s_launch =", name);
    cg_line(
        &c->w,
        "1, %d, %d, %d, %d, %d, %d, %d, /* block, team, walks edges, buffers, outputs, dimensions, scratch arrays */",
        CG_CU_BLOCK, c->team, walks_edges(f), (int)f->n_params, outputs, (int)f->n_syms, (int)c->n_scratch);
    cg_line(&c->w, "%lld, /* rows per unit */", (long long)f->rows_per_unit);
    cg_open(&c->w, "%s", "");
    for (size_t i = 0; i < c->n_scratch; ++i)
        scratch_entry(c, c->scratch[i]);
    if (!c->n_scratch)
        cg_line(&c->w, "{0, 0, {0}}");
    cg_close(&c->w, ",");
    cg_close(&c->w, ";");
    cg_close(&c->w, "");
    cg_blank(&c->w);
}

static bool check(cg_cuda *c) {
    const ir_func *f = c->f;
    if (f->team != 1 && f->team != CG_CU_TEAM)
        return cg_fail(c->err, f->team ? "@%s: a team of %lld threads is not supported" : "@%s has no CUDA schedule",
                       f->name, (long long)f->team);
    if (!cg_cu_plan(c))
        return false;
    return c->n_scratch <= 32 ||
           cg_fail(c->err, "@%s needs %zu arrays in scratch memory; a kernel may have 32", f->name, c->n_scratch);
}

static bool function(cg_cuda *c, const char *name, cg_text *out) {
    c->team = (int)c->f->team;
    c->scratch = NULL;
    c->n_scratch = c->cap_scratch = 0;
    if (!check(c))
        return false;
    base_str *text = base_arena_str(c->arena);
    ir_print_func(c->f, text);
    char *end = text->data ? strchr(text->data, '{') : NULL;
    if (end)
        *end = 0;
    cg_comment(out, base_str_text(text));
    launch_entry(c, name, out);
    for (c->source_bits = 32; c->source_bits <= 64; c->source_bits += 32)
        if (c->source_bits == 32 || walks_edges(c->f))
            kernel(c, name, out);
    return true;
}

/* ---- the tree over a team ---------------------------------------------------------------------------------------- */

static bool commutes(int k) { return k == IR_KIND_SUM || k == IR_KIND_PROD || k == IR_KIND_AND || k == IR_KIND_OR; }

/* Shuffles move 32 or 64 bits. */
static const char *shuffled_as(ir_dtype t) { return ir_dtype_bytes(t) < 4 ? "(int)" : ""; }

static const char *shuffled_back(ir_dtype t) { return t == IR_I8 ? "(int8_t)" : t == IR_U8 ? "(uint8_t)" : ""; }

/* Of complex numbers: both parts are moved.  A product of two has the same bits in either order, NaN apart. */
static void team_tree_complex(cg_text *w, int k, ir_dtype t, cg_helpers *h) {
    const char *type = cg_ctype(t), *op = k == IR_KIND_SUM ? "add" : "mul";
    h->scalar[k == IR_KIND_SUM ? IR_ADD : IR_MUL][t][t] = true;
    cg_open(w, "TIGA_FN %s tiga_team_%s_%s(unsigned mask, %s v)", type, ir_kind_text((ir_kind)k), ir_dtype_text(t),
            type);
    cg_line(w, "#pragma unroll");
    cg_open(w, "for (int d = 8; d > 0; d /= 2)");
    cg_line(w, "%s other;", type);
    cg_line(w, "other.re = __shfl_xor_sync(mask, v.re, d, 16);");
    cg_line(w, "other.im = __shfl_xor_sync(mask, v.im, d, 16);");
    cg_line(w, "v = tiga_%s_%s(v, other);", op, ir_dtype_text(t));
    cg_close(w, "");
    cg_line(w, "%s first;", type);
    cg_line(w, "first.re = __shfl_sync(mask, v.re, 0, 16);");
    cg_line(w, "first.im = __shfl_sync(mask, v.im, 0, 16);");
    cg_line(w, "return first;");
    cg_close(w, "");
}

static void team_tree(cg_text *w, int k, ir_dtype t, cg_helpers *h, base_arena *arena) {
    const char *type = cg_ctype(t), *as = shuffled_as(t), *back = t == IR_BOOL ? " != 0" : "",
               *args[2] = {"v", "other"};
    bool atom;
    if (ir_dtype_is_complex(t)) {
        team_tree_complex(w, k, t, h);
        return;
    }
    cg_open(w, "TIGA_FN %s tiga_team_%s_%s(unsigned mask, %s v)", type, ir_kind_text((ir_kind)k), ir_dtype_text(t),
            type);
    cg_line(w, "#pragma unroll");
    cg_open(w, "for (int d = 8; d > 0; d /= 2)");
    cg_line(w, "const %s other = %s__shfl_xor_sync(mask, %sv, d, 16)%s;", type, shuffled_back(t), as, back);
    cg_line(w, "v = %s;", cg_expr(h, arena, cg_kind_op((ir_kind)k), t, t, args, &atom));
    cg_close(w, "");
    if (commutes(k))
        cg_line(w, "return v; /* the order of two operands does not matter: all lanes have the same */");
    else
        cg_line(w, "return %s__shfl_sync(mask, %sv, 0, 16)%s;", shuffled_back(t), as, back);
    cg_close(w, "");
}

static void team_arg_tree(cg_text *w, int k, ir_dtype t) {
    const char *type = cg_ctype(t), *kind = ir_kind_text((ir_kind)k), *name = ir_dtype_text(t);
    const char *as = shuffled_as(t), *back = t == IR_BOOL ? " != 0" : "";
    cg_open(w, "TIGA_FN int64_t tiga_team_%s_%s(unsigned mask, %s v, int64_t e)", kind, name, type);
    cg_line(w, "#pragma unroll");
    cg_open(w, "for (int d = 8; d > 0; d /= 2)");
    cg_line(w, "const %s other = %s__shfl_xor_sync(mask, %sv, d, 16)%s;", type, shuffled_back(t), as, back);
    cg_line(w, "const int64_t other_e = __shfl_xor_sync(mask, e, d, 16);");
    cg_open(w, "if (tiga_%s_%s(other, other_e, v, e))", kind, name);
    cg_line(w, "v = other;");
    cg_line(w, "e = other_e;");
    cg_close(w, "");
    cg_close(w, "");
    cg_line(w, "return __shfl_sync(mask, e, 0, 16);");
    cg_close(w, "");
}

static void team_trees(cg_text *w, bool (*used)[CG_DTYPES], cg_helpers *h, base_arena *arena) {
    for (int k = 0; k < IR_KIND_COUNT_; ++k)
        for (int t = 0; t < CG_DTYPES; ++t) {
            if (!used[k][t])
                continue;
            if (k == IR_KIND_ARGMIN || k == IR_KIND_ARGMAX)
                team_arg_tree(w, k, (ir_dtype)t);
            else
                team_tree(w, k, (ir_dtype)t, h, arena);
        }
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static const char prelude[] = "#ifdef __CUDACC_RTC__\n"
                              "typedef signed char int8_t;\n"
                              "typedef unsigned char uint8_t;\n"
                              "typedef unsigned short uint16_t;\n"
                              "typedef int int32_t;\n"
                              "typedef unsigned int uint32_t;\n"
                              "typedef long long int64_t;\n"
                              "typedef unsigned long long uint64_t;\n"
                              "#define INT32_MIN (-2147483647 - 1)\n"
                              "#define INT32_MAX 2147483647\n"
                              "#define INT64_MIN (-9223372036854775807LL - 1)\n"
                              "#define INT64_MAX 9223372036854775807LL\n"
                              "#define INT64_C(v) v##LL\n"
                              "#define INFINITY __int_as_float(0x7f800000)\n"
                              "#define NAN __int_as_float(0x7fc00000)\n"
                              "#else\n"
                              "#include <math.h>\n"
                              "#include <stdint.h>\n"
                              "#endif\n"
                              "typedef struct tiga_c64 { float re, im; } tiga_c64;\n"
                              "typedef struct tiga_c128 { double re, im; } tiga_c128;\n"
                              "#define TIGA_COMPLEX(type, re, im) type{re, im}\n"
                              "#define TIGA_FN static __device__ __forceinline__\n";

static void banner(cg_text *w, const cg_options *o, base_arena *arena) {
    cg_comment(w,
               base_arena_printf(
                   arena,
                   "%s (source %s), compiled to CUDA C by %s.\n"
                   "Compile with -fmad=false and without -use_fast_math: a fused multiply-add rounds once where the\n"
                   "program says twice.  NVRTC needs no headers; nvcc finds its own.\n"
                   "A team of 16 threads (or one) computes a row; see NAME_launch.",
                   o->source_name, o->source_hash, o->compiler));
}

static bool loops(const ir_module *m, base_arena *arena, cg_helpers *h, bool (*trees)[CG_DTYPES], cg_text *out,
                  base_str *err) {
    for (size_t i = 0; i < m->n_funcs; ++i) {
        if (m->funcs[i]->level != IR_LEVEL_LOOP)
            continue;
        cg_cuda c = {.m = m, .f = m->funcs[i], .arena = arena, .help = h, .team_collapse = trees, .err = err};
        if (!function(&c, cg_symbol(m, m->funcs[i]->name), out))
            return false;
    }
    return true;
}

static bool emit(const cg_emission *e) {
    base_arena *arena = e->arena;
    cg_helpers *h = base_arena_new_array(arena, cg_helpers, 1);
    h->cuda = true;
    bool(*trees)[CG_DTYPES] = base_arena_alloc(arena, sizeof(bool[IR_KIND_COUNT_][CG_DTYPES]));
    base_str *kernels = base_arena_str(arena), *tree_text = base_arena_str(arena);
    if (!loops(e->m, arena, h, trees, &(cg_text){kernels, 0}, e->err))
        return false;
    cg_text w = {e->out, 0};
    team_trees(&(cg_text){tree_text, 0}, trees, h, arena); /* before the helpers: it uses some */
    banner(&w, e->o, arena);
    cg_raw(&w, prelude);
    cg_blank(&w);
    cg_emit_helpers(&w, h);
    cg_raw(&w, base_str_text(tree_text));
    cg_blank(&w);
    cg_raw(&w, launch_struct);
    cg_blank(&w);
    cg_raw(&w, base_str_text(kernels));
    return true;
}

bool cg_emit_cuda(const ir_module *m, const cg_options *o, base_str *out, base_str *err) {
    return cg_emit_with(emit, &(cg_emission){.m = m, .o = o, .out = out, .err = err});
}
