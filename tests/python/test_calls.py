"""Calls: every kind of argument and result, names, numbers, memory for results."""
import inspect
import itertools
import pydoc
import unittest

from support import OFFSETS, SOURCES, W, X, Y, array, f32, module, needs_numpy, np, tg, triangle


class Published(unittest.TestCase):
    def test_lists(self):
        self.assertEqual(module().plain_sum(triangle(), x=X, w=W), Y)

    def test_memory(self):
        y = module().plain_sum(triangle(), x=f32(X), w=f32(W))
        self.assertIsInstance(y, memoryview)
        self.assertEqual((y.format, y.shape, y.tolist()), ("f", (3,), Y))

    @needs_numpy
    def test_numpy(self):
        y = module().plain_sum(triangle(), x=np.array(X, np.float32), w=np.array(W, np.float32))
        self.assertIsInstance(y, np.ndarray)
        self.assertEqual((y.dtype, y.tolist()), (np.float32, Y))


class Kinds(unittest.TestCase):
    def test_every_element_type(self):
        g, m = triangle(), module()
        self.assertEqual(m.f64_sum(g, x=array("d", [0.5, 1, 2])).tolist(), [2.5, 1, 1.5])
        self.assertEqual(m.whole_sum(g, x=array("q", [1 << 40, 1, 2])).tolist(), [(1 << 40) + 2, 1, (1 << 40) + 1])
        self.assertEqual(m.whole_sum(g, x=array("l", [5, 1, 2])).tolist(), [7, 1, 6])
        self.assertEqual(m.small_sum(g, x=array("i", [5, 1, 2])).tolist(), [7, 1, 6])
        self.assertEqual(m.any_of(g, x=[True, False, False]), [True, False, True])
        self.assertEqual(m.any_of(g, x=memoryview(b"\1\0\0").cast("?")).tolist(), [True, False, True])

    def test_small_element_types(self):
        g, m = triangle(), module()
        self.assertEqual(m.half_sum(g, x=[0.5, 2048, 1]), [1.5, 2048, 2048])  # 2048.5 is rounded, to even
        self.assertEqual(m.brain_sum(g, x=[0.5, 256, 1]), [1.5, 256, 256])
        self.assertEqual(m.i8_sum(g, x=[100, 50, 100]), [-56, 50, -106])
        self.assertEqual(m.u8_sum(g, x=array("B", [200, 50, 100]), a=1).tolist(), [302 - 256, 51, 252])
        half = memoryview(b"\0\x38\0\x68\0\x3c").cast("H")  # without numpy: the bits
        self.assertEqual(m.half_sum(g, x=half).tolist(), [0x3e00, 0x6800, 0x6800])
        for name, x in (("i8_sum", [128, 0, 0]), ("half_sum", [1e5, 0, 0]), ("brain_sum", [3.4e38, 0, 0])):
            with self.assertRaisesRegex(ValueError, "fits"):
                getattr(m, name)(g, x=x)
        with self.assertRaisesRegex(ValueError, "fits u8"):
            m.u8_sum(g, x=[1, 2, 3], a=-1)

    def test_complex(self):
        g, m = triangle(), module()
        self.assertEqual(m.c64_sum(g, x=[[1 + 2j], [3], [-1j]], a=2j), [[-2 + 2j], [6j], [-4 + 8j]])
        z, size = m.c128_sum(g, x=[3j, 0, 4])
        self.assertEqual((z, size), ([4 + 3j, 0, 3j], [5, 0, 3]))
        for x, a in (([["1"], [0], [0]], 1), ([[1], [0], [0]], 1e39j), ([[1], [0], [0]], "1j")):
            with self.assertRaisesRegex((TypeError, ValueError), "fits c64"):
                m.c64_sum(g, x=x, a=a)

    def test_vjp(self):
        m = tg.compile("""
kernel weighted_sum(src x: f32, edge w: f32) -> f32 { return reduce sum(edge.w * src.x) }
export vjp weighted_sum(x, w)
""")
        given = {"x": X, "w": W, "cotangent": [1, 1, 1]}
        dx, dw = m.weighted_sum.vjp(triangle(), **given)
        self.assertEqual((dx, dw), ([7, 10, 3], [1, 3, 2, 1, 2]))
        self.assertEqual(tuple(m.weighted_sum_vjp(triangle(), **given)), (dx, dw))
        f = m.weighted_sum
        del m
        self.assertEqual(list(f.module), ["weighted_sum", "weighted_sum_vjp"])
        with self.assertRaisesRegex(AttributeError, "export vjp weighted_sum_vjp"):
            f.vjp.vjp

    def test_gradients_of_small_and_complex(self):
        m = tg.compile("""
kernel half(src x: f16, edge w: bf16) -> f16 { return reduce sum(edge.w * src.x) }
kernel turn(src z: c64, param a: c64) -> c64 { return a * reduce sum(src.z) }
export vjp half(x, w)
export vjp turn(z, a)
""")
        dx, dw = m.half_vjp(triangle(), x=[1, 2, 3], w=[2, 3, 4, 5, 6], cotangent=[1, 0.5, 2])
        self.assertEqual((dx, dw), ([12, 14, 3], [1, 3, 1, 2, 4]))
        dz, da = m.turn_vjp(triangle(), z=[1, 1j, 2], a=2 + 1j, cotangent=[1j, 1, 0])  # times conj(a), conj(sum z): as in PyTorch
        self.assertEqual((dz, da), ([1 + 2j, 2 - 1j, 1 + 2j], 2j))

    @needs_numpy
    def test_complex_of_numpy(self):
        g, m = triangle(), module()
        x = np.array([1 + 2j, 3, -1j], np.complex64).reshape(3, 1)
        y = m.c64_sum(g, x=x, a=np.complex64(2j))
        self.assertEqual((y.dtype, y.shape, y.ravel().tolist()), (np.complex64, (3, 1), [-2 + 2j, 6j, -4 + 8j]))
        self.assertEqual(m.c64_sum(g, x=np.zeros((3, 0), np.complex64), a=1).shape, (3, 0))
        with self.assertRaisesRegex(TypeError, "complex128.*complex64"):
            m.c64_sum(g, x=x.astype(np.complex128), a=1)

    @needs_numpy
    def test_small_element_types_of_numpy(self):
        g, m = triangle(), module()
        y = m.half_sum(g, x=np.array([0.5, 2048, 1], np.float16))
        self.assertEqual((y.dtype, y.tolist()), (np.float16, [1.5, 2048, 2048]))
        y = m.brain_sum(g, x=np.array([0x3f00, 0x4380, 0x3f80], np.uint16))
        self.assertEqual((y.dtype, y.tolist()), (np.uint16, [0x3fc0, 0x4380, 0x4380]))
        y = m.u8_sum(g, x=np.array([200, 50, 100], np.uint8), a=np.uint8(1))
        self.assertEqual((y.dtype, y.tolist()), (np.uint8, [46, 51, 252]))
        with self.assertRaisesRegex(TypeError, "uint16.*float16"):
            m.half_sum(g, x=np.zeros(3, np.uint16))

    def test_two_axes(self):
        y = module().weighted_sum(triangle(), x=[[1, 10], [2, 20], [3, 30]], w=W, bias=[[1, 2], [0, 0], [0, 0]])
        self.assertEqual(y, [[12, 112], [8, 80], [17, 170]])
        x = memoryview(f32([1, 10, 2, 20, 3, 30])).cast("B").cast("f", shape=(3, 2))
        y = module().weighted_sum(triangle(), x=x, w=f32(W), bias=[[1, 2], [0, 0], [0, 0]])
        self.assertIsInstance(y, memoryview)  # not all were lists
        self.assertEqual((y.shape, y.tolist()), ((3, 2), [[12, 112], [8, 80], [17, 170]]))

    def test_two_params_of_an_open_size(self):
        y = module().mixed(triangle(), x=[[1, 0], [0, 1], [1, 1]], w=[2, 3])
        self.assertEqual(y, [[4, 3], [0, 3], [2, 3]])

    def test_sizes_that_follow_from_others(self):
        z, t = [[1, 10, 20], [2, 30, 40], [3, 50, 60]], [[0, 0]]
        s = module().side(triangle(), x=[[1, 1], [2, 2], [3, 3]], y=[[7], [8], [9]])
        self.assertEqual([row[2:] for row in s], [[7, 1], [8, 1], [9, 1]])
        a, b = module().cut(triangle(), z=z, t=t)
        self.assertEqual((a, [len(row) for row in b]), ([[4], [2], [3]], [1, 1, 1]))
        for t, words in [([[0, 0, 0]], r"cut: dimension D\+K is 4, but 'z' has 3; D = 1, K = 3"),
                         ([[], [], []], r"cut: K-1 cannot be -1; D = 3, K = 0")]:
            with self.assertRaisesRegex((TypeError, ValueError), words):
                module().cut(triangle(), z=z, t=t)

    def test_sizes_that_only_a_sum_shows(self):
        m = tg.compile("""
            kernel rest[D, K](src z: f32[D + K], dst y: f32[D]) -> f32[K] {
                return slice(reduce sum(src.z), D, D + K) + sum(dst.y)
            }
            kernel heads[H, F](src z: f32[H * F]) -> f32[H] { return reduce sum(sum(reshape(src.z, [H, F]), axis = -1)) }
        """)
        z = [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]
        self.assertEqual(len(m.rest(triangle(), z=z, y=[[1], [1], [1]])[0]), 3)
        self.assertEqual(len(m.rest(triangle(), z=z, y=[[1] * 3] * 3)[0]), 1)
        for call, words in [(lambda: m.rest(triangle(), z=z, y=[[1] * 5] * 3), r"no size of dimension K follows from 'z', where D\+K = 4; D = 5"),
                            (lambda: m.heads(triangle(), z=z), r"no size of dimension H follows from 'z', where F\*H = 4")]:
            with self.assertRaisesRegex((TypeError, ValueError), words):
                call()

    def test_results_per_edge(self):
        self.assertEqual(module().difference(triangle(), u=X), [0, 2, 0, -2, -1])

    def test_numbers(self):
        f = module().scaled
        self.assertEqual(f(triangle(), x=X, a=0.5, k=4, on=True), [8, 4, 6])
        self.assertEqual(f(triangle(), x=X, a=1, k=1, on=False), [0, 0, 0])

    @needs_numpy
    def test_numbers_of_numpy(self):
        f = module().scaled
        for a, k, on in [(np.float32(0.5), np.int64(4), np.bool_(True)), (np.float64(0.5), np.int8(4), np.array(True)[()]),
                         (np.array(0.5), np.array(4), np.array(True))]:
            self.assertEqual(f(triangle(), x=X, a=a, k=k, on=on), [8, 4, 6])
        for on in (np.array([True]), np.array(1), np.int64(1)):
            with self.assertRaisesRegex(TypeError, "it must be a bool"):
                f(triangle(), x=X, a=1, k=4, on=on)

    def test_several_results(self):
        y = module().two(triangle(), x=X, w=W)
        self.assertEqual((type(y).__name__, y.s, y.n), ("two", Y, [2, 1, 2]))
        s, n = y
        self.assertEqual(n, [2, 1, 2])

    def test_programs(self):
        y = module().rounds(triangle(), x=X, n=0)
        self.assertEqual(y, X)
        y = module().rounds(g=triangle(), x=X, n=1)
        for have, want in zip(y, [0.9, 1.2, 1.8]):
            self.assertAlmostEqual(have, want, places=6)

    def test_results_without_axes(self):
        y = module().total(triangle(), x=X)
        self.assertIsInstance(y.all, float)
        self.assertEqual(y, (6.0, [2, 4, 6]))

    @needs_numpy
    def test_numpy_results_without_axes(self):
        y = module().total(triangle(), x=np.array(X, np.float32))
        self.assertIsInstance(y.all, np.float32)
        self.assertEqual(y.all, 6)

    def test_several_graphs(self):
        a, b = triangle(), tg.Graph.from_csr([0, 1], [0])
        f = module().on_two
        for y in (f(a, b, x=X, y=[4]), f(a, b=b, x=X, y=[4]), f(a=a, b=b, x=X, y=[4])):
            self.assertEqual([round(v, 6) for v in y.p], [0.4, 0.2, 0.3])
            self.assertEqual([round(v, 6) for v in y.q], [0.4])

    def test_no_graph(self):
        self.assertEqual(module().lonely(d=4), 8)

    @needs_numpy
    def test_the_largest_kind_wins(self):
        g, w = triangle(), np.array(W, np.float32)
        self.assertIsInstance(module().plain_sum(g, x=X, w=w), np.ndarray)
        self.assertIsInstance(module().plain_sum(g, x=f32(X), w=w), np.ndarray)


