"""Arrays of other people: what Python gives us as memory that C can read, without copying, or one clear error.

A View is memory of a known element type and shape.  Objects are asked, in this order: are you a numpy array, a torch
tensor; have you the buffer protocol, __array_interface__, DLPack; are you a list.  Only lists (and tuples) are copied.
"""
import ctypes as C
import itertools
import math
import operator
import struct
import sys
from array import array as packed

from . import _dtypes, _lib

LIST, BUFFER, NUMPY, TORCH = range(4)  # kinds of arrays, and of results; the largest among the arguments wins


class View:
    """Memory of `shape` elements at `pointer`; `keep` holds it in place for as long as the view lives."""
    __slots__ = ("pointer", "dtype", "shape", "readonly", "kind", "keep")

    def __init__(self, pointer, dtype, shape, readonly, kind, keep):
        self.pointer, self.dtype, self.shape = pointer, dtype, tuple(shape)
        self.readonly, self.kind, self.keep = readonly, kind, keep


class _Found:
    """What an object says it is, before it is judged."""
    __slots__ = ("pointer", "long", "big_endian", "shape", "contiguous", "readonly", "kind", "keep", "strides", "word")

    def __init__(self, pointer, long, shape, kind, keep, contiguous=True, readonly=False, big_endian=False, strides=None,
                 word="array"):
        self.pointer, self.long, self.shape, self.kind, self.keep = pointer, long, tuple(shape), kind, keep
        self.contiguous, self.readonly, self.big_endian = contiguous, readonly, big_endian
        self.strides, self.word = strides, word


def numpy():
    """numpy, or None where it is not installed."""
    try:
        import numpy as np
        return np
    except ImportError:
        return None


def _loaded(name):
    return sys.modules.get(name)


def kind_of(value):
    np, torch = _loaded("numpy"), _loaded("torch")
    if np is not None and isinstance(value, np.ndarray):
        return NUMPY
    if torch is not None and isinstance(value, getattr(torch, "Tensor", ())):
        return TORCH
    return LIST if isinstance(value, (list, tuple, range)) else BUFFER


def _count(shape):
    n = 1
    for size in shape:
        n *= size
    return n


def _dense(shape, strides, size):
    """Whether strides are those of a C-contiguous array; axes of one element do not matter."""
    if _count(shape) == 0:
        return True
    want = size
    for n, stride in zip(reversed(shape), reversed(strides)):
        if n != 1 and stride != want:
            return False
        want *= n
    return True


# ---- each protocol ----
def _from_numpy(array, what):
    np = sys.modules["numpy"]
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"{what} is a masked array, and Tiga knows no masks; pass {what.expression}.filled(0), say")
    dtype = array.dtype
    name = None
    if dtype.kind in "biufc" and dtype.subdtype is None:
        name = _dtypes.long_name(dtype.kind, dtype.itemsize)
    flags = array.flags
    return _Found(array.ctypes.data, name or str(dtype), array.shape, NUMPY, array, bool(flags.c_contiguous),
                  not flags.writeable, not dtype.isnative, array.strides)


def _from_torch(tensor, what):
    if tensor.device.type != "cpu":
        raise ValueError(f"{what} is on {tensor.device}; pass {what.expression}.cpu()")
    if str(tensor.layout) != "torch.strided":
        raise TypeError(f"{what} is a sparse tensor ({tensor.layout}); pass {what.expression}.to_dense()")
    if tensor.requires_grad:
        raise TypeError(f"{what} requires a gradient, which a plain call does not give; use tiga.torch.function, or pass "
                        f"{what.expression}.detach()")
    for lazy, call in (("is_conj", "resolve_conj"), ("is_neg", "resolve_neg")):
        if getattr(tensor, lazy, bool)():
            raise TypeError(f"{what} is a lazy view; pass {what.expression}.{call}()")
    name = str(tensor.dtype).rpartition(".")[2]
    return _Found(tensor.data_ptr(), name, tensor.shape, TORCH, tensor, tensor.is_contiguous(), False, False,
                  [s * tensor.element_size() for s in tensor.stride()], "tensor")


class _PyBuffer(C.Structure):
    _fields_ = [("buf", C.c_void_p), ("obj", C.c_void_p), ("len", C.c_ssize_t), ("itemsize", C.c_ssize_t),
                ("readonly", C.c_int), ("ndim", C.c_int), ("format", C.c_char_p), ("shape", C.c_void_p),
                ("strides", C.c_void_p), ("suboffsets", C.c_void_p), ("internal", C.c_void_p)]


