"""What a finished test says: one typed object of summary.json, how it is built, written and read back."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from dit_dask.audit.adversary_summary import AdversarySummary, accuracy_of
from dit_dask.audit.excess import excess_of
from dit_dask.audit.manifest import Manifest, read_finished, read_summary_objects
from dit_dask.audit.release_only import ReleaseOnly, describe_release, without_inference
from dit_dask.audit.repeat_summary import read_repeats, repeats_document
from dit_dask.audit.state import TestState
from dit_dask.audit.statistics import Figure, Statistics, by_name, number_of, plain
from dit_dask.audit.test import Test
from dit_dask.engines import engines_of
from dit_dask.engines.controls import RAW
from dit_dask.engines.gain import GainTally
from dit_dask.engines.influence import EffectiveEpsilon, EstimateSummary, Exceedance, Simulation
from dit_dask.engines.noisy_counts.effective_epsilon import PrivacyLoss
from dit_dask.engines.power import Attainable
from dit_dask.errors import InputError
from dit_dask.measures.base import MeasureEntry
from dit_dask.measures.utility.figures import NO_UTILITY, Utility
from dit_dask.sanitizers.claims import NO_IDENTICAL_ROWS, IdenticalRows, Recheck
from dit_dask.storage.documents import write_json
from dit_dask.storage.folder import Folder
from dit_dask.values.intervals import lower_limit, upper_limit

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats

CONFIDENCE = 0.95
CURVE_COLUMNS = ("distance", "cumulative", "cumulative_distinct")
Curve = tuple["Floats", "Floats"]


@dataclass(frozen=True)
class Description:
    """The statistics of a test, those of each adversary, and the tallies of their gains."""

    statistics: Statistics
    adversaries: Mapping[str, Statistics]
    gains: Mapping[str, GainTally]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What the workers found for a test: its statistics, its distribution, and what its release publishes."""

    description: Description
    points: Mapping[str, Floats]
    release: Recheck
    loss: PrivacyLoss | None
    utility: Utility = NO_UTILITY


@dataclass(frozen=True)
class BrokenClaim:
    """How many classes, and records in them, break what the sanitizer claims."""

    classes: int
    records: int


@dataclass(frozen=True)
class Sampling:
    """What a random sample of rows, or persons, says about all `rows` of them, each statement with the same confidence."""

    rows: int
    confidence: float
    share_over: Mapping[str, tuple[float, float]]
    above_delta_at_most: float | None


@dataclass(frozen=True)
class ExternalCalls:
    """How an external sanitizer behaved on the whole table, and the rows that it failed on."""

    probe: Mapping[str, Any]
    skipped_records: Sequence[int]


