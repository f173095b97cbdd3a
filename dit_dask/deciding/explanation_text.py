"""Explanations as lines for a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from dit_dask.deciding.explanation import AGREEMENT, BeliefShift, ClassSize, Explanation
from dit_dask.deciding.splits import GONE, NEW, OTHER_CUT, SplitChange
from dit_dask.errors import escape_text
from dit_dask.reporting.text import NOTHING, number


def explanation_lines(found: Sequence[Explanation]) -> Iterator[str]:
    """Several lines for each person, those that say most first."""
    for place, one in enumerate(found, 1):
        shared = f", {one.multiplicity:,} persons have these values" if one.multiplicity > 1 else ""
        rows = f", {one.rows:,} rows of this person" if one.rows > 1 else ""
        yield f"{place}. record {one.record} (row {one.row}{rows}{shared}): d {number(one.distance)}, found by {one.adversary}"
        if one.values is not None:
            yield escape_text("   values: " + ", ".join(f"{name}={value}" for name, value in one.values.items()))
        yield f"   class with them: {_size(one.with_person)}; without them: {_size(one.without_person)}"
        yield f"   split: {_split(one.split)}"
        yield f"   belief in the true value: {'; '.join(map(_belief, one.beliefs))}"
        yield escape_text(f"   one level coarser: {_coarser(one)}{_skipped(one)}")
        yield f"   left out: delta of the others {_rest(one)}"


def explanation_sentences(found: Sequence[Explanation]) -> list[str]:
    """One text for each person, for a report."""
    persons: list[list[str]] = []
    for line in explanation_lines(found):
        if line.startswith(" "):
            persons[-1].append(line.strip())
        else:
            persons.append([line.partition(" ")[2]])
    return ["; ".join(lines) for lines in persons]


def _size(size: ClassSize) -> str:
    persons = NOTHING if size.persons is None else f"{size.persons:,}"
    values = "1 sensitive value" if size.values == 1 else f"{size.values:,} sensitive values"
    narrowest = f" (the narrowest of {size.covering:,} classes that cover them)" if size.covering > 1 else ""
    return f"{size.rows:,} {'row' if size.rows == 1 else 'rows'}, {persons} persons, {values}{narrowest}"


def _split(split: SplitChange | None) -> str:
    if split is None:
        return "none changes on the way to their rows, or the release has no split tree"
    texts = {
        OTHER_CUT: f"{split.attribute} is cut at another value without them",
        GONE: f"{split.attribute} is not split there without them",
        NEW: f"{split.attribute_without} is split there without them, with them nothing is",
    }
    otherwise = f"{split.attribute} with them, {split.attribute_without} without them"
    return escape_text(f"level {split.level}: {texts.get(split.change, otherwise)}")


def _belief(one: BeliefShift) -> str:
    sides = "" if one.belief is None else f"{number(one.belief_without)} without them, {number(one.belief)} with them, "
    return f"{one.adversary} {sides}gain {number(one.gain)}, d {number(one.distance)}"


def _coarser(one: Explanation) -> str:
    if not one.coarser:
        return "no attribute can be coarser"
    best, left = next(iter(one.coarser.items()))
    others = ", ".join(f"{name} {number(distance)}" for name, distance in list(one.coarser.items())[1:])
    if left >= one.distance:
        return f"no attribute lowers d ({best} {number(left)}{', ' if others else ''}{others})"
    return f"{best} lowers d most, to {number(left)}" + (f" ({others})" if others else "")


def _skipped(one: Explanation) -> str:
    return "".join(f"; {name} was not tried: {reason}" for name, reason in one.skipped.items())


def _rest(one: Explanation) -> str:
    if one.delta_without is None:
        return "not computed: it would take too many releases"
    if math.isclose(one.delta_without, one.delta, rel_tol=AGREEMENT):
        return f"stays {number(one.delta)}"
    word = "falls" if one.delta_without < one.delta else "rises"
    return f"{word} from {number(one.delta)} to {number(one.delta_without)}"
