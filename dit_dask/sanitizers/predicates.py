"""Which classes a sanitizer may publish: k-anonymity, l-diversity in three forms, t-closeness, alone and together.

Limits are compared exactly: t and c are read as decimal fractions, and counts are integers. Only entropies are not rational:
they are equal up to claims.ENTROPY_TOLERANCE.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.config.constraints import Choice, Field, Integer, ListOf, Number, OneOf, Record
from dit_dask.config.registry import Context, Tunable
from dit_dask.errors import InputError
from dit_dask.kernels import predicates as kernel
from dit_dask.sanitizers.claims import (
    ENTROPY_TOLERANCE,
    AllOf,
    Claim,
    EntropyDiversity,
    KAnonymity,
    LDiversity,
    RecursiveDiversity,
    TCloseness,
)
from dit_dask.values.numbers import DECIMAL

if TYPE_CHECKING:
    from dit_dask.values.arrays import Ints

DECIMALS = 9  # to which c and t are read
LARGEST_C = 10**6
GROUNDS = {"equal": kernel.EQUAL, "ordered": kernel.ORDERED}
GIVEN = ("k", "l", "entropy_l", "recursive_cl", "t")


@dataclass(frozen=True)
class Predicates:
    """What every class must satisfy; None is not asked for.

    For Mondrian: `strict`, k on both sides of a numeric split; `tighten`, numeric bounds are those of the records, for l alone.
    """

    k: int | None = None
    l: int | None = None  # noqa: E741 - the name of the parameter in the literature
    entropy_l: float | None = None
    recursive_cl: tuple[Fraction, int] | None = None
    t: Fraction | None = None
    ground: str = "equal"
    strict: bool = True
    tighten: bool = True

    @property
    def claim(self) -> Claim:
        """The same as a property to re-check."""
        claims: list[Claim] = [KAnonymity(self.k)] if self.k is not None else []
        claims += [LDiversity(self.l)] if self.l is not None else []
        claims += [EntropyDiversity(self.entropy_l)] if self.entropy_l is not None else []
        claims += [RecursiveDiversity(*self.recursive_cl)] if self.recursive_cl is not None else []
        claims += [TCloseness(self.t, self.ground == "ordered")] if self.t is not None else []
        return claims[0] if len(claims) == 1 else AllOf(tuple(claims))

    @property
    def need(self) -> int:
        """The records, or persons, that every valid class has at least."""
        tail = 1 if self.recursive_cl is None else self.recursive_cl[1]
        return max(self.k or 1, self.l or 1, math.ceil(self.entropy_l or 1), tail)

    @property
    def counts_secrets(self) -> bool:
        """Whether more than the size of a class matters."""
        return any(value is not None for value in (self.l, self.entropy_l, self.recursive_cl, self.t))

    def rule(self, totals: Ints, only: int = -1) -> kernel.Rule:
        """Return the rule for the kernels, in a table that has totals[n] of each secret.

        With `only`, the table without one record of that secret, which all targets have.
        """
        whole = totals.astype(np.int64)
        if only >= 0:
            whole[only] -= 1
        limits, total = np.zeros(kernel.LIMITS, np.int64), int(whole.sum())
        limits[kernel.LEAST_SIZE], limits[kernel.LARGEST_SHARE] = self.need, self.l or 0
        limits[kernel.ONLY], limits[kernel.TOTAL] = only, total
        logs = np.zeros(0, np.int64)
        if self.entropy_l is not None:
            limits[kernel.ENTROPY] = math.floor((math.log(self.entropy_l) - ENTROPY_TOLERANCE) * kernel.LOG_UNIT)
            logs = kernel.list_logs(int(totals.sum()))
        if self.recursive_cl is not None:
            c, tail = self.recursive_cl
            limits[kernel.TAIL] = tail
            limits[kernel.TAIL_WHOLE : kernel.TAIL_PARTS + 1] = _split(c)
        if self.t is not None:
            times = 2 if self.ground == "equal" else len(whole) - 1
            limits[kernel.GROUND] = GROUNDS[self.ground]
            limits[kernel.FAR_WHOLE : kernel.FAR_PARTS + 1] = _split(self.t * times * total)
        return self.need, self.counts_secrets, self.tighten if self.counts_secrets else self.strict, limits, whole, logs


def _split(number: Fraction) -> tuple[int, int, int]:
    """Return (whole, rest, parts): the number is whole + rest / parts."""
    whole, rest = divmod(number.numerator, number.denominator)
    return whole, rest, number.denominator


def to_fraction(number: float) -> Fraction:
    """Read a number as the decimal fraction that was meant."""
    return Fraction(f"{number:.{DECIMALS}f}")


TUNABLE = {
    "k": Tunable((2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 75, 100, 150, 200, 300), "persons"),
    "l": Tunable(tuple(range(2, 11)), "secrets"),
    "entropy_l": Tunable((1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0, 10.0), "secrets"),
    "t": Tunable((0.6, 0.5, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05)),
}
FIELDS = {
    "k": Field(Integer(2), None, sweep=True, description="records, or persons, in every class"),
    "l": Field(Integer(2), None, sweep=True, description="no sensitive value above a share of 1/l in any class"),
    "entropy_l": Field(
        Number(1),
        None,
        sweep=True,
        description="entropy of the sensitive values of every class at least that of l equal shares",
    ),
    "recursive_cl": Field(
        OneOf(
            [
                (dict, Record({"c": Field(Number(0)), "l": Field(Number(1))}, lambda **both: list(both.values()))),
                (list, ListOf(Number(0), 2)),
            ],
            "a mapping of c and l, or a list of both",
        ),
        None,
        description="c and l: in every class the most frequent value is rarer than c times all but the l - 1 most frequent",
    ),
    "t": Field(
        Number(0),
        None,
        sweep=True,
        description="the most that the distribution of sensitive values of a class is off the table's",
    ),
    "ground": Field(
        Choice(tuple(GROUNDS)),
        None,
        sweep=True,
        description="for t: equal, the default, is half the sum of differences; ordered counts steps along the order of values",
    ),
}


def build_predicates(parameters: Mapping[str, Any], context: Context) -> Predicates:
    """Check what is asked for against the table."""
    where = f"{context.where}.sanitizer"
    given = [key for key in GIVEN if parameters[key] is not None]
    if not given:
        raise InputError(f"{where}: {parameters['name']} needs at least one of {', '.join(GIVEN)}; got none")
    values = len(context.schema.sensitive.levels)
    recursive = _read_recursive(parameters["recursive_cl"], f"{where}.recursive_cl")
    wanted = {"entropy_l": parameters["entropy_l"]}
    if parameters["name"] != "mondrian":  # which publishes one class where no split is diverse, and breaks its claim
        wanted["l"] = parameters["l"]
    wanted |= {} if recursive is None else {"recursive_cl.l": recursive[1]}
    for key, number in wanted.items():
        if number is not None and number > values:
            name = context.schema.sensitive.name
            raise InputError(f"{where}.{key} must be at most the {values} values of {name}; got {number:g}")
    for key in ("k", "l"):
        if (parameters[key] or 0) > context.persons:
            counted = "rows" if context.persons == context.rows else "persons"
            raise InputError(f"{where}.{key} must be at most the table's {context.persons} {counted}; got {parameters[key]}")
    distance, ground = _read_t(parameters, context, where)
    entropy = None if parameters["entropy_l"] is None else float(parameters["entropy_l"])
    return Predicates(parameters["k"], parameters["l"], entropy, recursive, distance, ground)


def _read_recursive(given: list[float] | None, where: str) -> tuple[Fraction, int] | None:
    if given is None:
        return None
    if len(given) != 2:
        raise InputError(f"{where} must be c and l; got a list of {len(given)}")
    c, diversity = given
    if c > LARGEST_C or to_fraction(c) == 0:
        raise InputError(f"{where}.c must be a number from 1e-{DECIMALS} to {LARGEST_C:,}; got {c:g}")
    if diversity != int(diversity) or diversity < 2:
        raise InputError(f"{where}.l must be an integer >= 2; got {diversity:g}")
    return to_fraction(c), int(diversity)


def _read_t(parameters: Mapping[str, Any], context: Context, where: str) -> tuple[Fraction | None, str]:
    limit, ground = parameters["t"], parameters["ground"]
    if limit is None:
        if ground is not None:
            raise InputError(f"{where}.ground is for t, which is not given")
        return None, "equal"
    if limit > 1 or to_fraction(limit) == 0:
        raise InputError(f"{where}.t must be a number above 0 and at most 1; got {limit:g}")
    secret = context.schema.sensitive
    is_ordered = secret.has_order or all(re.fullmatch(DECIMAL, level) for level in secret.levels)
    if ground == "ordered" and not is_ordered:
        needed = "schema.sensitive.order or bins, or a sensitive column of numbers"
        raise InputError(f"{where}.ground: ordered needs {needed}; {secret.name!r} has no order")
    return to_fraction(limit), ground or "equal"
