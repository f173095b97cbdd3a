"""The manifest of a run under way: a frozen value that is replaced at every step, and written when it matters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum

from dit_dask.audit import manifest
from dit_dask.audit.manifest import COMPLETE, FAILED, RUNNING, Manifest
from dit_dask.audit.parts import PartFile
from dit_dask.audit.plan import TestPlan
from dit_dask.errors import DitError
from dit_dask.storage.folder import Folder
from dit_dask.storage.redaction import scrub


class Journal:
    """Writes how far a run is into its folder."""

    def __init__(self, folder: Folder, current: Manifest) -> None:
        self.folder, self.manifest = folder, current

    def reopen(self) -> None:
        """A complete run that lost something is not complete from here on."""
        if self.manifest.is_complete:
            self.manifest = replace(self.manifest, status=RUNNING)
            manifest.write(self.folder, self.manifest)

    def plan(self, plans: Mapping[str, TestPlan]) -> None:
        """Fix the plan; work starts."""
        self.manifest = replace(self.manifest, plan=plans, status=RUNNING, error=None)
        manifest.note(self.folder, self.manifest)

    def count_seconds(self, engine_seconds: Mapping[str, float], *, write: bool) -> None:
        """Keep the engine seconds of each test, for a resumed run to add to."""
        self.manifest = replace(self.manifest, timings=replace(self.manifest.timings, engine_seconds=engine_seconds))
        if write:
            manifest.note(self.folder, self.manifest)

    def finish(self, parts: Mapping[str, Sequence[PartFile]], seconds: Mapping[str, float]) -> None:
        """All work is done; the manifest says so only when it is completed."""
        timings = replace(self.manifest.timings, finished=manifest.now(), seconds=seconds)
        self.manifest = replace(self.manifest, parts=parts, timings=timings)

    def completed(self) -> Manifest:
        """The manifest as it will be once the run is published."""
        return replace(self.manifest, status=COMPLETE, error=None)

    def fail(self, reason: str) -> None:
        """Say why the run ended; what failed may be the storage itself."""
        try:
            manifest.note(self.folder, replace(self.manifest, status=FAILED, error=scrub(reason)))
        except DitError:
            return


class Opened(Enum):
    """What was found where a run is to be written."""

    NOTHING = "nothing"
    OTHER_VERSION = "a run of another version"
    EARLIER_SESSION = "an earlier session of the same run"


def open_journal(folder: Folder, new: Manifest) -> tuple[Journal, Opened]:
    """Go on with the manifest of an earlier session of this version, or begin a new one."""
    stored = manifest.stored_version(folder)
    if stored is not None and stored != new.versions["dit_dask"]:  # its other files may have another form too
        manifest.discard(folder)
    earlier = manifest.read(folder) if stored == new.versions["dit_dask"] else None
    if earlier is not None:
        return Journal(folder, replace(earlier, config=new.config, personal_data=new.personal_data)), Opened.EARLIER_SESSION
    manifest.write(folder, new)  # also finds out, before any work, whether the output can be written
    is_other = stored not in (None, new.versions["dit_dask"])
    return Journal(folder, new), Opened.OTHER_VERSION if is_other else Opened.NOTHING
