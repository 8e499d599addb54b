"""x[...]: numpy's indexing.  Numbers, slices, None and `...` make views; arrays of integers and masks choose elements.

Several arrays choose together: they broadcast, and their axes, beside each other and seen as one, are gathered from.  Numbers
beside arrays count as arrays of no axes, as in numpy: where a slice stands between two of them, what they chose comes first.
"""
import ctypes as C
import math

from . import _dtypes, _tensors
from ._arguments import size
from ._create import tensor
from ._tensor import Tensor, op

_BOOL, _I64 = _dtypes.BY_LONG["bool"], _dtypes.BY_LONG["int64"]


def _slice(x, axis, begin, count, step):
    return Tensor._take(_tensors.make("tiga_tensor_slice", x._handle, axis, begin, count, step))


def _is_array(item):
    return isinstance(item, (list, Tensor)) or hasattr(item, "shape") and item.shape != () or _is_bool(item)


def _is_bool(item):
    return hasattr(item, "dtype") and str(item.dtype) == "bool"


class _Numbers:
    """What an array in an index says: numbers along one axis, or, of a mask, along `axes` of them seen as one."""
    __slots__ = ("index", "axes", "mask", "low", "high")

    def __init__(self, item):
        index = tensor(item)
        if index.size == 0 and not isinstance(item, Tensor) and index.dtype is not _BOOL:
            index = index.astype(_I64)
        if index.dtype is not _BOOL and index.dtype.name not in ("i32", "i64"):
            raise IndexError(f"an index of {index.dtype.name}; it must be i32, i64 or bool")
        self.mask = index if index.dtype is _BOOL else None
        if self.mask is not None and not index.ndim:
            raise IndexError("a mask without axes")
        self.axes, self.index = (1, index) if self.mask is None else (index.ndim, None)

    def check_mask(self, shape, axis):
        """shape: that of the axes it stands for; the first is `axis`."""
        for i, n in enumerate(() if self.mask is None else self.mask.shape):
            if n != shape[i]:
                raise IndexError(f"a mask of shape {self.mask.shape}: axis {axis + i} of the tensor has size {shape[i]}, not {n}")

    def bounds(self):
        """The tensors to look at, to know that all numbers are those of elements."""
        if self.mask is not None or not self.index.size:
            return []
        self.low, self.high = self.index.min(), self.index.max()
        return [self.low, self.high]

    def settle(self, n, axis):
        """Numbers from the front."""
        if self.mask is not None:
            return nonzero_of(self.mask)
        index = self.index
        if index.size:
            low, high = self.low.item(), self.high.item()
            if low < -n or high >= n:
                raise IndexError(f"index {low if low < -n else high} is out of range for axis {axis} of size {n}")
            if low < 0:
                index = index.astype(_I64)
                index = op("select", index < 0, index + n, index)
        return index


def nonzero_of(mask):
    """Which elements are true: i64, row-major."""
    out = C.c_void_p()
    _tensors.run("tiga_tensor_nonzero", mask._handle, C.byref(out), made=(out,))
    return Tensor._take(out.value)


def _items(index):
    """The entries of an index, each with the number of axes that it stands for."""
    found = []
    for item in index if isinstance(index, tuple) else (index,):
        if item is None or item is Ellipsis:
            found.append((item, 0))
        elif _is_array(item):
            numbers = _Numbers(item)
            found.append((numbers, numbers.axes))
        else:
            found.append((item, 1))
    return found


def _expanded(index, rank):
    """One entry for each axis (a mask for several), and None for new ones; `...` spelled out, or itself where it is nothing."""
    items = _items(index)
    dots = [i for i, (item, _) in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index has at most one '...'")
    named = sum(axes for _, axes in items)
    if named > rank:
        raise IndexError(f"{named} indices for a tensor with {rank} axes")
    at = dots[0] if dots else len(items)
    items = [item for item, _ in items]
    return items[:at] + ([slice(None)] * (rank - named) or items[at:at + 1]) + items[at + 1:]


def _number(item, n, axis):
    try:
        i = size(item, "the index")
    except TypeError:
        raise IndexError(f"{item!r} is no index: integers, slices, None, ... and arrays of integers or bools are") from None
    if not -n <= i < n:
        raise IndexError(f"index {i} is out of range for axis {axis} of size {n}")
    return i % n


def _shaped(x, shape):
    return Tensor._take(_tensors.make("tiga_tensor_reshape", x._handle, len(shape), _tensors.sizes(shape)))


def _plain(x, sizes, index):
    """One slice or number, of the first axis: what is written most."""
    n = sizes[0]
    if type(index) is int:
        return _shaped(_slice(x, 0, _number(index, n, 0), 1, 1), sizes[1:])
    begin, stop, step = index.indices(n)
    count = len(range(begin, stop, step))
    return x if (begin, count, step) == (0, n, 1) else _slice(x, 0, begin if count else 0, count, step)


def take_index(x, index):
    """x[index]"""
    if (type(index) is slice or type(index) is int) and x.ndim:
        return _plain(x, x.shape, index)
    sizes, axis, shape, changed = x.shape, 0, [], False
    chosen = []  # (numbers, axis, place in shape)
    places = []  # in the index, of all that chooses
    to = 0       # the place in shape of the first of them
    for place, item in enumerate(_expanded(index, len(sizes))):
        if item is None:
            shape.append(1)
            changed = True
        elif isinstance(item, slice):
            begin, stop, step = item.indices(sizes[axis])
            count = len(range(begin, stop, step))
            if (begin, count, step) != (0, sizes[axis], 1):
                x = _slice(x, axis, begin if count else 0, count, step)
            shape.append(count)
            axis += 1
        elif item is not Ellipsis:
            to = to if places else len(shape)
            places.append(place)
            if isinstance(item, _Numbers):
                item.check_mask(sizes[axis:axis + item.axes], axis)
                chosen.append((item, axis, len(shape)))
                shape.extend(sizes[axis:axis + item.axes])
                axis += item.axes
            else:
                x = _slice(x, axis, _number(item, sizes[axis], axis), 1, 1)
                changed = True
                axis += 1
    if changed:
        x = _shaped(x, shape)
    if not chosen:
        return x
    together = places[-1] - places[0] == len(places) - 1
    return _choose(x, sizes, chosen, to if together else 0)


def _choose(x, sizes, chosen, to):
    """Elements by number; all numbers are looked at, because one outside of an axis is an error."""
    bounds = [t for numbers, _, _ in chosen for t in numbers.bounds()]
    if bounds:
        _tensors.run("tiga_tensor_realize", _tensors.handles(bounds), len(bounds))
    axes = [place + k for numbers, _, place in chosen for k in range(numbers.axes)]
    rest = [i for i in range(x.ndim) if i not in axes]
    order = rest[:to] + axes + rest[to:]  # axes that are chosen from beside each other, at `to`
    if order != sorted(order):
        x = x.transpose(order)
    total = None
    for numbers, axis, _ in chosen:
        index = numbers.settle(sizes[axis], axis)
        n = math.prod(sizes[axis:axis + numbers.axes])
        try:
            total = index if total is None else total.astype(_I64) * n + index.astype(_I64)
        except ValueError:
            raise IndexError(f"arrays in an index do not broadcast: {total.shape} and {index.shape}") from None
    x = _merged(x, to, len(axes))
    return Tensor._take(_tensors.make("tiga_tensor_gather", x._handle, total._handle, to))


def _merged(x, place, axes):
    """Axes place ... place + axes - 1 as one."""
    shape = x.shape
    return x if axes == 1 else x.reshape(shape[:place] + (math.prod(shape[place:place + axes]),) + shape[place + axes:])
