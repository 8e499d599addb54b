"""Tensors: making, operators, facts, types, kernels, threads; and what they refuse."""
import gc
import operator
import pickle
import threading
import unittest

from support import W, X, array, f32, module, np, tg, triangle
from tiga import _operations


class Plain(unittest.TestCase):
    """What works without numpy."""

    def test_making(self):
        self.assertEqual(tg.tensor([[1, 2], [3, 4]]).tolist(), [[1, 2], [3, 4]])
        self.assertEqual(repr(tg.tensor([1, 2]).dtype), "i64")
        for value, name in (([1., 2.], "f32"), ([True, False], "bool"), ([1, 2.5], "f32"), ([1j, 2], "c64"), ([], "f32"), (3, "i64"),
                            (2.5, "f32"), (True, "bool"), (range(3), "i64"), ([[]], "f32")):
            self.assertEqual(tg.tensor(value).dtype.name, name, value)
        for dtype in (tg.f64, "f64", "float64"):
            self.assertIs(tg.tensor([1, 2], dtype=dtype).dtype, tg.f64)
        self.assertEqual(tg.zeros(3).tolist(), [0, 0, 0])
        self.assertEqual(tg.ones((2, 1), "i32").tolist(), [[1], [1]])
        self.assertEqual(tg.full((2,), 1 + 2j).tolist(), [1 + 2j, 1 + 2j])
        self.assertEqual(tg.full((2,), 2 ** 62 + 1).tolist(), [2 ** 62 + 1] * 2)
        self.assertEqual(tg.arange(3).tolist(), [0, 1, 2])
        self.assertEqual(tg.arange(5, -1, -2, dtype="f32").tolist(), [5.0, 3.0, 1.0])
        self.assertEqual(tg.rand((3,), 7).tolist(), tg.rand(3, seed=7).tolist())
        self.assertNotEqual(tg.rand((3,), 7).tolist(), tg.rand((3,), 8).tolist())
        self.assertEqual(tg.zeros_like(tg.ones((2, 2), "i8")).dtype, tg.i8)
        self.assertEqual(tg.full_like(tg.ones(2), 4).tolist(), [4.0, 4.0])
        self.assertEqual(tg.tensor(array("d", [1, 2])).dtype, tg.f64)
        self.assertEqual(tg.tensor(memoryview(f32([1, 2]))).tolist(), [1.0, 2.0])

    def test_wrong_values(self):
        for value, error in (("text", TypeError), (None, TypeError), ([1, [2]], TypeError), ([[1], [1, 2]], ValueError),
                             (object(), TypeError), ({}, TypeError), ([2 ** 64], ValueError), ([None], TypeError)):
            with self.assertRaises(error, msg=repr(value)):
                tg.tensor(value)
        for call in (lambda: tg.zeros(2.5), lambda: tg.zeros((1,), "f33"), lambda: tg.zeros((1,), None), lambda: tg.arange("a"),
                     lambda: tg.rand(3, "a"), lambda: tg.rand(3, 1, "i32"), lambda: tg.zeros(True), lambda: tg.full(2, "a")):
            with self.assertRaises((TypeError, ValueError)):
                call()
        for shape in ((-1,), (2,) * 8, (1 << 62, 8)):
            with self.assertRaises(ValueError, msg=shape):
                tg.zeros(shape)
        with self.assertRaises(TypeError):
            tg.Tensor()

    def test_operators_and_numbers(self):
        x = tg.tensor([1., 2.])
        self.assertEqual((2 * x + 1 - x / 2).tolist(), [2.5, 4.0])
        self.assertEqual((x ** 2).tolist(), [1.0, 4.0])
        self.assertEqual((2 ** x).tolist(), [2.0, 4.0])
        self.assertEqual((-x).tolist(), [-1.0, -2.0])
        self.assertEqual((1 - x).tolist(), [0.0, -1.0])
        self.assertEqual((1 / x).tolist(), [1.0, 0.5])
        self.assertEqual((x > 1).tolist(), [False, True])
        self.assertEqual((1 > x).tolist(), [False, False])
        self.assertEqual((x == 2).tolist(), [False, True])
        self.assertEqual((~(x == 2) | (x == 2) & True).tolist(), [True, True])
        self.assertEqual((x + [1., 2.]).tolist(), [2.0, 4.0])
        self.assertEqual((tg.tensor([1, 2]) * 3).tolist(), [3, 6])
        self.assertEqual((tg.tensor([1j]) * 1j).tolist(), [-1 + 0j])
        self.assertIs(+x, x)

    def test_refused_operators(self):
        x, n = tg.tensor([1., 2.]), tg.tensor([1, 2])
        for call, error in ((lambda: x + "a", TypeError), (lambda: x + None, TypeError), (lambda: "a" * x, TypeError),
                            (lambda: x + n, ValueError), (lambda: n / n, TypeError), (lambda: n / 2, TypeError),
                            (lambda: n + 1.5, ValueError), (lambda: x + 1j, TypeError), (lambda: x + tg.ones(3), ValueError),
                            (lambda: n + 2 ** 70, ValueError), (lambda: x & x, ValueError), (lambda: ~n, TypeError),
                            (lambda: n ^ n, TypeError), (lambda: x < {}, TypeError), (lambda: x.__setitem__(0, 1), TypeError)):
            with self.assertRaises(error):
                call()
        self.assertFalse(x == "a")  # as Python says of things that do not compare

    def test_broadcasting_and_facts(self):
        x = tg.tensor([[1.], [2.]])
        y = x + tg.tensor([10., 20., 30.])
        self.assertEqual(y.tolist(), [[11.0, 21.0, 31.0], [12.0, 22.0, 32.0]])
        self.assertEqual((y.shape, y.ndim, y.size, y.nbytes, y.itemsize, len(y)), ((2, 3), 2, 6, 24, 4, 2))
        self.assertEqual(y.device, "cpu")

    def test_like_arrays(self):
        x = tg.tensor([[1., 2.], [3., 4.]])
        self.assertEqual([r.tolist() for r in x], [[1.0, 2.0], [3.0, 4.0]])
        self.assertEqual((float(x[0, 1]), int(x[1, 0]), complex(x[0, 0]), x[1, 1].item()), (2.0, 3, 1 + 0j, 4.0))
        self.assertTrue(tg.tensor(1.0))
        self.assertFalse(tg.tensor([[0]]))
        self.assertEqual(["a", "b"][tg.tensor(1)], "b")
        self.assertIn(2.0, x)
        self.assertNotIn(7.0, x)
        for call, error in ((lambda: bool(x), ValueError), (lambda: bool(x[:0]), ValueError), (lambda: float(x), TypeError),
                            (lambda: len(tg.tensor(1)), TypeError), (lambda: iter(tg.tensor(1)), TypeError), (lambda: x.item(), ValueError),
                            (lambda: [1][tg.tensor(0.0)], TypeError)):
            with self.assertRaises(error):
                call()
        self.assertEqual(len({x, x, x + 0}), 2)

    def test_repr_computes_nothing(self):
        x = tg.tensor([1., 2.])
        y = x * 3
        self.assertEqual(repr(y), "tiga.Tensor(f32[2], pending)")
        self.assertEqual(y.execution.how, "pending")
        self.assertEqual(repr(x), "tiga.Tensor(f32[2], [1.0, 2.0])")
        y.realize()
        self.assertEqual(repr(y), "tiga.Tensor(f32[2], [3.0, 6.0])")
        self.assertEqual(repr(tg.zeros(100)), "tiga.Tensor(f32[100], given)")
        self.assertEqual(repr(tg.tensor(2)), "tiga.Tensor(i64, 2)")

    def test_execution_and_program(self):
        x = tg.tensor([1., 2., 3.])
        y = x * x + 1
        self.assertIn("mul", y.program)
        self.assertIs(y.realize(), y)
        self.assertIn(y.execution.how, ("interpreted", "compiled", "cached"))
        self.assertEqual(y.execution.operations, 2)
        self.assertEqual(y.program, "")
        self.assertEqual(x.execution.how, "given")
        self.assertEqual(x[1:].execution.how, "view")

    def test_every_type(self):
        for dtype in (tg.bool_, tg.i8, tg.u8, tg.i32, tg.i64, tg.f16, tg.bf16, tg.f32, tg.f64, tg.c64, tg.c128):
            values = [dtype.python(v) for v in (1, 0, 1)]
            x = tg.tensor(values, dtype)
            self.assertEqual(x.tolist(), values, dtype)
            self.assertIs(x.dtype, dtype)
            self.assertEqual(pickle.loads(pickle.dumps(x)).tolist(), values)
            self.assertEqual(tg.zeros((2, 0), dtype).tolist(), [[], []])
            self.assertEqual(tg.ones(2, dtype).tolist(), [dtype.python(1)] * 2)

    def test_lists_adopt(self):
        """Lists of Python's numbers take the element type of the tensor beside them, as its numbers do."""
        for dtype in ("f16", "f32", "f64"):
            x = tg.tensor([1., 2.], dtype)
            for y in (x + [1, 2], [1., 2.] * x, tg.maximum(x, [3, 0.5]), x * (2, 3), tg.where(x > 1, x, [0, 0])):
                self.assertEqual(y.dtype.name, dtype)
        self.assertEqual((tg.tensor([1, 2], "i32") + [1, 2]).dtype, tg.i32)
        self.assertEqual((tg.tensor([3., 1.]) == [3, 2]).tolist(), [True, False])
        for call in (lambda: tg.tensor([1, 2]) + [0.5, 1], lambda: tg.tensor([1., 2.]) + [True, False], lambda: tg.tensor([True]) + [1]):
            with self.assertRaises(ValueError):
                call()

    def test_names_of_types(self):
        x = tg.tensor([1.5])
        self.assertTrue(x.dtype == tg.f32 == tg.float32 and x.dtype == "float32" and x.dtype == "f32" and x.dtype != "float64")
        self.assertTrue(x.dtype != float and tg.f64 == float and tg.i64 == int and tg.bool_ == bool and tg.f32 != 3 and tg.f32 != None)  # noqa: E711
        self.assertEqual({tg.f32: 1}[x.dtype], 1)
        for call, text in ((lambda: x.astype("f4"), "are bits here"), (lambda: tg.zeros(2, 3), r"zeros\(\(2, 3\)\)")):
            with self.assertRaisesRegex(TypeError, text):
                call()

    def test_formats(self):
        x = tg.tensor([1.25, 2.0])
        self.assertEqual((f"{x[0]:.1f}", f"{x.sum():6.2f}", f"{tg.tensor(3):03d}", f"{x}"), ("1.2", "  3.25", "003", str(x)))
        with self.assertRaisesRegex(TypeError, "without axes"):
            f"{x:.1f}"

    def test_more_ways_to_make(self):
        self.assertEqual(tg.linspace(0, 1, 5).tolist(), [0.0, 0.25, 0.5, 0.75, 1.0])
        self.assertEqual(tg.linspace(0, 1, 4, endpoint=False, dtype="f64").tolist(), [0.0, 0.25, 0.5, 0.75])
        self.assertEqual([tg.linspace(2, 3, n).tolist() for n in (0, 1)], [[], [2.0]])
        self.assertEqual(tg.linspace(0, 0.7, 8, dtype="f64").tolist()[-1], 0.7)
        self.assertEqual((tg.eye(2).tolist(), tg.eye(2, 3, 1, "i32").tolist()), ([[1.0, 0.0], [0.0, 1.0]], [[0, 1, 0], [0, 0, 1]]))
        self.assertEqual((tg.arange(0, 1, 0.25).tolist(), tg.arange(1.5).tolist(), tg.arange(2, 0, -0.5, "f64").tolist(), tg.arange(3, 0, 0.5).tolist()),
                         ([0.0, 0.25, 0.5, 0.75], [0.0, 1.0], [2.0, 1.5, 1.0, 0.5], []))
        self.assertEqual((tg.arange(0, 1, 0.25).dtype, tg.arange(3).dtype), (tg.f32, tg.i64))
        x = tg.tensor([1.])
        self.assertIs(tg.asarray(x), x)
        self.assertEqual(tg.asarray([1, 2], "f64").tolist(), [1.0, 2.0])
        for call, error in ((lambda: tg.linspace(0, 1, -1), ValueError), (lambda: tg.eye(-1), ValueError), (lambda: tg.arange(0, 1, 0.0), ValueError),
                            (lambda: tg.arange(0, 1, 0.5, "i32"), TypeError), (lambda: tg.arange(0, float("inf"), 0.5), ValueError)):
            with self.assertRaises(error):
                call()

    def test_kernels(self):
        g, m = triangle(), module()
        x = tg.tensor([float(v) for v in X])
        y = m.plain_sum(g, x=x * 1, w=[float(v) for v in W])
        self.assertIsInstance(y, tg.Tensor)
        self.assertEqual((y.tolist(), y.execution.how), (m.plain_sum(g, x=[1, 2, 3], w=W), "called"))
        s, n = m.two(g, x=x, w=tg.tensor(f32(W)))
        self.assertEqual(n.tolist(), [2, 1, 2])
        self.assertEqual(s.tolist(), y.tolist())
        self.assertEqual(m.scaled(g, x=x, a=tg.tensor(2.0), k=3, on=True).tolist(), m.scaled(g, x=X, a=2.0, k=3, on=True))
        for given, error in ((dict(x=x.astype("f64"), w=W), TypeError), (dict(x=x, w=[1, 2]), ValueError), (dict(x=x), TypeError),
                             (dict(x=x, w=W, out=f32([0] * 3)), TypeError), (dict(x=x, w=W, y=1), TypeError), (dict(x=x, w="a"), TypeError)):
            with self.assertRaises(error):
                m.plain_sum(g, **given)

    def test_indexing_errors(self):
        x = tg.tensor([[1., 2.], [3., 4.]])
        for index in (2, -3, (0, 0, 0), 1.5, "a", [2], [-3], [[0.5]], (Ellipsis, Ellipsis), [True], True, ([0, 1], [0, 1, 0]), ([0], [2]),
                      ([True, True], [0, 1, 1]), ([[True, False], [True, True]], 0)):
            with self.assertRaises(IndexError, msg=repr(index)):
                x[index]
        self.assertEqual((x[[0], [1]].tolist(), x[[False, True]].tolist(), x[x > 1].tolist()), ([2], [[3, 4]], [2, 3, 4]))
        with self.assertRaises(ValueError):
            x[::0]

    def test_nothing_leaks(self):
        x = tg.tensor([1., 2.] * 1000)

        def use():
            y = (x * 2 + 1).sum()
            y.tolist()
            tg.autograd.grad((x * x).sum(), x)
            try:
                x + tg.ones(3)
            except ValueError:
                pass
        from test_memory import resident
        for _ in range(200):
            use()
        before = resident()
        for _ in range(1000):
            use()
        self.assertLess(resident() - before, 3 << 20)

    def test_memory_of_others_goes(self):
        from tiga import _tensors
        data = f32(range(100))
        x = tg.from_dlpack(np.frombuffer(data, np.float32)) if np else None
        before = len(_tensors._keep)
        y = None if x is None else x[10:20] * 2
        x = None
        gc.collect()
        if y is not None:
            self.assertEqual(len(_tensors._keep), before)
            self.assertEqual(y.tolist()[:2], [20.0, 22.0])
            y = None
            gc.collect()
            self.assertEqual(len(_tensors._keep), before - 1)

    def test_threads(self):
        x, wrong = tg.rand((1000,), 1), []

        def work(k):
            for i in range(30):
                have = ((x + k) * 2).sum() - (x.sum() * 2)
                if abs(have.item() - 2000 * k) > 1 + abs(k):
                    wrong.append(have.item())
        threads = [threading.Thread(target=work, args=(float(k),)) for k in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])

    def test_every_operator_of_the_language_is_here(self):
        """docs/tensor.md has a table: what the language writes, its name in Python (numpy's where it has one) and in C.  Nothing of the
        language's own tables is missing there, and everything it names is to be had."""
        import re
        from support import SOURCE
        rows = re.findall(r"^\| `(.*?)` \| `(.*?)` \| `(.*?)` \|$", (SOURCE / "docs/tensor.md").read_text(), re.M)
        table = {name: (python, c) for name, python, c in rows}
        self.assertEqual(len(table), len(rows))
        source = (SOURCE / "frontend/fe_funcs.def").read_text()
        names = set(re.findall(r'^FE_FUNC\(\w+, "(\w+)"', source, re.M))
        names |= set(re.findall(r'^FE_REDUCER\("(\w+)"', (SOURCE / "frontend/fe_reducers.def").read_text(), re.M))
        self.assertGreater(len(names), 50)
        names |= {"a + b", "a - b", "a * b", "a / b", "a % b", "a ^ b", "-a", "a == b", "a != b", "a < b", "a <= b", "a > b", "a >= b",
                  "a and b", "a or b", "not a", "a @ b", "f32(a)"}
        operations = re.findall(r'^IR_OP\(\w+, "(\w+)", (\w+), (UNARY|BINARY|TERNARY|COMPARE),', (SOURCE / "ir/ir_ops.def").read_text(), re.M)
        in_c = {one for _, c in table.values() for one in c.split("`, `")}
        self.assertEqual({text for text, levels, _ in operations if "P" in levels} - in_c - {"cast"}, set())  # tiga_tensor_cast
        self.assertEqual(set(table), names | {"silu", "hypot", "complex"})  # these are of tensors only
        header = (SOURCE / "include/tiga/tensor.h").read_text()
        begin = header.index(" * name: add sub")
        elementwise = header[begin:header.index("TIGA_API", begin)]
        a, b, yes = tg.tensor([1., 2.]), tg.tensor([3., 4.]), tg.tensor([True, False])
        for name, (python, c) in table.items():
            with self.subTest(name=name):
                for one in python.split("`, `"):
                    if one.startswith("tg."):
                        self.assertTrue(callable(operator.attrgetter(one[3:])(tg)), one)
                    elif one != "x[a:b]":
                        self.assertIsInstance(eval(one, {"a": a, "b": b} if "~" not in one and "&" not in one and "|" not in one
                                                   else {"a": yes, "b": yes}), tg.Tensor)
                for one in c.split("`, `"):
                    self.assertIn(one, re.findall(r"\w+", header if one.startswith("tiga_") else elementwise), one)

    def test_functions_have_help(self):
        for name in [*_operations.FUNCTIONS, *tg.__all__]:
            if not name.startswith("__"):
                self.assertTrue(getattr(tg, name).__doc__, name)
        for name, value in vars(tg.Tensor).items():
            if not name.startswith("_") and (callable(value) or isinstance(value, property)):
                self.assertTrue(value.__doc__, name)


if __name__ == "__main__":
    unittest.main()
