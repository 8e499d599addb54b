/* tiga cache: what lies in the folder of compiled code, and why something was compiled again.  Stands on the public
 * interface alone (tiga/cache.h). */
#include "driver/drv_tiga.h"
#include "tiga/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { O_FOLDER, O_JSON, O_HELP, O_H, O_COUNT };

static const drv_arg options[O_COUNT] = {
    [O_FOLDER] = {"--folder", DRV_VALUE, "DIR", "instead of $TIGA_CACHE_DIR, $XDG_CACHE_HOME/tiga or ~/.cache/tiga"},
    [O_JSON] = {"--json", DRV_FLAG, NULL, "stats, list: as JSON"},
    [O_HELP] = {"--help", DRV_FLAG, NULL, "this text"},
    [O_H] = {"-h", DRV_FLAG, NULL, NULL},
};

typedef struct cache_command {
    const char *operands[2]; /* the action, and a key */
    int n_operands;
    const char *folder;
    bool json, help;
    base_str err;
    tiga_context *ctx;
    tiga_cache *cache;
    /* what tiga_cache_list showed, the last used first */
    base_arena *arena;
    tiga_cache_entry **entries;
    size_t n, cap;
    int64_t bytes;
    bool no_memory;
} cache_command;

/* ---- collecting ---- */

typedef struct collecting {
    cache_command *c;
    const tiga_cache_entry *entry;
} collecting;

static void keep_entry(void *arg) {
    collecting *k = arg;
    cache_command *c = k->c;
    tiga_cache_entry *e = base_arena_alloc(c->arena, sizeof *e);
    *e = *k->entry;
    e->key = base_arena_strdup(c->arena, e->key);
    tiga_cache_field *fields = base_arena_new_array(c->arena, tiga_cache_field, e->n_fields);
    for (size_t i = 0; i < e->n_fields; i++) {
        const tiga_cache_field *f = &k->entry->fields[i];
        fields[i].name = base_arena_strdup(c->arena, f->name);
        fields[i].bytes = base_arena_strndup(c->arena, f->bytes, f->n_bytes);
        fields[i].n_bytes = f->n_bytes;
    }
    e->fields = fields;
    base_push(c->arena, c->entries, c->n, c->cap, e);
    c->bytes += e->bytes;
}

static int collect_one(void *user, const tiga_cache_entry *entry) {
    collecting k = {user, entry};
    k.c->no_memory = !base_arena_catch(k.c->arena, keep_entry, &k);
    return k.c->no_memory;
}

static int collect(cache_command *c) {
    c->arena = base_arena_new();
    if (!c->arena)
        return drv_complain_status(NULL, TIGA_E_MEMORY);
    tiga_status s = tiga_cache_list(c->ctx, c->cache, collect_one, c);
    if (!s && c->no_memory)
        s = TIGA_E_MEMORY;
    return s ? drv_complain_output(c->ctx, s) : EXIT_OK;
}

/* ---- words ---- */

static const tiga_cache_field *find(const tiga_cache_entry *e, const char *name) {
    for (size_t i = 0; i < e->n_fields; i++)
        if (!strcmp(e->fields[i].name, name))
            return &e->fields[i];
    return NULL;
}

static const char *text_of(const tiga_cache_entry *e, const char *name) {
    const tiga_cache_field *f = find(e, name);
    return f ? f->bytes : "";
}

/* On one line, nothing that a terminal would obey, at most `limit` characters. */
static void add_shown(base_str *out, const char *bytes, size_t n, size_t limit) {
    size_t begin = out->len;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (out->len - begin >= limit) {
            base_str_add(out, "...");
            return;
        }
        if (c == '\n')
            base_str_add(out, "\\n");
        else if (c < 0x20 || c == 0x7f)
            base_str_addf(out, "\\x%02x", c);
        else
            base_str_add_n(out, bytes + i, 1);
    }
}

static void add_size(base_str *out, int64_t bytes) {
    const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double v = (double)bytes;
    int u = 0;
    for (; v >= 1024 && u < 4; u++)
        v /= 1024;
    base_str_addf(out, u ? "%.1f %s" : "%.0f %s", v, units[u]);
}

