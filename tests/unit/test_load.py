from __future__ import annotations

import datetime
import decimal
import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dit_dask.audit.grammar import check_config as check
from dit_dask.errors import InputError
from dit_dask.inputs.load import load
from tests.audits import loaded

SCHEMA = {"quasi_identifiers": {"x": {"kind": "numeric"}}, "sensitive": "s"}
LABELS = {"quasi_identifiers": {"x": {"kind": "categorical"}}, "sensitive": "s"}


def frame(values: list[object], **kind: object) -> pd.DataFrame:
    column = pd.Series(values, **kind)
    return pd.DataFrame({"x": column, "s": ["a", "b"] * (len(values) // 2) + ["a"] * (len(values) % 2)})


def levels(values: list[object], schema: dict = SCHEMA, **kind: object) -> tuple[object, ...]:
    return loaded(frame(values, **kind), schema).table.schema.quasi_identifiers[0].levels


def test_text_becomes_integers_decimals_or_dates_but_never_a_mix() -> None:
    assert levels(["3", "10", "2"]) == (2, 3, 10)
    assert levels(["3", "10.5", "2"]) == (2.0, 3.0, 10.5)
    assert len(levels(["2020-01-02", "2019-12-31", "2020-01-02"])) == 2
    with pytest.raises(InputError, match="must be numbers or ISO dates"):
        levels(["3", "2020-01-02", "5"])


def test_integers_beyond_64_bits_stay_distinct() -> None:
    big = 2**70
    assert levels([str(big), str(big + 1), "7"]) == (7, big, big + 1)
    assert levels([big, big + 1, 7], dtype=object) == (7, big, big + 1)


def test_integers_beyond_floats_keep_exact_widths() -> None:
    rows = loaded(frame([2**60, 2**60 + 1, 2**60 + 3]), SCHEMA)
    np.testing.assert_array_equal(rows.table.schema.quasi_identifiers[0].values, [0.0, 1.0, 3.0])


def test_decimals_beside_integers_that_floats_cannot_hold_are_refused() -> None:
    with pytest.raises(InputError, match=r"beyond 2\^53"):
        levels([str(2**53 + 1), "0.5", "1"])


def test_nullable_and_object_and_decimal_columns_are_numbers_too() -> None:
    assert levels([1, 2, 3], dtype="Int64") == (1, 2, 3)
    assert levels([1, 2, 3], dtype="uint8") == (1, 2, 3)
    assert len(levels([decimal.Decimal("0.1"), decimal.Decimal("0.10"), decimal.Decimal("0.2")], dtype=object)) == 2
    assert len(levels([datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)], dtype=object)) == 2
    assert len(levels(list(pd.to_datetime(["2020-01-01", "2021-01-01"])))) == 2


@pytest.mark.parametrize("values", [[1, "2", 3], [1.5, "x", 2], ["a", 1, 2]])
@pytest.mark.parametrize("schema", [SCHEMA, LABELS])
def test_mixed_types_are_refused(values: list[object], schema: dict) -> None:
    with pytest.raises(InputError, match="mixes types"):
        levels(values, schema, dtype=object)


def test_nan_inf_and_booleans_are_no_numbers() -> None:
    with pytest.raises(InputError, match="finite"):
        levels([1.0, np.inf, 2.0])
    with pytest.raises(InputError, match="booleans"):
        levels([True, False, True])
    with pytest.raises(InputError, match="must be numbers"):
        levels(["1", "nan", "2"])


def test_text_in_a_numeric_column_is_shown_only_if_many_share_it() -> None:
    with pytest.raises(InputError) as rare:
        levels(["1"] * 30 + ["Smith"])
    assert "Smith" not in str(rare.value)
    assert "'x'" in str(rare.value)
    assert "row 30" in str(rare.value)
    with pytest.raises(InputError, match="'Not-Say' in 12 rows"):
        levels(["1"] * 30 + ["Not-Say"] * 12)


def test_only_marks_and_empty_cells_are_missing() -> None:
    table = pd.DataFrame({"x": ["NA", "?", "", "null", "b"], "s": ["a", "b", "a", "b", "a"]})
    rows = loaded(table, LABELS, missing=["?"])
    assert (rows.read, rows.dropped, rows.used) == (5, 2, 3)
    assert rows.table.schema.quasi_identifiers[0].levels == ("NA", "b", "null")


def test_marks_may_differ_by_column() -> None:
    table = pd.DataFrame({"x": ["1", "Not-Say", "3"], "s": ["a", "b", "Not-Say"]})
    rows = loaded(table, SCHEMA, missing={"x": ["Not-Say"]})
    assert rows.table.schema.sensitive.levels == ("Not-Say", "a")
    with pytest.raises(InputError, match="unknown 'y'"):
        loaded(table, SCHEMA, missing={"y": ["?"]})


def test_equal_rows_become_one_record_with_a_weight() -> None:
    rows = loaded(pd.DataFrame({"x": [5, 1, 5, 5], "s": ["a", "b", "a", "b"]}), SCHEMA)
    assert rows.table.weights.tolist() == [1, 2, 1]
    np.testing.assert_array_equal(rows.index, [1, 0, 1, 2])
    assert rows.table.without(1).rows == 3
    assert rows.table.without(0).distinct == 2
    assert rows.table.weights.tolist() == [1, 2, 1]


def test_limit_takes_the_first_complete_rows_and_sample_a_seeded_ordered_choice() -> None:
    table = pd.DataFrame({"x": ["?", *map(str, range(20))], "s": ["a", "b"] * 10 + ["a"]})
    first = loaded(table, SCHEMA, missing=["?"], limit=4)
    assert first.table.schema.quasi_identifiers[0].levels == (0, 1, 2, 3)
    one, same, other = (loaded(table, SCHEMA, missing=["?"], sample={"rows": 10, "seed": seed}) for seed in (1, 1, 2))
    assert one.digest() == same.digest() != other.digest()
    assert (np.diff(one.table.codes[one.index, 0]) > 0).all()
    with pytest.raises(InputError, match="at most the 20 complete rows"):
        loaded(table, SCHEMA, missing=["?"], sample={"rows": 21})


def test_sensitive_values_are_sorted_as_given_or_as_numbers() -> None:
    table = pd.DataFrame({"x": [1, 2, 3], "s": ["10", "9", "100"]})
    assert loaded(table, SCHEMA).table.schema.sensitive.levels == ("9", "10", "100")
    given = {**SCHEMA, "sensitive": {"name": "s", "order": ["100", "9", "8", "10"]}}
    assert loaded(table, given).table.schema.sensitive.levels == ("100", "9", "8", "10")
    with pytest.raises(InputError, match="no place for 1 values of column 's', first in used row 0"):
        loaded(table, {**SCHEMA, "sensitive": {"name": "s", "order": ["9", "100"]}})


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pd.DataFrame({"x": [1, 2], "s": ["a", "a"]}), "is constant"),
        (pd.DataFrame({"x": [], "s": []}), "has no rows"),
        (pd.DataFrame({"x": [None, None], "s": ["a", "b"]}), "no complete row"),
        (pd.DataFrame({"x": [1, None], "s": ["a", "b"]}), "at least 2 complete rows"),
        (pd.DataFrame({"y": [1, 2], "s": ["a", "b"]}), "no column 'x' among 2"),
        (pd.DataFrame([[1, 2, "a"], [1, 2, "b"]], columns=["x", "x", "s"]), "is there 2 times"),
    ],
)
def test_a_table_that_cannot_be_audited_says_why(table: pd.DataFrame, message: str) -> None:
    with pytest.raises(InputError, match=message):
        loaded(table, SCHEMA)


