"""Commands, releases made elsewhere, and `dit` around them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from dit_dask.errors import InputError, RunError
from tests.cluster.runs import DIT, dit, rows
from tests.external import sample_sanitizers
from tests.external.people_audit import HERE, audit, people, python_sanitizer

FEW = [0, 7, 41]


def command(behaviour: str = "good", **more: object) -> dict[str, object]:
    return {
        "name": "command",
        "argv": [sys.executable, "sample_command.py", behaviour, "{input}", "{output}"],
        "cache": "none",
    } | more


def written(folder: Path, sanitizer: dict[str, object], **more: object) -> Path:
    """A config file for the people, beside their CSV."""
    people().to_csv(folder / "people.csv", index=False)
    document = {
        "version": 1,
        "data": {"source": "people.csv"},
        "schema": {
            "quasi_identifiers": {
                "age": {"kind": "numeric"},
                "town": {"kind": "categorical"},
                "job": {"kind": "categorical"},
            },
            "sensitive": "illness",
        },
        "tests": [{"sanitizer": sanitizer, "adversary": "bernoulli-nb", "records": FEW}],
        "output": str(folder / "runs"),
        "cluster": {"workers": 1},
    }
    path = folder / "audit.yaml"
    path.write_text(json.dumps(document | more))  # JSON is YAML
    return path


def test_a_command_gives_what_the_function_gives():
    plain = audit(python_sanitizer("decades"), records=FEW).distances()
    pd.testing.assert_frame_equal(audit(command(), records=FEW).distances(), plain, check_exact=True)
    pd.testing.assert_frame_equal(audit(command("flood"), records=FEW[:1]).distances(), plain.head(1), check_exact=True)


BEHAVIOURS = {
    "hang": "it took longer than its 5 s, without record 7",
    "fail": "it ended with exit code 3 .*, without record 7",
    "elsewhere": r"it exited with code 0 but wrote no file at \{output\} \(output.csv\), on the whole table",
    "link": r"it exited with code 0 but wrote no file at \{output\}",
    "garbage": "it wrote a file that is not CSV",
}


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_a_command_that_misbehaves_is_one_line(behaviour):
    with pytest.raises(RunError, match=rf"tests\[0\]\.sanitizer: {BEHAVIOURS[behaviour]}") as caught:
        audit(command(behaviour, timeout=5 if behaviour == "hang" else 120, retries=0), records=[7])
    assert "secret-value" not in str(caught.value)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["no-such-tool", "{input}", "{output}"], r"tests\[0\]\.sanitizer: argv\[0\]: no program 'no-such-tool'"),
        (["cat", "{input}"], r"tests\[0\]\.sanitizer\.argv must name \{output\}, the file to write"),
        ([], r"tests\[0\]\.sanitizer\.argv must be a list of at least 1"),
    ],
)
def test_a_command_that_cannot_work_is_refused(argv, message):
    with pytest.raises(InputError, match=message):
        audit({"name": "command", "argv": argv}, records=FEW)


def test_parquet_travels_with_its_types():
    script = (
        "import sys, pandas as pd; frame = pd.read_parquet(sys.argv[1]); assert frame['age'].dtype.kind == 'i'; "
        "low = frame['age'] // 10 * 10; frame['age'] = [f'[{a}, {a + 10})' for a in low]; "
        "frame['town'] = frame['town'].str[0] + '***'; frame.to_parquet(sys.argv[2])"
    )
    argv = [sys.executable, "-c", script, "{input}", "{output}"]
    found = audit({"name": "command", "argv": argv, "format": "parquet", "cache": "none"}, records=FEW[:1]).distances()
    pd.testing.assert_frame_equal(found, audit(python_sanitizer("decades"), records=FEW[:1]).distances(), check_exact=True)


def test_releases_made_elsewhere_need_no_sanitizer(tmp_path):
    owner, inputs, releases = tmp_path / "owner", tmp_path / "inputs", tmp_path / "releases"
    owner.mkdir()
    sanitizer = {"name": "precomputed", "full": f"{releases}/full.parquet", "without": f"{releases}/{{record}}.parquet"}
    path = written(owner, sanitizer)
    missing = dit("run", path)
    assert missing.returncode == 2
    assert "full: cannot read" in missing.stderr
    helped = dit("leave-out", path, "--to", inputs)
    assert helped.returncode == 0, helped.stderr
    assert sorted(file.name for file in inputs.iterdir()) == [
        "0.parquet",
        "41.parquet",
        "7.parquet",
        "full.parquet",
        "leave-out.json",
    ]
    assert dit("leave-out", path, "--to", inputs).returncode == 0  # again: nothing to do
    other = dit("leave-out", path, "--to", inputs, "--set", "data.limit=50")
    assert other.returncode == 2
    assert "holds tables of other data" in other.stderr
    assert helped.stdout.splitlines()[-1] == str(inputs)
    pd.testing.assert_frame_equal(
        pd.read_parquet(inputs / "7.parquet"),
        people().drop(columns="name").drop(index=7).reset_index(drop=True),
        check_dtype=False,
    )
    releases.mkdir()
    for file in inputs.glob("*.parquet"):
        sample_sanitizers.decades(pd.read_parquet(file)).to_parquet(releases / file.name)
    (releases / "41.parquet").rename(releases / "aside")
    missing = dit("run", path)
    assert missing.returncode == 2
    assert "1 of 3 releases are missing, the first is" in missing.stderr
    assert not (owner / "runs").exists()
    (releases / "aside").rename(releases / "41.parquet")
    done = dit("run", path)
    assert done.returncode == 0, done.stderr
    folder = Path(done.stdout.splitlines()[-1])
    test = json.loads((folder / "summary.json").read_text())[0]["test"]
    plain = audit(python_sanitizer("decades"), records=FEW).distances().reset_index(drop=True)
    pd.testing.assert_frame_equal(rows(folder, test), plain, check_exact=True)


def test_releases_that_were_made_again_are_another_run(tmp_path):
    releases = tmp_path / "releases"
    releases.mkdir()
    frame = people().drop(columns="name")
    sanitizer = {"name": "precomputed", "full": f"{releases}/full.csv", "without": f"{releases}/{{record}}.csv"}
    sample_sanitizers.decades(frame).to_csv(releases / "full.csv", index=False)
    folders = []
    for width in (10, 20):
        for record in FEW:
            sample_sanitizers.decades(frame.drop(index=record), width).to_csv(releases / f"{record}.csv", index=False)
        folders.append(audit(sanitizer, records=FEW).url.rsplit("/", 1)[-1])
    assert folders[0] != folders[1]
    assert audit(sanitizer, records=FEW).tests[0]["oracle"]["deterministic"] is None
    with pytest.raises(InputError, match=r"tests\[0\]\.repeats: releases that are there already cannot be drawn again"):
        audit(sanitizer, records=FEW, repeats=3)


def test_quick_commands_are_not_taken_for_dead(tmp_path):
    quick = {"name": "command", "argv": ["sh", "-c", "exit 3", "x", "{input}", "{output}"], "cache": "none", "retries": 0}
    for _ in range(12):
        with pytest.raises(RunError, match="it ended with exit code 3, on the whole table"):
            audit(quick, records=[7])


def test_a_command_cannot_add_text_to_an_error():
    said = 'printf \'{"raised": "secret-value-of-someone"}\' > .raised; printf x > ../x.notes; exit 1'
    with pytest.raises(RunError) as caught:
        audit({"name": "command", "argv": ["sh", "-c", said, "x", "{input}", "{output}"], "retries": 0}, records=[7])
    assert "secret-value" not in str(caught.value)


def test_a_plan_calls_no_sanitizer(tmp_path):
    log = tmp_path / "calls"
    (tmp_path / "sample_sanitizers.py").write_text((HERE / "sample_sanitizers.py").read_text())
    path = written(
        tmp_path, {"name": "python", "target": "sample_sanitizers:logs_calls", "params": {"log": str(log)}, "timeout": 9}
    )
    planned = dit("plan", path)
    assert planned.returncode == 0, planned.stderr
    assert "at most 27.0" in planned.stdout
    assert not log.exists()
    assert not (tmp_path / "runs").exists()


def test_a_failed_gate_ends_the_run_and_the_rest_can_follow(tmp_path):
    log = tmp_path / "calls"
    (tmp_path / "sample_sanitizers.py").write_text((HERE / "sample_sanitizers.py").read_text())
    sanitizer = {"name": "python", "target": "sample_sanitizers:logs_calls", "params": {"log": str(log)}, "cache": "none"}
    tests = [{"sanitizer": sanitizer}]
    path = written(tmp_path, sanitizer, tests=tests, gates=["delta <= 1e-9"], stop_on_breach=True)
    stopped = dit("run", path)
    assert stopped.returncode == 1, stopped.stderr
    assert "FAIL  delta <= 1e-9" in stopped.stdout
    folder = Path(stopped.stdout.splitlines()[-1])
    document = json.loads((folder / "manifest.json").read_text())
    assert document["status"] == "failed"
    # without the figure, which may be that of one person
    assert re.fullmatch(r"stopped early: delta <= 1e-9 has already failed after \d+ records", document["error"])
    calls = len(log.read_text().splitlines())
    assert calls < 2 + len(people().drop(columns="name").drop_duplicates())
    whole = dit("run", path, "--set", "stop_on_breach=false")
    assert whole.returncode == 1
    assert Path(whole.stdout.splitlines()[-1]) == folder
    assert json.loads((folder / "manifest.json").read_text())["status"] == "complete"


def test_another_version_of_the_code_is_another_run(tmp_path):
    code = tmp_path / "mine.py"
    code.write_text((HERE / "sample_sanitizers.py").read_text())
    path = written(tmp_path, {"name": "python", "target": "mine:decades"})
    folders = []
    for width in (10, 20):
        code.write_text(code.read_text().replace("width: int = 10) -> pd.DataFrame", f"width: int = {width}) -> pd.DataFrame"))
        folders.append(dit("run", path).stdout.splitlines()[-1])
    assert folders[0] != folders[1]
    means = [json.loads((Path(folder) / "summary.json").read_text())[0]["mean"] for folder in folders]
    assert means[0] != means[1]


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"


def test_a_killed_run_leaves_no_process_and_no_file(tmp_path):
    pids = tmp_path / "pids"
    (tmp_path / "sample_sanitizers.py").write_text((HERE / "sample_sanitizers.py").read_text())
    path = written(
        tmp_path,
        {"name": "python", "target": "sample_sanitizers:starts_a_child", "params": {"pids": str(pids)}, "timeout": 600},
    )
    run = subprocess.Popen([*DIT, "run", str(path)], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:  # two calls on the whole table, then one that sleeps
            lines = pids.read_text().splitlines() if pids.exists() else []
            if len(lines) >= 3:
                break
            time.sleep(0.1)
        assert len(lines) >= 3
    finally:
        run.send_signal(signal.SIGKILL)
        run.wait()
    *_, folder = lines[2].split(maxsplit=2)
    processes = [int(number) for line in lines for number in line.split()[:2]]
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and (any(map(alive, processes)) or os.path.exists(os.path.dirname(folder))):
        time.sleep(0.2)
    assert not [process for process in processes if alive(process)]
    assert not os.path.exists(folder)
    assert not os.path.exists(os.path.dirname(folder))
