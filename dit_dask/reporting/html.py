"""report.html: one file that a data protection officer can read, with no network and no record's values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dit_dask.audit.manifest import Manifest
from dit_dask.audit.summary import Curve, TestSummary, read_curves
from dit_dask.audit.verdict import RunVerdict
from dit_dask.errors import escape_text
from dit_dask.measures.base import Entries
from dit_dask.reporting import charts
from dit_dask.reporting.text import WORDS, claim, columns_in, control_names, measure_sections, number, share
from dit_dask.storage.folder import Folder

MOST_CURVES = 16


def write(
    folder: Folder,
    manifest: Manifest,
    summaries: Sequence[TestSummary],
    measures: Entries,
    verdict: RunVerdict,
) -> None:
    """(Re)write the report of a run whose distributions are there."""
    folder.write("report.html", render(manifest, summaries, measures, verdict, read_curves(folder)).encode())


def render(
    manifest: Manifest,
    summaries: Sequence[TestSummary],
    measures: Entries,
    verdict: RunVerdict,
    curves: Mapping[str, Curve],
) -> str:
    """Fill the template; every value is escaped, for HTML by the template and for readers by `_escape_value`."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("dit_dask.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_escape_value,
    )
    environment.filters |= {"figure": number, "share": share, "claim": claim, "draw": charts.draw}
    shown = dict(list(curves.items())[:MOST_CURVES])
    return environment.get_template("report.html.j2").render(
        manifest=manifest,
        summaries=summaries,
        columns=columns_in("report"),
        verdict=verdict,
        words=WORDS,
        controls=list(zip(control_names(verdict.controls), verdict.controls, strict=True)),
        worst=max(summaries, key=lambda one: -1.0 if one.delta is None else one.delta, default=None),
        sections=measure_sections(measures),
        drawing=charts.cumulative(shown).svg if shown else "",
        hidden=len(curves) - len(shown),
        falling={one.test: charts.epsilon_delta(one.repeats.curve).svg for one in summaries if one.repeats},
    )


def _escape_value(value: Any) -> Any:
    return escape_text(value) if type(value) is str else value  # drawings are Markup, and have escaped their texts