static void add_age(base_str *out, int64_t since) {
    int64_t s = (int64_t)time(NULL) - since;
    if (s < 0)
        s = 0;
    if (s < 60)
        base_str_addf(out, "%lld s", (long long)s);
    else if (s < 3600)
        base_str_addf(out, "%lld min", (long long)(s / 60));
    else if (s < 2 * 86400)
        base_str_addf(out, "%lld h", (long long)(s / 3600));
    else
        base_str_addf(out, "%lld d", (long long)(s / 86400));
}

/* Pads what was added since `begin` to `width`. */
static void pad(base_str *out, size_t begin, size_t width) {
    while (!out->failed && out->len - begin < width)
        base_str_add(out, " ");
}

static int print(base_str *s) {
    bool failed = s->failed;
    fwrite(base_str_text(s), 1, s->len, stdout);
    base_str_fini(s);
    return failed ? drv_complain_status(NULL, TIGA_E_MEMORY) : EXIT_OK;
}

/* ---- stats ---- */

static int stats(cache_command *c) {
    int64_t failed = 0, damaged = 0, limit = tiga_cache_defaults().disk_bytes;
    for (size_t i = 0; i < c->n; i++) {
        failed += c->entries[i]->failed;
        damaged += c->entries[i]->damaged;
    }
    base_str s = {0};
    const char *folder = tiga_cache_folder(c->cache);
    if (c->json) {
        base_str_add(&s, "{\"folder\": ");
        drv_json_string(&s, folder);
        base_str_addf(&s,
                      ", \"entries\": %zu, \"failed\": %lld, \"damaged\": %lld, \"bytes\": %lld, "
                      "\"default_limit_bytes\": %lld}\n",
                      c->n, (long long)failed, (long long)damaged, (long long)c->bytes, (long long)limit);
        return print(&s);
    }
    base_str_addf(&s, "folder     %s\nentries    %zu", *folder ? folder : "none", c->n);
    if (failed || damaged)
        base_str_addf(&s, " (%lld of programs that are wrong, %lld damaged)", (long long)failed, (long long)damaged);
    base_str_add(&s, "\nsize       ");
    add_size(&s, c->bytes);
    base_str_add(&s, "\nlimit      ");
    add_size(&s, limit);
    base_str_add(&s, " unless a program sets another\n");
    if (c->n) {
        base_str_add(&s, "last used  ");
        add_age(&s, c->entries[0]->used);
        base_str_add(&s, " ago\n");
    }
    return print(&s);
}

/* ---- list ---- */

static void list_json(base_str *s, const tiga_cache_entry *e, const char *before) {
    base_str_addf(s,
                  "%s{\"key\": \"%s\", \"bytes\": %lld, \"created\": %lld, \"used\": %lld, \"failed\": %s, "
                  "\"damaged\": %s",
                  before, e->key, (long long)e->bytes, (long long)e->created, (long long)e->used,
                  e->failed ? "true" : "false", e->damaged ? "true" : "false");
    const char *names[] = {"kind", "file", "cpu"};
    for (int i = 0; i < 3; i++) {
        if (!find(e, names[i]))
            continue;
        base_str_addf(s, ", \"%s\": ", names[i]);
        drv_json_string(s, text_of(e, names[i]));
    }
    base_str_add(s, "}");
}

static void list_line(base_str *s, const tiga_cache_entry *e) {
    size_t begin = s->len;
    base_str_addf(s, "%.12s  ", e->key);
    const char *kind = e->damaged ? "damaged" : e->failed ? "wrong program" : text_of(e, "kind");
    add_shown(s, kind, strlen(kind), 14);
    pad(s, begin, 30);
    const char *file = text_of(e, "file");
    add_shown(s, file, strlen(file), 24);
    pad(s, begin, 56);
    size_t at = s->len;
    add_size(s, e->bytes);
    pad(s, at, 11);
    at = s->len;
    add_age(s, e->used);
    const char *cpu = text_of(e, "cpu");
    if (*cpu) {
        pad(s, at, 8);
        add_shown(s, cpu, strlen(cpu), 24);
    }
    base_str_add(s, "\n");
}

static int list(cache_command *c) {
    base_str s = {0};
    if (c->json)
        base_str_add(&s, "[");
    else if (c->n)
        base_str_add(&s, "key           kind            file                      size       used    cpu\n");
    for (size_t i = 0; i < c->n; i++)
        if (c->json)
            list_json(&s, c->entries[i], i ? ",\n " : "");
        else
            list_line(&s, c->entries[i]);
    if (c->json)
        base_str_add(&s, "]\n");
    return print(&s);
}

