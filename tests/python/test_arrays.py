"""Arrays that do not fit, and objects that lie: always one clear error, never a wrong result."""
import ctypes
import gc
import math
import random
import unittest
import weakref

from support import W, X, Y, array, f32, module, needs_numpy, np, tg, triangle
from tiga import _arrays, _dtypes


class Case(unittest.TestCase):
    def fails(self, error, words, x, w=W):
        with self.assertRaises(error) as caught:
            module().plain_sum(triangle(), x=x, w=w)
        for word in words:
            self.assertIn(word, str(caught.exception))
        return str(caught.exception)


class Refused(Case):
    def test_other_things(self):
        for x in (None, "abc", b"abc", 3, 3.5, object(), {1: 2}, {1, 2, 3}, lambda: 0, tg, type):
            with self.subTest(x=x):
                self.fails(TypeError, ["plain_sum: argument 'x' (src x: f32)", "must be an array of float32"], x)

    def test_lists(self):
        self.fails(TypeError, ["argument 'x'", "an element is 'a'"], ["a", 1, 2])
        self.fails(TypeError, ["an element is None"], [None, 1, 2])
        self.fails(ValueError, ["an element is 1e+300", "fits f32"], [1e300, 1, 2])
        self.fails(ValueError, ["different lengths"], [[1, 2], [3]])
        self.fails(TypeError, ["an element is [3]"], [1, 2, [3]])
        self.fails(ValueError, ["f32[2]", "n_src = 3"], [1, 2])
        self.fails(ValueError, ["f32[3, 1]", "n_src = 3"], [[1], [2], [3]])
        with self.assertRaisesRegex(TypeError, "an element is 1.5; it must be an integer that fits i64"):
            module().whole_sum(triangle(), x=[1.5, 2, 3])
        with self.assertRaisesRegex(ValueError, "an element is 2147483648"):
            module().small_sum(triangle(), x=[1 << 31, 2, 3])
        with self.assertRaisesRegex(TypeError, "an element is 1; it must be a bool"):
            module().any_of(triangle(), x=[1, 0, 1])
        deep = []
        deep.append(deep)
        self.fails(ValueError, ["nested more than 7 deep"], deep)

    def test_numbers(self):
        f = module().scaled
        for name, value, error, words in [
                ("a", "1", TypeError, "argument 'a'.* is '1'; it must be a number that fits f32"),
                ("a", None, TypeError, "a.* is None"), ("a", [1], TypeError, r"is \[1\]"), ("a", 1j, TypeError, "is 1j"),
                ("a", True, TypeError, "is True"), ("a", 1e39, ValueError, "is 1e\\+39"), ("k", 1.0, TypeError, "is 1.0; it must "
                "be an integer that fits i64"), ("k", 1 << 63, ValueError, "is 9223372036854775808"), ("k", True, TypeError, "is True"),
                ("on", 1, TypeError, "is 1; it must be a bool")]:
            with self.subTest(name=name, value=value), self.assertRaisesRegex(error, words):
                f(triangle(), x=X, **{"a": 1, "k": 1, "on": True, name: value})

    def test_infinities_are_numbers(self):
        self.assertEqual(module().scaled(triangle(), x=X, a=float("inf"), k=1, on=True), [float("inf")] * 3)

    def test_buffers(self):
        self.fails(TypeError, ["float64 array of shape (3,)", "must be float32"], array("d", X))
        self.fails(TypeError, ["int32 array", "must be float32"], array("i", X))
        self.fails(TypeError, ["strides (8,) bytes", "must be C-contiguous", "np.ascontiguousarray(x)"],
                   memoryview(f32([1, 0, 2, 0, 3]))[::2])
        self.fails(TypeError, ["strides (-4,)"], memoryview(f32(X))[::-1])
        self.fails(TypeError, ["big-endian float32", "must be float32"], (ctypes.c_float.__ctype_be__ * 3)(1, 2, 3))
        self.fails(ValueError, ["f32[3, 1]"], memoryview(f32(X)).cast("B").cast("f", (3, 1)))
        self.fails(ValueError, ["not aligned to its 4-byte elements"], self.unaligned())
        released = memoryview(f32(X))
        released.release()
        self.fails(TypeError, ["argument 'x'"], released)
        self.assertEqual(module().plain_sum(triangle(), x=(ctypes.c_float * 3)(*X), w=W).tolist(), Y)

    @staticmethod
    def unaligned():
        class Odd(ctypes.Structure):
            _pack_ = 1
            _fields_ = [("pad", ctypes.c_char), ("x", ctypes.c_float * 3)]
        return Odd().x

    def test_read_only_arguments(self):
        self.assertEqual(module().plain_sum(triangle(), x=memoryview(f32(X)).toreadonly(), w=W).tolist(), Y)

    def test_nothing_is_copied(self):
        """The result of a call shows what was in the memory when it ran."""
        x = f32([0, 0, 0])
        view = memoryview(x)
        view[0], view[1], view[2] = X
        self.assertEqual(module().plain_sum(triangle(), x=view, w=f32(W)).tolist(), Y)


