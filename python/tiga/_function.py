"""A kernel or program of a module as a Python function.

call() is the whole meaning of a call: names, arrays, memory for the results, errors.  The extension, where there is one,
takes the plain cases (a graph, numpy arrays that fit, numbers) faster and hands everything else to call().
"""
import collections
import ctypes as C
import functools
import inspect
import keyword
import threading

from . import _arrays, _context, _dtypes, _lib, _tensor_call
from ._tensor import Tensor
from .graph import Graph

_ROLES = {_lib.AT_SRC: "src", _lib.AT_DST: "dst", _lib.AT_NODE: "node", _lib.AT_EDGE: "edge", _lib.AT_PARAM: "param"}
_AXES = {_lib.AT_SRC: "n_src", _lib.AT_DST: "n_dst", _lib.AT_NODE: "n_dst", _lib.AT_EDGE: "n_edges"}


class _Text(str):
    """An annotation that shows without quotes."""
    __slots__ = ()

    def __repr__(self):
        return str(self)


class Field:
    """One parameter or result."""
    __slots__ = ("name", "keyword", "at", "dtype", "rank", "graph", "shape", "text", "whole_rank", "index", "cname")

    def __init__(self, info, index):
        self.name, self.keyword, self.cname = info.name.decode(), info.name.decode(), info.name
        self.at, self.rank, self.graph, self.index = info.at, info.rank, info.graph, index
        self.dtype = None if info.at == _lib.AT_GRAPH else _dtypes.BY_CODE.get(info.dtype)
        if self.dtype is None and info.at != _lib.AT_GRAPH:
            raise NotImplementedError(f"'{info.text.decode()}': this version of the package does not know the element type")
        self.shape = tuple(info.shape[: info.rank])
        self.text = info.text.decode()
        self.whole_rank = info.rank + (info.at in _AXES)

    @property
    def role(self):
        """"src", "dst", "node", "edge", "param"; "graph" for a graph."""
        return _ROLES.get(self.at, "graph")

    def __repr__(self):
        return f"<{self.text}>"


def _declared(fn, field, in_program):
    """The type as declared: "src f32[F]"; in programs "f32[g.dst, F]"."""
    text = field.text
    if ":" in text:
        kind = text.split(":", 1)[1].strip()
        return kind if in_program or field.role == "graph" or text.startswith("out") else f"{field.role} {kind}"
    return text


class Code:
    """A module of the C library, freed with the last that uses it.  A Module and its functions share it instead of holding
    one another: memory of code does not wait for the garbage collector."""

    def __init__(self, handle):
        self.handle, self._owner = handle.value, _lib.own(handle.value, _lib.lib.tiga_module_free)
        self.info = _lib.lib.tiga_module_get_info(handle).contents
        self.name = self.info.source_name.decode(errors="replace")


def _computed(dim):
    return any(c in dim for c in "+-*")


def _names(dim):
    return {factor for term in dim.replace("-", "+").split("+") for factor in term.split("*") if factor and not factor.isdigit()}


def _compute(dim, sizes):
    """The value of "2*D+K"; None when one of the others is not known: the library says so."""
    total = 0
    for term in dim.replace("-", "+-").split("+"):
        product = -1 if term.startswith("-") else 1
        for factor in filter(None, term.lstrip("-").split("*")):
            size = int(factor) if factor.isdigit() else sizes.get(factor)
            if size is None:
                return None
            product *= size
        total += product if term else 0
    return total


def _solve_sums(dims):
    """Where arrays have shown a sum and all but one of its names: that one.  {name: size or None}, as the library does it."""
    for _ in dims:
        for sum_, size in list(dims.items()):
            unknown = [n for n in _names(sum_) if dims.get(n) is None] if _computed(sum_) and size is not None else []
            if len(unknown) != 1:
                continue
            at = [_compute(sum_, {**dims, unknown[0]: i}) for i in range(3)]
            step = at[1] - at[0]
            if step and at[2] - at[1] == step and (size - at[0]) % step == 0 and (size - at[0]) // step >= 0:
                dims[unknown[0]] = (size - at[0]) // step


