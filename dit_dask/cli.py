"""The `dit` command: parses, calls run, prints. Results go to stdout, everything else to stderr."""

import argparse
import json
import logging
import re
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from dit_dask.errors import DitError, InputError

if TYPE_CHECKING:
    from dit_dask.config import Config
    from dit_dask.gates import Verdict
    from dit_dask.store import Folder

OK, BREACHED, FAILED = 0, 1, 2


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where help is."""
        self.exit(FAILED, f"{self.prog}: {message} (see {self.prog} -h)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(format="dit: %(message)s", level=logging.INFO if options.debug else logging.WARNING)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        code: int = options.command(options)
    except DitError as error:
        return _failed(str(error), options.debug)
    except KeyboardInterrupt:
        return _failed("interrupted; the same command resumes where it stopped", debug=False)
    except BrokenPipeError:
        sys.stderr.close()
        return FAILED
    except Exception as error:  # a trace is for developers: users get one line
        text = (str(error).strip().splitlines() or [""])[0]
        return _failed(f"unexpected {type(error).__name__}: {text} (--debug shows where)", options.debug)
    return code


def _interrupt(_signal: int, _frame: Any) -> NoReturn:
    raise KeyboardInterrupt


def _failed(text: str, debug: bool) -> int:
    if debug:
        logging.getLogger("dit_dask").exception("failed")
    sys.stderr.write(f"dit: {text}\n")
    return FAILED


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def run(options: argparse.Namespace) -> int:
    """dit run."""
    from dit_dask import config

    return _audit(_where(config.read(options.config, _overrides(options)), options), options)


def demo(options: argparse.Namespace) -> int:
    """dit demo."""
    from importlib.resources import as_file, files

    from dit_dask import config

    with as_file(files("dit_dask") / "data" / "demo.yaml") as path:
        checked = config.read(str(path), _overrides(options))
    return _audit(_where(checked, options), options)


def _overrides(options: argparse.Namespace) -> list[str]:
    """--out stands for a config key and wins over --set."""
    return [*getattr(options, "set", []), *([] if options.out is None else [f"output={json.dumps(options.out)}"])]


def _where(checked: "Config", options: argparse.Namespace) -> "Config":
    """Let --cluster and --workers win over the config."""
    from dit_dask.store import is_local

    chosen = dict(checked.cluster)
    where = getattr(options, "cluster", None)
    if where is not None:
        known = where in ("local", "kubernetes")
        chosen |= {"kind": where, "address": None} if known else {"kind": "address", "address": where}
    if options.workers is not None:
        chosen["workers"] = options.workers
    if checked.output.url.startswith("memory:"):
        raise InputError("output: memory:// ends with the process that wrote it; use a path or a URL that outlives the run")
    if chosen["kind"] == "kubernetes" and is_local(checked.output.url):
        raise InputError(f"output: pods cannot write to this machine; use a URL such as s3://…; got {checked.output.url!r}")
    return replace(checked, cluster=chosen)


def _audit(checked: "Config", options: argparse.Namespace) -> int:
    from dit_dask import cluster, config, manifest, progress, report
    from dit_dask import run as runner

    variables = config.references(checked.output.storage_options)
    cluster.check(checked.cluster, variables)
    runner.probe(checked)
    prepared = runner.prepare(checked)
    watcher = progress.observer(quiet=options.quiet)
    caution = cluster.warning(checked.cluster)
    if caution is not None:
        watcher.note(caution)
    connect = partial(cluster.connect, checked.cluster, debug=options.debug, variables=variables)
    minutes = checked.cluster["stall_minutes"]
    stall_seconds = None if minutes is None else 60 * minutes
    crew = runner.Crew(connect, cluster.workers(checked.cluster), cluster.memory(checked.cluster), stall_seconds)
    finished = runner.run(prepared, crew, watcher, fresh=getattr(options, "fresh", False))
    if options.json:
        _print(manifest.dumps(finished.summary))
    else:
        tables = [report.text_table(finished.summary)] if finished.summary else []
        tables += [report.measures_text(finished.measures)] if finished.measures else []
        if tables:
            _print("\n\n".join(tables))
        _print_verdicts(finished.verdicts)
        _print(finished.folder.url)
    if finished.stopped:
        watcher.note("stopped early because a gate is lost; without stop_on_breach the same command goes on to the end")
    return OK if finished.passed else BREACHED


def _print_verdicts(verdicts: "Sequence[Verdict]") -> None:
    for verdict in verdicts:
        _print(f"{'held    ' if verdict.passed else 'BREACHED'}  {verdict.name}  {verdict.test}: {verdict.reason}")


def plan(options: argparse.Namespace) -> int:
    """dit plan."""
    from dit_dask import black_boxes, cluster, config, report
    from dit_dask import plan as planner
    from dit_dask import run as runner
    from dit_dask.store import UnsetVariableError

    checked = config.read(options.config, options.set)
    try:
        prepared = runner.prepare(checked)
    except UnsetVariableError as error:
        _print("\n".join(runner.names(checked)))
        _print(f"no estimate without the data: {error}")
        return OK
    workers = cluster.workers(checked.cluster)
    tests, limits = black_boxes.assumed(prepared.tests)
    plans = planner.make(tests, workers, limits)
    lines = [["test", "engine", "rows", "distinct", "tasks", "engine s"]]
    for test, one in zip(tests, plans, strict=True):
        counts = (len(test.audited), one.distinct, one.tasks)
        most = "at most " if test.oracle is not None else ""
        lines.append([test.id, test.engine, *(f"{count:,}" for count in counts), f"{most}{one.seconds:.1f}"])
    if plans:
        _print(report.columns(lines))
    if limits:
        _print("black boxes are not called by a plan: their time is that of calls that all take their whole time limit")
    for measurement in prepared.agenda.measurements if prepared.agenda else ():
        _print(f"measure  {measurement.id}")
    seconds, needed = sum(one.seconds for one in plans), planner.memory_needed(cluster.memory(checked.cluster))
    rows = prepared.rows
    _print(rows.described())
    _print(f"about {seconds / workers:.0f} s on {workers} workers, after start-up; about {needed / 1e6:,.0f} MB a worker")
    _print(f"would write {prepared.folder.url}")
    return OK


def leave_out(options: argparse.Namespace) -> int:
    """dit leave-out."""
    from dit_dask import config, progress
    from dit_dask import leave_out as leaving

    found = leaving.tables(config.read(options.config, options.set))
    watcher = progress.observer(quiet=options.quiet)
    folder = _folder(options.to)
    watcher.note(
        f"writing {len(found.records) + 1:,} tables of about {found.size(options.format) / 1e6:,.0f} MB in all, "
        f"with the values of {len(found.frame):,} people, to {folder.url}"
    )
    with progress.Counting(watcher, len(found.records) + 1, 0):
        for _ in found.write(folder, options.format):
            watcher.advance(1)
    _print(f"full: {folder.url}/full.{options.format}")
    _print(f"without: {folder.url}/{{record}}.{options.format}")
    _print(folder.url)
    return OK


def rank_columns(options: argparse.Namespace) -> int:
    """dit risk."""
    from dit_dask import config, manifest, risk
    from dit_dask.store import Folder

    checked = config.read(options.config, _overrides(options), needs_schema=False)
    scope = risk.Scope(options.target, tuple(options.without), options.size, options.top, options.missing)
    ranking = risk.assess(checked, scope)
    folder = Folder(checked.output).child(f"{checked.name}-risk")
    manifest.write_json(folder, "risk.json", ranking.document())
    folder.write("risk.svg", ranking.drawing().encode())
    if options.json:
        _print(manifest.dumps(ranking.document()))
    else:
        _print(ranking.text())
        _print(folder.url)
    return OK


def rewrite_report(options: argparse.Namespace) -> int:
    """dit report."""
    from dit_dask import gates, manifest, report

    folder = _folder(options.run)
    document, summary = manifest.complete(folder)
    parsed = [gates.parse(text, "gates") for text in document["config"]["gates"]]
    report.write(folder, document, summary, gates.judge(parsed, summary))
    _print(f"{folder.url}/report.html")
    return OK


def gate(options: argparse.Namespace) -> int:
    """dit gate."""
    from dit_dask import gates, manifest

    forbidden = [gates.parse(text, "--fail-on", forbidden=True) for text in options.fail_on]
    document, summary = manifest.complete(_folder(options.run))
    asked = forbidden or [gates.parse(text, "gates") for text in document["config"]["gates"]]
    if not asked:
        raise InputError("dit gate: the run's config has no gates; give --fail-on 'delta > 0.1'")
    if not summary:
        raise InputError("dit gate: the run has measures only; gates judge tests")
    verdicts = gates.judge(asked, summary)
    _print_verdicts(verdicts)
    return OK if all(verdict.passed for verdict in verdicts) else BREACHED


def compare(options: argparse.Namespace) -> int:
    """dit compare."""
    from dit_dask import comparison, manifest

    (_, before), (_, after) = (manifest.complete(_folder(one)) for one in (options.run, options.other))
    _print(comparison.text(before, after))
    return OK


def show_history(options: argparse.Namespace) -> int:
    """dit history."""
    from dit_dask import history, manifest

    runs = history.named(history.read(_folder(options.url)), options.name)
    _print(manifest.dumps(history.document(runs)) if options.json else history.text(runs))
    return BREACHED if options.fail_on_rise and history.rises(runs) else OK


def data(options: argparse.Namespace) -> int:
    """dit data."""
    from dit_dask import datasets

    _print(datasets.locate(options.name))
    return OK


def deploy(options: argparse.Namespace) -> int:
    """dit deploy."""
    from dit_dask import deploy as deployment

    wishes = deployment.Wishes(
        options.image, options.schedule, options.time_zone, options.namespace, options.name, options.secret, tuple(options.set)
    )
    sys.stdout.write(deployment.manifests(options.config, wishes))
    return OK


def certificates(options: argparse.Namespace) -> int:
    """dit certificates."""
    from dit_dask import certificates as making

    _print(making.write(options.to, options.days))
    return OK


def launch(options: argparse.Namespace) -> int:
    """dit launch."""
    from dit_dask import launcher

    return launcher.launch(launcher.read(options.job), options.owner)


def _folder(url: str) -> "Folder":
    from dit_dask.config import Location
    from dit_dask.store import Folder

    return Folder(Location(url.rstrip("/"), {}))


class Version(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Print and leave."""
        from importlib.metadata import version

        _print(f"dit {version('dit_dask')}")
        parser.exit(OK)


