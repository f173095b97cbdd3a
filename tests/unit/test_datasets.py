"""The embedded census and its hierarchies, and how known datasets are found, fetched and rewritten."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dit_dask.errors import InputError
from dit_dask.inputs import datasets
from dit_dask.storage import filesystem
from dit_dask.values import hierarchy
from tests.conftest import require_data

DATA = Path(str(resources.files("dit_dask").joinpath("data")))
MODEL: dict[str, Any] = json.loads((DATA / "census.json").read_text(encoding="utf-8"))
HIERARCHIES = sorted(path.name for path in (DATA / "hierarchies").glob("*.csv"))
TABLES = {"adult": "adult.csv", "internet": "internet_usage.csv"}

ADULT_ROW = "39, State-gov, 77516, Bachelors, 13, Never-married, ?, Own-child, White, Male, 0, 0, 40, Cuba, <=50K"
ADULT_TRAIN = f"{ADULT_ROW}\n\n".encode()
ADULT_TEST = f"|1x3 Cross validator\n{ADULT_ROW}.\n\n".encode()

Environment = Callable[..., None]


@pytest.fixture
def set_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Environment:
    """Give the storage these variables and no others; the cache is always inside tmp_path."""

    def give(**variables: str) -> None:
        known = {"XDG_CACHE_HOME": str(tmp_path / "cache"), **variables}
        monkeypatch.setattr(filesystem, "environment", known.get)

    give()
    return give


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> datasets.Dataset:
    """Make `adult` a one-row dataset that is published under file:// URLs."""
    contents = (ADULT_TRAIN, ADULT_TEST)
    sources = [tmp_path / "adult.data", tmp_path / "adult.test"]
    for path, content in zip(sources, contents, strict=True):
        path.write_bytes(content)
    small = dataclasses.replace(
        datasets.DATASETS["adult"],
        urls=tuple(path.as_uri() for path in sources),
        sha256=hashlib.sha256(datasets.adult_csv(contents)).hexdigest(),
    )
    monkeypatch.setitem(datasets.DATASETS, "adult", small)
    return small


def real_table(name: str) -> Path:
    return require_data() / name


# the census


def census_counts() -> list[int]:
    counts = [count for marginal in MODEL["marginals"].values() for count in marginal.values()]
    return counts + [count for edge in MODEL["edges"] for row in edge["counts"].values() for count in row.values()]


def test_the_census_has_no_cell_below_the_threshold() -> None:
    assert MODEL["threshold"] == 10
    assert min(census_counts()) >= MODEL["threshold"]


def test_the_census_counts_are_rounded_so_that_subtraction_is_inexact() -> None:
    assert MODEL["rounding"] == 5
    assert {count % MODEL["rounding"] for count in census_counts()} == {0}


def test_the_census_model_is_one_tree_over_all_attributes() -> None:
    reached = {MODEL["edges"][0]["parent"]}
    for edge in MODEL["edges"]:
        assert edge["parent"] in reached
        assert edge["child"] not in reached
        reached.add(edge["child"])
    assert reached == set(MODEL["marginals"]) == set(MODEL["columns"]) - set(MODEL["derived"])


def test_the_census_edges_name_only_values_that_have_a_marginal() -> None:
    for edge in MODEL["edges"]:
        assert set(edge["counts"]) <= set(MODEL["marginals"][edge["parent"]])
        assert {value for row in edge["counts"].values() for value in row} <= set(MODEL["marginals"][edge["child"]])


def test_the_census_states_its_source_and_licence() -> None:
    assert "10.24432/C5XW20" in MODEL["source"]
    assert MODEL["licence"].startswith("CC BY 4.0")


def test_the_census_has_adults_columns_in_adults_order() -> None:
    expected = [name for name in datasets.ADULT_HEADER.split(",") if name not in ("fnlwgt", "split")]
    assert list(datasets.census(rows=1).columns) == expected


