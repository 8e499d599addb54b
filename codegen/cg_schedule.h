/* codegen, internal: a task function as a table of steps.  cg_host.c makes the steps, cg_schedule.c writes the one function
 * that follows them; a module carries only the kinds of steps it uses. */
#ifndef TIGA_CG_SCHEDULE_H
#define TIGA_CG_SCHEDULE_H

#include "codegen/cg.h"

/* CG_STEP(NAME, "what happens, in C"): s is the step, i[] the instances, n[] the numbers of the call, `steps` the table.
 * Jumps name the step before the one to go on with, because every step is followed by `++s`. */
#define CG_STEPS                                                                                                       \
    CG_STEP(BIND_PARAM, "status = host->bind_param(frame, s->b, &i[s->a]);")                                           \
    CG_STEP(BIND_RESULT, "status = host->bind_result(frame, s->b, &i[s->a]);")                                         \
    CG_STEP(ALLOC, "status = host->alloc(frame, buffers[s->c].name, buffers[s->c].version, buffers[s->c].tier, "       \
                   "n[s->b], &i[s->a]);")                                                                              \
    CG_STEP(READ, "status = host->acquire(frame, i[s->a], 0);")                                                        \
    CG_STEP(WRITE, "status = host->acquire(frame, i[s->a], 1);")                                                       \
    CG_STEP(LAUNCH, "launch")                                                                                          \
    CG_STEP(LAUNCH_AHEAD, "launch_ahead")                                                                              \
    CG_STEP(DONE, "status = host->done(frame, i[s->a]);")                                                              \
    CG_STEP(RELEASE, "status = host->release(frame, i[s->a]);")                                                        \
    CG_STEP(COPY, "status = host->copy(frame, i[s->b], i[s->a]);")                                                     \
    CG_STEP(PUSH, "status = host->push(frame, i[s->a]);")                                                              \
    CG_STEP(RESTORE, "status = host->restore(frame, i[s->a]);")                                                        \
    CG_STEP(READ_I64, "status = host->read_i64(frame, i[s->b], &n[s->a]);")                                            \
    CG_STEP(READ_BOOL, "status = host->read_bool(frame, i[s->b], &n[s->a]);")                                          \
    CG_STEP(USE, "i[s->a] = i[s->b];")                                                                                 \
    CG_STEP(SET, "n[s->a] = n[s->b];")                                                                                 \
    CG_STEP(COUNT, "n[s->a]++;")                                                                                       \
    CG_STEP(GO, "s = steps + s->b;")                                                                                   \
    CG_STEP(GO_UNLESS, "if (!n[s->a]) s = steps + s->b;")                                                              \
    CG_STEP(GO_FROM, "if (n[s->a] >= n[s->c]) s = steps + s->b;")                                                      \
    CG_STEP(END, "return 0;")

typedef enum cg_step_code {
#define CG_STEP(NAME, text) CG_STEP_##NAME,
    CG_STEPS
#undef CG_STEP
        CG_STEP_COUNT_
} cg_step_code;

typedef struct cg_follower { /* what the function that follows has to know */
    bool step[CG_STEP_COUNT_];
    bool op[IR_OP_COUNT][CG_DTYPES][CG_DTYPES]; /* arithmetic on numbers that were read: operation, operands, result */
    size_t n_tasks, most_buffers, most_sizes; /* of one launch */
} cg_follower;

/* The name of a step of arithmetic: "TIGA_DO_ADD_I64_I64". */
const char *cg_step_op_name(base_arena *arena, ir_opcode code, ir_dtype in, ir_dtype out);
void cg_emit_follower(cg_text *w, const cg_follower *f, cg_helpers *h, base_arena *arena);

/* cg_host.c: `static int32_t NAME_host(const tiga_host *host, void *frame, const int64_t *dims)` and its tables.  Refers to
 * tiga_kernels[], the table of the module. */
bool cg_emit_host(const ir_module *m, const ir_func *task, cg_text *w, cg_helpers *h, cg_follower *follower,
                  base_arena *arena, base_str *err);

#endif
