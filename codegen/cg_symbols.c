/* Names that more than one function sees, and the description of fields that tables, header and manifest share. */
#include "codegen/cg.h"

#include <string.h>

static const char *const endings[] = {"",       "_rows",     "_rows32",  "_rows64",   "_scratch_bytes", "_scratch",
                                      "_host",  "_call",     "_dims",    "_params",   "_results",       "_plan",
                                      "_steps", "_launches", "_buffers", "_rows_any", "_numbers"};

enum { N_ENDINGS = sizeof endings / sizeof *endings };

/* Functions of the C library: a kernel of such a name would take its place in the program it is linked into. */
static const char *const library[] = {
    "abort",     "accept",   "access",     "alarm",    "aligned_alloc", "asctime",   "assert",    "at_quick_exit",
    "atexit",    "atof",     "atoi",       "atol",     "atoll",         "bcmp",      "bcopy",     "bind",
    "brk",       "bsearch",  "bzero",      "calloc",   "chdir",         "chmod",     "chown",     "clearerr",
    "clock",     "close",    "connect",    "creat",    "ctime",         "difftime",  "div",       "dup",
    "dup2",      "environ",  "execl",      "execv",    "execve",        "exit",      "fclose",    "fcntl",
    "fdopen",    "feof",     "ferror",     "fflush",   "ffs",           "fgetc",     "fgets",     "fileno",
    "fopen",     "fork",     "fprintf",    "fputc",    "fputs",         "fread",     "free",      "freopen",
    "fscanf",    "fseek",    "fstat",      "fsync",    "ftell",         "fwrite",    "getc",      "getchar",
    "getcwd",    "getenv",   "getopt",     "getpid",   "gets",          "gmtime",    "index",     "ioctl",
    "isalnum",   "isalpha",  "isatty",     "isblank",  "iscntrl",       "isdigit",   "isgraph",   "islower",
    "isprint",   "ispunct",  "isspace",    "isupper",  "isxdigit",      "kill",      "ldiv",      "link",
    "listen",    "lldiv",    "localtime",  "longjmp",  "lseek",         "malloc",    "mblen",     "mbstowcs",
    "memchr",    "memcmp",   "memcpy",     "memmove",  "mempcpy",       "memset",    "mkdir",     "mktime",
    "mmap",      "mprotect", "munmap",     "nice",     "open",          "optarg",    "optind",    "pause",
    "perror",    "pipe",     "poll",       "popen",    "printf",        "putc",      "putchar",   "putenv",
    "puts",      "qsort",    "quick_exit", "raise",    "rand",          "random",    "read",      "readv",
    "realloc",   "recv",     "remove",     "rename",   "rewind",        "rindex",    "rmdir",     "scanf",
    "select",    "send",     "setbuf",     "setenv",   "setjmp",        "setlocale", "setvbuf",   "shutdown",
    "sigaction", "signal",   "sleep",      "snprintf", "socket",        "sprintf",   "srand",     "sscanf",
    "stat",      "stderr",   "stdin",      "stdout",   "stpcpy",        "strcat",    "strchr",    "strcmp",
    "strcoll",   "strcpy",   "strcspn",    "strdup",   "strerror",      "strftime",  "strlen",    "strncat",
    "strncmp",   "strncpy",  "strndup",    "strnlen",  "strpbrk",       "strrchr",   "strspn",    "strstr",
    "strtod",    "strtof",   "strtok",     "strtol",   "strtold",       "strtoll",   "strtoul",   "strtoull",
    "strxfrm",   "swab",     "sync",       "syscall",  "sysconf",       "system",    "time",      "times",
    "tmpfile",   "tmpnam",   "tolower",    "toupper",  "truncate",      "umask",     "uname",     "ungetc",
    "unlink",    "usleep",   "utime",      "vfork",    "vfprintf",      "vprintf",   "vsnprintf", "vsprintf",
    "wait",      "waitpid",  "wcslen",     "write",    "writev",
};

static bool is_library(const char *word) {
    for (size_t i = 0; i < sizeof library / sizeof *library; ++i)
        if (!strcmp(word, library[i]))
            return true;
    return false;
}

/* Names in use, by hash; each may stand for a symbol. */
typedef struct entry {
    const char *name, *symbol;
} entry;
typedef struct table {
    entry *entries;
    size_t mask;
} table;

static entry *find(const table *t, const char *name) {
    size_t i = (size_t)base_hash_bytes(name, strlen(name)).lo & t->mask;
    while (t->entries[i].name && strcmp(t->entries[i].name, name))
        i = (i + 1) & t->mask;
    return &t->entries[i];
}

static table table_new(base_arena *arena, size_t most) {
    size_t n = 16;
    while (n < 2 * most)
        n *= 2;
    return (table){base_arena_new_array(arena, entry, n), n - 1};
}

static bool is_free(const table *taken, base_arena *arena, const char *symbol) {
    for (size_t i = 0; i < N_ENDINGS; ++i)
        if (find(taken, base_arena_printf(arena, "%s%s", symbol, endings[i]))->name)
            return false;
    return !is_library(symbol);
}

static const char *choose(table *taken, base_arena *arena, const char *name) {
    const char *symbol = cg_identifier(arena, name);
    while (!is_free(taken, arena, symbol))
        symbol = base_arena_printf(arena, "%s_", symbol);
    for (size_t i = 0; i < N_ENDINGS; ++i) {
        const char *used = base_arena_printf(arena, "%s%s", symbol, endings[i]);
        find(taken, used)->name = used;
    }
    return symbol;
}

