/* What the files of ir/ share among themselves and nobody else needs. */
#ifndef IR_PRIVATE_H
#define IR_PRIVATE_H

#include "ir/ir.h"

/* How the value of an attribute is written: the KIND column of ir_attrs.def. */
typedef enum ir_attr_form { IR_FORM_INT, IR_FORM_FLOAT, IR_FORM_WORD, IR_FORM_DIM, IR_FORM_BITS } ir_attr_form;

const char *ir_attr_text(ir_attr_key key);
ir_attr_form ir_attr_form_of(ir_attr_key key);
bool ir_attr_from_text(const char *text, ir_attr_key *out);

ir_attr *ir_put_attr(ir_module *m, ir_op *op, ir_attr_key key); /* finds or adds, kept in order of the keys */

/* ir_eval_complex.c: operations on complex numbers but select, cast and complex. */
ir_scalar_value ir_eval_complex(ir_opcode code, ir_dtype t, const ir_scalar_value *args);

/* ir_interp.c: offsets and sources are in order; otherwise why not. */
bool ir_graph_check(const ir_graph_data *g, bool square, base_str *why);

#endif
