"""Arrays that may be larger than memory: mapped from files without a name, which are gone with the process, even a killed one.

Other processes of the machine map the same file through the file descriptor of its owner. Each file ends with random bytes,
its mark: a process that finds another file under the same path, as on another machine, knows that it is not the right one.
"""

from __future__ import annotations

import io
import mmap
import os
import pickle  # nosec B403
import shutil
import stat
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from threading import Lock
from typing import Any, Protocol

import cloudpickle
import numpy as np
from numpy.typing import DTypeLike, NDArray

from dit_dask.errors import RunError

IN_MEMORY_BYTES = 2**25  # smaller arrays are not worth a file
SHARED_BYTES = 2**20  # smaller ones are sent to other processes
MARK_BYTES = 16


@dataclass(frozen=True)
class MappedFile:
    """Where another process of this machine finds a file, how many bytes it has before its mark, and the mark."""

    path: str
    size: int
    mark: bytes

    def open(self) -> int:
        """Return a new descriptor of the file; OSError if this process does not see it, or sees another one there."""
        status = os.stat(self.path)  # opening what is no file could wait, or do something
        if stat.S_ISREG(status.st_mode) and status.st_size == self.size + MARK_BYTES:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
            try:
                mark = os.pread(descriptor, MARK_BYTES, self.size)
            except OSError:
                mark = b""
            if mark == self.mark:
                return descriptor
            os.close(descriptor)
        raise FileNotFoundError(f"{self.path} is not that file here")

    def map(self) -> mmap.mmap:
        """Map the file; writing to it changes a copy of the pages that only this process sees."""
        descriptor = self.open()
        try:
            return mmap.mmap(descriptor, self.size, access=mmap.ACCESS_COPY)
        finally:
            os.close(descriptor)

    def through(self, descriptor: int) -> MappedFile:
        """Return where other processes find the same file, of which this one has a descriptor."""
        return replace(self, path=_path(descriptor))

    def is_seen(self) -> bool:
        """Tell whether this process sees the file."""
        try:
            os.close(self.open())
        except OSError:
            return False
        return True


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
    return sum(file.size for file in _MAPPED.values())


def folder() -> str:
    """Where scratch files are: TMPDIR, or what the system takes for temporary files."""
    return tempfile.gettempdir()


def free_bytes() -> int:
    """The space that is left for scratch files."""
    return shutil.disk_usage(folder()).free


def _map_file(shape: tuple[int, ...], kind: np.dtype[Any], size: int) -> NDArray[Any]:
    file: Any = None
    try:
        file = new_file()
        _reserve(file.fileno(), size + MARK_BYTES)
        array = _view(mmap.mmap(file.fileno(), size), shape, kind)
        place = mark_file(file.fileno(), size)
    except OSError as error:
        if file is not None:
            file.close()
        where = tempfile.tempdir or "any folder for temporary files"
        problem = os.strerror(error.errno or 0)
        raise RunError(f"scratch: cannot write {size / 1e6:,.0f} MB to {where}: {problem}; set TMPDIR") from error
    if place.is_seen():  # elsewhere other processes are sent a copy
        _MAPPED[id(array)] = place
    weakref.finalize(array, _release, id(array), file)
    return array


def new_file() -> Any:
    """Return a file without a name; its descriptor is to be closed by whoever has it."""
    return tempfile.TemporaryFile(prefix="dit-scratch-")


def mark_file(descriptor: int, size: int) -> MappedFile:
    """Write the mark to the end of a file; return where other processes find it, if the system lets them."""
    mark = os.urandom(MARK_BYTES)
    os.pwrite(descriptor, mark, size)
    return MappedFile(_path(descriptor), size, mark)


def _path(descriptor: int) -> str:
    return f"/proc/{os.getpid()}/fd/{descriptor}"


def _reserve(descriptor: int, size: int) -> None:
    """Take the space now: a full disk under a mapped file would end the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
    else:
        os.ftruncate(descriptor, size)


def _release(key: int, file: Any) -> None:
    _MAPPED.pop(key, None)
    file.close()


def _view(content: Any, shape: tuple[int, ...], kind: np.dtype[Any]) -> NDArray[Any]:
    return np.frombuffer(content, kind).reshape(shape)


class BufferSource(Protocol):
    """Where a process finds the content of large arrays."""

    def buffers(self) -> Sequence[Any]:
        """Return it, array by array; OSError where it is not found."""
        ...


@dataclass(frozen=True)
class MappedFiles:
    """A file for each array."""

    places: tuple[MappedFile, ...]

    def buffers(self) -> Sequence[Any]:
        """Map the files."""
        return [place.map() for place in self.places]


class LargeArrayPickler(cloudpickle.CloudPickler):  # type: ignore[misc]  # untyped
    """Pickles a value without the content of its large arrays, which `arrays` holds."""

    def __init__(self, file: io.BytesIO) -> None:
        self.arrays: list[NDArray[Any]] = []
        self._left_out = pickle.PickleBuffer(bytearray())  # of all buffers, this one stands for another place
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL, buffer_callback=lambda buffer: buffer is not self._left_out)

    def reducer_override(self, value: Any) -> Any:
        """Leave the content of a large array out."""
        if type(value) is np.ndarray and value.nbytes >= SHARED_BYTES and value.dtype.kind in "biufSUmM":
            self.arrays.append(value)
            return _view, (self._left_out, value.shape, value.dtype)
        return super().reducer_override(value)


def split(value: Any) -> tuple[bytes, list[NDArray[Any]]]:
    """Pickle a value without its large arrays; return the bytes, and the arrays."""
    content = io.BytesIO()
    pickler = LargeArrayPickler(content)
    pickler.dump(value)
    return content.getvalue(), pickler.arrays


class SharedValue:
    """A value whose large arrays are mapped: each process opens it once.

    It stays small when a process sends it on to another one. `kept` is what must live as long as it is used.
    """

    def __init__(self, content: bytes, source: BufferSource, kept: Sequence[Any] = ()) -> None:
        self._content, self._source, self._kept = content, source, kept
        self._opened: tuple[Any, ...] = ()
        self._lock = Lock()

    @classmethod
    def of(cls, content: bytes, arrays: Sequence[NDArray[Any]]) -> SharedValue | None:
        """Share a value that was split with the processes of this machine; large arrays in memory are copied to files.

        None where the system does not let them map a file of this one.
        """
        kept = [array if mapped_file(array) is not None else _copy(array) for array in arrays]
        places = [mapped_file(array) for array in kept]
        seen = tuple(place for place in places if place is not None)
        return cls(content, MappedFiles(seen), kept) if len(seen) == len(kept) else None

    def open(self) -> Any:
        """Return the value, the same one every time; OSError if its arrays are not found."""
        with self._lock:
            if not self._opened:
                buffers = self._source.buffers()
                content = pickle.loads(self._content, buffers=buffers)  # noqa: S301 - from who started us  # nosec B301
                self._opened = (content,)
        return self._opened[0]

    def __reduce__(self) -> tuple[Any, ...]:
        return SharedValue, (self._content, self._source)


def _copy(array: NDArray[Any]) -> NDArray[Any]:
    shared = _map_file(array.shape, array.dtype, array.nbytes)
    shared[...] = array
    return shared


@cache
def _token() -> NDArray[Any]:
    return _map_file((1,), np.dtype(np.uint8), 1)


def own_place() -> MappedFile | None:
    """Return a file by which other processes find out whether they see those of this one; None if it can have none."""
    try:
        return mapped_file(_token())
    except RunError:
        return None
