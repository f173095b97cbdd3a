"""Small inputs that try to cost much: bombs, endless sweeps, long values, damaged documents, hidden separators."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

import dit_dask as dit
from dit_dask.audit.grammar import check_config
from dit_dask.cli import main
from dit_dask.config.yaml import parse_yaml
from dit_dask.errors import InputError
from dit_dask.inputs import source
from dit_dask.inputs.load import load_columns
from dit_dask.storage import compression
from tests.audits import WORKED, WORKED_SCHEMA, checked, loaded

LONGEST_MESSAGE = 1000
TESTS = [{"sanitizer": {"name": "mondrian", "k": 2}}]


def fails_quickly(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run a command that must be refused with one short line within seconds of processor time; return the line."""
    started = time.process_time()
    assert main(list(arguments)) == 2
    assert time.process_time() - started < 20
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert "unexpected" not in line
    assert len(line) < LONGEST_MESSAGE
    return line


def write_config(folder: Path, **keys: Any) -> str:
    document = {"version": 1, "data": {"source": "people.csv"}, "schema": WORKED_SCHEMA, "tests": TESTS} | keys
    (folder / "audit.yaml").write_text(yaml.safe_dump(document | {"output": str(folder / "runs")}), "utf-8")
    WORKED.to_csv(folder / "people.csv", index=False)
    return str(folder / "audit.yaml")


def test_a_merge_bomb_of_yaml_is_refused() -> None:
    lines = ["a0: &a0 {" + ", ".join(f"k{key}: 1" for key in range(20)) + "}"]
    lines += [f"a{level}: &a{level} {{<<: [{', '.join([f'*a{level - 1}'] * 12)}]}}" for level in range(1, 9)]
    text = "\n".join(lines)
    assert len(text) < 1000
    started = time.process_time()
    with pytest.raises(InputError, match="more than 100,000 values"):
        parse_yaml(text, "config audit.yaml")
    assert time.process_time() - started < 5


