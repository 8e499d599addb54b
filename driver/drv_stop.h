/* Is a compile to be given up?  Asked from any of its threads, at least between functions and between passes; once the answer
 * was yes it stays, and whatever the compile made is thrown away. */
#ifndef DRV_STOP_H
#define DRV_STOP_H

#include <stdbool.h>
#include <stddef.h>

typedef struct drv_stop {
    bool (*asked)(void *user);
    void *user;
    bool seen; /* only through the functions below */
} drv_stop;

/* It has been: what was made is not whole. */
static inline bool drv_stop_seen(const drv_stop *s) { return s && __atomic_load_n(&s->seen, __ATOMIC_RELAXED); }

/* NULL: never. */
static inline bool drv_stop_asked(drv_stop *s) {
    if (!s || drv_stop_seen(s))
        return s != NULL;
    if (!s->asked(s->user))
        return false;
    __atomic_store_n(&s->seen, true, __ATOMIC_RELAXED);
    return true;
}

#endif
