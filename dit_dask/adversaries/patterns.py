"""What a TF-encoded release can teach: counts of secrets for each pattern of true and false."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.values.release import Release

if TYPE_CHECKING:
    from dit_dask.values.arrays import Codes, Floats, Ints

MOST_ATTRIBUTES = 62  # a pattern is a number of so many bits


@dataclass(frozen=True, eq=False)
class Patterns:
    """The training rows of a TF-encoded release, in its order, and the counts of equal ones.

    Row r is a secret present in a class: pattern[r] has bit a set where the class covers the target's attribute a, and
    weight[r] records have it. `distinct[p]` are the different patterns, ascending, and counts[p, n] their secrets.
    """

    attributes: int
    pattern: Ints
    secret: Ints
    weight: Ints
    distinct: Ints
    counts: Ints

    @classmethod
    def of(cls, release: Release, target: Codes) -> Patterns:
        """Encode a release relative to a target."""
        attributes = len(target)
        codes = release.covers(target) @ (1 << np.arange(attributes, dtype=np.int64))
        where, secret = np.nonzero(release.counts)
        order = np.argsort(codes, kind="stable")
        starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
        counts = np.add.reduceat(release.counts[order], starts)
        weight = release.counts[where, secret]
        return cls(attributes, codes[where], secret, weight, codes[order[starts]], counts)

    @property
    def target(self) -> int:
        """The pattern of the target itself: all ones."""
        return (1 << self.attributes) - 1

    @cached_property
    def target_counts(self) -> Ints:
        """Return (n,): the secrets of the records that cannot be told from the target."""
        has_target: bool = self.distinct[-1] == self.target
        return self.counts[-1] if has_target else np.zeros_like(self.counts[0])

    @cached_property
    def digest(self) -> bytes:
        """The fingerprint of the training rows."""
        content = hashlib.blake2b(str(self.counts.shape).encode(), digest_size=16)
        for part in (self.pattern, self.secret, self.weight):
            content.update(np.ascontiguousarray(part).data)
        return content.digest()

    def features(self, patterns: Ints) -> Floats:
        """Return (m, d): patterns as ones and zeros."""
        return ((patterns[:, None] >> np.arange(self.attributes)) & 1).astype(np.float64)

    def collapsed(self) -> tuple[Floats, Ints, Floats]:
        """Return features, secrets and weights of the different training rows."""
        where, secret = np.nonzero(self.counts)
        return self.features(self.distinct[where]), secret, self.counts[where, secret].astype(np.float64)

    def repeated(self) -> tuple[Floats, Ints]:
        """Return features and secrets of every record."""
        return self.features(np.repeat(self.pattern, self.weight)), np.repeat(self.secret, self.weight)
