/* Whole files, written by base/: a failure becomes the context's. */
#include "runtime/runtime.h"

tiga_status rt_file_write(tiga_context *ctx, const char *path, const base_part *parts, int n_parts) {
    base_str why = {0};
    tiga_status status = TIGA_OK;
    if (!base_file_write_parts(path, parts, (size_t)n_parts, &why))
        status = why.failed ? rt_fail(ctx, TIGA_E_MEMORY, "%s: out of memory", path)
                            : rt_fail(ctx, TIGA_E_FILE, "%s", base_str_text(&why));
    base_str_fini(&why);
    return status;
}
