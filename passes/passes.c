/* The table of passes and the pipeline runner.  A pass that is asked for at the wrong level is an error of the caller,
 * told before it runs; a module that does not verify after a pass is an error of ours, told with the pass's name. */
#include "passes/pass_util.h"

#include <string.h>

typedef enum stage { STAGE_ANY, STAGE_GRAPH, STAGE_LOOP, STAGE_TASK } stage;
static const char *const stage_text[] = {"any", "graph", "loop", "task"};

static const struct entry {
    pass_desc desc;
    stage before, after;
} table[] = {
#define PASS(name, fn, before, after, doc) {{#name, fn, doc}, STAGE_##before, STAGE_##after},
#include "passes/passes.def"
#undef PASS
};
#define TABLE_N (sizeof table / sizeof *table)

const pass_desc *pass_at(size_t i) { return i < TABLE_N ? &table[i].desc : NULL; }

static const struct entry *find(const char *name) {
    for (size_t i = 0; i < TABLE_N; i++)
        if (!strcmp(table[i].desc.name, name))
            return &table[i];
    return NULL;
}

const pass_desc *pass_find(const char *name) {
    const struct entry *e = find(name);
    return e ? &e->desc : NULL;
}

#define OPTIMISE_GRAPH "expand,grad,fold,cse,invariants,outline,split,fold,cse,dce,fuse,advance,cse,dce,share"
#define OPTIMISE_LOOPS "lower,fold,cse,merge,hoist,fold,cse,dce"

const char *pass_default_pipeline(bool cuda, int opt_level) {
    if (opt_level <= 0)
        return cuda ? "expand,grad,outline,lower,schedule_cuda,hierarchy"
                    : "expand,grad,outline,lower,schedule_cpu,hierarchy";
    return cuda ? OPTIMISE_GRAPH "," OPTIMISE_LOOPS ",schedule_cuda,hierarchy"
                : OPTIMISE_GRAPH "," OPTIMISE_LOOPS ",panels,turn,fission,in_place,schedule_cpu,hierarchy";
}

/* Names come as a list, one at a time into `name`. */
static const char *next_name(const char *at, base_arena *scratch, char **name) {
    while (*at == ' ')
        at++;
    size_t n = strcspn(at, ",");
    size_t used = n;
    while (used && at[used - 1] == ' ')
        used--;
    *name = base_arena_strndup(scratch, at, used);
    return at[n] ? at + n + 1 : at + n;
}

static void unknown(const char *name, base_str *err) {
    if (!*name) {
        base_str_add(err, "empty name in the list of passes");
        return;
    }
    size_t best = SIZE_MAX, best_at = 0;
    for (size_t i = 0; i < TABLE_N; i++) {
        size_t d = base_edit_distance(name, table[i].desc.name);
        if (d < best) {
            best = d;
            best_at = i;
        }
    }
    base_str_addf(err, "unknown pass '%s'", name);
    if (best <= 2 || best < strlen(name) / 2)
        base_str_addf(err, "; did you mean '%s'?", table[best_at].desc.name);
}

static stage stage_of(const ir_module *m) {
    return pass_has_level(m, IR_LEVEL_TASK) ? STAGE_TASK : pass_has_level(m, IR_LEVEL_LOOP) ? STAGE_LOOP : STAGE_GRAPH;
}

/* A module of graph IR without kernels has nothing that could be lowered: it counts as loop IR too. */
static bool stage_fits(const ir_module *m, stage now, stage wanted) {
    return wanted == STAGE_ANY || wanted == now ||
           (wanted == STAGE_LOOP && now == STAGE_GRAPH && !pass_has_level(m, IR_LEVEL_KERNEL));
}

static bool run_one(ir_module *m, const struct entry *e, pass_context *ctx, base_str *err) {
    stage now = stage_of(m);
    if (!stage_fits(m, now, e->before)) {
        base_str_addf(err, "pass '%s' works on %s IR, but the module is at the %s level", e->desc.name,
                      stage_text[e->before], stage_text[now]);
        return false;
    }
    if (!e->desc.run(m, ctx, err))
        return false;
    base_str broken = {0};
    bool ok = ir_verify(m, &broken);
    if (!ok)
        base_str_addf(err, "internal error: the module is ill-formed after pass '%s': %s", e->desc.name,
                      base_str_text(&broken));
    base_str_fini(&broken);
    if (ctx->dump && ctx->dump_after && (!strcmp(ctx->dump_after, "all") || !strcmp(ctx->dump_after, e->desc.name)))
        ctx->dump(ctx->user, e->desc.name, m);
    return ok;
}

/* All names are looked up before any pass runs. */
static bool check_names(const char *names, pass_context *ctx, base_str *err) {
    char *name;
    for (const char *at = names;;) {
        bool last = !strchr(at, ',');
        at = next_name(at, ctx->scratch, &name);
        if (!find(name)) {
            unknown(name, err);
            return false;
        }
        if (last)
            return true;
    }
}

static bool check_dump(const pass_context *ctx, base_str *err) {
    if (!ctx->dump_after || !strcmp(ctx->dump_after, "all") || find(ctx->dump_after))
        return true;
    unknown(ctx->dump_after, err);
    return false;
}

bool pass_run_pipeline(ir_module *m, const char *names, int opt_level, pass_context *ctx, base_str *err) {
    if (!names)
        names = pass_default_pipeline(ctx->cuda, opt_level);
    if (!check_dump(ctx, err) || !*names)
        return !*names && check_dump(ctx, err);
    if (!check_names(names, ctx, err))
        return false;
    char *name;
    for (const char *at = names; *at;) {
        at = next_name(at, ctx->scratch, &name);
        if (!run_one(m, find(name), ctx, err))
            return false;
        if (ctx->stop && ctx->stop(ctx->user)) {
            base_str_add(err, "interrupted");
            return false;
        }
    }
    return true;
}
