"""Finished pieces of work in the output folder: a command that was interrupted, or is run again, computes only the rest."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from dit_dask.errors import InputError
from dit_dask.execution.progress import Progress
from dit_dask.reproduction.datasets import Source
from dit_dask.storage.documents import parse_mapping, write_json
from dit_dask.storage.folder import Folder

FORMAT = 1  # of the pieces: other numbers than those of an older format would be mixed with them
ABOUT = "reproduction.json"


@dataclass(frozen=True, eq=False)
class Work:
    """What every experiment needs: the data, where finished pieces are, how much is wanted, and who is told."""

    source: Source
    folder: Folder
    progress: Progress
    quick: bool = False
    done: dict[str, Any] = field(default_factory=dict)

    @property
    def samples(self) -> range:
        """The seeds of the random samples of Adult."""
        return range(1, 3 if self.quick else 11)

    def piece(self, name: str, compute: Callable[[], Any]) -> Any:
        """Return a stored piece, or compute and store it."""
        if name not in self.done:
            file = f"pieces/{re.sub('[^a-z0-9.-]+', '-', name.lower())}.json"
            stored = parse_mapping(self.folder.read(file))
            if stored.get("piece") != name:
                self.progress.note(name)
                stored = {"piece": name, "value": compute()}
                write_json(self.folder, file, stored)
            self.done[name] = stored["value"]
        return self.done[name]


def open_folder(folder: Folder, name: str, *, quick: bool) -> None:
    """Claim an output folder; refuse one that another version, or another reproduction, wrote."""
    wanted = {"reproduction": name, "format": FORMAT, "version": version("dit_dask"), "quick": quick}
    content = folder.read(ABOUT)
    if content is None:
        write_json(folder, ABOUT, wanted)
        return
    found = parse_mapping(content)
    for key, value in wanted.items():
        if found.get(key) != value:
            raise InputError(
                f"--out: {folder.url} has results of {key} {found.get(key)!r}; expected {value!r}; choose another folder"
            )
