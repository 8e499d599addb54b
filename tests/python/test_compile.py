"""tiga.compile: texts and files, dimensions, diagnostics, the cache of compiled code."""
import pickle
import unittest
import warnings
from pathlib import Path

from support import SOURCE, TEXT, W, X, Y, folder, run, tg, tigac, triangle

SUM = """kernel weighted_sum[F](src x: f32[F], edge w: f32, dst bias: f32[F]) -> f32[F] {
    return dst.bias + reduce sum(edge.w * src.x)
}
"""
WRONG = """kernel bad(src x: f32, edge w: f32) -> f32 {
    let y = edge.w * src.x
    return y
}
"""


class Compile(unittest.TestCase):
    def test_published(self):
        m = tg.compile("kernel s(src x: f32, edge w: f32) -> f32 { return reduce sum(edge.w * src.x) }")
        self.assertEqual(m.s(triangle(), x=X, w=W), Y)

    def test_everything_in_one(self):
        m = tg.compile(TEXT)
        self.assertEqual(m.plain_sum(triangle(), x=X, w=W), Y)
        self.assertEqual(m.rounds(triangle(), x=X, n=0), X)

    def test_a_file_that_was_compiled_again(self):
        text = "kernel k(src x: f32) -> f32 {{ return {} * reduce sum(src.x) }}"
        modules = []
        for k in range(1, 4):
            tigac(text.format(k), folder() / "again.so")
            (folder() / "again.tg").write_text(text.format(10 * k))
            modules += [tg.load(folder() / "again.so"), tg.compile(folder() / "again.tg")]
        g = tg.Graph.from_csr([0, 1], [0])
        self.assertEqual([m.k(g, x=[1]) for m in modules], [[1], [10], [2], [20], [3], [30]])

    def test_dimensions(self):
        m = tg.compile(SUM, F=2)
        x = [[1, 10], [2, 20], [3, 30]]
        zero = [[0, 0]] * 3
        self.assertEqual(m.weighted_sum(triangle(), x=x, w=W, bias=zero), [[11, 110], [8, 80], [17, 170]])
        with self.assertRaisesRegex(ValueError, r"expected f32\[n_src = 3, 2\], got f32\[3, 1\]"):
            m.weighted_sum(triangle(), x=[[1], [2], [3]], w=W, bias=zero)
        for value, error in ((-1, ValueError), (1.5, TypeError), (True, TypeError), ("2", TypeError)):
            with self.assertRaisesRegex(error, "the dimension F is"):
                tg.compile(SUM, F=value)
        with self.assertWarnsRegex(tg.CompileWarning, "no dimension 'G'|dimension 'G'"):
            tg.compile(SUM, G=3)

    def test_dimensions_of_helpers(self):
        text = """
kernel mix[K, F](dst x: f32[K], param W: f32[F, K]) -> f32[F] { return dot(W, dst.x) + f32(reduce count()) }
kernel first[K](dst x: f32[K]) -> f32 { return sum(slice(dst.x, 0, 2)) + f32(reduce count()) }
program layer(g: graph, x: f32[g.dst, K], W: f32[F, K]) -> f32[g.dst, F] { return mix(g, x = x, W = W) }
program net(g: graph, x: f32[g.dst, K], V: f32[H, K], W: f32[C, H]) -> f32[g.dst, C] {
    return layer(g, x = layer(g, x = x, W = V), W = W) + sum(first(g, x = x)) * 0
}
export vjp net(x, V)
"""
        g, x = triangle(), [[1, 2, 3]] * 3
        given = dict(x=x, V=[[1, 0, 2], [3, 1, 1]], W=[[2, 1]])
        plain = tg.compile(text, K=3)
        want, y = plain.net(g, **given), [[1], [2], [3]]
        for dims in (dict(K=3, H=2), dict(K=3, H=2, C=1), dict(K=3, F=2), dict(K=3, H=2, F=7)):
            m = tg.compile(text, **dims)
            self.assertEqual(m.net(g, **given), want)
            self.assertEqual(m.net.vjp(g, cotangent=y, **given), plain.net.vjp(g, cotangent=y, **given))
            self.assertEqual(list(m), ["mix", "first", "layer", "net", "net_vjp"])
        self.assertIn("x: f32[g.dst, 3], W: f32[F, 3]", str(tg.compile(text, K=3, H=2).layer.__signature__))

    def test_paths(self):
        path = folder() / "sum.tg"
        path.write_text(SUM)
        for name in (path, str(path)):
            self.assertIn("weighted_sum", tg.compile(name))
        with self.assertRaises(FileNotFoundError):
            tg.compile(folder() / "none.tg")
        with self.assertRaises(FileNotFoundError):
            tg.compile("none.tg")
        with self.assertRaisesRegex(ValueError, "neither a program"):
            tg.compile("none")
        for source in (None, 3, b"kernel", [SUM]):
            with self.assertRaisesRegex(TypeError, "takes the text of a program or a path"):
                tg.compile(source)

    def test_examples(self):
        for path in sorted((SOURCE / "examples").glob("*.tg")):
            with self.subTest(path.name):
                self.assertTrue(len(tg.compile(path)))

    def test_options(self):
        self.assertIn("weighted_sum", tg.compile(SUM, opt_level=0, cache=False))
        self.assertIn("weighted_sum", tg.compile(SUM, cpu="x86-64"))
        with self.assertRaisesRegex(ValueError, "zzz"):
            tg.compile(SUM, cpu="zzz")
        with self.assertRaises(ValueError):
            tg.compile(SUM, opt_level=7)
        wrong = {"cpu": 3, "file_name": 3, "opt_level": "2", "warnings_are_errors": "yes", "cache": "off"}
        for name, value in wrong.items():
            with self.assertRaisesRegex(TypeError, f"compile: {name} is {value!r}; it must be "):
                tg.compile(SUM, **{name: value})
        with self.assertRaisesRegex(TypeError, "opt_level is True"):
            tg.compile(SUM, opt_level=True)
        with self.assertRaisesRegex(ValueError, "cpu is"):
            tg.compile(SUM, cpu="x86-64\0")

    def test_ir_text(self):
        path = folder() / "model.ir"
        path.write_text((SOURCE / "tests" / "codegen" / "model.ir").read_text())
        self.assertIn("weighted_sum", tg.compile(path))
        self.assertIn("weighted_sum", tg.compile(str(path)))


