"""The life of one deployed audit: create its DaskJob, follow it, try again, tidy up, and end with the audit's own exit code."""

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
PATIENCE_SECONDS = 300.0  # how long the API may be away
LONGEST_PAUSE = 30.0
NAMES = 5
LAUNCHED_BY = "dit-dask/launched-by"
DONE = {"Successful": 0, "Failed": 2}
FINAL = (0, 1)  # done; done, and a gate is breached: trying again would change nothing
DOCUMENT = Record(
    {
        "job": Field(Anything()),
        "autoscaler": Field(Anything(), None),
        "deadline": Field(Integer(1)),
        "ready": Field(Integer(1)),
        "retries": Field(Integer(0)),
        "keep": Field(Integer(1)),
    }
)


@dataclass(frozen=True)
class Owner:
    """The Kubernetes Job that the launcher is a pod of: what it starts is removed with it, and its successor takes over."""

    name: str
    uid: str

    def reference(self) -> dict[str, Any]:
        """An entry of ownerReferences."""
        return {"apiVersion": "batch/v1", "kind": "Job", "name": self.name, "uid": self.uid}


def read(path: str) -> dict[str, Any]:
    """Load what `dit deploy` wrote for the launcher."""
    import yaml

    try:
        document = yaml.safe_load(Path(path).read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"{path}: cannot be read as YAML") from error
    checked = DOCUMENT.check(document, path)
    try:
        job = checked["job"]
        _ = job["metadata"]["namespace"], job["metadata"]["labels"]["app.kubernetes.io/instance"]
        if job["kind"] != "DaskJob":
            raise KeyError("kind")
    except (KeyError, TypeError) as error:
        raise InputError(f"{path}: job must be a DaskJob that `dit deploy` wrote") from error
    return checked


def launch(document: Mapping[str, Any], owner: str | None) -> int:
    """Run a deployed audit to its end and return its exit code."""
    say = progress.Lines().note
    with ExitStack() as stack:
        api = _retry_transient(lambda: stack.enter_context(kube.Kube(document["job"]["metadata"]["namespace"])), say)
        launcher = Launcher(api, document, _owner(owner), say)
        try:
            return launcher.run()
        finally:
            launcher.remove_temporary()


def _retry_transient(call: Callable[[], Any], say: Callable[[str], None], deadline: float = math.inf) -> Any:
    """Repeat a call while the API is away or overloaded."""
    retrying = Retrying(
        retry=retry_if_exception(lambda error: isinstance(error, kube.KubeError) and error.transient),
        wait=wait_exponential(POLL_SECONDS, LONGEST_PAUSE),
        stop=stop_before_delay(min(PATIENCE_SECONDS, deadline - time.monotonic())),
        before_sleep=lambda state: say(f"{state.outcome and state.outcome.exception()}; trying again"),
        reraise=True,
    )
    return retrying(call)


def _owner(text: str | None) -> Owner | None:
    """NAME/UID; a pod without these labels gives '/'."""
    name, _, uid = (text or "").partition("/")
    return Owner(name, uid) if name and uid else None


