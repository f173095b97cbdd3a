"""Pods of 2 GiB audit 20,000,000 rows on a real Kubernetes control plane; the test gives each pod its memory limit."""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from tests.cluster.conftest import S3Access
from tests.cluster.rig import Cluster, running, wait
from tests.cluster.runs import dit

pytestmark = pytest.mark.slow

GROUPS = (  # memory control groups of the second version, and of the first: folder, limit, peak, events
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.max_usage_in_bytes", "memory.oom_control", "oom_kill"),
    (Path("/sys/fs/cgroup"), "memory.max", "memory.peak", "memory.events", "oom_kill"),
)
LIMIT = 2 * 2**30  # what pods have by default
ROWS, CHUNK_ROWS = 20_000_000, 1_000_000
CONFIG = """\
version: 1
name: twenty_million
data: {source: "s3://incoming/people.parquet", storage_options: OPTIONS}
schema:
  quasi_identifiers:
    birth: {kind: numeric}
    hours: {kind: numeric}
    town: {kind: categorical}
  sensitive: illness
tests:
  - sanitizer: {name: mondrian, k: 5}
gates: ["mean <= 0.5"]
output: {url: "s3://audits/", storage_options: OPTIONS}
cluster:
  workers: 2
  kubernetes: {image: "registry.example.org/dit:0.1.0", secret: bucket}
seed: 3
"""


class PodLimits:
    """Puts every process that the kubelet starts into a control group with a limit, as a real kubelet does."""

    def __init__(self) -> None:
        self._root, self._limit, self._peak, self._events, self._killed = next(
            group for group in GROUPS if (group[0] / "cgroup.procs").exists() and (group[0].name == "memory" or _is_second())
        )
        self._groups: dict[int, Path] = {}
        self.commands: dict[int, str] = {}
        self._ended = Event()
        self._thread = Thread(target=self._watch, daemon=True)

    def __enter__(self) -> PodLimits:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        for group in self._groups.values():
            with suppress(OSError):
                group.rmdir()

    def _watch(self) -> None:
        while not self._ended.wait(0.05):
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.Error, OSError):
                    parent = process.parent()
                    if parent is not None and any("kubelet.py" in word for word in parent.cmdline()):
                        self._limit_pod(process)

    def _limit_pod(self, process: psutil.Process) -> None:
        group = self._groups.get(process.pid)
        if group is None:
            group = self._root / f"dit-pod-{os.getpid()}-{process.pid}"
            group.mkdir()
            (group / self._limit).write_text(str(LIMIT))
            self._groups[process.pid] = group
            for one in (process, *process.children(recursive=True)):  # what it starts from now on is in the group, too
                with suppress(OSError):  # it has ended
                    (group / "cgroup.procs").write_text(str(one.pid))
        self.commands[process.pid] = " ".join(process.cmdline())

    def peaks(self) -> dict[str, float]:
        """The most memory that each pod had, cached pages of its files included, in MB, by its command."""
        return {
            f"{self.commands[pid]} ({pid})": int((group / self._peak).read_text()) / 2**20
            for pid, group in self._groups.items()
        }

    def killed(self) -> int:
        """How many processes the system has ended because their pod needed more than its limit."""
        lines = [line.split() for group in self._groups.values() for line in (group / self._events).read_text().splitlines()]
        return sum(int(count) for name, count in lines if name == self._killed)


def _is_second() -> bool:
    return "memory" in Path("/sys/fs/cgroup/cgroup.controllers").read_text().split()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, s3: S3Access) -> Iterator[Cluster]:
    """The rig, with the Secret that the pods need."""
    if not any((group[0] / "cgroup.procs").exists() for group in GROUPS):
        pytest.skip("no control groups: pods cannot have memory limits")
    with running(tmp_path_factory.mktemp("rig")) as found:
        found.apply({"kind": "Secret", "metadata": {"name": "bucket"}, "stringData": s3.environment})
        yield found


def write_people(s3: S3Access) -> None:
    """A table of made-up people, in row groups of a million."""
    schema = pa.schema({"birth": pa.int32(), "hours": pa.int32(), "town": pa.string(), "illness": pa.string()})
    towns, illnesses = (pa.array([f"{name}-{number}" for number in range(12)]) for name in ("town", "illness"))
    with s3.client().open("incoming/people.parquet", "wb") as file, pq.ParquetWriter(file, schema) as writer:
        for chunk in range(ROWS // CHUNK_ROWS):
            rng = np.random.default_rng((1, chunk))
            cells = [rng.binomial(100, 0.6, CHUNK_ROWS), rng.binomial(60, 0.7, CHUNK_ROWS)]
            texts = [of.take(pa.array(rng.binomial(11, 0.4, CHUNK_ROWS))) for of in (towns, illnesses)]
            writer.write_table(pa.table([*(pa.array(one.astype(np.int32)) for one in cells), *texts], schema=schema))


@contextmanager
def deployed(cluster: Cluster, audit: Path) -> Iterator[None]:
    """Apply what `dit deploy` prints, and delete it."""
    printed = dit("deploy", audit)
    assert printed.returncode == 0, printed.stderr
    manifests = list(yaml.safe_load_all(printed.stdout))
    for manifest in manifests:
        cluster.apply(manifest)
    try:
        yield
    finally:
        for manifest in manifests:
            cluster.delete(manifest["kind"], manifest["metadata"]["name"])


def test_pods_of_two_gibibytes_audit_twenty_million_rows(
    cluster: Cluster, tmp_path: Path, s3: S3Access, record_property: Callable[[str, object], None]
) -> None:
    write_people(s3)
    audit = tmp_path / "people.yaml"
    audit.write_text(CONFIG.replace("OPTIONS", json.dumps(s3.options)))
    start = time.monotonic()
    with PodLimits() as limits, deployed(cluster, audit):
        (job,) = wait("end of the Job", lambda: [one for one in cluster.all("Job") if _is_ended(one)], 1200)
        seconds = time.monotonic() - start
        said = [cluster.log(f"{one['metadata']['name']}-runner") for one in cluster.all("DaskJob")]
        peaks, killed = limits.peaks(), limits.killed()
    record_property("seconds", round(seconds))
    record_property("peaks in MB", json.dumps({command: round(peak) for command, peak in peaks.items()}))
    assert job["status"].get("succeeded") == 1, said
    assert killed == 0, peaks
    assert sum("dask worker" in command for command in peaks) >= 2, peaks
    assert all(peak <= LIMIT / 2**20 for peak in peaks.values())
    here = dit("run", audit, "--json", "--quiet", "--out", str(tmp_path / "runs"), **s3.environment)
    assert here.returncode == 0, here.stderr
    (entry,) = json.loads(here.stdout)["tests"]
    files = s3.client()
    (folder,) = [path for path in files.ls("audits") if "twenty_million-" in path]
    (there,) = json.load(io.BytesIO(files.cat(f"{folder}/summary.json")))
    assert there["records"] == ROWS
    assert {**there, "seconds": 0} == {**entry, "seconds": 0}


def _is_ended(job: dict[str, dict[str, int]]) -> bool:
    return bool(job["status"].get("succeeded") or job["status"].get("failed"))
