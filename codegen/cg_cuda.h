/* codegen, internal: the emitter of CUDA kernels.  cg_cuda_plan.c decides which thread of a team does what and where
 * each var lives; cg_cuda_loop.c writes loops; cg_cuda_stmt.c everything else; cg_cuda.c functions and the file.
 *
 * A team of `team` threads computes a unit (docs/ir.md, "On a GPU").  Code is written in one of two modes:
 *   team    all threads run alike, scalars are the same in each, thread 0 does the stores;
 *   thread  inside a loop whose iterations are dealt out to the threads ("spread"): a thread is alone there.
 * With team = 1 everything is in thread mode and nothing is spread. */
#ifndef TIGA_CG_CUDA_H
#define TIGA_CG_CUDA_H

#include "codegen/cg.h"

#define CG_CU_TEAM 16
#define CG_CU_BLOCK 256          /* threads of a block: a multiple of the warp and of the team */
#define CG_CU_LOCAL_ELEMENTS                                                                                           \
    4096 /* of a constant shape that is local; larger ones are in scratch memory (docs/ir.md) */
#define CG_CU_UNROLL 64          /* a loop over a local array is unrolled up to this many steps */
#define CG_CU_BODY 40            /* and only when its body has at most this many operations */

typedef enum cg_cu_where {
    CG_CU_LOCAL,   /* registers or local memory of each thread: the whole array, or its part when axis >= 0 */
    CG_CU_SCRATCH  /* memory handed to the launch */
} cg_cu_where;

/* What the plan says of an operation. */
typedef struct cg_cu_site {
    ir_region *region;
    ir_id loop;      /* operation that holds the region; 0 at the top */
    ir_id spread_in; /* the spread loop around it; 0: team mode */
    ir_id tiles;     /* the tiles operation around it; 0: none */
    uint32_t n_uses; /* by live operations */
    ir_id user;      /* the last of them */
    bool live;
    /* loops */
    bool spread;
    ir_id base;        /* spread `loop`: base + i, not i, decides the thread */
    bool by_k;         /* lanes: element k, not l, decides the thread */
    bool unrolled;     /* written with a constant number of steps, guarded */
    int64_t steps;     /* of an unrolled loop, per thread */
    bool sixteen;      /* thread mode: steps of 16, so that accumulators are registers */
    /* var */
    cg_cu_where where;
    int axis;          /* dealt out along this axis: element e belongs to thread e mod team; -1: not dealt out */
    bool private;      /* var, partials: made in thread mode */
} cg_cu_site;

typedef struct cg_cu_line { /* a declaration, as bytes begin .. end of the output */
    const char *name;
    size_t begin, end;
} cg_cu_line;

typedef struct cg_cuda {
    const ir_module *m;
    ir_func *f;
    base_arena *arena;
    cg_helpers *help;
    bool (*team_collapse)[CG_DTYPES]; /* [kind][dtype]: shuffle trees in use */
    base_str *err;
    int team;
    int source_bits;
    bool failed;
    cg_cu_site *site;   /* by id */
    ir_id *scratch;     /* vars in scratch memory, in order */
    size_t n_scratch, cap_scratch;
    /* writing */
    cg_text w;
    cg_names names;
    const char **text;  /* by id: the value as an operand; of a var or partials its name */
    const char **bare;  /* by id: the same where no parentheses are needed; may be NULL */
    const char **slot;  /* by id of k and l of a spread lanes loop: which of the thread's own elements it is */
    const char **field, **dim;
    const char *offsets, *sources, *edge_of, *n_rows, *row_begin, *row_end, *scratch_arg, *t, *mask, *slice, *n_slices;
    cg_cu_line *optional;
    size_t n_optional, cap_optional;
    bool uses_t, uses_mask;
} cg_cuda;

/* cg_cuda_plan.c: false with a reason when the schedule contradicts itself */
bool cg_cu_plan(cg_cuda *c);
ir_id cg_cu_loop_arg(const cg_cuda *c, ir_id loop, size_t index);      /* 0 when the region has fewer */
int64_t cg_cu_extent(const cg_cuda *c, ir_id var, uint32_t axis);      /* -1: known at run time only */
bool cg_cu_const(const cg_cuda *c, ir_id id, int64_t *out);
bool cg_cu_foldable(const cg_cuda *c, ir_id id);

/* cg_cuda_stmt.c */
void cg_cu_region(cg_cuda *c, const ir_region *r);
const char *cg_cu_dim(cg_cuda *c, ir_dim d);
const char *cg_cu_t(cg_cuda *c);                       /* names that the prologue declares when they are asked for */
const char *cg_cu_var_elements(cg_cuda *c, ir_id var); /* of the whole array, an expression */
/* A line that declares `name`, taken back by cg_cu_drop_unused when nothing after it mentions the name. */
void cg_cu_optional(cg_cuda *c, const char *name, const char *line);
void cg_cu_drop_unused(cg_cuda *c, size_t mark); /* for the lines since c->n_optional was mark */
/* Declares an argument of a loop's region, an optional line. */
void cg_cu_arg(cg_cuda *c, ir_id arg, const char *want, const char *expr);

/* cg_cuda_loop.c */
void cg_cu_loop(cg_cuda *c, ir_id id);

#endif
