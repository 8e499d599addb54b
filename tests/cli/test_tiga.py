"""tiga: graph files, running modules, every message a user can meet."""
import gzip
import json
import subprocess
import unittest

import numpy as np
import scipy.sparse as sp

from cli import TIGA, TIGAC, WEIGHTED_SUM, CliTest

# Three rows, four columns; row 1 has no edge; (2 <- 0) twice.
ROWS, COLUMNS, VALUES = [2, 0, 2, 0, 2], [0, 1, 3, 3, 0], [1.0, 2.0, 3.0, 4.0, 5.0]


def mtx(rows=ROWS, columns=COLUMNS, values=VALUES, shape=(3, 4)):
    lines = [f"{r + 1} {c + 1} {v}" for r, c, v in zip(rows, columns, values)]
    return "\n".join(["%%MatrixMarket matrix coordinate real general", f"{shape[0]} {shape[1]} {len(lines)}", *lines, ""])


class Graphs(CliTest):
    def info(self, name):
        return json.loads(self.ok(TIGA, "graph", "info", name, "--json"))

    def test_import_and_info(self):
        self.write("g.mtx", mtx())
        self.ok(TIGA, "graph", "import", "g.mtx", "g.npz")
        want = {"rows": 3, "columns": 4, "edges": 5, "empty_rows": 1, "max_degree": 3, "self_loops": 0, "duplicate_edges": 1}
        for name in ("g.mtx", "g.npz"):
            have = self.info(name)
            self.assertEqual({k: have[k] for k in want}, want)
        a = sp.load_npz(self.dir / "g.npz")
        self.assertEqual(a.shape, (3, 4))
        dense = np.zeros((3, 4))
        np.add.at(dense, (ROWS, COLUMNS), VALUES)
        np.testing.assert_array_equal(a.toarray(), dense)
        self.assertIn("largest degree       3", self.ok(TIGA, "graph", "info", "g.npz"))

    def test_snapshots(self):
        self.write("g.mtx", mtx())
        self.ok(TIGA, "graph", "import", "g.mtx", "old.npz")
        self.assertIn("transposed relation  not in the file", self.ok(TIGA, "graph", "info", "old.npz"))
        self.ok(TIGA, "graph", "import", "--transposed", "old.npz", "g.npz")  # what an old file lacks is added
        text = self.ok(TIGA, "graph", "info", "g.npz")
        self.assertIn("transposed relation  in the file", text)
        self.assertIn("rows of degree       2 .. 3           2", text)
        a, b = self.info("old.npz"), self.info("g.npz")
        self.assertEqual((a["transposed"], b["transposed"], b["degrees"]), (False, True, [1, 0, 2]))
        for name in ("edges", "empty_rows", "max_degree", "duplicate_edges", "degrees", "values"):
            self.assertEqual(a[name], b[name])
        np.testing.assert_array_equal(sp.load_npz(self.dir / "old.npz").toarray(), sp.load_npz(self.dir / "g.npz").toarray())
        self.ok(TIGA, "graph", "generate", "local", "--nodes=9", "--degree=2", "--transposed", "l.npz")
        self.assertTrue(self.info("l.npz")["transposed"])
        with np.load(self.dir / "l.npz") as z:
            parts = dict(z)
        parts["tiga_transposed_edges"][:2] = parts["tiga_transposed_edges"][1::-1]
        np.savez(self.dir / "bad.npz", **parts)
        self.fails(1, TIGA, "graph", "info", "bad.npz", says="the transposed relation in the file is not that of the graph")

    def test_what_a_gradient_builds(self):
        """The transposed relation: once for a graph, never when the file has it."""
        self.write("k.tg", "kernel k(src x: f32) -> f32 { return reduce sum(src.x) }\nexport vjp k(x)\n")
        args = ["run", "k.tg", "k_vjp", "--src", "x=1", "--dst", "cotangent=1", "--repeat=3", "--stats"]
        for option, want in (([], 1), (["--transposed"], 0)):
            self.ok(TIGA, "graph", "generate", "uniform", "--nodes=50", "--degree=4", *option, "g.npz")
            self.assertEqual(json.loads(self.ok(TIGA, *args, "--graph", "g.npz"))["transposes"], want)

    def test_edge_list_gzip(self):
        self.write("links.txt.gz", gzip.compress(b"# from to\n0\t1\r\n2\t1\n1\t0\n"))
        self.ok(TIGA, "graph", "import", "links.txt.gz", "g.npz")
        have = self.info("g.npz")
        self.assertEqual((have["rows"], have["edges"]), (3, 3))
        a = sp.load_npz(self.dir / "g.npz").toarray()
        self.assertEqual((a[1, 0], a[1, 2], a[0, 1]), (1, 1, 1))  # an edge enters the row of its second number

    def test_generate(self):
        self.ok(TIGA, "graph", "generate", "rmat", "--scale", "8", "--edge-factor", "4", "--seed", "7", "a.npz")
        self.ok(TIGA, "graph", "generate", "rmat", "--scale=8", "--edge-factor=4", "--seed=7", "--threads=1", "b.npz")
        self.ok(TIGA, "graph", "generate", "rmat", "--scale=8", "--edge-factor=4", "--seed=8", "c.npz")
        a, b, c = (sp.load_npz(self.dir / f"{n}.npz") for n in "abc")
        self.assertEqual((a.shape, a.nnz), ((256, 256), 1024))
        np.testing.assert_array_equal(a.indices, b.indices)
        self.assertTrue((a.indices != c.indices).any())
        self.ok(TIGA, "graph", "generate", "uniform", "--nodes", "10", "--degree", "3", "u.npz")
        np.testing.assert_array_equal(np.diff(sp.load_npz(self.dir / "u.npz").indptr), [3] * 10)
        self.ok(TIGA, "graph", "generate", "local", "--nodes", "10", "--degree", "3", "l.npz")
        self.assertEqual(self.info("l.npz")["edges"], 30)

    def test_usage(self):
        self.fails(2, TIGA, "graph", says="import, info or generate")
        self.fails(2, TIGA, "graph", "improt", "a", "b", says="unknown action 'improt'")
        self.fails(2, TIGA, "graph", "import", "a", says="FROM TO.npz")
        self.fails(2, TIGA, "graph", "generate", "rmat", "a.npz", says="--scale")
        self.fails(2, TIGA, "graph", "generate", "rmta", "--scale=3", "a.npz", says="rmat uniform local")
        self.fails(2, TIGA, "graph", "generate", "rmat", "--scale=x", "a.npz", says="not an integer")
        self.fails(2, TIGA, "graph", "info", "a", "--jsn", says="did you mean '--json'?")
        self.assertIn("edge-factor", self.ok(TIGA, "graph", "--help"))

    def test_bad_files(self):
        cases = {
            "range.mtx": (mtx(rows=[2, 3, 0, 0, 0]), ["range.mtx:4", "4"]),
            "negative.mtx": (mtx(columns=[0, -3, 1, 1, 1]), ["negative.mtx:4", "-2"]),
            "short.mtx": (mtx().rsplit("\n", 2)[0] + "\n", ["short.mtx", "4", "5"]),
            "word.mtx": (mtx().replace("3.0", "three"), ["word.mtx:5", "three"]),
            "word.txt": ("0 1\n1 x\n", ["word.txt:2", "x"]),
            "negative.txt": ("0 1\n-1 2\n", ["negative.txt:2", "-1"]),
            "cut.txt.gz": (gzip.compress(b"0 1\n" * 1000)[:-9], ["cut.txt.gz"]),
            "empty.mtx": ("", ["empty.mtx"]),
            "noise.npz": ("PK\3\4 nothing", ["noise.npz"]),
        }
        for name, (text, says) in cases.items():
            with self.subTest(name):
                self.write(name, text)
                out = self.fails(1, TIGA, "graph", "import", name, "out.npz", says=says)
                self.assertEqual(len(out.splitlines()), 1, out)
        self.assertNotIn("out.npz", self.files())
        self.fails(1, TIGA, "graph", "info", "none.mtx", says="none.mtx")


