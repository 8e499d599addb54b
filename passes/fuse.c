/* fuse: calls in a program that go over the same rows become one call.
 *
 *   two walks over one graph       no dependence, or the second reads row values of the first for the same row: one launch
 *   a walk, then its row function  tensor operations on the results of a walk are done row by row (or edge by edge) in it
 *   tensor operations, then a walk that reads them as `dst` or `edge` fields: computed in the walk; as `src` fields: only
 *                                  when that does not gather more (fuse_cost.c)
 *
 * Works on each region of a program after outline.  A call meets the calls that make its operands and the last walks over
 * its graph.  The new call stands where the second stood, when nothing between needs the first; otherwise where the first
 * stood, when all operands of the second are there by then; otherwise the two stay.  Every bit stays: no sum changes.
 *
 * What was decided, and why not, is told through pass_note. */
#include "passes/fuse.h"

#include <string.h>

enum { WINDOW = 200, WALKS = 8 }; /* steps of a region between two calls; walks that a call is compared with */

typedef struct slot { /* one step of a region: an operation, or a fused call with the members that are taken of it */
    ir_id *ids;
    size_t n, cap;
} slot;

typedef struct member { /* get of a call */
    ir_id id;
    struct member *next;
} member;

typedef struct story { /* what a fused call is made of */
    const char *name, *how; /* how: NULL for the walk that others joined */
    struct story *next;
} story;

typedef struct refusal {
    ir_id first, second;
    const char *why;
} refusal;

typedef struct fuser {
    fuse f;
    pass_context *ctx;
    uint32_t cap;     /* ids that there may be */
    ir_id *to;        /* by id: replaced by, 0 itself */
    uint32_t *uses;   /* by id */
    member **members; /* by id of a call */
    uint32_t *home;   /* by id: number of the region it stands in */
    size_t *at;       /* by id: slot there */
    story **told;     /* by id of a call */
    refusal *refusals;
    size_t n_refusals, cap_refusals;
    uint32_t n_regions;
    /* the region at hand */
    uint32_t region;
    slot *slots;
    ir_id walks[WALKS]; /* the last ones, newest first */
} fuser;

/* ---- facts ------------------------------------------------------------------------------------------------------- */
static ir_id resolve(const fuser *s, ir_id id) {
    while (s->to[id])
        id = s->to[id];
    return id;
}

static void resolve_args(fuser *s, ir_op *op) {
    for (uint32_t i = 0; i < op->n_args; i++)
        op->args[i] = resolve(s, op->args[i]);
}

static ir_id call_of(const fuser *s, ir_id value) {
    const ir_op *op = ir_at(s->f.p, value);
    if (op->code == IR_CALL)
        return value;
    return op->code == IR_GET && ir_at(s->f.p, op->args[0])->code == IR_CALL ? op->args[0] : 0;
}

bool fuse_result_of(const ir_func *p, ir_id id, ir_id value, size_t *index) {
    const ir_op *op = ir_at(p, value);
    *index = op->code == IR_GET ? (size_t)ir_int(op, IR_ATTR_INDEX, 0) : 0;
    return value == id || (op->code == IR_GET && op->args[0] == id);
}

static bool has_total(const ir_func *k) {
    for (size_t i = 0; i < k->body.n; i++)
        if (ir_at(k, k->body.ops[i])->code == IR_TOTAL)
            return true;
    return false;
}

static bool graph_dim(const fuser *s, int64_t graph, const char *what, ir_dim *out) {
    uint32_t sym;
    if (!ir_graph_sym(s->f.p, s->f.p->params[graph].name, what, &sym))
        return false;
    *out = ir_dim_canonical(s->f.p, ir_dim_sym(sym));
    return true;
}

