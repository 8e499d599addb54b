/* The table of errors, for --explain and for reporting. */
#include "frontend/fe.h"

#include <string.h>

#define EXAMPLE(heading, text) "\n\n" heading ":\n\n```tg\n" text "```"

static const fe_error_desc ERRORS[] = {
#define FE_ERROR(ID, title, text, wrong, right) {#ID, title, text EXAMPLE("Wrong", wrong) EXAMPLE("Right", right) "\n"},
#include "frontend/fe_errors.def"
#undef FE_ERROR
};

const fe_error_desc *fe_error_at(size_t i) { return i < FE_ERROR_COUNT ? &ERRORS[i] : NULL; }

const fe_error_desc *fe_error_find(const char *id) {
    for (size_t i = 0; i < FE_ERROR_COUNT; i++)
        if (strcmp(ERRORS[i].id, id) == 0)
            return &ERRORS[i];
    return NULL;
}
