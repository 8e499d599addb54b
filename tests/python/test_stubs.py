"""The stubs say what the modules have: names, parameters, fields; and a type checker, where there is one, likes them."""
import ast
import importlib
import inspect
import shutil
import subprocess
import sys
import unittest

from support import PYTHON, folder, tg

FILES = {"tiga": "__init__.pyi", "tiga.autograd": "autograd.pyi", "tiga.graph": "graph.pyi", "tiga.cache": "cache.pyi", "tiga.torch": "torch.pyi"}

USE = """
import tiga as tg
from pathlib import Path
m: tg.Module = tg.compile("kernel k(src x: f32) -> f32 { return reduce sum(src.x) }", F=3, cache=False)
m = tg.load(Path("m.so"))
g: tg.Graph = tg.Graph.from_csr([0, 1], [0], n_src=1)
s: tg.GraphStats = g.stats
n: int = s.max_degree
f: tg.Function = m.k
y = f(g, x=[1.0], out=None)
h = tg.graph.generate("rmat", scale=3)
hits: int = tg.cache.counters().memory_hits
layer = tg.torch.function(m["k"])
x: tg.Tensor = tg.tensor([1.0, 2.0], requires_grad=True)
loss: tg.Tensor = ((2 * x + x[0]) @ x.exp()).sum(axis=0)
size: tuple[int, ...] = tg.where(x > 1, x, 0).shape
slope: tg.Tensor = tg.autograd.grad(loss, x)
slopes: list[tg.Tensor] = tg.autograd.grad(loss, [x])
with tg.execution(memory={"host": "1MiB", "nvme": 1 << 20}, spill_dir=Path("."), eviction="lru") as run:
    x.spill().realize()
    run.memory_report()["evictions"]
tg.save({"x": x}, "x.tiga", overwrite=True)
try:
    tg.compile("kernel")
except tg.CompileError as error:
    line: int = error.diagnostics[0].line
"""


def parameters(node):
    a = node.args
    names = [p.arg for p in (*a.posonlyargs, *a.args)] + [f"*{p.arg}" for p in [a.vararg] if p]
    return names + [p.arg for p in a.kwonlyargs] + [f"**{p.arg}" for p in [a.kwarg] if p]


def real_parameters(function):
    marks = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [marks.get(p.kind, "") + p.name for p in inspect.signature(function).parameters.values()]


class Stubs(unittest.TestCase):
    def test_they_ship(self):
        self.assertTrue((PYTHON / "tiga/py.typed").exists())

    def test_names_and_parameters(self):
        for name, file in FILES.items():
            module = importlib.import_module(name)
            for node in ast.parse((PYTHON / "tiga" / file).read_text()).body:
                with self.subTest(module=name, node=getattr(node, "name", "")):
                    if isinstance(node, ast.FunctionDef):
                        self.assertEqual(parameters(node), real_parameters(getattr(module, node.name)))
                    elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                        self.check_class(node, getattr(module, node.name))

    def check_class(self, node, real):
        fields = [n.target.id for n in node.body if isinstance(n, ast.AnnAssign)]
        if hasattr(real, "_fields"):
            self.assertEqual(tuple(fields), real._fields)
        for n in node.body:
            if not isinstance(n, ast.FunctionDef) or n.name.startswith("__"):
                continue
            have = inspect.getattr_static(real, n.name)
            if inspect.isdatadescriptor(have):
                self.assertIn("property", [d.id for d in n.decorator_list])
            else:
                have = have.__func__ if isinstance(have, classmethod) else have
                self.assertEqual(parameters(n), real_parameters(have))

    def test_nothing_public_is_missing(self):
        for name, file in FILES.items():
            stub = (PYTHON / "tiga" / file).read_text()
            module = importlib.import_module(name)
            for public, value in vars(module).items():
                if getattr(value, "__module__", "").startswith("tiga") and not public.startswith("_") and callable(value):
                    self.assertRegex(stub, rf"(class|def) {public}\b|import \w+ as {public}\b", f"{name}.{public}")
        self.assertEqual(sorted(tg.__all__), tg.__all__)

    def test_type_checkers(self):
        checkers = [[c, *more] for c, *more in (("mypy", "--strict"), ("pyright",)) if shutil.which(c)]
        try:
            import mypy  # noqa: F401
            checkers = checkers or [[sys.executable, "-m", "mypy", "--strict"]]
        except ImportError:
            pass
        if not checkers:
            self.skipTest("neither mypy nor pyright is here")
        path = folder() / "use.py"
        path.write_text(USE)
        for command in checkers:
            done = subprocess.run([*command, path], capture_output=True, text=True, env={"MYPYPATH": str(PYTHON), "PYTHONPATH":
                                  str(PYTHON), "PATH": "/usr/bin:/bin", "HOME": str(folder())}, cwd=folder())
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
