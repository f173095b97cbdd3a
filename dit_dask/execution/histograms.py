"""Rates of Dask collections, out of core: blocks count their pairs, equal pairs are added by hash, histograms remain.

Pairs travel as two independent 64-bit hashes of key and of value, so a shuffle moves numbers only and may spill to disk.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.errors import InputError
from dit_dask.execution.cluster_session import allow_large_graphs
from dit_dask.measures.discrimination.contingency import (
    ARGUMENT,
    ContingencyTable,
    Profile,
    encode_columns,
    entropy_by_key,
    missing_values_error,
    number_combinations,
)
from dit_dask.measures.discrimination.histogram import CountHistogram, Rate
from dit_dask.measures.discrimination.histogram import compute_rate as compute_rate_from_histograms
from dit_dask.measures.discrimination.semantic import assign_groups

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from dit_dask.values.arrays import Ints

FAN_IN = 4
SEEDS = ("dit-dask-hash-01", "dit-dask-hash-02")
CELL = {"key1": "u8", "key2": "u8", "value1": "u8", "value2": "u8", "count": "i8"}
HISTOGRAM = {"counted": "i8", "size": "i8", "times": "i8"}
ENTROPY = {"key1": "u8", "key2": "u8", "count": "i8", "entropy": "f8"}
LABEL = {"key1": "u8", "key2": "u8", "label": "O"}
KEYS, PAIRS = range(2)
NO_ROWS = "a discrimination rate needs at least one row; the table has none"


@dataclass(frozen=True)
class ColumnSpec:
    """Which columns every block counts, their types if numeric, and how missing cells and values are read."""

    target: str
    keys: tuple[str, ...]
    kinds: Mapping[str, Any]
    missing: str | None
    groups: Mapping[Any, Any] | None = None


def describe_columns(
    frame: Any, target: str, keys: Sequence[str], missing: str | None, groups: Mapping[Any, Any] | None
) -> ColumnSpec:
    """Describe the columns of a Dask frame; a number has the frame's numeric type in every block."""
    kinds = {name: kind for name, kind in frame.dtypes.items() if isinstance(kind, np.dtype) and kind.kind in "iuf"}
    return ColumnSpec(target, tuple(keys), kinds, missing, groups)


def compute_rate(frame: Any, spec: ColumnSpec, estimator: str = "plug-in") -> Rate:
    """Return the rate of a Dask frame, from histograms alone."""
    blocks = _count_blocks(frame, spec)
    jobs = [Job(blocks, {count_histograms: HISTOGRAM}), Job(_count_values(blocks), {count_histograms: HISTOGRAM})]
    (cells,), (values,), missing = compute_jobs(jobs, [_count_missing(frame, spec)])
    _check(spec, values, missing)
    return _rate(cells, values, estimator)


def profile_keys(frame: Any, spec: ColumnSpec) -> tuple[list[tuple[Any, ...]], Profile]:
    """Return the labels of each key, and the profile over keys; one row a key must fit into memory."""
    blocks = _count_blocks(frame, spec)
    jobs = [
        Job(blocks, {count_histograms: HISTOGRAM, entropies_of_keys: ENTROPY}),
        Job(_count_values(blocks), {count_histograms: HISTOGRAM}),
    ]
    labelled = frame.map_partitions(label_keys, spec, meta=_empty(LABEL))
    (cells, entropies), (values,), missing, labels = compute_jobs(jobs, [_count_missing(frame, spec), labelled])
    _check(spec, values, missing)
    joined = entropies.merge(labels.drop_duplicates(["key1", "key2"]), on=["key1", "key2"], how="left", validate="one_to_one")
    profile = Profile(_rate(cells, values), joined["count"].to_numpy(float), joined["entropy"].to_numpy(float))
    return joined["label"].tolist(), profile


