"""Distances between two belief vectors, by name.

Each takes p, q of shape (m, n), beliefs with and without the record, and returns (m,) distances.
A divergence may be infinite; it is never NaN.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from dit_dask.config.constraints import Field, NameOrFile, Record, Text
from dit_dask.config.registry import Context, Kind, Registry
from dit_dask.errors import InputError
from dit_dask.storage.redaction import public_url
from dit_dask.values.arrays import Floats, Ints
from dit_dask.values.hierarchy import Hierarchy
from dit_dask.values.numbers import DECIMAL

Beliefs = Floats
EARTH_RADIUS = 6371.0088  # kilometres, the mean of the ellipsoid's axes
PERCENT = (5, 10, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90, 100, 125, 150, 175, 200)
EPSILONS = {  # where tests with repeats report Pr[d >= epsilon]; the thresholds below are among them
    **{"0.001": 0.001, "0.00316": 10**-2.5, "0.01": 0.01, "0.0316": 10**-1.5},
    **{f"{percent / 100:g}": percent / 100 for percent in PERCENT},
}
THRESHOLDS = {"0.001": 0.001, "0.00316": 10**-2.5, "0.01": 0.01, "0.1": 0.1}  # how many rows lie above these is reported


class Distance(Protocol):
    """How far apart two predictions are."""

    def __call__(self, p: Beliefs, q: Beliefs) -> Floats:
        """Return (m,) distances of rows."""
        ...


def scaled_sum(p: Beliefs, q: Beliefs, scale: float) -> Floats:
    """Return scale · Σ|p − q|: 1 is v2's emd, ½ total variation, ¼ the formula printed in v1."""
    total: Floats = scale * np.abs(p - q).sum(axis=1)
    return total


def kl(p: Beliefs, q: Beliefs) -> Floats:
    """Return Σ p ln(p / q): 0 ln 0 is 0, and p > 0 where q = 0 is infinite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(p > 0, p * np.log(p / q), 0.0)
    total: Floats = np.maximum(terms.sum(axis=1), 0.0)
    return total


def js(p: Beliefs, q: Beliefs) -> Floats:
    """Return the Jensen–Shannon divergence in nats, 0 to ln 2."""
    middle = (p + q) / 2
    return (kl(p, middle) + kl(q, middle)) / 2


def hellinger(p: Beliefs, q: Beliefs) -> Floats:
    """Return the Hellinger distance, 0 to 1."""
    distance: Floats = np.sqrt(((np.sqrt(p) - np.sqrt(q)) ** 2).sum(axis=1) / 2)
    return distance


def max_ratio(p: Beliefs, q: Beliefs) -> Floats:
    """Return max |ln(p / q)|, the divergence of differential privacy; 0 / 0 is skipped."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.abs(np.log(p) - np.log(q))
    worst: Floats = np.where((p == 0) & (q == 0), 0.0, ratios).max(axis=1)
    return worst


@dataclass(frozen=True, eq=False)
class OrderedWasserstein:
    """1-Wasserstein between values on a line, gaps[n - 1] apart: Σ |F − G| · gap, F and G the cumulative beliefs.

    What beliefs lack of 1, by rounding, counts as mass at the last value.
    """

    gaps: Floats

    def __call__(self, p: Beliefs, q: Beliefs) -> Floats:
        """Sum over the gaps; equal rows have distance 0 exactly."""
        total: Floats = (np.abs(np.cumsum((p - q)[:, :-1], axis=1)) * self.gaps).sum(axis=1)
        return total


@dataclass(frozen=True, eq=False)
class TreeWasserstein:
    """1-Wasserstein between nodes of a tree whose edges have length 1: what crosses an edge is the difference of mass below it.

    order[n] are the values as a depth-first walk meets them; first[e]..stop[e] - 1 are those of them below an edge.
    """

    order: Ints
    first: Ints
    stop: Ints

    @classmethod
    def of(cls, hierarchy: Hierarchy, levels: Sequence[str]) -> TreeWasserstein:
        """Place the values in their hierarchy; an edge with nothing or everything below it is never crossed."""
        place, behind = hierarchy.preorder()
        own = np.array([place[hierarchy.node_of(level)] for level in levels])
        order = np.argsort(own, kind="stable")
        first, stop = (np.searchsorted(own[order], ends[1:]) for ends in (place, behind))
        crossed = (stop > first) & (stop - first < len(levels))
        return cls(order, first[crossed], stop[crossed])

    def __call__(self, p: Beliefs, q: Beliefs) -> Floats:
        """Sum over the edges; equal rows have distance 0 exactly."""
        below = np.zeros((len(p), p.shape[1] + 1))
        np.cumsum((p - q)[:, self.order], axis=1, out=below[:, 1:])
        total: Floats = np.abs(below[:, self.stop] - below[:, self.first]).sum(axis=1)
        return total


