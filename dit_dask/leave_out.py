"""Writes the tables that the owner of a sanitizer must sanitise when the sanitizer itself cannot be handed over."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.audit.build import build_tests, external_columns
from dit_dask.config.document import Config
from dit_dask.errors import InputError
from dit_dask.execution.external import rows_to_remove
from dit_dask.inputs.load import load
from dit_dask.inputs.source import read_text
from dit_dask.sanitizers.external.calls import encode_table
from dit_dask.storage.folder import Folder

if TYPE_CHECKING:
    import pandas as pd

    from dit_dask.values.arrays import Ints


ABOUT = "leave-out.json"


@dataclass(frozen=True, eq=False)
class LeftOut:
    """The rows under audit as they were read, and the positions of those to leave out, one table each.

    Where persons have several rows, person[n] says whose each is: all rows of a person are left out together, and the table
    is named by the first.
    """

    frame: pd.DataFrame
    records: Ints
    person: Ints | None = None

    def write(self, folder: Folder, kind: str) -> Iterator[int]:
        """Write `full` and one table without each record, yielding as they are done; a table that is there is left alone."""
        about = json.dumps({"input": self.digest(), "format": kind}).encode()
        if not folder.create(ABOUT, about) and folder.read(ABOUT) != about:
            raise InputError(f"--to: {folder.url} holds tables of other data or of another format; choose another folder")
        present = folder.names("")
        for record in (None, *self.records.tolist()):
            name = f"{'full' if record is None else record}.{kind}"
            if name not in present:
                folder.write(name, encode_table(self.frame if record is None else self._without(record), kind))
            yield -1 if record is None else record

    def _without(self, record: int) -> pd.DataFrame:
        return self.frame.drop(index=record) if self.person is None else self.frame[self.person != self.person[record]]

    def digest(self) -> str:
        """Identify the rows and columns, in order, and which belong together."""
        import pandas as pd

        content = hashlib.sha256(json.dumps([list(self.frame.columns), [str(kind) for kind in self.frame.dtypes]]).encode())
        content.update(pd.util.hash_pandas_object(self.frame.astype(str), index=False).to_numpy().tobytes())
        content.update(b"" if self.person is None else self.person.tobytes())
        return content.hexdigest()

    def size(self, kind: str) -> float:
        """About how many bytes all tables take together."""
        return len(encode_table(self.frame, kind)) * (1.0 + len(self.records))


def tables(config: Config) -> LeftOut:
    """Find the rows that the config's external sanitizers are called without; if there are none, every distinct row."""
    named = external_columns(config) or []
    rows = load(config, others=named)
    if rows.frame is None:
        raise TypeError("load keeps the cells when it is asked for columns")
    frame = rows.frame[[name for name in rows.frame.columns if name in named or name != rows.table.schema.subject]]
    tests = build_tests(config, rows, lambda path, where: read_text(path, config, where))
    needed = []
    for test in tests:
        if test.external is not None:
            order_matters = bool(test.external.order_matters)
            needed.append(rows_to_remove(test, test.external, order_matters=order_matters))
    if not needed:
        records = np.column_stack([each.index for each in rows.by_secret.values()] if rows.person is None else [rows.person])
        _, first = np.unique(records, axis=0, return_index=True)
        needed.append(first.astype(np.int64))
    return LeftOut(frame, np.unique(np.concatenate(needed)), rows.person)
