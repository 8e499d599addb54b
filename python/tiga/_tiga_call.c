/* The fast way through a call.
 *
 * Call is the base class of tiga.Function.  Calling it handles the plain case itself: one graph, numpy arrays that fit,
 * numbers, results of one axis or more.  It decides nothing else: whatever is not plain, and every error, goes to the
 * method call() in _function.py, which is the one meaning of a call. */
#include "_tiga.h"

#include <math.h>
#include <string.h>

enum { MAX_PARAMS = 24, MAX_RESULTS = 8, MAX_DIMS = 24 };

static PyObject *ndarray_type, *np_empty; /* numpy's, once it is there */
static PyObject *np_dtypes;               /* tuple: dtype objects by our element type */

/* ---- a function ---- */
typedef struct field {
    PyObject *keyword;
    char *name;
    int at, dtype, size, rank; /* rank of the whole array: its axis and the features */
    char format[4]; /* of numpy's arrays, in the buffer protocol */
    bool has_axis;
    int64_t shape[6];
} field;

enum { DIM_OPEN, DIM_DST, DIM_SRC, DIM_EDGE };

typedef struct call {
    PyObject_HEAD
    bool ready;
    tiga_module *module; /* the Python object keeps it */
    char *name;
    int n_params, n_results, n_dims;
    field params[MAX_PARAMS], results[MAX_RESULTS];
    int dims[MAX_DIMS];
    PyObject *out_keyword, *result_type; /* result_type NULL: one result */
} call;

/* ---- one call ---- */
typedef struct frame {
    const call *c;
    tiga_graph *graph;
    const tiga_csr *csr;
    int64_t dims[MAX_DIMS];
    tiga_array arrays[MAX_PARAMS + MAX_RESULTS];
    tiga_binding in[MAX_PARAMS], out[MAX_RESULTS];
    union {
        double f64;
        float f32;
        int64_t i64;
        int32_t i32;
        bool flag;
    } numbers[MAX_PARAMS];
    Py_buffer buffers[MAX_PARAMS + MAX_RESULTS];
    int n_buffers;
    PyObject *made[MAX_RESULTS];
} frame;

/* Not plain: give it to call().  Errors of ours are forgotten, call() finds them again and says them in words. */
static bool not_plain(void) {
    PyErr_Clear();
    return false;
}

static bool take_number(const field *f, PyObject *value, frame *fr, int i) {
    void *cell = &fr->numbers[i];
    if (f->dtype == TIGA_BOOL) {
        if (value != Py_True && value != Py_False)
            return false;
        fr->numbers[i].flag = value == Py_True;
    } else if (f->dtype == TIGA_F32 || f->dtype == TIGA_F64) {
        if (!PyFloat_CheckExact(value) && !PyLong_CheckExact(value))
            return false;
        double x = PyFloat_AsDouble(value);
        if (x == -1 && PyErr_Occurred())
            return not_plain();
        if (f->dtype == TIGA_F64)
            fr->numbers[i].f64 = x;
        else
            fr->numbers[i].f32 = (float)x;
        if (f->dtype == TIGA_F32 && isinf((float)x) && !isinf(x))
            return false;
    } else if (f->dtype == TIGA_I32 || f->dtype == TIGA_I64) {
        if (!PyLong_CheckExact(value))
            return false;
        int overflow;
        long long n = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow || (n == -1 && PyErr_Occurred()))
            return not_plain();
        if (f->dtype == TIGA_I32 && (n < INT32_MIN || n > INT32_MAX))
            return false;
        if (f->dtype == TIGA_I32)
            fr->numbers[i].i32 = (int32_t)n;
        else
            fr->numbers[i].i64 = n;
    } else {
        return false;
    }
    fr->arrays[i] = (tiga_array){.data = cell, .dtype = f->dtype};
    return true;
}

static bool same_format(const field *f, const char *format) {
    return format && (strcmp(format, f->format) == 0 || (strcmp(f->format, "q") == 0 && strcmp(format, "l") == 0));
}

