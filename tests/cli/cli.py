"""What the tests of the command lines share: the tools, a scratch folder for each test, running and comparing."""
import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TIGA_BUILD", SOURCE / "build"))
TIGAC, TIGA = BUILD / "bin/tigac", BUILD / "bin/tiga"

WEIGHTED_SUM = """kernel weighted_sum[F](src x: f32[F], edge w: f32, dst bias: f32[F]) -> f32[F] {
    return dst.bias + reduce sum(edge.w * src.x)
}
"""


class CliTest(unittest.TestCase):
    maxDiff = 2000

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory(prefix="tiga-cli-")
        self.addCleanup(self._folder.cleanup)
        self.dir = Path(self._folder.name)
        cache = tempfile.TemporaryDirectory(prefix="tiga-cli-cache-")
        self.addCleanup(cache.cleanup)
        self.cache = Path(cache.name)

    def write(self, name, text):
        path = self.dir / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def run_tool(self, tool, *args, stdin="", env=None):
        return subprocess.run([str(tool), *map(str, args)], cwd=self.dir, capture_output=True, timeout=120,
                              input=stdin if isinstance(stdin, bytes) else stdin.encode(),
                              env={**os.environ, "TIGA_CACHE_DIR": str(self.cache), **(env or {})})

    def ok(self, tool, *args, **more):
        r = self.run_tool(tool, *args, **more)
        self.assertEqual(r.returncode, 0, r.stderr.decode())
        return r.stdout.decode(errors="surrogateescape")

    def fails(self, code, tool, *args, says=(), **more):
        """The exit code, and every word of `says` on standard error; nothing on standard output."""
        r = self.run_tool(tool, *args, **more)
        text = r.stderr.decode()
        self.assertEqual(r.returncode, code, text)
        for word in [says] if isinstance(says, str) else says:
            self.assertIn(word, text)
        self.assertEqual(r.stdout, b"")
        return text

    def files(self):
        return sorted(p.name for p in self.dir.iterdir())

    def stats(self, *args):
        return json.loads(self.ok(TIGA, "run", *args, "--stats"))
