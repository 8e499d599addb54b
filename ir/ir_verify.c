/* Rules that hold on every level: operand counts, scope of values, attributes, form of types, region arguments.
 * The rules of one level are in ir_verify_graph.c, ir_verify_loop.c and ir_verify_task.c.
 *
 * A value may be used after its operation, in the same region or in regions nested later in it.  An operation stands
 * in one region at most.  The first broken rule is reported, with the number that printing would give. */
#include "ir/ir_check.h"
#include "ir/ir_private.h"

#include <math.h>
#include <string.h>

static const char *const level_words[] = {"kernel", "program", "loop", "task"};

bool ir_check_fail(ir_check *c, const char *fmt, ...) {
    base_str_addf(c->err, "%s @%s", level_words[c->f->level], c->f->name);
    if (c->at)
        base_str_addf(c->err, ", %%%u (%s)", c->number[c->at], ir_op_describe(ir_at(c->f, c->at)->code)->text);
    base_str_add(c->err, ": ");
    va_list ap;
    va_start(ap, fmt);
    base_str_vaddf(c->err, fmt, ap);
    va_end(ap);
    return false;
}

const ir_op *ir_check_arg(const ir_check *c, const ir_op *op, uint32_t i) { return ir_at(c->f, op->args[i]); }

bool ir_check_scalar_arg(ir_check *c, const ir_op *op, uint32_t i, ir_dtype dtype) {
    const ir_type *t = &ir_check_arg(c, op, i)->type;
    return (t->dtype == dtype && t->rank == 0) ||
           ir_check_fail(c, "operand %u must be a scalar of type %s", i, ir_dtype_text(dtype));
}

bool ir_check_type_is(ir_check *c, const ir_op *op, ir_type want) {
    if (op->type.dtype == want.dtype && op->type.space == want.space && ir_check_same_shape(c->f, &op->type, &want))
        return true;
    base_str text = {0};
    ir_print_type(c->f, &want, &text);
    bool ok = ir_check_fail(c, "the type must be %s", base_str_text(&text));
    base_str_fini(&text);
    return ok;
}

/* ---- shapes; sizes that are one have one name ---- */
bool ir_check_same_shape(const ir_func *f, const ir_type *a, const ir_type *b) {
    ir_type x = ir_type_canonical(f, a), y = ir_type_canonical(f, b);
    return ir_shape_equal(&x, &y);
}

/* ---- element by element ---- */
static bool check_operand_dtypes(ir_check *c, const ir_op *op) {
    uint32_t first = op->code == IR_SELECT;
    ir_dtype t = ir_check_arg(c, op, first)->type.dtype;
    if (first && ir_check_arg(c, op, 0)->type.dtype != IR_BOOL)
        return ir_check_fail(c, "the condition must be bool");
    for (uint32_t i = first; i < op->n_args; i++)
        if (ir_check_arg(c, op, i)->type.dtype != t)
            return ir_check_fail(c, "operands are of different types, %s and %s", ir_dtype_text(t),
                                 ir_dtype_text(ir_check_arg(c, op, i)->type.dtype));
    return ir_eval_defined(op->code, t) || ir_check_fail(c, "not defined on %s", ir_dtype_text(t));
}

bool ir_check_elementwise(ir_check *c, const ir_op *op) {
    if (!check_operand_dtypes(c, op))
        return false;
    ir_type want = ir_type_canonical(c->f, &ir_check_arg(c, op, 0)->type);
    for (uint32_t i = 1; i < op->n_args; i++) {
        ir_type t = ir_type_canonical(c->f, &ir_check_arg(c, op, i)->type);
        if (!ir_broadcast(&want, &t, &want))
            return ir_check_fail(c, "shapes of the operands do not broadcast");
        if (t.space > want.space)
            want.space = t.space;
    }
    want.dtype = ir_check_arg(c, op, op->n_args - 1)->type.dtype;
    if (op->code == IR_CAST && op->type.dtype < IR_DTYPE_COUNT && !ir_cast_defined(want.dtype, op->type.dtype))
        return ir_check_fail(c, "a complex number cannot become %s", ir_dtype_text(op->type.dtype));
    want.dtype = op->code != IR_CAST               ? ir_elementwise_dtype(op->code, want.dtype)
                 : op->type.dtype < IR_DTYPE_COUNT ? op->type.dtype
                                                   : IR_F32;
    return ir_check_type_is(c, op, want);
}

