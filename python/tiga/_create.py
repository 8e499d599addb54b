"""Making tensors: of numbers, lists and arrays, over memory of others, and of nothing but a shape."""
import math
import sys

from . import _arrays, _dtypes, _tensors
from ._arguments import MAX_RANK, dtype_of, shape_of, size
from ._tensor import Tensor, from_scalar, from_view, op, operand


def _infer(value):
    """The element type of a Python number or of nested lists: the widest of bool, int, float and complex in it."""
    if isinstance(value, (list, tuple)):
        kinds = [k for k in map(_infer, value) if k is not None]
        return max(kinds, key=(bool, int, float, complex).index) if kinds else None
    for kind in (bool, int, float, complex):
        if isinstance(value, kind):
            return kind
    if isinstance(value, range):
        return int
    if isinstance(value, Tensor) or hasattr(value, "dtype"):
        try:
            return dtype_of(value.dtype, "tensor").python
        except TypeError:
            return None
    return float if hasattr(value, "__float__") else None


def type_of_list(value, others):
    """The element type of the tensors beside a list of Python's numbers that they can hold: it is adopted, as by a number; else
    None."""
    if not isinstance(value, (list, tuple, range)):
        return None
    kinds = (bool, int, float, complex)
    kind = _infer(value) or float
    beside = next((t.dtype for t in others if isinstance(t, Tensor)), None)
    if beside is None or _has_type(value) or kind is bool or kinds.index(kind) > kinds.index(beside.python):
        return None
    return beside


def _has_type(value):
    return any(map(_has_type, value)) if isinstance(value, (list, tuple)) else hasattr(value, "dtype")


def _plain(value):
    """Lists of numpy's numbers and of tensors as lists of Python's."""
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, Tensor) or (hasattr(value, "tolist") and not isinstance(value, memoryview)):
        return value.tolist()
    return value


def leaf(x, requires_grad):
    if not requires_grad:
        return x
    return x._anew("tiga_tensor_watch")


_WHAT = _arrays.What("tensor: the value", "value")


def _copy_of_array(value, dtype):
    """A tensor of an array's elements, whatever its layout; its own element type."""
    np = sys.modules.get("numpy")
    if np is not None and isinstance(value, (np.ndarray, np.generic)):
        value = np.ascontiguousarray(value).reshape(np.shape(value))
        if not value.dtype.isnative:
            value = value.astype(value.dtype.newbyteorder("="))
    elif _arrays.kind_of(value) == _arrays.TORCH:
        value = value.detach().contiguous()
    found = _arrays.find(value, _WHAT)
    if found is None:
        raise TypeError(f"tensor: the value is a {type(value).__name__}; it must be numbers, lists of them, or an array")
    long = dtype.long if dtype is not None and dtype.accepts(found.long, found.kind == _arrays.BUFFER) else found.long
    have = _dtypes.BY_LONG.get(long)
    if have is None:
        raise TypeError(f"tensor: {long} elements; Tiga has {', '.join(t.long for t in _dtypes.TABLE)}")
    return from_view(_arrays.view(value, have, _WHAT))


def tensor(value, dtype=None, *, requires_grad=False):
    """A tensor of a copy of value: numbers and nested lists of them, numpy arrays, torch tensors, or whatever else has
    memory.

    dtype: of lists the default is bool, i64, f32 or c64, the first that holds all; of arrays their own.  Arrays of another
    type are cast.  requires_grad=True remembers what is computed from it, so that gradients can be asked for after looking.
    """
    dtype = None if dtype is None else dtype_of(dtype, "tensor")
    if isinstance(value, Tensor):
        x = value if dtype is None else value.astype(dtype)
    elif isinstance(value, (bool, int, float, complex)) and not hasattr(value, "dtype"):
        x = from_scalar(value, dtype or dtype_of(next(k for k in (bool, int, float, complex) if isinstance(value, k)), "tensor"),
                        "tensor")
    elif isinstance(value, (list, tuple, range)):
        plain = _plain(value)
        x = from_view(_arrays.from_list(plain, dtype or dtype_of(_infer(plain) or float, "tensor"), _WHAT))
    else:
        x = _copy_of_array(value, dtype)
        x = x if dtype is None or x.dtype is dtype else x.astype(dtype)
    return leaf(x, requires_grad)


def full(shape, fill_value, dtype=None, *, requires_grad=False):
    """The same number everywhere."""
    shape = shape_of(shape, "full")
    if dtype is None:
        dtype = _infer(fill_value) or float
    dtype = dtype_of(dtype, "full")
    number = _arrays.number(fill_value, dtype, _arrays.What("full: the value", "fill_value"))
    if dtype.python is complex or (dtype.python is int and abs(number) > 1 << 53):
        return leaf(from_scalar(number, dtype, "full").broadcast_to(shape), requires_grad)
    return leaf(Tensor._take(_tensors.make("tiga_tensor_full", _tensors.home().pointer, dtype.code, len(shape),
                                            _tensors.sizes(shape), float(number))), requires_grad)


def zeros(shape, dtype="f32", *, requires_grad=False):
    """Zeros."""
    dtype = dtype_of(dtype, "zeros")
    return full(shape, dtype.python(0), dtype, requires_grad=requires_grad)


def ones(shape, dtype="f32", *, requires_grad=False):
    """Ones."""
    dtype = dtype_of(dtype, "ones")
    return full(shape, dtype.python(1), dtype, requires_grad=requires_grad)