static bool describe(fuser *s, ir_id id, fuse_side *out) {
    ir_op *op = ir_at(s->f.p, id);
    resolve_args(s, op);
    const ir_func *k = ir_func_find(s->f.m, ir_word(op, IR_ATTR_CALLEE), IR_LEVEL_KERNEL);
    if (!k)
        return false;
    ir_dim *dims = base_arena_new_array(s->f.scratch, ir_dim, k->n_syms + 1);
    base_str why = {0};
    bool ok = ir_bind_call(s->f.p, op, k, dims, &why);
    base_str_fini(&why);
    *out = (fuse_side){.id = id,
                       .op = op,
                       .kernel = k,
                       .dims = dims,
                       .graph = ir_int(op, IR_ATTR_GRAPH, -1),
                       .rows = ir_dim_canonical(s->f.p, ir_int(op, IR_ATTR_DIM, 0)),
                       .total = has_total(k)};
    if (out->graph >= 0)
        ok = ok && graph_dim(s, out->graph, ir_transposed(k) ? "src" : "dst", &out->rows);
    return ok;
}

/* ---- may they? --------------------------------------------------------------------------------------------------- */
/* The way in which a kernel over rows goes into a walk: with its rows, or with its edges. */
static bool mode_in(fuser *s, const fuse_side *rows, const fuse_side *walk, fuse_mode *out) {
    ir_dim edges;
    *out = FUSE_ROWS;
    if (rows->rows == walk->rows)
        return true;
    *out = FUSE_EDGES;
    return graph_dim(s, walk->graph, "edge", &edges) && rows->rows == edges;
}

static bool is_edge_value(const fuse_pair *x, size_t result) {
    return x->first_mode == FUSE_EDGES ||
           (x->first_mode == FUSE_WALK && x->first.kernel->results[result].type.space == IR_EDGE);
}

/* Every operand of the second that the first makes: read where it is known while the row, or the edge, is computed. */
static bool find_uses(fuser *s, fuse_pair *x, bool *depends, const char **why) {
    for (uint32_t i = 0; i < x->second.op->n_args; i++) {
        size_t result;
        if (!fuse_result_of(s->f.p, x->first.id, x->second.op->args[i], &result))
            continue;
        *depends = true;
        ir_role role = x->second.kernel->params[i].role;
        if (x->second_mode == FUSE_EDGES && role == IR_DST)
            role = IR_EDGE_FIELD;
        if (role == IR_PARAM_FIELD) {
            *why = "all of the first is needed for each row of the second";
        } else if (role == IR_SRC || role == IR_NODE) {
            ir_dim sources; /* in IR that is not of the front end nobody may have named it */
            bool known = graph_dim(s, x->second.graph, ir_transposed(x->second.kernel) ? "dst" : "src", &sources);
            if (x->first.graph >= 0 || !known || sources != x->first.rows)
                *why = "the second reads the result at other rows";
            else
                x->at_sources = true;
            x->at_rows |= role == IR_NODE;
        } else if ((role == IR_EDGE_FIELD) != is_edge_value(x, result)) {
            *why = "the second reads the result at other rows";
        } else {
            x->at_rows = true;
        }
    }
    if (x->at_sources)
        x->first_mode = FUSE_SOURCES;
    return !*why;
}

static bool reads_first(const fuser *s, const fuse_pair *x) {
    size_t result;
    for (uint32_t i = 0; i < x->second.op->n_args; i++)
        if (fuse_result_of(s->f.p, x->first.id, x->second.op->args[i], &result))
            return true;
    return false;
}

/* Launches that go over different things, whatever they compute. */
static const char *objection_of_walks(const fuse_pair *x) {
    bool two = x->first.graph >= 0 && x->second.graph >= 0;
    if (x->first.total)
        return "all of the first is needed for each row of the second";
    if (x->second.total)
        return "a sum over all rows is added in blocks of rows, a walk is cut by edges";
    if (two && x->first.graph != x->second.graph)
        return "they walk two graphs";
    return two && ir_transposed(x->first.kernel) != ir_transposed(x->second.kernel)
               ? "one walks from the rows, the other from the sources"
               : NULL;
}

static bool fits(fuser *s, fuse_pair *x, bool *depends, const char **why) {
    bool walk1 = x->first.graph >= 0, walk2 = x->second.graph >= 0;
    x->first_mode = x->second_mode = FUSE_WALK;
    if (!walk1 && !walk2)
        return false;
    const char *no = objection_of_walks(x);
    if (no) {
        *why = reads_first(s, x) ? no : NULL;
        return false;
    }
    bool sources = !walk1 && ir_transposed(x->second.kernel); /* sides of a turned walk: rows only */
    if (walk1 != walk2 && !(walk1 ? mode_in(s, &x->second, &x->first, &x->second_mode)
                                  : mode_in(s, &x->first, &x->second, &x->first_mode))) {
        x->first_mode = FUSE_ROWS; /* of another size: at the sources, perhaps */
        if (walk1 || sources || !find_uses(s, x, depends, why))
            return false;
        return x->at_sources && !x->at_rows;
    }
    return find_uses(s, x, depends, why);
}

