/* The extension module: the fast way through a call from Python, and how signal handlers run during long calls.  This file
 * makes the module and finds the library. */
#include "_tiga.h"

#include <dlfcn.h>
#include <string.h>

py_library py_lib;
tiga_execution *py_scope;
PyTypeObject *py_graph_type;
PyObject *py_name_handle, *py_name_call;

void py_set_global(PyObject **place, PyObject *value) {
    PyObject *old = *place;
    Py_INCREF(value);
    *place = value;
    Py_XDECREF(old);
}

bool py_look_up(void *library, const char *name, void *place) {
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
    py_main_thread = (pthread_t)thread;
    void *library = PyLong_AsVoidPtr(handle);
    if (!library || !py_look_up(library, "tiga_context_defaults", &py_lib.context_defaults) ||
        !py_look_up(library, "tiga_context_new", &py_lib.context_new) ||
        !py_look_up(library, "tiga_context_free", &py_lib.context_free) ||
        !py_look_up(library, "tiga_error_clear", &py_lib.error_clear) || !py_look_up(library, "tiga_graph_csr", &py_lib.graph_csr) ||
        !py_look_up(library, "tiga_call_many", &py_lib.call_many) || !py_look_up(library, "tiga_execution_enter", &py_lib.enter) ||
        !py_look_up(library, "tiga_execution_leave", &py_lib.leave))
        return NULL;
    Py_INCREF(graph);
    py_graph_type = (PyTypeObject *)graph;
    Py_RETURN_NONE;
}

/* set_scope(account or None): calls are charged to it */
static PyObject *set_scope(PyObject *self, PyObject *account) {
    (void)self;
    py_scope = account == Py_None ? NULL : PyLong_AsVoidPtr(account);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"setup", setup, METH_VARARGS, "setup(library, Graph, main thread)"},
                                {"set_numpy", py_set_numpy, METH_VARARGS, "set_numpy(ndarray, empty, dtypes)"},
                                {"set_main", py_set_main, METH_NOARGS, "handlers of signals run on the calling thread"},
                                {"set_tensors", py_set_tensors, METH_VARARGS, "set_tensors(library, home, context)"},
                                {"set_tensor_type", py_set_tensor_type, METH_VARARGS, "set_tensor_type(Tensor, slow)"},
                                {"set_scope", set_scope, METH_O, "set_scope(account or None)"},
                                {"drain", py_drain, METH_NOARGS, "frees tensors that died while somebody was inside"},
                                {"binary", py_binary, METH_VARARGS, "binary(name, a, b): an operator of tensors"},
                                {"raise_pending", py_raise_pending, METH_NOARGS,
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
    PyObject *address = m ? PyLong_FromVoidPtr((void *)(uintptr_t)py_poll_signals) : NULL;
    py_name_handle = PyUnicode_InternFromString("_handle");
    py_name_call = PyUnicode_InternFromString("call");
    if (!address || !py_gate_init() || !py_name_handle || !py_name_call || !add_type(m, "Call", &py_call_spec) ||
        !add_type(m, "Owner", &py_owner_spec) || !add_type(m, "Gate", &py_gate_spec) ||
        !add_type(m, "TensorBase", &py_tensor_spec) || !add_type(m, "Pin", &py_pin_spec) || PyModule_AddObjectRef(m, "poll_address", address) != 0)
        Py_CLEAR(m);
    Py_XDECREF(address);
    return m;
}