@dataclass(frozen=True)
class TestSummary:
    """One object of summary.json."""

    __test__ = False

    test: str
    parameters: Mapping[str, Any]
    engine: str
    engine_reason: str | None
    statistics: Statistics
    adversaries: Mapping[str, AdversarySummary]
    classes: int | None
    smallest_class: int | None
    claim_holds: bool | None
    claim_broken: BrokenClaim
    attainable: Attainable | None
    seconds: Figure
    simulation: Simulation | None = None
    repeats: Exceedance | None = None
    sampling: Sampling | None = None
    external: ExternalCalls | None = None
    homogeneous: float = 0.0  # share of the published rows in classes with one sensitive value
    identical: IdenticalRows = NO_IDENTICAL_ROWS
    persons_unknown: bool = False  # the release does not tell in which classes the rows of a person are
    claim_unknown: bool = False  # nor whether its claim holds
    withheld: bool = False  # too few rows: its figures are in the private tier only
    planting_error: str | None = None  # why nobody knows what is attainable
    claimed: str | None = None  # what the sanitizer claims, in words
    utility: Utility = NO_UTILITY
    release_only: ReleaseOnly | None = None

    def figure(self, name: str, key: str | None = None) -> Figure:
        """The figure of a statistic, whether it is of the distances, the release or the engine."""
        if by_name()[name].compute is not None:
            return self.statistics.figure(name, key)
        value: Figure = self.utility.figure(name, key) if hasattr(self.utility, name) else getattr(self, name)
        return value

    @property
    def delta(self) -> Figure:
        """The largest distance."""
        return self.statistics.figure("delta")

    @property
    def is_sanitised(self) -> bool:
        """Whether gates judge it: the raw table is there for comparison."""
        return bool(self.parameters["sanitizer"]["name"] != RAW)

    @property
    def further_columns(self) -> int:
        """How many columns the release of an external sanitizer has that are no part of the schema and tell rows apart."""
        return 0 if self.external is None else int(self.external.probe.get("further", 0))

    @property
    def worst_adversary(self) -> str | None:
        """The name of the adversary that found delta, the first of equals."""
        return worst_adversary({name: one.statistics for name, one in self.adversaries.items()})

    def document(self) -> dict[str, Any]:
        """As in summary.json."""
        return {
            "test": self.test,
            "parameters": self.parameters,
            "engine": self.engine,
            "engine_reason": self.engine_reason,
            **self.statistics.document(),
            "classes": self.classes,
            "smallest_class": self.smallest_class,
            **self.utility.document(),
            "claim_holds": self.claim_holds,
            "claim_broken": asdict(self.claim_broken),
            "worst_adversary": self.worst_adversary,
            "adversaries": {name: one.document() for name, one in self.adversaries.items()},
            "attainable": attainable_document(self.attainable),
            **self._optional(),
            "seconds": plain(self.seconds),
        }

    def _optional(self) -> dict[str, Any]:
        shown: dict[str, Any] = {}
        if self.repeats is not None:
            shown["repeats"] = repeats_document(self.repeats)
        if self.simulation is not None:
            loss = self.simulation.effective_epsilon
            shown["largest_unbiased"] = plain(self.simulation.largest_unbiased)
            shown["delta_interval"] = list(self.simulation.delta_interval)
            shown["effective_epsilon"] = loss and {"at_least": plain(loss.at_least), "confidence": loss.confidence}
        if self.sampling is not None:
            intervals = {name: list(ends) for name, ends in self.sampling.share_over.items()}
            shown["sampling"] = asdict(self.sampling) | {"share_over": intervals}
        if self.external is not None:
            shown["oracle"] = dict(self.external.probe)
            shown["skipped_records"] = list(self.external.skipped_records)
        if self.homogeneous:
            shown["homogeneous"] = self.homogeneous
        if self.identical != NO_IDENTICAL_ROWS:
            shown["identical_rows"] = asdict(self.identical)
        unknown = {"persons_unknown": self.persons_unknown, "claim_unknown": self.claim_unknown}
        shown |= {name: True for name, is_unknown in unknown.items() if is_unknown}
        if self.withheld:
            shown["withheld"] = True
        if self.planting_error is not None:
            shown["planting_error"] = self.planting_error
        if self.release_only is not None:
            shown["release_only"] = self.release_only.document()
        return shown | ({} if self.claimed is None else {"claim": self.claimed})

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> TestSummary:
        """The inverse of `document`."""
        return cls(
            document["test"],
            document["parameters"],
            document["engine"],
            document["engine_reason"],
            Statistics.read(document),
            {name: AdversarySummary.read(one) for name, one in document["adversaries"].items()},
            document["classes"],
            document["smallest_class"],
            document["claim_holds"],
            BrokenClaim(**document["claim_broken"]),
            read_attainable(document["attainable"]),
            number_of(document["seconds"]),
            _read_simulation(document) if "delta_interval" in document else None,
            read_repeats(document["repeats"]) if "repeats" in document else None,
            _read_sampling(document["sampling"]) if "sampling" in document else None,
            ExternalCalls(document["oracle"], document["skipped_records"]) if "oracle" in document else None,
            document.get("homogeneous", 0.0),
            IdenticalRows(**document.get("identical_rows", {})),
            document.get("persons_unknown", False),
            document.get("claim_unknown", False),
            document.get("withheld", False),
            document.get("planting_error"),
            document.get("claim"),
            Utility.read(document),
            ReleaseOnly(document["release_only"]) if "release_only" in document else None,
        )


