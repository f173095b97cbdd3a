"""Runs a third-party sanitizer in a process of its own: a program that a worker starts and sends lines of JSON.

It imports nothing of dit_dask, so that it is small when it forks. When the worker ends, for whatever reason, the standard
input of this process ends: it kills what it started, removes its folder and exits.

Third-party code runs in forks and commands, which have none of the descriptors of this process. Every reply contains the
nonce of its request, which stays in a pipe until the call has ended and all its processes with it: a call cannot reply for
itself, or for a later call.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import fcntl
import hashlib
import importlib
import inspect
import json
import os
import pickle  # nosec B403
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict
from types import ModuleType
from typing import Any

if __name__ == "__main__":  # a program: the files beside it are the package of its own that its imports name
    __package__ = "dit_sanitizer_process"
    sys.modules[__package__] = ModuleType(__package__)
    sys.modules[__package__].__path__ = [os.path.dirname(os.path.abspath(__file__))]

from .function_call import call_target
from .process_messages import (
    MAX_WAIT_SECONDS,
    NONCE_SIZE,
    PREFIX,
    CommandCall,
    ForkNotes,
    Reply,
    Request,
    Setup,
    SetupReply,
    notes_path,
    parse_request,
)

STDERR_TAIL = 4000  # bytes of stderr that are kept
MAX_FILE_SIZE = 16 * 2**30
SEED_NAMES = ("seed", "random_state")
LOCK = ".lock"
LOCK_GRACE_SECONDS = 3600  # a younger folder without a lock may be about to get one
END_SECONDS = 10  # within which the processes that a call left are ended
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 1, 4, 36  # of linux/prctl.h


class WorkerGoneError(Exception):
    """The worker that this process serves has ended."""


class Lines:
    """Reads requests from standard input and writes replies to standard output, one JSON document a line."""

    def __init__(self, nonces: int) -> None:
        self._source = os.dup(0)
        self._sink = os.dup(1)
        self._nonces = nonces
        os.set_inheritable(nonces, False)
        devnull = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1):  # what a sanitizer prints must not look like a reply
            os.dup2(devnull, standard)
        self._buffer = b""

    @property
    def source(self) -> int:
        """The descriptor that reaches its end when the worker does."""
        return self._source

    def descriptors(self) -> tuple[int, ...]:
        """What third-party code must not inherit."""
        return self._source, self._sink, self._nonces

    def receive(self) -> Any:
        """Wait for the next request."""
        while b"\n" not in self._buffer:
            more = os.read(self._source, 1 << 16)
            if not more:
                raise WorkerGoneError
            self._buffer += more
        line, _, self._buffer = self._buffer.partition(b"\n")
        return json.loads(line)

    def send(self, reply: SetupReply | Reply) -> None:
        """Write a reply, whole, with the nonce of the request that it answers."""
        nonce = os.read(self._nonces, NONCE_SIZE).decode()
        content = json.dumps({"nonce": nonce, "reply": asdict(reply)}).encode() + b"\n"
        while content:
            content = content[os.write(self._sink, content) :]


def main() -> None:
    """Serve one worker until it ends."""
    lines = Lines(int(sys.argv[1]))
    os.umask(0o077)
    _set_process_option(PR_SET_CHILD_SUBREAPER, 1)  # processes that leave their session become children of this one
    _set_process_option(PR_SET_DUMPABLE, 0)  # other processes of this user cannot open its descriptors
    root = tempfile.mkdtemp(prefix=PREFIX)
    lock = os.open(os.path.join(root, LOCK), os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)  # held until this process ends, even if it is killed
    child_ended, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    try:
        _remove_abandoned_folders(os.path.dirname(root))
        setup = Setup(**lines.receive())
        target, reply = _import_target(setup, root)
        lines.send(reply)
        own = (*lines.descriptors(), lock, child_ended, wakeup)
        while True:
            kept = _child_processes()  # a library may have started them when it was imported
            try:
                answer = _run_call(parse_request(lines.receive()), target, lines.source, child_ended, own)
            finally:
                _end_processes(kept)
            lines.send(answer)
    except (WorkerGoneError, BrokenPipeError):
        pass
    finally:
        _end_processes(set())
        shutil.rmtree(root, ignore_errors=True)


def _remove_abandoned_folders(parent: str) -> None:
    """Remove the folders of sanitizer processes that were killed: no process holds their locks."""
    for name in os.listdir(parent):
        folder = os.path.join(parent, name)
        if not name.startswith(PREFIX):
            continue
        with contextlib.suppress(OSError):
            if os.lstat(folder).st_uid != os.getuid():
                continue
            if not os.path.exists(os.path.join(folder, LOCK)):
                if time.time() - os.stat(folder).st_mtime > LOCK_GRACE_SECONDS:
                    shutil.rmtree(folder, ignore_errors=True)
                continue
            lock = os.open(os.path.join(folder, LOCK), os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


def _import_target(setup: Setup, root: str) -> tuple[Any, SetupReply]:
    """Import module:name once; every call runs in a fork of this process."""
    if setup.target is None:
        return None, SetupReply(root)
    sys.path[:] = setup.path
    try:
        target, code = _import_name(setup.target) if setup.pickled is None else (_unpickle(setup.pickled), "")
        if not callable(target):
            raise TypeError(f"it is a {type(target).__name__}, not a function or a class")
        parameters = _parameter_names(target)
    except BaseException as error:
        lines = str(error).strip().splitlines() or [""]
        return None, SetupReply(root, error=f"{type(error).__name__}: {lines[0][:200]}")
    for used in ("pandas", "pyarrow.parquet"):  # once, before the forks
        importlib.import_module(used)
    return target, SetupReply(root, None, next((name for name in SEED_NAMES if name in parameters), None), code)


def _import_name(path: str) -> tuple[Any, str]:
    """Import module:name; also return the digest of the module's file."""
    module, _, name = path.partition(":")
    target: Any = importlib.import_module(module)
    for part in name.split("."):
        target = getattr(target, part)
    source = inspect.getsourcefile(sys.modules[module])
    with open(source or os.devnull, "rb") as file:
        return target, hashlib.sha256(file.read()).hexdigest()


