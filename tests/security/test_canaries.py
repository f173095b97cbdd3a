"""Secrets are planted in every place that a config has; nothing that is written, printed, logged or sent shows one."""

from __future__ import annotations

import json
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from tests.cluster.runs import dit, written_text
from tests.security.canaries import Canaries, config, served, write_files


@dataclass(frozen=True)
class Planted:
    """A finished run of a config full of secrets: what it printed, and the folder of its runs."""

    canaries: Canaries
    printed: str
    output: Path
    document: dict[str, Any]

    def read(self, name: str) -> Any:
        (path,) = self.output.glob(f"*/{name}")
        return json.loads(path.read_text("utf-8"))


def run(folder: Path, document: Any, *options: str, **environment: str) -> tuple[int, str]:
    """Write a config and run it in its folder."""
    (folder / "canary.yaml").write_text(document if isinstance(document, str) else yaml.safe_dump(document), "utf-8")
    with chdir(folder):
        done = dit("run", "canary.yaml", *options, **environment)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    from tests.conftest import write_people

    folder = write_files(write_people(tmp_path_factory.mktemp("canaries")))
    canaries = Canaries()
    reference = canaries.new("${CANARY_REFERENCE}")
    with served(folder) as host:
        document = config(canaries, host)
        code, printed = run(folder, document, "--debug", CANARY_REFERENCE=reference)
        assert code == 0, printed
        run_folder = next((folder / "runs").glob("canary-*"))
        for command in (
            ["plan", "canary.yaml"],
            ["risk", "canary.yaml", "--out", "runs/risk"],
            ["report", str(run_folder)],
            ["history", "runs"],
        ):
            with chdir(folder):
                again = dit(*command, "--debug", CANARY_REFERENCE=reference)
            printed += again.stdout + again.stderr
            assert again.returncode == 0, again.stderr
    return Planted(canaries, printed, folder / "runs", document)


def test_fifty_secrets_are_planted(planted: Planted) -> None:
    text = yaml.safe_dump(planted.document)
    missing = [place for secret, place in planted.canaries.places.items() if secret not in text]
    assert missing == ["${CANARY_REFERENCE}"]
    assert len(planted.canaries.places) >= 50


def test_a_run_folder_read_from_end_to_end_shows_no_secret(planted: Planted) -> None:
    names = [str(path.relative_to(planted.output)) for path in planted.output.rglob("*")]
    assert {Path(name).name for name in names} >= {"manifest.json", "plan.json", "index.json", "report.html", "measures.json"}
    metadata = [str(pq.read_schema(path)) for path in planted.output.rglob("*.parquet")]
    everything = "\n".join([*names, *metadata, written_text(planted.output)])
    assert planted.canaries.found_in(everything) == set()


def test_a_terminal_log_with_debugging_on_shows_no_secret(planted: Planted) -> None:
    assert planted.canaries.found_in(planted.printed) == set()


def test_ordinary_parameters_and_names_stay_readable(planted: Planted) -> None:
    for sanitizer in (
        planted.read("summary.json")[0]["parameters"]["sanitizer"],
        planted.read("manifest.json")["config"]["tests"][0]["sanitizer"],
    ):
        params = sanitizer["params"]
        assert params["k"] == 5
        assert params["columns"] == ["age", "town"]
        assert params["strategy"] == "quantile"
        assert params["pin"] != 1234
        assert set(params) == set(planted.document["tests"][0]["sanitizer"]["params"])
    argv = planted.read("summary.json")[1]["parameters"]["sanitizer"]["argv"]
    assert argv[:5] == ["python3", "mine.py", "{input}", "{output}", "--password"]
    assert argv[6].startswith("--token=***")
    assert planted.read("manifest.json")["config"]["output"]["storage_options"]["reference"] == "${CANARY_REFERENCE}"


def test_equal_secrets_have_equal_digests_in_every_file(planted: Planted) -> None:
    summary = planted.read("summary.json")[0]["parameters"]["sanitizer"]["params"]
    manifest = planted.read("manifest.json")["config"]["tests"][0]["sanitizer"]["params"]
    assert summary == manifest
    assert len({summary["password"], summary["unnamed"], summary["env"]["A"]}) == 3
    assert all(value.startswith("***") and len(value) == 11 for value in (summary["password"], summary["unnamed"]))