class Sizes(unittest.TestCase):
    def test_no_rows(self):
        g = tg.Graph.from_csr([0], [])
        self.assertEqual(module().plain_sum(g, x=[], w=[]), [])
        y = module().plain_sum(g, x=f32([]), w=f32([]))
        self.assertEqual((y.shape, y.format, y.tolist()), ((0,), "f", []))

    def test_no_rows_and_features(self):
        g = tg.Graph.from_csr([0], [], n_src=2)
        y = module().mixed(g, x=memoryview(f32([1, 2, 3, 4])).cast("B").cast("f", (2, 2)), w=[1, 2])
        self.assertEqual((y.shape, y.tolist()), ((0, 2), []))

    @needs_numpy
    def test_no_features(self):
        y = module().weighted_sum(triangle(), x=np.empty((3, 0), np.float32), w=np.array(W, np.float32),
                                  bias=np.empty((3, 0), np.float32))
        self.assertEqual((y.shape, y.dtype), ((3, 0), np.float32))

    def test_rows_without_edges(self):
        self.assertEqual(module().plain_sum(tg.Graph.from_csr([0, 0, 0], [], 0), x=[], w=[]), [0, 0])

    def test_64_bit_sources(self):
        g = tg.Graph.from_csr(OFFSETS, array("q", SOURCES))
        self.assertEqual(module().plain_sum(g, x=X, w=W), Y)
        g = tg.Graph.from_csr(array("q", OFFSETS), array("i", SOURCES))
        self.assertEqual(module().plain_sum(g, x=X, w=W), Y)


