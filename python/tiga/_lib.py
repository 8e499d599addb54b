"""Finds libtiga, libtigac and the extension module, and says in ctypes what the headers say in C.

The structures follow include/tiga/*.h field by field; a test compiles a C program to compare sizes and offsets.
"""
import ctypes as C
import functools
import importlib.machinery
import importlib.util
import itertools
import os
import sys
import weakref
from pathlib import Path

VERSION = "0.1.0"  # of the package; the library must have the same
_PACKAGE = Path(__file__).resolve().parent


# ---- abi.h ----
class Csr(C.Structure):
    c_name = "tiga_csr"
    _fields_ = [("n_dst", C.c_int64), ("n_src", C.c_int64), ("n_edges", C.c_int64), ("offsets", C.c_void_p),
                ("sources", C.c_void_p), ("source_bits", C.c_int64)]


class FieldInfo(C.Structure):
    c_name = "tiga_field_info"
    _fields_ = [("name", C.c_char_p), ("at", C.c_int32), ("dtype", C.c_int32), ("rank", C.c_int32), ("graph", C.c_int32),
                ("shape", C.c_int64 * 6), ("text", C.c_char_p)]


class FunctionInfo(C.Structure):
    c_name = "tiga_function_info"
    _fields_ = [("name", C.c_char_p), ("signature", C.c_char_p), ("is_program", C.c_int32), ("n_dims", C.c_int32),
                ("n_params", C.c_int32), ("n_results", C.c_int32), ("dims", C.POINTER(C.c_char_p)),
                ("params", C.POINTER(FieldInfo)), ("results", C.POINTER(FieldInfo)), ("needs_square", C.c_int32),
                ("host", C.c_void_p), ("plan", C.c_char_p), ("n_same", C.c_int32), ("same", C.POINTER(C.c_int32))]


class ModuleInfo(C.Structure):
    c_name = "tiga_module_info"
    _fields_ = [("abi_version", C.c_int64), ("struct_bytes", C.c_int64), ("compiler", C.c_char_p),
                ("source_name", C.c_char_p), ("source_hash", C.c_char_p), ("target_cpu", C.c_char_p),
                ("target_features", C.c_char_p), ("n_functions", C.c_int32), ("n_kernels", C.c_int32),
                ("functions", C.POINTER(FunctionInfo)), ("kernels", C.c_void_p)]


AT_SRC, AT_DST, AT_NODE, AT_EDGE, AT_PARAM, AT_GRAPH = range(6)


# ---- tiga.h ----
class ContextOptions(C.Structure):
    c_name = "tiga_context_options"
    _fields_ = [("struct_bytes", C.c_size_t), ("threads", C.c_int), ("host_budget_bytes", C.c_int64),
                ("poll", C.c_void_p), ("poll_user", C.c_void_p)]


class Array(C.Structure):
    c_name = "tiga_array"
    _fields_ = [("data", C.c_void_p), ("dtype", C.c_int32), ("rank", C.c_int32), ("shape", C.c_int64 * 7),
                ("owned", C.c_int32)]


class Binding(C.Structure):
    c_name = "tiga_binding"
    _fields_ = [("name", C.c_char_p), ("array", C.POINTER(Array))]


class GraphStatsC(C.Structure):
    c_name = "tiga_graph_stats"
    _fields_ = [(name, C.c_int64) for name in ("n_dst", "n_src", "n_edges", "max_degree", "empty_rows", "self_loops",
                                               "duplicate_edges")] + [
                    ("mean_degree", C.c_double), ("bytes", C.c_int64), ("transposed", C.c_int64), ("degrees", C.c_int64 * 64)]


class GraphFileOptions(C.Structure):
    c_name = "tiga_graph_file_options"
    _fields_ = [("struct_bytes", C.c_size_t), ("progress", C.c_void_p), ("user", C.c_void_p),
                ("keep_edge_order", C.c_int32)]


STATUSES = ("OK", "E_ARGUMENT", "E_TYPE", "E_RANGE", "E_NAME", "E_MEMORY", "E_BUDGET", "E_FILE", "E_FORMAT", "E_MODULE",
            "E_ABI", "E_TARGET", "E_UNSUPPORTED", "E_INTERRUPTED", "E_INTERNAL", "E_PROGRAM")
(OK, E_ARGUMENT, E_TYPE, E_RANGE, E_NAME, E_MEMORY, E_BUDGET, E_FILE, E_FORMAT, E_MODULE, E_ABI, E_TARGET, E_UNSUPPORTED,
 E_INTERRUPTED, E_INTERNAL, E_PROGRAM) = range(len(STATUSES))

