/* Loop functions over the transposed relation that sum up what comes back to winners (ir_winners), the other way round: the
 * rows of the graph are gone through, and each gives to the sources of the edges that won.  So N x F values are read in
 * order and as many places written, where the walk would read three rows of features for each edge.
 *
 * The bits are those of the walk: what a source gets is added in the order of the rows, and the edges that get nothing would
 * have added 0.
 *
 * A launch is cut into parts of the result: lines of cache of features first, sources when there are more parts than lines.
 * Each part goes through all rows and takes what is its own, so there should be few; the runtime sees to that. */
#include "codegen/cg_c.h"

#include <string.h>

/* $T: float or double, $S: f32 or f64, $L: elements of a line of cache, $H: half a tie, $I: an integer that holds the number of an edge. */
static const char head[] = "/* What the features k .. k + n - 1 of a row give: to whom, and whether edges tie. */\n"
                           "typedef struct tiga_gift_$S {\n"
                           "    $T *to[$L];\n"
                           "    int64_t row, k;\n"
                           "    int n;\n"
                           "    bool ties;\n"
                           "} tiga_gift_$S;\n\n"
                           "/* One launch, and the part of its result that is computed: features k_begin .. k_end - 1 "
                           "of sources first .. last - 1. */\n"
                           "typedef struct tiga_winners_$S {\n"
                           "    const tiga_launch_args *args;\n"
                           "    const $T *x, *best, *which, *given;\n"
                           "    $T *out;\n"
                           "    $T others[$L]; /* takes what is for other parts */\n"
                           "    int64_t k_begin, k_end, first, last;\n"
                           "} tiga_winners_$S;\n\n";

static const char see[] =
    "/* which: the number of the edge in its row, when it is the only one and that number is small; -1: none */\n"
    "TIGA_ALWAYS void tiga_see_line_$S(tiga_winners_$S *w, tiga_gift_$S *g, int64_t width, bool wide, int n) {\n"
    "    const tiga_csr *graph = &w->args->graph;\n"
    "    const int64_t begin = graph->offsets[g->row], at = g->row * width + g->k;\n"
    "    $I edge[$L];\n"
    "    int alone = 0, none = 0;\n"
    "    for (int l = 0; l < n; ++l) {\n"
    "        const $T p = w->which[at + l];\n"
    "        const bool one = p >= 0 && p < $H;\n"
    "        edge[l] = ($I)(one ? p : -1);\n"
    "        alone += one;\n"
    "        none += p == -1;\n"
    "    }\n"
    "    g->n = n;\n"
    "    g->ties = alone + none < n;\n"
    "    if (alone == n && w->last - w->first == graph->n_src) {\n"
    "        for (int l = 0; l < n; ++l) {\n"
    "            g->to[l] = w->out + TIGA_SOURCE(graph->sources, wide, begin + edge[l]) * width + g->k + l;\n"
    "            TIGA_PREFETCH(g->to[l]);\n"
    "        }\n"
    "        return;\n"
    "    }\n"
    "    for (int l = 0; l < n; ++l) {\n"
    "        const int64_t s = TIGA_SOURCE(graph->sources, wide, begin + (edge[l] < 0 ? 0 : edge[l]));\n"
    "        const bool mine = edge[l] >= 0 && s >= w->first && s < w->last;\n"
    "        g->to[l] = mine ? w->out + s * width + g->k + l : w->others + l;\n"
    "        TIGA_PREFETCH(g->to[l]);\n"
    "    }\n"
    "}\n\n"
    "/* Whole lines have loops of a known length. */\n"
    "TIGA_ALWAYS void tiga_see_$S(tiga_winners_$S *w, tiga_gift_$S *g, int64_t width, bool wide) {\n"
    "    const int64_t n = w->k_end - g->k, at = g->row * width + g->k;\n"
    "    TIGA_PREFETCH_AT(w->which, at + 16 * $L);\n"
    "    TIGA_PREFETCH_AT(w->given, at + 16 * $L);\n"
    "    if (n >= $L) tiga_see_line_$S(w, g, width, wide, $L);\n"
    "    else tiga_see_line_$S(w, g, width, wide, (int)n);\n"
    "}\n\n";

