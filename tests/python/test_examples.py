"""examples/python/*.py, run as a user would."""
import ast
import os
import subprocess
import sys
import unittest

from support import PYTHON, SOURCE, np

try:
    import torch
except ImportError:
    torch = None
FOLDER = SOURCE / "examples/python"


class Examples(unittest.TestCase):
    def run_example(self, name):
        paths = os.pathsep.join(p for p in (str(PYTHON), os.environ.get("PYTHONPATH")) if p)
        done = subprocess.run([sys.executable, FOLDER / name], capture_output=True, text=True, timeout=300,
                              env={**os.environ, "PYTHONPATH": paths})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_all_are_here(self):
        tested = {name[5:] + ".py" for name in dir(self) if name.startswith("test_")} - {"all_are_here.py"}
        self.assertEqual({p.name for f in (FOLDER, FOLDER.parent) for p in f.glob("*.py")}, tested)

    def test_weighted_sum(self):
        out = self.run_example("weighted_sum.py").splitlines()
        self.assertEqual(out[:2], ["[11.0, 8.0, 17.0]", "[11.0, 8.0, 17.0]"])
        if np:
            self.assertEqual(out[2], "[11.  8. 17.]")

    def test_pagerank(self):
        out = self.run_example("pagerank.py").splitlines()
        self.assertEqual((len(out), out[0].split()[1]), (10, "libc6"))

    def test_tensor_training(self):
        out = self.run_example("tensor_training.py").splitlines()
        self.assertLess(float(out[3].split()[-1]), 0.1 * float(out[0].split()[-1]))
        self.assertGreaterEqual(int(out[-1].split()[0]), 30)

    def test_hierarchical_memory(self):
        out = self.run_example("../hierarchical_memory.py").splitlines()
        self.assertEqual(out[0], "[0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]")
        self.assertEqual(ast.literal_eval(out[1])["tiers"]["host"]["budget"], 1 << 20)

    def test_lru_eviction(self):
        report = ast.literal_eval(self.run_example("../lru_eviction.py"))
        self.assertEqual((report["eviction_policy"], report["tiers"]["host"]["budget"]), ("lru", 128))
        self.assertGreater(report["evictions"], 4)
        self.assertLessEqual(report["tiers"]["host"]["peak"], 128)

    @unittest.skipUnless(torch, "needs torch")
    def test_torch_layer(self):
        losses = [float(line.split()[-1]) for line in self.run_example("torch_layer.py").splitlines()]
        self.assertLess(losses[-1], 0.8 * losses[0])


if __name__ == "__main__":
    unittest.main()
