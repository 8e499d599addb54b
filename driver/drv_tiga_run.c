/* tiga run: loads or compiles a module, reads what its function wants, calls it, writes what was asked for. */
#include "driver/drv_tiga.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum {
    O_GRAPH,
    O_SRC,
    O_DST,
    O_NODE,
    O_EDGE,
    O_PARAM,
    O_OUTPUT,
    O_STATS,
    O_TOP,
    O_NAMES,
    O_THREADS,
    O_REPEAT,
    O_EDGE_ORDER,
    O_DEFINE,
    O_LEVEL,
    O_NO_CACHE,
    O_HELP,
    O_H,
    O_COUNT
};

static const drv_arg options[O_COUNT] = {
    [O_GRAPH] = {"--graph", DRV_VALUE, "FILE", "the graph; NAME=FILE when a program has several"},
    [O_SRC] = {"--src", DRV_VALUE, "NAME=VALUE", "a field read at the edge's source"},
    [O_DST] = {"--dst", DRV_VALUE, "NAME=VALUE", "a field read at the destination"},
    [O_NODE] = {"--node", DRV_VALUE, "NAME=VALUE", "a field read at both ends"},
    [O_EDGE] = {"--edge", DRV_VALUE, "NAME=VALUE", "a field with a value per edge, in the order of the rows"},
    [O_PARAM] = {"--param", DRV_VALUE, "NAME=VALUE", "a parameter"},
    [O_OUTPUT] = {"-o", DRV_VALUE, "FILE.npy", "where the result goes; NAME=FILE.npy when there are several"},
    [O_STATS] = {"--stats", DRV_FLAG, NULL, "times and traffic as JSON on standard output"},
    [O_TOP] = {"--top", DRV_VALUE, "N", "prints the N largest rows of the result"},
    [O_NAMES] = {"--names", DRV_VALUE, "FILE", "--top: a name per row, one a line, may be gzipped"},
    [O_THREADS] = {"--threads", DRV_VALUE, "N", "threads (all cores)"},
    [O_REPEAT] = {"--repeat", DRV_VALUE, "N", "calls N times; --stats then has the fastest and the mean"},
    [O_EDGE_ORDER] = {"--edge-order", DRV_VALUE, "ORDER", "rows (default) or file: order of .npy arrays of edges"},
    [O_DEFINE] = {"-D", DRV_VALUE, "NAME=N", "model.tg: fixes a dimension"},
    [O_LEVEL] = {"-O", DRV_VALUE, "LEVEL", "model.tg: 0 .. 3 (2)"},
    [O_NO_CACHE] = {"--no-cache", DRV_FLAG, NULL,
                    "model.tg: compiles even what was compiled before, and keeps nothing"},
    [O_HELP] = {"--help", DRV_FLAG, NULL, "this text"},
    [O_H] = {"-h", DRV_FLAG, NULL, NULL},
};

#define MAX_VALUES 128

typedef struct named { /* NAME=TEXT, or TEXT alone */
    int option;
    const char *text;
} named;

typedef struct run {
    /* command line */
    const char *model, *function, *names;
    named inputs[MAX_VALUES], graphs[MAX_VALUES], outputs[MAX_VALUES];
    const char *defines[MAX_VALUES];
    size_t n_inputs, n_graphs, n_outputs, n_defines;
    int64_t top, threads, repeat, level;
    bool stats, help, file_order, has_level, no_cache;
    base_str err;
    /* what it became */
    tiga_context *ctx;
    tiga_module *module;
    const tiga_function_info *f;
    tiga_graph *graph[MAX_VALUES];  /* in the order of the function's graphs */
    tiga_array stored[MAX_VALUES];  /* values of their files */
    int n_graph;
    tiga_array in[MAX_VALUES], out[MAX_VALUES];
    double compile_seconds, load_seconds, read_seconds, best_seconds, sum_seconds;
    tiga_call_stats call;
    int64_t transposes; /* of all repetitions */
} run;

