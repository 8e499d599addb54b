"""The cache of compiled code that tiga.compile uses: one for the process, in memory and on disk.

It is shared with other processes through its folder: TIGA_CACHE_DIR, else $XDG_CACHE_HOME/tiga, else ~/.cache/tiga.
TIGA_CACHE=off keeps it in memory only.
"""
import ctypes as C
import os
import threading
from typing import NamedTuple

from . import _context, _errors, _jit, _lib

_lib_ = _lib.lib
_lock = threading.Lock()
_cache = None


class Counters(NamedTuple):
    """What happened since the process began to use the cache."""
    memory_hits: int
    disk_hits: int
    misses: int
    waited: int
    stale: int
    failed: int
    negative_hits: int
    evicted_memory: int
    evicted_disk: int
    disk_errors: int
    memory_entries: int
    memory_bytes: int


class Entry(NamedTuple):
    """One entry of the folder; fields are the parts of its key."""
    key: str
    bytes: int
    created: int
    used: int
    failed: bool
    damaged: bool
    fields: dict


def _handle():
    global _cache
    with _lock:
        if _cache is None:
            options = _lib_.tiga_cache_defaults()
            switch = os.environ.get("TIGA_CACHE", "").lower()
            if switch == "off":
                options.folder = b""
            elif switch not in ("", "on"):
                raise ValueError(f"TIGA_CACHE is {switch!r}; it may be 'on' or 'off'")
            pointer = C.c_void_p()
            status = _lib_.tiga_cache_new(C.byref(options), C.byref(pointer))
            if status:
                raise _errors.exception(status, "cannot make the cache of compiled code")
            _cache = pointer.value
        return _cache


def _forget_after_fork():
    """The child makes its own; a thread that is not there any more may have held a lock of this one."""
    global _cache, _lock
    _cache, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget_after_fork)


def folder():
    """The folder on disk; None when the cache is in memory only."""
    name = _lib_.tiga_cache_folder(_handle())
    return os.fsdecode(name) if name else None


def counters():
    """Counters of this process."""
    c = _lib_.tiga_cache_get_counters(_handle())
    return Counters(*(getattr(c, name) for name in Counters._fields))


def clear():
    """Forgets everything, in memory and on disk; modules in use stay.  Gives the number of files removed."""
    removed = C.c_int64()
    _context.call(_lib_.tiga_cache_clear, _handle(), C.byref(removed))
    return removed.value


def entries():
    """Entries of the folder, the last used first."""
    found = []

    def visit(user, entry):
        e = entry.contents
        fields = {e.fields[i].name.decode(): C.string_at(e.fields[i].bytes, e.fields[i].n_bytes).decode(errors="replace")
                  for i in range(e.n_fields)}
        found.append(Entry(e.key.decode(), e.bytes, e.created, e.used, bool(e.failed), bool(e.damaged), fields))
        return 0

    _context.call(_lib_.tiga_cache_list, _handle(), _jit.VISIT(visit), None)
    return found