@needs_numpy
class Numpy(Case):
    def test_types(self):
        for dtype in ("f2", "f8", "i4", "u1", "c8", "?", "O", "U3", "M8[s]", "f4,f4", "g"):
            x = np.zeros(3, dtype)
            message = self.fails(TypeError, ["must be float32", "pass x.astype(np.float32)"], x)
            self.assertNotIn("contiguous", message)
        self.fails(TypeError, ["big-endian float32", "x.astype(np.float32)"], np.array(X, ">f4"))

    def test_many_axes(self):
        many = np.ones((1,) * 8, np.float32)
        for call in (lambda: module().plain_sum(triangle(), x=many, w=W), lambda: tg.tensor(many), lambda: many + tg.tensor([1.]),
                     lambda: module().plain_sum(triangle(), x=X, w=W, out=many)):
            with self.assertRaisesRegex(ValueError, "8 axes; arrays have at most 7"):
                call()

    def test_bf16_is_no_type_of_numpy(self):
        for x in np.float32(X), np.zeros((3, 2))[:, 0]:
            with self.assertRaisesRegex(TypeError, r"pass tiga.tensor\(x\).astype\('bf16'\).to_numpy\(\), its bits as uint16"):
                module().brain_sum(triangle(), x=x)
            module().brain_sum(triangle(), x=tg.tensor(x).astype("bf16").to_numpy())

    def test_layouts(self):
        x = np.zeros((3, 4), np.float32)
        for strided in (x[:, 0], np.zeros(3, np.float32)[::-1], np.broadcast_to(np.float32(1), (3,))):
            self.fails(TypeError, ["must be C-contiguous: pass np.ascontiguousarray(x)"], strided)
        self.fails(TypeError, ["must be float32 and C-contiguous: pass np.ascontiguousarray(x, dtype=np.float32)"],
                   np.zeros((3, 2))[:, 0])
        self.fails(ValueError, ["not aligned"], np.frombuffer(b"\0" * 13, np.uint8)[1:].view(np.float32))
        self.fails(TypeError, ["masked array", "x.filled(0)"], np.ma.array(np.float32(X), mask=[0, 1, 0]))
        with self.assertRaisesRegex(TypeError, "C-contiguous"):
            module().weighted_sum(triangle(), x=np.zeros((3, 2), np.float32, order="F"), w=W, bias=[[0, 0]] * 3)

    def test_axes_of_one_element_have_any_stride(self):
        g = tg.Graph.from_csr([0, 1], [0])
        x = np.zeros((5, 1), np.float32)[::5]
        self.assertEqual(module().weighted_sum(g, x=x, w=[1], bias=np.ones((1, 1), np.float32)).tolist(), [[1]])

    def test_read_only(self):
        x = np.array(X, np.float32)
        x.flags.writeable = False
        self.assertEqual(module().plain_sum(triangle(), x=x, w=W).tolist(), Y)
        out = np.zeros(3, np.float32)
        out.flags.writeable = False
        with self.assertRaisesRegex(ValueError, "read only"):
            module().plain_sum(triangle(), x=x, w=W, out=out)

    def test_subclasses(self):
        class Mine(np.ndarray):
            pass
        y = module().plain_sum(triangle(), x=np.array(X, np.float32).view(Mine), w=np.array(W, np.float32))
        self.assertEqual((type(y), y.tolist()), (np.ndarray, Y))

    def test_shapes(self):
        self.fails(ValueError, ["plain_sum: argument 'x'", "expected f32[n_src = 3], got f32[2]"], np.zeros(2, np.float32))
        self.fails(ValueError, ["n_src = 3], got f32"], np.float32(1))
        self.fails(ValueError, ["got f32[3, 3]"], np.zeros((3, 3), np.float32))
        with self.assertRaisesRegex(ValueError, "F is that of 'x'|F = 2"):
            module().weighted_sum(triangle(), x=np.zeros((3, 2), np.float32), w=np.float32(W), bias=np.zeros((3, 4), np.float32))

    def test_overlap(self):
        x = np.zeros(6, np.float32)
        with self.assertRaisesRegex(ValueError, "result 'out' shares memory with 'x'"):
            module().plain_sum(triangle(), x=x[:3], w=np.float32(W), out=x[2:5])


