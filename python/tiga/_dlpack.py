"""Tensors for others over DLPack: without copying, and pinned until the consumer lets go.

Consumers let go at any time, also while an exception is on its way, which code written in Python would lose, and after the
end of the interpreter.  So nothing on that way is Python: deleter and destructor are the library's.
"""
import ctypes as C

from . import _arrays, _tensors

_new = C.PYFUNCTYPE(C.py_object, C.c_void_p, C.c_char_p, C.c_void_p)(("PyCapsule_New", C.pythonapi))
_name = C.c_char_p(b"dltensor")  # the capsule keeps the pointer only
_DELETER = C.CFUNCTYPE(None, C.c_void_p)


class _Managed(C.Structure):
    """DLManagedTensor."""
    _fields_ = [("tensor", _arrays._DLTensor), ("context", C.c_void_p), ("deleter", _DELETER)]


def export(x, stream, device, copy):
    """The capsule of x.__dlpack__."""
    if stream is not None:
        raise BufferError("__dlpack__: a tensor on the host has no streams")
    if device is not None and tuple(device) != (1, 0):
        raise BufferError(f"__dlpack__: no copies to device {device}")
    if copy:
        from ._create import tensor
        x = tensor(x.to_numpy()) if _arrays.numpy() else x + 0
    managed = C.c_void_p()

    def undo():
        if managed:
            _Managed.from_address(managed.value).deleter(managed.value)

    _tensors.run("tiga_tensor_to_dlpack", x._handle, C.byref(managed), keep=managed, undo=undo)
    try:
        return _new(managed.value, _name, C.cast(_tensors.home().lib.tiga_tensor_capsule_end, C.c_void_p))
    except BaseException:
        undo()
        raise
