"""The procedure of every sanitizer that publishes a table: sanitise, encode, learn, compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np

from dit_dask import seeds
from dit_dask.adversaries import Adversary, redraw
from dit_dask.adversaries.prior import Prior
from dit_dask.distances import Distance
from dit_dask.encoders import Encoder
from dit_dask.engines.exceedance import exceedance, row_bounds
from dit_dask.engines.influence import Estimates, EstimateSummary
from dit_dask.measures.utility.figures import NO_UTILITY, Utility, measure_utility, raw_utility
from dit_dask.sanitizers import Sanitizer
from dit_dask.sanitizers.claims import Recheck, claimed_k, recheck
from dit_dask.sanitizers.raw import Raw
from dit_dask.sanitizers.sum_tables import SumTables
from dit_dask.sanitizers.tables import Tables
from dit_dask.values.release import Release
from dit_dask.values.table import Table

if TYPE_CHECKING:
    from dit_dask.engines.noisy_counts.effective_epsilon import PrivacyLoss
    from dit_dask.sanitizers.external import ExternalSanitizer
    from dit_dask.values.arrays import Codes, Floats


@dataclass(frozen=True, eq=False)
class ReleaseProcedure:
    """The parts of a differential inference test, the stream of its randomness, and how often it is repeated.

    Adversaries have names; all of them learn from the same releases, and the largest distance counts. The stream is named
    after the sanitizer, so that several tests see the same releases, too. `by_person`: some persons have several rows, which
    leave the table together. `prior`: what all adversaries know before, with and without the record.
    """

    sanitizer: Sanitizer
    encoder: Encoder
    adversaries: Mapping[str, Adversary]
    distance: Distance
    seed: int
    stream: str
    repeats: int = 1
    by_person: bool = False
    prior: Prior | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the adversaries."""
        return tuple(self.adversaries)

    @property
    def external(self) -> ExternalSanitizer | None:
        """The sanitizer, where it is external."""
        return cast("ExternalSanitizer", self.sanitizer) if getattr(self.sanitizer, "is_external", False) else None

    def with_external(self, sanitizer: ExternalSanitizer) -> ReleaseProcedure:
        """The same procedure with another state of its external sanitizer."""
        return replace(self, sanitizer=sanitizer)

    def rng(self, *purpose: object) -> np.random.Generator:
        """The randomness of one release."""
        return seeds.stream(self.seed, self.stream, *purpose)

    def redraw(self, *purpose: object) -> ReleaseProcedure:
        """The same procedure with adversaries that train independently for this purpose, where tests are repeated.

        Without repeats both sides train with the same random_state, so that d is not the difference of two of these.
        """
        if self.repeats == 1:
            return self
        return replace(self, adversaries={name: redraw(one, *purpose) for name, one in self.adversaries.items()})

    def weigh(self, beliefs: Floats, codes: Codes) -> Floats:
        """Add what is known before to beliefs[m, …, n] about targets with codes[m, d]."""
        return beliefs if self.prior is None else self.prior.weigh(beliefs, codes)

    def publish(self, table: Table) -> Release:
        """Sanitise the whole table."""
        return self.sanitizer.release(table, self.rng("full"))

    @property
    def publishes_release(self) -> bool:
        """Every sanitizer but the one that does nothing, and those that publish no records."""
        return not isinstance(self.sanitizer, Raw | Tables | SumTables)

    def recheck(self, table: Table) -> tuple[Recheck, None, Utility]:
        """Count the classes of the release anew, test the claim on each, and measure what is left of the table."""
        release, claim = self.publish(table), self.sanitizer.claim
        if isinstance(self.sanitizer, Tables | SumTables):  # cells hold no records
            return self.sanitizer.recheck(release), None, NO_UTILITY
        is_raw = not self.publishes_release
        utility = raw_utility(release) if is_raw else measure_utility(table, release, claimed_k(claim), self.seed)
        return recheck(release, claim, table), None, utility

    def summarise_estimates(self, _table: Table, estimates: Estimates, _loss: PrivacyLoss | None) -> EstimateSummary:
        """How often repeats exceed a limit, and what is above the noise."""
        if not estimates.by_row:
            return EstimateSummary()
        largest = float(self.distance(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]))[0])
        bounds = row_bounds(estimates, self.repeats, largest)
        return EstimateSummary(repeats=exceedance(estimates, self.repeats, largest), bounds=bounds)
