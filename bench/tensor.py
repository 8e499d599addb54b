#!/usr/bin/env python3
"""Lazy tensors against numpy, and torch where it is there, in turns in one run: ten operators on 4M f32, and x * x on 8 elements,
warm.  All use the threads that OMP_NUM_THREADS says (numpy one).

    tensor.py [--build FOLDER] [--runs N] [--elements N]
"""
import argparse
import statistics
import subprocess
import time
from pathlib import Path

import numpy as np

try:
    import torch
except ImportError:
    torch = None

ROOT = Path(__file__).resolve().parents[1]


def chain(x, y, maximum=np.maximum):
    e = x * y
    e = e + x
    e = e * 0.5
    e = e - y
    e = e * e
    e = e + 1.0
    e = maximum(e, x)
    e = e / 3.0
    e = e * y
    return e + x


def best(f, rounds):
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        f()
        times.append(time.perf_counter() - began)
    return min(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--elements", type=int, default=4_000_000)
    options = parser.parse_args()

    def ours(*arguments):
        command = [str(options.build / "bin/bench_tensor"), *map(str, arguments)]
        return [float(v) for v in subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()]

    x, y = (np.random.default_rng(s).random(options.elements, dtype="f4") for s in (1, 2))
    small = x[:8].copy()
    seen = {"ours": [], "numpy": [], "torch": [], "compiled": [], "small": [], "numpy small": []}
    of_torch = torch and [torch.from_numpy(a) for a in (x, y)]
    compiled = torch.compile(lambda a, b: chain(a, b, torch.maximum)) if hasattr(torch, "compile") else None
    for _ in range(options.runs):
        seen["ours"] += ours("chain", options.elements)
        seen["numpy"].append(best(lambda: chain(x, y), 15) * 1e3)
        if torch:
            seen["torch"].append(best(lambda: chain(*of_torch, torch.maximum), 15) * 1e3)
        if compiled:
            seen["compiled"].append(best(lambda: compiled(*of_torch), 15) * 1e3)
        seen["small"].append(ours("small")[0] / 1e3)
        seen["numpy small"].append(best(lambda: [small * small for _ in range(1000)], 20) * 1e3)
    print(f"{'':44} {'median':>9} {'least':>9}")
    for name, text, unit in (("ours", f"ten operators on {options.elements} f32", "ms"), ("numpy", "numpy", "ms"),
                             ("torch", f"torch {torch.__version__ if torch else ''}, eager", "ms"),
                             ("compiled", "the same, torch.compile", "ms"),
                             ("small", "x * x on 8 f32, from C: made, observed, freed", "us"), ("numpy small", "numpy, from Python", "us")):
        if seen[name]:
            print(f"{text:44} {statistics.median(seen[name]):6.2f} {unit} {min(seen[name]):6.2f} {unit}")
    print(f"ten operators: {statistics.median(seen['numpy']) / statistics.median(seen['ours']):.1f} times numpy (goal 2)")
    if torch:
        theirs = min(statistics.median(seen[name]) for name in ("torch", "compiled") if seen[name])
        print(f"ten operators: {theirs / statistics.median(seen['ours']):.1f} times torch, eager or compiled (goal 1)")


if __name__ == "__main__":
    main()
