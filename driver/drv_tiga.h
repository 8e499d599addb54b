/* tiga, the runner's command line: shared state of its commands. */
#ifndef DRV_TIGA_H
#define DRV_TIGA_H

#include "driver/driver.h"
#include "tiga/tiga.h"

enum { EXIT_OK = 0, EXIT_INPUT = 1, EXIT_USAGE = 2, EXIT_ENVIRONMENT = 3 };

int drv_complain(int code, const char *fmt, ...) BASE_PRINTF(2, 3);
/* Says what the context has to say; the exit code that goes with the status. */
int drv_complain_status(tiga_context *ctx, tiga_status status);
int drv_complain_output(tiga_context *ctx, tiga_status status); /* of writing: a file that fails is the environment's */
double drv_seconds(void); /* monotonic */
/* A progress bar on stderr when that is a terminal; NULL otherwise. */
void (*drv_progress(void))(void *user, double fraction);
void drv_progress_end(void);
void drv_json_string(base_str *out, const char *text); /* quoted and escaped */

int drv_graph_main(int argc, char **argv); /* tiga graph ... */
int drv_run_main(int argc, char **argv); /* tiga run ... */
int drv_cache_main(int argc, char **argv); /* tiga cache ... */

/* ---- drv_tiga_source.c: a .tg file compiled in this process ------------------------------------------------------- */
typedef struct drv_source_options {
    const char **defines; /* "F=64" */
    size_t n_defines;
    int opt_level;
    bool no_cache;
} drv_source_options;
bool drv_is_source(const char *path); /* .tg or .ir */
/* Opens libtigac, compiles, loads. Exit code; *seconds: the compilation. */
int drv_load_source(tiga_context *ctx, const char *path, const drv_source_options *o, tiga_module **out,
                    double *seconds);

/* ---- drv_tiga_values.c: what stands behind --src NAME=VALUE -------------------------------------------------------- */
typedef struct drv_value_source {
    tiga_graph *graph; /* of the field; NULL: none */
    const tiga_array *stored; /* values of the graph's file; data NULL: none */
    bool edge_file_order; /* arrays of edges are in the order of the file */
    bool square; /* rows and sources are the same nodes */
} drv_value_source;
/* VALUE: a .npy file, a number, '@' (values of the graph file), '@indegree', '@outdegree'. Exit code. */
int drv_value_read(tiga_context *ctx, const tiga_field_info *field, const char *text, const drv_value_source *from,
                   tiga_array *out);
/* Writes a result; edge results go back to file order when asked for. */
int drv_value_write(tiga_context *ctx, const tiga_field_info *field, const tiga_array *a, const drv_value_source *from,
                    const char *path);
const char *drv_role_text(int32_t at); /* "src" */
const char *drv_dtype_text(int32_t dtype); /* "f32" */
size_t drv_dtype_bytes(int32_t dtype);

/* ---- drv_tiga_top.c: the largest rows of a result ----------------------------------------------------------------- */
int drv_print_top(tiga_context *ctx, const char *name, const tiga_array *a, int64_t n, const char *names_path);

#endif
