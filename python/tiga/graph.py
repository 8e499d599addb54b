"""Graphs: made from arrays, read from files, generated.  A graph never changes."""
import ctypes as C
import os
from array import array as _array
from typing import NamedTuple

from . import _arrays, _context, _dtypes, _lib

_lib_ = _lib.lib
_BORROW, _COPY = 0, 1


class GraphStats(NamedTuple):
    """What `Graph.stats` counts."""
    n_dst: int
    n_src: int
    n_edges: int
    max_degree: int
    empty_rows: int
    self_loops: int
    duplicate_edges: int
    mean_degree: float
    bytes: int
    transposed: bool  # whether the transposed relation is there already
    degrees: tuple  # how many rows have a degree of 0, 1, 2..3, 4..7, 8..15, ...; up to the largest degree


class Graph:
    """A relation in compressed rows: edges offsets[i] .. offsets[i + 1] - 1 go from sources[e] to row i.

    Made by from_csr, from_coo, open, or tiga.graph.generate.  Graphs may be used from several threads at once.
    """
    __slots__ = ("_handle", "_keep", "_values", "_owner", "__weakref__")

    def __init__(self):
        raise TypeError("make graphs with Graph.from_csr, Graph.from_coo, Graph.open or tiga.graph.generate")

    @classmethod
    def _take(cls, handle, keep=None, values=None):
        self = object.__new__(cls)
        self._handle, self._keep, self._values = handle.value, keep, values
        self._owner = _lib.own(handle.value, _lib_.tiga_graph_free)
        return self

    def __reduce__(self):
        raise TypeError("graphs cannot be pickled; save them, and use tiga.Graph.open where they are needed")

    def __copy__(self):  # it does not change
        return self

    def __deepcopy__(self, _):
        return self

    # ---- making ----
    @classmethod
    def from_csr(cls, offsets, sources=None, n_src=None, *, copy=False):
        """A graph from `offsets` (n_dst + 1 integers) and `sources` (one integer an edge, 0 <= source < n_src).

        n_src is the number of rows unless given.  A scipy.sparse matrix or array in csr form may stand for both.

        int64 offsets and int32 or int64 sources that are C-contiguous are used where they are, other integers are
        copied.  What is used must not be written to while the graph lives; copy=True copies everything.
        """
        if sources is None:
            offsets, sources, n_src = _from_scipy(offsets, n_src)
        offsets = _integers(offsets, "offsets", (_dtypes.I64,))
        sources = _integers(sources, "sources", (_dtypes.I32, _dtypes.I64))
        if not offsets.shape[0]:
            raise ValueError("from_csr: offsets has no element; it has one more than there are rows")
        n_dst = offsets.shape[0] - 1
        n_src = n_dst if n_src is None else _size(n_src, "n_src")
        last = C.c_int64.from_address(offsets.pointer + 8 * n_dst).value
        if last != sources.shape[0]:
            raise ValueError(f"from_csr: offsets end with {last}, but there are {sources.shape[0]} sources")
        handle = C.c_void_p()
        _context.make((handle, _lib_.tiga_graph_free), _lib_.tiga_graph_from_csr, n_dst, n_src, offsets.pointer,
                      sources.pointer or None, 8 * sources.dtype.size, _COPY if copy else _BORROW, C.byref(handle),
                      keep=(offsets, sources))
        return cls._take(handle, None if copy else (offsets, sources))

    @classmethod
    def from_coo(cls, dst, src, n_dst, n_src=None):
        """A graph from edges in any order: edge k goes from src[k] to dst[k].

        Edges are sorted by destination and keep the given order within a row; `edge_order` tells where each came from,
        so an edge field becomes `w[g.edge_order]`.  n_src is n_dst unless given.
        """
        dst = _integers(dst, "dst", (_dtypes.I64,))
        src = _integers(src, "src", (_dtypes.I64,))
        n_dst = _size(n_dst, "n_dst")
        n_src = n_dst if n_src is None else _size(n_src, "n_src")
        if dst.shape != src.shape:
            raise ValueError(f"from_coo: {dst.shape[0]} destinations, but {src.shape[0]} sources")
        handle = C.c_void_p()
        _context.make((handle, _lib_.tiga_graph_free), _lib_.tiga_graph_from_coo, n_dst, n_src, dst.shape[0],
                      dst.pointer or None, src.pointer or None, C.byref(handle), keep=(dst, src))
        return cls._take(handle)

    @classmethod
    def open(cls, path, *, keep_edge_order=False):
        """A graph from a file: Matrix Market, edge list, SciPy's sparse .npz; text may be gzipped.

        Values in the file become `values`.  keep_edge_order=True keeps, for edge lists and general Matrix Market files,
        which entry each edge was (`edge_order`).
        """
        options = _lib.GraphFileOptions(C.sizeof(_lib.GraphFileOptions), None, None, bool(keep_edge_order))
        handle, values = C.c_void_p(), _Owned()
        _context.make((handle, _lib_.tiga_graph_free), _lib_.tiga_graph_read, _lib.encode_path(path), C.byref(options),
                      C.byref(handle), C.byref(values.array), path=path)
        return cls._take(handle, values=values if values.array.data or values.array.owned else None)

    # ---- looking ----
    @property
    def _csr(self):
        return _lib_.tiga_graph_csr(self._handle).contents

    @property
    def n_dst(self):
        """Number of rows (destinations)."""
        return self._csr.n_dst

    @property
    def n_src(self):
        """Number of sources."""
        return self._csr.n_src

    @property
    def n_edges(self):
        """Number of edges."""
        return self._csr.n_edges

    @property
    def offsets(self):
        """int64 [n_dst + 1], read only, not a copy."""
        return _arrays.borrowed(self._csr.offsets, _dtypes.I64, self.n_dst + 1, self)

    @property
    def sources(self):
        """int32 or int64 [n_edges], read only, not a copy."""
        csr = self._csr
        return _arrays.borrowed(csr.sources, _dtypes.I32 if csr.source_bits == 32 else _dtypes.I64, csr.n_edges, self)

    @property
    def edge_order(self):
        """int64 [n_edges]: which edge of the input each edge was; None when the order did not change."""
        order = _lib_.tiga_graph_edge_order(self._handle)
        return None if not order else _arrays.borrowed(order, _dtypes.I64, self.n_edges, self)

    @property
    def values(self):
        """The values of the file, one an edge in the order of the graph; None when there are none."""
        if self._values is None:
            return None
        a = self._values.array
        return _arrays.borrowed(a.data, _dtypes.BY_CODE[a.dtype], a.shape[0], self._values)

    @property
    def stats(self):
        """Counts of the graph, made at the first look."""
        out = _lib.GraphStatsC()
        _context.call(_lib_.tiga_graph_get_stats, self._handle, C.byref(out), keep=self)
        numbers = [getattr(out, name) for name in GraphStats._fields[:-2]]
        return GraphStats(*numbers, bool(out.transposed), tuple(out.degrees[:out.max_degree.bit_length() + 1]))

    def save(self, path, values=None, *, transposed=False):
        """Writes SciPy's sparse .npz; values (one an edge) are ones of f32 unless given.  All or nothing.

        transposed=True adds the transposed relation, which gradients walk, and the statistics, about 8 bytes an edge:
        a graph opened from the file need not make them.  SciPy passes over them.
        """
        if not os.fsdecode(path).endswith(".npz"):
            raise ValueError(f"Graph.save writes .npz files; {os.fspath(path)!r} is named otherwise")
        keep, pointer = None, None
        if values is not None:
            what = _arrays.What("save: argument 'values'", "values")
            keep = _any_values(values, what)
            array = _arrays.array_of(keep)
            pointer = C.byref(array)
        write = _lib_.tiga_graph_write_snapshot if transposed else _lib_.tiga_graph_write_npz
        _context.call(write, _lib.encode_path(path), self._handle, pointer, keep=(self, keep))

    def __repr__(self):
        csr = self._csr
        return f"<tiga.Graph {csr.n_dst} rows, {csr.n_src} sources, {csr.n_edges} edges>"