def _parser() -> Parser:
    parser = Parser(
        prog="dit",
        description="How much does any one person's record change what an adversary can infer about that person?",
        epilog="examples:\n  dit demo\n  dit run configs/adult-k.yaml --set data.limit=1000\n"
        "  dit gate runs/adult-k-0123456789ab --fail-on 'delta > 0.1'\n\n"
        "exit codes: 0 done and every gate passed, 1 a gate is breached, 2 bad input or a failed run",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=Version, nargs=0, help="print the version")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)

    one = _command(commands, "demo", demo, "audit embedded data, offline", "dit demo --out /tmp/audits")
    _running(one)
    one = _command(
        commands,
        "run",
        run,
        "run or resume the audit of a config",
        "dit run audit.yaml --workers 4 --set 'tests.0.sanitizer.k=[2,5]'",
    )
    one.add_argument("config", metavar="CONFIG", help="YAML file")
    one.add_argument("--cluster", type=_cluster, metavar="WHERE", help="local, kubernetes, tcp://HOST:PORT or tls://HOST:PORT")
    one.add_argument("--fresh", action="store_true", help="start over instead of resuming")
    _setting(one)
    _running(one)
    one = _command(
        commands, "plan", plan, "tests, records, tasks, estimated time and memory; runs nothing", "dit plan audit.yaml"
    )
    one.add_argument("config", metavar="CONFIG", help="YAML file")
    _setting(one)
    one = _command(
        commands,
        "risk",
        rank_columns,
        "which columns identify people: the discrimination rate of each and of the best combinations",
        "dit risk audit.yaml --size 3 --missing category",
    )
    one.add_argument("config", metavar="CONFIG", help="YAML file; it needs no schema and no tests yet")
    one.add_argument("--target", metavar="COLUMN", help="refine this column instead of the person, that is the row")
    one.add_argument(
        "--without", action="append", default=[], metavar="COLUMN", help="leave a column out, such as a row number"
    )
    one.add_argument("--size", type=_count, default=3, metavar="M", help="columns in a combination, at most (default 3)")
    one.add_argument("--top", type=_count, default=10, metavar="N", help="combinations shown of each size (default 10)")
    one.add_argument(
        "--missing", choices=("category", "drop"), help="missing cells are a value of their own, or drop their row"
    )
    one.add_argument("--out", metavar="URL", help="folder or fsspec URL under which risk.json and risk.svg go")
    one.add_argument("--json", action="store_true", help="print the ranking as JSON, and nothing else, to stdout")
    _setting(one)
    one = _command(
        commands, "report", rewrite_report, "(re)write report.html of a finished run", "dit report runs/adult-k-0123456789ab"
    )
    one.add_argument("run", metavar="RUN", help="run folder or URL")
    one = _command(
        commands,
        "gate",
        gate,
        "hold a finished run against conditions",
        "dit gate runs/adult-k-0123456789ab --fail-on 'share_over[0.01] > 0.05'",
    )
    one.add_argument("run", metavar="RUN", help="run folder or URL")
    one.add_argument(
        "--fail-on",
        action="append",
        default=[],
        metavar="CONDITION",
        help="breach if true for any test; without it the config's gates",
    )
    one = _command(
        commands,
        "leave-out",
        leave_out,
        "write the tables to sanitise where the sanitizer cannot be handed over",
        "dit leave-out audit.yaml --to s3://private/inputs",
    )
    one.add_argument("config", metavar="CONFIG", help="YAML file")
    one.add_argument("--to", required=True, metavar="URL", help="private folder or URL: the tables hold the data's own values")
    one.add_argument("--format", choices=("parquet", "csv"), default="parquet", help="of the tables (default parquet)")
    one.add_argument("--quiet", action="store_true", help="no progress on stderr")
    _setting(one)
    one = _command(
        commands, "compare", compare, "two audits side by side", "dit compare runs/before-0123456789ab runs/after-ba9876543210"
    )
    one.add_argument("run", metavar="RUN", help="run folder or URL")
    one.add_argument("other", metavar="RUN", help="the run to compare it with")
    one = _command(
        commands,
        "history",
        show_history,
        "the trend of all runs of an output",
        "dit history s3://audits/nightly --fail-on-rise",
    )
    one.add_argument("url", metavar="URL", help="the output folder or URL that the runs were written to")
    one.add_argument("--name", metavar="NAME", help="only runs of this name")
    one.add_argument("--json", action="store_true", help="print runs and rises as JSON")
    one.add_argument("--fail-on-rise", action="store_true", help="exit with 1 if any delta rose beyond the noise")
    one = _command(commands, "data", data, "where a known dataset is, fetching it if it can", "dit data adult")
    one.add_argument("name", metavar="NAME", help="adult or internet-usage")
    _deploying(commands)
    return parser


