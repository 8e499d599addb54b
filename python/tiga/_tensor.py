"""Tensors: values that are computed when somebody looks at them.

The class, its operators and how operands become tensors.  What they mean is docs/tensor.md; names and shapes are numpy's.
Making them is in _create.py, functions in _operations.py, reading and writing in _storage.py, policy in _execution.py.
"""
import ctypes as C
from typing import NamedTuple

from . import _arrays, _dtypes, _lib, _memory, _tensors
from ._arguments import DTYPES, axes_of, axis_of, dtype_of, shape_of, storage_name

_I64, _BOOL, _C64 = (_dtypes.BY_LONG[n] for n in ("int64", "bool", "complex64"))
_COPY = 1


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
        _lib.counted_only(self)
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
    from ._create import tensor, type_of_list
    return tensor(value, type_of_list(value, others))


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
    __slots__ = ("__weakref__",)
    __array_priority__ = 1000

    def __new__(cls, *_, **__):
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
        """Whether it, or something that it is computed from, was made with requires_grad=True."""
        return bool(_tensors.get("tiga_tensor_is_watched", self._handle))

    def detach(self):
        """The same value without a history: what goes from one step of a training to the next.  It is computed now."""
        return self._anew("tiga_tensor_forget")

    def _anew(self, function):
        out = C.c_void_p()
        _tensors.run(function, self._handle, C.byref(out), made=(out,))
        return Tensor._take(out.value)

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
            _tensors.run("tiga_tensor_program", self._handle, C.byref(text),
                         undo=lambda: _tensors.home().lib.tiga_tensor_text_free(text))
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
        there = Tensor._take(out.value)
        return self if there._handle == self._handle else there

    def cpu(self):
        """The value in the memory of the host: to("cpu")."""
        return self.to("cpu")

    def disk(self, name=None):
        """Without a name spill().  With one the value is also kept under it, for tiga.from_disk in this or another process."""
        name = None if name is None else storage_name(name)
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
        return _arrays._numbers(numbers, len(shape), dtype)

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

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        from ._numpy import ufunc as call
        return call(ufunc, method, inputs, kwargs)

    def __array_function__(self, function, types, args, kwargs):
        from ._numpy import on_arrays
        return on_arrays(function, args, kwargs)

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

    def __format__(self, spec):
        if not spec:
            return str(self)
        if self.ndim:
            raise TypeError(f"a format is for tensors without axes; this one has {self.ndim}: format elements of tolist()")
        return format(self.item(), spec)

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


def _unpickle(data, name, shape):
    dtype = DTYPES[name]
    memory = C.create_string_buffer(data, max(len(data), 1))
    return from_view(_arrays.View(C.addressof(memory) if data else 0, dtype, shape, True, None, memory))


if _lib.extension:
    _lib.extension.set_tensor_type(Tensor, _binary_slow)