/* ---- where? ------------------------------------------------------------------------------------------------------ */
static bool uses_call(const fuser *s, const ir_op *op, ir_id call) {
    for (uint32_t i = 0; i < op->n_args; i++)
        if (call_of(s, resolve(s, op->args[i])) == call && op->code != IR_GET)
            return true;
    return false;
}

/* Does a step between the two slots need the call?  A loop between them is too far. */
static bool needed_between(const fuser *s, ir_id call, size_t from, size_t to) {
    for (size_t i = from + 1; i < to; i++)
        for (size_t k = 0; k < s->slots[i].n; k++) {
            const ir_op *op = ir_at(s->f.p, s->slots[i].ids[k]);
            if (op->region || uses_call(s, op, call))
                return true;
        }
    return false;
}

static bool is_there_by(const fuser *s, const fuse_pair *x, size_t slot_at) {
    for (uint32_t i = 0; i < x->second.op->n_args; i++) {
        ir_id v = x->second.op->args[i], made = call_of(s, v) ? call_of(s, v) : v;
        if (made != x->first.id && s->home[made] == s->region && s->at[made] >= slot_at)
            return false;
    }
    return true;
}

static bool find_place(const fuser *s, const fuse_pair *x, size_t *place) {
    size_t a = s->at[x->first.id], b = s->at[x->second.id];
    *place = b;
    if (b - a <= WINDOW && !needed_between(s, x->first.id, a, b))
        return true;
    *place = a;
    return is_there_by(s, x, a);
}

/* ---- rewriting --------------------------------------------------------------------------------------------------- */
static uint32_t uses_of_result(const fuser *s, const fuse_side *c, size_t result) {
    if (c->kernel->n_results == 1)
        return s->uses[c->id];
    uint32_t n = 0;
    for (const member *g = s->members[c->id]; g; g = g->next)
        if ((size_t)ir_int(ir_at(s->f.p, g->id), IR_ATTR_INDEX, 0) == result)
            n += s->uses[g->id];
    return n;
}

static void find_kept(fuser *s, fuse_pair *x) {
    x->kept = base_arena_new_array(s->f.scratch, bool, x->first.kernel->n_results + 1);
    for (size_t i = 0; i < x->first.kernel->n_results; i++) {
        uint32_t own = 0;
        size_t result;
        for (uint32_t k = 0; k < x->second.op->n_args; k++)
            own += fuse_result_of(s->f.p, x->first.id, x->second.op->args[k], &result) && result == i;
        x->kept[i] = uses_of_result(s, &x->first, i) > own;
    }
}

static void take_out(fuser *s, ir_id id) {
    slot *at = &s->slots[s->at[id]];
    for (size_t i = 0; i < at->n; i++)
        if (at->ids[i] == id) {
            memmove(at->ids + i, at->ids + i + 1, sizeof *at->ids * (at->n - i - 1));
            at->n--;
            return;
        }
}

static void put_in(fuser *s, ir_id id, size_t place) {
    slot *at = &s->slots[place];
    s->home[id] = s->region;
    s->at[id] = place;
    base_push(s->f.scratch, at->ids, at->n, at->cap, id);
}

