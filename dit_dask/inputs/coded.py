"""Texts as categories while a file is read in blocks: each distinct text is kept once, and a cell is a small number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

BLOCK_BYTES, BLOCK_ROWS = 2 * 2**20, 65_536


def is_text(kind: Any) -> bool:
    """Tell whether a column of this type becomes categories."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


class CodedColumns:
    """The columns of a table, taken from its blocks; texts are coded, other columns stay as they are."""

    def __init__(self, names: Sequence[str]) -> None:
        self._labels: dict[str, list[Any]] = {name: [] for name in names}
        self._codes: dict[str, list[Any]] = {name: [] for name in names}
        self._others: dict[str, list[Any]] = {name: [] for name in names}
        self._metadata: Any = None
        self.rows = 0

    def add(self, block: Any) -> None:
        """Take a record batch."""
        import pyarrow as pa

        self.rows += block.num_rows
        self._metadata = block.schema.metadata
        for name, cells in zip(block.schema.names, block.columns, strict=True):
            if pa.types.is_dictionary(cells.type):
                cells = cells.cast(cells.type.value_type)
            if not is_text(cells.type):
                self._others[name].append(cells)
                continue
            coded = cells.dictionary_encode()
            self._labels[name].append(coded.dictionary.cast(pa.string()))
            size = _smallest(len(coded.dictionary))
            self._codes[name].append(coded.indices.fill_null(-1).to_numpy().astype(size))  # a copy: the block can go

    def frame(self) -> pd.DataFrame:
        """The table; what was kept of the blocks is given up column by column."""
        import pandas as pd
        import pyarrow as pa

        others = {name: pa.chunked_array(self._others.pop(name)) for name in list(self._others) if self._others[name]}
        plain = to_frame(pa.table(others).replace_schema_metadata(self._metadata))
        columns = {}
        for name in list(self._labels):
            labels, codes = self._labels.pop(name), self._codes.pop(name)
            columns[name] = plain[name] if name in others else _join(labels, codes)
        del plain, others
        pa.default_memory_pool().release_unused()
        return pd.DataFrame(columns)


def _smallest(labels: int) -> Any:
    """The smallest type of integers that has a number for each label, and -1."""
    return np.min_scalar_type(-labels - 1)


def to_frame(table: Any) -> pd.DataFrame:
    """Turn an Arrow table into a frame; what pandas wrote as its index is a column again."""
    names: list[str] = table.schema.names
    # integer_object_nulls: a null must not turn large integers into floats
    frame: pd.DataFrame = table.to_pandas(integer_object_nulls=True, date_as_object=True)
    index = [name for name in frame.index.names if name in names]
    numbered: pd.DataFrame = (frame.reset_index(index) if index else frame).reset_index(drop=True)
    return numbered[names]


def _join(labels: Sequence[Any], codes: Sequence[Any]) -> Any:
    """Number the texts of all blocks together."""
    import pandas as pd
    import pyarrow as pa

    every = pa.chunked_array(labels, pa.string()).combine_chunks().dictionary_encode()
    number = every.indices.to_numpy()
    starts = np.cumsum([0, *map(len, labels)])
    parts = [
        np.append(number[start:stop], -1)[code].astype(_smallest(len(every.dictionary)))  # -1 is the last
        for start, stop, code in zip(starts[:-1], starts[1:], codes, strict=True)
    ]
    joined = np.concatenate(parts) if parts else np.empty(0, np.int8)
    return pd.Categorical.from_codes(joined, pd.Index(every.dictionary.to_pandas()))
