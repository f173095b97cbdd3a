"""How attacks on membership are presented: one line for each sanitizer, the statistics by themselves as a detail."""

from __future__ import annotations

from typing import Any

from dit_dask.measures.base import Entries, MeasureEntry, Section

ABOUT = (
    "Whether somebody who knows all other persons can tell from a release that a person was in the table: releases with and "
    "without each attacked person are told apart by a likelihood-ratio test that is learned on one half of them and tried on "
    "the other. AUC 0.5 is guessing, 1 is certainty; TPR is the share of releases with the person that are recognised, while "
    "10% or 1% of those without are taken for them. Epsilon is a lower bound with the stated confidence, not an estimate: what "
    "no attack shows may still be there; the smallest leak is the share of releases that must give a person away to be found. "
    "A sanitizer that does not draw at random has no releases to compare: changed is the "
    "share of persons whose removal changes what is published, which decides presence at once."
)
HEADER = (
    "membership",
    "AUC",
    "TPR at FPR 10%",
    "TPR at FPR 1%",
    "epsilon at least",
    "claimed",
    "claim",
    "smallest leak found",
    "changed",
    "persons",
    "releases",
)
VERDICTS = {True: "not refuted", False: "refuted", None: "undecided"}


def present(entries: Entries) -> list[Section]:
    """One row for each sanitizer; intervals and what decides are details."""
    rows = [_row(entry) for entry in entries]
    details = [section for entry in entries for section in _details(entry)]
    return [Section("Membership", ABOUT, HEADER, rows), *details]


def _row(entry: MeasureEntry) -> list[Any]:
    more = entry.more
    names = ("auc", "tpr_at_10_percent", "tpr_at_1_percent", "epsilon_lower", "epsilon_claimed")
    figures = [more.get(name) for name in names]
    tail = [more.get("smallest_leak"), more.get("changed"), more.get("attacked"), more.get("releases")]
    return [entry.id, *figures, VERDICTS[more["passed"]], *tail]


def _details(entry: MeasureEntry) -> list[Section]:
    """The sentence of the verdict, the intervals, and the mean AUC of each statistic by itself."""
    reason = str(entry.more["reason"])
    rows = [[name, entry.more[name], f"{low:.3g} to {high:.3g}"] for name, (low, high) in _intervals(entry).items()]
    rows += [[f"AUC of {one['statistic']} alone, mean over persons", one["auc"], None] for one in _statistics(entry)]
    header = ("figure", "value", "95% interval")
    return [Section(f"Membership: {entry.id}", f"{reason[:1].upper()}{reason[1:]}.", header, rows, detail=True)]


def _intervals(entry: MeasureEntry) -> dict[str, Any]:
    return {name: ends for name, ends in entry.more.get("intervals", {}).items() if name != "value"}  # which is the AUC


def _statistics(entry: MeasureEntry) -> list[dict[str, Any]]:
    return list(entry.more.get("statistics", []))
