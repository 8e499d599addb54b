/* What the files share that write the schedule of a program: hierarchy_program.c (slots, calls, the top of a program),
 * hierarchy_control.c (repeat, while, if). */
#ifndef TIGA_PASSES_HIERARCHY_PLAN_H
#define TIGA_PASSES_HIERARCHY_PLAN_H

#include "passes/hierarchy.h"

/* Where one value of the program is. */
typedef struct hier_slot {
    ir_type type;
    ir_id inst;    /* 0: not yet */
    uint32_t uses; /* operands that name it */
    size_t last;   /* operation at the top of the program that uses it last */
    ir_id home;    /* the repeat or arm whose region computes it, 0: the top */
    bool owned;    /* released after its last use */
    bool placed;   /* of a call or an if: written wherever it is wanted */
    bool elsewhere; /* written straight into the spare of a carried value, or into what an if gives */
} hier_slot;

typedef struct hier_made {
    ir_id inst, bytes;
    bool taken; /* by the second arm of the if whose first arm made it */
} hier_made;

/* The values a repeat carries. */
typedef struct hier_carried {
    size_t n, n_spare;
    ir_id *current, *spare; /* in front of the loop; spare[i] = 0: not needed */
    ir_id *now, *other;     /* the same inside: arguments of the region */
    bool *direct;           /* the value yielded is written straight into the spare */
} hier_carried;

typedef struct hier_plan {
    hier h;
    const ir_func *p;
    hier_slot *slots;
    size_t n_slots, cap_slots;
    uint32_t *first;    /* by id: first slot of the operation; slot 0 is none */
    hier_carried *carried; /* by id of a repeat */
    bool *ahead;        /* by id of a call: the next one adds up its rows */
    uint32_t *parts_at; /* by id of a call: its first in parts, which are the partial results of totals */
    ir_id *parts;
    size_t n_parts, cap_parts;
    ir_id *index;       /* by id: i64 values in the schedule */
    ir_id *results;     /* bound */
    unsigned n_carried, n_choices;
    bool nested;        /* inside a repeat or an if: what is made is listed, and released after the outermost one */
    hier_made *made;
    size_t n_made, cap_made;
    size_t reuse_from, reuse_to; /* of made: instances of the other arm, which never runs in the same round */
} hier_plan;

/* hierarchy_program.c */
hier_slot *hier_slot_of(hier_plan *s, ir_id v);
bool hier_is_value(const ir_op *op); /* has a slot */
ir_id hier_make(hier_plan *s, const ir_type *t, const char *name);
bool hier_make_results(hier_plan *s, ir_id call); /* buffers for the results of a call that have none yet */
bool hier_emit_call(hier_plan *s, ir_id id);
void hier_make_popped(hier_plan *s, ir_id pop);
void hier_emit_stack(hier_plan *s, ir_id id); /* of push and pop; else nothing */
ir_id hier_rounds(hier_plan *s, ir_id v); /* the count of a repeat, as i64 */

/* hierarchy_control.c */
void hier_make_carried(hier_plan *s, ir_id repeat);
void hier_make_choice(hier_plan *s, ir_id choice);  /* what an if gives */
bool hier_make_arms(hier_plan *s, ir_id choice);    /* what its arms need */
bool hier_make_region(hier_plan *s, const ir_region *r); /* every buffer that the region of a repeat or an arm needs */
bool hier_emit_repeat(hier_plan *s, ir_id id, ir_id *loop);
bool hier_emit_choice(hier_plan *s, ir_id id);

#endif