static bool take_buffer(const field *f, PyObject *value, frame *fr, tiga_array *out, int flags) {
    if ((PyObject *)Py_TYPE(value) != ndarray_type)
        return false;
    Py_buffer *b = &fr->buffers[fr->n_buffers];
    if (PyObject_GetBuffer(value, b, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | flags) != 0)
        return not_plain();
    fr->n_buffers++;
    if (b->ndim != f->rank || b->itemsize != f->size || !same_format(f, b->format) ||
        (uintptr_t)b->buf % (uintptr_t)f->size)
        return false;
    *out = (tiga_array){.data = b->buf, .dtype = f->dtype, .rank = f->rank};
    for (int k = 0; k < f->rank; k++)
        out->shape[k] = b->shape[k];
    return true;
}

/* The first array that shows an open dimension fixes it; the library checks the others. */
static void learn_dims(const field *f, const tiga_array *a, int64_t *dims) {
    for (int k = 0; k < f->rank - f->has_axis; k++)
        if (f->shape[k] < 0 && dims[-1 - f->shape[k]] < 0)
            dims[-1 - f->shape[k]] = a->shape[f->has_axis + k];
}

static bool take_params(frame *fr, PyObject *given) {
    for (int i = 0; i < fr->c->n_params; i++) {
        const field *f = &fr->c->params[i];
        PyObject *value = PyDict_GetItemWithError(given, f->keyword);
        if (!value)
            return not_plain();
        if (f->rank == 0 ? !take_number(f, value, fr, i) : !take_buffer(f, value, fr, &fr->arrays[i], 0))
            return false;
        learn_dims(f, &fr->arrays[i], fr->dims);
        fr->in[i] = (tiga_binding){f->name, &fr->arrays[i]};
    }
    return true;
}

static int64_t axis_size(const tiga_csr *g, int at) {
    switch (at) {
    case TIGA_AT_SRC:
        return g->n_src;
    case TIGA_AT_EDGE:
        return g->n_edges;
    default:
        return g->n_dst;
    }
}

static PyObject *new_array(const frame *fr, const field *f) {
    PyObject *shape = PyTuple_New(f->rank);
    if (!shape)
        return NULL;
    for (int k = 0; k < f->rank; k++) {
        int64_t n = k < f->has_axis ? axis_size(fr->csr, f->at) : f->shape[k - f->has_axis];
        if (k >= f->has_axis && n < 0)
            n = fr->dims[-1 - n];
        PyObject *size = n < 0 ? NULL : PyLong_FromLongLong(n);
        if (!size || PyTuple_SetItem(shape, k, size) != 0) {
            Py_DECREF(shape);
            return NULL;
        }
    }
    PyObject *dtype = PyTuple_GetItem(np_dtypes, f->dtype);
    PyObject *array = dtype ? PyObject_CallFunctionObjArgs(np_empty, shape, dtype, NULL) : NULL;
    Py_DECREF(shape);
    return array;
}

static bool take_results(frame *fr, PyObject *out) {
    for (int i = 0; i < fr->c->n_results; i++) {
        const field *f = &fr->c->results[i];
        tiga_array *a = &fr->arrays[MAX_PARAMS + i];
        if (out)
            Py_INCREF(out);
        fr->made[i] = out ? out : new_array(fr, f);
        if (!fr->made[i])
            return not_plain();
        if (!take_buffer(f, fr->made[i], fr, a, PyBUF_WRITABLE))
            return false;
        fr->out[i] = (tiga_binding){f->name, a};
    }
    return true;
}

static bool take_graph(frame *fr, PyObject *args) {
    if (PyTuple_Size(args) != 1)
        return false;
    PyObject *g = PyTuple_GetItem(args, 0);
    if (Py_TYPE(g) != py_graph_type)
        return false;
    PyObject *handle = PyObject_GetAttr(g, py_name_handle);
    if (!handle)
        return not_plain();
    fr->graph = PyLong_Check(handle) ? PyLong_AsVoidPtr(handle) : NULL;
    Py_DECREF(handle);
    if (!fr->graph)
        return not_plain();
    fr->csr = py_lib.graph_csr(fr->graph);
    return true;
}

