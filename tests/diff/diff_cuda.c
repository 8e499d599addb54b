/* The kernels of a batch as CUDA text on the simulated device. */
#include "diff_cuda.h"

#include "sim_loop.h"

#include "tiga/compiler.h"

#include <stdlib.h>
#include <string.h>

struct diff_cuda {
    base_arena *arena;
    ir_module *loops;
    sim_module *device;
    uint64_t launches;
};

static bool build(diff_cuda *c, const tigac_result *r, base_str *err) {
    base_diags diags;
    const char *loops = base_arena_strdup(c->arena, r->outputs[TIGAC_LOOP_IR].bytes);
    base_diags_init(&diags, c->arena, "loops.ir", loops);
    c->loops = ir_parse(c->arena, "loops.ir", loops, &diags);
    if (!c->loops) {
        base_diags_render(&diags, false, err);
        return false;
    }
    char *log = NULL;
    c->device = sim_module_new(r->outputs[TIGAC_CUDA].bytes, "/tmp", &log);
    if (!c->device) base_str_add(err, log ? log : "the CUDA text does not compile");
    free(log);
    return c->device != NULL;
}

diff_cuda *diff_cuda_new(const char *text, size_t n, base_str *err) {
    tigac_options o = tigac_defaults();
    o.file_name = "random.ir";
    o.target = "cuda";
    o.emit = TIGAC_EMIT(TIGAC_CUDA) | TIGAC_EMIT(TIGAC_LOOP_IR);
    tigac_result *r = NULL;
    diff_cuda *c = calloc(1, sizeof *c);
    c->arena = base_arena_new();
    bool good = tigac_compile(text, n, &o, &r) == TIGAC_OK;
    if (!good) base_str_add(err, r ? (*r->rendered ? r->rendered : r->error) : "out of memory");
    good = good && build(c, r, err);
    tigac_result_free(r);
    if (good) return c;
    diff_cuda_free(c);
    return NULL;
}

void diff_cuda_free(diff_cuda *c) {
    if (!c) return;
    sim_module_free(c->device);
    base_arena_free(c->arena);
    free(c);
}

static bool walks_edges(const ir_func *f) {
    for (ir_id id = 1; id < f->n_ops; id++)
        if (ir_at(f, id)->code == IR_EDGES) return true;
    return false;
}

bool diff_cuda_run(diff_cuda *d, const diff_case *c, void **out, base_str *err) {
    const ir_func *loop = ir_func_find(d->loops, c->f->name, IR_LEVEL_LOOP);
    if (!loop) {
        base_str_add(err, "no loop function of that name");
        return false;
    }
    int64_t dims[16] = {0};
    for (size_t i = 0; i < loop->n_syms; i++) {
        uint32_t s;
        if (ir_sym_find(c->f, loop->syms[i], &s)) dims[i] = c->dims[s];
    }
    ir_call_data call = {.graph = &c->graph->data, .dims = dims, .in = (const void *const *)c->in, .out = out,
                         .n_rows = c->graph->data.n_dst};
    d->launches++;
    /* every order and both widths of sources come up */
    sim_loop_options o = {.wide = walks_edges(loop) && d->launches % 2 == 0, .order = (sim_order)(d->launches % 3),
                          .seed = d->launches};
    return sim_run_loop(d->device, loop->name, loop, &call, &o, err);
}
