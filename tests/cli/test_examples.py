"""Every file of examples/, run, and its numbers checked against a computation of our own."""
import unittest

import numpy as np
import scipy.sparse as sp

from cli import BUILD, SOURCE, TIGA, TIGAC, CliTest

EXAMPLES = SOURCE / "examples"
GRAPH, NAMES = EXAMPLES / "data/debian-depends.txt.gz", EXAMPLES / "data/debian-depends.names.txt.gz"


def debian():
    """Rows are dependencies, columns the packages that need them."""
    edges = np.loadtxt(GRAPH, dtype=np.int64)
    n = edges.max() + 1
    return sp.csr_matrix((np.ones(len(edges)), (edges[:, 1], edges[:, 0])), shape=(n, n))


class Examples(CliTest):
    def test_all_compile(self):
        for path in sorted(EXAMPLES.glob("*.tg")):
            with self.subTest(path.name):
                self.ok(TIGAC, path, "-Werror", "-o", "x.so")
                self.ok(TIGAC, path, "-Werror", "--target=cuda")

    def test_jit_from_c(self):
        """The published numbers; compiled once, found on disk by the second process."""
        rows = "11 8 17\n13 8 22\n15 8 27\n"
        self.assertEqual(self.ok(BUILD / "bin/example_jit"), rows + "compiled 1, from disk 0, from memory 0\n")
        self.assertEqual(self.ok(BUILD / "bin/example_jit"), rows + "compiled 0, from disk 1, from memory 0\n")
        self.assertLess(len((SOURCE / "examples/jit.c").read_text().splitlines()), 60)

    def test_pagerank(self):
        args = [EXAMPLES / "pagerank.tg", "pagerank", "--graph", GRAPH, "--src", "outdeg=@outdegree", "--param", "d=0.85",
                "--param", "rounds=50"]
        self.ok(TIGA, "run", *args, "-o", "r.npy")
        have = np.load(self.dir / "r.npy")
        a = debian()
        n, outdeg = a.shape[0], np.asarray(a.sum(axis=0)).ravel()
        share = np.divide(1, outdeg, out=np.zeros(n), where=outdeg > 0)
        r = np.full(n, 1 / n)
        for _ in range(50):
            r = 0.15 / n + 0.85 * (a @ (r * share) + r[outdeg == 0].sum() / n)
        self.assertEqual(have.shape, (n,))
        np.testing.assert_allclose(have, r, rtol=2e-4)
        self.assertAlmostEqual(have.sum(dtype=np.float64), 1, places=4)
        top = self.ok(TIGA, "run", *args, "--top", "10", "--names", NAMES).splitlines()
        self.assertEqual(top[0].split()[1], "libc6")
        self.assertEqual(len(top), 10)

    def test_pagerank_threads(self):
        args = [EXAMPLES / "pagerank.tg", "pagerank", "--graph", GRAPH, "--src", "outdeg=@outdegree", "--param", "d=0.85",
                "--param", "rounds=10"]
        self.ok(TIGA, "run", *args, "--threads", "1", "-o", "one.npy")
        self.ok(TIGA, "run", *args, "--threads", "3", "-o", "three.npy")
        self.assertEqual((self.dir / "one.npy").read_bytes(), (self.dir / "three.npy").read_bytes())

    def test_gcn(self):
        a = debian()
        n, k, f = a.shape[0], 6, 4
        rng = np.random.default_rng(3)
        x = rng.standard_normal((n, k), dtype=np.float32)
        w = rng.standard_normal((f, k), dtype=np.float32)
        bias = rng.standard_normal(f, dtype=np.float32)
        for name, array in [("x", x), ("W", w), ("bias", bias)]:
            np.save(self.dir / f"{name}.npy", array)
        self.ok(TIGA, "run", EXAMPLES / "gcn.tg", "gcn_layer", "--graph", GRAPH, "--dst", "x=x.npy", "--param", "W=W.npy",
                "--param", "bias=bias.npy", "-o", "out.npy")
        have = np.load(self.dir / "out.npy")
        self.assertEqual(have.shape, (n, f))
        # The plain triple loop (rows, edges, features), on a sample of the rows: hubs, empty rows, and some others.
        degree = np.diff(a.indptr)
        norm = 1 / np.sqrt(degree + 1.0)
        h = x.astype(np.float64) @ w.astype(np.float64).T
        rows = [*np.argsort(degree)[-3:], *np.flatnonzero(degree == 0)[:3], *range(0, n, 997)]
        for i in rows:
            for c in range(f):
                total = norm[i] * h[i, c]
                for e in range(a.indptr[i], a.indptr[i + 1]):
                    j = a.indices[e]
                    total += norm[j] * h[j, c]
                want = max(0.0, norm[i] * total + bias[c])
                self.assertLessEqual(abs(have[i, c] - want), 1e-4 * max(1.0, abs(want)), (i, c))


if __name__ == "__main__":
    unittest.main()
