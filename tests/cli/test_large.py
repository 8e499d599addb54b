"""What keeps large programs quick to compile: schedules are tables, and loops that differ in numbers only are one."""
import ctypes
import os
import re
import unittest

import numpy as np
import scipy.sparse as sp

from cli import TIGA, TIGAC, CliTest

N, F = 40, 19

# rows(r, h, a): each line is one shape of kernel, written for tigac and for numpy
TWINS = [
    ("{a} * dst.h + reduce sum(({b} - edge.w) * src.x)", lambda g, w, x, h, a, b: a * h + g((b - w) * x)),
    ("reduce sum(max(edge.w, {a}) * src.x) / {b}", lambda g, w, x, h, a, b: g(np.maximum(w, a) * x) / b),
    ("reduce sum(select(edge.w > {a}, src.x, {b} * src.x)) - dst.h", lambda g, w, x, h, a, b: g(np.where(w > a, x, b * x)) - h),
    ("min(dst.h, {a}) * reduce sum(edge.w) + {b} / (2 + dst.h * dst.h)",
     lambda g, w, x, h, a, b: np.minimum(h, a) * g(w + 0 * x) + b / (2 + h * h)),
]
# The numbers of each shape; 2 and 8 divide exactly, 0 and 1 are folded, 0.3 is the same in several.
NUMBERS = [(0.3, 2.5), (0.3, 0.7), (0.45, 2.0), (0.11, 8.0), (0.0, 1.0), (-1.0, 0.25)]

RELAX = """
kernel smooth(node u: f32, param dt: f32) -> f32 {
    return dst.u + dt * reduce sum(src.u - dst.u)
}
program relax(g: graph, u: f32[g.dst], rounds: i64, dt: f32) -> f32[g.dst] {
    var v = u
    repeat rounds {
        v = smooth(g, u = v, dt = dt)
    }
    return v
}
"""


class Csr(ctypes.Structure):
    _fields_ = [("sizes", ctypes.c_int64 * 3), ("offsets", ctypes.c_void_p), ("sources", ctypes.c_void_p), ("source_bits", ctypes.c_int64)]


