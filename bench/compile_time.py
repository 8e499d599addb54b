#!/usr/bin/env python3
"""How long `tigac x.tg -o x.so` takes on large programs, and whether it stays linear: each shape at half and at full size.

    compile_time.py [--build FOLDER] [--size N] [--runs N] [--keep FOLDER] [SHAPE ...]

Shapes: `layers`, one kernel called N times; `kernels`, N kernels that differ in their arithmetic, each followed by tensor
operations, and totals of them; `gradient`, a chain of N / 5 different kernels and its gradient; `switches`, N kernels of which
half stand in arms of an `if` or in the body of a `repeat`; `statements`, one kernel of N statements with a sine each; `fields`,
one kernel that sums N fields.

The best of the runs is printed: seconds by the clock, seconds of the processors, and full size over half size (clock).
"""
import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# What users write: sums with weights that are scaled, shifted, clipped, gated; each kernel has numbers of its own.
MESSAGES = ["{a} * edge.w * src.x", "(edge.w + {a}) * src.x", "max(edge.w, {a}) * src.x + {b}", "src.x * (1 - {a} * edge.w)",
            "select(edge.w > {a}, src.x, {b} * src.x)", "{a} * src.x - {b} * edge.w", "edge.w * relu(src.x - {a})"]
ROWS = ["{b} * dst.h + {r}", "{r} / (1 + {a} * abs(dst.h))", "max({r}, {a} * dst.h)", "dst.h + {a} * ({r} - dst.h)",
        "{r} * {b} - dst.h"]
REDUCERS = ["sum", "sum", "mean", "max"]


def kernel(i):
    a, b = f"{0.1 + i * 0.001:.4f}", f"{0.5 + i * 0.0007:.4f}"
    message = MESSAGES[i % len(MESSAGES)].format(a=a, b=b)
    row = ROWS[(i // 2) % len(ROWS)].format(a=a, b=b, r=f"reduce {REDUCERS[(i // 3) % len(REDUCERS)]}({message})")
    return f"kernel step{i}[F](src x: f32[F], edge w: f32, dst h: f32[F]) -> f32[F] {{\n    return {row}\n}}\n"


def layers(n):
    lines = ["kernel layer[F](src x: f32[F], edge w: f32, dst h: f32[F]) -> f32[F] {",
             "    return 0.5 * dst.h + reduce sum(edge.w * src.x)", "}",
             "program net(g: graph, x: f32[g.dst, F], w: f32[g.edge]) -> f32[g.dst, F] {", "    let x0 = x"]
    lines += [f"    let x{i + 1} = layer(g, x = x{i}, w = w, h = x0)" for i in range(n)]
    return "\n".join(lines + [f"    return x{n}", "}", ""])


def kernels(n):
    body = ["    let x0 = x", "    let s0 = 0.0"]
    for i in range(n):
        smooth = f"tanh(y{i})" if i % 10 == 5 else f"relu(y{i})"
        body += [f"    let y{i} = step{i}(g, x = x{i}, w = w, h = x)", f"    let x{i + 1} = {smooth} * {0.9 - i * 0.0003:.4f} + x{i}"]
        if i % 10 == 9:
            body.append(f"    let s{i // 10 + 1} = s{i // 10} + sum(x{i + 1} * y{i})")
    head = "program net(g: graph, x: f32[g.dst, F], w: f32[g.edge]) -> (out: f32[g.dst, F], s: f32) {"
    return "".join(map(kernel, range(n))) + "\n".join([head] + body + [f"    return (out = x{n}, s = s{n // 10})", "}", ""])


def gradient(n):
    n = max(n // 5, 1)
    body = ["    let x0 = x"] + [f"    let x{i + 1} = step{i}(g, x = x{i}, w = w, h = x{i})" for i in range(n)]
    body += [f"    let loss = sum(x{n} * x{n})", "    let (dx, dw) = grad(loss, (x, w))", "    return (dx = dx, dw = dw)"]
    head = "program net(g: graph, x: f32[g.dst, F], w: f32[g.edge]) -> (dx: f32[g.dst, F], dw: f32[g.edge]) {"
    return "".join(map(kernel, range(n))) + "\n".join([head] + body + ["}", ""])


def switches(n):
    body = ["    var y = x", "    repeat 3 {"]
    for i in range(n // 4):
        body.append(f"        y = step{i}(g, x = y, w = w, h = x)")
    body.append("    }")
    for i in range(n // 4, n - 1, 2):
        body += [f"    if sum(y) > {i}.0 {{", f"        y = step{i}(g, x = y, w = w, h = x)", "    } else {",
                 f"        y = step{i + 1}(g, x = y, w = w, h = x)", "    }"] if (i - n // 4) % 4 == 0 else [
                     f"    y = step{i}(g, x = y, w = w, h = x)", f"    y = step{i + 1}(g, x = y, w = w, h = y)"]
    head = "program net(g: graph, x: f32[g.dst, F], w: f32[g.edge]) -> f32[g.dst, F] {"
    return "".join(map(kernel, range(n))) + "\n".join([head] + body + ["    return y", "}", ""])


def statements(n):
    lines = [f"    let a{i} = sin(a{i - 1}) * 1.01 + a{max(i - 8, 0)}" for i in range(1, n)]
    return "\n".join(["kernel k(src x: f32) -> f32 {", "    let a0 = src.x", *lines, f"    return reduce sum(a{n - 1})", "}", ""])


def fields(n):
    params = ", ".join(f"src x{i}: f32" for i in range(n))
    sums = ["(" + " + ".join(f"src.x{i}" for i in range(at, min(at + 100, n))) + ")" for at in range(0, n, 100)]
    terms = " + ".join(sums)  # a chain of more than 500 operations is refused
    return f"kernel k({params}) -> f32 {{\n    return reduce sum({terms})\n}}\n"


SHAPES = {"layers": layers, "kernels": kernels, "gradient": gradient, "switches": switches, "statements": statements, "fields": fields}


def measure(command):
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True)
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--size", type=int, default=500)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="leave the programs in this folder")
    parser.add_argument("--limit", type=float, help="fail when a shape takes more seconds (clock), or 2.2 times that of half the size")
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", choices=[[], *SHAPES])
    options = parser.parse_args()
    print(f"{'shape':10} {'half s':>8} {'full s':>8} {'cpu s':>8} {'ratio':>6}   load {os.getloadavg()[0]:.1f}")
    slow = False
    with tempfile.TemporaryDirectory(prefix="tiga-compile-") as folder:
        folder = options.keep or Path(folder)
        for shape in options.shapes or SHAPES:
            best = {}
            for size in (options.size // 2, options.size):
                (folder / f"{shape}{size}.tg").write_text(SHAPES[shape](size))
            for _ in range(options.runs):
                for size in (options.size // 2, options.size):
                    text = folder / f"{shape}{size}.tg"
                    seen = measure([options.build / "bin/tigac", text, "-o", text.with_suffix(".so")])
                    best[size] = tuple(map(min, seen, best.get(size, seen)))
            (half, _), (full, cpu) = best[options.size // 2], best[options.size]
            print(f"{shape:10} {half:8.2f} {full:8.2f} {cpu:8.2f} {full / half:6.2f}", flush=True)
            slow |= options.limit is not None and (full > options.limit or full > 2.2 * half)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
