"""cmake --install into an empty prefix, moved elsewhere; a program is built there with CMake and with pkg-config."""
import os
import shutil
import subprocess
import sys
import unittest

from cli import BUILD, SOURCE, WEIGHTED_SUM, CliTest

CONSUMER = r"""
#include "model.h"
#include "tiga/compiler.h"
#include "tiga/jit.h"
#include "tiga/tiga.h"
#include <stdio.h>
#include <string.h>

static const char text[] = "kernel degree() -> i64 { return reduce count() }\n";

int main(int argc, char **argv) {
    tiga_context *ctx;
    tiga_module *m, *j;
    tiga_graph *g;
    const int64_t offsets[] = {0, 2, 3}, sources[] = {0, 1, 1};
    float x[] = {1, 2}, w[] = {1, 10, 100}, bias[] = {0.5f, 0.25f};
    const int64_t two[] = {2, 1}, three[] = {3};
    if (argc < 2 || tiga_context_new(NULL, &ctx)) return 1;
    if (tiga_module_load(ctx, argv[1], &m)) return 2;
    if (tiga_graph_from_csr(ctx, 2, 2, offsets, sources, 64, TIGA_COPY, &g)) return 3;
    tiga_array ax = tiga_array_borrow(x, TIGA_F32, 2, two), aw = tiga_array_borrow(w, TIGA_F32, 1, three);
    tiga_array ab = tiga_array_borrow(bias, TIGA_F32, 2, two), out = {0};
    tiga_binding in[] = {{"x", &ax}, {"w", &aw}, {"bias", &ab}}, result = {"out", &out};
    if (tiga_call(ctx, m, "weighted_sum", g, in, 3, &result, 1)) { fprintf(stderr, "%s\n", tiga_error_text(ctx)); return 4; }
    tigac_options o = tigac_defaults();
    tigac_result *r;
    if (tigac_compile(text, strlen(text), &o, &r)) return 5;
    printf("%g %g %d\n", ((float *)out.data)[0], ((float *)out.data)[1], r->outputs[TIGAC_SO].n_bytes > 0);
    tigac_result_free(r);
    if (tiga_jit_source(ctx, text, strlen(text), NULL, &j, NULL)) return 6;
    tiga_module_free(j);
    tiga_array_free(&out);
    tiga_graph_free(g);
    tiga_module_free(m);
    tiga_context_free(ctx);
    return 0;
}
"""

CMAKE = """
cmake_minimum_required(VERSION 3.20)
project(consumer LANGUAGES C)
find_package(Tiga 0.1 REQUIRED)
add_executable(consumer main.c)
target_link_libraries(consumer PRIVATE Tiga::tiga Tiga::tigac)
"""


@unittest.skipIf(os.environ.get("TIGA_SANITIZE"), "a program without sanitizers cannot link a library with them")
class Install(CliTest):
    def setUp(self):
        super().setUp()
        self.command("cmake", "--install", BUILD, "--prefix", self.dir / "first")
        shutil.move(self.dir / "first", self.dir / "prefix")
        self.prefix = self.dir / "prefix"
        self.write("model.tg", WEIGHTED_SUM)
        self.write("main.c", CONSUMER)
        self.command(self.prefix / "bin/tigac", "model.tg", "-o", "model.so")

    def command(self, *args, env=None):
        r = subprocess.run([str(a) for a in args], cwd=self.dir, capture_output=True, text=True, env={**os.environ, **(env or {})})
        self.assertEqual(r.returncode, 0, f"{args}\n{r.stdout}\n{r.stderr}")
        return r.stdout

    def test_cmake(self):
        self.write("CMakeLists.txt", CMAKE)
        self.command("cmake", "-S", ".", "-B", "b", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        self.command("cmake", "--build", "b")
        self.assertEqual(self.command("b/consumer", self.dir / "model.so"), "21.5 200.25 1\n")

    def test_pkg_config(self):
        folder = next(self.prefix.glob("lib*/pkgconfig")) if list(self.prefix.glob("lib*/pkgconfig")) else next(self.prefix.glob("lib*/*/pkgconfig"))
        env = {"PKG_CONFIG_PATH": str(folder)}
        flags = self.command("pkg-config", "--cflags", "--libs", "tiga", "tigac", env=env).split()
        self.command("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "main.c", "-o", "consumer", *flags)
        self.command("c++", "-x", "c++", "-std=c++17", "-fsyntax-only", "main.c", *flags)
        library_path = {"LD_LIBRARY_PATH": str(folder.parent)}
        self.assertEqual(self.command("./consumer", self.dir / "model.so", env=library_path), "21.5 200.25 1\n")

    def test_python(self):
        folder = next(self.prefix.glob("**/python/tiga")).parent
        text = ("import tiga as tg; from tiga import _lib; print(_lib.library_path());"
                "m = tg.load('model.so'); g = tg.Graph.from_csr([0, 2, 3], [0, 1, 1]);"
                "print(m.weighted_sum(g, x=[[1], [2]], w=[1, 10, 100], bias=[[0.5], [0.25]]))")
        clean = {k: v for k, v in os.environ.items() if not k.startswith("TIGA_")}
        r = subprocess.run([sys.executable, "-c", text], cwd=self.dir, capture_output=True, text=True,
                           env={**clean, "PYTHONPATH": str(folder)})
        path, result = r.stdout.splitlines() or ["", r.stderr]
        self.assertTrue(path.startswith(str(self.prefix)), path)
        self.assertEqual(result, "[[21.5], [200.25]]")

    def test_what_is_there(self):
        names = {str(p.relative_to(self.prefix)) for p in self.prefix.rglob("*") if p.is_file() or p.is_symlink()}
        for name in ("bin/tiga", "bin/tigac", "include/tiga/tiga.h", "include/tiga/abi.h", "include/tiga/compiler.h"):
            self.assertIn(name, names)
        self.assertFalse([n for n in names if n.endswith((".a", ".c"))])


if __name__ == "__main__":
    assert SOURCE
    unittest.main()