def worst_adversary(adversaries: Mapping[str, Statistics]) -> str | None:
    """The name of the adversary with the largest delta, the first of equals."""

    def delta(name: str) -> float:
        found = adversaries[name].figure("delta")
        return -1.0 if found is None else found

    return max(adversaries, key=delta, default=None)


def _read_simulation(document: Mapping[str, Any]) -> Simulation:
    low, high = map(float, document["delta_interval"])
    loss = document["effective_epsilon"]
    epsilon = None if loss is None else EffectiveEpsilon(number_of(loss["at_least"]), loss["confidence"])
    return Simulation(number_of(document["largest_unbiased"]), (low, high), epsilon)


def _read_sampling(document: Mapping[str, Any]) -> Sampling:
    intervals = {name: (low, high) for name, (low, high) in document["share_over"].items()}
    return Sampling(document["rows"], document["confidence"], intervals, document["above_delta_at_most"])


def summarise(
    state: TestState, outcome: Outcome, attainable: Attainable | None, planting_error: str | None = None
) -> TestSummary:
    """Put together what is known of a finished test, and what its planted person reaches, or why nobody knows."""
    test, release = state.test, outcome.release
    added = test.procedure.summarise_estimates(test.rows.table, state.all_estimates(), outcome.loss)
    description = outcome.description
    only = describe_release(test, description.statistics, description.adversaries)
    summary = TestSummary(
        test.id,
        test.shown_parameters,
        test.engine,
        test.engine_reason,
        outcome.description.statistics,
        _adversaries(test, outcome.description),
        release.classes,
        release.smallest_class,
        release.holds,
        BrokenClaim(release.broken_classes, release.broken_records),
        attainable,
        round(state.seconds, 6),
        added.simulation,
        _repeats(added),
        _sampling(state, outcome.description.statistics),
        _external_calls(state),
        release.homogeneous,
        release.identical,
        release.persons_unknown,
        release.claim_unknown,
        planting_error=planting_error,
        claimed=release.claimed,
        utility=outcome.utility,
        release_only=only,
    )
    if only is None:
        return summary
    return replace(summary, statistics=without_inference(summary.statistics), adversaries={}, sampling=None)


def _repeats(added: EstimateSummary) -> Exceedance | None:
    if added.repeats is None or added.bounds is None:
        return added.repeats
    return replace(added.repeats, excess=excess_of(added.bounds))


def _adversaries(test: Test, description: Description) -> dict[str, AdversarySummary]:
    engines = engines_of(test.engine, test.procedure)
    return {
        name: AdversarySummary(engines[name], statistics, accuracy_of(description.gains[name]))
        for name, statistics in description.adversaries.items()
    }


def _sampling(state: TestState, statistics: Statistics) -> Sampling | None:
    is_sample = isinstance(state.test.parameters["records"], Mapping)
    return extrapolate(statistics, state.test.rows.table.persons) if is_sample and statistics.figure("subjects") else None


def extrapolate(statistics: Statistics, population: int) -> Sampling:
    """What a random sample of rows says about all of them, each statement with CONFIDENCE.

    Intervals for the shares are exact binomial ones (Clopper and Pearson), a little wide because rows are drawn without
    replacement. A sample bounds how many rows may lie above its own maximum, never how far above; if rows were skipped, not
    even that.
    """
    tested, skipped = (int(statistics.figure(name) or 0) for name in ("subjects", "skipped"))
    tail, size = (1 - CONFIDENCE) / 2, tested + skipped  # what was skipped may lie on either side of a limit
    shares = statistics.values["share_over"]
    intervals = {}
    for name, share in shares.items() if isinstance(shares, Mapping) else ():
        over = round((share or 0.0) * tested)
        intervals[name] = lower_limit(over, size, tail), upper_limit(over + skipped, size, tail)
    above = None if skipped else 1 - (1 - CONFIDENCE) ** (1 / size)
    return Sampling(population, CONFIDENCE, intervals, above)


