"""tensor.h in ctypes, and how the package calls it.

There is one tiga_tensors, made at the first use.  It works for one thread at a time: whoever calls holds `_lock`.  Tensors
that die meanwhile, on any thread and also in the middle of a call, are freed by who is inside when he leaves.  The extension's
quick way through operations keeps the GIL, so it only asks whether somebody is inside.
"""
import ctypes as C
import os
import threading

from . import _context, _errors, _jit, _lib, _memory

_lib_ = _lib.lib


class Options(C.Structure):
    c_name = "tiga_tensors_options"
    _fields_ = [("struct_bytes", C.c_size_t), ("cache", C.c_void_p), ("keep_bytes", C.c_int64),
                ("interpret_elements", C.c_int64)]


class CountersC(C.Structure):
    c_name = "tiga_tensors_counters"
    _fields_ = [(name, C.c_int64) for name in ("programs", "compiled", "runs", "interpreted", "copies", "live_bytes",
                                               "kept_bytes")]


class Binding(C.Structure):
    c_name = "tiga_tensor_binding"
    _fields_ = [("name", C.c_char_p), ("tensor", C.c_void_p)]


class ExecutionC(C.Structure):
    c_name = "tiga_tensor_execution"
    _fields_ = [("how", C.c_int32), ("text", C.c_char_p), ("operations", C.c_int32), ("launches", C.c_int64),
                ("bytes_read", C.c_int64), ("bytes_written", C.c_int64)]


RELEASE = C.CFUNCTYPE(None, C.c_void_p)
_p, _i, _i32, _i64, _u32, _s = C.c_void_p, C.c_int, C.c_int32, C.c_int64, C.c_uint32, C.c_char_p
_sizes, _out = C.POINTER(C.c_int64), C.POINTER(C.c_void_p)
_PROTOTYPES = {
    "tiga_tensors_defaults": (Options, []),
    "tiga_tensors_new": (_i, [_p, C.POINTER(Options), _out]),
    "tiga_tensors_get_counters": (CountersC, [_p]),
    "tiga_tensor_free": (None, [_p]),
    "tiga_tensor_dtype": (_i32, [_p]),
    "tiga_tensor_rank": (_i32, [_p]),
    "tiga_tensor_shape": (_sizes, [_p]),
    "tiga_tensor_size": (_i64, [_p]),
    "tiga_tensor_from": (_i, [_p, C.POINTER(_lib.Array), _i, _out]),
    "tiga_tensor_from_owned": (_i, [_p, C.POINTER(_lib.Array), _p, RELEASE, _out]),
    "tiga_tensor_number": (_i, [_p, C.c_double, _out]),
    "tiga_tensor_integer": (_i, [_p, _i64, _out]),
    "tiga_tensor_full": (_i, [_p, _i32, _i32, _sizes, C.c_double, _out]),
    "tiga_tensor_arange": (_i, [_p, _i32, _i64, _i64, _i64, _out]),
    "tiga_tensor_rand": (_i, [_p, _i32, _i32, _sizes, C.c_uint64, _out]),
    "tiga_tensor_op": (_i, [_s, _p, _i, _out]),
    "tiga_tensor_cast": (_i, [_p, _i32, _out]),
    "tiga_tensor_fold": (_i, [_p, _s, _u32, _i, _out]),
    "tiga_tensor_cumsum": (_i, [_p, _i, _i, _out]),
    "tiga_tensor_matmul": (_i, [_p, _p, _out]),
    "tiga_tensor_softmax": (_i, [_p, _i, _out]),
    "tiga_tensor_layer_norm": (_i, [_p, _p, _p, C.c_double, _out]),
    "tiga_tensor_one_hot": (_i, [_p, _i64, _i32, _out]),
    "tiga_tensor_reshape": (_i, [_p, _i32, _sizes, _out]),
    "tiga_tensor_permute": (_i, [_p, C.POINTER(_i32), _out]),
    "tiga_tensor_slice": (_i, [_p, _i, _i64, _i64, _i64, _out]),
    "tiga_tensor_broadcast": (_i, [_p, _i32, _sizes, _out]),
    "tiga_tensor_concat": (_i, [_p, _i, _i, _out]),
    "tiga_tensor_stack": (_i, [_p, _i, _i, _out]),
    "tiga_tensor_gather": (_i, [_p, _p, _i, _out]),
    "tiga_tensor_nonzero": (_i, [_p, _out]),
    "tiga_tensor_watch": (_i, [_p, _out]),
    "tiga_tensor_forget": (_i, [_p, _out]),
    "tiga_tensor_is_watched": (_i, [_p]),
    "tiga_tensor_grad": (_i, [_p, _p, _i, _i, _p]),
    "tiga_tensor_call": (_i, [_p, _p, _s, _p, _i, C.POINTER(Binding), _i, C.POINTER(Binding), _i]),
    "tiga_tensor_realize": (_i, [_p, _i]),
    "tiga_tensor_pin": (_i, [_p, C.POINTER(C.POINTER(_lib.Array))]),
    "tiga_tensor_unpin": (None, [_p]),
    "tiga_tensor_to_dlpack": (_i, [_p, _out]),
    "tiga_tensor_capsule_end": (None, [_p]),
    "tiga_tensor_residency": (_i, [_p, C.POINTER(_memory.ResidencyC), C.POINTER(_i32)]),
    "tiga_tensor_spill": (_i, [_p]),
    "tiga_tensor_prefetch": (_i, [_p]),
    "tiga_tensor_to": (_i, [_p, _s, _out]),
    "tiga_tensor_save": (_i, [_s, C.POINTER(_s), _p, _i, _i]),
    "tiga_tensor_load": (_i, [_p, _p, _i, _out]),
    "tiga_tensor_disk": (_i, [_p, _s]),
    "tiga_tensor_from_disk": (_i, [_p, _s, _out]),
    "tiga_tensor_copy_to": (_i, [_p, _p, _i64]),
    "tiga_tensor_get_execution": (ExecutionC, [_p]),
    "tiga_tensor_program": (_i, [_p, C.POINTER(C.c_void_p)]),
    "tiga_tensor_text_free": (None, [_p]),
}

