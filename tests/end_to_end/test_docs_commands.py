"""Every `$ dit …` line of every page is known to the parser; what no test runs is in one list, with the reason."""

from __future__ import annotations

import re
import shlex

import pytest

from dit_dask.cli.commands import SUBCOMMANDS
from dit_dask.cli.parser import build_parser
from tests.conftest import ROOT

RUN_ELSEWHERE = {"tutorial.md": "tests/end_to_end/test_documentation.py runs them"}
NOT_RUN = {
    "choosing.md": "the table clinic.csv of the example is not in the repository",
    "configuration.md": "the second command needs a table with salaries and patients",
    "discrimination-rate.md": "needs the real Adult table",
    "explaining.md": "the table clinic.csv of the example is not in the repository",
    "external-sanitizers.md": "needs a bucket",
    "hardening.md": "the table clinic.csv of the example is not in the repository",
    "releasing.md": "the table of the example is not in the repository",
    "reports.md": "needs a key and a finished run; tests/reporting runs the same subcommands",
    "storage.md": "needs a bucket",
}


def commands_of(text: str) -> list[str]:
    """The commands of all console blocks, without prompts and comments."""
    blocks = re.findall(r"^```console\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


PAGES = {path.name: path.read_text("utf-8") for path in sorted((ROOT / "docs").glob("*.md"))}
COMMANDS = [(name, command) for name, text in PAGES.items() for command in commands_of(text)]


def test_every_page_with_commands_is_run_or_listed() -> None:
    assert {name for name, _ in COMMANDS} == set(RUN_ELSEWHERE) | set(NOT_RUN)


@pytest.mark.parametrize(("page", "command"), COMMANDS)
def test_the_parser_knows_every_command(page: str, command: str) -> None:
    program, *words = shlex.split(command, comments=True)
    assert program == "dit", page
    arguments = words[: words.index(">>")] if ">>" in words else words
    build_parser(SUBCOMMANDS).parse_args(arguments)


@pytest.mark.parametrize("page", PAGES)
def test_commands_stand_in_console_blocks(page: str) -> None:
    blocks = re.findall(r"^```(\S*)\n(.*?)^```", PAGES[page], re.DOTALL | re.MULTILINE)
    others = [body for kind, body in blocks if kind != "console"]
    assert not [line for body in others for line in body.splitlines() if line.startswith(("$ ", "dit "))]
