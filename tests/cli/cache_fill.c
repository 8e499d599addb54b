/* Puts an entry into a folder of compiled code: cache_fill FOLDER [--wrong] NAME=VALUE...  For the tests of `tiga cache`,
 * which then know what is in there. */
#include "runtime/rt_cache.h"

#include <stdio.h>
#include <string.h>

static bool wrong;
static int built;

static tiga_status build(void *user, tiga_context *ctx, base_str *out) {
    (void)ctx;
    built++;
    base_str_add(out, user);
    return wrong ? TIGA_E_PROGRAM : TIGA_OK;
}

static tiga_status load(void *user, tiga_context *ctx, const void *bytes, size_t n, void **object, int64_t *n_bytes) {
    (void)ctx;
    (void)bytes;
    *object = user;
    *n_bytes = (int64_t)n;
    return TIGA_OK;
}

static void nothing(void *object) { (void)object; }

static const rt_cache_ops ops = {build, load, nothing, nothing};

int main(int argc, char **argv) {
    enum { MOST = 16 };
    tiga_cache_field fields[MOST];
    int n = 0;
    for (int i = 2; i < argc && n < MOST; i++) {
        if (!strcmp(argv[i], "--wrong")) {
            wrong = true;
            continue;
        }
        char *value = strchr(argv[i], '=');
        if (!value)
            return 2;
        *value++ = 0;
        fields[n++] = (tiga_cache_field){argv[i], value, strlen(value)};
    }
    tiga_cache_options o = tiga_cache_defaults();
    o.folder = argc > 1 ? argv[1] : "";
    tiga_cache *cache;
    if (tiga_cache_new(&o, &cache) != TIGA_OK)
        return 3;
    rt_cache_request request = {fields, n, &ops, "artefact"};
    void *object;
    tiga_status status = tiga_cache_get(cache, NULL, &request, &object, NULL);
    tiga_cache_counters count = tiga_cache_get_counters(cache);
    tiga_cache_free(cache);
    printf("%s\n", built ? "built" : "found");
    return status != (wrong ? TIGA_E_PROGRAM : TIGA_OK) || count.disk_errors ? 3 : 0;
}
