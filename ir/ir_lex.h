/* Tokens of the IR text form; private to ir_lex.c and ir_parse*.c. */
#ifndef IR_LEX_H
#define IR_LEX_H

#include "ir/ir.h"

typedef enum ir_token_kind {
    IR_TOKEN_END,
    IR_TOKEN_NAME,   /* bare */
    IR_TOKEN_QUOTED, /* "..." */
    IR_TOKEN_NUMBER, /* digits, or anything that begins like a number */
    IR_TOKEN_VALUE,  /* %12 */
    IR_TOKEN_MARK,   /* one character: @ ( ) [ ] { } , : = */
    IR_TOKEN_ARROW,  /* -> */
    IR_TOKEN_BAD
} ir_token_kind;

typedef struct ir_token {
    ir_token_kind kind;
    base_span span;
    bool first; /* of its line */
    char mark;
    const char *text; /* NUL-terminated; contents of a quoted name; digits of a value */
} ir_token;

/* Reads the token at *at and moves past it; blanks and `// comments` are skipped. */
ir_token ir_lex(base_arena *arena, const char *source, uint32_t *at);

#endif
