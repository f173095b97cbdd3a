"""What earlier sessions left in the folder of a run: which parts are valid, and whether all of it is there."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dit_dask.audit.disclosure import exact_folder, results_are_complete
from dit_dask.audit.identity import secret_key
from dit_dask.audit.manifest import Manifest
from dit_dask.audit.parts import PartFile, part_name
from dit_dask.audit.state import TestState
from dit_dask.audit.test import Test
from dit_dask.audit.verdict import read_verdict
from dit_dask.errors import InputError
from dit_dask.storage.folder import Folder
from dit_dask.values.table import Rows


@dataclass(frozen=True, eq=False)
class StoredRun:
    """The folder of a run, and the tests and rows that it is of."""

    folder: Folder
    tests: Sequence[Test]
    rows: Rows

    def remove_unplanned(self, current: Manifest) -> None:
        """Remove parts of a plan that was lost: a reader of the folder would take them for rows of this run."""
        for test in self.tests:
            planned = {part_name(test.id, part) for part in range(current.plan[test.id].parts)}
            for name in self.folder.names(f"records/{test.id}"):
                if f"records/{test.id}/{name}" not in planned:
                    self.folder.remove(f"records/{test.id}/{name}")

    def remove_altered(self, current: Manifest) -> None:
        """Remove parts that were altered since the run was complete, also where their rows are still the same."""
        for part in (part for parts in current.parts.values() for part in parts):
            content = self.folder.read(part.name)
            if content is not None and self._recorded_digest(hashlib.sha256(content).hexdigest()) != part.digest:
                self.folder.remove(part.name)

    def restore(self, current: Manifest) -> list[TestState]:
        """Take over the parts and seconds of earlier sessions."""
        states = [TestState(test, current.plan[test.id]) for test in self.tests]
        for state in states:
            state.restore(self.folder, self.folder.names(f"records/{state.test.id}"))
            state.seconds = current.timings.engine_seconds.get(state.test.id, 0.0)
        return states

    def is_finished(self, stored: Manifest, states: Sequence[TestState], *, controls: bool) -> bool:
        """Tell whether a run is complete and nothing of its tests was lost or altered since."""
        unchanged = all(list(stored.parts.get(state.test.id, ())) == self.describe_parts(state) for state in states)
        return stored.is_complete and unchanged and results_are_complete(self.folder) and (not controls or self._has_controls())

    def _has_controls(self) -> bool:
        try:
            return read_verdict(exact_folder(self.folder)).has_controls
        except InputError:
            return False

    def describe_parts(self, state: TestState) -> list[PartFile]:
        """The parts of a test as the manifest has them."""
        return [replace(part, digest=self._recorded_digest(part.digest)) for part in state.parts()]

    def _recorded_digest(self, digest: str) -> str:
        """A part's digest as the manifest has it: away from the parts it has a key, or few rows could be found by trying."""
        if self.folder.private is None:
            return digest
        return hmac.digest(secret_key(self.rows), digest.encode(), "sha256").hex()