/* Once for a module; the user's functions choose first.  Functions of one name (a kernel, its loop, its task) share. */
static void assign(const ir_module *m) {
    base_arena *arena = m->arena;
    table symbols = table_new(arena, m->n_funcs), taken = table_new(arena, N_ENDINGS * m->n_funcs);
    for (int user = 1; user >= 0; --user)
        for (size_t i = 0; i < m->n_funcs; ++i) {
            if (m->funcs[i]->exported != (user != 0))
                continue;
            entry *e = find(&symbols, m->funcs[i]->name);
            if (!e->name)
                *e = (entry){m->funcs[i]->name, choose(&taken, arena, m->funcs[i]->name)};
        }
    uint32_t n_loops = 0;
    for (size_t i = 0; i < m->n_funcs; ++i) {
        m->funcs[i]->symbol = find(&symbols, m->funcs[i]->name)->symbol;
        if (m->funcs[i]->level == IR_LEVEL_LOOP)
            m->funcs[i]->mark = n_loops++; /* its number among the kernels of the module */
    }
}

const char *cg_symbol(const ir_module *m, const char *name) {
    const ir_func *f = NULL;
    for (int level = IR_LEVEL_KERNEL; level <= IR_LEVEL_TASK && !f; ++level)
        f = ir_func_find(m, name, (ir_level)level);
    BASE_CHECK(f);
    if (!f->symbol)
        assign(m);
    return f->symbol;
}

int64_t cg_kernel_index(const ir_module *m, const char *name) {
    const ir_func *f = ir_func_find(m, name, IR_LEVEL_LOOP);
    if (!f)
        return -1;
    if (!f->symbol)
        assign(m);
    return f->mark;
}

const ir_func *cg_kernel_of(const ir_module *m, const ir_func *task) {
    return ir_func_find(m, task->name, IR_LEVEL_KERNEL);
}

const char *cg_type_text(base_arena *arena, const ir_func *f, const ir_type *t) {
    const char *s = ir_dtype_text(t->dtype);
    for (uint32_t i = 0; i < t->rank; ++i) {
        const char *open = i ? ", " : "[", *shut = i + 1 == t->rank ? "]" : "";
        if (ir_dim_is_sym(t->dim[i]))
            s = base_arena_printf(arena, "%s%s%s%s", s, open, f->syms[ir_dim_sym_index(t->dim[i])], shut);
        else
            s = base_arena_printf(arena, "%s%s%lld%s", s, open, (long long)t->dim[i], shut);
    }
    return s;
}

const char *cg_field_text(base_arena *arena, const ir_func *f, const ir_param *p, bool result, bool program) {
    if (p->role == IR_GRAPH_FIELD)
        return base_arena_printf(arena, "%s: graph", p->name);
    const char *edge = result && p->type.space == IR_EDGE ? "edge " : "";
    const char *type = cg_type_text(arena, f, &p->type);
    if (result || program)
        return base_arena_printf(arena, "%s: %s%s", p->name, edge, type);
    return base_arena_printf(arena, "%s %s: %s", ir_role_text(p->role), p->name, type);
}

static const char *at_of_role(ir_role r) {
    switch (r) {
    case IR_SRC:
        return "SRC";
    case IR_DST:
    case IR_OUT_ROW:
        return "DST";
    case IR_NODE:
        return "NODE";
    case IR_EDGE_FIELD:
    case IR_OUT_EDGE:
        return "EDGE";
    case IR_PARAM_FIELD:
    case IR_OUT_PARAM:
        return "PARAM";
    case IR_GRAPH_FIELD:
        return "GRAPH";
    }
    BASE_BUG("role %d", (int)r);
}

/* The graph parameter g of a dimension "g.dst", and which end it is; -1: not the size of a graph. */
static int64_t graph_of_dim(const ir_func *f, ir_dim d, const char **at) {
    static const char *const ends[][2] = {{".dst", "DST"}, {".src", "SRC"}, {".edge", "EDGE"}};
    if (!ir_dim_is_sym(d))
        return -1;
    const char *sym = f->syms[ir_dim_sym_index(d)], *dot = strrchr(sym, '.');
    for (size_t e = 0; dot && e < 3; ++e) {
        if (strcmp(dot, ends[e][0]))
            continue;
        for (size_t i = 0; i < f->n_params; ++i) {
            const ir_param *p = &f->params[i];
            if (p->role != IR_GRAPH_FIELD || strlen(p->name) != (size_t)(dot - sym) ||
                strncmp(p->name, sym, strlen(p->name)))
                continue;
            *at = ends[e][1];
            return (int64_t)i;
        }
    }
    return -1;
}

cg_field cg_field_of(const ir_func *task, const ir_param *p, bool result, bool program) {
    cg_field f = {.at = at_of_role(p->role), .graph = -1, .rank = p->type.rank, .shape = p->type.dim};
    if (p->role == IR_GRAPH_FIELD)
        return (cg_field){.at = "GRAPH", .graph = -1, .rank = 0, .shape = p->type.dim};
    if (!program) {
        if (result)
            f.at = p->type.space == IR_EDGE ? "EDGE" : p->type.space == IR_ROW ? "DST" : "PARAM";
        return f;
    }
    f.at = "PARAM";
    if (f.rank)
        f.graph = graph_of_dim(task, p->type.dim[0], &f.at);
    if (f.graph >= 0) {
        f.rank--;
        f.shape++;
    }
    return f;
}