class Reducers(unittest.TestCase):
    @needs_numpy
    def test_logsumexp(self):
        """Every row of up to four of these, one number an edge and in tiles, beside the formula of docs/ir.md."""
        values = [-np.inf, np.inf, np.nan, 0, -1.5, 3, 1e38, -1e38]
        rows = [row for n in range(5) for row in itertools.product(values, repeat=n)]
        x = np.array([v for row in rows for v in row], np.float32)
        g = tg.Graph.from_csr(np.cumsum([0] + [len(row) for row in rows]), np.zeros(len(x), np.int64), 1)
        want = []
        with np.errstate(all="ignore"):
            for row in rows:
                m, s = np.float32(-np.inf), np.float32(0)
                for v in np.array(row, np.float32):
                    up, t = v > m, np.float32(1) if m == v else np.exp(-abs(m - v))
                    s = s * (t if up else np.float32(1)) + (np.float32(0) if v == -np.inf else np.float32(1) if up else t)
                    m = v if up else m
                want.append(m + np.log(s))
        for shape in ("", "[F]"):
            k = tg.compile(f"kernel k{shape}(edge x: f32{shape}) -> f32{shape} {{ return reduce logsumexp(edge.x) }}").k
            out = k(g, x=x) if not shape else k(g, x=np.repeat(x[:, None], 70, 1))
            for got in np.array(out, ndmin=2) if not shape else out.T:
                np.testing.assert_allclose(got, want, rtol=1e-6)