# The same four calls in both: acquire, release, _is_owned, with.  The extension's frees what died when it is let go.
_lock = _lib.extension.Gate() if _lib.extension else threading.RLock()
_garbage = []  # without the extension: handles of tensors that died while somebody was inside
_keep = {}     # what given memory belongs to, by number
_home = None


class Home:
    """The tiga_tensors of the process, its context, and the library."""
    __slots__ = ("context", "pointer", "lib", "options")

    def __init__(self):
        self.lib = _jit.tigac()
        _lib.declare(self.lib, _PROTOTYPES)
        self.context = _context._Context()
        from . import cache
        self.options = self.lib.tiga_tensors_defaults()
        self.options.cache = cache._handle()
        pointer = C.c_void_p()
        status = self.lib.tiga_tensors_new(self.context.pointer, C.byref(self.options), C.byref(pointer))
        if status:
            raise _errors.exception(status, "cannot make room for tensors")
        self.pointer = pointer.value
        if _lib.extension:
            _lib.extension.set_tensors(self.lib._handle, self.pointer, self.context.pointer)


def home():
    global _home
    if _home is None:
        check()
        with _lock:
            if _home is None:
                _home = Home()
    return _home


def check():
    """Before `with _lock`."""
    if _lock._is_owned():
        raise RuntimeError("tensors are in use by the call that this signal handler (or finalizer) interrupted; they cannot be "
                           "used here")


def _end(handle, unpin):
    (_home.lib.tiga_tensor_unpin if unpin else _home.lib.tiga_tensor_free)(handle)


def drain():
    """Frees what died; by who is inside."""
    if _lib.extension:
        _lib.extension.drain()
        return
    while _garbage:
        try:
            handle, unpin = _garbage.pop(0)  # in the order of the deaths: a pin before its tensor
        except IndexError:
            return
        _end(handle, unpin)


