"""Kernels and programs of modules on tensors."""
import ctypes as C

from . import _arrays, _lib, _tensors
from ._create import share
from ._tensor import Tensor, from_scalar


def _argument(value, field, what):
    """A tensor of the field's element type: value itself, or over its memory."""
    if isinstance(value, Tensor):
        if value.dtype is not field.dtype:
            raise TypeError(f"{what} is a tensor of {value.dtype.name}; it must be {field.dtype.name}: pass "
                            f"{what.expression}.astype('{field.dtype.name}')")
        return value
    if field.whole_rank == 0 and _arrays.kind_of(value) != _arrays.TORCH:
        return from_scalar(_arrays.number(value, field.dtype, what), field.dtype, what)
    return share(_arrays.view(value, field.dtype, what))


def call(function, graphs, given):
    """function(*graphs, **given), where some of what is given are tensors: tensors come back."""
    xs = [_argument(given[f.keyword], f, function._whats[f.index]) for f in function.params]
    handles = (C.c_void_p * max(len(graphs), 1))(*[g._handle for g in graphs])
    inputs = (_tensors.Binding * max(len(xs), 1))(*[(f.cname, x._handle) for f, x in zip(function.params, xs)])
    outputs = (_tensors.Binding * len(function.results))(*[(f.cname, None) for f in function.results])
    h = _tensors.home()
    _tensors.run(h.lib.tiga_tensor_call, h.pointer, function._code.handle, function._cname, handles, len(graphs), inputs, len(xs),
                 outputs, len(function.results), keep=(function._code, graphs, xs), made=_Made(outputs))
    results = [Tensor._take(b.tensor) for b in outputs]
    return results[0] if function._result_type is None else function._result_type(*results)


class _Made:
    """The tensors in bindings, for _tensors.run to free when the call is given up."""

    def __init__(self, bindings):
        self.bindings = bindings

    def __iter__(self):
        return iter([b.tensor for b in self.bindings])
