"""One point of a sweep, ready to run, and how its work is cut, retried and shared."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dit_dask.config.document import TestConfig
from dit_dask.engines import Procedure
from dit_dask.values.table import Rows

if TYPE_CHECKING:
    from dit_dask.sanitizers.external import ExternalSanitizer
    from dit_dask.values.arrays import Floats, Ints


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
    audited: Ints
    estimated_influence: Floats | None = None  # of the records, where those with the largest go first
    shown_parameters: Mapping[str, Any] = field(default_factory=dict)  # without secrets
    recoded: Rows | None = field(default=None, repr=False)  # where the encoder changes the table before it is sanitised

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

    def sharing_key(self) -> Hashable:
        """Equal for tests whose adversaries can learn from the same releases."""
        if not self.policy.shares_releases:
            return self.id
        state = None if self.external is None else id(self.external.state)  # one for all sensitive attributes
        return state, self.engine, self.config.repeats, self.audited.tobytes(), self.rows.index.tobytes()

    def with_external(self, sanitizer: ExternalSanitizer) -> Test:
        """The same test with another state of its external sanitizer."""
        return replace(self, procedure=self.procedure.with_external(sanitizer))
