"""Numbers of docs/reproduction.md computed again from the real tables, and the shortcuts of reproductions against slow ways."""

from __future__ import annotations

import importlib.util
import json
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from sklearn.naive_bayes import BernoulliNB

from dit_dask.encoders.names import NAMES
from dit_dask.execution.progress import Silent
from dit_dask.reproduction import encodings, v1, v2
from dit_dask.reproduction.datasets import Selection, Source
from dit_dask.reproduction.deck import _worked_rows
from dit_dask.reproduction.figures_of_tests import measure_test, sanitizer_of
from dit_dask.reproduction.pieces import Work
from dit_dask.reproduction.run import Request, reproduce
from dit_dask.reproduction.search import largest_as_text
from dit_dask.storage.folder import Folder
from dit_dask.storage.location import Location
from tests.audits import points
from tests.conftest import require_data

ROOT = Path(__file__).parents[2]
CLOSE = {"rel": 1e-9, "abs": 1e-12}  # sums in another order on another machine


@lru_cache
def numbers() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((ROOT / "docs" / "reproduction" / "numbers.json").read_text("utf-8"))
    return loaded


def rows_of(report: str, table: str) -> list[dict[str, Any]]:
    (found,) = (one["rows"] for one in numbers()["documents"][report]["tables"] if one["name"] == table)
    return found


def page_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("page", ROOT / "tools" / "write_reproduction_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def source() -> Source:
    return Source(str(require_data()))


def test_the_page_is_what_its_numbers_render_to() -> None:
    expected = page_tool().build(numbers()["documents"], numbers()["about"])
    assert (ROOT / "docs" / "reproduction.md").read_text("utf-8") == expected


def published_tests(report: str) -> list[dict[str, Any]]:
    return [row for row in rows_of(report, f"{report}-largest") if not row["parameter"].startswith("epsilon")]


@pytest.mark.parametrize("parameter", ["k = 1", "k = 5", "k = 7", "k = 80", "l = 3", "l = 5"])
def test_largest_distances_of_internet_usage_are_those_of_the_page(parameter: str) -> None:
    name, _, value = parameter.partition(" = ")
    found = measure_test(source(), Selection("internet"), sanitizer_of(name, int(value)))
    (row,) = (row for row in published_tests("v1") if (row["dataset"], row["parameter"]) == ("internet", parameter))
    assert row["samples"] == [pytest.approx(found["largest"], **CLOSE)]


@pytest.mark.parametrize("parameter", ["k = 2", "l = 5"])
def test_the_first_sample_of_adult_is_that_of_the_page(parameter: str) -> None:
    name, _, value = parameter.partition(" = ")
    found = measure_test(source(), Selection("adult", 1), sanitizer_of(name, int(value)))
    (row,) = (row for row in published_tests("v1") if (row["dataset"], row["parameter"]) == ("adult", parameter))
    assert row["samples"][0] == pytest.approx(found["largest"], **CLOSE)
    assert len(row["samples"]) >= 10
    assert (row["least"], row["most"]) == (min(row["samples"]), max(row["samples"]))


def test_what_the_page_calls_reproduced_is_what_the_papers_print() -> None:
    rows = {(row["dataset"], row["parameter"]): row for row in published_tests("v1")}
    for parameter in ("k = 1", "k = 7", "l = 5", "l = 6", "l = 7"):
        assert rows["internet", parameter]["explained by"].startswith("reproduced")
    shares = {(row["dataset"], row["parameter"]): row for row in rows_of("v1", "v1-shares")}
    assert shares["internet", "k = 5"]["ours"] == pytest.approx(0.354, abs=5e-4)  # METHODS: 35.4%


def test_distances_over_epsilon_are_those_of_the_page() -> None:
    for value in (0.01, 1):
        sanitizer = sanitizer_of("epsilon", value, bins=v2.EDGES["internet"])
        found = measure_test(source(), Selection("internet-v2"), sanitizer)
        wanted = ("internet", f"epsilon = {value:g}")
        (row,) = (row for row in rows_of("v2", "v2-largest") if (row["dataset"], row["parameter"]) == wanted)
        assert row["ours"] == pytest.approx(found["largest"], **CLOSE)
    assert found["distinct"] == 2926  # v2 §4.5.2


def test_worked_rates_of_the_deck_are_those_of_the_page() -> None:
    for mine, theirs in zip(_worked_rows(), rows_of("deck", "deck-worked"), strict=True):
        assert mine["ours"] == pytest.approx(theirs["ours"], **CLOSE)
        assert mine["ours"] == pytest.approx(mine["published"], abs=0.01)


def test_accuracies_of_encodings_are_those_of_the_page() -> None:
    tests = source().tests(Selection("internet"), encodings.configure(16, ["tf", "scaling-hot-after"]))
    rows = {row["encoding"]: row for row in rows_of("encodings", "encodings-internet-k")}
    for name, test in zip(("tf-tf", "scaling-hot-after"), tests, strict=True):
        assert rows[name]["K = 16"] == pytest.approx(encodings.measure(test)["accuracy"], **CLOSE)


def test_tables_by_attribute_predict_what_scikit_learn_predicts() -> None:
    """All 24 encodings on a small table: a model trained on encoded rows, for each target where TF needs it."""
    import pandas as pd

    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 70, 60),
            "town": rng.choice(list("abcdef"), 60),
            "illness": rng.choice(["flu", "cold", "gout"], 60, p=[0.5, 0.3, 0.2]),
        }
    )
    quasi = {"age": {"kind": "numeric"}, "town": {"kind": "categorical"}}
    schema = {"quasi_identifiers": quasi, "sensitive": "illness"}
    from tests.audits import loaded

    rows = loaded(frame, schema)
    for name, test in zip(NAMES, points(rows, schema, encodings.configure(4, list(NAMES))), strict=True):
        table = (test.recoded or test.rows).table
        release, encoder = test.procedure.publish(table), test.procedure.encoder
        where, secret = np.nonzero(release.counts)
        right = 0
        for codes, own, weight in zip(table.codes, table.secret, table.weights, strict=True):
            features = encoder.classes(release, codes)[where]
            model = BernoulliNB().fit(features, secret, sample_weight=release.counts[where, secret])
            right += weight * (model.predict(encoder.target(release, codes)[None, :])[0] == own)
        found = encodings.measure(test)
        assert found["accuracy"] == pytest.approx(right / table.rows), name
        assert found["features"] == features.shape[1]


