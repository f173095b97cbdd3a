"""What the `dit` command can be told: its subcommands, their arguments and their help; what they do is in cli."""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any, NoReturn

WRONG = 2


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where help is."""
        self.exit(WRONG, f"{self.prog}: {message} (see {self.prog} -h)\n")


class Version(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Print and leave."""
        from importlib.metadata import version

        sys.stdout.write(f"dit {version('dit_dask')}\n")
        parser.exit()


def parser() -> Parser:
    """Build the parser; the name of the subcommand is its `command`."""
    top = Parser(
        prog="dit",
        description="How much does any one person's record change what an adversary can infer about that person?",
        epilog="examples:\n  dit demo\n  dit run configs/adult-k.yaml --set data.limit=1000\n"
        "  dit gate runs/adult-k-0123456789ab --fail-on 'delta > 0.1'\n\n"
        "exit codes: 0 done and every gate passed, 1 a gate failed, 2 bad input or a failed run",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action=Version, nargs=0, help="print the version")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)

    one = _command(commands, "demo", "audit embedded data, offline", "dit demo --out /tmp/audits")
    _running(one)
    one = _command(
        commands,
        "run",
        "run or resume the audit of a config",
        "dit run audit.yaml --workers 4 --set 'tests.0.sanitizer.k=[2,5]'",
    )
    one.add_argument("config", metavar="CONFIG", help="YAML file")
    one.add_argument("--cluster", type=_cluster, metavar="WHERE", help="local, kubernetes, tcp://HOST:PORT or tls://HOST:PORT")
    one.add_argument("--fresh", action="store_true", help="start over instead of resuming")
    _setting(one)
    _running(one)
    one = _command(commands, "plan", "tests, records, tasks, estimated time and memory; runs nothing", "dit plan audit.yaml")
    one.add_argument("config", metavar="CONFIG", help="YAML file")
    _setting(one)
    one = _command(
        commands,
        "risk",
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
    one = _command(commands, "report", "(re)write report.html of a finished run", "dit report runs/adult-k-0123456789ab")
    one.add_argument("run", metavar="RUN", help="run folder or URL")
    one = _command(
        commands,
        "gate",
        "hold a finished run against conditions",
        "dit gate runs/adult-k-0123456789ab --fail-on 'share_over[0.01] > 0.05'",
    )
    one.add_argument("run", metavar="RUN", help="run folder or URL")
    one.add_argument(
        "--fail-on",
        action="append",
        default=[],
        metavar="CONDITION",
        help="fail if true for any test; without it the config's gates",
    )
    one = _command(
        commands,
        "leave-out",
        "write the tables to sanitise where the sanitizer cannot be handed over",
        "dit leave-out audit.yaml --to s3://private/inputs",
    )
    one.add_argument("config", metavar="CONFIG", help="YAML file")
    one.add_argument("--to", required=True, metavar="URL", help="private folder or URL: the tables hold the data's own values")
    one.add_argument("--format", choices=("parquet", "csv"), default="parquet", help="of the tables (default parquet)")
    one.add_argument("--quiet", action="store_true", help="no progress on stderr")
    _setting(one)
    one = _command(
        commands, "compare", "two audits side by side", "dit compare runs/before-0123456789ab runs/after-ba9876543210"
    )
    one.add_argument("run", metavar="RUN", help="run folder or URL")
    one.add_argument("other", metavar="RUN", help="the run to compare it with")
    one = _command(
        commands,
        "history",
        "the trend of all runs of an output",
        "dit history s3://audits/nightly --fail-on-rise",
    )
    one.add_argument("url", metavar="URL", help="the output folder or URL that the runs were written to")
    one.add_argument("--name", metavar="NAME", help="only runs of this name")
    one.add_argument("--json", action="store_true", help="print runs and rises as JSON")
    one.add_argument("--fail-on-rise", action="store_true", help="exit with 1 if any delta rose beyond the noise")
    one = _command(commands, "data", "where a known dataset is, fetching it if it can", "dit data adult")
    one.add_argument("name", metavar="NAME", help="adult or internet-usage")
    _deploying(commands)
    return top


def _deploying(commands: Any) -> None:
    one = _command(
        commands,
        "deploy",
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
        "make certificates for trying out a cluster with mutual TLS",
        "dit certificates --to certificates",
    )
    one.add_argument("--to", required=True, metavar="FOLDER", help="a folder that does not exist yet")
    one.add_argument("--days", type=_count, default=30, metavar="N", help="how long they are valid; 30 by default")
    # not listed: what a deployed audit's own pod runs
    one = commands.add_parser("launch", description="Create the DaskJob of a deployed audit, follow it, and end as it ends.")
    one.add_argument("job", metavar="JOB", help="YAML file that `dit deploy` wrote")
    one.add_argument("--owner", metavar="NAME/UID", help="the Kubernetes Job that this is a pod of")
    one.set_defaults(debug=False)


def _command(commands: Any, name: str, about: str, example: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=about,
        description=about[0].upper() + about[1:] + ".",
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--debug", action="store_true", help="show Dask's logs, and a trace on failure")
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
