/* The named store: one folder, one snapshot a name. */
#include "hierarchy_runtime/hr_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST = 200 };

static tiga_status check_name(tiga_context *ctx, const char *name) {
    bool good = name && *name && *name != '.' && strlen(name) <= LONGEST;
    for (const char *p = good ? name : ""; *p; p++)
        good &= *p != '/' && *p != '\\' && (unsigned char)*p >= 32 && *p != 127;
    return good ? TIGA_OK
                : rt_fail(ctx, TIGA_E_ARGUMENT,
                          "'%.40s' cannot name a stored value: 1 to %d bytes without '/', '\\' and control characters, "
                          "not beginning with '.'",
                          name ? name : "", LONGEST);
}

static bool add_folder(base_str *s) {
    const char *own = secure_getenv("TIGA_STORE_DIR"), *data = secure_getenv("XDG_DATA_HOME"),
               *home = secure_getenv("HOME");
    if (own && *own)
        base_str_add(s, own);
    else if (data && data[0] == '/')
        base_str_addf(s, "%s/tiga", data);
    else if (home && home[0] == '/')
        base_str_addf(s, "%s/.local/share/tiga", home);
    else
        return false;
    return true;
}

/* Every folder of the path that is not there.  errno. */
static bool make_folders(char *path) {
    for (char *p = path + 1; *p; p++)
        if (*p == '/') {
            *p = 0;
            bool good = !base_file_injected() && (mkdir(path, 0700) == 0 || errno == EEXIST || errno == EISDIR);
            *p = '/';
            if (!good)
                return false;
        }
    return true;
}

static tiga_status make_path(tiga_context *ctx, const char *name, bool make, base_str *path) {
    tiga_status status = check_name(ctx, name);
    if (status != TIGA_OK)
        return status;
    if (!add_folder(path))
        return rt_fail(ctx, TIGA_E_FILE, "there is no folder for stored values: set TIGA_STORE_DIR");
    base_str_addf(path, "/%s.safetensors", name);
    if (path->failed)
        return rt_fail(ctx, TIGA_E_MEMORY, "out of memory");
    if (make && !make_folders(path->data))
        return hr_fail_errno(ctx, TIGA_E_FILE, path->data, "make the folder of");
    return TIGA_OK;
}

tiga_status tiga_store_put(tiga_context *ctx, const char *name, const tiga_tensor_view *tensor) {
    if (!ctx || !tensor)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_store_put: an argument is NULL");
    base_str path = {0};
    tiga_status status = make_path(ctx, name, true, &path);
    bool taken = status == TIGA_OK && access(path.data, F_OK) == 0;
    tiga_tensor_view t = *tensor;
    if (!t.name || !*t.name)
        t.name = name;
    if (status == TIGA_OK && !taken) /* another process may be faster */
        status = hr_save_new(ctx, path.data, &t, &taken);
    if (taken)
        status = rt_fail(ctx, TIGA_E_ARGUMENT, "a value named '%s' is stored already", name);
    base_str_fini(&path);
    return status;
}

tiga_status tiga_store_get(tiga_context *ctx, const char *name, tiga_snapshot **out) {
    if (out)
        *out = NULL;
    if (!ctx || !out)
        return rt_fail(ctx, TIGA_E_ARGUMENT, "tiga_store_get: an argument is NULL");
    base_str path = {0};
    tiga_status status = make_path(ctx, name, false, &path);
    if (status == TIGA_OK && access(path.data, F_OK) != 0 && errno == ENOENT)
        status = rt_fail(ctx, TIGA_E_NAME, "no value named '%s' is stored", name);
    if (status == TIGA_OK)
        status = tiga_snapshot_open(ctx, path.data, out);
    base_str_fini(&path);
    return status;
}

tiga_status tiga_store_remove(tiga_context *ctx, const char *name) {
    if (!ctx)
        return TIGA_E_ARGUMENT;
    base_str path = {0};
    tiga_status status = make_path(ctx, name, false, &path);
    if (status == TIGA_OK && (base_file_injected() || unlink(path.data) != 0))
        status = errno == ENOENT ? rt_fail(ctx, TIGA_E_NAME, "no value named '%s' is stored", name)
                                 : hr_fail_errno(ctx, TIGA_E_FILE, path.data, "remove");
    base_str_fini(&path);
    return status;
}