static const char share[] =
    "/* The row is walked: edges that tie get equal parts.  False: given up. */\n"
    "TIGA_ALWAYS bool tiga_share_$S(tiga_winners_$S *w, const tiga_gift_$S *g, int64_t width, bool wide) {\n"
    "    const tiga_csr *graph = &w->args->graph;\n"
    "    const int64_t at = g->row * width + g->k;\n"
    "    $T part[$L];\n"
    "    for (int l = 0; l < g->n; ++l) {\n"
    "        const $T p = w->which[at + l], more = p / -(2 * $H); /* edges beside the first, less a part of one */\n"
    "        int64_t n = (int64_t)more;\n"
    "        n += ($T)n < more;\n"
    "        part[l] = p < -1 || p >= $H ? w->given[at + l] / ($T)(1 + n) : 0;\n"
    "    }\n"
    "    for (int64_t e = graph->offsets[g->row]; e < graph->offsets[g->row + 1]; ++e) {\n"
    "        const int64_t s = TIGA_SOURCE(graph->sources, wide, e);\n"
    "        const $T *x = w->x + s * width + g->k;\n"
    "        $T *out = w->out + s * width + g->k;\n"
    "        if (e % 65536 == 65535 && w->args->give_up && w->args->give_up(w->args->user)) return false;\n"
    "        if (s < w->first || s >= w->last) continue;\n"
    "        for (int l = 0; l < g->n; ++l)\n"
    "            out[l] += x[l] == w->best[at + l] ? part[l] : 0;\n"
    "    }\n"
    "    return true;\n"
    "}\n\n";

static const char give[] =
    "TIGA_ALWAYS bool tiga_give_$S(tiga_winners_$S *w, const tiga_gift_$S *g, int64_t width, bool wide) {\n"
    "    for (int l = 0; l < g->n; ++l)\n"
    "        *g->to[l] += w->given[g->row * width + g->k + l];\n"
    "    return !g->ties || tiga_share_$S(w, g, width, wide);\n"
    "}\n\n";

static const char part[] = "/* Now and then: lines of cache that are set to 0, rows, gifts. */\n"
                           "static inline bool tiga_gives_up_$S(const tiga_winners_$S *w, int64_t *turns) {\n"
                           "    return ++*turns % 4096 == 0 && w->args->give_up && w->args->give_up(w->args->user);\n"
                           "}\n\n"
                           "/* Some gifts ahead the memory is asked for.  False: given up. */\n"
                           "TIGA_ALWAYS bool tiga_part_$S(tiga_winners_$S *w, int64_t width, bool wide) {\n"
                           "    const tiga_csr *graph = &w->args->graph;\n"
                           "    tiga_gift_$S ahead[TIGA_GIFTS];\n"
                           "    int64_t n = 0, turns = 0;\n"
                           "    for (int64_t s = w->first; s < w->last; ++s)\n"
                           "        for (int64_t k = w->k_begin; k < w->k_end; k += $L) {\n"
                           "            $T *out = w->out + s * width + k;\n"
                           "            if (k + $L <= w->k_end)\n"
                           "                for (int l = 0; l < $L; ++l) out[l] = 0;\n"
                           "            else\n"
                           "                for (int64_t l = 0; l < w->k_end - k; ++l) out[l] = 0;\n"
                           "            if (tiga_gives_up_$S(w, &turns)) return false;\n"
                           "        }\n"
                           "    for (int64_t i = 0; i < graph->n_dst; ++i) {\n"
                           "        if (tiga_gives_up_$S(w, &turns)) return false;\n"
                           "        if (graph->offsets[i] == graph->offsets[i + 1]) continue;\n"
                           "        for (int64_t k = w->k_begin; k < w->k_end; k += $L, ++n) {\n"
                           "            tiga_gift_$S *g = &ahead[n % TIGA_GIFTS];\n"
                           "            if (n >= TIGA_GIFTS && !tiga_give_$S(w, g, width, wide)) return false;\n"
                           "            if (tiga_gives_up_$S(w, &turns)) return false;\n"
                           "            g->row = i;\n"
                           "            g->k = k;\n"
                           "            tiga_see_$S(w, g, width, wide);\n"
                           "        }\n"
                           "    }\n"
                           "    for (int64_t m = n < TIGA_GIFTS ? 0 : n - TIGA_GIFTS; m < n; ++m)\n"
                           "        if (!tiga_give_$S(w, &ahead[m % TIGA_GIFTS], width, wide)) return false;\n"
                           "    return true;\n"
                           "}\n\n";

