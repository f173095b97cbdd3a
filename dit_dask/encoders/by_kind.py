"""Encodings of generalised values by the kind of attribute: six for continuous, four for categorical ones.

All but TF say the same about a published value whoever the target is, so a model that learned from them holds for every target.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.config.registry import Context, Kind
from dit_dask.encoders.names import AFTER, BEFORE, NAMES, record_of
from dit_dask.encoders.quantiles import offsets, quantile_of
from dit_dask.encoders.tf import TF
from dit_dask.errors import InputError
from dit_dask.values.release import Difference, Release
from dit_dask.values.schema import Attribute

if TYPE_CHECKING:
    from dit_dask.values.arrays import Bools, Codes, Floats, Ints

DAYS = {"ns": 86_400 * 10**9, "us": 86_400 * 10**6}
MOST_CELLS = 2**27  # features of all classes together


@dataclass(frozen=True, eq=False)
class Features:
    """One attribute of a release: classes[c, f], and the (f,) features of a target with some code.

    They are 0 or 1, or fractions from 0 to 1. Where features of a class depend on all classes, as numbers of categories do,
    by_category[categories, f] are those of each category.
    """

    classes: Floats
    target: Callable[[int], Floats]
    are_fractions: bool = False
    categories: Categories | None = None
    by_category: Floats | None = None


Fit = Callable[[Release], Features]


@dataclass(frozen=True, eq=False)
class Interval:
    """A continuous attribute, published as intervals: its place, its scale, and which config key asks for the encoding."""

    place: int
    name: str
    offsets: Floats
    where: str

    def ends(self, release: Release) -> tuple[Floats, Floats]:
        """Return (classes,) each: the ends of what is published, from the smallest value on."""
        low, high, is_range = release.published.ends(self.place)
        if not is_range.all():
            raise InputError(
                f"{self.where} needs intervals; the sanitizer publishes sets of {self.name!r} that leave out values between "
                f"their ends, in {np.count_nonzero(~is_range):,} of {len(low):,} classes ({AFTER} and tf encode any set)"
            )
        return self.offsets[low], self.offsets[high]

    @property
    def width(self) -> float:
        """The width of the domain; 1 where there is one value only."""
        return float(self.offsets[-1]) or 1.0


def fit_scaling(interval: Interval, release: Release) -> Features:
    """The middle of an interval, from 0 to 1 over the domain."""
    low, high = interval.ends(release)
    classes = (low + (high - low) / 2) / interval.width
    return Features(classes[:, None], lambda code: interval.offsets[code : code + 1] / interval.width, are_fractions=True)


def fit_bounds(interval: Interval, release: Release) -> Features:
    """Both ends of an interval, from 0 to 1 over the domain."""
    classes = np.column_stack(interval.ends(release)) / interval.width
    return Features(classes, lambda code: np.repeat(interval.offsets[code], 2) / interval.width, are_fractions=True)


def fit_bits(interval: Interval, release: Release) -> Features:
    """The whole part of the middle of an interval, above the smallest value, in binary."""
    low, high = interval.ends(release)
    count = max(1, int(interval.offsets[-1]).bit_length())
    classes = to_bits(low + (high - low) / 2, count)
    return Features(classes, lambda code: to_bits(interval.offsets[code : code + 1], count)[0])


def to_bits(numbers: Floats, count: int) -> Floats:
    """Return (m, count): the whole parts of numbers in binary, the highest bit first; a quotient by a power of 2 is exact."""
    bits: Floats = np.floor(np.ldexp(numbers[:, None], -np.arange(count - 1, -1, -1))) % 2
    return bits


def fit_quantiles(place: int, quantile: Codes, release: Release) -> Features:
    """One for each quantile that the published value meets."""
    count = int(quantile.max()) + 1
    identity = np.eye(count)
    low, high, is_range = release.published.ends(place)
    number = np.arange(count)
    classes = ((quantile[low][:, None] <= number) & (number <= quantile[high][:, None])).astype(np.float64)
    if not is_range.all():
        value, covers = release.published.coverage(place, len(quantile))
        met = (covers.astype(np.int64) @ identity[quantile].astype(np.int64) > 0).astype(np.float64)
        classes[~is_range] = met[value[~is_range]]
    return Features(classes, lambda code: identity[quantile[code]])


def fit_hot(place: int, levels: int, where: str, release: Release) -> Features:
    """One for each original value that the published one covers."""
    if len(release.counts) * levels > MOST_CELLS:
        raise InputError(f"{where}: {len(release.counts):,} classes with {levels:,} features each are too many for hot")
    value, covers = release.published.coverage(place, levels)

    def encode(code: int) -> Floats:
        features = np.zeros(levels)
        features[code] = 1
        return features

    return Features(covers.astype(np.float64)[value], encode)


@dataclass(frozen=True, eq=False)
class Categories:
    """The published values of an attribute as new categories: that of each class, and covers[categories, levels].

    They are in the order of their sizes, those of equal size in that of their codes.
    """

    number: Ints
    covers: Bools

    @classmethod
    def of(cls, release: Release, place: int, levels: int) -> Categories:
        """Number the values in use."""
        value, covers = release.published.coverage(place, levels)
        used, number = np.unique(value, return_inverse=True)
        covers = covers[used]
        sizes, bits = np.count_nonzero(covers, axis=1), ~np.packbits(covers, axis=1)
        order = sorted(range(len(used)), key=lambda one: (sizes[one], bits[one].tobytes()))
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        return cls(rank[number.ravel()], covers[order])

    def number_new(self, release: Release, difference: Difference, place: int) -> Ints | None:
        """Number the values of new classes; None if a removal makes a category, or removes the last class of one."""
        value, covers = release.published.coverage(place, self.covers.shape[1])
        number = np.array([self.known.get(covered.tobytes(), -1) for covered in covers], np.int64)[value]
        if (number < 0).any():
            return None
        count = len(self.covers)
        left = self.sizes - np.bincount(self.number[difference.gone], minlength=count) + np.bincount(number, minlength=count)
        return number if left.all() else None

    @cached_property
    def known(self) -> dict[bytes, int]:
        """The number of each category by what it covers."""
        return {covered.tobytes(): number for number, covered in enumerate(self.covers)}

    @cached_property
    def sizes(self) -> Ints:
        """Return (categories,): how many classes have each."""
        return np.bincount(self.number, minlength=len(self.covers))

    def of_code(self, code: int) -> int:
        """The first of the smallest categories that cover an original value; -1 if none does."""
        covering = self.covers[:, code]
        return int(covering.argmax()) if covering.any() else -1


def fit_hot_after(place: int, levels: int, release: Release) -> Features:
    """One for the published value itself; none for a target whose value nothing covers."""
    categories = Categories.of(release, place, levels)
    rows = np.concatenate([np.eye(len(categories.covers)), np.zeros((1, len(categories.covers)))])
    classes = rows[categories.number]
    return Features(classes, lambda code: rows[categories.of_code(code)], categories=categories, by_category=rows)


def fit_ordinals(place: int, levels: int, release: Release) -> Features:
    """The number of the published value, from 1 on, in binary; 0 for a target whose value nothing covers."""
    categories = Categories.of(release, place, levels)
    count = len(categories.covers).bit_length()
    rows = to_bits(np.append(np.arange(1.0, len(categories.covers) + 1), 0.0), count)
    classes = rows[categories.number]
    return Features(classes, lambda code: rows[categories.of_code(code)], categories=categories, by_category=rows)


@dataclass(frozen=True, eq=False)
class EncodingByKind:
    """One encoding for each quasi-identifier; those without one are TF."""

    name: str
    fits: tuple[Fit | None, ...]

    @property
    def is_relative(self) -> bool:
        """Whether features depend on the target."""
        return None in self.fits

    def classes(self, release: Release, target: Codes) -> Floats:
        """Return (classes, f), the attributes in their order."""
        parts = [None if one is None else one.classes for one in _fitted(self, release)]
        if not self.is_relative:
            return np.concatenate([part for part in parts if part is not None], axis=1)
        covers = release.covers(target).astype(np.float64)
        return np.concatenate([covers[:, [place]] if part is None else part for place, part in enumerate(parts)], axis=1)

    def target(self, release: Release, target: Codes) -> Floats:
        """Return (f,)."""
        parts = zip(_fitted(self, release), target.tolist(), strict=True)
        return np.concatenate([np.ones(1) if one is None else one.target(code) for one, code in parts])

    def fractions(self, release: Release) -> Bools:
        """Return (f,): which features are fractions; the others are 0 or 1."""
        parts = _fitted(self, release)
        return np.concatenate([[False] if one is None else [one.are_fractions] * one.classes.shape[1] for one in parts])

    def changes(self, release: Release) -> tuple[Floats, Floats] | None:
        """Encode the classes that are gone, and the new ones; None if that is unknown or other classes change."""
        difference = release.difference
        if difference is None or self.is_relative:
            return None
        new, gone_parts, new_parts = release.only(difference.new), [], []
        for place, (fit, known) in enumerate(zip(self.fits, _fitted(self, difference.base), strict=True)):
            if fit is None or known is None:
                return None
            gone_parts.append(known.classes[difference.gone])
            if known.categories is None or known.by_category is None:
                new_parts.append(fit(new).classes)
            elif (number := known.categories.number_new(new, difference, place)) is not None:
                new_parts.append(known.by_category[number])
            else:
                return None
        return np.concatenate(gone_parts, axis=1), np.concatenate(new_parts, axis=1)


@lru_cache(maxsize=2)
def _fitted(encoder: EncodingByKind, release: Release) -> Sequence[Features | None]:
    """Encode a release once for all its targets, and for all adversaries of a panel."""
    return [None if fit is None else fit(release) for fit in encoder.fits]


def _fit_continuous(encoding: str, place: int, keys: Mapping[str, Any], context: Context) -> Fit | None:
    attribute = context.schema.quasi_identifiers[place]
    if encoding == AFTER:
        if context.table is None:
            raise TypeError("quantiles are those of a table")
        return partial(fit_quantiles, place, quantile_of(context.table, place, keys["quantiles"], keys["cut"]))
    where = f"{context.where}.encoder: {encoding}"
    if encoding == "binary":
        days = DAYS.get(attribute.unit or "", 1)
        return partial(fit_bits, Interval(place, attribute.name, offsets(attribute) / days, where))
    fits = {"scaling": fit_scaling, "bounds": fit_bounds}
    return partial(fits[encoding], Interval(place, attribute.name, offsets(attribute), where)) if encoding in fits else None


def _fit_categorical(encoding: str, place: int, context: Context) -> Fit | None:
    levels = len(context.schema.quasi_identifiers[place].levels)
    fits: dict[str, Fit] = {
        "hot": partial(fit_hot, place, levels, f"{context.where}.encoder"),
        "hot-after": partial(fit_hot_after, place, levels),
        "binary": partial(fit_ordinals, place, levels),
    }
    return fits.get(encoding)


def build(keys: Mapping[str, Any], context: Context) -> TF | EncodingByKind:
    """Choose the encoding of each attribute by its kind; where all are TF it is that."""
    continuous, categorical = NAMES[keys["name"]]

    def fit(place: int, attribute: Attribute) -> Fit | None:
        if attribute.values is None or continuous == BEFORE:
            return _fit_categorical(categorical, place, context)
        return _fit_continuous(continuous, place, keys, context)

    fits = tuple(fit(place, attribute) for place, attribute in enumerate(context.schema.quasi_identifiers))
    return EncodingByKind(keys["name"], fits) if any(fits) else TF()


KINDS: dict[str, Kind[TF | EncodingByKind]] = {name: Kind(record_of(name), build) for name in NAMES if name != "tf"}
