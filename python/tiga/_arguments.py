"""Arguments of functions of tensors: element types, shapes, axes, numbers, from whatever names them."""
import operator

from . import _dtypes

MAX_RANK = 7
DTYPES = {name: t for t in _dtypes.TABLE for name in (t.name, t.long)}
PYTHON = {float: _dtypes.BY_LONG["float32"], int: _dtypes.BY_LONG["int64"], bool: _dtypes.BY_LONG["bool"],
          complex: _dtypes.BY_LONG["complex64"]}


def dtype_of(value, who):
    """The element type that value names: "f32", "float32", tg.f32, numpy's and torch's types, float, int, bool, complex."""
    if isinstance(value, _dtypes.DType):
        return value
    if isinstance(value, type) and value in PYTHON:
        return PYTHON[value]
    name = value if isinstance(value, str) else getattr(value, "name", None) or getattr(value, "__name__", None) or str(value)
    found = DTYPES.get(name.rpartition(".")[2] if isinstance(name, str) else None)
    if found is None:
        raise TypeError(f"{who}: {value!r} is no element type; there are {', '.join(t.name for t in _dtypes.TABLE)}{_hint(value, who)}")
    return found


def _hint(value, who):
    if isinstance(value, int) and who in ("zeros", "ones"):
        return f"; sizes of several axes are a tuple, {who}((2, 3))"
    if isinstance(value, str) and value[:-1].lstrip("<=") in ("f", "i", "u", "c"):
        return "; numbers in names are bits here, 'f32'"
    return ""


def shape_of(value, who):
    """A tuple of sizes from a number or a sequence of numbers."""
    if hasattr(type(value), "__index__"):
        try:
            value = (operator.index(value),) if not isinstance(value, bool) else (value,)
        except TypeError:  # an array of several
            pass
    try:
        shape = tuple(operator.index(n) for n in value)
    except TypeError:
        raise TypeError(f"{who}: {value!r} is no shape; it must be integers") from None
    if any(isinstance(n, bool) for n in value):
        raise TypeError(f"{who}: {value!r} is no shape; it must be integers")
    if len(shape) > MAX_RANK:
        raise ValueError(f"{who}: {len(shape)} axes; a tensor has at most {MAX_RANK}")
    if any(not -(1 << 63) <= n < 1 << 63 for n in shape):
        raise ValueError(f"{who}: {shape} is larger than any memory")
    return shape


def size(value, who):
    """An integer that C can hold."""
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"{who} is {value!r}; it must be an integer")
    n = value.__index__()
    if not -(1 << 63) <= n < 1 << 63:
        raise ValueError(f"{who} is {n}; that is too large")
    return n


def axis_of(value, rank, who):
    """An axis counted from the front."""
    n = size(value, f"{who}: axis")
    if not -rank <= n < rank:
        raise ValueError(f"{who}: axis {n} of a tensor with {rank} axes")
    return n % rank


def axes_of(value, rank, who):
    """Axes from None (all), a number or a tuple; a list without repeats, from the front."""
    if value is None:
        return list(range(rank))
    axes = [axis_of(a, rank, who) for a in (value if isinstance(value, (tuple, list)) else (value,))]
    if len(set(axes)) != len(axes):
        raise ValueError(f"{who}: an axis is named twice in {value!r}")
    return axes


def storage_name(name):
    if not isinstance(name, str):
        raise TypeError(f"disk: name is {name!r}; it must be a str")
    data = name.encode()
    if b"\0" in data:
        raise ValueError(f"disk: name is {name!r}; it has a NUL")
    return data