/* Result `old` of a call is now result `now` of another one. */
static void move_result(fuser *s, const fuse_side *c, size_t old, ir_id call, size_t now, bool single, size_t place) {
    ir_func *p = s->f.p;
    if (c->kernel->n_results == 1) { /* the call was the value */
        ir_id v = call;
        if (!single) {
            v = ir_op_new(s->f.m, p, IR_GET, c->op->type, &call, 1);
            ir_set_int(s->f.m, ir_at(p, v), IR_ATTR_INDEX, (int64_t)now);
            member *g = base_arena_new_array(s->f.scratch, member, 1);
            *g = (member){v, s->members[call]};
            s->members[call] = g;
            put_in(s, v, place);
        }
        s->uses[v] += s->uses[c->id];
        s->to[c->id] = v;
        return;
    }
    for (member *g = s->members[c->id], *next; g; g = next) {
        next = g->next;
        ir_op *get = ir_at(p, g->id);
        if (resolve(s, g->id) != g->id || get->args[0] != c->id || (size_t)ir_int(get, IR_ATTR_INDEX, 0) != old)
            continue;
        bool here = s->home[g->id] == s->region;
        if (here)
            take_out(s, g->id);
        get->args[0] = call;
        ir_set_int(s->f.m, get, IR_ATTR_INDEX, (int64_t)now);
        member *fresh = base_arena_new_array(s->f.scratch, member, 1);
        *fresh = (member){g->id, s->members[call]};
        s->members[call] = fresh;
        if (here)
            put_in(s, g->id, place);
    }
}

/* Members of a call that is gone and that nobody took. */
static void drop_members(fuser *s, ir_id call) {
    for (const member *g = s->members[call]; g; g = g->next)
        if (ir_at(s->f.p, g->id)->args[0] == call && !s->to[g->id] && s->home[g->id] == s->region)
            take_out(s, g->id);
}

static const char *name_of(const fuser *s, ir_id call) { return ir_word(ir_at(s->f.p, call), IR_ATTR_CALLEE); }

static void tell(fuser *s, ir_id call, const char *name, const char *how) {
    story *fresh = base_arena_new_array(s->f.scratch, story, 1);
    *fresh = (story){name, how, NULL};
    story **end = &s->told[call];
    while (*end)
        end = &(*end)->next;
    *end = fresh;
}

static const char *way_of(const fuse_pair *x, bool depends) {
    static const char *const first_in[FUSE_MODES] = {[FUSE_WALK] = "",
                                                     [FUSE_ROWS] = "in front of each row",
                                                     [FUSE_EDGES] = "for each edge",
                                                     [FUSE_SOURCES] = "at the source of each edge"};
    if (x->first.graph >= 0 && x->second.graph >= 0)
        return depends ? "on its rows" : "on one walk";
    if (x->first.graph >= 0)
        return x->second_mode == FUSE_EDGES ? "on its edges" : "on its rows";
    return first_in[x->first_mode];
}

static void tell_fused(fuser *s, const fuse_pair *x, ir_id call, bool depends) {
    bool walk1 = x->first.graph >= 0;
    const fuse_side *sides[2] = {walk1 ? &x->first : &x->second, walk1 ? &x->second : &x->first};
    for (int i = 0; i < 2; i++) {
        bool was = s->told[sides[i]->id] != NULL;
        for (const story *t = s->told[sides[i]->id]; t; t = t->next)
            tell(s, call, t->name, t->how);
        if (!was)
            tell(s, call, name_of(s, sides[i]->id), i ? way_of(x, depends) : NULL);
    }
}

static ir_id rewrite(fuser *s, fuse_pair *x, size_t place) {
    ir_func *p = s->f.p;
    fused_kernel k = fuse_make_kernel(x);
    bool single = k.func->n_results == 1; /* the second's, and nothing of the first is kept */
    ir_type type = single ? x->second.op->type : ir_scalar(IR_TUPLE);
    ir_id call = ir_op_new(s->f.m, p, IR_CALL, type, k.args, k.n_args);
    ir_op *op = ir_at(p, call);
    op->span = x->second.op->span;
    ir_set_word(s->f.m, op, IR_ATTR_CALLEE, k.func->name);
    ir_set_int(s->f.m, op, IR_ATTR_GRAPH, x->first.graph >= 0 ? x->first.graph : x->second.graph);
    for (uint32_t i = 0; i < x->first.op->n_args; i++)
        s->uses[x->first.op->args[i]]--;
    for (uint32_t i = 0; i < x->second.op->n_args; i++)
        s->uses[x->second.op->args[i]]--;
    for (size_t i = 0; i < k.n_args; i++)
        s->uses[k.args[i]]++;
    take_out(s, x->first.id);
    take_out(s, x->second.id);
    put_in(s, call, place);
    size_t n = 0;
    for (size_t i = 0; i < x->first.kernel->n_results; i++)
        if (x->kept[i])
            move_result(s, &x->first, i, call, n++, single, place);
    for (size_t i = 0; i < x->second.kernel->n_results; i++)
        move_result(s, &x->second, i, call, n++, single, place);
    drop_members(s, x->first.id);
    drop_members(s, x->second.id);
    return call;
}

