/* tiga graph: import, info, generate. */
#include "driver/drv_tiga.h"

#include <stdio.h>
#include <string.h>

enum { O_SCALE, O_FACTOR, O_NODES, O_DEGREE, O_SEED, O_THREADS, O_TRANSPOSED, O_JSON, O_HELP, O_H, O_COUNT };

static const drv_arg options[O_COUNT] = {
    [O_SCALE] = {"--scale", DRV_VALUE, "N", "2^N nodes"},
    [O_FACTOR] = {"--edge-factor", DRV_VALUE, "K", "edges per node (16)"},
    [O_NODES] = {"--nodes", DRV_VALUE, "N", "uniform, local: number of nodes instead of --scale"},
    [O_DEGREE] = {"--degree", DRV_VALUE, "K", "uniform, local: the same as --edge-factor"},
    [O_SEED] = {"--seed", DRV_VALUE, "S", "rmat, uniform: same seed, same graph (1)"},
    [O_THREADS] = {"--threads", DRV_VALUE, "N", "threads (all cores)"},
    [O_TRANSPOSED] = {"--transposed", DRV_FLAG, NULL,
                      "import, generate: with the transposed relation and statistics, which gradients need"},
    [O_JSON] = {"--json", DRV_FLAG, NULL, "info: as JSON"},
    [O_HELP] = {"--help", DRV_FLAG, NULL, "this text"},
    [O_H] = {"-h", DRV_FLAG, NULL, NULL},
};

typedef struct graph_command {
    const char *operands[3]; /* the action and up to two names */
    int n_operands;
    int64_t scale, nodes, factor, seed, threads;
    bool json, help, transposed;
    base_str err;
} graph_command;

static bool set(graph_command *c, int option, const char *value) {
    switch (option) {
    case O_SCALE:
        return drv_args_int("--scale", value, 0, 40, &c->scale, &c->err);
    case O_FACTOR:
        return drv_args_int("--edge-factor", value, 0, INT32_MAX, &c->factor, &c->err);
    case O_NODES:
        return drv_args_int("--nodes", value, 0, INT64_MAX, &c->nodes, &c->err);
    case O_DEGREE:
        return drv_args_int("--degree", value, 0, INT32_MAX, &c->factor, &c->err);
    case O_SEED:
        return drv_args_int("--seed", value, 0, INT64_MAX, &c->seed, &c->err);
    case O_THREADS:
        return drv_args_int("--threads", value, 1, 4096, &c->threads, &c->err);
    case O_TRANSPOSED:
        c->transposed = true;
        return true;
    case O_JSON:
        c->json = true;
        return true;
    case O_HELP:
    case O_H:
        c->help = true;
        return true;
    default:
        break;
    }
    if (c->n_operands < 3) {
        c->operands[c->n_operands++] = value;
        return true;
    }
    base_str_addf(&c->err, "too many operands: '%s'", value);
    return false;
}

static int help(const drv_args *args) {
    base_str text = {0};
    base_str_add(
        &text,
        "usage: tiga graph import FROM TO.npz [--transposed]\n"
        "       tiga graph info FILE [--json]\n"
        "       tiga graph generate rmat --scale N [--edge-factor K] [--seed S] TO.npz\n"
        "       tiga graph generate uniform --nodes N --degree K [--seed S] TO.npz\n"
        "       tiga graph generate local --nodes N --degree K TO.npz\n\n"
        "FROM and FILE: Matrix Market (.mtx), edge list (.txt .el .wel), SciPy CSR (.npz); text may be gzipped.\n"
        "Edges run from column to row (Matrix Market, npz), from the first to the second number (edge lists).\n\n");
    drv_args_help(args, &text);
    fputs(base_str_text(&text), stdout);
    base_str_fini(&text);
    return EXIT_OK;
}

static int wants(const graph_command *c, int n, const char *what) {
    if (c->n_operands == n)
        return EXIT_OK;
    return drv_complain(EXIT_USAGE, "graph %s wants %s ('tiga graph --help')", c->operands[0], what);
}

static tiga_status read_graph(tiga_context *ctx, const char *path, tiga_graph **g, tiga_array *values) {
    tiga_graph_file_options o = {.struct_bytes = sizeof o, .progress = drv_progress()};
    tiga_status s = tiga_graph_read(ctx, path, &o, g, values);
    drv_progress_end();
    return s;
}

