"""tiga.save and tiga.load: values in files (safetensors, .npy), and tiga.from_disk: values by name."""
import ctypes as C
import errno
import os

from . import _errors, _lib, _memory, _tensors
from ._arguments import storage_name
from ._tensor import Tensor, operand

_lib_ = _lib.lib
_MODULE = b"\x7fELF"


def _named(x):
    """(names or None, tensors) of what save was given."""
    if hasattr(x, "items"):
        names = list(x)
        for name in names:
            if not isinstance(name, str) or "\0" in name:
                raise TypeError(f"save: {name!r} is no name of a tensor; it must be a str")
        return names, [operand(v) for v in x.values()]
    return None, [operand(x)]


def _exists(data):
    return FileExistsError(errno.EEXIST, "save: it exists; overwrite=True replaces it", os.fsdecode(data))


def save(x, path, *, overwrite=False):
    """Writes a tensor, or a dict of them by name, to a file; it is whole or not there, whatever happens.

    The file is a safetensors file with checksums; a path that ends in .npy gets a numpy file, of one tensor.  An
    existing path is refused unless overwrite=True; who has opened the old file goes on reading it.  Nothing leaves memory, and no
    history is saved.
    """
    names, tensors = _named(x)
    data = _lib.encode_path(path)
    if not overwrite and os.path.lexists(data):
        raise _exists(data)
    os.stat(os.fsdecode(os.path.dirname(data)) or ".")  # its own words for a folder that is not there
    if data.endswith(b".npy") and names is not None:
        raise ValueError("save: a .npy file holds one tensor; save several as .safetensors")
    if not tensors:
        _tensors.run_in_context(_lib_.tiga_save, data, None, 0, int(bool(overwrite)))
        return
    texts = None if names is None else (C.c_char_p * max(len(names), 1))(*[n.encode() for n in names])
    try:
        _tensors.run("tiga_tensor_save", data, texts, _tensors.handles(tensors), len(tensors), int(bool(overwrite)),
                     keep=(texts, tensors))
    except OSError:
        if not overwrite and os.path.lexists(data):  # it has come meanwhile
            raise _exists(data) from None
        raise


class _Snapshot:
    """An open file."""

    def __init__(self, path):
        handle = C.c_void_p()
        _tensors.run_in_context(_lib_.tiga_snapshot_open, _lib.encode_path(path), C.byref(handle), path=path,
                                undo=lambda: _lib_.tiga_snapshot_free(handle))
        self.handle, self.owner = handle.value, _lib.own(handle.value, _lib_.tiga_snapshot_free)

    def names(self):
        view, names = _memory.TensorView(), []
        for i in range(_lib_.tiga_snapshot_count(self.handle)):
            _tensors.run_in_context(_lib_.tiga_snapshot_get, self.handle, i, C.byref(view))
            names.append(view.name.decode(errors="replace"))
        return names

    def tensor(self, i):
        out = C.c_void_p()
        _tensors.run("tiga_tensor_load", _tensors.home().pointer, self.handle, i, C.byref(out), made=(out,))
        return Tensor._take(out.value)


def load(path, name=None, *, device="cpu"):
    """What a file holds: a module that tigac made, or tensors.

    Of tensors nothing but the header is read before somebody looks.  A file of one tensor gives it, a file of several
    a dict by name, and name= one of them.  Safetensors files, .npy files, and what tiga.save wrote.
    """
    data = _lib.encode_path(path)
    if _is_module(data):
        if name is not None:
            raise TypeError("load: a module has no tensors; name= is for files of tensors")
        from ._module import load as load_module
        return load_module(path)
    if device != "cpu":
        raise NotImplementedError(f"load: this runtime has no device {device!r}, only 'cpu'")
    snapshot = _Snapshot(path)
    names = snapshot.names()
    if name is not None:
        if name not in names:
            raise _errors.key_error(f"load: {os.fsdecode(data)} has no tensor {name!r}; it has {', '.join(names) or 'none'}")
        return snapshot.tensor(names.index(name))
    if len(names) == 1:
        return snapshot.tensor(0)
    return {n: snapshot.tensor(i) for i, n in enumerate(names)}


def _is_module(data):
    """Whether to load it as one.  What cannot be read is said here, once: another process may just be writing it."""
    with open(os.fsdecode(data), "rb") as file:
        return file.read(4) == _MODULE or data.endswith((b".so", b".dll", b".dylib"))


def from_disk(name):
    """The value that x.disk(name=...) kept; nothing is read before somebody looks."""
    out = C.c_void_p()
    _tensors.run("tiga_tensor_from_disk", _tensors.home().pointer, storage_name(name), C.byref(out), made=(out,))
    return Tensor._take(out.value)
