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
/* The same as two files for two compilers at work side by side: the kernels are dealt to both, the rest is in the first.  The
 * second stays empty when there is not enough for both.  o->source_bits is not 0. */
bool cg_emit_c_halves(const ir_module *m, const cg_options *o, base_str out[2], base_str *err);
bool cg_emit_cuda(const ir_module *m, const cg_options *o, base_str *out, base_str *err); /* cuda schedule */
bool cg_emit_header(const ir_module *m, const cg_options *o, base_str *out, base_str *err);
bool cg_emit_json(const ir_module *m, const cg_options *o, base_str *out, base_str *err);

#endif
