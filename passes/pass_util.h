/* passes/pass_util: small things several passes need.  Private to this folder. */
#ifndef TIGA_PASS_UTIL_H
#define TIGA_PASS_UTIL_H

#include "passes/passes.h"

/* Replacements: to[id] = the operation to use instead, 0 = itself.  Chains are followed. */
typedef struct pass_map {
    ir_id *to;
    uint32_t n; /* ids below n may be replaced */
} pass_map;
pass_map pass_map_new(const ir_func *f, base_arena *scratch);
ir_id pass_map_find(const pass_map *map, ir_id id);
void pass_map_args(const pass_map *map, ir_op *op);

/* Calls fn for every function of the levels in `levels` (bit 1 << ir_level); stops at the first false. */
typedef bool pass_func_fn(ir_module *m, ir_func *f, pass_context *ctx, base_str *err);
bool pass_each_func(ir_module *m, unsigned levels, pass_func_fn *fn, pass_context *ctx, base_str *err);
#define PASS_ALL_LEVELS 15u

/* A new operation at the end of a region, with a region of its own when it is a loop; arguments of a loop, sizes and whole
 * numbers as operands. */
ir_id pass_put(ir_module *m, ir_func *f, ir_region *r, ir_opcode code, ir_type type, const ir_id *args, size_t n);
ir_id pass_put_arg(ir_module *m, ir_func *f, ir_region *r, int64_t index);
ir_id pass_put_number(ir_module *m, ir_func *f, ir_region *r, int64_t v);
ir_id pass_put_size(ir_module *m, ir_func *f, ir_region *r, ir_dim d);

ir_id pass_loop_arg(const ir_func *f, const ir_op *loop, int64_t index); /* 0: it has none */

/* Keeps the operations of a region, and of the regions in it, for which keep[id] is set. */
void pass_sweep(ir_func *f, ir_region *r, const bool *keep);

/* Adds to ctx->notes when there are any; texts are kept by the module's arena. */
void pass_note_add(pass_context *ctx, ir_module *m, pass_note note);

bool pass_has_level(const ir_module *m, ir_level level);
ir_type pass_type_drop_lead(const ir_type *t); /* the feature axes of a tensor of a program */
/* Does the operation say a dimension?  Where it is copied into another function that has to change. */
bool pass_says_dim(const ir_op *op, ir_attr_key *key);
bool pass_is_dear(
    const ir_op *op); /* division, remainder, functions of one and two values: more than an addition or so */
bool pass_reads_at(const ir_op *op, const char *at); /* a field, read at this end: src dst edge param */
/* Has the reduction a state of an open row of features and of numbers that take a function of mathematics, as a softmax has?
 * CPUs walk once for all of them: each tile of the features would compute the numbers again. */
bool pass_walks_whole(const ir_func *f, const ir_op *op);

#endif
