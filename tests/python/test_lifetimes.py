"""Who keeps what alive, and what dies when: memory lent to others, garbage in cycles, errors on their way, the end of the process."""
import copy
import os
import pickle
import threading
import unittest

from support import X, module, needs_numpy, np, run, tg, triangle

try:
    import torch
except ImportError:
    torch = None


class DLPack(unittest.TestCase):
    def test_capsules(self):
        x = tg.tensor([[1., 2.], [3., 4.]]) + 0
        self.assertEqual(x.__dlpack_device__(), (1, 0))
        capsule = x.__dlpack__()
        self.assertEqual(x.residency["pins"], 1)
        again = tg.from_dlpack(Exporter(capsule))
        self.assertEqual((again + 1).tolist(), [[2.0, 3.0], [4.0, 5.0]])
        del again, capsule  # nobody took it
        self.assertEqual(x.residency["pins"], 0)
        y = tg.from_dlpack(x)
        self.assertIs(y, x)
        with self.assertRaises(TypeError):
            tg.from_dlpack([1])
        with self.assertRaises(BufferError):
            y.__dlpack__(stream=1)

    @needs_numpy
    def test_numpy(self):
        x = tg.tensor([[1., 2.], [3., 4.]]) + 0
        a = np.from_dlpack(x)
        self.assertEqual(a.tolist(), x.tolist())
        self.assertEqual(x.residency["pins"], 1)
        b = a[1:]
        del a
        self.assertEqual((x.residency["pins"], b.tolist()), (1, [[3.0, 4.0]]))
        del b
        self.assertEqual(x.residency["pins"], 0)
        for dtype in "i8 u8 i32 i64 f16 f32 f64 c64 c128".split():
            y = tg.tensor([1, 0, 1]).astype(dtype)
            self.assertEqual(np.from_dlpack(y).tolist(), y.tolist(), dtype)
        for shape in (), (0,), (2, 0, 3), (1, 4):
            self.assertEqual(np.from_dlpack(tg.ones(shape)).shape, shape)
        turned = tg.arange(6).reshape(2, 3).T
        self.assertEqual(np.from_dlpack(turned).tolist(), [[0, 3], [1, 4], [2, 5]])
        y = tg.from_dlpack(np.float32([1, 2, 3]))
        self.assertEqual(y.tolist(), [1.0, 2.0, 3.0])

    @unittest.skipUnless(torch, "needs torch")
    def test_torch(self):
        x = tg.tensor(torch.arange(6).reshape(2, 3).T)
        self.assertEqual(torch.from_dlpack(x + 1).tolist(), [[1, 4], [2, 5], [3, 6]])
        self.assertEqual(tg.from_dlpack(torch.ones(3)).tolist(), [1.0] * 3)
        with self.assertRaises(ZeroDivisionError):
            [torch.from_dlpack(x + 1), 1 // 0]

    @needs_numpy
    def test_consumers_on_other_threads(self):
        x = tg.rand((300,), 1).realize()
        lent = [np.from_dlpack(x) for _ in range(400)] + [x.__dlpack__() for _ in range(400)]

        def drop():
            while lent:
                try:
                    lent.pop()
                except IndexError:
                    return
        threads = [threading.Thread(target=drop) for _ in range(3)]
        [t.start() for t in threads]
        want = x.to_numpy() * 2
        for _ in range(50):
            np.testing.assert_array_equal((x + x).to_numpy(), want)
        [t.join() for t in threads]
        self.assertEqual(x.residency["pins"], 0)

    def test_in_a_child_of_fork(self):
        x = tg.tensor([1., 2.]) + 1
        capsule = x.__dlpack__()
        child = os.fork()
        if not child:
            try:
                del capsule
                os._exit(0 if (x + 1).tolist() == [3.0, 4.0] and x.residency["pins"] == 0 else 1)
            finally:
                os._exit(2)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(x.residency["pins"], 1)
        del capsule
        self.assertEqual(x.residency["pins"], 0)

    @needs_numpy
    def test_what_others_have_done_with_makes_room(self):
        """Under a budget, in the middle of the operation that needs the room: it hangs on garbage in a cycle."""
        import tempfile
        with tempfile.TemporaryDirectory() as folder, \
                tg.execution(memory={"host": 100000, "nvme": 10 ** 7}, spill_dir=folder, eviction="lru"):
            for k in range(20):
                cycle = [np.from_dlpack(tg.full((10000,), float(k), dtype="f32") + 1)]
                cycle.append(cycle)
                del cycle
            self.assertEqual((tg.ones((10000,)) + 1).sum().item(), 20000)


class Exporter:
    """A capsule, for who asks."""
    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return 1, 0


class Errors(unittest.TestCase):
    """Something of ours dies while an exception is on its way, which is not lost."""

    def check(self, ways):
        for k, make in enumerate(ways):
            for _ in range(3):
                with self.subTest(case=k), self.assertRaises(ZeroDivisionError):
                    [make(), 1 // 0]

    def test_of_tensors(self):
        x, g = tg.tensor([1., 2.]), triangle()
        self.check([lambda: x + 1, lambda: x.__dlpack__(), lambda: (x + 1).__dlpack__(), lambda: tg.tensor([1]).__dlpack__(),
                    lambda: triangle(), lambda: g.offsets, lambda: tg.compile("kernel k(src x: f32) -> f32 { return reduce sum(src.x) }"),
                    lambda: tg.from_dlpack(Exporter(x.__dlpack__())), lambda: module().plain_sum(g, x=tg.tensor([1., 2., 3.]), w=[1.] * 5)])

    @needs_numpy
    def test_of_memory_of_others(self):
        a = np.ones(3, np.float32)
        self.check([lambda: tg.from_numpy(a), lambda: tg.from_dlpack(a), lambda: tg.from_numpy(a) + 1,
                    lambda: np.asarray(tg.from_numpy(a)), lambda: tg.from_numpy(a).__dlpack__(),
                    lambda: np.from_dlpack(tg.from_numpy(a)), lambda: np.from_dlpack(tg.tensor([1.]) + 1)])
        with self.assertRaisesRegex(TypeError, "must be f32"):
            module().scaled(triangle(), x=np.array(X, np.float32), a=tg.tensor(1), k=4, on=True)


class Cycles(unittest.TestCase):
    """A finalizer that the collector runs may use what lies in the same cycle."""

    def check(self, text):
        done = run(f"""
import gc, tempfile
from support import folder, module, np, tg, W, X, Y
class Last:
    def __init__(self, look, **what):
        self.__dict__.update(what, look=look, me=self)
    def __del__(self):
        said.append(self.look(self))
said, m = [], module()
for k in range(40):
{text}
    if k % 8 == 7: gc.collect()
gc.collect()
print(len(said), *sorted(set(map(str, said))))
""", MALLOC_PERTURB_="165", PYTHONMALLOC="debug")
        self.assertEqual((done.stderr, done.returncode), ("", 0))
        return done.stdout.strip()

    def test_graphs(self):
        self.assertEqual(self.check("""
    g = tg.Graph.from_coo([0, 0, 1, 2, 2], [0, 2, 1, 0, 1], 3)
    Last(lambda d: d.m.plain_sum(d.g, x=X, w=W), g=g, m=m)
    Last(lambda d: d.o.tolist(), o=g.offsets)
    del g"""), "80 [0, 2, 3, 5] [11.0, 8.0, 17.0]")

    def test_values_of_files(self):
        self.assertEqual(self.check("""
    if not k:
        path = folder() / "g.npz"
        tg.Graph.from_csr([0, 1, 3], [0, 1, 0]).save(path, [1.5, 2.5, 3.5])
    g = tg.Graph.open(path)
    Last(lambda d: d.v.tolist(), v=g.values)
    Last(lambda d: d.g.values.tolist(), g=g)
    del g"""), "80 [1.5, 2.5, 3.5]")

    def test_modules(self):
        self.assertEqual(self.check("""
    t = tg.compile(f"kernel k(src x: f32) -> f32 {{ return reduce sum(src.x) + 0 * {k} }}", cache=False)
    Last(lambda d: d.f(d.g, x=X), f=t.k, g=tg.Graph.from_csr([0, 1], [0], n_src=3))
    Last(lambda d: d.t.k(d.g, x=X), t=t, g=tg.Graph.from_csr([0, 1], [0], n_src=3))
    del t"""), "80 [1.0]")

    def test_tensors(self):
        self.assertEqual(self.check("""
    x = (tg.ones(300) + k).realize()
    Last(lambda d: (d.x - d.k + 1).sum().item(), x=x, k=k)
    Last(lambda d: (d.y - d.k).sum().item(), y=x + 1, k=k)
    del x"""), "80 600.0")

    def test_memory_that_is_looked_at(self):
        self.assertEqual(self.check("""
    x = (tg.ones(300) + k).realize()
    c = x.__dlpack__()
    Last(lambda d: d.x.tolist()[7] - d.k, x=x, c=c, k=k, a=np.asarray(x) if np else 0)
    if np: Last(lambda d: d.a[7] - d.k, a=np.from_dlpack(x), k=k)
    else: said.append(1.0)
    del x, c"""), "80 1.0")


class Copies(unittest.TestCase):
    """What the library owns has one owner; what does not change is its own copy."""

    def test_what_does_not_change(self):
        g, m = triangle(), module()
        for x in g, m, m.plain_sum:
            self.assertIs(copy.copy(x), x)
            self.assertIs(copy.deepcopy([x, x])[1], x)
            with self.assertRaisesRegex(TypeError, "cannot be pickled"):
                pickle.dumps(x)

    def test_scopes(self):
        with tg.execution(memory={"host": 10 ** 7}) as scope:
            for copied in copy.deepcopy, pickle.dumps:
                with self.assertRaisesRegex(TypeError, "cannot"):
                    copied(scope)

    def test_tensors(self):
        x = tg.tensor([1., 2.]) + 1
        for y in copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)):
            self.assertEqual((y + 1).tolist(), [3.0, 4.0])
        for make in tg.Tensor, lambda: tg.Tensor.__new__(tg.Tensor):
            with self.assertRaisesRegex(TypeError, "make tensors with tiga.tensor"):
                make()


