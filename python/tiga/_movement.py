"""Functions of tensors that move elements and compute none: joining, cutting, turning, repeating.  Names are numpy's."""
from . import _tensors
from ._arguments import axes_of, axis_of, dtype_of, shape_of, size
from ._create import arange, tensor
from ._tensor import Tensor, op, operand


def _make(function, *arguments):
    return Tensor._take(_tensors.make(function, *arguments))


def _tensors_of(arrays, who):
    arrays = list(arrays)
    if not arrays:
        raise ValueError(f"{who}: of nothing")
    return [operand(a, arrays) for a in arrays]


def concatenate(arrays, axis=0):
    """Tensors one after the other along an axis."""
    xs = _tensors_of(arrays, "concatenate")
    return _make("tiga_tensor_concat", _tensors.handles(xs), len(xs), axis_of(axis, xs[0].ndim, "concatenate"))


concat = concatenate


def stack(arrays, axis=0):
    """Tensors of one shape along a new axis."""
    xs = _tensors_of(arrays, "stack")
    return _make("tiga_tensor_stack", _tensors.handles(xs), len(xs), axis_of(axis, xs[0].ndim + 1, "stack"))


def reshape(x, shape):
    """The same elements, row-major, in another shape; one size may be -1."""
    return operand(x).reshape(shape)


def transpose(x, axes=None):
    """Axes in another order; without axes the reverse."""
    return operand(x).transpose(axes)


permute = permute_dims = transpose


def broadcast_to(x, shape):
    """Repeated to this shape, without using memory."""
    return operand(x).broadcast_to(shape)


def squeeze(x, axis=None):
    """Without axes of size 1."""
    return operand(x).squeeze(axis)


def expand_dims(x, axis):
    """With a new axis of size 1 at this place of the result."""
    x = operand(x)
    axes = axes_of(axis, x.ndim + (len(axis) if isinstance(axis, (tuple, list)) else 1), "expand_dims")
    rest = iter(x.shape)
    return x.reshape(tuple(1 if i in axes else next(rest) for i in range(x.ndim + len(axes))))


def take(x, indices, axis=None):
    """Elements along an axis by number, which may count from the end; one outside of the axis is an error."""
    x = operand(x)
    if axis is None:
        x, axis = x.ravel(), 0
    if isinstance(indices, int):
        return x[(slice(None),) * axis_of(axis, x.ndim, "take") + (indices,)]
    return x[(slice(None),) * axis_of(axis, x.ndim, "take") + (tensor(indices),)]


def gather(x, index, axis=0):
    """Elements along an axis by number (i32 or i64), brought into its range: the language's gather.  Nothing is looked at."""
    x, index = operand(x), operand(index)
    return _make("tiga_tensor_gather", x._handle, index._handle, axis_of(axis, x.ndim, "gather"))


def one_hot(index, n, dtype="f32"):
    """A new last axis of size n that is 1 at the index and 0 elsewhere."""
    index = operand(index)
    return _make("tiga_tensor_one_hot", index._handle, size(n, "one_hot: n"), dtype_of(dtype, "one_hot").code)


def ravel(x):
    """All elements along one axis."""
    return operand(x).ravel()


def swapaxes(x, axis1, axis2):
    """Two axes exchanged."""
    return operand(x).swapaxes(axis1, axis2)


def moveaxis(x, source, destination):
    """Axes brought to other places; the others keep their order."""
    x = operand(x)
    a, b = axes_of(source, x.ndim, "moveaxis"), axes_of(destination, x.ndim, "moveaxis")
    if len(a) != len(b):
        raise ValueError(f"moveaxis: {len(a)} axes to {len(b)} places")
    order = [i for i in range(x.ndim) if i not in a]
    for to, axis in sorted(zip(b, a)):
        order.insert(to, axis)
    return x.transpose(order) if order else x


def hstack(arrays):
    """Tensors one after the other along the second axis; vectors and numbers along the first."""
    xs = [x.reshape(1) if x.ndim == 0 else x for x in _tensors_of(arrays, "hstack")]
    return concatenate(xs, 0 if xs[0].ndim == 1 else 1)


def vstack(arrays):
    """Tensors one below the other, along the first axis; vectors are rows."""
    xs = [x.reshape(1, x.size) if x.ndim < 2 else x for x in _tensors_of(arrays, "vstack")]
    return concatenate(xs, 0)


