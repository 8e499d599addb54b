/* tigac, the compiler's command line: files in, files out, messages on stderr.  All the work is libtigac's.
 *
 * Exit codes: 0; 1 the program or the input is wrong; 2 usage; 3 environment or a fault of the compiler. */
#include "driver/driver.h"
#include "tiga/jit.h"

#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_OK = 0, EXIT_INPUT = 1, EXIT_USAGE = 2, EXIT_ENVIRONMENT = 3 };

enum {
    O_OUTPUT,
    O_EMIT,
    O_TARGET,
    O_CPU,
    O_CUDA_ARCH,
    O_DEFINE,
    O_LEVEL,
    O_MD,
    O_MF,
    O_PASSES,
    O_DUMP_AFTER,
    O_WERROR,
    O_COLOR,
    O_CACHE,
    O_LIST_PASSES,
    O_LIST_OPS,
    O_LIST_ERRORS,
    O_EXPLAIN,
    O_EXPLAIN_PLAN,
    O_HELP,
    O_H,
    O_VERSION,
    O_COUNT
};

static const drv_arg options[O_COUNT] = {
    [O_OUTPUT] = {"-o", DRV_VALUE, "FILE", "where to write; '-' is standard output"},
    [O_EMIT] = {"--emit", DRV_VALUE, "KIND",
                "so (default) c cuda header graph-ir loop-ir task-ir llvm-ir obj json plan"},
    [O_TARGET] = {"--target", DRV_VALUE, "TARGET", "cpu (default) or cuda"},
    [O_CPU] = {"--cpu", DRV_VALUE, "NAME", "processor to compile for: native (default), x86-64-v3, znver4, ..."},
    [O_CUDA_ARCH] = {"--cuda-arch", DRV_VALUE, "ARCH", "sm_80 (default), sm_90, ...: for --target=cuda --emit=obj"},
    [O_DEFINE] = {"-D", DRV_VALUE, "NAME=N", "fixes the dimension NAME, in every kernel and program that has it"},
    [O_LEVEL] = {"-O", DRV_VALUE, "LEVEL", "0, 1, 2 (default) or 3"},
    [O_MD] = {"-MD", DRV_FLAG, NULL, "also writes a dependency file for make beside the output (.d)"},
    [O_MF] = {"-MF", DRV_VALUE, "FILE", "the same under this name"},
    [O_PASSES] = {"--passes", DRV_VALUE, "A,B,...", "runs these passes instead of the default list"},
    [O_DUMP_AFTER] = {"--dump-after", DRV_VALUE, "PASS", "IR after this pass, or after 'all', on standard error"},
    [O_WERROR] = {"-Werror", DRV_FLAG, NULL, "warnings are errors"},
    [O_COLOR] = {"--color", DRV_VALUE, "WHEN", "auto (default), always or never"},
    [O_CACHE] = {"--cache", DRV_FLAG, NULL, "takes from the user's cache what was compiled before; see 'tiga cache'"},
    [O_LIST_PASSES] = {"--list-passes", DRV_FLAG, NULL, "every pass, and the default lists"},
    [O_LIST_OPS] = {"--list-ops", DRV_FLAG, NULL, "every operation of the IR"},
    [O_LIST_ERRORS] = {"--list-errors", DRV_FLAG, NULL, "every error and warning"},
    [O_EXPLAIN] = {"--explain", DRV_VALUE, "ID", "a page about an error, with a wrong and a right example"},
    [O_EXPLAIN_PLAN] = {"--explain-plan", DRV_FLAG, NULL, "--emit=plan: launches, walks, bytes, and what was fused"},
    [O_HELP] = {"--help", DRV_FLAG, NULL, "this text"},
    [O_H] = {"-h", DRV_FLAG, NULL, NULL},
    [O_VERSION] = {"--version", DRV_FLAG, NULL, "version of tigac and of LLVM"},
};

#define MAX_DEFINES 256

