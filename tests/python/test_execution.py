"""Scopes, residency, snapshots and the named store from Python: what docs/memory.md promises."""
import gc
import json
import os
import random
import struct
import tempfile
import threading
import unittest
from pathlib import Path

from support import W, X, module, needs_numpy, np, run, tg, triangle


class Folder(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="tiga-memory-test-")
        self.folder = self.temporary.name
        self.addCleanup(self.temporary.cleanup)
        self.addCleanup(gc.collect)  # values let go of the folder before it goes


class Scopes(Folder):
    def test_report(self):
        with tg.execution(memory={"host": "1MiB", "nvme": 4096}, spill_dir=self.folder) as run:
            x = tg.tensor([1., 2., 3.])
            report = run.memory_report()
            self.assertEqual(report["tiers"]["host"], {"live": 12, "peak": 12, "budget": 1 << 20})
            self.assertEqual(report["tiers"]["nvme"], {"live": 0, "peak": 0, "budget": 4096})
            self.assertEqual(report["tiers"]["device"]["budget"], None)
            self.assertEqual((report["eviction_policy"], report["evictions"], report["restores"], report["active"]), ("error", 0, 0, True))
            self.assertIn("graphs", report["exclusions"])
            self.assertTrue(report["scope"])
            self.assertEqual(tg.memory_report()["tiers"]["host"]["live"], 12)
            x = None
            self.assertEqual(run.memory_report()["tiers"]["host"]["live"], 0)
            self.assertEqual(run.memory_report()["tiers"]["host"]["peak"], 12)
        self.assertFalse(run.memory_report()["active"])
        self.assertIn("ended", repr(run))

    def test_sizes_and_aliases(self):
        for memory, want in (({"ram": 5}, ("host", 5)), ({"host": "5"}, ("host", 5)), ({"hbm": "1KiB"}, ("device", 1024)),
                             ({"ssd": "2MiB"}, ("nvme", 2 << 20)), ({"nvme": "3GiB"}, ("nvme", 3 << 30)),
                             ({"disk": "1TiB"}, ("nvme", 1 << 40)), ({"pinned": 7}, ("host-pinned", 7)),
                             ({"host-pinned": 0}, ("host-pinned", 0))):
            with tg.execution(memory=memory) as run:
                self.assertEqual(run.memory_report()["tiers"][want[0]]["budget"], want[1], memory)
        with tg.execution(memory="auto", spill_dir=self.folder) as run:
            self.assertGreater(run.memory_report()["tiers"]["host"]["budget"], 1 << 20)
            self.assertGreater(run.memory_report()["tiers"]["nvme"]["budget"], 0)

    def test_wrong_arguments(self):
        for arguments, error in (({"memory": {"host": -1}}, ValueError), ({"memory": {"host": "1.5GiB"}}, ValueError),
                                 ({"memory": {"host": "1 GiB"}}, ValueError), ({"memory": {"host": "1GB"}}, ValueError),
                                 ({"memory": {"host": 1.5}}, TypeError), ({"memory": {"host": True}}, TypeError),
                                 ({"memory": {"host": None}}, TypeError), ({"memory": {"tape": 1}}, KeyError),
                                 ({"memory": {"host": 1, "ram": 2}}, ValueError), ({"memory": {1: 1}}, TypeError),
                                 ({"memory": "all"}, ValueError), ({"memory": 5}, TypeError), ({"eviction": "fifo"}, ValueError),
                                 ({"eviction": "lru"}, ValueError), ({"device": "cuda:0"}, NotImplementedError),
                                 ({"device": 0}, TypeError), ({"spill_dir": "/nowhere/at/all"}, FileNotFoundError),
                                 ({"spill_dir": 3}, TypeError), ({"page_rows": 0}, ValueError), ({"page_rows": 1.5}, TypeError),
                                 ({"prefetch_depth": -1}, ValueError), ({"shared": "a/b"}, ValueError), ({"shared": 1}, TypeError), ({"count_code": "a"}, TypeError)):
            with self.subTest(arguments=arguments), self.assertRaises(error):
                with tg.execution(**arguments):
                    pass
        self.assertEqual((tg.tensor([1]) + 1).tolist(), [2])

    def test_they_do_not_nest(self):
        with tg.execution():
            with self.assertRaisesRegex(ValueError, "nest"):
                with tg.execution():
                    pass
            self.assertTrue(tg.memory_report()["active"])
        with tg.execution():
            pass

    def test_over_budget_is_said_before(self):
        with tg.execution(memory={"host": 100}) as run:
            x = tg.tensor([1.] * 20)
            with self.assertRaises(MemoryError):
                tg.tensor([1.] * 6)
            with self.assertRaises(MemoryError):
                (x + 1).realize()
            self.assertEqual(run.memory_report()["tiers"]["host"], {"live": 80, "peak": 80, "budget": 100})
            y = x + 1  # an expression holds nothing
            self.assertEqual(run.memory_report()["tiers"]["host"]["live"], 80)
            self.assertEqual((x.sum() + 0).item(), 20.0)
        self.assertEqual(y.sum().item(), 40.0)

    def test_cycles_go_before_a_refusal(self):
        class Node:
            pass
        gc.disable()
        try:
            with tg.execution(memory={"host": 100}):
                node = Node()
                node.self, node.x = node, tg.tensor([1.] * 20)
                del node
                self.assertEqual(tg.tensor([2.] * 20).tolist(), [2.0] * 20)
        finally:
            gc.enable()

    def test_views_are_charged_once(self):
        with tg.execution() as run:
            x = tg.tensor([[1., 2.], [3., 4.]])
            views = [x.T, x[0], x.reshape(4), x[:, 1:]]
            for v in views:
                v.realize()
            self.assertEqual(run.memory_report()["tiers"]["host"]["live"], 16)
            x = None
            self.assertEqual(run.memory_report()["tiers"]["host"]["live"], 16)
            views = v = None
            self.assertEqual(run.memory_report()["tiers"]["host"]["live"], 0)

    def test_values_outlive_the_scope(self):
        with tg.execution(spill_dir=self.folder) as run:
            x = tg.tensor([1., 2.])
            x.spill()
        self.assertEqual(run.memory_report()["tiers"]["nvme"]["live"], 8)
        y = x + 1
        self.assertEqual((x.tolist(), y.tolist()), ([1.0, 2.0], [2.0, 3.0]))
        self.assertEqual(run.memory_report()["tiers"]["host"]["live"], 8)
        x = y = None
        self.assertEqual(run.memory_report()["tiers"]["host"]["live"], 0)

    def test_calls_are_charged(self):
        """What a call makes for itself counts, on whichever thread."""
        g = triangle()
        with tg.execution(memory={"host": 0}):
            with self.assertRaises(MemoryError):
                module().rounds(g, x=[1., 2., 3.], n=2)
            errors = []

            def work():
                try:
                    module().rounds(g, x=[1., 2., 3.], n=2)
                except MemoryError as error:
                    errors.append(error)
            t = threading.Thread(target=work)
            t.start()
            t.join()
            self.assertEqual(len(errors), 1)
        module().rounds(g, x=[1., 2., 3.], n=2)

    def test_code_can_count(self):
        text = "kernel k(src x: f32) -> f32 { return reduce sum(src.x * %d) }"
        with tg.execution(count_code=True) as run:
            m = tg.compile(text % 7, cache=False)
            report = run.memory_report()
            self.assertGreater(report["code"], 0)
            self.assertGreaterEqual(report["tiers"]["host"]["live"], report["code"])
            del m
        with tg.execution() as run:
            m = tg.compile(text % 8, cache=False)
            self.assertEqual(run.memory_report()["code"], 0)
            del m

    def test_threads_share_it(self):
        with tg.execution(memory={"host": 1 << 18, "nvme": 1 << 24}, spill_dir=self.folder, eviction="lru") as run:
            wrong = []

            def work(k):
                r, mine = random.Random(k), []
                for i in range(60):
                    mine.append((i, tg.arange(2000, dtype="f32") * 0 + i))
                    mine[-1][1].realize()
                    if len(mine) > 40:
                        mine.pop(r.randrange(len(mine)))
                    n, x = r.choice(mine)
                    if r.random() < 0.2:
                        x.spill()
                    if x[r.randrange(2000)].item() != n:
                        wrong.append((k, i))
            threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            self.assertEqual(wrong, [])
            self.assertLessEqual(run.memory_report()["tiers"]["host"]["peak"], 1 << 18)
            self.assertGreater(run.memory_report()["evictions"], 0)

    def test_shared(self):
        text = """
import sys
from support import tg
with tg.execution(memory={"host": 1000}, shared=sys.argv[1] if len(sys.argv) > 1 else NAME) as run:
    x = tg.tensor([1.] * 100)
    r = run.memory_report()["tiers"]["host"]
    print(r["live"], r["shared_live"])
    try:
        tg.tensor([1.] * 100)
        print("room")
    except MemoryError:
        print("none")
"""
        name = f"tiga-test-{os.getpid()}"
        with tg.execution(memory={"host": 1000}, shared=name):
            x = tg.tensor([1.] * 100)
            done = run(f"NAME = {name!r}\n" + text)
            self.assertEqual((done.stdout.split(), done.stderr), (["400", "800", "none"], ""))
            x = None
            done = run(f"NAME = {name!r}\n" + text)
            self.assertEqual(done.stdout.split(), ["400", "400", "room"])


