/* The kernels of a batch as CUDA text, built for the simulated device of tests/cuda_sim. */
#ifndef DIFF_CUDA_H
#define DIFF_CUDA_H

#include "diff.h"

typedef struct diff_cuda diff_cuda;
/* text: graph IR. NULL with a reason on failure. */
diff_cuda *diff_cuda_new(const char *text, size_t n, base_str *err);
void diff_cuda_free(diff_cuda *c); /* NULL is fine */
/* Runs kernel c->f and fills out; false with a reason (the device's fault report, for one). */
bool diff_cuda_run(diff_cuda *d, const diff_case *c, void **out, base_str *err);

#endif
