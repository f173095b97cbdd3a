"""Runs someone else's sanitizer at arm's length: a program that a worker starts and talks to in lines of JSON.

It stands alone (nothing of dit_dask is imported), so that it is small when it forks. When its worker is gone, for whatever
reason, its input ends: it kills what it started, removes its folder and goes.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib
import inspect
import json
import os
import random
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from typing import Any

PREFIX = "dit-oracle-"
TAIL = 4000  # characters of stderr that are kept
LARGEST_FILE = 16 * 2**30
SEEDS = ("seed", "random_state")
LOCK = ".keeper"
YOUNG = 3600  # seconds for which a folder without a lock may still be about to get one
NAPS = 600  # seconds after which a wait is begun anew
METHODS = ("__call__", "sanitize", "anonymize", "fit_transform")


class OrphanedError(Exception):
    """The worker that this keeper works for is gone."""


class Lines:
    """Requests in and replies out; a request that never ends means that nobody is there any more."""

    def __init__(self) -> None:
        self._source = os.dup(0)
        self._sink = os.dup(1)
        nothing = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1):  # what a sanitizer prints must not look like a reply
            os.dup2(nothing, standard)
        self._rest = b""

    @property
    def source(self) -> int:
        """The descriptor that ends with the worker."""
        return self._source

    def receive(self) -> Any:
        """Wait for the next request."""
        while b"\n" not in self._rest:
            more = os.read(self._source, 1 << 16)
            if not more:
                raise OrphanedError
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    def send(self, reply: Any) -> None:
        """Answer."""
        content = json.dumps(reply).encode() + b"\n"
        while content:
            content = content[os.write(self._sink, content) :]


def main() -> None:
    """Serve one worker until it goes."""
    lines = Lines()
    root = tempfile.mkdtemp(prefix=PREFIX)
    lock = os.open(os.path.join(root, LOCK), os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)  # held until this process ends, however it does
    wakes, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    try:
        _sweep(os.path.dirname(root))
        setup = lines.receive()
        target = None
        if setup["target"]:
            target, answer = _imported(setup["target"], setup["path"])
        else:
            answer = {"ok": True}
        lines.send(answer | {"root": root})
        while True:
            request = lines.receive()
            lines.send(_served(request, target, lines.source, wakes))
    except (OrphanedError, BrokenPipeError):
        pass
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _sweep(parent: str) -> None:
    """Remove the folders of keepers that were killed before they could do it themselves: nobody holds their locks."""
    for name in os.listdir(parent):
        folder = os.path.join(parent, name)
        if not name.startswith(PREFIX):
            continue
        with contextlib.suppress(OSError):
            if not os.path.exists(os.path.join(folder, LOCK)):
                if time.time() - os.stat(folder).st_mtime > YOUNG:
                    shutil.rmtree(folder, ignore_errors=True)
                continue
            lock = os.open(os.path.join(folder, LOCK), os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


def _imported(path: str, search: list[str]) -> tuple[Any, dict[str, Any]]:
    """Import module:name once; every call runs in a fork of this process."""
    sys.path[:] = search
    module, _, name = path.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        if not callable(found):
            raise TypeError(f"it is a {type(found).__name__}, not a function or a class")
        taken = _parameters(found)
        source = inspect.getsourcefile(sys.modules[module])
        with open(source or os.devnull, "rb") as file:
            code = hashlib.sha256(file.read()).hexdigest()
    except BaseException as error:
        lines = str(error).strip().splitlines() or [""]
        return None, {"ok": False, "error": f"{type(error).__name__}: {lines[0][:200]}"}
    for used in ("pandas", "pyarrow.parquet"):  # once, before the forks
        importlib.import_module(used)
    return found, {"ok": True, "code": code, "seed": next((name for name in SEEDS if name in taken), None)}


def _parameters(function: Any) -> set[str]:
    """The names of a function's parameters; those of compiled code may be unknown."""
    try:
        return set(inspect.signature(function).parameters)
    except ValueError:
        return set()


def _served(request: dict[str, Any], target: Any, source: int, wakes: int) -> dict[str, Any]:
    """Run one call to its end, its time limit or the end of the worker."""
    began = time.monotonic()
    errors, child_errors = os.pipe()
    started: subprocess.Popen[bytes] | None = None  # kept until the end: it would reap the child when it is forgotten
    if request["argv"] is None:
        process = _forked(lambda: _sanitised(target, request), request, child_errors)
    else:
        try:
            started = subprocess.Popen(  # noqa: S603 - the user's own command, without a shell  # nosec B603
                request["argv"],
                cwd=request["folder"],
                env=request["env"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=child_errors,
                start_new_session=True,
                preexec_fn=_limited,
            )
            process = started.pid
        except OSError as error:
            os.close(child_errors)
            os.close(errors)
            return {"status": "missing", "error": f"cannot start {request['argv'][0]!r}: {error.strerror}"}
    os.close(child_errors)
    try:
        status, tail = _awaited(process, errors, began + request["timeout"], source, wakes)
    finally:
        os.close(errors)
        if started is not None:
            started.returncode = 0  # it was waited for here
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process, signal.SIGKILL)  # and whatever it left running
    notes = {} if request["argv"] is not None else _noted(request["notes"])
    for name in notes.get("imported", ()):  # so that the next fork has it already
        with contextlib.suppress(BaseException):
            importlib.import_module(name)
    return _reply(status, notes) | {"stderr": tail.decode(errors="replace"), "seconds": time.monotonic() - began}


