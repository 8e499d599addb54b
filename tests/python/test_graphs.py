"""Graphs: making, files, generators, what they hold alive, and what they refuse."""
import gc
import os
import tempfile
import unittest
import weakref

from support import OFFSETS, SOURCES, W, X, Y, array, f32, folder, module, needs_numpy, np, tg, triangle

try:
    import scipy.sparse as sp
except ImportError:
    sp = None


def listed(values):
    return values.tolist()


class Making(unittest.TestCase):
    def test_rows(self):
        g = tg.Graph.from_csr(OFFSETS, SOURCES)
        self.assertEqual((g.n_dst, g.n_src, g.n_edges), (3, 3, 5))
        self.assertEqual((listed(g.offsets), listed(g.sources)), (OFFSETS, SOURCES))
        self.assertIsNone(g.edge_order)
        self.assertIsNone(g.values)
        self.assertEqual(tg.Graph.from_csr([0, 1], [6], 7).n_src, 7)
        self.assertEqual(tg.Graph.from_csr([0, 1], [6], n_src=7).n_src, 7)

    def test_integers_of_any_width(self):
        for letter in "bBhHiIlLqQ":
            g = tg.Graph.from_csr(array(letter, OFFSETS), array(letter, SOURCES))
            self.assertEqual((listed(g.offsets), listed(g.sources)), (OFFSETS, SOURCES), letter)
        g = tg.Graph.from_csr(range(4), range(3))
        self.assertEqual(listed(g.sources), [0, 1, 2])
        g = tg.Graph.from_csr(memoryview(array("q", [0, 9, 1, 9, 2]))[::2], memoryview(array("i", [1, 9, 0, 9]))[::2])
        self.assertEqual(listed(g.sources), [1, 0])

    @needs_numpy
    def test_integers_of_numpy(self):
        for dtype in ("i1", "u2", "i4", "i8", "u8", ">i4", ">i8"):
            g = tg.Graph.from_csr(np.array(OFFSETS, dtype), np.array(SOURCES, dtype))
            self.assertEqual((g.offsets.tolist(), g.sources.tolist()), (OFFSETS, SOURCES), dtype)
        g = tg.Graph.from_csr(np.array(OFFSETS)[::1], np.array([0, 9, 2, 9, 1, 9, 0, 9, 1])[::2])
        self.assertEqual(g.sources.tolist(), SOURCES)
        with self.assertRaisesRegex(ValueError, "'sources' is a uint64 array whose numbers cannot become int64"):
            tg.Graph.from_csr([0, 1], np.array([1 << 63], np.uint64))

    def test_edges(self):
        g = tg.Graph.from_coo([2, 0, 1, 2, 0], [0, 0, 1, 1, 2], 3)
        self.assertEqual((listed(g.offsets), listed(g.sources)), (OFFSETS, SOURCES))
        self.assertEqual(listed(g.edge_order), [1, 4, 2, 0, 3])
        w = [5, 2, 4, 6, 3]
        self.assertEqual(module().plain_sum(g, x=X, w=[w[k] for k in g.edge_order]), Y)
        g = tg.Graph.from_coo([], [], 2, 5)
        self.assertEqual((g.n_dst, g.n_src, g.n_edges, listed(g.edge_order)), (2, 5, 0, []))

    def test_wrong(self):
        F = tg.Graph
        for make, error, words in [
                (lambda: F.from_csr([], []), ValueError, "offsets has no element"),
                (lambda: F.from_csr([1, 2], [0, 0]), ValueError, "offsets begin with 1"),
                (lambda: F.from_csr([0, 2, 1], [0]), ValueError, "offsets fall from 2 to 1"),
                (lambda: F.from_csr([0, 5], [0]), ValueError, "offsets end with 5, but there are 1 sources"),
                (lambda: F.from_csr([0, 1], [0, 0]), ValueError, "offsets end with 1, but there are 2 sources"),
                (lambda: F.from_csr([0, 1 << 62], []), ValueError, "offsets end with 4611686018427387904"),
                (lambda: F.from_csr([0, 1], [3]), ValueError, "edge 0 .row 0.: source 3 is not in 0 .. 0"),
                (lambda: F.from_csr([0, 1], [-1]), ValueError, "source -1"),
                (lambda: F.from_csr([0, 1], [0], -1), ValueError, "'n_src' is -1"),
                (lambda: F.from_csr([0, 1], [0], 1.0), TypeError, "'n_src' is 1.0"),
                (lambda: F.from_csr([0.0, 1], [0]), TypeError, "offsets.* an element is 0.0"),
                (lambda: F.from_csr(array("d", [0, 1]), [0]), TypeError, "'offsets' is a float64 array"),
                (lambda: F.from_csr("01", [0]), TypeError, "'offsets' is a str"),
                (lambda: F.from_csr([[0, 1]], [0]), ValueError, "'offsets' has 2 axes"),
                (lambda: F.from_csr([0, 1]), TypeError, "takes offsets and sources, or a scipy"),
                (lambda: F.from_coo([0], [0, 1], 2), ValueError, "1 destinations, but 2 sources"),
                (lambda: F.from_coo([2], [0], 2), ValueError, "destination 2 is not in 0 .. 1"),
                (lambda: F.from_coo([0], [9], 2), ValueError, "source 9"),
                (lambda: F.from_csr([0] * 3, [], 1 << 60), ValueError, "2.56"),
                (lambda: F(), TypeError, "from_csr")]:
            with self.subTest(words), self.assertRaisesRegex(error, words):
                make()

    def test_scipy(self):
        if not sp or not np:
            self.skipTest("needs scipy")
        a = sp.random(50, 40, 0.1, format="csr", dtype=np.float32, random_state=1)
        g = tg.Graph.from_csr(a)
        self.assertEqual((g.n_dst, g.n_src, g.n_edges), (50, 40, a.nnz))
        x = np.random.default_rng(0).random(40, dtype=np.float32)
        np.testing.assert_allclose(module().plain_sum(g, x=x, w=a.data), a @ x, rtol=1e-5)
        with self.assertRaisesRegex(TypeError, "in coo form; pass matrix.tocsr()"):
            tg.Graph.from_csr(a.tocoo())
        with self.assertRaisesRegex(TypeError, "must be a tiga.Graph; pass tiga.Graph.from_csr"):
            module().plain_sum(a, x=x, w=a.data)

    def test_stats(self):
        s = tg.Graph.from_csr([0, 0, 3, 3], [1, 1, 0]).stats
        self.assertEqual((s.n_dst, s.n_edges, s.max_degree, s.empty_rows, s.self_loops, s.duplicate_edges, s.mean_degree),
                         (3, 3, 3, 2, 2, 1, 1.0))
        self.assertEqual((s.transposed, s.degrees), (False, (2, 0, 1)))
        self.assertEqual(tg.Graph.from_csr([0], []).stats.degrees, (0,))
        self.assertGreater(tg.graph.generate("local", nodes=9, degree=1).stats.bytes, 0)

    def test_snapshots(self):
        g = tg.graph.generate("uniform", nodes=50, degree=4, seed=3)
        with tempfile.TemporaryDirectory() as folder:
            plain, full = os.path.join(folder, "p.npz"), os.path.join(folder, "f.npz")
            g.save(plain)
            g.save(full, transposed=True)
            self.assertFalse(tg.Graph.open(plain).stats.transposed)
            opened = tg.Graph.open(full).stats
            self.assertTrue(opened.transposed)
            self.assertEqual(opened[:-3], g.stats[:-3])
            self.assertEqual(opened.degrees, g.stats.degrees)