class Run(CliTest):
    def test_outputs_that_cannot_be(self):
        two = "kernel two(edge w: f32) -> (a: f32, b: i64) { return (a = reduce sum(edge.w), b = reduce count()) }\n"
        self.write("two.tg", two)
        run = ["run", "two.tg", "two", "--graph=g.mtx", "--edge=w=@"]
        self.fails(2, TIGA, *run, "-o", "a=q.npy", "-o", "b=q.npy", says=["q.npy", "twice"])
        self.fails(2, TIGA, *run, "-o", "a=q.npy", "-o", "a=r.npy", says=["'a'", "twice"])
        self.fails(3, TIGA, *run, "-o", "a=none/q.npy", says="none/q.npy")
        self.fails(3, TIGA, "graph", "import", "g.mtx", "none/g.npz", says="none/g.npz")
        for args in (["graph", "info", "g.mtx"], ["graph", "info", "g.mtx", "--json"], ["--help"], ["--version"]):
            with open("/dev/full", "wb") as full:
                r = subprocess.run([str(TIGA), *args], cwd=self.dir, stdout=full, stderr=subprocess.PIPE)
            self.assertEqual((r.returncode, b"standard output" in r.stderr), (3, True), args)
        limited = f"ulimit -f 1; exec {TIGA} graph generate uniform --nodes 3000 --degree 2 limited.npz"
        r = subprocess.run(["bash", "-c", limited], cwd=self.dir, capture_output=True)
        self.assertEqual(r.returncode, 3, r.stderr)
        self.assertFalse([f for f in self.files() if "limited" in f])

    def test_sizes_beyond_64_bits(self):
        # five rows of 2^33 x 2^33 floats: the product of the sizes wraps around to nothing in 64 bits
        self.write("big.tg", """kernel k[A, B](dst x: f32[A, B], src a: f32[A], src b: f32[B]) -> f32 {
    return sum(dst.x) + reduce sum(sum(src.a)) + reduce sum(sum(src.b))
}

program big[A, B](g: graph, a: f32[g.src, A], b: f32[g.src, B]) -> f32[g.dst] {
    var x = fill(1.0, [g.dst, A, B])
    repeat 2 { x = x + 1 }
    return k(g, x = x, a = a, b = b)
}
""")
        sp.save_npz(self.dir / "e.npz", sp.csr_matrix((5, 0), dtype=np.float32))
        np.save(self.dir / "a.npy", np.zeros((0, 1 << 33), np.float32))
        self.fails(3, TIGA, "run", "big.tg", "big", "--graph=e.npz", "--src=a=a.npy", "--src=b=a.npy", "-o", "o.npy",
                   says="memory")

    F = 5

    def setUp(self):
        super().setUp()
        self.write("m.tg", WEIGHTED_SUM)
        self.write("g.mtx", mtx())
        rng = np.random.default_rng(1)
        self.x = rng.standard_normal((4, self.F), dtype=np.float32)
        self.bias = rng.standard_normal((3, self.F), dtype=np.float32)
        self.w = np.array(VALUES, np.float32)  # in the order of the file
        for name in ("x", "bias", "w"):
            np.save(self.dir / f"{name}.npy", getattr(self, name))
        self.ok(TIGAC, "m.tg", "-o", "m.so")
        self.base = ["m.so", "weighted_sum", "--graph", "g.mtx", "--src", "x=x.npy", "--dst", "bias=bias.npy"]

    def want(self, w):
        out = self.bias.copy()
        for r, c, v in zip(ROWS, COLUMNS, w):
            out[r] += np.float32(v) * self.x[c]
        return out

    def test_values_of_the_file(self):
        self.ok(TIGA, "run", *self.base, "--edge", "w=@", "-o", "out.npy")
        np.testing.assert_allclose(np.load(self.dir / "out.npy"), self.want(VALUES), rtol=1e-6)

    def test_edge_order(self):
        rows = np.argsort(ROWS, kind="stable")
        np.save(self.dir / "by_row.npy", self.w[rows])
        self.ok(TIGA, "run", *self.base, "--edge", "w=by_row.npy", "-o", "out=a.npy")
        self.ok(TIGA, "run", *self.base, "--edge", "w=w.npy", "--edge-order=file", "-o", "b.npy")
        np.testing.assert_allclose(np.load(self.dir / "a.npy"), self.want(VALUES), rtol=1e-6)
        np.testing.assert_array_equal(np.load(self.dir / "a.npy"), np.load(self.dir / "b.npy"))

    def test_edge_results_in_file_order(self):
        self.write("e.tg", "kernel twice(src x: f32, edge w: f32) -> edge f32 { return 2 * edge.w + src.x }\n")
        np.save(self.dir / "one.npy", self.x[:, 0].copy())
        args = ["e.tg", "twice", "--graph", "g.mtx", "--src", "x=one.npy", "--edge", "w=w.npy"]
        self.ok(TIGA, "run", *args, "--edge-order=file", "-o", "out.npy")
        np.testing.assert_allclose(np.load(self.dir / "out.npy"), 2 * self.w + self.x[COLUMNS, 0], rtol=1e-6)

    def test_file_order_of_a_symmetric_file(self):
        self.write("s.mtx", "%%MatrixMarket matrix coordinate real symmetric\n4 4 2\n2 1 1\n3 3 1\n")
        self.fails(1, TIGA, "run", "m.so", "weighted_sum", "--graph", "s.mtx", "--edge", "w=@", "--edge-order=file", "--stats",
                   says="symmetric")

    def test_small_element_types(self):
        self.write("s.tg", """kernel h(src x: f16, edge w: bf16, dst d: i8, dst u: u8) -> (s: f16, b: bf16, i: i8, n: u8) {
    let total = reduce sum(edge.w * src.x)
    return (s = total, b = total, i = dst.d + i8(total), n = dst.u + 250)
}
""")
        x = np.array([0.1, 2.5, -3.25, 1000], np.float16)
        d, u = np.array([127, -128, 5], np.int8), np.array([0, 5, 6], np.uint8)
        for name, a in (("x", x), ("d", d), ("u", u)):
            np.save(self.dir / f"{name}.npy", a)
        self.ok(TIGA, "run", "s.tg", "h", "--graph", "g.mtx", "--src", "x=x.npy", "--edge", "w=@", "--dst", "d=d.npy",
                "--dst", "u=u.npy", "-o", "s=so.npy", "-o", "b=bo.npy", "-o", "i=io.npy", "-o", "n=no.npy")
        total = np.zeros(3, np.float32)
        for r, c, v in zip(ROWS, COLUMNS, VALUES):
            total[r] += np.float32(v) * np.float32(x[c])
        np.testing.assert_array_equal(np.load(self.dir / "so.npy"), total.astype(np.float16))
        b = np.load(self.dir / "bo.npy")
        self.assertEqual(b.dtype, np.uint16)  # the bits of bf16
        np.testing.assert_allclose((b.astype(np.uint32) << 16).view(np.float32), total, rtol=2**-8)
        want = d + np.clip(total, -128, 127).astype(np.int8)
        np.testing.assert_array_equal(np.load(self.dir / "io.npy"), want)
        np.testing.assert_array_equal(np.load(self.dir / "no.npy"), u + np.uint8(250))
        self.fails(1, TIGA, "run", "s.tg", "h", "--graph", "g.mtx", "--src", "x=x.npy", "--edge", "w=@", "--dst", "d=300",
                   "--dst", "u=u.npy", "-o", "s=so.npy", says=["300", "i8"])

    def test_complex(self):
        self.write("c.tg", """kernel c(src x: c64, edge w: c64, param a: c128) -> (s: c64, p: c64, m: c64, e: c64, l: c64, r: c64, d: c128) {
    let s = reduce sum(edge.w * src.x)
    return (s = s, p = reduce prod(src.x), m = reduce mean(src.x, empty = 0), e = exp(s / 4), l = log(s), r = sqrt(s),
            d = a / c128(s))
}
""")
        x = np.array([1 + 2j, -3j, 0.5, -1 - 1j], np.complex64)
        np.save(self.dir / "cx.npy", x)
        out = [f"-o{n}={n}.npy" for n in "spmelrd"]
        self.ok(TIGA, "run", "c.tg", "c", "--graph", "g.mtx", "--src", "x=cx.npy", "--edge", "w=@", "--param", "a=1.5-2i", *out)
        got = {n: np.load(self.dir / f"{n}.npy") for n in "spmelrd"}
        self.assertEqual((got["s"].dtype, got["d"].dtype), (np.complex64, np.complex128))
        s, p, n = np.zeros(3, np.complex64), np.ones(3, np.complex64), np.zeros(3, np.complex64)
        for r, c, v in zip(ROWS, COLUMNS, VALUES):
            s[r] += np.complex64(v) * x[c]
            p[r] *= x[c]
            n[r] += x[c]
        with np.errstate(all="ignore"):
            want = {"s": s, "p": p, "m": n / np.maximum(np.bincount(ROWS, minlength=3), 1), "e": np.exp(s / 4), "l": np.log(s),
                    "r": np.sqrt(s), "d": (1.5 - 2j) / s.astype(np.complex128)}
        for name, w in want.items():
            ok = np.isfinite(w)  # one row is zero: log is -inf there, the quotient infinite
            np.testing.assert_allclose(got[name][ok], w[ok], rtol=2e-6, err_msg=name)
            self.assertEqual(np.isfinite(got[name]).tolist(), ok.tolist(), name)
        for bad in ("1+2", "i", "1+2ij", "x"):
            self.fails(1, TIGA, "run", "c.tg", "c", "--graph", "g.mtx", "--src", "x=cx.npy", "--edge", "w=@", f"--param=a={bad}", *out,
                       says=[bad, "c128"])

    def test_source(self):
        stats = self.stats("m.tg", *self.base[1:], "--edge", "w=@", "-D", f"F={self.F}", "-O3", "-o", "out.npy")
        np.testing.assert_allclose(np.load(self.dir / "out.npy"), self.want(VALUES), rtol=1e-6)
        self.assertGreater(stats["compile_seconds"], 0)
        self.fails(1, TIGA, "run", "m.tg", *self.base[1:], "--edge", "w=@", "-D", "F=6", "-o", "out.npy", says=["x", "6"])
        self.write("bad.tg", "kernel")
        self.fails(1, TIGA, "run", "bad.tg", "k", "--stats", says="bad.tg:1:")

    def test_source_is_compiled_once(self):
        def entries():
            return sorted(p.name for p in self.cache.iterdir() if p.stat().st_size)
        args = ["m.tg", *self.base[1:], "--edge", "w=@", "-o", "out.npy"]
        self.ok(TIGA, "run", *args, "--no-cache")
        self.assertEqual(entries(), [])
        self.ok(TIGA, "run", *args)
        first = entries()
        self.assertEqual(len(first), 1)
        self.ok(TIGA, "run", *args)
        self.assertEqual(entries(), first)
        np.testing.assert_allclose(np.load(self.dir / "out.npy"), self.want(VALUES), rtol=1e-6)
        self.ok(TIGA, "run", *args, "-D", f"F={self.F}")
        self.assertEqual(len(entries()), 2)
        self.write("bad.tg", "kernel k(src x: f32) -> f32 { return src.x }\n")
        texts = [self.fails(1, TIGA, "run", "bad.tg", "k", "--stats", says="bad.tg:1:") for _ in range(2)]
        self.assertEqual(texts[0], texts[1])

    def test_stats(self):
        stats = self.stats(*self.base, "--edge", "w=@", "--threads=2", "--repeat", "3")
        self.assertEqual(stats["edges"], 5)
        self.assertEqual(stats["repeat"], 3)
        self.assertEqual(stats["compile_seconds"], 0)
        for key in ("load_seconds", "run_seconds", "mean_seconds", "edges_per_second", "bytes_moved"):
            self.assertGreater(stats[key], 0, key)
        # every source row once for each use, weights, columns, offsets, bias, result
        self.assertGreaterEqual(stats["bytes_moved"], 5 * 4 * self.F + 5 * 4 + 2 * 3 * 4 * self.F)

    def test_scalars_and_degrees(self):
        self.write("s.tg", "kernel k(src d: f32, dst e: i64, edge w: f64, param dt: f32, param on: bool) -> (a: f32, b: i64, c: f64) {\n"
                           "    return (a = select(on, dt, 0) * reduce sum(src.d), b = dst.e, c = reduce sum(edge.w))\n}\n")
        args = ["s.tg", "k", "--graph", "g.mtx", "--src", "d=@outdegree", "--dst", "e=@indegree", "--edge", "w=0.5"]
        self.ok(TIGA, "run", *args, "--param", "dt=0.5", "--param", "on=true", "-o", "a=a.npy", "-o", "b=b.npy", "-o", "c=c.npy")
        np.testing.assert_array_equal(np.load(self.dir / "a.npy"), np.float32([1.5, 0, 3]))
        np.testing.assert_array_equal(np.load(self.dir / "b.npy"), [2, 0, 3])
        np.testing.assert_array_equal(np.load(self.dir / "c.npy"), [1, 0, 1.5])
        np.save(self.dir / "dt.npy", np.float32(0.5))
        self.ok(TIGA, "run", *args, "--param", "dt=dt.npy", "--param", "on=0", "-o", "a=a.npy")
        np.testing.assert_array_equal(np.load(self.dir / "a.npy"), np.float32([0, 0, 0]))
        self.fails(1, TIGA, "run", *args, "--param", "dt=fast", "--param", "on=1", "-o", "a=a.npy", says=["'fast'", "f32"])
        self.fails(1, TIGA, "run", *args, "--param", "dt=1", "--param", "on=2", "-o", "a=a.npy", says=["'2'", "bool"])
        self.fails(2, TIGA, "run", *args, "--param", "dt=1", "--param", "on=1", "-o", "a.npy", says="a b c")

    def test_numbers_that_do_not_fit(self):
        self.write("n.tg", "kernel s(src x: f32, param h: f16) -> f32 { return reduce sum(src.x * h) }\n"
                   "kernel w(edge w: f32) -> f32 { return reduce sum(edge.w) }\n")
        run = ["run", "n.tg", "s", "--graph", "g.mtx", "--top", "1"]
        for x, h, says in (("1e39", "1", ["'1e39'", "f32"]), ("-1e400", "1", ["'-1e400'", "f32"]), ("1", "70000", ["'70000'", "f16"])):
            self.fails(1, TIGA, *run, "--src", f"x={x}", "--param", f"h={h}", says=["too large", *says])
        for x in ("inf", "-inf", "nan", "1e-60"):
            self.ok(TIGA, *run, "--src", f"x={x}", "--param", "h=1")
        self.write("big.mtx", mtx(values=[1.0, 2.0, 1e39, 4.0, 5.0]))
        self.fails(1, TIGA, "run", "n.tg", "w", "--graph", "big.mtx", "--edge", "w=@", "--top", "1", says=["does not fit", "f32"])

    def test_counts_of_sixteen_bits(self):
        a = sp.csr_matrix(np.array([[0, 1, 2], [3, 0, 0], [0, 500, 0]], np.uint16))
        sp.save_npz(self.dir / "u.npz", a)
        self.write("n.tg", "kernel w(edge w: f32) -> f32 { return reduce sum(edge.w) }\n"
                   "kernel k(src x: f32) -> f32 { return reduce sum(src.x) }\n")
        self.ok(TIGA, "run", "n.tg", "w", "--graph", "u.npz", "--edge", "w=@", "-o", "out.npy")
        np.testing.assert_array_equal(np.load(self.dir / "out.npy"), [3, 3, 500])
        np.save(self.dir / "u.npy", np.array([1, 2, 3], np.uint16))
        self.fails(1, TIGA, "run", "n.tg", "k", "--graph", "u.npz", "--src", "x=u.npy", "-o", "out.npy", says=["uint16", "f32"])

    def test_a_name_that_no_result_has(self):
        args = [*self.base, "--edge", "w=@"]
        self.fails(2, TIGA, "run", *args, "-o", "lss=b.npy", says=["lss=b.npy", "no result of this name", "out", "./lss=b.npy"])
        self.assertFalse((self.dir / "lss=b.npy").exists())
        self.ok(TIGA, "run", *args, "-o", "./lss=b.npy")
        self.assertTrue((self.dir / "lss=b.npy").exists())
        self.ok(TIGA, "run", *args, "-o", "out=b.npy")
        self.assertTrue((self.dir / "b.npy").exists())

    def test_top(self):
        self.write("d.tg", "kernel degree() -> i64 { return reduce count() }\n")
        self.write("names.txt", "red\ngreen\nblue\n")
        args = ["d.tg", "degree", "--graph", "g.mtx"]
        lines = self.ok(TIGA, "run", *args, "--top", "2", "--names", "names.txt").split("\n")
        self.assertEqual([line.split() for line in lines], [["1", "blue", "3"], ["2", "red", "2"], []])
        lines = self.ok(TIGA, "run", *args, "--top", "9").splitlines()
        self.assertEqual([line.split() for line in lines], [["1", "2", "3"], ["2", "0", "2"], ["3", "1", "0"]])
        self.write("names.txt", "red\n")
        self.fails(1, TIGA, "run", *args, "--top", "2", "--names", "names.txt", says="1 names for 3 rows")
        self.fails(1, TIGA, "run", *self.base, "--edge", "w=@", "--top", "2", says="rank 2")

    def test_several_graphs(self):
        self.write("h.mtx", mtx(rows=[0, 1, 2, 3], columns=[1, 1, 0, 2], values=[1, 1, 1, 1], shape=(4, 3)))
        self.write("two.tg", "kernel ns(src x: f32) -> f32 { return reduce sum(src.x) }\n"
                             "program both(g: graph, h: graph, x: f32[g.src], y: f32[h.src]) -> (a: f32[g.dst], b: f32[h.dst]) {\n"
                             "    return (a = ns(g, x = x), b = ns(h, x = y))\n}\n")
        args = ["run", "two.tg", "both", "--src", "x=1", "--src", "y=2", "-o", "a=a.npy", "-o", "b=b.npy"]
        self.ok(TIGA, *args, "--graph", "h=h.mtx", "--graph", "g=g.mtx")
        np.testing.assert_array_equal(np.load(self.dir / "a.npy"), [2, 0, 3])
        np.testing.assert_array_equal(np.load(self.dir / "b.npy"), [2, 2, 2, 2])
        self.fails(2, TIGA, *args, "--graph", "g=g.mtx", says="--graph h=FILE")

    def test_mistakes(self):
        w = ["--edge", "w=@", "-o", "out.npy"]
        cases = [
            (2, ["m.so"], "name of a kernel"),
            (1, ["m.so", "weighted_sun", *self.base[2:], *w], "did you mean 'weighted_sum'?"),
            (1, ["none.so", *self.base[1:], *w], "none.so"),
            (1, ["g.mtx", *self.base[1:], *w], "g.mtx"),
            (2, ["m.so", "weighted_sum", *w], "needs --graph"),
            (2, [*self.base, "--graph", "g.mtx", *w], "one graph"),
            (1, [*self.base, "--node", "w=@", "-o", "out.npy"], "write --edge w=@"),
            (1, [*self.base, "--edge", "v=@", "-o", "out.npy"], "has no parameter 'v'"),
            (1, [*self.base[:-1], "bais=bias.npy", *w], "did you mean 'bias'?"),
            (1, [*self.base, "-o", "out.npy"], "'edge w: f32' is missing"),
            (2, [*self.base, *w, "--src", "x=x.npy"], "given twice"),
            (2, [*self.base, "--edge", "w=@"], "what shall become of the result?"),
            (2, [*self.base, *w, "--src", "x"], "NAME=VALUE"),
            (2, [*self.base, *w, "--edge-order=both"], "rows nor file"),
            (2, [*self.base, *w, "--thread=2"], "did you mean '--threads'?"),
            (2, [*self.base, *w, "--threads=0"], "from 1"),
            (2, [*self.base, *w, "-D", "F=4"], "compiled already"),
            (2, [*self.base, *w, "--no-cache"], "--no-cache is for a source file"),
            (1, [*self.base[:-1], "bias=3", *w], "open dimension"),
            (1, [*self.base[:-1], "bias=none.npy", *w], "none.npy"),
            (1, [*self.base[:-1], "bias=@indegree", *w], "'@indegree'"),
            (2, [*self.base[:-1], "bias=@degree", *w], "@outdegree"),
            (1, [*self.base[:-1], "bias=x.npy", *w], "bias"),
            (3, [*self.base, "--edge", "w=@", "-o", "no/folder/out.npy"], "no/folder"),
        ]
        for code, args, says in cases:
            with self.subTest(" ".join(args)):
                self.fails(code, TIGA, "run", *args, says=says)
        self.assertNotIn("out.npy", self.files())

    def test_wrong_dtype(self):
        np.save(self.dir / "x.npy", self.x.astype(np.float64))
        self.fails(1, TIGA, "run", *self.base, "--edge", "w=@", "-o", "out.npy", says=["x.npy", "f64", "f32"])

    def test_no_values_in_the_file(self):
        self.write("g.mtx", mtx().replace("real", "pattern").replace(".0", "").replace(" 1\n", "\n"))
        self.write("p.txt", "0 1\n")
        self.fails(1, TIGA, "run", "m.so", "weighted_sum", "--graph", "p.txt", "--edge", "w=@", "-o", "o.npy", says="no values")

    def test_foreign_module(self):
        """A module for a processor that this machine is not must be refused before any of its code runs."""
        text = self.ok(TIGAC, "m.tg", "--emit=c").replace('"",\n    "",', '"future",\n    "avx2,levitation",')
        self.assertIn("levitation", text)
        self.write("f.c", text)
        subprocess.run(["cc", "-O0", "-shared", "-fPIC", "-o", "f.so", "f.c", "-lm"], cwd=self.dir, check=True)
        self.fails(1, TIGA, "run", "f.so", *self.base[1:], "--edge", "w=@", "-o", "out.npy", says="levitation")

    def test_dispatch(self):
        self.fails(2, TIGA, says="no command")
        self.fails(2, TIGA, "rnu", says="did you mean 'run'?")
        self.assertIn("tiga run", self.ok(TIGA, "--help"))
        self.assertIn("--edge-order", self.ok(TIGA, "run", "--help"))
        self.assertRegex(self.ok(TIGA, "--version"), r"^tiga \d+\.\d+\.\d+\n$")


if __name__ == "__main__":
    unittest.main()
