"""Functions of tensors, under numpy's names.  Each takes tensors, numbers and arrays, and gives a new tensor; most are methods
too.  Element types follow the language: no operand is cast silently, sums keep the type of what is summed."""
from . import _dtypes, _tensors
from ._arguments import axes_of, axis_of, dtype_of, shape_of, size
from ._create import arange, tensor
from ._index import nonzero_of
from ._movement import *  # noqa: F403 -- they are functions of tensors like those below
from ._movement import FUNCTIONS as _MOVEMENT
from ._tensor import _I64, Tensor, floor_divide, op, operand, remainder

_ALL = 0xFFFFFFFF


def _make(function, *arguments):
    return Tensor._take(_tensors.make(function, *arguments))


# ---- element by element ----
def _unary(name, c_name, doc):
    def function(x):
        return op(c_name, x)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _binary(name, c_name, doc):
    def function(x1, x2):
        return op(c_name, x1, x2)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


_UNARY = {
    "negative": ("neg", "-x"), "absolute": ("abs", "The absolute value; of complex numbers the modulus."),
    "sign": ("sign", "-1, 0 or 1."), "exp": ("exp", "e to the x."), "expm1": ("expm1", "exp(x) - 1, exact for small x."),
    "log": ("log", "The natural logarithm."), "log1p": ("log1p", "log(1 + x), exact for small x."),
    "sqrt": ("sqrt", "The square root."), "rsqrt": ("rsqrt", "1 / sqrt(x)."), "floor": ("floor", "Rounded down."),
    "ceil": ("ceil", "Rounded up."), "round": ("round", "To the nearest whole number, halves to even."),
    "sin": ("sin", "The sine."), "cos": ("cos", "The cosine."), "tan": ("tan", "The tangent."),
    "arcsin": ("asin", "The inverse sine."), "arccos": ("acos", "The inverse cosine."),
    "arctan": ("atan", "The inverse tangent."), "sinh": ("sinh", "The hyperbolic sine."),
    "cosh": ("cosh", "The hyperbolic cosine."), "tanh": ("tanh", "The hyperbolic tangent."),
    "erf": ("erf", "The error function."), "logical_not": ("not", "Not, of bools."), "conj": ("conj", "The complex conjugate."),
    "real": ("real", "The real part."), "imag": ("imag", "The imaginary part."), "sigmoid": ("sigmoid", "1 / (1 + exp(-x))."),
    "relu": ("relu", "x where it is positive, else 0."), "gelu": ("gelu", "x times the normal distribution's integral."),
    "silu": ("silu", "x * sigmoid(x)."), "softplus": ("softplus", "log(1 + exp(x))."),
}
_BINARY = {
    "add": ("add", "x1 + x2"), "subtract": ("sub", "x1 - x2"), "multiply": ("mul", "x1 * x2"),
    "div": ("div", "x1 / x2; of integers truncated, as the language's div."),
    "fmod": ("rem", "The remainder with the sign of x1, as the language's %."), "power": ("pow", "x1 to the x2."),
    "minimum": ("min", "The smaller of both; NaN if one is."), "maximum": ("max", "The larger of both; NaN if one is."),
    "arctan2": ("atan2", "The angle of (x2, x1)."), "hypot": ("hypot", "sqrt(x1**2 + x2**2) without overflow."),
    "equal": ("eq", "x1 == x2"), "not_equal": ("ne", "x1 != x2"), "less": ("lt", "x1 < x2"), "less_equal": ("le", "x1 <= x2"),
    "greater": ("gt", "x1 > x2"), "greater_equal": ("ge", "x1 >= x2"), "logical_and": ("and", "Both, of bools."),
    "logical_or": ("or", "Any, of bools."), "complex": ("complex", "x1 + x2 * i"),
}
for _name, (_c_name, _doc) in _UNARY.items():
    globals()[_name] = _unary(_name, _c_name, _doc)
for _name, (_c_name, _doc) in _BINARY.items():
    globals()[_name] = _binary(_name, _c_name, _doc)
_ALIASES = {"abs": "absolute", "conjugate": "conj", "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2",
            "pow": "power", "rint": "round"}
for _name, _of in _ALIASES.items():
    globals()[_name] = globals()[_of]


