/* Command lines: options from a table, "did you mean", help.  Prints nothing and exits nowhere. */
#include "driver/driver.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_long(const char *name) { return name[0] == '-' && name[1] == '-'; }

/* Does `text` begin with the option, followed by '=' (long) or anything (short)? *value: what follows, NULL if nothing. */
static bool matches(const drv_arg *option, const char *text, const char **value) {
    size_t n = strlen(option->name);
    *value = NULL;
    if (strncmp(text, option->name, n) != 0)
        return false;
    if (!text[n])
        return true;
    if (is_long(option->name)) {
        if (text[n] != '=')
            return false;
        *value = text + n + 1;
        return true;
    }
    *value = text + n;
    return option->kind == DRV_VALUE;
}

static void unknown(const drv_args *a, const char *text, base_str *err) {
    char name[64];
    size_t n = strcspn(text, "="), best = 4;
    const char *nearest = NULL;
    if (n >= sizeof name)
        n = sizeof name - 1;
    memcpy(name, text, n);
    name[n] = 0;
    for (size_t i = 0; i < a->n_table; i++) {
        if (!a->table[i].help)
            continue;
        size_t d = base_edit_distance(name, a->table[i].name);
        if (d < best && d < strlen(a->table[i].name) - 1) {
            best = d;
            nearest = a->table[i].name;
        }
    }
    base_str_addf(err, "unknown option '%s'", name);
    if (nearest)
        base_str_addf(err, "; did you mean '%s'?", nearest);
    base_str_addf(err, " ('%s --help' lists them)", a->program);
}

static bool take_value(drv_args *a, const drv_arg *option, const char **value, base_str *err) {
    if (option->kind == DRV_FLAG) {
        if (!*value)
            return true;
        base_str_addf(err, "option '%s' takes no value", option->name);
        return false;
    }
    if (!*value && a->at < a->argc)
        *value = a->argv[a->at++];
    if (*value)
        return true;
    base_str_addf(err, "option '%s' needs a value: %s", option->name, option->hint);
    return false;
}

bool drv_args_next(drv_args *a, int *option, const char **value, base_str *err) {
    if (a->at >= a->argc)
        return false;
    const char *text = a->argv[a->at++];
    *option = -1;
    *value = text;
    if (a->only_operands || text[0] != '-' || !text[1])
        return true;
    if (!strcmp(text, "--")) {
        a->only_operands = true;
        return drv_args_next(a, option, value, err);
    }
    for (size_t i = 0; i < a->n_table; i++) {
        if (!matches(&a->table[i], text, value))
            continue;
        *option = (int)i;
        return take_value(a, &a->table[i], value, err);
    }
    unknown(a, text, err);
    return false;
}

void drv_args_help(const drv_args *a, base_str *out) {
    for (size_t i = 0; i < a->n_table; i++) {
        const drv_arg *o = &a->table[i];
        if (!o->help)
            continue;
        char head[64];
        const char *gap = !o->hint ? "" : is_long(o->name) ? "=" : " ";
        snprintf(head, sizeof head, "%s%s%s", o->name, gap, o->hint ? o->hint : "");
        base_str_addf(out, "  %-26s %s\n", head, o->help);
    }
}

bool drv_args_int(const char *what, const char *text, int64_t lo, int64_t hi, int64_t *out, base_str *err) {
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (end != text && !*end && errno == 0 && v >= lo && v <= hi) {
        *out = v;
        return true;
    }
    base_str_addf(err, "%s: '%s' is not an integer from %lld to %lld", what, text, (long long)lo, (long long)hi);
    return false;
}
