"""What each subcommand does and prints. Results go to stdout, everything else to stderr."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from dit_dask.cli import completion, explain, harden, interrupts, printing, questions, report, reproduce, sanitize, show, tune
from dit_dask.cli import parser as arguments
from dit_dask.cli.parser import GATE_FAILED, OK, Subcommand
from dit_dask.cli.run import demo, overrides, run
from dit_dask.cli.terminal import write_line, write_lines
from dit_dask.errors import InputError

if TYPE_CHECKING:
    from dit_dask.config.document import Config
    from dit_dask.reporting.planned import PlannedRun
    from dit_dask.storage.folder import Folder


def init(options: argparse.Namespace) -> int:
    """dit init."""
    from pathlib import Path

    from dit_dask.config.document import default_name
    from dit_dask.drafting.proposal import draft_table
    from dit_dask.drafting.write import write_draft

    target = options.to or f"{default_name(options.table.removesuffix('.gz').removesuffix('.zst'))}.yaml"
    if Path(target).exists():
        raise InputError(f"dit init: {target} exists and is not overwritten; choose another place with --to FILE")
    draft = draft_table(options.table, str(Path.cwd()), options.sensitive, options.subject, options.set)
    if not options.yes and questions.is_interactive():
        draft = questions.ask_about(draft)
    for path in write_draft(draft, target):
        write_line(path)
    return OK


def plan(options: argparse.Namespace) -> int:
    """dit plan."""
    from dit_dask import run as runner
    from dit_dask.audit.grammar import read_config
    from dit_dask.reporting.planned import PlannedRun, PlannedTest
    from dit_dask.storage.documents import dump_json
    from dit_dask.storage.filesystem import UnsetVariableError

    checked = read_config(options.config, options.set)
    try:
        planned = _planned(checked)
    except UnsetVariableError as error:
        reason = f"no estimate without the data: {error}"
        planned = PlannedRun([PlannedTest(name) for name in runner.test_names(checked)], reason=reason)
    write_lines(dump_json(planned.document()) if options.json else planned.text())
    return OK


def _planned(checked: Config) -> PlannedRun:
    from dit_dask import cluster
    from dit_dask import run as runner
    from dit_dask.audit import plan as planner
    from dit_dask.audit.warnings import data_warnings
    from dit_dask.execution.external import assume_probe_results
    from dit_dask.execution.workers import workers_read
    from dit_dask.inputs.partitions import source_bytes
    from dit_dask.reporting.planned import PlannedRun, PlannedTest
    from dit_dask.storage import scratch

    prepared = runner.prepare(checked)
    workers = cluster.workers(checked.cluster)
    tests, limits = assume_probe_results(prepared.tests)
    plans = planner.make(tests, workers, limits)
    planned = []
    for test in tests:
        made = plans[test.id]
        sizes = (len(test.audited), made.distinct, made.tasks, made.seconds)
        planned.append(PlannedTest(test.id, test.engine, *sizes, test.policy.planned_by_calls))
    return PlannedRun(
        planned,
        prepared.folder.url,
        [one.id for one in prepared.measure_plan.measurements] if prepared.measure_plan else [],
        prepared.rows.described(),
        workers,
        planner.memory_needed(cluster.memory(checked.cluster)),
        data_warnings(prepared.rows, prepared.person_ids),
        source_bytes=source_bytes(checked),
        scratch="the workers' folders for temporary files" if workers_read(checked) else scratch.folder(),
        scratch_bytes=scratch.mapped_bytes(),
    )


def leave_out(options: argparse.Namespace) -> int:
    """dit leave-out."""
    from dit_dask import leave_out as leaving
    from dit_dask.audit.grammar import read_config
    from dit_dask.execution.progress import Counting, choose_progress

    interrupts.raise_on_interrupt()
    found = leaving.tables(read_config(options.config, options.set))
    progress = choose_progress(quiet=options.quiet)
    folder = replace(_folder(options.to), personal=True)
    progress.note(
        f"writing {len(found.records) + 1:,} tables of about {found.size(options.format) / 1e6:,.0f} MB in all, "
        f"with the values of {len(found.frame):,} people, to {folder.url}"
    )
    with Counting(progress, len(found.records) + 1, 0):
        for _ in found.write(folder, options.format):
            progress.advance(1)
    write_line(f"full: {folder.url}/full.{options.format}")
    write_line(f"without: {folder.url}/{{record}}.{options.format}")
    write_line(folder.url)
    return OK


def rank_columns(options: argparse.Namespace) -> int:
    """dit risk."""
    from dit_dask import risk
    from dit_dask.config.document import read_data_config
    from dit_dask.storage.documents import dump_json, write_json
    from dit_dask.storage.folder import Folder

    interrupts.raise_on_interrupt()
    checked = read_data_config(options.config, overrides(options))
    scope = risk.Scope(options.target, tuple(options.without), options.size, options.top, options.missing)
    ranking = risk.assess(checked, scope)
    folder = Folder(checked.output).child(f"{checked.name}-risk")
    write_json(folder, "risk.json", ranking.document())
    folder.write("risk.svg", ranking.drawing().encode())
    if options.json:
        head = {"run": folder.url, "status": "none", "tests": [], "measures": [], "verdicts": [], "warnings": []}
        write_lines(dump_json(head | ranking.document()))
    else:
        write_lines(ranking.text())
        write_line(folder.url)
    return OK


def gate(options: argparse.Namespace) -> int:
    """dit gate."""
    from dit_dask.audit.disclosure import read_results
    from dit_dask.audit.judging import judge_again
    from dit_dask.audit.summary import read_complete
    from dit_dask.reporting.documents import run_document
    from dit_dask.storage.documents import dump_json

    folder = _folder(options.run)
    manifest, _ = read_complete(folder)
    results = read_results(folder)
    verdict = judge_again(results, options.fail_on)
    if not verdict.verdicts:
        raise InputError("dit gate: the run's config has no gates; give --fail-on 'delta > 0.1'")
    printing.write_metrics(options.metrics, manifest, results.summaries, results.entries, verdict)
    if options.json:
        write_lines(dump_json(run_document(folder.url, results.summaries, results.entries, verdict)))
    else:
        printing.print_verdicts(verdict)
    return OK if verdict.is_allowed else GATE_FAILED


def compare(options: argparse.Namespace) -> int:
    """dit compare."""
    from dit_dask.audit.summary import read_complete
    from dit_dask.reporting import compare as comparison
    from dit_dask.storage.documents import dump_json

    folders = [_folder(url) for url in (options.run, options.other)]
    before, after = (comparison.ComparedRun(folder.url, *read_complete(folder)) for folder in folders)
    if options.json:
        write_lines(dump_json(comparison.document(before, after)))
        return OK
    write_lines(comparison.text(before, after))
    for difference in comparison.differences(before, after):
        write_line(difference)
    return OK


def show_history(options: argparse.Namespace) -> int:
    """dit history."""
    from dit_dask.audit import index
    from dit_dask.execution.progress import choose_progress
    from dit_dask.reporting import history
    from dit_dask.storage.documents import dump_json

    output = _folder(options.url)
    runs = history.named(index.read(output), options.name)
    is_judged = options.fail_on_rise
    write_lines(dump_json(history.document(output.url, runs, is_judged=is_judged)) if options.json else history.text(runs))
    for warning in [] if options.json else history.compositions(output.url, runs):
        choose_progress(quiet=False).note(f"warning: {warning}")
    return GATE_FAILED if options.fail_on_rise and history.rises(runs) else OK


def data(options: argparse.Namespace) -> int:
    """dit data."""
    from dit_dask.inputs import datasets

    write_line(datasets.locate(options.name))
    return OK


def deploy(options: argparse.Namespace) -> int:
    """dit deploy."""
    from dit_dask.deployment import manifests as deployment

    chosen = deployment.DeployOptions(
        options.image,
        options.schedule,
        options.time_zone,
        options.namespace,
        options.name,
        options.secret,
        tuple(options.set),
        tuple(options.allow_literal),
    )
    write_lines(deployment.manifests(options.config, chosen).removesuffix("\n"))
    return OK


def certificates(options: argparse.Namespace) -> int:
    """dit certificates."""
    from dit_dask.deployment import certificates as making

    write_line(making.write(options.to, options.days))
    return OK


def launch(options: argparse.Namespace) -> int:
    """dit launch."""
    from dit_dask.deployment import launcher

    interrupts.raise_on_interrupt()
    return launcher.launch(launcher.read(options.job), options.owner)


def _folder(url: str) -> Folder:
    from dit_dask.storage.folder import Folder
    from dit_dask.storage.location import Location

    return Folder(Location(url.rstrip("/"), {}))


SUBCOMMANDS = (
    Subcommand("demo", "audit embedded data, offline", "dit demo --out /tmp/audits", arguments.metered_demo_arguments, demo),
    Subcommand(
        "run",
        "run or resume the audit of a config",
        "dit run audit.yaml --workers 4 --set 'tests.0.sanitizer.k=[2,5]'",
        arguments.metered_run_arguments,
        run,
    ),
    Subcommand(
        "init",
        "draft a config, and hierarchies, for a table that nobody has described yet",
        "dit init people.csv --sensitive illness",
        arguments.init_arguments,
        init,
    ),
    Subcommand(
        "plan",
        "tests, records, tasks, estimated time and memory; runs nothing",
        "dit plan audit.yaml",
        arguments.plan_arguments,
        plan,
    ),
    Subcommand(
        "risk",
        "which columns identify people: the discrimination rate of each and of the best combinations",
        "dit risk audit.yaml --size 3 --missing category",
        arguments.risk_arguments,
        rank_columns,
    ),
    show.SUBCOMMAND,
    report.REPORT,
    report.VERIFY,
    explain.SUBCOMMAND,
    harden.SUBCOMMAND,
    tune.SUBCOMMAND,
    sanitize.SUBCOMMAND,
    reproduce.SUBCOMMAND,
    Subcommand(
        "gate",
        "check a finished run against conditions",
        "dit gate runs/adult-k-0123456789ab --fail-on 'share_over[0.01] > 0.05'",
        arguments.gate_arguments,
        gate,
    ),
    Subcommand(
        "leave-out",
        "write the tables to sanitise for a sanitizer that is not available here",
        "dit leave-out audit.yaml --to s3://private/inputs",
        arguments.leave_out_arguments,
        leave_out,
    ),
    Subcommand(
        "compare",
        "two audits side by side",
        "dit compare runs/before-0123456789ab runs/after-ba9876543210",
        arguments.compare_arguments,
        compare,
    ),
    Subcommand(
        "history",
        "the trend of all runs of an output",
        "dit history s3://audits/nightly --fail-on-rise",
        arguments.history_arguments,
        show_history,
    ),
    Subcommand("data", "where a known dataset is, fetching it if it can", "dit data adult", arguments.data_arguments, data),
    completion.SUBCOMMAND,
    Subcommand(
        "deploy",
        "print Kubernetes manifests for a one-off or a scheduled audit",
        "dit deploy audit.yaml --schedule '0 3 * * *' --image registry.example.org/dit:0.1.0 | kubectl apply -f -",
        arguments.deploy_arguments,
        deploy,
    ),
    Subcommand(
        "certificates",
        "make certificates for trying out a cluster with mutual TLS",
        "dit certificates --to certificates",
        arguments.certificates_arguments,
        certificates,
    ),
    Subcommand(
        "launch",
        "create the DaskJob of a deployed audit, follow it, and end as it ends",
        "dit launch /etc/dit/launch/launch.yaml --owner NAME/UID",
        arguments.launch_arguments,
        launch,
        is_listed=False,  # what a deployed audit's own pod runs
    ),
)
