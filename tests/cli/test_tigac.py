"""tigac: every option, what is written where, exit codes, messages."""
import ctypes
import json
import os
import re
import subprocess
import sys
import unittest

from cli import BUILD, SOURCE, TIGA, TIGAC, WEIGHTED_SUM, CliTest

KINDS = ["c", "cuda", "header", "graph-ir", "loop-ir", "task-ir", "llvm-ir", "json", "plan"]


class Outputs(CliTest):
    def setUp(self):
        super().setUp()
        self.write("m.tg", WEIGHTED_SUM)

    def test_so_and_header(self):
        self.ok(TIGAC, "m.tg", "-o", "m.so")
        self.assertEqual(self.files(), ["m.h", "m.so", "m.tg"])
        lib = ctypes.CDLL(str(self.dir / "m.so"))
        self.assertTrue(lib.tiga_module_info_v1)
        self.assertTrue(lib.weighted_sum)  # a plain C function over raw pointers
        self.assertIn("weighted_sum(", (self.dir / "m.h").read_text())

    def test_computed_dimensions(self):
        """A plain C function is not asked for what follows from its other arguments."""
        self.write("d.tg", "kernel k[D, K](src x: f32[D + K], param w: f32[2 * D]) -> f32[K] {\n"
                           "    return reduce sum(slice(src.x, D, D + K)) * sum(w)\n}\n")
        self.ok(TIGAC, "d.tg", "-o", "d.so")
        self.assertIn("k(const tiga_csr *graph, int64_t D, int64_t K, const float *x, const float *w, float *out, void *scratch)",
                      (self.dir / "d.h").read_text())

        class Csr(ctypes.Structure):
            _fields_ = [("n_dst", ctypes.c_int64), ("n_src", ctypes.c_int64), ("n_edges", ctypes.c_int64),
                        ("offsets", ctypes.c_void_p), ("sources", ctypes.c_void_p), ("source_bits", ctypes.c_int64)]
        offsets, sources = (ctypes.c_int64 * 2)(0, 2), (ctypes.c_int32 * 2)(1, 0)
        x, w, out = (ctypes.c_float * 6)(1, 2, 3, 10, 20, 30), (ctypes.c_float * 2)(1, 3), (ctypes.c_float * 2)()
        g = Csr(1, 2, 2, ctypes.addressof(offsets), ctypes.addressof(sources), 32)
        lib, sizes = ctypes.CDLL(str(self.dir / "d.so")), (ctypes.c_int64(1), ctypes.c_int64(2))
        lib.k_scratch.restype = ctypes.c_int64
        scratch = ctypes.create_string_buffer(lib.k_scratch(ctypes.byref(g), *sizes) + 64)
        at = (ctypes.addressof(scratch) + 63) // 64 * 64
        lib.k(ctypes.byref(g), *sizes, x, w, out, ctypes.c_void_p(at))
        self.assertEqual(list(out), [88, 132])

    def test_so_needs_nothing_but_libc(self):
        for value, libm in (("src.x % 3", True), ("pow(src.x, exp(src.x))", False)):  # the second is our own
            self.write("f.tg", f"kernel k(src x: f32) -> f32 {{ return reduce sum({value}) }}\n")
            self.ok(TIGAC, "f.tg", "-o", "f.so")
            text = subprocess.run(["readelf", "-d", self.dir / "f.so"], capture_output=True, text=True, check=True).stdout
            needed = set(re.findall(r"NEEDED.*\[(.*?)\]", text))
            self.assertLessEqual(needed, {"libm.so.6", "libc.so.6"})
            self.assertEqual("libm.so.6" in needed, libm)
            self.assertIn("SONAME", text)

    @unittest.skipIf(os.environ.get("TIGA_SANITIZE"), "Python is not instrumented")
    def test_inside_python(self):
        """The library in another program, one that defines functions of libm and libc as jump tables of its own."""
        script = self.write("inside.py", """
import ctypes, sys
lib = ctypes.CDLL(sys.argv[1])
lib.tigac_compile.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]
text, result = b"kernel k(src x: f32) -> f32 { return reduce sum(src.x % 3) }", ctypes.c_void_p()
status = lib.tigac_compile(text, len(text), None, ctypes.byref(result))
lib.tigac_result_free.argtypes = [ctypes.c_void_p]
lib.tigac_result_free(result)
sys.exit(status)
""")
        self.ok(sys.executable, script, BUILD / "lib/libtigac.so")

    def test_cache(self):
        """What comes from the cache is what would have been made: outputs, warnings, errors."""
        def entries():
            return len([p for p in self.cache.iterdir() if p.stat().st_size]) if self.cache.exists() else 0
        self.ok(TIGAC, "m.tg", "-o", "a.so")
        self.assertEqual(entries(), 0)
        self.ok(TIGAC, "m.tg", "-o", "a.so", "--cache")
        made = (self.dir / "a.so").read_bytes(), (self.dir / "a.h").read_bytes()
        self.assertEqual(entries(), 1)
        (self.dir / "a.so").unlink()
        self.ok(TIGAC, "m.tg", "-o", "a.so", "--cache")
        self.assertEqual(((self.dir / "a.so").read_bytes(), (self.dir / "a.h").read_bytes()), made)
        self.assertEqual(entries(), 1)
        for n, more in enumerate([["-O1"], ["-D", "F=3"], ["--emit=c", "-o", "a.c"], ["-o", "b.so"], ["--cpu=x86-64"]], 2):
            self.ok(TIGAC, "m.tg", "-o", "a.so", "--cache", *more)
            self.assertEqual(entries(), n, more)
        text = self.ok(TIGAC, "m.tg", "--emit=c")
        self.assertEqual([self.ok(TIGAC, "m.tg", "--emit=c", "--cache") for _ in range(2)], [text, text])
        self.write("bad.tg", "kernel k(src x: f32) -> f32 { return src.x }\n")
        want = self.fails(1, TIGAC, "bad.tg", "-o", "c.so")
        for _ in range(2):
            self.assertEqual(self.fails(1, TIGAC, "bad.tg", "-o", "c.so", "--cache"), want)
        want = self.fails(2, TIGAC, "m.tg", "--cpu=nothing", "-o", "c.so")
        self.assertEqual(self.fails(2, TIGAC, "m.tg", "--cpu=nothing", "-o", "c.so", "--cache"), want)

    def test_default_names(self):
        self.ok(TIGAC, "m.tg")
        self.ok(TIGAC, "m.tg", "--emit=obj")
        self.assertEqual(self.files(), ["m.h", "m.o", "m.so", "m.tg"])

    def test_texts_go_to_stdout(self):
        for kind in KINDS:
            with self.subTest(kind):
                text = self.ok(TIGAC, "m.tg", "--emit", kind)
                self.assertIn("weighted_sum", text)
        self.assertEqual(self.files(), ["m.tg"])
        json.loads(self.ok(TIGAC, "m.tg", "--emit=json"))

    def test_kind_follows_ending(self):
        for name, sign in [("a.c", "#include"), ("a.cu", "__global__"), ("a.h", "#ifndef"), ("a.ll", "define"), ("a.json", "{")]:
            with self.subTest(name):
                self.ok(TIGAC, "m.tg", "-o", name)
                self.assertIn(sign, (self.dir / name).read_text())
        self.ok(TIGAC, "m.tg", "-o", "a.o")
        self.assertEqual((self.dir / "a.o").read_bytes()[:4], b"\x7fELF")

    def test_same_bytes(self):
        for kind in KINDS:
            with self.subTest(kind):
                self.assertEqual(self.ok(TIGAC, "m.tg", "--emit", kind), self.ok(TIGAC, "m.tg", "--emit", kind))
        self.ok(TIGAC, "m.tg", "-o", "m.so")
        first = (self.dir / "m.so").read_bytes()
        self.ok(TIGAC, "m.tg", "-o", "m.so")
        self.assertEqual(first, (self.dir / "m.so").read_bytes())

    def test_stdin(self):
        self.assertIn("weighted_sum", self.ok(TIGAC, "-", "--emit=c", stdin=WEIGHTED_SUM))
        self.ok(TIGAC, "-", "-o", "s.so", stdin=WEIGHTED_SUM)
        self.assertIn("s.so", self.files())
        self.fails(2, TIGAC, "-", stdin=WEIGHTED_SUM, says="-o FILE is needed")
        self.fails(1, TIGAC, "-", "--emit=c", stdin="kernel", says="<stdin>:1:")

    def test_stdout_by_name(self):
        self.assertTrue(self.run_tool(TIGAC, "m.tg", "-o", "-").stdout.startswith(b"\x7fELF"))
        self.assertEqual(self.files(), ["m.tg"])

    def test_ir_files_go_on_from_their_level(self):
        graph, loop, task = (self.ok(TIGAC, "m.tg", f"--emit={k}-ir") for k in ("graph", "loop", "task"))
        want = self.ok(TIGAC, "m.tg", "--emit=task-ir")
        for name, text in [("graph.ir", graph), ("loop.ir", loop), ("task.ir", task)]:
            with self.subTest(name):
                self.write(name, text)
                self.assertEqual(self.ok(TIGAC, name, "--emit=task-ir"), want)
                self.ok(TIGAC, name, "-o", "x.so")

    def test_defines(self):
        text = self.ok(TIGAC, "m.tg", "-D", "F=7", "--emit=graph-ir")
        self.assertIn("f32[7]", text)
        self.assertEqual(text, self.ok(TIGAC, "m.tg", "-DF=7", "--emit=graph-ir"))

    def test_unused_define_warns(self):
        r = self.run_tool(TIGAC, "m.tg", "-D", "G=7", "-o", "m.so")
        self.assertEqual(r.returncode, 0)
        self.assertIn("m.tg: warning[W0011]: -D G=7", r.stderr.decode())
        self.fails(1, TIGAC, "m.tg", "-D", "G=7", "-Werror", "-o", "n.so", says="W0011")
        self.assertNotIn("n.so", self.files())

    def test_dependency_file(self):
        self.write("a b.tg", WEIGHTED_SUM)
        self.ok(TIGAC, "a b.tg", "-MD", "-o", "out.so")
        self.assertEqual((self.dir / "out.d").read_text(), "out.so out.h: a\\ b.tg\n")
        self.ok(TIGAC, "m.tg", "-MF", "deps", "-o", "m.c")
        self.assertEqual((self.dir / "deps").read_text(), "m.c: m.tg\n")
        self.fails(2, TIGAC, "m.tg", "-MD", "--emit=c", says="-MD needs")

    def test_levels(self):
        for level in range(4):
            self.ok(TIGAC, "m.tg", f"-O{level}", "-o", "m.so")
        self.fails(2, TIGAC, "m.tg", "-O4", says="0 to 3")
        self.fails(2, TIGAC, "m.tg", "-Ofast", says="not an integer")

    def test_cpu(self):
        text = self.ok(TIGAC, "m.tg", "--cpu=x86-64-v3", "--emit=llvm-ir")
        self.assertIn('"target-cpu"="x86-64-v3"', text)
        self.fails(2, TIGAC, "m.tg", "--cpu=x86-64v3", "--emit=llvm-ir", says="did you mean 'x86-64-v3'?")
        module = self.run_tool(TIGAC, "m.tg", "--cpu=x86-64-v3", "-o", "-").stdout
        self.assertTrue(b",avx2,bmi," in module)  # the features the module may use are recorded

    def is_clean(self, model):
        self.ok(TIGAC, model, "--emit=c", "-o", "clean.c")
        for language in (["-std=c11"], ["-x", "c++", "-std=c++17"]):
            subprocess.run(["gcc", *language, "-Wall", "-Wextra", "-Wconversion", "-Werror", "-fsyntax-only", "clean.c"],
                           cwd=self.dir, check=True)

    def test_functions_called_often_stay_apart(self):
        chain = "".join(f"    let a{i + 1} = sin(a{i}) + exp(-a{i})\n" for i in range(20))
        self.write("c.tg", f"kernel k(src x: f64, dst y: f32) -> (a: f64, b: f32) {{\n    let a0 = src.x\n{chain}"
                           "    return (a = reduce sum(a20), b = cos(dst.y))\n}\n")
        self.ok(TIGAC, "c.tg", "--emit=c", "-o", "c.c")
        with open(os.path.join(self.dir, "c.c")) as f:
            text = f.read()
        for name in ("sin_f64(", "exp_f64(", "sin_f64x16_part(", "exp_f64x16_part("):
            self.assertRegex(text, rf"(?m)^TIGA_APART \w+ tiga_{re.escape(name)}")
        self.assertRegex(text, r"(?m)^TIGA_FN float tiga_cos_f32\(")
        self.is_clean("c.tg")

    def test_sizes_of_first_axes_only(self):
        self.write("d.tg", "kernel k[D, F](node x: f64[D], param V: f64[D, F], param W: f64[D + F, F]) -> f64[F] {\n"
                           "    return concat(dst.x, reduce max(src.x @ V, empty = 0)) @ W\n}\n")
        self.is_clean("d.tg")

    def test_names_of_the_c_library(self):
        names = ["malloc", "printf", "free", "write", "int", "main", "gamma"]
        self.write("n.tg", "".join(f"kernel {n}(src x: f32) -> f32 {{ return reduce sum(src.x) }}\n" for n in names))
        self.is_clean("n.tg")
        self.ok(TIGAC, "n.tg", "-o", "n.so")
        symbols = subprocess.run(["nm", "-D", "--defined-only", "n.so"], cwd=self.dir, check=True, capture_output=True).stdout
        self.assertTrue({s.split()[-1] for s in symbols.decode().splitlines()}.isdisjoint(names))

    def test_dimensions_called_like_our_tables(self):
        self.write("p.tg", "program p(x: f32[p_steps], y: f32[N]) -> f32[p_steps] { return x * 2 + sum(y) }\n"
                   "kernel k[k_launches, k_buffers](src x: f32[k_launches], dst y: f32[k_buffers]) -> f32[k_buffers] {\n"
                   "    return dst.y + reduce sum(sum(src.x))\n}\n"
                   "program q(x: f32[q_buffers], y: f32[q_launches]) -> f32[q_buffers] { return x + sum(sqrt(y)) * sum(x) }\n")
        self.ok(TIGAC, "p.tg", "-o", "p.so")
        self.ok(TIGAC, "p.tg", "--emit=c", "-o", "p.c")
        subprocess.run(["gcc", "-std=c11", "-fsyntax-only", self.dir / "p.c"], check=True)

    @unittest.skipIf(os.environ.get("TIGA_SANITIZE"), "the sanitizer's library must be the first that is loaded")
    def test_no_threads_to_be_had(self):
        self.write("none.c", "int pthread_create(void *t, const void *a, void *(*f)(void *), void *u) { return 11; /* EAGAIN */ }\n")
        subprocess.run(["gcc", "-w", "-shared", "-fPIC", "none.c", "-o", "none.so"], cwd=self.dir, check=True)
        r = self.run_tool(TIGAC, "m.tg", "-o", "m.so", env={"LD_PRELOAD": str(self.dir / "none.so")})
        self.assertEqual(r.returncode, 3, r.stderr)  # said, not aborted
        self.assertIn(b"thread", r.stderr)

    def test_many_kernels(self):
        # two thousand took hours when every name was compared with every other
        self.write("many.tg", "".join(f"kernel k{i}(src x: f32) -> f32 {{ return reduce sum(src.x * {i}) }}\n" for i in range(2000)))
        self.assertEqual(self.ok(TIGAC, "many.tg", "--emit=c").count("\nvoid k"), 4000)

    def test_vectors_and_prefetch_reach_the_code(self):
        # at F = 64, AVX-512: four vectors of sixteen floats, and the rows of later edges asked for in time
        self.write("wide.tg", WEIGHTED_SUM)
        text = self.ok(TIGAC, "wide.tg", "-DF=64", "--cpu=x86-64-v4", "-O2", "--emit=llvm-ir")
        self.assertGreaterEqual(text.count("fadd <16 x float>"), 4)
        self.assertIn("@llvm.prefetch", text)
        text = self.ok(TIGAC, "wide.tg", "-DF=64", "--cpu=x86-64-v3", "-O0", "--emit=llvm-ir")
        self.assertIn("fadd <8 x float>", text)

    def test_libm_is_called_as_written(self):
        self.write("p.tg", "kernel k(src x: f64) -> f64 { return reduce sum(2.0 ^ src.x + sin(0.5) + src.x % 3) }\n")
        text = self.ok(TIGAC, "p.tg", "-O3", "--emit=llvm-ir")
        called = set(re.findall(r"call .*?@(\w+)\(", text))
        self.assertIn("fmod", called)  # which is exact; neither pow nor what compilers make of it
        self.assertTrue(called.isdisjoint({"pow", "exp2", "ldexp", "sin"}), called)

    def test_cuda(self):
        self.assertIn("__global__", self.ok(TIGAC, "m.tg", "--target=cuda"))
        self.fails(2, TIGAC, "m.tg", "--target=cuda", "--emit=so", says=["no output 'so'", "cuda", "obj is a cubin"])
        self.fails(2, TIGAC, "m.tg", "--target=cpu", "--emit=cuda", says="no output 'cuda'")
        self.fails(2, TIGAC, "m.tg", "--target=gpu", says="unknown target 'gpu'")
        self.assertEqual(self.files(), ["m.tg"])

    def test_cubin(self):
        r = self.run_tool(TIGAC, "m.tg", "--target=cuda", "--emit=obj", "--cuda-arch=sm_90", "-o", "m.cubin")
        if b"NVRTC was not found" in r.stderr:
            self.assertEqual(r.returncode, 3)
            self.skipTest("no NVRTC")
        self.assertEqual(r.returncode, 0, r.stderr.decode())
        self.assertEqual((self.dir / "m.cubin").read_bytes()[:4], b"\x7fELF")
        self.fails(2, TIGAC, "m.tg", "-o", "n.cubin", "--cuda-arch=sm_1", says=["sm_1", "sm_90"])
        self.fails(3, TIGAC, "m.tg", "-o", "n.cubin", env={"TIGA_NVRTC": "/nowhere.so"}, says="/nowhere.so")
        self.assertNotIn("n.cubin", self.files())

        made = (self.dir / "m.cubin").read_bytes()
        cubin = ["m.tg", "--target=cuda", "--emit=obj", "-o", "m.cubin", "--cache"]
        for _ in range(2):
            (self.dir / "m.cubin").unlink()
            self.ok(TIGAC, *cubin, "--cuda-arch=sm_90")
            self.assertEqual((self.dir / "m.cubin").read_bytes(), made)
        self.ok(TIGAC, *cubin, "--cuda-arch=sm_80")
        listed = json.loads(self.ok(TIGA, "cache", "list", "--json", f"--folder={self.cache}"))
        self.assertEqual(sorted((e["kind"], e["cpu"]) for e in listed), [("cubin", "sm_80"), ("cubin", "sm_90")])
        self.fails(3, TIGAC, *cubin, env={"TIGA_NVRTC": "/nowhere.so"}, says="/nowhere.so")

    def test_passes(self):
        self.assertIn("fold", self.ok(TIGAC, "--list-passes"))
        r = self.run_tool(TIGAC, "m.tg", "--dump-after=lower", "-o", "m.so")
        self.assertEqual(r.returncode, 0)
        self.assertIn("// after lower", r.stderr.decode())
        self.assertIn("loop @weighted_sum", r.stderr.decode())
        self.assertIn("rows {", self.ok(TIGAC, "m.tg", "--passes=expand,lower", "--emit=loop-ir"))
        self.fails(2, TIGAC, "m.tg", "--passes=fuze", "--emit=loop-ir", says="unknown pass 'fuze'")
        self.fails(2, TIGAC, "m.tg", "--dump-after=fuze", says="unknown pass 'fuze'")

    def test_explain_plan(self):
        text = self.ok(TIGAC, SOURCE / "examples/pagerank.tg", "--explain-plan")
        self.assertEqual(text, self.ok(TIGAC, SOURCE / "examples/pagerank.tg", "--emit=plan"))
        for option, output in [("--explain-plan", "m.so"), ("--emit=c", "m.o"), ("--emit=cuda", "m.cubin")]:
            self.fails(2, TIGAC, SOURCE / "examples/pagerank.tg", option, "-o", output, says="would hold a text")
        program = text[text.index("program pagerank"):]
        for words in ["walk: 8 bytes per edge: 4 (column) + 4 (x)", "made of neighbour_sum", "made of pagerank.4, on its rows",
                      "not fused with pagerank.2: the walk would gather more bytes per edge than it does now"]:
            self.assertIn(words, program)
        self.assertNotIn("fused", text[:text.index("program pagerank")])
        text = self.ok(TIGAC, SOURCE / "examples/gcn.tg", "--explain-plan", "--target=cuda")
        self.assertIn("made of propagate", text)
        self.assertNotIn("fused", self.ok(TIGAC, SOURCE / "examples/gcn.tg", "--explain-plan", "-O0"))
        text = self.ok(TIGAC, SOURCE / "examples/solvers.tg", "--explain-plan")
        self.assertIn("not fused with apply: a sum over all rows is added in blocks of rows, a walk is cut by edges", text)

    def test_explain_plan_of_products(self):
        (self.dir / "products.tg").write_text("""
program layers[M, K, H, N](x: f32[M, K], w: f32[K, H], v: f32[H, N]) -> f32[M, N] { return relu(x @ w) @ v }
kernel walk[K, N](src x: f32[K], param w: f32[K, N]) -> f32[N] { return reduce mean(src.x) @ w }
kernel by_degree[K, N](dst y: f32[K], param w: f32[K, N]) -> f32[N] { return dst.y @ w / f32(reduce count()) }
kernel of_function[K, N](dst y: f32[K], param w: f32[K, N]) -> f32[N] { return exp(dst.y) @ w }
kernel small(src x: f32[8], param w: f32[8, 8]) -> f32[8] { return reduce mean(src.x) @ w }
kernel before[K, N](dst y: f32[K], param w: f32[K, N]) -> f32 { return sum(dst.y @ w) }
kernel plain[K, N](dst y: f32[K], param w: f32[K, N]) -> f32[N] { return dst.y @ w }
kernel none[K](src x: f32[K]) -> f32[K] { return reduce mean(src.x) }
""")
        text = self.ok(TIGAC, "products.tg", "--explain-plan")
        for name, words in [
            ("layers", "for all rows at a time"),
            ("walk", "for 64 rows at a time"),
            ("by_degree", "for all rows at a time"),
            ("of_function", "for 64 rows at a time"),
            ("small", "row by row, because its matrices are small"),
            ("before", "for 64 rows at a time"),
            ("plain", "for all rows at a time"),
            ("none", None),
        ]:
            part = re.search(rf"^(?:program|kernel) {name}\n(?:  .*\n)+", text, re.M)[0]
            self.assertEqual(re.findall(r"products: (.*)", part), [words] * (2 if name == "layers" else 1) if words else [])

    def test_explain_plan_of_shared_kernels(self):
        """Notes follow a kernel to the one that it shares; what a launch was not fused with is launched there."""
        text = self.ok(TIGAC, SOURCE / "examples/gcn_train.tg", "--explain-plan")
        for program in text.split("program ")[1:]:
            name, *lines = program.split("\n")
            launched = {line.strip() for line in lines if re.fullmatch(r" +[a-z_][\w.]*", line)}
            for other in re.findall(r"not fused with ([\w.]+):", program):
                self.assertIn(other, launched, name)
            if name != "gcn_train":
                self.assertIn("made of propagate\n", program)

    def test_lists(self):
        self.assertRegex(self.ok(TIGAC, "--list-ops"), r"(?m)^reduce +kernel")
        self.assertIn("E0207", self.ok(TIGAC, "--list-errors"))
        self.assertIn("Right", self.ok(TIGAC, "--explain", "E0207"))
        self.assertEqual(self.ok(TIGAC, "--explain=e0207"), self.ok(TIGAC, "--explain", "E0207"))
        self.fails(2, TIGAC, "--explain", "E9999", says="E9999")
        for line in self.ok(TIGAC, "--list-errors").splitlines():
            self.ok(TIGAC, "--explain", line.split()[0])

    def test_help_and_version(self):
        text = self.ok(TIGAC, "--help")
        for word in ("--emit", "-MD", "--cuda-arch", "exit codes"):
            self.assertIn(word, text)
        self.assertRegex(self.ok(TIGAC, "--version"), r"^tigac \d+\.\d+\.\d+ \(LLVM 19")


