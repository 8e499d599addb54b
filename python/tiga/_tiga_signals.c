/* How signal handlers run during long calls, and the contexts that calls run on. */
#include "_tiga.h"

#include <string.h>

enum { MAX_POOL = 64 };

/* ---- signals: asked by the library on the calling thread, which has let go of the GIL ---- */
static PyObject *pending[3]; /* what a handler raised; only the main thread runs handlers */
pthread_t py_main_thread;

/* Other threads must not even ask for the GIL: at the end of the process it would not be given. */
int py_poll_signals(void *user) {
    (void)user;
    if (!pthread_equal(py_main_thread, pthread_self()))
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
bool py_restore_pending(void) {
    if (!pending[0] || !pthread_equal(py_main_thread, pthread_self()))
        return false;
    PyErr_Restore(pending[0], pending[1], pending[2]);
    memset(pending, 0, sizeof pending);
    return true;
}

/* The calling thread is the one that runs handlers: of a fresh process, or of a child of fork, in which what a handler
 * of the parent raised during another thread's call is nobody's. */
PyObject *py_set_main(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    py_main_thread = pthread_self();
    for (int i = 0; i < 3; i++) {
        PyObject *old = pending[i];
        pending[i] = NULL;
        Py_XDECREF(old);
    }
    Py_RETURN_NONE;
}

PyObject *py_raise_pending(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    if (py_restore_pending())
        return NULL;
    Py_RETURN_NONE;
}

/* ---- contexts: one for each call at a time; see _context.py ---- */
static tiga_context *pool[MAX_POOL];
static int n_pool;

tiga_context *py_take_context(void) {
    if (n_pool > 0)
        return pool[--n_pool];
    tiga_context_options o = py_lib.context_defaults();
    o.poll = py_poll_signals;
    tiga_context *ctx;
    return py_lib.context_new(&o, &ctx) == TIGA_OK ? ctx : NULL;
}

void py_give_context(tiga_context *ctx) {
    if (n_pool < MAX_POOL)
        pool[n_pool++] = ctx;
    else
        py_lib.context_free(ctx);
}
