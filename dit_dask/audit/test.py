"""One point of a sweep, ready to run, and how its work is cut, retried and shared."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.config.document import TestConfig
from dit_dask.engines import Procedure, ReleaseProcedure
from dit_dask.measures.utility.figures import NO_UTILITY, Utility, measure_utility
from dit_dask.sanitizers.claims import Recheck, claimed_k
from dit_dask.values.arrays import RowNumbers
from dit_dask.values.coarsening import Alternative, widen
from dit_dask.values.table import Rows, Table

if TYPE_CHECKING:
    from dit_dask.engines.noisy_counts.effective_epsilon import PrivacyLoss
    from dit_dask.sanitizers.external import ExternalSanitizer
    from dit_dask.values.arrays import Floats, Positions
    from dit_dask.values.pieces import RowIndex


@dataclass(frozen=True)
class WorkPolicy:
    """How the work of a test is done.

    `task_retries` are Dask's. `warm_up`: code is loaded on a few records before the clock starts. `planned_by_calls`: the cost
    of a record is that of a call, known from the probe. `shares_releases`: adversaries of equal tests learn from one release.
    """

    task_retries: int
    warm_up: bool
    planned_by_calls: bool
    shares_releases: bool


IN_PROCESS = WorkPolicy(task_retries=2, warm_up=True, planned_by_calls=False, shares_releases=False)
EXTERNAL_CALLS = WorkPolicy(task_retries=0, warm_up=False, planned_by_calls=True, shares_releases=True)  # calls have retries


@dataclass(frozen=True, eq=False)
class Test:
    """What is run, on which engine, on which rows, and which of them are tested.

    The rows are those of the table, binned where the test asks for it. Tests with the same external sanitizer share its
    releases.
    """

    __test__ = False

    id: str
    config: TestConfig = field(repr=False)  # Dask logs the arguments of a failed task
    parameters: Mapping[str, Any] = field(repr=False)
    procedure: Procedure = field(repr=False)
    engine: str
    engine_reason: str
    rows: Rows = field(repr=False)
    audited: Positions
    estimated_influence: Floats | None = None  # of the records, where those with the largest go first
    shown_parameters: Mapping[str, Any] = field(default_factory=dict)  # without secrets
    recoded: Rows | None = field(default=None, repr=False)  # where the encoder changes the table before it is sanitised
    before: tuple[Table, Alternative] | None = field(default=None, repr=False)  # where one attribute of a table was changed

    @property
    def record(self) -> RowIndex:
        """Return (audited,): the distinct record of each audited row; a view if all rows are audited."""
        return self.rows.record_of(self.audited)

    @property
    def external(self) -> ExternalSanitizer | None:
        """The external sanitizer of this test, if it has one."""
        return self.procedure.external

    @property
    def policy(self) -> WorkPolicy:
        """How the work of this test is done."""
        return IN_PROCESS if self.external is None else EXTERNAL_CALLS

    @property
    def repeats(self) -> int:
        """Releases a side."""
        return self.config.repeats or 1

    def without_rows(self) -> Test:
        """The same without anything that is as long as the table, which engines do not need."""
        light = replace(self.rows, index=np.empty(0, np.int32), source_row=RowNumbers(0), further=())
        return replace(self, rows=light, audited=RowNumbers(0), recoded=None)

    def sharing_key(self) -> Hashable:
        """Equal for tests whose adversaries can learn from the same releases."""
        if not self.policy.shares_releases:
            return self.id
        state = None if self.external is None else id(self.external.state)  # one for all sensitive attributes
        return (
            state,
            self.engine,
            self.config.repeats,
            np.asarray(self.audited).tobytes(),
            np.asarray(self.rows.index).tobytes(),
        )

    def recheck(self) -> tuple[Recheck, PrivacyLoss | None, Utility]:
        """Compare what is published, or the noise, with what it claims, and with the table, as it was before any change."""
        found, loss, utility = self.procedure.recheck(self.rows.table)
        return found, loss, utility if self.before is None else self._utility_against(*self.before)

    def _utility_against(self, table: Table, change: Alternative) -> Utility:
        """What is left of the table before a change: what the change alone takes away counts as lost, too."""
        procedure = self.procedure
        if not isinstance(procedure, ReleaseProcedure) or not procedure.publishes_release:
            return NO_UTILITY
        release = widen(procedure.publish(self.rows.table), table, change)
        if release is None:
            return NO_UTILITY
        return measure_utility(table, release, claimed_k(procedure.sanitizer.claim), procedure.seed)

    def with_external(self, sanitizer: ExternalSanitizer) -> Test:
        """The same test with another state of its external sanitizer."""
        return replace(self, procedure=self.procedure.with_external(sanitizer))
