"""python -m tiga, and how the libraries are found."""
import os
import shutil
import subprocess
import sys
import unittest

from support import BUILD, PYTHON, folder, run, tg
from tiga import _lib


def python(*args, **env):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("TIGA_")}
    return subprocess.run([sys.executable, *args], capture_output=True, text=True, timeout=300, cwd=folder(),
                          env={**clean, "PYTHONPATH": str(PYTHON), **env})


class Main(unittest.TestCase):
    def test_report(self):
        done = run("import runpy; runpy.run_module('tiga', run_name='__main__')")
        self.assertEqual(done.stderr, "")
        lines = dict(line.split(":", 1) for line in done.stdout.splitlines())
        self.assertEqual(set(lines), {"tiga", "python", "libtiga", "extension", "libtigac", "processor", "threads", "cache", "gpu",
                                      "numpy", "torch"})
        self.assertIn(tg.__version__, lines["libtigac"])
        self.assertRegex(lines["cache"], r"\d+ entries")
        self.assertRegex(lines["extension"], r"_tiga.abi3.so|none: calls go through ctypes")


class Finding(unittest.TestCase):
    SHOW = "import tiga; from tiga import _lib; print(_lib.library_path())"

    def test_source_tree(self):
        if BUILD != PYTHON.parent / "build":
            self.skipTest("built elsewhere")
        self.assertEqual(python("-c", self.SHOW).stdout.strip(), str(BUILD / "lib/libtiga.so.0"))

    def test_chosen(self):
        where = folder() / "mine"
        where.mkdir()
        shutil.copy(BUILD / "lib/libtiga.so.0", where)
        self.assertEqual(python("-c", self.SHOW, TIGA_LIBRARY_PATH=str(where)).stdout.strip(), str(where / "libtiga.so.0"))
        # the compiler is not there: loading goes, compiling says so
        done = python("-c", "import tiga; tiga.compile('kernel{')", TIGA_LIBRARY_PATH=str(where))
        self.assertIn("ImportError: tiga: cannot load the compiler", done.stderr)

    def test_chosen_but_not_there(self):
        done = python("-c", self.SHOW, TIGA_LIBRARY_PATH=str(folder() / "none"))
        self.assertIn("ImportError: tiga: libtiga.so.0 is not in", done.stderr)
        (folder() / "bad").mkdir()
        (folder() / "bad/libtiga.so.0").write_text("no library")
        done = python("-c", self.SHOW, TIGA_LIBRARY_PATH=str(folder() / "bad"))
        self.assertIn("ImportError: tiga: cannot load", done.stderr)

    def test_without_site_packages(self):
        done = python("-S", "-c", "import tiga as tg; g = tg.Graph.from_csr([0, 1], [0]); print(type(g.offsets).__name__)")
        self.assertEqual((done.stdout, done.stderr), ("memoryview\n", ""))

    def test_the_extension_can_be_refused(self):
        self.assertEqual(python("-c", "from tiga import _lib; print(_lib.extension)", TIGA_PYTHON_EXTENSION="off").stdout, "None\n")

    def test_the_extension_is_in_use(self):
        """./dev build makes it, and the tests of the fast way must not pass without it."""
        if os.environ.get("TIGA_PYTHON_EXTENSION") == "off":
            self.assertIsNone(_lib.extension)
        elif (BUILD / "lib/_tiga.abi3.so").exists():
            self.assertIsNotNone(_lib.extension)


if __name__ == "__main__":
    unittest.main()
