"""Publishing: the verdict, the report, the manifest and the index of a finished run, each place with what belongs there."""

from __future__ import annotations

from dataclasses import replace

from dit_dask.audit import index, manifest
from dit_dask.audit.disclosure import FIGURES_OF_TESTS, Results, is_of_few
from dit_dask.audit.manifest import Manifest
from dit_dask.audit.verdict import write_verdict
from dit_dask.reporting import html
from dit_dask.storage.folder import Folder


def publish(folder: Folder, output: Folder, completed: Manifest, results: Results) -> Manifest:
    """Write the verdict and the report, and only then call the run complete; return the manifest as it was written."""
    if folder.private is None and any(map(is_of_few, results.summaries)):  # some rows may have been skipped
        personal = dict.fromkeys([*completed.personal_data, *FIGURES_OF_TESTS, "report.html"])
        completed = replace(completed, personal_data=list(personal))
    for place, figures in results.tiers(folder):
        write_verdict(place, figures.verdict)
        html.write(place, completed, figures)
        manifest.write(place, completed)
        beside = output.for_personal_data() if place.personal else output
        index.append(beside, index.describe_run(place, completed, figures.summaries))
    return completed
