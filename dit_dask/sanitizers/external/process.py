"""The worker's end of a keeper: starts it, sends it calls, and starts another when it is gone."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from dit_dask.errors import InputError
from dit_dask.sanitizers.external import process_main as keeper
from dit_dask.storage.filesystem import environment

IMPORT_SECONDS = 120
GRACE_SECONDS = 20
# a tool needs to find its own parts; everything else, the secrets of the run among it, stays here
PASSED_ON = ("PATH", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "JAVA_HOME", "R_HOME", "LD_LIBRARY_PATH")


class GoneError(Exception):
    """The keeper ended or fell silent."""


class SanitizerProcess:
    """One child process that runs a sanitizer's calls; `target` is what it imports, None for commands."""

    def __init__(self, target: str | None, search: list[str]) -> None:
        self._setup = {"target": target, "path": [*search, *sys.path]}
        self._process: subprocess.Popen[bytes] | None = None
        self._rest = b""
        self.root = ""
        self.seed_name: str | None = None
        self.code = ""

    def call(self, request: Mapping[str, Any], timeout: float) -> dict[str, Any]:
        """Run one call; a keeper that is gone is a failed call, and the next one gets a new keeper."""
        try:
            return self._exchange(request, timeout + GRACE_SECONDS)
        except GoneError:
            self.close()
            return {"status": "gone", "error": "its process was killed", "stderr": ""}

    def open(self) -> None:
        """Start the process if it does not run, or say why the target cannot be imported."""
        if self._process is not None and self._process.poll() is None:
            return
        self.close()
        self._process = subprocess.Popen(  # noqa: S603 - our own file  # nosec B603
            [sys.executable, "-s", "-P", keeper.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=passed_on({"PYTHONHASHSEED": "0"}),  # or sets would have another order on every worker
            start_new_session=True,  # Ctrl-C is for the client; a keeper ends when its worker does
        )
        try:
            answer = self._exchange(self._setup, IMPORT_SECONDS)
        except GoneError as error:
            self.close()
            raise InputError(
                f"cannot import {self._setup['target']!r}: its process ended, or took over {IMPORT_SECONDS} s"
            ) from error
        self.root = answer["root"]
        if not answer["ok"]:
            self.close()
            raise InputError(f"cannot import {self._setup['target']!r}: {answer['error']}")
        self.seed_name, self.code = answer.get("seed"), answer.get("code", "")

    def _exchange(self, request: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """Send a line, wait for a line."""
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise GoneError
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        except OSError as error:
            raise GoneError from error
        deadline = time.monotonic() + seconds
        while b"\n" not in self._rest:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([process.stdout], [], [], min(max(0.0, left), keeper.NAPS))
            more = os.read(process.stdout.fileno(), 1 << 16) if ready else b""
            if not more and (ready or left <= 0):
                raise GoneError
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        reply: dict[str, Any] = json.loads(line)
        return reply

    def close(self) -> None:
        """End the process and remove its folder, if it did not do so itself."""
        process, self._process, self._rest = self._process, None, b""
        if process is not None:
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):
                    if pipe is not None:
                        pipe.close()
            try:
                process.wait(timeout=2)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self.root and Path(self.root).name.startswith(keeper.PREFIX):
            shutil.rmtree(self.root, ignore_errors=True)
        self.root = ""

    def __del__(self) -> None:
        with suppress(Exception):
            self.close()


def passed_on(more: Mapping[str, str]) -> dict[str, str]:
    """The environment of someone else's code: what tools need, and what the config gives it."""
    found = {name: environment(name) for name in PASSED_ON}
    return {name: value for name, value in found.items() if value is not None} | dict(more)
