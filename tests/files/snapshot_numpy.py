"""Snapshots against a reader and a writer of safetensors that know nothing of ours: these few lines, and the public package
where it is installed.  Usage: snapshot_numpy.py libtiga.so"""
import ctypes as C
import json
import os
import sys
import tempfile

import numpy as np

try:
    import safetensors.numpy as public
except ImportError:
    public = None

tiga = C.CDLL(os.path.abspath(sys.argv[1]))
TYPES = {  # numpy's name: Tiga's number, the name in the file
    "bool": (0, "BOOL"), "int32": (1, "I32"), "int64": (2, "I64"), "float32": (3, "F32"), "float64": (4, "F64"),
    "float16": (5, "F16"), "int8": (7, "I8"), "uint8": (8, "U8"), "complex64": (9, "F32"), "complex128": (10, "F64")}
NUMPY = {number: name for name, (number, _) in TYPES.items()}


class View(C.Structure):
    _fields_ = [("name", C.c_char_p), ("buffer", C.c_void_p), ("data", C.c_void_p), ("offset", C.c_int64),
                ("dtype", C.c_int32), ("rank", C.c_int32), ("shape", C.c_int64 * 7), ("strides", C.POINTER(C.c_int64))]


class Pin(C.Structure):
    _fields_ = [("data", C.c_void_p), ("buffer", C.c_void_p), ("mode", C.c_int32), ("next", C.c_void_p),
                ("prev", C.c_void_p), ("thread", C.c_uint64)]


tiga.tiga_error_text.restype = C.c_char_p
tiga.tiga_buffer_bytes.restype = C.c_int64
ctx = C.c_void_p()
assert tiga.tiga_context_new(None, C.byref(ctx)) == 0


def check(status):
    assert status == 0, tiga.tiga_error_text(ctx).decode()


def save(path, arrays):
    views = (View * max(1, len(arrays)))()
    keep = []
    for v, (name, a) in zip(views, arrays.items()):
        strides = (C.c_int64 * 7)(*[s // a.itemsize for s in a.strides])
        keep += [name.encode(), strides]
        v.name, v.data, v.dtype, v.rank = keep[-2], a.ctypes.data, TYPES[a.dtype.name][0], a.ndim
        v.shape[:a.ndim] = a.shape
        if not a.flags.c_contiguous:
            v.strides = strides
    check(tiga.tiga_save(ctx, path.encode(), views, len(arrays), 1))


def load(path):
    s, out = C.c_void_p(), {}
    check(tiga.tiga_snapshot_open(ctx, path.encode(), C.byref(s)))
    for i in range(tiga.tiga_snapshot_count(s)):
        v, b, pin = View(), C.c_void_p(), Pin()
        check(tiga.tiga_snapshot_get(ctx, s, i, C.byref(v)))
        check(tiga.tiga_snapshot_buffer(ctx, s, i, 0, C.byref(b)))
        check(tiga.tiga_buffer_pin(ctx, b, 0, C.byref(pin)))
        n = tiga.tiga_buffer_bytes(b)
        out[v.name.decode()] = np.frombuffer(C.string_at(pin.data, n), NUMPY[v.dtype]).reshape(v.shape[:v.rank])
        tiga.tiga_buffer_unpin(C.byref(pin))
        tiga.tiga_buffer_free(b)
    tiga.tiga_snapshot_free(s)
    return out


def plain_load(path):
    """As the format is described: length, JSON, data without gaps."""
    file = open(path, "rb").read()
    n = int.from_bytes(file[:8], "little")
    header, data, out, at = json.loads(file[8:8 + n]), file[8 + n:], {}, 0
    header.pop("__metadata__", None)
    names = {text: name for name, (_, text) in TYPES.items() if not name.startswith("complex")}
    for name, t in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = t["data_offsets"]
        assert begin == at, "a gap"
        at = end
        out[name] = np.frombuffer(data[begin:end], names[t["dtype"]]).reshape(t["shape"])
    assert at == len(data)
    return out


def plain_save(path, arrays):
    header, data = {"__metadata__": {"by": "hand"}}, b""
    for name, a in arrays.items():
        header[name] = {"dtype": TYPES[a.dtype.name][1], "shape": a.shape,
                        "data_offsets": [len(data), len(data) + a.nbytes]}
        data += a.tobytes()
    text = json.dumps(header).encode()
    open(path, "wb").write(len(text).to_bytes(8, "little") + text + data)


def as_reals(a):
    return np.stack([a.real, a.imag], -1) if a.dtype.kind == "c" else a


def same(got, want):
    assert got.keys() == want.keys(), (got.keys(), want.keys())
    for name, a in want.items():
        assert got[name].dtype == a.dtype and got[name].shape == a.shape, (name, got[name].dtype, got[name].shape)
        assert np.array_equal(got[name], a), name


random = np.random.default_rng(5)
arrays = {}
for kind in TYPES:
    a = random.integers(0, 2 if kind == "bool" else 100, (3, 4, 2)).astype(kind)
    arrays[kind] = a if a.dtype.kind != "c" else (a + 1j * a[::-1]).astype(kind)
arrays.update({"turned": arrays["float32"].T, "every other": arrays["int64"][:, ::2], "backwards": arrays["int8"][::-1],
               "spread": np.broadcast_to(arrays["float64"][0], (5, 4, 2)), "empty": np.zeros((3, 0, 2), np.float32),
               "scalar": np.array(7.5), "large": random.random((300, 1001)).astype(np.float32), "n\u00e4me \"\\": np.ones(3)})
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "a.safetensors")
    save(path, arrays)
    same(load(path), arrays)
    reals = {name: as_reals(a) for name, a in arrays.items()}
    same(plain_load(path), reals)
    whole = {name: np.ascontiguousarray(a) for name, a in arrays.items() if a.dtype.kind != "c" and a.ndim}
    plain_save(path, whole)
    same(load(path), whole)
    if public:
        save(path, arrays)
        same(public.load_file(path), reals)
        public.save_file(whole, path)
        same(load(path), whole)
    np.save(path + ".npy", arrays["turned"].copy("C"))
    same(load(path + ".npy"), {"": arrays["turned"]})
print("the public package reads and writes the same" if public else "without the public package")