/* ---- why ---- */

static bool same_field(const tiga_cache_field *a, const tiga_cache_field *b) {
    return a && b && a->n_bytes == b->n_bytes && memcmp(a->bytes, b->bytes, a->n_bytes) == 0;
}

static void show_field(base_str *s, const tiga_cache_field *f) {
    size_t begin = s->len, lines = 0;
    base_str_addf(s, "  %s", f->name);
    pad(s, begin, 14);
    for (size_t i = 0; i < f->n_bytes; i++)
        lines += ((const char *)f->bytes)[i] == '\n';
    if (lines)
        base_str_addf(s, "%zu bytes, %zu lines: ", f->n_bytes, lines);
    add_shown(s, f->bytes, f->n_bytes, lines ? 60 : 400);
    base_str_add(s, "\n");
}

/* The first line in which two texts differ, of both. */
static void show_first_line(base_str *s, const tiga_cache_field *here, const tiga_cache_field *there) {
    const char *a = here->bytes, *b = there->bytes;
    size_t at = 0, line = 1, begin = 0;
    for (; at < here->n_bytes && at < there->n_bytes && a[at] == b[at]; at++)
        if (a[at] == '\n') {
            line++;
            begin = at + 1;
        }
    base_str_addf(s, "first in line %zu\n      there: ", line);
    add_shown(s, b + begin, strcspn(b + begin, "\n"), 100);
    base_str_add(s, "\n      here:  ");
    add_shown(s, a + begin, strcspn(a + begin, "\n"), 100);
    base_str_add(s, "\n");
}

static void show_difference(base_str *s, const tiga_cache_field *here, const tiga_cache_field *there) {
    size_t begin = s->len;
    base_str_addf(s, "    %s", (here ? here : there)->name);
    pad(s, begin, 14);
    if (!here || !there) {
        base_str_addf(s, "only %s\n", here ? "here" : "there");
        return;
    }
    if (memchr(here->bytes, '\n', here->n_bytes) || memchr(there->bytes, '\n', there->n_bytes)) {
        show_first_line(s, here, there);
        return;
    }
    base_str_add(s, "there '");
    add_shown(s, there->bytes, there->n_bytes, 400);
    base_str_add(s, "', here '");
    add_shown(s, here->bytes, here->n_bytes, 400);
    base_str_add(s, "'\n");
}

/* Field by field, in order: a list of options may hold one name several times. */
static void show_differences(base_str *s, const tiga_cache_entry *here, const tiga_cache_entry *there) {
    base_str_addf(s, "  differs from %.12s, made ", there->key);
    add_age(s, there->created);
    base_str_add(s, " ago:\n");
    size_t n = here->n_fields > there->n_fields ? here->n_fields : there->n_fields;
    for (size_t i = 0; i < n; i++) {
        const tiga_cache_field *a = i < here->n_fields ? &here->fields[i] : NULL,
                               *b = i < there->n_fields ? &there->fields[i] : NULL;
        if (a && b && strcmp(a->name, b->name) != 0) {
            base_str_addf(s, "    part %zu      there '%s', here '%s'\n", i + 1, b->name, a->name);
            continue;
        }
        if (!same_field(a, b))
            show_difference(s, a, b);
    }
}

static int explain(cache_command *c, const tiga_cache_entry *e) {
    if (e->damaged)
        return drv_complain(EXIT_INPUT, "%s is damaged; what it was for cannot be told, and will be compiled again",
                            e->key);
    base_str s = {0};
    base_str_addf(&s, "%s, ", e->key);
    add_size(&s, e->bytes);
    base_str_add(&s, ", made ");
    add_age(&s, e->created);
    base_str_addf(&s, " ago%s, is for\n", e->failed ? " (the program is wrong)" : "");
    for (size_t i = 0; i < e->n_fields; i++)
        show_field(&s, &e->fields[i]);
    int others = 0;
    for (size_t i = 0; i < c->n; i++) {
        const tiga_cache_entry *o = c->entries[i];
        if (o != e && same_field(find(o, "file"), find(e, "file")) && same_field(find(o, "kind"), find(e, "kind")) &&
            ++others <= 3)
            show_differences(&s, e, o);
    }
    if (others > 3)
        base_str_addf(&s, "  %d more of the same file\n", others - 3);
    if (!others)
        base_str_add(&s, "  no other entry of the same file and kind\n");
    return print(&s);
}

