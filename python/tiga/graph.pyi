from os import PathLike
from typing import Any, NamedTuple

class GraphStats(NamedTuple):
    n_dst: int
    n_src: int
    n_edges: int
    max_degree: int
    empty_rows: int
    self_loops: int
    duplicate_edges: int
    mean_degree: float
    bytes: int
    transposed: bool
    degrees: tuple[int, ...]

class Graph:
    @classmethod
    def from_csr(cls, offsets: Any, sources: Any = None, n_src: int | None = None, *, copy: bool = False) -> Graph: ...
    @classmethod
    def from_coo(cls, dst: Any, src: Any, n_dst: int, n_src: int | None = None) -> Graph: ...
    @classmethod
    def open(cls, path: str | bytes | PathLike[str], *, keep_edge_order: bool = False) -> Graph: ...
    @property
    def n_dst(self) -> int: ...
    @property
    def n_src(self) -> int: ...
    @property
    def n_edges(self) -> int: ...
    # numpy arrays where numpy is installed, memoryviews elsewhere
    @property
    def offsets(self) -> Any: ...
    @property
    def sources(self) -> Any: ...
    @property
    def edge_order(self) -> Any | None: ...
    @property
    def values(self) -> Any | None: ...
    @property
    def stats(self) -> GraphStats: ...
    def save(self, path: str | bytes | PathLike[str], values: Any = None, *, transposed: bool = False) -> None: ...

def generate(
    kind: str,
    *,
    scale: int | None = None,
    edge_factor: int | None = None,
    nodes: int | None = None,
    degree: int | None = None,
    seed: int | None = None,
) -> Graph: ...
