/* What is refused before any kernel runs: files that are no modules, other ABI versions, other processors. */
#include "runtime/runtime.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__aarch64__)
enum { HERE_MACHINE = EM_AARCH64 };
#else
enum { HERE_MACHINE = EM_X86_64 };
#endif

static tiga_context *ctx;
static char path[64];
static void open_context(void) {
    cr_assert_eq(tiga_context_new(NULL, &ctx), TIGA_OK);
    snprintf(path, sizeof path, "/tmp/tiga_module_%ld.so", (long)getpid());
}
static void close_context(void) {
    unlink(path);
    tiga_context_free(ctx);
}
TestSuite(module, .init = open_context, .fini = close_context);

#define FAILS(call, status, words)                                                                                     \
    do {                                                                                                               \
        tiga_error_clear(ctx);                                                                                         \
        cr_assert_eq(call, status);                                                                                    \
        cr_assert(strstr(tiga_error_text(ctx), words), "'%s' lacks '%s'", tiga_error_text(ctx), words);                \
    } while (0)

static tiga_module_info info_of(const char *features) {
    return (tiga_module_info){.abi_version = TIGA_ABI_VERSION,
                              .struct_bytes = sizeof(tiga_module_info),
                              .compiler = "test",
                              .source_name = "t.tg",
                              .target_cpu = "",
                              .target_features = features};
}

Test(module, table_is_checked) {
    tiga_module *m;
    tiga_module_info info = info_of("");
    cr_assert_eq(tiga_module_from_info(ctx, &info, &m), TIGA_OK);
    cr_assert_eq(tiga_module_get_info(m), &info);
    cr_assert_null(tiga_module_find(m, "x"));
    tiga_module_free(m);
    tiga_module_free(NULL);
    info.abi_version = TIGA_ABI_VERSION + 1;
    char words[80];
    snprintf(words, sizeof words, "ABI version %d, this library has %d", TIGA_ABI_VERSION + 1, TIGA_ABI_VERSION);
    FAILS(tiga_module_from_info(ctx, &info, &m), TIGA_E_ABI, words);
    cr_assert_null(m);
    info = info_of("");
    info.struct_bytes = 8;
    FAILS(tiga_module_from_info(ctx, &info, &m), TIGA_E_ABI, "8 bytes");
    info = info_of("");
    info.n_functions = 1;
    FAILS(tiga_module_from_info(ctx, &info, &m), TIGA_E_MODULE, "damaged");
    FAILS(tiga_module_from_info(ctx, NULL, &m), TIGA_E_ARGUMENT, "NULL");
}

Test(module, processor_is_checked) {
    tiga_module *m;
    tiga_module_info info = info_of("sse2,not-a-feature");
    FAILS(tiga_module_from_info(ctx, &info, &m), TIGA_E_TARGET, "'not-a-feature', which this library does not know");
    info = info_of("+sse2,-avx10.1-512,,-nonsense");
    tiga_error_clear(ctx);
    cr_assert_eq(tiga_module_from_info(ctx, &info, &m), TIGA_OK, "%s", tiga_error_text(ctx));
    tiga_module_free(m);
    info = info_of("sse2,fma4"); /* of processors made until 2017 */
    if (!__builtin_cpu_supports("fma4"))
        FAILS(tiga_module_from_info(ctx, &info, &m), TIGA_E_TARGET, "'fma4', which this one lacks");
}

Test(module, features_agree_with_the_compiler_of_this_test) {
#define SAME(llvm, gcc)                                                                                                \
    cr_assert_eq(rt_cpu_feature(llvm, strlen(llvm)), __builtin_cpu_supports(gcc) ? RT_CPU_HAS : RT_CPU_LACKS, "%s",    \
                 llvm)
    SAME("sse2", "sse2");
    SAME("sse3", "sse3");
    SAME("ssse3", "ssse3");
    SAME("sse4.1", "sse4.1");
    SAME("sse4.2", "sse4.2");
    SAME("popcnt", "popcnt");
    SAME("avx", "avx");
    SAME("avx2", "avx2");
    SAME("fma", "fma");
    SAME("bmi", "bmi");
    SAME("bmi2", "bmi2");
    SAME("avx512f", "avx512f");
    SAME("avx512vl", "avx512vl");
    SAME("avx512bw", "avx512bw");
    SAME("avx512dq", "avx512dq");
    SAME("avx512cd", "avx512cd");
    SAME("avx512vnni", "avx512vnni");
    SAME("avx512bf16", "avx512bf16");
    SAME("avx512vbmi", "avx512vbmi");
    SAME("avx512vbmi2", "avx512vbmi2");
    SAME("avx512bitalg", "avx512bitalg");
    SAME("avx512vpopcntdq", "avx512vpopcntdq");
    SAME("gfni", "gfni");
    SAME("vpclmulqdq", "vpclmulqdq");
    SAME("sse4a", "sse4a");
    SAME("xop", "xop");
    SAME("fma4", "fma4");
    SAME("aes", "aes");
    SAME("pclmul", "pclmul");
}