static int why(cache_command *c) {
    const char *key = c->operands[1];
    if (!key)
        return drv_complain(EXIT_USAGE, "cache why wants a key, or its beginning ('tiga cache list' shows them)");
    const tiga_cache_entry *found = NULL;
    int n = 0;
    for (size_t i = 0; i < c->n; i++)
        if (!strncmp(c->entries[i]->key, key, strlen(key))) {
            found = c->entries[i];
            n++;
        }
    if (n == 1)
        return explain(c, found);
    return n ? drv_complain(EXIT_INPUT, "%d keys begin with '%s'; say more of it", n, key)
             : drv_complain(EXIT_INPUT, "no key in %s begins with '%s'", tiga_cache_folder(c->cache), key);
}

/* ---- clear, and dispatch ---- */

static int clear(cache_command *c) {
    int64_t removed;
    tiga_status s = tiga_cache_clear(c->ctx, c->cache, &removed);
    if (s)
        return drv_complain_output(c->ctx, s);
    printf("%lld files removed from %s\n", (long long)removed, tiga_cache_folder(c->cache));
    return EXIT_OK;
}

static int help(const drv_args *args) {
    base_str text = {0};
    base_str_add(&text,
                 "usage: tiga cache stats          what compiled code takes on disk\n"
                 "       tiga cache list           entries, the last used first\n"
                 "       tiga cache why KEY        what an entry was compiled for, and what differs from others of\n"
                 "                                 the same file; the beginning of the key is enough\n"
                 "       tiga cache clear          removes all\n\n");
    drv_args_help(args, &text);
    return print(&text);
}

typedef struct action {
    const char *name;
    int n_operands;
    int (*run)(cache_command *c);
    bool collects;
} action;

static const action actions[] = {
    {"stats", 1, stats, true}, {"list", 1, list, true}, {"why", 2, why, true}, {"clear", 1, clear, false}};

static int dispatch(cache_command *c) {
    const action *a = NULL;
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (!strcmp(actions[i].name, c->operands[0]))
            a = &actions[i];
    if (!a)
        return drv_complain(EXIT_USAGE, "cache: unknown action '%s'; known: stats list why clear", c->operands[0]);
    if (c->n_operands > a->n_operands)
        return drv_complain(EXIT_USAGE, "cache %s: too many operands: '%s'", a->name, c->operands[a->n_operands]);
    tiga_cache_options o = tiga_cache_defaults();
    o.folder = c->folder;
    tiga_status s = tiga_context_new(NULL, &c->ctx);
    if (!s)
        s = tiga_cache_new(&o, &c->cache);
    int code = s ? drv_complain_status(NULL, s) : a->collects ? collect(c) : EXIT_OK;
    if (!code)
        code = a->run(c);
    tiga_cache_free(c->cache);
    tiga_context_free(c->ctx);
    base_arena_free(c->arena);
    return code;
}

static bool set(cache_command *c, int option, const char *value) {
    switch (option) {
    case O_FOLDER:
        c->folder = value;
        if (*value)
            return true;
        base_str_add(&c->err, "--folder: an empty name");
        return false;
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
    if (c->n_operands < 2) {
        c->operands[c->n_operands++] = value;
        return true;
    }
    base_str_addf(&c->err, "too many operands: '%s'", value);
    return false;
}

int drv_cache_main(int argc, char **argv) {
    cache_command c = {0};
    drv_args args = {"tiga cache", options, O_COUNT, argc, argv, 1, false};
    int option, code;
    const char *value;
    while (!c.help && drv_args_next(&args, &option, &value, &c.err) && set(&c, option, value))
        ;
    if (c.err.len)
        code = drv_complain(EXIT_USAGE, "%s", base_str_text(&c.err));
    else if (c.help)
        code = help(&args);
    else if (!c.n_operands)
        code = drv_complain(EXIT_USAGE, "cache: stats, list, why or clear? ('tiga cache --help')");
    else
        code = dispatch(&c);
    base_str_fini(&c.err);
    return code;
}
