/* Text of IR into tokens.  Any byte sequence gives tokens up to the end; what makes no sense is IR_TOKEN_BAD. */
#include "ir/ir_lex.h"

#include <string.h>

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.'; }

static bool is_word(char c) { return is_letter(c) || is_digit(c); }

static uint32_t skip_blanks(const char *s, uint32_t i, bool *first) {
    *first = i == 0;
    for (;; i++) {
        if (s[i] == '/' && s[i + 1] == '/')
            while (s[i + 1] && s[i + 1] != '\n')
                i++;
        else if (s[i] == '\n')
            *first = true;
        else if (s[i] != ' ' && s[i] != '\t' && s[i] != '\r')
            return i;
    }
}

static int hex_digit(char c) {
    return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* s[i] is the opening quote; returns the end, and the contents in *out (NULL: not closed on this line). */
static uint32_t lex_quoted(base_arena *arena, const char *s, uint32_t i, const char **out) {
    uint32_t end = i + 1;
    while (s[end] && s[end] != '"' && s[end] != '\n')
        end += s[end] == '\\' && s[end + 1] && s[end + 1] != '\n' ? 2 : 1;
    *out = NULL;
    if (s[end] != '"')
        return end;
    char *text = base_arena_alloc(arena, end - i);
    size_t n = 0;
    for (uint32_t k = i + 1; k < end; k++) {
        if (s[k] != '\\') {
            text[n++] = s[k];
        } else if (s[k + 1] == 'x' && k + 3 < end && hex_digit(s[k + 2]) >= 0 && hex_digit(s[k + 3]) >= 0 &&
                   (hex_digit(s[k + 2]) || hex_digit(s[k + 3]))) {
            text[n++] = (char)(hex_digit(s[k + 2]) * 16 + hex_digit(s[k + 3]));
            k += 3;
        } else {
            text[n++] = s[++k];
        }
    }
    *out = text;
    return end + 1;
}

static uint32_t lex_number(const char *s, uint32_t i) {
    i += s[i] == '-';
    for (; is_word(s[i]) || ((s[i] == '+' || s[i] == '-') && (s[i - 1] == 'e' || s[i - 1] == 'E')); i++)
        ;
    return i;
}

ir_token ir_lex(base_arena *arena, const char *s, uint32_t *at) {
    ir_token t = {.kind = IR_TOKEN_BAD};
    uint32_t i = skip_blanks(s, *at, &t.first), end = i + 1;
    char c = s[i];
    if (c == 0) {
        t.kind = IR_TOKEN_END;
        end = i;
    } else if (c == '"') {
        end = lex_quoted(arena, s, i, &t.text);
        t.kind = t.text ? IR_TOKEN_QUOTED : IR_TOKEN_BAD;
    } else if (c == '-' && s[i + 1] == '>') {
        t.kind = IR_TOKEN_ARROW;
        end = i + 2;
    } else if (c == '-' || is_digit(c)) {
        t.kind = IR_TOKEN_NUMBER;
        end = lex_number(s, i);
    } else if (is_letter(c)) {
        t.kind = IR_TOKEN_NAME;
        for (end = i; is_word(s[end]); end++)
            ;
    } else if (c == '%' && is_digit(s[i + 1])) {
        t.kind = IR_TOKEN_VALUE;
        for (end = i + 1; is_digit(s[end]); end++)
            ;
    } else if (strchr("@()[]{},:=", c)) {
        t.kind = IR_TOKEN_MARK;
        t.mark = c;
    }
    if (t.kind == IR_TOKEN_VALUE)
        t.text = base_arena_strndup(arena, s + i + 1, end - i - 1);
    else if (!t.text)
        t.text = base_arena_strndup(arena, s + i, end - i);
    t.span = (base_span){i, end};
    *at = end;
    return t;
}
