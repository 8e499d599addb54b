/* Text of IR to a module: syntax only.  What parses may still break rules of its level; ir_verify says so.
 *
 * After an error inside a function the parser goes on with the next line, so several errors come in one run; after an
 * error in a header it gives up.  Nesting is bounded, so no input can exhaust the stack. */
#include "ir/ir_parse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 64
#define MAX_ERRORS 100

base_diag *ir_parse_error(ir_parser *p, const char *id, base_span span, const char *fmt, ...) {
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    p->broken = true;
    return base_diags_add(p->diags, BASE_ERROR, id, span, "%s", text);
}

void ir_parse_next(ir_parser *p) {
    p->token = p->ahead;
    p->ahead = ir_lex(p->m->arena, p->source, &p->at);
}

bool ir_parse_at_mark(const ir_parser *p, char mark) { return p->token.kind == IR_TOKEN_MARK && p->token.mark == mark; }

bool ir_parse_take_mark(ir_parser *p, char mark) {
    if (!ir_parse_at_mark(p, mark))
        return false;
    ir_parse_next(p);
    return true;
}

static bool at_word(const ir_parser *p, const char *word) {
    return p->token.kind == IR_TOKEN_NAME && strcmp(p->token.text, word) == 0;
}

static bool take_word(ir_parser *p, const char *word) {
    if (!at_word(p, word))
        return false;
    ir_parse_next(p);
    return true;
}

bool ir_parse_expected(ir_parser *p, const char *what) {
    if (p->token.kind == IR_TOKEN_END)
        ir_parse_error(p, "E0901", p->token.span, "expected %s before the end of the text", what);
    else
        ir_parse_error(p, "E0901", p->token.span, "expected %s", what);
    return false;
}

bool ir_parse_need_mark(ir_parser *p, char mark) {
    char what[4] = {'\'', mark, '\'', 0};
    return ir_parse_take_mark(p, mark) || ir_parse_expected(p, what);
}

const char *ir_parse_name(ir_parser *p, const char *what) {
    if (p->token.kind != IR_TOKEN_NAME && p->token.kind != IR_TOKEN_QUOTED) {
        ir_parse_expected(p, what);
        return NULL;
    }
    const char *text = p->token.text;
    ir_parse_next(p);
    return text;
}

bool ir_parse_integer(ir_parser *p, int64_t *out) {
    char *end;
    if (p->token.kind != IR_TOKEN_NUMBER)
        return ir_parse_expected(p, "an integer");
    errno = 0;
    *out = strtoll(p->token.text, &end, 10);
    if (*end || errno) {
        ir_parse_error(p, "E0904", p->token.span, "'%s' is not a 64-bit integer", p->token.text);
        return false;
    }
    ir_parse_next(p);
    return true;
}

/* ---- types ---- */
bool ir_parse_dim(ir_parser *p, ir_dim *out) {
    if (p->token.kind == IR_TOKEN_NUMBER) {
        base_span span = p->token.span;
        if (!ir_parse_integer(p, out))
            return false;
        if (*out >= 0)
            return true;
        ir_parse_error(p, "E0907", span, "a dimension cannot be negative");
        return false;
    }
    if (at_word(p, "tile")) {
        *out = IR_DIM_TILE;
        ir_parse_next(p);
        return true;
    }
    base_span span = p->token.span;
    const char *name = ir_parse_name(p, "a dimension");
    uint32_t sym;
    if (!name)
        return false;
    if (!ir_sym_find(p->f, name, &sym)) {
        ir_parse_error(p, "E0907", span, "'%s' is not a dimension of @%s", name, p->f->name);
        return false;
    }
    *out = ir_dim_sym(sym);
    return true;
}

static bool parse_dtype(ir_parser *p, ir_dtype *out) {
    const char *text = p->token.text;
    bool is_name = p->token.kind == IR_TOKEN_NAME;
    if (is_name && strcmp(text, "tuple") == 0)
        *out = IR_TUPLE;
    else if (is_name && strcmp(text, "graph") == 0)
        *out = IR_GRAPH;
    else if (is_name && strcmp(text, "instance") == 0)
        *out = IR_INSTANCE_T;
    else if (!is_name || !ir_dtype_from_text(text, strlen(text), out)) {
        ir_parse_error(p, "E0907", p->token.span, "expected a type");
        return false;
    }
    ir_parse_next(p);
    return true;
}

bool ir_parse_type(ir_parser *p, ir_type *out) {
    *out = (ir_type){.space = IR_UNIFORM};
    if (take_word(p, "row"))
        out->space = IR_ROW;
    else if (take_word(p, "edge"))
        out->space = IR_EDGE;
    if (!parse_dtype(p, &out->dtype))
        return false;
    if (p->token.first || !ir_parse_take_mark(p, '['))
        return true;
    do {
        if (out->rank == IR_MAX_RANK) {
            ir_parse_error(p, "E0907", p->token.span, "a type has at most %d axes", IR_MAX_RANK);
            return false;
        }
        if (!ir_parse_dim(p, &out->dim[out->rank++]))
            return false;
    } while (ir_parse_take_mark(p, ','));
    return ir_parse_need_mark(p, ']');
}

