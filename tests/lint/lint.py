#!/usr/bin/env python3
"""What no compiler checks: formatting, who includes whom, which symbols the libraries export, sizes of functions' files.

    lint.py [--fix] [--no-format] [--build FOLDER]      exit code 1 and one line per fault
"""
import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SEES = {  # folder: what its files may include besides their own and the public headers
    "base": set(),
    "ir": {"base"},
    "frontend": {"base", "ir"},
    "passes": {"base", "ir"},
    "codegen": {"base", "ir"},
    "runtime": {"base"},
    "hierarchy_runtime": {"base", "runtime"},
    "driver": {"base", "ir", "frontend", "passes", "codegen", "runtime", "hierarchy_runtime"},
    "tensor": {"base", "ir"},  # and of the rest what users see
}
CLANG_FORMAT = ["clang-format-19", "/usr/lib/llvm-19/bin/clang-format"]


def listed():
    """Files of the project; from an unpacked archive, without git, all of them."""
    if shutil.which("git"):
        command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
        r = subprocess.run(command, cwd=ROOT, text=True, capture_output=True)
        if r.returncode == 0:
            return r.stdout.splitlines()
    return [str(p.relative_to(ROOT)) for p in ROOT.rglob("*")]


def sources():
    return sorted(n for n in listed() if n.endswith((".c", ".h", ".cpp")) and not n.startswith("build") and (ROOT / n).is_file())


def check_format(files, fix):
    tool = next((t for t in CLANG_FORMAT if shutil.which(t)), None)
    if not tool:
        return ["clang-format-19 is not installed"]
    ours = [f for f in files if f.split("/")[0] in SEES or f.startswith(("include/", "tests/unit/", "tests/cli/"))]
    if fix:
        subprocess.run([tool, "-i", *ours], cwd=ROOT, check=True)
    r = subprocess.run([tool, "--dry-run", *ours], cwd=ROOT, text=True, capture_output=True)
    bad = sorted(set(re.findall(r"^(\S+?):\d+:\d+: warning", r.stderr, re.M)))
    return [f"{f}: not formatted (./dev lint --fix)" for f in bad]


def check_includes(files):
    faults = []
    for name in files:
        folder = name.split("/")[0]
        if folder not in SEES:
            continue
        for i, line in enumerate((ROOT / name).read_text().splitlines(), 1):
            m = re.match(r'\s*#\s*include\s+"([^/"]+)/', line)
            if m and m[1] in SEES and m[1] != folder and m[1] not in SEES[folder]:
                faults.append(f"{name}:{i}: {folder} may not include {m[1]}")
    return faults


def check_symbols(build):
    faults = []
    for lib in ("libtiga.so", "libtigac.so"):
        path = build / "lib" / lib
        if not path.exists():
            continue
        out = subprocess.run(["nm", "-D", "--defined-only", str(path)], text=True, capture_output=True, check=True).stdout
        for line in out.splitlines():
            symbol = line.split()[-1].split("@")[0]
            prefixes = ("tigac_", "tiga_jit_", "tiga_tensor") if lib == "libtigac.so" else ("tiga_",)
            allowed = symbol.startswith(prefixes) or symbol.startswith(("__asan", "__ubsan", "__odr_asan", "_init", "_fini"))
            if not allowed:
                faults.append(f"{lib}: exports {symbol}")
    return faults


def check_text(files):
    faults = []
    for name in files:
        for i, line in enumerate((ROOT / name).read_text().splitlines(), 1):
            if line.rstrip() != line:
                faults.append(f"{name}:{i}: trailing blank")
            if "\t" in line:
                faults.append(f"{name}:{i}: tab")
    return faults


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--fix", action="store_true")
    p.add_argument("--no-format", action="store_true")
    p.add_argument("--build", type=Path, default=ROOT / "build")
    a = p.parse_args()
    files = sources()
    faults = ([] if a.no_format else check_format(files, a.fix)) + check_includes(files) + check_text(files)
    faults += check_symbols(a.build)
    print("\n".join(faults), end="\n" if faults else "")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
