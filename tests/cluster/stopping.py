"""A sanitizer, a measure and a reader that kill or stop the worker they run for; `log` has one line for each time."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import psutil

from dit_dask.inputs.collapsed import CollapsedRows
from dit_dask.inputs.partitions import Partition, PartitionReader
from dit_dask.measures.base import MeasureInput, MeasureResult


def send_signal(process: int, number: int, log: str, times: int) -> None:
    """Send a process a signal, unless that was done so many times already."""
    sent = Path(log).read_text().splitlines() if Path(log).exists() else []
    if len(sent) < times:
        with open(log, "a", encoding="utf-8") as file:
            file.write(f"{process}\n")
        os.kill(process, number)


def sanitize(frame: pd.DataFrame, number: int, log: str, times: int) -> pd.DataFrame:
    """Publish the table as it is; the worker is the parent of the process that this one was forked from."""
    time.sleep(0.3)
    send_signal(psutil.Process().parent().ppid(), number, log, times)
    return frame


@dataclass(frozen=True)
class SignallingMeasure:
    """Sums the record numbers."""

    number: int
    log: str
    times: int

    def find(self, evidence: MeasureInput) -> MeasureResult:
        time.sleep(0.3)
        send_signal(os.getpid(), self.number, self.log, self.times)
        return MeasureResult(float(evidence.frame.index.to_numpy().sum()), [], len(evidence.frame))


class StopsWhenSent:
    """A result that stops its worker when it is to be sent."""

    def __init__(self, number: int, log: str) -> None:
        self.number, self.log = number, log

    def __reduce__(self) -> tuple[type, tuple[int, str]]:
        send_signal(os.getpid(), self.number, self.log, 1)
        return StopsWhenSent, (self.number, self.log)


@dataclass(frozen=True, eq=False)
class SignallingReader(PartitionReader):
    """Sends its worker a signal before it reads a part."""

    number: int = 0
    log: str = ""
    times: int = 0

    def read(self, partition: Partition) -> CollapsedRows:
        send_signal(os.getpid(), self.number, self.log, self.times)
        return super().read(partition)
