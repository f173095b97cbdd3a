"""Arrays that may be larger than memory: mapped from files without a name, which are gone with the process, even a killed one.

Other processes of the machine map the same file through the file descriptor of its owner.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dit_dask.errors import RunError

IN_MEMORY_BYTES = 2**25  # smaller arrays are not worth a file


@dataclass(frozen=True)
class MappedFile:
    """Where another process of this machine finds an array, and what it is."""

    path: str
    dtype: str
    shape: tuple[int, ...]

    def open(self) -> NDArray[Any]:
        """Map the array; writing to it changes a copy of the pages that only this process sees."""
        with open(self.path, "rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        return _view(content, self.shape, np.dtype(self.dtype))


_MAPPED: dict[int, MappedFile] = {}


def empty(shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an array to be filled: in memory, or in a scratch file if it is large."""
    kind, sizes = np.dtype(dtype), shape if isinstance(shape, tuple) else (shape,)
    size = kind.itemsize * int(np.prod(sizes))
    return np.empty(sizes, kind) if size < IN_MEMORY_BYTES else _map_file(sizes, kind, size)


def mapped_file(array: NDArray[Any]) -> MappedFile | None:
    """Return where an array that `empty` made is mapped from, for other processes; None if it is in memory."""
    return _MAPPED.get(id(array))


def folder() -> str:
    """Where scratch files are: TMPDIR, or what the system takes for temporary files."""
    return tempfile.gettempdir()


def _map_file(shape: tuple[int, ...], kind: np.dtype[Any], size: int) -> NDArray[Any]:
    file = tempfile.TemporaryFile(prefix="dit-scratch-")  # noqa: SIM115  its descriptor lives as long as the array
    try:
        _reserve(file.fileno(), size)
        array = _view(mmap.mmap(file.fileno(), size), shape, kind)
    except OSError as error:
        file.close()
        needed = f"{size / 1e6:,.0f} MB"
        raise RunError(f"scratch: cannot write {needed} to {folder()}: {os.strerror(error.errno or 0)}; set TMPDIR") from error
    path = f"/proc/{os.getpid()}/fd/{file.fileno()}"
    if os.path.exists(path):  # elsewhere other processes are sent a copy
        _MAPPED[id(array)] = MappedFile(path, kind.str, shape)
    weakref.finalize(array, _release, id(array), file)
    return array


def _reserve(descriptor: int, size: int) -> None:
    """Take the space now: a full disk under a mapped file would end the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
    else:
        os.ftruncate(descriptor, size)


def _release(key: int, file: Any) -> None:
    _MAPPED.pop(key, None)
    file.close()


def _view(content: mmap.mmap, shape: tuple[int, ...], kind: np.dtype[Any]) -> NDArray[Any]:
    return np.frombuffer(content, kind).reshape(shape)
