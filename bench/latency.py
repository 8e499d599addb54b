#!/usr/bin/env python3
"""From text to a callable kernel, and the cost of a call: medians over fresh processes, with the goals beside them and the
machine's noise (a loop that never changes, run in between).

    latency.py [--build FOLDER] [--runs N]
"""
import argparse
import statistics
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--runs", type=int, default=15)
    options = parser.parse_args()
    seen = {}
    with tempfile.TemporaryDirectory(prefix="tiga-latency-") as folder:
        def run(mode, *names):
            command = [str(options.build / "bin/bench_latency"), mode, folder]
            lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
            for name, line in zip(names, lines):
                seen.setdefault(name, []).append(float(line))

        run("disk")  # fills the folder
        for _ in range(options.runs):
            run("noise", "noise")
            run("cold", "cold", "second")
            run("disk", "disk", "disk second")
            run("memory", "memory")
            run("launch", "launch", "call")
    rows = [("cold", "first kernel of a process (README example)", 1e6, "ms", 60), ("second", "second kernel (weighted sum)", 1e6, "ms", 25),
            ("disk", "from disk, first of a process", 1e6, "ms", 1), ("disk second", "from disk, second", 1e6, "ms", 1),
            ("memory", "from memory, hashing included", 1e3, "us", 1), ("launch", "prepared launch, one row", 1e3, "us", 0.3),
            ("call", "tiga_call, one row", 1e3, "us", None), ("noise", "noise: a fixed loop", 1e6, "ms", None)]
    print(f"{'':44} {'median':>9} {'quartiles':>19}    goal")
    for name, text, unit, word, goal in rows:
        low, middle, high = statistics.quantiles(seen[name], n=4)
        goal_text = f"{goal} {word}" if goal else ""
        print(f"{text:44} {middle / unit:6.2f} {word} {low / unit:8.2f} .. {high / unit:6.2f}    {goal_text}")


if __name__ == "__main__":
    main()