/* ---- kinds, parameters, ends ---- */
bool ir_check_kind(ir_check *c, const ir_op *op, ir_kind *out) {
    const char *word = ir_word(op, IR_ATTR_KIND);
    return (word && ir_kind_from_text(word, out)) ||
           ir_check_fail(c, "'%s' is not a kind of reduction", word ? word : "");
}

bool ir_check_kind_on(ir_check *c, ir_kind k, ir_dtype t) {
    bool ok = k == IR_KIND_ARGMIN || k == IR_KIND_ARGMAX
                  ? ir_eval_defined(IR_LT, t)
                  : ir_kind_is_primitive(k) && ir_eval_defined(ir_kind_opcode(k), t);
    return ok || ir_check_fail(c, "%s is not possible here on %s", ir_kind_text(k), ir_dtype_text(t));
}

bool ir_check_param_index(ir_check *c, const ir_op *op, const ir_param **out) {
    int64_t i = ir_int(op, IR_ATTR_FIELD, -1);
    if (i < 0 || (uint64_t)i >= c->f->n_params)
        return ir_check_fail(c, "there is no parameter %lld", (long long)i);
    *out = &c->f->params[i];
    return true;
}

bool ir_check_last(ir_check *c, const ir_op *op, bool in_body) {
    (void)op;
    if (!c->is_last)
        return ir_check_fail(c, "nothing may follow it");
    return (c->depth == 0) == in_body || ir_check_fail(c, "it cannot stand in this region");
}

bool ir_check_region_args(ir_check *c, const ir_op *op, size_t n, const ir_type *types) {
    ir_type i64 = ir_scalar(IR_I64);
    size_t found = 0;
    while (found < op->region->n && op->region->ops[found] < c->f->n_ops && op->region->ops[found] > 0 &&
           ir_at(c->f, op->region->ops[found])->code == IR_ARG)
        found++;
    if (found != n)
        return ir_check_fail(c, "its region begins with %zu arguments, not %zu", found, n);
    for (size_t i = 0; i < n; i++) {
        const ir_op *arg = ir_at(c->f, op->region->ops[i]);
        const ir_type *want = types ? &types[i] : &i64;
        if (ir_int(arg, IR_ATTR_INDEX, -1) != (int64_t)i)
            return ir_check_fail(c, "argument %zu of its region has another index", i);
        if (arg->type.dtype != want->dtype || arg->type.space != want->space ||
            !ir_check_same_shape(c->f, &arg->type, want))
            return ir_check_fail(c, "argument %zu of its region has the wrong type", i);
    }
    return true;
}

/* ---- attributes ---- */
#define BIT(NAME) (UINT64_C(1) << IR_ATTR_##NAME)
typedef struct attr_rule {
    uint64_t required, optional;
} attr_rule;

