"""Whose rows belong together: persons are numbered in the order in which they first appear; their ids go nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.config.document import Config
from dit_dask.errors import InputError
from dit_dask.inputs.encode import check_single_type

if TYPE_CHECKING:
    import pandas as pd

    from dit_dask.values.arrays import Ints


def number_persons(cells: pd.Series[Any], config: Config) -> Ints | None:
    """Return (rows,): the person of each used row; None where every person has one row, so that rows are persons."""
    import pandas as pd

    name, marks = str(cells.name), config.data.marks(str(cells.name))
    missing = (cells.isna() | cells.astype(str).isin(marks)).to_numpy(bool)
    if missing.any():
        first = int(np.flatnonzero(missing)[0])
        raise InputError(
            f"schema.subject: column {name!r} must have a value in every used row; it is missing in {int(missing.sum()):,} "
            f"rows, first in used row {first}"
        )
    check_single_type(name, cells)
    person, ids = pd.factorize(cells)
    if len(ids) == len(cells):
        return None
    if len(ids) < 2:
        raise InputError(f"schema.subject: at least 2 persons are needed to remove one; all rows have the same {name!r}")
    return person.astype(np.int64)
