/* Which function a name in emitted code stands for: the libm and libc of this process. */
#include "driver/drv_symbols.h"

#include <math.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *name;
    void *address;
} table[] = {
#define DRV_MATH(name) {#name, (void *)name}, {#name "f", (void *)name##f},
#define DRV_LIBC(name) {#name, (void *)name},
#include "driver/drv_symbols.def"
#undef DRV_MATH
#undef DRV_LIBC
};

void *drv_symbol_find(const char *name) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(table[i].name, name))
            return table[i].address;
    return NULL;
}
