from typing import Any, Protocol

from . import Function, Graph

class _Differentiable(Protocol):
    function: Function
    def __call__(self, /, *graphs: Graph, **fields: Any) -> Any: ...

def function(f: Function) -> _Differentiable: ...
