/* What the parser's files share: ir_parse.c (headers, types, regions) and ir_parse_op.c (operations). */
#ifndef IR_PARSE_H
#define IR_PARSE_H

#include "ir/ir_lex.h"

typedef struct ir_parser {
    ir_module *m;
    ir_func *f;
    base_diags *diags;
    const char *source;
    uint32_t source_bytes, at;
    ir_token token, ahead;
    ir_id *ids; /* by the number written after %, 0: not defined */
    uint32_t n_ids;
    bool broken; /* an error was reported */
} ir_parser;

base_diag *ir_parse_error(ir_parser *p, const char *id, base_span span, const char *fmt, ...) BASE_PRINTF(4, 5);
bool ir_parse_expected(ir_parser *p, const char *what); /* reports; always false */
void ir_parse_next(ir_parser *p);
bool ir_parse_at_mark(const ir_parser *p, char mark);
bool ir_parse_take_mark(ir_parser *p, char mark);
bool ir_parse_need_mark(ir_parser *p, char mark);
const char *ir_parse_name(ir_parser *p, const char *what); /* bare or quoted; NULL after an error */
bool ir_parse_integer(ir_parser *p, int64_t *out);
bool ir_parse_dim(ir_parser *p, ir_dim *out);
bool ir_parse_type(ir_parser *p, ir_type *out);

/* One operation, appended to r; *opens: its region comes next.  NULL after an error. */
ir_op *ir_parse_op(ir_parser *p, ir_region *r, bool *opens);

#endif