def _unpickle(text: str) -> Any:
    """Read a function of the session that started the audit."""
    return pickle.loads(base64.b64decode(text))  # noqa: S301 - the caller's own function  # nosec B301


def _parameter_names(function: Any) -> set[str]:
    """Return the names of a function's parameters; none where compiled code does not tell them."""
    try:
        return set(inspect.signature(function).parameters)
    except ValueError:
        return set()


def _set_process_option(option: int, value: int) -> None:
    """Set an option of this process that only Linux has; elsewhere nothing happens."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _child_processes() -> set[int]:
    """Return the direct children of this process; none where the system does not list them."""
    with contextlib.suppress(OSError), open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
        return {int(number) for number in file.read().split()}
    return set()


def _end_processes(kept: set[int]) -> None:
    """Kill all child processes but those to keep; what a killed process leaves becomes a child, and is killed next."""
    deadline = time.monotonic() + END_SECONDS
    while (left := _child_processes() - kept) and time.monotonic() < deadline:
        for process in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process, os.WNOHANG)
        time.sleep(0.001)


def _run_call(request: Request, target: Any, source: int, child_ended: int, own: Sequence[int]) -> Reply:
    """Run one call until it ends, exceeds its time limit, or the worker ends."""
    deadline = time.monotonic() + request.timeout
    errors, child_errors = os.pipe()
    command: subprocess.Popen[bytes] | None = None  # kept until the end: it would reap the child when collected
    if request.command is None:
        process = _fork_function(target, request, child_errors, (*own, errors))
    else:
        try:
            command = _start_command(request.command, request.folder, child_errors)
            process = command.pid
        except OSError as error:
            os.close(child_errors)
            os.close(errors)
            return Reply("not-started", f"cannot start {request.command.argv[0]!r}: {error.strerror}")
    os.close(child_errors)
    try:
        status, tail = _wait_for_child(process, errors, deadline, source, child_ended)
    finally:
        os.close(errors)
        if command is not None:
            command.returncode = 0  # it was waited for here
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process, signal.SIGKILL)  # what it left running
    notes = ForkNotes() if request.function is None else _read_notes(notes_path(request.folder))
    for name in notes.imported:  # so that the next fork has it already
        with contextlib.suppress(BaseException):
            importlib.import_module(name)
    return _make_reply(status, notes, tail.decode(errors="replace"))


def _start_command(call: CommandCall, folder: str, errors: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - the user's own command, without a shell  # nosec B603
        call.argv,
        cwd=folder,
        env=call.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        start_new_session=True,
        preexec_fn=_limit_child,
    )


def _read_notes(path: str) -> ForkNotes:
    """Read what a fork wrote; a fork that was killed wrote nothing, or half of it."""
    with contextlib.suppress(OSError, ValueError, TypeError), open(path, encoding="utf-8") as file:
        return ForkNotes(**json.load(file))
    return ForkNotes()


def _make_reply(status: int | None, notes: ForkNotes, stderr: str) -> Reply:
    if status is None:
        return Reply("timeout", "", stderr)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        return Reply("signal", signal.Signals(-code).name, stderr)
    if code and notes.raised is not None:
        return Reply("raised", notes.raised[:300], stderr)
    return Reply("exit" if code else "ok", str(code), stderr)


def _wait_for_child(process: int, errors: int, deadline: float, source: int, child_ended: int) -> tuple[int | None, bytes]:
    """Return the child's status (None: it exceeded its time and was killed) and the end of what it wrote to stderr."""
    tail = b""
    watched = [source, child_ended, errors]
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        left = deadline - time.monotonic()
        if ended or left <= 0:
            if not ended:
                _kill_child(process)
            return (status if ended else None), (tail + _read_available(errors))[-STDERR_TAIL:]
        ready, _, _ = select.select(watched, [], [], min(left, MAX_WAIT_SECONDS))
        if errors in ready:
            more = os.read(errors, 1 << 16)
            tail = (tail + more)[-STDERR_TAIL:]
            if not more:
                watched.remove(errors)
        if child_ended in ready:
            os.read(child_ended, 1 << 16)
        if source in ready:
            _kill_child(process)
            raise WorkerGoneError


