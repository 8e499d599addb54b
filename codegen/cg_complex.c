/* Vectors of complex numbers: the real parts in one vector, the imaginary parts in another.  They are only loaded, stored,
 * taken apart and put together (pass `split` leaves nothing else); in memory the parts alternate. */
#include "codegen/cg_c.h"

void cg_complex_vector_type(base_str *out, ir_dtype t, int n) {
    const char *part = ir_dtype_text(ir_dtype_part(t)), *name = ir_dtype_text(t);
    base_str_addf(out, "typedef struct tiga_%sx%d {\n    tiga_%sx%d re, im;\n} tiga_%sx%d;\n", name, n, part, n, name,
                  n);
}

static void indices(base_str *out, int first, int step, int n) {
    for (int i = 0; i < n; ++i)
        base_str_addf(out, ", %d", first + i * step);
}

/* Whole rows of memory are shuffled where compilers can say so; elsewhere elements go one by one. */
static void shuffle_head(base_str *out, const char *element, int n) {
    base_str_addf(out,
                  "#if TIGA_SHUFFLE\n"
                  "    typedef %s row __attribute__((vector_size(%d * sizeof(%s))));\n"
                  "    typedef %s half __attribute__((vector_size(%d * sizeof(%s))));\n",
                  element, 2 * n, element, element, n, element);
}

/* "if ...": one by one, in vectors or without them, and the end of the function. */
static void read_each(base_str *out, const char *from, const char *element, int n) {
    base_str_addf(
        out,
        "if TIGA_VECTOR_BYTES == 0\n    for (int i = 0; i < %d; ++i) {\n        r.re.p[i] = %s.re;\n"
        "        r.im.p[i] = %s.im;\n    }\n#else\n    %s re[%d], im[%d];\n    for (int i = 0; i < %d; ++i) {\n"
        "        re[i] = %s.re;\n        im[i] = %s.im;\n    }\n    __builtin_memcpy(&r.re, re, sizeof re);\n"
        "    __builtin_memcpy(&r.im, im, sizeof im);\n#endif\n    return r;\n}\n",
        n, from, from, element, n, n, n, from, from);
}

static void load(base_str *out, ir_dtype t, int n) {
    const char *name = ir_dtype_text(t), *element = cg_ctype(ir_dtype_part(t));
    base_str_addf(out, "TIGA_VECTOR_FN tiga_%sx%d tiga_load_%sx%d(const %s *from) {\n    tiga_%sx%d r;\n", name, n,
                  name, n, cg_ctype(t), name, n);
    shuffle_head(out, element, n);
    base_str_add(out, "    row both;\n    half re, im;\n    __builtin_memcpy(&both, from, sizeof both);\n"
                      "    re = __builtin_shufflevector(both, both");
    indices(out, 0, 2, n);
    base_str_add(out, ");\n    im = __builtin_shufflevector(both, both");
    indices(out, 1, 2, n);
    base_str_add(out,
                 ");\n    __builtin_memcpy(&r.re, &re, sizeof re);\n    __builtin_memcpy(&r.im, &im, sizeof im);\n#el");
    read_each(out, "from[i]", element, n);
}

static void store(base_str *out, ir_dtype t, int n) {
    const char *name = ir_dtype_text(t), *element = cg_ctype(ir_dtype_part(t));
    base_str_addf(out, "TIGA_VECTOR_FN void tiga_store_%sx%d(%s *to, tiga_%sx%d v) {\n", name, n, cg_ctype(t), name, n);
    shuffle_head(out, element, n);
    base_str_add(out, "    row both;\n    half re, im;\n    __builtin_memcpy(&re, &v.re, sizeof re);\n"
                      "    __builtin_memcpy(&im, &v.im, sizeof im);\n    both = __builtin_shufflevector(re, im");
    for (int i = 0; i < n; ++i)
        base_str_addf(out, ", %d, %d", i, n + i);
    base_str_addf(
        out,
        ");\n    __builtin_memcpy(to, &both, sizeof both);\n"
        "#elif TIGA_VECTOR_BYTES == 0\n    for (int i = 0; i < %d; ++i) {\n        to[i].re = v.re.p[i];\n"
        "        to[i].im = v.im.p[i];\n    }\n"
        "#else\n    %s re[%d], im[%d];\n    __builtin_memcpy(re, &v.re, sizeof re);\n"
        "    __builtin_memcpy(im, &v.im, sizeof im);\n"
        "    for (int i = 0; i < %d; ++i) {\n        to[i].re = re[i];\n        to[i].im = im[i];\n    }\n#endif\n}\n",
        n, element, n, n, n);
}

static void gather(base_str *out, ir_dtype t, int n, int bits) {
    const char *name = ir_dtype_text(t), *element = cg_ctype(ir_dtype_part(t));
    base_str_addf(
        out,
        "TIGA_VECTOR_FN tiga_%sx%d tiga_gather%d_%sx%d(const %s *from, const int%d_t *rows, int64_t stride) {\n"
        "    tiga_%sx%d r;\n#",
        name, n, bits, name, n, cg_ctype(t), bits, name, n);
    read_each(out, "from[rows[i] * stride]", element, n);
}

void cg_complex_vector_memory(base_str *out, const cg_vectors *v, ir_dtype t, int width) {
    int n = 1 << width;
    ir_dtype part = ir_dtype_part(t);
    if (v->load[t][width])
        load(out, t, n);
    if (v->store[t][width])
        store(out, t, n);
    for (int wide = 0; wide < 2; ++wide)
        if (v->gather[t][width][wide])
            gather(out, t, n, wide ? 64 : 32);
    if (v->op[IR_COMPLEX][part][t][width])
        base_str_addf(
            out,
            "TIGA_VECTOR_FN tiga_%sx%d tiga_complex_%sx%d(tiga_%sx%d re, tiga_%sx%d im) {\n    tiga_%sx%d r;\n"
            "    r.re = re;\n    r.im = im;\n    return r;\n}\n",
            ir_dtype_text(t), n, ir_dtype_text(part), n, ir_dtype_text(part), n, ir_dtype_text(part), n,
            ir_dtype_text(t), n);
}
