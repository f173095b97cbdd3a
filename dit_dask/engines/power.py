"""Power: the largest distance that a test could have shown on this table, by the planted person.

One more person is added to the table, which is published raw. The attainable distance of a test is the largest distance of that
person over candidates: every q of the table, and one that nobody has, each with every value of the secret. A gate whose number
is not below it could not have failed.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from dit_dask import seeds
from dit_dask.adversaries import Adversary, is_counted
from dit_dask.adversaries.bernoulli_nb import BernoulliNB
from dit_dask.adversaries.conditional_frequency import ConditionalFrequency
from dit_dask.adversaries.narrowest_class import NarrowestClass
from dit_dask.adversaries.prior import Prior
from dit_dask.adversaries.published_tables import PublishedTables
from dit_dask.distances import Distance, scaled_sum
from dit_dask.encoders import Encoder
from dit_dask.engines.gain import CHANGED, Shift, join_shifts, shift
from dit_dask.errors import InputError
from dit_dask.sanitizers.raw import Raw, is_first_of_tuple
from dit_dask.values.table import Table, collapse

if TYPE_CHECKING:
    from dit_dask.values.arrays import Codes, Floats, Ints

BLOCK_CELLS = 2**21  # beliefs that are held at a time
MOST_CELLS = 2**25  # counts of secrets by tuple
SAMPLED, WORST = 2_000, 200  # candidates of a distance that has no closed form
TRAINED, TRAINED_WORST = 12, 12  # candidates of an adversary that must be trained for each


@dataclass(frozen=True)
class Attainable:
    """What the planted person reaches: the largest distance and who found it, the largest gain, whether a prediction changes.

    Distance and gain are the largest over candidates and adversaries; the prediction is that of the adversary with the largest
    distance, as in a test. `candidates` says how many planted persons were tried; `is_sampled`, that there are more.
    Adversaries that must be trained are not examined where others are there.
    """

    distance: float
    gain: float
    changes_prediction: bool
    adversary: str
    candidates: int
    is_sampled: bool


@dataclass(frozen=True, eq=False)
class RawCounts:
    """A raw table as naive Bayes sees it: the distinct q, the rows of each secret, and those with each value.

    tuples[u, d], with one more at the end that nobody has, if there is one; sizes[n]; coverage[a][v, n].
    """

    tuples: Codes
    sizes: Ints
    coverage: list[Ints]

    @classmethod
    def of(cls, table: Table) -> RawCounts:
        """Count a table's rows."""
        secrets, levels = len(table.schema.sensitive.levels), [len(one.levels) for one in table.schema.quasi_identifiers]
        tuples = table.codes[is_first_of_tuple(table)]
        sizes = np.bincount(table.secret, table.weights, secrets).astype(np.int64)
        cells = [codes.astype(np.int64) * secrets + table.secret for codes in table.codes.T]
        coverage = [  # sums of weights below 2^53 are exact as floats
            np.bincount(cell, table.weights, count * secrets).astype(np.int64).reshape(count, secrets)
            for cell, count in zip(cells, levels, strict=True)
        ]
        return cls(np.concatenate([tuples, _nobody(tuples, coverage)]), sizes, coverage)

    def log_scores(self, tuples: Codes) -> tuple[Floats, Floats]:
        """Return (m, n) each: the logarithm of a secret's score, and of its score after a person (q, secret) was added."""
        with np.errstate(divide="ignore"):
            before, after = (np.tile(np.log(sizes), (len(tuples), 1)) for sizes in (self.sizes, self.sizes + 1))
        for attribute, held in enumerate(self.coverage):  # logarithms are taken once for each value, not for each tuple
            code = tuples[:, attribute]
            before += (np.log(held + 1.0) - np.log(self.sizes + 2.0))[code]
            after += (np.log(held + 2.0) - np.log(self.sizes + 3.0))[code]
        return before, after

    def blocks(self) -> Iterator[slice]:
        """Cut the tuples into blocks."""
        size = max(1, BLOCK_CELLS // len(self.sizes))
        for start in range(0, len(self.tuples), size):
            yield slice(start, min(start + size, len(self.tuples)))


def _nobody(tuples: Codes, coverage: Sequence[Ints]) -> Codes:
    """Return (1, d): the rarest combination of values of the table that no record has; (0, d) if all occur."""
    rarest = []
    for held in coverage:
        rows = held.sum(axis=1)
        present = np.flatnonzero(rows)
        rarest.append(present[np.argsort(rows[present], kind="stable")].tolist())
    for combination in islice(itertools.product(*rarest), len(tuples) + 1):
        if not (tuples == combination).all(axis=1).any():
            return np.array([combination], tuples.dtype)
    return tuples[:0]


@dataclass(frozen=True, eq=False)
class Candidates:
    """Planted persons: the row of RawCounts.tuples of each, and its secret."""

    tuple_of: Ints
    secret: Ints

    def __len__(self) -> int:
        return len(self.secret)


def attainable(
    table: Table,
    adversaries: Mapping[str, Adversary],
    encoder: Encoder,
    distance: Distance,
    seed: int,
    prior: Prior | None = None,
) -> Attainable:
    """Plant persons and return the largest distance that any adversary reaches, and the largest gain, maybe of another one."""
    if table.ids is not None:  # row by row: the raw table has each distinct record once
        table = collapse(table.schema, table.codes, table.secret)[0]
    counts = RawCounts.of(table)
    closed = {
        name: CLOSED_FORMS[type(one)]
        for name, one in adversaries.items()
        if type(one) in CLOSED_FORMS and is_counted(one, encoder)
    }
    if closed:
        forms = {name: _with_prior(form(table, counts), prior) for name, form in closed.items()}
        reached = [_reach_closed(name, form, distance, seed) for name, form in forms.items()]
    else:
        trained = _Trained(encoder, prior, table, counts)
        reached = [_reach_trained(name, one, trained, distance, seed) for name, one in adversaries.items()]
    best = max(reached, key=lambda one: one.distance)
    return replace(best, gain=max(one.gain for one in reached))


@dataclass(frozen=True, eq=False)
class NaiveBayes:
    """Beliefs about planted persons of Bernoulli naive Bayes on the raw table."""

    counts: RawCounts

    def beliefs(self, candidates: Candidates) -> tuple[Floats, Floats]:
        """Return (m, n) beliefs with and without each person."""
        before, after = self.counts.log_scores(self.counts.tuples[candidates.tuple_of])
        with_person, everyone = before.copy(), np.arange(len(candidates))
        with_person[everyone, candidates.secret] = after[everyone, candidates.secret]
        return _normalise(with_person), _normalise(before)

    def own_beliefs(self, block: slice) -> tuple[Floats, Floats]:
        """Return (m, n): the belief in each secret of a person who has it, with and without that person."""
        before, after = self.counts.log_scores(self.counts.tuples[block])
        peak = np.maximum(before, after).max(axis=1, keepdims=True)
        before, after = np.exp(before - peak), np.exp(after - peak)
        total = before.sum(axis=1, keepdims=True)
        return after / (total - before + after), before / total


@dataclass(frozen=True, eq=False)
class ClassShares:
    """Beliefs about planted persons by the share of each secret in their own tuple, or in the table if nobody has it."""

    counts: RawCounts
    held: Ints  # [u, n]; a tuple that nobody has holds none

    @classmethod
    def of(cls, table: Table, counts: RawCounts) -> ClassShares:
        """Count the secrets of every tuple; of very many tuples only the rarest, where one more person counts most."""
        tuple_of = np.unique(table.codes, axis=0, return_inverse=True)[1].ravel()
        rows = np.bincount(tuple_of, table.weights, len(counts.tuples))
        kept = np.sort(np.argsort(rows, kind="stable")[: max(1, MOST_CELLS // len(counts.sizes))])
        place = np.full(len(rows), -1)
        place[kept] = np.arange(len(kept))
        held, chosen = np.zeros((len(kept), len(counts.sizes)), np.int64), place[tuple_of] >= 0
        np.add.at(held, (place[tuple_of[chosen]], table.secret[chosen]), table.weights[chosen])
        return cls(replace(counts, tuples=counts.tuples[kept]), held)

    def beliefs(self, candidates: Candidates) -> tuple[Floats, Floats]:
        """Return (m, n) beliefs with and without each person."""
        held = self.held[candidates.tuple_of]
        without = np.where(held.any(axis=1, keepdims=True), held, self.counts.sizes)
        with_person = held.copy()
        with_person[np.arange(len(candidates)), candidates.secret] += 1
        return with_person / with_person.sum(axis=1, keepdims=True), without / without.sum(axis=1, keepdims=True)

    def own_beliefs(self, block: slice) -> tuple[Floats, Floats]:
        """Return (m, n): the belief in each secret of a person who has it, with and without that person."""
        held = self.held[block]
        size = held.sum(axis=1, keepdims=True)
        without = np.where(size > 0, held / np.maximum(size, 1), self.counts.sizes / self.counts.sizes.sum())
        return (held + 1.0) / (size + 1.0), without


@dataclass(frozen=True, eq=False)
class Weighed:
    """Beliefs about planted persons together with what is known before."""

    form: NaiveBayes | ClassShares
    prior: Prior

    @property
    def counts(self) -> RawCounts:
        """Those of the beliefs."""
        return self.form.counts

    def beliefs(self, candidates: Candidates) -> tuple[Floats, Floats]:
        """Return (m, n) beliefs with and without each person."""
        with_person, without = self.form.beliefs(candidates)
        codes = self.counts.tuples[candidates.tuple_of]
        return self.prior.weigh(with_person, codes), self.prior.weigh(without, codes)

    def own_beliefs(self, block: slice) -> tuple[Floats, Floats]:
        """Return (m, n): the belief in each secret of a person who has it, with and without that person."""
        own, without = self.form.own_beliefs(block)
        weights, _ = self.prior.weights(self.counts.tuples[block])
        weighed = without * weights
        others = weighed.sum(axis=1, keepdims=True) - weighed
        with np.errstate(divide="ignore", invalid="ignore"):  # other beliefs fall alike, to nothing where there were none
            others = np.where(without < 1, others * (1 - own) / (1 - without), 0.0)
        return own * weights / (own * weights + others), weighed / weighed.sum(axis=1, keepdims=True)


def _with_prior(form: NaiveBayes | ClassShares, prior: Prior | None) -> ClosedForm:
    return form if prior is None else Weighed(form, prior)


ClosedForm = NaiveBayes | ClassShares | Weighed
CLOSED_FORMS: dict[type, Callable[[Table, RawCounts], NaiveBayes | ClassShares]] = {
    BernoulliNB: lambda _table, counts: NaiveBayes(counts),
    ConditionalFrequency: ClassShares.of,
    NarrowestClass: ClassShares.of,  # classes of a raw table are disjoint
    PublishedTables: ClassShares.of,  # a raw table is one table of all columns
}


def _normalise(log_scores: Floats) -> Floats:
    scores = np.exp(log_scores - log_scores.max(axis=1, keepdims=True))
    beliefs: Floats = scores / scores.sum(axis=1, keepdims=True)
    return beliefs


def _reach_closed(name: str, form: ClosedForm, distance: Distance, seed: int) -> Attainable:
    """Search all candidates where the distance is a sum of differences, else a sample and the worst by that sum."""
    counts = form.counts
    candidates = len(counts.tuples) * len(counts.sizes)
    scale = distance.keywords["scale"] if isinstance(distance, partial) and distance.func is scaled_sum else None
    tried = worst_candidates(form, counts, WORST)  # their own belief rises, all others fall alike: a sum is twice the rise
    if scale is None:
        tried = _join([tried, sample_candidates(counts, min(SAMPLED, candidates), seed)])
    found = _compare(form, tried, distance)
    is_sampled = scale is None and len(tried) < candidates
    return _best(name, found, len(tried) if is_sampled else candidates, is_sampled=is_sampled)


def worst_candidates(form: ClosedForm, counts: RawCounts, number: int) -> Candidates:
    """The candidates whose own belief rises most, of all."""
    best = [(np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64))]
    for block in counts.blocks():
        with_person, without = form.own_beliefs(block)
        rise = (with_person - without).ravel()
        chosen = np.argpartition(-rise, min(number, len(rise)) - 1)[:number]
        best.append((rise[chosen], block.start + chosen // len(counts.sizes), chosen % len(counts.sizes)))
    rises, tuples, secrets = (np.concatenate(parts) for parts in zip(*best, strict=True))
    order = np.lexsort((secrets, tuples, -rises))[:number]
    return Candidates(tuples[order], secrets[order])


def sample_candidates(counts: RawCounts, number: int, seed: int) -> Candidates:
    """A seeded sample of candidates."""
    rng, secrets = seeds.stream(seed, "planted persons", number), len(counts.sizes)
    chosen = np.sort(rng.choice(len(counts.tuples) * secrets, number, replace=False))
    return Candidates(chosen // secrets, chosen % secrets)


def _join(parts: list[Candidates]) -> Candidates:
    return Candidates(np.concatenate([one.tuple_of for one in parts]), np.concatenate([one.secret for one in parts]))


def _compare(form: ClosedForm, tried: Candidates, distance: Distance) -> Shift:
    size = max(1, BLOCK_CELLS // len(form.counts.sizes))
    parts = []
    for start in range(0, len(tried), size):
        block = Candidates(tried.tuple_of[start : start + size], tried.secret[start : start + size])
        parts.append(shift(*form.beliefs(block), block.secret.astype(np.int32), distance))
    return join_shifts(parts)


def _best(name: str, found: Shift, candidates: int, *, is_sampled: bool) -> Attainable:
    changes = bool((found.marks & CHANGED).any())
    return Attainable(float(found.distance.max()), float(found.gain.max()), changes, name, candidates, is_sampled)


@dataclass(frozen=True, eq=False)
class _Trained:
    """What adversaries that must be trained learn from."""

    encoder: Encoder
    prior: Prior | None
    table: Table
    counts: RawCounts


def _reach_trained(name: str, adversary: Adversary, trained: _Trained, distance: Distance, seed: int) -> Attainable:
    """Train the adversary with and without a few planted persons: some at random, and the worst for naive Bayes."""
    table, counts = trained.table, trained.counts
    everyone = len(counts.tuples) * len(counts.sizes)
    sampled = sample_candidates(counts, min(TRAINED, everyone), seed)
    tried = _join([worst_candidates(NaiveBayes(counts), counts, TRAINED_WORST), sampled])
    sides = np.empty((2, len(tried), len(counts.sizes)))
    rng = np.random.default_rng(0)  # the raw table draws nothing
    for place, (row, secret) in enumerate(zip(tried.tuple_of, tried.secret, strict=True)):
        target = counts.tuples[row]
        planted = collapse(
            table.schema,
            np.concatenate([np.repeat(table.codes, table.weights, axis=0), target[None]]),
            np.append(np.repeat(table.secret, table.weights), secret).astype(np.int32),
        )[0]
        with warnings.catch_warnings():  # what an adversary warns of is noted where it is tested
            warnings.simplefilter("ignore")
            for side, one in enumerate((planted, table)):
                sides[side, place] = adversary.beliefs(Raw().release(one, rng), trained.encoder, target)
    if not np.isfinite(sides).all():
        raise InputError("the adversary returned beliefs that are not numbers")
    if trained.prior is not None:
        sides = np.stack([trained.prior.weigh(side, counts.tuples[tried.tuple_of]) for side in sides])
    found = shift(sides[0], sides[1], tried.secret.astype(np.int32), distance)
    return _best(name, found, len(tried), is_sampled=len(tried) < everyone)


def attainable_counts(table: Table, scale: float, name: str) -> Attainable:
    """Plant persons into published counts without noise: p = (1 + c) / (n + S) of the person's tuple of S rows."""
    held = ClassShares.of(table, RawCounts.of(table)).held
    secrets = held.shape[1]
    size = held.sum(axis=1, keepdims=True)
    before = (held + 1.0) / (secrets + size)
    rise = (held + 2.0) / (secrets + size + 1.0) - before
    changes = bool((held + 1 > held.max(axis=1, keepdims=True)).any()) and secrets > 1
    gain = float(rise.max())
    return Attainable(2 * scale * gain, gain, changes, name, held.size, is_sampled=False)
