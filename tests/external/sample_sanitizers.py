"""Sample third-party sanitizers, correct ones and faulty ones; they run in child processes only."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np
import pandas as pd


def decades(frame: pd.DataFrame, width: int = 10) -> pd.DataFrame:
    """Publish ages as intervals and towns by their first letter."""
    low = frame["age"] // width * width
    return frame.assign(age=[f"[{start}, {start + width})" for start in low], town=frame["town"].str[0] + "***")


def unsorted(frame: pd.DataFrame) -> pd.DataFrame:
    """The same release in another order, with a column that it was not given."""
    return decades(frame).sample(frac=1, random_state=len(frame)).assign(extra=1)


def new_order_every_call(frame: pd.DataFrame) -> pd.DataFrame:
    """The same release in a new order at every call, and sets in a new order too."""
    rng = np.random.default_rng()
    towns = [
        ("{" + ", ".join(rng.permutation(["Lyon", "Nice", "Bonn"])) + "}") if town != "Köln" else "Köln"
        for town in frame["town"]
    ]
    return decades(frame).assign(town=towns).sample(frac=1, random_state=int(rng.integers(2**31)))


def logs_calls(frame: pd.DataFrame, log: str) -> pd.DataFrame:
    """Leave a line for every call."""
    with open(log, "a", encoding="utf-8") as file:
        file.write(f"{len(frame)}\n")
    return decades(frame)


def every_other_row(frame: pd.DataFrame) -> pd.DataFrame:
    """Publish every other row: which ones depends on their order."""
    return decades(frame).iloc[::2]


def random_half(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Publish a random half."""
    return decades(frame).sample(frac=0.5, random_state=seed)


def unseeded_half(frame: pd.DataFrame) -> pd.DataFrame:
    """Publish a random half, although no seed is an argument."""
    return decades(frame).sample(frac=0.5, random_state=int.from_bytes(os.urandom(4), "big"))


def suppresses(frame: pd.DataFrame) -> pd.DataFrame:
    """Hide the cooks over 45 altogether, and leave out everyone under 22."""
    result = decades(frame)
    hidden = ((frame["job"] == "cook") & (frame["age"] > 45)).to_numpy()
    result.loc[hidden, ["age", "town", "job"]] = "*"
    return result[(frame["age"] >= 22).to_numpy()]


