"""Forward and backward against forward alone, for the kernels of gradient.tg, through compiled modules.

    gradient.py --build build [--scale 18] [--features 16,32,64,128] [--repeats 7] [--cases weighted,largest]
                [--open] [--threads 1 --cpu-time] [--json out.json]

`step` is a program that returns the result and the gradients; `apart` is a call of the kernel and then one of its exported vjp,
which computes anew what it needs of the forward pass.  Rounds are A B C A B C, ratios are medians of the rounds'.
`bytes` is the ratio that the memory traffic alone would have: rows gathered once per edge and scalars read or written per
edge, with each array read in order once; what a step must do, written down before it is measured (`FLOOR` below).
`--open` compiles as tigac does by default, with the number of features open; else it is known (-DF=16).
`--cpu-time` counts seconds of the process instead of the clock's: with one thread, what is left of a busy machine.
`buffers` is the most that the step held beside its inputs and outputs, in row arrays (N x F x 4 bytes)."""
import argparse
import ctypes as C
import json
import os
import statistics
import subprocess
import sys
import time

import numpy as np

import table
from table import Array, Binding


class Stats(C.Structure):
    _fields_ = [("seconds", C.c_double), ("edges", C.c_int64), ("rows", C.c_int64), ("launches", C.c_int64),
                ("bytes_read", C.c_int64), ("bytes_written", C.c_int64), ("peak_bytes", C.c_int64),
                ("transposes", C.c_int64)]


# Gathered rows of F floats per edge, then other bytes per edge (columns, edge numbers, scalars), forward and step.
FLOOR = {
    "weighted": ((1, 4 + 4), (2, 8 + 4 + 4 + 4 + 4 + 8)),  # backward: one walk of the transposed relation, a copy of w
    "average": ((1, 4), (2, 4 + 4)),
    "largest": ((1, 4), (2, 4)),  # backward: a line of cache at random for each element of a row, one in 16 edges
    "attend": ((1, 4 + 4), (2, 8 + 4 + 4 + 4 + 4 + 4 + 4)),  # forward leaves the weights where d_s will be
    "attend_ends": ((1, 4 + 4), (3, 8 + 8 + 4 + 12)),  # d_b wants the source's row again
    "attend_dot": ((1, 4), (4, 4 + 4 + 4 + 8)),  # so does d_q; d_x gathers q and the cotangent
}
EXTRA = {"weighted": {"w": "edge"}, "attend": {"s": "edge"}, "attend_ends": {"a": "node", "b": "node"},
         "attend_dot": {"q": "rows"}}


class Caller:
    """A prepared call: bound once, launched many times."""

    def __init__(self, tiga, module, name, graph, inputs, results):
        self.tiga, self.handle, self.stats = tiga, C.c_void_p(), Stats()
        self.keep = [tiga.array(a) for a in list(inputs.values()) + list(results.values())]
        names = [k.encode() for k in list(inputs) + list(results)]
        bound = [Binding(k, C.pointer(a)) for k, a in zip(names, self.keep)]
        n = len(inputs)
        graphs = (C.c_void_p * 1)(graph)
        tiga.check(tiga.lib.tiga_prepare(tiga.ctx, module, name.encode(), graphs, 1, (Binding * n)(*bound[:n]), n,
                                         (Binding * (len(bound) - n))(*bound[n:]), len(bound) - n,
                                         C.byref(self.handle)))

    def __call__(self):
        self.tiga.check(self.tiga.lib.tiga_prepared_launch(self.handle, C.byref(self.stats)))

    def free(self):
        self.tiga.lib.tiga_prepared_free(self.handle)


def arrays(case, n, n_edges, F, rng):
    size = {"edge": (n_edges,), "node": (n,), "rows": (n, F)}
    inputs = {"x": table.huge((n, F))}
    for name, kind in EXTRA.get(case, {}).items():
        inputs[name] = table.huge(size[kind])
    for a in inputs.values():
        a[...] = rng.standard_normal(a.shape, np.float32)
    if case == "attend_dot":
        inputs["q"] /= np.float32(np.sqrt(F))
    return inputs


def floor(case, F):
    bytes_of = lambda part: part[0] * 4 * F + part[1]
    forward, step = FLOOR[case]
    return bytes_of(step) / bytes_of(forward)