def _deploying(commands: Any) -> None:
    one = _command(
        commands,
        "deploy",
        deploy,
        "print Kubernetes manifests for a one-off or a scheduled audit",
        "dit deploy audit.yaml --schedule '0 3 * * *' --image registry.example.org/dit:0.1.0 | kubectl apply -f -",
    )
    one.add_argument("config", metavar="CONFIG", help="YAML file; its data and output must be URLs")
    one.add_argument("--image", help="image of all pods; the config's cluster.kubernetes.image by default")
    one.add_argument("--schedule", metavar="CRON", help="five fields such as '0 3 * * *'; without it the audit runs once")
    one.add_argument("--time-zone", metavar="ZONE", help="of the schedule, such as Europe/Paris; the cluster's by default")
    one.add_argument("--namespace", help="the config's cluster.kubernetes.namespace, or default")
    one.add_argument("--name", help="name of the Kubernetes objects; made of the config's name by default")
    one.add_argument("--secret", help="Secret whose keys are the ${NAME}s of storage_options")
    _setting(one)
    one = _command(
        commands,
        "certificates",
        certificates,
        "make certificates for trying out a cluster with mutual TLS",
        "dit certificates --to certificates",
    )
    one.add_argument("--to", required=True, metavar="FOLDER", help="a folder that does not exist yet")
    one.add_argument("--days", type=_count, default=30, metavar="N", help="how long they are valid; 30 by default")
    # not listed: what a deployed audit's own pod runs
    one = commands.add_parser("launch", description="Create the DaskJob of a deployed audit, follow it, and end as it ends.")
    one.add_argument("job", metavar="JOB", help="YAML file that `dit deploy` wrote")
    one.add_argument("--owner", metavar="NAME/UID", help="the Kubernetes Job that this is a pod of")
    one.set_defaults(command=launch, debug=False)


def _command(commands: Any, name: str, function: Any, about: str, example: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=about,
        description=about[0].upper() + about[1:] + ".",
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--debug", action="store_true", help="show Dask's logs, and a trace on failure")
    parser.set_defaults(command=function)
    return parser


def _running(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", metavar="URL", help="folder or fsspec URL under which the run folder is made")
    parser.add_argument("--workers", type=_count, metavar="N", help="workers; the machine's cores by default")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON, and nothing else, to stdout")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")


def _setting(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="override one config key, such as data.limit=1000"
    )


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be an integer >= 1; got {text!r}")
    return int(text)


def _cluster(text: str) -> str:
    if text not in ("local", "kubernetes") and not re.fullmatch(r"(tcp|tls)://[^/\s]+:[0-9]+", text):
        raise argparse.ArgumentTypeError(f"must be local, kubernetes, tcp://HOST:PORT or tls://HOST:PORT; got {text!r}")
    return text
