"""Products of rows with a matrix: right for any sizes, and the same bits for any number of rows."""
import unittest

from support import needs_numpy, np, tg

ROWS = (0, 1, 2, 3, 4, 5, 7, 8, 9, 11, 13, 40, 300)
TEXT = """
program straight[M, K, N](x: T[M, K], w: T[K, N], b: T[N]) -> T[M, N] { return max(x @ w + b, 0) }
program turned[M, K, N](x: T[M, K], w: T[N, K], b: T[N]) -> T[M, N] { return max(x @ transpose(w) + b, 0) }
program both[M, K, N](x: T[M, K], w: T[K, N], y: T[M, 7], v: T[7, N], b: T[N]) -> T[M, N] { return max(x @ w + y @ v + b, 0) }
program three[M, K, N](x: T[M, K], w: T[K, N], y: T[M, K], v: T[N, K], b: T[N]) -> (p: T[M, N], q: T[M, N], r: T[M, N]) {
    return (p = x @ w + b, q = y @ transpose(v) * b, r = max(y, 0) @ w)
}
program layers[M, K, H, N](x: T[M, K], w: T[K, H], b: T[H], v: T[H, N]) -> T[M, N] { return max(x @ w + b, 0) @ v }
program halves[M, K, N](x: T[M, K], w: T[K, N]) -> (p: T[M, N], q: T[M, K]) { return (p = (x / 3 + 1) @ w, q = x * 2) }
program sums[M, K, N](x: T[M, K], w: T[K, N]) -> (p: T[M], q: T[M, N]) {
    let y = x @ w
    return (p = sum(y, axis = -1), q = -y)
}
kernel degrees[K, N](dst x: T[K], param w: T[K, N]) -> T[N] { return dst.x @ w / T(reduce count()) }
kernel degrees_turned[K, N](dst x: T[K], param w: T[N, K]) -> T[N] { return dst.x @ transpose(w) / T(reduce count()) }
program fixed[M](x: T[M, 24], w: T[24, 40], b: T[40]) -> T[M, 40] { return max(x @ w + b, 0) }
program narrow[M](x: T[M, 24], w: T[24, 10], b: T[10]) -> T[M, 10] { return max(x @ w + b, 0) }
"""

# Rows that do more than multiply, and rows that walk edges: all of it in one kernel.
KERNELS = """
kernel gin[K, H, N](src x: T[K], dst z: T[K], param eps: T, param w: T[K, H], param b: T[H], param v: T[H, N]) -> T[N] {
    return max(((1 + eps) * dst.z + reduce sum(src.x)) @ w + b, 0) @ v
}
kernel gcn[K, N](src x: T[K], edge c: T, dst d: T, param w: T[K, N]) -> T[N] { return (dst.d * reduce sum(edge.c * src.x)) @ w }
kernel sage[K, N](src x: T[K], dst z: T[K], param w: T[K, N], param v: T[N, K]) -> (y: T[N], mean: T[K], n: i64) {
    let m = reduce mean(src.x, empty = 0)
    return (y = dst.z @ w + m @ transpose(v), mean = m, n = reduce count())
}
kernel mlp[K, H, N](dst z: T[K], param w: T[K, H], param b: T[H], param v: T[H, N]) -> (y: T[N], top: T, s: T[N]) {
    let y = max(sqrt(abs(dst.z)) @ w + b, 0) @ v
    return (y = y, top = max(y), s = y + dst.z @ (w @ v))
}
kernel walks[K, N](src x: T[K], dst z: T[K], param w: T[K, N], src q: T[N]) -> (y: T[N], d: T[N]) {
    let y = (reduce max(src.x, empty = 0) + dst.z) @ w
    let n = T(reduce count())
    return (y = y, d = reduce sum(src.q * y / n))
}
"""


def product(x, w):
    """What the language says: k in order, each product rounded."""
    total = np.zeros((len(x), w.shape[1]), x.dtype)
    for k in range(x.shape[1]):
        total = total + x[:, k : k + 1] * w[k]
    return total


def ordered(x, w, b):
    return np.maximum(product(x, w) + b, x.dtype.type(0))