_p, _i, _i64, _s = C.c_void_p, C.c_int, C.c_int64, C.c_char_p
_PROTOTYPES = {  # name: (result, arguments)
    "tiga_version": (_s, []),
    "tiga_context_defaults": (ContextOptions, []),
    "tiga_context_new": (_i, [C.POINTER(ContextOptions), C.POINTER(_p)]),
    "tiga_context_threads": (_i, [_p]),
    "tiga_error_text": (_s, [_p]),
    "tiga_error_clear": (None, [_p]),
    "tiga_interrupt": (None, [_p]),
    "tiga_array_write_npy": (_i, [_p, _s, C.POINTER(Array)]),
    "tiga_array_free": (None, [C.POINTER(Array)]),
    "tiga_graph_from_csr": (_i, [_p, _i64, _i64, _p, _p, _i, _i, C.POINTER(_p)]),
    "tiga_graph_from_coo": (_i, [_p, _i64, _i64, _i64, _p, _p, C.POINTER(_p)]),
    "tiga_graph_free": (None, [_p]),
    "tiga_graph_csr": (C.POINTER(Csr), [_p]),
    "tiga_graph_edge_order": (_p, [_p]),
    "tiga_graph_get_stats": (_i, [_p, _p, C.POINTER(GraphStatsC)]),
    "tiga_graph_read": (_i, [_p, _s, C.POINTER(GraphFileOptions), C.POINTER(_p), C.POINTER(Array)]),
    "tiga_graph_write_npz": (_i, [_p, _s, _p, C.POINTER(Array)]),
    "tiga_graph_write_snapshot": (_i, [_p, _s, _p, C.POINTER(Array)]),
    "tiga_graph_rmat": (_i, [_p, _i, _i64, C.c_uint64, C.POINTER(_p)]),
    "tiga_graph_uniform": (_i, [_p, _i64, _i64, C.c_uint64, C.POINTER(_p)]),
    "tiga_graph_local": (_i, [_p, _i64, _i64, C.POINTER(_p)]),
    "tiga_module_load": (_i, [_p, _s, C.POINTER(_p)]),
    "tiga_module_free": (None, [_p]),
    "tiga_module_get_info": (C.POINTER(ModuleInfo), [_p]),
    "tiga_call_many": (_i, [_p, _p, _s, C.POINTER(_p), _i, C.POINTER(Binding), _i, C.POINTER(Binding), _i, _p]),
}


def _candidates():
    """Folders to look in, best first; None stands for the loader's own search path."""
    chosen = os.environ.get("TIGA_LIBRARY_PATH")
    if chosen:  # the user has said where; nothing else is meant
        return [Path(folder) for folder in chosen.split(os.pathsep) if folder]
    folders = [_PACKAGE / "lib"]  # a wheel
    tree = _PACKAGE.parents[1]
    if (tree / "include/tiga/tiga.h").exists():  # a source tree
        folders.append(tree / "build/lib")
    elif (tree / "libtiga.so.0").exists():  # cmake --install
        folders.append(tree)
    return [*folders, None]


def _open():
    tried = []
    for folder in _candidates():
        if folder is None:
            name = "libtiga.so.0"
        elif (folder / "libtiga.so.0").exists():
            name = str(folder / "libtiga.so.0")
        else:
            tried.append(str(folder))
            continue
        try:
            return C.CDLL(name), folder
        except OSError as error:
            if folder is not None:
                raise ImportError(f"tiga: cannot load {name}: {error}") from None
            tried.append("the system's libraries")
    raise ImportError("tiga: libtiga.so.0 is not in " + ", ".join(tried) +
                      "; build it (./dev build) or say where it is with TIGA_LIBRARY_PATH")


def declare(library, prototypes):
    for name, (result, arguments) in prototypes.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise ImportError(f"tiga: {library._name} has no {name}: it is of another version than this package") from None
        function.restype, function.argtypes = result, arguments


def _open_extension():
    """The module _tiga beside libtiga (a build) or in the package (a wheel); None when there is none, or none is wanted."""
    if os.environ.get("TIGA_PYTHON_EXTENSION", "").lower() in ("0", "off", "no"):
        return None
    folders = [_PACKAGE] if folder is None else [folder, _PACKAGE]
    for where in folders:
        path = where / "_tiga.abi3.so"
        if path.exists():
            loader = importlib.machinery.ExtensionFileLoader("tiga._tiga", str(path))
            module = importlib.util.module_from_spec(importlib.util.spec_from_loader("tiga._tiga", loader))
            loader.exec_module(module)
            return module
    return None


lib, folder = _open()
declare(lib, _PROTOTYPES)
version = lib.tiga_version().decode()
if version != VERSION:
    raise ImportError(f"tiga: {lib._name} is version {version}, this package is {VERSION}")
extension = _open_extension()


# When the collector of cycles finds garbage, it first runs the finalizers and weak references of all that is in it, in any
# order: another finalizer may still use an object whose own has run.  What it does not track lives until the last reference
# has gone, like objects of the extension.  For what refers to nothing that could be in a cycle.
counted_only = C.PYFUNCTYPE(None, C.py_object)(("PyObject_GC_UnTrack", C.pythonapi))


class _Owner:
    """What the extension's Owner is.  A signal whose handler raises in __del__, or in anything written in Python that runs as
    an object dies, is lost; so a weak reference calls the library, and nothing on that way is Python."""
    __slots__ = ("__weakref__",)

    def __reduce__(self):  # a copy would own what is another's
        raise TypeError("what a library owns cannot be pickled or copied")


class _Last(weakref.ref):
    """Is passed to `free` after the handle; ctypes makes a zero of it, which no function of C looks at."""
    __slots__ = ()
    _as_parameter_ = 0


_lasts, _numbers = {}, itertools.count(1)  # what waits for owners to die, and now and then some that have done so


def _own(handle, free):
    number, owner = next(_numbers), _Owner()
    counted_only(owner)
    _lasts[number] = _Last(owner, functools.partial(free, handle))
    if number % 256 == 0:
        for old, last in list(_lasts.items()):
            if last() is None:
                _lasts.pop(old, None)
    return owner


def own(handle, free):
    """An object that lets go of the address `handle` with the function `free` of a library when nobody needs it."""
    return extension.Owner(handle, C.cast(free, C.c_void_p).value) if extension else _own(handle, free)


def library_path():
    """Where libtiga was loaded from."""
    return lib._name


def encode_path(path):
    """A path for C: bytes without a NUL."""
    data = os.fsencode(path)
    if b"\0" in data:
        raise ValueError("embedded null byte in a path")
    return data


if sys.byteorder != "little" or C.sizeof(C.c_void_p) != 8:
    raise ImportError("tiga needs a little-endian machine of 64 bits")
