"""Element types: the numbers of abi.h, and what each is called elsewhere.  A new type is a line here."""
import ctypes as C
import struct


def _same(x):
    return x


def _to_f16(x):
    """The bits of a float rounded to f32, then to f16, as the language does; too large is infinity."""
    try:
        return struct.unpack("<H", struct.pack("<e", C.c_float(x).value))[0]
    except OverflowError:
        return 0xfc00 if x < 0 else 0x7c00


def _from_f16(bits):
    return struct.unpack("<e", struct.pack("<H", bits))[0]


def _to_bf16(x):
    bits = struct.unpack("<I", C.c_float(x))[0]
    if x != x:
        return bits >> 16 | 0x40
    return bits + 0x7fff + (bits >> 16 & 1) >> 16


def _from_bf16(bits):
    return struct.unpack("<f", struct.pack("<I", bits << 16))[0]


class _Pair32(C.Structure):
    _fields_ = [("re", C.c_float), ("im", C.c_float)]


class _Pair64(C.Structure):
    _fields_ = [("re", C.c_double), ("im", C.c_double)]


def _to_pair32(z):
    return _Pair32(z.real, z.imag)


def _to_pair64(z):
    return _Pair64(z.real, z.imag)


def _from_pair(pair):
    return complex(*pair)


class DType:
    """One element type of the language.  to_c and from_c: between a number and the ctype, which holds the bits of a
    16-bit float.  numpy: its name there, long elsewhere."""
    __slots__ = ("code", "name", "size", "letter", "long", "dlpack", "ctype", "python", "numpy", "to_c", "from_c",
                 "least", "align", "parts", "is_plain")

    def __init__(self, code, name, size, letter, long, dlpack, ctype, python, numpy=None, to_c=_same, from_c=_same):
        self.code, self.name, self.size, self.letter = code, name, size, letter
        self.long, self.dlpack, self.ctype, self.python = long, dlpack, ctype, python
        self.numpy, self.to_c, self.from_c = numpy or long, to_c, from_c
        self.is_plain = from_c is _same  # a memoryview's numbers are those of the language
        self.align = size // 2 if python is complex else size
        self.parts = (2,) if python is complex else ()  # the last axis of its memory, of `letter`s
        self.least = 0 if letter == "B" else -(1 << (8 * size - 1))  # of integers

    def cell(self, x):
        """One element as a ctypes object."""
        return self.to_c(x) if self.parts else self.ctype(self.to_c(x))

    def accepts(self, long, is_buffer):
        """Does an array whose elements are called so hold this type?  Bits in uint16 do where there is no other way."""
        return long == self.long or (long == "uint16" and (self.numpy == long or (is_buffer and self.letter == "H")))

    @property
    def numpy_format(self):
        """The letters that numpy's arrays of this type have in the buffer protocol."""
        return "e" if self.numpy == "float16" else "Z" * len(self.parts) + self.letter

    def __repr__(self):
        return self.name

    def __eq__(self, other):
        """Also with what numpy and torch call it: x.dtype == np.float32, "float32"; Python's types mean what they do to numpy."""
        if isinstance(other, DType):
            return self is other
        name = _PYTHON.get(other) if isinstance(other, type) else None
        name = name or (other if isinstance(other, str) else getattr(other, "name", None) or getattr(other, "__name__", None) or str(other))
        return isinstance(name, str) and name.rpartition(".")[2] in (self.name, self.long)

    __hash__ = object.__hash__


_PYTHON = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}

# code, name, bytes, letter of the buffer protocol, name in numpy and torch,
# (kind, bits) of DLPack, C type, Python type
TABLE = (
    DType(0, "bool", 1, "?", "bool", (6, 8), C.c_bool, bool),
    DType(1, "i32", 4, "i", "int32", (0, 32), C.c_int32, int),
    DType(2, "i64", 8, "q", "int64", (0, 64), C.c_int64, int),
    DType(3, "f32", 4, "f", "float32", (2, 32), C.c_float, float),
    DType(4, "f64", 8, "d", "float64", (2, 64), C.c_double, float),
    DType(5, "f16", 2, "H", "float16", (2, 16), C.c_uint16, float, None, _to_f16, _from_f16),
    DType(6, "bf16", 2, "H", "bfloat16", (4, 16), C.c_uint16, float, "uint16", _to_bf16, _from_bf16),
    DType(7, "i8", 1, "b", "int8", (0, 8), C.c_int8, int),
    DType(8, "u8", 1, "B", "uint8", (1, 8), C.c_uint8, int),
    DType(9, "c64", 8, "f", "complex64", (5, 64), _Pair32, complex, None, _to_pair32, _from_pair),
    DType(10, "c128", 16, "d", "complex128", (5, 128), _Pair64, complex, None, _to_pair64, _from_pair),
)
BY_CODE = {t.code: t for t in TABLE}
BY_LONG = {t.long: t for t in TABLE}
BY_DLPACK = {t.dlpack: t for t in TABLE}
I32, I64 = BY_LONG["int32"], BY_LONG["int64"]

# Letters of the buffer protocol (and struct) that stand for a number: kind and, in native size, bytes.
_KINDS = {"?": "b", "b": "i", "h": "i", "i": "i", "l": "i", "q": "i", "n": "i", "B": "u", "H": "u", "I": "u", "L": "u",
          "Q": "u", "N": "u", "e": "f", "f": "f", "d": "f", "g": "f", "Zf": "c", "Zd": "c", "Zg": "c"}
_WORDS = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex"}


def long_name(kind, size):
    """numpy's name of an element type: ("f", 4) is float32."""
    return "bool" if kind == "b" and size == 1 else f"{_WORDS[kind]}{8 * size}"


def of_format(text, size):
    """Name and byte order (True: big-endian) of a format of the buffer protocol, (None, False) for what is no number."""
    order, letter = ("@", text) if text[:1] not in ("@", "=", "<", ">", "!") else (text[0], text[1:])
    kind = _KINDS.get(letter)
    if kind is None:
        return None, False
    return long_name(kind, size), order in (">", "!") and size > 1


def of_typestr(text):
    """The same for a typestr of numpy: '<f4'."""
    try:
        order, kind, size = text[0], text[1], int(text[2:])
    except (IndexError, ValueError, TypeError):
        return None, False
    if order not in "<>|=" or kind not in _WORDS:
        return None, False
    return long_name(kind, size), order == ">" and size > 1
