"""python -m tiga: versions, processor, cache, GPU: what to put into a bug report."""
import ctypes as C
import sys

import tiga as tg
from tiga import _context, _jit, _lib


def _line(name, text):
    print(f"{name + ':':<12} {text}")


def _other(name):
    try:
        module = __import__(name)
        return getattr(module, "__version__", "of unknown version")
    except ImportError:
        return "not installed"


def _compiler():
    try:
        library = _jit.tigac()
    except ImportError as error:
        return str(error)
    return f"{library.tigac_version_full().decode()} ({library._name})"


def _processor():
    """As the compiler sees it: what a module for this machine is made for."""
    try:
        info = tg.compile("kernel k(src x: f32) -> f32 { return reduce sum(src.x) }", cache=False).info
    except (ImportError, RuntimeError) as error:
        return f"unknown: {error}"
    return f"{info['target_cpu']}: {' '.join(info['target_features'])}"


def _cache():
    try:
        where = tg.cache.folder()
    except ValueError as error:
        return str(error)
    if where is None:
        return "in memory only (TIGA_CACHE=off)"
    try:
        entries = tg.cache.entries()
    except OSError as error:
        return f"{where}: {error}"
    size = sum(e.bytes for e in entries) / (1 << 20)
    return f"{where}: {len(entries)} entries, {size:.1f} MiB, {sum(e.failed for e in entries)} of programs that are wrong"


def _gpu():
    try:
        cuda = C.CDLL("libcuda.so.1")
    except OSError:
        return "no CUDA driver (libcuda.so.1)"
    status, version, count = cuda.cuInit(0), C.c_int(), C.c_int()
    if status:
        return f"a CUDA driver that does not start (error {status})"
    cuda.cuDriverGetVersion(C.byref(version))
    cuda.cuDeviceGetCount(C.byref(count))
    return f"CUDA driver {version.value // 1000}.{version.value % 1000 // 10}, {count.value} devices; calls run on the processor"


def main():
    _line("tiga", f"{tg.__version__} ({tg.__file__})")
    _line("python", sys.version.replace("\n", " "))
    _line("libtiga", _lib.library_path())
    _line("extension", _lib.extension.__file__ if _lib.extension else "none: calls go through ctypes")
    _line("libtigac", _compiler())
    _line("processor", _processor())
    _line("threads", str(_context.threads()))
    _line("cache", _cache())
    _line("gpu", _gpu())
    _line("numpy", _other("numpy"))
    _line("torch", _other("torch"))


if __name__ == "__main__":
    main()
