"""Tiga: message functions on graphs, and tensors.

    import tiga as tg
    m = tg.load("model.so")                        # or tg.compile(text)
    g = tg.Graph.from_csr([0, 2, 3, 5], [0, 2, 1, 0, 1])
    y = m.weighted_sum(g, x=x, w=w, bias=b)        # numpy in, numpy out; also tensors, torch, buffers, lists

    x = tg.tensor([1., 2., 3.], requires_grad=True)
    tg.autograd.grad((x * x).sum(), x).tolist()    # [2.0, 4.0, 6.0]

help(m.weighted_sum) shows what a function takes, help(tg.Tensor) what tensors do.  docs/python.md is the manual.
"""
from . import _lib
from . import graph, torch
from . import cache
from ._compile import CompileError, CompileWarning, Diagnostic, Note, compile
from ._function import Function
from ._module import Module
from .graph import Graph, GraphStats
from . import _dtypes
from ._tensor import Execution, Tensor
from ._create import (arange, asarray, eye, from_dlpack, from_numpy, full, full_like, linspace, ones, ones_like, rand, tensor, zeros,
                      zeros_like)
from . import _operations, autograd
from ._execution import execution, memory_report
from ._storage import from_disk, load, save

__version__ = _lib.version
DType = _dtypes.DType
for _t in _dtypes.TABLE:  # tg.f32, tg.float32; the type of truth values has an underscore, because bool is Python's
    globals()[_t.name if _t.name != "bool" else "bool_"] = _t
    if _t.name != "bool":
        globals()[_t.long] = _t
for _t in _operations.FUNCTIONS:
    globals()[_t] = getattr(_operations, _t)
del _t
# Not for `from tiga import *`: functions of tensors, because many have the names of Python's own.
__all__ = ["CompileError", "CompileWarning", "DType", "Diagnostic", "Execution", "Function", "Graph", "GraphStats", "Module", "Note",
           "Tensor", "arange", "asarray", "autograd", "cache", "compile", "execution", "eye", "from_disk", "from_dlpack", "from_numpy", "full",
           "full_like", "graph", "linspace", "load", "memory_report", "ones", "ones_like", "rand", "save", "tensor", "torch", "zeros",
           "zeros_like"]