FAILURES = {
    "a server that refuses": {"data": {"source": "URL"}},
    "a chain to a server that refuses": {"data": {"source": "simplecache::URL"}},
    "a pointer that is not there": {"data": {"source": {"latest": "URL"}}},
    "a port that is no number": {"data": {"source": "http://me:SECRET@127.0.0.1:port/x.csv"}},
    "no file name": {"data": {"source": "http://me:SECRET@HOST"}},
    "an unknown file system": {"data": {"source": "nothing://me:SECRET@host/x.csv?token=SECRET"}},
    "options of the wrong type": {"data": {"source": "people.csv", "storage_options": "SECRET"}},
    "an option that the file system refuses": {
        "data": {
            "source": "http://HOST/people.csv",
            "storage_options": {"client_kwargs": {"SECRET": ["SECRET"]}, "asynchronous": "SECRET"},
        }
    },
    "a hierarchy that is not there": {
        "schema": {"quasi_identifiers": {"town": {"kind": "categorical", "hierarchy": "URL"}}, "sensitive": "illness"}
    },
    "an output that cannot be opened": {"output": {"url": "URL", "storage_options": {"auth": "SECRET"}}},
    "a release that is not there": {
        "tests": [
            {
                "sanitizer": {
                    "name": "precomputed",
                    "full": "URL",
                    "without": "URL{record}",
                    "storage_options": {"auth": ["SECRET"]},
                }
            }
        ]
    },
    "a release that is missing": {
        "tests": [
            {
                "sanitizer": {
                    "name": "precomputed",
                    "full": "http://me:SECRET@HOST/release-full.csv?sig=SECRET",
                    "without": "http://me:SECRET@HOST/{record}.csv?sig=SECRET",
                }
            }
        ]
    },
    "a function that raises its parameters": {
        "tests": [
            {
                "sanitizer": {
                    "name": "python",
                    "target": "mine:refuse",
                    "params": {"word": "SECRET"},
                    "show_stderr": True,
                    "cache": "none",
                }
            }
        ]
    },
    "a command that prints its arguments": {
        "tests": [
            {
                "sanitizer": {
                    "name": "command",
                    "argv": ["python3", "mine.py", "{input}", "{output}", "fail", "SECRET"],
                    "show_stderr": True,
                    "cache": "none",
                }
            }
        ]
    },
    "a command without an output": {
        "tests": [{"sanitizer": {"name": "command", "argv": ["tool", "--password", "SECRET", "{input}"]}}]
    },
    "a program with a password": {
        "tests": [{"sanitizer": {"name": "command", "argv": ["http://me:SECRET@host/tool", "{input}", "{output}"]}}]
    },
    "a number in the environment": {"tests": [{"sanitizer": {"name": "command", "argv": ["tool"], "env": {"A": ["SECRET"]}}}]},
    "a mapping that is not there": {"tests": [{"sanitizer": {"name": "python", "target": "mine:publish", "mapping": "URL"}}]},
    "a synthetic table that is not there": {
        "measures": [{"name": "accuracy", "synthetic": {"source": "URL", "storage_options": {"auth": "SECRET"}}}]
    },
    "a reference outside storage_options": {
        "tests": [{"sanitizer": {"name": "python", "target": "mine:publish", "params": {"a": "SECRET ${X}"}}}]
    },
}
SMALL = """
version: 1
name: small
data: {source: people.csv}
schema:
  quasi_identifiers: {age: {kind: numeric}}
  sensitive: illness
tests: [{sanitizer: raw}]
output: runs
cluster: {workers: 1}
"""


def plant(value: Any, canaries: Canaries, host: str) -> Any:
    """Put secrets and the server's address into the texts of a document."""
    if isinstance(value, dict):
        return {plant(key, canaries, host): plant(item, canaries, host) for key, item in value.items()}
    if isinstance(value, list):
        return [plant(item, canaries, host) for item in value]
    if not isinstance(value, str):
        return value
    text = value.replace(
        "URL",
        "http://me:SECRET@HOST/absent-{record}.csv?sig=SECRET"
        if "{record}" in value
        else "http://me:SECRET@HOST/absent.csv?sig=SECRET",
    )
    text = text.replace("{record}{record}", "{record}").replace("HOST", host)
    while "SECRET" in text:
        text = text.replace("SECRET", canaries.new("failure"), 1)
    return text


@pytest.mark.parametrize("case", FAILURES)
def test_a_failure_and_its_trace_show_no_secret(case: str, people: Path) -> None:
    folder, canaries = write_files(people), Canaries()
    with served(folder) as host:
        document = yaml.safe_load(SMALL) | plant(FAILURES[case], canaries, host)
        code, printed = run(folder, document, "--debug")
    assert code == 2, printed
    assert "dit: " in printed
    assert canaries.places
    written = written_text(folder / "runs") if (folder / "runs").exists() else ""
    assert canaries.found_in(printed + written) == set()


@pytest.mark.parametrize(
    ("text", "override"),
    [
        ("data: {source: a.csv, storage_options: {key: zq00xk7", "seed=1"),
        ("data: {source: a.csv, storage_options: {key: zq00xk7, key: zq00xk7}}", "seed=1"),
        ("version: 1", "data.storage_options.key=[zq00xk7"),
        ("version: 1", "data.storage_options.key zq00xk7"),
    ],
)
def test_an_error_about_yaml_does_not_quote_the_line_with_the_key(text: str, override: str, tmp_path: Path) -> None:
    code, printed = run(tmp_path, text, "--debug", "--set", override)
    assert code == 2
    assert "zq00" not in printed