def test_an_alias_bomb_and_a_value_that_contains_itself_are_refused() -> None:
    for text in (
        "a: &a [*a]",
        "\n".join(["a0: &a0 [1]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]),
    ):
        with pytest.raises(InputError, match=r"more than 100,000|not valid YAML"):
            parse_yaml(text, "config audit.yaml")
    assert parse_yaml("a: &a {x: 1}\nb: {<<: *a, y: 2}", "") == {"a": {"x": 1}, "b": {"x": 1, "y": 2}}
    assert parse_yaml("", "") is None


def test_a_gzip_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "FREE_BYTES", 2**20)
    header, row = b"age,gender,disease\n", b"30,M,Flu\n"
    with gzip.open(tmp_path / "people.csv.gz", "wb") as file:
        file.write(header + row * 2_000_000)
    config = checked(WORKED_SCHEMA, folder=str(tmp_path), data={"source": "people.csv.gz"})
    with pytest.raises(InputError, match="grows to more than 100 times its size"):
        load_columns(config, [])
    WORKED.to_csv(tmp_path / "people.csv.gz", index=False)
    assert len(load_columns(config, [])) == len(WORKED)


def test_a_config_value_of_a_megabyte_is_not_repeated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    long = "x" * 1_000_000
    for keys in ({"seed": long}, {"name": long}, {"gates": [long]}, {long: 1}, {"output": {"url": "a", long: "b"}}):
        document = {"version": 1, "data": {"source": "people.csv"}, "schema": WORKED_SCHEMA, "tests": TESTS} | keys
        (tmp_path / "audit.yaml").write_text(json.dumps(document))
        fails_quickly(capsys, "run", str(tmp_path / "audit.yaml"))
    fails_quickly(capsys, "run", write_config(tmp_path), "--set", long)
    fails_quickly(capsys, "run", write_config(tmp_path), "--set", f"seed={long}")


def test_a_sweep_of_a_billion_tests_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    many = list(range(2, 1002))
    tests = [{"sanitizer": {"name": "mondrian", "k": many}, "engine": ["auto"] * 1000, "distance": ["emd"] * 1000}]
    assert "1,000,000,000 tests; at most 1,000" in fails_quickly(capsys, "plan", write_config(tmp_path, tests=tests))
    several = [{"sanitizer": {"name": "mondrian", "k": many[:600]}}, {"sanitizer": {"name": "mondrian", "k": many[:600]}}]
    assert "at most 1,000" in fails_quickly(capsys, "plan", write_config(tmp_path, tests=several))
    fails_quickly(capsys, "plan", write_config(tmp_path, cluster={"workers": 10**9}))


@pytest.mark.parametrize(
    "keys",
    [
        {"seed": 10**400},
        {"cluster": {"stall_seconds": 10**400}},
        {"tests": [{"sanitizer": {"name": "mondrian", "k": 10**400}}]},
        {"tests": [{"sanitizer": {"name": "laplace", "epsilon": 10**400}}]},
        {"tests": [{"sanitizer": "raw", "repeats": 10**9}]},
        {"gates": ["delta <= 10^400"]},
        {"data": {"source": "people.csv", "limit": 10**400}},
    ],
)
def test_ten_to_the_four_hundredth_is_one_line(keys: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fails_quickly(capsys, "run", write_config(tmp_path, **keys))


def test_cells_of_ten_to_the_four_hundredth_are_one_line() -> None:
    for cell in (10**400, str(10**400)):
        ages = [cell, *(type(cell)(age) for age in WORKED["age"][1:])]
        frame = WORKED.assign(age=pd.Series(ages, dtype=object))
        with pytest.raises(InputError, match="column 'age' must be numbers that differ by less than 1e308"):
            loaded(frame, WORKED_SCHEMA)


@pytest.mark.parametrize(
    "name",
    [
        "..%2fother.csv",
        "%2e%2e/other.csv",
        "%252e%252e%252fother.csv",
        "a%2f..%2f..%2fother.csv",
        "..\\other.csv",
        "%2fetc/x.csv",
    ],
)
def test_a_percent_encoded_pointer_does_not_lead_out_of_its_folder(name: str) -> None:
    for text in (name, json.dumps({"source": name})):
        with pytest.raises(InputError, match="must hold one name of a file beside or below it"):
            source._resolve_pointer(text, "https://host/folder/latest")
    assert source._resolve_pointer("a%20b/c.csv", "https://host/folder/latest") == "https://host/folder/a%20b/c.csv"


def test_a_parquet_file_with_a_pandas_index_is_read(tmp_path: Path) -> None:
    frame = WORKED.set_index("age")
    frame.to_parquet(tmp_path / "named.parquet")
    WORKED.set_index(pd.Index([7, 3, 5, 1, 2])).to_parquet(tmp_path / "unnamed.parquet")
    for name in ("named.parquet", "unnamed.parquet"):
        config = check_config(
            {"version": 1, "data": {"source": name}, "schema": WORKED_SCHEMA, "tests": TESTS}, folder=str(tmp_path)
        )
        read = load_columns(config, [])
        assert sorted(read.columns) == sorted(WORKED.columns)
        pd.testing.assert_frame_equal(read[list(WORKED.columns)].astype(WORKED.dtypes), WORKED)


def test_a_header_with_a_quoted_newline_is_read(tmp_path: Path) -> None:
    frame = WORKED.rename(columns={"age": "age\nin years"})
    frame.to_csv(tmp_path / "people.csv", index=False)
    config = checked(WORKED_SCHEMA, folder=str(tmp_path), data={"source": "people.csv"})
    assert list(load_columns(config, [])["age\nin years"]) == [str(age) for age in WORKED["age"]]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    result = dit.audit(WORKED, schema=WORKED_SCHEMA, tests=TESTS, output=str(tmp_path_factory.mktemp("runs")))
    return Path(result.url)


DAMAGE: dict[str, Any] = {
    "nothing": b"",
    "half": b'{"schema_version": 1, "plan"',
    "deep": b"[" * 100_000,
    "text": b'"text"',
    "bytes": b"\xff\xfe\x00",
    "a billion tasks": {"tasks": 10**9, "distinct": 10**30},
    "boundaries": {"boundaries": [0, 10**400]},
    "cut elsewhere": {"boundaries": [0, 2, 9]},
    "words": {"tasks": "many"},
}


def damage(content: bytes, how: Any) -> bytes:
    if isinstance(how, bytes):
        return how
    document = json.loads(content)
    for plan in document["plan"].values():
        plan |= how
    return json.dumps(document).encode()


@pytest.mark.parametrize("how", DAMAGE)
@pytest.mark.parametrize("names", [("manifest.json",), ("plan.json", "manifest.json")])
def test_a_damaged_plan_or_manifest_is_mended_or_refused_in_one_line(
    names: tuple[str, ...], how: str, finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = {name: (finished / name).read_bytes() for name in ("plan.json", "manifest.json")}  # mended by the test before
    before = {path.name: path.read_bytes() for path in (finished / "records").rglob("*.parquet")}
    for name in names:
        (finished / name).write_bytes(damage(kept[name], DAMAGE[how]))
    for command in ("report", "gate"):
        if main([command, str(finished)]) == 2:
            line = capsys.readouterr().err
            assert line.count("\n") == 1
            assert "unexpected" not in line
    again = dit.audit(WORKED, schema=WORKED_SCHEMA, tests=TESTS, output=str(finished.parent))
    assert Path(again.url) == finished
    assert {path.name: path.read_bytes() for path in (finished / "records").rglob("*.parquet")} == before


def test_a_lost_manifest_and_plan_leave_no_stale_parts_beside_new_ones(finished: Path) -> None:
    (folder,) = (finished / "records").iterdir()
    for name in ("manifest.json", "plan.json"):
        (finished / name).unlink()
    stale = folder / "part-00007.parquet"
    stale.write_bytes((folder / "part-00000.parquet").read_bytes())
    again = dit.audit(WORKED, schema=WORKED_SCHEMA, tests=TESTS, output=str(finished.parent))
    assert not stale.exists()
    assert len(again.distances()) == len(WORKED)
