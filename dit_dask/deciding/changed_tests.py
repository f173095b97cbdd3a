"""A test on a table of which one attribute is changed, or why it cannot be made there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dit_dask.audit.build import ReadText, rebuild_test
from dit_dask.audit.test import Test
from dit_dask.config.document import Config
from dit_dask.engines import ReleaseProcedure
from dit_dask.errors import InputError
from dit_dask.values.coarsening import DROPPED, Alternative, change_rows


@dataclass(frozen=True)
class Skipped:
    """A change that the test does not go with, and why."""

    alternative: Alternative
    reason: str

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {"what": self.alternative.label, **self.alternative.document(), "reason": self.reason}


def change_test(config: Config, test: Test, change: Alternative, read: ReadText) -> Test | Skipped:
    """The same test after a change; what it loses of utility is measured against the table before."""
    reason = _obstacle(test, change)
    if reason is not None:
        return Skipped(change, reason)
    try:
        rebuilt = rebuild_test(config, test, change_rows(test.rows, change), read)
    except InputError as error:  # the table as it is was accepted, so it is the change that is refused
        return Skipped(change, str(error))
    return replace(rebuilt, before=(test.rows.table, change))


def _obstacle(test: Test, change: Alternative) -> str | None:
    """Return what else speaks of the values that a change takes away."""
    prior = test.procedure.prior if isinstance(test.procedure, ReleaseProcedure) else None
    attributes = test.rows.table.schema.quasi_identifiers
    if prior is not None and change.attribute in [attributes[place].name for place in prior.places]:
        return "the prior has groups of this attribute as it is"
    if change.change != DROPPED and change.attribute in (test.config.sanitizer.parameters.get("bands") or {}):
        return "the sanitizer has bands of this attribute as it is"
    return None
