/* Rows, one by one or side by side, and what depends on how many there are: rows for few, tiles for more, copies that few
 * do without. */
#include "codegen/cg_c.h"

#include <string.h>

/* {step}: so many side by side; the last of all also stands for those that there are not, unless {few} leaves them to the
 * rest. */
static void side_by_side(cg_loop *c, ir_id id, int64_t step, int64_t few) {
    const ir_op *op = ir_at(c->f, id);
    size_t mark = cg_names_mark(&c->names);
    const char *i = cg_name(&c->names, "i"), *end = c->row_end;
    if (few) {
        cg_open(&c->w, "%s", "");
        end = cg_name(&c->names, "i_end");
        cg_line(&c->w, "const int64_t %s = %s - (%s - %s <= %lld ? (%s - %s) %% %lld : 0);", end, c->row_end,
                c->row_end, c->row_begin, (long long)few, c->row_end, c->row_begin, (long long)step);
    }
    cg_open(&c->w, "for (int64_t %s = %s; %s < %s; %s += %lld)", i, c->row_begin, i, end, i, (long long)step);
    cg_bind_arg(c, op, 0, i);
    for (int64_t j = 1; j < step; ++j) {
        const char *name = cg_name(&c->names, base_arena_printf(c->arena, "i%lld", (long long)j));
        cg_line(&c->w, "const int64_t %s = %s + %lld < %s ? %s + %lld : %s - 1;", name, i, (long long)j, end, i,
                (long long)j, end);
        cg_bind_arg(c, op, j, name);
    }
    cg_region(c, op->region);
    cg_close(&c->w, "");
    if (few)
        cg_close(&c->w, "");
    cg_names_release(&c->names, mark);
}

/* {block}: the rows inside go over so many units at a time. */
static void blocks(cg_loop *c, ir_id id, int64_t block) {
    const ir_op *op = ir_at(c->f, id);
    size_t mark = cg_names_mark(&c->names);
    const char *begin = c->row_begin, *end = c->row_end, *i = cg_name(&c->names, "i0");
    cg_open(&c->w, "for (int64_t %s = %s; %s < %s; %s += %lld)", i, begin, i, end, i, (long long)block);
    cg_bind_arg(c, op, 0, i);
    c->row_begin = i;
    c->row_end = cg_name(&c->names, "i0_end");
    cg_line(&c->w, "const int64_t %s = %s + %lld < %s ? %s + %lld : %s;", c->row_end, i, (long long)block, end, i,
            (long long)block, end);
    cg_region(c, op->region);
    c->row_begin = begin;
    c->row_end = end;
    cg_close(&c->w, "");
    cg_names_release(&c->names, mark);
}

void cg_rows(cg_loop *c, ir_id id) {
    const ir_op *op = ir_at(c->f, id);
    if (ir_find_attr(op, IR_ATTR_BLOCK)) {
        blocks(c, id, ir_int(op, IR_ATTR_BLOCK, 1));
        return;
    }
    int64_t step = ir_int(op, IR_ATTR_STEP, 1), rest = ir_int(op, IR_ATTR_REST, 0), few = ir_int(op, IR_ATTR_FEW, 0);
    const char *first = c->row_begin;
    if (step > 1) {
        side_by_side(c, id, step, few);
        return;
    }
    if (rest) {
        cg_open(&c->w, "if (%s - %s <= %lld)", c->row_end, c->row_begin, (long long)few);
        first = base_arena_printf(c->arena, "%s - (%s - %s) %% %lld", c->row_end, c->row_end, c->row_begin,
                                  (long long)rest);
    }
    cg_counted(c, id, c->f->rows_per_unit > 1 ? "unit" : "i", first, c->row_end);
    if (rest)
        cg_close(&c->w, "");
}

/* ---- copies that may stay unmade ---- */
/* `set copy, k, lane, field[k, column]` in a loop over k that does no more; NULL: the columns of the field lie apart. */
static const ir_op *copied(const cg_loop *c, const ir_op *loop, const ir_op **lanes) {
    ir_id k = cg_region_arg(c, loop, 0);
    for (size_t i = 0; i < loop->region->n; ++i) {
        *lanes = ir_at(c->f, loop->region->ops[i]);
        for (size_t n = 0; (*lanes)->code == IR_LANES && n < (*lanes)->region->n; ++n) {
            const ir_op *set = ir_at(c->f, (*lanes)->region->ops[n]);
            const ir_op *load = set->code == IR_SET && set->n_args == 4 ? ir_at(c->f, set->args[3]) : NULL;
            if (load && load->code == IR_LOAD && load->n_args == 2 && load->args[0] == k &&
                load->args[1] == cg_region_arg(c, *lanes, 0) && set->args[2] == cg_region_arg(c, *lanes, 1))
                return set;
        }
    }
    return NULL;
}

/* Does the region begin with such a copy of a whole tile?  Only then the field has all of its columns. */
static bool has_view(const cg_loop *c, const ir_region *r, int64_t *few) {
    for (size_t i = 0; i < r->n; ++i) {
        const ir_op *loop = ir_at(c->f, r->ops[i]), *lanes, *set;
        *few = loop->code == IR_LOOP && c->site[r->ops[i]].live ? ir_int(loop, IR_ATTR_FEW, 0) : 0;
        set = *few ? copied(c, loop, &lanes) : NULL;
        if (set && lanes->n_args == 2 && c->tile_width == ir_at(c->f, set->args[0])->type.dim[1])
            return true;
    }
    return false;
}

/* The field's element that a copy of it would have at this place. */
const char *cg_viewed(cg_loop *c, const ir_op *read) {
    const ir_op *load = c->place[read->args[0]].view;
    int64_t field = ir_int(load, IR_ATTR_FIELD, 0);
    const char *begin = c->text[ir_at(c->f, c->site[load->args[1]].loop)->args[1]], *lane = c->text[read->args[2]];
    const char *index[2] = {c->text[read->args[1]],
                            strcmp(lane, "0") ? base_arena_printf(c->arena, "%s + %s", begin, lane) : begin};
    const char *dims[2] = {"1", cg_dim_text(c, c->f->params[field].type.dim[1])};
    c->field_used[field] = true;
    return base_arena_printf(c->arena, "%s[%s]", c->field[field], cg_flat_index(c, index, dims, 2));
}

void cg_copy_or_view(cg_loop *c, ir_id id) {
    const ir_op *loop = ir_at(c->f, id), *lanes, *set = copied(c, loop, &lanes);
    if (set)
        c->place[set->args[0]].view = c->viewing ? ir_at(c->f, set->args[3]) : NULL;
    if (!set || !c->viewing)
        cg_counted(c, id, "n", "0", c->text[loop->args[0]]);
}

/* {few}: few units read the copy so seldom that making it would take longer; they read the field itself. */
void cg_tile_of_rows(cg_loop *c, const ir_region *r) {
    int64_t few;
    bool both = has_view(c, r, &few);
    if (both) {
        size_t mark = cg_names_mark(&c->names);
        cg_open(&c->w, "if (%s - %s <= %lld)", c->row_end, c->row_begin, (long long)few);
        c->viewing = true;
        cg_region(c, r);
        c->viewing = false;
        cg_close(&c->w, "");
        cg_names_release(&c->names, mark);
        cg_open(&c->w, "else");
    }
    cg_region(c, r);
    if (both)
        cg_close(&c->w, "");
}