class _Owned:
    """An array that the library allocated."""
    __slots__ = ("array", "_free", "__weakref__")

    def __init__(self):
        self.array, self._free = _lib.Array(), _lib_.tiga_array_free
        _lib.counted_only(self)

    def __del__(self):
        self._free(C.byref(self.array))


def _any_values(values, what):
    """A View of an array of any element type that a file can hold."""
    if isinstance(values, (list, tuple)):
        return _arrays.from_list(values, _dtypes.BY_LONG["float64"], what)
    found = _arrays.find(values, what)
    if found is None:
        raise TypeError(f"{what} is a {type(values).__name__}; it must be an array")
    dtype = _dtypes.BY_LONG.get(found.long, _dtypes.BY_LONG["float32"])
    return _arrays.view(values, dtype, what)


def _size(value, name):
    what = _arrays.What(f"argument '{name}'", name)
    n = _arrays.number(value, _dtypes.I64, what)
    if n < 0:
        raise ValueError(f"{what} is {n}; it must not be negative")
    return n


def _from_scipy(matrix, n_src):
    if getattr(matrix, "format", None) != "csr" or not hasattr(matrix, "indptr"):
        if hasattr(matrix, "tocsr"):
            raise TypeError(f"from_csr: the matrix is in {matrix.format} form; pass matrix.tocsr()")
        raise TypeError("from_csr: takes offsets and sources, or a scipy.sparse matrix in csr form")
    if n_src is not None:
        raise TypeError("from_csr: n_src is the width of the matrix")
    return matrix.indptr, matrix.indices, matrix.shape[1]


