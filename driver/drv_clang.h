/* The Clang, LLVM and LLD 19 libraries behind a few C calls: emitted C to LLVM IR text or to objects, objects to a shared
 * object or to code in this process, all in memory.  No compiler, no header and no source file is read from the user's
 * machine; the link of a shared object reads only libm and libc, the very files this process runs with.
 *
 * Threads: any number of compiles and images at once; links of shared objects are serialised (LLD keeps globals). */
#ifndef DRV_CLANG_H
#define DRV_CLANG_H

#include "base/base.h"
#include "driver/drv_stop.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct drv_cpu {
    base_str name; /* LLVM's name: "znver4", "x86-64-v3" */
    base_str switches; /* for the code generator: "+avx2,-avx512f,..." ; empty: what the name implies */
    base_str features; /* what the code may use beyond plain x86-64: "avx,avx2,bmi,..." */
} drv_cpu;
/* name NULL or "native": this machine.  false: unknown, with the known names in err. */
bool drv_cpu_resolve(const char *name, drv_cpu *out, base_str *err);
void drv_cpu_fini(drv_cpu *cpu);

typedef enum drv_clang_kind { DRV_CLANG_OBJECT, DRV_CLANG_LLVM_IR } drv_clang_kind;
typedef struct drv_clang_options {
    const char *name; /* shown in messages and recorded in the object: "model.c" */
    const drv_cpu *cpu;
    int opt_level; /* 0 .. 3 */
    drv_clang_kind kind;
    drv_stop *
        stop; /* or NULL; by drv_clang_objects and drv_clang_module only: when it was asked for, what comes out is not to be used */
    bool unwind; /* tables for debuggers and exceptions, which nothing that kernels call throws */
} drv_clang_options;
/* false: Clang's own messages are in err (that is a fault of ours: emitted C always compiles). */
bool drv_clang_compile(const char *text, size_t n, const drv_clang_options *o, base_str *out, base_str *err);

typedef struct drv_bytes {
    const char *data;
    size_t n;
} drv_bytes;
/* C texts that together are a module to a shared object, on as many threads as are of use (base_default_threads), but all such
 * calls of a process together start no more helpers than one would; the bytes do not depend on how many there were.  o->kind is DRV_CLANG_OBJECT; soname may be NULL. */
bool drv_clang_module(const drv_bytes *texts, size_t n, const drv_clang_options *o, const char *soname, base_str *out,
                      base_str *err);
/* The same to an object for each text. */
bool drv_clang_objects(const drv_bytes *texts, size_t n, const drv_clang_options *o, base_str *objects, base_str *err);

/* ---- just in time ---- */
/* Objects made ready to run: code that cannot be written, data that cannot be run. */
typedef struct drv_image drv_image;
typedef enum drv_image_status {
    DRV_IMAGE_OK,
    DRV_IMAGE_DAMAGED, /* these are no objects that drv_clang_objects made */
    DRV_IMAGE_UNKNOWN, /* they call a function that drv_symbols.def does not have */
    DRV_IMAGE_MEMORY
} drv_image_status;
/* The bytes are not needed afterwards. */
drv_image_status drv_image_load(const drv_bytes *objects, size_t n, drv_image **out, base_str *err);
void *drv_image_find(const drv_image *i, const char *symbol); /* NULL: not there */
int64_t drv_image_bytes(const drv_image *i);
void drv_image_free(drv_image *i); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
