/* codegen: loop and task IR to text: C, CUDA, the C header, JSON.  Same module, same options: same bytes. */
#ifndef TIGA_CODEGEN_H
#define TIGA_CODEGEN_H

#include "ir/ir.h"

typedef struct cg_options {
    const char *source_name;     /* shown in the banner: base name of the .tg file */
    const char *source_hash;     /* 32 hexadecimal digits */
    const char *compiler;        /* "tigac 0.1.0" */
    const char *target_cpu;      /* recorded in the module table; "" for --emit=c (any) */
    const char *target_features; /* likewise */
    const char *header_name;     /* file name of the header, for its include guard */
    int opt_level;
    int source_bits; /* of cg_emit_c: 0: kernels for 32- and 64-bit sources, and each exported one as a plain function;
                        32, 64 or 96 (both): only what the module's table needs, for these */
} cg_options;

/* m has been through the whole pipeline (graph, loop and task functions).  false: what the module asks for cannot be
 * emitted; reason in err. */
bool cg_emit_c(const ir_module *m, const cg_options *o, base_str *out, base_str *err);
/* The same as files for compilers at work side by side, which a linker makes one of: the kernels are dealt to them, the rest
 * is in the first, which has the most to do.  How many there are depends on the module only; the others stay empty. */
enum { CG_MOST_PARTS = 16 };
bool cg_emit_c_parts(const ir_module *m, const cg_options *o, base_str out[CG_MOST_PARTS], base_str *err);
bool cg_emit_cuda(const ir_module *m, const cg_options *o, base_str *out, base_str *err); /* cuda schedule */
bool cg_emit_header(const ir_module *m, const cg_options *o, base_str *out, base_str *err);
bool cg_emit_json(const ir_module *m, const cg_options *o, base_str *out, base_str *err);

#endif
