"""numpy's functions on tensors.  Its functions of elements (np.exp, and what operators of arrays call) give tensors where Tiga has
the function under that name; all others see the elements as arrays, and give what numpy gives."""
from . import _operations
from ._tensor import Tensor

_NAMES = {*_operations._UNARY, *_operations._BINARY, *_operations._ALIASES, "divide", "true_divide", "square", "reciprocal", "isnan",
          "isinf", "isfinite", "matmul", "floor_divide", "remainder"}
_OTHERS = {"fabs": "absolute", "invert": "logical_not", "bitwise_and": "logical_and", "bitwise_or": "logical_or"}


def ufunc(function, method, inputs, kwargs):
    """What Tensor.__array_ufunc__ is."""
    name = _OTHERS.get(function.__name__, function.__name__)
    if method == "__call__" and not kwargs and name in _NAMES:
        return getattr(_operations, name)(*inputs)
    return on_arrays(getattr(function, method), inputs, kwargs)


def _array(value):
    """Tensors in arguments as arrays, also within lists, tuples and dicts."""
    if isinstance(value, Tensor):
        return value.__array__()
    if type(value) in (list, tuple):
        return type(value)(map(_array, value))
    return {k: _array(v) for k, v in value.items()} if type(value) is dict else value


def on_arrays(function, args, kwargs):
    """What Tensor.__array_function__ is: numpy's own, of arrays."""
    return function(*_array(tuple(args)), **_array(dict(kwargs)))
