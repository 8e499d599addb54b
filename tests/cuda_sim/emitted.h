/* emitted: .tg files and loop IR files of the tests as CUDA text, for the tests here. */
#ifndef EMITTED_H
#define EMITTED_H

#include "codegen/codegen.h"
#include "frontend/frontend.h"
#include "ir/ir.h"
#include "passes/passes.h"

typedef struct emitted {
    base_arena *arena;
    ir_module *m; /* loop functions, with the CUDA schedule */
    base_str text;
} emitted;

/* A .tg file goes the whole way at opt_level; a file of loop IR is only scheduled.  team 1: whatever the schedule says,
 * one thread a row.  Fails the test with the reason. */
emitted emitted_new(const char *path, int opt_level, int team);
void emitted_free(emitted *e);

#endif