/* Everything before the library is called; false: not plain. */
static bool take_all(frame *fr, PyObject *args, PyObject *given) {
    const call *c = fr->c;
    if (!c->ready || !ndarray_type || !given || !take_graph(fr, args))
        return false;
    Py_ssize_t n = PyDict_Size(given);
    PyObject *out = NULL;
    if (n != c->n_params) { /* one more: out */
        if (n != c->n_params + 1 || c->n_results != 1)
            return false;
        out = PyDict_GetItemWithError(given, c->out_keyword);
        if (!out || out == Py_None)
            return not_plain();
    }
    for (int i = 0; i < c->n_dims; i++)
        fr->dims[i] = c->dims[i] == DIM_OPEN  ? -1
                      : c->dims[i] == DIM_DST ? fr->csr->n_dst
                      : c->dims[i] == DIM_SRC ? fr->csr->n_src
                                              : fr->csr->n_edges;
    return take_params(fr, given) && take_results(fr, out);
}

static tiga_status run(frame *fr) {
    const call *c = fr->c;
    tiga_context *ctx = py_take_context();
    if (!ctx)
        return TIGA_E_MEMORY;
    bool scoped = py_scope && py_lib.enter(ctx, py_scope) == TIGA_OK;
    tiga_status status;
    Py_BEGIN_ALLOW_THREADS
    status = py_lib.call_many(ctx, c->module, c->name, &fr->graph, 1, fr->in, c->n_params, fr->out, c->n_results, NULL);
    Py_END_ALLOW_THREADS
    if (scoped)
        py_lib.leave(ctx);
    if (status != TIGA_OK)
        py_lib.error_clear(ctx);
    py_give_context(ctx);
    return status;
}

static PyObject *give_results(const frame *fr) {
    const call *c = fr->c;
    if (!c->result_type) {
        Py_INCREF(fr->made[0]);
        return fr->made[0];
    }
    PyObject *all = PyTuple_New(c->n_results);
    for (int i = 0; all && i < c->n_results; i++) {
        Py_INCREF(fr->made[i]);
        PyTuple_SetItem(all, i, fr->made[i]);
    }
    PyObject *result = all ? PyObject_CallObject(c->result_type, all) : NULL;
    Py_XDECREF(all);
    return result;
}

static PyObject *slow(PyObject *self, PyObject *args, PyObject *given) {
    PyObject *none = given ? NULL : PyDict_New();
    PyObject *result = given || none ? PyObject_CallMethodObjArgs(self, py_name_call, args, given ? given : none, NULL) : NULL;
    Py_XDECREF(none);
    return result;
}

static PyObject *call_call(PyObject *self, PyObject *args, PyObject *given) {
    frame fr;
    fr.c = (call *)self;
    fr.n_buffers = 0;
    memset(fr.made, 0, sizeof fr.made);
    PyObject *result = NULL;
    bool plain = take_all(&fr, args, given);
    tiga_status status = plain ? run(&fr) : TIGA_OK;
    for (int i = 0; i < fr.n_buffers; i++)
        PyBuffer_Release(&fr.buffers[i]);
    if (plain && status == TIGA_OK)
        result = give_results(&fr);
    for (int i = 0; i < MAX_RESULTS && fr.made[i]; i++)
        Py_DECREF(fr.made[i]);
    if (plain && py_restore_pending()) {
        Py_XDECREF(result);
        return NULL;
    }
    return plain && status == TIGA_OK ? result : slow(self, args, given);
}

/* ---- making one ---- */
static char *copy_text(PyObject *bytes) {
    char *text;
    Py_ssize_t n;
    if (PyBytes_AsStringAndSize(bytes, &text, &n) != 0)
        return NULL;
    char *copy = PyMem_Malloc((size_t)n + 1);
    if (copy)
        memcpy(copy, text, (size_t)n + 1);
    else
        PyErr_NoMemory();
    return copy;
}

/* (keyword, name, at, dtype, size, format, has_axis, shape) */
static bool set_field(field *f, PyObject *from) {
    PyObject *keyword, *name, *shape;
    const char *format;
    int has_axis;
    if (!PyArg_ParseTuple(from, "UOiiispO!", &keyword, &name, &f->at, &f->dtype, &f->size, &format, &has_axis,
                          &PyTuple_Type, &shape))
        return false;
    Py_ssize_t n = PyTuple_Size(shape);
    if (n > 6)
        return PyErr_SetString(PyExc_ValueError, "more than 6 axes"), false;
    if (strlen(format) >= sizeof f->format)
        return PyErr_SetString(PyExc_ValueError, "a longer format"), false;
    strcpy(f->format, format);
    f->has_axis = has_axis != 0;
    f->rank = (int)n + f->has_axis;
    for (Py_ssize_t k = 0; k < n; k++)
        f->shape[k] = PyLong_AsLongLong(PyTuple_GetItem(shape, k));
    if (PyErr_Occurred() || !(f->name = copy_text(name)))
        return false;
    Py_INCREF(keyword);
    PyUnicode_InternInPlace(&keyword);
    f->keyword = keyword;
    return true;
}