class Interface:
    """An object with an __array_interface__ of our choice over real memory."""

    def __init__(self, **change):
        self.memory = f32(X)
        self.__array_interface__ = {"version": 3, "shape": (3,), "typestr": "<f4",
                                    "data": (self.memory.buffer_info()[0], False), **change}
        for name in [k for k, v in change.items() if v is ...]:
            del self.__array_interface__[name]


class ArrayInterface(Case):
    def test_right(self):
        for change in ({}, {"strides": None}, {"strides": (4,)}, {"typestr": "=f4"}, {"data": memoryview(f32(X))}, {"data": memoryview(f32([9, *X])), "offset": 4}):
            with self.subTest(change=change):
                self.assertEqual(module().plain_sum(triangle(), x=Interface(**change), w=W).tolist(), Y)
        self.assertEqual(module().plain_sum(tg.Graph.from_csr([0], []), x=Interface(shape=(0,), data=(0, False)), w=[]).tolist(), [])

    def test_lies(self):
        for change, words in [
                ({"shape": ...}, ["malformed", "no shape"]), ({"typestr": ...}, ["malformed"]), ({"shape": 3}, ["shape is 3"]),
                ({"shape": (-3,)}, ["shape is (-3,)"]), ({"shape": (3.0,)}, ["3.0 is not a whole number"]),
                ({"shape": ("3",)}, ["not a whole number"]), ({"typestr": 4}, ["4 elements"]), ({"typestr": "<f8"}, ["float64"]),
                ({"typestr": ">f4"}, ["big-endian"]), ({"typestr": "|O8"}, ["|O8"]), ({"typestr": ""}, ["elements"]),
                ({"typestr": "<fx"}, ["elements"]), ({"strides": (8,)}, ["strides (8,)"]), ({"strides": (0,)}, ["strides (0,)"]),
                ({"strides": (4, 4)}, ["strides are (4, 4)"]), ({"strides": 4}, ["strides are 4"]),
                ({"data": (0, False)}, ["data is at 0x0"]), ({"data": (-8, False)}, ["data is at"]),
                ({"data": (1 << 70, False)}, ["data is at"]), ({"data": ("a", False)}, ["'a'"]), ({"data": 7}, ["no memory"]),
                ({"data": ...}, ["no memory"]), ({"data": (1, 2, 3)}, ["data is (1, 2, 3)"]),
                ({"data": memoryview(f32([1, 2]))}, ["12 bytes at offset 0 of a buffer of 8"]),
                ({"data": memoryview(f32(X)), "offset": 4}, ["12 bytes at offset 4"]),
                ({"data": memoryview(f32(X)), "offset": -4}, ["offset -4"]), ({"mask": object()}, ["mask"])]:
            with self.subTest(change=change):
                self.fails(TypeError, words, Interface(**change))
        wrong = Interface()
        wrong.__array_interface__ = [1]
        self.fails(TypeError, ["malformed", "list"], wrong)
        self.fails(ValueError, ["not aligned"], Interface(data=(Interface().memory.buffer_info()[0] + 1, False)))
        self.fails(TypeError, ["data is at 0x40"], Interface(shape=(1 << 62,), strides=(4,), data=(64, False)))
        self.fails(ValueError, ["got f32[4294967296]"], Interface(shape=(1 << 32,), data=(64, False)))

    def test_exceptions_go_out_as_they_are(self):
        class Angry:
            @property
            def __array_interface__(self):
                raise ZeroDivisionError("mine")
        with self.assertRaisesRegex(ZeroDivisionError, "mine"):
            module().plain_sum(triangle(), x=Angry(), w=W)


class Tensor:
    """An object that speaks only DLPack: what a framework without Python buffers looks like."""
    DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

    class Managed(ctypes.Structure):
        _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                    ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                    ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                    ("byte_offset", ctypes.c_uint64), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]

    def __init__(self, shape=(3,), strides=None, device=1, code=2, bits=32, lanes=1, offset=0, name=b"dltensor"):
        self.memory, self.device, self.name = f32([9, *X] if offset else X), device, name
        self.shape = (ctypes.c_int64 * len(shape))(*shape)
        self.strides = (ctypes.c_int64 * len(shape))(*strides) if strides else None
        self.managed = self.Managed(self.memory.buffer_info()[0], device, 0, len(shape), code, bits, lanes, self.shape,
                                    self.strides, offset, None, None)

    def __dlpack_device__(self):
        return self.device, 0

    def __dlpack__(self, stream=None):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.managed), self.name, None)


