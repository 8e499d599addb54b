"""What SciPy and numpy write, libtiga reads, and the other way round.  Usage: npz_scipy.py libtiga.so"""
import ctypes, gzip, os, sys, tempfile
import numpy as np
import scipy.io
import scipy.sparse as sp

tiga = ctypes.CDLL(os.path.abspath(sys.argv[1]))
DTYPES = [np.bool_, np.int32, np.int64, np.float32, np.float64]  # TIGA_BOOL ..


class Array(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("shape", ctypes.c_int64 * 7), ("owned", ctypes.c_int32)]


class Csr(ctypes.Structure):
    _fields_ = [("n_dst", ctypes.c_int64), ("n_src", ctypes.c_int64), ("n_edges", ctypes.c_int64),
                ("offsets", ctypes.c_void_p), ("sources", ctypes.c_void_p), ("source_bits", ctypes.c_int64)]


tiga.tiga_error_text.restype = ctypes.c_char_p
tiga.tiga_graph_csr.restype = ctypes.POINTER(Csr)
ctx = ctypes.c_void_p()
assert tiga.tiga_context_new(None, ctypes.byref(ctx)) == 0


def check(status):
    assert status == 0, tiga.tiga_error_text(ctx).decode()


def view(pointer, dtype, n):
    if not n:
        return np.zeros(0, dtype)
    return np.ctypeslib.as_array(ctypes.cast(pointer, ctypes.POINTER(ctypes.c_uint8)), (n * np.dtype(dtype).itemsize,)).view(dtype).copy()


def read(path):
    """The graph of a file as a SciPy matrix, and the values' dtype."""
    g, values = ctypes.c_void_p(), Array()
    check(tiga.tiga_graph_read(ctx, path.encode(), None, ctypes.byref(g), ctypes.byref(values)))
    c = tiga.tiga_graph_csr(g).contents
    offsets = view(c.offsets, np.int64, c.n_dst + 1)
    sources = view(c.sources, np.int32 if c.source_bits == 32 else np.int64, c.n_edges)
    dtype = DTYPES[values.dtype] if values.data else None
    data = view(values.data, dtype, c.n_edges) if dtype else np.ones(c.n_edges)
    tiga.tiga_array_free(ctypes.byref(values))
    return g, sp.csr_matrix((data, sources, offsets), shape=(c.n_dst, c.n_src)), dtype


def same(a, b):
    assert a.shape == b.shape and (a.astype(np.float64) != b.astype(np.float64)).nnz == 0


rng = np.random.default_rng(1)
count = 0
with tempfile.TemporaryDirectory() as folder:
    path, back = os.path.join(folder, "a.npz"), os.path.join(folder, "b.npz")
    for shape in [(0, 0), (1, 1), (5, 3), (1000, 700)]:
        for dtype in DTYPES:
            for wide in (np.int32, np.int64):
                for compressed in (False, True):
                    a = sp.random(*shape, density=0.05, format="csr", random_state=count)
                    a = sp.csr_matrix(((rng.integers(1, 9, a.nnz)).astype(dtype), a.indices, a.indptr), shape=shape)
                    a.indices, a.indptr = a.indices.astype(wide), a.indptr.astype(wide)
                    sp.save_npz(path, a, compressed=compressed)
                    g, b, got = read(path)
                    assert got == dtype
                    same(a, b)
                    values = np.ascontiguousarray(a.data)
                    v = Array(values.ctypes.data, DTYPES.index(dtype), 1, (ctypes.c_int64 * 7)(len(values)), 0)
                    check(tiga.tiga_graph_write_npz(ctx, back.encode(), g, ctypes.byref(v)))
                    again = sp.load_npz(back)
                    again.check_format(full_check=True)
                    assert again.dtype == dtype
                    same(a, again)
                    check(tiga.tiga_graph_write_npz(ctx, back.encode(), g, None))
                    assert sp.load_npz(back).nnz == a.nnz
                    check(tiga.tiga_graph_write_snapshot(ctx, back.encode(), g, ctypes.byref(v)))
                    same(a, sp.load_npz(back))
                    with np.load(back) as z:  # SciPy's own transposition says the same
                        numbered = sp.csr_matrix((np.arange(a.nnz) + 1, a.indices, a.indptr), shape=shape).tocsc()
                        assert np.array_equal(z["tiga_transposed_indptr"], numbered.indptr)
                        assert np.array_equal(z["tiga_transposed_indices"], numbered.indices)
                        assert np.array_equal(z["tiga_transposed_edges"], numbered.data - 1)
                    h, b, got = read(back)
                    same(a, b)
                    tiga.tiga_graph_free(h)
                    tiga.tiga_graph_free(g)
                    count += 1

    # whole numbers of 16 bits are numbers, not the bits of bf16
    for compressed in (False, True):
        a = sp.csr_matrix(np.array([[0, 1, 2], [3, 0, 0], [0, 500, 65535]], np.uint16))
        sp.save_npz(path, a, compressed=compressed)
        g, b, got = read(path)
        assert got == np.int32
        same(a, b)
        tiga.tiga_graph_free(g)
        count += 1

    # Matrix Market as SciPy writes it, plain and gzipped; SciPy sums duplicates, so there are none here
    for symmetry in ("general", "symmetric", "skew-symmetric"):
        a = sp.random(50, 50, density=0.1, random_state=3, format="csr")
        if symmetry != "general":
            a = a + a.T if symmetry == "symmetric" else a - a.T
        path = os.path.join(folder, "m.mtx")
        scipy.io.mmwrite(path, a, symmetry=symmetry, precision=17)
        with open(path, "rb") as f, gzip.open(path + ".gz", "wb") as z:
            z.write(f.read())
        for name in (path, path + ".gz"):
            g, b, got = read(name)
            assert got == np.float64 and a.nnz == b.nnz
            same(sp.csr_matrix(a), b)
            tiga.tiga_graph_free(g)
            count += 1

    # .npy of every type, both orders, every rank
    path, back = os.path.join(folder, "a.npy"), os.path.join(folder, "b.npy")
    for dtype in DTYPES:
        for rank in range(5):
            for order in "CF":
                a = np.asarray(rng.integers(0, 2, tuple(range(2, 2 + rank))), dtype=dtype, order=order)
                np.save(path, a)
                v = Array()
                check(tiga.tiga_array_read_npy(ctx, path.encode(), ctypes.byref(v)))
                assert v.dtype == DTYPES.index(dtype) and list(v.shape)[:v.rank] == list(a.shape)
                assert np.array_equal(view(v.data, dtype, a.size), a.ravel())
                check(tiga.tiga_array_write_npy(ctx, back.encode(), ctypes.byref(v)))
                assert np.array_equal(np.load(back), a) and np.load(back).dtype == dtype
                tiga.tiga_array_free(ctypes.byref(v))
                count += 1
tiga.tiga_context_free(ctx)
print("%d files agree" % count)
