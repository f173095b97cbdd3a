"""Rates of Dask collections, out of core: blocks count their own pairs, hashes bring equal pairs together, tallies remain.

Pairs travel as two independent 64-bit hashes of key and of value, so a shuffle moves numbers only and may spill to disk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.errors import InputError
from dit_dask.execution.runner import allow_large_graphs
from dit_dask.measures.discrimination.contingency import (
    ContingencyTable,
    Profile,
    coded,
    combined,
    left_by_key,
    missing_unhandled,
)
from dit_dask.measures.discrimination.histogram import CountHistogram, Rate, rate
from dit_dask.measures.discrimination.semantic import regrouped

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from dit_dask.values.arrays import Ints

FAN_IN = 4
SEEDS = ("dit-dask-hash-01", "dit-dask-hash-02")
CELL = {"key1": "u8", "key2": "u8", "value1": "u8", "value2": "u8", "count": "i8"}
TALLY = {"what": "i8", "size": "i8", "times": "i8"}
LEFT = {"key1": "u8", "key2": "u8", "count": "i8", "left": "f8"}
LABEL = {"key1": "u8", "key2": "u8", "label": "O"}
KEYS, PAIRS = range(2)
NO_ROWS = "a discrimination rate needs at least one row; the table has none"


@dataclass(frozen=True)
class Question:
    """What is asked of every block: which columns, their types if numbers, how missing cells and values are read."""

    target: str
    keys: tuple[str, ...]
    kinds: Mapping[str, Any]
    missing: str | None
    groups: Mapping[Any, Any] | None = None


def ask(frame: Any, target: str, keys: Sequence[str], missing: str | None, groups: Mapping[Any, Any] | None) -> Question:
    """Ask about the columns of a Dask frame; a number is read as the frame's own type of number in every block."""
    kinds = {name: kind for name, kind in frame.dtypes.items() if isinstance(kind, np.dtype) and kind.kind in "iuf"}
    return Question(target, tuple(keys), kinds, missing, groups)


def rate_of(frame: Any, question: Question, estimator: str = "plug-in") -> Rate:
    """Return the rate of a Dask frame, from tallies alone."""
    blocks = _blocks(frame, question)
    jobs = [Job(blocks, {tallies_of: TALLY}), Job(_by_value(blocks), {tallies_of: TALLY})]
    (cells,), (values,), gone = computed(jobs, [_gone(frame, question)])
    _check(question, values, gone)
    return _rate(cells, values, estimator)


def by_key(frame: Any, question: Question) -> tuple[list[tuple[Any, ...]], Profile]:
    """Return the labels of each key, and the profile over keys; one row a key must fit into memory."""
    blocks = _blocks(frame, question)
    jobs = [Job(blocks, {tallies_of: TALLY, left_of: LEFT}), Job(_by_value(blocks), {tallies_of: TALLY})]
    shown = frame.map_partitions(labels_of, question, meta=_empty(LABEL))
    (cells, left), (values,), gone, labels = computed(jobs, [_gone(frame, question), shown])
    _check(question, values, gone)
    joined = left.merge(labels.drop_duplicates(["key1", "key2"]), on=["key1", "key2"], how="left", validate="one_to_one")
    profile = Profile(_rate(cells, values), joined["count"].to_numpy(float), joined["left"].to_numpy(float))
    return joined["label"].tolist(), profile


def joint_of(frame: Any, question: Question) -> ContingencyTable:
    """Return the joint counts themselves, which must fit into memory: a bootstrap draws from them again and again."""
    (cells,), gone = computed([Job(_blocks(frame, question), {added: CELL})], [_gone(frame, question)])
    _check(question, cells, gone)
    key, value = (cells.groupby([f"{name}1", f"{name}2"]).ngroup().to_numpy() for name in ("key", "value"))
    return ContingencyTable.of(key, value, cells["count"].to_numpy())


def _blocks(frame: Any, question: Question) -> Any:
    return frame.map_partitions(cells_of, question, meta=_empty(CELL))


def _by_value(blocks: Any) -> Any:
    """The values alone, as if they were keys; they are brought together by themselves."""
    return blocks.map_partitions(values_of, meta=_empty(CELL))


