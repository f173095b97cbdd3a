"""Arrays that may be larger than memory: mapped from files without a name, which are gone with the process, even a killed one.

Other processes of the machine map the same file through the file descriptor of its owner.
"""

from __future__ import annotations

import io
import mmap
import os
import pickle  # nosec B403
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any

import cloudpickle
import numpy as np
from numpy.typing import DTypeLike, NDArray

from dit_dask.errors import RunError

IN_MEMORY_BYTES = 2**25  # smaller arrays are not worth a file
SHARED_BYTES = 2**20  # smaller ones are sent to other processes


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


def mapped_bytes() -> int:
    """How much this process has in scratch files."""
    return sum(int(np.prod(one.shape)) * np.dtype(one.dtype).itemsize for one in _MAPPED.values())


def folder() -> str:
    """Where scratch files are: TMPDIR, or what the system takes for temporary files."""
    return tempfile.gettempdir()


def free_bytes() -> int:
    """The space that is left for scratch files."""
    return shutil.disk_usage(folder()).free


def _map_file(shape: tuple[int, ...], kind: np.dtype[Any], size: int) -> NDArray[Any]:
    file: Any = None
    try:
        file = tempfile.TemporaryFile(prefix="dit-scratch-")  # noqa: SIM115  its descriptor lives as long as the array
        _reserve(file.fileno(), size)
        array = _view(mmap.mmap(file.fileno(), size), shape, kind)
    except OSError as error:
        if file is not None:
            file.close()
        where = tempfile.tempdir or "any folder for temporary files"
        problem = os.strerror(error.errno or 0)
        raise RunError(f"scratch: cannot write {size / 1e6:,.0f} MB to {where}: {problem}; set TMPDIR") from error
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


class NotSharedError(Exception):
    """Some process does not see the scratch files of this one."""


class SharedPickler(cloudpickle.CloudPickler):  # type: ignore[misc]  # untyped
    """Pickles a value for processes of this machine: they map its large arrays, which `kept` holds, instead of copying them."""

    def __init__(self, file: io.BytesIO, may_share: Callable[[], bool]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.kept: list[NDArray[Any]] = []
        self._may_share = may_share

    def reducer_override(self, value: Any) -> Any:
        """Put the place of a mapped file where a large array is."""
        if type(value) is np.ndarray and value.nbytes >= SHARED_BYTES and value.dtype.kind in "biufSUmM":
            if not self.kept and not self._may_share():
                raise NotSharedError
            shared = value if mapped_file(value) is not None else _copy(value)
            place = mapped_file(shared)
            if place is not None:
                self.kept.append(shared)
                return place.open, ()
        return super().reducer_override(value)


class SharedValue:
    """A value for the processes of this machine: each opens it once, and maps its large arrays.

    It stays small when a process sends it on to another one. The files are there as long as what `of` returned.
    """

    def __init__(self, content: bytes, kept: Sequence[NDArray[Any]] = ()) -> None:
        self._content, self._kept = content, kept
        self._opened: tuple[Any, ...] = ()
        self._lock = Lock()

    @classmethod
    def of(cls, value: Any, may_share: Callable[[], bool] = lambda: True) -> SharedValue | None:
        """Pickle a value; large arrays that are in memory are copied to files.

        None if it has no such array, or may not be shared, which is only asked if it has.
        """
        content = io.BytesIO()
        pickler = SharedPickler(content, may_share)
        try:
            pickler.dump(value)
        except NotSharedError:
            return None
        return cls(content.getvalue(), pickler.kept) if pickler.kept else None

    def open(self) -> Any:
        """Return the value, the same one every time."""
        with self._lock:
            if not self._opened:
                content = pickle.loads(self._content)  # noqa: S301 - from the process that started this one  # nosec B301
                self._opened = (content,)
        return self._opened[0]

    def __reduce__(self) -> tuple[Any, ...]:
        return SharedValue, (self._content,)


def _copy(array: NDArray[Any]) -> NDArray[Any]:
    shared = _map_file(array.shape, array.dtype, array.nbytes)
    shared[...] = array
    return shared


class Token:
    """A file by which a process finds out whether it can see the scratch files of another one."""

    def __init__(self) -> None:
        self._array = _map_file((16,), np.dtype(np.uint8), 16)
        self._array[:] = np.frombuffer(os.urandom(16), np.uint8)
        self.value = self._array.tobytes()

    def is_seen_by(self, read: Callable[[Callable[[], bytes]], Iterable[bytes]]) -> bool:
        """Tell whether all processes in which `read` calls a function see the same file."""
        place = mapped_file(self._array)
        return place is not None and all(value == self.value for value in read(partial(_read_token, place)))


def _read_token(place: MappedFile) -> bytes:
    try:
        return place.open().tobytes()
    except OSError:
        return b""
