/* Text to outputs: frontend or IR parser, passes, code generators, Clang, LLD, NVRTC.  One function a stage; each returns
 * a status and has put its words into the result.
 *
 * Out of memory in an arena comes back by longjmp into tigac_compile: no stage may own memory outside the result. */
#include "codegen/codegen.h"
#include "driver/drv_clang.h"
#include "driver/drv_nvrtc.h"
#include "driver/drv_pipeline.h"
#include "frontend/frontend.h"
#include "passes/passes.h"

#include <setjmp.h>
#include <string.h>

#define EMITS(o, what) ((o)->emit & TIGAC_EMIT(what))

typedef struct job {
    const tigac_options *o;
    drv_result *r;
    bool cuda, is_ir;
    const char *source; /* NUL-terminated copy */
    base_diags diags;
    fe_define *defines;
    ir_module *module;
    drv_cpu cpu;
    char hash[33];
    base_arena *scratch;
    int source_bits; /* just in time; 0 otherwise */
    base_str *objects; /* just in time: CG_MOST_PARTS, those in use first */
    drv_stop *stop; /* just in time */
} job;

static tigac_status fail(job *j, tigac_status status, const char *text) {
    base_str_add(&j->r->error, text);
    return status;
}

static tigac_status interrupted(job *j) {
    base_str_fini(&j->r->error);
    j->r->error = (base_str){0};
    return fail(j, TIGAC_E_ENVIRONMENT, "interrupted");
}

/* ---- options ----------------------------------------------------------------------------------------------------- */
static const uint32_t cuda_outputs = TIGAC_EMIT(TIGAC_CUDA) | TIGAC_EMIT(TIGAC_GRAPH_IR) | TIGAC_EMIT(TIGAC_LOOP_IR) |
                                     TIGAC_EMIT(TIGAC_TASK_IR) | TIGAC_EMIT(TIGAC_OBJ) | TIGAC_EMIT(TIGAC_JSON) |
                                     TIGAC_EMIT(TIGAC_PLAN);

static tigac_status check_outputs(job *j) {
    uint32_t all = TIGAC_EMIT(TIGAC_OUTPUTS) - 1;
    uint32_t allowed = j->cuda ? cuda_outputs : all & ~TIGAC_EMIT(TIGAC_CUDA);
    if (!(j->o->emit & all) || (j->o->emit & ~all))
        return fail(j, TIGAC_E_OPTION, "nothing to emit, or an unknown output");
    for (tigac_output i = 0; i < TIGAC_OUTPUTS; i++) {
        if (!EMITS(j->o, i) || (allowed & TIGAC_EMIT(i)))
            continue;
        base_str_addf(&j->r->error, "target %s has no output '%s'; it has:", j->o->target, tigac_output_name(i));
        for (tigac_output k = 0; k < TIGAC_OUTPUTS; k++)
            if (allowed & TIGAC_EMIT(k))
                base_str_addf(&j->r->error, " %s", tigac_output_name(k));
        if (j->cuda && i == TIGAC_SO)
            base_str_add(&j->r->error, " (obj is a cubin)");
        return TIGAC_E_OPTION;
    }
    return TIGAC_OK;
}

static tigac_status check_options(job *j) {
    const tigac_options *o = j->o;
    const char *target = o->target ? o->target : "cpu";
    j->cuda = !strcmp(target, "cuda");
    if (!j->cuda && strcmp(target, "cpu")) {
        base_str_addf(&j->r->error, "unknown target '%s'; known: cpu cuda", target);
        return TIGAC_E_OPTION;
    }
    if (o->opt_level < 0 || o->opt_level > 3)
        return fail(j, TIGAC_E_OPTION, "opt_level is 0 .. 3");
    if (o->dump_after && strcmp(o->dump_after, "all") && !pass_find(o->dump_after)) {
        base_str_addf(&j->r->error, "unknown pass '%s' in dump_after; 'tigac --list-passes' lists them", o->dump_after);
        return TIGAC_E_OPTION;
    }
    for (size_t i = 0; i < o->n_defines; i++)
        if (o->defines[i].value < 0) {
            base_str_addf(&j->r->error, "-D %s: a dimension is not negative", o->defines[i].name);
            return TIGAC_E_OPTION;
        }
    const char *file = o->file_name ? o->file_name : "";
    size_t n = strlen(file);
    j->is_ir = n >= 3 && !strcmp(file + n - 3, ".ir");
    return check_outputs(j);
}