def split(x, sections, axis=0):
    """A list of equal parts along an axis, or of the parts between the numbers in a list."""
    x = operand(x)
    a = axis_of(axis, x.ndim, "split")
    n = x.shape[a]
    if hasattr(type(sections), "__index__"):
        k = size(sections, "split: sections")
        if k < 1 or n % k:
            raise ValueError(f"split: an axis of {n} elements has no {k} equal parts")
        cuts = [i * (n // k) for i in range(1, k)]
    else:
        cuts = [size(i, "split: a section") for i in sections]
    before = (slice(None),) * a
    return [x[(*before, slice(i, j))] for i, j in zip([0, *cuts], [*cuts, n])]


def tile(x, repeats):
    """The whole of it repeated so often along each axis."""
    x, repeats = operand(x), shape_of(repeats, "tile")
    rank = len(repeats) if len(repeats) > x.ndim else x.ndim
    shape = (1,) * (rank - x.ndim) + x.shape
    x = x.reshape(shape)
    for a, (n, k) in enumerate(zip(shape, (1,) * (rank - len(repeats)) + repeats)):
        x = x if k == 1 else _repeated(x, a, a, n, k)
    return x


def _repeated(x, axis, at, n, k):
    """k times along an axis of n elements; `at`: where the new axis stands beside it, before or behind."""
    head, tail = x.shape[:axis], x.shape[axis + 1:]
    if n == 1:
        return x.broadcast_to(head + (k,) + tail)
    pair = (k, n) if at == axis else (n, k)
    x = x.reshape(x.shape[:at] + (1,) + x.shape[at:])
    return x.broadcast_to(head + pair + tail).reshape(head + (n * k,) + tail)


def repeat(x, repeats, axis=None):
    """Each element repeated so often (a number) along an axis; without one along x.ravel()."""
    x, k = operand(x), size(repeats, "repeat: repeats")
    if k < 0:
        raise ValueError(f"repeat: {k} times")
    if axis is None:
        x, axis = x.ravel(), 0
    a = axis_of(axis, x.ndim, "repeat")
    return _repeated(x, a, a + 1, x.shape[a], k)


def roll(x, shift, axis=None):
    """The elements moved on along an axis (without one: in x.ravel()); what leaves at the end comes in at the beginning."""
    x, k = operand(x), size(shift, "roll: shift")
    if axis is None:
        return roll(x.ravel(), k, 0).reshape(x.shape)
    a = axis_of(axis, x.ndim, "roll")
    n = x.shape[a]
    k = k % n if n else 0
    before = (slice(None),) * a
    return concatenate([x[(*before, slice(n - k, n))], x[(*before, slice(0, n - k))]], a) if k else x


def tril(x, k=0):
    """The last two axes with zeros above the k-th diagonal."""
    return _triangle(x, k, "le", "tril")


def triu(x, k=0):
    """The last two axes with zeros below the k-th diagonal."""
    return _triangle(x, k, "ge", "triu")


def _triangle(x, k, keep, who):
    x = operand(x)
    if x.ndim < 2:
        raise ValueError(f"{who}: the tensor has {x.ndim} axes; it must have two")
    rows, columns = arange(x.shape[-2]).reshape(-1, 1), arange(x.shape[-1])
    zero = tensor(x.dtype.python(0), x.dtype)
    return op("select", op(keep, columns - rows, size(k, f"{who}: k")), x, zero)


def diagonal(x):
    """The elements of the last two axes whose numbers are equal."""
    x = operand(x)
    if x.ndim < 2:
        raise ValueError(f"diagonal: the tensor has {x.ndim} axes; it must have two")
    n, m = x.shape[-2:]
    step = x.reshape(x.shape[:-2] + (n * m,))
    return step[..., :m * m if n > m else n * m:m + 1] if n * m else step


def flip(x, axis=None):
    """The elements in reverse order along an axis, several, or all."""
    x = operand(x)
    axes = axes_of(axis, x.ndim, "flip")
    return x[tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(x.ndim))]


__all__ = FUNCTIONS = [
    "broadcast_to", "concat", "concatenate", "diagonal", "expand_dims", "flip", "gather", "hstack", "moveaxis", "one_hot", "permute",
    "permute_dims", "ravel", "repeat", "reshape", "roll", "split", "squeeze", "stack", "swapaxes", "take", "tile", "transpose",
    "tril", "triu", "vstack"]
