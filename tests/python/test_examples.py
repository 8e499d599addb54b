"""examples/python/*.py, run as a user would."""
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
        self.assertEqual({p.name for p in FOLDER.glob("*.py")}, tested)

    def test_weighted_sum(self):
        out = self.run_example("weighted_sum.py").splitlines()
        self.assertEqual(out[:2], ["[11.0, 8.0, 17.0]", "[11.0, 8.0, 17.0]"])
        if np:
            self.assertEqual(out[2], "[11.  8. 17.]")

    def test_pagerank(self):
        out = self.run_example("pagerank.py").splitlines()
        self.assertEqual((len(out), out[0].split()[1]), (10, "libc6"))

    @unittest.skipUnless(torch, "needs torch")
    def test_torch_layer(self):
        losses = [float(line.split()[-1]) for line in self.run_example("torch_layer.py").splitlines()]
        self.assertLess(losses[-1], 0.8 * losses[0])


if __name__ == "__main__":
    unittest.main()
