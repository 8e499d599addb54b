/* Tensors: who is inside of the library, and the quick way through operations.
 *
 * A tiga_tensors works for one thread at a time.  Calls that may take long let go of the GIL and hold the gate; operations
 * only make nodes, keep the GIL, and so need no more than that nobody is inside.  Tensors that die while somebody is are
 * freed when he leaves. */
#include "_tiga.h"

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

bool py_gate_init(void) {
    gate.lock = PyThread_allocate_lock();
    return gate.lock != NULL;
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
PyType_Spec py_gate_spec = {
    .name = "tiga._tiga.Gate", .basicsize = sizeof(PyObject), .flags = Py_TPFLAGS_DEFAULT, .slots = gate_slots};

/* Frees what died; by who is inside. */
PyObject *py_drain(PyObject *self, PyObject *unused) {
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
PyType_Spec py_pin_spec = {
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
        py_lib.error_clear(tensors.ctx);
    gate_leave();
    return status;
}

/* Whether it was done; False for an error, which who does it again says in words.  Waits for nobody. */
static PyObject *tensor_try_realize(PyObject *self, PyObject *unused) {
    (void)unused;
    bool done = gate_enter(false) && look(((tensor *)self)->handle, NULL, 0) == TIGA_OK;
    return py_restore_pending() ? NULL : PyBool_FromLong(done);
}

/* The elements as bytes, or None. */
static PyObject *tensor_try_bytes(PyObject *self, PyObject *bytes_of_one) {
    long long each = PyLong_AsLongLong(bytes_of_one);
    void *x = ((tensor *)self)->handle;
    PyObject *bytes = PyErr_Occurred() ? NULL : PyBytes_FromStringAndSize(NULL, tensors.size(x) * each);
    if (!bytes)
        return NULL;
    bool done = gate_enter(false) && look(x, PyBytes_AsString(bytes), PyBytes_Size(bytes)) == TIGA_OK;
    if (py_restore_pending()) {
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
PyType_Spec py_tensor_spec = {.name = "tiga._tiga.TensorBase",
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
        py_lib.error_clear(tensors.ctx); /* who does it again says it */
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
PyObject *py_binary(PyObject *self, PyObject *args) {
    (void)self;
    if (PyTuple_Size(args) != 3)
        return PyErr_SetString(PyExc_TypeError, "binary(name, a, b)"), NULL;
    PyObject *name = PyTuple_GetItem(args, 0), *a = PyTuple_GetItem(args, 1), *b = PyTuple_GetItem(args, 2);
    PyObject *result = tensors.home && !gate.inside ? plain_binary(name, a, b) : NULL;
    return result ? result : PyObject_CallObject(binary_slow, args);
}

/* set_tensors(dlopen handle of libtigac, the tiga_tensors, their context) */
PyObject *py_set_tensors(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *handle, *home;
    PyObject *context;
    if (!PyArg_ParseTuple(args, "OOO", &handle, &home, &context))
        return NULL;
    void *library = PyLong_AsVoidPtr(handle);
    if (!library || !py_look_up(library, "tiga_tensor_op", &tensors.op) ||
        !py_look_up(library, "tiga_tensor_number", &tensors.number) ||
        !py_look_up(library, "tiga_tensor_integer", &tensors.integer) ||
        !py_look_up(library, "tiga_tensor_free", &tensors.free) || !py_look_up(library, "tiga_tensor_unpin", &tensors.unpin) ||
        !py_look_up(library, "tiga_tensor_dtype", &tensors.dtype) || !py_look_up(library, "tiga_tensor_rank", &tensors.rank) ||
        !py_look_up(library, "tiga_tensor_shape", &tensors.shape) || !py_look_up(library, "tiga_tensor_size", &tensors.size) ||
        !py_look_up(library, "tiga_tensor_realize", &tensors.realize) ||
        !py_look_up(library, "tiga_tensor_copy_to", &tensors.copy_to))
        return NULL;
    tensors.ctx = PyLong_AsVoidPtr(context);
    tensors.home = PyLong_AsVoidPtr(home);
    Py_RETURN_NONE;
}

/* set_tensor_type(Tensor, what does operators that are not plain) */
PyObject *py_set_tensor_type(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *type, *slow_way;
    if (!PyArg_ParseTuple(args, "OO", &type, &slow_way))
        return NULL;
    py_set_global((PyObject **)&tensor_type, type);
    py_set_global(&binary_slow, slow_way);
    Py_RETURN_NONE;
}