@dataclass(frozen=True, eq=False)
class Job:
    """Blocks of pairs, and what is to be found in parts that have all pairs of their keys, with the shape of each."""

    blocks: Any
    finish: Mapping[Callable[[pd.DataFrame], pd.DataFrame], Mapping[str, str]]


def computed(jobs: Sequence[Job], others: Sequence[Any]) -> list[Any]:
    """Compute jobs, and other collections beside them: by a shuffle between workers, or through files of this machine."""
    import tempfile

    import dask
    from dask.utils import get_default_shuffle_method

    if get_default_shuffle_method() == "p2p":  # there is a cluster, whose workers watch their memory
        return _compute(*(_shuffled(job) for job in jobs), *others)
    with tempfile.TemporaryDirectory(prefix="dit-", dir=dask.config.get("temporary-directory", None)) as folder:
        names = [f"{folder}/{place}" for place in range(len(jobs))]
        spilled = [
            job.blocks.map_partitions(spill, name, job.blocks.npartitions, meta=_empty(TALLY))
            for job, name in zip(jobs, names, strict=True)
        ]
        found = _compute(*spilled, *others)
        return [*(_finished(job, name) for job, name in zip(jobs, names, strict=True)), *found[len(jobs) :]]


def _compute(*collections: Any) -> list[Any]:
    """Compute collections; a frame that was in memory before it became a Dask frame is no reason for a warning."""
    import dask

    with allow_large_graphs():
        return list(dask.compute(*collections))