class Residency(Folder):
    def test_spill_and_realize(self):
        with tg.execution(spill_dir=self.folder) as run:
            x = tg.tensor([1., 2., 3.], requires_grad=True)
            before = x.residency
            self.assertEqual(before, {"device": "cpu", "resident": True, "backing": None, "bytes": 12, "version": before["version"],
                                      "pins": 0})
            self.assertIs(x.spill(), x)
            self.assertEqual(x.residency, {**before, "resident": False, "backing": "spill"})
            self.assertEqual(repr(x), "tiga.Tensor(f32[3], view)")
            tiers = run.memory_report()["tiers"]
            self.assertEqual((tiers["host"]["live"], tiers["nvme"]["live"], run.memory_report()["spills"]), (0, 12, 1))
            self.assertIs(x.realize(), x)
            self.assertEqual(x.residency, before)
            self.assertEqual(x.tolist(), [1.0, 2.0, 3.0])
            self.assertEqual(run.memory_report()["tiers"]["nvme"]["live"], 0)

    def test_history_survives(self):
        with tg.execution(spill_dir=self.folder):
            x = tg.tensor([1., 2.], requires_grad=True)
            loss = (x * x * x).sum()
            loss.spill()
            x.spill()
            self.assertEqual(tg.autograd.grad(loss, x).tolist(), [3.0, 12.0])

    def test_pending_is_computed_to_be_spilled(self):
        with tg.execution(spill_dir=self.folder):
            y = tg.tensor([1., 2.]) * 3
            self.assertEqual((y.residency["resident"], y.residency["bytes"]), (False, 0))
            y.spill()
            self.assertFalse(y.residency["resident"])
            self.assertEqual(y.tolist(), [3.0, 6.0])

    def test_views_move_together(self):
        with tg.execution(spill_dir=self.folder):
            x = tg.tensor([[1., 2.], [3., 4.]])
            v = x[1].realize()
            v.spill()
            self.assertFalse(x.residency["resident"])
            self.assertEqual((v.tolist(), x.tolist()), ([3.0, 4.0], [[1.0, 2.0], [3.0, 4.0]]))

    @needs_numpy
    def test_what_looks_at_memory_keeps_it(self):
        with tg.execution(spill_dir=self.folder):
            x = tg.tensor([1., 2.])
            a = np.asarray(x)
            x.spill()
            self.assertTrue(x.residency["resident"])
            self.assertEqual(a.tolist(), [1.0, 2.0])
            del a
            gc.collect()
            self.assertFalse(x.residency["resident"])
            self.assertEqual(x.tolist(), [1.0, 2.0])

    @needs_numpy
    def test_memory_of_others_stays(self):
        x = tg.from_numpy(np.float32([1, 2]))
        with self.assertRaises(NotImplementedError):
            x.spill()
        self.assertEqual(x.residency["resident"], True)

    def test_devices(self):
        x = tg.tensor([1., 2.])
        self.assertIs(x.cpu(), x)
        self.assertIs(x.to("cpu"), x)
        with self.assertRaises(NotImplementedError):
            x.to("cuda:0")
        y = x * 2
        self.assertIs(y.cpu(), y)
        self.assertNotEqual(y.execution.how, "pending")

    def test_nothing_is_left(self):
        with tg.execution(spill_dir=self.folder):
            xs = [tg.tensor([float(i)] * 100).spill() for i in range(10)]
            self.assertEqual(xs[3].tolist(), [3.0] * 100)
            del xs
        gc.collect()
        self.assertEqual(os.listdir(self.folder), [])