class Mistakes(CliTest):
    def setUp(self):
        super().setUp()
        self.write("m.tg", WEIGHTED_SUM)
        self.write("bad.tg", WEIGHTED_SUM.replace("edge.w", "edge.v"))

    def test_usage(self):
        self.fails(2, TIGAC, says="no input file")
        self.fails(2, TIGAC, "--emitt=c", "m.tg", says="did you mean '--emit'?")
        self.fails(2, TIGAC, "--emit=d", "m.tg", says="unknown kind 'd'")
        self.fails(2, TIGAC, "m.tg", "bad.tg", says="one file at a time")
        self.fails(2, TIGAC, "m.tg", "-D", "F", says="NAME=N")
        self.fails(2, TIGAC, "m.tg", "-D", "F=x", says="not an integer")
        self.fails(2, TIGAC, "m.tg", "-D", "F=-1", says="from 0")
        self.fails(2, TIGAC, "m.tg", "-D", "F=1", "-D", "F=2", says="twice")
        self.fails(2, TIGAC, "m.tg", "-o", says="needs a value")
        self.fails(2, TIGAC, "m.tg", "--color=blue", says="auto, always or never")
        self.fails(2, TIGAC, "m.tg", "--help=x", says="takes no value")
        self.fails(2, TIGAC, "m.tg", "-o", "m.tg", says="the input and the output")
        self.assertEqual((self.dir / "m.tg").read_text(), WEIGHTED_SUM)

    def test_wrong_program(self):
        text = self.fails(1, TIGAC, "bad.tg", "-MD", "-o", "bad.so", says=["bad.tg:2:", "error[E", "^"])
        self.assertNotIn("\033", text)
        self.assertEqual(self.files(), ["bad.tg", "m.tg"])
        self.assertIn("\033[", self.fails(1, TIGAC, "bad.tg", "--color=always"))

    def test_old_output_survives_a_failure(self):
        self.ok(TIGAC, "m.tg", "-o", "x.so")
        before = (self.dir / "x.so").read_bytes()
        self.fails(1, TIGAC, "bad.tg", "-o", "x.so")
        self.assertEqual(before, (self.dir / "x.so").read_bytes())

    def test_all_errors_in_one_run(self):
        self.write("two.tg", "kernel a(src x: f32) -> f32 { return src.x }\nkernel b(src x: f32) -> f32 { return reduce sum(src.y) }\n")
        text = self.fails(1, TIGAC, "two.tg", says=["two.tg:1:", "two.tg:2:"])
        self.assertLess(text.index("two.tg:1:"), text.index("two.tg:2:"))

    def test_files(self):
        self.fails(1, TIGAC, "none.tg", says="none.tg")
        self.fails(1, TIGAC, ".", says="cannot read")
        self.fails(3, TIGAC, "m.tg", "-o", "no/such/folder/m.so", says="no/such/folder")
        self.write("zero.tg", b"kernel \0")
        self.fails(1, TIGAC, "zero.tg", says=["E0001", "byte 7"])
        self.write("bad.ir", "kernel nonsense")
        self.fails(1, TIGAC, "bad.ir", says="bad.ir:1:")

    @unittest.skipIf(not os.path.exists("/dev/full"), "no /dev/full")
    def test_full_disk(self):
        with open("/dev/full", "wb") as full:
            r = subprocess.run([TIGAC, "m.tg", "--emit=c"], cwd=self.dir, stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(r.returncode, 3)
        self.fails(3, TIGAC, "m.tg", "--emit=c", "-o", "/dev/full", says="/dev/full")

    def test_devices_are_not_replaced(self):
        self.ok(TIGAC, "m.tg", "--emit=c", "-o", "/dev/null")
        self.assertFalse(os.path.isfile("/dev/null"))


class Documentation(CliTest):
    def test_errors_are_explained(self):
        """Every id that docs/errors.md shows has a page."""
        for id_ in re.findall(r"(?m)^## ([EW]\d{4})", (SOURCE / "docs/errors.md").read_text()):
            self.ok(TIGAC, "--explain", id_)


if __name__ == "__main__":
    unittest.main()