/* ---- command line -------------------------------------------------------------------------------------------------- */
static bool add(run *r, named *list, size_t *n, int option, const char *text) {
    if (*n == MAX_VALUES) {
        base_str_addf(&r->err, "more than %d times '%s'", MAX_VALUES, options[option].name);
        return false;
    }
    list[(*n)++] = (named){option, text};
    return true;
}

static bool add_input(run *r, int option, const char *text) {
    const char *eq = strchr(text, '=');
    if (eq && eq != text && eq[1])
        return add(r, r->inputs, &r->n_inputs, option, text);
    base_str_addf(&r->err, "%s wants NAME=VALUE, not '%s'", options[option].name, text);
    return false;
}

static bool set_edge_order(run *r, const char *value) {
    r->file_order = !strcmp(value, "file");
    if (r->file_order || !strcmp(value, "rows"))
        return true;
    base_str_addf(&r->err, "--edge-order: '%s' is neither rows nor file", value);
    return false;
}

static bool add_define(run *r, const char *value) {
    if (r->n_defines == MAX_VALUES) {
        base_str_add(&r->err, "too many -D");
        return false;
    }
    r->defines[r->n_defines++] = value;
    return true;
}

static bool operand(run *r, const char *text) {
    const char **place = !r->model ? &r->model : !r->function ? &r->function : NULL;
    if (place)
        *place = text;
    else
        base_str_addf(&r->err, "one module and one name; what is '%s'?", text);
    return place != NULL;
}

static bool set(run *r, int option, const char *value) {
    switch (option) {
    case -1:
        return operand(r, value);
    case O_GRAPH:
        return add(r, r->graphs, &r->n_graphs, option, value);
    case O_SRC:
    case O_DST:
    case O_NODE:
    case O_EDGE:
    case O_PARAM:
        return add_input(r, option, value);
    case O_OUTPUT:
        return add(r, r->outputs, &r->n_outputs, option, value);
    case O_STATS:
        r->stats = true;
        return true;
    case O_TOP:
        return drv_args_int("--top", value, 1, 1000000, &r->top, &r->err);
    case O_NAMES:
        r->names = value;
        return true;
    case O_THREADS:
        return drv_args_int("--threads", value, 1, 4096, &r->threads, &r->err);
    case O_REPEAT:
        return drv_args_int("--repeat", value, 1, 1000000000, &r->repeat, &r->err);
    case O_EDGE_ORDER:
        return set_edge_order(r, value);
    case O_DEFINE:
        return add_define(r, value);
    case O_LEVEL:
        r->has_level = true;
        return drv_args_int("-O", value, 0, 3, &r->level, &r->err);
    case O_NO_CACHE:
        r->no_cache = true;
        return true;
    case O_HELP:
    case O_H:
        r->help = true;
        return true;
    default:
        return true;
    }
}

static int help(const drv_args *args) {
    base_str text = {0};
    base_str_add(
        &text,
        "usage: tiga run MODEL NAME --graph FILE [--src x=x.npy ...] [-o out.npy] [--stats] [--top N]\n\n"
        "Calls the kernel or program NAME of MODEL: a module made by tigac, or model.tg, compiled first.\n"
        "A VALUE is a .npy file, a number (which fills the array), '@' (the values of the graph file, for edges),\n"
        "'@indegree' or '@outdegree'.\n\n");
    drv_args_help(args, &text);
    fputs(base_str_text(&text), stdout);
    base_str_fini(&text);
    return EXIT_OK;
}

/* ---- module and graphs --------------------------------------------------------------------------------------------- */
static int unknown_function(run *r) {
    const tiga_module_info *info = tiga_module_get_info(r->module);
    const char *nearest = NULL;
    size_t best = 4;
    base_str known = {0};
    for (int32_t i = 0; i < info->n_functions; i++) {
        const char *name = info->functions[i].name;
        size_t d = base_edit_distance(name, r->function);
        if (d < best && d < strlen(name)) {
            best = d;
            nearest = name;
        }
        base_str_addf(&known, " %s", name);
    }
    int code = drv_complain(EXIT_INPUT, "%s has no '%s'%s%s%s it has:%s", r->model, r->function,
                            nearest ? "; did you mean '" : ";", nearest ? nearest : "", nearest ? "'?" : "",
                            base_str_text(&known));
    base_str_fini(&known);
    return code;
}