class Dimensions(unittest.TestCase):
    """What sizes of results are taken from."""
    def solve(self, f, graphs, **given):
        dims, csrs = f._solve(graphs, f._take_arrays(given))
        return dict(zip(f._dims, dims)), [f._result_shape(r, dims, csrs) for r in f.results]

    def test_several_graphs(self):
        a, b = triangle(), tg.Graph.from_csr([0, 1], [4], 5)
        known, shapes = self.solve(module().on_two, [a, b], x=X, y=[1, 2, 3, 4, 5])
        sizes = {"a.dst": 3, "a.src": 3, "a.edge": 5, "b.dst": 1, "b.src": 5, "b.edge": 1}
        self.assertEqual(known, {name: sizes[name] for name in known})
        self.assertEqual(shapes, [(3,), (1,)])
        known, shapes = self.solve(module().on_two, [b, a], x=[1, 2, 3, 4, 5], y=X)
        self.assertEqual((known.get("a.src"), shapes), (5, [(1,), (3,)]))

    def test_features(self):
        f = module().mixed
        self.assertEqual(self.solve(f, [triangle()], x=[[1, 2]] * 3, w=[1, 2])[1], [(3, 2)])
        self.assertEqual(self.solve(f, [triangle()], x=[[]] * 3, w=[])[1], [(3, 0)])
        self.assertEqual(self.solve(module().fixed, [triangle()], x=[[1, 2, 3]] * 3)[1], [(3, 3)])
        self.assertEqual(self.solve(module().difference, [triangle()], u=X)[1], [(5,)])
        self.assertEqual(self.solve(module().total, [triangle()], x=X)[1], [(), (3,)])

    def test_what_is_not_known_is_left_to_the_library(self):
        f = module().mixed
        dims, csrs = f._solve([triangle()], [])
        self.assertEqual((dict(zip(f._dims, dims))["F"], f._result_shape(f.results[0], dims, csrs)), (None, None))

    def test_the_first_counts_and_the_library_compares(self):
        f, wrong = module().mixed, dict(x=[[1, 2]] * 3, w=[1, 2, 3])
        self.assertEqual(self.solve(f, [triangle()], **wrong)[1], [(3, 2)])
        with self.assertRaisesRegex(ValueError, "mixed: argument 'w'.*F"):
            f(triangle(), **wrong)


