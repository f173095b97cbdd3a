"""The launcher against a Kubernetes API over HTTP, through the whole life of a deployed audit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from dit_dask.cluster.kubernetes import api as kube
from dit_dask.cluster.kubernetes import objects as pods
from dit_dask.deployment import launcher
from dit_dask.deployment import manifests as deploy
from dit_dask.errors import DitError, RunError
from tests.cluster.fake_operator import Api, runner, serving
from tests.cluster.runs import dit
from tests.conftest import ROOT

LABELS = pods.labels("s3-audit")
OWNER = "s3-audit-29000000/uid-of-job"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Api, Path]]:
    with serving(tmp_path) as pair:
        yield pair


@pytest.fixture
def api(served: tuple[Api, Path], monkeypatch: pytest.MonkeyPatch) -> Api:
    """The API of a cluster that is ours, with little patience on our side."""
    monkeypatch.setenv("KUBECONFIG", str(served[1]))
    monkeypatch.setattr(launcher, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(launcher, "RETRY_SECONDS", 0.05)
    return served[0]


@cache
def printed_document() -> str:
    printed = deploy.manifests(
        str(ROOT / "configs" / "s3-audit.yaml"), deploy.DeployOptions("registry.example.org/dit:0.1.0", secret="s3")
    )
    content = next(one for one in yaml.safe_load_all(printed) if one["kind"] == "ConfigMap")
    return str(content["data"]["launch.yaml"])


def document(**limits: Any) -> launcher.LaunchDocument:
    """What `dit deploy` wrote for the launcher."""
    loaded: dict[str, Any] = yaml.safe_load(printed_document())
    checked: launcher.LaunchDocument = launcher.DOCUMENT.check(loaded | limits, "launch.yaml")
    return checked


def jobs(api: Api) -> list[dict[str, Any]]:
    return [one for one in api.made if one["kind"] == "DaskJob"]


@pytest.mark.parametrize(
    ("last", "code"),
    [
        (runner("Succeeded", code=0), 0),
        (runner("Failed", code=1, reason="Error"), 1),
        (runner("Failed", code=2, reason="Error"), 2),
        (runner("Failed", code=137, reason="OOMKilled"), 2),
        (runner("Evicted"), 2),
    ],
)
def test_it_ends_as_the_audit_ends(api: Api, last: dict[str, Any], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    api.script = [None, runner("Pending", waiting="ContainerCreating"), runner("Running"), runner("Running"), last]
    assert launcher.launch(document(retries=0), OWNER) == code
    (job,) = jobs(api)
    name = job["metadata"]["name"]
    said = capsys.readouterr().err
    assert f"created DaskJob {name}" in said
    assert f"DaskJob {name} is running" in said
    assert f"DaskJob {name} ended with {code}" in said
    assert api.deleted == []  # its Job's history decides how long it stays


def test_what_it_creates_carries_one_name_its_owner_and_its_labels(api: Api) -> None:
    api.script = [runner("Succeeded", code=0)]
    launcher.launch(document(), OWNER)
    (job,) = jobs(api)
    name = job["metadata"]["name"]
    assert name.startswith("s3-audit-")
    assert len(name) <= pods.NAME_LENGTH
    assert pods.JOB_NAME not in str(job)
    assert job["spec"]["cluster"]["spec"]["scheduler"]["service"]["selector"][pods.CLUSTER_NAME] == name
    assert f"tcp://{name}-scheduler.default.svc:8786" in str(job["spec"]["job"])
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "s3-audit-29000000", "uid": "uid-of-job"}
    assert job["metadata"]["ownerReferences"] == [owner]
    assert job["metadata"]["labels"] == LABELS | {launcher.LAUNCHED_BY: "s3-audit-29000000"}


def test_two_launches_have_two_names(api: Api) -> None:
    api.script = [runner("Succeeded", code=0)]
    for number in (1, 2):
        launcher.launch(document(), f"job-{number}/uid")
    first, second = (one["metadata"]["name"] for one in jobs(api))
    assert first != second


def test_adaptive_workers_come_with_a_scaler_that_the_job_owns(api: Api) -> None:
    api.script = [runner("Succeeded", code=0)]
    shape = {"name": pods.JOB_NAME, "namespace": "default", "labels": dict(LABELS)}
    template = {
        "apiVersion": pods.DASK,
        "kind": "DaskAutoscaler",
        "metadata": shape,
        "spec": {"cluster": pods.JOB_NAME},
    }
    launcher.launch(document(autoscaler=template), OWNER)
    job, scaler = api.made
    assert scaler["metadata"]["name"] == scaler["spec"]["cluster"] == job["metadata"]["name"]
    assert scaler["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]


def test_a_failed_audit_is_resumed_and_a_failed_gate_is_not(api: Api) -> None:
    api.script = [runner("Failed", code=2), runner("Failed", code=2), runner("Failed", code=1)]
    assert launcher.launch(document(retries=5), OWNER) == 1
    assert len(jobs(api)) == 3


def test_retries_end(api: Api) -> None:
    api.script = [runner("Failed", code=2)]
    assert launcher.launch(document(retries=2), OWNER) == 2
    assert len(jobs(api)) == 3


def test_a_successor_follows_the_job_that_is_there(api: Api) -> None:
    api.put("s3-audit-07", {**LABELS, launcher.LAUNCHED_BY: "s3-audit-29000000"}, "Running")
    api.script = [runner("Running"), runner("Failed", code=1)]
    assert launcher.launch(document(), OWNER) == 1
    assert jobs(api) == []


def test_a_job_that_somebody_deletes_is_a_failure(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    api.script = [runner("Running")]

    def vanish() -> None:
        while not jobs(api):
            pass
        for one in api.objects.values():
            one.delete()

    thread = threading.Thread(target=vanish)
    thread.start()
    assert launcher.launch(document(retries=0), OWNER) == 2
    thread.join()
    assert "it was deleted" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("step", "status", "said"),
    [
        (
            runner("Pending", waiting="ImagePullBackOff"),
            "ClusterCreated",
            "pod the-runner: ImagePullBackOff (about ImagePullBackOff)",
        ),
        (None, None, "the Dask operator has not acted; is it running?"),
    ],
)
def test_a_job_that_never_runs_is_removed_and_the_reason_named(
    api: Api, step: Any, status: str | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    api.script = [step]
    settings = replace(document(retries=0), ready=0.2)
    assert launcher.launch(settings, OWNER) == 2
    assert api.deleted == [jobs(api)[0]["metadata"]["name"]]
    assert said in capsys.readouterr().err


def test_the_deadline_removes_the_job(api: Api) -> None:
    api.script = [runner("Running")]
    with pytest.raises(RunError, match=r"did not end within 2 s; it was removed"):
        launcher.launch(replace(document(), deadline=2), OWNER)
    assert api.deleted == [jobs(api)[0]["metadata"]["name"]]


def test_an_api_that_is_away_for_a_while_is_waited_for(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    api.script = [runner("Running"), runner("Running"), runner("Succeeded", code=0)]
    api.faults = [
        {"on": ("GET", ""), "status": 503},  # already while connecting
        {"on": ("GET", "daskjobs"), "status": 503, "times": 2},
        {"on": ("POST", "daskjobs"), "status": 500},
        {"on": ("GET", "pods"), "status": 429},
    ]
    assert launcher.launch(document(), OWNER) == 0
    assert len(jobs(api)) == 1
    assert capsys.readouterr().err.count("; trying again\n") == 5


def test_a_lost_answer_does_not_make_a_second_job(api: Api) -> None:
    api.script = [runner("Succeeded", code=0)]
    api.faults = [{"on": ("POST", "daskjobs"), "status": 504, "after": True}]
    assert launcher.launch(document(), OWNER) == 0
    assert len(jobs(api)) == 1


def test_a_name_that_somebody_has_is_left_to_them(api: Api) -> None:
    api.script = [runner("Succeeded", code=0)]
    api.faults = [{"on": ("POST", "daskjobs"), "status": 409, "times": 2}]
    assert launcher.launch(document(), OWNER) == 0
    assert len(jobs(api)) == 1
    api.faults = [{"on": ("POST", "daskjobs"), "status": 409, "times": 9}]
    with pytest.raises(RunError, match="were all taken"):
        launcher.launch(document(), "other/uid")


def test_an_api_that_stays_silent_is_an_error_in_one_line(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kube, "CALL_SECONDS", 1.5)
    monkeypatch.setattr(launcher, "API_RETRY_SECONDS", 1.0)
    api.faults = [{"on": ("GET", "daskjobs"), "seconds": 4, "times": 99}]
    with pytest.raises(DitError, match=r"^kubernetes: cannot list DaskJobs: no answer within 1.5 s$"):
        launcher.launch(document(), OWNER)


def test_a_slow_api_is_only_slow(api: Api) -> None:
    api.script = [runner("Running"), runner("Succeeded", code=0)]
    api.faults = [{"on": ("GET", "daskjobs"), "seconds": 0.5}, {"on": ("GET", "pods"), "seconds": 0.5}]
    assert launcher.launch(document(), OWNER) == 0


@pytest.mark.parametrize(("status", "said"), [(403, "403: told to answer 403"), (422, "422: told to answer 422")])
def test_what_the_api_refuses_is_final(api: Api, status: int, said: str) -> None:
    api.faults = [{"on": ("POST", "daskjobs"), "status": status, "times": 9}]
    with pytest.raises(DitError, match=f"cannot create DaskJob s3-audit-.*: {said}"):
        launcher.launch(document(), OWNER)


def test_only_the_newest_finished_jobs_stay(api: Api) -> None:
    for number in range(1, 6):
        api.put(f"s3-audit-0{number}", LABELS, "Failed" if number % 2 else "Successful")
    api.put("s3-audit-00", LABELS, "Running")
    api.put("other-01", pods.labels("other"), "Successful")
    api.script = [runner("Succeeded", code=0)]
    launcher.launch(document(keep=2), OWNER)
    assert api.deleted == ["s3-audit-01", "s3-audit-02", "s3-audit-03"]


@pytest.mark.parametrize(("owner", "removed"), [(OWNER, 0), ("/", 1), (None, 1)])
def test_an_interrupted_launcher_leaves_its_job_only_to_a_successor(
    api: Api, monkeypatch: pytest.MonkeyPatch, owner: str | None, removed: int
) -> None:
    api.script = [runner("Running")]
    sleep = launcher.time.sleep
    calls = iter(range(100))

    def interrupted(seconds: float) -> None:
        if next(calls) == 3:
            raise KeyboardInterrupt
        sleep(seconds)

    monkeypatch.setattr(launcher.time, "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        launcher.launch(document(), owner)
    assert len(api.deleted) == removed


def test_the_command_ends_with_the_audits_exit_code(served: tuple[Api, Path], tmp_path: Path) -> None:
    api, kubeconfig = served
    api.script = [runner("Running"), runner("Failed", code=1)]
    (tmp_path / "launch.yaml").write_text(printed_document())
    done = dit("launch", tmp_path / "launch.yaml", "--owner", OWNER, KUBECONFIG=str(kubeconfig))
    assert done.returncode == 1, done.stderr
    assert done.stdout == ""


def unreadable(folder: Path) -> Path:
    return folder / "nowhere.yaml"


def not_ours(folder: Path) -> Path:
    path = folder / "launch.yaml"
    path.write_text("{deadline: 1, ready: 1, retries: 0, keep: 1, job: {kind: Pod}}")
    return path


@pytest.mark.parametrize(
    ("make", "said"), [(unreadable, "cannot be read as YAML"), (not_ours, "job must be a DaskJob that `dit deploy` wrote")]
)
def test_a_wrong_document_is_one_line(tmp_path: Path, make: Callable[[Path], Path], said: str) -> None:
    failed = dit("launch", make(tmp_path))
    assert failed.returncode == 2
    assert failed.stderr.count("\n") == 1
    assert said in failed.stderr


def test_no_cluster_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "launch.yaml").write_text(printed_document())
    (tmp_path / "empty").write_text("")
    failed = dit("launch", tmp_path / "launch.yaml", KUBECONFIG=str(tmp_path / "nowhere"), HOME=str(tmp_path))
    assert failed.returncode == 2
    assert failed.stderr == "dit: kubernetes: cannot reach the Kubernetes API: Unable to find valid credentials\n"