class Memory(unittest.TestCase):
    def test_arrays_live_as_long_as_the_graph(self):
        class Mine(array):
            pass
        offsets, sources = Mine("q", OFFSETS), Mine("i", SOURCES)
        gone = [weakref.ref(offsets), weakref.ref(sources)]
        g = tg.Graph.from_csr(offsets, sources)
        del offsets, sources
        gc.collect()
        self.assertEqual([r() is None for r in gone], [False, False])
        self.assertEqual(module().plain_sum(g, x=X, w=W), Y)
        del g
        gc.collect()
        self.assertEqual([r() is None for r in gone], [True, True])

    def test_they_cannot_move(self):
        offsets = array("q", OFFSETS)
        g = tg.Graph.from_csr(offsets, SOURCES)
        with self.assertRaises(BufferError):
            offsets.append(7)
        del g
        gc.collect()
        offsets.append(7)

    def test_used_in_place_or_copied(self):
        sources = array("i", SOURCES)
        g, copied = tg.Graph.from_csr(array("q", OFFSETS), sources), tg.Graph.from_csr(array("q", OFFSETS), sources, copy=True)
        sources[0] = 1  # forbidden, but shows whose memory it is
        self.assertEqual((listed(g.sources)[0], listed(copied.sources)[0]), (1, 0))

    def test_views_live_longer_than_the_graph(self):
        g = tg.Graph.from_coo([1, 0], [0, 1], 2)
        offsets, sources, order = g.offsets, g.sources, g.edge_order
        gone = weakref.ref(g)
        del g
        gc.collect()
        self.assertIsNotNone(gone())
        self.assertEqual([listed(a) for a in (offsets, sources, order)], [[0, 1, 2], [1, 0], [1, 0]])
        del offsets, sources, order
        gc.collect()
        self.assertIsNone(gone())

    def test_views_are_read_only(self):
        with self.assertRaises((TypeError, ValueError)):
            triangle().sources[0] = 2
        with self.assertRaisesRegex(ValueError, "read only|shares memory"):
            g = tg.Graph.from_csr(array("q", OFFSETS), array("i", SOURCES))
            module().small_sum(g, x=[1, 2, 3], out=g.sources[:3])


