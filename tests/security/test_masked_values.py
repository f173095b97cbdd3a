"""Cells of people that try to leave through errors of the input, of external code and of a missing header."""

from __future__ import annotations

import gzip
import io
import pickle
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from fsspec.implementations.local import LocalFileSystem

import dit_dask as dit
from dit_dask.audit.grammar import check_config
from dit_dask.cli import main
from dit_dask.config.data import CsvConfig
from dit_dask.errors import DitError, ExternalSanitizerError, InputError, RunError, describe
from dit_dask.inputs.header import read_header
from dit_dask.inputs.load import load
from dit_dask.inputs.read import TextRules, look, read_files
from dit_dask.sanitizers.external.release_reader import ReleaseReader
from dit_dask.storage.location import Location
from tests.audits import WORKED, WORKED_SCHEMA, loaded

CELL = "174-78-2542"


def leaked(action: Any) -> str:
    """The text of the failure of an action; it must hide the cell and keep it for --show-values."""
    with pytest.raises(DitError) as caught:
        action()
    text = str(caught.value)
    assert CELL not in text
    assert CELL in caught.value.revealed()
    return text


@pytest.mark.parametrize("column", ["disease", "age", "gender"])
def test_a_cell_that_a_black_box_puts_into_a_used_column_is_located_and_not_shown(column: str) -> None:
    frame = WORKED.astype({"age": object})
    frame.loc[[2, 4], column] = CELL
    text = leaked(lambda: ReleaseReader(loaded(WORKED, WORKED_SCHEMA).table.schema, {})(frame))
    assert f"column {column!r}" in text
    assert "it stands in 2 rows, first in row 2 of what was returned" in text


def test_an_exception_class_named_after_a_cell_is_shown_as_its_base() -> None:
    kind = type(CELL, (ValueError,), {})
    shown, hidden = describe(kind(f"the patient {CELL}"))
    assert shown.startswith("ValueError")
    assert hidden == (f"the patient {CELL}",)
    error = ExternalSanitizerError("text", hidden=["a"], skip=True)
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.hidden, copy.skip, str(copy)) == (("a",), True, "text")


