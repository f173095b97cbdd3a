"""Controls: what every test is shown beside, the table published raw and with everything suppressed."""

from __future__ import annotations

import math
from dataclasses import replace

from dit_dask.engines.influence import Procedure
from dit_dask.engines.noisy_counts.procedure import NoisyCounts
from dit_dask.engines.power import Attainable, attainable, attainable_counts
from dit_dask.engines.release_procedure import ReleaseProcedure
from dit_dask.kernels.mechanisms import Laplace
from dit_dask.sanitizers.noise import Protection
from dit_dask.sanitizers.raw import Raw
from dit_dask.sanitizers.suppressed import Suppressed
from dit_dask.values.table import Table

RAW, SUPPRESSED = "raw", "suppressed"
EXACT_COUNTS = Protection(Laplace(math.inf), math.inf)


def control_procedures(procedure: Procedure) -> dict[str, Procedure]:
    """The same adversaries and distance on other releases; noisy counts have only those without noise."""
    if isinstance(procedure, NoisyCounts):
        return {RAW: replace(procedure, protection=EXACT_COUNTS, method="exact")}
    if not isinstance(procedure, ReleaseProcedure):
        return {}
    return {
        RAW: replace(procedure, sanitizer=Raw(), repeats=1),
        SUPPRESSED: replace(procedure, sanitizer=Suppressed(), repeats=1),
    }


def attainable_by(procedure: Procedure, table: Table) -> Attainable | None:
    """What the planted person reaches with a procedure's adversaries and distance; None where nobody knows."""
    if isinstance(procedure, NoisyCounts):
        return attainable_counts(table, procedure.scale, procedure.names[0])
    if isinstance(procedure, ReleaseProcedure):
        return attainable(table, procedure.adversaries, procedure.encoder, procedure.distance, procedure.seed, procedure.prior)
    return None
