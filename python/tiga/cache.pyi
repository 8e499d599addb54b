from typing import NamedTuple

class Counters(NamedTuple):
    memory_hits: int
    disk_hits: int
    misses: int
    waited: int
    stale: int
    failed: int
    negative_hits: int
    evicted_memory: int
    evicted_disk: int
    disk_errors: int
    memory_entries: int
    memory_bytes: int

class Entry(NamedTuple):
    key: str
    bytes: int
    created: int
    used: int
    failed: bool
    damaged: bool
    fields: dict[str, str]

def folder() -> str | None: ...
def counters() -> Counters: ...
def clear() -> int: ...
def entries() -> list[Entry]: ...