class Eviction(Folder):
    def test_oldest_first(self):
        with tg.execution(memory={"host": 48, "nvme": 4096}, spill_dir=self.folder, eviction="lru") as run:
            a, b, c = (tg.tensor([float(i)] * 4) for i in range(3))
            self.assertEqual([x.residency["resident"] for x in (a, b, c)], [True] * 3)
            a.tolist()
            d = tg.tensor([3.] * 4)
            self.assertEqual([x.residency["resident"] for x in (a, b, c, d)], [True, False, True, True])
            self.assertEqual((run.memory_report()["eviction_policy"], run.memory_report()["evictions"]), ("lru", 1))
            self.assertEqual(b.tolist(), [1.0] * 4)
            self.assertEqual(run.memory_report()["restores"], 1)
            self.assertEqual([x.tolist()[0] for x in (a, b, c, d)], [0.0, 1.0, 2.0, 3.0])

    def test_what_is_active_stays(self):
        with tg.execution(memory={"host": 100, "nvme": 4096}, spill_dir=self.folder, eviction="lru"):
            x, y = tg.tensor([1.] * 10), tg.tensor([2.] * 10)
            with self.assertRaises(MemoryError):
                (x + y).realize()  # 120 bytes at once
            self.assertEqual((x + y).sum().item(), 30.0)

    def test_a_full_disk_budget(self):
        with tg.execution(memory={"host": 40, "nvme": 40}, spill_dir=self.folder, eviction="lru"):
            x, y = tg.tensor([1.] * 10), tg.tensor([2.] * 10)
            with self.assertRaises(MemoryError):
                tg.tensor([3.] * 10)
            self.assertEqual(y.tolist(), [2.0] * 10)
            self.assertEqual(x.residency["bytes"], 40)


