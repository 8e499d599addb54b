"""Contexts of the library, and how a call runs on one.

A context is for one call at a time, so each call takes one from a pool and puts it back: any number of threads may call
at once, and a signal handler that runs in the middle of a call may call as well.  The pool is a list; append and pop
are atomic.  Contexts are never freed: there are as many as there were calls at once.

A long call must let signal handlers run (Ctrl-C).  With the extension the library asks it about every 50 ms, on
the calling thread, whether a handler raised.  Without it, calls of the main thread run on a helper thread while the main
thread waits for it, which Python interrupts by itself.
"""
import ctypes as C
import os
import queue
import threading

from . import _errors, _lib

_lib_ = _lib.lib
_free = []  # contexts nobody uses


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


class _Worker:
    """A thread that runs C calls for the main thread."""

    def __init__(self):
        self.jobs = queue.SimpleQueue()
        threading.Thread(target=self._loop, daemon=True, name="tiga").start()

    def _loop(self):
        while True:
            function, arguments, box, done = self.jobs.get()
            try:
                box.append(function(*arguments))
            except BaseException as error:
                box.append(error)
            del function, arguments, box
            done.release()
            del done

    def run(self, context, function, arguments):
        box, done = [], threading.Lock()
        done.acquire()
        self.jobs.put((function, arguments, box, done))
        try:
            done.acquire()  # handlers of signals run here, and may raise
        except BaseException:
            _stop(context, done)
            raise
        if isinstance(box[0], BaseException):
            raise box[0]
        return box[0]


def _stop(context, done):
    """Waits until the interrupted call has come back; nothing it uses may go away before."""
    while True:
        _lib_.tiga_interrupt(context)
        try:
            if done.acquire(timeout=0.01):
                return
        except BaseException:  # another Ctrl-C: the first is on its way already
            continue


def _forget_after_fork():
    _free.clear()  # their workers are not in this process


if not _lib.extension:
    os.register_at_fork(after_in_child=_forget_after_fork)


def _run(context, function, arguments):
    if _lib.extension:
        status = function(context.pointer, *arguments)
        if status == _lib.E_INTERRUPTED:
            _lib.extension.raise_pending()
        return status
    if threading.current_thread() is not threading.main_thread():
        return function(context.pointer, *arguments)
    if context.worker is None:
        context.worker = _Worker()
    return context.worker.run(context.pointer, function, (context.pointer, *arguments))


def call(function, *arguments, path=None):
    """function(context, *arguments) without the GIL; a status other than OK becomes an exception."""
    context = _take()
    try:
        status = _run(context, function, arguments)
        if status:
            text = _lib_.tiga_error_text(context.pointer).decode(errors="replace")
            raise _errors.exception(status, text, path)
    finally:
        _lib_.tiga_error_clear(context.pointer)
        _free.append(context)
