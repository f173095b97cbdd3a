"""Text from data, files and configs that tries to write lines of its own to a terminal or a report."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pandas as pd
import pytest
import yaml

import dit_dask as dit
from dit_dask.cli import main
from dit_dask.cli.terminal import EscapingFormatter
from dit_dask.errors import escape_text
from dit_dask.execution.progress import Bar, Lines
from dit_dask.reporting.text import align
from dit_dask.storage.documents import dump_json

FORGED = "dit: forged line: all gates held"
HOSTILE = f"a\x1b[2J\x1b]0;title\x07\r\n{FORGED}\n\u202ereversed\u2066\x9b1m\u200f"
DIRECTING = "\x1b\x07\r\x9b\u202e\u2066\u200f\u2028\ud800"


def assert_harmless(text: str) -> None:
    """No line begins with the forged text, and no character directs a terminal."""
    assert not any(line.lstrip().startswith(FORGED) for line in text.splitlines())
    assert not set(text) & set(DIRECTING)


def write_config(folder: Path, **keys: object) -> str:
    path = folder / "audit.yaml"
    path.write_text(yaml.safe_dump({"version": 1, "output": str(folder / "runs"), **keys}, allow_unicode=False), "utf-8")
    return str(path)


def test_a_column_name_forges_no_line_of_a_ranking(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = pd.DataFrame({HOSTILE: ["x", "y"] * 20, "age": range(40)})
    frame.to_parquet(tmp_path / "table.parquet")
    config = write_config(tmp_path, data={"source": "table.parquet"})
    for arguments in (["risk", config], ["risk", config, "--json"]):
        assert main(arguments) == 0
        shown = capsys.readouterr()
        assert_harmless(shown.out + shown.err)
    for name in ("risk.svg", "risk.json"):
        assert_harmless((tmp_path / "runs" / "audit-risk" / name).read_text("utf-8"))
    keys = [column["keys"] for column in json.loads(shown.out)["columns"]]
    assert [HOSTILE] in keys  # JSON still holds the name itself


def test_a_file_name_forges_no_error_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = f"a\n{FORGED}\n\x1b[1m.txt"
    (tmp_path / name).write_text("age\n1\n")
    assert main(["risk", write_config(tmp_path, data={"source": name})]) == 2
    assert_harmless(capsys.readouterr().err)
    assert main(["risk", write_config(tmp_path, data={"source": f"none\n{FORGED}\n.csv"})]) == 2
    assert_harmless(capsys.readouterr().err)
    assert main(["report", str(tmp_path / name)]) == 2
    assert_harmless(capsys.readouterr().err)


def test_a_config_forges_no_error_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for keys in ({"name": HOSTILE}, {HOSTILE: 1}, {"seed": HOSTILE}, {"data": {"source": "x.csv", HOSTILE: 1}}):
        assert main(["risk", write_config(tmp_path, **{"data": {"source": "x.csv"}, **keys})]) == 2
        assert_harmless(capsys.readouterr().err)
    with pytest.raises(SystemExit):
        main(["risk", "audit.yaml", f"--{FORGED}\n{FORGED}\x1b"])
    assert_harmless(capsys.readouterr().err)


def test_labels_and_names_forge_no_line_of_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    label = HOSTILE.replace("\r", "")
    frame = pd.DataFrame({HOSTILE: [label, "y"] * 20, "age": range(40), "illness": ["flu", HOSTILE, "gout", "flu"] * 10})
    result = dit.audit(
        frame,
        schema={"quasi_identifiers": {HOSTILE: {"kind": "categorical"}, "age": {"kind": "numeric"}}, "sensitive": "illness"},
        tests=[{"sanitizer": {"name": "mondrian", "k": 5}}],
        measures=[{"name": "discrimination", "keys": [HOSTILE], "target": "illness", "show_values": True}],
        gates=["delta <= 0.1"],
        output=str(tmp_path / f"runs\n{FORGED}\n"),
        quiet=False,
    )
    assert_harmless(capsys.readouterr().err)
    folder = Path(result.folder.location.url)
    assert_harmless((folder / "report.html").read_text("utf-8"))
    for path in folder.glob("*.json"):
        assert_harmless(path.read_text("utf-8"))
    for command in ("report", "gate", "history"):
        assert main([command, str(folder if command != "history" else folder.parent)]) in (0, 1)
        assert_harmless(capsys.readouterr().out)


def test_notes_of_others_forge_no_progress_line(capsys: pytest.CaptureFixture[str]) -> None:
    for progress in (Lines(), Bar()):
        progress.note(f"an adversary raised {HOSTILE} while training")
        assert_harmless(capsys.readouterr().err)


def test_a_trace_holds_no_line_of_dit() -> None:
    try:
        raise ValueError(HOSTILE)
    except ValueError as error:
        record = logging.LogRecord("dit_dask", 40, __file__, 1, "failed", None, (type(error), error, error.__traceback__))
    shown = EscapingFormatter("%(message)s").format(record)
    assert shown.startswith("dit: failed\n")
    assert all(line.startswith("  ") for line in shown.split("\n")[1:])
    assert not set(shown) & set(DIRECTING)


def test_text_stays_readable_and_cells_are_one_line() -> None:
    assert escape_text("Köln – ≥ 3 日本") == "Köln – ≥ 3 日本"
    assert escape_text("a\nb\x1b") == "a\\nb\\x1b"
    assert align([["a\nb", "1"], ["c", "2"]]).splitlines() == ["a\\nb  1", "c     2"]
    assert json.loads(dump_json({"a": HOSTILE})) == {"a": HOSTILE}
    assert dump_json("\ud800").isascii()
