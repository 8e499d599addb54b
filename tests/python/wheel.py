"""pip install . in a fresh environment, and the published example there.  Long: it compiles everything; needs PyPI."""
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]


class Wheel(unittest.TestCase):
    def test_install(self):
        with tempfile.TemporaryDirectory(prefix="tiga-wheel-") as folder:
            python = Path(folder, "venv/bin/python")
            clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "TIGA_LIBRARY_PATH")}
            subprocess.run([sys.executable, "-m", "venv", python.parents[1]], check=True)
            done = subprocess.run([python, "-m", "pip", "install", SOURCE], capture_output=True, text=True, cwd=folder, env=clean)
            if "No matching distribution found for scikit-build-core" in done.stderr:
                self.skipTest("PyPI cannot be reached")
            self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-3000:])
            done = subprocess.run([python, SOURCE / "examples/python/weighted_sum.py"], capture_output=True, text=True, cwd=folder,
                                  env=clean)
            self.assertEqual((done.stdout.splitlines()[0], done.stderr), ("[11.0, 8.0, 17.0]", ""))
            done = subprocess.run([python, "-m", "tiga"], capture_output=True, text=True, cwd=folder, env=clean)
            self.assertIn("libtigac:    tigac ", done.stdout)
            self.assertIn(f"{folder}/venv/lib", done.stdout.split("extension:")[1].splitlines()[0])


if __name__ == "__main__":
    unittest.main()
