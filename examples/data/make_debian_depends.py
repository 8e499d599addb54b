#!/usr/bin/env python3
"""Writes the dependency graph of Debian packages as an edge list, from apt's own package lists.

    ./make_debian_depends.py [LIST ...]        default: every *Packages* file under /var/lib/apt/lists

Nodes are binary packages, numbered in alphabetical order; names.txt.gz has one name a line.  An edge runs from a
package to each package that its Depends or Pre-Depends names.  Of alternatives (a | b) the first that exists counts; a
virtual package stands for its only provider, and is left out when there are several.  Version limits are ignored, a
dependency that is named twice is one edge.

Output: debian-depends.txt.gz (edge list: dependent, dependency), debian-depends.names.txt.gz.  Same lists, same bytes.
"""
import gzip
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
LISTS = Path("/var/lib/apt/lists")


def read_list(path):
    """Text of one package list; apt keeps them compressed in one of several ways."""
    helper = "/usr/lib/apt/apt-helper"
    return subprocess.run([helper, "cat-file", str(path)], check=True, capture_output=True).stdout.decode()


def packages(text):
    for block in text.split("\n\n"):
        fields = dict(re.findall(r"^(Package|Depends|Pre-Depends|Provides): (.*)$", block, re.M))
        if "Package" in fields:
            yield fields


def bare(name):
    """'libc6:any (>= 2.36)' -> 'libc6'"""
    return re.split(r"[\s(:\[]", name.strip(), maxsplit=1)[0]


def collect(lists):
    depends, providers = {}, {}
    for path in lists:
        for p in packages(read_list(path)):
            name = p["Package"]
            fields = [p.get("Pre-Depends", ""), p.get("Depends", "")]
            depends[name] = [group.split("|") for f in fields for group in f.split(",") if group.strip()]
            for virtual in p.get("Provides", "").split(","):
                if virtual.strip():
                    providers.setdefault(bare(virtual), set()).add(name)
    return depends, providers


def resolve(group, depends, providers):
    for choice in map(bare, group):
        if choice in depends:
            return choice
        if len(providers.get(choice, ())) == 1:
            return next(iter(providers[choice]))
    return None


def write(name, lines):
    with open(HERE / name, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as f:
        f.write("".join(line + "\n" for line in lines).encode())


def main():
    lists = [Path(a) for a in sys.argv[1:]] or sorted(p for p in LISTS.glob("*Packages*") if p.is_file())
    depends, providers = collect(lists)
    names = sorted(depends)
    number = {name: i for i, name in enumerate(names)}
    edges = set()
    for name in names:
        for group in depends[name]:
            target = resolve(group, depends, providers)
            if target is not None and target != name:
                edges.add((number[name], number[target]))
    head = [
        "# Dependencies between Debian packages: dependent, dependency (numbers are lines of the names file, from 0)",
        f"# {len(names)} packages, {len(edges)} edges; from {', '.join(p.name.split('.lz4')[0] for p in lists)}",
    ]
    write("debian-depends.txt.gz", head + [f"{a}\t{b}" for a, b in sorted(edges)])
    write("debian-depends.names.txt.gz", names)
    print(f"{len(names)} packages, {len(edges)} edges")


if __name__ == "__main__":
    main()