class Out(unittest.TestCase):
    def test_memory_of_the_caller(self):
        out = f32([0, 0, 0])
        self.assertIs(module().plain_sum(triangle(), x=X, w=W, out=out), out)
        self.assertEqual(out.tolist(), Y)

    @needs_numpy
    def test_numpy(self):
        out = np.zeros(3, np.float32)
        self.assertIs(module().plain_sum(triangle(), x=np.float32(X), w=np.float32(W), out=out), out)
        self.assertEqual(out.tolist(), Y)
        rows = np.zeros((2, 3), np.float32)
        module().plain_sum(triangle(), x=np.float32(X), w=np.float32(W), out=rows[1])
        self.assertEqual(rows.tolist(), [[0, 0, 0], Y])

    def test_several(self):
        s = f32([0, 0, 0])
        y = module().two(triangle(), x=X, w=W, out={"s": s})
        self.assertIs(y.s, s)
        self.assertEqual((s.tolist(), y.n), (Y, [2, 1, 2]))
        n = array("q", [0, 0, 0])
        y = module().two(triangle(), x=X, w=W, out=(None, n))
        self.assertIs(y.n, n)
        self.assertEqual((y.s, n.tolist()), (Y, [2, 1, 2]))

    def test_of_no_rows(self):
        out = f32([])
        self.assertIs(module().plain_sum(tg.Graph.from_csr([0], []), x=[], w=[], out=out), out)

    def test_wrong(self):
        f, g = module().plain_sum, triangle()
        for out, error, words in [
                (bytearray(12), TypeError, ["plain_sum: result 'out'", "bytearray"]),
                (array("d", [0, 0, 0]), TypeError, ["result 'out'", "float64", "must be float32"]),
                (f32([0, 0]), ValueError, ["result 'out'", "f32[2]", "n_dst = 3"]),
                ([0, 0, 0], TypeError, ["list"]),
                (memoryview(f32([0, 0, 0])).toreadonly(), ValueError, ["read only"]),
                ((f32([0]), f32([0])), TypeError, ["out= must be a tuple of 1"]),
                ({"y": f32([0])}, TypeError, ["no result 'y'", "out"])]:
            with self.subTest(out=out), self.assertRaises(error) as caught:
                f(g, x=X, w=W, out=out)
            for word in words:
                self.assertIn(word, str(caught.exception))

    def test_shared_memory(self):
        both = f32([1, 2, 3])
        with self.assertRaisesRegex(ValueError, "result 'out' shares memory with 'x'"):
            module().plain_sum(triangle(), x=both, w=W, out=both)
        s = memoryview(bytearray(24))
        with self.assertRaisesRegex(ValueError, "result 'n' shares memory with 's'"):
            module().two(triangle(), x=X, w=W, out=(s[8:20].cast("f"), s.cast("q")))


