"""Arguments of the `dit` command: the parser, and the arguments of each subcommand."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from dit_dask.cli.terminal import write_line
from dit_dask.config.cluster import ADDRESS, KINDS, MOST_WORKERS
from dit_dask.errors import escape_text, quote

OK, GATE_FAILED, WRONG_USAGE = 0, 1, 2  # exit codes
MOST_DIGITS = 18


@dataclass(frozen=True)
class Subcommand:
    """One subcommand: its name, what help says, the arguments it takes, and the function that runs it."""

    name: str
    description: str
    example: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    is_listed: bool = True


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where help is."""
        self.exit(WRONG_USAGE, f"{self.prog}: {escape_text(message)} (see {self.prog} -h)\n")


class Choices(dict[str, Any]):
    """Subcommands by name, of which errors list only those that users type."""

    def __init__(self, parsers: Mapping[str, Any], listed: Sequence[str]) -> None:
        super().__init__(parsers)
        self._listed = tuple(listed)

    def __iter__(self) -> Iterator[str]:
        return iter(self._listed)


class Version(argparse.Action):
    """Looks the version up only when it is needed."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Print and leave."""
        from importlib.metadata import version

        write_line(f"dit {version('dit_dask')}")
        parser.exit()


def build_parser(subcommands: Sequence[Subcommand]) -> Parser:
    """Build the parser; the chosen subcommand is its `subcommand`."""
    parser = Parser(
        prog="dit",
        description="How much does any one person's record change what an adversary can infer about that person?",
        epilog="examples:\n  dit demo\n  dit run configs/adult-k.yaml --set data.limit=1000\n"
        "  dit gate runs/adult-k-0123456789ab --fail-on 'delta > 0.1'\n\n"
        "exit codes: 0 done and every gate passed; 1 a gate failed or cannot be judged, or a claim is broken; "
        "2 bad input or a failed run",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=Version, nargs=0, help="print the version")
    listed = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    for subcommand in subcommands:
        shown: dict[str, Any] = {"help": subcommand.description} if subcommand.is_listed else {}
        chosen = listed.add_parser(
            subcommand.name,
            description=subcommand.description[0].upper() + subcommand.description[1:] + ".",
            epilog=f"example:\n  {subcommand.example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            **shown,
        )
        chosen.add_argument("--debug", action="store_true", help="show Dask's logs, and a trace on failure")
        chosen.set_defaults(subcommand=subcommand)
        subcommand.add_arguments(chosen)
    listed.choices = Choices(listed.choices, [subcommand.name for subcommand in subcommands if subcommand.is_listed])
    return parser


def demo_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of a run of the embedded config."""
    add_output(parser, "folder or fsspec URL under which the run folder is made")
    parser.add_argument("--workers", type=_workers, metavar="N", help="workers; the machine's cores by default")
    add_json(parser, "tests, measures and verdicts")
    add_quiet(parser)


def metered_demo_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of dit demo."""
    demo_arguments(parser)
    add_metrics(parser)


def metered_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of dit run."""
    run_arguments(parser)
    add_metrics(parser)


def run_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of a run."""
    add_config(parser)
    add_show_values(parser)
    parser.add_argument(
        "--cluster", type=_cluster, metavar="WHERE", help="local, kubernetes, tcp://HOST:PORT or tls://HOST:PORT"
    )
    parser.add_argument("--fresh", action="store_true", help="start over instead of resuming")
    add_set(parser)
    demo_arguments(parser)


def init_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of a drafted config."""
    parser.add_argument("table", metavar="TABLE", help="a .csv, .tsv, .parquet or .xlsx file, or its URL")
    parser.add_argument(
        "--sensitive",
        action="append",
        default=[],
        metavar="COLUMN",
        help="what nobody should infer; proposed by default; may be given again: a test for each",
    )
    parser.add_argument("--subject", metavar="COLUMN", help="whose rows belong together; proposed by default")
    parser.add_argument("--to", metavar="FILE", help="the config to write; named after the table by default")
    parser.add_argument("--yes", action="store_true", help="ask nothing: take what is proposed")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="how the table is read, such as data.csv.separator=';'"
    )


def plan_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of a plan."""
    add_config(parser)
    add_json(parser, "the plan")
    add_show_values(parser)
    add_set(parser)


def risk_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the ranking of columns."""
    add_config(parser, "YAML file; it needs no schema and no tests yet")
    add_show_values(parser)
    parser.add_argument("--target", metavar="COLUMN", help="refine this column instead of the person, that is the row")
    parser.add_argument(
        "--without", action="append", default=[], metavar="COLUMN", help="leave a column out, such as a row number"
    )
    parser.add_argument(
        "--size", type=positive_integer, default=3, metavar="M", help="columns in a combination, at most (default 3)"
    )
    parser.add_argument(
        "--top", type=positive_integer, default=10, metavar="N", help="combinations shown of each size (default 10)"
    )
    parser.add_argument(
        "--missing", choices=("category", "drop"), help="missing cells are a value of their own, or drop their row"
    )
    add_output(parser, "folder or fsspec URL under which risk.json and risk.svg go")
    add_json(parser, "the ranking")
    add_set(parser)


def gate_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of a check of gates."""
    add_run(parser)
    parser.add_argument(
        "--fail-on",
        action="append",
        default=[],
        metavar="CONDITION",
        help="fail if true for any sanitised test; without it the config's gates",
    )
    add_json(parser, "the verdicts")
    add_metrics(parser)