def zeros_like(x, dtype=None, *, requires_grad=False):
    """Zeros of the shape and, unless dtype says another, the element type of x."""
    x = operand(x)
    return zeros(x.shape, dtype or x.dtype, requires_grad=requires_grad)


def ones_like(x, dtype=None, *, requires_grad=False):
    """Ones of the shape and, unless dtype says another, the element type of x."""
    x = operand(x)
    return ones(x.shape, dtype or x.dtype, requires_grad=requires_grad)


def full_like(x, fill_value, dtype=None, *, requires_grad=False):
    """The same number everywhere, of the shape and, unless dtype says another, the element type of x."""
    x = operand(x)
    return full(x.shape, fill_value, dtype or x.dtype, requires_grad=requires_grad)


def arange(start, stop=None, step=1, dtype=None, *, requires_grad=False):
    """Numbers start, start + step, ... before stop; from 0 when only one is given.  Of whole numbers i64, of others f32, unless dtype
    says another."""
    start, stop = (0, start) if stop is None else (start, stop)
    if any(isinstance(n, float) for n in (start, stop, step)):
        return leaf(_float_range(start, stop, step, dtype_of(dtype or float, "arange")), requires_grad)
    dtype = dtype_of(dtype or int, "arange")
    numbers = [size(n, f"arange: {name}") for name, n in (("start", start), ("stop", stop), ("step", step))]
    return leaf(Tensor._take(_tensors.make("tiga_tensor_arange", _tensors.home().pointer, dtype.code, *numbers)), requires_grad)


def _float_range(start, stop, step, dtype):
    if dtype.python is not float:
        raise TypeError(f"arange: steps that are not whole, in {dtype.name}")
    if step == 0 or not all(isinstance(n, (int, float)) and math.isfinite(n) for n in (start, stop, step)):
        raise ValueError(f"arange: from {start} to {stop} by {step}; they must be finite numbers, and the step not 0")
    count = math.ceil((stop - start) / step)
    return (arange(count if count > 0 else 0, dtype="f64") * float(step) + float(start)).astype(dtype)


def linspace(start, stop, num=50, endpoint=True, dtype="f32", *, requires_grad=False):
    """num numbers at equal distances, from start to stop, with or without stop itself."""
    dtype, n = dtype_of(dtype, "linspace"), size(num, "linspace: num")
    if n < 0:
        raise ValueError(f"linspace: {n} numbers")
    gaps = n - 1 if endpoint else n
    numbers = arange(n, dtype="f64") * ((stop - start) / gaps if gaps > 0 else 0.0) + float(start)
    if endpoint and n > 1:  # exactly
        number = arange(n)
        numbers = op("select", number == n - 1, full((), float(stop), "f64"), numbers)
    return leaf(numbers.astype(dtype), requires_grad)


def eye(n, m=None, k=0, dtype="f32", *, requires_grad=False):
    """A matrix that is 1 on its k-th diagonal and 0 elsewhere."""
    dtype, n = dtype_of(dtype, "eye"), size(n, "eye: n")
    m = n if m is None else size(m, "eye: m")
    if n < 0 or m < 0:
        raise ValueError(f"eye: {n} rows and {m} columns")
    return leaf((arange(m) - arange(n).reshape(n, 1) == size(k, "eye: k")).astype(dtype), requires_grad)


def asarray(value, dtype=None):
    """value itself where it is a tensor (of that element type), or tensor(value, dtype)."""
    return tensor(value, dtype)


def rand(shape, seed, dtype="f32", *, requires_grad=False):
    """Uniform in [0, 1): element i depends on seed and i alone, the same on every machine."""
    shape, dtype = shape_of(shape, "rand"), dtype_of(dtype, "rand")
    return leaf(Tensor._take(_tensors.make("tiga_tensor_rand", _tensors.home().pointer, dtype.code, len(shape),
                                            _tensors.sizes(shape), size(seed, "rand: seed") & (1 << 64) - 1)), requires_grad)


def share(view):
    """A tensor over the memory of a View, which it keeps."""
    array = _arrays.array_of(view)
    return Tensor._take(_tensors.from_owned(array, view))


def _share(value, who, requires_grad):
    what = _arrays.What(f"{who}: the array", "value")
    found = _arrays.find(value, what)
    dtype = None if found is None else _dtypes.BY_LONG.get(found.long)
    if dtype is None:
        raise TypeError(f"{who}: {type(value).__name__ if found is None else found.long + ' elements'}; Tiga has arrays of "
                        f"{', '.join(t.long for t in _dtypes.TABLE)}")
    if len(found.shape) > MAX_RANK:
        raise ValueError(f"{who}: {len(found.shape)} axes; a tensor has at most {MAX_RANK}")
    return leaf(share(_arrays.view(value, dtype, what)), requires_grad)


def from_numpy(array, *, requires_grad=False):
    """A tensor over the memory of a C-contiguous numpy array, which must not change while the tensor is used."""
    np = _arrays.numpy()
    if np is None or not isinstance(array, np.ndarray):
        raise TypeError(f"from_numpy: takes a numpy array, not {type(array).__name__}")
    return _share(array, "from_numpy", requires_grad)


def from_dlpack(x, *, requires_grad=False):
    """A tensor over the memory of whatever has __dlpack__ (torch, jax, numpy, cupy on the host ...), which must not change
    while the tensor is used."""
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"from_dlpack: {type(x).__name__} has no __dlpack__")
    return x if isinstance(x, Tensor) else _share(x, "from_dlpack", requires_grad)
