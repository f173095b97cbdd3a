"""The command as a user runs it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd
import pytest
import yaml

from dit_dask.audit.parts import COLUMNS
from dit_dask.cli.commands import SUBCOMMANDS
from dit_dask.cli.parser import build_parser
from tests.cluster.runs import LIMIT, dit, ended, rows, started, workers_of, written_text
from tests.conftest import ROOT


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One finished run of the shipped quickstart."""
    output = tmp_path_factory.mktemp("runs")
    settings = ("--set", "data.limit=200", "--set", "gates=['mean_gain <= 0.5']")
    done = dit("run", ROOT / "configs" / "quickstart.yaml", "--out", output, *settings, "--workers", 1)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.splitlines()[-1])


def test_demo_needs_nothing_and_ends_with_its_folder(tmp_path: Path) -> None:
    done = dit("demo", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    folder = Path(done.stdout.splitlines()[-1])
    assert folder.parent == tmp_path
    assert (folder / "report.html").is_file()
    assert re.search(r"^mondrian-k5 +\d", done.stdout, re.MULTILINE)
    assert "shows the cluster at work" not in done.stderr  # the dashboard is off unless asked for
    assert re.search(r"dit: [\d,]+ of [\d,]+ records", done.stderr)


def test_a_run_folder_holds_what_the_contract_says(finished: Path) -> None:
    names = {str(path.relative_to(finished)) for path in finished.rglob("*") if path.is_file()}
    assert names >= {"manifest.json", "summary.json", "measures.json", "distributions.parquet", "report.html"}
    manifest = json.loads((finished / "manifest.json").read_text())
    assert manifest["status"] == "complete"
    assert manifest["input"] == {"read": 10_000, "dropped": 0, "used": 200, "digest": manifest["input"]["digest"]}
    for entry in json.loads((finished / "summary.json").read_text()):
        fields = "test parameters engine records distinct delta mean std quantiles share_over argmax_changed classes"
        assert set(entry) >= {*fields.split(), "smallest_class", "claim_holds", "seconds"}
        parts = manifest["parts"][entry["test"]]
        assert sum(part["rows"] for part in parts) == entry["records"] == 200
        assert [part["name"] for part in parts] == sorted(name for name in names if f"/{entry['test']}/" in name)
        table = rows(finished, entry["test"])
        assert table.columns.tolist() == [*COLUMNS, "distance.bernoulli-nb", "distance.conditional-frequency"]
        assert entry["delta"] == table["distance"].max()
        assert entry["mean"] == pytest.approx(table["distance"].mean())
        assert entry["argmax_changed"] == (table["predicted"] != table["predicted_without"]).mean()
        drawn = pd.read_parquet(finished / "distributions.parquet").query("test == @entry['test']")
        assert drawn["distance"].max() == entry["delta"]
        assert drawn["cumulative"].iloc[-1] == 1


def test_no_value_of_any_record_reaches_what_a_run_writes(people: Path, config_file: Path) -> None:
    marked = people.read_text("utf-8")
    for value in ("Lyon", "Nice", "Bonn", "Köln", "cook", "clerk", "flu", "cold", "gout"):
        marked = marked.replace(value, f"{value}-zq")
    people.write_text(marked, "utf-8")
    tree = people.parent / "town.csv"
    tree.write_text(re.sub(r"^(\w+);", r"\1-zq;", tree.read_text("utf-8"), flags=re.MULTILINE), "utf-8")
    done = dit("run", config_file, "--out", people.parent / "runs")
    assert done.returncode == 0, done.stderr
    assert "-zq" not in written_text(people.parent / "runs") + done.stdout + done.stderr


def test_fresh_starts_over(config_file: Path, tmp_path: Path) -> None:
    def parts() -> dict[Path, tuple[int, bytes]]:
        return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in tmp_path.glob("runs/*/records/*/*.parquet")}

    assert dit("run", config_file, "--out", tmp_path / "runs", "--quiet").returncode == 0
    before = parts()
    assert before
    assert dit("run", config_file, "--out", tmp_path / "runs", "--quiet", "--fresh").returncode == 0
    after = parts()
    assert after.keys() == before.keys()
    assert all(after[path][0] > before[path][0] for path in before)
    assert all(after[path][1] == before[path][1] for path in before)