class Function(_lib.extension.Call if _lib.extension else object):
    """A kernel or program; call it with a graph and its fields by name."""

    def __init__(self, code, info):
        self._code, self._vjp = code, None
        self.__name__ = self.__qualname__ = info.name.decode()
        self.is_program = bool(info.is_program)
        self.source = info.signature.decode()
        self.plan = info.plan.decode() if info.plan else ""
        self._cname = info.name
        self._dims = tuple(info.dims[i].decode() for i in range(info.n_dims))
        self._all = tuple(Field(info.params[i], i) for i in range(info.n_params))
        self.params = tuple(f for f in self._all if f.at != _lib.AT_GRAPH)
        self._graphs = tuple(f for f in self._all if f.at == _lib.AT_GRAPH)
        self.results = tuple(Field(info.results[i], i) for i in range(info.n_results))
        self._name_keywords()
        self._by_keyword = {f.keyword: f for f in self.params}
        self._whats = {f.index: _arrays.What(f"{self.__name__}: argument '{f.keyword}' ({f.text})", f.keyword)
                       for f in self.params}
        self._result_type = None
        if len(self.results) > 1:
            self._result_type = collections.namedtuple(self.__name__, [f.keyword for f in self.results])
            self._result_type.__doc__ = f"Results of {self.__name__}."
        self.__signature__ = self._make_signature()
        self.__doc__ = self._make_doc()
        self.__module__ = code.name
        if _lib.extension:
            self._tell_extension()

    @property
    def module(self):
        """The module that the function is of."""
        from ._module import Module
        return Module._of(self._code)

    @property
    def vjp(self):
        """The function for its gradients, which `export vjp` in the program makes: it takes what this one takes and `cotangent`
        (of several results: `cotangent_NAME` of each), and gives the gradients in the order of the export."""
        if self._vjp is None:
            info, name = self._code.info, self.__name__ + "_vjp"
            for i in range(info.n_functions):
                if info.functions[i].name.decode() == name:
                    self._vjp = Function(self._code, info.functions[i])
        if self._vjp is None:
            raise AttributeError(f"{self.__name__} has no vjp: the program lacks `export vjp {self.__name__}(...)`, with the "
                                 "fields whose gradients are wanted")
        return self._vjp

    def _tell_extension(self):
        if (len(self._graphs) if self.is_program else 1) != 1:
            return  # it knows calls with one graph only
        if any(_computed(name) for name in self._dims):
            return  # and only sizes that arrays and graphs show
        graph = self._graphs[0].keyword if self.is_program else ""
        kinds = {f"{graph}.dst": 1, f"{graph}.src": 2, f"{graph}.edge": 3}
        fields = [tuple((f.keyword, f.cname, f.at, f.dtype.code, f.dtype.size, f.dtype.numpy_format, f.at in _AXES, f.shape)
                        for f in some) for some in (self.params, self.results)]
        self._setup(self._code.handle, self._cname, *fields, tuple(kinds.get(name, 0) for name in self._dims), self._out,
                    self._result_type)

    # ---- what help() and inspect show ----
    def _name_keywords(self):
        """Python's keywords, and the name of another argument (also out= and the graph), get a trailing underscore."""
        taken = set()
        for f in self._all:
            while f.keyword in taken or keyword.iskeyword(f.keyword):
                f.keyword += "_"
            taken.add(f.keyword)
        self._out = _free_name("out", taken)
        self._graph_name = _free_name("g", taken | {self._out})
        taken = set()
        for f in self.results:  # of a named tuple, where no name begins with an underscore
            name = f.name.lstrip("_")
            f.keyword = _free_name(name if name[:1].isalpha() else "result" + f.name, taken, keyword.iskeyword)
            taken.add(f.keyword)

    def _make_signature(self):
        P = inspect.Parameter
        parameters = [P(f.keyword, P.POSITIONAL_OR_KEYWORD, annotation=_Text("Graph")) for f in self._graphs]
        if not self.is_program:
            parameters.append(P(self._graph_name, P.POSITIONAL_ONLY, annotation=_Text("Graph")))
        for f in self.params:
            parameters.append(P(f.keyword, P.KEYWORD_ONLY, annotation=_Text(_declared(self, f, self.is_program))))
        parameters.append(P(self._out, P.KEYWORD_ONLY, default=None))
        results = [_declared(self, f, self.is_program) for f in self.results]
        gives = results[0] if len(results) == 1 else "(" + ", ".join(
            f"{f.keyword}: {text}" for f, text in zip(self.results, results)) + ")"
        return inspect.Signature(parameters, return_annotation=_Text(gives))

    def _make_doc(self):
        lines = [self.source, ""]
        if not self.is_program:
            lines.append(f"{self._graph_name}: the graph")
        for f in self._graphs:
            lines.append(f"{f.keyword}: a graph")
        for f in self.params:
            lines.append(f"{f.keyword}: {self._shape_words(f)}")
        lines.append("")
        for f in self.results:
            name = "gives" if len(self.results) == 1 else f"gives {f.keyword}:"
            lines.append(f"{name} {self._shape_words(f)}")
        lines += ["", f"{self._out}= takes memory for the result: an array" +
                  (", or a tuple or dict of them." if len(self.results) > 1 else ".")]
        return "\n".join(lines)

    def _shape_words(self, f):
        axes = []
        if f.at in _AXES:
            axes.append(f"{self._all[f.graph].keyword}.{_AXES[f.at]}" if self.is_program else _AXES[f.at])
        axes += [str(n) if n >= 0 else self._dims[-1 - n] for n in f.shape]
        if not axes:
            return f"{f.dtype.long}, a number"
        role = {"src": ", one row a source", "dst": ", one row a destination", "node": ", one row a node",
                "edge": ", one row an edge", "param": ""}[f.role]
        return f"{f.dtype.long} [{', '.join(axes)}]{role}"

    def __repr__(self):
        kind = "program" if self.is_program else "kernel"
        return f"<tiga {kind} {self.__name__}{self.__signature__} of {self._code.name!r}>"

    def __get__(self, instance, owner=None):  # a routine for inspect and pydoc; binds nothing
        return self

    def __reduce__(self):
        raise TypeError("functions of a tiga module cannot be pickled; load the module where it is needed")

    def __copy__(self):  # it does not change
        return self

    def __deepcopy__(self, _):
        return self

    # ---- calling ----
    if not _lib.extension:
        def __call__(self, /, *args, **kwargs):
            return self.call(args, kwargs)

    def call(self, args, kwargs):
        given = dict(kwargs)
        out = given.pop(self._out, None)
        graphs = self._take_graphs(args, given)
        if any(isinstance(value, Tensor) for value in given.values()):
            self._check_names(given)
            if out is not None:
                raise TypeError(f"{self.__name__}: {self._out}= takes no part in calls with tensors, whose results are new tensors")
            return _tensor_call.call(self, graphs, given)
        views = self._take_arrays(given)
        kind = max((v.kind for v in views if v.kind is not None), default=None)
        if kind is None:
            kind = _arrays.BUFFER if _arrays.numpy() is None else _arrays.NUMPY
        if kind == _arrays.NUMPY and _lib.extension:
            _tell_numpy()
        arrays, results = self._take_results(out, graphs, views, kind)
        self._run(graphs, views, results)
        made = [a if v is None else _arrays.finish(a, kind, f.whole_rank, f.dtype)
                for (a, v), f in zip(arrays, self.results)]
        return made[0] if self._result_type is None else self._result_type(*made)

    def _wrong(self, text):
        return TypeError(f"{self.__name__}{self.__signature__}: {text}")

    def _take_graphs(self, args, given):
        n = len(self._graphs) if self.is_program else 1
        graphs = list(args)
        if len(graphs) > n:
            raise self._wrong(f"takes {n} positional argument{'' if n == 1 else 's'} (graphs), {len(graphs)} given; arrays and "
                              "numbers are given by name")
        for f in self._graphs[len(graphs):]:
            if f.keyword not in given:
                raise self._wrong(f"the graph '{f.keyword}' is missing")
            graphs.append(given.pop(f.keyword))
        if len(graphs) < n:
            raise self._wrong("the graph is missing; it is the first argument")
        for g in graphs:
            if not isinstance(g, Graph):
                more = "; pass tiga.Graph.from_csr(it)" if hasattr(g, "tocsr") else ""
                raise TypeError(f"{self.__name__}: the graph is a {type(g).__name__}; it must be a tiga.Graph{more}")
        return graphs

    def _check_names(self, given):
        for name in given:
            if name not in self._by_keyword:
                raise self._wrong(f"has no argument '{name}'")
        missing = [f.keyword for f in self.params if f.keyword not in given]
        if missing:
            raise self._wrong("missing " + ", ".join(f"'{name}'" for name in missing))

    def _take_arrays(self, given):
        self._check_names(given)
        views = []
        for f in self.params:
            value, what = given[f.keyword], self._whats[f.index]
            views.append(self._take_scalar(value, f, what) if f.whole_rank == 0 else _arrays.view(value, f.dtype, what))
        return views

    def _take_scalar(self, value, field, what):
        """A number; an array of rank 0 counts as one when it has the right type."""
        if _arrays.kind_of(value) == _arrays.TORCH:
            view = _arrays.view(value, field.dtype, what)
            return view
        return _arrays.scalar(value, field.dtype, what)

    # ---- results ----
    def _solve(self, graphs, views):
        """Open dimensions, as far as arguments and graphs show them; the library checks that they agree."""
        dims = [None] * len(self._dims)
        csrs = {f.index: g._csr for f, g in zip(self._graphs, graphs)}
        if not self.is_program:
            csrs[-1] = graphs[0]._csr
        names = {(f.keyword if self.is_program else ""): csrs[f.index] for f in self._graphs}
        if not self.is_program:
            names[""] = csrs[-1]
        axes = {"dst": "n_dst", "src": "n_src", "edge": "n_edges", "node": "n_dst"}
        for i, name in enumerate(self._dims):
            graph, dot, axis = name.rpartition(".")
            if dot and graph in names and axis in axes:
                dims[i] = getattr(names[graph], axes[axis])
        for f, v in zip(self.params, views):
            skip = f.whole_rank - f.rank
            for n, size in zip(f.shape, v.shape[skip:]):
                if n < 0 and dims[-1 - n] is None:
                    dims[-1 - n] = size
        if any(map(_computed, self._dims)):
            known = dict(zip(self._dims, dims))
            _solve_sums(known)
            for name in filter(_computed, self._dims):
                size = _compute(name, known)
                known[name] = size if size is not None and size >= 0 else None
            dims = list(known.values())
        return dims, csrs

    def _result_shape(self, f, dims, csrs):
        """None where a dimension is not known; the library then says which."""
        shape = [] if f.at not in _AXES else [getattr(csrs[f.graph if self.is_program else -1], _AXES[f.at])]
        shape += [n if n >= 0 else dims[-1 - n] for n in f.shape]
        return None if None in shape else tuple(shape)

    def _given_results(self, out):
        if out is None:
            return [None] * len(self.results)
        if len(self.results) == 1 and not isinstance(out, (tuple, dict)):
            return [out]
        if isinstance(out, dict):
            names = [f.name for f in self.results]
            for name in out:
                if name not in names:
                    raise self._wrong(f"{self._out}= has no result {name!r}; there are {', '.join(names)}")
            return [out.get(name) for name in names]
        if not isinstance(out, tuple) or len(out) != len(self.results):
            raise self._wrong(f"{self._out}= must be a tuple of {len(self.results)} arrays, or a dict")
        return list(out)

    def _take_results(self, out, graphs, views, kind):
        """[(what the caller gets, its View or None when it was given)], [View or None when the library shall say why not]"""
        arrays, results = [], []
        dims = csrs = None
        for f, given in zip(self.results, self._given_results(out)):
            if given is not None:
                what = _arrays.What(f"{self.__name__}: result '{f.name}' ({f.text})", self._out)
                if isinstance(given, (list, tuple)):
                    raise TypeError(f"{what} cannot be put into a {type(given).__name__}; {self._out}= takes an array")
                view = _arrays.view(given, f.dtype, what)
                if view.readonly:
                    raise ValueError(f"{what}: the array in {self._out}= is read only")
                arrays.append((given, None))
                results.append(view)
                continue
            if dims is None:
                dims, csrs = self._solve(graphs, views)
            shape = self._result_shape(f, dims, csrs)
            array, view = (None, None) if shape is None else _arrays.new(kind, f.dtype, shape)
            arrays.append((array, view))
            results.append(view)
        return arrays, results

    def _run(self, graphs, views, results):
        handles = (C.c_void_p * max(len(graphs), 1))(*[g._handle for g in graphs])
        inputs = (_lib.Binding * max(len(views), 1))()
        outputs = (_lib.Binding * max(len(results), 1))()
        keep = []
        for bindings, fields, given in ((inputs, self.params, views), (outputs, self.results, results)):
            for binding, f, view in zip(bindings, fields, given):
                array = _lib.Array() if view is None else _arrays.array_of(view)
                if view is not None and not array.data and bindings is outputs:
                    array.data = _SOMEWHERE  # of no bytes, but given
                keep.append(array)
                binding.name, binding.array = f.cname, C.pointer(array)
        _context.call(_lib.lib.tiga_call_many, self._code.handle, self._cname, handles, len(graphs), inputs, len(views),
                      outputs, len(results), None, keep=(self._code, graphs, views, results, keep))
        for array, view in zip(keep[len(views):], results):
            if view is None:
                _lib.lib.tiga_array_free(C.byref(array))
                raise RuntimeError(f"{self.__name__}: the library knew a size that this package did not (a fault of tiga)")


if _lib.extension:
    _lib.extension.setup(_lib.lib._handle, Graph, threading.main_thread().ident)

_nothing = C.create_string_buffer(64)
_SOMEWHERE = (C.addressof(_nothing) + 63) // 64 * 64


@functools.lru_cache(maxsize=None)
def _tell_numpy():
    """To the extension, once numpy is loaded."""
    np = _arrays.numpy()
    codes = range(max(_dtypes.BY_CODE) + 1)
    dtypes = tuple(np.dtype(_dtypes.BY_CODE[c].numpy) if c in _dtypes.BY_CODE else None for c in codes)
    _lib.extension.set_numpy(np.ndarray, np.empty, dtypes)


def _free_name(name, taken, refused=lambda name: False):
    while name in taken or refused(name):
        name += "_"
    return name