def _integers(value, name, dtypes):
    """A View of rank 1 with one of these types: of the array itself where it fits, else of a copy."""
    what = _arrays.What(f"argument '{name}'", name)
    if isinstance(value, (list, tuple, range)):
        return _flat(_arrays.from_list(value, dtypes[-1], what), what)
    found = _arrays.find(value, what)
    if found is None:
        raise TypeError(f"{what} is a {type(value).__name__}; it must be an array of integers")
    if not found.long.startswith(("int", "uint")):
        raise TypeError(f"{what} is a {found.long} array; it must be an array of integers")
    if len(found.shape) != 1:
        raise ValueError(f"{what} has {len(found.shape)} axes; it must have one")
    wanted = [t for t in dtypes if t.long == found.long]
    if wanted and found.contiguous and not found.big_endian and found.pointer % wanted[0].size == 0:
        return _arrays.View(found.pointer, wanted[0], found.shape, found.readonly, found.kind, found.keep)
    return _converted(value, found, dtypes[-1], what)


def _flat(view, what):
    if len(view.shape) != 1:
        raise ValueError(f"{what} has {len(view.shape)} axes; it must have one")
    return view


def _converted(value, found, dtype, what):
    try:
        if found.kind == _arrays.NUMPY:
            np = _arrays.numpy()
            if found.long == "uint64" and value.size and int(value.max()) >= 1 << 63:
                raise OverflowError
            return _arrays.view(np.ascontiguousarray(value, dtype=np.dtype(dtype.long)), dtype, what)
        if found.kind == _arrays.TORCH:
            import torch
            return _arrays.view(value.to(getattr(torch, dtype.long)).contiguous(), dtype, what)
        copied = _array(dtype.letter, memoryview(value).tolist())
        return _arrays.view(copied, dtype, what)
    except (OverflowError, TypeError):
        raise ValueError(f"{what} is a {found.long} array whose numbers cannot become {dtype.long}") from None


_DEFAULTS = {"rmat": {"scale": None, "edge_factor": 16, "seed": 1}, "uniform": {"nodes": None, "degree": 16, "seed": 1},
             "local": {"nodes": None, "degree": 16}}  # None: must be given


def generate(kind, *, scale=None, edge_factor=None, nodes=None, degree=None, seed=None):
    """A made-up graph; the same bytes for the same arguments on every machine.

    generate("rmat", scale=20, edge_factor=16, seed=1): 2**scale nodes and edge_factor times as many edges, Graph500's
    distribution.
    generate("uniform", nodes=1000000, degree=16, seed=1): every row has `degree` random sources.
    generate("local", nodes=1000000, degree=16): every row reads its nearest rows, wrapping around.
    """
    given = {"scale": scale, "edge_factor": edge_factor, "nodes": nodes, "degree": degree, "seed": seed}
    if kind not in _DEFAULTS:
        raise ValueError(f"generate: there is no kind {kind!r}; there are 'rmat', 'uniform' and 'local'")
    numbers = []
    for name, default in _DEFAULTS[kind].items():
        value = given.pop(name)
        if value is None and default is None:
            raise TypeError(f"generate: a {kind} graph needs {name}=")
        value = default if value is None else value
        numbers.append(_seed(value) if name == "seed" else _size(value, name))
    for name, value in given.items():
        if value is not None:
            raise TypeError(f"generate: a {kind} graph has no {name}")
    if kind == "rmat" and numbers[0] > 62:
        raise ValueError(f"generate: argument 'scale' is {numbers[0]}: more nodes than any machine holds")
    handle = C.c_void_p()
    _context.make((handle, _lib_.tiga_graph_free), getattr(_lib_, "tiga_graph_" + kind), *numbers, C.byref(handle))
    return Graph._take(handle)


def _seed(seed):
    if isinstance(seed, bool) or not hasattr(type(seed), "__index__"):
        raise TypeError(f"argument 'seed' is {seed!r}; it must be an integer")
    return seed.__index__() & ((1 << 64) - 1)