def count_pairs(frame: Any, spec: ColumnSpec) -> ContingencyTable:
    """Return the contingency table, which must fit into memory: a bootstrap draws from it many times."""
    (cells,), missing = compute_jobs([Job(_count_blocks(frame, spec), {add_counts: CELL})], [_count_missing(frame, spec)])
    _check(spec, cells, missing)
    key, value = (cells.groupby([f"{name}1", f"{name}2"]).ngroup().to_numpy() for name in ("key", "value"))
    return ContingencyTable.of(key, value, cells["count"].to_numpy())


def _count_blocks(frame: Any, spec: ColumnSpec) -> Any:
    return frame.map_partitions(count_cells, spec, meta=_empty(CELL))


def _count_values(blocks: Any) -> Any:
    """Count the values alone, in the place of keys."""
    return blocks.map_partitions(values_as_keys, meta=_empty(CELL))


@dataclass(frozen=True, eq=False)
class Job:
    """Blocks of pairs, and functions of parts that have all pairs of their keys, with the columns that each returns."""

    blocks: Any
    finish: Mapping[Callable[[pd.DataFrame], pd.DataFrame], Mapping[str, str]]


def compute_jobs(jobs: Sequence[Job], others: Sequence[Any]) -> list[Any]:
    """Compute jobs, and other collections with them: by a shuffle between workers, or through files of this machine."""
    import tempfile

    import dask
    from dask.utils import get_default_shuffle_method

    if get_default_shuffle_method() == "p2p":  # there is a cluster, whose workers watch their memory
        return _compute(*(_shuffle(job) for job in jobs), *others)
    with tempfile.TemporaryDirectory(prefix="dit-", dir=dask.config.get("temporary-directory", None)) as folder:
        names = [f"{folder}/{index}" for index in range(len(jobs))]
        spilled = [
            job.blocks.map_partitions(spill, name, job.blocks.npartitions, meta=_empty(HISTOGRAM))
            for job, name in zip(jobs, names, strict=True)
        ]
        results = _compute(*spilled, *others)
        return [*(_finish_parts(job, name) for job, name in zip(jobs, names, strict=True)), *results[len(jobs) :]]


def _compute(*collections: Any) -> list[Any]:
    """Compute collections; a frame that was in memory before it became a Dask frame is no reason for a warning."""
    import dask

    with allow_large_graphs():
        return list(dask.compute(*collections))