class DLPack(Case):
    def test_right(self):
        for t in (Tensor(), Tensor(strides=(1,)), Tensor(offset=4), Tensor(device=3)):
            y = module().plain_sum(triangle(), x=t, w=W)
            self.assertIsInstance(y, memoryview)
            self.assertEqual(y.tolist(), Y)

    def test_wrong(self):
        self.fails(TypeError, ["float64", "must be float32"], Tensor(bits=64))
        self.fails(TypeError, ["bfloat16", "must be float32"], Tensor(code=4, bits=16))
        self.fails(TypeError, ["strides (8,)", "C-contiguous"], Tensor(strides=(2,)))
        self.fails(ValueError, ["not in the memory of the host (DLPack device 2)"], Tensor(device=2))
        self.fails(TypeError, ["malformed"], Tensor(lanes=4))
        self.fails(TypeError, ["malformed"], Tensor(shape=(-1,)))
        self.fails(TypeError, ["not a fresh capsule"], Tensor(name=b"used_dltensor"))
        self.fails(ValueError, ["got f32[2]"], Tensor(shape=(2,)))

    def test_exceptions_go_out_as_they_are(self):
        class Angry(Tensor):
            def __dlpack__(self, stream=None):
                raise ZeroDivisionError("mine")
        with self.assertRaisesRegex(ZeroDivisionError, "mine"):
            module().plain_sum(triangle(), x=Angry(), w=W)

        class NoCapsule(Tensor):
            def __dlpack__(self, stream=None):
                return 7
        self.fails(TypeError, ["__dlpack__ gave int"], NoCapsule())

        class Late(Tensor):
            def __dlpack_device__(self):
                raise KeyError("mine")
        with self.assertRaisesRegex(KeyError, "mine"):
            module().plain_sum(triangle(), x=Late(), w=W)

    @needs_numpy
    def test_capsules_of_numpy_are_freed(self):
        class Wrapped:
            def __init__(self, a):
                self.a = a

            def __dlpack__(self):
                return self.a.__dlpack__()

        class Mine(np.ndarray):
            pass
        a = np.array(X, np.float32).view(Mine)
        gone = weakref.ref(a)
        self.assertEqual(module().plain_sum(triangle(), x=Wrapped(a), w=W).tolist(), Y)
        del a
        gc.collect()
        self.assertIsNone(gone())


class Lists(unittest.TestCase):
    """Lists are packed in one go where that gives what one number after the other gives: the same bits, or an error."""
    NUMBERS = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-45, 1e-310, 3.4028235e38, 3.5e38, -1e39, 65504.0, 65520.0, 1e5, 1.5, 7,
               2**24 + 1, 2**53 + 1, -2**31, 2**31 - 1, 2**31, 2**63 - 1, 2**63, -2**63, 255, 256, 127, 128, -128, -129, 10**400,
               True, False, 1 + 2j, complex(1e39, 0), complex(math.inf, 1e38)]
    WHAT = _arrays.What("x", "x")

    def one_by_one(self, values, dtype):
        return bytes((dtype.ctype * len(values))(*[dtype.to_c(_arrays.number(x, dtype, self.WHAT)) for x in values]))

    def at_once(self, values, dtype):
        view = _arrays.from_list(values, dtype, self.WHAT)
        self.assertEqual(view.shape, (len(values),))
        return ctypes.string_at(view.pointer, dtype.size * len(values))

    def outcome(self, function, *arguments):
        try:
            return function(*arguments)
        except (TypeError, ValueError) as error:
            return type(error)

    def test_same_bits(self):
        choose = random.Random(1)
        for dtype in _dtypes.TABLE:
            for _ in range(500):
                values = [choose.choice(self.NUMBERS) for _ in range(choose.randint(1, 3))]
                with self.subTest(dtype=dtype, values=values):
                    self.assertEqual(self.outcome(self.at_once, values, dtype), self.outcome(self.one_by_one, values, dtype))

    def test_nested(self):
        view = _arrays.from_list([[[1, 2]], ((3.0, 4),), [range(5, 7)]], _dtypes.BY_LONG["float32"], self.WHAT)
        self.assertEqual((view.shape, list((ctypes.c_float * 6).from_address(view.pointer))), ((3, 1, 2), [1, 2, 3, 4, 5, 6]))


if __name__ == "__main__":
    unittest.main()
