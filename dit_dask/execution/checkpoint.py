"""What is looked at between tasks: the seconds spent, gates that have already failed, and records that were skipped."""

from __future__ import annotations

import time
from collections.abc import Sequence

from dit_dask.audit.gates import Gate
from dit_dask.audit.journal import Journal
from dit_dask.audit.state import TestState
from dit_dask.audit.verdict import Verdict, already_failed
from dit_dask.errors import RunError
from dit_dask.execution.progress import Progress

CHECKPOINT_SECONDS = 2.0
MOST_POSITIONS = 10


class GateFailedError(RunError):
    """A gate has failed already, whatever the rest of the records say."""

    def __init__(self, verdicts: list[Verdict], text: str) -> None:
        super().__init__(text)
        self.verdicts = verdicts


class Checkpoint:
    """Keeps the engine seconds in the journal; ends a run that has already failed one of the gates."""

    def __init__(self, journal: Journal, states: Sequence[TestState], early_gates: Sequence[Gate], progress: Progress) -> None:
        self._journal, self._states, self._gates, self._progress = journal, states, early_gates, progress
        self._last = time.monotonic()

    def __call__(self) -> None:
        """Look after every finished task."""
        if self._gates and any(state.done < state.plan.distinct for state in self._states):
            self._check_gates()
        is_due = time.monotonic() - self._last > CHECKPOINT_SECONDS
        seconds = {state.test.id: round(state.seconds, 6) for state in self._states}
        self._journal.count_seconds(seconds, write=is_due)
        if is_due:
            self._last = time.monotonic()

    def _check_gates(self) -> None:
        failed = already_failed(self._gates, {state.test.id: state.lower_bounds() for state in self._states})
        if failed:
            done = sum(state.done for state in self._states)
            raise GateFailedError(failed, f"{failed[0].gate} has already failed after {done:,} records")

    def settle(self) -> None:
        """Refuse a run that skipped more records than it may."""
        for state in self._states:
            if state.test.external is not None and len(state.skipped):
                self._refuse_skipped(state, state.test.external.policy.allowed)

    def _refuse_skipped(self, state: TestState, allowed: int) -> None:
        skipped, audited = state.skipped, len(state.test.audited)
        few = ", ".join(map(str, skipped[:MOST_POSITIONS])) + (", …" if len(skipped) > MOST_POSITIONS else "")
        text = f"{state.test.id}: {len(skipped):,} of {audited:,} records were skipped ({few})"
        self._progress.note(text)
        if len(skipped) > allowed or len(skipped) == audited:
            cause = next(iter(state.failures.values()))
            raise RunError(
                f"{text}; the first because {cause}; allow_skipped lets the run complete, the same command tries again"
            )