static bool set_fields(field *to, int *count, int max, PyObject *from) {
    Py_ssize_t n = PyTuple_Size(from);
    for (*count = 0; *count < n && *count < max; ++*count)
        if (!set_field(&to[*count], PyTuple_GetItem(from, *count)))
            return false;
    return true;
}

/* setup(module, name, params, results, dims, out_keyword, result_type): what is too large stays with call() */
static PyObject *call_setup(PyObject *self, PyObject *args) {
    call *c = (call *)self;
    PyObject *module, *name, *params, *results, *dims, *out, *type;
    if (c->name)
        return PyErr_SetString(PyExc_ValueError, "setup: twice"), NULL;
    if (!PyArg_ParseTuple(args, "OOO!O!O!UO", &module, &name, &PyTuple_Type, &params, &PyTuple_Type, &results,
                          &PyTuple_Type, &dims, &out, &type))
        return NULL;
    if (PyTuple_Size(params) > MAX_PARAMS || PyTuple_Size(results) > MAX_RESULTS || PyTuple_Size(dims) > MAX_DIMS)
        Py_RETURN_FALSE;
    c->module = PyLong_AsVoidPtr(module);
    if (!c->module || !(c->name = copy_text(name)) || !set_fields(c->params, &c->n_params, MAX_PARAMS, params) ||
        !set_fields(c->results, &c->n_results, MAX_RESULTS, results))
        return NULL;
    c->n_dims = (int)PyTuple_Size(dims);
    for (int i = 0; i < c->n_dims; i++)
        c->dims[i] = (int)PyLong_AsLong(PyTuple_GetItem(dims, i));
    if (PyErr_Occurred())
        return NULL;
    Py_INCREF(out);
    c->out_keyword = out;
    if (type != Py_None) {
        Py_INCREF(type);
        c->result_type = type;
    }
    c->ready = true;
    for (int i = 0; i < c->n_results; i++)
        c->ready &= c->results[i].rank > 0;
    return PyBool_FromLong(c->ready);
}

static void clear_fields(field *fields, int n) {
    for (int i = 0; i < n; i++) {
        Py_XDECREF(fields[i].keyword);
        PyMem_Free(fields[i].name);
    }
}

static int call_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((call *)self)->result_type);
    return 0;
}

static int call_clear(PyObject *self) {
    call *c = (call *)self;
    c->ready = false;
    Py_CLEAR(c->result_type);
    return 0;
}

static void call_dealloc(PyObject *self) {
    call *c = (call *)self;
    PyObject_GC_UnTrack(self);
    clear_fields(c->params, MAX_PARAMS);
    clear_fields(c->results, MAX_RESULTS);
    PyMem_Free(c->name);
    Py_XDECREF(c->out_keyword);
    Py_XDECREF(c->result_type);
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyMethodDef call_methods[] = {
    {"_setup", call_setup, METH_VARARGS, "tells the extension what the function takes and gives"}, {NULL, NULL, 0, NULL}};

static PyType_Slot call_slots[] = {{Py_tp_call, call_call},
                                   {Py_tp_dealloc, call_dealloc},
                                   {Py_tp_traverse, call_traverse},
                                   {Py_tp_clear, call_clear},
                                   {Py_tp_methods, call_methods},
                                   {Py_tp_doc, "the fast way through a call"},
                                   {0, NULL}};

PyType_Spec py_call_spec = {
    .name = "tiga._tiga.Call", .basicsize = sizeof(call), .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, .slots = call_slots};

/* set_numpy(ndarray, empty, dtypes by element type) */
PyObject *py_set_numpy(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *type, *empty, *dtypes;
    if (!PyArg_ParseTuple(args, "OOO!", &type, &empty, &PyTuple_Type, &dtypes))
        return NULL;
    py_set_global(&ndarray_type, type);
    py_set_global(&np_empty, empty);
    py_set_global(&np_dtypes, dtypes);
    Py_RETURN_NONE;
}
