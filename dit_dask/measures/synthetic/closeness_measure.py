"""Closeness in a run: blocks of records are searched on workers; the result has curves and tests, but no record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.config.constraints import Choice, Field, Integer, Number, Record
from dit_dask.config.registry import Context
from dit_dask.errors import InputError
from dit_dask.measures.base import (
    CurvePanel,
    CurvePanels,
    Entries,
    MeasureEntry,
    MeasureInput,
    MeasureKind,
    MeasureResult,
    Section,
)
from dit_dask.measures.synthetic.accuracy_measure import NO_RECORDS
from dit_dask.measures.synthetic.buckets import MOST_BINS
from dit_dask.measures.synthetic.closeness import (
    CANNOT_SHOW,
    LEVEL,
    Closeness,
    Piece,
    Records,
    check_level,
    conclude,
    encode_tables,
)
from dit_dask.measures.synthetic.space import DISTANCES, Neighbours
from dit_dask.measures.synthetic.tables import (
    COLUMNS,
    HOLDOUT,
    SYNTHETIC,
    InputKey,
    Roles,
    Tables,
    list_columns,
    list_tables,
    parse_roles,
    prepare_tables,
)

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats

POINTS = 100
SPLIT_HERE = (
    "the holdout was split off from the table here: if the synthesizer was trained on the whole table, it has seen these "
    "records too, and copies go unnoticed; give records that it has not seen as holdout"
)
ABOUT = (
    "Whether synthetic records are nearer to the training records than to records that the synthesizer has not seen. Each kind "
    "of tests counts how many of the nearest records are training records, where training's share of both tables is expected; "
    "p is exact, from exchanging training and holdout records at random, and corrected for all tests. Distances to the closest "
    "training record (DCR), and by the one to the second closest (NNDR), beside those of the holdout are a description: they "
    "also differ if a table is clipped or protected. That nothing is found here is no permission to publish: "
)


@dataclass(frozen=True)
class ClosenessMeasure:
    """Distances to the closest records, in one of several spaces."""

    roles: Roles
    distance: str
    bins: int
    level: float

    def pieces(self, inputs: MeasureInput) -> Sequence[Piece | None]:
        """Cut the searches into blocks of records; a release is not there yet and is one piece."""
        if "synthetic" not in inputs.tables:
            return [None]
        return self._records(inputs).pieces()

    def find_piece(self, inputs: MeasureInput, piece: Piece | None) -> list[Neighbours]:
        """Search one block, or all of them."""
        if piece is None:
            records = _records(InputKey(inputs), self)
            return [] if records is None else [records.search(each) for each in records.pieces()]
        return [self._records(inputs).search(piece)]

    def join(self, inputs: MeasureInput, results: Sequence[list[Neighbours]]) -> MeasureResult:
        """Combine the blocks and test the distances."""
        records, compared = _records(InputKey(inputs), self), prepare_tables(InputKey(inputs), self.roles)
        if records is None or compared is None:
            return MeasureResult(None, [], 0, {"passed": None, "reason": NO_RECORDS})
        doubt = "" if self.roles.fraction is None else SPLIT_HERE
        result = conclude(records, [part for parts in results for part in parts], self.level, doubt)
        by_value = [asdict(test) | {"interval": list(test.interval)} for test in result.tests]
        return MeasureResult(result.effects[0].effect, by_value, len(result.dcr), _format_result(result, compared))

    def find(self, inputs: MeasureInput) -> MeasureResult:
        """Compute all pieces in this process."""
        return self.join(inputs, [self.find_piece(inputs, piece) for piece in self.pieces(inputs)])

    def _records(self, inputs: MeasureInput) -> Records:
        records = _records(InputKey(inputs), self)
        if records is None:
            raise InputError(f"{inputs.measure}: {NO_RECORDS}")
        return records


@lru_cache(maxsize=2)
def _records(key: InputKey, measure: ClosenessMeasure) -> Records | None:
    """Encode the tables once in every process."""
    compared = prepare_tables(key, measure.roles)
    if compared is None or compared.holdout is None:
        return None
    frames = {"training": compared.original, "synthetic": compared.synthetic, "holdout": compared.holdout}
    return encode_tables(frames, measure.distance, measure.bins, kinds=compared.kinds)


def _format_result(result: Closeness, compared: Tables) -> dict[str, Any]:
    """Return what joins the object in measures.json: figures and curves, no record."""
    return {
        "passed": result.passed,
        "reason": result.reason,
        "level": result.level,
        "smallest_leak": result.smallest_leak,
        "holdout_shared": result.shared,
        "effects": [asdict(effect) | {"interval": list(effect.interval)} for effect in result.effects],
        "share_nearer_training": result.share_nearer_training,
        "share_interval": list(result.share_interval),
        "share_expected": result.share_expected,
        "identical": result.identical,
        "holdout_identical": result.holdout_identical,
        "ties": result.ties,
        "holdout_ties": result.holdout_ties,
        "rows": [len(compared.original), len(result.dcr), len(result.holdout_dcr)],
        "dropped": compared.dropped,
        "curves": {"dcr": curve(result.dcr, result.holdout_dcr), "nndr": curve(result.nndr, result.holdout_nndr)},
    }


def curve(synthetic: Floats, holdout: Floats) -> dict[str, list[float]]:
    """The shares at or below some distances, evenly spread over the smallest 99% of both."""
    top = float(np.quantile(np.concatenate([synthetic, holdout]), 0.99))
    at = np.linspace(0.0, top or 1.0, POINTS + 1)
    shares = {
        name: np.searchsorted(np.sort(values), at, "right") / len(values)
        for name, values in (("synthetic", synthetic), ("holdout", holdout))
    }
    return {"distance": at.tolist(), **{name: values.tolist() for name, values in shares.items()}}


def _build(parameters: Mapping[str, Any], context: Context) -> ClosenessMeasure:
    if not 2 <= parameters["bins"] <= MOST_BINS:
        raise InputError(f"{context.where}.bins must be an integer from 2 to {MOST_BINS}; got {parameters['bins']}")
    level = check_level(parameters["level"], f"{context.where}.level")
    return ClosenessMeasure(parse_roles(parameters, context.where), parameters["distance"], parameters["bins"], level)


def _present(entries: Entries) -> list[Section]:
    """One line for each object, then its curves, its tests and what it means."""
    header = (
        "closeness",
        "memorised",
        "smallest leak found",
        "nearer to training",
        "expected",
        "dcr",
        "nndr",
        "at distance 0",
        "holdout at 0",
        "records",
    )
    rows: list[list[Any]] = []
    sections = []
    for entry in entries:
        if entry.value is None:
            rows.append([entry.id, entry.more["reason"], *[None] * 8])
            continue
        effects = {effect["name"]: effect["effect"] for effect in entry.more["effects"]}
        nearer, expected, *at_zero = (entry.more[name] for name in SHARES)
        found = VERDICTS[entry.more["passed"]]
        figures = (entry.more["smallest_leak"], nearer, expected, effects["dcr"], effects["nndr"], *at_zero)
        rows.append([entry.id, found, *figures, entry.records])
        tests = [_line(test) for test in entry.by_value]
        sections.append(Section(f"Closeness: {entry.id}", _sentence(entry), TESTS, tests, _chart(entry), detail=True))
    return [Section("Closeness", ABOUT + CANNOT_SHOW + ".", header, rows), *sections]


VERDICTS = {True: "not found", False: "yes", None: "undecided"}
SHARES = ("share_nearer_training", "share_expected", "identical", "holdout_identical")
PANELS = {"dcr": "distance to the closest record", "nndr": "nearest by second nearest"}
TESTS = ("test", "training share", "expected", "interval", "p, corrected", "memorised")


def _chart(entry: MeasureEntry) -> CurvePanels:
    panels = {}
    for name, curves in entry.more["curves"].items():
        shares = {side: curves[side] for side in ("holdout", "synthetic")}
        panels[PANELS.get(name, name)] = CurvePanel(curves["distance"], shares)
    return CurvePanels(panels, "Cumulative distributions of distances of synthetic and holdout records to training records")


def _line(test: Mapping[str, Any]) -> list[Any]:
    low, high = test["interval"]
    return [test["name"], test["effect"], test["expected"], f"{low:.3g} to {high:.3g}", test["adjusted"], test["closer"]]


def _sentence(entry: MeasureEntry) -> str:
    training, synthetic, holdout = entry.more["rows"]
    reason = entry.more["reason"]
    sizes = f"{synthetic:,} synthetic and {holdout:,} holdout records against {training:,} training records"
    is_bucketed = entry.parameters.get("distance", "buckets") == "buckets"
    what = "in the same buckets as a training record" if is_bucketed else "equal to a training record in these columns"
    same = f"{what}: {entry.more['identical']:.2%} and {entry.more['holdout_identical']:.2%}"
    return f"{reason[:1].upper()}{reason[1:]}. {sizes}; {same}."


KIND = MeasureKind(
    Record(
        {
            "synthetic": SYNTHETIC,
            "holdout": HOLDOUT,
            "columns": COLUMNS,
            "distance": Field(Choice(DISTANCES), "buckets", sweep=True, description="how far apart two records are"),
            "bins": Field(Integer(2), 10, description="buckets of every column, for distance: buckets"),
            "level": Field(Number(above=0), LEVEL, description="probability of any false alarm among all tests"),
        }
    ),
    _build,
    columns=list_columns,
    tables=list_tables,
    of_releases=lambda parameters: parameters["synthetic"] is None,
    present=_present,
)
