"""Personal data is apart from what may be shared, closed to other users of the machine, and named where it is not."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

import dit_dask as dit
from dit_dask.audit.grammar import check_config, resolve_config
from dit_dask.cli import main
from dit_dask.errors import InputError
from dit_dask.inputs import datasets
from dit_dask.leave_out import LeftOut
from dit_dask.run import prepare
from dit_dask.storage.folder import Folder
from dit_dask.storage.location import Location

SCHEMA = {"quasi_identifiers": {"age": {"kind": "numeric"}, "sex": {"kind": "categorical"}}, "sensitive": "occupation"}
TESTS = [{"sanitizer": {"name": "mondrian", "k": 5}}]
MEASURES = [{"name": "discrimination", "target": "occupation", "keys": ["age"], "records": True}]
PEOPLE = datasets.census(80)


@pytest.fixture(params=[0o000, 0o022, 0o277])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param & 0o077 if os.geteuid() else request.param)
    yield
    os.umask(before)


def audit(output: object, tests: list = TESTS) -> dit.Result:
    return dit.audit(PEOPLE, schema=SCHEMA, tests=tests, measures=MEASURES, output=output)


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def personal(folder: Path) -> list[Path]:
    return [*folder.rglob("records"), *folder.rglob("records/**/*"), *folder.rglob("measures/*.parquet")]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def assert_closed(paths: list[Path]) -> None:
    assert paths
    assert {mode(path) for path in paths if path.is_file()} <= {0o600}
    assert {mode(path) for path in paths if path.is_dir()} <= {0o700}
    assert {mode(path.parent) for path in paths if path.is_file()} == {0o700}


@pytest.mark.usefixtures("umask")
def test_another_user_of_the_machine_cannot_read_records_in_a_run_folder(tmp_path: Path) -> None:
    result = audit(str(tmp_path / "runs"))
    assert_closed(personal(Path(result.url)))


@pytest.mark.usefixtures("umask")
def test_another_user_of_the_machine_cannot_read_the_private_tier(tmp_path: Path) -> None:
    audit({"url": str(tmp_path / "shared"), "private": str(tmp_path / "private")})
    assert_closed([tmp_path / "private", *(tmp_path / "private").rglob("*")])


@pytest.mark.usefixtures("umask")
def test_another_user_of_the_machine_cannot_read_tables_of_leave_out(tmp_path: Path) -> None:
    PEOPLE.head(6).to_csv(tmp_path / "people.csv", index=False)
    document = {"version": 1, "data": {"source": "people.csv"}, "schema": SCHEMA, "tests": TESTS}
    (tmp_path / "audit.yaml").write_text(json.dumps(document))
    assert main(["leave-out", str(tmp_path / "audit.yaml"), "--to", str(tmp_path / "tables" / "inputs"), "--quiet"]) == 0
    assert len(list((tmp_path / "tables" / "inputs").iterdir())) >= 5
    assert_closed([tmp_path / "tables", *(tmp_path / "tables").rglob("*")])


def test_a_folder_that_others_use_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "used").mkdir()
    (tmp_path / "used").chmod(0o755)
    (tmp_path / "used" / "notes.txt").write_text("ours")
    left_out = LeftOut(pd.DataFrame({"q": [1, 2]}), pd.Series([0]).to_numpy())
    list(left_out.write(Folder(Location(str(tmp_path / "used"), {}), personal=True), "csv"))
    assert mode(tmp_path / "used") == 0o755
    assert mode(tmp_path / "used" / "full.csv") == 0o600


def test_the_shared_folder_has_no_figure_of_a_record(tmp_path: Path) -> None:
    result = audit({"url": str(tmp_path / "shared"), "private": {"url": str(tmp_path / "private")}})
    folder = Path(result.url)
    private = tmp_path / "private" / folder.name
    assert files(folder) == {
        *(
            "manifest.json",
            "plan.json",
            "summary.json",
            "measures.json",
            "distributions.parquet",
            "report.html",
            "verdict.json",
        ),
    }
    assert {name.split("/")[0] for name in files(private)} == {"records", "measures"}
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["personal_data"] == []
    assert manifest["config"]["output"]["private"]["url"] == str(tmp_path / "private")
    assert len(result.distances()) == len(result.measured(result.measures[0]["id"])) == 80
    stamps = {path: path.stat().st_mtime_ns for path in private.rglob("*.parquet")}
    next(private.glob("records/*/*.parquet")).unlink()
    again = audit({"url": str(tmp_path / "shared"), "private": {"url": str(tmp_path / "private")}})
    assert again.url == result.url
    assert again.distances().equals(result.distances())
    assert {path for path, stamp in stamps.items() if path.stat().st_mtime_ns != stamp} <= set(private.glob("records/*/*"))
    assert main(["report", str(folder)]) == 0
    assert main(["gate", str(folder), "--fail-on", "mean_gain > 0.4"]) == 0


def test_records_of_an_earlier_run_do_not_stay_in_the_shared_folder(tmp_path: Path) -> None:
    before = audit(str(tmp_path / "shared"))
    folder, distances = Path(before.url), before.distances()
    written = {path.name: path.read_bytes() for path in folder.rglob("*.parquet") if path.name != "distributions.parquet"}
    assert json.loads((folder / "manifest.json").read_text())["personal_data"] == [
        "records/mondrian-k5/",
        f"measures/{before.measures[0]['id']}.parquet",
    ]
    after = audit({"url": str(tmp_path / "shared"), "private": str(tmp_path / "private")})
    assert [path for path in personal(folder) if path.is_file()] == []
    assert {path.name: path.read_bytes() for path in (tmp_path / "private").rglob("*.parquet")} == written
    assert not (folder / "measures").exists()
    assert after.distances().equals(distances)
    assert json.loads((folder / "manifest.json").read_text())["personal_data"] == []


def test_out_does_not_bring_records_into_the_shared_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    output = {"url": str(tmp_path / "usual"), "private": str(tmp_path / "private")}
    document = {"version": 1, "data": {"source": "people.csv"}, "schema": SCHEMA, "tests": TESTS, "output": output}
    (tmp_path / "audit.yaml").write_text(json.dumps(document | {"cluster": {"workers": 1}}))
    assert main(["run", str(tmp_path / "audit.yaml"), "--out", str(tmp_path / "other")]) == 0
    assert personal(tmp_path / "other") == []
    assert personal(tmp_path / "private")
    assert "personal data" not in capsys.readouterr().err


def test_a_run_without_a_private_place_says_which_files_are_personal_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    measures = [*MEASURES, MEASURES[0] | {"keys": ["sex"], "show_values": True, "records": False}]
    document = {"version": 1, "data": {"source": "people.csv"}, "schema": SCHEMA, "tests": TESTS, "measures": measures}
    (tmp_path / "audit.yaml").write_text(json.dumps(document | {"cluster": {"workers": 1}}))
    assert main(["run", str(tmp_path / "audit.yaml"), "--out", str(tmp_path / "runs")]) == 0
    last = capsys.readouterr().err.splitlines()[-1]
    named = "records/, measures/*.parquet, measures.json, measures/*.json, report.html"
    assert last.startswith(f"dit: personal data, not to be shared: {named} in {tmp_path}")
    (folder,) = (tmp_path / "runs").glob("audit-*")
    listed = json.loads((folder / "manifest.json").read_text())["personal_data"]
    assert len(listed) == 5
    assert all((folder / path).exists() for path in listed)


def test_credentials_of_the_private_place_reach_neither_manifest_nor_digest(tmp_path: Path) -> None:
    private = {"url": f"file://{tmp_path}/private", "storage_options": {"auto_mkdir": True, "key": "PRIVATE-CANARY"}}
    document = {"version": 1, "data": {"source": "frame"}, "schema": SCHEMA, "tests": TESTS}
    plain = prepare(check_config(document | {"output": str(tmp_path)}, "."), PEOPLE)
    config = check_config(document | {"output": {"url": str(tmp_path), "private": private}}, ".")
    prepared = prepare(config, PEOPLE)
    assert prepared.folder.url == plain.folder.url
    assert "CANARY" not in repr(prepared.folder) + repr(config.output)
    assert "CANARY" not in json.dumps(resolve_config(config, b"key"))
    named = private | {"storage_options": {"key": "${PRIVATE_KEY}"}}
    assert check_config(document | {"output": {"url": "x", "private": named}}, ".").worker_variables == ["PRIVATE_KEY"]
    with pytest.raises(dit.InputError, match=r"output.private must be another place"):
        check_config(document | {"output": {"url": "x", "private": "x/"}}, ".")


@pytest.mark.parametrize("private", ["./shared", "shared/inside", "."])
def test_a_private_place_that_is_the_shared_one_under_another_name_is_refused(
    config_file: Path, private: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dit_dask.audit.grammar import read_config
    from dit_dask.run import prepare

    monkeypatch.chdir(config_file.parent)
    config = read_config(str(config_file), [f"output={{url: shared, private: '{private}'}}"])
    with pytest.raises(InputError, match=r"must be a place apart from output\.url"):
        prepare(config)


def test_a_run_of_a_few_known_rows_lists_its_statistics_as_personal_data(config_file: Path, tmp_path: Path) -> None:
    from dit_dask.audit.grammar import read_config
    from dit_dask.run import _list_personal_data, prepare

    few = read_config(str(config_file), [f"output={tmp_path}", "tests=[{sanitizer: raw, records: [7]}]"])
    assert {"summary.json", "distributions.parquet", "report.html"} <= set(_list_personal_data(prepare(few)))
    many = read_config(str(config_file), [f"output={tmp_path}", "tests=[{sanitizer: raw}]"])
    assert "summary.json" not in _list_personal_data(prepare(many))