@dataclass(frozen=True, eq=False)
class Wasserstein:
    """1-Wasserstein over a ground distance cost[n, n] between the values of the secret."""

    cost: Floats

    def __call__(self, p: Beliefs, q: Beliefs) -> Floats:
        """Solve one small transport problem a row."""
        import ot

        # the solver needs equal totals; beliefs sum to 1 only up to rounding
        pairs = zip(p / p.sum(axis=1, keepdims=True), q / q.sum(axis=1, keepdims=True), strict=True)
        return np.array([0.0 if np.array_equal(a, b) else float(ot.emd2(a, b, self.cost)) for a, b in pairs])


def _ordered_distance(context: Context, where: str) -> OrderedWasserstein:
    """Gaps are those of the middles of bins or of the numbers, if no given order contradicts these, else 1."""
    secret = context.schema.sensitive
    numbers = _numbers(secret.levels) if secret.middles is None else secret.middles
    if numbers is not None:
        gaps = np.diff(numbers)
        if (gaps >= 0).all() or (gaps <= 0).all():
            return OrderedWasserstein(np.abs(gaps))
    if not secret.has_order:
        raise InputError(
            f"{where}: ordered needs schema.sensitive.order or bins, or a sensitive column of numbers, and no category of "
            f"missing cells; {secret.name!r} has no order"
        )
    return OrderedWasserstein(np.ones(len(secret.levels) - 1))


def _numbers(levels: Sequence[str]) -> Floats | None:
    if not all(re.fullmatch(DECIMAL, level) for level in levels):
        return None
    numbers = np.array([float(level) for level in levels])
    return numbers if np.isfinite(numbers).all() else None


def _rank_distance(context: Context, where: str) -> OrderedWasserstein:
    secret = context.schema.sensitive
    if not secret.has_order and _numbers(secret.levels) is None:
        raise InputError(
            f"{where}: rank needs schema.sensitive.order or bins, or a sensitive column of numbers, and no category of missing "
            f"cells; {secret.name!r} has no order"
        )
    return OrderedWasserstein(np.ones(len(secret.levels) - 1))


def _hierarchy_distance(context: Context, where: str) -> TreeWasserstein:
    secret = context.schema.sensitive
    if secret.hierarchy is None:
        raise InputError(f"{where}: hierarchy needs schema.sensitive.hierarchy, which is not set")
    return TreeWasserstein.of(secret.hierarchy, secret.levels)


def _read_coordinates(context: Context, where: str, path: str) -> Floats:
    """Read lines value;latitude;longitude; return (n, n) great-circle distances in kilometres. Other places may be there."""
    import csv

    levels, shown = context.schema.sensitive.levels, public_url(path)
    reader = csv.reader(context.read(path, where).splitlines(), delimiter=";")
    found: dict[str, tuple[float, float]] = {}
    for row in reader:
        here = f"{where}: {shown}, line {reader.line_num}"
        if not row or (reader.line_num == 1 and row[1:] == ["latitude", "longitude"]):
            continue
        if len(row) != 3 or not all(re.fullmatch(DECIMAL, cell) for cell in row[1:]):
            raise InputError(f"{here}: expected value;latitude;longitude in decimal degrees")
        latitude, longitude = map(float, row[1:])
        if abs(latitude) > 90 or abs(longitude) > 180:
            raise InputError(f"{here}: latitude must be from -90 to 90 and longitude from -180 to 180")
        if found.setdefault(row[0], (latitude, longitude)) != (latitude, longitude):
            raise InputError(f"{here}: the value has two places", hidden=[row[0]])
    missing = [level for level in levels if level not in found]
    if missing:
        name = context.schema.sensitive.name
        raise InputError(f"{where}: {shown} misses {len(missing)} of the {len(levels)} values of {name!r}", hidden=missing)
    return great_circles(np.array([found[level] for level in levels]))


