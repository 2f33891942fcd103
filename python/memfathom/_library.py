"""libmemfathom, found and called: text in, text out.

The functions are those of include/memfathom/memfathom.h. ctypes releases the interpreter's lock
while one runs, so that several threads may ask at once.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from ._errors import DeviceError, error_for

_NAME = "libmemfathom.so.0"


def _candidates() -> Iterator[Path]:
    given = os.environ.get("MEMFATHOM_LIBRARY")
    if given:
        yield Path(given)
        return
    package = Path(__file__).resolve().parent
    parents = list(package.parents)
    # PREFIX/lib/python3.X/site-packages/memfathom, or lib64 instead of lib.
    if len(parents) > 3:
        yield parents[2] / _NAME
        yield parents[3] / "lib" / _NAME
    # The clone that an editable install points to.
    yield parents[1] / "build" / "release" / "lib" / _NAME


def _recorded() -> Path | None:
    # Installers write down where each file went. Slower than a guess, and never wrong.
    from importlib import metadata

    try:
        files = metadata.files("memfathom") or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.name == _NAME:
            return Path(str(file.locate())).resolve()
    return None


def find_library() -> Path:
    """The path of libmemfathom. ``MEMFATHOM_LIBRARY`` overrides the search."""
    for path in _candidates():
        if path.is_file():
            return path
    recorded = None if os.environ.get("MEMFATHOM_LIBRARY") else _recorded()
    if recorded is not None and recorded.is_file():
        return recorded
    raise DeviceError(
        f"{_NAME} was not found; install the wheel (pip install memfathom), or name the file of a build in "
        "MEMFATHOM_LIBRARY (build/release/lib/libmemfathom.so.0)"
    )


def find_program() -> Path | None:
    """The program ``memfathom`` of the same installation or build, if it is there."""
    path = find_library().resolve().parent.parent / "bin" / "memfathom"
    return path if os.access(path, os.X_OK) else None


_lock = threading.Lock()
_loaded: ctypes.CDLL | None = None


def library() -> ctypes.CDLL:
    """The library, loaded at the first call."""
    global _loaded
    with _lock:
        if _loaded is None:
            path = find_library()
            try:
                loaded = ctypes.CDLL(str(path))
            except OSError as error:
                raise DeviceError(f"{path} cannot be loaded: {error}") from None
            text, pointer = ctypes.c_char_p, ctypes.c_void_p
            result = ctypes.POINTER(ctypes.c_void_p)
            loaded.memfathom_version.restype = text
            loaded.memfathom_open.argtypes = [text, ctypes.POINTER(pointer), result]
            loaded.memfathom_close.argtypes = [pointer]
            loaded.memfathom_close.restype = None
            loaded.memfathom_free.argtypes = [pointer]
            loaded.memfathom_free.restype = None
            for name in ("estimate", "recommend", "compare", "gpus", "accuracy"):
                getattr(loaded, f"memfathom_{name}").argtypes = [pointer, text, result]
            loaded.memfathom_models.argtypes = [pointer, result]
            loaded.memfathom_main.argtypes = [ctypes.c_int, ctypes.POINTER(text)]
            _loaded = loaded
        return _loaded


def _take(status: int, result: ctypes.c_void_p) -> str:
    text = ""
    if result.value is not None:
        text = ctypes.string_at(result.value).decode("utf-8")
        library().memfathom_free(result)
    if status == 0:
        return text
    if not text:
        raise error_for(status, "the library ran out of memory")
    raise error_for(status, str(json.loads(text)["error"]))


def open_session(options: str) -> ctypes.c_void_p:
    session, result = ctypes.c_void_p(), ctypes.c_void_p()
    status = library().memfathom_open(options.encode(), ctypes.byref(session), ctypes.byref(result))
    _take(status, result)
    return session


def close_session(session: ctypes.c_void_p) -> None:
    library().memfathom_close(session)


def ask(function: str, session: ctypes.c_void_p, request: str | None) -> str:
    """Calls ``memfathom_FUNCTION``; an error becomes an exception with its sentence."""
    result = ctypes.c_void_p()
    call = getattr(library(), f"memfathom_{function}")
    if function == "models":
        status = call(session, ctypes.byref(result))
    else:
        status = call(session, request.encode() if request is not None else None, ctypes.byref(result))
    return _take(status, result)


def version() -> str:
    """The version of the library."""
    value: bytes = library().memfathom_version()
    return value.decode()


def run_main(arguments: list[str]) -> int:
    """What the program does with these arguments, in this process; returns its exit code."""
    words = ["memfathom", *arguments]
    array = (ctypes.c_char_p * (len(words) + 1))(*[os.fsencode(word) for word in words], None)
    sys.stdout.flush()
    sys.stderr.flush()
    code: int = library().memfathom_main(len(words), array)
    return code
