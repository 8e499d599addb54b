"""What the Python tests share: the package, numpy or its absence, compiled modules, the published example.

The same tests run with the extension and without it (TIGA_PYTHON_EXTENSION=off), with numpy and without
(TIGA_TEST_NUMPY=off hides it).
"""
import functools
import os
import subprocess
import sys
import tempfile
import unittest
from array import array
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TIGA_BUILD", SOURCE / "build"))
PYTHON = SOURCE / "python"
if os.environ.get("TIGA_TEST_NUMPY") == "off":
    sys.modules["numpy"] = None  # import numpy now fails
os.environ.setdefault("TIGA_LIBRARY_PATH", str(BUILD / "lib"))
os.environ.setdefault("TIGA_CACHE_DIR", tempfile.mkdtemp(prefix="tiga-test-cache-"))
sys.path.insert(0, str(PYTHON))

import tiga as tg  # noqa: E402

try:
    import numpy as np
except ImportError:
    np = None

needs_numpy = unittest.skipUnless(np, "needs numpy")

TEXT = """
kernel weighted_sum[F](src x: f32[F], edge w: f32, dst bias: f32[F]) -> f32[F] {
    return dst.bias + reduce sum(edge.w * src.x)
}
kernel plain_sum(src x: f32, edge w: f32) -> f32 { return reduce sum(edge.w * src.x) }
kernel f64_sum(src x: f64) -> f64 { return reduce sum(src.x) }
kernel whole_sum(src x: i64) -> i64 { return reduce sum(src.x) }
kernel small_sum(src x: i32) -> i32 { return reduce sum(src.x) }
kernel half_sum(src x: f16) -> f16 { return reduce sum(src.x) }
kernel brain_sum(src x: bf16) -> bf16 { return reduce sum(src.x) }
kernel i8_sum(src x: i8) -> i8 { return reduce sum(src.x) }
kernel u8_sum(src x: u8, param a: u8) -> u8 { return reduce sum(src.x + a) }
kernel c64_sum[F](src x: c64[F], param a: c64) -> c64[F] { return a * reduce sum(src.x) }
kernel c128_sum(src x: c128) -> (z: c128, size: f64) {
    let s = reduce sum(src.x)
    return (z = s, size = abs(s))
}
kernel any_of(src x: bool) -> bool { return reduce any(src.x) }
kernel two(src x: f32, edge w: f32) -> (s: f32, n: i64) { return (s = reduce sum(edge.w * src.x), n = reduce count()) }
kernel scaled(src x: f32, param a: f32, param k: i64, param on: bool) -> f32 {
    return select(on, a * f32(k), 0) * reduce sum(src.x)
}
kernel mixed[F](src x: f32[F], param w: f32[F]) -> f32[F] { return reduce sum(w * src.x) }
kernel side[D, K](src x: f32[D], dst y: f32[K]) -> f32[D + K + 1] { return concat(reduce sum(src.x), dst.y, 1) }
kernel cut[D, K](src z: f32[D + K], param t: f32[D, K]) -> (a: f32[D], b: f32[K - 1]) {
    return (a = reduce sum(slice(src.z, 0, D)), b = slice(reduce sum(slice(src.z, D, D + K)), 1, K))
}
kernel difference(node u: f32) -> edge f32 { return src.u - dst.u }
kernel row_and_edge(src x: f32, edge w: f32) -> (s: f32, lambda: f32) {
    return (s = reduce sum(edge.w), lambda = reduce sum(src.x))
}
kernel awkward(src out: f32, src g: f32, src lambda: f32, src lambda_: f32) -> f32 {
    return reduce sum(src.out + src.g + src.lambda + src.lambda_)
}
kernel fixed(src x: f32[3]) -> f32[3] { return reduce sum(src.x) }
kernel heavy[F](src x: f32[F]) -> f32[F] { return reduce sum(sin(exp(sin(exp(sin(src.x)))))) }
program rounds(g: graph, x: f32[g.src], n: i64) -> f32[g.dst] {
    var r = x
    repeat n { r = 0.5 * r + tenth(g, x = r) }
    return r
}
kernel tenth(src x: f32) -> f32 { return 0.1 * reduce sum(src.x) }
program total(g: graph, x: f32[g.src]) -> (all: f32, each: f32[g.dst]) {
    return (all = sum(x), each = x * 2)
}
program on_two(a: graph, b: graph, x: f32[a.src], y: f32[b.src]) -> (p: f32[a.dst], q: f32[b.dst]) {
    return (p = tenth(a, x = x), q = tenth(b, x = y))
}
program lonely(d: f32) -> f32 { return d * 2 }
"""

OFFSETS, SOURCES, X, W, Y = [0, 2, 3, 5], [0, 2, 1, 0, 1], [1, 2, 3], [2, 3, 4, 5, 6], [11, 8, 17]


def tigac(text, path, *options):
    source = Path(path).with_suffix(".tg")
    source.write_text(text)
    done = subprocess.run([BUILD / "bin/tigac", source, *options, "-o", path], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)


@functools.lru_cache(maxsize=None)
def folder():
    """A folder that goes when the process does."""
    f = tempfile.TemporaryDirectory(prefix="tiga-python-")
    folder.keep = f
    return Path(f.name)


@functools.lru_cache(maxsize=None)
def module_path():
    made = os.environ.get("TIGA_TEST_MODULE")  # by the parent
    if not made:
        tigac(TEXT, folder() / "tests.so")
        made = os.environ["TIGA_TEST_MODULE"] = str(folder() / "tests.so")
    return Path(made)


@functools.lru_cache(maxsize=None)
def module():
    return tg.load(module_path())


def triangle():
    """The published example's graph."""
    return tg.Graph.from_csr(OFFSETS, SOURCES)


def f32(values):
    return array("f", values)


def patience():
    """By how much a busy machine may be slower."""
    return max(1, 2 * os.getloadavg()[0] / os.cpu_count())


def run(text, **env):
    """A fresh Python with this text; gives the finished process."""
    module_path()
    path = os.pathsep.join(p for p in (str(PYTHON), str(Path(__file__).parent), os.environ.get("PYTHONPATH")) if p)
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "PYTHONPATH": path, **env})