static const char all[] =
    "/* Sources row_begin .. row_end - 1 stand for as large a part of all lines of cache, sources by sources in each. "
    "*/\n"
    "TIGA_ALWAYS void tiga_to_winners_$S(tiga_winners_$S *w, int64_t width, bool wide, int64_t row_begin, int64_t "
    "row_end) {\n"
    "    const int64_t n = w->args->n_rows, lines = (width + $L - 1) / $L;\n"
    "    int64_t at = tiga_cut(row_begin * lines, n, lines);\n"
    "    const int64_t end = tiga_cut(row_end * lines, n, lines);\n"
    "    for (int l = 0; l < $L; ++l) w->others[l] = 0;\n"
    "    while (at < end) {\n"
    "        const int64_t line = at / n, whole = at % n == 0 ? (end - at) / n : 0;\n"
    "        const int64_t stop = whole ? at + whole * n : end - line * n < n ? end : (line + 1) * n;\n"
    "        w->k_begin = line * $L;\n"
    "        w->k_end = (line + (whole ? whole : 1)) * $L;\n"
    "        w->k_end = w->k_end < width ? w->k_end : width;\n"
    "        w->first = whole ? 0 : at - line * n;\n"
    "        w->last = whole ? n : stop - line * n;\n"
    "        if (!tiga_part_$S(w, width, wide)) return;\n"
    "        at = stop;\n"
    "    }\n"
    "}\n\n";

static const char common[] =
    "/* Sums that go back to the edges that won: rows of the graph give, their sources take. */\n"
    "#if defined(__GNUC__)\n"
    "#define TIGA_ALWAYS static inline __attribute__((always_inline))\n"
    "#else\n"
    "#define TIGA_ALWAYS static inline\n"
    "#endif\n"
    "#define TIGA_GIFTS 16\n"
    "/* A multiple of n when there is one within `near`. */\n"
    "static inline int64_t tiga_cut(int64_t at, int64_t n, int64_t near) {\n"
    "    const int64_t over = at % n;\n"
    "    return over < near ? at - over : n - over < near ? at + n - over : at;\n"
    "}\n\n";

static void add(base_str *out, const char *text, bool wide) {
    for (; *text; ++text) {
        const char what[] = {text[0], text[0] == '$' ? text[1] : '\0', '\0'};
        const char *put = !strcmp(what, "$T")   ? (wide ? "double" : "float")
                          : !strcmp(what, "$S") ? (wide ? "f64" : "f32")
                          : !strcmp(what, "$H") ? (wide ? "2251799813685248.0" : "8388608.0f")
                          : !strcmp(what, "$L") ? (wide ? "8" : "16")
                          : !strcmp(what, "$I") ? (wide ? "int64_t" : "int32_t")
                                                : NULL;
        if (put)
            base_str_add(out, put);
        else
            base_str_addf(out, "%c", *text);
        text += put != NULL;
    }
}

void cg_winners_text(const char *kernels, base_str *out) {
    static const char *const texts[] = {head, see, share, give, part, all};
    bool narrow = strstr(kernels, "tiga_to_winners_f32(") != NULL,
         wide = strstr(kernels, "tiga_to_winners_f64(") != NULL;
    if (narrow || wide)
        base_str_add(out, common);
    for (size_t i = 0; narrow && i < sizeof texts / sizeof *texts; ++i)
        add(out, texts[i], false);
    for (size_t i = 0; wide && i < sizeof texts / sizeof *texts; ++i)
        add(out, texts[i], true);
}

static const char *field(cg_loop *c, uint32_t i) {
    c->field_used[i] = true;
    return c->field[i];
}

static const char *width_of(cg_loop *c, const ir_type *t) {
    const char *text = NULL;
    for (uint32_t i = 0; i < t->rank; ++i) {
        const char *d = cg_dim_text(c, t->dim[i]);
        text = text ? base_arena_printf(c->arena, "%s * %s", text, d) : d;
    }
    return text;
}

void cg_winners(cg_loop *c) {
    const ir_winners *w = &c->f->winners;
    const ir_type *t = &c->f->params[4].type;
    const char *s = t->dtype == IR_F64 ? "f64" : "f32", *bits = c->source_bits == 64 ? "true" : "false";
    const char *state = cg_name(&c->names, "winners");
    if (c->source_bits == CG_EITHER) {
        c->uses_sources = true;
        bits = c->wide;
    }
    c->vec->prefetch = true;
    cg_line(&c->w, "tiga_winners_%s %s;", s, state);
    cg_line(&c->w, "%s.args = %s;", state, c->args);
    cg_line(&c->w, "%s.x = %s;", state, field(c, w->x));
    cg_line(&c->w, "%s.best = %s;", state, field(c, w->best));
    cg_line(&c->w, "%s.which = %s;", state, field(c, w->which));
    cg_line(&c->w, "%s.given = %s;", state, field(c, w->given));
    cg_line(&c->w, "%s.out = %s;", state, field(c, 4));
    cg_line(&c->w, "tiga_to_winners_%s(&%s, %s, %s, %s, %s);", s, state, width_of(c, t), bits, c->row_begin,
            c->row_end);
}
