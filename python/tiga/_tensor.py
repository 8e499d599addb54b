"""Tensors: values that are computed when somebody looks at them.

The class, its operators and how anything else becomes a tensor.  What they mean is docs/tensor.md; names and shapes are
numpy's.  Functions are in _operations.py, reading and writing in _storage.py, policy in _execution.py.
"""
import ctypes as C
import operator
import sys
from typing import NamedTuple

from . import _arrays, _dtypes, _lib, _memory, _tensors

_F32, _F64, _I64, _BOOL = (_dtypes.BY_LONG[n] for n in ("float32", "float64", "int64", "bool"))
_C64, _C128 = _dtypes.BY_LONG["complex64"], _dtypes.BY_LONG["complex128"]
_PYTHON = {float: _F32, int: _I64, bool: _BOOL, complex: _C64}
_ALL = 0xFFFFFFFF
_BORROW, _COPY = 0, 1


class Execution(NamedTuple):
    """How a tensor came about.  how: "pending" (nobody has looked yet), "given", "view", "copied", "interpreted", "compiled",
    "cached" or "called"; the figures are those of the program that computed it."""
    how: str
    operations: int
    launches: int
    bytes_read: int
    bytes_written: int


class _Base:
    """What the extension's TensorBase is."""
    __slots__ = ("_handle",)

    @classmethod
    def _take(cls, handle):
        self = object.__new__(cls)
        self._handle = handle
        return self

    def __del__(self):
        try:
            _tensors.end(self._handle)
        except AttributeError:  # it was never made
            pass

    @property
    def _code(self):
        return _tensors.get("tiga_tensor_dtype", self._handle)

    @property
    def shape(self):
        """The size of each axis."""
        h = _tensors.home().lib
        return tuple(h.tiga_tensor_shape(self._handle)[:h.tiga_tensor_rank(self._handle)])

    @property
    def ndim(self):
        """How many axes."""
        return _tensors.get("tiga_tensor_rank", self._handle)

    @property
    def size(self):
        """How many elements."""
        return _tensors.get("tiga_tensor_size", self._handle)

    def _try_realize(self):
        return False

    def _try_bytes(self, _):
        return None


# ---- element types and shapes from whatever names them ----
def dtype_of(value, who):
    """The element type that value names: "f32", "float32", tg.f32, numpy's and torch's types, float, int, bool, complex."""
    if isinstance(value, _dtypes.DType):
        return value
    if isinstance(value, type) and value in _PYTHON:
        return _PYTHON[value]
    name = value if isinstance(value, str) else getattr(value, "name", None) or getattr(value, "__name__", None) or str(value)
    found = _tensors.DTYPES.get(name.rpartition(".")[2] if isinstance(name, str) else None)
    if found is None:
        raise TypeError(f"{who}: {value!r} is no element type; there are {', '.join(t.name for t in _dtypes.TABLE)}")
    return found


def shape_of(value, who):
    """A tuple of sizes from a number or a sequence of numbers."""
    if isinstance(value, (int,)) or (hasattr(type(value), "__index__") and not isinstance(value, Tensor)):
        value = (value,)
    try:
        shape = tuple(operator.index(n) for n in value)
    except TypeError:
        raise TypeError(f"{who}: {value!r} is no shape; it must be integers") from None
    if any(isinstance(n, bool) for n in value):
        raise TypeError(f"{who}: {value!r} is no shape; it must be integers")
    if len(shape) > _tensors.MAX_RANK:
        raise ValueError(f"{who}: {len(shape)} axes; a tensor has at most {_tensors.MAX_RANK}")
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


def _storage_name(name):
    if not isinstance(name, str):
        raise TypeError(f"disk: name is {name!r}; it must be a str")
    data = name.encode()
    if b"\0" in data:
        raise ValueError(f"disk: name is {name!r}; it has a NUL")
    return data


# ---- making tensors of what is no tensor ----
def _float(value):
    return Tensor._take(_tensors.make("tiga_tensor_number", _tensors.home().pointer, value))


def _int(value):
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"{value} does not fit i64")
    return Tensor._take(_tensors.make("tiga_tensor_integer", _tensors.home().pointer, value))


