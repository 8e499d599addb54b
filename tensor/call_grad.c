/* Gradients through calls of modules.  The result of a call with a watched argument remembers the call: its operands are
 * the arguments, and its adjoint is a call of the function that `export vjp f(...)` made, at once.  What that gives
 * remembers its own call in turn, so a second derivative asks for the vjp of the vjp. */
#include "tensor/tensor.h"

#include <string.h>

struct tensor_called {
    int64_t refs; /* one a result */
    tiga_module *m;
    const tiga_function_info *f; /* of m */
    tiga_graph **graphs;
    int n_graphs, n_in;
    const char **in; /* [n_in], of f */
    tiga_array *made; /* [f->n_results]: element types and shapes */
    char *vjp; /* its name */
};

static const tiga_function_info *find(const tiga_module *m, const char *name) {
    const tiga_module_info *info = tiga_module_get_info(m);
    for (int32_t i = 0; i < info->n_functions; i++)
        if (!strcmp(info->functions[i].name, name))
            return &info->functions[i];
    return NULL;
}

void tensor_called_put(tensor_called *c) {
    if (!c || --c->refs)
        return;
    for (int i = 0; i < c->n_graphs; i++)
        tiga_graph_free(c->graphs[i]);
    tiga_module_free(c->m);
    base_free(c);
}

/* The name as the module has it, which lives as long. */
static const char *param_name(const tiga_function_info *f, const char *name) {
    for (int32_t i = 0; i < f->n_params; i++)
        if (!strcmp(f->params[i].name, name))
            return f->params[i].name;
    return NULL;
}

tensor_called *tensor_called_new(tiga_module *m, const char *name, tiga_graph *const *graphs, int n_graphs,
                                 const tiga_tensor_binding *in, int n_in) {
    const tiga_function_info *f = find(m, name);
    size_t arrays = (size_t)f->n_results * sizeof(tiga_array);
    size_t lists = (size_t)n_graphs * sizeof *graphs + (size_t)n_in * sizeof(char *);
    tensor_called *c = base_alloc_zero(sizeof *c + arrays + lists + strlen(name) + sizeof "_vjp");
    if (!c)
        return NULL;
    *c = (tensor_called){.refs = 1, .m = tiga_module_retain(m), .f = f, .n_graphs = n_graphs, .n_in = n_in};
    c->made = (tiga_array *)(c + 1);
    c->graphs = (tiga_graph **)(c->made + f->n_results);
    c->in = (const char **)(c->graphs + n_graphs);
    c->vjp = (char *)(c->in + n_in);
    strcpy(c->vjp, name);
    strcat(c->vjp, "_vjp");
    for (int i = 0; i < n_graphs; i++)
        c->graphs[i] = tiga_graph_retain(graphs[i]);
    for (int i = 0; i < n_in; i++)
        c->in[i] = param_name(f, in[i].name);
    return c;
}

static int32_t find_result(const tiga_function_info *f, const char *name) {
    for (int32_t i = 0; i < f->n_results; i++)
        if (!strcmp(f->results[i].name, name))
            return i;
    return -1;
}

void tensor_called_made(tensor_called *c, const char *result, const tiga_array *a) {
    int32_t i = find_result(c->f, result);
    BASE_CHECK(i >= 0);
    c->made[i] = tiga_array_borrow(NULL, a->dtype, a->rank, a->shape);
}

tiga_status tensor_called_result(tensor_called *c, const char *result, tiga_tensor *const *args, tiga_tensor **out) {
    int32_t index = find_result(c->f, result);
    const tiga_array *a = &c->made[index];
    *out = tensor_node(TENSOR_REAL, MOVE_CALL, a->dtype, a->rank, a->shape, args, (uint32_t)c->n_in);
    if (!*out)
        return TIGA_E_MEMORY;
    (*out)->attr[0] = index;
    (*out)->called = c;
    c->refs++;
    return TIGA_OK;
}

/* ---- backwards ---- */
typedef struct back {
    const tiga_tensor *x; /* the result */
    tiga_tensor *c; /* its cotangent */
    const tiga_function_info *vjp;
    tiga_tensor_binding *in, *out;
    tiga_tensor **zeros; /* cotangents of the other results; [n_params] */
} back;

/* The line that the program needs: what its vjp gives already, and all that is wanted now. */
static void export_line(base_str *s, const tiga_tensor *x, const tiga_function_info *vjp, const bool *wanted) {
    const tensor_called *c = x->called;
    const char *comma = "";
    base_str_addf(s, "export vjp %s(", c->f->name);
    for (int32_t i = 0; vjp && i < vjp->n_results; i++, comma = ", ")
        base_str_addf(s, "%s%s", comma, vjp->results[i].name);
    for (int k = 0; k < c->n_in; k++)
        if (wanted[k] && c->in[k] && (!vjp || find_result(vjp, c->in[k]) < 0)) {
            base_str_addf(s, "%s%s", comma, c->in[k]);
            comma = ", ";
        }
    base_str_addf(s, ")");
}