class Large(CliTest):
    def setUp(self):
        super().setUp()
        rng = np.random.default_rng(4)
        self.graph = sp.random(N, N, density=0.12, format="csr", dtype=np.float32, random_state=5)
        self.graph.sort_indices()
        self.x, self.h = rng.standard_normal((2, N, F)).astype(np.float32)
        sp.save_npz(self.dir / "g.npz", self.graph)
        np.save(self.dir / "x.npy", self.x)
        np.save(self.dir / "h.npy", self.h)
        np.save(self.dir / "u.npy", self.x[:, 0].copy())

    def sum_rows(self, messages):
        out = np.zeros((N, F))
        np.add.at(out, np.repeat(np.arange(N), np.diff(self.graph.indptr)), messages)
        return out

    def call(self, module, name, bits, *arrays):
        """The plain function of a kernel, through columns of 32 or 64 bits."""
        offsets, sources = self.graph.indptr.astype(np.int64), self.graph.indices.astype(f"i{bits // 8}")
        graph = Csr((N, N, len(sources)), offsets.ctypes.data, sources.ctypes.data, bits)
        getattr(module, name)(ctypes.byref(graph), ctypes.c_int64(F), *(a.ctypes.data_as(ctypes.c_void_p) for a in arrays))

    def test_twins(self):
        text, want = "", {}
        w, x = self.graph.data.astype(float)[:, None], self.x.astype(float)[self.graph.indices]
        for s, (shape, numpy) in enumerate(TWINS):
            for k, (a, b) in enumerate(NUMBERS):
                text += f"kernel k{s}_{k}[F](src x: f32[F], edge w: f32, dst h: f32[F]) -> f32[F] {{\n"
                text += f"    return {shape.format(a=a, b=b)}\n}}\n"
                want[f"k{s}_{k}"] = numpy(self.sum_rows, w, x, self.h.astype(float), a, b)
        (self.dir / "twins.tg").write_text(text.replace("dst h: f32[F]) -> f32[F] {\n    return reduce sum(max",
                                                        "dst _h: f32[F]) -> f32[F] {\n    return reduce sum(max"))
        self.ok(TIGAC, "twins.tg", "-o", "twins.so")
        self.ok(TIGAC, "twins.tg", "--emit=c", "-o", "twins.c")
        module = ctypes.CDLL(str(self.dir / "twins.so"))
        c = (self.dir / "twins.c").read_text()
        shared = len(set(re.findall(r", (\w+_rows32), \w+, NULL, [\d, ]+, \w+_numbers}", c)))
        alone = len(re.findall(r"^static void \w+_rows32\(", c, re.M)) - shared
        self.assertGreaterEqual(shared, len(TWINS))
        self.assertLess(shared + alone, len(TWINS) * 4)  # of six: four twins at least, or three and two
        for name, value in want.items():
            h = "_h" if name.startswith("k1") else "h"
            self.ok(TIGA, "run", "twins.so", name, "--graph", "g.npz", "--src", "x=x.npy", "--edge", "w=@", "--dst",
                    f"{h}=h.npy", "-o", "out.npy")
            np.testing.assert_allclose(np.load(self.dir / "out.npy"), value, rtol=1e-4, atol=1e-4, err_msg=name)
            for bits in (32, 64):
                out = np.zeros((N, F), np.float32)
                self.call(module, name, bits, self.x, self.graph.data, self.h, out)
                np.testing.assert_array_equal(out, np.load(self.dir / "out.npy"), err_msg=name)

    def check_on_one_processor(self, name):
        """The parts of a module are compiled by as many threads as there are processors; nobody can tell."""
        bytes_of_all, all_of_them = (self.dir / f"{name}.so").read_bytes(), os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(all_of_them)})
        self.addCleanup(os.sched_setaffinity, 0, all_of_them)
        self.ok(TIGAC, f"{name}.tg", "-o", f"{name}.so")
        os.sched_setaffinity(0, all_of_them)
        self.assertEqual((self.dir / f"{name}.so").read_bytes(), bytes_of_all)

    def test_many_bodies(self):
        """More than 48 different loops: one body for both widths of columns, the same bits as a kernel on its own."""
        shapes = ["edge.w * src.x", "src.x - edge.w", "max(src.x, edge.w)", "abs(src.x) + edge.w", "edge.w * edge.w * src.x"]
        reduces = ["sum({})", "max({})", "min({})", "argmax({})", "mean({})", "softmax(edge.w, {})", "logsumexp({})", "prod({})",
                   "count({} > 0.25)", "var({})"]
        for features, x in (("[F]", "x.npy"), ("", "u.npy")):
            texts = []
            for i, (shape, reduce) in enumerate((s, r) for s in shapes for r in reduces):
                out = "i64" if reduce[0] in "ac" else "f32"
                texts.append(f"kernel k{i}{features}(src x: f32{features}, edge w: f32) -> {out}{features} {{\n"
                             f"    return reduce {reduce.format(shape)}\n}}\n")
            (self.dir / "many.tg").write_text("".join(texts))
            self.ok(TIGAC, "many.tg", "-o", "many.so")
            self.check_on_one_processor("many")
            self.ok(TIGAC, "many.tg", "--emit=c", "-o", "many.c")
            self.assertIn("k7_rows_any, k7_rows_any", (self.dir / "many.c").read_text())
            for i in (0, 5, 8, 13, 22, 26, 39, 47):
                (self.dir / "one.tg").write_text(texts[i])
                for file in ("many.so", "one.tg"):
                    self.ok(TIGA, "run", file, f"k{i}", "--graph", "g.npz", "--src", f"x={x}", "--edge", "w=@", "-o",
                            file[:3] + ".npy")
                self.assertEqual((self.dir / "man.npy").read_bytes(), (self.dir / "one.npy").read_bytes(), texts[i])

    def test_computes_while_it_runs(self):
        """Task IR written by hand: arithmetic, a choice and a repeat in a repeat on numbers that were read."""
        (self.dir / "relax.tg").write_text(RELAX)
        self.ok(TIGAC, "relax.tg", "--emit=task-ir", "-o", "relax.ir")
        ir = (self.dir / "relax.ir").read_text()
        read = re.search(r"  (%\d+) = readi .*\n  done .*\n", ir)
        rounds = read.group(1)
        # max(rounds, 5) when rounds < 4, else 2 * rounds - 1
        more = "".join(f"  %9{line}\n" for line in [
            "01 = const {value = 4} : i64", "02 = const {value = 5} : i64", "03 = const {value = 2} : i64",
            "04 = const {value = 1} : i64", f"05 = lt {rounds}, %901 : bool", f"06 = max {rounds}, %902 : i64",
            f"07 = mul {rounds}, %903 : i64", "08 = sub %907, %904 : i64", "09 = select %905, %906, %908 : i64"])
        ir = ir.replace(read.group(0), read.group(0) + more).replace(f"repeat {rounds},", "repeat %909,")
        (self.dir / "relax.ir").write_text(ir)
        self.ok(TIGAC, "relax.ir", "-o", "relax.so")
        a = sp.csr_matrix((np.ones_like(self.graph.data), self.graph.indices, self.graph.indptr), (N, N)).astype(float)
        for asked, run in [(0, 5), (3, 5), (4, 7), (6, 11)]:
            u = self.x[:, 0].astype(float)
            for _ in range(run):
                u = u + 0.05 * (a @ u - np.asarray(a.sum(axis=1)).ravel() * u)
            self.ok(TIGA, "run", "relax.so", "relax", "--graph", "g.npz", "--dst", "u=u.npy", "--param", f"rounds={asked}",
                    "--param", "dt=0.05", "-o", "out.npy")
            np.testing.assert_allclose(np.load(self.dir / "out.npy"), u, rtol=1e-3, atol=1e-5, err_msg=str(asked))

    def test_schedule_is_a_table(self):
        """The text of the host function of a program does not grow with the program."""
        sizes = []
        for n in (10, 200):
            calls = "".join(f"    v = smooth(g, u = v, dt = dt)\n    if sum(v) > {k}.5 {{\n        v = v * dt\n    }}\n" for k in range(n))
            (self.dir / "many.tg").write_text(RELAX.replace("        v = smooth(g, u = v, dt = dt)\n", "        v = v\n") +
                                              "program many(g: graph, u: f32[g.dst], dt: f32) -> f32[g.dst] {\n    var v = u\n" +
                                              calls + "    return v\n}\n")
            self.ok(TIGAC, "many.tg", "--emit=c", "-o", "many.c")
            c = (self.dir / "many.c").read_text()
            body = re.search(r"int32_t many_host\(.*?\n}\n", c, re.S).group(0)
            self.assertGreater(c.count("TIGA_DO_LAUNCH, "), n)
            sizes.append(body.count("\n"))
        self.assertEqual(sizes[0], sizes[1])


if __name__ == "__main__":
    unittest.main()