typedef struct invocation {
    tigac_options o;
    tigac_define defines[MAX_DEFINES];
    const char *input, *output, *emit, *target, *color, *depfile;
    bool write_deps, use_cache;
    tigac_output kind;
    base_arena *arena;
    base_str err;
} invocation;

static int complain(int code, const char *text) {
    fprintf(stderr, "tigac: %s\n", text);
    return code;
}

/* ---- what needs no input ----------------------------------------------------------------------------------------- */
static int print_text(base_str *text) {
    bool ok = !text->failed && fwrite(base_str_text(text), 1, text->len, stdout) == text->len && !fflush(stdout);
    base_str_fini(text);
    return ok ? EXIT_OK : complain(EXIT_ENVIRONMENT, "cannot write to standard output");
}

static int help(const drv_args *args) {
    base_str text = {0};
    base_str_add(&text,
                 "usage: tigac [options] model.tg -o model.so\n\n"
                 "Compiles message functions. 'model.tg' may be '-' (standard input) or IR text (name.ir).\n"
                 "With -o model.so, model.h is written beside it. Without --emit the kind of output follows the\n"
                 "ending of -o: .so .c .cu .h .o .ll .json .cubin; texts go to standard output without -o.\n\n");
    drv_args_help(args, &text);
    base_str_add(&text, "\nexit codes: 0 done, 1 the program is wrong, 2 usage, 3 environment or internal\n");
    return print_text(&text);
}

static int list_passes(void) {
    base_str text = {0};
    for (size_t i = 0; tigac_pass_name(i); i++)
        base_str_addf(&text, "%-16s %s\n", tigac_pass_name(i), tigac_pass_doc(i));
    base_str_addf(&text, "\ncpu  -O0   %s\n", tigac_default_passes("cpu", 0));
    base_str_addf(&text, "cpu  -O2   %s\n", tigac_default_passes("cpu", 2));
    base_str_addf(&text, "cuda -O0   %s\n", tigac_default_passes("cuda", 0));
    base_str_addf(&text, "cuda -O2   %s\n", tigac_default_passes("cuda", 2));
    return print_text(&text);
}

static int list_ops(void) {
    base_str text = {0};
    for (size_t i = 0; tigac_op_name(i); i++)
        base_str_addf(&text, "%-14s %-26s %s\n", tigac_op_name(i), tigac_op_levels(i), tigac_op_doc(i));
    return print_text(&text);
}

static int list_errors(void) {
    base_str text = {0};
    for (size_t i = 0; tigac_error_id(i); i++)
        base_str_addf(&text, "%s  %s\n", tigac_error_id(i), tigac_error_title(tigac_error_id(i)));
    return print_text(&text);
}

static int explain(const char *id) {
    char upper[16] = "";
    for (size_t i = 0; id[i] && i + 1 < sizeof upper; i++)
        upper[i] = (char)toupper((unsigned char)id[i]);
    base_str text = {0};
    if (tigac_error_page(upper)) {
        base_str_addf(&text, "%s: %s\n\n%s\n", upper, tigac_error_title(upper), tigac_error_page(upper));
        return print_text(&text);
    }
    fprintf(stderr, "tigac: no error has the id '%s'; 'tigac --list-errors' lists them\n", id);
    return EXIT_USAGE;
}

/* ---- options ----------------------------------------------------------------------------------------------------- */
static bool set_define(invocation *v, const char *text) {
    const char *eq = strchr(text, '=');
    if (!eq || eq == text) {
        base_str_addf(&v->err, "-D wants NAME=N, not '%s'", text);
        return false;
    }
    if (v->o.n_defines == MAX_DEFINES) {
        base_str_addf(&v->err, "at most %d -D", MAX_DEFINES);
        return false;
    }
    tigac_define *d = &v->defines[v->o.n_defines];
    d->name = base_arena_strndup(v->arena, text, (size_t)(eq - text));
    for (size_t i = 0; i < v->o.n_defines; i++)
        if (!strcmp(v->defines[i].name, d->name)) {
            base_str_addf(&v->err, "-D %s is given twice", d->name);
            return false;
        }
    v->o.n_defines++;
    return drv_args_int(base_arena_printf(v->arena, "-D %s", d->name), eq + 1, 0, INT64_MAX, &d->value, &v->err);
}

