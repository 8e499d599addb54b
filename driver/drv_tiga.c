/* tiga: runs compiled modules, handles graph files, shows the cache of compiled code.  Dispatch, messages, progress.
 *
 * Exit codes: 0; 1 the input is wrong; 2 usage; 3 environment or internal; 130 interrupted. */
#include "driver/drv_tiga.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int drv_complain(int code, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    fputs("tiga: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    return code;
}

static int exit_code(tiga_status status) {
    switch (status) {
    case TIGA_OK:
        return EXIT_OK;
    case TIGA_E_ARGUMENT:
    case TIGA_E_TYPE:
    case TIGA_E_RANGE:
    case TIGA_E_NAME:
    case TIGA_E_FILE:
    case TIGA_E_FORMAT:
    case TIGA_E_MODULE:
    case TIGA_E_ABI:
    case TIGA_E_TARGET:
    case TIGA_E_UNSUPPORTED:
    case TIGA_E_PROGRAM:
        return EXIT_INPUT;
    case TIGA_E_MEMORY:
    case TIGA_E_BUDGET:
    case TIGA_E_INTERNAL:
        return EXIT_ENVIRONMENT;
    case TIGA_E_INTERRUPTED:
        return 130;
    }
    return EXIT_ENVIRONMENT;
}

int drv_complain_status(tiga_context *ctx, tiga_status status) {
    const char *text = ctx ? tiga_error_text(ctx) : "";
    return drv_complain(exit_code(status), "%s", *text ? text : tiga_status_text(status));
}

int drv_complain_output(tiga_context *ctx, tiga_status status) {
    int code = drv_complain_status(ctx, status);
    return status == TIGA_E_FILE ? EXIT_ENVIRONMENT : code;
}

double drv_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool progress_shown;

static void show_progress(void *user, double fraction) {
    (void)user;
    static int last = -1;
    int percent = (int)(fraction * 100);
    if (percent == last)
        return;
    last = percent;
    progress_shown = true;
    char bar[41];
    for (int i = 0; i < 40; i++)
        bar[i] = i * 100 < percent * 40 ? '#' : '.';
    bar[40] = 0;
    fprintf(stderr, "\r[%s] %3d %%", bar, percent);
}

void (*drv_progress(void))(void *, double) { return isatty(2) ? show_progress : NULL; }

void drv_progress_end(void) {
    if (progress_shown)
        fputs("\r\033[K", stderr);
    progress_shown = false;
}

void drv_json_string(base_str *out, const char *text) {
    base_str_add(out, "\"");
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            base_str_addf(out, "\\%c", c);
        else if (c < 0x20)
            base_str_addf(out, "\\u%04x", c);
        else
            base_str_add_n(out, text, 1);
    }
    base_str_add(out, "\"");
}

static int help(void) {
    puts("usage: tiga run MODEL NAME [options]     run a kernel or a program of a module (model.so or model.tg)\n"
         "       tiga graph import FROM TO.npz     read a Matrix Market file or an edge list, write SciPy CSR\n"
         "       tiga graph info FILE              sizes, degrees, self loops, duplicates\n"
         "       tiga graph generate KIND TO.npz   rmat, uniform or local\n"
         "       tiga cache stats|list|clear       compiled code kept on disk\n"
         "       tiga cache why KEY                what it was compiled for\n"
         "       tiga --version\n\n"
         "'tiga run --help', 'tiga graph --help' and 'tiga cache --help' tell more.\n"
         "exit codes: 0 done, 1 the input is wrong, 2 usage, 3 environment or internal, 130 interrupted");
    return EXIT_OK;
}

typedef struct command {
    const char *name;
    int (*main)(int argc, char **argv);
} command;
static const command commands[] = {{"run", drv_run_main}, {"graph", drv_graph_main}, {"cache", drv_cache_main}};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static int run(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "", *near = NULL;
    for (int i = 0; i < N_COMMANDS; i++) {
        if (!strcmp(name, commands[i].name))
            return commands[i].main(argc - 1, argv + 1);
        if (!near && base_edit_distance(name, commands[i].name) < 3)
            near = commands[i].name;
    }
    if (!strcmp(name, "--help") || !strcmp(name, "-h"))
        return help();
    if (!strcmp(name, "--version")) {
        printf("tiga %s\n", tiga_version());
        return EXIT_OK;
    }
    if (!*name)
        return drv_complain(EXIT_USAGE, "no command; known: run graph cache ('tiga --help')");
    return near ? drv_complain(EXIT_USAGE, "unknown command '%s'; did you mean '%s'?", name, near)
                : drv_complain(EXIT_USAGE, "unknown command '%s'; known: run graph cache ('tiga --help')", name);
}

/* By default idle threads of libgomp spin for milliseconds.  On a machine that has other things to do that makes short
 * launches slow and their times jump (250 launches, both of 2 cores busy: 0.13 to 2.2 s; sleeping: 0.03 to 0.11 s); on a
 * quiet one it gains little (0.031 against 0.033 s).  libgomp looks at its environment before main, so this program starts
 * itself again. */
static void start_with_sleeping_threads(char **argv) {
    if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT") || setenv("OMP_WAIT_POLICY", "passive", 0))
        return;
    execv("/proc/self/exe", argv); /* when it fails, all still works */
}

int main(int argc, char **argv) {
    start_with_sleeping_threads(argv);
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error of write, like a full disk */
    int code = run(argc, argv);
    if (!code && (fflush(stdout) || ferror(stdout)))
        code = drv_complain(EXIT_ENVIRONMENT, "cannot write to standard output");
    return code;
}
