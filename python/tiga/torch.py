"""Tiga's functions inside PyTorch: tiga.torch.function makes one that autograd knows.

    layer = tg.torch.function(m.weighted_sum)       # m has `export vjp weighted_sum(x, w)`
    y = layer(g, x=x, w=w, bias=b)                  # tensors in, tensor out
    y.sum().backward()                              # x.grad, w.grad

The backward pass is the compiled program `weighted_sum_vjp`.  torch is imported when a function is made.
"""
import functools


def _names(fields):
    return {f.keyword: f for f in fields}


class _Function:
    """What tiga.torch.function gives."""

    def __init__(self, function):
        self.function = function
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self.__signature__ = function.__signature__
        self.__wrapped__ = function

    def __repr__(self):
        return f"<tiga.torch.function of {self.function!r}>"

    def __call__(self, /, *args, **fields):
        f = self.function
        given = dict(fields)
        if given.pop(f._out, None) is not None:
            raise TypeError(f"{f.__name__}: {f._out}= has no place in a differentiable function")
        graphs = f._take_graphs(args, given)
        names = [p.keyword for p in f.params if p.keyword in given]
        if len(names) != len(given) or len(names) != len(f.params):
            f._take_arrays(given)  # says what is wrong
        result = _autograd().apply(f, graphs, names, *[given[name] for name in names])
        return result if f._result_type is None else f._result_type(*result)


@functools.lru_cache(maxsize=None)
def _autograd():
    """The autograd.Function behind all of them."""
    import torch

    class Call(torch.autograd.Function):
        @staticmethod
        def forward(ctx, f, graphs, names, *values):
            plain = [v.detach() if isinstance(v, torch.Tensor) else v for v in values]
            result = f.call(tuple(graphs), dict(zip(names, plain)))
            results = [_tensor(torch, r, p) for r, p in zip((result,) if f._result_type is None else result, f.results)]
            ctx.f, ctx.graphs, ctx.names = f, graphs, names
            ctx.numbers = {n: v for n, v in zip(names, values) if not isinstance(v, torch.Tensor)}
            ctx.tensor_names = [n for n, v in zip(names, values) if isinstance(v, torch.Tensor)]
            ctx.save_for_backward(*[v for v in values if isinstance(v, torch.Tensor)])
            ctx.mark_non_differentiable(*[r for r in results if not r.dtype.is_floating_point and not r.dtype.is_complex])
            return results[0] if f._result_type is None else tuple(results)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, *cotangents):
            f, needed = ctx.f, [n for n, need in zip(ctx.names, ctx.needs_input_grad[3:]) if need]
            vjp = _vjp(f, needed)
            arguments = {p.keyword: _cotangent(p.name, f, cotangents) for p in vjp.params[len(f.params):]}
            forward = {**ctx.numbers, **{n: t.detach() for n, t in zip(ctx.tensor_names, ctx.saved_tensors)}}
            for own, theirs in zip(f.params, vjp.params):
                arguments[theirs.keyword] = forward[own.keyword]
            result = vjp.call(tuple(ctx.graphs), arguments)
            values = (result,) if vjp._result_type is None else result
            gradients = {r.name: _tensor(torch, v, r) for r, v in zip(vjp.results, values)}
            fields = _names(f.params)
            return (None, None, None, *[gradients[fields[n].name] if n in needed else None for n in ctx.names])

    return Call


def _tensor(torch, value, field):
    """Calls without any tensor among their arguments give other kinds."""
    return value if isinstance(value, torch.Tensor) else torch.as_tensor(value, dtype=getattr(torch, field.dtype.long))


def _vjp(f, needed):
    """The module's program for the gradients of f, if it has one that gives all that are needed."""
    vjp = getattr(f, "vjp", None)
    fields = _names(f.params)
    names = [fields[n].name for n in needed]
    have = [r.name for r in vjp.results] if vjp else []
    if vjp is None or any(name not in have for name in names):
        lacks = f"its module has no {f.__name__}_vjp" if vjp is None else (
            f"{vjp.__name__} gives the gradients of {', '.join(have)} only")
        raise NotImplementedError(f"{f.__name__} cannot be differentiated with respect to {', '.join(names)}: {lacks}; add "
                                  f"`export vjp {f.__name__}({', '.join([*have, *[n for n in names if n not in have]])})` to the program")
    return vjp


def _cotangent(name, f, cotangents):
    """`cotangent` of one result without a name, else `cotangent_NAME`."""
    index = 0
    if name != "cotangent":
        index = [r.name for r in f.results].index(name[len("cotangent_"):])
    return cotangents[index].contiguous()


def function(f):
    """A differentiable function of tensors from a kernel or program of a module.

    It takes what f takes.  Its gradients come from `f_vjp`, which `export vjp f(...)` in the program makes; without it, or
    for fields it does not give, backward raises NotImplementedError.
    """
    from ._function import Function
    if not isinstance(f, Function):
        raise TypeError(f"tiga.torch.function takes a function of a tiga module, not {type(f).__name__}")
    _autograd()  # torch must be there
    return _Function(f)
