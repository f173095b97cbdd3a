"""The discrimination rate as public functions of frames, series and arrays, in memory or on Dask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask import seeds
from dit_dask.config.constraints import Choice
from dit_dask.errors import InputError
from dit_dask.measures.discrimination.contingency import (
    ARGUMENT,
    MISSING,
    CodedColumn,
    ContingencyTable,
    bootstrap,
    compute_rate_from_codes,
    encode_columns,
    number_combinations,
)
from dit_dask.measures.discrimination.histogram import ESTIMATORS
from dit_dask.measures.discrimination.semantic import number_groups, resolve_groups

if TYPE_CHECKING:
    import pandas as pd

TARGET = "target"


@dataclass(frozen=True, eq=False)
class Columns:
    """A target and its keys in one frame, pandas or Dask: the target is `target`, the keys are numbered."""

    frame: Any
    names: tuple[str, ...]
    is_dask: bool


def discrimination_rate(
    target: Any,
    keys: Any,
    semantic: Mapping[Any, Any] | None = None,
    *,
    missing: str | None = None,
    estimator: str = "plug-in",
) -> float:
    """Return 1 - H(target | keys) / H(target): 0 where the keys tell nothing about the target, 1 where they determine it.

    A target with one value gives 1.

    Parameters
    ----------
    target
        A Series or array of pandas, numpy or Dask.
    keys
        A Series, DataFrame or array of columns.
    semantic
        Regroups the target first: a mapping from its values to groups, or {"hierarchy": PATH, "level": N}.
    missing
        What a missing cell is, if there are any: "category" (a value of its own) or "drop" (its row does not count).
    estimator
        "plug-in", or "miller-madow" or "grassberger" where few rows stand behind a value.

    Examples
    --------
    >>> import dit_dask as dit
    >>> dit.discrimination_rate(["flu", "flu", "none", "none"], ["A", "A", "B", "B"])  # the town determines the illness
    1.0
    >>> dit.discrimination_rate(["flu", "none", "flu", "none"], ["A", "A", "B", "B"])
    0.0
    """
    Choice(tuple(ESTIMATORS)).check(estimator, "estimator")
    columns, groups = _gather_columns(target, keys, missing), _read_groups(semantic)
    if columns.is_dask:
        from dit_dask.execution import histograms

        spec = histograms.describe_columns(columns.frame, TARGET, _keys(columns), missing, groups)
        return histograms.compute_rate(columns.frame, spec, estimator).value
    (codes, *keys), _ = _encode(columns, missing, groups)
    return compute_rate_from_codes([column.codes for column in keys], codes.codes, estimator).value


def discrimination_by_value(
    target: Any, keys: Any, semantic: Mapping[Any, Any] | None = None, *, missing: str | None = None
) -> pd.DataFrame:
    """Return one row for each value or combination of the keys: value, count, rate and refinement.

    `rate` is 1 - p(y) H(X|Y=y) / H(X), near 1 for anything rare; `refinement` is 1 - H(X|Y=y) / H(X), what the value tells
    about its own rows. A combination is a tuple.

    Parameters
    ----------
    target, keys, semantic, missing
        As of `discrimination_rate`.

    Examples
    --------
    >>> import dit_dask as dit
    >>> rates = dit.discrimination_by_value(["flu", "flu", "flu", "none"], ["A", "A", "B", "B"])
    >>> rates.set_index("value")["refinement"].round(2).to_dict()
    {'A': 1.0, 'B': -0.23}
    """
    columns, groups = _gather_columns(target, keys, missing), _read_groups(semantic)
    if columns.is_dask:
        from dit_dask.execution import histograms

        labels, profile = histograms.profile_keys(
            columns.frame, histograms.describe_columns(columns.frame, TARGET, _keys(columns), missing, groups)
        )
    else:
        table, labels = _count_pairs(columns, missing, groups)
        profile = table.profile()
    values = [label[0] if len(label) == 1 else label for label in labels]
    return _sort_by_value(values, profile.count.astype(np.int64), profile.rates, profile.refinements)


def discrimination_interval(
    target: Any,
    keys: Any,
    semantic: Mapping[Any, Any] | None = None,
    *,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
    missing: str | None = None,
) -> tuple[float, float]:
    """Return a bootstrap interval of `discrimination_rate`, for rows that are a sample of more; the same for the same seed.

    Parameters
    ----------
    target, keys, semantic, missing
        As of `discrimination_rate`.
    level
        How often the interval covers the rate of the population.
    replicates
        How many tables are drawn.
    seed
        The seed of what is drawn.

    Examples
    --------
    >>> import dit_dask as dit
    >>> low, high = dit.discrimination_interval(["flu", "none"] * 50, ["A", "A", "B", "B"] * 25)
    >>> 0 <= low <= high < 0.2
    True
    """
    if not 0 < level < 1:
        raise InputError(f"level must be between 0 and 1; got {level:g}")
    if replicates < 50:
        raise InputError(f"replicates must be an integer >= 50; got {replicates}")
    columns, groups = _gather_columns(target, keys, missing), _read_groups(semantic)
    if columns.is_dask:
        from dit_dask.execution import histograms

        table = histograms.count_pairs(
            columns.frame, histograms.describe_columns(columns.frame, TARGET, _keys(columns), missing, groups)
        )
    else:
        table = _count_pairs(columns, missing, groups)[0]
    return bootstrap(table, level, replicates, seeds.stream(seed, "bootstrap"))


def _read_groups(semantic: Mapping[Any, Any] | None) -> Mapping[Any, Any] | None:
    if semantic is None:
        return None
    if not isinstance(semantic, Mapping):
        raise InputError(
            f"semantic must be a mapping from values to groups, or {{hierarchy, level}}; got {type(semantic).__name__}"
        )

    def read(path: str) -> str:
        try:
            return Path(path).read_text("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"semantic.hierarchy: cannot read {path}") from error

    return resolve_groups(semantic, read)


def _count_pairs(
    columns: Columns, missing: str | None, groups: Mapping[Any, Any] | None
) -> tuple[ContingencyTable, list[tuple[Any, ...]]]:
    (target, *keys), _ = _encode(columns, missing, groups)
    key = number_combinations([column.codes for column in keys])
    first = np.unique(key, return_index=True)[1]
    return ContingencyTable.of(key, target.codes), [tuple(column.label(column.codes[row]) for column in keys) for row in first]


def _encode(columns: Columns, missing: str | None, groups: Mapping[Any, Any] | None) -> tuple[list[CodedColumn], Any]:
    """Encode the target, by its groups if given, and the keys."""
    cells = {name: columns.frame[column] for name, column in zip(_distinct(columns.names), columns.frame.columns, strict=True)}
    (target, *keys), kept = encode_columns(cells, missing, ARGUMENT)
    if groups is not None:
        present = np.unique(target.codes)
        numbers = np.zeros(target.span, np.int64)
        numbers[present] = number_groups(groups, [target.label(code) for code in present])
        target = CodedColumn(numbers[target.codes], target.labels)
    return [target, *keys], kept


def _distinct(names: Sequence[str]) -> list[str]:
    """Name the target and the keys for messages; a key that is called `target`, or like another key, has its position."""
    known = [TARGET, *names]
    return [name if known.count(name) == 1 or not place else f"keys[{place - 1}]" for place, name in enumerate(known)]


def _sort_by_value(values: Sequence[Any], count: Any, rates: Any, refinements: Any) -> pd.DataFrame:
    """Order by value, by its text where values do not compare, so that equal tables give equal frames."""
    import pandas as pd

    try:
        order = sorted(range(len(values)), key=lambda index: values[index])
    except TypeError:
        order = sorted(range(len(values)), key=lambda index: str(values[index]))
    column = pd.Series([values[index] for index in order], dtype=object).infer_objects()
    return pd.DataFrame({"value": column, "count": count[order], "rate": rates[order], "refinement": refinements[order]})


def _keys(columns: Columns) -> list[str]:
    return [name for name in columns.frame.columns if name != TARGET]


def _gather_columns(target: Any, keys: Any, missing: str | None) -> Columns:
    """Check target and keys and put them into one frame."""
    if missing is not None:
        Choice(MISSING).check(missing, "missing")
    kinds = [type(part).__module__.partition(".")[0] in ("dask", "dask_expr") for part in (target, keys)]
    if any(kinds) and not all(kinds):
        raise InputError("target and keys must both be Dask collections, or both be in memory; got one of each")
    name = getattr(target, "name", None) if getattr(target, "ndim", 1) == 1 and hasattr(target, "dtype") else None
    names = tuple(str(column) for column in getattr(keys, "columns", ())) or (str(getattr(keys, "name", None) or "keys"),)
    if isinstance(name, str) and not _is_array(target) and not _is_array(keys) and name in names:
        raise InputError(f"the target {name!r} is also among the keys")
    if all(kinds):
        from dit_dask.execution import histograms

        frame = histograms.join_columns(target, keys, TARGET)
    else:
        frame = _join_columns(target, keys)
    count = len(frame.columns) - 1
    return Columns(frame, names if len(names) == count else tuple(f"keys[{position}]" for position in range(count)), all(kinds))


def _is_array(value: Any) -> bool:
    """Whether a value is an array or a list, not a series or a frame: those have column names."""
    return not hasattr(value, "index") or not hasattr(value, "dtypes")


def _join_columns(target: Any, keys: Any) -> pd.DataFrame:
    import pandas as pd

    if _is_array(target):
        target = _to_array(target, "target")
        if target.ndim != 1:
            raise InputError(f"target must be one column; got an array of {target.ndim} dimensions")
    elif getattr(target, "ndim", 1) != 1:
        raise InputError(f"target must be one column; got {target.shape[1]}")
    if not _is_array(target) and not _is_array(keys) and not target.index.equals(keys.index):
        raise InputError("target and keys must have the same index, row by row")
    table = pd.DataFrame(keys if not _is_array(keys) else _to_array(keys, "keys"))
    if len(table) != len(target):
        raise InputError(f"target and keys must have as many rows; got {len(target)} and {len(table)}")
    if not table.shape[1]:
        raise InputError("keys must have at least one column; got none")
    table = table.set_axis([f"key{position}" for position in range(table.shape[1])], axis=1).reset_index(drop=True)
    table.insert(0, TARGET, pd.Series(target).reset_index(drop=True))
    return table


def _to_array(values: Any, name: str) -> Any:
    """Return a list or an array as an array of one or two dimensions."""
    array = values if isinstance(values, np.ndarray) else np.array(list(values))
    if array.dtype.kind in "US" and not isinstance(values, np.ndarray):
        array = np.array(list(values), object)  # 1 and "1" are different values
    if array.ndim not in (1, 2):
        raise InputError(f"{name} must have one or two dimensions; got {array.ndim}")
    return array