static tiga_status write_graph(tiga_context *ctx, const graph_command *c, tiga_graph *g, const tiga_array *values) {
    return c->transposed ? tiga_graph_write_snapshot(ctx, c->operands[2], g, values)
                         : tiga_graph_write_npz(ctx, c->operands[2], g, values);
}

static int import(tiga_context *ctx, const graph_command *c) {
    int code = wants(c, 3, "two files: FROM TO.npz");
    if (code)
        return code;
    tiga_graph *g = NULL;
    tiga_array values = {0};
    double began = drv_seconds();
    tiga_status s = read_graph(ctx, c->operands[1], &g, &values);
    bool was_read = !s;
    if (!s)
        s = write_graph(ctx, c, g, values.data ? &values : NULL);
    if (!s) {
        const tiga_csr *csr = tiga_graph_csr(g);
        fprintf(stderr, "%s: %lld rows, %lld columns, %lld edges in %.2f s\n", c->operands[2], (long long)csr->n_dst,
                (long long)csr->n_src, (long long)csr->n_edges, drv_seconds() - began);
    }
    tiga_array_free(&values);
    tiga_graph_free(g);
    if (!s)
        return EXIT_OK;
    return was_read ? drv_complain_output(ctx, s) : drv_complain_status(ctx, s);
}

/* Without the empty classes at the end. */
static int degree_classes(const tiga_graph_stats *t) {
    int n = 64;
    while (n > 0 && !t->degrees[n - 1])
        n--;
    return n;
}

static void add_degrees(base_str *s, const tiga_graph_stats *t) {
    for (int k = 0; k < degree_classes(t); k++) {
        base_str range = {0};
        if (k < 2)
            base_str_addf(&range, "%d", k);
        else
            base_str_addf(&range, "%lld .. %lld", 1LL << (k - 1), (long long)((1ULL << k) - 1));
        if (t->degrees[k])
            base_str_addf(s, "rows of degree       %-16s %lld\n", base_str_text(&range), (long long)t->degrees[k]);
        base_str_fini(&range);
    }
}

static void print_info(const graph_command *c, const tiga_graph_stats *t, const tiga_csr *csr,
                       const tiga_array *values) {
    base_str s = {0};
    const char *dtype = values->data ? drv_dtype_text(values->dtype) : NULL;
    if (c->json) {
        base_str_add(&s, "{\"file\": ");
        drv_json_string(&s, c->operands[1]);
        base_str_addf(&s, ", \"rows\": %lld, \"columns\": %lld, \"edges\": %lld, ", (long long)t->n_dst,
                      (long long)t->n_src, (long long)t->n_edges);
        base_str_addf(&s, "\"mean_degree\": %.17g, \"max_degree\": %lld, \"empty_rows\": %lld, ", t->mean_degree,
                      (long long)t->max_degree, (long long)t->empty_rows);
        base_str_addf(&s, "\"self_loops\": %lld, \"duplicate_edges\": %lld, \"column_bits\": %lld, \"bytes\": %lld, ",
                      (long long)t->self_loops, (long long)t->duplicate_edges, (long long)csr->source_bits,
                      (long long)t->bytes);
        base_str_addf(&s, "\"transposed\": %s, \"degrees\": [", t->transposed ? "true" : "false");
        for (int k = 0; k < degree_classes(t); k++)
            base_str_addf(&s, "%s%lld", k ? ", " : "", (long long)t->degrees[k]);
        base_str_addf(&s, "], \"values\": %s%s%s}\n", dtype ? "\"" : "", dtype ? dtype : "null", dtype ? "\"" : "");
    } else {
        base_str_addf(&s, "rows (destinations)  %lld\ncolumns (sources)    %lld\nedges                %lld\n",
                      (long long)t->n_dst, (long long)t->n_src, (long long)t->n_edges);
        base_str_addf(&s, "mean degree          %.4g\nlargest degree       %lld\nempty rows           %lld\n",
                      t->mean_degree, (long long)t->max_degree, (long long)t->empty_rows);
        base_str_addf(&s, "self loops           %lld\nduplicate edges      %lld\nvalues               %s\n",
                      (long long)t->self_loops, (long long)t->duplicate_edges, dtype ? dtype : "none");
        base_str_addf(&s, "transposed relation  %s\n", t->transposed ? "in the file" : "not in the file");
        base_str_addf(&s, "memory               %.1f MiB, %lld-bit columns\n", (double)t->bytes / (1 << 20),
                      (long long)csr->source_bits);
        add_degrees(&s, t);
    }
    fputs(base_str_text(&s), stdout);
    base_str_fini(&s);
}

