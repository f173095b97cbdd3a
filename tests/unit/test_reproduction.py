"""dit reproduce: what is said about differences, how work resumes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dit_dask.cli import main
from dit_dask.errors import InputError
from dit_dask.execution.progress import Silent
from dit_dask.reproduction import published
from dit_dask.reproduction.charts import Series, line_chart
from dit_dask.reproduction.comparison import REPRODUCED, SAMPLE, UNEXPLAINED, explain, nearest
from dit_dask.reproduction.datasets import Source
from dit_dask.reproduction.pieces import ABOUT, Work, open_folder
from dit_dask.reproduction.published import Number
from dit_dask.reproduction.report import Report, Table, render
from dit_dask.reproduction.run import NEEDS, Request, reproduce
from dit_dask.storage.folder import Folder
from dit_dask.storage.location import Location


@pytest.mark.parametrize(
    ("text", "values", "why"),
    [
        ("0.398", [0.39845], REPRODUCED),
        ("0.398", [0.3986], UNEXPLAINED),
        ("0.2", [0.198], REPRODUCED),
        ("9.6e-05", [9.611e-05], REPRODUCED),
        ("9.6e-05", [9.7e-05], UNEXPLAINED),
        ("0.54", [0.51, 0.59], SAMPLE),
        ("0.54", [0.55, 0.59], UNEXPLAINED),
    ],
)
def test_a_number_is_reproduced_up_to_its_last_printed_digit(text: str, values: list[float], why: str) -> None:
    assert explain(Number(text, "table"), values) == why


def test_another_reading_that_gives_the_number_explains_it() -> None:
    assert explain(Number("0.15", "table"), [0.181], [("five columns", 0.153)]) == "five columns"
    assert nearest(Number("0.15", "table"), [("a", 0.1), ("b", 0.155), ("c", 0.14)]) == ("b", 0.155)


def test_published_numbers_are_those_of_the_papers() -> None:
    """Sums that a slip of a digit would change, taken from the tables by hand."""
    adult, internet = published.LARGEST["adult"], published.LARGEST["internet"]
    assert sum(number.value for (name, _), number in adult.items() if name == "k") == pytest.approx(1.427)
    assert sum(number.value for (name, _), number in adult.items() if name == "l") == pytest.approx(0.812898)
    assert sum(number.value for (name, _), number in internet.items() if name == "k") == pytest.approx(2.555)
    assert sum(number.value for (name, _), number in internet.items() if name == "l") == pytest.approx(0.950288)
    minutes = {
        ("adult", "k"): 60 + 24 / 60,
        ("adult", "epsilon"): 5 * 60 + 41 + 51 / 60,
        ("internet", "epsilon"): 263 + 22 / 60,
    }
    for key, value in minutes.items():
        assert published.MINUTES[key].value == pytest.approx(value, abs=0.01)


def folder_at(path: Path) -> Folder:
    return Folder(Location(str(path), {}))


def test_finished_pieces_are_not_computed_again(tmp_path: Path) -> None:
    def refuse() -> Any:
        raise AssertionError("computed again")

    first = Work(Source(), folder_at(tmp_path), Silent())
    assert first.piece("adult k=5", lambda: {"largest": 0.5}) == {"largest": 0.5}
    again = Work(Source(), folder_at(tmp_path), Silent())
    assert again.piece("adult k=5", refuse) == {"largest": 0.5}
    with pytest.raises(AssertionError, match="computed again"):
        again.piece("adult k=6", refuse)


def test_a_damaged_piece_is_computed_again(tmp_path: Path) -> None:
    work = Work(Source(), folder_at(tmp_path), Silent())
    work.piece("one", lambda: 1)
    (stored,) = (tmp_path / "pieces").iterdir()
    stored.write_text("{")
    assert Work(Source(), folder_at(tmp_path), Silent()).piece("one", lambda: 2) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": "0.0.1"}, "has results of version '0.0.1'"),
        ({"reproduction": "v2"}, "has results of reproduction 'v2'"),
        ({"quick": True}, "has results of quick True"),
    ],
)
def test_output_of_something_else_is_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    open_folder(folder_at(tmp_path), "v1", quick=False)
    open_folder(folder_at(tmp_path), "v1", quick=False)
    about = tmp_path / ABOUT
    about.write_text(json.dumps(json.loads(about.read_text()) | change))
    with pytest.raises(InputError, match=message):
        open_folder(folder_at(tmp_path), "v1", quick=False)


def test_unknown_names_list_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "v3"]) == 2
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    assert all(name in text for name in NEEDS)


def test_a_folder_without_the_data_is_one_line_and_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["reproduce", "v1", "--data", str(tmp_path / "none"), "--out", str(out)]) == 2
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    assert "must be a folder with adult.csv" in text
    assert not out.exists()


def test_every_reproduction_has_a_module_and_a_folder_of_its_own() -> None:
    with pytest.raises(InputError, match="known: anita, classifiers, deck, encodings, v1, v2"):
        reproduce(Request("v9"), Silent())
    assert Request("v1").folder.url != Request("v1", quick=True).folder.url


def test_tables_show_three_digits_and_keep_all_in_json() -> None:
    rows = [{"name": "a|b", "value": 0.123456, "samples": [1, 2], "none": None, "flag": True}]
    report = Report("x", "X", [Table("t", "T", rows)], {}, ["note"])
    text = render(report.document(), "")
    assert "| a\\|b | 0.123 | – | yes |" in text
    assert "samples" not in text
    assert report.document()["tables"][0]["rows"][0]["value"] == 0.123456
    assert Table("t", "T", rows).csv().splitlines()[1].startswith("a|b,0.123456")


def test_charts_draw_published_values_as_squares_and_escape_names() -> None:
    figure = line_chart("<t>", ["1", "2"], [Series("<s>", [0.1, None], [(0.05, 0.2), None], [0.3, None])], log=True)
    assert figure.svg.count("<rect") == 2  # the published value and the legend
    assert "<s>" not in figure.svg
    assert "&lt;s&gt;" in figure.svg
