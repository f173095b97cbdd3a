"""Arrow tables as frames, with every number as exact as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def to_frame(table: Any) -> pd.DataFrame:
    """Turn an Arrow table into a frame; what pandas wrote as its index is a column again."""
    names: list[str] = table.schema.names
    # integer_object_nulls: a null must not turn large integers into floats
    frame: pd.DataFrame = table.to_pandas(integer_object_nulls=True, date_as_object=True)
    index = [name for name in frame.index.names if name in names]
    numbered: pd.DataFrame = (frame.reset_index(index) if index else frame).reset_index(drop=True)
    return numbered[names]
