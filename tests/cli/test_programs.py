"""Examples that are programs: solvers, walks, labels, paths, networks. Each against SciPy, a plain loop, or a published number."""
import unittest

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg
from scipy.sparse import csgraph

from cli import SOURCE, TIGA, TIGAC, CliTest

EXAMPLES = SOURCE / "examples"


def matrix(n, degree, seed, symmetric=False):
    """Random edges without loops; row i has the edges that come in at i."""
    a = sp.random(n, n, density=degree / n, random_state=seed, dtype=np.float32)
    a.setdiag(0)
    a = sp.csr_matrix(a + a.T if symmetric else a)
    a.eliminate_zeros()
    a.sort_indices()
    return a


class Programs(CliTest):
    def run_example(self, file, function, graph, results, threads=None, **fields):
        """fields: ROLE_NAME = array, number or text; results: names, "" for the one without a name."""
        sp.save_npz(self.dir / "g.npz", sp.csr_matrix(graph))
        args = [EXAMPLES / file, function, "--graph", "g.npz"]
        for field, value in fields.items():
            role, name = field.split("_", 1)
            if isinstance(value, np.ndarray):
                np.save(self.dir / f"in_{name}.npy", value)
                value = f"in_{name}.npy"
            args += [f"--{role}", f"{name}={value}"]
        for r in results:
            args += ["-o", f"{r}={r}.npy" if r else "out.npy"]
        self.ok(TIGA, "run", *args, *(["--threads", threads] if threads else []))
        return [np.load(self.dir / f"{r or 'out'}.npy") for r in results]

    # ---- networks on edges ----
    def test_edge_mlp(self):
        n, f, rng = 60, 24, np.random.default_rng(3)
        a = matrix(n, 5, 2)
        pos, x, w1, b1, w2 = (rng.standard_normal(s, dtype=np.float32)
                              for s in ((n, 3), (n, 16), (19, f), (f,), (f, f)))
        rows = np.repeat(np.arange(n), np.diff(a.indptr))
        hidden = np.maximum(np.hstack([pos[a.indices] - pos[rows], x[a.indices]]) @ w1 + b1, 0)
        fields = dict(node_pos=pos, src_x=x, param_W1=w1, param_b1=b1)
        want = np.zeros((n, f))
        np.add.at(want, rows, hidden @ w2)
        got, = self.run_example("edge_mlp.tg", "edge_mlp", a, [""], param_W2=w2, **fields)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-3)
        low, high = np.full((n, f), np.inf), np.full((n, f), -np.inf)
        np.minimum.at(low, rows, hidden)
        np.maximum.at(high, rows, hidden)
        got, = self.run_example("edge_mlp.tg", "message_extent", a, [""], **fields)
        np.testing.assert_allclose(got, np.where(np.isinf(low), 0, high - low), rtol=1e-4, atol=1e-4)

    # ---- solvers ----
    def test_poisson(self):
        n, h = 7, 1 / 8
        a = sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], (n, n), format="csr", dtype=np.float32) / np.float32(h * h)
        x, residual, rounds = self.run_example("solvers.tg", "cg", a, ["x", "residual", "rounds"], edge_a="@",
                                               dst_b=np.ones(n, np.float32), param_tol=1e-6, param_limit=100)
        at = np.arange(1, n + 1) * h
        np.testing.assert_allclose(x, at * (1 - at) / 2, rtol=1e-5)
        self.assertLessEqual(rounds, 7)
        self.assertLess(residual, 1e-5)

    def test_cg(self):
        n = 300
        a = matrix(n, 6, 1, symmetric=True)
        a = sp.csr_matrix(a + sp.diags(np.asarray(a.sum(axis=1)).ravel() + 1), dtype=np.float32)
        b = np.random.default_rng(1).standard_normal(n, dtype=np.float32)
        want = sp.linalg.spsolve(sp.csc_matrix(a, dtype=np.float64), b.astype(np.float64))
        for threads in (1, 3):
            x, residual, rounds = self.run_example("solvers.tg", "cg", a, ["x", "residual", "rounds"], threads, edge_a="@",
                                                   dst_b=b, param_tol=1e-6, param_limit=500)
            np.testing.assert_allclose(x, want, atol=2e-5)
            self.assertLess(residual, 1e-6 * np.linalg.norm(b) * 1.01)
            self.assertTrue(2 < rounds < 100)
        _, _, rounds = self.run_example("solvers.tg", "cg", a, ["x", "residual", "rounds"], edge_a="@", dst_b=b,
                                        param_tol=1e-6, param_limit=3)
        self.assertEqual(rounds, 3)

    def test_bicgstab(self):
        n = 200
        a = matrix(n, 6, 2)
        a = sp.csr_matrix(a + sp.diags(np.asarray(a.sum(axis=1)).ravel() + 1), dtype=np.float32)
        b = np.random.default_rng(2).standard_normal(n, dtype=np.float32)
        want = sp.linalg.spsolve(sp.csc_matrix(a, dtype=np.float64), b.astype(np.float64))
        x, residual, rounds = self.run_example("solvers.tg", "bicgstab", a, ["x", "residual", "rounds"], edge_a="@", dst_b=b,
                                               param_tol=1e-5, param_limit=200)
        np.testing.assert_allclose(x, want, atol=1e-4)
        self.assertTrue(2 < rounds < 100)
        x, residual, rounds = self.run_example("solvers.tg", "bicgstab", a, ["x", "residual", "rounds"], edge_a="@",
                                               dst_b=np.zeros(n, np.float32), param_tol=1e-5, param_limit=200)
        self.assertEqual((np.abs(x).max(), residual, rounds), (0, 0, 0))

    def test_jacobi(self):
        n = 250
        a = matrix(n, 5, 3)
        diagonal = (np.asarray(a.sum(axis=1)).ravel() * 2 + 1).astype(np.float32)
        b = np.random.default_rng(3).standard_normal(n, dtype=np.float32)
        x, rounds = self.run_example("solvers.tg", "jacobi", a, ["x", "rounds"], edge_a="@", dst_diagonal=diagonal, dst_b=b,
                                     param_tol=1e-7, param_limit=500)
        want = sp.linalg.spsolve(sp.csc_matrix(a.astype(np.float64) + sp.diags(diagonal.astype(np.float64))), b)
        np.testing.assert_allclose(x, want, atol=1e-5)
        self.assertTrue(3 < rounds < 100)

    def test_picard(self):
        n, omega = 120, 0.7
        a = matrix(n, 4, 4, symmetric=True)
        rng = np.random.default_rng(4)
        mass = (1 + rng.random(n)).astype(np.float32)
        f = (10 * rng.standard_normal(n)).astype(np.float32)
        u, change, rounds = self.run_example("picard.tg", "picard", a, ["u", "change", "rounds"], edge_w="@", dst_mass=mass,
                                             dst_f=f, param_omega=omega, param_tol=1e-5, param_limit=500)
        self.assertLessEqual(change, 1e-5)
        i, j, w = np.repeat(np.arange(n), np.diff(a.indptr)), a.indices, a.data.astype(np.float64)
        v = np.zeros(n)
        for _ in range(int(rounds)):
            k = w / (1 + (v[i] - v[j]) ** 2)
            new = (f + np.bincount(i, k * v[j], n)) / (mass + np.bincount(i, k, n))
            v += omega * (new - v)
        np.testing.assert_allclose(u, v, atol=1e-4)
        d = v[i] - v[j]
        np.testing.assert_allclose(mass * v + np.bincount(i, w / (1 + d * d) * d, n), f, atol=1e-3)

    # ---- ranks, walks, labels, paths ----
    def test_pagerank_of_four_pages(self):
        links = [(0, 1), (0, 2), (1, 2), (2, 0), (3, 2)]  # from, to
        a = sp.csr_matrix((np.ones(5, np.float32), ([t for _, t in links], [s for s, _ in links])), shape=(4, 4))
        r, = self.run_example("pagerank.tg", "pagerank", a, [""], src_outdeg="@outdegree", param_d=0.85, param_rounds=20)
        want = np.full(4, 0.25)
        for _ in range(20):
            new = np.full(4, 0.15 / 4)
            for s, t in links:
                new[t] += 0.85 * want[s] / sum(x == s for x, _ in links)
            want = new
        np.testing.assert_allclose(r, want, rtol=1e-5)
        self.assertAlmostEqual(float(r.sum()), 1, places=5)

    def test_random_walk(self):
        n, k = 80, 5
        a = matrix(n, 3, 5)
        x = np.random.default_rng(5).standard_normal((n, 7), dtype=np.float32)
        last, mean = self.run_example("random_walk.tg", "random_walk", a, ["last", "mean"], dst_x=x, param_k=k)
        degree = np.diff(a.indptr)
        p = sp.diags(np.divide(1, degree, out=np.zeros(n), where=degree > 0)) @ (a != 0).astype(np.float64)
        powers = [x.astype(np.float64)]
        for _ in range(k):
            powers.append(p @ powers[-1])
        np.testing.assert_allclose(last, powers[-1], atol=1e-6)
        np.testing.assert_allclose(mean, sum(powers) / (k + 1), atol=1e-6)

    def test_label_propagation(self):
        n, c, alpha = 90, 3, 0.9
        a = matrix(n, 3, 6, symmetric=True)
        seed = np.zeros((n, c), np.float32)
        seed[np.arange(0, n, 10), np.arange(0, n, 10) // 10 % c] = 1
        y, = self.run_example("label_propagation.tg", "spread", a, [""], dst_seed=seed, param_alpha=alpha, param_rounds=30)
        want = seed.astype(np.float64)
        for _ in range(30):
            around = np.zeros((n, c))
            for i in range(n):
                row = a.indices[a.indptr[i]:a.indptr[i + 1]]
                if len(row):
                    around[i] = want[row].mean(axis=0)
            want = alpha * around + (1 - alpha) * seed
        np.testing.assert_allclose(y, want, atol=1e-6)

    def test_components(self):
        n = 200
        a = matrix(n, 0.7, 7, symmetric=True)
        label, rounds = self.run_example("label_propagation.tg", "components", a, ["label", "rounds"],
                                         dst_label=np.arange(n, dtype=np.int64))
        count, of = csgraph.connected_components(a)
        self.assertEqual(len(set(label)), count)
        for k in range(count):
            self.assertEqual(set(label[of == k]), {np.flatnonzero(of == k).min()})
        self.assertTrue(1 < rounds < n)

    def test_bellman_ford(self):
        n = 150
        a = matrix(n, 3, 8)
        a.data -= np.float32(0.02)  # some negative edges
        start = np.full(n, np.inf, np.float32)
        start[0] = 0
        d, via, settled = self.run_example("bellman_ford.tg", "bellman_ford", a, ["d", "via", "settled"], edge_w="@",
                                           dst_start=start)
        want = csgraph.bellman_ford(sp.csr_matrix(a.T, dtype=np.float64), indices=0)
        self.assertTrue(settled)
        np.testing.assert_allclose(d, want, atol=1e-5)
        self.assertTrue(np.isinf(want).any() and a.data.min() < 0)
        for i in np.flatnonzero(via >= 0):
            self.assertAlmostEqual(float(d[via[i]] + a[i, via[i]]), float(d[i]), places=5)
        self.assertTrue(((via >= 0) == np.isfinite(d))[1:].all())
        loop = sp.csr_matrix(np.array([[0, -1], [0.5, 0]], np.float32))
        _, _, settled = self.run_example("bellman_ford.tg", "bellman_ford", loop, ["d", "via", "settled"], edge_w="@",
                                         dst_start=np.array([0, np.inf], np.float32))
        self.assertFalse(settled)

    def test_stencil(self):
        n = 5
        cells = np.arange(n * n).reshape(n, n)
        around = [cells, np.roll(cells, 1, 0), np.roll(cells, -1, 0), np.roll(cells, 1, 1), np.roll(cells, -1, 1)]
        to = np.tile(cells.ravel(), 5)
        a = sp.csr_matrix((np.ones(125, np.float32), (to, np.concatenate([c.ravel() for c in around]))))
        out, = self.run_example("stencil.tg", "stencil_mean", a, [""], src_x=np.arange(25, dtype=np.float32))
        self.assertEqual(out.reshape(n, n)[2, 2], 12.0)
        self.assertEqual(out.reshape(n, n)[0, 0], 6.0)

    # ---- fusion ----
    def test_fusion_keeps_every_bit(self):
        self.write("fused.tg", """
kernel total(src x: f32[4], edge w: f32[4]) -> f32[4] { return reduce sum(edge.w * src.x) }
kernel count(src x: f32[4]) -> (n: i64, most: f32) { return (n = reduce count(), most = reduce max(max(src.x))) }
kernel scores(src a: f32[4], dst b: f32[4], dst n: f32) -> edge f32[4] { return (src.a + dst.b) * dst.n }

program p(g: graph, x: f32[g.dst, 4], W: f32[4, 3], e: f32[g.edge, 4], U: f32[4, 4])
    -> (y: f32[g.dst, 3], t: f32[g.dst, 4], s: f32[g.edge, 2], z: f32[g.dst, 4]) {
    let y = relu(total(g, x = x, w = e) @ W)
    let t = total(g, x = reshape(transpose(reshape(x, [g.dst, 2, 2])), [g.dst, 4]), w = e)
    let (n, most) = count(g, x = 2 * x)
    let s = scores(g, a = x @ U, b = x @ U, n = f32(n) + exp(most))
    return (y = y, t = t, s = slice(s, 1, 3), z = total(g, x = -x, w = cumsum(e @ U)))
}
""")
        plan = self.ok(TIGAC, "fused.tg", "--explain-plan")
        for kernel in ("total", "count", "scores"):
            self.assertIn(f"made of {kernel}", plan)
        a, rng = matrix(60, 4, 11), np.random.default_rng(11)
        sp.save_npz(self.dir / "g.npz", a)
        for name, shape in [("x", (60, 4)), ("W", (4, 3)), ("e", (a.nnz, 4)), ("U", (4, 4))]:
            np.save(self.dir / f"{name}.npy", rng.standard_normal(shape, dtype=np.float32))
        for level in "02":
            self.ok(TIGA, "run", "fused.tg", "p", "-O" + level, "--graph", "g.npz", "--dst", "x=x.npy", "--edge", "e=e.npy",
                    "--param", "W=W.npy", "--param", "U=U.npy", *[w for r in "ytsz" for w in ("-o", f"{r}={r}{level}.npy")])
        for r in "ytsz":
            plain, fused = (np.load(self.dir / f"{r}{level}.npy") for level in "02")
            np.testing.assert_array_equal(plain, fused)

    def test_what_is_the_same_in_each_round_is_computed_once(self):
        self.write("fixed.tg", """
kernel degree() -> f32 { return f32(reduce count()) }
kernel total[F](src x: f32[F], edge w: f32) -> f32[F] { return reduce sum(edge.w * src.x) }
kernel near[F](node k: f32[F]) -> edge f32 { return 1 / (1 + dot(src.k - dst.k, src.k - dst.k)) }

program inside(g: graph, x: f32[g.dst, 5], W: f32[5, 70], w: f32[g.edge], rounds: i64) -> f32[g.dst, 70] {
    var h = fill(0.0, [g.dst, 70])
    repeat rounds {
        let norm = 1 / sqrt(degree(g) + 1)
        let h0 = tanh(x @ W)
        let s = near(g, k = x)
        let side = total(g, x = h0, w = w)
        h = 0.8 * total(g, x = h, w = s) * reshape(norm, [g.dst, 1]) + 0.2 * h0 + side / (1 + sum(h0 * h0))
    }
    return h
}

program outside(g: graph, x: f32[g.dst, 5], W: f32[5, 70], w: f32[g.edge], rounds: i64) -> f32[g.dst, 70] {
    let norm = 1 / sqrt(degree(g) + 1)
    let h0 = tanh(x @ W)
    let s = near(g, k = x)
    let side = total(g, x = h0, w = w)
    let lost = 1 + sum(h0 * h0)
    var h = fill(0.0, [g.dst, 70])
    repeat rounds {
        h = 0.8 * total(g, x = h, w = s) * reshape(norm, [g.dst, 1]) + 0.2 * h0 + side / lost
    }
    return h
}
""")
        plan = self.ok(TIGAC, "fixed.tg", "--explain-plan").split("program inside\n")[1].split("\nprogram")[0]
        for kernel in ("degree", "matmul", "total", "near"):
            self.assertIn(f"once, in front of the rounds: {kernel}", plan)
        self.assertEqual(plan.split("  repeat\n")[1].count("walk"), 1)
        a, rng = matrix(60, 4, 13), np.random.default_rng(13)
        sp.save_npz(self.dir / "g.npz", a)
        for name, shape in [("x", (60, 5)), ("W", (5, 70)), ("w", a.nnz)]:
            np.save(self.dir / f"{name}.npy", rng.standard_normal(shape, dtype=np.float32))
        for program, level, rounds in [(p, o, r) for p in ("inside", "outside") for o in "02" for r in "03"]:
            self.ok(TIGA, "run", "fixed.tg", program, "-O" + level, "--graph", "g.npz", "--dst", "x=x.npy", "--edge", "w=w.npy",
                    "--param", "W=W.npy", "--param", "rounds=" + rounds, "-o", f"{program}{level}{rounds}.npy")
        for rounds in "03":
            want = np.load(self.dir / f"outside0{rounds}.npy")
            self.assertEqual(bool(want.any()), rounds == "3")
            for other in ("inside0", "inside2", "outside2"):
                np.testing.assert_array_equal(np.load(self.dir / f"{other}{rounds}.npy"), want)

    def test_totals_follow_the_rows_that_they_add_up(self):
        self.write("totals.tg", """
kernel spread(src x: f32, edge w: f32) -> f32 { return reduce sum(edge.w * src.x) }
program p(g: graph, x: f32[g.dst], w: f32[g.edge], rounds: i64) -> (x: f32[g.dst], t: f32, m: f32) {
    var v = x
    var t = f32(0)
    var m = f32(0)
    repeat rounds {
        let y = spread(g, x = v, w = w)
        t = dot(v, y)
        let z = (y + t) / (1 + abs(y))
        m = max(abs(z - v))
        v = z
    }
    return (x = v, t = t, m = m)
}
""")
        self.ok(TIGAC, "totals.tg", "--emit=task-ir", "-o", "with.ir")
        text = (self.dir / "with.ir").read_text()
        self.assertEqual(text.count("ahead = 1"), 2)
        self.write("without.ir", text.replace(", ahead = 1", ""))
        self.assertEqual(self.ok(TIGAC, "totals.tg", "--explain-plan").count("block by block"), 2)
        for name in ("with", "without"):
            self.ok(TIGAC, f"{name}.ir", "--passes=", "-o", f"{name}.so")
        for n in (300, 150000):
            rng = np.random.default_rng(n)
            a = sp.coo_matrix((rng.random(4 * n, dtype=np.float32), (rng.integers(0, n, 4 * n), rng.integers(0, n, 4 * n))))
            sp.save_npz(self.dir / "g.npz", sp.csr_matrix(a, shape=(n, n)))
            np.save(self.dir / "x.npy", np.random.default_rng(n).standard_normal(n, dtype=np.float32))
            results = []
            for module, threads in (("without.so", 1), ("with.so", 1), ("with.so", 2), ("with.so", 5), ("totals.tg", 3)):
                self.ok(TIGA, "run", module, "p", "--graph", "g.npz", "--dst", "x=x.npy", "--edge", "w=@", "--param", "rounds=3",
                        "--threads", threads, *[o for r in "xtm" for o in ("-o", f"{r}={r}.out.npy")])
                results.append([np.load(self.dir / f"{r}.out.npy") for r in "xtm"])
            for other in results[1:]:
                for got, want in zip(other, results[0]):
                    np.testing.assert_array_equal(got, want)

    def test_reducers_of_the_user_share_a_walk(self):
        self.write("walks.tg", """
reducer middle[F](x: f32[F]) -> f32[F] {
    state    s: f32[F] = 0, n: f32 = 0
    lift     (x, 1)
    combine  (a.s + b.s, a.n + b.n)
    finalize s / n
}
reducer spread[F](x: f32[F]) -> f32[F] {
    state    low: f32[F] = inf, high: f32[F] = -inf
    lift     (x, x)
    combine  (min(a.low, b.low), max(a.high, b.high))
    finalize high - low
}
kernel mine[F](src x: f32[F]) -> f32[F] { return reduce middle(src.x, empty = 0) }
kernel yours[F](src x: f32[F], edge w: f32) -> f32[F] { return reduce spread(edge.w * src.x, empty = 0) }
kernel total[F](src x: f32[F], edge w: f32) -> f32[F] { return reduce sum(edge.w * src.x) }

program p[F](g: graph, x: f32[g.dst, F], w: f32[g.edge]) -> (a: f32[g.dst, F], b: f32[g.dst, F], c: f32[g.dst, F]) {
    return (a = mine(g, x = x) + x, b = yours(g, x = x, w = w), c = total(g, x = x, w = w))
}
""")
        program = self.ok(TIGAC, "walks.tg", "--explain-plan").split("program p\n")[1]
        self.assertEqual(program.count("walk for each"), 1)
        self.assertNotIn("not fused", program)
        a, rng = matrix(60, 4, 12), np.random.default_rng(12)
        sp.save_npz(self.dir / "g.npz", a)
        np.save(self.dir / "x.npy", rng.standard_normal((60, 70), dtype=np.float32))
        np.save(self.dir / "w.npy", rng.standard_normal(a.nnz, dtype=np.float32))
        for level in "02":
            self.ok(TIGA, "run", "walks.tg", "p", "-O" + level, "--graph", "g.npz", "--dst", "x=x.npy", "--edge", "w=w.npy",
                    *[w for r in "abc" for w in ("-o", f"{r}={r}{level}.npy")])
        for r in "abc":
            plain, fused = (np.load(self.dir / f"{r}{level}.npy") for level in "02")
            np.testing.assert_array_equal(plain, fused)

    # ---- networks ----
    def test_gcn(self):
        n, k, h, c = 60, 8, 6, 3
        a = matrix(n, 4, 9)
        rng = np.random.default_rng(9)
        x, w1, b1, w2, b2 = (rng.standard_normal(s, dtype=np.float32) for s in [(n, k), (h, k), h, (c, h), c])
        out, = self.run_example("gcn.tg", "gcn", a, [""], dst_x=x, param_W1=w1, param_b1=b1, param_W2=w2, param_b2=b2)
        d = sp.diags(1 / np.sqrt(np.diff(a.indptr) + 1.0))
        p = d @ ((a != 0).astype(np.float64) + sp.eye(n)) @ d
        hidden = np.maximum(p @ (x @ w1.T.astype(np.float64)) + b1, 0)
        np.testing.assert_allclose(out, p @ (hidden @ w2.T) + b2, atol=2e-5)

    def test_gat(self):
        n, k, h, f, c = 50, 6, 3, 4, 5
        a = sp.csr_matrix(matrix(n, 4, 10) + sp.eye(n), dtype=np.float32)
        rng = np.random.default_rng(10)
        shapes = {"x": (n, k), "W1": (h, f, k), "s1": (h, f), "d1": (h, f), "W2": (c, h, f), "s2": (c,), "d2": (c,)}
        v = {name: rng.standard_normal(s, dtype=np.float32) for name, s in shapes.items()}
        out, = self.run_example("gat.tg", "gat", a, [""], **{("dst_" if s == "x" else "param_") + s: v[s] for s in v})

        def attend(z, s, d):  # z [n, heads, features]
            y = np.zeros_like(z)
            for i in range(n):
                row = a.indices[a.indptr[i]:a.indptr[i + 1]]
                score = (z[row] * s).sum(-1) + (z[i] * d).sum(-1)
                score = np.where(score > 0, score, 0.2 * score)
                p = np.exp(score - score.max(axis=0))
                y[i] = ((p / p.sum(axis=0))[:, :, None] * z[row]).sum(axis=0)
            return y

        v = {name: array.astype(np.float64) for name, array in v.items()}
        hidden = attend(np.einsum("hfk,nk->nhf", v["W1"], v["x"]), v["s1"], v["d1"])
        hidden = np.where(hidden > 0, hidden, np.expm1(hidden))
        want = attend(np.einsum("chf,nhf->nc", v["W2"], hidden)[:, None, :], v["s2"], v["d2"])[:, 0]
        np.testing.assert_allclose(out, want, atol=1e-4)


if __name__ == "__main__":
    unittest.main()
