"""An attacker with the shareable folder, where a test, a measure or a table is of fewer than ten people."""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import dit_dask as dit
from dit_dask.audit.parts import Part, PartFile, read_tallies, write_part
from dit_dask.cli import main
from dit_dask.engines import Influence
from dit_dask.engines.gain import GainTally
from dit_dask.storage.folder import Folder
from dit_dask.storage.location import Location
from tests.audits import loaded
from tests.conftest import ROOT

SCHEMA = {"quasi_identifiers": {"town": {"kind": "categorical"}}, "sensitive": "illness"}
PEOPLE = pd.DataFrame({"town": list("abcde") * 8, "illness": list("xxyyzxzy") * 5})
FEW = {"sanitizer": "suppressed", "distance": "hellinger", "records": [7]}  # figures unlike those of MANY
MANY = {"sanitizer": {"name": "mondrian", "k": 15}}
EXACT = {"name": "discrimination", "keys": ["town"], "target": "illness", "show_values": True}


def suppress_all(frame: pd.DataFrame) -> pd.DataFrame:
    """A sanitizer that publishes no town."""
    return frame.assign(town="*")


def audit(folder: Path, tests: list[Any], *, private: bool = True, people: pd.DataFrame = PEOPLE, **more: Any) -> dit.Result:
    output: Any = str(folder / "shared")
    if private:
        output = {"url": output, "private": str(folder / "private")}
    return dit.audit(people, schema=SCHEMA, tests=tests, output=output, **more)


def read(path: Path, name: str) -> Any:
    return json.loads((path / name).read_text())


def all_texts(folder: Path) -> str:
    texts = [path.read_text() for path in folder.rglob("*") if path.suffix in (".json", ".html")]
    return "".join([*texts, *(pq.read_table(path).to_pandas().to_csv() for path in folder.rglob("*.parquet"))])


def guess_secret(people: pd.DataFrame, row: int, shown: Callable[[dit.Result], object], folder: Path) -> list[str]:
    """Try each illness of one person against a figure: those that give the same figure."""
    truth = shown(audit(folder / "true", [FEW | {"records": [row]}], people=people))
    found = []
    for illness in sorted(people["illness"].unique()):
        guess = people.assign(illness=people["illness"].where(people.index != row, illness))
        found += [illness] if shown(audit(folder / illness, [FEW | {"records": [row]}], people=guess)) == truth else []
    return found


def test_the_distance_of_one_known_row_gives_away_a_secret_and_is_not_in_the_shared_folder(tmp_path: Path) -> None:
    """The attacker knows all but one cell; the figures of one row would tell it."""
    people = PEOPLE.assign(illness=PEOPLE["illness"].where(PEOPLE.index != 7, "rare"))
    exact = guess_secret(people, 7, lambda result: result.tests[0]["delta"], tmp_path / "exact")
    assert exact == ["rare"]
    shared = guess_secret(
        people, 7, lambda result: {**read(Path(result.url), "summary.json")[0], "seconds": 0}, tmp_path / "shared"
    )
    assert shared == ["rare", "x", "y", "z"]


def test_figures_of_few_rows_are_in_no_shared_file(tmp_path: Path) -> None:
    result = audit(tmp_path, [FEW, MANY], gates=["delta <= 0.001"], controls=False)  # a control of all rows has equal figures
    shared, private = Path(result.url), tmp_path / "private" / Path(result.url).name
    delta, other = result.tests[0]["delta"], result.tests[1]["delta"]
    assert delta > 0.01
    assert other != delta
    withheld, shown = read(shared, "summary.json")
    assert withheld["withheld"] is True
    assert withheld["records"] == 1
    assert (withheld["delta"], withheld["mean"], withheld["argmax_changed"]) == (None, None, None)
    assert set(withheld["quantiles"].values()) == set(withheld["share_over"].values()) == {None}
    assert shown["delta"] == other
    assert set(pq.read_table(shared / "distributions.parquet")["test"].to_pylist()) == {result.tests[1]["test"]}
    published = all_texts(tmp_path / "shared")  # index.json is one of them
    assert [form for form in (repr(delta), f"{delta:.6g}", f"{delta:.4g}") if form in published] == []
    assert f"{other:.6g}" in published
    assert read(private, "summary.json")[0]["delta"] == delta
    assert f"{delta:.6g}" in (private / "report.html").read_text()
    assert read(shared, "manifest.json")["personal_data"] == []


