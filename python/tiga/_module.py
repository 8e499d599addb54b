"""Modules: what tigac has compiled, loaded."""
import ctypes as C
import difflib
import os

from . import _context, _errors, _lib
from ._function import Code, Function

_lib_ = _lib.lib


class Module:
    """The kernels and programs of one compiled text: m.name, or m["name"].

    Modules are made by tiga.load and tiga.compile, and may be used from several threads at once.
    """

    def __init__(self):
        raise TypeError("make modules with tiga.load or tiga.compile")

    @classmethod
    def _take(cls, handle):
        return cls._of(Code(handle))

    @classmethod
    def _of(cls, code):
        self = object.__new__(cls)
        self._code, info = code, code.info
        self.info = {"compiler": info.compiler.decode(), "source_name": code.name, "source_hash": info.source_hash.decode(),
                     "target_cpu": info.target_cpu.decode(),
                     "target_features": tuple(f for f in info.target_features.decode().split(",") if f),
                     "abi_version": info.abi_version}
        self.functions = {f.__name__: f for f in (Function(code, info.functions[i]) for i in range(info.n_functions))}
        return self

    def _no(self, name):
        names = list(self.functions)
        near = difflib.get_close_matches(name, names, 1)
        more = f"; did you mean '{near[0]}'?" if near else f"; it has {', '.join(names) or 'none'}"
        return f"module {self._code.name!r} has no function '{name}'{more}"

    def __getattr__(self, name):
        try:
            return self.__dict__["functions"][name]
        except KeyError:
            pass
        if name.startswith("__") or "functions" not in self.__dict__:
            raise AttributeError(name)
        raise AttributeError(self._no(name))

    def __getitem__(self, name):
        if not isinstance(name, str):
            raise TypeError(f"module {self._code.name!r}: functions go by their names, not {name!r}")
        try:
            return self.functions[name]
        except KeyError:
            raise _errors.key_error(self._no(name)) from None

    def __contains__(self, name):
        return name in self.functions

    def __iter__(self):
        return iter(self.functions)

    def __len__(self):
        return len(self.functions)

    def __dir__(self):
        return sorted({*super().__dir__(), *self.functions})

    def __repr__(self):
        cpu = self.info["target_cpu"]
        return f"<tiga.Module {self._code.name!r}{f' for {cpu}' if cpu else ''}: {', '.join(self.functions) or 'empty'}>"

    def __reduce__(self):
        raise TypeError("tiga modules cannot be pickled; load the module where it is needed")

    def __copy__(self):  # it does not change
        return self

    def __deepcopy__(self, _):
        return self


def load(path):
    """The module in a file that tigac made (`tigac model.tg -o model.so`)."""
    handle = C.c_void_p()
    _context.make((handle, _lib_.tiga_module_free), _lib_.tiga_module_load, _lib.encode_path(path), C.byref(handle),
                  path=path)
    return Module._take(handle)
