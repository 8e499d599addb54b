/* Owners: what the library made, given back without a step of Python, in which a signal could be lost. */
#include "_tiga.h"

#include <string.h>

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
PyType_Spec py_owner_spec = {
    .name = "tiga._tiga.Owner", .basicsize = sizeof(owner), .flags = Py_TPFLAGS_DEFAULT, .slots = owner_slots};
