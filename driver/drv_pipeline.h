/* The way of the JIT through drv_pipeline.c. */
#ifndef DRV_PIPELINE_H
#define DRV_PIPELINE_H

#include "codegen/codegen.h"
#include "driver/drv_clang.h"
#include "driver/drv_result.h"

/* Text to objects for this process (those in use first) with kernels for these source bits (32, 64, 96).  *out as in
 * tigac_compile; emit, target, cpu, passes and dumps of the options do not matter.  `stop` may be NULL; when it was asked
 * for, *out is an error. */
tigac_status drv_compile_objects(const char *text, size_t n_bytes, const tigac_options *options, const drv_cpu *cpu,
                                 int source_bits, drv_stop *stop, base_str objects[CG_MOST_PARTS], drv_result **out);

#endif
