"""Runs a reproduction by its name, from finished pieces where there are some."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from dit_dask.errors import unknown
from dit_dask.execution.progress import Progress
from dit_dask.reproduction.datasets import Source
from dit_dask.reproduction.pieces import Work, open_folder
from dit_dask.reproduction.report import Report
from dit_dask.storage.folder import Folder
from dit_dask.storage.location import Location

NEEDS = {
    "v1": ("adult", "internet"),
    "v2": ("adult", "internet"),
    "encodings": ("adult", "internet"),
    "deck": ("adult",),
    "anita": ("adult",),
    "classifiers": ("adult", "internet"),
}


@dataclass(frozen=True)
class Request:
    """What is asked for: a name, where the data are, where results go, and whether few samples are enough."""

    name: str
    data: str | None = None
    out: str | None = None
    quick: bool = False

    @property
    def folder(self) -> Folder:
        """The output folder: of this name, and of its own where few samples are enough."""
        url = self.out or f"reproduction/{self.name}{'-quick' if self.quick else ''}"
        return Folder(Location(url.rstrip("/"), {}))


def reproduce(request: Request, progress: Progress) -> Report:
    """Find the data, compute what is missing, and write tables, charts and a page."""
    if request.name not in NEEDS:
        raise unknown("dit reproduce", request.name, NEEDS)
    source = Source(request.data)
    for dataset in NEEDS[request.name]:
        source.path(dataset)  # before any work
    folder = request.folder
    folder.probe()
    open_folder(folder, request.name, quick=request.quick)
    build: Callable[[Work], Report] = import_module(f"dit_dask.reproduction.{request.name}").build
    report = build(Work(source, folder, progress, request.quick))
    report.write(folder)
    return report