def test_csv_gzip_parquet_and_globs_give_the_same_table(tmp_path: Path) -> None:
    table = pd.DataFrame({"x": [3, 1, 2, 1], "ignored": [0.5] * 4, "s": ["b", "a", "a", "b"]})
    table.to_csv(tmp_path / "all.csv", index=False)
    (tmp_path / "all.csv.gz").write_bytes(gzip.compress((tmp_path / "all.csv").read_bytes()))
    table.to_parquet(tmp_path / "all.parquet")
    table[:2].to_csv(tmp_path / "part-0.csv", index=False)
    table[2:].to_csv(tmp_path / "part-1.csv", index=False)
    (tmp_path / "folder").mkdir()
    table[:2].to_parquet(tmp_path / "folder" / "0.parquet")
    table[2:].to_parquet(tmp_path / "folder" / "1.parquet")
    digests = set()
    for source in ("all.csv", "all.csv.gz", "all.parquet", "part-*.csv", "folder"):
        document = {"version": 1, "data": {"source": source}, "schema": SCHEMA, "tests": [{"sanitizer": "raw"}]}
        digests.add(load(check(document, str(tmp_path))).digest())
    assert len(digests) == 1


def test_nulls_do_not_turn_large_parquet_integers_into_floats(tmp_path: Path) -> None:
    column = pd.array([2**60, 2**60 + 1, None], dtype="Int64")
    pd.DataFrame({"x": column, "s": ["a", "b", "a"]}).to_parquet(tmp_path / "big.parquet")
    document = {"version": 1, "data": {"source": "big.parquet"}, "schema": SCHEMA, "tests": [{"sanitizer": "raw"}]}
    assert load(check(document, str(tmp_path))).table.schema.quasi_identifiers[0].levels == (2**60, 2**60 + 1)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("ragged.csv", b"x,s\n1,a\n2,b,c\n", "ragged.csv, line 3: expected 2 cells; got 3"),
        ("empty.csv", b"", "empty.csv is empty"),
        ("table.json", b"x", r"must be .csv, .tsv \(also .gz or .zst\), .parquet or .xlsx"),
        ("broken.parquet", b"no parquet", "cannot read broken.parquet"),
        ("bytes.csv", b"x,s\n1,\x81\n2,b\n", "bytes.csv is not cp1252 text; set data.csv.encoding"),
        ("table.xlsx", b"x", r"Excel files need openpyxl: pip install 'dit_dask\[excel\]'"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    document = {"version": 1, "data": {"source": name}, "schema": SCHEMA, "tests": [{"sanitizer": "raw"}]}
    with pytest.raises(InputError, match=message) as caught:
        load(check(document, str(tmp_path)))
    assert "\n" not in str(caught.value)


def test_dates_beyond_nanoseconds_are_dates_too() -> None:
    assert len(levels(["9999-12-31", "2020-01-01", "1500-06-01"])) == 3
    assert len(levels([datetime.date(9999, 12, 31), datetime.date(2020, 1, 1)], dtype=object)) == 2


def test_a_file_without_a_header_does_not_show_its_first_person(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("57,Smith\n33,Jones\n")
    document = {"version": 1, "data": {"source": "people.csv"}, "schema": SCHEMA, "tests": [{"sanitizer": "raw"}]}
    with pytest.raises(InputError, match="looks like a row of data") as caught:
        load(check(document, str(tmp_path)))
    assert "Smith" not in str(caught.value)


def test_files_whose_columns_differ_in_kind_are_refused_not_merged(tmp_path: Path) -> None:
    pd.DataFrame({"x": [2**53, 2**53 + 1], "s": ["a", "b"]}).to_parquet(tmp_path / "a.parquet")
    document = {"version": 1, "data": {"source": "*.parquet"}, "schema": SCHEMA, "tests": [{"sanitizer": "raw"}]}
    pd.DataFrame({"x": [0.5, 1.5], "s": ["a", "b"]}).to_parquet(tmp_path / "b.parquet")
    with pytest.raises(InputError, match="is float64 and int64 in different files"):
        load(check(document, str(tmp_path)))
    pd.DataFrame({"x": np.array([2**63 + 1, 7], np.uint64), "s": ["a", "b"]}).to_parquet(tmp_path / "b.parquet")
    assert load(check(document, str(tmp_path))).table.schema.quasi_identifiers[0].levels == (7, 2**53, 2**53 + 1, 2**63 + 1)


def test_a_number_marks_missing_cells_of_float_columns() -> None:
    rows = loaded(pd.DataFrame({"x": [1.0, 999.0, 3.0], "s": ["a", "b", "b"]}), SCHEMA, missing=[999])
    assert (rows.dropped, rows.table.schema.quasi_identifiers[0].levels) == (1, (1.0, 3.0))


def test_what_is_no_single_number_is_refused() -> None:
    with pytest.raises(InputError, match="booleans"):
        levels([True, None, False, True], dtype=object)
    with pytest.raises(InputError, match="must hold single values"):
        levels([[1], [2], [3]], dtype=object)
    with pytest.raises(InputError, match="more than 1000 digits"):
        levels(["1", "9" * 5000])


def test_columns_may_be_named_by_numbers() -> None:
    schema = {"quasi_identifiers": {"1": {"kind": "numeric"}}, "sensitive": "2"}
    assert loaded(pd.DataFrame({1: [1, 2], 2: ["a", "b"]}), schema).used == 2


def test_a_file_whose_name_looks_like_a_pattern_is_read(tmp_path: Path) -> None:
    (tmp_path / "g[1].csv").write_text("x,s\n1,a\n2,b\n")
    document = {"version": 1, "data": {"source": "g[1].csv"}, "schema": SCHEMA, "tests": [{"sanitizer": "raw"}]}
    assert load(check(document, str(tmp_path))).used == 2
