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

    # ---- training, on a real graph of 34 nodes ----
    def karate(self, **arrays):
        """The relation, the classes (one-hot), which are known; arrays are saved for tiga run."""
        edges = np.loadtxt(EXAMPLES / "data/karate.txt", dtype=np.int64)
        club = np.loadtxt(EXAMPLES / "data/karate-club.txt", dtype=np.int64)
        a = np.zeros((34, 34))
        a[edges[:, 1], edges[:, 0]] = 1
        known = np.zeros(34)
        known[[0, 1, 3, 5, 23, 29, 32, 33]] = 1
        arrays = {"x": np.eye(34), "class": np.eye(2)[club], "known": known, **arrays}
        for name, array in arrays.items():
            np.save(self.dir / f"{name}.npy", array.astype(np.float32))
        return a, club, arrays

    def train(self, program, weights, rate, steps):
        path = EXAMPLES / f"{program}.tg"
        inputs = [word for name in ("x", "class", "known") for word in ("--dst", f"{name}={name}.npy")]
        inputs += [word for name in weights for word in ("--param", f"{name}={name}.npy")]
        self.ok(TIGA, "run", path, program, "--graph", EXAMPLES / "data/karate.txt", *inputs, "--param", f"rate={rate}",
                "--param", f"steps={steps}", "-o", "z=z.npy", "-o", "loss=loss.npy", "-o", "W1=W1_.npy", "-o", "W2=W2_.npy")
        return [np.load(self.dir / name) for name in ("z.npy", "loss.npy", "W1_.npy", "W2_.npy")]

    @staticmethod
    def cross_entropy(z, want, known):
        """The loss and its gradient by the scores."""
        p = np.exp(z - z.max(1, keepdims=True))
        total = p.sum(1)
        p /= total[:, None]
        loss = (known * (z.max(1) + np.log(total) - (z * want).sum(1))).sum() / known.sum()
        return loss, known[:, None] * (p - want) / known.sum()

    def test_gcn_train(self):
        rng = np.random.default_rng(5)
        weights = {"W1": rng.normal(size=(34, 8)) * 0.3, "b1": np.zeros(8), "W2": rng.normal(size=(8, 2)) * 0.3, "b2": np.zeros(2)}
        a, club, arrays = self.karate(**weights)
        z, loss, have1, have2 = self.train("gcn_train", weights, 0.5, 100)
        # Backpropagation by hand, with dense matrices in f64.
        s = a + np.eye(34)
        d = 1 / np.sqrt(s.sum(1))
        s = d[:, None] * s * d
        w1, b1, w2, b2 = weights.values()
        losses = []
        for step in range(101):
            before = s @ w1 + b1
            hidden = np.maximum(before, 0)
            scores = s @ hidden @ w2 + b2
            value, dz = self.cross_entropy(scores, arrays["class"], arrays["known"])
            losses.append(value)
            if step == 100:
                break
            dhidden = (s.T @ dz @ w2.T) * (before > 0)
            w1, b1, w2, b2 = (w1 - 0.5 * (s.T @ dhidden), b1 - 0.5 * dhidden.sum(0), w2 - 0.5 * (hidden.T @ s.T @ dz),
                              b2 - 0.5 * dz.sum(0))
        np.testing.assert_allclose(loss, losses[-1], rtol=1e-3)
        np.testing.assert_allclose(z, scores, atol=2e-3)
        np.testing.assert_allclose(have1, w1, atol=1e-3)
        np.testing.assert_allclose(have2, w2, atol=1e-3)
        self.assertLess(losses[-1], losses[0] / 10)
        self.assertGreaterEqual((z.argmax(1) == club).sum(), 32)

    def test_gat_train(self):
        heads, f = 2, 4
        rng = np.random.default_rng(6)
        weights = {"W1": rng.normal(size=(heads, f, 34)) * 0.3, "s1": rng.normal(size=(heads, f)) * 0.3,
                   "d1": rng.normal(size=(heads, f)) * 0.3, "W2": rng.normal(size=(2, heads, f)) * 0.3,
                   "s2": rng.normal(size=2) * 0.3, "d2": rng.normal(size=2) * 0.3}
        a, club, arrays = self.karate(**weights)
        z, loss, have1, have2 = self.train("gat_train", weights, 0.2, 60)

        def attend(h, source, target):
            """Scores of all pairs, softmax over the neighbours; what the backward pass needs."""
            e = target[:, None] + source[None, :]
            s = np.where(e > 0, e, 0.2 * e)
            p = np.where(a > 0, np.exp(s - np.where(a > 0, s, -np.inf).max(1, keepdims=True)), 0)
            p /= p.sum(1, keepdims=True)
            return p @ h, (p, e, h)

        def attend_back(dout, kept):
            p, e, h = kept
            dp = dout @ h.T
            de = p * (dp - (p * dp).sum(1, keepdims=True)) * np.where(e > 0, 1, 0.2)
            return p.T @ dout, de.sum(0), de.sum(1)

        w = {k: v.astype(np.float64) for k, v in weights.items()}
        losses = []
        for step in range(61):
            h = np.einsum("hfk,nk->hnf", w["W1"], arrays["x"])
            parts = [attend(h[i], h[i] @ w["s1"][i], h[i] @ w["d1"][i]) for i in range(heads)]
            before = np.stack([out for out, _ in parts])  # [H, N, F]
            hidden = np.where(before > 0, before, np.expm1(before))
            h2 = np.einsum("chf,hnf->nc", w["W2"], hidden)
            scores, kept = attend(h2, h2 @ w["s2"], h2 @ w["d2"])
            value, dz = self.cross_entropy(scores, arrays["class"], arrays["known"])
            losses.append(value)
            if step == 60:
                break
            dh2, dsource, dtarget = attend_back(dz, kept)
            g = {"s2": h2.T @ dsource, "d2": h2.T @ dtarget}
            dh2 = dh2 + np.outer(dsource, w["s2"]) + np.outer(dtarget, w["d2"])
            g["W2"] = np.einsum("nc,hnf->chf", dh2, hidden)
            dbefore = np.einsum("nc,chf->hnf", dh2, w["W2"]) * np.where(before > 0, 1, np.exp(before))
            g["W1"], g["s1"], g["d1"] = (np.zeros_like(w[k]) for k in ("W1", "s1", "d1"))
            for i in range(heads):
                dh, dsource, dtarget = attend_back(dbefore[i], parts[i][1])
                g["s1"][i], g["d1"][i] = h[i].T @ dsource, h[i].T @ dtarget
                dh = dh + np.outer(dsource, w["s1"][i]) + np.outer(dtarget, w["d1"][i])
                g["W1"][i] = dh.T @ arrays["x"]
            w = {k: v - 0.2 * g[k] for k, v in w.items()}
        np.testing.assert_allclose(loss, losses[-2], rtol=2e-3)  # of the last step, before it
        np.testing.assert_allclose(z, scores, atol=5e-3)
        np.testing.assert_allclose(have1, w["W1"], atol=2e-3)
        np.testing.assert_allclose(have2, w["W2"], atol=2e-3)
        self.assertLess(losses[-1], losses[0] / 2)


if __name__ == "__main__":
    unittest.main()