def _shuffle(job: Job) -> list[Any]:
    """Add a few neighbouring blocks, then shuffle by key, into as many parts as blocks, and add again."""
    blocks, count = job.blocks, job.blocks.npartitions
    if count > 1:
        blocks = blocks.repartition(npartitions=-(-count // FAN_IN)).map_partitions(add_counts, meta=_empty(CELL))
    if blocks.npartitions > 1:
        blocks = blocks.shuffle("key1", npartitions=count).map_partitions(add_counts, meta=_empty(CELL))
    return [blocks.map_partitions(finish, meta=_empty(shape)) for finish, shape in job.finish.items()]


def _finish_parts(job: Job, folder: str) -> list[pd.DataFrame]:
    """Read back one part after the other, as many at once as there are threads."""
    import dask
    import pandas as pd

    part = dask.delayed(finish_part)
    parts = _compute(*(part(folder, index, list(job.finish)) for index in range(job.blocks.npartitions)))
    return [pd.concat(pieces, ignore_index=True) for pieces in zip(*parts, strict=True)]


def spill(cells: pd.DataFrame, folder: str, parts: int) -> pd.DataFrame:
    """In a block: write its pairs to a file, sorted by part, and the start of each part to another."""
    from pathlib import Path
    from uuid import uuid4

    Path(folder).mkdir(exist_ok=True)
    part = (cells["key1"].to_numpy() % np.uint64(parts)).astype(np.int64)
    order = np.argsort(part, kind="stable")
    matrix = np.column_stack([cells[name].to_numpy().view(np.uint64) for name in CELL])[order]
    starts = np.searchsorted(part[order], np.arange(parts + 1))
    name = uuid4().hex
    np.save(f"{folder}/{name}.npy", matrix)
    np.save(f"{folder}/{name}.starts.npy", starts)
    return _empty(HISTOGRAM)


def finish_part(folder: str, part: int, finish: Sequence[Callable[[pd.DataFrame], pd.DataFrame]]) -> list[pd.DataFrame]:
    """Read the pairs of a part from all files and apply the functions of the job."""
    from pathlib import Path

    pieces = []
    for path in sorted(Path(folder).glob("*.starts.npy")):
        start, stop = np.load(path)[part : part + 2]
        pieces.append(np.load(str(path).replace(".starts", ""), mmap_mode="r")[start:stop])
    matrix = np.concatenate(pieces)
    *hashes, count = (np.ascontiguousarray(matrix[:, position]) for position in range(len(CELL)))
    cells = add_counts(_frame(CELL, *hashes, count.view(np.int64)))
    return [function(cells) for function in finish]


def _count_missing(frame: Any, spec: ColumnSpec) -> Any:
    """Count the rows that miss a value."""
    return frame[[spec.target, *spec.keys]].isna().any(axis=1).sum()


def _check(spec: ColumnSpec, counts: pd.DataFrame, missing: int) -> None:
    if missing and spec.missing is None:
        raise missing_values_error(int(missing), "the target or a key", ARGUMENT)
    if not len(counts):
        raise InputError(NO_ROWS)


def _rate(cells: pd.DataFrame, values: pd.DataFrame, estimator: str = "plug-in") -> Rate:
    return compute_rate_from_histograms(
        _read_histogram(values, KEYS), _read_histogram(cells, KEYS), _read_histogram(cells, PAIRS), estimator
    )


def _read_histogram(frame: pd.DataFrame, counted: int) -> CountHistogram:
    selected = frame[frame["counted"] == counted]
    return CountHistogram.merge([CountHistogram(selected["size"].to_numpy(), selected["times"].to_numpy())])


def _empty(shape: Mapping[str, str]) -> pd.DataFrame:
    return _frame(shape, *([] for _ in shape))


def _frame(shape: Mapping[str, str], *columns: Any) -> pd.DataFrame:
    import pandas as pd

    arrays = {name: np.asarray(cells, kind) for (name, kind), cells in zip(shape.items(), columns, strict=True)}
    return pd.DataFrame(arrays, copy=False)


def count_cells(block: pd.DataFrame, spec: ColumnSpec) -> pd.DataFrame:
    """In a block: the pairs that occur, hashed, with their counts."""
    read = _encode_block(block, spec)
    if read is None:
        return _empty(CELL)
    (target, *keys), key = read
    if spec.groups is None:
        value_hashes = _hash_labels(target.labels, spec.kinds.get(spec.target))
    else:
        value_hashes = _hash_labels(assign_groups(spec.groups, _present_labels(target))[:-1], None)
    pairs = ContingencyTable.of(key, target.codes)
    first = np.unique(key, return_index=True)[1]
    key_hashes = _hash_keys(keys, first, spec)
    columns = [hashes[pairs.key] for hashes in key_hashes] + [hashes[pairs.value] for hashes in value_hashes]
    cells = _frame(CELL, *columns, pairs.count)
    return cells if spec.groups is None else add_counts(cells)  # different values may be one group


def values_as_keys(cells: pd.DataFrame) -> pd.DataFrame:
    """In a block: the values of pairs, in the place of keys."""
    first, second, count = (cells[name].to_numpy() for name in ("value1", "value2", "count"))
    return add_counts(_frame(CELL, first, second, first, second, count))


def label_keys(block: pd.DataFrame, spec: ColumnSpec) -> pd.DataFrame:
    """In a block: the labels of each key."""
    read = _encode_block(block, spec)
    if read is None:
        return _empty(LABEL)
    (_, *keys), key = read
    first = np.unique(key, return_index=True)[1]
    labels = np.empty(len(first), object)
    for index, row in enumerate(first):
        labels[index] = tuple(column.label(column.codes[row]) for column in keys)
    return _frame(LABEL, *_hash_keys(keys, first, spec), labels)


def add_counts(cells: pd.DataFrame) -> pd.DataFrame:
    """Add the counts of equal pairs."""
    if not len(cells):
        return cells
    hashes = [cells[name].to_numpy() for name in ("key1", "key2", "value1", "value2")]
    number, first = number_rows([_combine_hashes(hashes[0], hashes[2]), *hashes])
    total = np.bincount(number, cells["count"].to_numpy()).astype(np.int64)
    return _frame(CELL, *(column[first] for column in hashes), total)


def count_histograms(cells: pd.DataFrame) -> pd.DataFrame:
    """In a part that has all pairs of its keys: how many keys and pairs occur how often."""
    if not len(cells):
        return _empty(HISTOGRAM)
    count = cells["count"].to_numpy()
    key, _ = number_rows([cells["key1"].to_numpy(), cells["key2"].to_numpy()])
    histograms = {KEYS: CountHistogram.of(np.bincount(key, count)), PAIRS: CountHistogram.of(count)}
    counted = np.repeat(list(histograms), [len(histogram.sizes) for histogram in histograms.values()])
    sizes, times = (
        np.concatenate([getattr(histogram, name) for histogram in histograms.values()]) for name in ("sizes", "times")
    )
    return _frame(HISTOGRAM, counted, sizes, times)


def entropies_of_keys(cells: pd.DataFrame) -> pd.DataFrame:
    """In a part that has all pairs of its keys: the rows of each key and its conditional entropy."""
    if not len(cells):
        return _empty(ENTROPY)
    hashes, count = [cells[name].to_numpy() for name in ("key1", "key2")], cells["count"].to_numpy()
    key, first = number_rows(hashes)
    rows = np.bincount(key, count).astype(np.int64)
    return _frame(ENTROPY, *(column[first] for column in hashes), rows, entropy_by_key(key, count))


def number_rows(hashes: Sequence[NDArray[np.uint64]]) -> tuple[Ints, Ints]:
    """Number the rows that agree in all hashes, by the first hash alone unless it collides; also return one row of each."""
    import pandas as pd

    number = pd.factorize(hashes[0])[0]
    first = np.empty(int(number.max()) + 1, np.int64)
    first[number[::-1]] = np.arange(len(number))[::-1]
    if all((column == column[first[number]]).all() for column in hashes[1:]):
        return number, first
    _, first, number = np.unique(np.column_stack(hashes), axis=0, return_index=True, return_inverse=True)
    return number.ravel(), first


def _encode_block(block: pd.DataFrame, spec: ColumnSpec) -> Any:
    """Encode a block's columns and combine its keys; None where no row is left."""
    names = [spec.target, *spec.keys]
    if spec.missing == "drop":
        block = block[names].dropna()
    if not len(block):
        return None
    columns = {name: block[name].astype(kind) if (kind := spec.kinds.get(name)) else block[name] for name in names}
    encoded, _ = encode_columns(columns, "category")  # whether `missing` is set is checked once, for all blocks
    return encoded, number_combinations([column.codes for column in encoded[1:]])


def _present_labels(column: Any) -> list[Any]:
    """Return the labels that occur, None for the others: a category without rows needs no group."""
    present = np.zeros(column.span, bool)
    present[column.codes] = True
    return [label if here else None for label, here in zip(column.all_labels(), present, strict=True)]


def _hash_keys(keys: Sequence[Any], first: Ints, spec: ColumnSpec) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Hash the combinations of keys in the rows `first`."""
    total = (np.zeros(len(first), np.uint64), np.zeros(len(first), np.uint64))
    for name, column in zip(spec.keys, keys, strict=True):
        hashes = _hash_labels(column.labels, spec.kinds.get(name))
        rows = column.codes[first]
        total = (_combine_hashes(total[0], hashes[0][rows]), _combine_hashes(total[1], hashes[1][rows]))
    return total


def _combine_hashes(total: NDArray[np.uint64], more: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Combine two hashes; the order matters, and equal hashes do not cancel."""
    return _splitmix(_splitmix(total) ^ more)


def _splitmix(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Apply the output function of splitmix64: a bijection in which every bit depends on every bit."""
    mixed = state + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    result: NDArray[np.uint64] = mixed ^ (mixed >> np.uint64(31))
    return result


def _hash_labels(labels: Any, kind: Any) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Hash labels twice, and missing cells after them; equal labels give equal hashes whatever else a block holds."""
    import pandas as pd

    if kind is not None:
        numbers = np.asarray(labels, kind)
        numbers = numbers + 0.0 if kind.kind == "f" else numbers.astype(np.int64)  # -0.0 and 0.0 are one value
        once = np.append(pd.util.hash_array(numbers), np.uint64(0x5851F42D4C957F2D))  # different numbers have different hashes
        return once, _combine_hashes(np.full(len(once), 7, np.uint64), once)
    texts = np.array([*(_label_text(label) for label in labels), _label_text(None)], object)
    first, second = (pd.util.hash_array(texts, hash_key=seed, categorize=False) for seed in SEEDS)
    return first, second


def _label_text(label: Any) -> str:
    """Write a label as text that differs between types of values, but not between 1 and 1.0."""
    if isinstance(label, str):
        return f"text {label}"
    if isinstance(label, decimal.Decimal) and (not label.is_finite() or decimal.Decimal(float(label)) != label):
        return f"decimal {label.normalize()}"  # no float is equal to it
    if isinstance(label, int | float | decimal.Decimal | np.integer | np.floating | np.bool_):
        return f"number {int(label)}" if label == label // 1 else f"number {float(label)!r}"
    if isinstance(label, datetime.datetime):  # a Timestamp is one, and equal to it; so is the same moment in another zone
        return f"time {(label if label.tzinfo is None else label.astimezone(datetime.UTC)).isoformat()}"
    return f"{type(label).__name__} {label}"


def join_columns(target: Any, keys: Any, name: str) -> Any:
    """Put a Dask target and keys into one Dask frame, the keys named key0, key1, …"""
    import dask.dataframe as dd
    import pandas as pd

    table = dd.from_dask_array(keys) if not hasattr(keys, "dtypes") else keys
    table = table.to_frame() if getattr(table, "ndim", 2) == 1 else table
    column = dd.from_dask_array(target) if not hasattr(target, "dtypes") else target
    if getattr(column, "ndim", 1) != 1:
        raise InputError(f"target must be one column; got {len(column.columns)}")
    if not len(table.columns):
        raise InputError("keys must have at least one column; got none")
    if column.npartitions != table.npartitions:
        raise InputError(
            f"target and keys must have the same number of partitions; got {column.npartitions} and {table.npartitions}"
        )
    names = [f"key{position}" for position in range(len(table.columns))]
    shape = {name: column.dtype} | dict(zip(names, table.dtypes, strict=True))
    meta = pd.DataFrame({column_name: pd.Series(dtype=kind) for column_name, kind in shape.items()})
    return dd.map_partitions(_join_block, column, table, meta=meta, align_dataframes=False)


def _join_block(column: pd.Series[Any], table: pd.DataFrame) -> pd.DataFrame:
    """In a block: put the target before its keys."""
    if len(column) != len(table):
        raise InputError(f"target and keys must have as many rows in every partition; got {len(column)} and {len(table)}")
    table = table.set_axis([f"key{position}" for position in range(table.shape[1])], axis=1).reset_index(drop=True)
    table.insert(0, "target", column.reset_index(drop=True))
    return table
