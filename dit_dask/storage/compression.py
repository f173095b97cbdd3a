"""Gzip and Zstandard with a bound: a small file cannot fill the memory."""

from __future__ import annotations

import gzip
import io
from typing import Any

from dit_dask.errors import InputError

FREE_BYTES = 2**28  # any file may grow to this size
MOST_GROWTH = 100  # times what was read of the compressed file; tables shrink to a tenth, seldom to a fiftieth


class BoundedGzip(gzip.GzipFile):
    """Decompresses a file, and refuses one that grows to more than MOST_GROWTH times its size."""

    def __init__(self, compressed: Any, where: str) -> None:
        super().__init__(fileobj=compressed, mode="rb")
        self._compressed, self._where = compressed, where

    def read(self, size: int | None = -1) -> bytes:
        """Read some bytes, or all that are left, and check the size so far."""
        if size is not None and size >= 0:
            return self._checked(super().read(size))
        blocks = []
        while block := self._checked(super().read(2**20)):
            blocks.append(block)
        return b"".join(blocks)

    def _checked(self, content: bytes) -> bytes:
        _check_growth(self.tell(), self._compressed.tell(), self._where)
        return content


class BoundedZstd(io.RawIOBase):
    """The same for Zstandard, which Arrow decompresses; it is read in order, and again from the start."""

    def __init__(self, compressed: Any, where: str) -> None:
        self._compressed, self._where = compressed, where
        self._read, self._stream = 0, self._open()

    def _open(self) -> Any:
        import pyarrow as pa

        return pa.CompressedInputStream(pa.PythonFile(_KeptOpen(self._compressed), mode="r"), "zstd")

    def readable(self) -> bool:
        """Arrow asks."""
        return True

    def seekable(self) -> bool:
        """Only back to the start."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Start again."""
        if offset or whence != io.SEEK_SET:
            raise io.UnsupportedOperation("a compressed file is read in order")
        self._compressed.seek(0)
        self._read, self._stream = 0, self._open()
        return 0

    def tell(self) -> int:
        """How many bytes were read."""
        return self._read

    def read(self, size: int | None = -1) -> bytes:
        """Read some bytes, or all that are left, and check the size so far."""
        blocks = []
        wanted = -1 if size is None else size
        while wanted:
            block: bytes = self._stream.read(min(wanted, 2**20) if wanted > 0 else 2**20)
            if not block:
                break
            blocks.append(block)
            self._read += len(block)
            wanted -= len(block) if wanted > 0 else 0
            _check_growth(self._read, self._compressed.tell(), self._where)
        return b"".join(blocks)


class _KeptOpen:
    """A file that Arrow reads but does not close: it is read again from the start."""

    closed = False

    def __init__(self, file: Any) -> None:
        self.read = file.read

    def close(self) -> None:
        """Leave the file to whoever opened it."""


def _check_growth(size: int, compressed: int, where: str) -> None:
    if size > max(FREE_BYTES, MOST_GROWTH * compressed):
        raise InputError(f"{where} grows to more than {MOST_GROWTH} times its size; unpack it first if it is what you expect")