static int load_module(run *r) {
    bool source = drv_is_source(r->model);
    if (!source && (r->n_defines || r->has_level || r->no_cache))
        return drv_complain(EXIT_USAGE, "%s is for a source file (model.tg); '%s' is compiled already",
                            r->n_defines   ? "-D"
                            : r->has_level ? "-O"
                                           : "--no-cache",
                            r->model);
    double began = drv_seconds();
    int code = EXIT_OK;
    if (source) {
        drv_source_options o = {r->defines, r->n_defines, (int)r->level, r->no_cache};
        code = drv_load_source(r->ctx, r->model, &o, &r->module, &r->compile_seconds);
    } else {
        tiga_status s = tiga_module_load(r->ctx, r->model, &r->module);
        code = s ? drv_complain_status(r->ctx, s) : EXIT_OK;
    }
    r->load_seconds = drv_seconds() - began - r->compile_seconds;
    if (code)
        return code;
    r->f = tiga_module_find(r->module, r->function);
    if (!r->f)
        return unknown_function(r);
    if (r->f->n_params > MAX_VALUES || r->f->n_results > MAX_VALUES)
        return drv_complain(EXIT_INPUT, "'%s' has more than %d parameters", r->function, MAX_VALUES);
    return EXIT_OK;
}

static bool has_name(const char *text, const char *name) {
    size_t n = strlen(name);
    return !strncmp(text, name, n) && text[n] == '=';
}

/* The --graph for the k-th graph of the function, called `name` (NULL in a kernel). */
static const char *graph_path(const run *r, const char *name, int n_wanted) {
    for (size_t i = 0; i < r->n_graphs; i++)
        if (name && has_name(r->graphs[i].text, name))
            return r->graphs[i].text + strlen(name) + 1;
    return n_wanted == 1 && r->n_graphs == 1 ? r->graphs[0].text : NULL;
}

static int read_graph(run *r, const char *path) {
    tiga_graph_file_options o = {
        .struct_bytes = sizeof o, .progress = drv_progress(), .keep_edge_order = r->file_order};
    int k = r->n_graph++;
    tiga_status s = tiga_graph_read(r->ctx, path, &o, &r->graph[k], &r->stored[k]);
    drv_progress_end();
    if (s)
        return drv_complain_status(r->ctx, s);
    size_t n = strlen(path);
    bool rows_only = n >= 4 && !strcmp(path + n - 4, ".npz"); /* the order of such a file is that of the rows */
    if (r->file_order && !rows_only && !tiga_graph_edge_order(r->graph[k]))
        return drv_complain(EXIT_INPUT,
                            "%s: --edge-order=file is not for a symmetric matrix, each of whose entries is two edges",
                            path);
    return EXIT_OK;
}

static bool is_graph(const tiga_field_info *p) { return p->at == TIGA_AT_GRAPH; }

static int read_graphs(run *r) {
    int wanted = 0, code = EXIT_OK;
    for (int32_t i = 0; i < r->f->n_params; i++)
        wanted += is_graph(&r->f->params[i]);
    if (!r->f->is_program)
        return r->n_graphs == 1   ? read_graph(r, r->graphs[0].text)
               : r->n_graphs == 0 ? drv_complain(EXIT_USAGE, "kernel '%s' needs --graph FILE", r->function)
                                  : drv_complain(EXIT_USAGE, "kernel '%s' has one graph", r->function);
    if (r->n_graphs > (size_t)wanted)
        return drv_complain(EXIT_USAGE, "program '%s' has %d graph%s, not %zu", r->function, wanted,
                            wanted == 1 ? "" : "s", r->n_graphs);
    for (int32_t i = 0; i < r->f->n_params && !code; i++) {
        if (!is_graph(&r->f->params[i]))
            continue;
        const char *path = graph_path(r, r->f->params[i].name, wanted);
        code = path ? read_graph(r, path)
                    : drv_complain(EXIT_USAGE, "program '%s' needs --graph %s%sFILE", r->function,
                                   wanted > 1 ? r->f->params[i].name : "", wanted > 1 ? "=" : "");
    }
    return code;
}

