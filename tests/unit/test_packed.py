"""Arrays on their way to another machine: who writes them to a file, who maps it, and what is left where that fails."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dit_dask.storage import packed, scratch
from dit_dask.storage.packed import ReceivedArrays, SentArrays

NOBODY: frozenset[bytes] = frozenset()
ARRAYS = [np.arange(1000), np.ones((30, 40), np.float32).T, np.array(["2020-01-01"] * 9, "M8[D]"), np.arange(99)[::3]]


@pytest.fixture
def here() -> frozenset[bytes]:
    """The mark of this process: it writes what it is sent to a file."""
    place = scratch.own_place()
    assert place is not None
    return frozenset([place.mark])


def sent(writers: frozenset[bytes], arrays: list[np.ndarray] = ARRAYS) -> ReceivedArrays:
    """The arrays as another process would have them, sent as Dask does it: their bytes beside the pickle."""
    buffers: list[pickle.PickleBuffer] = []
    content = pickle.dumps(SentArrays(arrays, writers), protocol=5, buffer_callback=buffers.append)
    received = pickle.loads(content, buffers=[bytearray(buffer.raw()) for buffer in buffers])
    assert isinstance(received, ReceivedArrays)
    return received


def content_of(received: ReceivedArrays) -> list[bytes]:
    return [bytes(buffer) for buffer in received.buffers()]


def open_files() -> list[str]:
    """The nameless files that this process has open."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # that of the list itself
            found.append(os.readlink(f"/proc/self/fd/{number}"))
    return sorted(name for name in found if "(deleted)" in name)


EXPECTED = [np.ascontiguousarray(array).tobytes() for array in ARRAYS]


def test_who_is_to_share_them_has_them_in_a_file_and_others_in_memory(here: frozenset[bytes]) -> None:
    written, kept = sent(here), sent(NOBODY)
    assert written.packed is not None
    assert kept.packed is None
    assert content_of(written) == content_of(kept) == EXPECTED
    assert sys.getsizeof(kept) > sum(map(len, EXPECTED)) > 8000 > sys.getsizeof(written)  # what Dask takes for its memory


def test_what_is_sent_on_is_the_same(here: frozenset[bytes]) -> None:
    for writers in (here, NOBODY):
        buffers: list[pickle.PickleBuffer] = []
        first = sent(writers)
        file = first.packed
        content = pickle.dumps(first, protocol=5, buffer_callback=buffers.append)
        assert pickle.loads(content, buffers=buffers) is first  # this process has it
        del first
        again = pickle.loads(content, buffers=[bytes(buffer.raw()) for buffer in buffers])
        assert content_of(again) == EXPECTED
        assert (again.packed is None) == (file is None)
        assert file is None or again.packed != file


OTHER = """
import pickle, sys
from dit_dask.storage.packed import ReceivedArrays
packed, ends = pickle.load(sys.stdin.buffer)
received = ReceivedArrays.of_other([ends, packed])
print(pickle.dumps(received.packed).hex(), flush=True)
print([bytes(buffer)[:3].hex() for buffer in received.buffers()], flush=True)
received.buffers()[0][0] = 255
sys.stdin.buffer.read()
"""


def test_another_process_shares_the_file_also_when_the_first_gives_it_up(here: frozenset[bytes]) -> None:
    first = sent(here)
    assert first.packed is not None
    gone = replace(first.packed, file=replace(first.packed.file, path="/none"))
    with subprocess.Popen([sys.executable, "-c", OTHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        other.stdin.write(pickle.dumps((first.packed, gone)))
        other.stdin.flush()
        theirs = pickle.loads(bytes.fromhex(other.stdout.readline().decode()))
        assert other.stdout.readline().decode().strip() == str([content[:3].hex() for content in EXPECTED])
        assert content_of(first) == EXPECTED  # what the other one writes only it sees
        place = first.packed.file
        del first
        assert not place.is_seen()
        adopted = ReceivedArrays.of_other([replace(theirs, file=place), theirs])
        assert adopted is not None
    assert not theirs.file.is_seen()
    assert content_of(adopted) == EXPECTED
    assert pickle.loads(pickle.dumps(adopted, protocol=5)) is adopted


def test_nothing_is_open_once_nobody_needs_it(here: frozenset[bytes]) -> None:
    before = open_files()
    first = sent(here)
    assert first.packed is not None
    second = ReceivedArrays.of_other([first.packed])
    opened = first.buffers()
    assert len(open_files()) > len(before)
    del first, second, opened
    assert open_files() == before


def test_files_that_are_not_seen_are_not_shared(here: frozenset[bytes]) -> None:
    first = sent(here)
    assert first.packed is not None
    assert ReceivedArrays.of_other([]) is None
    assert ReceivedArrays.of_other([replace(first.packed, file=replace(first.packed.file, mark=b"?" * 16))]) is None


def test_without_space_they_stay_in_memory(here: frozenset[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    received = sent(here)
    assert received.packed is None
    assert content_of(received) == EXPECTED
    scratch._token.cache_clear()
    try:
        assert scratch.own_place() is None
        assert content_of(sent(here)) == EXPECTED
    finally:
        scratch._token.cache_clear()


def test_a_full_disk_leaves_no_file_open(here: frozenset[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int, size: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(packed, "mark_file", fail)
    before = open_files()
    assert sent(here).packed is None
    assert open_files() == before
