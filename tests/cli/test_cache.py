"""tiga cache: what it says of a folder whose contents are known."""
import json
import os
import re
import unittest

from cli import BUILD, TIGA, CliTest

FILL = BUILD / "bin/cache_fill"
KEY = {"kind": "cpu object", "compiler": "tiga 0.1.0", "cpu": "znver4", "flags": "-O2", "file": "model.tg",
       "source": "kernel a() {\n    return 1\n}\n"}


class Cache(CliTest):
    def fill(self, *more, folder="cache", **changed):
        return self.ok(FILL, self.dir / folder, *more, *(f"{k}={v}" for k, v in {**KEY, **changed}.items())).strip()

    def run_cache(self, *args, folder="cache"):
        return self.ok(TIGA, "cache", *args, f"--folder={self.dir / folder}")

    def keys(self):
        return [e["key"] for e in json.loads(self.run_cache("list", "--json"))]

    def fill_key(self, *more, **changed):
        """The key of what was filled in."""
        before = set(self.keys())
        self.assertEqual(self.fill(*more, **changed), "built")
        (key,) = set(self.keys()) - before
        return key

    def test_nothing(self):
        self.assertIn("entries    0\n", self.run_cache("stats"))
        self.assertEqual(self.run_cache("list"), "")
        self.assertEqual(self.run_cache("list", "--json"), "[]\n")
        self.assertIn("0 files removed", self.run_cache("clear"))
        self.assertFalse((self.dir / "cache").exists())

    def test_stats_list_clear(self):
        good = self.fill_key()
        self.assertEqual(self.fill(), "found")
        wrong = self.fill_key("--wrong", source="kernel oops")
        cut = self.fill_key(file="cut.tg")
        os.truncate(self.dir / "cache" / cut, 80)
        stats = self.run_cache("stats")
        self.assertIn(f"folder     {self.dir / 'cache'}\n", stats)
        self.assertIn("entries    3 (1 of programs that are wrong, 1 damaged)\n", stats)
        self.assertIn("limit      2.0 GiB", stats)
        have = json.loads(self.run_cache("stats", "--json"))
        size = sum(f.stat().st_size for f in (self.dir / "cache").iterdir())
        self.assertEqual((have["entries"], have["failed"], have["damaged"], have["bytes"]), (3, 1, 1, size))
        lines = self.run_cache("list").splitlines()
        self.assertEqual(len(lines), 4)
        by_key = {line.split()[0]: line for line in lines}
        self.assertRegex(by_key[good[:12]], r"cpu object +model\.tg +\d+ B +\d+ s +znver4$")
        self.assertIn("wrong program", by_key[wrong[:12]])
        self.assertIn("damaged", by_key[cut[:12]])
        entries = {e["key"]: e for e in json.loads(self.run_cache("list", "--json"))}
        self.assertEqual({k: entries[good][k] for k in ("kind", "file", "cpu", "failed", "damaged")},
                         {"kind": "cpu object", "file": "model.tg", "cpu": "znver4", "failed": False, "damaged": False})
        self.assertTrue(entries[wrong]["failed"] and entries[cut]["damaged"] and "file" not in entries[cut])
        (self.dir / "cache/notes").write_text("mine")
        self.assertIn("3 files removed", self.run_cache("clear"))
        self.assertEqual([p.name for p in (self.dir / "cache").iterdir()], ["notes"])
        self.assertEqual(self.fill(), "built")

    def test_why(self):
        first = self.fill_key()
        text = self.run_cache("why", first[:8])
        for words in (first, "kind        cpu object", "cpu         znver4", "28 bytes, 3 lines: kernel a() {\\n",
                      "no other entry of the same file and kind"):
            self.assertIn(words, text)
        self.fill_key(file="other.tg")
        second = self.fill_key(cpu="znver5")
        self.assertIn("differs from " + first[:12], self.run_cache("why", second))
        self.assertIn("cpu       there 'znver4', here 'znver5'\n", self.run_cache("why", second))
        third = self.fill_key(source="kernel a() {\n    return 2\n}\n")
        text = self.run_cache("why", third)
        self.assertIn("first in line 2\n      there:     return 1\n      here:      return 2\n", text)
        self.assertEqual(text.count("differs from"), 2)
        self.assertNotIn("flags     there", text)
        fourth = self.fill_key(more="x")
        self.assertIn("more      only here\n", self.run_cache("why", fourth))
        odd = self.fill_key(file="odd.tg", flags="a\x1b[31mb")
        self.assertIn("a\\x1b[31mb", self.run_cache("why", odd))

    def test_why_not(self):
        where = f"--folder={self.dir / 'cache'}"
        self.fails(2, TIGA, "cache", "why", where, says="wants a key")
        self.fails(1, TIGA, "cache", "why", "abc", where, says=["no key in", "'abc'"])
        keys = []
        while len({k[0] for k in keys}) == len(keys):  # until two begin alike
            keys.append(self.fill_key(flags=f"-{len(keys)}"))
        self.fails(1, TIGA, "cache", "why", keys[-1][0], where, says=["2 keys begin with", "say more"])
        os.truncate(self.dir / "cache" / keys[0], 70)
        self.fails(1, TIGA, "cache", "why", keys[0], where, says="damaged")

    def test_environment(self):
        env = {"TIGA_CACHE_DIR": str(self.dir / "one"), "XDG_CACHE_HOME": str(self.dir / "two")}
        self.assertIn(str(self.dir / "one"), self.ok(TIGA, "cache", "stats", env=env))
        env["TIGA_CACHE_DIR"] = ""
        self.assertIn(str(self.dir / "two/tiga"), self.ok(TIGA, "cache", "stats", env=env))
        env = {"TIGA_CACHE_DIR": "", "XDG_CACHE_HOME": "", "HOME": ""}
        self.assertIn("folder     none", self.ok(TIGA, "cache", "stats", env=env))

    def test_a_folder_that_is_not_safe(self):
        self.fill()
        (self.dir / "cache").chmod(0o777)
        for action in ("stats", "list", "clear"):
            self.fails(3, TIGA, "cache", action, f"--folder={self.dir / 'cache'}",
                       says=[str(self.dir / "cache"), "others can write to it"])

    def test_usage(self):
        for args, words in ((["cache"], "stats, list, why or clear?"), (["cache", "x"], "unknown action 'x'"),
                            (["cache", "stats", "x"], "too many operands"), (["cache", "why", "a", "b"], "too many operands"),
                            (["cache", "stats", "--folder="], "empty"), (["cache", "--jsn"], "did you mean '--json'?"),
                            (["cahce"], "did you mean 'cache'?")):
            self.fails(2, TIGA, *args, says=words)
        text = self.ok(TIGA, "cache", "--help")
        for action in ("stats", "list", "why", "clear", "--folder"):
            self.assertIn(action, text)
        self.assertTrue(re.search(r"tiga cache", self.ok(TIGA, "--help")))


if __name__ == "__main__":
    unittest.main()
