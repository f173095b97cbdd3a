"""One point of a sweep, ready to run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dit_dask.config.document import TestConfig
from dit_dask.engines import NoisyCounts, Procedure
from dit_dask.sanitizers.external import ExternalSanitizer
from dit_dask.values.table import Rows

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class Test:
    """What is run, on which engine, on which rows, and which of them are tested.

    The rows are those of the table, binned where the test asks for it. Tests with the same external sanitizer share its
    releases.
    """

    __test__ = False

    id: str
    config: TestConfig
    parameters: Mapping[str, Any]
    procedure: Procedure | NoisyCounts
    engine: str
    engine_reason: str
    rows: Rows
    audited: Ints
    estimated_influence: Floats | None = None  # of the records, where those with the largest go first

    @property
    def oracle(self) -> ExternalSanitizer | None:
        """The external sanitizer of this test, if it has one."""
        sanitizer = self.procedure.sanitizer if isinstance(self.procedure, Procedure) else None
        return sanitizer if isinstance(sanitizer, ExternalSanitizer) else None

    def asking(self, oracle: ExternalSanitizer) -> Test:
        """The same test with another state of its external sanitizer."""
        if not isinstance(self.procedure, Procedure):
            raise TypeError("noisy counts have no external sanitizer")
        return replace(self, procedure=replace(self.procedure, sanitizer=oracle))