static bool set_level(invocation *v, const char *text) {
    int64_t level;
    if (!drv_args_int("-O", text, 0, 3, &level, &v->err))
        return false;
    v->o.opt_level = (int)level;
    return true;
}

static bool set_input(invocation *v, const char *text) {
    if (v->input) {
        base_str_addf(&v->err, "one file at a time: '%s' and '%s'", v->input, text);
        return false;
    }
    v->input = text;
    return true;
}

/* Options that only set something. */
static bool set_option(invocation *v, int option, const char *value) {
    switch (option) {
    case -1:
        return set_input(v, value);
    case O_OUTPUT:
        v->output = value;
        return true;
    case O_EMIT:
        v->emit = value;
        return true;
    case O_TARGET:
        v->target = value;
        return true;
    case O_CPU:
        v->o.cpu = value;
        return true;
    case O_CUDA_ARCH:
        v->o.cuda_arch = value;
        return true;
    case O_DEFINE:
        return set_define(v, value);
    case O_LEVEL:
        return set_level(v, value);
    case O_MD:
        v->write_deps = true;
        return true;
    case O_MF:
        v->write_deps = true;
        v->depfile = value;
        return true;
    case O_PASSES:
        v->o.passes = value;
        return true;
    case O_EXPLAIN_PLAN:
        v->emit = "plan";
        return true;
    case O_DUMP_AFTER:
        v->o.dump_after = value;
        return true;
    case O_WERROR:
        v->o.warnings_are_errors = 1;
        return true;
    case O_CACHE:
        v->use_cache = true;
        return true;
    case O_COLOR:
        v->color = value;
        return true;
    default:
        return true;
    }
}

/* >= 0: exit with this code; -1: go on and compile. */
static int read_command_line(invocation *v, int argc, char **argv) {
    drv_args args = {"tigac", options, O_COUNT, argc, argv, 1, false};
    int option;
    const char *value;
    while (drv_args_next(&args, &option, &value, &v->err)) {
        switch (option) {
        case O_HELP:
        case O_H:
            return help(&args);
        case O_VERSION:
            return puts(tigac_version_full()) < 0 ? EXIT_ENVIRONMENT : EXIT_OK;
        case O_LIST_PASSES:
            return list_passes();
        case O_LIST_OPS:
            return list_ops();
        case O_LIST_ERRORS:
            return list_errors();
        case O_EXPLAIN:
            return explain(value);
        default:
            if (!set_option(v, option, value))
                return complain(EXIT_USAGE, base_str_text(&v->err));
        }
    }
    if (v->err.len)
        return complain(EXIT_USAGE, base_str_text(&v->err));
    return v->input ? -1 : complain(EXIT_USAGE, "no input file ('tigac --help' shows the options)");
}

/* ---- what to emit, for what, to where ---------------------------------------------------------------------------- */
static const struct {
    const char *ending;
    tigac_output kind;
    const char *target; /* NULL: either */
} endings[] = {{".so", TIGAC_SO, NULL},      {".c", TIGAC_C, NULL},      {".cu", TIGAC_CUDA, "cuda"},
               {".h", TIGAC_HEADER, NULL},   {".o", TIGAC_OBJ, NULL},    {".cubin", TIGAC_OBJ, "cuda"},
               {".ll", TIGAC_LLVM_IR, NULL}, {".json", TIGAC_JSON, NULL}};

static const char *ending_of(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    return dot && dot != name ? dot : path + strlen(path);
}