def test_a_function_cannot_name_its_exception_or_its_message_after_a_cell(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "leaking.py").write_text(
        "from dit_dask.errors import InputError\n"
        "def by_class(frame):\n"
        f"    raise type('SSN{CELL}', (KeyError,), {{}})()\n"
        "def by_message(frame):\n"
        f"    raise InputError('{CELL}')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    for function, name in (("by_class", "KeyError"), ("by_message", "InputError")):
        tests = [{"sanitizer": {"name": "python", "target": f"leaking:{function}", "retries": 0}}]
        with pytest.raises(RunError, match=f"it raised {name}[ ,]") as caught:
            dit.audit(WORKED, schema=WORKED_SCHEMA, tests=tests, output=str(tmp_path / "runs"))
        assert CELL not in str(caught.value)
        assert "1747" not in str(caught.value)


def people(count: int = 30) -> pd.DataFrame:
    return pd.DataFrame({"age": range(count), "town": ["Lyon", "Nice"] * (count // 2), "ill": ["flu", "cold"] * (count // 2)})


def schema(**town: Any) -> dict[str, Any]:
    return {
        "quasi_identifiers": {"age": {"kind": "numeric"}, "town": {"kind": "categorical", **town}},
        "sensitive": {"name": "ill", "order": ["flu", "cold"]},
    }


def test_a_rare_value_that_a_hierarchy_misses_is_located_and_not_shown(tmp_path: Path) -> None:
    (tmp_path / "town.csv").write_text("Lyon;*\nNice;*\n")
    frame = people()
    frame.loc[7, "town"] = CELL
    hierarchy = str(tmp_path / "town.csv")
    text = leaked(lambda: loaded(frame, schema(hierarchy=hierarchy)))
    assert "has no leaf for 1 values of column 'town', first in used row 7" in text
    frame.loc[:9, "town"] = "Bonn"  # ten people share it: a mistake of the hierarchy, not a person
    with pytest.raises(InputError, match="no leaf for the value 'Bonn' of column 'town'"):
        loaded(frame, schema(hierarchy=hierarchy))


def test_a_rare_sensitive_value_without_a_place_is_located_and_not_shown() -> None:
    frame = people()
    frame.loc[3, "ill"] = CELL
    assert "no place for 1 values of column 'ill', first in used row 3" in leaked(lambda: loaded(frame, schema()))


def test_text_in_a_column_of_numbers_is_located_and_not_shown() -> None:
    frame = people().astype({"age": str})
    frame.loc[5, "age"] = CELL
    assert "got text, first in used row 5" in leaked(lambda: loaded(frame, schema()))


def test_values_are_shown_only_where_they_are_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = people()
    frame.loc[3, "ill"] = CELL
    frame.to_csv(tmp_path / "people.csv", index=False)
    document = {"version": 1, "data": {"source": "people.csv"}, "schema": schema(), "tests": [{"sanitizer": "raw"}]}
    (tmp_path / "audit.yaml").write_text(yaml.safe_dump(document | {"output": str(tmp_path / "runs")}))
    for command in (["run"], ["plan"], ["leave-out", "--to", str(tmp_path / "to")]):
        for shown in ([], ["--show-values"]):
            assert main([command[0], str(tmp_path / "audit.yaml"), *command[1:], *shown]) == 2
            assert (CELL in capsys.readouterr().err) is bool(shown)
    with pytest.raises(InputError) as caught:
        dit.audit(frame, schema=schema(), tests=[{"sanitizer": "raw"}], show_values=True)
    assert CELL in str(caught.value)
    assert not (tmp_path / "runs").exists()


PERSON = "39,Anna Smith,174-78-2542,Lyon\n"
OTHERS = "".join(
    f"{20 + number},Person {'ABCDEFGH'[number]},174-78-25{number}1,{('Lyon', 'Nice')[number % 2]}\n" for number in range(8)
)


def test_a_table_without_header_is_refused_before_its_first_person_becomes_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "people.csv").write_text(PERSON + OTHERS)
    (tmp_path / "audit.yaml").write_text(f"version: 1\ndata: {{source: people.csv}}\noutput: {tmp_path / 'runs'}\n")
    assert main(["risk", str(tmp_path / "audit.yaml")]) == 2
    shown = capsys.readouterr()
    assert "the first line looks like a row of data: 4 of its 4 cells" in shown.err
    assert "put a line with the names" in shown.err
    assert not any(cell in shown.out + shown.err for cell in PERSON.strip().split(","))
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    "header", ["age,name,ssn,town", "0,1,2,3", "2019,2020,2021,town", "q1,q2,q3,Lyon", "age,name,ssn,\ufeffx"]
)
def test_names_are_not_taken_for_data(header: str) -> None:
    content = f"{header}\n{OTHERS}".encode()
    assert header_of(content) == header.split(",")


def _rows(*columns: str) -> str:
    """Eight people with different values; `#` becomes a letter, `9` a digit of their own."""
    return "".join(
        ",".join(text.replace("#", "ABCDEFGH"[number]).replace("9", str(number)) for text in columns) + "\n"
        for number in range(8)
    )


HEADERLESS = {
    "names": "Zoe Miller\n" + _rows("#nna Smith"),
    "names in two columns": "Zoe,Miller\n" + _rows("#nna", "#mith"),
    "numbers of a register": "174-78-2542\n" + _rows("999-19-9239"),
    "numbers of different lengths": "AB-174/2\n" + _rows("#-1999/19"),
    "addresses of mail": "zoe.miller@example.org\n" + _rows("#@mail.example.org"),
    "streets": "12 Rose Street,Zoe Miller\n" + _rows("19 #ose Street", "#nna Smith"),
    "names and an empty cell": "Zoe Miller,174-78-2542\n" + _rows("#nna Smith", "999-19-9239") + "Dan Brown,\n",
}


@pytest.mark.parametrize("case", HEADERLESS)
def test_a_table_of_unique_texts_without_header_is_refused(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "people.csv").write_text(HEADERLESS[case])
    (tmp_path / "audit.yaml").write_text(f"version: 1\ndata: {{source: people.csv}}\noutput: {tmp_path / 'runs'}\n")
    assert main(["risk", str(tmp_path / "audit.yaml")]) == 2
    shown = capsys.readouterr()
    assert "looks like a row of data" in shown.err
    assert not any(cell in shown.out + shown.err for cell in HEADERLESS[case].splitlines()[0].split(","))


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("Full Name,Home Town", ("#nna Smith", "New #ork")),
        ("patient", ("#nna Smith",)),
        ("email", ("#@mail.example.org",)),
        ("Patient,ssn", ("#nna Smith", "999-19-9239")),
        ("code_2,name", ("#-99", "#nna")),
    ],
)
def test_names_of_columns_above_unique_texts_are_not_taken_for_data(header: str, columns: tuple[str, ...]) -> None:
    assert header_of(f"{header}\n{_rows(*columns)}".encode()) == header.split(",")


def test_a_header_that_looks_like_data_is_read_where_the_config_says_that_it_is_one(tmp_path: Path) -> None:
    """`data.header` says so for all columns; used columns that are in the line say so too."""
    (tmp_path / "people.csv").write_text(
        "39,Lyon\n" + "".join(f"{20 + number},{('Lyon', 'Nice')[number % 2]}\n" for number in range(8))
    )
    risk = tmp_path / "risk.yaml"
    risk.write_text(f"version: 1\ndata: {{source: people.csv, header: true}}\noutput: {tmp_path / 'runs'}\n")
    assert main(["risk", str(risk)]) == 0
    assert main(["risk", str(risk), "--set", "data.header=false"]) == 2
    document = {
        "version": 1,
        "data": {"source": "people.csv"},
        "schema": {"quasi_identifiers": {"39": {"kind": "numeric"}}, "sensitive": "Lyon"},
        "tests": [{"sanitizer": "raw"}],
    }
    assert load(check_config(document, str(tmp_path))).used == 8


