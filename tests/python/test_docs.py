"""The examples of docs/python.md and of the README, run in order."""
import os
import re
import tempfile
import unittest

from support import SOURCE, np


@unittest.skipUnless(np, "the pages use numpy")
class Docs(unittest.TestCase):
    def test_python_page(self):
        blocks = re.findall(r"^```python\n(.*?)^```$", (SOURCE / "docs/python.md").read_text(), re.M | re.S)
        self.assertGreater(len(blocks), 7)
        names = {}
        for block in blocks:
            with self.subTest(block.splitlines()[0]):
                exec(compile(block, "docs/python.md", "exec"), names)

    def test_readme(self):
        blocks = re.findall(r"^```python\n(.*?)^```$", (SOURCE / "README.md").read_text(), re.M | re.S)
        self.assertEqual(len(blocks), 2)
        names, before = {}, os.getcwd()
        with tempfile.TemporaryDirectory() as folder:  # the pages write files
            os.chdir(folder)
            try:
                for block in blocks:
                    exec(compile(block, "README.md", "exec"), names)
                self.assertEqual(os.listdir(folder), ["values.safetensors"])
            finally:
                os.chdir(before)

    def test_memory_page_names_tests(self):
        """Each promise names its test: those of this suite exist."""
        page = (SOURCE / "docs/memory.md").read_text()
        for file, name in re.findall(r"`(test_execution|test_tensors|test_examples)\.(\w+(?:\.\w+)?)`", page):
            found = __import__(file)
            for part in name.split("."):
                found = getattr(found, part)


if __name__ == "__main__":
    unittest.main()
