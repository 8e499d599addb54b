"""The gradient of every example that has one, against central differences, in f64.

The text is that of examples/, with f64 for f32 and an `export vjp` behind it.  Loops run a fixed number of rounds, few enough that
nothing has converged: a loop that ends by itself would end elsewhere beside it."""
import unittest

from support import SOURCE, np, tg

NODES, STEP = 9, 1e-6


def in_f64(name):
    text = (SOURCE / "examples" / f"{name}.tg").read_text()
    for old, new in [("f32", "f64"), ("= inf", "= f64(inf)"), ("fill(0.0,", "fill(f64(0),")]:
        text = text.replace(old, new)
    return text


@unittest.skipUnless(np, "needs numpy")
class ExampleGradients(unittest.TestCase):
    def setUp(self):
        """A graph in which every node is reached, some edges stand twice, and one row is long."""
        self.rng = np.random.default_rng(6)
        ends = {(i, (i + k) % NODES) for i in range(NODES) for k in (1, 8)} | {(2, j) for j in range(NODES)}
        ends |= {(j, i) for i, j in ends}
        ends = sorted(ends | {(i, i) for i in range(NODES)}) + [(4, 1), (7, 3)]
        ends.sort()
        self.dst, self.src = np.array([i for i, _ in ends]), np.array([j for _, j in ends])
        offsets = np.searchsorted(self.dst, np.arange(NODES + 1))
        self.graph = tg.Graph.from_csr(offsets.astype(np.int64), self.src.astype(np.int64), NODES)
        self.edges = len(ends)

    def random(self, *shape):
        return self.rng.uniform(0.5, 1.5, shape)

    def check(self, file, name, wrt, probes=6, **inputs):
        module = tg.compile(in_f64(file) + f"\nexport vjp {name}({', '.join(wrt)})\n")
        function = getattr(module, name)

        def results():
            out = function(self.graph, **inputs)
            named = {"": out} if isinstance(out, (float, np.ndarray, np.floating)) else out._asdict()
            return {k: v for k, v in ((k, np.asarray(v)) for k, v in named.items()) if v.dtype == np.float64}

        weights = {k: self.rng.standard_normal(v.shape) for k, v in results().items()}
        cotangents = {"cotangent" + ("_" + k if k else ""): v for k, v in weights.items()}
        grads = function.vjp(self.graph, **inputs, **cotangents)
        grads = {wrt[0]: grads} if len(wrt) == 1 else grads._asdict()
        self.assertEqual(list(grads), wrt)
        for x in wrt:
            value = np.array(inputs[x])
            for i in self.rng.permutation(value.size)[:probes]:
                sides = []
                for h in (STEP, -STEP):
                    moved = value.copy()
                    moved.flat[i] += h
                    inputs[x] = moved
                    sides.append(sum(float((weights[k] * v).sum()) for k, v in results().items()))
                inputs[x] = value
                want, got = (sides[0] - sides[1]) / (2 * STEP), np.asarray(grads[x]).flat[i]
                self.assertLessEqual(abs(want - got), 1e-6 * (1 + abs(want) + abs(sides[0])), f"{name}: d{x}[{i}] {got} {want}")

    def matrix(self):
        """Symmetric and positive definite on the edges of the graph, twice the same for an edge that stands twice."""
        a = np.where(self.src == self.dst, 20.0, -1 - 0.1 * np.minimum(self.src, self.dst) - 0.01 * np.maximum(self.src, self.dst))
        return a, np.where(self.src == self.dst, 0.0, a)

    def test_solvers(self):
        a, beside = self.matrix()
        rounds = {"tol": 0.0, "limit": 4}
        self.check("solvers", "cg", ["a", "b"], a=a, b=self.random(NODES), **rounds)
        self.check("solvers", "bicgstab", ["a", "b"], a=a, b=self.random(NODES), **rounds)
        self.check("solvers", "jacobi", ["a", "diagonal", "b"], a=beside, diagonal=20 + self.random(NODES), b=self.random(NODES), **rounds)
        self.check("picard", "picard", ["w", "mass", "f", "omega"], w=self.random(self.edges), mass=self.random(NODES), f=self.random(NODES),
                   omega=0.7, **rounds)

    def test_walks(self):
        degree = np.bincount(self.src, minlength=NODES) + self.random(NODES)
        self.check("pagerank", "pagerank", ["outdeg", "d"], outdeg=degree, d=0.85, rounds=7)
        self.check("random_walk", "random_walk", ["x"], x=self.random(NODES, 3), k=5)
        self.check("label_propagation", "spread", ["seed", "alpha"], seed=self.random(NODES, 2), alpha=0.8, rounds=6)
        self.check("stencil", "stencil_mean", ["x"], x=self.random(NODES))
        start = np.full(NODES, np.inf)
        start[5] = 0
        self.check("bellman_ford", "bellman_ford", ["w"], probes=20, w=self.random(self.edges), start=start)

    def test_layers(self):
        k, h, c = 4, 3, 2
        r = self.random
        self.check("gcn", "gcn", ["x", "W1", "b1", "W2", "b2"], x=r(NODES, k), W1=r(h, k), b1=r(h), W2=r(c, h), b2=r(c))
        self.check("gat", "gat", ["x", "W1", "s1", "d1", "W2", "s2", "d2"], x=r(NODES, k), W1=r(2, h, k) - 1, s1=r(2, h), d1=r(2, h) - 1,
                   W2=r(c, 2, h) - 1, s2=r(c), d2=r(c))
        mlp = {"pos": r(NODES, 3), "x": r(NODES, 16), "W1": r(19, h) - 1, "b1": r(h)}
        self.check("edge_mlp", "message_extent", list(mlp), **mlp)

    def test_training(self):
        """Through three steps of gradient descent: second gradients of everything that a step consists of."""
        k, h, c = 4, 3, 2
        r = self.random
        known = np.zeros(NODES)
        known[::2] = 1
        data = {"x": r(NODES, k), "class_": np.eye(c)[np.arange(NODES) % c], "known": known, "rate": 0.3, "steps": 3}
        self.check("gcn_train", "gcn_train", ["x", "W1", "b1", "W2", "b2", "rate"], W1=r(k, h), b1=r(h), W2=r(h, c), b2=r(c), **data)
        self.check("gat_train", "gat_train", ["x", "W1", "s1", "d1", "W2", "s2", "d2", "rate"], W1=r(2, h, k) - 1, s1=r(2, h), d1=r(2, h) - 1,
                   W2=r(c, 2, h) - 1, s2=r(c), d2=r(c), **data)


if __name__ == "__main__":
    unittest.main()
