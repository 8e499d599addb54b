"""x[...]: numpy's basic indexing, and one array of integers."""
from . import _tensors
from ._arguments import size
from ._create import tensor
from ._tensor import Tensor, op


def _slice(x, axis, begin, count, step):
    return Tensor._take(_tensors.make("tiga_tensor_slice", x._handle, axis, begin, count, step))


def _is_index_array(item):
    return isinstance(item, (list, Tensor)) or (hasattr(item, "shape") and item.shape != ()) or (
        hasattr(item, "dtype") and str(item.dtype) == "bool")


def _expanded(index, rank):
    """One entry for each axis, and None for new ones; `...` spelled out."""
    items = list(index) if isinstance(index, tuple) else [index]
    dots = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index has at most one '...'")
    named = sum(item is not None and item is not Ellipsis for item in items)
    if named > rank:
        raise IndexError(f"{named} indices for a tensor with {rank} axes")
    at = dots[0] if dots else len(items)
    return items[:at] + [slice(None)] * (rank - named) + items[at + 1:]


def _gathered(x, item, axis):
    """Elements by number; all of them are looked at, because one outside of the axis is an error."""
    index = tensor(item)
    if index.size == 0 and not isinstance(item, Tensor):
        index = index.astype("i64")
    if index.dtype.python is not int or index.dtype.name not in ("i32", "i64"):
        raise IndexError(f"an index of {index.dtype.name}; it must be i32 or i64" + (
            ": tiga.where chooses by a mask" if index.dtype.name == "bool" else ""))
    n = x.shape[axis]
    if index.size:
        low, high = index.min(), index.max()
        _tensors.run("tiga_tensor_realize", _tensors.handles([low, high]), 2)
        if low.item() < -n or high.item() >= n:
            raise IndexError(f"index {low.item() if low.item() < -n else high.item()} is out of range for axis {axis} of size {n}")
        if low.item() < 0:
            index = op("select", index < 0, index + n, index)
    return Tensor._take(_tensors.make("tiga_tensor_gather", x._handle, index._handle, axis))


def take_index(x, index):
    """x[index]"""
    items = _expanded(index, x.ndim)
    arrays = [i for i, item in enumerate(items) if _is_index_array(item)]
    if len(arrays) > 1:
        raise NotImplementedError("an index with several arrays; use one after the other, or gather()")
    axis, shape, changed = 0, [], False
    wanted = None
    for item in items:
        if item is None:
            shape.append(1)
            changed = True
        elif isinstance(item, slice):
            begin, stop, step = item.indices(x.shape[axis])
            count = len(range(begin, stop, step))
            if (begin, count, step) != (0, x.shape[axis], 1):
                x = _slice(x, axis, begin if count else 0, count, step)
            shape.append(count)
            axis += 1
        elif _is_index_array(item):
            wanted = axis, item, len(shape)
            shape.append(x.shape[axis])
            axis += 1
        else:
            try:
                i = size(item, "the index")
            except TypeError:
                raise IndexError(f"{item!r} is no index: integers, slices, None, ... and arrays of integers are") from None
            n = x.shape[axis]
            if not -n <= i < n:
                raise IndexError(f"index {i} is out of range for axis {axis} of size {n}")
            x = _slice(x, axis, i % n, 1, 1)
            changed = True
            axis += 1
    if changed:
        x = x.reshape(tuple(shape))
    return x if wanted is None else _gathered(x, wanted[1], wanted[2])