static attr_rule attr_rule_of(ir_opcode code) {
    attr_rule r = {0, BIT(NAME)};
    if (code == IR_CONST)
        r.required = BIT(VALUE);
    if (code == IR_FIELD)
        r.required = BIT(FIELD) | BIT(AT);
    if (code == IR_PARAM || code == IR_LOAD || code == IR_STORE)
        r.required = BIT(FIELD);
    if (code == IR_DIMSIZE)
        r.required = BIT(DIM);
    if (code == IR_ARG || code == IR_GET)
        r.required = BIT(INDEX);
    if (code == IR_FOLD)
        r.required = BIT(KIND) | BIT(AXES);
    if (code == IR_NEWAXIS)
        r.required = BIT(AXES);
    if (code == IR_REDUCE || code == IR_TOTAL || code == IR_PARTIALS)
        r.required = BIT(KIND);
    if (code == IR_SLICE)
        r.required = BIT(AXIS) | BIT(BEGIN);
    if (code == IR_TRANSPOSE)
        r.required = BIT(PERM);
    if (code == IR_CONCAT || code == IR_GATHER || code == IR_CUMSUM)
        r.required = BIT(AXIS);
    if (code == IR_CUMSUM || code == IR_COMBINE)
        r.optional |= BIT(REVERSE);
    if (code == IR_COMBINE)
        r.optional |= BIT(SCAN);
    if (code == IR_COMBINE || code == IR_SELECT)
        r.optional |= BIT(WINNERS);
    if (code == IR_MATMUL)
        r.optional |= BIT(TURNED);
    if (code == IR_CALL)
        r.required = BIT(CALLEE) | BIT(GRAPH);
    if (code == IR_CALL)
        r.optional |= BIT(DIM) | BIT(DIMS);
    if (code == IR_GRAD)
        r.required = BIT(OUTPUTS);
    if (code == IR_ROWS)
        r.optional |= BIT(STEP) | BIT(REST) | BIT(FEW) | BIT(BLOCK) | BIT(SIZES);
    if (code == IR_LOOP)
        r.optional |= BIT(FEW);
    if (code == IR_TILES)
        r.required = BIT(WIDTH);
    if (code == IR_BIND)
        r.required = BIT(KIND) | BIT(INDEX);
    if (code == IR_INSTANCE)
        r.required = BIT(NAME) | BIT(VERSION) | BIT(TIER);
    if (code == IR_ACQUIRE)
        r.required = BIT(MODE);
    if (code == IR_LAUNCH)
        r.required = BIT(CALLEE) | BIT(GRAPH) | BIT(BUFFERS) | BIT(OUTPUTS);
    if (code == IR_LAUNCH)
        r.optional |= BIT(AHEAD);
    if (ir_op_describe(code)->cls == IR_CLASS_LOOP)
        r.optional |= BIT(LANES) | BIT(PREFETCH) | BIT(FETCH) | BIT(VECTOR) | BIT(PAGES);
    return r;
}

static bool check_attr_form(ir_check *c, const ir_op *op, const ir_attr *a) {
    int64_t least, most;
    switch (ir_attr_form_of(a->key)) {
    case IR_FORM_WORD:
        return a->word || ir_check_fail(c, "attribute '%s' has no word", ir_attr_text(a->key));
    case IR_FORM_DIM:
        if (a->i >= 0 || (ir_dim_is_sym(a->i) && ir_dim_sym_index(a->i) < c->f->n_syms))
            return true;
        return ir_check_fail(c, "attribute '%s' is not a dimension", ir_attr_text(a->key));
    case IR_FORM_BITS:
        if (op->type.dtype >= IR_DTYPE_COUNT || ir_dtype_is_float(op->type.dtype) ||
            ir_dtype_is_complex(op->type.dtype))
            return true;
        ir_dtype_limits(op->type.dtype, &least, &most);
        return (a->v.i >= least && a->v.i <= most) ||
               ir_check_fail(c, "the value does not fit in %s", ir_dtype_text(op->type.dtype));
    case IR_FORM_INT:
    case IR_FORM_FLOAT:
        return true;
    }
    return true;
}

static bool check_attrs(ir_check *c, const ir_op *op) {
    attr_rule rule = attr_rule_of(op->code);
    uint64_t seen = 0;
    for (uint32_t i = 0; i < op->n_attrs; i++) {
        const ir_attr *a = &op->attrs[i];
        if (!((rule.required | rule.optional) >> a->key & 1))
            return ir_check_fail(c, "it has no attribute '%s'", ir_attr_text(a->key));
        if (seen >> a->key & 1)
            return ir_check_fail(c, "attribute '%s' stands twice", ir_attr_text(a->key));
        if (!check_attr_form(c, op, a))
            return false;
        seen |= UINT64_C(1) << a->key;
    }
    for (int key = 0; key < IR_ATTR_COUNT; key++)
        if ((rule.required & ~seen) >> key & 1)
            return ir_check_fail(c, "attribute '%s' is missing", ir_attr_text((ir_attr_key)key));
    return true;
}