def test_gates_are_judged_by_what_is_withheld_and_again_only_in_the_private_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = audit(tmp_path, [FEW | {"distance": "emd"}], gates=["delta <= 0.1"])
    private = tmp_path / "private" / Path(result.url).name
    assert result.passed
    assert "PASS" in (Path(result.url) / "report.html").read_text()
    assert main(["gate", result.url]) == 0  # the verdict stands, its figures are withheld
    assert main(["gate", result.url, "--fail-on", "delta > 0.1"]) == 1
    assert "delta is withheld here: it is of fewer than 10 rows" in capsys.readouterr().out
    assert main(["gate", str(private)]) == 0
    assert main(["report", str(private)]) == 0
    assert result.plot().svg
    assert main(["history", str(tmp_path / "private")]) == 0
    assert f"{result.tests[0]['delta']:.4g}" in capsys.readouterr().out


def test_figures_that_an_earlier_run_shared_are_withheld_once_there_is_a_private_place(tmp_path: Path) -> None:
    before = audit(tmp_path, [FEW], private=False, measures=[EXACT])
    after = audit(tmp_path, [FEW], measures=[EXACT])
    assert before.url == after.url
    assert [_without_time(entry) for entry in before.tests] == [_without_time(entry) for entry in after.tests]
    assert before.measures == after.measures
    assert repr(before.tests[0]["delta"]) not in all_texts(tmp_path / "shared")
    assert read(Path(after.url), "measures.json")[0]["by_value"] == []
    again = audit(tmp_path, [FEW], measures=[EXACT])
    assert (again.tests, again.measures) == (after.tests, after.measures)
    assert list((tmp_path / "shared").rglob("records*")) == []


def test_what_measures_show_on_demand_goes_to_the_private_place(tmp_path: Path) -> None:
    people = pd.DataFrame({"town": ["a"] * 20 + ["b"] * 19 + ["Solitude"], "illness": list("xy") * 19 + ["x", "Kuru"]})
    skewness = {"name": "discrimination", "attack": "skewness", "show_values": True}
    result = audit(tmp_path, [], people=people, measures=[EXACT, skewness])
    private = tmp_path / "private" / Path(result.url).name
    assert {"Solitude", "Kuru"} <= {line["value"] for entry in result.measures for line in _lines(entry)}
    assert "Solitude" in (private / "report.html").read_text()
    published = all_texts(tmp_path / "shared")
    assert "Solitude" not in published
    assert "Kuru" not in published
    shared = read(Path(result.url), "measures.json")
    assert [entry["value"] for entry in shared] == [entry["value"] for entry in result.measures]
    assert [_lines(entry) for entry in shared] == [[], []]


def _without_time(entry: dict[str, Any]) -> dict[str, Any]:
    """A test's figures without its seconds: under a new key of digests its parts are computed again."""
    return {name: value for name, value in entry.items() if name != "seconds"}


def _lines(entry: dict[str, Any]) -> list[dict[str, Any]]:
    return [*entry["by_value"], *entry.get("partitions", ())]


def test_a_table_of_few_people_shares_no_figure(tmp_path: Path) -> None:
    measures = [
        {"name": "discrimination", "keys": ["town"], "target": "illness"},
        {"name": "discrimination", "attack": "skewness"},
    ]
    result = audit(tmp_path, [MANY | {"sanitizer": {"name": "mondrian", "k": 2}}], people=PEOPLE.head(9), measures=measures)
    shared = Path(result.url)
    assert result.tests[0]["delta"] is not None
    assert {entry["value"] for entry in read(shared, "measures.json")} == {None}
    assert read(shared, "summary.json")[0]["delta"] is None
    assert "Discrimination rates" not in (shared / "report.html").read_text()