def measure(args, tiga, module, g, a, case, F, rng):
    n = a.shape[0]
    inputs = arrays(case, n, a.nnz, F, rng)
    cotangent = table.huge((n, F))
    cotangent[...] = rng.standard_normal((n, F), np.float32)
    out, out_step = table.huge((n, F)), table.huge((n, F))
    grads = {k: table.huge(v.shape) for k, v in inputs.items()}
    with_ct = dict(inputs, cotangent=cotangent)
    runs = {"forward": Caller(tiga, module, case, g, inputs, {"out": out}),
            "vjp": Caller(tiga, module, case + "_vjp", g, with_ct, grads),
            "step": Caller(tiga, module, case + "_step", g, with_ct,
                           dict({"d_" + k: v for k, v in grads.items()}, out=out_step))}
    runs["forward"](), runs["vjp"]()
    first = {k: v.copy() for k, v in grads.items()}
    runs["step"]()
    np.testing.assert_array_equal(out, out_step)
    for k, v in grads.items():
        np.testing.assert_allclose(v, first[k], rtol=1e-4, atol=1e-5, err_msg=f"{case} {k}")
    times = {name: [] for name in runs}
    for _ in range(args.repeats):
        for name, run in runs.items():
            start = args.clock()
            run()
            times[name].append(args.clock() - start)
    peak = runs["step"].stats.peak_bytes
    for run in runs.values():
        run.free()
    median = {k: statistics.median(v) * 1e3 for k, v in times.items()}
    ratio = lambda of: statistics.median(map(of, zip(*times.values())))
    return {"case": case, "F": F, "ms": median, "step": ratio(lambda t: t[2] / t[0]),
            "apart": ratio(lambda t: (t[0] + t[1]) / t[0]), "bytes": floor(case, F), "buffers": peak / (n * F * 4),
            "noise": max(times["forward"]) / min(times["forward"])}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default="build")
    p.add_argument("--scale", type=int, default=18)
    p.add_argument("--edge-factor", type=int, default=16)
    p.add_argument("--features", type=lambda s: [int(v) for v in s.split(",")], default=[16, 32, 64, 128])
    p.add_argument("--cases", type=lambda s: s.split(","), default=list(FLOOR))
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--repeats", type=int, default=7)
    p.add_argument("--open", action="store_true")
    p.add_argument("--cpu-time", action="store_true")
    p.add_argument("--json")
    args = p.parse_args()
    args.clock = time.process_time if args.cpu_time else time.perf_counter
    tiga = table.Tiga(args.build, args.threads)
    work = os.path.join(args.build, "bench")
    os.makedirs(work, exist_ok=True)
    rng = np.random.default_rng(1)
    a = table.relation(table.rmat(args.scale, args.edge_factor, rng), rng)
    g = tiga.graph(a, a.shape[0])
    rows = []
    print(f"rmat, 2^{args.scale} nodes, {a.nnz} edges, {args.threads} threads; times forward: goal 2.5")
    print(f"{'case':12} {'F':>4} {'forward ms':>10} {'vjp ms':>8} {'step ms':>8} {'step':>6} {'apart':>6} {'bytes':>6} "
          f"{'buffers':>8} {'noise':>6}")
    for F in args.features:
        path = os.path.join(work, "gradient.so" if args.open else f"gradient_{F}.so")
        if not args.open or F == args.features[0]:
            subprocess.run([os.path.join(args.build, "bin", "tigac"), os.path.join(table.HERE, "gradient.tg"), "-o", path]
                           + ([] if args.open else [f"-DF={F}"]), check=True)
            module = tiga.module(path)
        for case in args.cases:
            r = measure(args, tiga, module, g, a, case, F, rng)
            rows.append(r)
            print(f"{case:12} {F:4} {r['ms']['forward']:10.1f} {r['ms']['vjp']:8.1f} {r['ms']['step']:8.1f} "
                  f"{r['step']:6.2f} {r['apart']:6.2f} {r['bytes']:6.2f} {r['buffers']:8.3f} {r['noise']:6.2f}", flush=True)
    if args.json:
        with open(args.json, "w") as f:
            json.dump(rows, f, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