/* ---- types ---- */
static const char *bad_type(const ir_func *f, const ir_type *t, bool tile) {
    if ((unsigned)t->dtype > IR_INSTANCE_T)
        return "unknown element type";
    if (t->rank > IR_MAX_RANK)
        return "too many axes";
    if (t->dtype >= IR_DTYPE_COUNT && t->rank)
        return "only arrays of numbers have axes";
    if (t->space != IR_UNIFORM && f->level != IR_LEVEL_KERNEL)
        return "spaces belong to kernels";
    if ((unsigned)t->space > IR_EDGE)
        return "unknown space";
    for (uint32_t i = 0; i < t->rank; i++) {
        if (t->dim[i] == IR_DIM_TILE && !tile)
            return "a tile width has no meaning here";
        if (ir_dim_is_sym(t->dim[i]) && ir_dim_sym_index(t->dim[i]) >= f->n_syms)
            return "a dimension is no symbol of the function";
    }
    return NULL;
}

static bool in_tiles(const ir_check *c) {
    for (int i = 0; i < c->depth; i++)
        if (ir_at(c->f, c->loops[i])->code == IR_TILES)
            return true;
    return false;
}

/* Which operations have no value on which level. */
static bool has_value(const ir_op *op) {
    ir_class cls = ir_op_describe(op->code)->cls;
    return cls != IR_CLASS_EFFECT &&
           (cls != IR_CLASS_LOOP || op->code == IR_REPEAT || op->code == IR_IF || op->code == IR_COMBINE);
}

static bool check_type(ir_check *c, const ir_op *op) {
    if (has_value(op) != (op->type.dtype != IR_NONE))
        return ir_check_fail(c, has_value(op) ? "it needs a type" : "it has no value, so no type");
    const char *why = bad_type(c->f, &op->type, op->code == IR_VAR && in_tiles(c));
    return !why || ir_check_fail(c, "%s", why);
}

/* ---- one operation ---- */
static bool check_operands(ir_check *c, const ir_op *op) {
    const ir_op_desc *d = ir_op_describe(op->code);
    if ((int64_t)op->n_args < d->min_args || (d->max_args >= 0 && (int64_t)op->n_args > d->max_args))
        return ir_check_fail(
            c, "%u operands, but it takes %s%d", op->n_args, d->max_args == d->min_args ? "" : "at least ",
            (int64_t)op->n_args < d->min_args || d->max_args == d->min_args ? d->min_args : d->max_args);
    for (uint32_t i = 0; i < op->n_args; i++) {
        ir_id arg = op->args[i];
        if (arg == 0 || arg >= c->f->n_ops)
            return ir_check_fail(c, "operand %u is no operation of the function", i);
        if (c->scope[arg] != IR_VISIBLE)
            return ir_check_fail(c,
                                 c->scope[arg] == IR_GONE ? "operand %u is used outside the region of its definition"
                                                          : "operand %u is used before its definition",
                                 i);
        if (ir_at(c->f, arg)->type.dtype == IR_NONE)
            return ir_check_fail(c, "operand %u has no value", i);
    }
    return true;
}

static bool check_arg_place(ir_check *c, const ir_op *op) {
    if (op->code != IR_ARG)
        return true;
    if (c->depth == 0)
        return ir_check_fail(c, "it stands in no region");
    for (size_t i = 0; i < c->in->n && c->in->ops[i] != c->at; i++)
        if (ir_at(c->f, c->in->ops[i])->code != IR_ARG)
            return ir_check_fail(c, "arguments stand at the beginning of their region");
    return true;
}

