"""Runs one deployed audit: creates its DaskJob, waits for it, retries, removes old ones, and returns the audit's exit code."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from tenacity import Retrying, retry_if_exception, stop_before_delay, wait_exponential

from dit_dask.cluster.kubernetes import api as kube
from dit_dask.cluster.kubernetes import objects as pods
from dit_dask.config.constraints import Anything, Field, Integer, Record
from dit_dask.errors import InputError, RunError
from dit_dask.execution import progress

POLL_SECONDS = 3.0
RETRY_SECONDS = 30.0
API_RETRY_SECONDS = 300.0  # how long the API may be unavailable
LONGEST_PAUSE = 30.0
NAME_ATTEMPTS = 5
LAUNCHED_BY = "dit-dask/launched-by"
EXIT_CODES = {"Successful": 0, "Failed": 2}
FINAL_CODES = (0, 1)  # passed, or a gate failed: a retry would give the same


@dataclass(frozen=True)
class LaunchDocument:
    """What `dit deploy` wrote for the launcher: the objects to create, and its limits in seconds and numbers."""

    job: Mapping[str, Any]
    autoscaler: Mapping[str, Any] | None
    deadline: int
    ready: int
    retries: int
    keep: int


DOCUMENT = Record(
    {
        "job": Field(Anything()),
        "autoscaler": Field(Anything(), None),
        "deadline": Field(Integer(1)),
        "ready": Field(Integer(1)),
        "retries": Field(Integer(0)),
        "keep": Field(Integer(1)),
    },
    LaunchDocument,
)


@dataclass(frozen=True)
class Owner:
    """The Kubernetes Job of the launcher's pod: DaskJobs are removed with it, and its next pod continues with them."""

    name: str
    uid: str

    def reference(self) -> dict[str, Any]:
        """An entry of ownerReferences."""
        return {"apiVersion": "batch/v1", "kind": "Job", "name": self.name, "uid": self.uid}


def read(path: str) -> LaunchDocument:
    """Load what `dit deploy` wrote for the launcher."""
    import yaml

    try:
        document = yaml.safe_load(Path(path).read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"{path}: cannot be read as YAML") from error
    checked: LaunchDocument = DOCUMENT.check(document, path)
    try:
        job = checked.job
        _ = job["metadata"]["namespace"], job["metadata"]["labels"]["app.kubernetes.io/instance"]
        if job["kind"] != "DaskJob":
            raise KeyError("kind")
    except (KeyError, TypeError) as error:
        raise InputError(f"{path}: job must be a DaskJob that `dit deploy` wrote") from error
    return checked


def launch(document: LaunchDocument, owner: str | None) -> int:
    """Run a deployed audit to its end and return its exit code."""
    log = progress.Lines().note
    with ExitStack() as stack:
        api = _retry(lambda: stack.enter_context(kube.Kube(document.job["metadata"]["namespace"])), log)
        launcher = Launcher(api, document, _parse_owner(owner), log)
        try:
            return launcher.run()
        finally:
            launcher.remove_old_jobs()


def _retry(call: Callable[[], Any], log: Callable[[str], None], deadline: float = math.inf) -> Any:
    """Repeat a call while the API is unavailable or overloaded."""
    retrying = Retrying(
        retry=retry_if_exception(lambda error: isinstance(error, kube.KubeError) and error.transient),
        wait=wait_exponential(POLL_SECONDS, LONGEST_PAUSE),
        stop=stop_before_delay(min(API_RETRY_SECONDS, deadline - time.monotonic())),
        before_sleep=lambda state: log(f"{state.outcome and state.outcome.exception()}; trying again"),
        reraise=True,
    )
    return retrying(call)


def _parse_owner(text: str | None) -> Owner | None:
    """Parse NAME/UID; a pod without these labels gives '/'."""
    name, _, uid = (text or "").partition("/")
    return Owner(name, uid) if name and uid else None


