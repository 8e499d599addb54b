/* What the files of the hierarchy pass share: hierarchy_program.c and hierarchy_control.c decide which
 * buffer holds which value of a program, hierarchy_steps.c writes the steps of the schedule. */
#ifndef TIGA_PASSES_HIERARCHY_H
#define TIGA_PASSES_HIERARCHY_H

#include "passes/pass_util.h"

typedef struct hier_size { /* bytes or dimension already written */
    ir_type type;          /* dtype NONE: dimension dim[0] alone; TUPLE: its blocks of a total */
    ir_id id;
} hier_size;

enum { HIER_NAMES = 1024 };
typedef struct hier_name {
    const char *text;
    int64_t last; /* version */
    struct hier_name *next;
} hier_name;

typedef struct hier {
    ir_module *m;
    ir_func *t;      /* the task function */
    ir_region start; /* binds, sizes: run once, stand before everything else */
    ir_builder b;    /* where the schedule is being written */
    base_arena *scratch;
    const char *tier;
    hier_size *sizes;
    size_t n_sizes, cap_sizes;
    hier_name *names[HIER_NAMES]; /* of instances made, by hash */
    base_str *err;
} hier;

/* One launch: instances, domain, sizes of the symbols of the loop function. */
typedef struct hier_launch {
    const ir_func *loop;
    int64_t graph;
    const ir_id *in, *out;
    size_t n_in, n_out;
    ir_id rows;
    const ir_id *dims; /* loop->n_syms */
    bool ahead; /* the next launch adds up its rows */
} hier_launch;

/* hierarchy_steps.c */
void hier_begin(hier *h, ir_module *m, const ir_func *like, pass_context *ctx, base_str *err);
void hier_end(hier *h);
ir_id hier_i64(hier *h, int64_t v);
ir_id hier_dim(hier *h, ir_dim d);               /* dims of the task function */
ir_id hier_bytes(hier *h, const ir_type *t);     /* of a whole array */
ir_id hier_start2(hier *h, ir_opcode code, ir_id a, ir_id c); /* i64 arithmetic, at the beginning */
ir_id hier_units(hier *h, ir_dim rows);          /* blocks of a total */
ir_id hier_partials(hier *h, const ir_type *one, ir_dim rows); /* bytes of one value for each of the blocks */
ir_id hier_bind(hier *h, const char *kind, size_t index, const char *name);
ir_id hier_instance(hier *h, ir_id bytes, const char *name);
void hier_effect1(hier *h, ir_opcode code, ir_id a);
void hier_acquire(hier *h, ir_id inst, bool write);
void hier_copy(hier *h, ir_id from, ir_id to);
bool hier_is_among(const ir_id *list, size_t n, ir_id id);
ir_id hier_read_i64(hier *h, ir_id inst);
ir_id hier_read_bool(hier *h, ir_id inst);
ir_id hier_get(hier *h, ir_id tuple, size_t index);
void hier_emit_launch(hier *h, const hier_launch *l);

/* hierarchy_program.c */
bool hier_program(ir_module *m, const ir_func *p, pass_context *ctx, base_str *err);

#endif
