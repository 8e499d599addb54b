import inspect
from collections.abc import Iterator, Mapping
from os import PathLike
from typing import Any, NamedTuple

from . import cache as cache
from . import graph as graph
from . import torch as torch
from .graph import Graph as Graph
from .graph import GraphStats as GraphStats

__version__: str
__all__ = ["CompileError", "CompileWarning", "Diagnostic", "Function", "Graph", "GraphStats", "Module", "Note", "cache", "compile",
           "graph", "load", "torch"]

class Note(NamedTuple):
    line: int
    column: int
    text: str

class Diagnostic(NamedTuple):
    id: str
    is_error: bool
    file: str
    line: int
    column: int
    length: int
    text: str
    label: str | None
    notes: tuple[Note, ...]

class CompileError(ValueError):
    diagnostics: list[Diagnostic]
    def __init__(self, rendered: str, diagnostics: list[Diagnostic] | tuple[Diagnostic, ...] = ...) -> None: ...

class CompileWarning(UserWarning): ...

class _Field:
    name: str
    keyword: str
    text: str
    rank: int
    @property
    def role(self) -> str: ...

class Function:
    @property
    def module(self) -> Module: ...
    @property
    def vjp(self) -> Function: ...  # of `export vjp`; AttributeError without
    is_program: bool
    source: str
    plan: str
    params: tuple[_Field, ...]
    results: tuple[_Field, ...]
    __name__: str
    __signature__: inspect.Signature
    # Graphs first, then arrays and numbers by name; what comes back is of the kind that went in.
    def __call__(self, *graphs: Graph, **fields: Any) -> Any: ...

class Module:
    info: dict[str, Any]
    functions: Mapping[str, Function]
    def __getattr__(self, name: str) -> Function: ...
    def __getitem__(self, name: str) -> Function: ...
    def __contains__(self, name: object) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...

def load(path: str | bytes | PathLike[str]) -> Module: ...
def compile(
    source: str | PathLike[str],
    /,
    *,
    file_name: str | PathLike[str] | None = None,
    cpu: str | None = None,
    opt_level: int | None = None,
    warnings_are_errors: bool = False,
    cache: bool = True,
    **dims: int,
) -> Module: ...