static tiga_status no_vjp(const tiga_tensor *x, const tiga_function_info *vjp, const bool *wanted, const char *field) {
    base_str line = {0};
    export_line(&line, x, vjp, wanted);
    tiga_status status = tensor_fail(
        x->ts, TIGA_E_UNSUPPORTED, "gradient: %s: %s with respect to '%s'; the program needs `%s`", x->called->f->name,
        vjp ? "its vjp gives none" : "there is no vjp, so no gradient", field, base_str_text(&line));
    base_str_fini(&line);
    return status;
}

/* "cotangent", or "cotangent_NAME": which result. */
static int cotangent_of(const tiga_function_info *f, const char *name) {
    const char *of = name + strlen("cotangent");
    for (int i = 0; i < f->n_results && *of == '_'; i++)
        if (!strcmp(f->results[i].name, of + 1))
            return i;
    return *of ? -1 : 0;
}

/* Zeros of another result's shape. */
static tiga_status zeros_of(const tiga_tensor *x, int result, tiga_tensor **out) {
    const tiga_array *a = &x->called->made[result];
    return tiga_tensor_full(x->ts, a->dtype, a->rank, a->shape, 0, out);
}

static tiga_status bind_param(back *b, int i) {
    const tensor_called *c = b->x->called;
    const char *name = b->vjp->params[i].name;
    b->in[i].name = name;
    for (int k = 0; k < c->n_in; k++)
        if (c->in[k] && !strcmp(c->in[k], name)) {
            b->in[i].tensor = b->x->args[k];
            return TIGA_OK;
        }
    int result = strncmp(name, "cotangent", strlen("cotangent")) ? -1 : cotangent_of(c->f, name);
    if (result < 0)
        return tensor_fail(b->x->ts, TIGA_E_UNSUPPORTED, "gradient: %s takes '%s', which is no part of the call",
                           c->vjp, name);
    if (result == b->x->attr[0]) {
        b->in[i].tensor = b->c;
        return TIGA_OK;
    }
    tiga_status status = zeros_of(b->x, result, &b->zeros[i]);
    b->in[i].tensor = b->zeros[i];
    return status;
}

static tiga_status take(back *b, const bool *wanted, tiga_tensor **out) {
    const tensor_called *c = b->x->called;
    for (int k = 0; k < c->n_in; k++) {
        int32_t at = wanted[k] && c->in[k] ? find_result(b->vjp, c->in[k]) : -1;
        if (!wanted[k])
            continue;
        if (at < 0)
            return no_vjp(b->x, b->vjp, wanted, c->in[k] ? c->in[k] : "?");
        if (!tensor_same_shape(b->out[at].tensor, b->x->args[k]))
            return tensor_fail(b->x->ts, TIGA_E_INTERNAL, "gradient: %s gives another shape for '%s'", c->vjp,
                               c->in[k]);
        out[k] = tensor_retain(b->out[at].tensor);
    }
    return TIGA_OK;
}

static int32_t n_fields(const tiga_function_info *f) {
    int32_t n = 0;
    for (int32_t i = 0; i < f->n_params; i++)
        n += f->params[i].at != TIGA_AT_GRAPH;
    return n;
}

static tiga_status run(back *b) {
    const tensor_called *c = b->x->called;
    int n = 0;
    tiga_status status = TIGA_OK;
    for (int32_t i = 0; i < b->vjp->n_params && status == TIGA_OK; i++)
        if (b->vjp->params[i].at != TIGA_AT_GRAPH)
            status = bind_param(b, i);
    for (int32_t i = 0; i < b->vjp->n_params; i++) /* graphs are no bindings */
        if (b->vjp->params[i].at != TIGA_AT_GRAPH)
            b->in[n++] = b->in[i];
    for (int32_t i = 0; i < b->vjp->n_results; i++)
        b->out[i].name = b->vjp->results[i].name;
    if (status == TIGA_OK)
        status = tiga_tensor_call(b->x->ts, c->m, c->vjp, c->graphs, c->n_graphs, b->in, n_fields(b->vjp), b->out,
                                  b->vjp->n_results);
    return status;
}

tiga_status tensor_call_back(const tiga_tensor *x, tiga_tensor *cotangent, const bool *wanted, tiga_tensor **out) {
    const tensor_called *c = x->called;
    back b = {.x = x, .c = cotangent, .vjp = find(c->m, c->vjp)};
    for (int k = 0; k < c->n_in; k++) {
        out[k] = NULL;
        if (wanted[k] && (!b.vjp || !c->in[k] || find_result(b.vjp, c->in[k]) < 0))
            return no_vjp(x, b.vjp, wanted, c->in[k] ? c->in[k] : "?");
    }
    size_t n = (size_t)b.vjp->n_params, n_out = (size_t)b.vjp->n_results;
    b.in = base_alloc_zero((n + n_out) * sizeof *b.in);
    b.zeros = base_alloc_zero((n + 1) * sizeof *b.zeros);
    b.out = b.in ? b.in + n : NULL;
    tiga_status status = b.in && b.zeros ? run(&b) : tensor_fail(x->ts, TIGA_E_MEMORY, "gradient: out of memory");
    if (status == TIGA_OK)
        status = take(&b, wanted, out);
    for (size_t i = 0; b.in && i < n_out; i++)
        tensor_free(b.out[i].tensor);
    for (size_t i = 0; b.zeros && i < n; i++)
        tensor_free(b.zeros[i]);
    base_free(b.in);
    base_free(b.zeros);
    return status;
}
