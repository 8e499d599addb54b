"""Tensors for others over DLPack: without copying, and pinned until the consumer lets go."""
import ctypes as C

from . import _arrays, _lib, _tensors

_exports = {}  # what is out: address of the managed tensor: what keeps it


class _Managed(C.Structure):
    pass


_DELETER = C.CFUNCTYPE(None, C.c_void_p)
_Managed._fields_ = [("tensor", _arrays._DLTensor), ("context", C.c_void_p), ("deleter", _DELETER)]


def _deleter(address):
    _exports.pop(address, None)


def _destructor(capsule):
    """Of a capsule that nobody consumed."""
    if _is_valid(capsule, b"dltensor"):
        _exports.pop(_pointer(capsule, b"dltensor"), None)


_pointer = C.PYFUNCTYPE(C.c_void_p, C.c_void_p, C.c_char_p)(("PyCapsule_GetPointer", C.pythonapi))
_is_valid = C.PYFUNCTYPE(C.c_int, C.c_void_p, C.c_char_p)(("PyCapsule_IsValid", C.pythonapi))
_new = C.PYFUNCTYPE(C.py_object, C.c_void_p, C.c_char_p, C.c_void_p)(("PyCapsule_New", C.pythonapi))

# Consumers call these also while an exception is on its way, which Python's own code would lose; the extension's do not.
_deleter, _destructor = map(_DELETER, _lib.extension.set_exports(_exports) if _lib.extension else (_deleter, _destructor))


def export(x, stream, device, copy):
    """The capsule of x.__dlpack__."""
    if stream is not None:
        raise BufferError("__dlpack__: a tensor on the host has no streams")
    if device is not None and tuple(device) != (1, 0):
        raise BufferError(f"__dlpack__: no copies to device {device}")
    if copy:
        from ._create import tensor
        x = tensor(x.to_numpy()) if _arrays.numpy() else x + 0
    dtype, shape = x.dtype, x.shape
    address, pin = _tensors.pinned(x)
    sizes, strides, step = _tensors.sizes(shape), _tensors.sizes(shape), 1
    for i in reversed(range(len(shape))):
        strides[i] = step
        step *= shape[i]
    m = _Managed()
    m.tensor = _arrays._DLTensor(address or None, 1, 0, len(shape), *dtype.dlpack, 1, C.cast(sizes, C.POINTER(C.c_int64)),
                                 C.cast(strides, C.POINTER(C.c_int64)), 0)
    m.deleter = _deleter
    at = C.addressof(m)
    _exports[at] = m, sizes, strides, pin
    try:
        return _new(at, b"dltensor", C.cast(_destructor, C.c_void_p))
    except BaseException:
        _exports.pop(at, None)
        raise
