/* passes: IR to IR.  One pass per file, all listed in passes.def; a pipeline is a list of names. */
#ifndef TIGA_PASSES_H
#define TIGA_PASSES_H

#include "ir/ir.h"

/* What passes decided, for people (tigac --explain-plan): of which kernel, and what. */
typedef enum pass_note_kind {
    PASS_NOTE_FUSED,
    PASS_NOTE_REFUSED,
    PASS_NOTE_PRODUCTS,
    PASS_NOTE_ONCE,
    PASS_NOTE_EACH
} pass_note_kind;
typedef struct pass_note {
    pass_note_kind kind;
    const char *program, *kernel; /* in which program ("": wherever it is called), of which kernel ("": the program) */
    /* What it was made of or not fused with; of a fusion the name it had then; of products, how they are made; what is computed
     * once in front of a repeat, or in each round. */
    const char *other;
    const char *text; /* how, or why not; may be NULL for how */
} pass_note;
typedef struct pass_notes {
    pass_note *items;
    size_t n, cap;
} pass_notes;

typedef struct pass_context {
    base_arena *scratch; /* emptied by nobody; free after the pipeline */
    bool cuda; /* which schedule the default pipeline ends with */
    const char *dump_after; /* name of a pass, "all", or NULL */
    void (*dump)(void *user, const char *pass, const ir_module *m);
    void *user;
    pass_notes *notes; /* NULL: nobody asks */
    bool (*stop)(void *user); /* between passes: true gives up, and the pipeline fails.  NULL: never */
} pass_context;

typedef struct pass_desc {
    const char *name;
    bool (*run)(ir_module *m, pass_context *ctx,
                base_str *err); /* false: the module cannot be compiled; reason in err */
    const char *doc;
} pass_desc;
const pass_desc *pass_find(const char *name);
const pass_desc *pass_at(size_t i); /* NULL past the end */

/* Comma-separated names; the module is verified after each.  NULL: the default pipeline of the target at opt_level
 * (0: only what lowering needs; 1..3: everything). */
bool pass_run_pipeline(ir_module *m, const char *names, int opt_level, pass_context *ctx, base_str *err);
const char *pass_default_pipeline(bool cuda, int opt_level);

/* explain.c: the plan of a module whose passes have run, in words. */
void pass_explain(const ir_module *m, const pass_notes *notes, base_str *out);

#define PASS(name, fn, before, after, doc) bool fn(ir_module *m, pass_context *ctx, base_str *err);
#include "passes/passes.def"
#undef PASS

#endif
