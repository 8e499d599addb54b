"""What a tiga_status is in Python: one built-in exception for each, with the library's text."""
from . import _lib

_CLASSES = {
    _lib.E_ARGUMENT: ValueError,
    _lib.E_TYPE: ValueError,  # sizes; element types are looked at before a call (TypeError)
    _lib.E_RANGE: ValueError,
    _lib.E_NAME: KeyError,
    _lib.E_MEMORY: MemoryError,
    _lib.E_BUDGET: MemoryError,
    _lib.E_FILE: OSError,
    _lib.E_FORMAT: ValueError,
    _lib.E_MODULE: OSError,
    _lib.E_ABI: OSError,
    _lib.E_TARGET: OSError,
    _lib.E_UNSUPPORTED: NotImplementedError,
    _lib.E_INTERRUPTED: InterruptedError,
    _lib.E_INTERNAL: RuntimeError,
    _lib.E_PROGRAM: ValueError,
}


class _KeyError(KeyError):
    """A KeyError whose text is a sentence, not a quoted key."""

    def __str__(self):
        return str(self.args[0])


_KeyError.__name__ = _KeyError.__qualname__ = "KeyError"


def key_error(text):
    return _KeyError(text)


def exception(status, text, path=None):
    """The exception for a failed call.  With a path, a file that cannot be opened gives the usual FileNotFoundError,
    IsADirectoryError or PermissionError."""
    kind = _CLASSES.get(status, RuntimeError)
    if status == _lib.E_FILE and path is not None:
        try:
            open(path, "rb").close()
        except OSError as error:
            return error
    if status == _lib.E_INTERNAL:
        text = f"{text or 'internal error'} (a fault of tiga)"
    return _KeyError(text) if kind is KeyError else kind(text)
