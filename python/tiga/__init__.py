"""Tiga: message functions on graphs.

    import tiga as tg
    m = tg.load("model.so")                        # or tg.compile(text)
    g = tg.Graph.from_csr([0, 2, 3, 5], [0, 2, 1, 0, 1])
    y = m.weighted_sum(g, x=x, w=w, bias=b)        # numpy in, numpy out; also torch, buffers, lists

help(m.weighted_sum) shows what a function takes.  docs/python.md is the manual.
"""
from . import _lib
from . import graph, torch
from . import cache
from ._compile import CompileError, CompileWarning, Diagnostic, Note, compile
from ._function import Function
from ._module import Module, load
from .graph import Graph, GraphStats

__version__ = _lib.version
__all__ = ["CompileError", "CompileWarning", "Diagnostic", "Function", "Graph", "GraphStats", "Module", "Note", "cache", "compile",
           "graph", "load", "torch"]