def _noted(path: str) -> dict[str, Any]:
    """What a fork wrote down about itself."""
    with contextlib.suppress(OSError, ValueError), open(path, encoding="utf-8") as file:
        notes = json.load(file)
        return notes if isinstance(notes, dict) else {}
    return {}


def _reply(status: int | None, notes: dict[str, Any]) -> dict[str, Any]:
    if status is None:
        return {"status": "timeout"}
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        return {"status": "signal", "error": signal.Signals(-code).name}
    if code and "raised" in notes:
        return {"status": "raised", "error": str(notes["raised"])[:300]}
    return {"status": "exit" if code else "ok", "error": str(code)}


def _awaited(process: int, errors: int, deadline: float, source: int, wakes: int) -> tuple[int | None, bytes]:
    """Return the child's status (None: it had to be killed) and the end of what it wrote to stderr."""
    tail = b""
    watched = [source, wakes, errors]
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        left = deadline - time.monotonic()
        if ended or left <= 0:
            if not ended:
                _end(process)
            return (status if ended else None), (tail + _drained(errors))[-TAIL:]
        ready, _, _ = select.select(watched, [], [], min(left, NAPS))
        if errors in ready:
            more = os.read(errors, 1 << 16)
            tail = (tail + more)[-TAIL:]
            if not more:
                watched.remove(errors)
        if wakes in ready:
            os.read(wakes, 1 << 16)
        if source in ready:
            _end(process)
            raise OrphanedError


def _end(process: int) -> None:
    """Kill a child with all that it started, also before it has a session of its own."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)


def _drained(errors: int) -> bytes:
    """What is left in the pipe, without waiting for processes that still hold it."""
    os.set_blocking(errors, False)
    with contextlib.suppress(BlockingIOError):
        return os.read(errors, TAIL)
    return b""


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core dump holds the table
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    limit = LARGEST_FILE if most == resource.RLIM_INFINITY else min(most, LARGEST_FILE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _forked(work: Callable[[], None], request: dict[str, Any], errors: int) -> int:
    """Run work in a child with its own session, folder and stderr; return its process number."""
    process = os.fork()
    if process:
        return process
    code, before, notes = 1, set(sys.modules), dict[str, Any]()
    try:
        os.setsid()
        os.chdir(request["folder"])
        os.dup2(errors, 2)
        _limited()
        work()
        code = 0
    except BaseException as error:
        kind = type(error)
        # what our own adapters say names no value; the words of others may
        notes["raised"] = str(error) if kind.__module__ == "dit_dask.errors" else re.sub(r"\W", "", kind.__name__)
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException), open(request["notes"], "w", encoding="utf-8") as file:
            json.dump(notes | {"imported": [name for name in sys.modules if name not in before]}, file)
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()
        os._exit(code)


def _sanitised(target: Any, request: dict[str, Any]) -> None:
    """Call the function, or build the class and call it, and write what it returns."""
    import pandas as pd

    random.seed(request["seed"])  # forks share the state of their parent: what draws at random must show it
    sys.modules["numpy"].random.seed(request["seed"])
    frame = pd.read_pickle(request["input"])  # noqa: S301 - written by our own worker  # nosec B301
    given = dict(request["params"])
    if request["seed_name"]:
        given[request["seed_name"]] = request["seed"]
    if inspect.isclass(target):
        made = target(**given)
        method = next((name for name in METHODS if hasattr(made, name)), None)
        if method is None:
            raise TypeError(f"the class has none of the methods {', '.join(METHODS)}")
        result = getattr(made, method)(frame)
    else:
        result = target(frame, **given)
    if not isinstance(result, pd.DataFrame):
        raise TypeError(f"expected a DataFrame; got {type(result).__name__}")
    _publish(result, request["columns"], request["output"])


def _publish(frame: Any, columns: list[str], path: str) -> None:
    """Write the columns as plain numbers, times and text: the worker loads no objects of a stranger's."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [str(name) for name in frame.columns]
    for name in names:
        if names.count(name) > 1 and name in columns:
            raise ValueError(f"the column {name!r} is there {names.count(name)} times")
    arrays = {}
    for place, name in enumerate(names):
        if name not in columns:
            continue
        cells = frame.iloc[:, place]
        kind = cells.dtype
        is_plain = pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_datetime64_any_dtype(kind)
        if not is_plain:
            missing = cells.isna().to_numpy(bool)
            texts = [None if gone else _text(cell) for cell, gone in zip(cells, missing, strict=True)]
            arrays[name] = pa.array(texts, pa.string())
        else:
            arrays[name] = pa.Array.from_pandas(cells)
    pq.write_table(pa.table(arrays), path)


def _text(cell: Any) -> str:
    """Write a cell as text; several values are a set, whatever holds them."""
    if hasattr(cell, "tolist"):
        cell = cell.tolist()
    if isinstance(cell, list | tuple | set | frozenset):
        return "{" + ", ".join(sorted(repr(str(value)) for value in cell)) + "}"
    return str(cell)


if __name__ == "__main__":
    main()
