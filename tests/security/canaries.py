"""Secrets that can be recognised wherever they turn up, and a config that has one in every place that takes one."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PATTERN = re.compile(r"zq\d\dx[a-z]?", re.IGNORECASE)  # folder names are lower case


class Canaries:
    """Hands out distinct secrets; `places` remembers where each was put."""

    def __init__(self) -> None:
        self.places: dict[str, str] = {}

    def new(self, place: str) -> str:
        """A secret for a place."""
        secret = f"zq{len(self.places):02d}xk7"
        self.places[secret] = place
        return secret

    def url(self, place: str, host: str, path: str) -> str:
        """A URL with a password and a signature."""
        return f"http://reader:{self.new(f'{place} password')}@{host}/{path}?sig={self.new(f'{place} query')}"

    def options(self, place: str) -> dict[str, Any]:
        """Storage options with secrets at every depth."""
        return {
            "key": self.new(f"{place}.key"),
            "password": self.new(f"{place}.password"),
            "token": self.new(f"{place}.token"),
            "endpoint_url": self.url(f"{place}.endpoint_url", "host", "x"),
            "client_kwargs": {"aws_session_token": self.new(f"{place} session"), "cookies": [self.new(f"{place} cookie")]},
            "nested": {"list": [{"inner": self.new(f"{place} in a list")}, self.new(f"{place} as an item")]},
        }

    def headers(self, place: str) -> dict[str, Any]:
        """Options of the HTTP file system with a bearer token."""
        return {"client_kwargs": {"headers": {"X-Authorization": f"Bearer {self.new(f'{place} bearer')}"}}}

    def found_in(self, text: str) -> set[str]:
        """The places whose secrets a text shows."""
        return {f"{place}: {secret}" for secret, place in self.places.items() if secret in text.lower()}


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files without a word."""

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on loopback; yield host and port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


SANITIZER = """\
import csv, sys

def publish(frame, **params):
    return frame

def refuse(frame, **params):
    raise ValueError(f"cannot log in with {params}")

if __name__ == "__main__":
    if "fail" in sys.argv:
        sys.exit(f"cannot log in with {sys.argv}")
    open(sys.argv[2], "w").write(open(sys.argv[1]).read())
"""


def write_files(people: Path) -> Path:
    """Put a sanitizer, a mapping and releases beside the table of people; return the folder."""
    folder = people.parent
    lines = [line for line in people.read_text("utf-8").splitlines() if "?" not in line]
    people.write_text("\n".join(lines) + "\n", "utf-8")
    (folder / "mine.py").write_text(SANITIZER, "utf-8")
    (folder / "mapping.csv").write_text("town;south;Lyon;Nice\n", "utf-8")
    for name, left_out in (("full", None), ("0", 0), ("1", 1)):
        kept = [line for place, line in enumerate(lines) if left_out is None or place != left_out + 1]
        (folder / f"release-{name}.csv").write_text("\n".join(kept) + "\n", "utf-8")
    return folder


def config(canaries: Canaries, host: str) -> dict[str, Any]:
    """A config that runs, with a secret in every place that takes one."""
    python = {
        "name": "python",
        "target": "mine:publish",
        "mapping": canaries.url("tests.sanitizer.mapping", host, "mapping.csv"),
        "params": {
            "k": 5,
            "columns": ["age", "town"],
            "strategy": "quantile",
            "password": canaries.new("params.password"),
            "dsn": f"postgres://me:{canaries.new('params URL')}@db/people",
            "unnamed": canaries.new("params text"),
            "pin": 1234,
            "logins": [{"user": "me", "word": canaries.new("params list")}, canaries.new("params item")],
            "headers": {"Authorization": f"Bearer {canaries.new('params bearer')}"},
            "env": {"A": canaries.new("params env")},
            "storage_options": {"b": canaries.new("params storage_options")},
        },
    }
    command = {
        "name": "command",
        "argv": [
            "python3",
            "mine.py",
            "{input}",
            "{output}",
            "--password",
            canaries.new("argv after a flag"),
            f"--token={canaries.new('argv assignment')}",
            f"-p{canaries.new('argv joined')}",
            canaries.new("argv position"),
            "--url",
            canaries.url("argv", "host", "x"),
            f"simplecache::{canaries.url('argv chain', 'host', 'x')}",
            f"Authorization: Bearer {canaries.new('argv bearer')}",
        ],
        "env": {"API_TOKEN": canaries.new("env token"), "PLAIN": canaries.new("env plain"), "LANG": "C.UTF-8"},
    }
    precomputed = {
        "name": "precomputed",
        "full": "release-full.csv",
        "without": "release-{record}.csv",
        "storage_options": canaries.options("precomputed"),
    }
    synthetic = {"source": canaries.url("synthetic", host, "people.csv"), "storage_options": canaries.headers("synthetic")}
    return {
        "version": 1,
        "name": "canary",
        "data": {
            "source": f"simplecache::{canaries.url('data.source', host, 'people.csv')}",
            "storage_options": {"http": canaries.headers("data"), "simplecache": {"note": canaries.new("data chain")}},
        },
        "schema": {
            "quasi_identifiers": {
                "age": {"kind": "numeric"},
                "town": {"kind": "categorical", "hierarchy": canaries.url("hierarchy", host, "town.csv")},
                "job": {"kind": "categorical"},
            },
            "sensitive": "illness",
        },
        "tests": [{"sanitizer": one, "records": [0, 1]} for one in (python, command, precomputed)],
        "measures": [
            {"name": "accuracy", "synthetic": synthetic},
            {"name": "closeness", "synthetic": synthetic, "holdout": canaries.url("holdout", host, "people.csv")},
        ],
        "output": {"url": "runs", "storage_options": canaries.options("output") | {"reference": "${CANARY_REFERENCE}"}},
        "cluster": {"workers": 1},
    }