class Errors(unittest.TestCase):
    def test_diagnostics(self):
        with self.assertRaises(tg.CompileError) as caught:
            tg.compile(WRONG, file_name="bad.tg")
        error = caught.exception
        self.assertIsInstance(error, ValueError)
        d = error.diagnostics[0]
        self.assertEqual((d.id, d.is_error, d.file, d.line), ("E0207", True, "bad.tg", 3))
        self.assertEqual(WRONG.splitlines()[d.line - 1][d.column - 1:d.column - 1 + d.length], "y")
        self.assertIn("bad.tg:3:12: error[E0207]", str(error))
        self.assertIn("^", str(error))
        for note in d.notes:
            self.assertIsInstance(note.text, str)
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual((str(again), again.diagnostics), (str(error), error.diagnostics))

    def test_all_of_them(self):
        with self.assertRaises(tg.CompileError) as caught:
            tg.compile("kernel a(src x: f32) -> f32 { return z }\nkernel b(src x: f32) -> f32 { return q }")
        self.assertEqual([(d.line, d.is_error) for d in caught.exception.diagnostics], [(1, True), (2, True)])

    def test_one_failure_is_not_anothers(self):
        for _ in range(2):
            with self.assertRaises(tg.CompileError):
                tg.compile(WRONG)
            self.assertIn("weighted_sum", tg.compile(SUM))

    def test_texts(self):
        for text in ("{", "\0{", "kernel \u00e9{", "{" * 10000, "\udc80{"):
            with self.subTest(text=text[:9]), self.assertRaises((tg.CompileError, UnicodeEncodeError)):
                tg.compile(text)
        self.assertEqual(len(tg.compile("// nothing\n")), 0)

    def test_warnings(self):
        text = "kernel s(src x: f32, src unused: f32) -> f32 {\n    let y = src.x\n    let z = src.x\n    return reduce sum(y)\n}\n"
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            tg.compile(text)
        for w in seen:
            self.assertIs(w.category, tg.CompileWarning)
            self.assertEqual(Path(w.filename).name, Path(__file__).name)

    def test_a_warning_made_an_error_leaves_no_module(self):
        def code():
            with open("/proc/self/maps") as maps:
                return sum("r-xp" in line and line.split()[4] == "0" for line in maps)

        def attempt(k):
            with self.assertRaises(tg.CompileWarning):
                tg.compile(f"kernel s(src x: f32, src u: f32) -> f32 {{ return {k} * reduce sum(src.x) }}", cache=False)

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            attempt(0)
            before = code()
            for k in range(1, 11):
                attempt(k)
            self.assertLess(code() - before, 5)


class Cache(unittest.TestCase):
    def test_counters(self):
        text = SUM.replace("weighted_sum", "for_the_counters")
        before = tg.cache.counters()
        tg.compile(text)
        tg.compile(text)
        tg.compile(text, F=8)
        tg.compile(text, cache=False)
        after = tg.cache.counters()
        self.assertEqual((after.misses - before.misses, after.memory_hits - before.memory_hits), (2, 1))

    def test_negative(self):
        text = WRONG.replace("bad", "very_bad")
        seen = []
        before = tg.cache.counters()
        for _ in range(2):
            with self.assertRaises(tg.CompileError) as caught:
                tg.compile(text)
            seen.append((str(caught.exception), caught.exception.diagnostics))
        after = tg.cache.counters()
        self.assertEqual(seen[0], seen[1])
        self.assertEqual((after.failed - before.failed, after.negative_hits - before.negative_hits), (1, 1))

    def test_disk_and_clear(self):
        text = f"import tiga as tg\ntg.compile({SUM!r})\nprint(tg.cache.counters().disk_hits, len(tg.cache.entries()))\n"
        where = str(folder() / "cache")
        self.assertEqual(run(text, TIGA_CACHE_DIR=where).stdout, "0 1\n")
        self.assertEqual(run(text, TIGA_CACHE_DIR=where).stdout, "1 1\n")
        text = "import tiga as tg; print(tg.cache.folder()); e = tg.cache.entries()[0]; print(e.fields); print(tg.cache.clear(), tg.cache.entries())"
        shown = run(text, TIGA_CACHE_DIR=where)
        self.assertIn(where, shown.stdout, shown.stderr)
        self.assertIn("weighted_sum", shown.stdout)
        self.assertIn("\n1 []\n", shown.stdout)

    def test_off(self):
        text = f"import tiga as tg\ntg.compile({SUM!r})\nprint(tg.cache.folder(), tg.cache.entries(), tg.cache.counters().misses)"
        where = folder() / "nocache"
        self.assertEqual(run(text, TIGA_CACHE_DIR=str(where), TIGA_CACHE="off").stdout, "None [] 1\n")
        self.assertFalse(where.exists())
        self.assertIn("may be 'on' or 'off'", run(text, TIGA_CACHE="maybe").stderr)


if __name__ == "__main__":
    unittest.main()