def test_the_census_has_whole_numbers_and_texts() -> None:
    table = datasets.census(rows=50)
    numeric = [name for name in table.columns if table[name].dtype == "int64"]
    assert numeric == ["age", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
    texts = table.drop(columns=numeric)
    assert {type(value) for name in texts.columns for value in texts[name]} == {str}


def test_the_same_seed_gives_the_same_census() -> None:
    pd.testing.assert_frame_equal(datasets.census(rows=500, seed=3), datasets.census(rows=500, seed=3))


def test_another_seed_gives_another_census() -> None:
    assert not datasets.census(rows=500, seed=3).equals(datasets.census(rows=500, seed=4))


def test_a_longer_census_begins_with_the_shorter_one() -> None:
    pd.testing.assert_frame_equal(datasets.census(rows=900).head(400), datasets.census(rows=400))


def test_the_census_is_the_same_table_on_every_platform() -> None:
    text = datasets.census().to_csv(index=False, lineterminator="\n")
    assert hashlib.sha256(text.encode()).hexdigest() == ("e784e17b3bf7f9f37f873c824732862de2b92d5a4ee95d252f05389e7319bbbe")


def test_every_census_value_has_a_published_marginal() -> None:
    table = datasets.census()
    for name, marginal in MODEL["marginals"].items():
        assert set(table[name].astype(str)) <= set(marginal)


def test_the_census_keeps_the_published_marginals() -> None:
    table = datasets.census(rows=200_000)
    for name, marginal in MODEL["marginals"].items():
        drawn = table[name].astype(str).value_counts(normalize=True)
        expected = pd.Series(marginal) / sum(marginal.values())
        # sampling alone gives about 0.008 for age, the attribute with the most values of similar weight
        assert drawn.sub(expected, fill_value=0).abs().sum() / 2 < 0.015, name


def test_education_num_follows_education() -> None:
    table = datasets.census(rows=2_000)
    assert (table.groupby("education")["education-num"].nunique() == 1).all()
    assert table.loc[table["education"] == "Bachelors", "education-num"].eq(13).all()


def test_suppressed_records_are_spread_by_what_the_child_lacks() -> None:
    weights = datasets._edge_weights({"a": 100, "b": 20}, {"x": 90, "y": 30}, {"a": {"x": 80, "y": 10}})
    # a hides 10 records and b all 20; x lacks 10 and y 20, so each hidden record is x with 1/3
    assert weights.tolist() == [[80 * 30 + 10 * 10, 10 * 30 + 10 * 20], [20 * 10, 20 * 20]]


def test_a_parent_without_cells_falls_back_to_the_childs_marginal() -> None:
    weights = datasets._edge_weights({"a": 40, "b": 10}, {"x": 30, "y": 10}, {"a": {"x": 30, "y": 10}})
    assert weights[1].tolist() == [10 * 30, 10 * 10]


@pytest.mark.parametrize("rows", [0, -5])
def test_a_census_without_rows_is_refused(rows: int) -> None:
    with pytest.raises(InputError, match=f"rows must be an integer >= 1; got {rows}"):
        datasets.census(rows=rows)


def test_the_census_looks_like_adult() -> None:
    adult = pd.read_csv(real_table("adult.csv"), dtype=str, keep_default_na=False)
    adult = adult[(adult != "?").all(axis=1)]
    table = datasets.census().astype(str)
    for name in table.columns:
        real, drawn = adult[name].value_counts(normalize=True), table[name].value_counts(normalize=True)
        # 10,000 real rows drawn at random are about 0.03 away for age, less for the others
        assert drawn.sub(real, fill_value=0).abs().sum() / 2 < 0.05, name


def test_importing_the_module_loads_no_numeric_library() -> None:
    code = "import sys, dit_dask.inputs.datasets; sys.exit('numpy' in sys.modules or 'pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# the hierarchies


@pytest.mark.parametrize("name", HIERARCHIES)
def test_each_hierarchy_is_a_tree(name: str) -> None:
    text = (DATA / "hierarchies" / name).read_text(encoding="utf-8")
    assert len(hierarchy.parse(text, name).leaves) == len(text.splitlines())


@pytest.mark.parametrize("name", [name for name in HIERARCHIES if name.startswith("adult-")])
def test_the_hierarchies_cover_the_census(name: str) -> None:
    parsed = hierarchy.parse((DATA / "hierarchies" / name).read_text(encoding="utf-8"), name)
    attribute = name.removeprefix("adult-").removesuffix(".csv")
    assert hierarchy.missing_leaf(parsed, MODEL["marginals"][attribute]) is None


@pytest.mark.parametrize("name", HIERARCHIES)
def test_the_leaves_are_exactly_the_values_of_the_real_column(name: str) -> None:
    table, attribute = name.removesuffix(".csv").split("-", 1)
    column = pd.read_csv(real_table(TABLES[table]), usecols=[attribute], dtype=str, keep_default_na=False)[attribute]
    parsed = hierarchy.parse((DATA / "hierarchies" / name).read_text(encoding="utf-8"), name)
    assert set(parsed.leaves) == set(column) - {"?"}


# from downloads to CSV


def test_adult_loses_spaces_dots_comments_and_blank_lines() -> None:
    row = ADULT_ROW.replace(" ", "")
    assert datasets.adult_csv([ADULT_TRAIN, ADULT_TEST]).decode().splitlines() == [
        datasets.ADULT_HEADER,
        f"{row},train",
        f"{row},test",
    ]


def test_carriage_returns_change_nothing() -> None:
    windows = [content.replace(b"\n", b"\r\n") for content in (ADULT_TRAIN, ADULT_TEST)]
    assert datasets.adult_csv(windows) == datasets.adult_csv([ADULT_TRAIN, ADULT_TEST])
    survey = b"\t".join(b"%d" % number for number in range(72)) + b"\n"
    assert datasets.internet_csv([survey.replace(b"\n", b"\r\n")]) == datasets.internet_csv([survey])


def test_empty_survey_cells_become_question_marks() -> None:
    cells = ["", *(f"with space {number}" for number in range(70)), ""]
    header, row = datasets.internet_csv(["\t".join(cells).encode() + b"\n\n"]).decode().splitlines()
    assert header.count(",") == 71
    assert row.split(",") == ["?", *cells[1:-1], "?"]


def test_a_page_that_is_not_the_dataset_is_refused() -> None:
    with pytest.raises(ValueError, match="row 1 has 1 cells; expected 72"):
        datasets.internet_csv([b"<html>moved</html>"])
    with pytest.raises(ValueError, match="row 1 has 2 cells; expected 16"):
        datasets.adult_csv([b"<html>moved</html>", b""])


def test_a_comma_inside_a_survey_cell_is_refused() -> None:
    with pytest.raises(ValueError, match="row 1 has 73 cells; expected 72"):
        datasets.internet_csv(["\t".join(["a,b", *"c" * 71]).encode()])


def test_adult_comes_out_as_the_known_file() -> None:
    expected = real_table("adult.csv").read_bytes()
    rows = [line.rsplit(",", 1) for line in expected.decode().splitlines()[1:]]
    train = "".join(f"{row}\n" for row, split in rows if split == "train").replace(",", ", ").encode() + b"\n"
    test = "".join(f"{row}.\n" for row, split in rows if split == "test").replace(",", ", ").encode() + b"\n"
    test = b"|1x3 Cross validator\n" + test
    # the digests of UCI's own files, as published with other loaders: the reversal is the real download
    assert hashlib.sha256(train).hexdigest() == "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"
    assert hashlib.sha256(test).hexdigest() == "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05"
    assert datasets.adult_csv([train, test]) == expected
    assert hashlib.sha256(expected).hexdigest() == datasets.DATASETS["adult"].sha256


def test_internet_usage_comes_out_as_the_known_file() -> None:
    expected = real_table("internet_usage.csv").read_bytes()
    rows = [line.split(",") for line in expected.decode().splitlines()[1:]]
    survey = "".join("\t".join("" if cell == "?" else cell for cell in row) + "\n" for row in rows).encode()
    assert len(survey) == 2_763_861  # the size of data/internet.data in kassemal/diffTesting
    assert datasets.internet_csv([survey]) == expected
    assert hashlib.sha256(expected).hexdigest() == datasets.DATASETS["internet-usage"].sha256


# where a dataset is


def test_the_folder_in_dit_data_comes_first(set_environment: Environment, tmp_path: Path) -> None:
    for folder in (tmp_path / "mine", tmp_path / "cache" / "dit_dask"):
        folder.mkdir(parents=True)
        (folder / "adult.csv").write_text("age\n")
    set_environment(DIT_DATA=str(tmp_path / "mine"))
    assert datasets.locate("adult") == str(tmp_path / "mine" / "adult.csv")


def test_a_relative_dit_data_becomes_an_absolute_path(
    set_environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "adult.csv").write_text("age\n")
    monkeypatch.chdir(tmp_path)
    set_environment(DIT_DATA=".")
    assert datasets.locate("adult") == str(tmp_path / "adult.csv")


def test_the_cache_comes_second(set_environment: Environment, tmp_path: Path) -> None:
    cached = tmp_path / "cache" / "dit_dask" / "adult.csv"
    cached.parent.mkdir(parents=True)
    cached.write_text("age\n")
    set_environment(DIT_DATA=str(tmp_path / "empty"))
    assert datasets.locate("adult") == str(cached)


def test_without_xdg_the_cache_is_in_the_home_folder(
    set_environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    cached = tmp_path / ".cache" / "dit_dask" / "adult.csv"
    cached.parent.mkdir(parents=True)
    cached.write_text("age\n")
    set_environment(XDG_CACHE_HOME="")
    assert datasets.locate("adult") == str(cached)


@pytest.mark.usefixtures("set_environment")
def test_a_download_is_kept_in_the_cache(published: datasets.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(datasets.locate("adult"))
    assert path == tmp_path / "cache" / "dit_dask" / "adult.csv"
    assert path.read_bytes() == datasets.adult_csv([ADULT_TRAIN, ADULT_TEST])
    assert list(path.parent.iterdir()) == [path]
    monkeypatch.setitem(datasets.DATASETS, "adult", dataclasses.replace(published, urls=("memory://gone",)))
    assert datasets.locate("adult") == str(path)


def test_a_failed_download_says_where_it_looked(
    set_environment: Environment, published: datasets.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = dataclasses.replace(published, urls=((tmp_path / "gone").as_uri(), (tmp_path / "gone").as_uri()))
    monkeypatch.setitem(datasets.DATASETS, "adult", gone)
    with pytest.raises(InputError) as unset:
        datasets.locate("adult")
    set_environment(DIT_DATA=str(tmp_path / "empty"))
    with pytest.raises(InputError) as empty:
        datasets.locate("adult")
    assert "DIT_DATA is not set" in str(unset.value)
    assert f"not in DIT_DATA ({tmp_path / 'empty'})" in str(empty.value)
    for line in (str(unset.value), str(empty.value)):
        assert str(tmp_path / "cache" / "dit_dask" / "adult.csv") in line
        assert line.endswith(f"get it from {published.home}")
        assert "\n" not in line


@pytest.mark.usefixtures("set_environment")
def test_any_failure_of_a_download_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(url: str) -> bytes:
        raise RuntimeError(f"503 from {url}\nwith a second line")

    monkeypatch.setattr(filesystem, "fetch", refuse)
    with pytest.raises(InputError, match=r"the download failed \(503 from https://[^\n]*$"):
        datasets.locate("internet-usage")


@pytest.mark.usefixtures("set_environment")
def test_a_download_with_another_digest_is_not_kept(
    published: datasets.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(datasets.DATASETS, "adult", dataclasses.replace(published, sha256="0" * 64))
    with pytest.raises(InputError, match="not the known dataset: sha256 must be 0000"):
        datasets.locate("adult")
    assert not (tmp_path / "cache" / "dit_dask" / "adult.csv").exists()


def test_an_unknown_dataset_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"unknown 'adul'.*known: adult, internet-usage$"):
        datasets.locate("adul")


# dit:// addresses


def test_dit_addresses_of_datasets_are_located(set_environment: Environment, tmp_path: Path) -> None:
    (tmp_path / "internet_usage.csv").write_text("age\n")
    set_environment(DIT_DATA=str(tmp_path))
    assert datasets.resolve("dit://internet-usage") == str(tmp_path / "internet_usage.csv")


@pytest.mark.parametrize("url", ["dit://census", "s3://bucket/adult.csv", "adult.csv", "folder/dit://x"])
def test_other_addresses_stay_as_they_are(url: str) -> None:
    assert datasets.resolve(url) == url


@pytest.mark.usefixtures("set_environment")
def test_embedded_hierarchies_are_real_files() -> None:
    for name in HIERARCHIES:
        assert Path(datasets.resolve(f"dit://hierarchies/{name}")).is_file()


def test_embedded_hierarchies_win_and_dit_data_adds_others(set_environment: Environment, tmp_path: Path) -> None:
    (tmp_path / "hierarchies").mkdir()
    for name in ("adult-sex.csv", "mine.csv"):
        (tmp_path / "hierarchies" / name).write_text("a;*\n")
    set_environment(DIT_DATA=str(tmp_path))
    assert datasets.resolve("dit://hierarchies/adult-sex.csv") == str(DATA / "hierarchies" / "adult-sex.csv")
    assert datasets.resolve("dit://hierarchies/mine.csv") == str(tmp_path / "hierarchies" / "mine.csv")


@pytest.mark.parametrize("name", ["nothing.csv", "../adult.csv"])
def test_an_unknown_hierarchy_lists_the_embedded_ones(set_environment: Environment, tmp_path: Path, name: str) -> None:
    (tmp_path / "hierarchies").mkdir()
    (tmp_path / "adult.csv").write_text("age\n")
    set_environment(DIT_DATA=str(tmp_path))
    with pytest.raises(InputError, match=r"adult-education\.csv, .*internet-race\.csv$"):
        datasets.resolve(f"dit://hierarchies/{name}")


def test_an_unknown_dit_address_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"known: adult, census, hierarchies/NAME\.csv, internet-usage$"):
        datasets.resolve("dit://nowhere")