/* ---- headers ---- */
static bool parse_syms(ir_parser *p) {
    if (!ir_parse_take_mark(p, '['))
        return true;
    do {
        base_span span = p->token.span;
        const char *name = ir_parse_name(p, "the name of a dimension");
        uint32_t at;
        if (!name)
            return false;
        if (ir_sym_find(p->f, name, &at)) {
            ir_parse_error(p, "E0908", span, "dimension '%s' is listed twice", name);
            return false;
        }
        ir_sym(p->m, p->f, name);
    } while (ir_parse_take_mark(p, ','));
    return ir_parse_need_mark(p, ']');
}

/* outedge d_w: f32 = w */
static bool parse_begins(ir_parser *p, ir_param *param) {
    base_span span = p->token.span;
    const char *name = ir_parse_name(p, "the field whose values the result begins with");
    for (size_t i = 0; name && i < p->f->n_params && !param->begins; i++)
        if (!strcmp(p->f->params[i].name, name))
            param->begins = (uint32_t)i + 1;
    if (name && !param->begins)
        ir_parse_error(p, "E0908", span, "there is no parameter '%s' before '%s'", name, param->name);
    return param->begins;
}

static bool parse_param(ir_parser *p) {
    ir_param param = {.span = p->token.span};
    if (p->token.kind != IR_TOKEN_NAME || !ir_role_from_text(p->token.text, &param.role)) {
        ir_parse_error(p, "E0908", p->token.span,
                       "expected a role: src, dst, node, edge, param, graph, outrow, outedge, outparam");
        return false;
    }
    ir_parse_next(p);
    param.name = ir_parse_name(p, "the name of a parameter");
    if (!param.name || !ir_parse_need_mark(p, ':') || !ir_parse_type(p, &param.type))
        return false;
    if (param.role == IR_OUT_EDGE && ir_parse_take_mark(p, '=') && !parse_begins(p, &param))
        return false;
    param.span.end = p->token.span.begin;
    base_push(p->m->arena, p->f->params, p->f->n_params, p->f->cap_params, param);
    return true;
}

static bool parse_result(ir_parser *p) {
    ir_param result = {.role = IR_PARAM_FIELD, .span = p->token.span};
    result.name = ir_parse_name(p, "the name of a result");
    if (!result.name || !ir_parse_need_mark(p, ':') || !ir_parse_type(p, &result.type))
        return false;
    if (p->f->level == IR_LEVEL_KERNEL)
        result.role = result.type.space == IR_EDGE  ? IR_OUT_EDGE
                      : result.type.space == IR_ROW ? IR_OUT_ROW
                                                    : IR_OUT_PARAM;
    base_push(p->m->arena, p->f->results, p->f->n_results, p->f->cap_results, result);
    return true;
}

static bool parse_list(ir_parser *p, bool (*item)(ir_parser *)) {
    if (!ir_parse_need_mark(p, '('))
        return false;
    if (ir_parse_take_mark(p, ')'))
        return true;
    do
        if (!item(p))
            return false;
    while (ir_parse_take_mark(p, ','));
    return ir_parse_need_mark(p, ')');
}

static bool parse_domain(ir_parser *p) {
    if (!ir_parse_need_mark(p, '='))
        return false;
    base_span span = p->token.span;
    const char *word = ir_parse_name(p, "dst, src or rows");
    if (!word)
        return false;
    if (strcmp(word, "dst") != 0 && strcmp(word, "src") != 0 && strcmp(word, "rows") != 0) {
        ir_parse_error(p, "E0908", span, "the domain is dst, src or rows, not '%s'", word);
        return false;
    }
    p->f->domain = word;
    return true;
}

static bool parse_sym(ir_parser *p, uint32_t *out) {
    base_span span = p->token.span;
    const char *name = ir_parse_name(p, "a size of a graph");
    if (name && !ir_sym_find(p->f, name, out))
        ir_parse_error(p, "E0908", span, "there is no dimension '%s'", name);
    return name && ir_sym_find(p->f, name, out);
}

/* same(b.src = a.dst, ...) */
static bool parse_same(ir_parser *p) {
    if (!ir_parse_need_mark(p, '('))
        return false;
    do {
        ir_same same;
        if (!parse_sym(p, &same.of) || !ir_parse_need_mark(p, '=') || !parse_sym(p, &same.is))
            return false;
        base_push(p->m->arena, p->f->same, p->f->n_same, p->f->cap_same, same);
    } while (ir_parse_take_mark(p, ','));
    return ir_parse_need_mark(p, ')');
}

static bool parse_winner(ir_parser *p, uint32_t *out) {
    base_span span = p->token.span;
    const char *name = ir_parse_name(p, "a parameter");
    for (size_t i = 0; name && i < p->f->n_params; i++)
        if (!strcmp(p->f->params[i].name, name)) {
            *out = (uint32_t)i;
            return true;
        }
    if (name)
        ir_parse_error(p, "E0908", span, "there is no parameter '%s'", name);
    return false;
}

