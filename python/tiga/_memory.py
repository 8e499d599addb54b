"""memory.h in ctypes: scopes, reports, snapshots."""
import ctypes as C

from . import _lib

TIERS = ("host", "device", "host-pinned", "nvme")  # by TIGA_TIER_*, as reports name them


class ExecutionOptions(C.Structure):
    c_name = "tiga_execution_options"
    _fields_ = [("struct_bytes", C.c_size_t), ("device", C.c_char_p), ("budget", C.c_int64 * 4), ("spill_dir", C.c_char_p),
                ("page_rows", C.c_int64), ("prefetch_depth", C.c_int32), ("eviction", C.c_int32), ("shared", C.c_char_p),
                ("collect", C.c_void_p), ("collect_user", C.c_void_p), ("count_code", C.c_int32)]


class ReportC(C.Structure):
    c_name = "tiga_memory_report"
    _fields_ = [("struct_bytes", C.c_size_t), ("live", C.c_int64 * 4), ("peak", C.c_int64 * 4), ("budget", C.c_int64 * 4),
                ("shared_live", C.c_int64 * 4), ("evictions", C.c_int64), ("restores", C.c_int64), ("spills", C.c_int64),
                ("eviction", C.c_int32), ("active", C.c_int32), ("scope", C.c_char_p), ("exclusions", C.c_char_p),
                ("kept", C.c_int64), ("code", C.c_int64), ("ahead", C.c_int64), ("bytes_written", C.c_int64),
                ("bytes_read", C.c_int64)]


class ResidencyC(C.Structure):
    c_name = "tiga_residency"
    _fields_ = [("tier", C.c_int32), ("resident", C.c_int32), ("backing", C.c_int32), ("pins", C.c_int32),
                ("bytes", C.c_int64), ("version", C.c_int64)]


class TensorView(C.Structure):
    c_name = "tiga_tensor_view"
    _fields_ = [("name", C.c_char_p), ("buffer", C.c_void_p), ("data", C.c_void_p), ("offset", C.c_int64),
                ("dtype", C.c_int32), ("rank", C.c_int32), ("shape", C.c_int64 * 7), ("strides", C.POINTER(C.c_int64))]


COLLECT = C.CFUNCTYPE(None, C.c_void_p)
_p, _i, _s, _out = C.c_void_p, C.c_int, C.c_char_p, C.POINTER(C.c_void_p)
_options = C.POINTER(ExecutionOptions)
_lib.declare(_lib.lib, {
    "tiga_execution_defaults": (ExecutionOptions, []),
    "tiga_execution_set_budget": (_i, [_p, _options, _s, _s]),
    "tiga_execution_set_auto": (_i, [_p, _options]),
    "tiga_execution_begin": (_i, [_p, _options, _out]),
    "tiga_execution_end": (_i, [_p]),
    "tiga_execution_active": (C.c_bool, [_p]),
    "tiga_execution_enter": (_i, [_p, _p]),
    "tiga_execution_leave": (_i, [_p]),
    "tiga_execution_current": (_p, [_p]),
    "tiga_execution_free": (None, [_p]),
    "tiga_execution_get_options": (_options, [_p]),
    "tiga_execution_report": (_i, [_p, C.POINTER(ReportC)]),
    "tiga_snapshot_open": (_i, [_p, _s, _out]),
    "tiga_save": (_i, [_p, _s, _p, _i, _i]),
    "tiga_snapshot_free": (None, [_p]),
    "tiga_snapshot_count": (_i, [_p]),
    "tiga_snapshot_get": (_i, [_p, _p, _i, C.POINTER(TensorView)]),
})