class Generaliser:
    """A class with a fit_transform, as scikit-learn has them."""

    def __init__(self, width: int = 10) -> None:
        self.width = width

    def fit_transform(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The same as decades."""
        return decades(frame, self.width)


def sees_names(frame: pd.DataFrame) -> pd.DataFrame:
    """Needs a column that is not in the schema."""
    return decades(frame)[frame["name"].str.len() > 0]


def _is_full(frame: pd.DataFrame) -> bool:
    return len(frame) >= 60


def hangs(frame: pd.DataFrame) -> pd.DataFrame:
    """Never return once a record is missing."""
    if not _is_full(frame):
        time.sleep(3600)
    return decades(frame)


def crashes(frame: pd.DataFrame) -> pd.DataFrame:
    """Crash as native code does."""
    if not _is_full(frame):
        os.kill(os.getpid(), signal.SIGSEGV)
    return decades(frame)


def fails_every_third_call(frame: pd.DataFrame, state: str) -> pd.DataFrame:
    """Fail at every third call."""
    calls = len(list(Path(state).iterdir()))
    (Path(state) / f"{calls}-{time.monotonic_ns()}").touch()
    if calls % 3 == 2:
        raise ValueError("secret-value-of-someone")
    return decades(frame)


def fails_on_the_oldest(frame: pd.DataFrame) -> pd.DataFrame:
    """Refuse tables without their oldest person."""
    if frame["age"].max() < 60:
        raise ValueError("secret-value-of-someone")
    return decades(frame)


def fails_on_the_oldest_at_first(frame: pd.DataFrame, state: str) -> pd.DataFrame:
    """Refuse tables without their oldest person, but only once."""
    if frame["age"].max() < 60 and not Path(state).exists():
        Path(state).touch()
        raise ValueError("secret-value-of-someone")
    return decades(frame)


def renames(frame: pd.DataFrame) -> pd.DataFrame:
    """Return another schema."""
    return decades(frame).rename(columns={"town": "city"})


def returns_empty(frame: pd.DataFrame) -> pd.DataFrame:
    """Return nothing but a header."""
    return decades(frame).iloc[:0]


def returns_nothing(frame: pd.DataFrame) -> None:
    """Return no table at all."""


def null_ages(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one column of missing cells only."""
    return decades(frame).assign(age=np.nan)


def starred_ages(frame: pd.DataFrame) -> pd.DataFrame:
    """Suppress a column with the usual mark."""
    return decades(frame).assign(age="*")


def unreadable_ages(frame: pd.DataFrame) -> pd.DataFrame:
    """Return values in a notation that nothing can read."""
    return decades(frame).assign(age="about thirty-ish")


def doubles_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return more rows than it got."""
    return pd.concat([decades(frame)] * 2)


def prints_a_lot(frame: pd.DataFrame) -> pd.DataFrame:
    """Print a lot, to both streams."""
    line = "secret-value-of-someone " * 4000
    for _ in range(300):
        os.write(1, line.encode())
        os.write(2, line.encode())
    return decades(frame)


def writes_elsewhere(frame: pd.DataFrame) -> pd.DataFrame:
    """Leave a file in its own folder."""
    Path("litter.txt").write_text("secret-value-of-someone")
    return decades(frame)


def writes_its_environment(frame: pd.DataFrame, to: str) -> pd.DataFrame:
    """Write the environment that it was started with."""
    Path(to).write_text("\n".join(f"{key}={value}" for key, value in os.environ.items()) + f"\ncwd={os.getcwd()}")
    return decades(frame)


def starts_a_child(frame: pd.DataFrame, pids: str) -> pd.DataFrame:
    """Start a process that outlives it, and sleep while a record is missing."""
    import subprocess

    child = subprocess.Popen(["sleep", "3600"])
    with open(pids, "a", encoding="utf-8") as file:
        file.write(f"{os.getpid()} {child.pid} {os.getcwd()}\n")
    if not _is_full(frame):
        time.sleep(3600)
    return decades(frame)


def global_state_half(frame: pd.DataFrame) -> pd.DataFrame:
    """Draw from numpy's own global state."""
    return decades(frame).sample(frac=0.5)


def as_lists(frame: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Publish towns as lists, tuples or sets of two."""
    pairs = {"Lyon": ["Lyon", "Nice"], "Nice": ["Lyon", "Nice"], "Bonn": ["Bonn", "Köln"], "Köln": ["Bonn", "Köln"]}
    make = {"list": list, "tuple": tuple, "set": set, "text": lambda pair: "{" + ", ".join(pair) + "}"}[kind]
    return decades(frame).assign(town=[make(pairs[town]) for town in frame["town"]])


def ages_as_lists(frame: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Publish ages as two values: not as what lies between them."""
    make = {"list": list, "tuple": tuple, "text": lambda pair: f"{{{pair[0]}, {pair[1]}}}"}[kind]
    return decades(frame).assign(age=[make((age, 61)) for age in frame["age"]])


def exits_with_0(frame: pd.DataFrame) -> pd.DataFrame:
    """End its process with exit code 0 and return nothing."""
    if not _is_full(frame):
        os._exit(0)
    return decades(frame)


def changes_directory(frame: pd.DataFrame, to: str) -> pd.DataFrame:
    """Change its working directory."""
    os.chdir(to)
    return decades(frame)


def always_fails(frame: pd.DataFrame) -> pd.DataFrame:
    """Sanitise the complete table only."""
    if not _is_full(frame):
        raise ValueError
    return decades(frame)


def hides_secrets(frame: pd.DataFrame) -> pd.DataFrame:
    """Suppress some sensitive values, as R and Python write that."""
    marks = ["NA", "", "*", None]
    hidden = [marks[place] if place < len(marks) else f" {value} " for place, value in enumerate(frame["illness"])]
    return decades(frame).assign(illness=hidden)


def overlapping_bands(frame: pd.DataFrame) -> pd.DataFrame:
    """Publish every other row with a narrow band and the others with all ages, so that a row may be in two classes."""
    narrow = decades(frame, 20)
    wide = np.arange(len(frame)) % 2 == 1
    return narrow.assign(age=np.where(wide, "[0, 100)", narrow["age"]), town="*", job="*")


def fails_without_the_oldest(frame: pd.DataFrame) -> pd.DataFrame:
    """Fail on every table that the oldest person was removed from."""
    if frame["age"].max() < 61:
        raise ValueError("the oldest is missing")
    return decades(frame)


def logs_columns(frame: pd.DataFrame, log: str) -> pd.DataFrame:
    """Leave the names of the columns."""
    with open(log, "a", encoding="utf-8") as file:
        file.write(" ".join(frame.columns) + "\n")
    return decades(frame[["age", "town", "job", "illness"]])


def first_letters(frame: pd.DataFrame) -> pd.DataFrame:
    """Publish towns by their first letter, and leave ages as they are, whatever they are."""
    return frame.assign(town=frame["town"].str[0] + "***")


def shuffles_names(frame: pd.DataFrame) -> pd.DataFrame:
    """Publish names of others: joint values with them are made up."""
    return decades(frame).assign(name=frame["name"].to_numpy()[::-1])


def tens(frame: pd.DataFrame) -> pd.DataFrame:
    """Publish ages in bands of ten, and all else as it is."""
    low = frame["age"] // 10 * 10
    return frame.assign(age=[f"[{start}, {start + 10})" for start in low])
