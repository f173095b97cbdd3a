"""Reading, creating and updating single objects, for each kind of storage."""

from __future__ import annotations

import fcntl
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import uuid4

from dit_dask.storage.retry import error_code

Change = Callable[[bytes | None], bytes | None]
MOST_UPDATES = 60
STALE_SECONDS = 3600
LOCK_SECONDS, LOCK_NOTICE_SECONDS = 60.0, 2.0  # honest writers hold it for milliseconds
PRIVATE_FOLDERS = ("records", "measures")  # of a run folder; they are ours
_MEMORY = threading.Lock()


class ContendedError(OSError):
    """Others changed an object again and again during an update."""


class LockedError(OSError):
    """Another process holds the lock of a folder and does not let it go."""


class Objects(Protocol):
    """What a run needs of a storage."""

    def read(self, path: str) -> bytes | None:
        """Return an object, or None where there is none."""
        ...

    def replace(self, path: str, content: bytes) -> None:
        """Create or overwrite an object at once."""
        ...

    def create(self, path: str, content: bytes) -> bool:
        """Create an object if there is none of that name; tell whether it was created."""
        ...

    def update(self, path: str, change: Change) -> None:
        """Replace an object by what `change` makes of it, losing nobody else's change.

        `change` may be called again with what others left meanwhile; it returns None where nothing is (left) to be done.
        """
        ...

    def remove_temporary(self, root: str) -> None:
        """Remove what crashed writers left half done below a folder."""
        ...


