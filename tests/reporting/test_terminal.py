"""What a terminal, a pull request and a scheduler get of a finished run."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dit_dask.audit.summary import TestSummary as Summary
from dit_dask.cli import main, printing
from dit_dask.cli.commands import SUBCOMMANDS
from dit_dask.cli.completion import option_words, script
from dit_dask.measures.base import MeasureEntry
from dit_dask.reporting.markdown import escape_markdown
from dit_dask.reporting.text import measures_text, text_table
from tests.reporting.runs import HOSTILE
from tests.unit.summaries import DOCUMENT


def on_terminal(arguments: list[str], columns: int, **variables: str) -> str:
    """What a command prints on a terminal of so many columns."""
    import fcntl
    import struct
    import termios

    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
    command = [sys.executable, "-m", "dit_dask", *arguments]
    environment = kept | {"TERM": "xterm"} | variables
    with subprocess.Popen(command, stdout=follower, stderr=subprocess.DEVNULL, env=environment, close_fds=True) as process:
        os.close(follower)
        parts = []
        while True:
            try:
                part = os.read(leader, 65536)
            except OSError:  # the terminal is closed when the command ends
                break
            if not part:
                break
            parts.append(part)
    os.close(leader)
    assert process.returncode == 0
    return b"".join(parts).decode()


def test_a_table_fits_the_terminal_and_colours_can_be_turned_off(hostile_run: Path) -> None:
    shown = on_terminal(["show", str(hostile_run)], 80)
    lines = shown.replace("\r", "").splitlines()
    table = lines[: next(place for place, line in enumerate(lines) if line.startswith("more columns"))]
    assert max(map(len, table)) <= 80
    assert "delta" in table[0]
    assert "\x1b[1;31mFAIL\x1b[0m" in shown
    plain = on_terminal(["show", str(hostile_run), "--wide"], 80, NO_COLOR="1")
    assert "\x1b" not in plain
    assert "engine s" in plain


@pytest.mark.parametrize("width", [40, 60, 80, 100, 132, 200])
def test_columns_appear_by_their_importance(width: int) -> None:
    summary = Summary.read(DOCUMENT)
    table = text_table([summary], (), width)
    header = table.splitlines()[0]
    assert all(len(line) <= width for line in table.splitlines())
    assert "delta" in header
    full = text_table([summary])
    if width >= max(map(len, full.splitlines())):
        assert table == full


@pytest.mark.parametrize("width", [40, 60, 80, 100, 132, 200])
def test_tables_of_measures_fit_the_terminal_too(width: int) -> None:
    figures = {
        "certainty_penalty": 0.1234567,
        "discernibility": 123_456,
        "average_class": 5.25,
        "query_error": {"0.5": 0.1, "0.95": 0.5},
        "tvd": {"1": 0.1, "2": 0.2},
    }
    found = [
        MeasureEntry("utility", f"utility.{name}", {}, None, 0.1, [], 10, figures, []) for name in ("original", "k" * 70 + "5")
    ]
    undecided = MeasureEntry("closeness", "closeness-file.csv", {}, None, None, [], 10, {"reason": "too few rows " * 20}, [])
    entries = [*found, undecided]
    text = measures_text(entries, width)
    assert all(len(line) <= width for line in text.splitlines())
    assert "certainty penalty" in text
    assert "kk5  " in text
    assert "too few rows " * 19 in measures_text(entries)


def test_no_colour_where_stdout_is_no_terminal(hostile_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(hostile_run)]) == 0
    captured = capsys.readouterr()
    assert "\x1b" not in captured.out
    assert captured.out.splitlines()[-1] == str(hostile_run)
    assert f"next: dit explain {hostile_run}" in captured.err
    assert printing.terminal_width() is None


def test_markdown_has_the_verdict_and_cannot_be_broken_out_of(hostile_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(hostile_run), "--markdown"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("## ❌ FAIL: audit hostile\n")
    assert "<script" not in text
    tables = [block.splitlines() for block in text.split("\n\n") if block.startswith("| ")]
    assert len(tables) == 3
    assert all(len({line.count("|") for line in table}) == 1 for table in tables)


@given(st.text(alphabet="|`<>@[]()*_:/\\\nwW.#!$&ab", max_size=40))
def test_escaped_text_has_no_sign_that_markdown_reads(text: str) -> None:
    escaped = re.sub(r"&#\d+;", "x", escape_markdown(text))
    assert not re.search(r"[\\`*_\[\]|<>@\n]|:/|www\.", escaped, re.IGNORECASE)


def test_metrics_are_open_metrics_text(hostile_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "dit.prom"
    assert main(["gate", str(hostile_run), "--metrics", str(path)]) == 1
    text = path.read_text("utf-8")
    assert text.endswith("# EOF\n")
    sample = re.compile(r'([a-z_]+)\{((?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)*)\} (\S+)')
    families: list[str] = []
    values: dict[str, float] = {}
    for line in text.splitlines()[:-1]:
        if line.startswith("# TYPE "):
            families.append(line.split()[2])
        elif not line.startswith("#"):
            match = sample.fullmatch(line)
            assert match, line
            assert match[1] == families[-1]  # the samples of a family are together
            values[f"{match[1]}{{{match[2]}}}"] = float(match[3])
    assert len(set(families)) == len(families)
    summary = json.loads((hostile_run / "summary.json").read_text("utf-8"))
    for test in summary:
        assert values[f'dit_delta{{audit="hostile",test="{test["test"]}"}}'] == test["delta"]
    assert values['dit_status{audit="hostile",status="failed"}'] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["dit.prom"]
    assert main(["show", str(hostile_run), "--metrics", str(tmp_path / "no" / "such")]) == 2
    assert "--metrics: cannot write" in capsys.readouterr().err


def test_completion_knows_every_command_and_option() -> None:
    listed = [one for one in SUBCOMMANDS if one.is_listed]
    words = option_words(listed)
    assert {"--pack", "--key", "--private"} <= set(words["report"])
    assert "launch" not in words
    for shell in ("bash", "zsh", "fish"):
        text = script(shell, listed)
        assert all(one.name in text for one in listed)
    checked = subprocess.run(["bash", "-n"], input=script("bash", listed), capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")
    ask = 'COMP_WORDS=(dit report --p); COMP_CWORD=2; _dit dit --p; echo "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", script("bash", listed) + ask], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["--pack", "--private"]


def test_hostile_names_are_one_line_on_a_terminal(hostile_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["show", str(hostile_run)])
    assert HOSTILE[4] not in capsys.readouterr().out  # its direction mark is escaped
