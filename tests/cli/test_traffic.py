"""What a call says that it moved (tiga run --stats) against what the plan says that it would (tigac --explain-plan).

The plan counts what is read for each edge and each row; a call counts every array of a launch once.  So both name the same
arrays, and the figures of a call follow from those of the plan and the sizes of the arrays."""
import re
import unittest

import numpy as np

from cli import TIGA, TIGAC, CliTest

N, M, F = 60, 45, 5  # rows, sources
TEXT = """
kernel weighted[F](src x: f32[F], edge w: f32) -> f32[F] { return reduce sum(edge.w * src.x) }
kernel average[F](src x: f32[F]) -> f32[F] { return reduce mean(src.x) }
kernel largest[F](src x: f32[F]) -> f32[F] { return reduce max(src.x) }
kernel soft[F](src x: f32[F], edge s: f32) -> f32[F] { return reduce softmax(edge.s, src.x) }
kernel attend[F](src x: f32[F], src a: f32, dst b: f32) -> f32[F] { return reduce softmax(leaky_relu(src.a + dst.b, 0.2), src.x) }
kernel scores[F](src x: f32[F], dst q: f32[F]) -> edge f32 { return dot(src.x, dst.q) }
kernel of_edges(edge w: f32) -> f32 { return reduce sum(edge.w) }
kernel degree() -> i64 { return reduce count() }
kernel no_walk[F](dst q: f32[F]) -> f32[F] { return 2 * dst.q }
export vjp weighted(x, w)
export vjp average(x)
export vjp largest(x)
export vjp soft(x, s)
export vjp attend(x, a, b)
export vjp scores(x, q)
export vjp of_edges(w)
"""
EDGE_FIELDS = {"w", "s", "d_w", "d_s", "edge"}
ARGUMENTS = {"w", "s"}


class Traffic(CliTest):
    def setUp(self):
        super().setUp()
        r = np.random.default_rng(1)
        rows, columns = r.integers(0, N, 400), r.integers(0, M, 400)
        lines = "".join(f"{i + 1} {j + 1} {v}\n" for i, j, v in zip(rows, columns, r.random(400)))
        self.write("g.mtx", f"%%MatrixMarket matrix coordinate real general\n{N} {M} 400\n{lines}")
        self.edges = 400
        self.write("t.tg", TEXT)
        self.plan = self.ok(TIGAC, "t.tg", "--explain-plan")
        self.ok(TIGAC, "t.tg", "-o", "t.so")
        for name, shape in {"x": (M, F), "q": (N, F), "cotangent": (N, F), "a": (M,), "b": (N,), "one": (N,)}.items():
            np.save(self.dir / f"{name}.npy", r.random(shape, np.float32))

    def predicted(self, name):
        """(bytes, words) of a function: each array of each launch once."""
        text = re.search(rf"^(?:kernel|program) {name}\n((?:  .*\n)*)", self.plan, re.M)[1]
        total, said = 0, ""
        for launch in re.split(r"^  (?=\S)", text, flags=re.M)[1:]:
            rows = M if "by_source" in launch else N
            winners = "by_winner" in launch  # goes over the rows, writes to the sources; reads the rest where edges tie
            arrays = {"x": 4 * F * M, "out": 4 * F * N} if winners else {}
            for line in launch.splitlines()[1:]:
                per_edge = re.match(r"\s+walk.* bytes per edge: (.*)", line)
                begins = re.match(r"\s+(\w+) begins as a copy of (\w+)", line)
                if begins:  # read in its place; copied there if it is needed elsewhere
                    arrays["begin"] = arrays[begins[1]]
                    arrays["copy"] = 2 * arrays[begins[1]] if begins[2] in ARGUMENTS else 0
                per_row = re.match(r"\s+rows.* bytes per row: (.*)", line)
                for part in (per_edge or per_row)[1].split(" + ") if per_edge or per_row else ():
                    n, of_features, what = re.match(r"(\d+)( F)? \((.*)\)", part).groups()
                    n = int(n) * (F if of_features else 1)
                    if what in ("column", "edge number"):
                        arrays[what] = n * self.edges
                    elif what == "offset":
                        arrays[what] = n * (rows + 1)
                    elif winners and what == "d_x":
                        arrays[what] = n * M
                    else:
                        other = N if rows == M else M
                        count = self.edges if what in EDGE_FIELDS or (name, what) in self.edge_values else other if per_edge else rows
                        arrays[what] = n * count
            total += sum(arrays.values())
            said += f"{launch.split()[0]}: {arrays}\n"
        return total, said

    def check(self, name, *fields, results=(), edge_values=()):
        self.edge_values = {(name, v) for v in edge_values}
        outs = [word for r in results for word in ("-o", f"{r}={r}.npy")] or ["-o", "out.npy"]
        stats = self.stats("t.so", name, "--graph", "g.mtx", *fields, *outs)
        want, said = self.predicted(name)
        self.assertEqual(stats["bytes_read"] + stats["bytes_written"], want, f"{stats}\n{said}")

    def test_forward(self):
        x = ["--src", "x=x.npy"]
        self.check("weighted", *x, "--edge", "w=@")
        self.check("average", *x)
        self.check("largest", *x)
        self.check("soft", *x, "--edge", "s=@")
        self.check("attend", *x, "--src", "a=a.npy", "--dst", "b=b.npy")
        self.check("scores", *x, "--dst", "q=q.npy", edge_values=["out"])
        self.check("of_edges", "--edge", "w=@")
        self.check("degree")
        self.check("no_walk", "--dst", "q=q.npy")

    def test_gradients(self):
        x, back = ["--src", "x=x.npy"], ["--dst", "cotangent=cotangent.npy"]
        self.check("weighted_vjp", *x, *back, "--edge", "w=@", results=["x", "w"])
        self.check("average_vjp", *x, *back)
        self.check("largest_vjp", *x, *back)
        self.check("soft_vjp", *x, *back, "--edge", "s=@", results=["x", "s"])
        self.check("attend_vjp", *x, *back, "--src", "a=a.npy", "--dst", "b=b.npy", results=["x", "a", "b"])
        self.check("scores_vjp", *x, "--edge", "cotangent=@", "--dst", "q=q.npy", results=["x", "q"], edge_values=["cotangent"])
        self.check("of_edges_vjp", "--edge", "w=@", "--dst", "cotangent=one.npy")


if __name__ == "__main__":
    unittest.main()
