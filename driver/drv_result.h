/* What a compilation gives back: the public tigac_result with the memory behind it. */
#ifndef DRV_RESULT_H
#define DRV_RESULT_H

#include "base/base.h"
#include "tiga/compiler.h"

typedef struct drv_result {
    tigac_result pub; /* first: the caller's pointer is this */
    base_arena *arena; /* everything of the compilation; freed with the result */
    base_str outputs[TIGAC_OUTPUTS];
    base_str rendered, error, dumps;
    bool out_of_memory;
} drv_result;

drv_result *drv_result_new(void); /* NULL when out of memory */
/* Copies diagnostics into the public form and renders them (appended to what is there). */
void drv_result_add_diags(drv_result *r, base_diags *d, bool color);
/* A warning or an error that has no place in the text. */
void drv_result_add_plain(drv_result *r, bool is_error, const char *id, const char *file, const char *text, bool color);
/* Points pub at the strings; without outputs when status is not OK. */
void drv_result_publish(drv_result *r, tigac_status status);

#endif
