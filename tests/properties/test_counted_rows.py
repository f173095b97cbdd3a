"""Equal rows are looked at once: every figure is the one that plain rows give, in files of several parts with missing cells."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dit_dask import risk, seeds
from dit_dask.audit.grammar import check_config
from dit_dask.audit.measure_plan import SharedInputs, _digest
from dit_dask.errors import InputError
from dit_dask.inputs.counted import CountedRows, load_counted
from dit_dask.inputs.load import load_with
from dit_dask.kernels import crosstab
from dit_dask.measures.base import MeasureInput
from dit_dask.measures.discrimination import attacks, chance
from dit_dask.measures.discrimination.contingency import ContingencyTable
from dit_dask.measures.discrimination.measure import OfTable, Sampling
from dit_dask.measures.synthetic.accuracy import CountedCodes, Draws, accuracy, collapse_codes, compare_columns
from dit_dask.measures.synthetic.columns import align
from dit_dask.measures.synthetic.tables import InputKey, Roles, prepare_tables
from dit_dask.sanitizers.external.release_reader import ReleaseReader
from dit_dask.values.schema import Attribute, Schema, Secret

SCHEMA = {
    "quasi_identifiers": {"age": {"kind": "numeric"}, "town": {"kind": "categorical"}},
    "sensitive": {"name": "ill"},
}
CELL = st.tuples(
    st.sampled_from([20, 30, 30, 40, None]),
    st.sampled_from(["Bonn", "Lyon", "?", None, "Nice"]),
    st.sampled_from(["flu", "cold", "none"]),
    st.sampled_from([1.5, 2.5, None]),
    st.sampled_from(["a", "b", "?"]),
)
NAMES = ["age", "town", "ill", "pay", "shoe"]
ROWS = st.lists(CELL, min_size=3, max_size=30)


def written(folder: str, parts: list[list[tuple[Any, ...]]], kind: str) -> pd.DataFrame:
    """Write a file for each part; return all of their rows."""
    frames = [pd.DataFrame(rows, columns=NAMES).astype({"age": "Int64", "pay": "float64"}) for rows in parts]
    for number, frame in enumerate(frames):
        path = Path(folder) / f"{number}.{kind}"
        frame.to_parquet(path) if kind == "parquet" else frame.to_csv(path, index=False)
    return pd.concat(frames, ignore_index=True)


def config_of(folder: str, kind: str, **data: Any) -> Any:
    document = {
        "version": 1,
        "data": {"source": f"*.{kind}", "missing": ["?"], **data},
        "schema": SCHEMA,
        "tests": [{"sanitizer": {"name": "mondrian", "k": 2}, "adversary": "bernoulli-nb"}],
    }
    return check_config(document, folder)


def usable(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[frame["age"].notna() & frame["town"].notna() & (frame["town"] != "?")]


@settings(max_examples=25, deadline=None)
@given(ROWS, ROWS, st.sampled_from(["parquet", "csv"]), st.sampled_from([None, 4]))
def test_counted_rows_are_the_rows_and_have_their_digest(
    first: list[tuple[Any, ...]], second: list[tuple[Any, ...]], kind: str, limit: int | None
) -> None:
    with TemporaryDirectory() as folder:
        used = usable(written(folder, [first, second], kind))
        assume(len(used) > 1 and used["ill"].nunique() > 1 and used["ill"].iloc[:limit].nunique() > 1)
        config = config_of(folder, kind, **({} if limit is None else {"limit": limit}))
        rows, counted = load_counted(config, ["pay", "shoe"])
        _, plain = load_with(config, ["pay", "shoe"])
        pd.testing.assert_frame_equal(counted.expand(), plain)
        assert len(counted) == len(plain) == len(used.iloc[:limit])
        assert len(counted.frame) <= len(used[NAMES].drop_duplicates())
        assert counted.first.tolist() == sorted(counted.first)  # in the order in which they appear
        kept = np.arange(len(plain)) % 3 != 1
        pd.testing.assert_frame_equal(counted.only(kept).expand(), plain[kept].reset_index(drop=True))
        content = hashlib.sha256(repr(list(plain.columns)).encode())  # as it was before rows were counted
        for column in plain.columns:
            cells = plain[column]
            texts = cells.astype(str).where(cells.notna(), "\0") if cells.dtype == object else cells
            content.update(pd.util.hash_pandas_object(texts, index=False).to_numpy().tobytes())
        content.update(b"[]")
        assert _digest(SharedInputs(counted, rows, [], 0), [], []) == content.hexdigest()


def entropy(sizes: Any) -> float:
    return -math.fsum(size / sum(sizes) * math.log2(size / sum(sizes)) for size in sizes)


def rate_of(frame: pd.DataFrame, keys: list[str], target: str | None) -> float:
    """1 - H(target | keys) / H(target), from groups of rows."""
    values = frame.assign(target=range(len(frame)) if target is None else frame[target])
    before = entropy(Counter(values["target"]).values())
    if not before:
        return 1.0
    sizes = [list(Counter(group["target"]).values()) for _, group in values.groupby(keys)]
    return 1 - math.fsum(sum(one) * entropy(one) for one in sizes) / len(frame) / before


@settings(max_examples=25, deadline=None)
@given(ROWS, ROWS, st.sampled_from([None, "ill"]), st.sampled_from(["category", "drop"]), st.booleans())
def test_risk_of_counted_rows_is_that_of_groups(
    first: list[tuple[Any, ...]], second: list[tuple[Any, ...]], target: str | None, missing: str, has_id: bool
) -> None:
    with TemporaryDirectory() as folder:
        frame = written(folder, [first, second], "parquet")
        if has_id:  # a column whose cells do not repeat is kept apart
            frame["id"] = [f"p{row}" for row in range(len(frame))]
            (Path(folder) / "1.parquet").unlink()
            frame.to_parquet(Path(folder) / "0.parquet")
        config = config_of(folder, "parquet")
        cells = frame.astype(object).where(frame.notna() & (frame != "?"), None)
        cells = cells.dropna() if missing == "drop" else cells.map(str)
        assume(len(cells) > 1)
        found = risk.assess(config, risk.Scope(target, size=2, missing=missing))
        assert found.rows == len(cells)
        for one in (*found.single, *found.combined.get(2, ())):
            keys = list(one.keys)
            sizes = cells.groupby(keys).size()
            assert (one.values, one.alone) == (len(sizes), (sizes == 1).sum() / len(cells))
            assert one.rate == pytest.approx(max(0.0, rate_of(cells, keys, target)), abs=1e-12)
            if target is None:
                assert one.sensitive["ill"][0] == pytest.approx(max(0.0, rate_of(cells, keys, "ill")), abs=1e-12)


@settings(max_examples=25, deadline=None)
@given(ROWS, ROWS, st.sampled_from(["category", "drop"]), st.sampled_from([None, "town"]), st.booleans())
def test_counted_rows_give_the_same_bits_as_plain_ones(
    first: list[tuple[Any, ...]], second: list[tuple[Any, ...]], missing: str, target: str | None, show_values: bool
) -> None:
    with TemporaryDirectory() as folder:
        used = usable(written(folder, [first, second], "parquet"))
        assume(len(used) > 1 and used["ill"].nunique() > 1)
        if missing == "drop":
            assume((used["pay"].notna() & (used["shoe"] != "?")).any())
        rows, counted = load_counted(config_of(folder, "parquet"), ["pay", "shoe"])
    keys = ("age", "pay", "shoe")
    measure = OfTable(target, keys, None, missing, Sampling("plug-in", 0.9, 50), show_values)
    results = [
        measure.find(MeasureInput(cells, rows, {}, None, 1, "m")) for cells in (counted, CountedRows.of(counted.expand()))
    ]
    assert [(one.value, one.by_value, one.records, one.more) for one in results[:1]] == [
        (one.value, one.by_value, one.records, one.more) for one in results[1:]
    ]
    for name in results[0].columns:
        np.testing.assert_array_equal(*(one.rows_of(name) for one in results))
    plain = counted.expand().astype(object).where(counted.expand().notna(), "(missing)")
    plain = (
        plain[(plain[[*keys, *([] if target is None else [target])]] != "(missing)").all(axis=1)]
        if missing == "drop"
        else plain
    )
    assert results[0].records == len(plain)
    assert results[0].value == pytest.approx(max(0.0, rate_of(plain, list(keys), target)), abs=1e-12)


@settings(max_examples=15, deadline=None)
@given(ROWS, ROWS, ROWS, st.integers(2, 4))
def test_accuracy_of_counted_rows_is_that_of_the_rows(
    first: list[tuple[Any, ...]], second: list[tuple[Any, ...]], third: list[tuple[Any, ...]], bins: int
) -> None:
    kinds = {"age": "numeric", "town": "categorical", "pay": "numeric", "shoe": "categorical"}
    with TemporaryDirectory() as folder:
        used = usable(written(folder, [first, second], "parquet"))
        assume(len(used) > 1 and used["ill"].nunique() > 1 and used["pay"].notna().any() and (used["shoe"] != "?").any())
        synthetic = pd.DataFrame(third, columns=NAMES).replace({"?": None})
        assume(
            synthetic[["age", "pay", "town", "shoe"]].notna().any().all() and len(synthetic.dropna(subset=["age", "town"])) > 1
        )
        rows, counted = load_counted(config_of(folder, "parquet"), list(kinds))
    inputs = MeasureInput(counted, rows, {"synthetic": synthetic.astype({"age": "float64"})}, None, 1, "m")
    tables = prepare_tables(InputKey(inputs), Roles(tuple(kinds.items())))
    assert tables is not None
    found = compare_columns(tables.align(), bins, (1, 2, 3), Draws(seed=5), discriminator=False)
    plain = accuracy(tables.original, tables.synthetic, bins, kinds=kinds, seed=5)
    for name in (
        "tvd",
        "hellinger",
        "noise",
        "expected",
        "scores",
        "expected_scores",
        "rows",
        "unseen",
        "doubts",
        "noise_rows",
    ):
        assert getattr(found, name) == getattr(plain, name), name
    assert found.rows == (len(usable(used)), len(synthetic.dropna(subset=["age", "town"])))


def test_the_holdout_is_taken_of_rows_and_not_of_distinct_ones() -> None:
    frame = pd.DataFrame({"age": [1, 1, 1, 2, 2, 3] * 5, "ill": ["a", "b"] * 15})
    index = frame.groupby(["age", "ill"], sort=False).ngroup().to_numpy(np.int32)
    counted = CountedRows(frame.drop_duplicates().reset_index(drop=True), index)
    rows = SimpleNamespace(
        table=SimpleNamespace(schema=SimpleNamespace(quasi_identifiers=[])), columns_of_secrets=["ill"], used=30, by_secret={}
    )
    inputs = (
        MeasureInput(one, cast("Any", rows), {"synthetic": frame}, None, 1, "m") for one in (counted, CountedRows.of(frame))
    )
    roles = Roles((("age", "numeric"), ("ill", "categorical")), fraction=0.3)
    one, other = (cast("Any", prepare_tables(InputKey(each), roles)) for each in inputs)
    pd.testing.assert_frame_equal(one.original, other.original)
    pd.testing.assert_frame_equal(one.holdout, other.holdout)
    assert one.positions.tolist() == other.positions.tolist()
    assert len(one.holdout) == 9


def test_cells_that_cannot_be_read_are_counted_in_rows() -> None:
    frame = pd.DataFrame({"age": ["1", "old", "old", "2"]}, dtype=object)
    counted = CountedRows(pd.DataFrame({"age": ["1", "old", "2"]}, dtype=object), np.array([0, 1, 1, 2], np.int32))
    rows = SimpleNamespace(
        table=SimpleNamespace(schema=SimpleNamespace(quasi_identifiers=[])), columns_of_secrets=[], used=4, by_secret={}
    )
    inputs = MeasureInput(counted, cast("Any", rows), {"synthetic": frame}, None, 1, "m")
    with pytest.raises(InputError, match="got 2 cells of other text, first in its row 1"):
        prepare_tables(InputKey(inputs), Roles((("age", "numeric"),)))


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=2, max_size=40), st.data())
def test_parts_of_counted_codes_are_those_of_permuted_rows(pairs: list[tuple[int, int]], data: st.DataObject) -> None:
    codes = np.array(pairs, np.int32)
    counted = collapse_codes(codes, np.ones(len(codes), np.int64))
    size = data.draw(st.integers(1, len(codes) - 1))
    order = seeds.stream(3, "x").permutation(len(codes))
    ordered = codes[np.lexsort(codes.T)][order]
    assert seeds.shuffled(seeds.stream(3, "x"), len(codes)).tolist() == order.tolist()
    sides = counted.split(order, size)
    for side, part in zip(sides, (ordered[:size], ordered[size:]), strict=True):
        assert as_counter(side) == Counter(map(tuple, part.tolist()))
    sizes, columns = np.array([3, 3]), np.array([[0], [1]])
    ones = [np.ones(len(part), np.int64) for part in (ordered[:size], ordered[size:])]
    plain = crosstab.divergences(
        np.ascontiguousarray(ordered[:size]), np.ascontiguousarray(ordered[size:]), *ones, sizes, columns
    )
    weighted = crosstab.divergences(sides[0].codes, sides[1].codes, sides[0].counts, sides[1].counts, sizes, columns)
    assert plain.tolist() == weighted.tolist()


def as_counter(side: CountedCodes) -> Counter[tuple[int, ...]]:
    return Counter({tuple(row): int(count) for row, count in zip(side.codes.tolist(), side.counts, strict=True) if count})


CONTINGENCY = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=3, max_size=60)


@given(CONTINGENCY, st.sampled_from(["plug-in", "grassberger"]), st.booleans())
def test_shuffled_rates_are_those_of_shuffled_rows(pairs: list[tuple[int, int]], estimator: str, is_sparse: bool) -> None:
    key, value = (np.array(column, np.int64) for column in zip(*pairs, strict=True))
    key = pd.factorize(key * 1000 if is_sparse else key)[0] * (100 if is_sparse else 1)  # more cells than rows are sorted
    table = ContingencyTable.of(key, value)

    def worst(one: ContingencyTable) -> float:
        return max(
            one.group_values((np.arange(one.value.max() + 1) != number).astype(np.int64)).profile(estimator).rate.value
            for number in np.unique(one.value)
        )

    assume(len(np.unique(value)) < len(value) and len(np.unique(key)) < len(key))
    rates = attacks.partition_rates(table, estimator)
    assert max(rate.value for rate in rates.values()) == worst(table)
    keys, values, rng = np.repeat(table.key, table.count), np.repeat(table.value, table.count), seeds.stream(1, "chance")
    expected = np.mean([worst(ContingencyTable.of(keys, rng.permutation(values))) for _ in range(chance.SHUFFLES)])
    found = chance.chance_by_shuffling(
        table,
        lambda one: max(rate.value for rate in attacks.partition_rates(one, estimator).values()),
        seeds.stream(1, "chance"),
    )
    assert found == expected


def test_a_release_is_read_from_its_distinct_rows() -> None:
    ages = Attribute("age", "numeric", (1, 2, 3, 4), np.array([0.0, 1, 2, 3]))
    schema = Schema((ages,), Secret("ill", ("cold", "flu")))
    distinct = pd.DataFrame({"age": ["[1, 2]", "[1, 2]", "3", "*"], "ill": ["flu", "cold", "flu", "cold"]})
    counts = np.array([3, 2, 4, 5])
    frame = distinct.loc[np.repeat(np.arange(4), counts)].reset_index(drop=True)
    one, other = ReleaseReader(schema, {})(frame), ReleaseReader(schema, {})(distinct, counts)
    assert one.fingerprint() == other.fingerprint()
    assert (other.rows, other.suppressed) == (9, 5)


def test_buckets_and_labels_of_counted_cells_are_those_of_all_cells() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.integers(0, 30, 500).astype(float), "c": rng.choice(list("abcdefgh"), 500)})
    frame.loc[rng.random(500) < 0.1, ["x", "c"]] = None
    distinct = frame.drop_duplicates().reset_index(drop=True)
    texts = frame.astype(str)
    counts = texts.value_counts(dropna=False)
    weights = counts[list(distinct.astype(str).itertuples(index=False, name=None))].to_numpy()
    for bins, ways in itertools.product((2, 5, 20), (1, 2)):
        columns = align({"original": distinct, "synthetic": frame[:50]}, counts={"original": weights})
        found = compare_columns(columns, bins, ways, Draws(), discriminator=bins == 5)
        plain = accuracy(frame, frame[:50], bins, ways, discriminator=bins == 5)
        assert (found.scores, found.noise, found.expected_scores, found.discriminator) == (
            plain.scores,
            plain.noise,
            plain.expected_scores,
            plain.discriminator,
        )