/* Which of the graphs read is that of the field; -1: none. */
static int graph_of(const run *r, const tiga_field_info *p) {
    if (!r->f->is_program)
        return p->at == TIGA_AT_PARAM ? -1 : 0;
    int k = 0;
    for (int32_t i = 0; i < r->f->n_params; i++) {
        if (!is_graph(&r->f->params[i]))
            continue;
        if (i == p->graph)
            return k;
        k++;
    }
    return -1;
}

static drv_value_source source_of(const run *r, const tiga_field_info *p) {
    int k = graph_of(r, p);
    return (drv_value_source){k < 0 ? NULL : r->graph[k], k < 0 ? NULL : &r->stored[k], r->file_order,
                              r->f->needs_square != 0};
}

/* ---- inputs -------------------------------------------------------------------------------------------------------- */
static int unknown_input(const run *r, const named *in) {
    char name[128];
    size_t n = strcspn(in->text, "="), best = 4;
    const char *nearest = NULL;
    snprintf(name, sizeof name, "%.*s", (int)(n < 127 ? n : 127), in->text);
    for (int32_t i = 0; i < r->f->n_params; i++) {
        size_t d = base_edit_distance(name, r->f->params[i].name);
        if (d < best && d < strlen(r->f->params[i].name)) {
            best = d;
            nearest = r->f->params[i].name;
        }
    }
    drv_complain(EXIT_INPUT, "'%s' has no parameter '%s'%s%s%s", r->function, name, nearest ? "; did you mean '" : "",
                 nearest ? nearest : "", nearest ? "'?" : "");
    return drv_complain(EXIT_INPUT, "it is declared: %s", r->f->signature);
}

/* In a program f32[g.src] and f32[g.dst] can be one type, so can those of two graphs. */
static bool role_fits(const run *r, int32_t at, int option) {
    bool nodes = at == TIGA_AT_SRC || at == TIGA_AT_DST || at == TIGA_AT_NODE;
    if (r->f->is_program && (r->f->needs_square || r->f->n_same) && nodes)
        return option == O_SRC || option == O_DST || option == O_NODE;
    return !strcmp(options[option].name + 2, drv_role_text(at));
}

static int read_input(run *r, int32_t at, const named *in) {
    const tiga_field_info *p = &r->f->params[at];
    const char *role = drv_role_text(p->at);
    if (!role_fits(r, p->at, in->option))
        return drv_complain(EXIT_INPUT, "'%s' is declared '%s': write --%s %s", p->name, p->text, role, in->text);
    drv_value_source from = source_of(r, p);
    return drv_value_read(r->ctx, p, in->text + strlen(p->name) + 1, &from, &r->in[at]);
}

static int read_inputs(run *r) {
    bool seen[MAX_VALUES] = {false};
    for (size_t k = 0; k < r->n_inputs; k++) {
        int32_t at = 0;
        while (at < r->f->n_params && !has_name(r->inputs[k].text, r->f->params[at].name))
            at++;
        if (at == r->f->n_params || is_graph(&r->f->params[at]))
            return unknown_input(r, &r->inputs[k]);
        if (seen[at])
            return drv_complain(EXIT_USAGE, "'%s' is given twice", r->f->params[at].name);
        seen[at] = true;
        int code = read_input(r, at, &r->inputs[k]);
        if (code)
            return code;
    }
    for (int32_t i = 0; i < r->f->n_params; i++) {
        const tiga_field_info *p = &r->f->params[i];
        if (!seen[i] && !is_graph(p))
            return drv_complain(EXIT_INPUT, "'%s' is missing: give --%s %s=VALUE", p->text, drv_role_text(p->at),
                                p->name);
    }
    return EXIT_OK;
}

/* ---- the call ------------------------------------------------------------------------------------------------------ */
static tiga_context *volatile interrupt_target;

static void on_interrupt(int signal) {
    (void)signal;
    tiga_context *ctx = interrupt_target;
    if (ctx)
        tiga_interrupt(ctx);
}

