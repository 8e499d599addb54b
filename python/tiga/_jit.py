"""libtigac in ctypes: compiler.h, jit.h and cache.h.  Loaded at the first use; a program that only loads modules never
needs it."""
import ctypes as C
import functools

from . import _lib


class Define(C.Structure):
    c_name = "tigac_define"
    _fields_ = [("name", C.c_char_p), ("value", C.c_int64)]


class Blob(C.Structure):
    c_name = "tigac_blob"
    _fields_ = [("bytes", C.c_char_p), ("n_bytes", C.c_size_t)]


class Note(C.Structure):
    c_name = "tigac_note"
    _fields_ = [("line", C.c_int64), ("column", C.c_int64), ("text", C.c_char_p)]


class DiagnosticC(C.Structure):
    c_name = "tigac_diagnostic"
    _fields_ = [("is_error", C.c_int), ("id", C.c_char_p), ("file", C.c_char_p), ("line", C.c_int64),
                ("column", C.c_int64), ("length", C.c_int64), ("text", C.c_char_p), ("label", C.c_char_p),
                ("notes", C.POINTER(Note)), ("n_notes", C.c_size_t)]


def result_type(n_outputs):
    """tigac_result, which has a place for each kind of output that this compiler knows."""
    class Result(C.Structure):
        c_name = "tigac_result"
        _fields_ = [("outputs", Blob * n_outputs), ("diagnostics", C.POINTER(DiagnosticC)), ("n_diagnostics", C.c_size_t),
                    ("rendered", C.c_char_p), ("error", C.c_char_p), ("dumps", C.c_char_p)]
    return Result


class JitOptions(C.Structure):
    c_name = "tiga_jit_options"
    _fields_ = [("struct_bytes", C.c_size_t), ("file_name", C.c_char_p), ("cpu", C.c_char_p), ("opt_level", C.c_int),
                ("warnings_are_errors", C.c_int), ("defines", C.POINTER(Define)), ("n_defines", C.c_size_t),
                ("cache", C.c_void_p)]


class CacheOptions(C.Structure):
    c_name = "tiga_cache_options"
    _fields_ = [("struct_bytes", C.c_size_t), ("folder", C.c_char_p), ("memory_bytes", C.c_int64),
                ("disk_bytes", C.c_int64)]


class CacheCounters(C.Structure):
    c_name = "tiga_cache_counters"
    _fields_ = [(name, C.c_int64) for name in (
        "memory_hits", "disk_hits", "misses", "waited", "stale", "failed", "negative_hits", "evicted_memory",
        "evicted_disk", "disk_errors", "memory_entries", "memory_bytes")]


class CacheField(C.Structure):
    c_name = "tiga_cache_field"
    _fields_ = [("name", C.c_char_p), ("bytes", C.c_void_p), ("n_bytes", C.c_size_t)]


class CacheEntry(C.Structure):
    c_name = "tiga_cache_entry"
    _fields_ = [("key", C.c_char_p), ("bytes", C.c_int64), ("created", C.c_int64), ("used", C.c_int64),
                ("failed", C.c_int32), ("damaged", C.c_int32), ("fields", C.POINTER(CacheField)), ("n_fields", C.c_size_t)]


VISIT = C.CFUNCTYPE(C.c_int, C.c_void_p, C.POINTER(CacheEntry))
_p, _i, _s = C.c_void_p, C.c_int, C.c_char_p
_lib.declare(_lib.lib, {
    "tiga_cache_defaults": (CacheOptions, []),
    "tiga_cache_new": (_i, [C.POINTER(CacheOptions), C.POINTER(_p)]),
    "tiga_cache_free": (None, [_p]),
    "tiga_cache_folder": (_s, [_p]),
    "tiga_cache_get_counters": (CacheCounters, [_p]),
    "tiga_cache_list": (_i, [_p, _p, VISIT, _p]),
    "tiga_cache_clear": (_i, [_p, _p, C.POINTER(C.c_int64)]),
})
_PROTOTYPES = {
    "tigac_version_full": (_s, []),
    "tigac_output_name": (_s, [_i]),
    "tigac_result_free": (None, [_p]),
    "tiga_jit_defaults": (JitOptions, []),
    "tiga_jit_source": (_i, [_p, _s, C.c_size_t, C.POINTER(JitOptions), C.POINTER(_p), C.POINTER(_p)]),
    "tiga_jit_file": (_i, [_p, _s, C.POINTER(JitOptions), C.POINTER(_p), C.POINTER(_p)]),
}


@functools.lru_cache(maxsize=None)
def tigac():
    """The compiler's library, from where libtiga came from."""
    name = "libtigac.so.0"
    path = name if _lib.folder is None else str(_lib.folder / name)
    try:
        library = C.CDLL(path)
    except OSError as error:
        raise ImportError(f"tiga: cannot load the compiler: {error}") from None
    _lib.declare(library, _PROTOTYPES)
    n = 0
    while library.tigac_output_name(n) is not None:
        n += 1
    library.Result = result_type(n)
    return library