static int info(tiga_context *ctx, const graph_command *c) {
    int code = wants(c, 2, "one file");
    if (code)
        return code;
    tiga_graph *g = NULL;
    tiga_array values = {0};
    tiga_graph_stats stats;
    tiga_status s = read_graph(ctx, c->operands[1], &g, &values);
    if (!s)
        s = tiga_graph_get_stats(ctx, g, &stats);
    if (!s)
        print_info(c, &stats, tiga_graph_csr(g), &values);
    tiga_array_free(&values);
    tiga_graph_free(g);
    return s ? drv_complain_status(ctx, s) : EXIT_OK;
}

static int make(tiga_context *ctx, const graph_command *c, tiga_graph **g) {
    const char *kind = c->operands[1];
    bool rmat = !strcmp(kind, "rmat"), uniform = !strcmp(kind, "uniform"), local = !strcmp(kind, "local");
    if (!rmat && !uniform && !local)
        return drv_complain(EXIT_USAGE, "graph generate: unknown kind '%s'; known: rmat uniform local", kind);
    if (c->scale < 0 && (rmat || c->nodes < 0))
        return drv_complain(EXIT_USAGE, "graph generate %s needs --scale%s", kind, rmat ? "" : " or --nodes");
    if (c->nodes >= 0 && (rmat || c->scale >= 0))
        return drv_complain(EXIT_USAGE, "graph generate %s: --nodes %s", kind,
                            rmat ? "is not for rmat, use --scale" : "and --scale exclude each other");
    int64_t nodes = c->nodes >= 0 ? c->nodes : (int64_t)1 << c->scale;
    tiga_status s = rmat      ? tiga_graph_rmat(ctx, (int)c->scale, c->factor, (uint64_t)c->seed, g)
                    : uniform ? tiga_graph_uniform(ctx, nodes, c->factor, (uint64_t)c->seed, g)
                              : tiga_graph_local(ctx, nodes, c->factor, g);
    return s ? drv_complain_status(ctx, s) : EXIT_OK;
}

static int generate(tiga_context *ctx, const graph_command *c) {
    int code = wants(c, 3, "a kind and a file: KIND TO.npz");
    if (code)
        return code;
    tiga_graph *g = NULL;
    code = make(ctx, c, &g);
    if (code)
        return code;
    tiga_status s = write_graph(ctx, c, g, NULL);
    tiga_graph_free(g);
    return s ? drv_complain_output(ctx, s) : EXIT_OK;
}

static int dispatch(const graph_command *c) {
    tiga_context_options o = tiga_context_defaults();
    o.threads = (int)c->threads;
    tiga_context *ctx;
    tiga_status s = tiga_context_new(&o, &ctx);
    if (s)
        return drv_complain_status(NULL, s);
    int code;
    if (!strcmp(c->operands[0], "import"))
        code = import(ctx, c);
    else if (!strcmp(c->operands[0], "info"))
        code = info(ctx, c);
    else if (!strcmp(c->operands[0], "generate"))
        code = generate(ctx, c);
    else
        code = drv_complain(EXIT_USAGE, "graph: unknown action '%s'; known: import info generate", c->operands[0]);
    tiga_context_free(ctx);
    return code;
}

int drv_graph_main(int argc, char **argv) {
    graph_command c = {.scale = -1, .nodes = -1, .factor = 16, .seed = 1};
    drv_args args = {"tiga graph", options, O_COUNT, argc, argv, 1, false};
    int option, code = EXIT_OK;
    const char *value;
    while (!c.help && drv_args_next(&args, &option, &value, &c.err) && set(&c, option, value))
        ;
    if (c.err.len)
        code = drv_complain(EXIT_USAGE, "%s", base_str_text(&c.err));
    else if (c.help)
        code = help(&args);
    else if (!c.n_operands)
        code = drv_complain(EXIT_USAGE, "graph: import, info or generate? ('tiga graph --help')");
    else
        code = dispatch(&c);
    base_str_fini(&c.err);
    return code;
}