def _shuffled(job: Job) -> list[Any]:
    """Add up a few neighbouring blocks, then bring equal keys together, in as many parts as blocks, and add again."""
    blocks, count = job.blocks, job.blocks.npartitions
    if count > 1:
        blocks = blocks.repartition(npartitions=-(-count // FAN_IN)).map_partitions(added, meta=_empty(CELL))
    if blocks.npartitions > 1:
        blocks = blocks.shuffle("key1", npartitions=count).map_partitions(added, meta=_empty(CELL))
    return [blocks.map_partitions(finish, meta=_empty(shape)) for finish, shape in job.finish.items()]


def _finished(job: Job, folder: str) -> list[pd.DataFrame]:
    """Read back one part after the other, as many at once as there are threads."""
    import dask
    import pandas as pd

    part = dask.delayed(finish_part)
    parts = _compute(*(part(folder, place, list(job.finish)) for place in range(job.blocks.npartitions)))
    return [pd.concat(pieces, ignore_index=True) for pieces in zip(*parts, strict=True)]


def spill(cells: pd.DataFrame, folder: str, parts: int) -> pd.DataFrame:
    """In a block: write its pairs to a file, those of a part side by side, and where each part begins."""
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
    return _empty(TALLY)


def finish_part(folder: str, part: int, finish: Sequence[Callable[[pd.DataFrame], pd.DataFrame]]) -> list[pd.DataFrame]:
    """Bring the pairs of a part together from all files, and find what is asked for."""
    from pathlib import Path

    pieces = []
    for path in sorted(Path(folder).glob("*.starts.npy")):
        start, stop = np.load(path)[part : part + 2]
        pieces.append(np.load(str(path).replace(".starts", ""), mmap_mode="r")[start:stop])
    matrix = np.concatenate(pieces)
    *hashes, count = (np.ascontiguousarray(matrix[:, place]) for place in range(len(CELL)))
    cells = added(_frame(CELL, *hashes, count.view(np.int64)))
    return [function(cells) for function in finish]


def _gone(frame: Any, question: Question) -> Any:
    """How many rows miss a value."""
    return frame[[question.target, *question.keys]].isna().any(axis=1).sum()


def _check(question: Question, found: pd.DataFrame, gone: int) -> None:
    if gone and question.missing is None:
        raise missing_unhandled(int(gone), "the target or a key")
    if not len(found):
        raise InputError(NO_ROWS)


def _rate(cells: pd.DataFrame, values: pd.DataFrame, estimator: str = "plug-in") -> Rate:
    return rate(_tally(values, KEYS), _tally(cells, KEYS), _tally(cells, PAIRS), estimator)


def _tally(frame: pd.DataFrame, what: int) -> CountHistogram:
    mine = frame[frame["what"] == what]
    return CountHistogram.merged([CountHistogram(mine["size"].to_numpy(), mine["times"].to_numpy())])


def _empty(shape: Mapping[str, str]) -> pd.DataFrame:
    return _frame(shape, *([] for _ in shape))


def _frame(shape: Mapping[str, str], *columns: Any) -> pd.DataFrame:
    import pandas as pd

    arrays = {name: np.asarray(cells, kind) for (name, kind), cells in zip(shape.items(), columns, strict=True)}
    return pd.DataFrame(arrays, copy=False)


def cells_of(block: pd.DataFrame, question: Question) -> pd.DataFrame:
    """In a block: the pairs that occur, hashed, with their counts."""
    read = _read(block, question)
    if read is None:
        return _empty(CELL)
    (target, *keys), key = read
    if question.groups is None:
        value_hashes = _hashed(target.labels, question.kinds.get(question.target))
    else:
        value_hashes = _hashed(regrouped(question.groups, _present(target))[:-1], None)
    pairs = ContingencyTable.of(key, target.codes)
    first = np.unique(key, return_index=True)[1]
    key_hashes = _key_hashes(keys, first, question)
    columns = [hashes[pairs.key] for hashes in key_hashes] + [hashes[pairs.value] for hashes in value_hashes]
    cells = _frame(CELL, *columns, pairs.count)
    return cells if question.groups is None else added(cells)  # different values may be one group


def values_of(cells: pd.DataFrame) -> pd.DataFrame:
    """In a block: the values of pairs, standing as keys."""
    one, two, count = (cells[name].to_numpy() for name in ("value1", "value2", "count"))
    return added(_frame(CELL, one, two, one, two, count))


def labels_of(block: pd.DataFrame, question: Question) -> pd.DataFrame:
    """In a block: the labels of each key."""
    read = _read(block, question)
    if read is None:
        return _empty(LABEL)
    (_, *keys), key = read
    first = np.unique(key, return_index=True)[1]
    labels = np.empty(len(first), object)
    for place, row in enumerate(first):
        labels[place] = tuple(column.label(column.codes[row]) for column in keys)
    return _frame(LABEL, *_key_hashes(keys, first, question), labels)


def added(cells: pd.DataFrame) -> pd.DataFrame:
    """Add up the counts of equal pairs."""
    if not len(cells):
        return cells
    hashes = [cells[name].to_numpy() for name in ("key1", "key2", "value1", "value2")]
    number, first = numbered([_stirred(hashes[0], hashes[2]), *hashes])
    total = np.bincount(number, cells["count"].to_numpy()).astype(np.int64)
    return _frame(CELL, *(column[first] for column in hashes), total)


def tallies_of(cells: pd.DataFrame) -> pd.DataFrame:
    """In a part that has all pairs of its keys: how many keys and pairs occur how often."""
    if not len(cells):
        return _empty(TALLY)
    count = cells["count"].to_numpy()
    key, _ = numbered([cells["key1"].to_numpy(), cells["key2"].to_numpy()])
    tallies = {KEYS: CountHistogram.of(np.bincount(key, count)), PAIRS: CountHistogram.of(count)}
    what = np.repeat(list(tallies), [len(tally.sizes) for tally in tallies.values()])
    sizes, times = (np.concatenate([getattr(tally, name) for tally in tallies.values()]) for name in ("sizes", "times"))
    return _frame(TALLY, what, sizes, times)


def left_of(cells: pd.DataFrame) -> pd.DataFrame:
    """In a part that has all pairs of its keys: the rows of each key and the entropy it leaves."""
    if not len(cells):
        return _empty(LEFT)
    hashes, count = [cells[name].to_numpy() for name in ("key1", "key2")], cells["count"].to_numpy()
    key, first = numbered(hashes)
    rows = np.bincount(key, count).astype(np.int64)
    return _frame(LEFT, *(column[first] for column in hashes), rows, left_by_key(key, count))


def numbered(hashes: Sequence[NDArray[np.uint64]]) -> tuple[Ints, Ints]:
    """Number the rows that agree in all hashes, by the first alone unless two rows clash in it; also one row of each."""
    import pandas as pd

    number = pd.factorize(hashes[0])[0]
    first = np.empty(int(number.max()) + 1, np.int64)
    first[number[::-1]] = np.arange(len(number))[::-1]
    if all((column == column[first[number]]).all() for column in hashes[1:]):
        return number, first
    _, first, number = np.unique(np.column_stack(hashes), axis=0, return_index=True, return_inverse=True)
    return number.ravel(), first


def _read(block: pd.DataFrame, question: Question) -> Any:
    """Code a block's columns and combine its keys; None where no row is left."""
    names = [question.target, *question.keys]
    if question.missing == "drop":
        block = block[names].dropna()
    if not len(block):
        return None
    columns = {name: block[name].astype(kind) if (kind := question.kinds.get(name)) else block[name] for name in names}
    found, _ = coded(columns, "category")  # that somebody chose is checked once, for all blocks
    return found, combined([column.codes for column in found[1:]])


def _present(column: Any) -> list[Any]:
    """The labels that occur, None for the others: a category that no row has needs no group."""
    present = np.zeros(column.span, bool)
    present[column.codes] = True
    return [label if here else None for label, here in zip(column.shown(), present, strict=True)]


def _key_hashes(keys: Sequence[Any], first: Ints, question: Question) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Hash the combinations that stand in the rows `first`."""
    total = (np.zeros(len(first), np.uint64), np.zeros(len(first), np.uint64))
    for name, column in zip(question.keys, keys, strict=True):
        hashes = _hashed(column.labels, question.kinds.get(name))
        rows = column.codes[first]
        total = (_stirred(total[0], hashes[0][rows]), _stirred(total[1], hashes[1][rows]))
    return total


def _stirred(total: NDArray[np.uint64], more: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Fold one more hash in; the order counts, and a hash does not cancel itself."""
    return _splitmix(_splitmix(total) ^ more)


def _splitmix(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The output function of splitmix64: one to one, and every bit depends on every bit."""
    mixed = state + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    found: NDArray[np.uint64] = mixed ^ (mixed >> np.uint64(31))
    return found


def _hashed(labels: Any, kind: Any) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Hash labels twice, and missing cells after them; equal labels give equal hashes whatever else a block holds."""
    import pandas as pd

    if kind is not None:
        numbers = np.asarray(labels, kind)
        numbers = numbers + 0.0 if kind.kind == "f" else numbers.astype(np.int64)  # -0.0 and 0.0 are one value
        once = np.append(pd.util.hash_array(numbers), np.uint64(0x5851F42D4C957F2D))  # different numbers never clash here
        return once, _stirred(np.full(len(once), 7, np.uint64), once)
    texts = np.array([*(_named(label) for label in labels), _named(None)], object)
    first, second = (pd.util.hash_array(texts, hash_key=seed, categorize=False) for seed in SEEDS)
    return first, second


def _named(label: Any) -> str:
    """Write a label as text that tells values of different types apart, but not 1 from 1.0."""
    if isinstance(label, str):
        return f"text {label}"
    if isinstance(label, int | float | np.integer | np.floating | np.bool_):
        return f"number {int(label)}" if float(label).is_integer() else f"number {float(label)!r}"
    return f"{type(label).__name__} {label}"


def together(target: Any, keys: Any, name: str) -> Any:
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
        raise InputError(f"target and keys must be cut alike; got {column.npartitions} and {table.npartitions} partitions")
    names = [f"key{place}" for place in range(len(table.columns))]
    shape = {name: column.dtype} | dict(zip(names, table.dtypes, strict=True))
    meta = pd.DataFrame({one: pd.Series(dtype=kind) for one, kind in shape.items()})
    return dd.map_partitions(_beside, column, table, meta=meta, align_dataframes=False)


def _beside(column: pd.Series[Any], table: pd.DataFrame) -> pd.DataFrame:
    """In a block: the target beside its keys, row by row."""
    if len(column) != len(table):
        raise InputError(f"target and keys must have as many rows in every partition; got {len(column)} and {len(table)}")
    table = table.set_axis([f"key{place}" for place in range(table.shape[1])], axis=1).reset_index(drop=True)
    table.insert(0, "target", column.reset_index(drop=True))
    return table