def leave_out_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the tables to sanitise elsewhere."""
    add_config(parser)
    add_show_values(parser)
    parser.add_argument(
        "--to", required=True, metavar="URL", help="private folder or URL: the tables hold the data's own values"
    )
    parser.add_argument("--format", choices=("parquet", "csv"), default="parquet", help="of the tables (default parquet)")
    add_quiet(parser)
    add_set(parser)


def compare_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of a comparison."""
    add_run(parser)
    parser.add_argument("other", metavar="RUN", help="the run to compare it with")
    add_json(parser, "both runs and the changes")


def history_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the history of an output."""
    parser.add_argument("url", metavar="URL", help="the output folder or URL that the runs were written to")
    parser.add_argument("--name", metavar="NAME", help="only runs of this name")
    add_json(parser, "runs and rises")
    parser.add_argument("--fail-on-rise", action="store_true", help="exit with 1 if any delta rose beyond the noise")


def data_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of a known dataset."""
    parser.add_argument("name", metavar="NAME", help="adult or internet-usage")


def deploy_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of a deployment."""
    add_config(parser, "YAML file; its data and output must be URLs")
    parser.add_argument("--image", help="image of all pods; the config's cluster.kubernetes.image by default")
    parser.add_argument("--schedule", metavar="CRON", help="five fields such as '0 3 * * *'; without it the audit runs once")
    parser.add_argument("--time-zone", metavar="ZONE", help="of the schedule, such as Europe/Paris; the cluster's by default")
    parser.add_argument("--namespace", help="the config's cluster.kubernetes.namespace, or default")
    parser.add_argument("--name", help="name of the Kubernetes objects; made of the config's name by default")
    parser.add_argument("--secret", help="Secret whose keys are the ${NAME}s of storage_options")
    parser.add_argument(
        "--allow-literal",
        action="append",
        default=[],
        metavar="PLACE",
        help="a place of the config, as the refusal names it, whose value is no secret; may be given again",
    )
    add_set(parser)


def certificates_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of certificates to try out."""
    parser.add_argument("--to", required=True, metavar="FOLDER", help="a folder that does not exist yet")
    parser.add_argument("--days", type=positive_integer, default=30, metavar="N", help="how long they are valid; 30 by default")


def launch_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the launcher inside a cluster."""
    parser.add_argument("job", metavar="JOB", help="YAML file that `dit deploy` wrote")
    parser.add_argument("--owner", metavar="NAME/UID", help="the Kubernetes Job that this is a pod of")


def add_config(parser: argparse.ArgumentParser, description: str = "YAML file") -> None:
    """The config file of a subcommand."""
    parser.add_argument("config", metavar="CONFIG", help=description)


def add_run(parser: argparse.ArgumentParser) -> None:
    """The run folder of a subcommand."""
    parser.add_argument("run", metavar="RUN", help="run folder or URL")


def add_output(parser: argparse.ArgumentParser, description: str) -> None:
    """Where results go."""
    parser.add_argument("--out", metavar="URL", help=description)


def add_json(parser: argparse.ArgumentParser, what: str) -> None:
    """A document instead of tables."""
    parser.add_argument("--json", action="store_true", help=f"print {what} as JSON, and nothing else, to stdout")


def add_metrics(parser: argparse.ArgumentParser) -> None:
    """Figures for a scheduler."""
    parser.add_argument("--metrics", metavar="FILE", help="also write the figures as OpenMetrics text, for a scheduler")


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """Fewer lines on stderr."""
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr; warnings and errors stay")


def add_show_values(parser: argparse.ArgumentParser) -> None:
    """What errors may show."""
    parser.add_argument("--show-values", action="store_true", help="errors also show values of the data that few rows share")


def add_set(parser: argparse.ArgumentParser) -> None:
    """Single keys of the config."""
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="override one config key, such as data.limit=1000"
    )


def positive_integer(text: str) -> int:
    """A count as users type it."""
    if not text.isdecimal() or len(text) > MOST_DIGITS or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be an integer >= 1; got {quote(text)}")
    return int(text)


def _workers(text: str) -> int:
    if len(text) > len(str(MOST_WORKERS)) or positive_integer(text) > MOST_WORKERS:
        raise argparse.ArgumentTypeError(f"must be an integer of at most {MOST_WORKERS:,}; got {quote(text)}")
    return positive_integer(text)


def _cluster(text: str) -> str:
    kinds = [kind for kind in KINDS if kind != "address"]
    if text not in kinds and not re.fullmatch(ADDRESS.pattern, text):
        raise argparse.ArgumentTypeError(f"must be {', '.join(kinds)}, tcp://HOST:PORT or tls://HOST:PORT; got {text!r}")
    return text
