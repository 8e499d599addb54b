/* drv_nvrtc: CUDA C text to a cubin through NVRTC, which is opened at run time: nothing of CUDA is linked, and a machine
 * without it can still do everything else.  Needs no GPU.  Depends on base only.
 *
 * Threads: one drv_nvrtc may be used from one thread at a time. */
#ifndef TIGA_DRV_NVRTC_H
#define TIGA_DRV_NVRTC_H

#include "base/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct drv_nvrtc drv_nvrtc;

/* Opens the library: the file that TIGA_NVRTC names when it is set (and then no other), else libnvrtc.so, .so.13, .so.12
 * on the search path of the system, then in /usr/local/cuda/lib64.  NULL: err says what was tried. */
drv_nvrtc *drv_nvrtc_open(base_str *err);
void drv_nvrtc_close(drv_nvrtc *n); /* NULL is fine */
void drv_nvrtc_version(const drv_nvrtc *n, int *major, int *minor);
bool drv_nvrtc_has_arch(const drv_nvrtc *n, const char *arch); /* "sm_90" */
void drv_nvrtc_archs(const drv_nvrtc *n, base_str *out); /* "sm_75, sm_80, ..." */

/* Compiles `text` for `arch` ("sm_90") with -fmad=false --std=c++17 -default-device.  name stands in messages.  true: the
 * cubin is in *cubin.  log: what the compiler said, also when it succeeded ("" then, if the text is clean); on failure it
 * is never empty. */
bool drv_nvrtc_compile(drv_nvrtc *n, const char *text, const char *name, const char *arch, base_str *cubin,
                       base_str *log);

/* The same from opening to closing; err has the reason, or the compiler's log. */
bool drv_nvrtc_cubin(const char *text, const char *name, const char *arch, base_str *cubin, base_str *err);

/* What a kernel of a cubin takes.  local_bytes > 0: registers were spilled, or a local array did not fit in registers. */
typedef struct drv_kernel_usage {
    const char *name;
    int64_t registers; /* per thread */
    int64_t local_bytes; /* stack frame per thread */
    int64_t shared_bytes; /* per block, static */
    int64_t code_bytes;
} drv_kernel_usage;

/* Reads them from the cubin itself (no driver, no GPU), in the order of its symbols.  false: it is no cubin. */
bool drv_cubin_usage(base_arena *arena, const void *cubin, size_t n_bytes, drv_kernel_usage **out, size_t *n_out,
                     base_str *err);

#ifdef __cplusplus
}
#endif
#endif
