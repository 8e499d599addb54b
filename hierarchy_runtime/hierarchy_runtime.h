/* hierarchy_runtime: what a module's host function stands on.  A call of a kernel or a program gets a frame; the frame
 * holds the physical instances (name@version in a tier) of that call and the account of their bytes.  The order of
 * reading: hr_call.c, hr_bind.c, hr_dims.c, hr_output.c, hr_instance.c, hr_host.c.
 *
 * State of an instance (each arrow is a step of the schedule; a step out of order is E_INTERNAL and names it):
 *
 *      alloc/bind result        acquire write            done
 *   ------------------> EMPTY ---------------> WRITING --------> VALID <--- bind param
 *                                                 ^                |  ^
 *                                                 +----------------+  | done (last reader)
 *                                     acquire write (no readers)   v  |
 *                                                               READING (counted)      release: EMPTY, VALID -> RELEASED */
#ifndef TIGA_HIERARCHY_RUNTIME_H
#define TIGA_HIERARCHY_RUNTIME_H

#include "runtime/runtime.h"

typedef enum hr_origin { HR_PARAM, HR_RESULT, HR_BUFFER } hr_origin;

struct tiga_instance {
    tiga_instance *next;  /* all of a frame, or the queue of released ones */
    tiga_instance *prev;
    const char *name;     /* lives as long as the module */
    int64_t version, bytes;
    int32_t tier, dtype;  /* dtype -1: not known (buffers) */
    hr_origin origin;
    bool bound, valid, writing, released;
    int64_t readers;
    void *data;
    tiga_instance *below; /* on the stack of the frame */
};

enum { HR_QUARANTINE = 64 }; /* released instances that are kept so that a late use is seen */

/* Memory of buffers that a prepared call keeps from launch to launch: new pages cost as much as a pass over the edges.  The limits
 * are for contexts with a budget. */
enum { HR_POOL_BLOCKS = 32, HR_POOL_BLOCK_BYTES = 64 << 10, HR_POOL_BYTES = 1 << 20 };
typedef struct hr_pool {
    bool keeps; /* otherwise it stays empty */
    int n;
    int64_t bytes; /* of all blocks */
    struct {
        void *data;
        int64_t bytes;
    } block[HR_POOL_BLOCKS];
} hr_pool;

/* One call: checked, then run once or, when it is prepared, many times.  All arrays live in one block (or in `small`). */
/* A launch that waits for the next one, which may follow it block by block (hr_host.c). */
enum { HR_AHEAD_BUFFERS = 24, HR_AHEAD_DIMS = 16 };
typedef struct hr_ahead {
    bool waits;
    rt_launch l;
    void *data[HR_AHEAD_BUFFERS];
    int64_t dims[HR_AHEAD_DIMS];
    tiga_instance *of[HR_AHEAD_BUFFERS];
} hr_ahead;

typedef struct hr_frame {
    tiga_context *ctx;
    const tiga_function_info *fn;
    tiga_graph *const *graphs;
    int n_graphs;
    const tiga_csr **graph_of; /* [n_params]: of graph parameters; in kernels graph_of[0] is the one graph */
    tiga_graph **handle_of; /* [n_params]: the same graphs as handles */
    const tiga_array **params; /* [n_params]; NULL for graphs */
    tiga_array **results; /* [n_results] */
    int64_t *dims; /* [n_dims]; -1 while unknown */
    const char **dim_from; /* [n_dims]: the argument that fixed it, NULL: the graph */
    bool *made; /* [n_results]: allocated by this call */
    tiga_instance *bound; /* [n_params + n_results] */
    tiga_instance buffers; /* head of the ring of live buffers */
    tiga_instance gone; /* head of the ring of released ones */
    tiga_instance spare; /* head of the ring of those of earlier launches */
    int n_gone;
    tiga_instance *saved; /* newest of the stack; they are buffers too */
    hr_pool pool;
    hr_ahead ahead;
    tiga_status status; /* first failure of a host function */
    int64_t charged; /* bytes this frame has taken from the host account */
    tiga_call_stats stats;
    void *block;
    uint64_t small[256];
} hr_frame;

/* ---- hr_host.c: the table --------------------------------------------------------------------------------------------- */
tiga_status hr_run_ahead(hr_frame *f); /* the launch that waits, if any */
/* ---- hr_call.c: tiga_call, tiga_prepare: a frame is made, then launched ------------------------------------------ */
/* ---- hr_bind.c: which array is which parameter -------------------------------------------------------------------- */
tiga_status hr_bind_graphs(hr_frame *f, tiga_graph *const *graphs, int n_graphs);
tiga_status hr_bind_params(hr_frame *f, const tiga_binding *in, int n_in);
tiga_status hr_bind_results(hr_frame *f, const tiga_binding *out, int n_out);
/* ---- hr_dims.c: open dimensions, and whether every array has the size it must have ----------------------------- */
tiga_status hr_solve_dims(hr_frame *f);
/* Rows of the axis that `at` stands for; -1: no such axis. */
int64_t hr_axis_size(const hr_frame *f, const tiga_field_info *field);
int64_t hr_dim_value(const hr_frame *f, int64_t shape_entry); /* -1: not known */
tiga_status hr_check_array(hr_frame *f, const tiga_field_info *field, const tiga_array *a, bool result);
/* ---- hr_output.c: results are allocated; none may share memory with what is read ----------------------------------- */
tiga_status hr_make_results(hr_frame *f);
tiga_status hr_shape_results(hr_frame *f); /* those without data: all but their data */
tiga_status hr_check_overlap(hr_frame *f);
void hr_drop_results(hr_frame *f); /* after a failure: those that this call allocated */
/* ---- hr_instance.c ---------------------------------------------------------------------------------------------------- */
void hr_frame_open(hr_frame *f); /* once: binds the arrays */
void hr_frame_begin(hr_frame *f); /* before each launch: arguments have a value, results have none */
tiga_status hr_frame_check(hr_frame *f); /* after success: nothing pinned, every result written */
void hr_frame_end(
    hr_frame *f); /* after each launch: releases what is left, pinned or not, and gives the account back */
void hr_frame_close(hr_frame *f); /* once, after the last hr_frame_end */
tiga_status hr_charge(hr_frame *f, int64_t n_bytes, const char *what);
void hr_discharge(hr_frame *f, int64_t n_bytes);
tiga_instance *hr_buffer_new(hr_frame *f); /* NULL: out of memory */
bool hr_pool_take(hr_frame *f, tiga_instance *i); /* memory for i->bytes, charged; false: there is none, or no budget */
void hr_buffer_release(hr_frame *f, tiga_instance *i);
/* ---- hr_host.c: the table ------------------------------------------------------------------------------------------------ */
extern const tiga_host hr_host_table;

#endif
