#!/usr/bin/env python3
"""What a call from Python costs beyond the work: a graph of one row, and tensors of 8 elements, beside the noise of the
machine.

    ./dev bench python

Each figure is the median of many batches, with the quartiles; the fixed loop at the top shows how steady the machine is.
"""
import os
import statistics
import subprocess
import sys
import time
from array import array

import tiga as tg
from tiga import _lib

TEXT = """
kernel plain(src x: f32, edge w: f32) -> f32 { return reduce sum(edge.w * src.x) }
kernel weighted_sum[F](src x: f32[F], edge w: f32, dst bias: f32[F]) -> f32[F] { return dst.bias + reduce sum(edge.w * src.x) }
kernel with_numbers(src x: f32, param a: f32, param k: i64) -> f32 { return a * f32(k) * reduce sum(src.x) }
"""
GOAL, TENSOR_GOAL = 5.0, 10.0


def spin():
    total = 0
    for i in range(100):
        total += i
    return total


def quartiles(action, batches=41, seconds=0.01):
    """Microseconds a call: lower quartile, median, upper quartile."""
    n = 1
    while True:
        start = time.perf_counter()
        for _ in range(n):
            action()
        took = time.perf_counter() - start
        if took > seconds:
            break
        n *= 2
    samples = []
    for _ in range(batches):
        start = time.perf_counter()
        for _ in range(n):
            action()
        samples.append((time.perf_counter() - start) / n * 1e6)
    return statistics.quantiles(samples, n=4)


def row(name, action, goal=None):
    low, median, high = quartiles(action)
    verdict = "" if goal is None else f"   goal {goal:g}: {'met' if median <= goal else 'NOT met'}"
    print(f"{name:<34} {low:9.2f} {median:9.2f} {high:9.2f}{verdict}", flush=True)


def main():
    m, g = tg.compile(TEXT), tg.Graph.from_csr([0, 1], [0])
    way = "the extension" if _lib.extension else "ctypes"
    print(f"calls through {way}, load {os.getloadavg()[0]:.1f}\n{'us a call':<34} {'quartile':>9} {'median':>9} {'quartile':>9}")
    row("noise: a loop of 100 additions", spin)
    one, f = array("f", [1]), m.plain
    try:
        import numpy as np
    except ImportError:
        print("numpy is not installed")
    else:
        x, out, xf = np.ones(1, np.float32), np.ones(1, np.float32), np.ones((1, 16), np.float32)
        row("2 numpy arrays", lambda: f(g, x=x, w=x), GOAL if _lib.extension else None)
        row("2 numpy arrays, out=", lambda: f(g, x=x, w=x, out=out))
        row("3 numpy arrays, 16 features", lambda: m.weighted_sum(g, x=xf, w=x, bias=xf))
        row("1 numpy array, 2 numbers", lambda: m.with_numbers(g, x=x, a=0.5, k=2))
        row("numpy.dot of one element", lambda: np.dot(x, x))
    row("2 arrays of the standard library", lambda: f(g, x=one, w=one))
    row("2 lists", lambda: f(g, x=[1], w=[1]))
    eight = tg.tensor([float(i) for i in range(8)])
    row("x * x of 8 elements, made", lambda: eight * eight)
    row("x * x of 8 elements, realized", lambda: (eight * eight).realize(), TENSOR_GOAL if _lib.extension else None)
    row("x * x of 8 elements, tolist()", lambda: (eight * eight).tolist(), TENSOR_GOAL if _lib.extension else None)
    row("a tensor through a kernel", lambda: m.plain(g, x=eight[:1], w=eight[:1]))
    if _lib.extension and "--once" not in sys.argv:
        print()
        subprocess.run([sys.executable, __file__, "--once"], env={**os.environ, "TIGA_PYTHON_EXTENSION": "off"}, check=True)


if __name__ == "__main__":
    main()
