"""Nothing leaks: many calls of each kind, and the memory of the process stays what it was."""
import gc
import sys
import tempfile
import unittest
from pathlib import Path

from support import W, X, array, f32, module, np, tg, triangle
from tiga import _lib

FAST = bool(_lib.extension)


def resident():
    """Bytes of memory in use by the process."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


class Leaks(unittest.TestCase):
    def constant(self, action, times, limit=2 << 20):
        """Two rounds: whatever is kept once (pools, tables, fragments of the allocator) is kept in the first."""
        for _ in range(times // 4 + 1):
            action()
        before, blocks = resident(), sys.getallocatedblocks()
        for _ in range(times):
            action()
        grown, more = resident() - before, sys.getallocatedblocks() - blocks
        self.assertLess(grown, limit, f"{grown} bytes and {more} blocks more after {times} times")
        self.assertLess(more, times / 10 + 300)

    def test_calls_with_buffers(self):
        g, f, x, w = triangle(), module().plain_sum, f32(X), f32(W)
        self.constant(lambda: f(g, x=x, w=w), 20000 if FAST else 3000)

    @unittest.skipUnless(np, "needs numpy")
    def test_calls_with_numpy(self):
        g, x, w = triangle(), np.float32(X), np.float32(W)
        n = 100000 if FAST else 3000
        f, two, scaled, out = module().plain_sum, module().two, module().scaled, np.zeros(3, np.float32)
        self.constant(lambda: f(g, x=x, w=w), n)
        self.constant(lambda: f(g, x=x, w=w, out=out), n)
        self.constant(lambda: two(g, x=x, w=w), n)
        self.constant(lambda: scaled(g, x=x, a=1.5, k=3, on=True), n)

    @unittest.skipUnless(np, "needs numpy")
    def test_references(self):
        g, x, w, out = triangle(), np.float32(X), np.float32(W), np.zeros(3, np.float32)
        f = module().plain_sum
        things = [g, x, w, out, f, module(), np.dtype("f4"), np.empty, None, True]
        f(g, x=x, w=w)

        def fails():
            for kwargs in ({"x": x[::-1], "w": w}, {"x": x}, {"x": x, "w": w, "out": x}, {"x": x, "w": x}, {"x": "a", "w": w}):
                try:
                    f(g, **kwargs)
                except (TypeError, ValueError):
                    pass
        for action in (lambda: f(g, x=x, w=w), lambda: f(g, x=x, w=w, out=out), fails):
            action()
            before = [sys.getrefcount(t) for t in things]
            for _ in range(1000):
                action()
            after = [sys.getrefcount(t) for t in things]
            for b, a in zip(before, after):
                self.assertLess(abs(a - b), 50)

    def test_errors(self):
        g, f = triangle(), module().plain_sum

        def fail():
            for kwargs in ({"x": [1], "w": W}, {"x": X}, {"x": array("d", X), "w": W}, {"x": X, "w": f32(X)}):
                try:
                    f(g, **kwargs)
                    raise AssertionError
                except (TypeError, ValueError):
                    pass
        self.constant(fail, 1000)

    def test_graphs(self):
        a, b = array("q", [0, 2, 3, 5]), array("i", [0, 2, 1, 0, 1])

        def make():
            g = tg.Graph.from_csr(a, b)
            g.offsets, g.sources, g.stats
            g = tg.Graph.from_coo([2, 0, 1], [0, 1, 2], 3)
            g.edge_order
            tg.Graph.from_csr(a, b, copy=True)
            try:
                tg.Graph.from_csr([0, 9], [9])
            except ValueError:
                pass
        self.constant(make, 2000)

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "g.npz")

            def use():
                triangle().save(path, f32(W))
                tg.Graph.open(path).values
            self.constant(use, 200)

    def test_modules(self):
        from support import module_path

        def use():
            tg.load(module_path()).plain_sum(triangle(), x=X, w=W)
        self.constant(use, 200, 4 << 20)

    def test_compile(self):
        text = "kernel s(src x: f32) -> f32 { return reduce sum(src.x) }"

        def use():
            tg.compile(text).s(triangle(), x=X)
            try:
                tg.compile("kernel s(src x: f32) -> f32 { return y }")
            except tg.CompileError:
                pass
        self.constant(use, 100, 4 << 20)

    def test_large_results_go_at_once(self):
        g = tg.graph.generate("local", nodes=1 << 18, degree=1)
        x, w = f32([1]) * (1 << 18), f32([1]) * (1 << 18)
        self.constant(lambda: module().plain_sum(g, x=x, w=w), 20, 8 << 20)


if __name__ == "__main__":
    unittest.main()