class Files(unittest.TestCase):
    def path(self, name, text=None):
        path = folder() / name
        if text is not None:
            path.write_text(text)
        return path

    def test_matrix_market(self):
        path = self.path("g.mtx", "%%MatrixMarket matrix coordinate real general\n2 3 3\n2 1 0.5\n1 3 1.5\n2 2 2.5\n")
        g = tg.Graph.open(path)
        self.assertEqual((g.n_dst, g.n_src, listed(g.sources)), (2, 3, [2, 0, 1]))
        self.assertEqual(listed(g.values), [1.5, 0.5, 2.5])
        self.assertIsNone(g.edge_order)
        self.assertEqual(listed(tg.Graph.open(str(path), keep_edge_order=True).edge_order), [1, 0, 2])
        values = g.values
        del g
        gc.collect()
        self.assertEqual(listed(values), [1.5, 0.5, 2.5])

    def test_edge_list(self):
        g = tg.Graph.open(os.fsencode(self.path("g.txt", "# a comment\n0 1\n1 2\n")))
        self.assertEqual((g.n_dst, listed(g.offsets), listed(g.sources)), (3, [0, 0, 1, 2], [0, 1]))
        self.assertIsNone(g.values)

    def test_save(self):
        path = self.path("saved.npz")
        triangle().save(path, f32(W))
        g = tg.Graph.open(path)
        self.assertEqual((listed(g.offsets), listed(g.sources), listed(g.values)), (OFFSETS, SOURCES, W))
        triangle().save(path)
        self.assertEqual(listed(tg.Graph.open(path).values), [1] * 5)
        triangle().save(path, [0.5] * 5)
        self.assertEqual(listed(tg.Graph.open(path).values), [0.5] * 5)
        if sp and np:
            self.assertEqual(sp.load_npz(path).indices.tolist(), SOURCES)

    def test_errors(self):
        with self.assertRaises(FileNotFoundError):
            tg.Graph.open(self.path("none.mtx"))
        with self.assertRaises(OSError):
            tg.Graph.open(folder())
        with self.assertRaisesRegex(ValueError, r"bad.txt:2: .*'x'"):
            tg.Graph.open(self.path("bad.txt", "0 1\n1 x\n"))
        with self.assertRaisesRegex(NotImplementedError, "complex"):
            tg.Graph.open(self.path("c.mtx", "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 1\n"))
        with self.assertRaisesRegex(ValueError, "writes .npz"):
            triangle().save("g.mtx")
        with self.assertRaisesRegex(ValueError, "null"):
            tg.Graph.open("a\0b")
        with self.assertRaises(OSError):
            triangle().save(folder() / "none" / "g.npz")
        with self.assertRaisesRegex(ValueError, "values"):
            triangle().save(folder() / "g.npz", f32([1]))


class Generated(unittest.TestCase):
    def test_kinds(self):
        g = tg.graph.generate("rmat", scale=8, edge_factor=4, seed=3)
        self.assertEqual((g.n_dst, g.n_edges), (256, 1024))
        self.assertEqual(listed(tg.graph.generate("rmat", scale=8, edge_factor=4, seed=3).sources), listed(g.sources))
        g = tg.graph.generate("uniform", nodes=10, degree=3)
        self.assertEqual((g.n_dst, g.n_edges), (10, 30))
        g = tg.graph.generate("local", nodes=6, degree=2)
        self.assertEqual(listed(g.sources)[:4], [5, 1, 0, 2])

    def test_wrong(self):
        for kind, more, error, words in [
                ("ring", {}, ValueError, "no kind 'ring'"), ("rmat", {}, TypeError, "needs scale="),
                ("rmat", {"scale": 3, "nodes": 4}, TypeError, "has no nodes"),
                ("local", {"nodes": 4, "seed": 4}, TypeError, "has no seed"),
                ("uniform", {"nodes": -1}, ValueError, "'nodes' is -1"), ("rmat", {"scale": 63}, ValueError, "'scale' is 63"),
                ("rmat", {"scale": 2, "seed": 1.5}, TypeError, "'seed' is 1.5")]:
            with self.subTest(kind=kind, more=more), self.assertRaisesRegex(error, words):
                tg.graph.generate(kind, **more)
        with self.assertRaises(MemoryError):
            tg.graph.generate("uniform", nodes=1 << 40, degree=1 << 10)


if __name__ == "__main__":
    unittest.main()
