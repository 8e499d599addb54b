/* The function of a module that follows schedules: one `case` for each kind of step that the module uses.
 *
 * A schedule of a thousand steps is a constant table and costs a compiler nothing; as a thousand calls in C it costs
 * more than all kernels. */
#include "codegen/cg_schedule.h"

#include <ctype.h>

static const char *const names[] = {
#define CG_STEP(NAME, text) #NAME,
    CG_STEPS
#undef CG_STEP
};

static const char *const texts[] = {
#define CG_STEP(NAME, text) text,
    CG_STEPS
#undef CG_STEP
};

const char *cg_step_op_name(base_arena *arena, ir_opcode code, ir_dtype in, ir_dtype out) {
    char *name =
        base_arena_printf(arena, "TIGA_DO_%s_%s_%s", ir_op_describe(code)->text, ir_dtype_text(in), ir_dtype_text(out));
    for (char *c = name; *c; ++c)
        *c = (char)toupper((unsigned char)*c);
    return name;
}

/* All operations in use, as `X(...)` for a callback. */
static void each_op(const cg_follower *f, void (*each)(void *, ir_opcode, ir_dtype, ir_dtype), void *user) {
    for (int code = 0; code < IR_OP_COUNT; ++code)
        for (int in = 0; in < CG_DTYPES; ++in)
            for (int out = 0; out < CG_DTYPES; ++out)
                if (f->op[code][in][out])
                    each(user, (ir_opcode)code, (ir_dtype)in, (ir_dtype)out);
}

typedef struct writer {
    cg_text *w;
    cg_helpers *help;
    base_arena *arena;
} writer;

static void enumerator(void *user, ir_opcode code, ir_dtype in, ir_dtype out) {
    writer *x = user;
    cg_line(x->w, "%s,", cg_step_op_name(x->arena, code, in, out));
}

static void arithmetic(void *user, ir_opcode code, ir_dtype in, ir_dtype out) {
    writer *x = user;
    const char *args[] = {"n[s->b]", "n[s->c]", NULL};
    bool atom;
    const char *e =
        code == IR_MUL ? "TIGA_SIZE_MUL(n[s->b], n[s->c])" : cg_expr(x->help, x->arena, code, in, out, args, &atom);
    cg_line(x->w, "case %s:", cg_step_op_name(x->arena, code, in, out));
    cg_line(x->w, "    n[s->a] = %s;", e);
    cg_line(x->w, "    break;");
}

static void types(writer *x, const cg_follower *f) {
    cg_comment(
        x->w,
        "Schedules: steps on instances i[] and numbers n[], which they name by their places.  The runtime checks\n"
        "each step, and the first that fails ends the call.  A launch is a list: kernel, graph (-1: none), place\n"
        "of the number of rows, how many instances, how many sizes, their places.");
    cg_open(x->w, "enum");
    for (int k = 0; k < CG_STEP_COUNT_; ++k)
        if (f->step[k])
            cg_line(x->w, "TIGA_DO_%s,", names[k]);
    each_op(f, enumerator, x);
    cg_close(x->w, ";");
    cg_open(x->w, "typedef struct tiga_step");
    cg_line(x->w, "int32_t code, a, b, c;");
    cg_close(x->w, " tiga_step;");
    cg_open(x->w, "typedef struct tiga_buffer");
    cg_line(x->w, "const char *name;");
    cg_line(x->w, "int64_t version;");
    cg_line(x->w, "int32_t tier;");
    cg_close(x->w, " tiga_buffer;\n");
}

static void launch(cg_text *w, const char *how) {
    cg_line(w, "l = launches + s->a;");
    cg_open(w, "for (int32_t k = 0; k < l[3]; ++k)");
    cg_line(w, "list[k] = i[l[5 + k]];");
    cg_close(w, "");
    cg_open(w, "for (int32_t k = 0; k < l[4]; ++k)");
    cg_line(w, "sizes[k] = n[l[5 + l[3] + k]];");
    cg_close(w, "");
    cg_line(w, "status = host->poll(frame);");
    cg_open(w, "if (status == 0)");
    cg_line(w, "status = host->%s(frame, &tiga_kernels[l[0]], l[1], n[l[2]], list, sizes);", how);
    cg_close(w, "");
}

static void step(cg_text *w, int k) {
    cg_line(w, "case TIGA_DO_%s:", names[k]);
    w->indent++;
    if (k == CG_STEP_LAUNCH || k == CG_STEP_LAUNCH_AHEAD)
        launch(w, texts[k]);
    else
        cg_line(w, "%s", texts[k]);
    if (k != CG_STEP_END)
        cg_line(w, "break;");
    w->indent--;
}

void cg_emit_follower(cg_text *w, const cg_follower *f, cg_helpers *h, base_arena *arena) {
    writer x = {w, h, arena};
    if (!f->n_tasks)
        return;
    types(&x, f);
    cg_line(
        w, "TIGA_HOST_FN int32_t tiga_follow(const tiga_host *host, void *frame, const tiga_step *steps, const int32_t "
           "*launches,");
    cg_open(w, "                                 const tiga_buffer *buffers, tiga_instance **i, int64_t *n)");
    cg_line(w, "int32_t status = 0;");
    if (f->step[CG_STEP_LAUNCH] || f->step[CG_STEP_LAUNCH_AHEAD]) {
        cg_line(w, "const int32_t *l;");
        cg_line(w, "tiga_instance *list[%zu] = {NULL};", f->most_buffers + 1);
        cg_line(w, "int64_t sizes[%zu] = {0};", f->most_sizes + 1);
    } else {
        cg_line(w, "(void)launches;");
    }
    cg_open(w, "for (const tiga_step *s = steps; status == 0; ++s)");
    cg_open(w, "switch (s->code)");
    w->indent--;
    for (int k = 0; k < CG_STEP_COUNT_; ++k)
        if (f->step[k])
            step(w, k);
    each_op(f, arithmetic, &x);
    w->indent++;
    cg_close(w, "");
    cg_close(w, "");
    cg_line(w, "(void)buffers;");
    cg_line(w, "(void)i;");
    cg_line(w, "(void)n;");
    cg_line(w, "return status;");
    cg_close(w, "\n");
}