def test_quiet_hides_progress_but_no_warning(config_file: Path, tmp_path: Path) -> None:
    done = dit("run", config_file, "--out", tmp_path / "runs", "--quiet", "--set", "gates=['delta <= 1.9']")
    (folder,) = (tmp_path / "runs").glob("people-*")
    expected = json.loads((folder / "verdict.json").read_text())["warnings"]
    assert any("only 60 rows are used" in warning for warning in expected)
    assert done.stderr.splitlines() == [f"dit: warning: {warning}" for warning in expected]
    stopped = dit(
        *("run", config_file, "--out", tmp_path / "stopped", "--quiet"),
        *("--set", "gates=['delta <= 1e-9']", "--set", "stop_on_breach=true"),
    )
    assert (stopped.returncode, "stopped early: a gate has already failed" in stopped.stderr) == (1, True)


KEYS = ["run", "status", "tests", "measures", "verdicts", "warnings"]


def test_json_prints_one_document_and_nothing_else(config_file: Path, tmp_path: Path) -> None:
    done = dit("run", config_file, "--out", tmp_path / "runs", "--json", "--quiet")
    assert done.returncode == 0
    assert done.stderr == ""
    document = json.loads(done.stdout)
    assert set(document) >= set(KEYS)
    assert (Path(document["run"]).parent, document["status"]) == (tmp_path / "runs", "none")
    assert [entry["test"] for entry in document["tests"]] == ["mondrian-k2", "mondrian-k5", "raw.conditional-frequency"]
    assert document["tests"][2]["claim_holds"] is None
    assert [control["control"] for control in document["controls"]][:2] == ["raw", "suppressed"]
    assert document["warnings"][0].startswith("only 60 rows are used")
    gated = dit("gate", document["run"], "--fail-on", "delta > 0.001", "--json")
    verdicts = json.loads(gated.stdout)
    assert (gated.returncode, verdicts["status"], verdicts["tests"]) == (1, "failed", document["tests"])
    assert {verdict["gate"] for verdict in verdicts["verdicts"]} == {"delta <= 0.001"}


def test_the_plan_as_json_says_what_would_be_done(config_file: Path) -> None:
    done = dit("plan", config_file, "--json", "--set", "cluster.workers=3")
    document = json.loads(done.stdout)
    assert set(document) == {*KEYS, "workers", "seconds", "memory_bytes", "source_bytes", "scratch", "scratch_bytes"}
    assert document["source_bytes"] == (config_file.parent / "people.csv").stat().st_size
    assert (document["scratch"], document["scratch_bytes"]) == (tempfile.gettempdir(), 0)  # so few rows stay in memory
    assert (document["status"], document["workers"], document["verdicts"]) == ("none", 3, [])
    assert [one["test"] for one in document["tests"]] == ["mondrian-k2", "mondrian-k5", "raw.conditional-frequency"]
    for one in document["tests"]:
        assert set(one) == {"test", "engine", "rows", "distinct", "tasks", "seconds", "is_upper_limit"}
        assert (one["rows"], one["is_upper_limit"]) == (60, False)
    assert not Path(document["run"]).exists()
    unset = dit("plan", ROOT / "configs" / "s3-audit.yaml", "--json")
    document = json.loads(unset.stdout)
    assert (document["run"], document["seconds"]) == (None, None)
    assert "no estimate without the data" in document["warnings"][0]


def test_gates_decide_the_exit_code(config_file: Path, finished: Path, tmp_path: Path) -> None:
    breached = dit("run", config_file, "--out", tmp_path / "runs", "--quiet", "--set", "gates=['delta <= 0.001']")
    assert breached.returncode == 1
    assert "FAIL  delta <= 0.001  mondrian-k2" in breached.stdout
    folder = breached.stdout.splitlines()[-1]
    assert "<strong>FAIL.</strong>" in (Path(folder) / "report.html").read_text()
    assert dit("gate", folder).returncode == 1
    passed = dit("gate", folder, "--fail-on", "mean_gain > 0.5")
    assert passed.returncode == 0, passed.stdout
    assert re.match(r"PASS  mean_gain <= 0.5  mondrian-k2: mean_gain is \d", passed.stdout)
    always = dit("gate", folder, "--fail-on", "delta > 5")
    assert always.returncode == 1
    assert always.stdout.startswith("INCONCLUSIVE  delta <= 5  mondrian-k2: ")
    assert dit("gate", finished, "--fail-on", "mean_gain > 0.5", "--fail-on", "records == 200").returncode == 1
    assert dit("gate", finished).returncode == 0