static bool find_kind(invocation *v) {
    for (tigac_output k = 0; k < TIGAC_OUTPUTS; k++)
        if (!strcmp(tigac_output_name(k), v->emit)) {
            v->kind = k;
            return true;
        }
    base_str_addf(&v->err, "--emit: unknown kind '%s'; known:", v->emit);
    for (tigac_output k = 0; k < TIGAC_OUTPUTS; k++)
        base_str_addf(&v->err, " %s", tigac_output_name(k));
    return false;
}

static bool choose_kind(invocation *v) {
    v->kind = v->target && !strcmp(v->target, "cuda") ? TIGAC_CUDA : TIGAC_SO;
    const char *implied = NULL;
    if (v->emit) {
        if (!find_kind(v))
            return false;
        implied = v->kind == TIGAC_CUDA ? "cuda" : NULL;
    } else if (v->output) {
        for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
            if (!strcmp(ending_of(v->output), endings[i].ending)) {
                v->kind = endings[i].kind;
                implied = endings[i].target;
            }
    }
    v->o.target = v->target ? v->target : implied ? implied : "cpu";
    v->o.emit = TIGAC_EMIT(v->kind);
    if (v->kind == TIGAC_SO && !strcmp(v->o.target, "cpu"))
        v->o.emit |= TIGAC_EMIT(TIGAC_HEADER);
    return true;
}

static bool is_text(tigac_output kind) { return kind != TIGAC_OBJ && kind != TIGAC_SO; }

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static const char *with_ending(invocation *v, const char *path, const char *ending) {
    return base_arena_printf(v->arena, "%.*s%s", (int)(ending_of(path) - path), path, ending);
}

static bool choose_output(invocation *v) {
    bool from_stdin = !strcmp(v->input, "-");
    if (!v->output && is_text(v->kind))
        v->output = "-";
    if (!v->output && from_stdin) {
        base_str_addf(&v->err, "reading standard input, so -o FILE is needed for '%s'", tigac_output_name(v->kind));
        return false;
    }
    const char *ending = v->output ? ending_of(v->output) : "";
    if (is_text(v->kind) && (!strcmp(ending, ".so") || !strcmp(ending, ".o") || !strcmp(ending, ".cubin"))) {
        base_str_addf(&v->err, "'%s' would hold a text, of --emit=%s", v->output, tigac_output_name(v->kind));
        return false;
    }
    bool cubin = !strcmp(v->o.target, "cuda");
    if (!v->output)
        v->output = with_ending(v, base_name(v->input), v->kind == TIGAC_SO ? ".so" : cubin ? ".cubin" : ".o");
    if (!strcmp(v->output, v->input) && !from_stdin) {
        base_str_addf(&v->err, "'%s' is the input and the output", v->output);
        return false;
    }
    bool to_stdout = !strcmp(v->output, "-");
    if (v->write_deps && !v->depfile && to_stdout) {
        base_str_add(&v->err, "-MD needs -o FILE or -MF FILE");
        return false;
    }
    if (v->write_deps && !v->depfile)
        v->depfile = with_ending(v, v->output, ".d");
    if (v->kind == TIGAC_SO && !to_stdout)
        v->o.soname = base_name(v->output);
    v->o.header_name = v->kind == TIGAC_HEADER || v->kind == TIGAC_SO
                           ? with_ending(v, to_stdout ? base_name(v->input) : base_name(v->output), ".h")
                           : NULL;
    return true;
}