/* ---- text to module ---------------------------------------------------------------------------------------------- */
static void warn_unused_defines(job *j, const char *file) {
    for (size_t i = 0; i < j->o->n_defines; i++) {
        if (j->defines[i].used)
            continue;
        const char *text = base_arena_printf(j->r->arena, "-D %s=%lld: no kernel and no program has a dimension '%s'",
                                             j->defines[i].name, (long long)j->defines[i].value, j->defines[i].name);
        drv_result_add_plain(j->r, j->o->warnings_are_errors, "W0011", file, text, j->o->color);
    }
}

static bool has_fatal(const job *j) {
    for (size_t i = 0; i < j->r->pub.n_diagnostics; i++)
        if (j->r->pub.diagnostics[i].is_error || j->o->warnings_are_errors)
            return true;
    return false;
}

static tigac_status read_program(job *j, const char *text, size_t n) {
    const char *file = j->o->file_name ? j->o->file_name : "<text>";
    const char *zero = memchr(text, 0, n);
    j->source = base_arena_strndup(j->r->arena, text, n);
    if (zero || n > UINT32_MAX / 2) {
        const char *what = zero ? base_arena_printf(j->r->arena, "byte %zu of the text is 0", (size_t)(zero - text))
                                : "the text is too long";
        drv_result_add_plain(j->r, true, "E0001", file, what, j->o->color);
        return TIGAC_E_PROGRAM;
    }
    base_diags_init(&j->diags, j->r->arena, file, j->source);
    j->defines = base_arena_new_array(j->r->arena, fe_define, j->o->n_defines);
    for (size_t i = 0; i < j->o->n_defines; i++)
        j->defines[i] = (fe_define){j->o->defines[i].name, j->o->defines[i].value, false};
    j->module = j->is_ir ? ir_parse(j->r->arena, file, j->source, &j->diags)
                         : fe_compile(j->r->arena, file, j->source, j->defines, j->o->n_defines, &j->diags);
    drv_result_add_diags(j->r, &j->diags, j->o->color);
    if (j->module)
        warn_unused_defines(j, file);
    if (!j->module || has_fatal(j))
        return TIGAC_E_PROGRAM;
    if (!ir_verify(j->module, &j->r->error))
        return j->is_ir ? TIGAC_E_PROGRAM : TIGAC_E_ENVIRONMENT;
    return TIGAC_OK;
}

/* ---- passes ------------------------------------------------------------------------------------------------------ */
static void dump(void *user, const char *pass, const ir_module *m) {
    job *j = user;
    base_str_addf(&j->r->dumps, "// after %s\n", pass);
    ir_print(m, IR_LEVEL_K | IR_LEVEL_P | IR_LEVEL_L | IR_LEVEL_T, &j->r->dumps);
}

static bool has_level(const ir_module *m, ir_level level) {
    for (size_t i = 0; i < m->n_funcs; i++)
        if (m->funcs[i]->level == level)
            return true;
    return false;
}

/* IR that was read from a file goes on from its own level: loop IR is taken as scheduled. NULL: nothing left to do. */
static const char *pipeline(const job *j) {
    if (j->o->passes)
        return j->o->passes;
    if (j->is_ir && has_level(j->module, IR_LEVEL_TASK))
        return NULL;
    if (j->is_ir && has_level(j->module, IR_LEVEL_LOOP))
        return "hierarchy";
    return pass_default_pipeline(j->cuda, j->o->opt_level);
}

static bool stop_asked(void *user) { return drv_stop_asked(((job *)user)->stop); }

static tigac_status run_passes(job *j) {
    bool only_graph = !(j->o->emit & ~TIGAC_EMIT(TIGAC_GRAPH_IR));
    if (only_graph && !j->o->passes && !j->o->dump_after)
        return TIGAC_OK;
    if (EMITS(j->o, TIGAC_GRAPH_IR) && !j->o->passes)
        ir_print(j->module, IR_LEVEL_K | IR_LEVEL_P, &j->r->outputs[TIGAC_GRAPH_IR]);
    const char *names = pipeline(j);
    if (!names)
        return TIGAC_OK;
    pass_notes notes = {0};
    pass_context ctx = {.scratch = j->scratch,
                        .cuda = j->cuda,
                        .dump_after = j->o->dump_after,
                        .dump = dump,
                        .user = j,
                        .stop = j->stop ? stop_asked : NULL,
                        .notes = EMITS(j->o, TIGAC_PLAN) ? &notes : NULL};
    if (pass_run_pipeline(j->module, names, j->o->opt_level, &ctx, &j->r->error)) {
        if (EMITS(j->o, TIGAC_PLAN))
            pass_explain(j->module, &notes, &j->r->outputs[TIGAC_PLAN]);
        return TIGAC_OK;
    }
    if (drv_stop_seen(j->stop))
        return TIGAC_E_ENVIRONMENT;
    if (j->o->passes)
        return TIGAC_E_OPTION;
    return strncmp(base_str_text(&j->r->error), "internal", 8) ? TIGAC_E_PROGRAM : TIGAC_E_ENVIRONMENT;
}