class Files(Folder):
    def path(self, name="a.tiga"):
        return Path(self.folder, name)

    def test_save_and_load(self):
        x = tg.tensor([[1., 2.], [3., 4.]], requires_grad=True)
        tg.save(x, self.path())
        y = tg.load(self.path())
        self.assertEqual((y.residency["resident"], y.residency["backing"], y.shape, y.dtype), (False, "snapshot", (2, 2), tg.f32))
        self.assertEqual(y.tolist(), x.tolist())
        self.assertEqual((y.residency["resident"], y.residency["backing"]), (True, "snapshot"))
        self.assertFalse(y.requires_grad)
        with self.assertRaises(FileExistsError):
            tg.save(x, self.path())
        tg.save(x * 2, self.path(), overwrite=True)
        self.assertEqual(tg.load(self.path()).tolist(), [[2.0, 4.0], [6.0, 8.0]])
        with self.assertRaises(NotImplementedError):
            tg.load(self.path(), device="cuda")

    def test_saving_needs_no_room(self):
        n = 3 << 20
        with tg.execution(memory={"host": 4 * n + 1000, "nvme": "1GiB"}, spill_dir=self.folder, eviction="lru") as run:
            a = tg.rand(n, seed=1)
            first, last = a[1000].item(), a[n - 1].item()
            b = tg.rand(n, seed=2)
            self.assertFalse(a.residency["resident"])
            before = run.memory_report()
            path = os.path.join(self.folder, "two.safetensors")
            tg.save({"a": a, "part": a[1000:2 << 20]}, path)
            after = run.memory_report()
            self.assertEqual((after["restores"], after["evictions"]), (before["restores"], before["evictions"]))
            part, whole = os.path.join(self.folder, "part"), os.path.join(self.folder, "a.npy")
            tg.save(a.reshape(-1, 512)[:, 3:7], part)
            tg.save(a, whole)
            self.assertEqual(run.memory_report()["restores"], before["restores"])
            self.assertEqual(os.path.getsize(whole), 4 * n + 128)
            del b
            two = tg.load(path)
            self.assertEqual(tg.load(part)[1].tolist(), a[515:519].tolist())
            self.assertEqual(tg.load(whole)[1000].item(), first)
            self.assertEqual((two["a"][n - 1].item(), two["part"][0].item(), two["part"].shape), (last, first, ((2 << 20) - 1000,)))
            del a, two

    def test_none_at_all(self):
        tg.save({}, self.path())
        self.assertEqual(tg.load(self.path()), {})

    def test_a_reader_keeps_its_file(self):
        tg.save(tg.tensor([1.]), self.path())
        x = tg.load(self.path())
        tg.save(tg.tensor([2.]), self.path(), overwrite=True)
        self.assertEqual((x.tolist(), tg.load(self.path()).tolist()), ([1.0], [2.0]))
        os.unlink(self.path())
        self.assertEqual((x + 1).tolist(), [2.0])

    def test_several_by_name(self):
        tg.save({"w": tg.tensor([1., 2.]), "n": tg.arange(3), "b": [0.5]}, self.path())
        all_of_them = tg.load(self.path())
        self.assertEqual({k: v.tolist() for k, v in all_of_them.items()}, {"w": [1.0, 2.0], "n": [0, 1, 2], "b": [0.5]})
        self.assertEqual(tg.load(self.path(), "n").tolist(), [0, 1, 2])
        with self.assertRaises(KeyError):
            tg.load(self.path(), "x")
        with self.assertRaises(TypeError):
            tg.save({1: tg.tensor([1.])}, self.path("b.tiga"))
        with self.assertRaises(ValueError):
            tg.save({"": tg.tensor([1.])}, self.path("b.tiga"))

    def test_every_type_and_shape(self):
        values = {}
        for dtype in (tg.bool_, tg.i8, tg.u8, tg.i32, tg.i64, tg.f16, tg.bf16, tg.f32, tg.f64, tg.c64, tg.c128):
            values[f"{dtype}"] = tg.tensor([[dtype.python(1), dtype.python(0)]], dtype)
            values[f"{dtype}.none"] = tg.zeros((2, 0), dtype)
            values[f"{dtype}.one"] = tg.tensor(dtype.python(1), dtype)
        values["view"] = tg.arange(6).reshape(2, 3).T[1:, ::-1]
        tg.save(values, self.path())
        for name, x in tg.load(self.path()).items():
            self.assertEqual((x.dtype, x.shape, x.tolist()), (values[name].dtype, values[name].shape, values[name].tolist()), name)

    def test_it_is_a_safetensors_file(self):
        tg.save({"w": tg.tensor([1., 2.]), "n": tg.tensor([[3]])}, self.path("a.safetensors"))
        data = self.path("a.safetensors").read_bytes()
        n = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:8 + n])
        self.assertIn("tiga.xxh3", header.pop("__metadata__"))
        self.assertEqual({k: (v["dtype"], v["shape"]) for k, v in header.items()}, {"w": ("F32", [2]), "n": ("I64", [1, 1])})
        begin, end = header["w"]["data_offsets"]
        self.assertEqual(struct.unpack("<2f", data[8 + n + begin:8 + n + end]), (1.0, 2.0))

    @needs_numpy
    def test_the_safetensors_package(self):
        try:
            from safetensors.numpy import load_file, save_file
        except ImportError:
            self.skipTest("the package safetensors is not here")
        a = np.arange(6, dtype=np.float32).reshape(2, 3)
        tg.save({"a": tg.tensor(a), "n": tg.arange(2)}, self.path("a.safetensors"))
        have = load_file(self.path("a.safetensors"))
        self.assertEqual({k: v.tolist() for k, v in have.items()}, {"a": a.tolist(), "n": [0, 1]})
        save_file({"b": a}, self.path("b.safetensors"))
        self.assertEqual(tg.load(self.path("b.safetensors")).tolist(), a.tolist())

    @needs_numpy
    def test_npy(self):
        for a in (np.arange(6, dtype=np.float32).reshape(2, 3), np.array([1 + 2j, 3]), np.array(5), np.zeros((0, 2), np.int32),
                  np.array([True, False]), np.float16([1.5])):
            path = self.path(f"{a.dtype}-{a.ndim}.npy")
            tg.save(tg.tensor(a), path)
            b = np.load(path)
            self.assertEqual((b.dtype, b.shape, b.tolist()), (a.dtype, a.shape, a.tolist()))
            with self.assertRaises(FileExistsError):
                tg.save(tg.tensor(a), path)
            tg.save(tg.tensor(a), path, overwrite=True)
            np.save(path, a)
            x = tg.load(path)
            self.assertEqual((x.shape, x.tolist()), (a.shape, a.tolist()))
        with self.assertRaises(ValueError):
            tg.save({"a": tg.tensor(1)}, self.path("b.npy"))
        self.assertEqual([n for n in os.listdir(self.folder) if not n.endswith(".npy")], [])

    def test_what_is_not_there(self):
        with self.assertRaises(FileNotFoundError) as caught:
            tg.load(self.path())
        self.assertEqual(caught.exception.filename, str(self.path()))
        with self.assertRaises(IsADirectoryError):
            tg.load(self.folder)

    def test_many_write_one_path(self):
        """Processes that save to a path, new or old: it is whole whenever it is there, and one of them made it."""
        for end in ("x", "x.npy"):
            text = f"""
import sys
from support import tg
import os
path = os.path.join({self.folder!r}, {end!r})
for k in range(60):
    tg.save(tg.tensor([float(k)] * 3000), path, overwrite=True)
    have = tg.load(path).tolist()
    assert len(have) == 3000 and len(set(have)) == 1
    try:
        tg.save(tg.tensor([1.]), os.path.join({self.folder!r}, f"{{k}}-{end}"))
        print(k)
    except FileExistsError:
        pass
"""
            made = []
            threads = [threading.Thread(target=lambda: made.append(run(text))) for _ in range(3)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            self.assertEqual([done.stderr for done in made], [""] * 3)
            self.assertEqual(sorted(int(n) for done in made for n in done.stdout.split()), list(range(60)))

    def test_what_is_no_snapshot(self):
        self.path().write_bytes(b"something else")
        with self.assertRaises(ValueError):
            tg.load(self.path())
        with self.assertRaises(FileNotFoundError):
            tg.load(self.path("nothing"))
        with self.assertRaises(FileNotFoundError):
            tg.save(tg.tensor([1.]), "/nowhere/at/all")
        with self.assertRaises(OSError):
            tg.load(self.folder)

    def test_flipped_bytes(self):
        tg.save(tg.tensor([1., 2., 3.]), self.path())
        data = bytearray(self.path().read_bytes())
        for at in (0, 20, len(data) // 2, len(data) - 1):
            data[at] ^= 1
            self.path().write_bytes(data)
            with self.assertRaises((ValueError, MemoryError), msg=at):
                tg.load(self.path()).tolist()
            data[at] ^= 1

    def test_modules_are_loaded_as_ever(self):
        from support import module_path
        self.assertIsInstance(tg.load(module_path()), tg.Module)
        with self.assertRaises(TypeError):
            tg.load(module_path(), "w")

    def test_named_store(self):
        text = """
from support import tg
import sys
x = tg.tensor([1., 2.])
assert x.disk(name="mine") is x
assert x.residency["backing"] == "snapshot" and not x.residency["resident"], x.residency
assert x.tolist() == [1.0, 2.0]
for name, error in (("mine", ValueError), ("a/b", ValueError), ("", ValueError), (".x", ValueError), ("..", ValueError), (3, TypeError)):
    try:
        x.disk(name=name)
        raise SystemExit(f"{name!r} was taken")
    except error:
        pass
assert tg.from_disk("mine").tolist() == [1.0, 2.0]
try:
    tg.from_disk("other")
    raise SystemExit("found what is not there")
except KeyError:
    pass
y = tg.tensor([5.])
y.disk()
assert not y.residency["resident"] and y.tolist() == [5.0]
"""
        done = run(text, TIGA_STORE_DIR=self.folder)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        done = run("from support import tg; print(tg.from_disk('mine').tolist())", TIGA_STORE_DIR=self.folder)
        self.assertEqual(done.stdout, "[1.0, 2.0]\n")

    def test_a_budget_holds_for_what_is_loaded(self):
        tg.save(tg.tensor([1.] * 100), self.path())
        with tg.execution(memory={"host": 399}) as run:
            x = tg.load(self.path())
            self.assertEqual(run.memory_report()["tiers"]["host"]["live"], 0)
            with self.assertRaises(MemoryError):
                x.tolist()
        with tg.execution(memory={"host": 400}) as run:
            x = tg.load(self.path())
            self.assertEqual(x.tolist(), [1.0] * 100)
            self.assertEqual(run.memory_report()["tiers"]["host"]["live"], 400)


class Random(Folder):
    """Hundreds of steps against a model in lists: values, bytes, residency."""

    def test_steps(self):
        for seed in range(2):
            with self.subTest(seed=seed):
                self.steps(random.Random(seed), 150, 120)  # each moves a few values to the disk and back

    def test_large_steps(self):
        """Of values that are written ahead, and keep their places on disk."""
        self.assertGreater(self.steps(random.Random(5), 80, 60000), 0)

    def steps(self, r, n, longest):
        """The most bytes that copies had."""
        budget = longest * 4000 // 120
        with tg.execution(memory={"host": budget, "nvme": 256 * budget}, spill_dir=self.folder, eviction="lru") as run:
            live, files, ahead = [], 0, 0
            for _ in range(n):
                step = r.random()
                try:
                    if step < 0.25 or not live:
                        values = [float(r.randrange(100)) for _ in range(r.randrange(1, longest))]
                        live.append((tg.tensor(values), values))
                    elif step < 0.45:
                        x, values = r.choice(live)
                        live.append((x * 2 + 1, [2 * v + 1 for v in values]))
                    elif step < 0.55:
                        x, values = r.choice(live)
                        k = r.randrange(len(values))
                        live.append((x[k:], values[k:]) if r.random() < 0.5 else (x[::-1], values[::-1]))
                    elif step < 0.65:
                        r.choice(live)[0].spill()
                    elif step < 0.75:
                        r.choice(live)[0].realize()
                    elif step < 0.8:
                        x, values = r.choice(live)
                        path = os.path.join(self.folder, f"{files}.tiga")
                        files += 1
                        tg.save(x, path)
                        live.append((tg.load(path), values))
                        os.unlink(path)
                    else:
                        live.pop(r.randrange(len(live)))
                    if live:
                        x, values = r.choice(live)
                        self.assertEqual(x.tolist(), values)
                except MemoryError:
                    self.fail("the working set of one step fits")
                report = run.memory_report()
                host, disk = report["tiers"]["host"], report["tiers"]["nvme"]
                ahead = max(ahead, report["ahead"])
                self.assertLessEqual(host["peak"], budget)
                self.assertLessEqual(disk["live"] + report["ahead"], disk["budget"])
                if len(live) > 60:
                    live.pop(0)
            for x, values in live:
                self.assertEqual(x.tolist(), values)
            x = live = None
            gc.collect()
            report = run.memory_report()
            tiers = report["tiers"]
            self.assertEqual((tiers["host"]["live"], tiers["nvme"]["live"], report["ahead"]), (0, 0, 0))
        self.assertEqual(os.listdir(self.folder), [])
        return ahead


class Ends(unittest.TestCase):
    """The process ends in the middle of things."""

    def test_finalizers_look(self):
        done = run("""
from support import tg
class D:
    def __init__(self):
        self.x = tg.tensor([2.])
    def __del__(self):
        print(self.x.tolist(), (self.x + 1).tolist())
d = D()
""")
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("[2.0] [3.0]\n", "", 0))

    def test_a_scope_is_open(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run(f"""
from support import tg
def scope():
    with tg.execution(memory={{"host": 10000, "nvme": 100000}}, spill_dir={folder!r}, eviction="lru"):
        yield [tg.tensor([float(i)] * 500) for i in range(20)]
g = scope()
xs = next(g)
c = tg.tensor([1.]).__dlpack__()
""")
            self.assertEqual((done.stdout, done.stderr, done.returncode), ("", "", 0))
            self.assertEqual(os.listdir(folder), [])

    def test_another_thread_is_inside(self):
        done = run("""
import threading, time
from support import tg
x = tg.rand((800, 800), 1)
threading.Thread(target=lambda: [(x @ x).sum().item() for _ in range(1000)], daemon=True).start()
time.sleep(0.3)
""")
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("", "", 0))


class Signals(unittest.TestCase):
    def test_a_handler_cannot_use_tensors_in_the_middle_of_a_call(self):
        text = """
import signal, threading, time
from support import tg
said = []
def handler(*_):
    try:
        (tg.tensor([1.]) + 1).tolist()
        said.append("done")
    except RuntimeError as error:
        said.append(str(error))
signal.signal(signal.SIGALRM, handler)
x = tg.rand((1500, 1500), 1)
(x @ x).sum().item()
signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
for _ in range(3):
    (x @ x).sum().item()
signal.setitimer(signal.ITIMER_REAL, 0, 0)
assert said and all(s == "done" or "signal handler" in s for s in said), said
print((x[0, 0] * 0 + 1).item())
"""
        done = run(text)
        self.assertEqual((done.stdout, done.stderr), ("1.0\n", ""))

    def test_interrupt(self):
        text = """
import signal, threading, time, os
from support import tg
x = tg.rand((1000, 1000), 1)
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
start = time.time()
try:
    for _ in range(1000):
        (x @ x).sum().item()
    print("never")
except KeyboardInterrupt:
    print("stopped")
print((tg.tensor([1.]) + 1).tolist())
"""
        done = run(text)
        self.assertEqual((done.stdout, done.stderr), ("stopped\n[2.0]\n", ""))

    def test_a_scope_ends_whatever_comes_between(self):
        text = """
import signal, threading, time, os
from support import tg
x = tg.rand((1000, 1000), 1)
(x @ x).realize()
def hold():
    for _ in range(4):
        ((x @ x) @ (x @ x)).realize()
other = threading.Thread(target=hold)
try:
    with tg.execution(memory={"host": "1GiB"}):
        other.start()
        time.sleep(0.05)
        threading.Timer(0.02, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    time.sleep(1)  # for a signal that comes late
except KeyboardInterrupt:  # most often while the end waits for the other thread
    pass
other.join()
with tg.execution(memory={"host": "1MiB"}) as run:
    print(tg.tensor([1.]).tolist())
"""
        for _ in range(3):
            done = run(text)
            self.assertEqual((done.stdout, done.stderr), ("[1.0]\n", ""))

    def test_nothing_is_lost_that_a_call_made(self):
        """A handler raises as the call ends: a pin, an open file and a text have no owner, and are let go."""
        with tempfile.TemporaryDirectory() as folder:
            text = f"""
import os
from support import tg
from tiga import _tensors
path = os.path.join({folder!r}, "x")
x, y = tg.rand(1000, 1).realize(), tg.rand(10, 1) * 2
tg.save(x, path)
def files(): return len(os.listdir("/proc/self/fd"))
before, failure = files(), _tensors._lib.extension
def late(): raise KeyboardInterrupt
class Extension:
    raise_pending = staticmethod(late)
    def __getattr__(self, name): return getattr(failure, name)
whole = _tensors._context._run
def then(*a):
    whole(*a)
    late()
if failure: _tensors._lib.extension = Extension()
else: _tensors._context._run = then
for call in (lambda: tg.load(path), lambda: x.to_numpy(), lambda: memoryview(x), lambda: y.program, lambda: x.__dlpack__()):
    try:
        call()
    except (KeyboardInterrupt, TypeError):
        pass
_tensors._lib.extension, _tensors._context._run = failure, whole
print(files() - before, x.residency["pins"])
"""
            done = run(text)
            self.assertEqual((done.stdout, done.stderr), ("0 0\n", ""))

    def test_fork(self):
        text = """
import os
from support import tg
x = tg.tensor([1., 2.])
(x * 2).tolist()
child = os.fork()
if child == 0:
    ok = (x * 2).tolist() == [2.0, 4.0]
    os._exit(0 if ok else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), (x * 2).tolist())
"""
        done = run("import warnings\nwarnings.simplefilter('ignore', DeprecationWarning)  # Python 3.12: there are threads\n" + text)
        self.assertEqual((done.stdout, done.stderr), ("0 [2.0, 4.0]\n", ""))


if __name__ == "__main__":
    unittest.main()