def _address(memory):
    """Of the first byte of a contiguous memoryview; it stays there as long as the memoryview lives."""
    buffer = _PyBuffer()  # ctypes itself looks neither into read-only memory nor into formats like "<f"
    get, release = C.pythonapi.PyObject_GetBuffer, C.pythonapi.PyBuffer_Release
    get.argtypes, release.argtypes, release.restype = [C.py_object, C.c_void_p, C.c_int], [C.c_void_p], None
    get(memory, C.byref(buffer), 0)
    address = buffer.buf
    release(C.byref(buffer))
    return address or 0


def _from_buffer(value, what):
    try:
        memory = memoryview(value)
    except TypeError:
        return None
    except (ValueError, BufferError) as error:
        raise TypeError(f"{what}: its memory cannot be read: {error}") from None
    name, big = _dtypes.of_format(memory.format, memory.itemsize)
    pointer = _address(memory) if memory.c_contiguous else 0
    return _Found(pointer, name or f"{memory.format!r} elements", memory.shape, BUFFER, memory, memory.c_contiguous,
                  memory.readonly, big, memory.strides)


def _whole(value, what):
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"{what}: its __array_interface__ is malformed: {value!r} is not a whole number")
    return value.__index__()


def _from_interface(value, what):
    interface = getattr(value, "__array_interface__", None)
    if interface is None:
        return None
    malformed = f"{what}: its __array_interface__ is malformed: "
    if not isinstance(interface, dict):
        raise TypeError(malformed + f"a {type(interface).__name__}, not a dict")
    if "shape" not in interface or "typestr" not in interface:
        raise TypeError(malformed + "it has no shape or no typestr")
    shape = interface["shape"]
    if not isinstance(shape, tuple):
        raise TypeError(malformed + f"shape is {shape!r}, not a tuple")
    shape = tuple(_whole(n, what) for n in shape)
    if any(n < 0 for n in shape):
        raise TypeError(malformed + f"shape is {shape!r}")
    typestr = interface["typestr"]
    name, big = _dtypes.of_typestr(typestr)
    if name is None:
        return _Found(0, f"{typestr!r} elements", shape, BUFFER, value)
    if interface.get("mask") is not None:
        raise TypeError(f"{what} has a mask, and Tiga knows no masks")
    size = int(typestr[2:])
    strides = interface.get("strides")
    if strides is not None:
        if not isinstance(strides, tuple) or len(strides) != len(shape):
            raise TypeError(malformed + f"strides are {strides!r}, with shape {shape!r}")
        strides = tuple(_whole(n, what) for n in strides)
    contiguous = strides is None or _dense(shape, strides, size)
    pointer, readonly, keep = _interface_data(value, interface, _count(shape) * size if contiguous else 0, what, malformed)
    return _Found(pointer, name, shape, BUFFER, (value, keep), contiguous, readonly, big, strides)


def _interface_data(value, interface, n_bytes, what, malformed):
    """Pointer, whether it is read only, and what to keep."""
    data = interface.get("data")
    if isinstance(data, tuple):
        if len(data) != 2:
            raise TypeError(malformed + f"data is {data!r}")
        pointer = _whole(data[0], what)
        if pointer < 0 or pointer + n_bytes >= 1 << 63 or (pointer == 0 and n_bytes > 0):
            raise TypeError(malformed + f"data is at {pointer:#x}")
        return pointer, bool(data[1]), None
    try:
        memory = memoryview(value if data is None else data)
    except TypeError:
        raise TypeError(malformed + "its data has no memory") from None
    offset = _whole(interface.get("offset", 0), what)
    if not memory.c_contiguous or offset < 0 or offset + n_bytes > memory.nbytes:
        raise TypeError(malformed + f"{n_bytes} bytes at offset {offset} of a buffer of {memory.nbytes}")
    return _address(memory) + offset, memory.readonly, memory


class _DLTensor(C.Structure):
    _fields_ = [("data", C.c_void_p), ("device_type", C.c_int32), ("device_id", C.c_int32), ("ndim", C.c_int32),
                ("code", C.c_uint8), ("bits", C.c_uint8), ("lanes", C.c_uint16), ("shape", C.POINTER(C.c_int64)),
                ("strides", C.POINTER(C.c_int64)), ("byte_offset", C.c_uint64)]


_DL_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}
_DL_CPU, _DL_CUDA_HOST = 1, 3