class Launcher:
    """Runs one audit at a time; all its state is in Kubernetes."""

    def __init__(self, api: kube.Kube, document: LaunchDocument, owner: Owner | None, log: Callable[[str], None]) -> None:
        self._api, self._document, self._owner, self._log = api, document, owner, log
        self._launched_by = owner.name if owner else f"hand-{uuid4().hex[:8]}"
        self._instance: str = document.job["metadata"]["labels"]["app.kubernetes.io/instance"]
        self._deadline = time.monotonic() + document.deadline

    def run(self) -> int:
        """Wait for the DaskJob of an earlier pod, or create one; retry a failed one a few times."""
        jobs = self._retry(lambda: self._api.find("DaskJob", {LAUNCHED_BY: self._launched_by}))
        name = jobs[-1]["metadata"]["name"] if jobs else self._create()
        attempt = max(1, len(jobs))
        while True:
            try:
                code, reason = self._follow(name)
            except KeyboardInterrupt:
                if self._owner is None:  # else the Job's next pod waits for it, or it is removed with the Job
                    self._delete(name)
                raise
            self._log(f"DaskJob {name} ended with {code}: {reason}")
            if code in FINAL_CODES or attempt > self._document.retries:
                return code
            self._log(f"trying again in {RETRY_SECONDS:g} s ({attempt} of {self._document.retries})")
            self._sleep(RETRY_SECONDS, name)
            name, attempt = self._create(), attempt + 1

    def _create(self) -> str:
        """Create the DaskJob under a new name."""
        for _ in range(NAME_ATTEMPTS):
            name = f"{self._instance}-{datetime.now(UTC):%m%d%H%M%S}-{uuid4().hex[:4]}"
            job = self._retry(lambda name=name: self._create_object(self._manifest(self._document.job, name)))  # type: ignore[misc]
            if job is None:
                continue
            if self._document.autoscaler is not None:
                scaler = self._manifest(self._document.autoscaler, name)
                owner = {"apiVersion": pods.DASK, "kind": "DaskJob", "name": name, "uid": job["metadata"]["uid"]}
                scaler["metadata"]["ownerReferences"] = [owner]
                self._retry(lambda scaler=scaler: self._create_object(scaler))  # type: ignore[misc]
            self._log(f"created DaskJob {name}; kubectl logs {name}-runner shows the audit")
            return name
        raise RunError(f"kubernetes: {NAME_ATTEMPTS} new names for the DaskJob were all taken")

    def _create_object(self, manifest: dict[str, Any]) -> dict[str, Any] | None:
        """Create an object; None if the name is taken. Our own object is there if an earlier reply was lost."""
        try:
            return self._api.create(manifest)
        except kube.KubeError as error:
            if error.status != 409:
                raise
        existing = self._api.get(manifest["kind"], manifest["metadata"]["name"])
        ours = existing is not None and existing["metadata"].get("labels", {}).get(LAUNCHED_BY) == self._launched_by
        return existing if ours else None

    def _manifest(self, template: Mapping[str, Any], name: str) -> dict[str, Any]:
        """Fill in the name, the launcher and the owner."""
        manifest: dict[str, Any] = _fill_name(template, name)
        manifest["metadata"]["labels"][LAUNCHED_BY] = self._launched_by
        if self._owner is not None:
            manifest["metadata"]["ownerReferences"] = [self._owner.reference()]
        return manifest

    def _follow(self, name: str) -> tuple[int, str]:
        """Poll a DaskJob until its runner has ended; return the exit code and a reason."""
        start, running = time.monotonic(), False
        while True:
            job, runner = self._retry(lambda: self._read_job(name))
            if job is None:
                return 2, "it was deleted"
            ended = _exit_code(job, runner)
            if ended is not None:
                return ended
            if not running and runner is not None and runner.get("status", {}).get("phase") == "Running":
                running = True
                self._log(f"DaskJob {name} is running")
            if not running and time.monotonic() - start > self._document.ready:
                reason = self._why_not_running(job, runner)
                self._delete(name)
                return 2, f"not running after {self._document.ready} s: {reason}"
            self._sleep(POLL_SECONDS, name)

    def _read_job(self, name: str) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        job = self._api.get("DaskJob", name)
        runners = self._api.find("Pod", {pods.CLUSTER_NAME: name, pods.COMPONENT: "job-runner"})
        return job, runners[-1] if runners else None

    def _why_not_running(self, job: Mapping[str, Any], runner: Mapping[str, Any] | None) -> str:
        if runner is not None:
            return f"pod {runner['metadata']['name']}: {pods.trouble(runner)}"
        status = job.get("status", {}).get("jobStatus")
        return (
            f"its status is {status} and it has no runner pod" if status else "the Dask operator has not acted; is it running?"
        )

    def _sleep(self, seconds: float, name: str) -> None:
        """Wait; at the deadline delete the DaskJob and raise RunError."""
        if time.monotonic() + seconds > self._deadline:
            self._delete(name)
            raise RunError(f"DaskJob {name} did not end within {self._document.deadline} s; it was removed")
        time.sleep(seconds)

    def _delete(self, name: str) -> None:
        self._retry(lambda: self._api.delete("DaskJob", name))

    def _retry(self, call: Callable[[], Any]) -> Any:
        return _retry(call, self._log, self._deadline)

    def remove_old_jobs(self) -> None:
        """Remove all but the newest finished DaskJobs of this audit; a failure to do so is only logged."""
        try:
            jobs = self._api.find("DaskJob", pods.labels(self._instance))
            finished = [job for job in jobs if job.get("status", {}).get("jobStatus") in EXIT_CODES]
            for job in finished[: -self._document.keep]:
                self._api.delete("DaskJob", job["metadata"]["name"])
        except kube.KubeError as error:
            self._log(f"{error}; old DaskJobs stay")


def _exit_code(job: Mapping[str, Any], runner: Mapping[str, Any] | None) -> tuple[int, str] | None:
    """Return the exit code of a runner that has ended and a reason; of the DaskJob's status where its pod is gone."""
    if runner is None:
        status = job.get("status", {}).get("jobStatus")
        return (EXIT_CODES[status], f"its status is {status}") if status in EXIT_CODES else None
    status = runner.get("status", {})
    if status.get("phase") not in ("Succeeded", "Failed"):
        return None
    for container in status.get("containerStatuses") or []:
        state = container.get("state", {}).get("terminated")
        if state is not None:
            code = int(state["exitCode"])
            return (code if code in (0, 1, 2) else 2), f"exit code {code}" + (
                f", {state['reason']}" if state.get("reason") else ""
            )
    return (0 if status["phase"] == "Succeeded" else 2), str(status.get("reason") or f"its runner {status['phase'].lower()}")


def _fill_name(value: Any, name: str) -> Any:
    """Copy a template with the placeholder replaced by a name."""
    if isinstance(value, Mapping):
        return {key: _fill_name(item, name) for key, item in value.items()}
    if isinstance(value, list):
        return [_fill_name(item, name) for item in value]
    return value.replace(pods.JOB_NAME, name) if isinstance(value, str) else value
