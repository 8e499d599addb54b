/* Every file of bad/ gives the status and the message that expected.txt says; no beginning of a good file and no file
 * with one byte changed does anything but succeed or give one clear error.  The sanitizer build watches.
 *     bad_files FOLDER   FOLDER is tests/files */
#include "runtime/runtime.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int n_failures;

static const char *status_name(tiga_status status) {
    switch (status) {
#define TIGA_STATUS(NAME, number, text)                                                                                \
    case TIGA_##NAME:                                                                                                  \
        return #NAME;
#include "tiga/tiga_status.def"
#undef TIGA_STATUS
    }
    return "?";
}

static bool ends_with(const char *name, const char *ending) {
    size_t n = strlen(name), k = strlen(ending);
    return n >= k && strcmp(name + n - k, ending) == 0;
}

/* "..." at the end of what is expected: the rest is the words of a library, which differ from version to version. */
static bool same_message(const char *got, const char *want) {
    size_t n = strlen(want);
    if (n >= 3 && !strcmp(want + n - 3, "..."))
        return strlen(got) > n - 3 && !strncmp(got, want, n - 3);
    return !strcmp(got, want);
}

static tiga_status read_file(tiga_context *ctx, const char *path) {
    tiga_array a = {0};
    tiga_graph *g = NULL;
    tiga_status status =
        ends_with(path, ".npy") ? tiga_array_read_npy(ctx, path, &a) : tiga_graph_read(ctx, path, NULL, &g, &a);
    if (status != TIGA_OK && (g || a.data)) {
        printf("%s: failed and still gave something\n", path);
        n_failures++;
    }
    tiga_graph_free(g);
    tiga_array_free(&a);
    return status;
}

static void check_bad(tiga_context *ctx, const char *folder, char *line) {
    char path[4096], *name = strtok(line, "\t"), *status = strtok(NULL, "\t"), *message = strtok(NULL, "\n");
    if (!message)
        return;
    snprintf(path, sizeof path, "%s/bad/%s", folder, name);
    tiga_error_clear(ctx);
    tiga_status got = read_file(ctx, path);
    const char *text = tiga_error_text(ctx);
    const char *rest = strncmp(text, path, strlen(path)) == 0 ? text + strlen(path) : text;
    if (strcmp(status_name(got), status) != 0 || !same_message(rest, message)) {
        printf("%s:\n  expected %s %s\n  got      %s %s\n", name, status, message, status_name(got), rest);
        n_failures++;
    }
}

static void check_all_bad(tiga_context *ctx, const char *folder) {
    char path[4096], line[1024];
    snprintf(path, sizeof path, "%s/bad/expected.txt", folder);
    FILE *f = fopen(path, "r");
    int n = 0;
    while (f && fgets(line, sizeof line, f)) {
        check_bad(ctx, folder, line);
        n++;
    }
    if (f)
        fclose(f);
    if (n < 80) {
        printf("expected.txt has only %d files\n", n);
        n_failures++;
    }
}

/* Who wants no values gets archives with any type of them, but none whose lengths disagree. */
static void check_without_values(tiga_context *ctx, const char *folder) {
    static const struct {
        const char *name;
        tiga_status status;
    } cases[] = {{"short_data.npz", TIGA_E_FORMAT},
                 {"long_data.npz", TIGA_E_FORMAT},
                 {"long_indices.npz", TIGA_E_FORMAT},
                 {"long_double_data.npz", TIGA_OK},
                 {"no_data.npz", TIGA_OK}};
    char path[4096];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tiga_graph *g = NULL;
        snprintf(path, sizeof path, "%s/bad/%s", folder, cases[i].name);
        tiga_error_clear(ctx);
        tiga_status got = tiga_graph_read(ctx, path, NULL, &g, NULL);
        if (got != cases[i].status || (got == TIGA_OK) != (g != NULL) ||
            (got == TIGA_OK) == (*tiga_error_text(ctx) != 0)) {
            printf("%s without values: %s %s\n", cases[i].name, status_name(got), tiga_error_text(ctx));
            n_failures++;
        }
        tiga_graph_free(g);
    }
}

static void parse(tiga_context *ctx, const char *name, const char *bytes, size_t n) {
    tiga_array a = {0};
    tiga_graph *g = NULL;
    tiga_status status;
    tiga_error_clear(ctx);
    if (ends_with(name, ".npy")) {
        rt_npy_header h;
        status = rt_npy_parse(ctx, name, bytes, (int64_t)n, &h);
        if (status == TIGA_OK)
            status = rt_npy_data(ctx, name, bytes, (int64_t)n, &h, &a);
    } else {
        status = rt_graph_parse(ctx, name, bytes, (int64_t)n, &g, &a);
    }
    if ((status != TIGA_OK) != (tiga_error_text(ctx)[0] != 0) || status == TIGA_E_INTERNAL) {
        printf("%s, %zu bytes: status %d, text '%s'\n", name, n, status, tiga_error_text(ctx));
        n_failures++;
    }
    tiga_graph_free(g);
    tiga_array_free(&a);
}

/* Each beginning and each single changed byte of one good file. */
static void check_near(tiga_context *ctx, const char *folder, const char *name) {
    char path[4096];
    base_str s = {0}, err = {0};
    snprintf(path, sizeof path, "%s/good/%s", folder, name);
    tiga_error_clear(ctx);
    if (read_file(ctx, path) != TIGA_OK || !base_file_read(path, &s, &err)) {
        printf("%s: %s\n", path, tiga_error_text(ctx));
        n_failures++;
    }
    for (size_t n = 0; n < s.len; n++) {
        char *copy = malloc(n + 1); /* of just this size, so that a read past the end is seen */
        memcpy(copy, s.data, n);
        parse(ctx, name, copy, n);
        free(copy);
    }
    static const unsigned char flips[] = {1, 0x10, 0x80, 0xff};
    for (size_t i = 0; i < s.len * 4; i++) {
        s.data[i / 4] = (char)(s.data[i / 4] ^ flips[i % 4]);
        parse(ctx, name, s.data, s.len);
        s.data[i / 4] = (char)(s.data[i / 4] ^ flips[i % 4]);
    }
    base_str_fini(&s);
    base_str_fini(&err);
}

int main(int argc, char **argv) {
    tiga_context *ctx;
    char path[4096];
    if (argc != 2 || tiga_context_new(NULL, &ctx) != TIGA_OK)
        return 2;
    check_all_bad(ctx, argv[1]);
    check_without_values(ctx, argv[1]);
    ctx->memory_limit = 64 << 20;
    snprintf(path, sizeof path, "%s/good", argv[1]);
    DIR *d = opendir(path);
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.') {
            check_near(ctx, argv[1], e->d_name);
            n++;
        }
    if (d)
        closedir(d);
    tiga_context_free(ctx);
    printf("%d good files bent, %d failures\n", n, n_failures);
    return n_failures || n < 10;
}