class Names(unittest.TestCase):
    def fails(self, error, words, *args, **kwargs):
        with self.assertRaises(error) as caught:
            module().plain_sum(*args, **kwargs)
        for word in words:
            self.assertIn(word, str(caught.exception))

    def test_wrong_arguments(self):
        g = triangle()
        self.fails(TypeError, ["plain_sum(", "graph is missing"], x=X, w=W)
        self.fails(TypeError, ["missing 'x', 'w'"], g)
        self.fails(TypeError, ["missing 'w'"], g, x=X)
        self.fails(TypeError, ["no argument 'y'"], g, x=X, w=W, y=1)
        self.fails(TypeError, ["takes 1 positional", "by name"], g, X, W)
        self.fails(TypeError, ["graph is a list", "tiga.Graph"], [1], x=X, w=W)
        self.fails(TypeError, ["graph is a NoneType"], None, x=X, w=W)

    def test_functions(self):
        m = module()
        self.assertIs(m.plain_sum, m["plain_sum"])
        self.assertIn("plain_sum", m)
        self.assertIn("plain_sum", dir(m))
        self.assertEqual(list(m)[0], "weighted_sum")
        self.assertEqual(len(m), len(list(m)))
        with self.assertRaisesRegex(AttributeError, "no function 'plainsum'; did you mean 'plain_sum'"):
            m.plainsum
        with self.assertRaisesRegex(KeyError, "^module .* has no function 'zzz'; it has weighted_sum, "):
            m["zzz"]

    def test_awkward_names(self):
        f = module().awkward
        self.assertEqual(list(inspect.signature(f).parameters), ["g_", "out", "g", "lambda_", "lambda__", "out_"])
        y = f32([0, 0, 0])
        self.assertIs(f(triangle(), out=X, g=X, lambda_=X, lambda__=X, out_=y), y)
        self.assertEqual(y.tolist(), [16, 8, 12])
        self.assertEqual(module().row_and_edge(triangle(), x=X, w=W), ([5, 4, 11], [4, 2, 3]))

    def test_names_of_our_own(self):
        m = tg.compile("""
kernel k(src x: f32) -> f32 { return reduce sum(src.x) }
program p(out: graph, x: f32[out.dst]) -> f32[out.dst] { return k(out, x = x) }
program q(g: graph, out: graph, x: f32[g.dst], y: f32[out.dst]) -> (class: f32, _x: f32, _1: f32, out: f32, x: f32) {
    return (class = sum(x), _x = sum(y), _1 = 1, out = 2, x = 3)
}
""")
        g, out = triangle(), array("f", [0, 0, 0])
        self.assertEqual(m.p(g, x=[1, 2, 3]), m.k(g, x=[1, 2, 3]))
        self.assertEqual(m.p(out=g, x=[1, 2, 3]), m.k(g, x=[1, 2, 3]))
        self.assertIs(m.p(g, x=f32([1, 2, 3]), out_=out), out)
        self.assertEqual(out.tolist(), m.k(g, x=[1, 2, 3]))
        self.assertIn("out: Graph, *, x", str(inspect.signature(m.p)))
        r = m.q(g, g, x=[1, 2, 3], y=[4, 5, 6])
        self.assertEqual((r.class_, r.x, r.result_1, r.out, r.x_), (6, 15, 1, 2, 3))
        self.assertIn("class_:", m.q.__doc__)

    def test_slips(self):
        for name in (0, None, b"plain_sum"):
            with self.assertRaisesRegex(TypeError, "functions go by their names"):
                module()[name]
        with self.assertRaisesRegex(ValueError, r"tiga\.load"):
            tg.compile("model.so")

    def test_help(self):
        f = module().weighted_sum
        text = pydoc.plain(pydoc.render_doc(f))
        signature = "weighted_sum(g: Graph, /, *, x: src f32[F], w: edge f32, bias: dst f32[F], out=None) -> f32[F]"
        self.assertIn(signature.replace(" ", ""), "".join(text.split()))  # later Pythons break lines
        self.assertIn("x: float32 [n_src, F], one row a source", text)
        signature = inspect.signature(f)
        self.assertEqual(list(signature.parameters), ["g", "x", "w", "bias", "out"])
        self.assertEqual(f.__name__, "weighted_sum")
        self.assertIn("kernel weighted_sum(g: Graph", repr(f))
        self.assertEqual([p.role for p in f.params], ["src", "edge", "dst"])
        self.assertIn("program rounds(g: Graph, *, x: f32[g.dst]", repr(module().rounds))
        self.assertIn("n: int64, a number", module().rounds.__doc__)
        pydoc.render_doc(module())
        pydoc.render_doc(tg)

    def test_repr(self):
        self.assertRegex(repr(module()), "^<tiga.Module 'tests.tg'.*: weighted_sum, plain_sum, ")
        self.assertEqual(repr(triangle()), "<tiga.Graph 3 rows, 3 sources, 5 edges>")


if __name__ == "__main__":
    unittest.main()
