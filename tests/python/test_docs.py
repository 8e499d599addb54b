"""The examples of docs/python.md and of the README, run in order."""
import re
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
        (block,) = re.findall(r"^```python\n(.*?)^```$", (SOURCE / "README.md").read_text(), re.M | re.S)
        names = {}
        import os
        before = os.getcwd()
        os.chdir(SOURCE)
        try:
            exec(compile(block, "README.md", "exec"), names)
        finally:
            os.chdir(before)


if __name__ == "__main__":
    unittest.main()
