"""Programs over several graphs: relations over the same nodes, graphs that lead from one kind of node to another."""
import unittest

from support import needs_numpy, np, tg

TEXT = """
kernel s[F](src x: f64[F], edge w: f64) -> f64[F] { return reduce sum(edge.w * src.x) }
kernel m[F](src x: f64[F]) -> f64[F] { return reduce max(src.x, empty = 0) }
kernel top(src x: f64) -> f64 { return reduce max(src.x, empty = 0) }
kernel spread(node u: f64) -> f64 { return reduce sum(src.u - dst.u) }
program rgcn(a: graph, b: graph, x: f64[a.src, F], wa: f64[a.edge], wb: f64[b.edge], self: f64[F, K]) -> f64[a.dst, K] {
    let h = s(a, x = x, w = wa) + s(b, x = x, w = wb) + m(b, x = x)
    return tanh(h @ self)
}
program light(u: graph, v: graph, x: f64[u.src, F], wu: f64[u.edge], wv: f64[v.edge], n: i64) -> f64[u.src, F] {
    var y = x
    repeat n { y = 0.5 * x + s(v, x = s(u, x = y, w = wu), w = wv) }
    return y
}
program mixed(a: graph, b: graph, x: f64[b.dst]) -> (y: f64[a.dst], rows: i64, sources: i64) {
    let y = top(a, x = spread(b, u = x))
    return (y = y, rows = a.num_dst, sources = a.num_src)
}
export vjp rgcn(x, wa, wb, self)
export vjp light(x, wu, wv)
"""


def graph(rng, rows, sources, edges):
    """A graph, and its matrix for given weights."""
    dst, src = np.sort(rng.integers(0, rows, edges)), rng.integers(0, sources, edges)
    offsets = np.searchsorted(dst, np.arange(rows + 1))

    def matrix(w):
        a = np.zeros((rows, sources))
        np.add.at(a, (dst, src), w)
        return a
    return tg.Graph.from_csr(offsets, src, n_src=sources), matrix, (dst, src)


def slope(f, x, direction, h=1e-6):
    return (f(x + h * direction) - f(x - h * direction)) / (2 * h)


@needs_numpy
class Relations(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.m = tg.compile(TEXT)
        cls.rng = np.random.default_rng(5)

    def differences(self, f, vjp, given, names):
        """Every gradient against a central difference along a random direction."""
        c = self.rng.standard_normal(np.shape(f(**given)))
        gradients = vjp(**given, cotangent=c)
        for name, g in zip(names, gradients):
            d = self.rng.standard_normal(given[name].shape)
            want = slope(lambda v: float((f(**{**given, name: v}) * c).sum()), given[name], d)
            self.assertAlmostEqual(float((g * d).sum()), want, delta=1e-6 * max(1, abs(want)), msg=name)

    def test_two_relations_over_the_same_nodes(self):
        a, A, _ = graph(self.rng, 17, 23, 60)
        b, B, (dst, src) = graph(self.rng, 17, 23, 90)
        x, self_ = self.rng.standard_normal((23, 5)), self.rng.standard_normal((5, 3))
        wa, wb = self.rng.standard_normal(60), self.rng.standard_normal(90)
        largest = np.full((17, 5), -np.inf)
        np.maximum.at(largest, dst, x[src])
        largest[np.isinf(largest)] = 0
        given = dict(x=x, wa=wa, wb=wb, self=self_)
        np.testing.assert_allclose(self.m.rgcn(a, b, **given), np.tanh((A(wa) @ x + B(wb) @ x + largest) @ self_))
        self.differences(lambda **k: self.m.rgcn(a, b, **k), lambda **k: self.m.rgcn.vjp(a, b, **k), given,
                         ("x", "wa", "wb", "self"))

    def test_there_and_back(self):
        u, U, _ = graph(self.rng, 11, 29, 70)
        v, V, _ = graph(self.rng, 29, 11, 50)
        x, wu, wv = self.rng.standard_normal((29, 4)), 0.1 * self.rng.standard_normal(70), self.rng.standard_normal(50)
        want = x
        for _ in range(4):
            want = 0.5 * x + V(wv) @ (U(wu) @ want)
        given = dict(x=x, wu=wu, wv=wv)
        np.testing.assert_allclose(self.m.light(u, v, n=4, **given), want)
        self.differences(lambda **k: self.m.light(u, v, n=4, **k), lambda **k: self.m.light.vjp(u, v, n=4, **k), given,
                         ("x", "wu", "wv"))

    def test_one_square_graph_does_not_make_all_square(self):
        a, _, (dst, src) = graph(self.rng, 7, 13, 40)
        b, B, _ = graph(self.rng, 13, 13, 30)
        x = self.rng.standard_normal(13)
        laplace = B(np.ones(30)) @ x - B(np.ones(30)).sum(1) * x
        want = np.full(7, -np.inf)
        np.maximum.at(want, dst, laplace[src])
        want[np.isinf(want)] = 0
        y, rows, sources = self.m.mixed(a, b, x=x)
        np.testing.assert_allclose(y, want)
        self.assertEqual((rows, sources), (7, 13))

    def test_sizes_that_differ_are_told(self):
        a, b, c = (graph(self.rng, *n, 20)[0] for n in ((7, 13), (13, 13), (13, 12)))
        with self.assertRaisesRegex(ValueError, r"mixed: b.dst must be a.src, but they are 7 and 13"):
            self.m.mixed(a, a, x=np.ones(7))
        with self.assertRaisesRegex(ValueError, r"mixed: b.src must be a.src, but they are 12 and 13"):
            self.m.mixed(a, c, x=np.ones(13))
        with self.assertRaisesRegex(ValueError, r"light: v.src must be u.dst, but they are 13 and 7"):
            self.m.light(a, b, x=np.ones((13, 1)), wu=np.ones(20), wv=np.ones(20), n=1)


if __name__ == "__main__":
    unittest.main()