def divide(x1, x2):
    """x1 / x2, of floats and complex numbers."""
    return operand(x1, (x2,)) / operand(x2, (x1,))


true_divide = divide


def square(x):
    """x * x"""
    x = operand(x)
    return x * x


def reciprocal(x):
    """1 / x"""
    return 1 / operand(x)


def isnan(x):
    """Whether it is NaN."""
    x = operand(x)
    return x != x


def isinf(x):
    """Whether it is infinite, of floats."""
    return abs(operand(x)) == float("inf")


def isfinite(x):
    """Whether it is neither infinite nor NaN, of floats."""
    return abs(operand(x)) < float("inf")


def isclose(x1, x2, rtol=1e-5, atol=1e-8):
    """Whether abs(x1 - x2) <= atol + rtol * abs(x2), of floats; equal infinities are close, NaN is not."""
    x1, x2 = operand(x1, (x2,)), operand(x2, (x1,))
    return (x1 == x2) | (isfinite(x2) & (abs(x1 - x2) <= atol + rtol * abs(x2)))


def allclose(x1, x2, rtol=1e-5, atol=1e-8):
    """Whether all are close (isclose), as a bool of Python."""
    return bool(all(isclose(x1, x2, rtol, atol)))


def where(condition, x1=None, x2=None):
    """x1 where the condition holds, x2 elsewhere; of the condition alone nonzero(condition)."""
    if x1 is None and x2 is None:
        return nonzero(condition)
    others = (x1, x2)
    return op("select", operand(condition), operand(x1, others), operand(x2, others))


def clip(x, min=None, max=None):
    """x brought into [min, max]; either may be None."""
    x = operand(x)
    if min is None and max is None:
        return x
    if min is None:
        return op("min", x, max)
    return op("max", x, min) if max is None else op("clamp", x, min, max)


clamp, select = clip, where  # the language's names


def leaky_relu(x, slope=0.01):
    """x where it is positive, else slope * x."""
    return op("leaky_relu", x, slope)


def elu(x, alpha=1.0):
    """x where it is positive, else alpha * (exp(x) - 1)."""
    return op("elu", x, alpha)


# ---- over axes ----
def _fold(name, x, axis, keepdims):
    axes = axes_of(axis, x.ndim, name)
    bits = _ALL if axis is None else _bits(axes)
    if not axes:
        return x
    return _make("tiga_tensor_fold", x._handle, name.encode(), bits, int(bool(keepdims)))


def _bits(axes):
    bits = 0
    for a in axes:
        bits |= 1 << a
    return bits


def _summed(x, dtype, who):
    """What is added up: bools are counted."""
    x = operand(x)
    if dtype is not None:
        return x.astype(dtype_of(dtype, who))
    return x.astype(_I64) if x.dtype.python is bool else x


def sum(x, axis=None, keepdims=False, dtype=None):
    """The sum over an axis, several, or all.  It has the element type of x (bools are counted in i64), or dtype."""
    return _fold("sum", _summed(x, dtype, "sum"), axis, keepdims)


def prod(x, axis=None, keepdims=False, dtype=None):
    """The product over an axis, several, or all, in the element type of x (of bools i64), or dtype."""
    return _fold("prod", _summed(x, dtype, "prod"), axis, keepdims)


def mean(x, axis=None, keepdims=False, dtype=None):
    """The mean over an axis, several, or all; of integers and bools in f64; of no elements NaN."""
    x = operand(x)
    if dtype is not None:
        x = x.astype(dtype_of(dtype, "mean"))
    elif x.dtype.python in (int, bool):
        x = (x.astype(_I64) if x.dtype.python is bool else x).astype("f64")
    return _fold("mean", x, axis, keepdims)


def min(x, axis=None, keepdims=False):
    """The smallest over an axis, several, or all; NaN if one is; of no elements the largest number there is."""
    return _fold("min", operand(x), axis, keepdims)


def max(x, axis=None, keepdims=False):
    """The largest over an axis, several, or all; NaN if one is; of no elements the smallest number there is."""
    return _fold("max", operand(x), axis, keepdims)


