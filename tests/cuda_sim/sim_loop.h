/* sim_loop: loop functions, emitted as CUDA, on the simulated device; the counterpart of ir_interpret_loop. */
#ifndef SIM_LOOP_H
#define SIM_LOOP_H

#include "ir/ir.h"
#include "sim.h"

typedef struct sim_loop_options {
    bool wide;      /* 64-bit sources, where edges are walked */
    sim_order order;
    uint64_t seed;
    unsigned blocks; /* of the grid; 0: as many as there are units for, at most 3 */
} sim_loop_options;

/* Runs kernel `name` (as emitted for f) over all units of call.  Inputs are read-only, results unwritten before; after a
 * good launch every byte of a result must have been written.  false: the report of the device, or what else is wrong. */
bool sim_run_loop(sim_module *m, const char *name, const ir_func *f, const ir_call_data *call,
                  const sim_loop_options *o, base_str *err);
/* Bytes of the array of parameter i. */
size_t sim_param_bytes(const ir_func *f, const ir_call_data *call, size_t i);

#endif
