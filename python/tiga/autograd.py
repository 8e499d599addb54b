"""Gradients of tensors.

    x = tg.tensor([1., 2.], requires_grad=True)
    tg.autograd.grad((x * x).sum(), x)                       # 2 * x
    value, slope = tg.autograd.value_and_grad(lambda x: (x * x).sum())([1., 2.])
"""
import ctypes as C
import functools
import threading

from . import _tensor, _tensors
from ._create import leaf as _leaf


def grad(loss, wrt, *, zero_unused=False):
    """The gradient of loss (one f32 or f64) with respect to a tensor, or a list of them with respect to several.

    A gradient is a tensor like any other, and can be differentiated again.  Where the loss does not depend on a tensor it is an
    error, or zeros with zero_unused=True.  A tensor that somebody has looked at remembers what it was computed from if that
    was made with requires_grad=True.
    """
    if not isinstance(loss, _tensor.Tensor):
        raise TypeError(f"grad: the loss is a {type(loss).__name__}; it must be a tensor")
    several = isinstance(wrt, (tuple, list))
    xs = list(wrt) if several else [wrt]
    for x in xs:
        if not isinstance(x, _tensor.Tensor):
            raise TypeError(f"grad: with respect to a {type(x).__name__}; it must be a tensor")
    if not xs:
        return []
    out = (C.c_void_p * len(xs))()
    _tensors.run("tiga_tensor_grad", loss._handle, _tensors.handles(xs), len(xs), int(bool(zero_unused)), out, made=out)
    result = [_tensor.Tensor._take(handle) for handle in out]
    return result if several else result[0]


_depth = threading.local()  # how many value_and_grad are under way on this thread


def _is_structure(value):
    """A dict, or a list or tuple with tensors, arrays or structures in it, is an argument of several tensors."""
    if isinstance(value, dict):
        return True
    return isinstance(value, (list, tuple)) and any(hasattr(v, "shape") or _is_structure(v) for v in value)


def _map(function, value):
    """function of each tensor of an argument, in the same structure."""
    if not _is_structure(value):
        return function(value)
    if isinstance(value, dict):
        return {k: _map(function, v) for k, v in value.items()}
    parts = [_map(function, v) for v in value]
    if hasattr(value, "_fields"):  # a named tuple
        return type(value)(*parts)
    return parts if isinstance(value, list) else tuple(parts)


def _leaves(value):
    found = []
    _map(found.append, value)
    return found


def value_and_grad(function, argnums=0, *, zero_unused=False):
    """A function that gives (value, gradient): that of function, which gives one number, with respect to its positional
    argument argnums, or (for a tuple of numbers) a tuple of gradients.

    An argument may be a list, tuple or dict of tensors, nested at will; so is its gradient.  Value and gradients are computed together
    and come without a history, so that the next step begins anew; but where one value_and_grad stands inside of another, or
    an argument has requires_grad, they can be differentiated again.
    """
    several = isinstance(argnums, (tuple, list))
    numbers = tuple(argnums) if several else (argnums,)

    def watched(x):
        x = _tensor.operand(x)
        return x if x.requires_grad else _leaf(x, True)

    @functools.wraps(function)
    def both(*args, **kwargs):
        args, keep = list(args), getattr(_depth, "n", 0) > 0
        for n in numbers:
            if not 0 <= n < len(args):
                raise TypeError(f"value_and_grad: there is no positional argument {n}")
            keep |= any(getattr(x, "requires_grad", False) for x in _leaves(args[n]))
            args[n] = _map(watched, args[n])
        _depth.n = getattr(_depth, "n", 0) + 1
        try:
            value = function(*args, **kwargs)
        finally:
            _depth.n -= 1
        if not isinstance(value, _tensor.Tensor):
            raise TypeError(f"value_and_grad: the function gives a {type(value).__name__}; it must give a tensor")
        wanted = [args[n] for n in numbers]
        gradients = grad(value, _leaves(wanted), zero_unused=zero_unused)
        if not keep:
            together = [value, *gradients]
            _tensors.run("tiga_tensor_realize", _tensors.handles(together), len(together))
            value, *gradients = [t.detach() for t in together]
        each = iter(gradients)
        gradients = _map(lambda _: next(each), wanted)
        return value, tuple(gradients) if several else gradients[0]
    return both