class Launcher:
    """Follows one audit at a time; all it needs to remember is in Kubernetes."""

    def __init__(self, api: kube.Kube, document: Mapping[str, Any], owner: Owner | None, say: Callable[[str], None]) -> None:
        self._api, self._document, self._owner, self._say = api, document, owner, say
        self._by = owner.name if owner else f"hand-{uuid4().hex[:8]}"
        self._instance: str = document["job"]["metadata"]["labels"]["app.kubernetes.io/instance"]
        self._ends = time.monotonic() + document["deadline"]

    def run(self) -> int:
        """Follow what is there already, or create it; resume what failed, a few times."""
        mine = self._retry_transient(lambda: self._api.find("DaskJob", {LAUNCHED_BY: self._by}))
        name = mine[-1]["metadata"]["name"] if mine else self._create()
        attempt = max(1, len(mine))
        while True:
            try:
                code, why = self._follow(name)
            except KeyboardInterrupt:
                if self._owner is None:  # else the Job's next pod follows it, or it goes with the Job
                    self._delete(name)
                raise
            self._say(f"DaskJob {name} ended with {code}: {why}")
            if code in FINAL or attempt > self._document["retries"]:
                return code
            self._say(f"trying again in {RETRY_SECONDS:g} s ({attempt} of {self._document['retries']})")
            self._sleep(RETRY_SECONDS, name)
            name, attempt = self._create(), attempt + 1

    def _create(self) -> str:
        """Create the DaskJob under a name that nobody has."""
        for _ in range(NAMES):
            name = f"{self._instance}-{datetime.now(UTC):%m%d%H%M%S}-{uuid4().hex[:4]}"
            made = self._retry_transient(lambda name=name: self._created(self._manifest("job", name)))  # type: ignore[misc]
            if made is None:
                continue
            if self._document["autoscaler"] is not None:
                scaler = self._manifest("autoscaler", name)
                owner = {"apiVersion": pods.DASK, "kind": "DaskJob", "name": name, "uid": made["metadata"]["uid"]}
                scaler["metadata"]["ownerReferences"] = [owner]
                self._retry_transient(lambda scaler=scaler: self._created(scaler))  # type: ignore[misc]
            self._say(f"created DaskJob {name}; kubectl logs {name}-runner shows the audit")
            return name
        raise RunError(f"kubernetes: {NAMES} new names for the DaskJob were all taken")

    def _created(self, manifest: dict[str, Any]) -> dict[str, Any] | None:
        """None where somebody else has the name; an object of ours may come from a try whose answer was lost."""
        try:
            return self._api.create(manifest)
        except kube.KubeError as error:
            if error.status != 409:
                raise
        found = self._api.get(manifest["kind"], manifest["metadata"]["name"])
        ours = found is not None and found["metadata"].get("labels", {}).get(LAUNCHED_BY) == self._by
        return found if ours else None

    def _manifest(self, part: str, name: str) -> dict[str, Any]:
        """Fill in the name, who launched it, and who owns it."""
        manifest: dict[str, Any] = _named(self._document[part], name)
        manifest["metadata"]["labels"][LAUNCHED_BY] = self._by
        if self._owner is not None:
            manifest["metadata"]["ownerReferences"] = [self._owner.reference()]
        return manifest

    def _follow(self, name: str) -> tuple[int, str]:
        """Watch a DaskJob until its runner has ended; return the exit code and a reason."""
        start, running = time.monotonic(), False
        while True:
            job, runner = self._retry_transient(lambda: self._look(name))
            if job is None:
                return 2, "somebody deleted it"
            ended = _ended(job, runner)
            if ended is not None:
                return ended
            if not running and runner is not None and runner.get("status", {}).get("phase") == "Running":
                running = True
                self._say(f"DaskJob {name} is running")
            if not running and time.monotonic() - start > self._document["ready"]:
                why = self._why_not_running(job, runner)
                self._delete(name)
                return 2, f"not running after {self._document['ready']} s: {why}"
            self._sleep(POLL_SECONDS, name)

    def _look(self, name: str) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        job = self._api.get("DaskJob", name)
        runners = self._api.find("Pod", {pods.CLUSTER_NAME: name, pods.COMPONENT: "job-runner"})
        return job, runners[-1] if runners else None

    def _why_not_running(self, job: Mapping[str, Any], runner: Mapping[str, Any] | None) -> str:
        if runner is not None:
            return f"pod {runner['metadata']['name']}: {pods.trouble(runner)}"
        acted = job.get("status", {}).get("jobStatus")
        return f"its status is {acted} and it has no runner pod" if acted else "the Dask operator has not acted; is it running?"

    def _sleep(self, seconds: float, name: str) -> None:
        """Wait, but not beyond the deadline; then the DaskJob goes too."""
        if time.monotonic() + seconds > self._ends:
            self._delete(name)
            raise RunError(f"DaskJob {name} did not end within {self._document['deadline']} s; it was removed")
        time.sleep(seconds)

    def _delete(self, name: str) -> None:
        self._retry_transient(lambda: self._api.delete("DaskJob", name))

    def _retry_transient(self, call: Callable[[], Any]) -> Any:
        return _retry_transient(call, self._say, self._ends)

    def remove_temporary(self) -> None:
        """Remove all but the newest finished DaskJobs of this audit; a failure to remove_temporary is not the audit's."""
        try:
            found = self._api.find("DaskJob", pods.labels(self._instance))
            finished = [job for job in found if job.get("status", {}).get("jobStatus") in DONE]
            for job in finished[: -self._document["keep"]]:
                self._api.delete("DaskJob", job["metadata"]["name"])
        except kube.KubeError as error:
            self._say(f"{error}; old DaskJobs stay")


def _ended(job: Mapping[str, Any], runner: Mapping[str, Any] | None) -> tuple[int, str] | None:
    """The exit code of a runner that has ended; DaskJob's own word where its pod is gone."""
    if runner is None:
        word = job.get("status", {}).get("jobStatus")
        return (DONE[word], f"its status is {word}") if word in DONE else None
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


def _named(value: Any, name: str) -> Any:
    """Copy a template with the stand-in replaced by a name."""
    if isinstance(value, Mapping):
        return {key: _named(item, name) for key, item in value.items()}
    if isinstance(value, list):
        return [_named(item, name) for item in value]
    return value.replace(pods.JOB_NAME, name) if isinstance(value, str) else value