def _external_calls(state: TestState) -> ExternalCalls | None:
    if state.plan.probe is None:
        return None
    probe = {key: value for key, value in state.plan.probe.document().items() if key != "seconds"}
    return ExternalCalls(probe, state.skipped.tolist())


def write_results(
    folder: Folder,
    summaries: Sequence[TestSummary],
    curves: Mapping[str, Mapping[str, Floats]],
    measures: Sequence[MeasureEntry],
) -> None:
    """Write distributions.parquet, summary.json and measures.json; `curves` has the points of each test."""
    write_distributions(folder, curves)
    write_json(folder, "summary.json", [one.document() for one in summaries])
    write_json(folder, "measures.json", [entry.document() for entry in measures])


def read_complete(folder: Folder) -> tuple[Manifest, list[TestSummary]]:
    """Return manifest and summaries of a finished run, or say that it is not one."""
    manifest, objects = read_finished(folder)
    return manifest, _read_objects(folder, objects)


def read_summaries(folder: Folder) -> list[TestSummary]:
    """Read summary.json."""
    return _read_objects(folder, read_summary_objects(folder))


def _read_objects(folder: Folder, objects: Sequence[Any]) -> list[TestSummary]:
    try:
        return [TestSummary.read(one) for one in objects]
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InputError(f"{folder.url}: summary.json is not one of this version; run it again to mend it") from error


def read_measures(folder: Folder) -> list[MeasureEntry]:
    """Read measures.json."""
    try:
        return [MeasureEntry.read(entry) for entry in json.loads(folder.read("measures.json") or b"")]
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InputError(f"{folder.url}: measures.json cannot be read; run it again to mend it") from error


def write_distributions(folder: Folder, points: Mapping[str, Mapping[str, Floats]]) -> None:
    """Write the cumulative distribution of each test, by its id."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    ids = [test for test, curve in points.items() for _ in curve["distance"]]
    columns: dict[str, Any] = {"test": pa.array(ids, pa.string())}
    for name in CURVE_COLUMNS:
        columns[name] = np.concatenate([np.empty(0), *(curve[name] for curve in points.values())])
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer, compression="zstd")
    folder.write("distributions.parquet", buffer.getvalue())


def attainable_document(reached: Attainable | None) -> dict[str, Any] | None:
    """As in summary.json."""
    return None if reached is None else asdict(reached) | {"distance": plain(reached.distance)}


def read_attainable(document: Mapping[str, Any] | None) -> Attainable | None:
    """The inverse of `attainable_document`."""
    return None if document is None else Attainable(**dict(document) | {"distance": number_of(document["distance"])})


def read_curves(folder: Folder) -> dict[str, Curve]:
    """Read the cumulative distribution over rows of each test: distances and shares."""
    return {test: (curve["distance"], curve["cumulative"]) for test, curve in read_curve_table(folder).items()}


def read_curve_table(folder: Folder) -> dict[str, dict[str, Floats]]:
    """Read the points of each test as distributions.parquet has them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = folder.read("distributions.parquet")
    if content is None:
        return {}
    try:
        frame = pq.read_table(io.BytesIO(content)).to_pandas()
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{folder.url}: distributions.parquet cannot be read; run it again to mend it") from error
    return {
        str(test): {name: group[name].to_numpy() for name in CURVE_COLUMNS} for test, group in frame.groupby("test", sort=False)
    }
