"""The first table: weighted sum and mean against a hand-tuned loop, SciPy and SuiteSparse:GraphBLAS, in one run.

    ./dev bench                      # builds what is needed and runs this
    table.py --build build [--scale 20] [--repeats 5] [--json out.json]

Every round runs all contenders one after the other on the same arrays (A B C A B C ...), so that a slow moment of the
machine hits all of them; the ratios are medians of the rounds' ratios.  Results are compared before anything is timed.
`gather` is the machine's own rate of reading the same rows in the same order and adding them up."""
import argparse
import ctypes as C
import json
import os
import statistics
import subprocess
import sys
import time

import numpy as np
import scipy.sparse as sp

HERE = os.path.dirname(os.path.abspath(__file__))
F32, I64P = 3, C.POINTER(C.c_int64)


class Array(C.Structure):
    _fields_ = [("data", C.c_void_p), ("dtype", C.c_int32), ("rank", C.c_int32), ("shape", C.c_int64 * 7),
                ("owned", C.c_int32)]


class Binding(C.Structure):
    _fields_ = [("name", C.c_char_p), ("array", C.POINTER(Array))]


class Tiga:
    """Just enough of libtiga for a benchmark; no copies."""

    def __init__(self, build, threads):
        os.environ["OMP_NUM_THREADS"] = str(threads)  # read when the library is loaded
        self.lib = C.CDLL(os.path.join(build, "lib", "libtiga.so"))
        self.lib.tiga_error_text.restype = C.c_char_p
        self.lib.tiga_version.restype = C.c_char_p
        self.ctx = C.c_void_p()
        self.check(self.lib.tiga_context_new(None, C.byref(self.ctx)))

    def check(self, status):
        if status:
            raise SystemExit(f"tiga: {self.lib.tiga_error_text(self.ctx).decode()}")

    def graph(self, a, n_src):
        g = C.c_void_p()
        self.check(self.lib.tiga_graph_from_csr(self.ctx, C.c_int64(len(a.indptr) - 1), C.c_int64(n_src),
                                                a.offsets.ctypes.data_as(C.c_void_p),
                                                a.col.ctypes.data_as(C.c_void_p), 32, 0, C.byref(g)))
        return g

    def module(self, path):
        m = C.c_void_p()
        self.check(self.lib.tiga_module_load(self.ctx, path.encode(), C.byref(m)))
        return m

    def array(self, a):
        out = Array(a.ctypes.data, F32, a.ndim)
        out.shape[:a.ndim] = a.shape
        return out

    def caller(self, module, name, graph, inputs, result):
        arrays = [self.array(a) for a in inputs.values()] + [self.array(result)]
        ins = (Binding * len(inputs))(*[Binding(k.encode(), C.pointer(a)) for k, a in zip(inputs, arrays)])
        out = (Binding * 1)(Binding(b"out", C.pointer(arrays[-1])))
        return lambda keep=arrays: self.check(
            self.lib.tiga_call(self.ctx, module, name.encode(), graph, ins, len(inputs), out, 1))