def end(handle, unpin=False):
    """A tensor or a pin of one died, at any time, on any thread.  The extension has its own."""
    if not _lock._is_owned() and _lock.acquire(False):
        try:
            drain()
            _end(handle, unpin)
        finally:
            _lock.release()
    else:
        _garbage.append((handle, unpin))


class _Pin:
    """What the extension's Pin is: keeps the memory of a tensor, pinned already, where it is for as long as it lives."""
    __slots__ = ("tensor",)

    def __init__(self, tensor):
        self.tensor = tensor
        _lib.counted_only(self)

    def __del__(self):
        end(self.tensor._handle, True)


Pin = _lib.extension.Pin if _lib.extension else _Pin


def pinned(tensor):
    """(address, what keeps the elements there): computed and brought home if needed; dense and row-major."""
    array = C.POINTER(_lib.Array)()
    run("tiga_tensor_pin", tensor._handle, C.byref(array), keep=array,
        undo=lambda: array and _home.lib.tiga_tensor_unpin(tensor._handle))
    address = array.contents.data or 0
    return address, Pin(tensor)


_forks = []  # whether the forking thread is inside already, which only a signal handler can be


def _before_fork():
    _forks.append(_lock._is_owned())
    if not _forks[-1]:
        _lock.acquire()


def _after_fork():
    if not _forks.pop():
        _lock.release()


def _in_child():
    if _home is not None:
        _home.context.worker = None  # that thread is not in this process
    _after_fork()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)


def _failure(h, status, path=None):
    text = _lib_.tiga_error_text(h.context.pointer).decode(errors="replace")
    _lib_.tiga_error_clear(h.context.pointer)
    return _errors.exception(status, text, path)


def make(function, *arguments):
    """The tensor that a call gives, as a handle.  For calls that only make nodes or small values."""
    h, out = home(), C.c_void_p()
    check()
    try:
        with _lock:
            status = getattr(h.lib, function)(*arguments, C.byref(out))
            if status:
                raise _failure(h, status)
            if _garbage:
                drain()
    except BaseException:
        if out:
            h.lib.tiga_tensor_free(out)
        raise
    return out.value


def _off_context(_, function, *arguments):
    return function(*arguments)


def run(function, *arguments, path=None, keep=None, made=(), undo=None):
    """A call that may take long: handlers of signals run, and may end it, also when all is done.  made: c_void_p of tensors that
    it gives, freed when it fails; undo: what else there is to do then."""
    h = home()
    if isinstance(function, str):
        function = getattr(h.lib, function)
    check()
    with _lock:
        try:
            if _lib.extension:
                status = function(*arguments)
                _lib.extension.raise_pending()
            else:
                status = _context._run(h.context, _off_context, (function, *arguments), (keep, arguments))
            if status:
                raise _failure(h, status, path)
        except BaseException:
            for handle in made:
                if handle:
                    h.lib.tiga_tensor_free(handle)
            if undo:
                undo()
            _lib_.tiga_error_clear(h.context.pointer)
            raise
        if _garbage:
            drain()


def run_in_context(function, *arguments, path=None, keep=None, undo=None):
    """The same for a function whose first argument is a context."""
    run(function, home().context.pointer, *arguments, path=path, keep=keep, undo=undo)


def get(function, handle):
    """A fact about a tensor; these change nothing, and need nobody to be outside."""
    return getattr(home().lib, function)(handle)


@RELEASE
def _release(number):
    _keep.pop(number, None)


_number = iter(range(1, 1 << 62))


def from_owned(array, owner):
    """A tensor over memory that `owner` keeps."""
    number = next(_number)
    _keep[number] = owner
    try:
        return make("tiga_tensor_from_owned", home().pointer, C.byref(array), number, _release)
    except BaseException:
        _keep.pop(number, None)
        raise


def sizes(shape):
    return (C.c_int64 * max(len(shape), 1))(*shape)


def handles(tensors):
    return (C.c_void_p * max(len(tensors), 1))(*[t._handle for t in tensors])

