"""Scratch arrays: in memory or in a file without a name, which other processes of the machine map and no kill leaves."""

from __future__ import annotations

import os
import pickle
import resource
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dit_dask.errors import RunError
from dit_dask.storage import scratch
from tests.cluster.runs import DIT

MIB = 2**20


@pytest.fixture
def mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even small arrays are in files, and shared."""
    monkeypatch.setattr(scratch, "IN_MEMORY_BYTES", 1)
    monkeypatch.setattr(scratch, "SHARED_BYTES", 1)


def in_other_process(value: object) -> str:
    """What another process reads of a pickled array."""
    code = "import pickle, sys; array = pickle.load(sys.stdin.buffer); print(array.tolist()); array[0] = 99"
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(value), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().strip()


def shared(value: object) -> scratch.SharedValue:
    """The value as processes of this machine get it."""
    found = scratch.SharedValue.of(*scratch.split(value))
    assert found is not None
    return found


class Opened:
    """A shared value that is opened where it is unpickled."""

    def __init__(self, value: object) -> None:
        self.value = shared(value)

    def __reduce__(self) -> tuple:
        return scratch.SharedValue.open, (self.value,)


def test_small_arrays_are_in_memory_and_large_ones_in_a_file() -> None:
    small, large = scratch.empty((3, 2), np.int32), scratch.empty(scratch.IN_MEMORY_BYTES, np.uint8)
    assert scratch.mapped_file(small) is None
    assert scratch.mapped_file(large) is not None
    assert (small.shape, small.dtype, large.shape, large.dtype) == ((3, 2), np.int32, (scratch.IN_MEMORY_BYTES,), np.uint8)
    large[-1] = 7
    assert (large[-1], large.flags.writeable) == (7, True)


def test_arrays_without_elements_are_never_in_a_file(mapped: None) -> None:
    assert scratch.empty(0, np.int64).shape == (0,)
    assert scratch.empty((0, 4), np.int64).shape == (0, 4)


def test_another_process_maps_the_same_array_and_cannot_change_it(mapped: None) -> None:
    array = scratch.empty(5, np.int64)
    array[:] = range(5)
    assert in_other_process(Opened(array)) == "[0, 1, 2, 3, 4]"
    assert array[0] == 0


def test_a_file_is_given_up_with_its_array(mapped: None) -> None:
    array = scratch.empty(5, np.int64)
    place = scratch.mapped_file(array)
    assert place is not None
    assert place.is_seen()
    del array
    assert not place.is_seen()
    with pytest.raises(OSError, match=r"."):
        place.map()


def test_another_file_under_the_same_path_is_not_taken_for_the_right_one(mapped: None) -> None:
    """As on another machine, or where a number of a process or file was used again."""
    right, wrong = scratch.empty(5, np.int64), scratch.empty(5, np.int64)
    right_place, wrong_place = scratch.mapped_file(right), scratch.mapped_file(wrong)
    assert right_place is not None
    assert wrong_place is not None
    before = os.listdir("/proc/self/fd")
    for path in (wrong_place.path, "/proc/self/exe", "/dev/zero", "/proc/self", "/proc/self/fd/0", "/none"):
        place = replace(right_place, path=path)
        assert not place.is_seen()
        with pytest.raises(OSError, match=r"."):
            place.open()
    assert os.listdir("/proc/self/fd") == before


def test_a_pipe_under_the_same_path_is_not_waited_for(mapped: None, tmp_path: Path) -> None:
    place = scratch.mapped_file(scratch.empty(5, np.int64))
    assert place is not None
    os.mkfifo(tmp_path / "pipe")
    assert not replace(place, path=str(tmp_path / "pipe")).is_seen()


KILLED = """
import os, signal
from dit_dask.storage import scratch
array = scratch.empty(2**26, "u1")
array[:] = 1
assert scratch.mapped_file(array) is not None
print(len(os.listdir(os.environ["TMPDIR"])), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_nothing_is_left_in_the_folder_by_a_process_that_is_killed(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED], env=os.environ | {"TMPDIR": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert done.stdout == "0\n"
    assert list(tmp_path.iterdir()) == []


def limit_files() -> None:
    """Let no file of the coming process be longer than 1 MiB, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (MIB, MIB))


def test_no_space_for_scratch_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    rows = 9_000_000  # their index takes 36 MB
    table = tmp_path / "long.csv"
    table.write_bytes(b"x,s\n" + b"1,a\n2,b\n3,a\n" * (rows // 3))
    (tmp_path / "audit.yaml").write_text(
        "version: 1\nname: long\ndata: {source: long.csv}\nschema: {quasi_identifiers: {x: {kind: numeric}}, sensitive: s}\n"
        "tests: [{sanitizer: raw}]\n"
    )
    done = subprocess.run(
        [*DIT, "run", str(tmp_path / "audit.yaml"), "--quiet", "--out", str(tmp_path / "out")],
        capture_output=True,
        text=True,
        preexec_fn=limit_files,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert "scratch: cannot write 36 MB to " in done.stderr
    assert "set TMPDIR" in done.stderr


def test_a_folder_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, mapped: None, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    with pytest.raises(RunError, match=r"scratch: cannot write 0 MB to .*gone: No such file or directory; set TMPDIR"):
        scratch.empty(5, np.int64)


def test_a_shared_value_is_small_however_often_it_is_sent_on_and_is_opened_once() -> None:
    large, small = np.arange(MIB), np.arange(3)
    value = {"large": large, "again": large, "turned": large.reshape(1024, -1).T, "small": small, "text": "word"}
    sender = shared(value)
    once = pickle.dumps(sender)
    received = pickle.loads(once)
    opened = received.open()
    assert received.open() is opened
    assert len(once) < 10_000
    assert pickle.dumps(received) == once  # sent on by a process that has opened it
    assert list(opened) == list(value)
    assert opened["again"] is opened["large"]
    for name in ("large", "turned", "small"):
        np.testing.assert_array_equal(opened[name], value[name])
        assert opened[name].dtype == value[name].dtype
    opened["large"][0] = 9
    assert large[0] == 0


def test_what_is_no_plain_array_is_pickled_as_it_is() -> None:
    hidden = np.ma.masked_array(np.arange(MIB), mask=np.arange(MIB) % 2)
    assert shared({"hidden": hidden, "plain": np.arange(MIB)}).open()["hidden"].sum() == hidden.sum()
    assert scratch.split(hidden)[1] == []
    assert scratch.split({"a": np.arange(3), "b": np.array(["x"] * 3, object)})[1] == []


def test_arrays_are_left_out_once_whatever_holds_them(mapped: None) -> None:
    array, reader = np.arange(10), np.arange(7)
    reader.flags.writeable = False
    content, arrays = scratch.split({"one": array, "again": [array], "reader": reader})
    assert [id(one) for one in arrays] == [id(array), id(reader)]
    assert array.tobytes() not in content
    opened = shared({"one": array, "again": [array], "reader": reader}).open()
    assert opened["again"][0] is opened["one"]
    assert opened["reader"].flags.writeable  # as all that is mapped: code for such arrays is compiled already


def test_other_processes_see_the_file_of_this_one() -> None:
    place = scratch.own_place()
    assert place is not None
    assert place == scratch.own_place()
    assert in_other_process_is_seen(place)
    assert not in_other_process_is_seen(replace(place, mark=bytes(scratch.MARK_BYTES)))


def in_other_process_is_seen(place: scratch.MappedFile) -> bool:
    """Whether another process sees a file."""
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer).is_seen())"
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(place), capture_output=True, check=True)
    return done.stdout == b"True\n"