/* ---- pairs ------------------------------------------------------------------------------------------------------- */
static void refuse(fuser *s, const fuse_pair *x, const char *why) {
    refusal r = {x->first.id, x->second.id, why};
    base_push(s->f.scratch, s->refusals, s->n_refusals, s->cap_refusals, r);
}

/* The call that first and second have become, or 0. */
static ir_id try_pair(fuser *s, ir_id first, ir_id second) {
    fuse_pair x = {.f = &s->f};
    bool depends = false;
    const char *why = NULL;
    size_t place;
    if (!describe(s, first, &x.first) || !describe(s, second, &x.second))
        return 0;
    if (!fits(s, &x, &depends, &why)) {
        if (why)
            refuse(s, &x, why);
        return 0;
    }
    if (!depends && (x.first.graph < 0 || x.second.graph < 0))
        return 0;
    find_kept(s, &x);
    why = fuse_objection(&x);
    if (!why && !find_place(s, &x, &place))
        why = "a step between the two needs the first, and the second needs that step";
    if (why) {
        refuse(s, &x, why);
        return 0;
    }
    ir_id call = rewrite(s, &x, place);
    tell_fused(s, &x, call, depends);
    return call;
}

static bool is_here(const fuser *s, ir_id call) {
    return call && s->home[call] == s->region && !s->to[call] && ir_at(s->f.p, call)->code == IR_CALL;
}

/* With what makes its operands, the latest first. */
static ir_id try_producers(fuser *s, ir_id second) {
    ir_op *op = ir_at(s->f.p, second);
    resolve_args(s, op);
    size_t below = s->at[second];
    for (;;) {
        ir_id best = 0;
        for (uint32_t i = 0; i < op->n_args; i++) {
            ir_id c = call_of(s, op->args[i]);
            if (is_here(s, c) && s->at[c] < below && (!best || s->at[c] > s->at[best]))
                best = c;
        }
        if (!best)
            return 0;
        ir_id made = try_pair(s, best, second);
        if (made)
            return made;
        below = s->at[best];
    }
}

static bool contains(const fuser *s, ir_id call) {
    for (size_t k = 0; k < s->slots[s->at[call]].n; k++)
        if (s->slots[s->at[call]].ids[k] == call)
            return true;
    return false;
}

static ir_id try_walks(fuser *s, ir_id second) {
    if (ir_int(ir_at(s->f.p, second), IR_ATTR_GRAPH, -1) < 0)
        return 0;
    for (size_t i = 0; i < WALKS; i++) {
        ir_id first = s->walks[i];
        if (!first || first == second || !contains(s, first) || s->at[first] >= s->at[second])
            continue;
        ir_id made = try_pair(s, first, second);
        if (made)
            return made;
    }
    return 0;
}

static void remember_walk(fuser *s, ir_id call) {
    if (ir_int(ir_at(s->f.p, call), IR_ATTR_GRAPH, -1) < 0)
        return;
    memmove(s->walks + 1, s->walks, sizeof *s->walks * (WALKS - 1));
    s->walks[0] = call;
}

static void fuse_call(fuser *s, ir_id call) {
    for (ir_id made = call; made; call = made ? made : call)
        if (!(made = try_producers(s, call)))
            made = try_walks(s, call);
    remember_walk(s, call);
}

