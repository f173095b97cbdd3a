"""Gzip with a bound: a small file cannot fill the memory."""

from __future__ import annotations

import gzip
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
        if self.tell() > max(FREE_BYTES, MOST_GROWTH * self._compressed.tell()):
            raise InputError(
                f"{self._where} grows to more than {MOST_GROWTH} times its size; unpack it first if it is what you expect"
            )
        return content