static tiga_status call_once(run *r) {
    tiga_binding in[MAX_VALUES], out[MAX_VALUES];
    int n_in = 0;
    for (int32_t i = 0; i < r->f->n_params; i++)
        if (!is_graph(&r->f->params[i]))
            in[n_in++] = (tiga_binding){r->f->params[i].name, &r->in[i]};
    for (int32_t i = 0; i < r->f->n_results; i++)
        out[i] = (tiga_binding){r->f->results[i].name, &r->out[i]};
    return tiga_call_many(r->ctx, r->module, r->function, r->graph, r->n_graph, in, n_in, out, r->f->n_results,
                          &r->call);
}

static int call(run *r) {
    struct sigaction act = {.sa_handler = on_interrupt, .sa_flags = SA_RESETHAND};
    interrupt_target = r->ctx;
    sigaction(SIGINT, &act, NULL);
    tiga_status s = TIGA_OK;
    for (int64_t k = 0; k < r->repeat && !s; k++) {
        double began = drv_seconds();
        s = call_once(r);
        r->transposes += r->call.transposes;
        double took = drv_seconds() - began;
        r->sum_seconds += took;
        r->best_seconds = k && r->best_seconds < took ? r->best_seconds : took;
    }
    signal(SIGINT, SIG_DFL);
    interrupt_target = NULL;
    return s ? drv_complain_status(r->ctx, s) : EXIT_OK;
}

/* ---- results ------------------------------------------------------------------------------------------------------- */
/* "NAME=" in front of a path, which was meant to be the name of a result; a path with a folder may have a '=' in it. */
static bool names_something(const char *text) {
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    return n && text[n] == '=';
}

static const char *output_path(const run *r, int32_t at, const named *o) {
    const char *name = r->f->results[at].name;
    if (has_name(o->text, name))
        return o->text + strlen(name) + 1;
    return r->f->n_results == 1 && !names_something(o->text) ? o->text : NULL;
}

/* No result twice, and no file twice: the second would take the place of the first. */
static bool output_is_new(const run *r, size_t k, int32_t at) {
    const char *path = output_path(r, at, &r->outputs[k]);
    for (size_t other = 0; other < k; other++) {
        int32_t earlier = 0;
        while (!output_path(r, earlier, &r->outputs[other]))
            earlier++;
        if (earlier == at)
            drv_complain(EXIT_USAGE, "-o: result '%s' is given twice", r->f->results[at].name);
        else if (!strcmp(path, output_path(r, earlier, &r->outputs[other])))
            drv_complain(EXIT_USAGE, "-o: %s is given twice, for '%s' and for '%s'", path, r->f->results[earlier].name,
                         r->f->results[at].name);
        else
            continue;
        return false;
    }
    return true;
}

/* Before the call, so that a slip does not cost a long run. */
static int check_outputs(const run *r) {
    for (size_t k = 0; k < r->n_outputs; k++) {
        int32_t at = 0;
        while (at < r->f->n_results && !output_path(r, at, &r->outputs[k]))
            at++;
        if (at < r->f->n_results) {
            if (!output_is_new(r, k, at))
                return EXIT_USAGE;
            continue;
        }
        base_str names = {0};
        for (int32_t i = 0; i < r->f->n_results; i++)
            base_str_addf(&names, " %s", r->f->results[i].name);
        if (r->f->n_results == 1)
            drv_complain(EXIT_USAGE, "-o %s: '%s' has no result of this name, only%s; a file of this name is ./%s",
                         r->outputs[k].text, r->function, base_str_text(&names), r->outputs[k].text);
        else
            drv_complain(EXIT_USAGE, "-o %s: '%s' has several results, write -o NAME=FILE.npy; they are:%s",
                         r->outputs[k].text, r->function, base_str_text(&names));
        base_str_fini(&names);
        return EXIT_USAGE;
    }
    if (r->n_outputs || r->stats || r->top)
        return EXIT_OK;
    return drv_complain(EXIT_USAGE, "what shall become of the result? give -o FILE.npy, --top N or --stats");
}

