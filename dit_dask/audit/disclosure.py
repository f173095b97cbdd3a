"""What of a run's figures may be shared: those of at least 10 rows; the others are in the private tier only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dit_dask.audit.statistics import Distribution, Statistics, from_points
from dit_dask.audit.summary import TestSummary, read_complete, read_curve_table, read_measures, read_summaries, write_results
from dit_dask.audit.verdict import RunVerdict, Verdict, read_verdict
from dit_dask.errors import InputError
from dit_dask.measures.base import MeasureEntry
from dit_dask.measures.utility.figures import NO_UTILITY
from dit_dask.storage.folder import Folder
from dit_dask.values.arrays import Floats
from dit_dask.values.schema import MIN_DISCLOSED_COUNT

FIGURES_OF_TESTS = ("summary.json", "distributions.parquet", "verdict.json", "../index.json")
COUNTS = ("records", "distinct", "subjects", "skipped")
"""Statistics that count rows or persons and say nothing about any of them."""
WITHHELD = "withheld: figures of fewer than 10 rows are in output.private only"


def is_of_few(summary: TestSummary) -> bool:
    """Tell whether the figures of a test are those of so few rows that they are figures of persons."""
    counted = [summary.statistics.figure(name) for name in ("records", "subjects")]
    return any(count is not None and count < MIN_DISCLOSED_COUNT for count in counted)


def shareable_summary(summary: TestSummary) -> TestSummary:
    """Return a summary without the figures of few rows."""
    if not is_of_few(summary):
        return summary
    values = {
        name: value if name in COUNTS else dict.fromkeys(value) if isinstance(value, Mapping) else None
        for name, value in summary.statistics.values.items()
    }
    claim = summary.claim_holds if summary.simulation is None else None  # samples of few rows are all that is known of it
    kept = replace(summary, statistics=Statistics(values), adversaries={}, claim_holds=claim, withheld=True)
    return replace(
        kept,
        simulation=None,
        repeats=None,
        sampling=None,
        attainable=None,
        homogeneous=0.0,
        utility=NO_UTILITY,
        release_only=None,
    )


def without_lists(entry: MeasureEntry, persons: int) -> MeasureEntry:
    """Return a measure without lists of values, which count rows: ten rows may be one of the `persons`."""
    if entry.parameters.get("show_values", False):  # asked for, and in the private tier
        return replace(entry, more=dict(entry.more) | {"persons": persons})
    lists = {"partitions": [], "worst": {"value": None, "rate": entry.value}}
    more = {name: lists.get(name, value) for name, value in entry.more.items()}
    return replace(entry, by_value=(), more=more | {"persons": persons})


def shareable_entry(entry: MeasureEntry) -> MeasureEntry:
    """Return a measure without figures of few rows: of a small table nothing, of exact lists only what is of all rows."""
    if min(entry.records, entry.more.get("persons", entry.records)) < MIN_DISCLOSED_COUNT:
        return replace(entry, value=None, by_value=(), more={"withheld": True})
    if not entry.parameters.get("show_values", False):
        return entry
    lists = {"partitions": [], "worst": {"value": None, "rate": entry.value}}
    more = {name: lists.get(name, value) for name, value in entry.more.items()}
    return replace(entry, by_value=(), more=more | {"withheld": True})


def shareable_verdict(verdict: Verdict, hidden: Sequence[str]) -> Verdict:
    """Return a verdict without the figure, if its test is one of the hidden ones: it is still passed or failed."""
    return replace(verdict, value=None, reason=WITHHELD) if verdict.test in hidden else verdict


def shareable_run_verdict(verdict: RunVerdict, hidden: Sequence[str]) -> RunVerdict:
    """Return the verdict of a run without figures and warnings of the hidden tests, and without controls of few rows."""
    verdicts = [shareable_verdict(one, hidden) for one in verdict.verdicts]
    counted = [(control, control.statistics.figure("subjects") or 0) for control in verdict.controls]
    controls = [control for control, rows in counted if rows >= MIN_DISCLOSED_COUNT or control.error is not None]
    warnings = [text for text in verdict.warnings if not text.startswith(tuple(f"{test}: " for test in hidden))]
    return replace(verdict, verdicts=verdicts, controls=controls, warnings=warnings)


@dataclass(frozen=True, eq=False)
class Results:
    """The figures of a finished run; `curves` has the points of distributions.parquet by test."""

    summaries: Sequence[TestSummary]
    curves: Mapping[str, Mapping[str, Floats]]
    entries: Sequence[MeasureEntry]
    verdict: RunVerdict

    def distributions(self) -> dict[str, Distribution]:
        """The distribution of each test, rebuilt from its points."""
        rows = {one.test: int(one.figure("subjects") or one.figure("records") or 0) for one in self.summaries}
        curves = {test: (curve["distance"], curve["cumulative"]) for test, curve in self.curves.items()}
        return {test: from_points(*curve, rows[test]) for test, curve in curves.items() if rows.get(test)}

    def shareable(self) -> Results:
        """The figures without those of few rows."""
        hidden = self.hidden
        return Results(
            [shareable_summary(one) for one in self.summaries],
            {test: curve for test, curve in self.curves.items() if test not in hidden},
            [shareable_entry(entry) for entry in self.entries],
            shareable_run_verdict(self.verdict, hidden),
        )

    @property
    def hidden(self) -> list[str]:
        """The tests and measures of which something has to be withheld."""
        tests = [one.test for one in self.summaries if shareable_summary(one) != one]
        return tests + [entry.id for entry in self.entries if shareable_entry(entry) != entry]

    def tiers(self, folder: Folder) -> Iterator[tuple[Folder, Results]]:
        """Each place with what is written there; all in one place if there is only one, or if all can be shared."""
        if folder.private is None or not self.hidden:
            yield folder, self
            return
        yield folder.for_personal_data(), self
        yield folder, self.shareable()


def write_tiers(folder: Folder, results: Results) -> None:
    """Write distributions.parquet, summary.json and measures.json, each to the places where it belongs."""
    for place, figures in results.tiers(folder):
        write_results(place, figures.summaries, figures.curves, figures.entries)


def exact_folder(folder: Folder) -> Folder:
    """The place that has all figures of a run: the private one if something was withheld from the shared one."""
    private = folder if folder.private is None else folder.for_personal_data()
    return private if private.read("summary.json") is not None else folder


def read_results(folder: Folder) -> Results:
    """Read all figures of a run that is complete."""
    chosen = exact_folder(folder)
    return Results(read_summaries(chosen), read_curve_table(chosen), read_measures(chosen), read_verdict(chosen))


def results_are_complete(folder: Folder) -> bool:
    """Tell whether all that a complete run writes beside its parts can be read, and nothing of it is in the wrong place."""
    try:
        shared = Results(read_complete(folder)[1], read_curve_table(folder), read_measures(folder), read_verdict(folder))
        exact = read_results(folder)
    except InputError:
        return False
    if folder.private is not None and shared.hidden:
        return False
    is_exact = not any(one.withheld for one in exact.summaries)
    return is_exact and folder.read("distributions.parquet") is not None
