"""The sections of a report in their order. A new one: its function in a file of this folder, and its row here."""

from __future__ import annotations

from dit_dask.reporting.blocks import MakeSection, ReportedRun, ReportSection
from dit_dask.reporting.sections.adversaries import adversaries, figures
from dit_dask.reporting.sections.criteria import criteria
from dit_dask.reporting.sections.doubts import doubts
from dit_dask.reporting.sections.estimates import external, repeated, sampled, simulated
from dit_dask.reporting.sections.measured import measured
from dit_dask.reporting.sections.method import method
from dit_dask.reporting.sections.parameter import parameter
from dit_dask.reporting.sections.scale import scale
from dit_dask.reporting.sections.subject import subject
from dit_dask.reporting.sections.tail import tail
from dit_dask.reporting.sections.tuned import tuned
from dit_dask.reporting.sections.verdict import verdict
from dit_dask.reporting.sections.worst import worst

SECTIONS: tuple[MakeSection, ...] = (
    verdict,
    subject,
    scale,
    tail,
    parameter,
    tuned,
    doubts,
    adversaries,
    worst,
    simulated,
    repeated,
    sampled,
    external,
    measured,
    criteria,
    figures,
    method,
)


def make_sections(run: ReportedRun) -> list[ReportSection]:
    """All sections that this run has something for."""
    return [section for make in SECTIONS if (section := make(run)) is not None]