static int write_outputs(run *r) {
    for (size_t k = 0; k < r->n_outputs; k++) {
        int32_t at = 0;
        while (!output_path(r, at, &r->outputs[k]))
            at++;
        const tiga_field_info *f = &r->f->results[at];
        drv_value_source from = source_of(r, f);
        int code = drv_value_write(r->ctx, f, &r->out[at], &from, output_path(r, at, &r->outputs[k]));
        if (code)
            return code;
    }
    if (!r->top)
        return EXIT_OK;
    return drv_print_top(r->ctx, r->f->results[0].name, &r->out[0], r->top, r->names);
}

static void print_stats(const run *r) {
    base_str s = {0};
    double mean = r->sum_seconds / (double)r->repeat;
    double fast = r->best_seconds > 0 ? r->best_seconds : 1e-9;
    base_str_add(&s, "{\"module\": ");
    drv_json_string(&s, r->model);
    base_str_add(&s, ", \"function\": ");
    drv_json_string(&s, r->function);
    base_str_addf(&s, ", \"compile_seconds\": %.6f, \"load_seconds\": %.6f, \"read_seconds\": %.6f", r->compile_seconds,
                  r->load_seconds, r->read_seconds);
    base_str_addf(&s, ", \"run_seconds\": %.9f, \"mean_seconds\": %.9f, \"repeat\": %lld", r->best_seconds, mean,
                  (long long)r->repeat);
    base_str_addf(&s, ", \"edges\": %lld, \"rows\": %lld, \"launches\": %lld", (long long)r->call.edges,
                  (long long)r->call.rows, (long long)r->call.launches);
    base_str_addf(&s, ", \"edges_per_second\": %.6g", (double)r->call.edges / fast);
    int64_t moved = r->call.bytes_read + r->call.bytes_written;
    base_str_addf(&s, ", \"bytes_read\": %lld, \"bytes_written\": %lld, \"bytes_moved\": %lld",
                  (long long)r->call.bytes_read, (long long)r->call.bytes_written, (long long)moved);
    base_str_addf(&s, ", \"bytes_per_second\": %.6g, \"peak_bytes\": %lld, \"transposes\": %lld}\n",
                  (double)moved / fast, (long long)r->call.peak_bytes, (long long)r->transposes);
    fputs(base_str_text(&s), stdout);
    base_str_fini(&s);
}

/* ---- */
static int steps(run *r) {
    int code = load_module(r);
    if (!code)
        code = check_outputs(r);
    double began = drv_seconds();
    if (!code)
        code = read_graphs(r);
    if (!code)
        code = read_inputs(r);
    r->read_seconds = drv_seconds() - began;
    if (!code)
        code = call(r);
    if (!code)
        code = write_outputs(r);
    if (!code && r->stats)
        print_stats(r);
    if (!code && fflush(stdout))
        code = drv_complain(EXIT_ENVIRONMENT, "cannot write to standard output");
    return code;
}

static int execute(run *r) {
    tiga_context_options o = tiga_context_defaults();
    o.threads = (int)r->threads;
    tiga_status s = tiga_context_new(&o, &r->ctx);
    if (s)
        return drv_complain_status(NULL, s);
    int code = steps(r);
    for (int i = 0; i < MAX_VALUES; i++) {
        tiga_array_free(&r->in[i]);
        tiga_array_free(&r->out[i]);
        tiga_array_free(&r->stored[i]);
        tiga_graph_free(r->graph[i]);
    }
    tiga_module_free(r->module);
    tiga_context_free(r->ctx);
    return code;
}

int drv_run_main(int argc, char **argv) {
    static run r = {.repeat = 1, .level = 2};
    drv_args args = {"tiga run", options, O_COUNT, argc, argv, 1, false};
    int option, code;
    const char *value;
    while (!r.help && drv_args_next(&args, &option, &value, &r.err) && set(&r, option, value))
        ;
    if (r.err.len)
        code = drv_complain(EXIT_USAGE, "%s", base_str_text(&r.err));
    else if (r.help)
        code = help(&args);
    else if (!r.model || !r.function)
        code = drv_complain(EXIT_USAGE, "a module and the name of a kernel or program are needed ('tiga run --help')");
    else
        code = execute(&r);
    base_str_fini(&r.err);
    return code;
}
