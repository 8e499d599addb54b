/* Text to tokens, all at once.  A line's end is not a token: each token knows whether a line ended before it.
 * Every byte that cannot begin a token is reported once per run of such bytes, and skipped. */
#include "frontend/fe.h"

#include <string.h>

typedef struct lexer {
    fe_context *c;
    uint32_t at;
    bool newline;
} lexer;

static const char *const TEXTS[] = {
#define FE_TOKEN(NAME, text) text,
#include "frontend/fe_tokens.def"
#undef FE_TOKEN
};

const char *fe_tok_text(fe_tok_kind k) { return TEXTS[k]; }

static bool is_letter(char ch) { return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_'; }
static bool is_digit(char ch) { return ch >= '0' && ch <= '9'; }

static fe_tok_kind keyword(const char *s, size_t n) {
#define FE_TOKEN(NAME, text)
#define FE_KEYWORD(NAME, text)                                                                                         \
    if (n == sizeof text - 1 && memcmp(s, text, n) == 0)                                                               \
        return FE_TOK_##NAME;
#include "frontend/fe_tokens.def"
#undef FE_TOKEN
    return FE_TOK_NAME;
}

static fe_tok_kind punct(const char *s, size_t *n) {
#define FE_TOKEN(NAME, text)
#define FE_KEYWORD(NAME, text)
#define FE_PUNCT(NAME, text)                                                                                           \
    if (strncmp(s, text, sizeof text - 1) == 0) {                                                                      \
        *n = sizeof text - 1;                                                                                          \
        return FE_TOK_##NAME;                                                                                          \
    }
#include "frontend/fe_tokens.def"
#undef FE_TOKEN
    return FE_TOK_BAD;
}

static void push(lexer *x, fe_tok_kind kind, uint32_t begin, fe_name *name) {
    fe_token t = {.kind = kind, .newline = x->newline, .span = {begin, x->at}, .name = name};
    base_push(x->c->arena, x->c->tokens, x->c->n_tokens, x->c->cap_tokens, t);
    x->newline = false;
}

static void lex_name(lexer *x) {
    const char *s = x->c->source;
    uint32_t begin = x->at;
    while (is_letter(s[x->at]) || is_digit(s[x->at]))
        x->at++;
    size_t n = x->at - begin;
    if (n > FE_MAX_NAME) {
        fe_report(x->c, FE_E0104, (base_span){begin, begin + 1}, "this name has %zu bytes; a name has at most %d", n,
                  FE_MAX_NAME);
        n = FE_MAX_NAME;
    }
    fe_tok_kind kind = keyword(s + begin, n);
    push(x, kind, begin, kind == FE_TOK_NAME ? fe_intern(x->c, s + begin, n) : NULL);
}

static void skip_digits(lexer *x) {
    while (is_digit(x->c->source[x->at]))
        x->at++;
}

/* The rest of a word that is not a number, so that it is reported once. */
static void bad_number(lexer *x, uint32_t begin, const char *why) {
    const char *s = x->c->source;
    while (is_letter(s[x->at]) || is_digit(s[x->at]))
        x->at++;
    int shown = x->at - begin > 40 ? 40 : (int)(x->at - begin);
    base_diag *d = fe_report(x->c, FE_E0103, (base_span){begin, x->at}, "'%.*s' is not a number", shown, s + begin);
    fe_label(x->c, d, "%s", why);
    push(x, FE_TOK_BAD, begin, NULL);
}

static void lex_number(lexer *x) {
    const char *s = x->c->source;
    uint32_t begin = x->at;
    bool is_float = false;
    skip_digits(x);
    if (s[x->at] == '.' && is_digit(s[x->at + 1])) {
        is_float = true;
        x->at++;
        skip_digits(x);
    } else if (s[x->at] == '.' && !is_letter(s[x->at + 1])) {
        x->at++;
        bad_number(x, begin, "write a digit after the point");
        return;
    }
    if (s[x->at] == 'e' || s[x->at] == 'E') {
        uint32_t sign = s[x->at + 1] == '+' || s[x->at + 1] == '-';
        is_float = true;
        x->at += 1 + sign;
        if (!is_digit(s[x->at])) {
            bad_number(x, begin, "write digits after the 'e'");
            return;
        }
        skip_digits(x);
    }
    bool imaginary = s[x->at] == 'i' && !is_letter(s[x->at + 1]) && !is_digit(s[x->at + 1]);
    if (imaginary)
        x->at++;
    if (is_letter(s[x->at])) {
        bad_number(x, begin, "numbers are decimal, like 12 or 1.5e-3; write a product with '*'");
        return;
    }
    if (x->at - begin > 1000) {
        bad_number(x, begin, "more than 1000 digits");
        return;
    }
    push(x, imaginary ? FE_TOK_IMAGINARY : is_float ? FE_TOK_FLOAT : FE_TOK_INT, begin, NULL);
}

/* Bytes that begin no token, taken together up to the next space or known byte. */
static void lex_bad(lexer *x) {
    const char *s = x->c->source;
    uint32_t begin = x->at;
    unsigned char ch = (unsigned char)s[begin];
    size_t n;
    do
        x->at++;
    while ((unsigned char)s[x->at] >= 0x80 ||
           ((unsigned char)s[x->at] > ' ' && !is_letter(s[x->at]) && !is_digit(s[x->at]) &&
            punct(s + x->at, &n) == FE_TOK_BAD && s[x->at] != '/'));
    base_span span = {begin, x->at};
    base_diag *d;
    if (ch != ';' && ch != '#')
        push(x, FE_TOK_BAD, begin, NULL); /* the parser gives up on the statement in silence */
    if (ch == ';') {
        d = fe_report(x->c, FE_E0101, span, "';' is not part of the language");
        fe_label(x->c, d, "a statement ends at the end of its line");
        x->newline = true; /* what the user meant */
        return;
    }
    if (ch == '#') {
        d = fe_report(x->c, FE_E0101, span, "'#' is not part of the language");
        fe_label(x->c, d, "a comment begins with //");
        while (s[x->at] && s[x->at] != '\n')
            x->at++;
        return;
    }
    if (ch > ' ' && ch < 0x7f)
        d = fe_report(x->c, FE_E0101, span, "'%c' is not part of the language", ch);
    else
        d = fe_report(x->c, FE_E0101, span, "byte 0x%02x is not part of the language", ch);
    if (ch == '&' || ch == '|' || ch == '!')
        fe_label(x->c, d, "logic is written with 'and', 'or', 'not'");
    else if (ch == '?')
        fe_label(x->c, d, "select(condition, a, b) chooses between two values");
    else if (ch == '"' || ch == '\'')
        fe_label(x->c, d, "there are no strings");
}

static void skip_space(lexer *x) {
    const char *s = x->c->source;
    for (;;) {
        char ch = s[x->at];
        if (ch == '\n')
            x->newline = true;
        if (ch == ' ' || ch == '\t' || ch == '\r' || ch == '\n') {
            x->at++;
        } else if (ch == '/' && s[x->at + 1] == '/') {
            while (s[x->at] && s[x->at] != '\n')
                x->at++;
        } else {
            return;
        }
    }
}

static void lex_one(lexer *x) {
    const char *s = x->c->source;
    char ch = s[x->at];
    size_t n = 0;
    if (is_letter(ch)) {
        lex_name(x);
    } else if (is_digit(ch)) {
        lex_number(x);
    } else {
        fe_tok_kind kind = punct(s + x->at, &n);
        if (kind == FE_TOK_BAD) {
            lex_bad(x);
            return;
        }
        uint32_t begin = x->at;
        x->at += (uint32_t)n;
        push(x, kind, begin, NULL);
    }
}

void fe_lex(fe_context *c) {
    lexer x = {.c = c, .newline = true};
    if (c->length > FE_MAX_SOURCE) {
        fe_report(c, FE_E0104, (base_span){0, 0}, "the file has %zu bytes; a program has at most %u", c->length,
                  FE_MAX_SOURCE);
    } else {
        if (strncmp(c->source, "\xef\xbb\xbf", 3) == 0) /* a byte order mark is no harm */
            x.at = 3;
        for (skip_space(&x); c->source[x.at]; skip_space(&x))
            lex_one(&x);
    }
    x.newline = true;
    push(&x, FE_TOK_EOF, x.at, NULL);
}