static bool check_common(ir_check *c, const ir_op *op) {
    const ir_op_desc *d = ir_op_describe(op->code);
    if (!(d->levels >> c->f->level & 1))
        return ir_check_fail(c, "it does not belong to a %s", level_words[c->f->level]);
    if ((d->cls == IR_CLASS_LOOP) != (op->region != NULL))
        return ir_check_fail(c, op->region ? "it has no region" : "it needs a region");
    return check_operands(c, op) && check_attrs(c, op) && check_type(c, op) && check_arg_place(c, op);
}

static bool check_level(ir_check *c, const ir_op *op) {
    switch (c->f->level) {
    case IR_LEVEL_KERNEL:
    case IR_LEVEL_PROGRAM:
        return ir_check_graph_op(c, op);
    case IR_LEVEL_LOOP:
        return ir_check_loop_op(c, op);
    case IR_LEVEL_TASK:
        return ir_check_task_op(c, op);
    }
    return false;
}

static bool check_region(ir_check *c, const ir_region *r);

static bool check_op(ir_check *c, const ir_region *r, size_t i) {
    ir_id id = r->ops[i];
    c->at = 0;
    if (id == 0 || id >= c->f->n_ops)
        return ir_check_fail(c, "a region lists an operation that does not exist");
    const ir_op *op = ir_at(c->f, id);
    if (op->code <= IR_OP_NONE || op->code >= IR_OP_COUNT)
        return ir_check_fail(c, "an operation without a code");
    bool again = c->scope[id] != IR_UNSEEN;
    if (!again)
        c->number[id] = ++c->last;
    c->at = id;
    c->in = r;
    c->is_last = i + 1 == r->n;
    if (again)
        return ir_check_fail(c, "it stands in two places");
    c->depth_of[id] = (uint32_t)c->depth;
    if (!check_common(c, op))
        return false;
    c->depends[id] = op->code == IR_ARG ? UINT64_C(1) << (c->depth - 1) : 0;
    for (uint32_t k = 0; k < op->n_args; k++)
        c->depends[id] |= c->depends[op->args[k]];
    if (!check_level(c, op))
        return false;
    if (op->region) {
        if (c->depth == IR_CHECK_DEPTH)
            return ir_check_fail(c, "regions are nested too deep");
        size_t before = c->n_undo;
        c->loops[c->depth++] = id;
        bool ok = check_region(c, op->region);
        c->depth--;
        while (c->n_undo > before) {
            ir_check_hold h = c->undo[--c->n_undo];
            c->held[h.instance] = h.was;
        }
        if (!ok)
            return false;
    }
    c->scope[id] = IR_VISIBLE; /* after its region: nothing inside may use it */
    return true;
}

static bool check_region(ir_check *c, const ir_region *r) {
    for (size_t i = 0; i < r->n; i++)
        if (!check_op(c, r, i))
            return false;
    for (size_t i = 0; i < r->n && r != &c->f->body; i++)
        c->scope[r->ops[i]] = IR_GONE;
    return true;
}

/* ---- functions ---- */
static bool role_allowed(ir_level level, ir_role role) {
    switch (role) {
    case IR_SRC:
    case IR_DST:
    case IR_NODE:
    case IR_EDGE_FIELD:
        return level != IR_LEVEL_PROGRAM;
    case IR_PARAM_FIELD:
        return true;
    case IR_GRAPH_FIELD:
        return level == IR_LEVEL_PROGRAM || level == IR_LEVEL_TASK;
    case IR_OUT_ROW:
    case IR_OUT_EDGE:
    case IR_OUT_PARAM:
        return level == IR_LEVEL_LOOP;
    }
    return false;
}

