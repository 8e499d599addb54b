"""tiga.compile: from text to a module inside this process."""
import ctypes as C
import os
import warnings
from typing import NamedTuple, Optional, Tuple

from . import _context, _errors, _jit, _lib, cache as _cache_module
from ._function import Code
from ._module import Module


class Note(NamedTuple):
    """A remark to a diagnostic; line and column are 0 when it has no place."""
    line: int
    column: int
    text: str


class Diagnostic(NamedTuple):
    """One error or warning of the compiler; lines and columns begin with 1, columns and lengths are bytes."""
    id: str
    is_error: bool
    file: str
    line: int
    column: int
    length: int
    text: str
    label: Optional[str]
    notes: Tuple[Note, ...]


class CompileError(ValueError):
    """The text is not a right program.  `diagnostics` lists why; str() shows them with carets."""

    def __init__(self, rendered, diagnostics=()):
        super().__init__(rendered)
        self.diagnostics = list(diagnostics)

    def __reduce__(self):
        return type(self), (self.args[0], self.diagnostics)

    def __str__(self):
        return "\n" + self.args[0].rstrip() if self.diagnostics else self.args[0]


class CompileWarning(UserWarning):
    """A warning of the compiler; the module was made all the same."""


def _text(data):
    return None if data is None else data.decode(errors="replace")


def _diagnostic(d):
    notes = tuple(Note(d.notes[i].line, d.notes[i].column, _text(d.notes[i].text)) for i in range(d.n_notes))
    return Diagnostic(_text(d.id), bool(d.is_error), _text(d.file), d.line, d.column, d.length, _text(d.text),
                      _text(d.label), notes)


def _is_path(source):
    if not isinstance(source, str):
        return True
    if "\n" in source or "{" in source:
        return False
    if source.endswith((".tg", ".ir")):
        return True
    if source.endswith((".so", ".dll", ".dylib")):
        raise ValueError(f"compile: {source!r} is a compiled module; tiga.load(path) loads it")
    raise ValueError(f"compile: {source!r} is neither a program (it has no '{{') nor the path of a .tg or .ir file")


def _defines(dims):
    array = (_jit.Define * max(len(dims), 1))()
    for cell, (name, value) in zip(array, dims.items()):
        if isinstance(value, bool) or not hasattr(type(value), "__index__"):
            raise TypeError(f"compile: the dimension {name} is {value!r}; it must be an integer")
        n = value.__index__()
        if not 0 <= n < 1 << 63:
            raise ValueError(f"compile: the dimension {name} is {n}; it must not be negative")
        cell.name, cell.value = name.encode(), n
    return array


def _check(name, value, kinds, what):
    if value is not None and not isinstance(value, kinds):
        raise TypeError(f"compile: {name} is {value!r}; it must be {what}")


def _level(value):
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"compile: opt_level is {value!r}; it must be an integer from 0 to 3")
    if not 0 <= value.__index__() <= 3:
        raise ValueError(f"compile: opt_level is {value}; it must be from 0 to 3")
    return value.__index__()


def compile(source, /, *, file_name=None, cpu=None, opt_level=None, warnings_are_errors=False, cache=True, **dims):
    """A module from a program: its text (a str with a newline or a '{') or the path of a .tg or .ir file.

    dims fix open dimensions, compile(text, F=64); a dimension left open is taken from the arguments of each call.
    file_name is what diagnostics call the text.  cpu is LLVM's name of a processor, "native" by default.
    The result comes from the cache (tiga.cache) where it can; cache=False always compiles.
    A wrong program raises CompileError.
    """
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(f"compile: takes the text of a program or a path, not {type(source).__name__}")
    is_path, defines = _is_path(source), _defines(dims)
    _check("file_name", file_name, (str, bytes, os.PathLike), "a name or a path")
    _check("cpu", cpu, str, "the name of a processor")
    if cpu is not None and "\0" in cpu:
        raise ValueError(f"compile: cpu is {cpu!r}; no processor is called so")
    for name, value in (("warnings_are_errors", warnings_are_errors), ("cache", cache)):
        if not isinstance(value, (bool, int)):
            raise TypeError(f"compile: {name} is {value!r}; it must be True or False")
    library = _jit.tigac()
    options = library.tiga_jit_defaults()
    options.defines, options.n_defines = defines, len(dims)
    if file_name is not None:
        options.file_name = _lib.encode_path(file_name)
    if cpu is not None:
        options.cpu = cpu.encode()
    if opt_level is not None:
        options.opt_level = _level(opt_level)
    options.warnings_are_errors = bool(warnings_are_errors)
    if cache:
        options.cache = _cache_module._handle()
    handle, result = C.c_void_p(), C.c_void_p()
    made = handle, _lib.lib.tiga_module_free
    outputs = C.byref(options), C.byref(handle), C.byref(result)
    try:
        if is_path:
            _context.make(made, library.tiga_jit_file, _lib.encode_path(source), *outputs, path=source)
        else:
            data = source.encode()
            _context.make(made, library.tiga_jit_source, data, len(data), *outputs)
        code = Code(handle)
    except ValueError as error:
        diagnostics, rendered = _diagnostics(library, result)
        raise (CompileError(rendered, diagnostics) if diagnostics else error) from None
    else:
        diagnostics, _ = _diagnostics(library, result)  # warnings
    finally:
        library.tigac_result_free(result)
    module = Module._of(code)  # before a warning that somebody made an error
    for d in diagnostics:
        warnings.warn(f"{d.file}:{d.line}:{d.column}: {d.text} [{d.id}]", CompileWarning, stacklevel=2)
    return module


def _diagnostics(library, result):
    """What stands in a tigac_result, and the same with carets."""
    if not result:
        return [], ""
    contents = library.Result.from_address(result.value)
    return [_diagnostic(contents.diagnostics[i]) for i in range(contents.n_diagnostics)], _text(contents.rendered)