def _from_dlpack(value, what):
    """The capsule is not consumed but only kept: when the view is gone it frees its tensor by itself."""
    export = getattr(value, "__dlpack__", None)
    if export is None or isinstance(value, type):
        return None
    device = getattr(value, "__dlpack_device__", None)
    if device is not None:
        kind = device()[0]
        if kind not in (_DL_CPU, _DL_CUDA_HOST):
            raise ValueError(f"{what} is not in the memory of the host (DLPack device {int(kind)}); copy it there")
    capsule = export()
    get, valid = C.pythonapi.PyCapsule_GetPointer, C.pythonapi.PyCapsule_IsValid
    get.restype, get.argtypes = C.c_void_p, [C.py_object, C.c_char_p]
    valid.argtypes = [C.py_object, C.c_char_p]
    if type(capsule).__name__ != "PyCapsule" or not valid(capsule, b"dltensor"):
        raise TypeError(f"{what}: __dlpack__ gave {type(capsule).__name__}, not a fresh capsule named 'dltensor'")
    t = _DLTensor.from_address(get(capsule, b"dltensor"))
    if t.device_type not in (_DL_CPU, _DL_CUDA_HOST):
        raise ValueError(f"{what} is not in the memory of the host (DLPack device {t.device_type}); copy it there")
    if t.ndim < 0 or (t.ndim and not t.shape) or t.lanes != 1 or any(t.shape[i] < 0 for i in range(t.ndim)):
        raise TypeError(f"{what}: its DLPack tensor is malformed")
    shape = tuple(t.shape[i] for i in range(t.ndim))
    found = _dtypes.BY_DLPACK.get((t.code, t.bits))
    name = found.long if found else f"{_DL_KINDS.get(t.code, 'unknown')}{t.bits}"
    strides = [t.strides[i] * (t.bits // 8) for i in range(t.ndim)] if t.strides else None
    contiguous = strides is None or _dense(shape, strides, t.bits // 8)
    return _Found((t.data or 0) + t.byte_offset, name, shape, BUFFER, (value, capsule), contiguous, False, False, strides)


# ---- judgement ----
class What:
    """Whose array it is, for messages: "weighted_sum: argument 'x' (src x: f32[F])"."""
    __slots__ = ("text", "expression")

    def __init__(self, text, expression):
        self.text, self.expression = text, expression

    def __str__(self):
        return self.text


def _advice(found, what, long, wrong_type, strided):
    if found.kind == TORCH:
        convert = f".to(torch.{long})" if wrong_type else ""
        return f"{what.expression}{convert}{'.contiguous()' if strided else ''}"
    if long == "bfloat16" and wrong_type:  # numpy has none
        return f"tiga.tensor({what.expression}).astype('bf16').to_numpy(), its bits as uint16"
    if strided and wrong_type:
        return f"np.ascontiguousarray({what.expression}, dtype=np.{long})"
    if strided:
        return f"np.ascontiguousarray({what.expression})"
    if found.kind == NUMPY:
        return f"{what.expression}.astype(np.{long})"
    return f"np.asarray({what.expression}).astype(np.{long}), or an array of another library of that type"


def _shape_text(shape):
    return "(" + ", ".join(map(str, shape)) + (",)" if len(shape) == 1 else ")")


MAX_RANK = 7


def _judge(found, dtype, what):
    strided, long = not found.contiguous, dtype.long
    wrong_type = not dtype.accepts(found.long, found.kind == BUFFER) or found.big_endian
    if wrong_type or strided:
        order = "big-endian " if found.big_endian else ""
        strides = f" with strides {_shape_text(found.strides)} bytes" if strided and found.strides else ""
        wants = " and ".join(w for w in (long if wrong_type else "", "C-contiguous" if strided else "") if w)
        raise TypeError(f"{what} is a {order}{found.long} {found.word} of shape {_shape_text(found.shape)}{strides}; it "
                        f"must be {wants}: pass {_advice(found, what, long, wrong_type, strided)}")
    if len(found.shape) > MAX_RANK:
        raise ValueError(f"{what} has {len(found.shape)} axes; arrays have at most {MAX_RANK}")
    pointer = found.pointer if _count(found.shape) else 0  # that of no elements may be anything
    if pointer % dtype.align:
        raise ValueError(f"{what} is not aligned to its {dtype.align}-byte elements; pass a copy of it")
    return View(pointer, dtype, found.shape, found.readonly, found.kind, found.keep)


def find(value, what):
    """What `value` is as memory, or None.  Whatever its protocols raise goes out as it is."""
    kind = kind_of(value)
    if kind == NUMPY:
        return _from_numpy(value, what)
    if kind == TORCH:
        return _from_torch(value, what)
    return _from_buffer(value, what) or _from_interface(value, what) or _from_dlpack(value, what)


def view(value, dtype, what):
    """A View of an array that must have this element type."""
    if isinstance(value, (list, tuple, range)):
        return from_list(value, dtype, what)
    if isinstance(value, (str, bytes, bytearray)) or value is None:
        raise TypeError(f"{what} is a {type(value).__name__}; it must be an array of {dtype.long}")
    found = find(value, what)
    if found is None:
        raise TypeError(f"{what} is a {type(value).__name__}; it must be an array of {dtype.long}: a numpy array, a torch "
                        "tensor, an object with the buffer protocol, __array_interface__ or DLPack, or a list")
    return _judge(found, dtype, what)


def array_of(view):
    """The tiga_array of a View."""
    array = _lib.Array(view.pointer or None, view.dtype.code, len(view.shape))
    for i, n in enumerate(view.shape):
        array.shape[i] = n
    return array


# ---- numbers and lists ----
def number(value, dtype, what):
    """A Python value as one element, checked: nothing is cut off or wraps around."""
    try:
        if dtype.python is bool:
            return _as_bool(value)
        if dtype.python is int:
            return _as_int(value, dtype)
        if dtype.python is complex:
            return _as_complex(value, dtype)
        return _as_float(value, dtype)
    except (TypeError, ValueError, OverflowError) as error:
        kind = ValueError if isinstance(error, OverflowError) else TypeError
        raise kind(f"{what} is {_short(value)}; it must be {_noun(dtype)}") from None


def _noun(dtype):
    return {bool: "a bool", int: f"an integer that fits {dtype.name}", float: f"a number that fits {dtype.name}",
            complex: f"a number that fits {dtype.name}"}[dtype.python]


def _short(value):
    text = repr(value)
    return text if len(text) <= 60 else f"a {type(value).__name__}"


def _as_bool(value):
    numpys = str(getattr(value, "dtype", "")) == "bool" and getattr(value, "shape", None) == ()  # no subclass of bool
    if isinstance(value, bool) or numpys:
        return bool(value)
    raise TypeError


def _as_int(value, dtype):
    if isinstance(value, bool) or isinstance(value, (str, bytes)):
        raise TypeError
    n = operator.index(value)
    if not dtype.least <= n < dtype.least + (1 << 8 * dtype.size):
        raise OverflowError
    return n


def _as_float(value, dtype):
    if isinstance(value, (str, bytes, bool)) or not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        raise TypeError
    if getattr(value, "shape", ()) != ():  # numpy would take an array of one element for a number
        raise TypeError
    x = float(value)
    y = dtype.from_c(dtype.ctype(dtype.to_c(x)).value)
    if x - x == 0 and y - y != 0:
        raise OverflowError
    return x


def _as_complex(value, dtype):
    if isinstance(value, (str, bytes, bool)) or not any(hasattr(value, f"__{n}__") for n in ("complex", "float", "index")):
        raise TypeError
    if getattr(value, "shape", ()) != ():
        raise TypeError
    z = complex(value)
    cell = dtype.to_c(z)
    for x, y in ((z.real, cell.re), (z.imag, cell.im)):
        if x - x == 0 and y - y != 0:
            raise OverflowError
    return z


def scalar(value, dtype, what):
    """A View of rank 0 holding a Python number."""
    cell = dtype.cell(number(value, dtype, what))
    return View(C.addressof(cell), dtype, (), True, None, cell)


def _list_shape(value, what):
    shape = []
    while isinstance(value, (list, tuple, range)):
        if len(shape) == 7:  # more axes than any array has; or a list that holds itself
            raise ValueError(f"{what} is a list nested more than 7 deep")
        shape.append(len(value))
        if not len(value):
            break
        value = value[0]
    return tuple(shape)


def _flatten(value, shape, what, out):
    if not isinstance(value, (list, tuple, range)) or len(value) != shape[0]:
        raise ValueError(f"{what} is a list whose parts have different lengths")
    if len(shape) == 1:
        out.extend(value)
        return
    for part in value:
        _flatten(part, shape[1:], what, out)


class _Element(What):
    __slots__ = ()

    def __init__(self, what):
        super().__init__(f"{what}: an element", what.expression)


def _packed(numbers, dtype):
    """An array.array of plain numbers, made in one go; None where one of them has to be looked at, or is wrong."""
    kinds = set(map(type, numbers))
    if not kinds or not kinds <= _PLAIN[dtype.python] or dtype.long == "bfloat16":
        return None
    try:
        if dtype.python is complex:
            return _finite(packed(dtype.letter, itertools.chain.from_iterable([(z.real, z.imag) for z in numbers])))
        if dtype.long == "float16":  # by way of f32, as the language does
            singles = _finite(packed("f", numbers))
            return singles and packed("H", struct.pack(f"{len(numbers)}e", *singles))
        return _finite(packed("B" if dtype.python is bool else dtype.letter, numbers))
    except (OverflowError, struct.error):
        return None


def _finite(memory):
    """None where numbers may have been too large for f32 and be infinite now; they may also have been given so."""
    return None if memory.typecode == "f" and not math.isfinite(sum(memory)) else memory


_PLAIN = {bool: {bool}, int: {int}, float: {float, int}, complex: {complex, float, int}}


def from_list(value, dtype, what):
    """A View of a copy of a list, or of lists of lists."""
    shape, flat = _list_shape(value, what), []
    _flatten(value, shape, what, flat)
    memory = _packed(flat, dtype)
    if memory is not None:
        return View(memory.buffer_info()[0], dtype, shape, True, LIST, memory)
    element = _Element(what)
    memory = (dtype.ctype * len(flat))(*[dtype.to_c(number(x, dtype, element)) for x in flat])
    return View(C.addressof(memory), dtype, shape, True, LIST, memory)


# ---- results ----
def new(kind, dtype, shape):
    """A new array of this kind, and its View.  A list is made from its memory at the end, see finish()."""
    if kind == NUMPY:
        array = numpy().empty(shape, dtype.numpy)
        return array, View(array.ctypes.data, dtype, shape, False, NUMPY, array)
    if kind == TORCH:
        torch = sys.modules["torch"]
        tensor = torch.empty(shape, dtype=getattr(torch, dtype.long))
        return tensor, View(tensor.data_ptr(), dtype, shape, False, TORCH, tensor)
    memory = (C.c_char * (_count(shape) * dtype.size))() if _count(shape) else None
    array = memory_of(memory, dtype, shape)
    return array, View(C.addressof(memory) if memory else 0, dtype, shape, False, kind, memory)


def memory_of(memory, dtype, shape):
    """A memoryview with this element type and shape over a ctypes array of bytes (None: of none)."""
    if memory is None:
        return _empty_memory(dtype, shape)
    return memoryview(memory).cast("B").cast(dtype.letter, shape=shape + dtype.parts)


_nothing = C.create_string_buffer(16)


def _empty_memory(dtype, shape):
    """memoryview.cast refuses axes of no elements, so this one is made by hand."""
    make = C.pythonapi.PyMemoryView_FromBuffer
    make.restype, make.argtypes = C.py_object, [C.c_void_p]
    shape += dtype.parts
    n, size = len(shape), dtype.align
    sizes = (C.c_ssize_t * max(n, 1))(*shape)
    strides, step = (C.c_ssize_t * max(n, 1))(), size
    for i in reversed(range(n)):
        strides[i] = step
        step *= shape[i]
    buffer = _PyBuffer()
    C.memset(C.byref(buffer), 0, C.sizeof(buffer))
    buffer.buf, buffer.itemsize, buffer.ndim = C.addressof(_nothing), size, n
    buffer.format, buffer.shape, buffer.strides = _letters[dtype.code], C.addressof(sizes), C.addressof(strides)
    return make(C.byref(buffer))  # shape and strides are copied, the format is not


_letters = {t.code: t.letter.encode() for t in _dtypes.TABLE}


def _numbers(value, depth, dtype):
    if dtype.is_plain:
        return value
    if depth == 1:
        return list(map(dtype.from_c, value))
    return [_numbers(part, depth - 1, dtype) for part in value] if depth else dtype.from_c(value)


def finish(array, kind, rank, dtype):
    """What the caller gets: lists for lists; numbers for results of rank 0, but tensors of torch."""
    if kind == NUMPY:
        return array[()] if rank == 0 else array
    if kind == TORCH:
        return array
    return _numbers(array.tolist(), rank, dtype) if kind == LIST or rank == 0 else array


# ---- memory of the library, seen from Python ----
def borrowed(pointer, dtype, count, owner):
    """A one-dimensional read-only array over memory that `owner` holds: numpy's where it is installed."""
    if count == 0:
        memory = _empty_memory(dtype, (0,))
    else:
        cells = (C.c_char * (count * dtype.size)).from_address(pointer)
        cells.owner = owner
        memory = memoryview(cells).cast("B").cast(dtype.letter, shape=(count, *dtype.parts))
    memory = memory.toreadonly()
    np = numpy()
    return memory if np is None else np.frombuffer(memory.cast("B"), dtype.numpy) if count else np.empty(0, dtype.numpy)