/* ---- regions ----------------------------------------------------------------------------------------------------- */
static void fuse_region(fuser *s, ir_region *r) {
    s->region = s->home[r->n ? r->ops[0] : 0];
    s->slots = base_arena_new_array(s->f.scratch, slot, r->n + 1);
    memset(s->walks, 0, sizeof s->walks);
    for (size_t i = 0; i < r->n; i++)
        put_in(s, r->ops[i], i);
    for (size_t i = 0; i < r->n; i++)
        if (ir_at(s->f.p, r->ops[i])->code == IR_CALL)
            fuse_call(s, r->ops[i]);
    ir_region out = {0};
    for (size_t i = 0; i < r->n; i++)
        for (size_t k = 0; k < s->slots[i].n; k++)
            ir_append(s->f.m, &out, s->slots[i].ids[k]);
    *r = out;
    for (size_t i = 0; i < r->n; i++) {
        ir_op *op = ir_at(s->f.p, r->ops[i]);
        resolve_args(s, op);
        if (op->region)
            fuse_region(s, op->region);
    }
}

static void list_region(fuser *s, const ir_region *r) {
    uint32_t number = ++s->n_regions;
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(s->f.p, r->ops[i]);
        s->home[r->ops[i]] = number;
        if (op->code == IR_GET && ir_at(s->f.p, op->args[0])->code == IR_CALL) {
            member *g = base_arena_new_array(s->f.scratch, member, 1);
            *g = (member){r->ops[i], s->members[op->args[0]]};
            s->members[op->args[0]] = g;
        }
        if (op->region)
            list_region(s, op->region);
    }
}

static ir_id now_of(const fuser *s, ir_id call) {
    for (;;) {
        ir_id next = s->to[call];
        for (const member *g = s->members[call]; g && !next; g = g->next) {
            ir_id in = call_of(s, resolve(s, g->id));
            next = in != call ? in : 0;
        }
        if (!next)
            return call;
        call = call_of(s, resolve(s, next)) ? call_of(s, resolve(s, next)) : next;
    }
}

static void add_note(fuser *s, pass_note_kind kind, ir_id call, const char *other, const char *text) {
    pass_note_add(s->ctx, s->f.m,
                  (pass_note){kind, .program = s->f.p->name, .kernel = name_of(s, call), .other = other, .text = text});
}

static void note_region(fuser *s, const ir_region *r) {
    for (size_t i = 0; i < r->n; i++) {
        const ir_op *op = ir_at(s->f.p, r->ops[i]);
        if (op->region)
            note_region(s, op->region);
        if (op->code != IR_CALL)
            continue;
        for (const story *t = s->told[r->ops[i]]; t; t = t->next)
            add_note(s, PASS_NOTE_FUSED, r->ops[i], t->name, t->how);
    }
}

static void note_refusals(fuser *s) {
    for (size_t i = 0; i < s->n_refusals; i++) {
        ir_id a = now_of(s, s->refusals[i].first), b = now_of(s, s->refusals[i].second);
        if (a != b)
            add_note(s, PASS_NOTE_REFUSED, b, name_of(s, a), s->refusals[i].why);
    }
}

static uint32_t count_calls(const ir_func *p) {
    uint32_t n = 0;
    for (ir_id id = 1; id < p->n_ops; id++)
        n += ir_at(p, id)->code == IR_CALL;
    return n;
}

static bool fuse_func(ir_module *m, ir_func *p, pass_context *ctx, base_str *err) {
    (void)err;
    base_arena *a = ctx->scratch;
    fuser s = {.f = {.m = m, .p = p, .scratch = a, .cuda = ctx->cuda}, .ctx = ctx};
    s.cap = p->n_ops + count_calls(p) * (FUSE_RESULTS + 2);
    s.to = base_arena_new_array(a, ir_id, s.cap);
    s.uses = base_arena_new_array(a, uint32_t, s.cap);
    s.members = base_arena_new_array(a, member *, s.cap);
    s.home = base_arena_new_array(a, uint32_t, s.cap);
    s.at = base_arena_new_array(a, size_t, s.cap);
    s.told = base_arena_new_array(a, story *, s.cap);
    ir_count_uses(p, s.uses);
    list_region(&s, &p->body);
    fuse_region(&s, &p->body);
    if (ctx->notes) {
        note_region(&s, &p->body);
        note_refusals(&s);
    }
    return true;
}

bool pass_fuse(ir_module *m, pass_context *ctx, base_str *err) {
    return pass_each_func(m, 1u << IR_LEVEL_PROGRAM, fuse_func, ctx, err);
}