@needs_numpy
class Products(unittest.TestCase):
    def check(self, call, dtype, k, n, turned=False):
        random = np.random.default_rng(k * 1000 + n)
        x = random.standard_normal((max(ROWS), k)).astype(dtype)
        w = random.standard_normal((k, n)).astype(dtype)
        b = random.standard_normal(n).astype(dtype)
        given = np.ascontiguousarray(w.T) if turned else w
        want = ordered(x, w, b)
        for rows in ROWS:
            got = call(x=x[:rows], w=given, b=b)
            self.assertEqual(got.tobytes(), want[:rows].tobytes(), (dtype, k, n, rows, turned))

    def check_several(self, m, dtype, k, n):
        random = np.random.default_rng(k * 1000 + n)
        x, y, w, v, z, u, b = (
            random.standard_normal(size).astype(dtype)
            for size in ((max(ROWS), k), (max(ROWS), k), (k, n), (n, k), (max(ROWS), 7), (7, n), n)
        )
        both = np.maximum(product(x, w) + product(z, u) + b, x.dtype.type(0))
        three = product(x, w) + b, product(y, v.T) * b, product(np.maximum(y, x.dtype.type(0)), w)
        half, y0 = product(x / x.dtype.type(3) + x.dtype.type(1), w), product(x, w)
        deep = product(np.maximum(y0 + b, x.dtype.type(0)), v)
        for rows in ROWS:
            got = m.layers(x=x[:rows], w=w, b=b, v=v)
            self.assertEqual(got.tobytes(), deep[:rows].tobytes(), (dtype, k, n, rows))
            p, q = m.halves(x=x[:rows], w=w)
            self.assertEqual(p.tobytes(), half[:rows].tobytes(), (dtype, k, n, rows))
            self.assertEqual(q.tobytes(), (x[:rows] * 2).tobytes())
            degree = (np.arange(rows) % 7).astype(np.int64)
            sources = np.zeros(degree.sum(), np.int32)
            g = tg.Graph.from_csr(np.concatenate(([0], np.cumsum(degree))), sources)
            with np.errstate(all="ignore"):
                want = y0[:rows] / degree[:, None].astype(dtype)
            np.testing.assert_array_equal(m.degrees(g, x=x[:rows], w=w), want)
            np.testing.assert_array_equal(m.degrees_turned(g, x=x[:rows], w=np.ascontiguousarray(w.T)), want)
            p, q = m.sums(x=x[:rows], w=w)
            np.testing.assert_allclose(p, y0[:rows].sum(axis=1), rtol=1e-4, atol=1e-4)
            self.assertEqual(q.tobytes(), (-y0)[:rows].tobytes(), (dtype, k, n, rows))
            got = m.both(x=x[:rows], w=w, y=z[:rows], v=u, b=b)
            self.assertEqual(got.tobytes(), both[:rows].tobytes(), (dtype, k, n, rows))
            got = m.three(x=x[:rows], w=w, y=y[:rows], v=v, b=b)
            for have, want in zip(got, three):
                self.assertEqual(have.tobytes(), want[:rows].tobytes(), (dtype, k, n, rows))

    def check_kernels(self, m, dtype, k, n):
        random = np.random.default_rng(k * 100 + n)
        f = lambda *size: random.standard_normal(size).astype(dtype)
        n_src = 50
        x, w, b, v, q, eps, zero = f(n_src, k), f(k, n), f(n), f(n, k), f(n_src, n), dtype(0.25), dtype(0)
        for rows in (0, 1, 8, 9, 63, 64, 65, 131):
            degree = random.integers(0, 6, rows)
            offsets = np.concatenate(([0], np.cumsum(degree))).astype(np.int64)
            sources = random.integers(0, n_src, int(offsets[-1])).astype(np.int32)
            g = tg.Graph.from_csr(offsets, sources, n_src)
            z, c, d = f(rows, k), f(int(offsets[-1])), f(rows)

            def walked(messages, combine=lambda a, e: a + e, start=zero):
                out = np.full((rows,) + messages.shape[1:], start, dtype)
                for i in range(rows):
                    for e in range(offsets[i], offsets[i + 1]):
                        out[i] = combine(out[i], messages[e])
                return out

            def same(have, want, what):
                np.testing.assert_array_equal(have, want, f"{what} {dtype} {k} {n} {rows}")

            added = walked(x[sources])
            hidden = np.maximum(product((dtype(1) + eps) * z + added, w) + b, zero)
            same(m.gin(g, x=x, z=z, eps=eps, w=w, b=b, v=v), product(hidden, v), "gin")
            scaled = walked(c[:, None] * x[sources])
            same(m.gcn(g, x=x, c=c, d=d, w=w), product(d[:, None] * scaled, w), "gcn")
            mean = added / np.maximum(degree, 1)[:, None].astype(dtype)
            y, have, count = m.sage(g, x=x, z=z, w=w, v=np.ascontiguousarray(w.T))
            same(y, product(z, w) + product(mean, w), "sage")
            same(have, mean, "mean")
            same(count, degree, "count")
            deep = product(np.maximum(product(np.sqrt(np.abs(z)), w) + b, zero), v)
            y, top, s = m.mlp(g, z=z, w=w, b=b, v=v)
            same(y, deep, "mlp")
            same(top, deep.max(axis=1, initial=-np.inf) if k else top, "top")
            same(s, deep + product(z, product(w, v)), "sum")
            most = walked(x[sources], np.maximum, dtype(-np.inf)) if k else x[:0]
            most = np.where(degree[:, None] > 0, most, zero) if k else z
            y, d = m.walks(g, x=x, z=z, w=w, q=q)
            want = product(most + z, w)
            same(y, want, "walks")
            row = np.repeat(np.arange(rows), degree)
            same(d, walked(q[sources] * want[row] / degree[row][:, None].astype(dtype)), "behind")

    def test_kernels(self):
        for element, dtype in (("f32", np.float32), ("f64", np.float64)):
            text = KERNELS.replace("T[", element + "[").replace("T(", element + "(")
            text = text.replace(": T", ": " + element)
            m = tg.compile(text)
            for k, n in ((1, 1), (3, 10), (17, 16), (5, 33), (33, 65), (64, 70)):
                self.check_kernels(m, dtype, k, n)
            for k, n in ((24, 40), (100, 90), (20, 3)):
                self.check_kernels(tg.compile(text, K=k, H=n), dtype, k, n)

    def check_all(self, element, dtype):
        m = tg.compile(TEXT.replace("T[", element + "[").replace("T(", element + "("))
        for k, n in ((1, 1), (3, 10), (4, 15), (17, 16), (64, 17), (5, 33), (33, 64), (40, 65), (64, 130), (0, 3)):
            self.check(m.straight, dtype, k, n)
            self.check(m.turned, dtype, k, n, True)
            self.check_several(m, dtype, k, n)
        self.check(m.fixed, dtype, 24, 40)
        self.check(m.narrow, dtype, 24, 10)

    def test_f32(self):
        self.check_all("f32", "float32")

    def test_f64(self):
        self.check_all("f64", "float64")


if __name__ == "__main__":
    unittest.main()