static bool choose_color(invocation *v) {
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
    if (!strcmp(v->color, "always"))
        v->o.color = 1;
    else if (!strcmp(v->color, "auto"))
        v->o.color = isatty(2) && term && strcmp(term, "dumb") && !(no_color && *no_color);
    else if (strcmp(v->color, "never")) {
        base_str_addf(&v->err, "--color: '%s' is not auto, always or never", v->color);
        return false;
    }
    return true;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */
static bool write_file(const char *path, const char *bytes, size_t n, base_str *err) {
    if (strcmp(path, "-"))
        return base_file_write(path, bytes, n, err);
    bool ok = fwrite(bytes, 1, n, stdout) == n && !fflush(stdout);
    if (!ok)
        base_str_add(err, "cannot write to standard output");
    return ok;
}

static void add_make_name(base_str *out, const char *path) {
    for (; *path; path++) {
        if (*path == ' ' || *path == '#' || *path == '\\')
            base_str_add(out, "\\");
        base_str_addf(out, "%s%c", *path == '$' ? "$" : "", *path);
    }
}

static bool write_dependencies(invocation *v, const char *header) {
    base_str text = {0};
    add_make_name(&text, v->output);
    if (header) {
        base_str_add(&text, " ");
        add_make_name(&text, header);
    }
    base_str_add(&text, ": ");
    add_make_name(&text, strcmp(v->input, "-") ? v->input : "");
    base_str_add(&text, "\n");
    bool ok = write_file(v->depfile, text.data, text.len, &v->err);
    base_str_fini(&text);
    return ok;
}

/* The output last: when it is there, all is there. What was written before a failure is taken back. */
static bool write_outputs(invocation *v, const tigac_result *r) {
    const tigac_blob *main_blob = &r->outputs[v->kind], *header_blob = &r->outputs[TIGAC_HEADER];
    bool beside = v->kind == TIGAC_SO && strcmp(v->output, "-");
    const char *header = beside ? with_ending(v, v->output, ".h") : NULL;
    if (header && !write_file(header, header_blob->bytes, header_blob->n_bytes, &v->err))
        return false;
    bool ok = !v->write_deps || write_dependencies(v, header);
    ok = ok && write_file(v->output, main_blob->bytes, main_blob->n_bytes, &v->err);
    if (ok)
        return true;
    if (header)
        remove(header);
    if (v->write_deps)
        remove(v->depfile);
    return false;
}

/* ---- */
static int compile_text(const invocation *v, const base_str *text, tigac_result **r) {
    tiga_context *ctx = NULL;
    tiga_cache *cache = NULL;
    if (v->use_cache && (tiga_context_new(NULL, &ctx) || tiga_cache_new(NULL, &cache))) {
        tiga_context_free(ctx);
        return EXIT_ENVIRONMENT;
    }
    int code = (int)tiga_jit_compile(ctx, cache, base_str_text(text), text->len, &v->o, r);
    tiga_cache_free(cache);
    tiga_context_free(ctx);
    return code;
}

static int compile(invocation *v) {
    base_str text = {0};
    if (!base_file_read(v->input, &text, &v->err)) {
        base_str_fini(&text);
        return complain(EXIT_INPUT, base_str_text(&v->err));
    }
    v->o.file_name = strcmp(v->input, "-") ? v->input : "<stdin>";
    v->o.defines = v->defines;
    tigac_result *r = NULL;
    int code = compile_text(v, &text, &r);
    base_str_fini(&text);
    if (!r)
        return complain(EXIT_ENVIRONMENT, "out of memory");
    fputs(r->dumps, stderr);
    fputs(r->rendered, stderr);
    if (*r->error)
        fprintf(stderr, "tigac: %s%s%s\n", code == EXIT_INPUT ? v->o.file_name : "", code == EXIT_INPUT ? ": " : "",
                r->error);
    if (code == EXIT_OK && !write_outputs(v, r))
        code = complain(EXIT_ENVIRONMENT, base_str_text(&v->err));
    tigac_result_free(r);
    return code;
}

int main(int argc, char **argv) {
    static invocation v;
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error of write, like a full disk */
    v.o = tigac_defaults();
    v.color = "auto";
    v.arena = base_arena_new();
    if (!v.arena)
        return complain(EXIT_ENVIRONMENT, "out of memory");
    int code = read_command_line(&v, argc, argv);
    if (code < 0)
        code = choose_kind(&v) && choose_output(&v) && choose_color(&v) ? compile(&v)
                                                                        : complain(EXIT_USAGE, base_str_text(&v.err));
    base_str_fini(&v.err);
    base_arena_free(v.arena);
    return code;
}
