/* The fast way through a call from Python, and how signal handlers run during long calls.
 *
 * Call is the base class of tiga.Function.  Calling it handles the plain case itself: one graph, numpy arrays that fit,
 * numbers, results of one axis or more.  It decides nothing else: whatever is not plain, and every error, goes to the
 * method call() in _function.py, which is the one meaning of a call.
 *
 * The library is not linked but looked up in the one that the package has loaded.  Everything here is behind the GIL
 * except tiga_call_many itself.  Limited API of Python 3.11: one binary for all later versions. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "tiga/memory.h"
#include "tiga/tiga.h"

enum { MAX_PARAMS = 24, MAX_RESULTS = 8, MAX_DIMS = 24, MAX_POOL = 64 };

/* ---- the library ---- */
static struct library {
    tiga_context_options (*context_defaults)(void);
    tiga_status (*context_new)(const tiga_context_options *, tiga_context **);
    void (*context_free)(tiga_context *);
    void (*error_clear)(tiga_context *);
    const tiga_csr *(*graph_csr)(const tiga_graph *);
    tiga_status (*call_many)(tiga_context *, tiga_module *, const char *, tiga_graph *const *, int, const tiga_binding *,
                             int, tiga_binding *, int, tiga_call_stats *);
    tiga_status (*enter)(tiga_context *, tiga_execution *);
    tiga_status (*leave)(tiga_context *);
} lib;

static tiga_execution *scope; /* that of tiga.execution, or NULL; Python keeps it */

static PyTypeObject *graph_type;          /* tiga.Graph */
static PyObject *ndarray_type, *np_empty; /* numpy's, once it is there */
static PyObject *np_dtypes;               /* tuple: dtype objects by our element type */
static PyObject *name_handle, *name_call; /* "_handle", "call" */

/* ---- signals: asked by the library on the calling thread, which has let go of the GIL ---- */
static PyObject *pending[3]; /* what a handler raised; only the main thread runs handlers */
static pthread_t main_thread;

/* Other threads must not even ask for the GIL: at the end of the process it would not be given. */
static int poll_signals(void *user) {
    (void)user;
    if (!pthread_equal(main_thread, pthread_self()))
        return 0;
    PyGILState_STATE state = PyGILState_Ensure();
    int raised = PyErr_CheckSignals();
    if (raised) {
        PyObject *old[3] = {pending[0], pending[1], pending[2]};
        PyErr_Fetch(&pending[0], &pending[1], &pending[2]);
        for (int i = 0; i < 3; i++)
            Py_XDECREF(old[i]);
    }
    PyGILState_Release(state);
    return raised != 0;
}

/* After every call, whatever became of it: a handler may have raised when all work was done already. */
static bool restore_pending(void) {
    if (!pending[0] || !pthread_equal(main_thread, pthread_self()))
        return false;
    PyErr_Restore(pending[0], pending[1], pending[2]);
    memset(pending, 0, sizeof pending);
    return true;
}

/* The calling thread is the one that runs handlers: of a fresh process, or of a child of fork, in which what a handler
 * of the parent raised during another thread's call is nobody's. */
static PyObject *set_main(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    main_thread = pthread_self();
    for (int i = 0; i < 3; i++) {
        PyObject *old = pending[i];
        pending[i] = NULL;
        Py_XDECREF(old);
    }
    Py_RETURN_NONE;
}

static PyObject *raise_pending(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    if (restore_pending())
        return NULL;
    Py_RETURN_NONE;
}

/* ---- contexts: one for each call at a time; see _context.py ---- */
static tiga_context *pool[MAX_POOL];
static int n_pool;

static tiga_context *take_context(void) {
    if (n_pool > 0)
        return pool[--n_pool];
    tiga_context_options o = lib.context_defaults();
    o.poll = poll_signals;
    tiga_context *ctx;
    return lib.context_new(&o, &ctx) == TIGA_OK ? ctx : NULL;
}

