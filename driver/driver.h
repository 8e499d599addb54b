/* driver: the parts of libtigac (pipeline.c, result.c, tables.c; clang and nvrtc have headers of their own) and of the two
 * command lines (args.c). */
#ifndef DRV_DRIVER_H
#define DRV_DRIVER_H

#include "base/base.h"

/* ---- drv_args.c: command lines ----------------------------------------------------------------------------------- */
typedef enum drv_arg_kind { DRV_FLAG, DRV_VALUE } drv_arg_kind; /* --stats | --threads N, --threads=N */
typedef struct drv_arg {
    const char *name; /* "-o", "--emit"; one-letter ones also as -oVALUE */
    drv_arg_kind kind;
    const char *hint; /* "FILE"; NULL for flags */
    const char *help; /* one line; NULL: not shown */
} drv_arg;

/* The next argument of the command line: an option of the table, or an operand (option < 0). */
typedef struct drv_args {
    const char *program; /* "tigac", for messages */
    const drv_arg *table;
    size_t n_table;
    int argc;
    char **argv;
    int at; /* next to be read */
    bool only_operands; /* after "--" */
} drv_args;
/* false at the end, or with a message in err. */
bool drv_args_next(drv_args *a, int *option, const char **value, base_str *err);
void drv_args_help(const drv_args *a, base_str *out); /* one line for each option of the table */
/* `text` as a decimal integer in lo .. hi; otherwise a message naming `what`. */
bool drv_args_int(const char *what, const char *text, int64_t lo, int64_t hi, int64_t *out, base_str *err);

#endif