static bool check_param(ir_check *c, const ir_param *p) {
    if (!p->name)
        return ir_check_fail(c, "a parameter has no name");
    if ((unsigned)p->role > IR_OUT_PARAM || !role_allowed(c->f->level, p->role))
        return ir_check_fail(c, "parameter '%s' has a role that does not belong here", p->name);
    if ((p->role == IR_GRAPH_FIELD) != (p->type.dtype == IR_GRAPH) ||
        (p->type.dtype != IR_GRAPH && p->type.dtype >= IR_DTYPE_COUNT))
        return ir_check_fail(c, "parameter '%s' has the wrong type for its role", p->name);
    if (p->type.space != IR_UNIFORM)
        return ir_check_fail(c, "the space of parameter '%s' follows from its role", p->name);
    const char *why = bad_type(c->f, &p->type, false);
    if (why)
        return ir_check_fail(c, "parameter '%s': %s", p->name, why);
    if (p->role == IR_NODE && c->f->level == IR_LEVEL_KERNEL && !c->f->needs_square)
        return ir_check_fail(c, "parameter '%s': a node field needs a square graph", p->name);
    if (c->f->level == IR_LEVEL_KERNEL && c->f->domain && strcmp(c->f->domain, "rows") == 0 && p->role != IR_DST &&
        p->role != IR_PARAM_FIELD)
        return ir_check_fail(c, "parameter '%s': a kernel over rows has dst and param fields only", p->name);
    return true;
}

static bool check_begins(ir_check *c, const ir_param *p) {
    if (!p->begins)
        return true;
    const ir_param *from = p->begins <= c->f->n_params ? &c->f->params[p->begins - 1] : NULL;
    if (c->f->level != IR_LEVEL_LOOP || p->role != IR_OUT_EDGE || !from || from->role != IR_EDGE_FIELD ||
        !ir_type_equal(&p->type, &from->type))
        return ir_check_fail(c, "'%s': only an edge result can begin as a field, an edge field of its type", p->name);
    return true;
}

static bool check_result(ir_check *c, const ir_param *r) {
    if (!r->name || r->type.dtype >= IR_DTYPE_COUNT)
        return ir_check_fail(c, "a result without a name or an element type");
    ir_type t = r->type;
    if (c->f->level == IR_LEVEL_TASK) /* results of the kernel that it runs */
        t.space = IR_UNIFORM;
    const char *why = bad_type(c->f, &t, false);
    if (why)
        return ir_check_fail(c, "result '%s': %s", r->name, why);
    if (c->f->level == IR_LEVEL_KERNEL && strcmp(c->f->domain, "rows") == 0 && t.space == IR_EDGE)
        return ir_check_fail(c, "result '%s': a kernel over rows has no edges", r->name);
    return true;
}

static bool is_graph_dim(const ir_func *f, uint32_t sym) {
    const char *dot = sym < f->n_syms ? strrchr(f->syms[sym], '.') : NULL;
    return dot && (strcmp(dot, ".dst") == 0 || strcmp(dot, ".src") == 0);
}

static bool check_same(ir_check *c) {
    const ir_func *f = c->f;
    if (f->n_same && f->level != IR_LEVEL_PROGRAM && f->level != IR_LEVEL_TASK)
        return ir_check_fail(c, "only a program has several graphs whose sizes can be the same");
    for (size_t i = 0; i < f->n_same; i++) {
        if (!is_graph_dim(f, f->same[i].of) || !is_graph_dim(f, f->same[i].is))
            return ir_check_fail(c, "only the rows and sources of graphs can be the same");
        for (size_t k = 0; k < f->n_same; k++)
            if (f->same[i].is == f->same[k].of || (i != k && f->same[i].of == f->same[k].of))
                return ir_check_fail(c, "'%s' has two names", f->syms[f->same[k].of]);
    }
    return true;
}

/* Four fields and one result of one type, which has axes: the first field of the row, the others of its sources. */
static bool check_winners(ir_check *c) {
    const ir_func *f = c->f;
    const uint32_t at[] = {f->winners.x, f->winners.best, f->winners.which, f->winners.given};
    if (!f->winners.known)
        return true;
    if (f->level != IR_LEVEL_LOOP || !ir_transposed(f) || f->n_params != 5 || f->params[4].role != IR_OUT_ROW)
        return ir_check_fail(c, "winners are of a loop over the transposed relation with four fields and a result");
    const ir_type *t = &f->params[4].type;
    if ((t->dtype != IR_F32 && t->dtype != IR_F64) || t->rank == 0)
        return ir_check_fail(c, "the result of winners is of f32 or f64 and has axes");
    for (int i = 0; i < 4; i++) {
        if (at[i] >= 4 || f->params[at[i]].role != (i ? IR_SRC : IR_DST) || !ir_type_equal(&f->params[at[i]].type, t))
            return ir_check_fail(c,
                                 "winners are a field of the row and three of its sources, of the type of the result");
        for (int k = 0; k < i; k++)
            if (at[k] == at[i])
                return ir_check_fail(c, "a field of winners stands twice");
    }
    return true;
}