def test_plan_runs_nothing(config_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    done = dit("plan", config_file)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^mondrian-k5 +exact +60 +\d+ +1 ", done.stdout, re.MULTILINE)
    assert "60 rows" in done.stdout
    assert "MB a worker" in done.stdout
    assert not (config_file.parent / "runs").exists()
    assert not list((tmp_path / "cwd").iterdir())


def test_report_is_rewritten_from_a_finished_run(finished: Path) -> None:
    page = (finished / "report.html").read_text()
    (finished / "report.html").unlink()
    done = dit("report", finished)
    assert done.returncode == 0
    assert (finished / "report.html").read_text() == page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")


def test_compare_sets_two_runs_side_by_side(finished: Path, tmp_path: Path) -> None:
    other = dit(
        "run",
        ROOT / "configs" / "quickstart.yaml",
        "--out",
        tmp_path,
        "--set",
        "data.limit=300",
        "--set",
        "tests.0.sanitizer.k=[10,20]",
    )
    done = dit("compare", finished, other.stdout.splitlines()[-1])
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["mondrian-k10", "mondrian-k20", "mondrian-k2"]
    assert "–" in lines[2]
    told = "the runs are of different tables, of 200 and 300 rows: changes may come from that alone"
    assert lines[4:] == [told]
    printed = dit("compare", finished, other.stdout.splitlines()[-1], "--json")
    document = json.loads(printed.stdout)
    assert set(document) == {*KEYS, "other"}
    assert document["warnings"] == [told]
    old, new = (json.loads((Path(document[side]) / "summary.json").read_text()) for side in ("run", "other"))
    (shared,) = [one for one in document["tests"] if one["run"] and one["other"]]
    assert shared["run"]["delta"] == next(one["delta"] for one in old if one["test"] == shared["test"])
    assert shared["other"]["delta"] == next(one["delta"] for one in new if one["test"] == shared["test"])
    assert shared["delta_change"] == shared["other"]["delta"] - shared["run"]["delta"]


def test_a_run_compared_with_itself_has_nothing_to_be_warned_of(finished: Path) -> None:
    document = json.loads(dit("compare", finished, finished, "--json").stdout)
    assert document["warnings"] == []
    assert {one["delta_change"] for one in document["tests"]} == {0.0}


def test_data_says_where_a_table_is_or_why_not(tmp_path: Path) -> None:
    (tmp_path / "adult.csv").write_text("age\n")
    found = dit("data", "adult", DIT_DATA=str(tmp_path))
    assert (found.returncode, found.stdout) == (0, f"{tmp_path / 'adult.csv'}\n")
    unknown = dit("data", "adlut", DIT_DATA=str(tmp_path))
    assert unknown.returncode == 2
    assert unknown.stderr.count("\n") == 1
    assert "adult" in unknown.stderr


LISTED = [subcommand.name for subcommand in SUBCOMMANDS if subcommand.is_listed]


def test_every_command_has_help_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    for command in LISTED:
        with pytest.raises(SystemExit) as ended:
            build_parser(SUBCOMMANDS).parse_args([command, "-h"])
        assert ended.value.code == 0
        assert f"example:\n  dit {command}" in capsys.readouterr().out


def test_the_overview_lists_every_command_that_a_user_types() -> None:
    shown = dit("-h")
    assert shown.returncode == 0
    listed = re.findall(r"^    ([a-z-]+)(?: |$)", shown.stdout, re.MULTILINE)
    assert sorted(listed) == sorted(LISTED)
    assert re.fullmatch(r"dit \d+\.\d+\.\d+\n", dit("--version").stdout)


def test_errors_do_not_list_what_only_deployed_audits_run(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        build_parser(SUBCOMMANDS).parse_args(["rnu"])
    said = capsys.readouterr().err
    assert all(name in said for name in LISTED)
    assert "launch" not in said


def test_importing_the_package_is_light() -> None:
    code = "import sys, dit_dask; print(sorted({'numba', 'pandas', 'distributed', 'sklearn', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


BAD_CONFIGS = {
    "yaml": ("version: 1", "version: [", "not valid YAML"),
    "unknown key": ("seed: 3", "sede: 3", "did you mean 'seed'?"),
    "out of range": ("k: [2, 5]", "k: [2, 1]", "tests[0].sanitizer.k must be an integer >= 2; got 1"),
    "wrong type": ("k: [2, 5]", "k: two", "tests[0].sanitizer.k must be an integer >= 2; got 'two'"),
    "missing column": ("age: {kind: numeric}", "aeg: {kind: numeric}", "no column 'aeg' among 4; did you mean 'age'?"),
    "text as number": ("job: {kind: categorical}", "job: {kind: numeric}", "column 'job' must be numbers or ISO dates"),
    "sensitive twice": ("sensitive: illness", "sensitive: town", "'town' is also among the quasi_identifiers"),
    "k above the table": ("k: [2, 5]", "k: 61", "at most the table's 60 rows; got 61"),
    "no hierarchy file": ("hierarchy: town.csv", "hierarchy: nowhere.csv", "cannot read nowhere.csv: not found"),
    "no data file": ("source: people.csv", "source: nobody.csv", "no file at nobody.csv"),
    "no such protocol": ("source: people.csv", 'source: "ftpx://host/people.csv"', "ftpx"),
    "wrong gate": ("seed: 3", "gates: [delta]", "gates[0] must be NAME OP NUMBER"),
    "unwritable output": ("seed: 3", "output: /proc/nowhere/", "output: cannot write to /proc/nowhere"),
    "memory output": ("seed: 3", 'output: "memory://x"', "memory:// ends with the process"),
    "infinite parameter": (
        "adversary: conditional-frequency",
        "adversary: {name: sklearn.linear_model.LogisticRegression, params: {C: .nan}}",
        "cannot run",
    ),
    "values without an order": (
        "adversary: conditional-frequency",
        "distance: {name: wasserstein, ground: ordered}",
        "ordered needs schema.sensitive.order",
    ),
    "missing variable": ("seed: 3", 'output: {url: "s3://b/", storage_options: {key: "${DIT_UNSET}"}}', "DIT_UNSET is not set"),
    "bad classifier parameter": (
        "adversary: conditional-frequency",
        "adversary: {name: sklearn.linear_model.LogisticRegression, params: {C: -1}}",
        "cannot run: InvalidParameterError: The 'C' parameter",
    ),
}


@pytest.mark.parametrize("case", BAD_CONFIGS)
def test_bad_input_is_one_line_and_exit_code_2_and_leaves_no_finished_run(config_file: Path, case: str) -> None:
    old, new, message = BAD_CONFIGS[case]
    text = config_file.read_text()
    assert old in text
    config_file.write_text(text.replace(old, new))
    elsewhere = () if "output:" in new else ("--out", config_file.parent / "runs")
    failed = dit("run", config_file, "--quiet", *elsewhere)
    assert failed.returncode == 2, failed.stderr
    assert failed.stdout == ""
    assert failed.stderr.count("\n") == 1, failed.stderr
    assert message in failed.stderr
    for manifest in config_file.parent.glob("runs/*/manifest.json"):
        assert json.loads(manifest.read_text())["status"] != "complete"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "people.csv is empty"),
        ("age,town,job,illness\n", "has no rows"),
        ("age,town,job,illness\n1,Lyon,cook,flu\n2,Nice,cook,flu\n", "is constant"),
        (
            "age,town,job,illness\n1,Lyon,cook,flu\n2,Atlantis,cook,cold\n",
            "has no leaf for 1 values of column 'town', first in used row 1",
        ),
        ("age,town,job,illness\n1,Lyon,cook\n2,Nice,cook,flu\n", "line 2: expected 4 cells; got 3"),
    ],
)
def test_a_bad_table_is_one_line_and_exit_code_2(people: Path, config_file: Path, content: str, message: str) -> None:
    people.write_text(content, "utf-8")
    failed = dit("run", config_file, "--out", people.parent / "runs", "--quiet")
    assert failed.returncode == 2
    assert failed.stderr.count("\n") == 1
    assert message in failed.stderr
    assert not (people.parent / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "the following arguments are required: COMMAND"),
        (("rnu",), "invalid choice: 'rnu'"),
        (("launch",), "required: JOB"),
        (("run",), "required: CONFIG"),
        (("run", "x.yaml", "--workers", "0"), "must be an integer >= 1; got '0'"),
        (("run", "x.yaml", "--cluster", "http://host"), "must be auto, local, kubernetes, tcp://HOST:PORT or tls://HOST:PORT"),
        (("run", "x.yaml", "--cluster", "tcp://host"), "must be auto, local, kubernetes, tcp://HOST:PORT or tls://HOST:PORT"),
        (("deploy", f"{ROOT}/configs/s3-audit.yaml", "--image", "dit", "--secret", "s"), "--image must be an image with a tag"),
        (("deploy", f"{ROOT}/configs/quickstart.yaml", "--image", "dit:1"), "output: pods cannot reach this machine's files"),
        (("certificates",), "required: --to"),
        (("certificates", "--to", f"{ROOT}/configs"), "--to must be a folder that does not exist yet; got"),
        (("run", "no-such-file.yaml"), "No such file"),
        (("gate", "no-such-run", "--fail-on", "delta > 1"), "is not a run folder"),
        (("report", "no-such-run"), "is not a run folder"),
        (("compare", "no-such-run", "other"), "is not a run folder"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_exit_code_2(arguments: tuple[str, ...], message: str) -> None:
    failed = dit(*arguments)
    assert failed.returncode == 2
    assert failed.stdout == ""
    assert failed.stderr.count("\n") == 1, failed.stderr
    assert message in failed.stderr


def test_a_cluster_that_does_not_answer_is_one_line(config_file: Path) -> None:
    failed = dit("run", config_file, "--out", config_file.parent / "runs", "--quiet", "--cluster", "tcp://127.0.0.1:9")
    assert failed.returncode == 2
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in failed.stderr


KUBERNETES = {
    "local output": ((), "output: pods cannot write to this machine; use a URL such as s3://…; got 'runs/'"),
    "no image": (("--out", "s3://bucket/"), "cluster.kubernetes.image is missing"),
    "no secret": (
        ("--set", "cluster.kubernetes.image=dit:1", "--set", "output={url: 's3://b/', storage_options: {key: '${K}'}}"),
        "cluster.kubernetes.secret is missing: which Secret holds ${K} for the pods?",
    ),
}


@pytest.mark.parametrize("case", KUBERNETES)
def test_kubernetes_asks_for_what_it_needs_before_it_reads_anything(config_file: Path, case: str) -> None:
    options, message = KUBERNETES[case]
    failed = dit("run", config_file, "--quiet", "--cluster", "kubernetes", *options)
    assert failed.returncode == 2
    assert failed.stderr.count("\n") == 1, failed.stderr
    assert message in failed.stderr


def test_deploy_prints_manifests_and_nothing_else() -> None:
    done = dit("deploy", ROOT / "configs" / "s3-audit.yaml", "--image", "dit:1", "--secret", "s", "--schedule", "@daily")
    assert (done.returncode, done.stderr) == (0, "")
    kinds = [one["kind"] for one in yaml.safe_load_all(done.stdout)]
    assert kinds[-1] == "CronJob"


def test_plan_works_with_variables_unset() -> None:
    done = dit("plan", ROOT / "configs" / "s3-audit.yaml")
    assert done.returncode == 0, done.stderr
    assert "mondrian-k5" in done.stdout
    assert "no estimate without the data: data.storage_options: the environment variable S3_KEY is not set" in done.stdout


def test_infinite_parameters_are_words_in_json(config_file: Path, tmp_path: Path) -> None:
    adversary = "tests.1.adversary={name: sklearn.linear_model.LogisticRegression, params: {C: .inf}}"
    done = dit("run", config_file, "--out", tmp_path / "runs", "--json", "--quiet", "--set", adversary)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["tests"][2]["parameters"]["adversary"]["params"] == {"C": "inf"}


def test_the_option_for_local_work_wins_over_an_address_and_keeps_the_configured_workers(config_file: Path) -> None:
    wanted = (os.cpu_count() or 1) + 1
    elsewhere = f"cluster={{kind: address, address: 'tcp://127.0.0.1:9', workers: {wanted}}}"
    options = ("--out", config_file.parent / "runs", "--cluster", "local", "--set", elsewhere)
    seen: set[int] = set()
    with ended(started("run", config_file, *options)) as process:
        while process.poll() is None:
            seen.update(worker.pid for worker in workers_of(process.pid))
            time.sleep(0.02)
        _, said = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, said
    assert len(seen) == wanted


def test_a_plan_is_made_for_the_configured_workers(config_file: Path) -> None:
    done = dit("plan", config_file, "--set", "cluster.workers=3")
    assert "on 3 workers" in done.stdout
