"""torch tensors as arguments and results, and tiga.torch.function.  Without torch only its absence is tested."""
import unittest

from support import W, X, Y, module, np, run, tg, triangle

try:
    import torch
except ImportError:
    torch = None

TEXT = """
kernel weighted_sum[F](src x: f32[F], edge w: f32, dst bias: f32[F]) -> f32[F] {
    return dst.bias + reduce sum(edge.w * src.x)
}
export vjp weighted_sum(x, w, bias)
kernel scaled(src x: f64, param a: f64, edge w: f64) -> (s: f64, n: i64) {
    return (s = a * reduce sum(edge.w * src.x * src.x), n = reduce count())
}
export vjp scaled(x, a)
kernel without(src x: f32) -> f32 { return reduce sum(src.x) }
"""


class Absent(unittest.TestCase):
    @unittest.skipIf(torch, "torch is here")
    def test_function(self):
        with self.assertRaises(ImportError):
            tg.torch.function(module().plain_sum)

    def test_what_is_no_function(self):
        with self.assertRaisesRegex(TypeError, "takes a function of a tiga module, not builtin_function"):
            tg.torch.function(print)

    def test_is_not_imported(self):
        self.assertEqual(run("import sys, tiga; print('torch' in sys.modules, 'numpy' in sys.modules)").stdout, "False False\n")


@unittest.skipUnless(torch, "needs torch")
class Tensors(unittest.TestCase):
    def test_published(self):
        y = module().plain_sum(triangle(), x=torch.tensor(X, dtype=torch.float32), w=torch.tensor(W, dtype=torch.float32))
        self.assertIsInstance(y, torch.Tensor)
        self.assertEqual((y.dtype, y.tolist()), (torch.float32, Y))

    def test_kinds(self):
        g, m = triangle(), module()
        self.assertEqual(m.whole_sum(g, x=torch.tensor(X)).tolist(), [4, 2, 3])
        self.assertEqual(m.any_of(g, x=torch.tensor([True, False, False])).tolist(), [True, False, True])
        y = m.brain_sum(g, x=torch.tensor([0.5, 256, 1], dtype=torch.bfloat16))
        self.assertEqual((y.dtype, y.tolist()), (torch.bfloat16, [1.5, 256, 256]))
        y = m.half_sum(g, x=torch.tensor([0.5, 2048, 1], dtype=torch.float16))
        self.assertEqual((y.dtype, y.tolist()), (torch.float16, [1.5, 2048, 2048]))
        y = m.total(g, x=torch.tensor(X, dtype=torch.float32))
        self.assertEqual((y.all.shape, y.all.item()), ((), 6))

    def test_out(self):
        out = torch.zeros(3)
        self.assertIs(module().plain_sum(triangle(), x=torch.tensor(X).float(), w=W, out=out), out)
        self.assertEqual(out.tolist(), Y)

    def test_numbers(self):
        y = module().scaled(triangle(), x=torch.tensor(X).float(), a=torch.tensor(0.5), k=4, on=True)
        self.assertEqual(y.tolist(), [8, 4, 6])

    def test_graphs(self):
        g = tg.Graph.from_csr(torch.tensor([0, 2, 3, 5]), torch.tensor([0, 2, 1, 0, 1], dtype=torch.int32))
        self.assertEqual(module().plain_sum(g, x=X, w=W), Y)
        g = tg.Graph.from_coo(torch.tensor([0, 1], dtype=torch.int16), torch.tensor([1, 0]), 2)
        self.assertEqual(list(g.sources), [1, 0])

    def test_wrong(self):
        for x, words in [
                (torch.tensor(X), "is a int64 tensor .* must be float32: pass x.to.torch.float32."),
                (torch.zeros(3, 2)[:, 0], "strides .8,. bytes; it must be C-contiguous: pass x.contiguous"),
                (torch.zeros(3, 2).double()[:, 0], "pass x.to.torch.float32..contiguous"),
                (torch.zeros(3).to_sparse(), "sparse tensor .* pass x.to_dense"),
                (torch.zeros(3, requires_grad=True), "requires a gradient.*tiga.torch.function.*x.detach"),
                (torch.zeros(3, dtype=torch.cfloat).conj().imag, "lazy view|C-contiguous")]:
            with self.subTest(words), self.assertRaisesRegex(TypeError, words):
                module().plain_sum(triangle(), x=x, w=W)
        with self.assertRaisesRegex(ValueError, "is on meta; pass x.cpu"):
            module().plain_sum(triangle(), x=torch.zeros(3, device="meta"), w=W)
        with self.assertRaisesRegex(ValueError, r"got f32\[2\]"):
            module().plain_sum(triangle(), x=torch.zeros(2), w=W)

    @unittest.skipUnless(np, "needs numpy")
    def test_tensors_win_over_numpy(self):
        y = module().plain_sum(triangle(), x=torch.tensor(X).float(), w=np.float32(W))
        self.assertIsInstance(y, torch.Tensor)