def huge(shape):
    """An array on huge pages where the system gives them: random gathers are up to twice as fast."""
    import mmap
    n = int(np.prod(shape)) * 4
    if n < 1 << 22:
        return np.zeros(shape, np.float32)
    m = mmap.mmap(-1, n + (1 << 21), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  # shared memory would get small pages
    m.madvise(mmap.MADV_HUGEPAGE)
    start = -C.addressof(C.c_char.from_buffer(m)) % (1 << 21)
    return np.frombuffer(m, np.float32, int(np.prod(shape)), start).reshape(shape)


def rmat(scale, edge_factor, rng):
    n, m = 1 << scale, edge_factor << scale
    row, col = np.zeros(m, np.int64), np.zeros(m, np.int64)
    for bit in range(scale):
        u = rng.random(m)
        row |= (u >= 0.76).astype(np.int64) << bit
        col |= (((u >= 0.57) & (u < 0.76)) | (u >= 0.95)).astype(np.int64) << bit
    shuffle = rng.permutation(n)
    return shuffle[row], shuffle[col], n


def local(n, degree):
    row = np.repeat(np.arange(n), degree)
    return row, (row + np.tile(np.arange(degree) - degree // 2, n)) % n, n


def relation(edges, rng):
    """CSR with sorted columns and no duplicates: the form that every contender accepts."""
    row, col, n = edges
    a = sp.csr_matrix((np.ones(len(row), np.float32), (row, col)), shape=(n, n))
    a.sum_duplicates()
    a.data = rng.random(a.nnz, np.float32)
    a.offsets = a.indptr.astype(np.int64)
    a.col = a.indices.astype(np.int32)
    return a


def timed(fn):
    t = time.perf_counter()
    fn()
    return time.perf_counter() - t


def contenders(args, tiga, libs, a, g, kind, F, x):
    """name -> (callable, result array or a function that gives it)"""
    hand, peer = libs
    w, n = a.data, a.shape[0]
    ptr = lambda v: v.ctypes.data_as(C.c_void_p)
    shape = (n, F)
    out_hand, out_fixed, out_open = huge(shape), huge(shape), huge(shape)
    name = "mean" if kind == "mean" else "weighted"
    fields = {"x": x} if kind == "mean" else {"x": x, "w": w}
    run_hand = lambda: hand.hand_run(int(kind == "mean"), F, args.threads, C.c_int64(n), ptr(a.offsets), ptr(a.col),
                                     ptr(w), ptr(x), ptr(out_hand))
    ones = sp.csr_matrix((np.ones(a.nnz, np.float32), a.indices, a.indptr), shape=a.shape)
    degree = np.diff(a.indptr).astype(np.float32)[:, None]
    held = {}

    def run_scipy():
        held["scipy"] = (ones @ x) / degree if kind == "mean" else a @ x

    handle = peer.peer_new(F, args.threads, C.c_int64(n), ptr(a.offsets), ptr(a.col), ptr(w), ptr(x))
    if not handle:
        raise SystemExit("GraphBLAS refused the matrix")
    handle = C.c_void_p(handle)

    def read_peer():
        sums = np.zeros(shape, np.float32)
        if peer.peer_read(handle, C.c_int64(n), ptr(sums)):
            raise SystemExit("GraphBLAS gives no result")
        return sums / degree if kind == "mean" else sums

    return {
        "hand": (run_hand, out_hand),
        "tiga": (tiga.caller(tiga.module(args.modules[F]), name, g, fields, out_fixed), out_fixed),
        "tiga_open": (tiga.caller(tiga.module(args.modules[0]), name, g, fields, out_open), out_open),
        "graphblas": (lambda: peer.peer_run(handle, int(kind == "mean")), read_peer),
        "scipy": (run_scipy, lambda: held["scipy"]),
    }, lambda: peer.peer_free(handle)


def measure(args, tiga, libs, graph_name, a, kind, F, rng):
    x = huge((a.shape[0], F))
    x[:] = rng.random(x.shape, np.float32)
    g = tiga.graph(a, a.shape[0])
    runs, free = contenders(args, tiga, libs, a, g, kind, F, x)
    with np.errstate(invalid="ignore", divide="ignore"):
        for fn, _ in runs.values():
            fn()  # also the warm-up
        reference = runs["hand"][1]
        for name, (_, out) in runs.items():
            out = out() if callable(out) else out
            np.testing.assert_allclose(out.reshape(reference.shape), reference, rtol=2e-4, atol=1e-5, err_msg=name)
        slow = {"scipy", "graphblas"}
        times = {name: [] for name in runs}
        gather = []
        for i in range(args.repeats):
            for name, (fn, _) in runs.items():
                if name in slow and i >= args.slow_repeats:
                    continue
                times[name].append(timed(fn))
            gather.append(timed(lambda: libs[0].hand_gather(F, args.threads, C.c_int64(a.nnz),
                                                            a.col.ctypes.data_as(C.c_void_p),
                                                            x.ctypes.data_as(C.c_void_p))))
    free()
    tiga.lib.tiga_graph_free(g)
    ratio = lambda p, q: statistics.median(b / c for b, c in zip(times[p], times[q]))
    fastest_peer = min(("graphblas", "scipy"), key=lambda p: statistics.median(times[p]))
    moved = a.nnz * (4 * F + 4 + (4 if kind == "weighted" else 0)) + a.shape[0] * (4 * F + 8)
    med = {k: statistics.median(v) for k, v in times.items()}
    return {"graph": graph_name, "kernel": kind, "F": F, "ms": {k: v * 1e3 for k, v in med.items()},
            "of_hand": ratio("hand", "tiga"), "open_of_hand": ratio("hand", "tiga_open"), "peer": fastest_peer,
            "x_peer": ratio(fastest_peer, "tiga"), "gb_s": moved / med["tiga"] / 1e9,
            "gather_gb_s": a.nnz * 4 * F / statistics.median(gather) / 1e9,
            "noise": max(times["hand"]) / min(times["hand"])}


def build_modules(args):
    os.makedirs(args.work, exist_ok=True)
    tigac = os.path.join(args.build, "bin", "tigac")
    args.modules = {}
    for F in [0] + args.features:
        path = os.path.join(args.work, f"bench_{F or 'open'}.so")
        subprocess.run([tigac, os.path.join(HERE, "bench.tg"), "-o", path] + ([f"-DF={F}"] if F else []), check=True)
        args.modules[F] = path
    hand = os.path.join(args.work, "hand.so")
    compiler = os.environ.get("CC", "gcc")
    subprocess.run([compiler, "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", os.path.join(HERE, "hand.c"), "-o",
                    hand], check=True)
    peer = os.path.join(args.work, "peer.so")
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", os.path.join(HERE, "peer_graphblas.c"), "-lgraphblas", "-o",
                    peer], check=True)
    hand, peer = C.CDLL(hand), C.CDLL(peer)
    hand.hand_gather.restype = C.c_double
    peer.peer_new.restype = C.c_void_p
    return hand, peer


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default="build")
    p.add_argument("--work", default=None)
    p.add_argument("--scale", type=int, default=20)
    p.add_argument("--edge-factor", type=int, default=16)
    p.add_argument("--features", type=lambda s: [int(v) for v in s.split(",")], default=[1, 16, 32, 64, 128])
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--repeats", type=int, default=7)
    p.add_argument("--slow-repeats", type=int, default=3)
    p.add_argument("--json")
    args = p.parse_args()
    args.work = args.work or os.path.join(args.build, "bench")
    libs = build_modules(args)
    tiga = Tiga(args.build, args.threads)
    rng = np.random.default_rng(1)
    n = 1 << args.scale
    graphs = {"rmat": rmat(args.scale, args.edge_factor, rng), "local": local(n, args.edge_factor)}
    rows = []
    print(f"tiga {tiga.lib.tiga_version().decode()}, {args.threads} threads, 2^{args.scale} nodes x {args.edge_factor}; "
          "of hand: 1.00 = as fast as the hand-tuned loop; x peer: times faster than the fastest peer")
    print(f"{'graph':6} {'kernel':9} {'F':>4} {'tiga ms':>8} {'hand ms':>8} {'of hand':>8} {'open F':>7} {'x peer':>7} "
          f"{'peer':>10} {'GB/s':>6} {'gather':>7} {'noise':>6}")
    for graph_name in graphs:
        a = relation(graphs[graph_name], rng)
        graphs[graph_name] = None
        for kind in ("weighted", "mean"):
            for F in args.features:
                r = measure(args, tiga, libs, graph_name, a, kind, F, rng)
                rows.append(r)
                print(f"{r['graph']:6} {r['kernel']:9} {r['F']:4} {r['ms']['tiga']:8.1f} {r['ms']['hand']:8.1f} "
                      f"{r['of_hand']:8.2f} {r['open_of_hand']:7.2f} {r['x_peer']:7.1f} {r['peer']:>10} {r['gb_s']:6.1f} "
                      f"{r['gather_gb_s']:7.1f} {r['noise']:6.2f}", flush=True)
    if args.json:
        with open(args.json, "w") as f:
            json.dump(rows, f, indent=1)
    worst = min((r for r in rows if r["F"] >= 16), key=lambda r: r["of_hand"], default=None)
    if worst:
        print(f"worst of hand at F >= 16: {worst['of_hand']:.2f} ({worst['graph']} {worst['kernel']} F={worst['F']}); "
              f"least x peer: {min(r['x_peer'] for r in rows if r['F'] >= 16):.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
