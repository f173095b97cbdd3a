"""Every command, config and program that a page of the docs shows: it runs, or a list says why it cannot run here."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

import dit_dask as dit
from dit_dask.audit.grammar import read_config, read_gates
from dit_dask.cli.commands import SUBCOMMANDS
from dit_dask.cli.parser import build_parser
from tests.cluster.runs import dit as run_dit
from tests.conftest import ROOT

PAGES = sorted(str(path.relative_to(ROOT)) for path in [*(ROOT / "docs").glob("*.md"), ROOT / "README.md"])
RUN_ELSEWHERE = {"README.md", "docs/tutorial.md"}  # tests/end_to_end/test_documentation.py runs them in their order
SHELL, PYTHON = ("", "console", "sh"), "python"
RUN_FOLDER = r"runs/([a-z-]+)-[0-9a-f]{12}"

NOT_RUN = {
    "dit risk adult.yaml --missing category --without fnlwgt --top 3": "the whole Adult table: tests/oracles",
    "dit history s3://audits/nightly --name people": "a bucket with two nights: tests/cluster/test_s3.py has a real one",
    "dit leave-out audit.yaml --to s3://private/inputs": "a bucket: tests/cluster/test_s3.py",
    "dit run audit.yaml": "waits for releases that the owner makes: tests/external/test_audits.py",
    "dit verify evidence.zip --key signer.pem": "a key pair: tests/reporting",
    "dit run second.yaml": "tables of the page: tests/oracles/test_composition.py has them",
    "dit history runs": "two audits of one name: tests/unit/test_history.py",
    "dit run tuesday.yaml --set 'measures=[downcoding]'": "a table of the reader: tests/oracles/test_downcoding.py",
    "dit run attacks.yaml": "tables that the page's program writes: tests/end_to_end/test_attacks.py",
    "dit report runs/adult-k-0123456789ab --pack evidence.zip --key key.pem": "a key pair: tests/reporting",
}
"""Commands that are only parsed, and where what they do is tested."""

ENDS_WITH = {
    "dit run people.yaml": 1,
    "dit run configs/membership.yaml": 1,
    "dit tune gated.yaml --attributes": 1,
    "dit init people.csv --sensitive salary --subject patient_id --to audits/people.yaml --yes": 2,  # has no such columns
}
"""Exit codes other than 0: the pages are about gates that fail, or about tables of the reader."""

NOT_EXECUTED = {
    ("docs/external-sanitizers.md", "def anonymise"): "a function of the reader",
    ("docs/priors.md", "import pandas"): "reads a survey of the reader",
}


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    text: str

    @property
    def name(self) -> str:
        """Where it is."""
        return f"{self.page}:{self.line}"


def blocks(page: str) -> Iterator[Block]:
    """The fenced blocks of a page."""
    text = (ROOT / page).read_text("utf-8")
    for found in re.finditer(r"^```(\S*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        yield Block(page, text[: found.start()].count("\n") + 1, found[1], found[2])


EVERY_BLOCK = [block for page in PAGES for block in blocks(page)]
IN_SHELL = [
    block
    for block in EVERY_BLOCK
    if block.language in SHELL and re.search(r"^(\$ )?dit ", block.text, re.MULTILINE) and block.page not in RUN_ELSEWHERE
]


def commands(block: Block) -> list[tuple[str, list[str]]]:
    """The commands of a block, each with the lines that it prints there."""
    found: list[tuple[str, list[str]]] = []
    for line in block.text.splitlines():
        if re.match(r"(\$ )?dit ", line):
            found.append((re.sub(r"\s+#.*|\s+>>? .*", "", line.removeprefix("$ ")), []))
        elif found and line.strip() and not line.lstrip().startswith("#"):
            found[-1][1].append(line)
    return found


def parse(command: str) -> None:
    """Refuse what the command does not take."""
    try:
        build_parser(SUBCOMMANDS).parse_args(shlex.split(command)[1:])
    except SystemExit as error:
        raise AssertionError(f"{command!r} cannot be parsed") from error


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples, and finished runs for commands that look at one."""
    place = tmp_path_factory.mktemp("pages")
    for name in ("people.csv", "gated.yaml"):
        shutil.copy(ROOT / "docs/examples" / name, place)
    (place / "configs").mkdir()
    shutil.copy(ROOT / "configs/membership.yaml", place / "configs")
    assert run_dit("run", place / "gated.yaml", "--out", place / "runs").returncode == 1
    (made,) = place.glob("runs/gated-*")
    shutil.copytree(made, place / "runs/adult-k-0123456789ab")
    return place


