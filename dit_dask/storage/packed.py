"""Large arrays on their way to another machine: where they arrive they are in one file, which the processes there map."""

from __future__ import annotations

import os
import pickle  # nosec B403
import weakref
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from dit_dask.storage.scratch import MappedFile, mark_file, new_file, own_place

ALIGNMENT, NAME_BYTES = 64, 16


def starts(sizes: Sequence[int]) -> list[int]:
    """Return where each of these arrays starts in a file, and after them how long the file is."""
    return list(accumulate((-(-size // ALIGNMENT) * ALIGNMENT for size in sizes), initial=0))


@dataclass(frozen=True)
class PackedFile:
    """A file of several arrays: the name of what was sent, the file, and how many bytes each array has."""

    name: bytes
    file: MappedFile
    sizes: tuple[int, ...]

    def buffers(self) -> list[memoryview]:
        """Map the arrays, as bytes; OSError if this process does not see the file."""
        content = memoryview(self.file.map())
        return [content[start : start + size] for start, size in zip(starts(self.sizes), self.sizes, strict=False)]


class SentArrays:
    """Arrays of this process; another one that unpickles them has `ReceivedArrays`.

    Those processes write them to a file that have one of these marks on their tokens; others keep them in memory.
    """

    def __init__(self, arrays: Sequence[NDArray[Any]], writers: frozenset[bytes]) -> None:
        self._name, self._arrays, self._writers = os.urandom(NAME_BYTES), arrays, writers

    def __reduce__(self) -> tuple[Any, ...]:
        content = (np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in self._arrays)
        return receive, (self._name, self._writers, *(pickle.PickleBuffer(one.data) for one in content))


class ReceivedArrays:
    """Arrays of another machine, as bytes: in a file of which this process has a descriptor but no copy, or in memory."""

    def __init__(
        self, name: bytes, writers: frozenset[bytes], memory: Sequence[Any] = (), packed: PackedFile | None = None
    ) -> None:
        self._name, self._writers, self._memory, self.packed = name, writers, memory, packed
        _RECEIVED[name] = self

    @classmethod
    def of_file(cls, writers: frozenset[bytes], descriptor: int, packed: PackedFile) -> ReceivedArrays:
        """Have the arrays of a file through a descriptor, which is closed with the object that is returned."""
        received = cls(packed.name, writers, packed=replace(packed, file=packed.file.through(descriptor)))
        weakref.finalize(received, os.close, descriptor)
        return received

    @classmethod
    def of_other(cls, files: Iterable[PackedFile]) -> ReceivedArrays | None:
        """Have the arrays of the first file of another process that this one sees, as long as it wants."""
        for packed in files:
            with suppress(OSError):
                return cls.of_file(frozenset(), packed.file.open(), packed)
        return None

    def buffers(self) -> Sequence[Any]:
        """Map the arrays, or return those in memory."""
        return self._memory if self.packed is None else self.packed.buffers()

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + sum(memoryview(array).nbytes for array in self._memory)

    def __reduce__(self) -> tuple[Any, ...]:
        return receive, (self._name, self._writers, *(pickle.PickleBuffer(array) for array in self.buffers()))


_RECEIVED: WeakValueDictionary[bytes, ReceivedArrays] = WeakValueDictionary()


def receive(name: bytes, writers: frozenset[bytes], *arrays: Any) -> ReceivedArrays:
    """Return what this process has of that name; else write it to a file if this process is to, or keep it in memory."""
    if (known := _RECEIVED.get(name)) is not None:  # as where Dask moves what a worker has that is to stop
        return known
    if writers and (place := own_place()) is not None and place.mark in writers:
        with suppress(OSError):  # no space, say: the others of this machine are sent copies
            return _write(name, writers, arrays)
    return ReceivedArrays(name, writers, arrays)


def _write(name: bytes, writers: frozenset[bytes], arrays: Sequence[Any]) -> ReceivedArrays:
    sizes = tuple(memoryview(array).nbytes for array in arrays)
    with new_file() as file:  # it is not mapped to be written: what a process has mapped counts as its memory
        for start, array in zip(starts(sizes), arrays, strict=False):
            file.seek(start)
            file.write(array)
        file.flush()
        place = mark_file(file.fileno(), starts(sizes)[-1])
        return ReceivedArrays.of_file(writers, os.dup(file.fileno()), PackedFile(name, place, sizes))
