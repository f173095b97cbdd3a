"""report.html: one file that a data protection officer can read, with no network and no record's values."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from dit_dask.audit.disclosure import Results
from dit_dask.audit.manifest import Manifest
from dit_dask.audit.summary import read_complete, read_curves, read_measures
from dit_dask.audit.verdict import read_verdict
from dit_dask.errors import escape_text
from dit_dask.reporting.blocks import ReportedRun, ReportSection
from dit_dask.reporting.charts import canvas
from dit_dask.reporting.sections import make_sections
from dit_dask.storage.documents import parse_mapping
from dit_dask.storage.folder import Folder

NAME = "report.html"
DOCUMENTS = ("tune.json",)  # what other commands write into a run folder, if they did


def write(folder: Folder, manifest: Manifest, results: Results) -> None:
    """(Re)write the report of a run from its figures."""
    folder.write(NAME, render(reported_run(folder, manifest, results)).encode())


def reported_run(folder: Folder, manifest: Manifest, results: Results) -> ReportedRun:
    """What the report of a run is made from."""
    curves = {test: (curve["distance"], curve["cumulative"]) for test, curve in results.curves.items()}
    return ReportedRun(
        folder.url.rstrip("/").rsplit("/", 1)[-1],
        manifest,
        results.summaries,
        results.entries,
        results.verdict,
        curves,
        _documents(folder),
    )


def read_reported_run(folder: Folder) -> ReportedRun:
    """Read a finished run as its report shows it: what the folder has, and nothing from its private place."""
    manifest, summaries = read_complete(folder)
    name = folder.url.rstrip("/").rsplit("/", 1)[-1]
    measures, verdict = read_measures(folder), read_verdict(folder)
    return ReportedRun(name, manifest, summaries, measures, verdict, read_curves(folder), _documents(folder))


def _documents(folder: Folder) -> dict[str, Any]:
    found = {name: parse_mapping(folder.read(name)) for name in DOCUMENTS}
    return {name: document for name, document in found.items() if document}


def render(run: ReportedRun) -> str:
    """Render the report of a run."""
    return render_sections(f"Audit {run.manifest.config['name']}", make_sections(run))


def render_sections(title: str, sections: Sequence[ReportSection]) -> str:
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
    style, script = style_sheet(), _template("report.js")
    policy = content_policy(style, script)
    page = environment.get_template("report.html.j2")
    return page.render(title=title, sections=sections, style=style, script=script, policy=policy)


def content_policy(style: str, script: str) -> str:
    """Nothing is loaded, and only this very style sheet and this very script are used: no value can add one."""
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def style_sheet() -> str:
    """The style sheet with the colours of series, for light and dark pages."""
    return (
        _template("report.css")
        + _series_style(canvas.COLOURS)
        + f"@media screen and (prefers-color-scheme: dark) {{\n{_series_style(canvas.DARK_COLOURS)}}}\n"
    )


def _series_style(colours: tuple[str, ...]) -> str:
    return "".join(f".l{place} {{ stroke: {one}; }} .m{place} {{ fill: {one}; }}\n" for place, one in enumerate(colours))


def _template(name: str) -> str:
    return (files("dit_dask.reporting") / "templates" / name).read_text("utf-8")


def _escape_value(value: Any) -> Any:
    return escape_text(value) if type(value) is str else value  # drawings are Markup, and have escaped their texts