UNCLOSED = {
    "to the end of the file": ('age,name,town\n1,Ann,Lyon\n2,Bob,"Nice\n3,Carl,Lyon\n4,Dan,Nice\n', 3),
    "to the end of a long file": ('age,name,town\n1,Ann,Lyon\n2,Bob,"Nice\n' + "3,Carl,Lyon\n" * 300_000, 3),
    "to a quote in a later row": ('age,name,town\n1,Ann,Lyon\n2,"Bob,Nice\n3,Carl,Lyon\n4,Dan "Danny",Nice\n', 3),
    "after a cell of two lines": ('age,name,town\n1,"Ann\nSmith",Lyon\n2,Bob,"Nice\n3,Carl,Lyon\n4,Dan,Nice\n5,Eve,"\n', 4),
    "in a table of one column": ('town\nLyon\n"Nice\nLyon\nNice\n', 3),
    "in an unused column": ('age,town,note\n1,Lyon,x\n2,Nice,"y\n3,Lyon,z\n4,Nice,u\n', 3),
}


@pytest.mark.parametrize("case", UNCLOSED)
def test_an_unclosed_quote_does_not_swallow_rows(case: str, tmp_path: Path) -> None:
    content, line = UNCLOSED[case]
    (tmp_path / "people.csv").write_text(content)
    columns = ["town"]
    with pytest.raises(InputError, match=rf"people\.csv, line {line}: a quote is opened in this row") as caught:
        read_one(tmp_path / "people.csv", columns)
    assert not any(name in str(caught.value) for name in ("Ann", "Bob", "Carl", "Lyon", "Nice"))


@pytest.mark.parametrize(
    "content",
    [
        'age,town\n1,"12, Rose Street\nLyon"\n2,Nice\n',
        'age,town\n1,"12, Rose Street\nat the back\nLyon, France"\n2,Nice\n',
        'age,town\n\n1,"say ""yes""\nLyon"\n\n2,Nice\n',
        'age,town\n1,5" pipe\n2,Nice',
    ],
)
def test_cells_of_several_lines_and_empty_lines_are_read(content: str, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(content)
    assert read_one(tmp_path / "people.csv", ["age"])["age"].tolist() == ["1", "2"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
@pytest.mark.parametrize("separator", [";", "\t", "|"])
@pytest.mark.parametrize("case", [case for case in UNCLOSED if "long" not in case])
def test_an_unclosed_quote_is_found_in_any_dialect(case: str, separator: str, encoding: str, tmp_path: Path) -> None:
    content, line = UNCLOSED[case]
    (tmp_path / "people.csv").write_bytes(content.replace(",", separator).replace("Nice", "Nîmes").encode(encoding))
    with pytest.raises(InputError, match=rf"people\.csv, line {line}: a quote is opened in this row"):
        read_one(tmp_path / "people.csv", ["town"])


def test_a_quoted_word_at_the_start_of_a_cell_is_text(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text('age,name\n1,"Bob" Smith\n2,Ann\n')
    assert read_one(tmp_path / "people.csv", ["name"])["name"].tolist() == ['"Bob" Smith', "Ann"]


def test_a_header_of_numbers_with_decimal_commas_is_data(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(
        "1,75;Lyon\n2;Lyon\n2;Lyon\n" + "".join(f"1,{60 + number};Lyon\n" for number in range(8))
    )
    with pytest.raises(InputError, match="looks like a row of data: 2 of its 2 cells"):
        read_one(tmp_path / "people.csv", None)


def test_an_unclosed_quote_in_a_packed_file_is_found_too(tmp_path: Path) -> None:
    content, line = UNCLOSED["to the end of the file"]
    (tmp_path / "people.csv.gz").write_bytes(gzip.compress(content.encode()))
    with pytest.raises(InputError, match=rf"people\.csv\.gz, line {line}: a quote is opened"):
        read_one(tmp_path / "people.csv.gz", ["town"])


def read_one(path: Path, columns: list[str] | None) -> pd.DataFrame:
    """Read some columns of a file."""
    return read_files(Location(str(path), {}), LocalFileSystem(), [str(path)], columns, "data.source", TextRules())[0]


def header_of(content: bytes) -> list[str]:
    """Read the names of the columns of a file."""
    return read_header(*look(io.BytesIO(content), CsvConfig(), None, "people.csv"), "people.csv")
