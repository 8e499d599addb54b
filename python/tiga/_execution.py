"""tiga.execution: budgets and defaults for a stretch of a program, and reports."""
import ctypes as C
import gc
import os

from . import _context, _lib, _memory, _tensors

_lib_ = _lib.lib
_EVICTION = ("error", "lru")


@_memory.COLLECT
def _collect(_):
    """Before a budget is refused and before a value is moved out: unreachable tensors go.  By who is inside."""
    gc.collect()
    _tensors.drain()
    _tensors.get("tiga_tensors_get_counters", _tensors.home().pointer)  # a turn: takes back what others have done with


def _text(value, who):
    """A budget as C reads it."""
    if isinstance(value, str):
        if "\0" in value:
            raise ValueError(f"execution: {who} is {value!r}")
        return value.encode()
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"execution: {who} is {value!r}; it must be bytes: an integer, or a str like '512MiB'")
    n = value.__index__()
    if n < 0:
        raise ValueError(f"execution: {who} is {n}; it must not be negative")
    return str(n).encode()


def _integer(value, who, least):
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"execution: {who} is {value!r}; it must be an integer")
    n = value.__index__()
    if not least <= n < 1 << 31:
        raise ValueError(f"execution: {who} is {n}; it must be from {least} to {(1 << 31) - 1}")
    return n


def report_of(execution):
    """What memory_report() gives."""
    r = _memory.ReportC()
    r.struct_bytes = C.sizeof(r)
    if _lib_.tiga_execution_report(execution, C.byref(r)):
        raise RuntimeError("memory_report: the library gave none (a fault of tiga)")
    tiers = {}
    for i, name in enumerate(_memory.TIERS):
        tiers[name] = {"live": r.live[i], "peak": r.peak[i], "budget": None if r.budget[i] < 0 else r.budget[i]}
        if r.shared_live[i] >= 0:
            tiers[name]["shared_live"] = r.shared_live[i]
    return {"tiers": tiers, "eviction_policy": _EVICTION[r.eviction], "evictions": r.evictions, "restores": r.restores,
            "spills": r.spills, "kept": r.kept, "code": r.code, "ahead": r.ahead, "bytes_written": r.bytes_written,
            "bytes_read": r.bytes_read, "active": bool(r.active), "scope": r.scope.decode(),
            "exclusions": r.exclusions.decode()}


class execution:
    """A stretch of a program with budgets of memory of its own:

        with tg.execution(memory={"host": "1GiB", "nvme": "8GiB"}, spill_dir="/scratch", eviction="lru") as run:
            ...
            print(run.memory_report())

    device: "cpu".  memory: bytes by tier, integers or "512MiB" (KiB MiB GiB TiB); tiers are host (or ram), device (hbm),
    host-pinned (pinned) and nvme (ssd, disk), and those not named are unlimited; or "auto": what the machine and its
    cgroups have free.  spill_dir: a folder for values that leave memory.  page_rows, prefetch_depth: defaults for graphs in
    pages.  eviction: "error", or "lru", which moves values out that were used longest ago.  shared: a name; all processes
    that use it share one budget.  count_code: compiled code counts against the host budget, and goes before values.

    Over a budget is a MemoryError, before anything is allocated, and nothing is lost.  Tensors stay valid after the end and
    keep their account.  It holds for all threads of the process, and does not nest.
    """

    def __init__(self, *, device="cpu", memory=None, spill_dir=None, page_rows=None, prefetch_depth=None, eviction="error",
                 shared=None, count_code=False):
        self._handle = self._owner = None
        if not isinstance(device, str):
            raise TypeError(f"execution: device is {device!r}; it must be a str")
        if not isinstance(count_code, (bool, int)):
            raise TypeError(f"execution: count_code is {count_code!r}; it must be True or False")
        if eviction not in _EVICTION:
            raise ValueError(f"execution: eviction is {eviction!r}; it must be 'error' or 'lru'")
        for name, value in (("shared", shared),):
            if value is not None and (not isinstance(value, str) or "\0" in value):
                raise TypeError(f"execution: {name} is {value!r}; it must be a str")
        _tensors.home()
        o = self._options = _lib_.tiga_execution_defaults()
        o.device, o.eviction = device.encode(), _EVICTION.index(eviction)
        o.spill_dir = None if spill_dir is None else _lib.encode_path(os.fspath(spill_dir))
        o.count_code = bool(count_code)
        o.shared = None if shared is None else shared.encode()
        if page_rows is not None:
            o.page_rows = _integer(page_rows, "page_rows", 1)
        if prefetch_depth is not None:
            o.prefetch_depth = _integer(prefetch_depth, "prefetch_depth", 0)
        o.collect = C.cast(_collect, C.c_void_p).value
        if isinstance(memory, str):
            if memory != "auto":
                raise ValueError(f"execution: memory is {memory!r}; it must be a dict, or 'auto'")
            _tensors.run_in_context(_lib_.tiga_execution_set_auto, C.byref(o))
            return
        if memory is not None and not hasattr(memory, "items"):
            raise TypeError(f"execution: memory is {memory!r}; it must be a dict, or 'auto'")
        for tier, value in (memory or {}).items():
            if not isinstance(tier, str) or "\0" in tier:
                raise TypeError(f"execution: memory: {tier!r} is no tier")
            _tensors.run_in_context(_lib_.tiga_execution_set_budget, C.byref(o), tier.encode(),
                                    _text(value, f"memory[{tier!r}]"))

    def __enter__(self):
        handle = C.c_void_p()
        try:
            _tensors.run_in_context(_lib_.tiga_execution_begin, C.byref(self._options), C.byref(handle),
                                    path=self._options.spill_dir)
        except BaseException:
            if handle:
                _lib_.tiga_execution_end(_tensors.home().context.pointer)
                _lib_.tiga_execution_free(handle)
            raise
        self._handle, self._owner = handle.value, _lib.own(handle.value, _lib_.tiga_execution_free)
        _context.set_scope(self)
        return self

    def __exit__(self, *_):
        _context.set_scope(None)
        try:
            _tensors.run_in_context(_lib_.tiga_execution_end)
        except BaseException:  # a signal's, while it waited for another thread: the scope ends all the same
            context = _tensors.home().context.pointer
            if _lib_.tiga_execution_active(context):
                _lib_.tiga_execution_end(context)
            raise

    def memory_report(self):
        """Bytes by tier (live, peak, budget), evictions, restores and spills, what the figures cover and what they do not; also
        after the end."""
        if self._handle is None:
            raise ValueError("memory_report: the execution has not begun; use it in a with statement")
        return report_of(self._handle)

    def __repr__(self):
        if self._handle is None:
            return "<tiga.execution that has not begun>"
        r = self.memory_report()
        host = r["tiers"]["host"]
        return f"<tiga.execution {'active' if r['active'] else 'ended'}: host {host['live']} of {host['budget']} bytes>"


def memory_report():
    """The report of the account in force: that of the execution around, or that of the process."""
    handle = _lib_.tiga_execution_current(_tensors.home().context.pointer)
    try:
        return report_of(handle)
    finally:
        _lib_.tiga_execution_free(handle)