def from_view(view):
    """A copy of the memory of a View."""
    array = _arrays.array_of(view)
    if not array.data:
        array.data = None
    return Tensor._take(_tensors.make("tiga_tensor_from", _tensors.home().pointer, C.byref(array), _COPY))


def from_scalar(value, dtype, who):
    """One element of this type, exactly as a cast of the language gives it."""
    return from_view(_arrays.scalar(value, dtype, _arrays.What(who, "value")))


def _complex_like(value, others):
    kinds = [t.dtype for t in others if isinstance(t, Tensor)]
    found = next((t for t in kinds if t.python is complex), None)
    if found is None:
        if kinds:
            raise TypeError(f"a complex number and {kinds[0].name}; cast the tensor, x.astype('c64')")
        found = _C64
    return from_scalar(value, found, "the number")


def operand(value, others=()):
    """A Tensor: value itself, a number (which takes the element type of the others), or a copy of an array."""
    if isinstance(value, Tensor):
        return value
    kind = type(value)
    if isinstance(value, bool):
        return from_scalar(value, _BOOL, "the operand")
    if kind is float or kind is int:
        return _float(value) if kind is float else _int(value)
    if isinstance(value, complex) and not hasattr(value, "dtype"):
        return _complex_like(value, others)
    if isinstance(value, float):  # numpy's float64 among them: a number like any other
        return _float(float(value))
    if isinstance(value, int):
        return _int(int(value))
    return tensor(value)


def op(name, *args):
    """The C operation `name` on tensors, numbers and arrays."""
    xs = [operand(a, args) for a in args]
    return Tensor._take(_tensors.make("tiga_tensor_op", name.encode(), _tensors.handles(xs), len(xs)))


def _binary_slow(name, a, b):
    """An operator of Python: NotImplemented for what is no number and no array."""
    return NotImplemented if _foreign(a) or _foreign(b) else op(name, a, b)


if _lib.extension:
    _binary = _lib.extension.binary  # the same where both are tensors or numbers; everything else goes to _binary_slow
else:
    _binary = _binary_slow


def _foreign(value):
    """What an operator leaves to the other operand's class."""
    if isinstance(value, (Tensor, int, float, complex, list, tuple)):
        return False
    return isinstance(value, (str, bytes, bytearray)) or not (
        hasattr(value, "__dlpack__") or hasattr(value, "__array_interface__") or _buffer(value))


def _buffer(value):
    try:
        memoryview(value).release()
        return True
    except TypeError:
        return False


