"""The figures that decisions are made by: of inference, and of what the release is still good for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dit_dask.audit.disclosure import is_of_few
from dit_dask.audit.grammar import own_gates, read_gates
from dit_dask.audit.statistics import Figure, by_name
from dit_dask.audit.summary import TestSummary
from dit_dask.audit.verdict import never_holds
from dit_dask.config.document import Config
from dit_dask.errors import InputError
from dit_dask.storage.documents import write_json
from dit_dask.storage.folder import Folder

SHARE = ("share_over", "0.1")
RISKS: Sequence[tuple[str, str | None]] = (("delta", None), ("mean", None), SHARE, ("mean_gain", None))
LOSSES: Sequence[tuple[str, str | None]] = (
    ("certainty_penalty", None),
    ("query_error", "0.5"),
    ("tvd", "2"),
    ("discernibility", None),
)
SIZES: Sequence[tuple[str, str | None]] = (("classes", None), ("smallest_class", None))


def labels_of(chosen: Iterable[tuple[str, str | None]]) -> list[str]:
    """The names of statistics as gates write them."""
    return [by_name()[name].label(key) for name, key in chosen]


def figures_of(summaries: Sequence[TestSummary]) -> dict[str, Figure]:
    """The largest of every figure over tests that belong together: the worst risk and loss; None where it does not apply."""
    found: dict[str, Figure] = {}
    for name, key in (*RISKS, *LOSSES, *SIZES):
        known = [figure for one in summaries if (figure := one.figure(name, key)) is not None]
        worst = min if name == "smallest_class" else max
        found[by_name()[name].label(key)] = worst(known, default=None)
    return found


def require_gates(config: Config, command: str) -> None:
    """Refuse a config without gates, or with one that no release can meet."""
    gates = [*read_gates(config), *(gate for point in config.tests for gate in own_gates(point))]
    if not gates:
        raise InputError(f"gates: dit {command} needs a gate to meet, such as 'delta <= 0.2'; the config has none")
    refuse_impossible(config)


def refuse_impossible(config: Config) -> None:
    """Refuse a gate that no release can meet."""
    for gate in (*read_gates(config), *(gate for point in config.tests for gate in own_gates(point))):
        reason = never_holds(gate)
        if reason is not None:
            raise InputError(f"gates: {reason}")


def write_beside(folder: Folder, name: str, document: Mapping[str, Any], summaries: Sequence[TestSummary]) -> None:
    """Write a document of figures to the run folder; those of fewer than 10 rows to its private place, if it has one."""
    is_hidden = folder.private is not None and any(map(is_of_few, summaries))
    write_json(folder.for_personal_data() if is_hidden else folder, name, document)