static void print_levels(job *j) {
    static const struct {
        tigac_output what;
        unsigned levels; /* with the levels above, so that the text is a whole program again */
    } table[] = {{TIGAC_GRAPH_IR, IR_LEVEL_K | IR_LEVEL_P},
                 {TIGAC_LOOP_IR, IR_LEVEL_K | IR_LEVEL_P | IR_LEVEL_L},
                 {TIGAC_TASK_IR, IR_LEVEL_K | IR_LEVEL_P | IR_LEVEL_L | IR_LEVEL_T}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (EMITS(j->o, table[i].what) && !j->r->outputs[table[i].what].len)
            ir_print(j->module, table[i].levels, &j->r->outputs[table[i].what]);
}

/* ---- emitters ---------------------------------------------------------------------------------------------------- */
static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static const char *header_name(const job *j, const char *source_name) {
    if (j->o->header_name)
        return j->o->header_name;
    const char *dot = strrchr(source_name, '.');
    int n = dot && dot != source_name ? (int)(dot - source_name) : (int)strlen(source_name);
    return base_arena_printf(j->r->arena, "%.*s.h", n, source_name);
}

static cg_options emitter_options(const job *j, bool machine) {
    const char *name = base_name(j->o->file_name ? j->o->file_name : "module.tg");
    return (cg_options){
        .source_name = name,
        .source_hash = j->hash,
        .compiler = "tigac " TIGA_VERSION,
        .target_cpu = machine ? base_str_text(&j->cpu.name) : "",
        .target_features = machine ? base_str_text(&j->cpu.features) : "",
        .header_name = header_name(j, name),
        .opt_level = j->o->opt_level,
        .source_bits = j->source_bits,
    };
}

static tigac_status emit_text(job *j, tigac_output what,
                              bool (*emit)(const ir_module *, const cg_options *, base_str *, base_str *)) {
    if (!EMITS(j->o, what))
        return TIGAC_OK;
    cg_options o = emitter_options(j, false);
    return emit(j->module, &o, &j->r->outputs[what], &j->r->error) ? TIGAC_OK : TIGAC_E_PROGRAM;
}

static tigac_status emit_texts(job *j) {
    tigac_status s = emit_text(j, TIGAC_C, cg_emit_c);
    if (!s)
        s = emit_text(j, TIGAC_CUDA, cg_emit_cuda);
    if (!s)
        s = emit_text(j, TIGAC_HEADER, cg_emit_header);
    return s ? s : emit_text(j, TIGAC_JSON, cg_emit_json);
}

static drv_clang_options clang_options(const job *j) {
    const char *name = base_name(j->o->file_name ? j->o->file_name : "module.tg");
    return (drv_clang_options){.name = base_arena_printf(j->r->arena, "%s.c", name),
                               .cpu = &j->cpu,
                               .opt_level = j->o->opt_level,
                               .kind = DRV_CLANG_OBJECT,
                               .stop = j->stop,
                               .unwind = !j->objects};
}

/* LLVM IR or an object: one text, so that it stays one. */
static tigac_status compile_one(job *j, base_str *c, tigac_output what) {
    if (!EMITS(j->o, what))
        return TIGAC_OK;
    cg_options o = emitter_options(j, true);
    drv_clang_options clang = clang_options(j);
    clang.kind = what == TIGAC_LLVM_IR ? DRV_CLANG_LLVM_IR : DRV_CLANG_OBJECT;
    if (!c->len && !cg_emit_c(j->module, &o, c, &j->r->error))
        return TIGAC_E_PROGRAM;
    bool ok = drv_clang_compile(c->data, c->len, &clang, &j->r->outputs[what], &j->r->error);
    return ok ? TIGAC_OK : TIGAC_E_ENVIRONMENT;
}

/* The texts in front of the first empty one. */
static size_t texts_of(const base_str c[CG_MOST_PARTS], drv_bytes texts[CG_MOST_PARTS]) {
    size_t n = 0;
    for (; n < CG_MOST_PARTS && c[n].len; n++)
        texts[n] = (drv_bytes){c[n].data, c[n].len};
    return n;
}

static tigac_status compile_module(job *j, base_str c[CG_MOST_PARTS]) {
    if (!EMITS(j->o, TIGAC_SO))
        return TIGAC_OK;
    cg_options o = emitter_options(j, true);
    drv_clang_options clang = clang_options(j);
    drv_bytes texts[CG_MOST_PARTS];
    if (!cg_emit_c_parts(j->module, &o, c, &j->r->error))
        return TIGAC_E_PROGRAM;
    base_str *out = &j->r->outputs[TIGAC_SO];
    if (!drv_clang_module(texts, texts_of(c, texts), &clang, j->o->soname, out, &j->r->error))
        return TIGAC_E_ENVIRONMENT;
    base_seal_add(out); /* the loader then knows a damaged module from a whole one */
    return TIGAC_OK;
}

/* The texts are the caller's, so that they are freed whatever happens here. */
static tigac_status emit_machine(job *j, base_str *one, base_str parts[CG_MOST_PARTS]) {
    if (!(j->o->emit & (TIGAC_EMIT(TIGAC_LLVM_IR) | TIGAC_EMIT(TIGAC_OBJ) | TIGAC_EMIT(TIGAC_SO))))
        return TIGAC_OK;
    if (!drv_cpu_resolve(j->o->cpu, &j->cpu, &j->r->error))
        return TIGAC_E_OPTION;
    tigac_status s = compile_one(j, one, TIGAC_LLVM_IR);
    if (!s)
        s = compile_one(j, one, TIGAC_OBJ);
    return s ? s : compile_module(j, parts);
}

static tigac_status emit_objects(job *j, base_str c[CG_MOST_PARTS]) {
    cg_options o = emitter_options(j, true);
    drv_clang_options clang = clang_options(j);
    drv_bytes texts[CG_MOST_PARTS];
    if (!cg_emit_c_parts(j->module, &o, c, &j->r->error))
        return TIGAC_E_PROGRAM;
    if (drv_stop_asked(j->stop))
        return TIGAC_E_ENVIRONMENT;
    bool ok = drv_clang_objects(texts, texts_of(c, texts), &clang, j->objects, &j->r->error);
    return ok ? TIGAC_OK : TIGAC_E_ENVIRONMENT;
}

static tigac_status compile_cuda(job *j, drv_nvrtc *nvrtc, const char *text, const char *name) {
    const char *arch = j->o->cuda_arch ? j->o->cuda_arch : "sm_80";
    if (!drv_nvrtc_has_arch(nvrtc, arch)) {
        base_str_addf(&j->r->error, "this NVRTC does not know the architecture '%s'; it knows ", arch);
        drv_nvrtc_archs(nvrtc, &j->r->error);
        return TIGAC_E_OPTION;
    }
    base_str log = {0};
    bool ok = drv_nvrtc_compile(nvrtc, text, name, arch, &j->r->outputs[TIGAC_OBJ], &log);
    if (!ok)
        base_str_add(&j->r->error, base_str_text(&log));
    base_str_fini(&log);
    return ok ? TIGAC_OK : TIGAC_E_ENVIRONMENT;
}

static tigac_status emit_cubin(job *j, base_str *text) {
    if (!EMITS(j->o, TIGAC_OBJ))
        return TIGAC_OK;
    cg_options o = emitter_options(j, false);
    if (!cg_emit_cuda(j->module, &o, text, &j->r->error))
        return TIGAC_E_PROGRAM;
    drv_nvrtc *nvrtc = drv_nvrtc_open(&j->r->error);
    if (!nvrtc)
        return TIGAC_E_ENVIRONMENT;
    tigac_status s = compile_cuda(j, nvrtc, base_str_text(text), o.source_name);
    drv_nvrtc_close(nvrtc);
    return s;
}

/* ---- the whole way ----------------------------------------------------------------------------------------------- */
typedef struct texts {
    base_str one; /* C or CUDA */
    base_str parts[CG_MOST_PARTS]; /* C */
} texts;

static tigac_status compile(job *j, const char *text, size_t n, texts *emitted) {
    tigac_status s = check_options(j);
    if (!s)
        s = read_program(j, text, n);
    if (!s && drv_stop_asked(j->stop))
        return TIGAC_E_ENVIRONMENT;
    if (!s)
        s = run_passes(j);
    if (s)
        return s;
    base_hash_hex(base_hash_bytes(j->source, n), j->hash);
    if (j->objects)
        return emit_objects(j, emitted->parts);
    print_levels(j);
    s = emit_texts(j);
    if (!s)
        s = j->cuda ? emit_cubin(j, &emitted->one) : emit_machine(j, &emitted->one, emitted->parts);
    return s;
}

static bool any_failed(const drv_result *r) {
    bool failed = r->rendered.failed || r->error.failed || r->dumps.failed;
    for (int i = 0; i < TIGAC_OUTPUTS; i++)
        failed |= r->outputs[i].failed;
    return failed;
}

/* Emitters and checks tell it in words. */
static bool says_no_memory(const base_str *error) {
    static const char words[] = "out of memory";
    return error->len >= strlen(words) && !strcmp(error->data + error->len - strlen(words), words);
}

static tigac_status guarded(job *j, const char *text, size_t n, texts *emitted) {
    jmp_buf oom;
    *base_arena_oom_slot(j->r->arena) = &oom;
    *base_arena_oom_slot(j->scratch) = &oom;
    tigac_status s = TIGAC_E_ENVIRONMENT;
    if (setjmp(oom))
        j->r->out_of_memory = true;
    else
        s = compile(j, text, n, emitted);
    *base_arena_oom_slot(j->r->arena) = NULL;
    if (drv_stop_seen(j->stop))
        return interrupted(j);
    j->r->out_of_memory |= any_failed(j->r) || emitted->one.failed || (s && says_no_memory(&j->r->error));
    for (int i = 0; i < CG_MOST_PARTS; i++)
        j->r->out_of_memory |= emitted->parts[i].failed || (j->objects && j->objects[i].failed);
    if (j->r->out_of_memory) {
        s = TIGAC_E_ENVIRONMENT;
        base_str_fini(&j->r->error);
        j->r->error = (base_str){0};
        base_str_add(&j->r->error, "out of memory");
    }
    return s;
}

tigac_options tigac_defaults(void) {
    return (tigac_options){.struct_bytes = sizeof(tigac_options),
                           .emit = TIGAC_EMIT(TIGAC_SO),
                           .file_name = "<text>",
                           .target = "cpu",
                           .cpu = "native",
                           .cuda_arch = "sm_80",
                           .opt_level = 2};
}

static tigac_status run(job *j, const char *text, size_t n_bytes) {
    texts emitted = {0};
    tigac_status s;
    if (j->o->struct_bytes != sizeof(tigac_options))
        s = fail(j, TIGAC_E_OPTION, "options.struct_bytes is not sizeof(tigac_options): begin with tigac_defaults()");
    else
        s = guarded(j, text, n_bytes, &emitted);
    base_str_fini(&emitted.one);
    for (int i = 0; i < CG_MOST_PARTS; i++)
        base_str_fini(&emitted.parts[i]);
    drv_result_publish(j->r, s);
    return s;
}

static bool begin(job *j, const tigac_options *options) {
    *j = (job){.o = options, .r = drv_result_new(), .scratch = base_arena_new()};
    if (j->r && j->scratch)
        return true;
    tigac_result_free(j->r ? &j->r->pub : NULL);
    base_arena_free(j->scratch);
    return false;
}

tigac_status tigac_compile(const char *text, size_t n_bytes, const tigac_options *options, tigac_result **out) {
    tigac_options defaults = tigac_defaults();
    job j;
    *out = NULL;
    if (!begin(&j, options ? options : &defaults))
        return TIGAC_E_ENVIRONMENT;
    tigac_status s = run(&j, text, n_bytes);
    drv_cpu_fini(&j.cpu);
    base_arena_free(j.scratch);
    *out = &j.r->pub;
    return s;
}

tigac_status drv_compile_objects(const char *text, size_t n_bytes, const tigac_options *options, const drv_cpu *cpu,
                                 int source_bits, drv_stop *stop, base_str objects[CG_MOST_PARTS], drv_result **out) {
    tigac_options o = *options;
    job j;
    *out = NULL;
    o.emit = TIGAC_EMIT(TIGAC_OBJ);
    o.target = "cpu";
    if (!begin(&j, &o))
        return TIGAC_E_ENVIRONMENT;
    j.cpu = *cpu; /* borrowed */
    j.source_bits = source_bits;
    j.objects = objects;
    j.stop = stop;
    tigac_status s = run(&j, text, n_bytes);
    base_arena_free(j.scratch);
    *out = j.r;
    return s;
}
