"""The worker's end of a sanitizer process: starts it, sends it calls, and replaces it when it has ended."""

from __future__ import annotations

import json
import os
import secrets
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dit_dask.errors import InputError
from dit_dask.sanitizers.external import process_main
from dit_dask.sanitizers.external.process_messages import (
    MAX_WAIT_SECONDS,
    NONCE_SIZE,
    PREFIX,
    Reply,
    Request,
    Setup,
    SetupReply,
)
from dit_dask.storage.filesystem import environment

IMPORT_SECONDS = 120
GRACE_SECONDS = 20
MAX_REPLY_SIZE = 2**20
# programs need these to find their own files; all other variables may hold secrets of the run
PASSED_VARIABLES = ("PATH", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "JAVA_HOME", "R_HOME", "LD_LIBRARY_PATH")


class ProcessGoneError(Exception):
    """The sanitizer process ended, or did not reply in time."""


class SanitizerProcess:
    """One child process that runs a sanitizer's calls; `target` is what it imports, None for commands.

    With `pickled` the target is a function that no module has, and its name is only for messages.

    The handle belongs to the process that made it: a pickle holds only the arguments, and its copy starts a child of its own.
    """

    def __init__(self, target: str | None = None, search: Sequence[str] = (), pickled: str | None = None) -> None:
        self._target, self._search, self._pickled = target, tuple(search), pickled
        self._process: subprocess.Popen[bytes] | None = None
        self._nonces = -1  # where the nonces of requests are written
        self._buffer = b""
        self.root = ""
        self.seed_name: str | None = None
        self.code = ""

    def __reduce__(self) -> tuple[type[SanitizerProcess], tuple[str | None, tuple[str, ...], str | None]]:
        return SanitizerProcess, (self._target, self._search, self._pickled)

    def call(self, request: Request) -> Reply:
        """Run one call; a process that is gone makes it a failed call, and the next call starts a new process."""
        try:
            return Reply(**self._exchange(request, request.timeout + GRACE_SECONDS))
        except ProcessGoneError:
            self.close()
            return Reply("gone", "its process was killed")

    def open(self) -> None:
        """Start the process if it does not run; raise InputError if the target cannot be imported."""
        if self._process is not None and self._process.poll() is None:
            return
        self.close()
        nonces, self._nonces = os.pipe()
        # without the hash seed sets would have another order on every worker
        variables = {"PYTHONHASHSEED": "0", "TMPDIR": tempfile.gettempdir()}
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own file  # nosec B603
                [sys.executable, "-s", "-P", process_main.__file__, str(nonces)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=child_environment(variables),
                pass_fds=[nonces],
                start_new_session=True,  # Ctrl-C is for the client; this process ends when its worker does
            )
        finally:
            os.close(nonces)
        try:
            setup = Setup(self._target, [*self._search, *sys.path], self._pickled)
            reply = SetupReply(**self._exchange(setup, IMPORT_SECONDS))
        except ProcessGoneError as error:
            self.close()
            raise InputError(f"cannot import {self._target!r}: its process ended, or took over {IMPORT_SECONDS} s") from error
        self.root = reply.root
        if reply.error is not None:
            self.close()
            raise InputError(f"cannot import {self._target!r}: {reply.error}")
        self.seed_name, self.code = reply.seed_name, reply.code

    def _exchange(self, request: Setup | Request, seconds: float) -> dict[str, Any]:
        """Send a line of JSON and wait for the line that answers it."""
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise ProcessGoneError
        nonce = secrets.token_hex(NONCE_SIZE // 2)
        try:
            os.write(self._nonces, nonce.encode())
            process.stdin.write(json.dumps(asdict(request)).encode() + b"\n")
            process.stdin.flush()
        except OSError as error:
            raise ProcessGoneError from error
        deadline = time.monotonic() + seconds
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([process.stdout], [], [], min(max(0.0, left), MAX_WAIT_SECONDS))
            more = os.read(process.stdout.fileno(), 1 << 16) if ready else b""
            if not more and (ready or left <= 0):
                raise ProcessGoneError
            self._buffer += more
            if len(self._buffer) > MAX_REPLY_SIZE:
                raise ProcessGoneError
        line, _, self._buffer = self._buffer.partition(b"\n")
        return _parse_reply(line, nonce)

    def close(self) -> None:
        """End the process and remove its folder, if it did not do so itself."""
        process, self._process, self._buffer = self._process, None, b""
        if self._nonces >= 0:
            os.close(self._nonces)
            self._nonces = -1
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
        if self.root and Path(self.root).name.startswith(PREFIX):
            shutil.rmtree(self.root, ignore_errors=True)
        self.root = ""

    def __del__(self) -> None:
        with suppress(Exception):
            self.close()


def _parse_reply(line: bytes, nonce: str) -> dict[str, Any]:
    """Return a reply that the sanitizer process itself wrote: others that found its pipe do not know the nonce."""
    try:
        document = json.loads(line)
        reply: dict[str, Any] = document["reply"]
        is_genuine = secrets.compare_digest(str(document["nonce"]), nonce)
    except (ValueError, TypeError, KeyError) as error:
        raise ProcessGoneError from error
    if not is_genuine:
        raise ProcessGoneError
    return reply


def child_environment(more: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of third-party code: what programs need, and what the config gives it."""
    inherited = {name: environment(name) for name in PASSED_VARIABLES}
    return {name: value for name, value in inherited.items() if value is not None} | dict(more)