@pytest.mark.parametrize("block", IN_SHELL, ids=lambda block: block.name)
def test_commands_run_and_print_what_the_page_shows(block: Block, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    for command, shown in commands(block):
        parse(command)
        if command in NOT_RUN:
            continue
        words = [str(_existing(word)) for word in shlex.split(command)[1:]]
        done = run_dit(*words)
        assert done.returncode == ENDS_WITH.get(command, 0), (command, done.stderr)
        printed = {_plain(line) for line in done.stdout.splitlines()}
        assert [line for line in shown if line != "…" and _plain(line) not in printed] == [], command


def _existing(word: str) -> str | Path:
    """A run of the page's name, whatever digest this version gives it."""
    named = re.fullmatch(RUN_FOLDER, word)
    if named is None or Path(word).exists():
        return word
    return next(path for path in Path("runs").iterdir() if re.fullmatch(f"{named[1]}-[0-9a-f]{{12}}", path.name))


def _plain(line: str) -> str:
    """A line without digests of runs and the folder in which they are, its words one space apart."""
    return " ".join(re.sub(rf"\S*{RUN_FOLDER}", r"runs/\1", line).split())


def test_every_command_that_is_not_run_is_on_a_page() -> None:
    on_pages = {command for block in IN_SHELL for command, _ in commands(block)}
    assert set(NOT_RUN) | set(ENDS_WITH) <= on_pages | {"dit run people.yaml"}


@pytest.mark.parametrize("page", PAGES)
def test_commands_in_sentences_have_options_that_exist(page: str) -> None:
    parsers = build_parser(SUBCOMMANDS)._subparsers._group_actions[0].choices  # type: ignore[union-attr]
    text = (ROOT / page).read_text("utf-8")
    for quoted in re.findall(r"`dit ([a-z][^`]*)`", text):
        name, *words = quoted.split()
        if name in ("demo", "data", "completion") and not words:
            continue
        assert name in parsers, (page, quoted)
        known = {option for action in parsers[name]._actions for option in action.option_strings}
        unknown = [word for word in words if re.match(r"--[a-z]", word) and word.partition("=")[0].strip("[]") not in known]
        assert unknown == [], (page, quoted)


BASE: dict[str, Any] = {
    "version": 1,
    "data": {"source": "people.csv"},
    "schema": {"quasi_identifiers": {"age": {"kind": "numeric"}, "sex": {"kind": "categorical"}}, "sensitive": "diagnosis"},
    "tests": [{"sanitizer": {"name": "mondrian", "k": 5}}],
}
IN_YAML = [block for block in EVERY_BLOCK if block.language == "yaml"]


@pytest.mark.parametrize("block", IN_YAML, ids=lambda block: block.name)
def test_configs_are_accepted(block: Block, tmp_path: Path) -> None:
    read = yaml.safe_load(block.text.replace("storage_options: {…}", "storage_options: {}"))
    tests = read if isinstance(read, list) else [read] if set(read) == {"sanitizer"} else None
    document = BASE | ({"tests": tests} if tests is not None else read)
    path = tmp_path / "page.yaml"
    path.write_text(yaml.safe_dump(document, allow_unicode=True), "utf-8")
    config = read_config(str(path))
    read_gates(config)
    assert config.points or config.measures


TOWNS, ILLNESSES = ("Ulm", "Bonn", "Rome"), ("flu", "cold", "gout")


def _frame(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {
        "age": rng.integers(18, 90, rows),
        "town": rng.choice(TOWNS, rows),
        "postcode": rng.choice(["10115", "10117", "12043", "20095"], rows),
        "illness": rng.choice(ILLNESSES, rows),
    }
    return pd.DataFrame(columns)


SCHEMA = {
    "quasi_identifiers": {
        "age": {"kind": "numeric"},
        "postcode": {"kind": "categorical", "hierarchy": {"prefix": [3, 2]}},
    },
    "sensitive": "illness",
}


def _names() -> dict[str, Any]:
    """What the programs of the pages take as given."""
    frame = _frame(300, 1)
    forest = {"name": "sklearn.ensemble.RandomForestClassifier", "params": {"n_estimators": 2}}
    test = {"sanitizer": {"name": "mondrian", "k": 10}, "adversary": forest, "repeats": 2, "records": {"sample": 10, "seed": 1}}
    tables = {"original": frame, "training": frame, "synthetic": _frame(300, 2), "holdout": _frame(300, 3)}
    return {"dit": dit, "frame": frame, "people": frame, "schema": SCHEMA, "test": test, **tables}


IN_PYTHON = [block for block in EVERY_BLOCK if block.language == PYTHON and block.page not in RUN_ELSEWHERE]


@pytest.mark.parametrize("block", IN_PYTHON, ids=lambda block: block.name)
def test_programs_run(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    hierarchy = "\n".join(["flu;infection;*", "cold;infection;*", "gout;other;*"])
    (tmp_path / "illness.csv").write_text(hierarchy, "utf-8")
    if any(block.page == page and block.text.startswith(start) for page, start in NOT_EXECUTED):
        compile(block.text, block.name, "exec")
        return
    exec(compile(block.text, block.name, "exec"), _names())


def test_every_program_that_is_not_executed_is_on_a_page() -> None:
    for page, start in NOT_EXECUTED:
        assert any(block.page == page and block.text.startswith(start) for block in IN_PYTHON)