static void write_file(const void *bytes, size_t n) {
    FILE *f = fopen(path, "w");
    cr_assert(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
}

Test(module, files_that_are_no_modules) {
    tiga_module *m;
    FAILS(tiga_module_load(ctx, "/no/such.so", &m), TIGA_E_FILE, "/no/such.so: cannot open: No such file");
    FAILS(tiga_module_load(ctx, "no_such.so", &m), TIGA_E_FILE, "no_such.so: cannot open");
    write_file("", 0);
    FAILS(tiga_module_load(ctx, path, &m), TIGA_E_MODULE, "not a shared object");
    write_file("#!/bin/sh\necho this is a long enough script, longer than the head of an ELF file\n", 80);
    FAILS(tiga_module_load(ctx, path, &m), TIGA_E_MODULE, "not a shared object");
    unsigned char head[64] = "\177ELF\2\1\1";
    head[16] = 3;   /* ET_DYN */
    head[18] = 243; /* RISC-V */
    write_file(head, sizeof head);
    FAILS(tiga_module_load(ctx, path, &m), TIGA_E_TARGET,
          "another kind of processor (ELF machine 243, 64 bits, little");
    head[18] = HERE_MACHINE;
    head[4] = 1;
    write_file(head, sizeof head);
    FAILS(tiga_module_load(ctx, path, &m), TIGA_E_TARGET, "32 bits, little-endian");
    head[4] = 2;
    head[5] = 2; /* big-endian, and so the numbers */
    head[16] = 0;
    head[17] = 3;
    head[18] = 0;
    head[19] = 22; /* S/390 */
    write_file(head, sizeof head);
    FAILS(tiga_module_load(ctx, path, &m), TIGA_E_TARGET, "ELF machine 22, 64 bits, big-endian");
    write_file(head, 20);
    FAILS(tiga_module_load(ctx, path, &m), TIGA_E_TARGET, "big-endian");
    head[5] = 1;
    head[16] = 1; /* ET_REL */
    head[17] = 0;
    head[18] = HERE_MACHINE;
    head[19] = 0;
    write_file(head, sizeof head);
    FAILS(tiga_module_load(ctx, path, &m), TIGA_E_MODULE, "not a shared object");
    head[16] = 3;
    write_file(head, sizeof head);
    FAILS(tiga_module_load(ctx, path, &m), TIGA_E_MODULE, "no dynamic section");
    write_file(head, 63);
    FAILS(tiga_module_load(ctx, path, &m), TIGA_E_MODULE, "truncated: a shared object that ends after 63 bytes");
    FAILS(tiga_module_load(ctx, "/tmp", &m), TIGA_E_MODULE, "/tmp: not a shared object, a folder");
    FAILS(tiga_module_load(ctx, "/dev/null", &m), TIGA_E_MODULE, "not even a regular file");
    unlink(path);
    cr_assert_eq(mkfifo(path, 0600), 0);
    FAILS(tiga_module_load(ctx, path, &m), TIGA_E_MODULE, "not even a regular file"); /* and does not wait */
    FAILS(tiga_module_load(ctx, NULL, &m), TIGA_E_ARGUMENT, "NULL");
    base_inject_at(BASE_INJECT_FILE, 1);
    FAILS(tiga_module_load(ctx, path, &m), TIGA_E_FILE, "cannot open");
    base_inject_at(BASE_INJECT_FILE, 0);
}

/* A small module, compiled here. */
static bool build(const char *source) {
    char c_file[80], command[400];
    snprintf(c_file, sizeof c_file, "%s.c", path);
    FILE *f = fopen(c_file, "w");
    if (!f || fputs(source, f) < 0 || fclose(f) != 0)
        return false;
    snprintf(command, sizeof command, "cc -shared -fPIC -I%s/include -o %s %s", TIGA_SOURCE_DIR, path, c_file);
    int status = system(command);
    unlink(c_file);
    return status == 0;
}

Test(module, shared_objects) {
    tiga_module *m;
    cr_assert(build("int nothing(void);\nint nothing(void) { return 1; }\n"));
    FAILS(tiga_module_load(ctx, path, &m), TIGA_E_MODULE, "does not export tiga_module_info_v1");
    unlink(path);
    cr_assert(
        build("#include \"tiga/abi.h\"\n"
              "const tiga_module_info *tiga_module_info_v1(void);\n"
              "static const tiga_module_info info = {.abi_version = TIGA_ABI_VERSION, .struct_bytes = sizeof info,\n"
              "    .compiler = \"hand\", .source_name = \"hand.tg\", .target_features = \"sse2\"};\n"
              "const tiga_module_info *tiga_module_info_v1(void) { return &info; }\n"));
    tiga_error_clear(ctx);
    cr_assert_eq(tiga_module_load(ctx, path, &m), TIGA_OK, "%s", tiga_error_text(ctx));
    cr_assert_str_eq(tiga_module_get_info(m)->source_name, "hand.tg");
    tiga_module_free(m);
    for (uint64_t k = 1;; k++) {
        base_inject_at(BASE_INJECT_ALLOC, k);
        tiga_error_clear(ctx);
        tiga_status status = tiga_module_load(ctx, path, &m);
        base_inject_at(BASE_INJECT_ALLOC, 0);
        if (status == TIGA_OK)
            break;
        cr_assert_eq(status, TIGA_E_MEMORY);
        cr_assert_lt(k, 10);
    }
    tiga_module_free(m);
    unlink(path);
    cr_assert(build("#include <stddef.h>\nconst void *tiga_module_info_v1(void);\nconst void "
                    "*tiga_module_info_v1(void) { return NULL; }\n"));
    FAILS(tiga_module_load(ctx, path, &m), TIGA_E_MODULE, "has no table");
}

static tiga_module *named(const char *name) {
    char text[600];
    snprintf(text, sizeof text,
             "#include \"tiga/abi.h\"\n"
             "const tiga_module_info *tiga_module_info_v1(void);\n"
             "static const tiga_module_info info = {.abi_version = TIGA_ABI_VERSION, .struct_bytes = sizeof info,\n"
             "    .compiler = \"hand\", .source_name = \"%s\", .target_features = \"\"};\n"
             "const tiga_module_info *tiga_module_info_v1(void) { return &info; }\n",
             name);
    unlink(path); /* as tigac does: another file under the same name */
    cr_assert(build(text));
    tiga_module *m;
    cr_assert_eq(tiga_module_load(ctx, path, &m), TIGA_OK, "%s", tiga_error_text(ctx));
    return m;
}

/* The file of a module that is in use was replaced: what is loaded now is the new one, what was loaded stays. */
Test(module, replaced_while_loaded) {
    static const char *const names[] = {"one", "two", "three", "four"};
    tiga_module *m[4], *again;
    for (int i = 0; i < 4; i++)
        m[i] = named(names[i]);
    cr_assert_eq(tiga_module_load(ctx, path, &again), TIGA_OK);
    cr_assert_eq(tiga_module_get_info(again), tiga_module_get_info(m[3])); /* the same file is loaded once */
    tiga_module_free(m[1]);
    tiga_module_free(m[3]);
    m[1] = named("five");
    m[3] = named("six");
    static const char *const now[] = {"one", "five", "three", "six"};
    for (int i = 0; i < 4; i++) {
        cr_assert_str_eq(tiga_module_get_info(m[i])->source_name, now[i]);
        tiga_module_free(m[i]);
    }
    cr_assert_str_eq(tiga_module_get_info(again)->source_name, "four");
    tiga_module_free(again);
}

static void load_truncated(size_t n) {
    tiga_module *m;
    cr_assert_eq(truncate(path, (off_t)n), 0);
    tiga_error_clear(ctx);
    cr_assert_eq(tiga_module_load(ctx, path, &m), TIGA_E_MODULE, "%zu bytes: %s", n, tiga_error_text(ctx));
    cr_assert(strstr(tiga_error_text(ctx), n < 20 ? "shared object" : "truncated"), "%s", tiga_error_text(ctx));
}

/* The loader would map what is not there, and the first touch of it would kill the process. */
Test(module, truncated_anywhere) {
    cr_assert(build("int nothing(void);\nint filler[3000] = {1};\nint nothing(void) { return filler[0]; }\n"));
    base_str s = {0};
    cr_assert(base_file_read(path, &s, NULL));
    cr_assert_gt(s.len, 20000);
    for (size_t n = s.len - 1; n > 0; n -= n > 700 && n < s.len - 200 ? 7 : 1)
        load_truncated(n);
    tiga_module *m;
    Elf64_Ehdr head;
    memcpy(&head, s.data, sizeof head);
    for (int i = 0; i < head.e_phnum; i++) { /* whole, but the headers speak of more, or of what overflows */
        Elf64_Phdr part;
        char *at = s.data + head.e_phoff + (size_t)i * sizeof part;
        memcpy(&part, at, sizeof part);
        if (part.p_filesz == 0)
            continue;
        Elf64_Phdr bad = part;
        bad.p_filesz = i % 2 ? UINT64_MAX : s.len;
        bad.p_offset += 1;
        memcpy(at, &bad, sizeof bad);
        write_file(s.data, s.len);
        FAILS(tiga_module_load(ctx, path, &m), TIGA_E_MODULE, "truncated");
        memcpy(at, &part, sizeof part);
    }
    head.e_phentsize = 32;
    memcpy(s.data, &head, sizeof head);
    write_file(s.data, s.len);
    FAILS(tiga_module_load(ctx, path, &m), TIGA_E_MODULE, "program headers of 32 bytes");
    base_str_fini(&s);
}

/* Whatever byte changes: refused before the loader gets it, or (in the word that makes a seal) not what was sealed. */
Test(module, any_byte_of_a_sealed_file) {
    cr_assert(build("const void *tiga_module_info_v1(void);\nconst void *tiga_module_info_v1(void) { return 0; }\n"));
    base_str s = {0};
    cr_assert(base_file_read(path, &s, NULL));
    base_seal_add(&s);
    write_file(s.data, s.len);
    tiga_module *m;
    FAILS(tiga_module_load(ctx, path, &m), TIGA_E_MODULE, "has no table"); /* the file is fine */
    int damaged = 0, fd = open(path, O_WRONLY);
    for (size_t i = 0; i < s.len - 8; i++) {
        char flipped = (char)(s.data[i] ^ (1 << i % 8));
        cr_assert_eq(pwrite(fd, &flipped, 1, (off_t)i), 1);
        tiga_error_clear(ctx);
        tiga_status status = tiga_module_load(ctx, path, &m);
        cr_assert(status == TIGA_E_MODULE || status == TIGA_E_TARGET, "byte %zu", i);
        cr_assert_null(strstr(tiga_error_text(ctx), "has no table"), "byte %zu was loaded", i);
        damaged += strstr(tiga_error_text(ctx), "damaged: its bytes are not") != NULL;
        cr_assert_eq(pwrite(fd, s.data + i, 1, (off_t)i), 1);
    }
    close(fd);
    cr_assert_gt(damaged, (int)s.len * 9 / 10);
    base_str_fini(&s);
}

/* ---- owned and counted ---- */
static int released;
static void count_release(void *owner) { released += *(int *)owner; }

Test(module, owner_is_released_once) {
    tiga_module *m;
    tiga_module_info info = info_of("");
    int one = 1;
    cr_assert_eq(tiga_module_from_owned(ctx, &info, &one, count_release, &m), TIGA_OK);
    cr_assert_eq(tiga_module_retain(m), m);
    tiga_module_free(m);
    cr_assert_eq(released, 0);
    tiga_module_free(m);
    cr_assert_eq(released, 1);
    cr_assert_null(tiga_module_retain(NULL));
    info.abi_version = TIGA_ABI_VERSION + 1; /* stays the caller's */
    FAILS(tiga_module_from_owned(ctx, &info, &one, count_release, &m), TIGA_E_ABI, "tiga_module_from_owned: ");
    cr_assert(!m && released == 1);
    FAILS(tiga_module_from_owned(ctx, NULL, &one, count_release, &m), TIGA_E_ARGUMENT, "NULL");
}

Test(module, errors_of_others) {
    cr_assert_eq(tiga_error_set(ctx, TIGA_E_RANGE, "two\nlines"), TIGA_E_RANGE);
    cr_assert_eq(tiga_error_set(ctx, TIGA_E_NAME, "later"), TIGA_E_NAME);
    cr_assert_str_eq(tiga_error_text(ctx), "two lines");
    cr_assert_eq(tiga_error_status(ctx), TIGA_E_RANGE);
    cr_assert_eq(tiga_error_set(NULL, TIGA_E_NAME, NULL), TIGA_E_NAME);
}