def _kill_child(process: int) -> None:
    """Kill a child with all that it started, also before it has a session of its own."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)


def _read_available(errors: int) -> bytes:
    """Read what the pipe holds now; processes that the child left may keep it open."""
    os.set_blocking(errors, False)
    with contextlib.suppress(BlockingIOError):
        return os.read(errors, STDERR_TAIL)
    return b""


def _limit_child() -> None:
    """Forbid core dumps, limit the size of files and give signals back their defaults."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core dump holds the table
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    limit = MAX_FILE_SIZE if most == resource.RLIM_INFINITY else min(most, MAX_FILE_SIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _set_process_option(PR_SET_PDEATHSIG, signal.SIGKILL)  # or it would outlive a sanitizer process that is killed
    _set_process_option(PR_SET_DUMPABLE, 1)  # libraries read /proc/self


def _fork_function(target: Any, request: Request, errors: int, own: Sequence[int]) -> int:
    """Call the target in a child with its own session, folder and stderr; return its process id."""
    process = os.fork()
    if process:
        return process
    code, before, raised, known = 1, set(sys.modules), None, _exception_classes()
    try:
        os.setsid()
        os.chdir(request.folder)
        os.dup2(errors, 2)
        _limit_child()
        for descriptor in (*own, errors):  # a copy of the lock would also outlive this process
            os.close(descriptor)
        os.environ["TMPDIR"] = tempfile.tempdir = request.folder  # removed after the call
        call_target(target, request.function)
        code = 0
    except BaseException as error:
        kind = type(error)
        # messages of our own adapters name no value; those of third-party code may, and so may a class that a call made
        is_ours = kind.__module__ == "dit_dask.errors" and str(getattr(target, "__module__", "")).startswith(
            "dit_dask.adapters"
        )
        raised = str(error) if is_ours else next((base.__name__ for base in kind.__mro__ if base in known), "Exception")
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException), open(notes_path(request.folder), "w", encoding="utf-8") as file:
            json.dump(asdict(ForkNotes(raised, [name for name in sys.modules if name not in before])), file)
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()
        os._exit(code)


def _exception_classes() -> set[type]:
    """Return the exceptions that exist now."""
    classes: set[type] = {BaseException}
    below: list[type] = [BaseException]
    while below:
        new: set[type] = set(type.__subclasses__(below.pop())) - classes
        classes |= new
        below += new
    return classes


if __name__ == "__main__":
    main()
