/* The tables of the compiler as text for tools: outputs, passes, operations, errors. */
#include "driver/drv_clang.h"
#include "frontend/frontend.h"
#include "passes/passes.h"
#include "tiga/compiler.h"

#include <stdio.h>
#include <string.h>

const char *tigac_version(void) { return TIGA_VERSION; }

const char *tigac_version_full(void) { return "tigac " TIGA_VERSION " (LLVM " DRV_LLVM_VERSION ")"; }

const char *tigac_output_name(tigac_output output) {
    static const char *const names[TIGAC_OUTPUTS] = {
        [TIGAC_C] = "c",
        [TIGAC_CUDA] = "cuda",
        [TIGAC_HEADER] = "header",
        [TIGAC_GRAPH_IR] = "graph-ir",
        [TIGAC_LOOP_IR] = "loop-ir",
        [TIGAC_TASK_IR] = "task-ir",
        [TIGAC_LLVM_IR] = "llvm-ir",
        [TIGAC_OBJ] = "obj",
        [TIGAC_SO] = "so",
        [TIGAC_JSON] = "json",
        [TIGAC_PLAN] = "plan",
    };
    return (unsigned)output < TIGAC_OUTPUTS ? names[output] : NULL;
}

const char *tigac_pass_name(size_t i) {
    const pass_desc *p = pass_at(i);
    return p ? p->name : NULL;
}

const char *tigac_pass_doc(size_t i) {
    const pass_desc *p = pass_at(i);
    return p ? p->doc : NULL;
}

const char *tigac_default_passes(const char *target, int opt_level) {
    return pass_default_pipeline(target && !strcmp(target, "cuda"), opt_level);
}

static const ir_op_desc *op_at(size_t i) { return i + 1 < IR_OP_COUNT ? ir_op_describe((ir_opcode)(i + 1)) : NULL; }

const char *tigac_op_name(size_t i) {
    const ir_op_desc *d = op_at(i);
    return d ? d->text : NULL;
}

const char *tigac_op_doc(size_t i) {
    const ir_op_desc *d = op_at(i);
    return d ? d->doc : NULL;
}

const char *tigac_op_levels(size_t i) {
    static const char *const words[16] = {
        "",          "kernel",           "program",           "kernel program",
        "loop",      "kernel loop",      "program loop",      "kernel program loop",
        "task",      "kernel task",      "program task",      "kernel program task",
        "loop task", "kernel loop task", "program loop task", "kernel program loop task"};
    const ir_op_desc *d = op_at(i);
    return d ? words[d->levels & 15] : NULL;
}

static const fe_error_desc own_errors[] = {
#define DRV_ERROR(id, title, page) {id, title, page},
#include "driver/drv_errors.def"
#undef DRV_ERROR
};
#define N_OWN (sizeof own_errors / sizeof *own_errors)

static const fe_error_desc *find_error(const char *id) {
    for (size_t i = 0; i < N_OWN; i++)
        if (!strcmp(own_errors[i].id, id))
            return &own_errors[i];
    return fe_error_find(id);
}

const char *tigac_error_id(size_t i) {
    if (i < N_OWN)
        return own_errors[i].id;
    const fe_error_desc *e = fe_error_at(i - N_OWN);
    return e ? e->id : NULL;
}

const char *tigac_error_title(const char *id) {
    const fe_error_desc *e = find_error(id);
    return e ? e->title : NULL;
}

const char *tigac_error_page(const char *id) {
    const fe_error_desc *e = find_error(id);
    return e ? e->page : NULL;
}