class Tensor(_lib.extension.TensorBase if _lib.extension else _Base):
    """An immutable array of numbers, computed when somebody looks.

    Operations make expressions and compute nothing; tolist(), to_numpy(), item(), realize() and the like compute what they
    need as one compiled program.  Names and broadcasting are numpy's.  Element types are not: operands have one, only
    Python's numbers adopt that of the other operand, and x.astype("f64") casts.

    Made by tiga.tensor, zeros, ones, full, arange, rand, from_numpy, from_dlpack, load.
    """
    __slots__ = ("_leaf", "__weakref__")
    __array_ufunc__ = None  # numpy's operators leave it to ours
    __array_priority__ = 1000

    def __init__(self, *_, **__):
        raise TypeError("make tensors with tiga.tensor, zeros, ones, full, arange, rand, from_numpy, from_dlpack or load")

    def __reduce__(self):
        return _unpickle, (self.to_bytes(), self.dtype.name, self.shape)

    # ---- facts ----
    @property
    def dtype(self):
        """The element type; its repr is the language's name, f32."""
        return _dtypes.BY_CODE[self._code]

    @property
    def itemsize(self):
        """Bytes of one element."""
        return self.dtype.size

    @property
    def nbytes(self):
        """Bytes of all elements."""
        return self.size * self.dtype.size

    @property
    def device(self):
        """Where the value belongs: "cpu"."""
        return "cpu"

    @property
    def requires_grad(self):
        """Whether gradients with respect to it were asked for when it was made."""
        return getattr(self, "_leaf", False)

    @property
    def execution(self):
        """How it came about; see tiga.Execution."""
        e = _tensors.get("tiga_tensor_get_execution", self._handle)
        return Execution(e.text.decode(), e.operations, e.launches, e.bytes_read, e.bytes_written)

    @property
    def program(self):
        """The program that would compute it, as IR text; "" when nothing is left to compute."""
        if self.execution.how != "pending":
            return ""
        text = C.c_void_p()
        try:
            _tensors.run("tiga_tensor_program", self._handle, C.byref(text))
        except ValueError:  # an expression that only moves elements
            return ""
        try:
            return C.string_at(text.value).decode()
        finally:
            _tensors.home().lib.tiga_tensor_text_free(text)

    def __repr__(self):
        """Shape and type; the elements only where they are there and few: looking must not start anything."""
        head = f"tiga.Tensor({self.dtype.name}[{', '.join(map(str, self.shape))}]" if self.ndim else f"tiga.Tensor({self.dtype.name}"
        how = self.execution.how
        if how == "pending":
            return f"{head}, pending)"
        if self.size <= 32 and self._is_resident():
            return f"{head}, {self.tolist()!r})"
        return f"{head}, {how})"

    def _is_resident(self):
        return self._where()[0].resident != 0

    # ---- where it lies ----
    def _where(self):
        r, storage = _memory.ResidencyC(), C.c_int32()
        _tensors.run("tiga_tensor_residency", self._handle, C.byref(r), C.byref(storage))
        return r, storage.value

    @property
    def residency(self):
        """Where the elements are: a dict of device (where the value belongs, wherever its bytes are), resident, backing (None,
        "spill" or "snapshot": the file that holds them), bytes, version and pins.  Asking moves nothing."""
        r, _ = self._where()
        return {"device": self.device, "resident": r.resident != 0, "backing": (None, "spill", "snapshot")[r.backing],
                "bytes": r.bytes, "version": r.version, "pins": r.pins}

    def spill(self):
        """Moves the elements to the spill folder for now; gives the tensor itself.  Value, device, version and history stay, and
        whoever looks brings them back.  Views share their memory, and so move together."""
        _tensors.run("tiga_tensor_spill", self._handle)
        return self

    def prefetch(self):
        """Begins to bring the elements back in the background, if there is room; gives the tensor itself."""
        _tensors.run("tiga_tensor_prefetch", self._handle)
        return self

    def to(self, device):
        """The value on a device; on its own that is the tensor itself, realized."""
        out = C.c_void_p()
        _tensors.run("tiga_tensor_to", self._handle, str(device).encode(), C.byref(out), made=(out,))
        _tensors.home().lib.tiga_tensor_free(out) if out.value == self._handle else None
        return self if out.value == self._handle else Tensor._take(out.value)

    def cpu(self):
        """The value in the memory of the host: to("cpu")."""
        return self.to("cpu")

    def disk(self, name=None):
        """Without a name spill().  With one the value is also kept under it, for tiga.from_disk in this or another process."""
        name = None if name is None else _storage_name(name)
        _tensors.run("tiga_tensor_disk", self._handle, name)
        return self

    # ---- looking ----
    def realize(self):
        """Computes it now, and brings it into memory; gives the tensor itself."""
        if not self._try_realize():
            _tensors.run("tiga_tensor_realize", C.byref(C.c_void_p(self._handle)), 1)
        return self

    def _bytes_into(self, memory, n):
        _tensors.run("tiga_tensor_copy_to", self._handle, memory, n, keep=memory)

    def to_bytes(self):
        """The elements, row-major, as bytes."""
        data = self._try_bytes(self.dtype.size)
        if data is not None:
            return data
        n = self.nbytes
        memory = C.create_string_buffer(n) if n else None
        self._bytes_into(memory, n)
        return memory.raw if n else b""

    def tolist(self):
        """The elements as nested lists of Python numbers; a number when there are no axes."""
        dtype, shape, data = self.dtype, self.shape, self.to_bytes()
        if not data:
            return _arrays._empty_memory(dtype, shape).tolist()
        numbers = memoryview(data).cast(dtype.letter, shape + dtype.parts).tolist()
        return numbers if dtype.from_c is _dtypes._same else _arrays._numbers(numbers, len(shape), dtype.from_c)

    def item(self):
        """The only element, as a Python number."""
        if self.size != 1:
            raise ValueError(f"item: the tensor has {self.size} elements, not one")
        value = self.tolist()
        while isinstance(value, list):
            value = value[0]
        return value

    def to_numpy(self, copy=True):
        """A new numpy array of the elements; copy=False: a read-only one over the tensor's own memory, which stays where it is
        as long as the array lives.  bf16, which numpy does not have, comes as its bits in uint16."""
        np = _arrays.numpy()
        if np is None:
            raise ImportError("to_numpy: numpy is not installed; tolist() gives lists")
        if copy:
            array = np.empty(self.shape, self.dtype.numpy)
            self._bytes_into(array.ctypes.data if array.size else None, array.nbytes)
            return array
        dtype, shape = self.dtype, self.shape
        address, pin = _tensors.pinned(self)
        return _arrays.borrowed(address, dtype, _arrays._count(shape), pin).reshape(shape)

    numpy = to_numpy

    def __array__(self, dtype=None, copy=None):
        array = self.to_numpy(copy=bool(copy))
        if dtype is None or array.dtype == dtype:
            return array
        if copy is False:
            raise ValueError(f"elements of {self.dtype.name} are copied to become {dtype}")
        return array.astype(dtype)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        from . import _dlpack
        return _dlpack.export(self, stream, dl_device, copy)

    def __dlpack_device__(self):
        return (1, 0)

    # ---- as numpy's arrays: length, iteration, truth, numbers ----
    def __len__(self):
        shape = self.shape
        if not shape:
            raise TypeError("len() of a tensor without axes")
        return shape[0]

    def __iter__(self):
        if not self.ndim:
            raise TypeError("iteration over a tensor without axes")
        return (self[i] for i in range(len(self)))

    def __bool__(self):
        if self.size != 1:
            raise ValueError(f"the truth of a tensor with {self.size} elements is ambiguous; use any() or all()")
        return bool(self.item())

    def _number(self, kind):
        if self.size != 1:
            raise TypeError(f"only a tensor of one element becomes {kind}; this one has {self.size}")
        return self.item()

    def __float__(self):
        return float(self._number("a float"))

    def __int__(self):
        return int(self._number("an int"))

    def __complex__(self):
        return complex(self._number("a complex number"))

    def __index__(self):
        if self.ndim or self.dtype.python is not int:
            raise TypeError("only an integer without axes is an index")
        return self.item()

    def __contains__(self, value):
        return bool((self == value).any())

    __hash__ = object.__hash__

    # ---- operators ----
    def __truediv__(self, other):
        return _divide(self, other)

    def __rtruediv__(self, other):
        return _divide(other, self)

    def __floordiv__(self, other):
        return NotImplemented if _foreign(other) else floor_divide(self, other)

    def __rfloordiv__(self, other):
        return NotImplemented if _foreign(other) else floor_divide(other, self)

    def __mod__(self, other):
        return NotImplemented if _foreign(other) else remainder(self, other)

    def __rmod__(self, other):
        return NotImplemented if _foreign(other) else remainder(other, self)

    def __divmod__(self, other):
        return NotImplemented if _foreign(other) else (floor_divide(self, other), remainder(self, other))

    def __matmul__(self, other):
        from ._operations import matmul
        return NotImplemented if _foreign(other) else matmul(self, other)

    def __rmatmul__(self, other):
        from ._operations import matmul
        return NotImplemented if _foreign(other) else matmul(other, self)

    def __neg__(self):
        return op("neg", self)

    def __pos__(self):
        return self

    def __abs__(self):
        return op("abs", self)

    def __invert__(self):
        if self.dtype is not _BOOL:
            raise TypeError(f"~ of {self.dtype.name}: only of bool")
        return op("not", self)

    def __round__(self, digits=None):
        if digits:
            raise TypeError("round() of a tensor is to whole numbers")
        return op("round", self)

    def __setitem__(self, index, value):
        raise TypeError("tensors do not change; make a new one, with where() or concatenate()")

    # ---- movement ----
    def __getitem__(self, index):
        """Numbers, slices, None and ... as in numpy; and one list, array or tensor of integers, whose elements are looked at."""
        from ._index import take_index
        return take_index(self, index)

    def reshape(self, *shape):
        """The same elements, row-major, in another shape; one size may be -1: what is left."""
        shape = shape_of(shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape, "reshape")
        return Tensor._take(_tensors.make("tiga_tensor_reshape", self._handle, len(shape), _tensors.sizes(shape)))

    def ravel(self):
        """All elements along one axis."""
        return self.reshape(-1) if self.size else self.reshape(0)

    flatten = ravel

    def transpose(self, *axes):
        """Axes in another order; without arguments the reverse."""
        axes = axes[0] if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))) else axes
        if not axes:
            order = None
        else:
            order = axes_of(tuple(axes), self.ndim, "transpose")
            if len(order) != self.ndim:
                raise ValueError(f"transpose: {tuple(axes)} does not name the {self.ndim} axes of the tensor")
            order = (C.c_int32 * max(len(order), 1))(*order)
        return Tensor._take(_tensors.make("tiga_tensor_permute", self._handle, order))

    permute = transpose

    @property
    def T(self):
        """The axes reversed."""
        return self.transpose()

    @property
    def mT(self):
        """The last two axes exchanged."""
        if self.ndim < 2:
            raise ValueError(f"mT: the tensor has {self.ndim} axes; it must have two")
        return self.swapaxes(-1, -2)

    def swapaxes(self, axis1, axis2):
        """Two axes exchanged."""
        order = list(range(self.ndim))
        i, j = axis_of(axis1, self.ndim, "swapaxes"), axis_of(axis2, self.ndim, "swapaxes")
        order[i], order[j] = order[j], order[i]
        return self.transpose(order) if order else self

    def broadcast_to(self, *shape):
        """Axes of size 1, and new ones in front, repeated to this shape; it costs no memory."""
        shape = shape_of(shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape, "broadcast_to")
        return Tensor._take(_tensors.make("tiga_tensor_broadcast", self._handle, len(shape), _tensors.sizes(shape)))

    def squeeze(self, axis=None):
        """Without axes of size 1: all of them, or those named."""
        shape = self.shape
        if axis is None:
            gone = [i for i, n in enumerate(shape) if n == 1]
        else:
            gone = axes_of(axis, len(shape), "squeeze")
            for i in gone:
                if shape[i] != 1:
                    raise ValueError(f"squeeze: axis {i} has size {shape[i]}, not 1")
        return self.reshape(tuple(n for i, n in enumerate(shape) if i not in gone)) if gone else self

    def astype(self, dtype):
        """A cast of the language: floats to integers truncate and saturate, NaN becomes 0; integers to integers wrap around."""
        dtype = dtype_of(dtype, "astype")
        return Tensor._take(_tensors.make("tiga_tensor_cast", self._handle, dtype.code))