def test_without_a_private_place_figures_of_few_rows_are_named_and_closed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    document = {"version": 1, "data": {"source": "people.csv"}, "schema": SCHEMA, "tests": [FEW], "cluster": {"workers": 1}}
    (tmp_path / "audit.yaml").write_text(json.dumps(document))
    assert main(["run", str(tmp_path / "audit.yaml"), "--out", str(tmp_path / "runs")]) == 0
    last = capsys.readouterr().err.splitlines()[-1]
    (folder,) = (tmp_path / "runs").glob("audit-*")
    files = ["summary.json", "distributions.parquet", "report.html"]
    assert all(name in last for name in [*files, "../index.json"])
    assert {name: stat.S_IMODE((folder / name).stat().st_mode) for name in files} == dict.fromkeys(files, 0o600)
    assert stat.S_IMODE((folder / "manifest.json").stat().st_mode) & 0o044
    private = ["--set", f"output={json.dumps({'url': str(tmp_path / 'runs'), 'private': str(tmp_path / 'private')})}"]
    assert main(["run", str(tmp_path / "audit.yaml"), *private]) == 0
    assert "because they tell about fewer than 10 rows: figures of suppressed" in capsys.readouterr().err.splitlines()[-1]


def test_cached_releases_of_earlier_runs_move_to_the_private_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    test = {"sanitizer": {"name": "python", "target": f"{__name__}:suppress_all", "timeout": 60}, "records": list(range(12))}
    before = audit(tmp_path, [test], private=False)
    cached = {path.name for path in (tmp_path / "shared" / ".releases").rglob("*.npz")}
    assert cached
    assert "../.releases/" in read(Path(before.url), "manifest.json")["personal_data"]
    after = audit(tmp_path, [test])
    assert [path for path in (tmp_path / "shared" / ".releases").rglob("*") if path.is_file()] == []
    assert {path.name for path in (tmp_path / "private" / ".releases").rglob("*.npz")} == cached
    assert read(Path(after.url), "manifest.json")["personal_data"] == []


def guess_part(
    folder: Path, name: str, digest: str, distances: list[float], gains: dict[str, GainTally]
) -> list[tuple[float, int]]:
    """Write the part of row 7 for each guess of its distance and prediction; those with this digest are true."""
    found = []
    multiplicity = int((PEOPLE.loc[7] == PEOPLE).all(axis=1).sum())
    for distance, predicted, without in product(distances, range(3), range(3)):
        influence = Influence(np.array([distance]), np.array([predicted], np.int32), np.array([without], np.int32))
        place = Folder(Location(str(folder), {}))
        place.remove(name)
        part, _ = write_part(place, Part(name, np.array([7]), np.array([7]), np.array([multiplicity]), influence, gains))
        found += [(distance, predicted)] if part.digest == digest else []
    return found


def test_the_digest_of_a_part_of_one_row_does_not_confirm_a_guess_of_its_figures(tmp_path: Path) -> None:
    """The adversary's figures are simple fractions here, so all parts can be tried; without `private` they lie open anyway."""
    test = {"sanitizer": "suppressed", "adversary": "conditional-frequency", "records": [7]}
    fractions = sorted({2 * a / b for b in range(1, 12) for a in range(b + 1)})
    found = {}
    for private in (False, True):
        result = audit(tmp_path / str(private), [test], private=private)
        (part,) = read(Path(result.url), "manifest.json")["parts"][result.tests[0]["test"]]
        true = result.distances().iloc[0]
        distances = [*fractions, true["distance"]]  # an attacker would have more of them
        content = result.folder.read(part["name"])
        assert content is not None
        stored = PartFile(part["name"], 1, hashlib.sha256(content).hexdigest())
        gains = read_tallies(result.folder, stored)
        assert gains is not None
        found[private] = guess_part(tmp_path / "guesses", part["name"], part["digest"], distances, gains)
    assert (true["distance"], true["predicted"]) in found[False]
    assert found[True] == []


def test_a_table_of_three_people_is_found_by_trying_all_tables_against_the_digest(tmp_path: Path) -> None:
    """The documented level of the fingerprint where all possible tables can be tried (decision 015)."""
    people = pd.DataFrame({"town": ["a", "b", "a"], "illness": ["y", "x", "x"]})
    result = audit(tmp_path, [{"sanitizer": "raw"}], people=people)
    digest = read(Path(result.url), "manifest.json")["input"]["digest"]
    guesses = [pd.DataFrame({"town": cells[:3], "illness": cells[3:]}) for cells in product("ab", "ab", "ab", *["xy"] * 3)]
    matches = [guess for guess in guesses if guess["illness"].nunique() > 1 and loaded(guess, SCHEMA).digest() == digest]
    assert [match.to_dict("list") for match in matches] == [people.to_dict("list")]