@unittest.skipUnless(torch, "needs torch")
class Gradients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.m = tg.compile(TEXT)

    def test_published(self):
        x, w = torch.tensor([[1.], [2], [3]], requires_grad=True), torch.tensor([2., 3, 4, 5, 6], requires_grad=True)
        bias = torch.zeros(3, 1, requires_grad=True)
        f = tg.torch.function(self.m.weighted_sum)
        y = f(triangle(), x=x, w=w, bias=bias)
        self.assertEqual(y.tolist(), [[11], [8], [17]])
        y.sum().backward()
        self.assertEqual((x.grad.flatten().tolist(), w.grad.tolist(), bias.grad.flatten().tolist()),
                         ([7, 10, 3], [1, 3, 2, 1, 2], [1, 1, 1]))

    def test_finite_differences(self):
        f, g = tg.torch.function(self.m.scaled), triangle()
        x = torch.tensor([0.5, -1.5, 2], dtype=torch.float64, requires_grad=True)
        a = torch.tensor(0.75, dtype=torch.float64, requires_grad=True)
        w = torch.tensor([2., 3, 4, 5, 6], dtype=torch.float64)
        self.assertTrue(torch.autograd.gradcheck(lambda x, a: f(g, x=x, a=a, w=w).s, (x, a)))
        y = f(g, x=x, a=0.75, w=w)
        self.assertEqual((y.n.tolist(), y.n.requires_grad, type(y).__name__), ([2, 1, 2], False, "scaled"))
        self.assertTrue(torch.autograd.gradcheck(lambda x: f(g, x=x, a=0.75, w=w).s, (x,)))

    def test_module(self):
        m, g = self.m, triangle()

        class Layer(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = torch.nn.Linear(2, 4)
                self.w = torch.nn.Parameter(torch.ones(5))
                self.gather = tg.torch.function(m.weighted_sum)

            def forward(self, x):
                h = self.linear(x)
                return torch.relu(self.gather(g, x=h, w=self.w, bias=torch.zeros_like(h)))

        torch.manual_seed(1)
        layer, x, want = Layer(), torch.randn(3, 2), torch.rand(3, 4)
        optimizer = torch.optim.Adam(layer.parameters(), 0.05)
        losses = []
        for _ in range(100):
            optimizer.zero_grad()
            loss = ((layer(x) - want) ** 2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        self.assertLess(losses[-1], 0.3 * losses[0])

    def test_missing(self):
        x = torch.tensor([1., 2, 3], requires_grad=True)
        y = tg.torch.function(self.m.without)(triangle(), x=x)
        with self.assertRaisesRegex(NotImplementedError, r"without cannot be differentiated with respect to x: its module has no "
                                    r"without_vjp; add `export vjp without\(x\)`"):
            y.sum().backward()
        w = torch.ones(5, dtype=torch.float64, requires_grad=True)
        y = tg.torch.function(self.m.scaled)(triangle(), x=x.detach().double(), a=1.0, w=w)
        with self.assertRaisesRegex(NotImplementedError, r"with respect to w: scaled_vjp gives the gradients of x, a only; add "
                                    r"`export vjp scaled\(x, a, w\)`"):
            y.s.sum().backward()

    def test_arguments(self):
        f = tg.torch.function(self.m.without)
        x = torch.ones(3)
        with self.assertRaisesRegex(TypeError, "missing 'x'"):
            f(triangle())
        with self.assertRaisesRegex(TypeError, "no argument 'y'"):
            f(triangle(), x=x, y=x)
        with self.assertRaisesRegex(TypeError, "out= has no place"):
            f(triangle(), x=x, out=x)
        self.assertFalse(f(triangle(), x=x).requires_grad)
        self.assertEqual(f.__name__, "without")
        self.assertIn("tiga.torch.function of <tiga kernel without", repr(f))


if __name__ == "__main__":
    unittest.main()