def _comparison(name, symbol):
    def compare(self, other):
        return _binary(name, self, other)
    compare.__name__ = compare.__qualname__ = f"__{name}__"
    compare.__doc__ = f"x {symbol} y, element by element"
    return compare


for _name, _symbol in (("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">=")):
    setattr(Tensor, f"__{_name}__", _comparison(_name, _symbol))
Tensor.__hash__ = object.__hash__  # by identity, though == compares elements


def _operator(name, symbol):
    def forward(self, other):
        return _binary(name, self, other)

    def backward(self, other):
        return _binary(name, other, self)
    for function, dunder in ((forward, f"__{name}__"), (backward, f"__r{name}__")):
        function.__name__ = function.__qualname__ = dunder
        function.__doc__ = f"{symbol}, element by element"
        setattr(Tensor, dunder, function)


for _name, _symbol in (("add", "+"), ("sub", "-"), ("mul", "*"), ("pow", "**"), ("and", "&"), ("or", "|")):
    _operator(_name, _symbol)


def _xor(self, other):
    if _foreign(other):
        return NotImplemented
    a, b = pair(self, other)
    if a.dtype is not _BOOL or b.dtype is not _BOOL:
        raise TypeError(f"^ of {a.dtype.name} and {b.dtype.name}: only of bool; ** raises to a power")
    return op("ne", a, b)


Tensor.__xor__ = Tensor.__rxor__ = _xor


def pair(a, b):
    """Both as tensors of one element type, numbers adopted."""
    a, b = operand(a, (b,)), operand(b, (a,))
    return a, b


def _is_whole(x):
    return isinstance(x, Tensor) and x.dtype.python is int or type(x) is int


def _divide(a, b):
    if _foreign(a) or _foreign(b):
        return NotImplemented
    for x in (a, b):
        if isinstance(x, Tensor) and x.dtype.python is int:
            raise TypeError(f"/ of {x.dtype.name}: cast to floats, x.astype('f32'), or use // or tiga.div")
    return _binary("div", a, b)


def _signs_differ(a, b):
    return op("ne", op("lt", a, 0), op("lt", b, 0))


def remainder(x1, x2):
    """x1 % x2 with the sign of x2, as numpy's and Python's.  (The language's % has the sign of x1: fmod.)"""
    a, b = pair(x1, x2)
    r = op("rem", a, b)
    return op("select", op("and", op("ne", r, 0), _signs_differ(r, b)), op("add", r, b), r)


def floor_divide(x1, x2):
    """The quotient rounded down."""
    a, b = pair(x1, x2)
    q = op("div", a, b)
    if not _is_whole(q):
        return op("floor", q)
    low = op("and", op("ne", op("mul", q, b), a), _signs_differ(a, b))
    return op("select", low, op("sub", q, 1), q)


# ---- creation ----
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


def _plain(value):
    """Lists of numpy's numbers and of tensors as lists of Python's."""
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, Tensor) or (hasattr(value, "tolist") and not isinstance(value, memoryview)):
        return value.tolist()
    return value


def _leaf(x, requires_grad):
    if not requires_grad:
        return x
    y = Tensor._take(_tensors.make("tiga_tensor_watch", x._handle))
    y._leaf = True
    return y


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
    return _leaf(x, requires_grad)


def _unpickle(data, name, shape):
    dtype = _tensors.DTYPES[name]
    memory = C.create_string_buffer(data, max(len(data), 1))
    return from_view(_arrays.View(C.addressof(memory) if data else 0, dtype, shape, True, None, memory))


def full(shape, fill_value, dtype=None, *, requires_grad=False):
    """The same number everywhere."""
    shape = shape_of(shape, "full")
    if dtype is None:
        dtype = _infer(fill_value) or float
    dtype = dtype_of(dtype, "full")
    number = _arrays.number(fill_value, dtype, _arrays.What("full: the value", "fill_value"))
    if dtype.python is complex or (dtype.python is int and abs(number) > 1 << 53):
        return _leaf(from_scalar(number, dtype, "full").broadcast_to(shape), requires_grad)
    return _leaf(Tensor._take(_tensors.make("tiga_tensor_full", _tensors.home().pointer, dtype.code, len(shape),
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


def arange(start, stop=None, step=1, dtype="i64", *, requires_grad=False):
    """Whole numbers start, start + step, ... before stop; from 0 when only one is given."""
    start, stop = (0, start) if stop is None else (start, stop)
    dtype = dtype_of(dtype, "arange")
    numbers = [size(n, f"arange: {name}") for name, n in (("start", start), ("stop", stop), ("step", step))]
    return _leaf(Tensor._take(_tensors.make("tiga_tensor_arange", _tensors.home().pointer, dtype.code, *numbers)), requires_grad)


def rand(shape, seed, dtype="f32", *, requires_grad=False):
    """Uniform in [0, 1): element i depends on seed and i alone, the same on every machine."""
    shape, dtype = shape_of(shape, "rand"), dtype_of(dtype, "rand")
    return _leaf(Tensor._take(_tensors.make("tiga_tensor_rand", _tensors.home().pointer, dtype.code, len(shape),
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
    if len(found.shape) > _tensors.MAX_RANK:
        raise ValueError(f"{who}: {len(found.shape)} axes; a tensor has at most {_tensors.MAX_RANK}")
    return _leaf(share(_arrays.view(value, dtype, what)), requires_grad)


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


if _lib.extension:
    _lib.extension.set_tensor_type(Tensor, _binary_slow)
