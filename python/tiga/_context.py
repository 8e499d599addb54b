"""Contexts of the library, and how a call runs on one.

A context is for one call at a time, so each call takes one from a pool and puts it back: any number of threads may call
at once, and a signal handler that runs in the middle of a call may call as well.  The pool is a list; append and pop
are atomic.  Contexts are never freed: there are as many as there were calls at once.

A long call must let signal handlers run (Ctrl-C).  With the extension the library asks it about every 50 ms, on
the calling thread, whether a handler raised.  Without it, calls of the main thread run on a helper thread while the main
thread waits for it, which Python interrupts by itself.
"""
import _thread
import ctypes as C
import os
import queue
import sys
import threading
import time

from . import _errors, _lib

_lib_ = _lib.lib
_free = []  # contexts nobody uses
_scope = None  # the tiga.execution in force: its account is that of every call


class _Context:
    __slots__ = ("pointer", "worker")

    def __init__(self):
        options = _lib_.tiga_context_defaults()
        if _lib.extension:
            options.poll = _lib.extension.poll_address
        pointer = C.c_void_p()
        status = _lib_.tiga_context_new(C.byref(options), C.byref(pointer))
        if status:
            raise _errors.exception(status, "cannot make a context")
        self.pointer = pointer.value
        self.worker = None


def _take():
    try:
        return _free.pop()
    except IndexError:
        return _Context()


def threads():
    """Threads that a call uses."""
    context = _take()
    try:
        return _lib_.tiga_context_threads(context.pointer)
    finally:
        _free.append(context)


class _Job:
    """A C call on a worker.  It holds what it uses, so that even a call whose caller is gone finds its memory."""
    __slots__ = ("function", "arguments", "keep", "token", "done", "result")

    def __init__(self, function, arguments, keep):
        self.function, self.arguments, self.keep = function, arguments, keep
        self.token = [None]  # who takes it decides: the worker to begin, or the caller that nobody shall
        self.done, self.result = threading.Lock(), None
        self.done.acquire()

    def take(self):
        try:
            self.token.pop()
            return True
        except IndexError:
            return False

    def run(self):
        try:
            self.result = self.function(*self.arguments)
        except BaseException as error:
            self.result = error
        self.done.release()


class _Worker:
    """A thread that runs C calls for the main thread."""

    def __init__(self):
        self.jobs = queue.SimpleQueue()
        # threading's own start() waits in Python, where a handler that raises breaks its locks
        _thread.start_new_thread(self._loop, ())

    def _loop(self):
        while True:
            job = self.jobs.get()
            if job.take():
                job.run()
            else:
                job.result = -1  # nobody waits for it any more
            del job

    def run(self, context, job):
        try:
            self.jobs.put(job)
            # handlers of signals run here, and may raise; a signal that another thread got wakes nobody, hence the time
            while not job.done.acquire(timeout=0.05):
                pass
        except BaseException:
            _stop(context, job)
            raise
        if isinstance(job.result, BaseException):
            raise job.result
        return job.result


def _stop(context, job):
    """Waits until the interrupted call has come back, or makes sure that it never begins."""
    while True:
        try:
            while not job.take() and job.result is None:
                _lib_.tiga_interrupt(context)
                time.sleep(0.005)
            return
        except BaseException:  # another Ctrl-C: the first is on its way already
            if not job.token and job.result is not None:
                return


def _after_fork():
    if _lib.extension:
        _lib.extension.set_main()
    else:
        _free.clear()  # their workers are not in this process


os.register_at_fork(after_in_child=_after_fork)


def _run(context, function, arguments, keep):
    if _lib.extension:
        status = function(context.pointer, *arguments)
        _lib.extension.raise_pending()
        return status
    if threading.current_thread() is not threading.main_thread() or sys.is_finalizing():  # then there are no other threads
        return function(context.pointer, *arguments)
    if context.worker is None:
        context.worker = _Worker()
    return context.worker.run(context.pointer, _Job(function, (context.pointer, *arguments), keep))


def set_scope(scope):
    """The tiga.execution that begins, or None."""
    global _scope
    _scope = scope
    if _lib.extension:
        _lib.extension.set_scope(scope and scope._handle)


def _run_in_scope(context, function, arguments, keep):
    scope = _scope  # keeps it, whatever other threads do
    if scope is None:
        return _run(context, function, arguments, keep)
    _lib_.tiga_execution_enter(context.pointer, scope._handle)
    try:
        return _run(context, function, arguments, keep)
    finally:
        _lib_.tiga_execution_leave(context.pointer)


def call(function, *arguments, path=None, keep=None):
    """function(context, *arguments) without the GIL; a status other than OK becomes an exception.

    keep is what the arguments point into.
    """
    context = _take()
    try:
        status = _run_in_scope(context, function, arguments, keep)
        if status:
            text = _lib_.tiga_error_text(context.pointer).decode(errors="replace")
            raise _errors.exception(status, text, path)
    finally:
        _lib_.tiga_error_clear(context.pointer)
        _free.append(context)


def make(made, function, *arguments, path=None, keep=None):
    """call(function, ...) of one that makes something: made is where it puts that, a c_void_p, and what frees it.

    A signal handler that raises as the call ends leaves nobody who could own it, so it is freed.
    """
    try:
        call(function, *arguments, path=path, keep=keep)
    except BaseException:
        handle, free = made
        if handle:
            free(handle)
        raise