static void give_context(tiga_context *ctx) {
    if (n_pool < MAX_POOL)
        pool[n_pool++] = ctx;
    else
        lib.context_free(ctx);
}

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
    if (Py_TYPE(g) != graph_type)
        return false;
    PyObject *handle = PyObject_GetAttr(g, name_handle);
    if (!handle)
        return not_plain();
    fr->graph = PyLong_Check(handle) ? PyLong_AsVoidPtr(handle) : NULL;
    Py_DECREF(handle);
    if (!fr->graph)
        return not_plain();
    fr->csr = lib.graph_csr(fr->graph);
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
    tiga_context *ctx = take_context();
    if (!ctx)
        return TIGA_E_MEMORY;
    bool scoped = scope && lib.enter(ctx, scope) == TIGA_OK;
    tiga_status status;
    Py_BEGIN_ALLOW_THREADS
    status = lib.call_many(ctx, c->module, c->name, &fr->graph, 1, fr->in, c->n_params, fr->out, c->n_results, NULL);
    Py_END_ALLOW_THREADS
    if (scoped)
        lib.leave(ctx);
    if (status != TIGA_OK)
        lib.error_clear(ctx);
    give_context(ctx);
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
    PyObject *result = given || none ? PyObject_CallMethodObjArgs(self, name_call, args, given ? given : none, NULL) : NULL;
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
    if (plain && restore_pending()) {
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

static PyType_Spec call_spec = {
    .name = "tiga._tiga.Call", .basicsize = sizeof(call), .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, .slots = call_slots};

/* ---- owners: what the library made, given back without a step of Python, in which a signal could be lost ---- */
typedef struct owner {
    PyObject_HEAD
    void *handle;
    void (*release)(void *handle);
} owner;

/* Owner(handle, address of the function that frees it) */
static PyObject *owner_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    PyObject *handle, *address;
    (void)keywords;
    if (!PyArg_ParseTuple(args, "OO", &handle, &address))
        return NULL;
    void *at[2] = {PyLong_AsVoidPtr(handle), PyLong_AsVoidPtr(address)};
    if (PyErr_Occurred())
        return NULL;
    owner *o = (owner *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (o) {
        o->handle = at[0];
        memcpy(&o->release, &at[1], sizeof o->release);
    }
    return (PyObject *)o;
}

static void owner_dealloc(PyObject *self) {
    owner *o = (owner *)self;
    PyTypeObject *type = Py_TYPE(self);
    if (o->handle) {
        Py_BEGIN_ALLOW_THREADS
        o->release(o->handle);
        Py_END_ALLOW_THREADS
    }
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyType_Slot owner_slots[] = {{Py_tp_new, owner_new}, {Py_tp_dealloc, owner_dealloc}, {0, NULL}};
static PyType_Spec owner_spec = {
    .name = "tiga._tiga.Owner", .basicsize = sizeof(owner), .flags = Py_TPFLAGS_DEFAULT, .slots = owner_slots};

/* ---- tensors: who is inside of the library, and the quick way through operations ---- *
 * A tiga_tensors works for one thread at a time.  Calls that may take long let go of the GIL and hold the gate; operations
 * only make nodes, keep the GIL, and so need no more than that nobody is inside.  Tensors that die while somebody is are
 * freed when he leaves. */
static struct {
    PyThread_type_lock lock;
    bool inside;
    unsigned long thread;
    void **dead; /* in the order of their deaths; with the lowest bit set: to be unpinned, not freed */
    size_t next, n_dead, cap_dead;
} gate;

static struct {
    void *home; /* the tiga_tensors, NULL before the first use */
    tiga_context *ctx;
    tiga_status (*op)(const char *, void *const *, int, void **);
    tiga_status (*number)(void *, double, void **);
    tiga_status (*integer)(void *, int64_t, void **);
    void (*free)(void *);
    void (*unpin)(void *);
    int32_t (*dtype)(const void *);
    int32_t (*rank)(const void *);
    const int64_t *(*shape)(const void *);
    int64_t (*size)(const void *);
    tiga_status (*realize)(void *const *, int);
    tiga_status (*copy_to)(void *, void *, int64_t);
} tensors;
static PyTypeObject *tensor_type;   /* tiga.Tensor */
static PyObject *binary_slow;       /* what does an operator that is not plain */

enum { UNPIN = 1 };

/* Objects also die while an exception is on its way, and the memory of others that goes with them runs Python, which must
 * not see it. */
static void end_one(void *handle) {
    PyObject *error[3];
    PyErr_Fetch(&error[0], &error[1], &error[2]);
    if ((uintptr_t)handle & UNPIN)
        tensors.unpin((char *)handle - UNPIN);
    else
        tensors.free(handle);
    PyErr_Restore(error[0], error[1], error[2]);
}

/* Whatever belonged to one runs Python, and so more may die meanwhile. */
static void free_dead(void) {
    while (gate.next < gate.n_dead)
        end_one(gate.dead[gate.next++]);
    gate.next = gate.n_dead = 0;
}

static bool gate_enter(bool wait) {
    if (!PyThread_acquire_lock(gate.lock, NOWAIT_LOCK)) {
        PyLockStatus got = PY_LOCK_FAILURE;
        while (wait && got != PY_LOCK_ACQUIRED) {
            Py_BEGIN_ALLOW_THREADS
            got = PyThread_acquire_lock_timed(gate.lock, 50000, 1);
            Py_END_ALLOW_THREADS
            if (got != PY_LOCK_ACQUIRED && PyErr_CheckSignals() != 0)
                return false;
        }
        if (!wait)
            return false;
    }
    gate.inside = true;
    gate.thread = PyThread_get_thread_ident();
    return true;
}

static void gate_leave(void) {
    free_dead();
    gate.inside = false;
    PyThread_release_lock(gate.lock);
}

static PyObject *gate_acquire(PyObject *self, PyObject *args) {
    (void)self;
    int wait = 1;
    if (!PyArg_ParseTuple(args, "|p", &wait))
        return NULL;
    bool got = gate_enter(wait != 0);
    return PyErr_Occurred() ? NULL : PyBool_FromLong(got);
}

static PyObject *gate_release(PyObject *self, PyObject *args) {
    (void)self, (void)args;
    gate_leave();
    Py_RETURN_NONE;
}

static PyObject *gate_is_owned(PyObject *self, PyObject *args) {
    (void)self, (void)args;
    return PyBool_FromLong(gate.inside && gate.thread == PyThread_get_thread_ident());
}

static PyMethodDef gate_methods[] = {{"acquire", gate_acquire, METH_VARARGS, "whether it was got"},
                                     {"release", gate_release, METH_NOARGS, "frees what died meanwhile"},
                                     {"__enter__", gate_acquire, METH_VARARGS, ""},
                                     {"__exit__", gate_release, METH_VARARGS, ""},
                                     {"_is_owned", gate_is_owned, METH_NOARGS, "whether this thread is inside"},
                                     {NULL, NULL, 0, NULL}};
static PyType_Slot gate_slots[] = {{Py_tp_methods, gate_methods}, {0, NULL}};
static PyType_Spec gate_spec = {
    .name = "tiga._tiga.Gate", .basicsize = sizeof(PyObject), .flags = Py_TPFLAGS_DEFAULT, .slots = gate_slots};

/* Frees what died; by who is inside. */
static PyObject *drain(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    free_dead();
    Py_RETURN_NONE;
}

typedef struct tensor {
    PyObject_HEAD
    void *handle;
} tensor;

static PyObject *tensor_wrap(PyTypeObject *type, void *handle) {
    tensor *t = (tensor *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (t)
        t->handle = handle;
    return (PyObject *)t;
}

static PyObject *tensor_take(PyObject *type, PyObject *handle) {
    void *address = PyLong_AsVoidPtr(handle);
    return PyErr_Occurred() ? NULL : tensor_wrap((PyTypeObject *)type, address);
}

static PyObject *tensor_handle(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromVoidPtr(((tensor *)self)->handle);
}

static void tensor_die(void *handle) {
    if (!handle)
        return;
    if (gate_enter(false)) { /* the memory of others that goes with it may run Python, so nobody may be inside */
        end_one(handle);
        gate_leave();
        return;
    }
    if (gate.n_dead == gate.cap_dead) {
        size_t cap = gate.cap_dead ? 2 * gate.cap_dead : 64;
        void **more = PyMem_Realloc(gate.dead, cap * sizeof *more);
        if (!more)
            return; /* it is lost: there is no memory to remember it */
        gate.dead = more;
        gate.cap_dead = cap;
    }
    gate.dead[gate.n_dead++] = handle;
}

static void tensor_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    tensor_die(((tensor *)self)->handle);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

/* A pin of a tensor that something else looks at. */
typedef struct pin {
    PyObject_HEAD
    PyObject *tensor;
} pin;

static PyObject *pin_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    PyObject *of;
    (void)keywords;
    if (!PyArg_ParseTuple(args, "O!", tensor_type, &of))
        return NULL;
    pin *p = (pin *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (p) {
        Py_INCREF(of);
        p->tensor = of;
    }
    return (PyObject *)p;
}

static void pin_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject *of = ((pin *)self)->tensor;
    if (of)
        tensor_die((char *)((tensor *)of)->handle + UNPIN);
    Py_XDECREF(of);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyType_Slot pin_slots[] = {{Py_tp_new, pin_new}, {Py_tp_dealloc, pin_dealloc}, {0, NULL}};
static PyType_Spec pin_spec = {
    .name = "tiga._tiga.Pin", .basicsize = sizeof(pin), .flags = Py_TPFLAGS_DEFAULT, .slots = pin_slots};

static PyObject *tensor_shape(PyObject *self, void *unused) {
    (void)unused;
    const void *x = ((tensor *)self)->handle;
    int32_t rank = tensors.rank(x);
    PyObject *shape = PyTuple_New(rank);
    for (int32_t i = 0; shape && i < rank; i++) {
        PyObject *n = PyLong_FromLongLong(tensors.shape(x)[i]);
        if (!n || PyTuple_SetItem(shape, i, n) != 0)
            Py_CLEAR(shape);
    }
    return shape;
}

static PyObject *tensor_ndim(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLong(tensors.rank(((tensor *)self)->handle));
}

static PyObject *tensor_size(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLongLong(tensors.size(((tensor *)self)->handle));
}

static PyObject *tensor_code(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLong(tensors.dtype(((tensor *)self)->handle));
}

/* What may take long: without the GIL, inside of the gate.  to NULL: computed only. */
static tiga_status look(void *x, void *to, int64_t n_bytes) {
    tiga_status status;
    Py_BEGIN_ALLOW_THREADS
    status = to ? tensors.copy_to(x, to, n_bytes) : tensors.realize(&x, 1);
    Py_END_ALLOW_THREADS
    if (status != TIGA_OK)
        lib.error_clear(tensors.ctx);
    gate_leave();
    return status;
}

/* Whether it was done; False for an error, which who does it again says in words.  Waits for nobody. */
static PyObject *tensor_try_realize(PyObject *self, PyObject *unused) {
    (void)unused;
    bool done = gate_enter(false) && look(((tensor *)self)->handle, NULL, 0) == TIGA_OK;
    return restore_pending() ? NULL : PyBool_FromLong(done);
}

/* The elements as bytes, or None. */
static PyObject *tensor_try_bytes(PyObject *self, PyObject *bytes_of_one) {
    long long each = PyLong_AsLongLong(bytes_of_one);
    void *x = ((tensor *)self)->handle;
    PyObject *bytes = PyErr_Occurred() ? NULL : PyBytes_FromStringAndSize(NULL, tensors.size(x) * each);
    if (!bytes)
        return NULL;
    bool done = gate_enter(false) && look(x, PyBytes_AsString(bytes), PyBytes_Size(bytes)) == TIGA_OK;
    if (restore_pending()) {
        Py_DECREF(bytes);
        return NULL;
    }
    if (done)
        return bytes;
    Py_DECREF(bytes);
    Py_RETURN_NONE;
}

static PyMethodDef tensor_methods[] = {{"_take", tensor_take, METH_O | METH_CLASS, "takes a handle"},
                                       {"_try_realize", tensor_try_realize, METH_NOARGS, "whether it was done"},
                                       {"_try_bytes", tensor_try_bytes, METH_O, "_try_bytes(bytes of an element)"},
                                       {NULL, NULL, 0, NULL}};
static PyGetSetDef tensor_getset[] = {{"_handle", tensor_handle, NULL, "address in the library", NULL},
                                      {"_code", tensor_code, NULL, "number of the element type", NULL},
                                      {"shape", tensor_shape, NULL, "The size of each axis.", NULL},
                                      {"ndim", tensor_ndim, NULL, "How many axes.", NULL},
                                      {"size", tensor_size, NULL, "How many elements.", NULL},
                                      {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot tensor_slots[] = {{Py_tp_dealloc, tensor_dealloc},
                                     {Py_tp_methods, tensor_methods},
                                     {Py_tp_getset, tensor_getset},
                                     {0, NULL}};
static PyType_Spec tensor_spec = {.name = "tiga._tiga.TensorBase",
                                  .basicsize = sizeof(tensor),
                                  .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                                  .slots = tensor_slots};

/* A tensor, or a number of Python's as a new one (*made); NULL: something else. */
static void *plain_operand(PyObject *value, void **made) {
    if (Py_TYPE(value) == tensor_type)
        return ((tensor *)value)->handle;
    if (PyFloat_CheckExact(value)) {
        return tensors.number(tensors.home, PyFloat_AsDouble(value), made) == TIGA_OK ? *made : NULL;
    }
    if (PyLong_CheckExact(value)) {
        int overflow;
        long long n = PyLong_AsLongLongAndOverflow(value, &overflow);
        return !overflow && tensors.integer(tensors.home, n, made) == TIGA_OK ? *made : NULL;
    }
    return NULL;
}

static PyObject *plain_binary(PyObject *name, PyObject *a, PyObject *b) {
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    void *made[2] = {NULL, NULL}, *out = NULL, *args[2];
    if (!text)
        return PyErr_Clear(), NULL;
    args[0] = plain_operand(a, &made[0]);
    args[1] = args[0] ? plain_operand(b, &made[1]) : NULL;
    bool ok = args[1] && tensors.op(text, args, 2, &out) == TIGA_OK;
    if (!ok)
        lib.error_clear(tensors.ctx); /* who does it again says it */
    for (int i = 0; i < 2; i++)
        if (made[i])
            tensors.free(made[i]);
    PyObject *result = ok ? tensor_wrap(tensor_type, out) : NULL;
    if (ok && !result) {
        tensors.free(out);
        PyErr_Clear();
    }
    return result;
}

/* binary(name, a, b): an operator; whatever is not plain, and every error, goes to binary_slow */
static PyObject *binary(PyObject *self, PyObject *args) {
    (void)self;
    if (PyTuple_Size(args) != 3)
        return PyErr_SetString(PyExc_TypeError, "binary(name, a, b)"), NULL;
    PyObject *name = PyTuple_GetItem(args, 0), *a = PyTuple_GetItem(args, 1), *b = PyTuple_GetItem(args, 2);
    PyObject *result = tensors.home && !gate.inside ? plain_binary(name, a, b) : NULL;
    return result ? result : PyObject_CallObject(binary_slow, args);
}

static void set_global(PyObject **place, PyObject *value) {
    PyObject *old = *place;
    Py_INCREF(value);
    *place = value;
    Py_XDECREF(old);
}

/* ---- the module ---- */
static bool look_up(void *library, const char *name, void *place) {
    void *address = dlsym(library, name);
    if (!address) {
        PyErr_Format(PyExc_ImportError, "tiga: the library has no %s", name);
        return false;
    }
    memcpy(place, &address, sizeof address);
    return true;
}

/* setup(dlopen handle, Graph, identity of the main thread) */
static PyObject *setup(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *handle, *graph;
    unsigned long thread; /* threading's identities are pthread_t */
    if (!PyArg_ParseTuple(args, "OOk", &handle, &graph, &thread))
        return NULL;
    main_thread = (pthread_t)thread;
    void *library = PyLong_AsVoidPtr(handle);
    if (!library || !look_up(library, "tiga_context_defaults", &lib.context_defaults) ||
        !look_up(library, "tiga_context_new", &lib.context_new) ||
        !look_up(library, "tiga_context_free", &lib.context_free) ||
        !look_up(library, "tiga_error_clear", &lib.error_clear) || !look_up(library, "tiga_graph_csr", &lib.graph_csr) ||
        !look_up(library, "tiga_call_many", &lib.call_many) || !look_up(library, "tiga_execution_enter", &lib.enter) ||
        !look_up(library, "tiga_execution_leave", &lib.leave))
        return NULL;
    Py_INCREF(graph);
    graph_type = (PyTypeObject *)graph;
    Py_RETURN_NONE;
}

/* set_numpy(ndarray, empty, dtypes by element type) */
static PyObject *set_numpy(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *type, *empty, *dtypes;
    if (!PyArg_ParseTuple(args, "OOO!", &type, &empty, &PyTuple_Type, &dtypes))
        return NULL;
    set_global(&ndarray_type, type);
    set_global(&np_empty, empty);
    set_global(&np_dtypes, dtypes);
    Py_RETURN_NONE;
}

/* set_scope(account or None): calls are charged to it */
static PyObject *set_scope(PyObject *self, PyObject *account) {
    (void)self;
    scope = account == Py_None ? NULL : PyLong_AsVoidPtr(account);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

/* set_tensors(dlopen handle of libtigac, the tiga_tensors, their context) */
static PyObject *set_tensors(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *handle, *home;
    PyObject *context;
    if (!PyArg_ParseTuple(args, "OOO", &handle, &home, &context))
        return NULL;
    void *library = PyLong_AsVoidPtr(handle);
    if (!library || !look_up(library, "tiga_tensor_op", &tensors.op) ||
        !look_up(library, "tiga_tensor_number", &tensors.number) ||
        !look_up(library, "tiga_tensor_integer", &tensors.integer) ||
        !look_up(library, "tiga_tensor_free", &tensors.free) || !look_up(library, "tiga_tensor_unpin", &tensors.unpin) ||
        !look_up(library, "tiga_tensor_dtype", &tensors.dtype) || !look_up(library, "tiga_tensor_rank", &tensors.rank) ||
        !look_up(library, "tiga_tensor_shape", &tensors.shape) || !look_up(library, "tiga_tensor_size", &tensors.size) ||
        !look_up(library, "tiga_tensor_realize", &tensors.realize) ||
        !look_up(library, "tiga_tensor_copy_to", &tensors.copy_to))
        return NULL;
    tensors.ctx = PyLong_AsVoidPtr(context);
    tensors.home = PyLong_AsVoidPtr(home);
    Py_RETURN_NONE;
}

/* set_tensor_type(Tensor, what does operators that are not plain) */
static PyObject *set_tensor_type(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *type, *slow_way;
    if (!PyArg_ParseTuple(args, "OO", &type, &slow_way))
        return NULL;
    set_global((PyObject **)&tensor_type, type);
    set_global(&binary_slow, slow_way);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"setup", setup, METH_VARARGS, "setup(library, Graph, main thread)"},
                                {"set_numpy", set_numpy, METH_VARARGS, "set_numpy(ndarray, empty, dtypes)"},
                                {"set_main", set_main, METH_NOARGS, "handlers of signals run on the calling thread"},
                                {"set_tensors", set_tensors, METH_VARARGS, "set_tensors(library, home, context)"},
                                {"set_tensor_type", set_tensor_type, METH_VARARGS, "set_tensor_type(Tensor, slow)"},
                                {"set_scope", set_scope, METH_O, "set_scope(account or None)"},
                                {"drain", drain, METH_NOARGS, "frees tensors that died while somebody was inside"},
                                {"binary", binary, METH_VARARGS, "binary(name, a, b): an operator of tensors"},
                                {"raise_pending", raise_pending, METH_NOARGS,
                                 "raises what a signal handler raised during the last call, if anything"},
                                {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "tiga._tiga", .m_doc = "the fast way through a call", .m_size = -1, .m_methods = methods};

PyMODINIT_FUNC PyInit__tiga(void); /* for -Wmissing-prototypes */
static bool add_type(PyObject *m, const char *name, PyType_Spec *spec) {
    PyObject *type = PyType_FromSpec(spec);
    bool ok = type && PyModule_AddObjectRef(m, name, type) == 0;
    Py_XDECREF(type);
    return ok;
}

PyMODINIT_FUNC PyInit__tiga(void) {
    PyObject *m = PyModule_Create(&definition);
    PyObject *address = m ? PyLong_FromVoidPtr((void *)(uintptr_t)poll_signals) : NULL;
    gate.lock = PyThread_allocate_lock();
    name_handle = PyUnicode_InternFromString("_handle");
    name_call = PyUnicode_InternFromString("call");
    if (!address || !gate.lock || !name_handle || !name_call || !add_type(m, "Call", &call_spec) ||
        !add_type(m, "Owner", &owner_spec) || !add_type(m, "Gate", &gate_spec) ||
        !add_type(m, "TensorBase", &tensor_spec) || !add_type(m, "Pin", &pin_spec) || PyModule_AddObjectRef(m, "poll_address", address) != 0)
        Py_CLEAR(m);
    Py_XDECREF(address);
    return m;
}
