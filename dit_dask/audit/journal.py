"""The manifest of a run under way: a frozen value that is replaced at every step, and written when it matters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

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


def open_journal(folder: Folder, fresh: Manifest) -> tuple[Journal, Manifest | None]:
    """Go on with the manifest of an earlier session of this version, or begin a new one; also return what was there."""
    earlier = manifest.read(folder)
    if earlier is not None and earlier.versions["dit_dask"] == fresh.versions["dit_dask"]:
        return Journal(folder, replace(earlier, config=fresh.config)), earlier
    if earlier is not None:
        manifest.discard(folder)
    manifest.write(folder, fresh)  # also finds out, before any work, whether the output can be written
    return Journal(folder, fresh), earlier