def test_numbers_compared_as_text_change_nothing_where_all_have_two_digits() -> None:
    sanitizer = sanitizer_of("k", 80)
    found = largest_as_text(source(), Selection("adult", 1, columns=("age", "education")), sanitizer)
    exact = measure_test(source(), Selection("adult", 1, columns=("age", "education")), sanitizer)
    assert found == pytest.approx(exact["largest"], **CLOSE)


def test_a_reproduction_writes_tables_pictures_and_a_page_and_resumes(tmp_path: Path) -> None:
    request = Request("deck", str(require_data()), str(tmp_path / "deck"))
    report = reproduce(request, Silent())
    names = {path.name for path in (tmp_path / "deck").iterdir()}
    assert {"page.md", "tables.json", "deck-identity.csv", "deck-identity.svg", "pieces", "reproduction.json"} <= names
    assert reproduce(request, Silent()).document() == report.document()


@pytest.mark.slow
@pytest.mark.parametrize("report", ["v1", "v2"])
def test_every_largest_distance_of_the_page_is_computed_again(report: str, tmp_path: Path) -> None:
    module = {"v1": v1, "v2": v2}[report]
    work = Work(source(), Folder(Location(str(tmp_path), {})), Silent())
    for row in rows_of(report, f"{report}-largest"):
        name, _, value = row["parameter"].partition(" = ")
        number = float(value) if report == "v2" else int(value)
        found = [one["largest"] for one in module.pieces(work, row["dataset"], name, number)]
        assert row["samples"] == pytest.approx(found, **CLOSE)
