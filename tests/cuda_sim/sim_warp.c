/* sim_warp: barriers of a block and collectives of a warp.  A collective completes when every lane its mask names waits
 * at the same one: same operation, same line, same mask.  CUDA leaves everything else undefined, so here it is a fault.
 *
 * Happens-before, for the race check: __syncthreads begins a new epoch of the block; __syncwarp joins the clocks of its
 * lanes; shuffles and votes order nothing. */
#include "sim_internal.h"

#include <stdio.h>
#include <string.h>

enum { SHFL, SHFL_UP, SHFL_DOWN, SHFL_XOR, BALLOT, SYNCWARP }; /* as in cuda_sim.h */
static const char *const kind_names[] = {"__shfl_sync",     "__shfl_up_sync", "__shfl_down_sync",
                                         "__shfl_xor_sync", "__ballot_sync",  "__syncwarp"};

SIM_API void cuda_sim_barrier(int line);
SIM_API uint64_t cuda_sim_collective(int kind, int line, unsigned mask, uint64_t bits, int lane, int width);
SIM_API unsigned cuda_sim_activemask(void);
SIM_API void cuda_sim_trap(const char *why, int line);

/* ---- __syncthreads ---- */

static void release_barrier(void) {
    sim_dev.n_at_barrier = 0;
    sim_dev.epoch++;
    for (unsigned i = 0; i < sim_dev.n_threads; i++)
        sim_dev.threads[i].state = SIM_READY;
}

void cuda_sim_barrier(int line) {
    sim_thread *t = sim_dev.current;
    if (sim_dev.n_exited > 0)
        sim_fail("__syncthreads at line %d, but %u threads of the block have exited", line, sim_dev.n_exited);
    for (unsigned i = 0; i < sim_dev.n_threads; i++) {
        const sim_thread *o = &sim_dev.threads[i];
        if (o->state == SIM_AT_BARRIER && o->line != line)
            sim_fail("divergent barrier: __syncthreads at line %d, while thread %u waits at line %d", line, o->index,
                     o->line);
    }
    t->line = line;
    t->state = SIM_AT_BARRIER;
    if (++sim_dev.n_at_barrier == sim_dev.n_threads)
        release_barrier();
    else
        sim_wait();
}

/* ---- warps ---- */

static sim_thread *lane_of(const sim_thread *t, unsigned lane) {
    unsigned i = t->index / SIM_WARP * SIM_WARP + lane;
    return i < sim_dev.n_threads ? &sim_dev.threads[i] : NULL;
}

/* The lane that a shuffle reads, by the rules of PTX shfl.sync. */
static unsigned source_lane(const sim_thread *t) {
    unsigned lane = t->index % SIM_WARP, width = (unsigned)t->width, base = lane & ~(width - 1);
    int64_t from = lane, arg = t->lane_arg;
    if (t->kind == SHFL)
        from = base + ((unsigned)arg & (width - 1));
    else if (t->kind == SHFL_UP && (int64_t)lane - arg >= base)
        from = (int64_t)lane - arg;
    else if (t->kind == SHFL_DOWN && (int64_t)lane + arg < base + width)
        from = (int64_t)lane + arg;
    else if (t->kind == SHFL_XOR && ((unsigned)arg ^ lane) < base + width)
        from = (unsigned)arg ^ lane;
    return (unsigned)from;
}

static void check_arrival(const sim_thread *t) {
    unsigned own = t->index % SIM_WARP;
    const char *name = kind_names[t->kind];
    if (t->width < 1 || t->width > SIM_WARP || (t->width & (t->width - 1)))
        sim_fail("%s at line %d: width %d is not a power of two up to 32", name, t->line, t->width);
    if (!(t->mask >> own & 1))
        sim_fail("%s at line %d: mask 0x%08x does not name the calling lane", name, t->line, t->mask);
    for (unsigned l = 0; l < SIM_WARP; l++) {
        const sim_thread *o = lane_of(t, l);
        if (!(t->mask >> l & 1) || l == own)
            continue;
        if (!o || o->state == SIM_EXITED)
            sim_fail("%s at line %d: mask 0x%08x names lane %u, which %s", name, t->line, t->mask, l,
                     o ? "has exited" : "does not exist");
        if (o->state == SIM_AT_BARRIER)
            sim_fail("%s at line %d: lane %u waits at __syncthreads, line %d", name, t->line, l, o->line);
        if (o->state == SIM_AT_COLLECTIVE && (o->mask != t->mask || o->kind != t->kind || o->line != t->line))
            sim_fail("%s at line %d with mask 0x%08x, while lane %u waits at %s, line %d, with mask 0x%08x", name,
                     t->line, t->mask, l, kind_names[o->kind], o->line, o->mask);
    }
    if (t->kind <= SHFL_XOR && !(t->mask >> source_lane(t) & 1))
        sim_fail("%s at line %d reads lane %u, which is not in mask 0x%08x", name, t->line, source_lane(t), t->mask);
}