@dataclass(frozen=True)
class S3Objects:
    """Buckets: the server itself decides, by If-None-Match and If-Match, who comes first."""

    fs: Any

    def read(self, path: str) -> bytes | None:
        """One request; a missing bucket is an error, a missing object is not."""
        return self._get(path)[1]

    def replace(self, path: str, content: bytes) -> None:
        """One PUT, never a multipart upload: it is there or it is not."""
        self._put(path, content)

    def create(self, path: str, content: bytes) -> bool:
        """A PUT that the server refuses if the object exists."""
        try:
            return self._put_if(path, content, IfNoneMatch="*")
        except Exception as error:
            if error_code(error) != "NotImplemented":
                raise
        # a server without conditional writes: better than nothing
        if self.fs.exists(path):
            return False
        self._put(path, content)
        return True

    def update(self, path: str, change: Change) -> None:
        """Read, change, and PUT on condition that nobody did so in between."""
        for attempt in range(MOST_UPDATES):
            tag, before = self._get(path)
            after = change(before)
            if after is None:
                return
            if self._put_if(path, after, **({"IfNoneMatch": "*"} if before is None else {"IfMatch": tag})):
                return
            time.sleep(min(0.01 * (1 + attempt), 0.5))
        raise ContendedError(f"others changed it {MOST_UPDATES} times in a row")

    def remove_temporary(self, root: str) -> None:
        """Abort uploads that nobody will finish; who may not list them has none of ours to abort."""
        bucket, key, _ = self.fs.split_path(root)
        with suppress(PermissionError):
            answer = self.fs.call_s3("list_multipart_uploads", Bucket=bucket, Prefix=f"{key}/")
            for upload in answer.get("Uploads", []):
                self.fs.call_s3("abort_multipart_upload", Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"])

    def _get(self, path: str) -> tuple[str, bytes | None]:
        import asyncio

        bucket, key, _ = self.fs.split_path(path)

        async def request() -> tuple[str, bytes]:
            answer = await self.fs._call_s3("get_object", Bucket=bucket, Key=key)
            return answer["ETag"], await answer["Body"].read()

        try:
            return asyncio.run_coroutine_threadsafe(request(), self.fs.loop).result()
        except FileNotFoundError as error:
            if error_code(error) == "NoSuchBucket":
                raise
            return "", None

    def _put(self, path: str, content: bytes, **condition: str) -> None:
        bucket, key, _ = self.fs.split_path(path)
        self.fs.call_s3("put_object", Bucket=bucket, Key=key, Body=content, **condition)

    def _put_if(self, path: str, content: bytes, **condition: str) -> bool:
        try:
            self._put(path, content, **condition)
        except Exception as error:
            # a conflict means that another conditional write is under way: the next look will see it
            if error_code(error) in ("PreconditionFailed", "ConditionalRequestConflict"):
                return False
            raise
        return True


@dataclass(frozen=True)
class LocalFiles:
    """A file system of the machine: links and renames are atomic, and a lock dies with its owner.

    Content is synced before it gets its name. The manifest comes last, and syncing it also makes the earlier names last.
    From `private_root` down, files are for their owner alone, and so are folders, whatever the umask.
    """

    private_root: str | None = None

    def read(self, path: str) -> bytes | None:
        """The whole file."""
        try:
            with open(path, "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def replace(self, path: str, content: bytes) -> None:
        """Write beside it, then rename over it."""
        with _written_beside(path, content, self.private_root) as temporary:
            os.replace(temporary, path)

    def create(self, path: str, content: bytes) -> bool:
        """Write beside it, then link it to its name, which fails if the name is taken."""
        with _written_beside(path, content, self.private_root) as temporary:
            try:
                os.link(temporary, path)
            except FileExistsError:
                return False
            except OSError:  # a file system without links
                with _locked(path):
                    if os.path.exists(path):
                        return False
                    os.replace(temporary, path)
        return True

    def update(self, path: str, change: Change) -> None:
        """Read, change and replace while no other process does."""
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with _locked(path):
            after = change(self.read(path))
            if after is not None:
                self.replace(path, after)

    def remove_temporary(self, root: str) -> None:
        """Remove half-written files that are too old to belong to a running writer."""
        for folder, _, names in os.walk(root):
            for name in names:
                if name.startswith(".") and name.endswith(".tmp"):
                    path = os.path.join(folder, name)
                    with suppress(FileNotFoundError):
                        if time.time() - os.stat(path).st_mtime > STALE_SECONDS:
                            os.unlink(path)


@dataclass(frozen=True)
class OtherObjects:
    """Any other fsspec filesystem: creates conditionally where it can; updates, then checks that the update lasted."""

    fs: Any

    def read(self, path: str) -> bytes | None:
        """The whole object."""
        try:
            content: bytes = self.fs.cat_file(path)
        except FileNotFoundError:
            return None
        return content

    def replace(self, path: str, content: bytes) -> None:
        """As atomic as the filesystem is."""
        self.fs.pipe_file(path, content)

    def create(self, path: str, content: bytes) -> bool:
        """Conditional on the server for gcs and azure, checked just before elsewhere."""
        try:
            self.fs.pipe_file(path, content, mode="create")
        except FileExistsError:
            return False
        return True

    def update(self, path: str, change: Change) -> None:
        """Write, then look: where another writer came in between, `change` is applied to what they left."""
        with _MEMORY:  # memory:// lives in this process alone
            for attempt in range(MOST_UPDATES):
                before = self.read(path)
                after = change(before)
                if after is None:
                    return
                self.replace(path, after)
                time.sleep(0.0 if "memory" in protocols(self.fs) else min(0.05 * (1 + attempt), 1.0))
        raise ContendedError(f"others changed it {MOST_UPDATES} times in a row")

    def remove_temporary(self, root: str) -> None:
        """Nothing that all filesystems share."""


def objects(fs: Any, private_root: str | None = None) -> Objects:
    """Choose by the filesystem's protocol; only local files have permissions, buckets have credentials."""
    names = protocols(fs)
    if "file" in names:
        return LocalFiles(private_root)
    return S3Objects(fs) if "s3" in names else OtherObjects(fs)


def protocols(fs: Any) -> tuple[str, ...]:
    """The names under which a filesystem is known."""
    return (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)


@contextmanager
def _written_beside(path: str, content: bytes, private_root: str | None) -> Iterator[str]:
    """Yield the name of a complete, synced file next to the path; it is gone afterwards."""
    folder, name = os.path.split(path)
    if private_root is None:
        os.makedirs(folder, exist_ok=True)
    else:
        _make_private(folder, private_root)
    temporary = os.path.join(folder, f".{name}.{uuid4().hex}.tmp")
    try:
        with open(temporary, "xb", opener=None if private_root is None else _open_private) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)


def _open_private(path: str, flags: int) -> int:
    """Open a new file that only its owner may read, before anything is in it."""
    file = os.open(path, flags, 0o600)
    os.fchmod(file, 0o600)  # a umask may have taken the owner's permissions too
    return file


def _make_private(folder: str, root: str) -> None:
    """Make a folder and those above it up to the root, and close them to others.

    A root that was there with other files in it keeps its mode: it may be shared for a reason, and the files are closed.
    """
    missing, above = [], folder
    while not os.path.isdir(above):
        missing.append(above)
        above = os.path.dirname(above)
    for path in reversed(missing):
        with suppress(FileExistsError):  # another worker was first
            os.mkdir(path, 0o700)
        os.chmod(path, 0o700)
    path = folder
    while len(path) >= len(root):
        status = os.stat(path)
        is_open = status.st_mode & 0o077 and status.st_uid == os.geteuid()
        if is_open and (path != root or not os.listdir(path) or os.path.basename(path) in PRIVATE_FOLDERS):
            os.chmod(path, 0o700)
        path = os.path.dirname(path)


@contextmanager
def _locked(path: str) -> Iterator[None]:
    """Hold the folder's lock, which needs no file of its own and ends with the process."""
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        _take_lock(folder, os.path.dirname(path))
        yield
    finally:
        os.close(folder)


def _take_lock(descriptor: int, folder: str) -> None:
    """Wait for the lock; say so after some seconds, and give up in the end: a stopped process would hold it forever."""
    start, noticed = time.monotonic(), False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            waited = time.monotonic() - start
            if waited > LOCK_SECONDS:
                raise LockedError(f"another process has held the lock of {folder} for {LOCK_SECONDS:g} s") from error
        if waited > LOCK_NOTICE_SECONDS and not noticed:
            noticed = True
            text = "waiting up to %g s for another process that holds the lock of %s"
            logging.getLogger("dit_dask").warning(text, LOCK_SECONDS, folder)
        time.sleep(min(0.001 + waited / 10, 0.1))
