"""dit run and dit demo: what their options change in a config, and what they print of the run."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from posixpath import splitext
from typing import TYPE_CHECKING

from dit_dask.cli import interrupts, printing
from dit_dask.cli.parser import GATE_FAILED, OK
from dit_dask.cli.terminal import write_line, write_lines
from dit_dask.config.cluster import KINDS
from dit_dask.errors import InputError

if TYPE_CHECKING:
    from dit_dask.config.document import Config
    from dit_dask.execution.progress import Progress
    from dit_dask.execution.workers import Workers


def run(options: argparse.Namespace) -> int:
    """dit run."""
    return _audit(read_configured(options), options)


def read_configured(options: argparse.Namespace) -> Config:
    """The config that the options name, with what they change in it."""
    from dit_dask.audit.grammar import read_config

    checked = _keep_private(read_config(options.config, overrides(options)), options.config, options)
    return _apply_options(checked, options)


def demo(options: argparse.Namespace) -> int:
    """dit demo."""
    from importlib.resources import as_file, files

    from dit_dask.audit.grammar import read_config

    with as_file(files("dit_dask") / "data" / "demo.yaml") as path:
        checked = read_config(str(path), overrides(options))
    return _audit(_apply_options(checked, options), options)


def overrides(options: argparse.Namespace) -> list[str]:
    """--out stands for a config key and wins over --set."""
    return [*getattr(options, "set", []), *([] if options.out is None else [f"output={json.dumps(options.out)}"])]


def _keep_private(checked: Config, path: str, options: argparse.Namespace) -> Config:
    """Take `private` from the config where --out replaces its output: personal data must not follow into a shared place."""
    from dit_dask.audit.grammar import read_config

    if options.out is None:
        return checked
    configured = read_config(path, getattr(options, "set", [])).output
    return replace(checked, output=replace(checked.output, private=configured.private))


def _apply_options(checked: Config, options: argparse.Namespace) -> Config:
    """Let --cluster and --workers win over the config."""
    from dit_dask.storage.filesystem import is_local

    chosen = checked.cluster
    where = getattr(options, "cluster", None)
    if where is not None:
        known = where in KINDS
        chosen = replace(chosen, kind=where if known else "address", address=None if known else where)
    if options.workers is not None:
        chosen = replace(chosen, workers=options.workers)
    private = checked.output.private
    for where, url in (("output", checked.output.url), *([] if private is None else [("output.private", private.url)])):
        if url.startswith("memory:"):
            raise InputError(
                f"{where}: memory:// ends with the process that wrote it; use a path or a URL that outlives the run"
            )
        if chosen.kind == "kubernetes" and is_local(url):
            raise InputError(f"{where}: pods cannot write to this machine; use a URL such as s3://…; got {url!r}")
    return replace(checked, cluster=chosen)


def prepare_workers(checked: Config, progress: Progress, *, debug: bool) -> Workers:
    """Check the cluster, the input and the output of a config; nothing is started yet."""
    from dit_dask import cluster
    from dit_dask import run as runner
    from dit_dask.execution.workers import Workers

    variables = checked.worker_variables
    cluster.check(checked.cluster, variables)
    runner.probe(checked)
    caution = cluster.warning(checked.cluster)
    if caution is not None:
        progress.note(caution)
    chosen = checked.cluster
    connect = partial(cluster.connect, chosen, debug=debug, variables=variables)
    memory = partial(cluster.memory, chosen)
    return Workers(connect, cluster.workers(chosen), memory, chosen.stall_seconds, chosen.only_if_long)


def _audit(checked: Config, options: argparse.Namespace) -> int:
    from dit_dask import run as runner
    from dit_dask.audit.manifest import read as read_manifest
    from dit_dask.execution.progress import choose_progress
    from dit_dask.execution.reading import Gatherer
    from dit_dask.execution.workers import connect_early
    from dit_dask.reporting.documents import run_document
    from dit_dask.reporting.text import next_command
    from dit_dask.storage.documents import dump_json

    interrupts.raise_on_interrupt()
    progress = choose_progress(quiet=options.quiet)
    workers = prepare_workers(checked, progress, debug=options.debug)
    with connect_early(workers, checked) as connected:
        prepared = runner.prepare(checked, gather=Gatherer(connected.client, progress))
        finished = runner.run(prepared, connected, progress, fresh=getattr(options, "fresh", False))
    loud = progress if options.json else choose_progress(quiet=False)  # --quiet hides no warning, unless the document has it
    for warning in finished.verdict.warnings:
        loud.note(f"warning: {warning}")
    manifest = read_manifest(finished.folder)
    printing.write_metrics(options.metrics, manifest, finished.summaries, finished.measures, finished.verdict)
    if options.json:
        write_lines(dump_json(run_document(finished.folder.url, finished.summaries, finished.measures, finished.verdict)))
    else:
        found = finished.summaries, finished.measures, finished.verdict
        printing.print_run(*found, finished.folder.url, width=printing.terminal_width())
        write_line(finished.folder.url)
    if finished.stopped:
        loud.note("stopped early: a gate has already failed; without stop_on_breach the same command goes on to the end")
    if not finished.stopped:
        progress.note(f"next: {next_command(finished.verdict.status, finished.folder.url, finished.summaries)}")
    if finished.personal_data:
        progress.note(
            f"personal data, not to be shared: {', '.join(_shorten(finished.personal_data))} in {finished.folder.url}; "
            "output.private puts records elsewhere"
        )
    if finished.withheld:
        progress.note(
            f"withheld from {finished.folder.url}, because they tell about fewer than 10 rows: figures of "
            f"{', '.join(finished.withheld)}; they are above and in {finished.folder.for_personal_data().url}"
        )
    return OK if finished.verdict.is_allowed else GATE_FAILED


def _shorten(paths: Sequence[str]) -> list[str]:
    """Name the folders of many files; the manifest lists each."""
    folders = {".parquet": "measures/*.parquet", ".json": "measures/*.json", "": "records/"}
    inside = ("records/", "measures/")
    return list(dict.fromkeys(folders[splitext(path)[1]] if path.startswith(inside) else path for path in paths))