static bool all_arrived(const sim_thread *t) {
    for (unsigned l = 0; l < SIM_WARP; l++)
        if ((t->mask >> l & 1) && lane_of(t, l)->state != SIM_AT_COLLECTIVE)
            return false;
    return true;
}

static void join_clocks(const sim_thread *t) {
    uint32_t joined[SIM_WARP] = {0};
    for (unsigned l = 0; l < SIM_WARP; l++)
        for (unsigned u = 0; (t->mask >> l & 1) && u < SIM_WARP; u++)
            if (lane_of(t, l)->clock[u] > joined[u])
                joined[u] = lane_of(t, l)->clock[u];
    for (unsigned l = 0; l < SIM_WARP; l++)
        if (t->mask >> l & 1) {
            memcpy(lane_of(t, l)->clock, joined, sizeof joined);
            lane_of(t, l)->clock[l]++;
        }
}

static void complete(const sim_thread *t) {
    uint64_t ballot = 0;
    for (unsigned l = 0; l < SIM_WARP; l++)
        if ((t->mask >> l & 1) && lane_of(t, l)->value)
            ballot |= 1ull << l;
    for (unsigned l = 0; l < SIM_WARP; l++) {
        sim_thread *o = lane_of(t, l);
        if (!(t->mask >> l & 1))
            continue;
        o->result = t->kind == BALLOT ? ballot : t->kind == SYNCWARP ? 0 : lane_of(o, source_lane(o))->value;
        o->state = SIM_READY;
    }
    if (t->kind == SYNCWARP)
        join_clocks(t);
}

uint64_t cuda_sim_collective(int kind, int line, unsigned mask, uint64_t bits, int lane, int width) {
    sim_thread *t = sim_dev.current;
    t->kind = kind;
    t->line = line;
    t->mask = mask;
    t->value = bits;
    t->lane_arg = lane;
    t->width = width;
    check_arrival(t);
    t->state = SIM_AT_COLLECTIVE;
    if (all_arrived(t))
        complete(t);
    else
        sim_wait();
    return t->result;
}

/* The least that the hardware promises: the caller itself.  A text that relies on more is wrong. */
unsigned cuda_sim_activemask(void) { return 1u << (sim_dev.current->index % SIM_WARP); }

void cuda_sim_trap(const char *why, int line) { sim_fail("%s at line %d", why, line); }

void sim_warp_on_exit(sim_thread *t) {
    if (sim_dev.n_at_barrier > 0)
        sim_fail("the thread exits while %u threads of its block wait at __syncthreads", sim_dev.n_at_barrier);
    for (unsigned l = 0; l < SIM_WARP; l++) {
        const sim_thread *o = lane_of(t, l);
        if (o && o->state == SIM_AT_COLLECTIVE && (o->mask >> (t->index % SIM_WARP) & 1))
            sim_fail("the thread exits while lane %u waits for it at %s, line %d", l, kind_names[o->kind], o->line);
    }
}

void sim_explain_deadlock(void) {
    char text[2048];
    size_t n = 0;
    for (unsigned i = 0; i < sim_dev.n_threads && n + 128 < sizeof text; i++) {
        const sim_thread *t = &sim_dev.threads[i];
        if (t->state == SIM_AT_BARRIER)
            n += (size_t)snprintf(text + n, sizeof text - n, "\n  thread %u waits at __syncthreads, line %d", i,
                                  t->line);
        else if (t->state == SIM_AT_COLLECTIVE)
            n += (size_t)snprintf(text + n, sizeof text - n, "\n  thread %u waits at %s, line %d, mask 0x%08x", i,
                                  kind_names[t->kind], t->line, t->mask);
    }
    sim_fail("block %u: deadlock%s", sim_dev.block_index, text);
}
