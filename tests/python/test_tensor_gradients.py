"""Gradients of tensors: what they are, through kernels, twice, and what a training keeps."""
import unittest

from support import tg, triangle

GRADIENTS = """
kernel weighted(src x: f64, edge w: f64) -> f64 { return reduce sum(edge.w * src.x) }
kernel two(src x: f64, edge w: f64) -> (s: f64, n: i64, p: f64) {
    return (s = reduce sum(edge.w * src.x), n = reduce count(), p = reduce mean(src.x * src.x))
}
kernel bare(src x: f64) -> f64 { return reduce sum(src.x) }
kernel half(src x: f64, edge w: f64) -> f64 { return reduce sum(edge.w * src.x) }
kernel scaled(src x: f64, param a: f64) -> f64 { return a * reduce sum(src.x) }
export vjp weighted(x, w)
export vjp two(x, w)
export vjp half(x)
export vjp scaled(a)
"""


class Gradients(unittest.TestCase):
    def test_gradients(self):
        x = tg.tensor([1., 2., 3.], requires_grad=True)
        self.assertTrue(x.requires_grad)
        loss = (x * x).sum()
        self.assertEqual(loss.item(), 14.0)
        self.assertEqual(tg.autograd.grad(loss, x).tolist(), [2.0, 4.0, 6.0])
        y = tg.tensor([1., 1., 1.], requires_grad=True)
        gx, gy = tg.autograd.grad((x * y).sum(), [x, y])
        self.assertEqual((gx.tolist(), gy.tolist()), ([1.0] * 3, [1.0, 2.0, 3.0]))
        g = tg.autograd.grad((x ** 3).sum(), x)
        self.assertEqual(tg.autograd.grad(g.sum(), x).tolist(), [6.0, 12.0, 18.0])
        with self.assertRaises(ValueError):
            tg.autograd.grad(loss, y)
        self.assertEqual(tg.autograd.grad(loss, y, zero_unused=True).tolist(), [0.0] * 3)
        for call, error in ((lambda: tg.autograd.grad(x, x), ValueError), (lambda: tg.autograd.grad(1.0, x), TypeError),
                            (lambda: tg.autograd.grad(loss, 1.0), TypeError), (lambda: tg.autograd.grad(loss, [x, x]), ValueError)):
            with self.assertRaises(error):
                call()
        self.assertEqual(tg.autograd.grad(loss, []), [])

    def test_value_and_grad(self):
        def loss(w, x, scale=1.0):
            return ((w * x) ** 2).sum() * scale
        value, g = tg.autograd.value_and_grad(loss)([1., 2.], tg.tensor([3., 4.]), scale=2.0)
        self.assertEqual((value.item(), g.tolist()), (146.0, [36.0, 128.0]))
        value, (a, b) = tg.autograd.value_and_grad(loss, (0, 1))(tg.tensor([1., 2.]), tg.tensor([3., 4.]))
        self.assertEqual((a.tolist(), b.tolist()), ([18.0, 64.0], [6.0, 32.0]))
        with self.assertRaises(TypeError):
            tg.autograd.value_and_grad(loss, 5)(1.0)
        with self.assertRaises(TypeError):
            tg.autograd.value_and_grad(lambda x: 3.0)(1.0)

    def test_value_and_grad_of_structures(self):
        def loss(layers, more):
            x = tg.tensor([1., 2.])
            for layer in layers:
                x = layer["w"] * x + layer["b"]
            return (x * more[0]).sum() + more[1]
        layers = [{"w": tg.tensor([1., 2.]), "b": tg.tensor([0., 1.])}, {"w": [3., 1.], "b": 0.5}]
        value, (g, more) = tg.autograd.value_and_grad(loss, (0, 1))(layers, (tg.tensor([1., 1.]), tg.tensor(2.)))
        self.assertEqual(value.item(), 11.0)
        self.assertEqual([{k: v.tolist() for k, v in layer.items()} for layer in g],
                         [{"w": [3.0, 2.0], "b": [3.0, 1.0]}, {"w": [1.0, 5.0], "b": 2.0}])
        self.assertEqual((type(more), [t.tolist() for t in more]), (tuple, [[3.5, 5.5], 1.0]))
        _, slope = tg.autograd.value_and_grad(lambda x: (x * x).sum())([1., 2.])  # a list of numbers is one tensor, as ever
        self.assertEqual(slope.tolist(), [2.0, 4.0])

    def test_value_and_grad_keeps_no_history(self):
        from tiga import _tensors
        live = lambda: _tensors.home().lib.tiga_tensors_get_counters(_tensors.home().pointer).live_bytes
        step = tg.autograd.value_and_grad(lambda w: (w * w).sum())
        w = tg.tensor([1.] * 1000)
        before = live()
        for _ in range(20):
            value, slope = step(w)
            w = w - 0.1 * slope
        w.realize()
        self.assertLessEqual(live(), before + 20000)
        self.assertFalse(value.requires_grad or slope.requires_grad or w.requires_grad)
        unused = tg.autograd.value_and_grad(lambda a, b: a * 2, (0, 1))
        with self.assertRaises(ValueError):
            unused(1.0, 2.0)
        value, (a, b) = tg.autograd.value_and_grad(lambda a, b: a * 2, (0, 1), zero_unused=True)(1.0, 2.0)
        self.assertEqual((a.item(), b.item()), (2.0, 0.0))

    def test_value_and_grad_of_itself(self):
        inner = tg.autograd.value_and_grad(lambda x: (x ** 3).sum())
        value, g = tg.autograd.value_and_grad(lambda x: inner(x)[1].sum())(tg.tensor([1., 2.]))
        self.assertEqual((value.item(), g.tolist()), (15.0, [6.0, 12.0]))
        # one that is only near: a step of a training inside of a function of its rate
        def after(rate):
            w = tg.tensor([3.])
            _, slope = tg.autograd.value_and_grad(lambda w: (w * w).sum())(w)
            return ((w - rate * slope) ** 2).sum()
        value, g = tg.autograd.value_and_grad(after)(0.25)
        self.assertAlmostEqual(g.item(), 2 * (3 - 0.25 * 6) * -6, places=4)

    def test_detach(self):
        x = tg.tensor([1., 2.], requires_grad=True)
        y = x * 2
        self.assertTrue(y.requires_grad)
        d = y.detach()
        self.assertEqual((d.requires_grad, d.tolist(), d.shape), (False, [2.0, 4.0], (2,)))
        with self.assertRaises(ValueError):
            tg.autograd.grad((d * x).sum(), y)
        self.assertEqual(tg.autograd.grad((d * x).sum(), x).tolist(), [2.0, 4.0])

    def test_training_looks_on_the_way(self):
        w, losses = tg.tensor([0., 0.]), []
        x, y = tg.tensor([[1., 0.], [0., 1.], [1., 1.]]), tg.tensor([1., 2., 3.])
        step = tg.autograd.value_and_grad(lambda w: ((x @ w - y) ** 2).mean())
        for _ in range(60):
            value, slope = step(w)
            losses.append(value.item())
            w = w - 0.5 * slope
        self.assertLess(losses[-1], 1e-6)

    def test_gradients_through_kernels(self):
        m, g = tg.compile(GRADIENTS), triangle()
        x0, w0 = [1., 2., 3.], [2., 3., 4., 5., 6.]

        def loss_of(x, w):
            y = m.weighted(g, x=x * 2, w=tg.sin(w))           # between operations
            s, n, p = m.two(g, x=y, w=w)                      # a kernel of a kernel's result; several results, one not a float
            return (s * s).sum() + p.sum() * 3 + y.mean() + n.astype("f64").sum()
        x, w = tg.tensor(x0, "f64", requires_grad=True), tg.tensor(w0, "f64", requires_grad=True)
        loss = loss_of(x, w)
        gx, gw = tg.autograd.grad(loss, [x, w])
        for which, have in ((0, gx), (1, gw)):
            values, h = (x0, w0)[which], 1e-6
            for i, slope in enumerate(have.tolist()):
                up, down = list(values), list(values)
                up[i] += h
                down[i] -= h
                at = [loss_of(*(tg.tensor(v, "f64") for v in ((a, w0) if which == 0 else (x0, a)))).item() for a in (up, down)]
                self.assertAlmostEqual(slope, (at[0] - at[1]) / (2 * h), delta=1e-5 * (1 + abs(slope)))
        with self.assertRaisesRegex(NotImplementedError, r"`export vjp bare\(x\)`"):
            tg.autograd.grad(m.bare(g, x=x).sum(), x)
        with self.assertRaisesRegex(NotImplementedError, r"'w'.*`export vjp half\(x, w\)`"):
            tg.autograd.grad(m.half(g, x=x, w=w).sum(), [x, w])
        self.assertEqual(tg.autograd.grad(m.half(g, x=x, w=w).sum(), x).shape, (3,))
        with self.assertRaisesRegex(NotImplementedError, "weighted_vjp"):  # the second derivative would need the vjp of the vjp
            tg.autograd.grad((tg.autograd.grad((m.weighted(g, x=x, w=w) ** 2).sum(), x) ** 2).sum(), x)
        with self.assertRaises(ValueError):  # nobody said that it would be asked for
            z = tg.tensor(x0, "f64")
            tg.autograd.grad(m.weighted(g, x=z, w=tg.tensor(w0, "f64")).sum(), z)
        p = tg.tensor(2.0, "f64", requires_grad=True)
        self.assertEqual(tg.autograd.grad(m.scaled(g, x=tg.tensor(x0, "f64"), a=p).sum(), p).item(), 9.0)

    def test_second_derivatives_through_kernels(self):
        """They need the vjp of a vjp; what the error says to export is what is needed."""
        import re
        text = "kernel weighted(src x: f64, edge w: f64) -> f64 { return reduce sum(edge.w * src.x * src.x) }\n"

        def second(m, g):
            x = tg.tensor([1., 2., 3.], "f64", requires_grad=True)
            first = tg.autograd.grad((m.weighted(g, x=x, w=tg.tensor([2., 3., 4., 5., 6.], "f64")) ** 2).sum(), x)
            return first, tg.autograd.grad((first ** 2).sum(), x)
        lines = []
        for _ in range(4):
            m = tg.compile(text + "\n".join(dict.fromkeys(lines)))
            try:
                first, slope = second(m, triangle())
                break
            except NotImplementedError as error:
                line = re.search("`(export vjp .*)`", str(error)).group(1)
                lines = [old for old in lines if old.split("(")[0] != line.split("(")[0]] + [line]
        self.assertEqual([line.split("(")[0] for line in lines], ["export vjp weighted", "export vjp weighted_vjp"])

        def f(v):  # in numbers: the gradient's square, summed
            rows = ((2, v[0], 3, v[2]), (4, v[1], 0, 0), (5, v[0], 6, v[1]))
            y = [a * p * p + b * q * q for a, p, b, q in rows]
            slopes = (2 * v[0] * 2 * (2 * y[0] + 5 * y[2]), 2 * v[1] * 2 * (4 * y[1] + 6 * y[2]), 2 * v[2] * 2 * 3 * y[0])
            return slopes, sum(s * s for s in slopes)
        at = [1., 2., 3.]
        for have, want in zip(first.tolist(), f(at)[0]):
            self.assertAlmostEqual(have, want)
        for i, have in enumerate(slope.tolist()):
            up, down = list(at), list(at)
            up[i], down[i] = at[i] + 1e-4, at[i] - 1e-4
            want = (f(up)[1] - f(down)[1]) / 2e-4
            self.assertAlmostEqual(have / want, 1, places=5)

    def test_gradients_of_spilled_arguments(self):
        import tempfile
        m, g = tg.compile(GRADIENTS), triangle()
        with tempfile.TemporaryDirectory() as folder:
            with tg.execution(spill_dir=folder):
                x = tg.tensor([1., 2., 3.], "f64", requires_grad=True)
                w = tg.tensor([2., 3., 4., 5., 6.], "f64", requires_grad=True)
                y = m.weighted(g, x=x, w=w)
                for t in (x, w, y):
                    t.spill()
                gx, gw = tg.autograd.grad(y.sum(), [x, w])
                self.assertEqual((gx.tolist(), gw.tolist()), ([7.0, 10.0, 3.0], [1.0, 3.0, 2.0, 1.0, 2.0]))
                del x, w, y, t, gx, gw


if __name__ == "__main__":
    unittest.main()