def any(x, axis=None, keepdims=False):
    """Whether any is true; numbers are true when they are not 0."""
    return _fold("any", _truth(x), axis, keepdims)


def all(x, axis=None, keepdims=False):
    """Whether all are true; numbers are true when they are not 0."""
    return _fold("all", _truth(x), axis, keepdims)


def _truth(x):
    x = operand(x)
    return x if x.dtype.python is bool else x != 0


def count_nonzero(x, axis=None, keepdims=False):
    """How many are true, or not 0."""
    return sum(_truth(x), axis, keepdims)


def nonzero(x):
    """Where it is true, or not 0: for each axis the numbers of those elements, so that x[nonzero(x)] are they.  Looks at x."""
    x = _truth(x)
    flat, numbers = nonzero_of(x), []
    for n in reversed(x.shape):
        numbers.append(flat - flat // n * n if numbers or x.ndim > 1 else flat)
        flat = flat // n
    return tuple(reversed(numbers))


def flatnonzero(x):
    """Where x.ravel() is true, or not 0.  Looks at x."""
    return nonzero_of(_truth(x))


def var(x, axis=None, keepdims=False, ddof=0):
    """The variance: mean squared distance from the mean, with n - ddof instead of n."""
    x = operand(x)
    if x.dtype.python in (int, bool):
        x = (x.astype(_I64) if x.dtype.python is bool else x).astype("f64")
    far = x - mean(x, axis, True)
    squares = real(far * conj(far)) if x.dtype.python is complex_type else far * far
    if ddof == 0:
        return mean(squares, axis, keepdims)
    n = 1
    for a in axes_of(axis, x.ndim, "var"):
        n *= x.shape[a]
    return sum(squares, axis, keepdims) / float(n - ddof if n > ddof else 0)


complex_type = _dtypes.BY_LONG["complex64"].python


def std(x, axis=None, keepdims=False, ddof=0):
    """The standard deviation: the square root of var."""
    return sqrt(var(x, axis, keepdims, ddof))


def _first(x, axis, keepdims, best, who):
    """Where the best element stands, the first of several; the first NaN where there is one."""
    x = operand(x)
    if axis is None:
        flat = _first(x.ravel(), 0, False, best, who)
        return flat.reshape((1,) * x.ndim) if keepdims else flat
    a = axis_of(axis, x.ndim, who)
    n = x.shape[a]
    if n == 0:
        raise ValueError(f"{who}: over no elements")
    if x.dtype.python is bool:
        x = x.astype("i32")
    number = arange(n).reshape((n,) + (1,) * (x.ndim - a - 1))
    hit = x == best(x, a, True)
    if x.dtype.python is float:
        nan = x != x
        hit = where(any(nan, a, True), nan, hit)
    return min(where(hit, number, n), a, keepdims)


def argmin(x, axis=None, keepdims=False):
    """Where the smallest element stands, the first of several; without an axis in x.ravel()."""
    return _first(x, axis, keepdims, min, "argmin")


def argmax(x, axis=None, keepdims=False):
    """Where the largest element stands, the first of several; without an axis in x.ravel()."""
    return _first(x, axis, keepdims, max, "argmax")


def cumsum(x, axis=None, reverse=False):
    """Sums of the elements up to each along an axis (without one: of x.ravel()); reverse: from each on."""
    x = operand(x)
    x = x.astype(_I64) if x.dtype.python is bool else x
    if axis is None:
        x, axis = x.ravel(), 0
    return _make("tiga_tensor_cumsum", x._handle, axis_of(axis, x.ndim, "cumsum"), int(bool(reverse)))


def softmax(x, axis=-1):
    """exp(x) divided by its sum along an axis, without overflow."""
    x = operand(x)
    return _make("tiga_tensor_softmax", x._handle, axis_of(axis, x.ndim, "softmax"))


def logsumexp(x, axis=None, keepdims=False):
    """log(sum(exp(x))) without overflow."""
    x = operand(x)
    top = max(x, axis, True)
    top = where(abs(top) == float("inf"), 0, top)
    out = log(sum(exp(x - top), axis, True)) + top
    return out if keepdims else _without(out, axes_of(axis, x.ndim, "logsumexp"))


def _without(x, axes):
    return x.reshape(tuple(n for i, n in enumerate(x.shape) if i not in axes)) if axes else x


def layer_norm(x, weight=None, bias=None, eps=1e-5):
    """(x - mean) / sqrt(var + eps) over the last axis, times weight, plus bias."""
    x = operand(x)
    weight, bias = (None if w is None else operand(w) for w in (weight, bias))
    return _make("tiga_tensor_layer_norm", x._handle, weight._handle if weight is not None else None,
                 bias._handle if bias is not None else None, float(eps))


# ---- products ----
def matmul(x1, x2):
    """The matrix product; of vectors, and of stacks of matrices, as numpy's."""
    a, b = operand(x1), operand(x2)
    return _make("tiga_tensor_matmul", a._handle, b._handle)


def vecdot(x1, x2):
    """The sum over the products along the last axes, which broadcast: the language's dot.  Nothing is conjugated."""
    return sum(op("mul", x1, x2), -1)


def dot(x1, x2):
    """numpy's: of numbers the product, of vectors the sum of products, of matrices, and of a matrix and a vector, the matrix
    product.  Stacks are for matmul and vecdot, which say how they meet."""
    a, b = operand(x1, (x2,)), operand(x2, (x1,))
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    if b.ndim > 2 or (a.ndim > 2 and b.ndim == 2):
        raise ValueError(f"dot: of {a.ndim} and {b.ndim} axes; use matmul, or vecdot for sums along the last axes")
    return matmul(a, b)


def outer(x1, x2):
    """All products of the elements of two vectors."""
    a, b = operand(x1), operand(x2)
    return a.ravel().reshape(a.size, 1) * b.ravel().reshape(1, b.size)


# ---- made of the others ----
def diff(x, n=1, axis=-1):
    """Each element less the one before it, n times over."""
    x = operand(x)
    before = (slice(None),) * axis_of(axis, x.ndim, "diff")
    for _ in range(size(n, "diff: n")):
        x = x[(*before, slice(1, None))] - x[(*before, slice(None, -1))]
    return x


def trace(x):
    """The sum of the elements of the last two axes whose numbers are equal."""
    return sum(diagonal(x), -1)


def average(x, axis=None, weights=None, keepdims=False):
    """The mean, or the sum of weights * x divided by that of weights; weights of one axis stand along `axis`."""
    x = operand(x)
    if weights is None:
        return mean(x, axis, keepdims)
    w = operand(weights)
    if w.ndim == 1 and x.ndim > 1 and axis is not None:
        w = w.reshape((-1,) + (1,) * (x.ndim - 1 - axis_of(axis, x.ndim, "average")))
    w = w.broadcast_to(x.shape)
    return sum(w * x, axis, keepdims) / sum(w, axis, keepdims)


METHODS = ("abs", "absolute", "all", "any", "arccos", "arcsin", "arctan", "argmax", "argmin", "ceil", "clip", "conj", "cos",
           "cosh", "cumsum", "diagonal", "dot", "erf", "exp", "expm1", "floor", "gather", "gelu", "isnan", "log", "log1p", "matmul",
           "max", "mean", "min", "nonzero", "prod", "reciprocal", "relu", "repeat", "round", "rsqrt", "sigmoid", "sign", "silu",
           "sin", "sinh", "softmax", "sqrt", "square", "std", "sum", "take", "tan", "tanh", "trace", "var")
for _name in METHODS:
    setattr(Tensor, _name, globals()[_name])
for _name in ("real", "imag"):
    setattr(Tensor, _name, property(globals()[_name], doc=globals()[_name].__doc__))
FUNCTIONS = sorted({*_UNARY, *_BINARY, *_ALIASES, *_MOVEMENT, "divide", "true_divide", "square", "reciprocal", "isnan", "isinf",
                    "isfinite", "isclose", "allclose", "where", "select", "clip", "clamp", "leaky_relu", "elu", "sum", "prod", "mean",
                    "min", "max", "any", "all", "var", "std", "argmin", "argmax", "count_nonzero", "nonzero", "flatnonzero",
                    "cumsum", "softmax", "logsumexp", "layer_norm", "matmul", "dot", "vecdot", "outer", "remainder", "floor_divide", "diff",
                    "trace", "average"})