static bool check_header(ir_check *c) {
    const ir_func *f = c->f;
    bool walks = f->level == IR_LEVEL_KERNEL || f->level == IR_LEVEL_LOOP;
    if (walks && (!f->domain ||
                  (strcmp(f->domain, "dst") != 0 && strcmp(f->domain, "src") != 0 && strcmp(f->domain, "rows") != 0)))
        return ir_check_fail(c, "the domain is dst, src or rows");
    if (f->rows_per_unit < 1 || (f->rows_per_unit != 1 && f->level != IR_LEVEL_LOOP))
        return ir_check_fail(c, "a unit has at least one row, and more only in a loop function");
    if (f->team < 0 || f->team > 1024 || (f->team && f->level != IR_LEVEL_LOOP))
        return ir_check_fail(c, "a team has 1 to 1024 threads, and only in a loop function");
    if (f->level == IR_LEVEL_LOOP && f->n_results)
        return ir_check_fail(c, "a loop function has out parameters, not results");
    for (uint32_t i = 0; i < f->n_syms; i++)
        if (ir_sym_is_computed(f->syms[i]) && !ir_sum_is_canonical(f, i))
            return ir_check_fail(c, "'%s' is not how a sum of products of dimensions is written", f->syms[i]);
    for (size_t i = 0; i < f->n_params; i++)
        if (!check_param(c, &f->params[i]) || !check_begins(c, &f->params[i]))
            return false;
    for (size_t i = 0; i < f->n_results; i++)
        if (!check_result(c, &f->results[i]))
            return false;
    return check_same(c) && check_winners(c);
}

static bool check_end(ir_check *c) {
    c->at = 0;
    size_t n = c->f->body.n;
    bool has_ret = n && ir_at(c->f, c->f->body.ops[n - 1])->code == IR_RET;
    return c->f->level == IR_LEVEL_LOOP || has_ret || ir_check_fail(c, "the function does not end with ret");
}

bool ir_verify_func(const ir_module *m, const ir_func *f, base_str *err) {
    ir_check c = {.m = m, .f = f, .err = err};
    size_t n = f->n_ops;
    c.number = base_alloc_zero(n * sizeof *c.number);
    c.scope = base_alloc_zero(n);
    c.depth_of = base_alloc_zero(n * sizeof *c.depth_of);
    c.depends = base_alloc_zero(n * sizeof *c.depends);
    c.held = base_alloc_zero(n);
    c.scanned = base_alloc_zero(n);
    bool ok;
    if (!c.number || !c.scope || !c.depth_of || !c.depends || !c.held || !c.scanned) {
        base_str_add(err, "out of memory");
        ok = false;
    } else {
        ok = check_header(&c) && check_region(&c, &f->body) && check_end(&c);
    }
    base_free(c.number);
    base_free(c.scope);
    base_free(c.depth_of);
    base_free(c.depends);
    base_free(c.held);
    base_free(c.scanned);
    base_free(c.undo);
    return ok;
}

bool ir_verify(const ir_module *m, base_str *err) {
    for (size_t i = 0; i < m->n_funcs; i++) {
        if (ir_func_find(m, m->funcs[i]->name, m->funcs[i]->level) != m->funcs[i]) {
            base_str_addf(err, "@%s stands twice at one level", m->funcs[i]->name);
            return false;
        }
        if (!ir_verify_func(m, m->funcs[i], err))
            return false;
    }
    return true;
}