class Ends(unittest.TestCase):
    """The interpreter ends while others still look at our memory."""

    def test_others_hold_memory(self):
        for text in ("import builtins; builtins.keep = x.__dlpack__(), x + 1, x", "keep = [x.__dlpack__()]; keep.append(keep)",
                     "c = x.__dlpack__(); keep = tg.from_dlpack(Exporter(c)), x, c",
                     "import sys; sys.keep = np and (np.from_dlpack(x), np.asarray(x))",
                     "import threading, time; c = [x.__dlpack__() for _ in range(99)]; "
                     "threading.Thread(target=lambda: [(time.sleep(0.01), c.pop()) for _ in range(99)], daemon=True).start()",
                     "import ctypes as C; C.pythonapi.Py_IncRef(C.py_object(x.__dlpack__()))"):
            with self.subTest(text=text):
                done = run(f"from support import np, tg\nfrom test_lifetimes import Exporter\nx = tg.tensor([1., 2.]) + 1\n{text}\n",
                           MALLOC_PERTURB_="165", PYTHONMALLOC="debug")
                self.assertEqual((done.stdout, done.stderr, done.returncode), ("", "", 0))

    def test_a_finalizer_fails(self):
        done = run("""
from support import tg
class D:
    def __init__(self): self.c = (tg.tensor([1.]) + 1).__dlpack__()
    def __del__(self): [self.__dict__.pop("c"), 1 // 0]
D()
d = D()
""")
        self.assertEqual((done.stdout, done.stderr.count("ZeroDivisionError"), done.returncode), ("", 2, 0), done.stderr)


if __name__ == "__main__":
    unittest.main()