def great_circles(degrees: Floats) -> Floats:
    """Return (n, n) distances in kilometres between places given as latitude and longitude in degrees, on a sphere."""
    latitude, longitude = np.radians(degrees).T
    halves = [np.sin((angle[:, None] - angle) / 2) ** 2 for angle in (latitude, longitude)]
    chord = halves[0] + np.cos(latitude)[:, None] * np.cos(latitude) * halves[1]
    distances: Floats = 2 * EARTH_RADIUS * np.arcsin(np.sqrt(np.minimum(chord, 1.0)))
    return distances


def _read_costs(context: Context, where: str, path: str) -> Floats:
    """Read a CSV matrix whose first line and first column name the values."""
    import csv

    lines = [line for line in csv.reader(context.read(path, where).splitlines()) if line]
    path = public_url(path)
    names = lines[0][1:] if lines else []
    levels = context.schema.sensitive.levels
    if sorted(names) != sorted(levels) or [line[0] for line in lines[1:]] != names:
        raise InputError(
            f"{where}: {path} must name each of the {len(levels)} sensitive values once, alike in its first line and column"
        )
    if any(len(line) != len(names) + 1 for line in lines):
        raise InputError(f"{where}: {path} must be a square matrix of {len(names)} values")
    try:
        cost = np.array([[float(cell) for cell in line[1:]] for line in lines[1:]])
    except ValueError as error:
        raise InputError(f"{where}: {path} must hold numbers: {error}") from error
    if not np.isfinite(cost).all() or (cost < 0).any() or cost.diagonal().any() or (cost != cost.T).any():
        raise InputError(f"{where}: {path} must be symmetric, finite and non-negative with a zero diagonal")
    positions = [names.index(level) for level in levels]
    return cost[np.ix_(positions, positions)]


GROUNDS: dict[str, Callable[[Context, str], Distance]] = {
    "ordered": _ordered_distance,
    "rank": _rank_distance,
    "hierarchy": _hierarchy_distance,
}
GEOGRAPHIC = "geographic"


def _build_wasserstein(parameters: Mapping[str, Any], context: Context) -> Distance:
    where = f"{context.where}.distance.ground"
    ground, coordinates = parameters["ground"], parameters["coordinates"]
    if (ground == GEOGRAPHIC) != (coordinates is not None):
        problem = f"is missing: {GEOGRAPHIC} needs it" if coordinates is None else f"is for ground: {GEOGRAPHIC}"
        raise InputError(f"{context.where}.distance.coordinates {problem}")
    if coordinates is not None:
        return Wasserstein(_read_coordinates(context, f"{context.where}.distance.coordinates", coordinates))
    return GROUNDS[ground](context, where) if ground in GROUNDS else Wasserstein(_read_costs(context, where, ground))


def _make_kind(distance: Distance) -> Kind[Distance]:
    def build(_parameters: Mapping[str, Any], _context: Context) -> Distance:
        return distance

    return Kind(Record(), build)


SIMPLE: dict[str, Distance] = {
    "emd": partial(scaled_sum, scale=1.0),
    "tv": partial(scaled_sum, scale=0.5),
    "emd-v1": partial(scaled_sum, scale=0.25),
    "js": js,
    "kl": kl,
    "hellinger": hellinger,
    "max-ratio": max_ratio,
}
DISTANCES: Registry[Distance] = Registry(
    "dit_dask.distances",
    {name: _make_kind(distance) for name, distance in SIMPLE.items()}
    | {
        "wasserstein": Kind(
            Record(
                {
                    "ground": Field(
                        NameOrFile((*GROUNDS, GEOGRAPHIC)),
                        sweep=True,
                        file=True,
                        description="hierarchy, ordered, rank, geographic, or a CSV file with a labelled matrix",
                    ),
                    "coordinates": Field(
                        Text(), None, file=True, description="for geographic: a file of lines value;latitude;longitude"
                    ),
                }
            ),
            _build_wasserstein,
        )
    },
)
