"""Element types: the numbers of abi.h, and what each is called elsewhere.  A new type is a line here."""
import ctypes as C


class DType:
    """One element type of the language."""
    __slots__ = ("code", "name", "size", "letter", "typestr", "long", "dlpack", "ctype", "python")

    def __init__(self, code, name, size, letter, typestr, long, dlpack, ctype, python):
        self.code, self.name, self.size, self.letter = code, name, size, letter
        self.typestr, self.long, self.dlpack, self.ctype, self.python = typestr, long, dlpack, ctype, python

    def __repr__(self):
        return self.name


# code, name, bytes, letter of the buffer protocol, typestr of numpy without byte order, name in numpy and torch,
# (kind, bits) of DLPack, C type, Python type
TABLE = (
    DType(0, "bool", 1, "?", "b1", "bool", (6, 8), C.c_bool, bool),
    DType(1, "i32", 4, "i", "i4", "int32", (0, 32), C.c_int32, int),
    DType(2, "i64", 8, "q", "i8", "int64", (0, 64), C.c_int64, int),
    DType(3, "f32", 4, "f", "f4", "float32", (2, 32), C.c_float, float),
    DType(4, "f64", 8, "d", "f8", "float64", (2, 64), C.c_double, float),
)
BY_CODE = {t.code: t for t in TABLE}
BY_TYPESTR = {t.typestr: t for t in TABLE}
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
