/* The extension module: what its files share.
 *
 *   _tiga.c           the module, and the library: not linked but looked up in the one that the package has loaded
 *   _tiga_signals.c   handlers of signals during long calls; contexts
 *   _tiga_call.c      the fast way through a call
 *   _tiga_owner.c     what the library made, and who gives it back
 *   _tiga_tensors.c   who is inside of the tensors, and the quick way through their operations
 *
 * Everything is behind the GIL except the calls of the library that may take long.  Limited API of Python 3.11: one binary
 * for all later versions. */
#ifndef TIGA_PYTHON_H
#define TIGA_PYTHON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <pthread.h>
#include <stdbool.h>

#include "tiga/memory.h"
#include "tiga/tiga.h"

/* ---- _tiga.c ---- */
typedef struct py_library {
    tiga_context_options (*context_defaults)(void);
    tiga_status (*context_new)(const tiga_context_options *, tiga_context **);
    void (*context_free)(tiga_context *);
    void (*error_clear)(tiga_context *);
    const tiga_csr *(*graph_csr)(const tiga_graph *);
    tiga_status (*call_many)(tiga_context *, tiga_module *, const char *, tiga_graph *const *, int, const tiga_binding *,
                             int, tiga_binding *, int, tiga_call_stats *);
    tiga_status (*enter)(tiga_context *, tiga_execution *);
    tiga_status (*leave)(tiga_context *);
} py_library;
extern py_library py_lib;
extern tiga_execution *py_scope;     /* that of tiga.execution, or NULL; Python keeps it */
extern PyTypeObject *py_graph_type;  /* tiga.Graph */
extern PyObject *py_name_handle, *py_name_call; /* "_handle", "call" */
bool py_look_up(void *library, const char *name, void *place); /* false: an ImportError */
void py_set_global(PyObject **place, PyObject *value);

/* ---- _tiga_signals.c ---- */
extern pthread_t py_main_thread; /* the one that runs handlers */
int py_poll_signals(void *user);
bool py_restore_pending(void); /* what a handler raised during the last call, if anything, is raised now */
PyObject *py_set_main(PyObject *self, PyObject *unused);
PyObject *py_raise_pending(PyObject *self, PyObject *unused);
tiga_context *py_take_context(void); /* NULL: out of memory */
void py_give_context(tiga_context *ctx);

/* ---- _tiga_call.c ---- */
extern PyType_Spec py_call_spec;
PyObject *py_set_numpy(PyObject *self, PyObject *args);

/* ---- _tiga_owner.c ---- */
extern PyType_Spec py_owner_spec;

/* ---- _tiga_tensors.c ---- */
bool py_gate_init(void); /* false: out of memory */
extern PyType_Spec py_gate_spec, py_tensor_spec, py_pin_spec;
PyObject *py_drain(PyObject *self, PyObject *unused);
PyObject *py_binary(PyObject *self, PyObject *args);
PyObject *py_set_tensors(PyObject *self, PyObject *args);
PyObject *py_set_tensor_type(PyObject *self, PyObject *args);

#endif
