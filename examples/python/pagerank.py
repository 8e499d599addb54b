"""PageRank over the dependencies of Debian's packages: a program from a file, a graph from a file."""
import gzip
from array import array
from pathlib import Path

import tiga as tg

EXAMPLES = Path(__file__).resolve().parents[1]

m = tg.compile(EXAMPLES / "pagerank.tg")
g = tg.Graph.open(EXAMPLES / "data/debian-depends.txt.gz")
names = gzip.open(EXAMPLES / "data/debian-depends.names.txt.gz", "rt").read().split()

outdeg = array("f", bytes(4 * g.n_src))
for source in g.sources:
    outdeg[source] += 1

rank = m.pagerank(g, outdeg=outdeg, d=0.85, rounds=50)
for node in sorted(range(g.n_dst), key=lambda i: -rank[i])[:10]:
    print(f"{rank[node]:.5f} {names[node]}")