/* winners(x, best, which, given) */
static bool parse_winners(ir_parser *p) {
    ir_winners *w = &p->f->winners;
    uint32_t *at[] = {&w->x, &w->best, &w->which, &w->given};
    w->known = true;
    if (!ir_parse_need_mark(p, '('))
        return false;
    for (int i = 0; i < 4; i++)
        if ((i && !ir_parse_need_mark(p, ',')) || !parse_winner(p, at[i]))
            return false;
    return ir_parse_need_mark(p, ')');
}

static bool parse_flags(ir_parser *p) {
    for (;;) {
        if (take_word(p, "exported"))
            p->f->exported = true;
        else if (take_word(p, "square"))
            p->f->needs_square = true;
        else if (take_word(p, "same")) {
            if (!parse_same(p))
                return false;
        } else if (take_word(p, "winners")) {
            if (!parse_winners(p))
                return false;
        } else if (take_word(p, "domain")) {
            if (!parse_domain(p))
                return false;
        } else if (take_word(p, "unit")) {
            if (!ir_parse_need_mark(p, '=') || !ir_parse_integer(p, &p->f->rows_per_unit))
                return false;
        } else if (take_word(p, "team")) {
            if (!ir_parse_need_mark(p, '=') || !ir_parse_integer(p, &p->f->team))
                return false;
        } else {
            return true;
        }
    }
}

static bool parse_level(ir_parser *p, ir_level *out) {
    static const char *const words[] = {"kernel", "program", "loop", "task"};
    for (int i = 0; i < 4; i++)
        if (take_word(p, words[i])) {
            *out = (ir_level)i;
            return true;
        }
    return ir_parse_expected(p, "kernel, program, loop or task");
}

static bool parse_header(ir_parser *p) {
    base_span span = p->token.span;
    ir_level level;
    if (!parse_level(p, &level) || !ir_parse_need_mark(p, '@'))
        return false;
    const char *name = ir_parse_name(p, "the name of a function");
    if (!name)
        return false;
    if (ir_func_find(p->m, name, level)) {
        ir_parse_error(p, "E0908", span, "@%s is defined twice at this level", name);
        return false;
    }
    p->f = ir_func_new(p->m, name, level);
    p->f->span = span;
    if (!parse_syms(p) || !parse_list(p, parse_param))
        return false;
    if (p->token.kind == IR_TOKEN_ARROW) {
        ir_parse_next(p);
        if (!parse_list(p, parse_result))
            return false;
    }
    return parse_flags(p) && ir_parse_need_mark(p, '{');
}

/* ---- functions ---- */
static void skip_line(ir_parser *p) {
    do
        ir_parse_next(p);
    while (p->token.kind != IR_TOKEN_END && !p->token.first);
}

/* False when the text ends, or a limit is reached, before the region is closed. */
static bool parse_region(ir_parser *p, ir_region *r, int depth) {
    while (!ir_parse_take_mark(p, '}')) {
        bool opens = false;
        if (p->token.kind == IR_TOKEN_END)
            return ir_parse_expected(p, "'}'");
        if (p->diags->n_errors >= MAX_ERRORS)
            return false;
        ir_op *op = ir_parse_op(p, r, &opens);
        if (!op) {
            skip_line(p);
            continue;
        }
        if (!opens)
            continue;
        if (depth == MAX_DEPTH) {
            ir_parse_error(p, "E0909", p->token.span, "regions are nested more than %d deep", MAX_DEPTH);
            return false;
        }
        op->region = ir_region_new(p->m);
        if (!parse_region(p, op->region, depth + 1))
            return false;
    }
    return true;
}

static bool parse_func(ir_parser *p) {
    if (!parse_header(p))
        return false;
    p->ids = NULL; /* numbers begin anew in each function */
    p->n_ids = 0;
    return parse_region(p, &p->f->body, 0);
}

static bool parse_module(ir_parser *p) {
    if (!take_word(p, "module"))
        return ir_parse_expected(p, "module \"name\"");
    const char *name = ir_parse_name(p, "the name of the module");
    if (!name)
        return false;
    p->m->source_name = name;
    while (p->token.kind != IR_TOKEN_END)
        if (!parse_func(p))
            return false;
    return true;
}

ir_module *ir_parse(base_arena *arena, const char *name, const char *text, base_diags *diags) {
    ir_module *m = ir_module_new(arena, name, NULL);
    ir_parser p = {.m = m, .diags = diags, .source = text};
    if (strlen(text) > UINT32_MAX - 16) {
        base_diags_add(diags, BASE_ERROR, "E0909", (base_span){0, 0}, "the text is longer than 4 GiB");
        return NULL;
    }
    p.source_bytes = (uint32_t)strlen(text);
    p.ahead = ir_lex(arena, text, &p.at);
    ir_parse_next(&p);
    parse_module(&p);
    base_diags_sort(diags);
    return p.broken ? NULL : m;
}
