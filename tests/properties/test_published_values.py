"""Random generalised values in every notation, held against membership tested one level at a time."""

from __future__ import annotations

import csv
import datetime
import io
import string
from fractions import Fraction
from itertools import product
from typing import Any

import hypothesis
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dit_dask.errors import InputError
from dit_dask.sanitizers.external.published_values import Reader, parse_mapping
from dit_dask.values.hierarchy import flat, parse
from dit_dask.values.schema import Attribute
from tests.audits import loaded

unhurried = hypothesis.settings(deadline=None)
INTEGERS = st.integers(-120, 120)
NUMBERS = st.one_of(INTEGERS, st.decimals(-120, 120, places=2).map(str).map(Fraction))
DAYS = st.dates(datetime.date(1850, 1, 1), datetime.date(2200, 1, 1))


def attribute_of(values: list[Any], kind: str = "numeric") -> Attribute:
    """Load the attribute through the front door; the second secret is only there to be guessed."""
    frame = pd.DataFrame({"x": [*values, values[0]], "s": ["a"] * len(values) + ["b"]})
    schema = {"quasi_identifiers": {"x": {"kind": kind}}, "sensitive": "s"}
    return loaded(frame, schema).table.schema.quasi_identifiers[0]


def covered(attribute: Attribute, value: object) -> set[Any]:
    reading = Reader(attribute)(value)
    return {level for level, covers in zip(attribute.levels, reading.covers, strict=True) if covers}


def refusal(attribute: Attribute, value: object) -> str:
    """The error that a value ends in."""
    with pytest.raises(InputError) as caught:
        Reader(attribute)(value)
    return str(caught.value)


def numeric(*levels: Any, unit: str | None = None) -> Attribute:
    return Attribute("x", "numeric", tuple(levels), np.arange(len(levels), dtype=float), unit=unit)


def labelled(*labels: str) -> Attribute:
    return Attribute("x", "categorical", labels, None, flat(labels))


def spellings(number: Any) -> list[str]:
    """Ways to write one number or day."""
    if isinstance(number, datetime.date):
        return [number.isoformat(), f"{number.year:04}/{number.month}/{number.day}", f" {number.isoformat()} "]
    if number == int(number):
        return [str(int(number)), f"{int(number)}.0", f"{int(number)}e0", f" {int(number)}", f"{int(number) * 10}e-1"]
    cents = number * 100
    return [f"{float(number):.2f}", f"{float(number):.3f}", f"{int(cents)}e-2"]


@st.composite
def written(draw: st.DrawFn, number: Any) -> str:
    return draw(st.sampled_from(spellings(number)))


@st.composite
def intervals(draw: st.DrawFn, ends: st.SearchStrategy[Any]) -> tuple[str, Any]:
    """A text and the test of membership that it must mean; an end may be infinite."""
    low, high = sorted((draw(ends), draw(ends)))
    first, last = draw(written(low)), draw(written(high))
    from_low, to_high = draw(st.booleans()), draw(st.booleans())

    def inside(value: Any) -> bool:
        return (low <= value if from_low else low < value) and (value <= high if to_high else value < high)

    shape = draw(st.sampled_from(["brackets", "bare", "below", "above", "unbounded"]))
    if shape == "brackets":
        opening = "[" if from_low else draw(st.sampled_from("(]"))
        closing = "]" if to_high else draw(st.sampled_from(")["))
        mark = draw(st.sampled_from([",", ", ", ";", "-", " - ", "~", " to ", "–"]))
        return f"{opening}{first}{mark}{last}{closing}", inside
    if shape == "bare":
        mark = draw(st.sampled_from([",", "-", " - ", "~", " to "]))
        return f"{first}{mark}{last}", lambda value: low <= value <= high
    if shape == "below":
        sign = draw(st.sampled_from(["<=", "≤", "<= ", "=<"] if to_high else ["<", "< "]))
        return f"{sign}{last}", lambda value: value <= high if to_high else value < high
    if shape == "above":
        sign = draw(st.sampled_from([">=", "≥", ">= ", "=>"] if from_low else [">", "> "]))
        return f"{sign}{first}", lambda value: low <= value if from_low else low < value
    infinite = draw(st.sampled_from(["inf", "∞", "Inf", "+inf"]))
    return f"{'[' if from_low else '('}{first}, {infinite})", lambda value: low <= value if from_low else low < value


@unhurried
@given(st.lists(INTEGERS, min_size=1, max_size=30), intervals(NUMBERS))
def test_an_interval_covers_exactly_the_integers_inside(values: list[int], interval: tuple[str, Any]) -> None:
    text, inside = interval
    assert covered(attribute_of(values), text) == {value for value in values if inside(value)}


@unhurried
@given(st.lists(st.integers(-12000, 12000), min_size=1, max_size=30), intervals(NUMBERS))
def test_an_interval_covers_exactly_the_decimals_inside(cents: list[int], interval: tuple[str, Any]) -> None:
    text, inside = interval
    exact = {cent / 100 + 0.0: Fraction(cent, 100) for cent in cents}
    assert covered(attribute_of(list(exact)), text) == {value for value, decimal in exact.items() if inside(decimal)}


@unhurried
@given(st.lists(DAYS, min_size=1, max_size=20), intervals(DAYS), st.booleans())
def test_an_interval_covers_exactly_the_days_inside(
    values: list[datetime.date], interval: tuple[str, Any], as_text: bool
) -> None:
    text, inside = interval
    column = [day.isoformat() for day in values] if as_text else values
    days = sorted(set(values))
    covers = Reader(attribute_of(column))(text).covers
    assert [day for day, hit in zip(days, covers, strict=True) if hit] == [day for day in days if inside(day)]


@unhurried
@given(st.lists(INTEGERS, min_size=1, max_size=30), intervals(NUMBERS))
def test_labels_that_are_numbers_have_the_same_intervals(values: list[int], interval: tuple[str, Any]) -> None:
    text, inside = interval
    hypothesis.assume("~" not in text)  # there it joins sets
    labels = {str(value) for value in values}
    assert covered(attribute_of(sorted(labels), "categorical"), text) == {label for label in labels if inside(int(label))}


@unhurried
@given(st.lists(INTEGERS, min_size=1, max_size=30), st.data())
def test_a_set_of_numbers_covers_its_members_or_their_nearest_levels(values: list[int], data: st.DataObject) -> None:
    members = data.draw(st.lists(NUMBERS, min_size=1, max_size=5))
    texts = [data.draw(written(member)) for member in members]
    mark = data.draw(st.sampled_from([",", ", ", ";"]))
    expected = set()
    for member in members:
        gap = min(abs(value - member) for value in values)
        expected |= {value for value in values if abs(value - member) == gap}
    attribute = attribute_of(values)
    for value in (f"{{{mark.join(texts)}}}", texts, set(texts), f"{{{', '.join(map(repr, texts))}}}"):
        assert covered(attribute, value) == expected
        assert Reader(attribute)(value).nearest == any(member not in values for member in members)
    if len(members) == 1:
        assert covered(attribute, texts[0]) == expected


@unhurried
@given(st.lists(st.integers(-1200, 120000), min_size=1, max_size=40), st.text("0123456789*", min_size=2, max_size=6))
def test_a_mask_of_digits_covers_the_integers_of_its_length(values: list[int], mask: str) -> None:
    hypothesis.assume("*" in mask)

    def fits(value: int) -> bool:
        digits = f"{value:0{len(mask)}d}" if mask[0] == "0" else str(value)
        return len(digits) == len(mask) and all(m in ("*", d) and d.isdigit() for m, d in zip(mask, digits, strict=True))

    assert covered(attribute_of(values), mask) == {value for value in values if fits(value)}


WORDS = st.text(string.ascii_letters + " -.éß", min_size=1, max_size=6).filter(lambda word: word == word.strip())


@unhurried
@given(st.lists(WORDS, min_size=1, max_size=8, unique_by=str.casefold), st.data())
def test_a_set_of_labels_covers_its_members_in_every_notation(labels: list[str], data: st.DataObject) -> None:
    hypothesis.assume(not {"NA", "NaN", "nan", "NaT", "None", "NULL", "null"} & set(labels))
    attribute = attribute_of(labels, "categorical")
    members = data.draw(st.lists(st.sampled_from(labels), min_size=2, max_size=5))
    mark = data.draw(st.sampled_from([",", ", ", ";", "~", " ; "]))
    opening, closing = data.draw(st.sampled_from(["{}", "[]", "()", ("", ""), ("frozenset({", "})")]))
    for value in (
        f"{opening}{mark.join(members)}{closing}",
        members,
        set(members),
        str(members),
        str(set(members)),
        tuple(members),
    ):
        assert covered(attribute, value) == set(members)


@unhurried
@given(
    st.lists(st.text("ab1*", min_size=1, max_size=4), min_size=1, max_size=8, unique=True),
    st.text("ab1*", min_size=1, max_size=5),
)
def test_a_mask_of_characters_covers_labels_of_its_length_or_else_those_it_begins(labels: list[str], mask: str) -> None:
    hypothesis.assume("*" in mask and mask.strip("*") and mask not in labels)
    same = {
        label for label in labels if len(label) == len(mask) and all(m in ("*", c) for m, c in zip(mask, label, strict=True))
    }
    begun = {label for label in labels if len(label) > len(mask) and label[: len(mask) - 1] == mask[:-1]}
    expected = same or (begun if mask.count("*") == 1 and mask[-1] == "*" else set())
    attribute = attribute_of(labels, "categorical")
    if expected:
        assert covered(attribute, mask) == expected
    else:
        with pytest.raises(InputError):
            Reader(attribute)(mask)


TRAPS = st.text("abAB *{}[](),;~-<>=≥+0125.'\"\\eé∞", min_size=1, max_size=5)


@unhurried
@given(st.lists(TRAPS, min_size=1, max_size=8, unique=True))
def test_every_label_stands_for_itself_however_it_looks(labels: list[str]) -> None:
    tree = flat(labels)
    reader = Reader(Attribute("x", "categorical", tree.leaves, None, tree))
    for code, label in enumerate(labels):
        reading = reader(label)
        assert reading.covers.nonzero()[0].tolist() == [code]
        assert not reading.suppressed


@unhurried
@given(st.lists(TRAPS, min_size=2, max_size=8, unique=True), TRAPS)
def test_relabelling_leaves_in_another_order_changes_no_reading(labels: list[str], value: str) -> None:
    def read(order: list[str]) -> object:
        try:
            return covered(Attribute("x", "categorical", flat(order).leaves, None, flat(order)), value)
        except InputError as error:
            return str(error)

    assert read(labels) == read(labels[::-1])


def cuts(text: str, mark: str) -> list[list[str]]:
    """All ways to cut a text at some of its marks."""
    pieces = text.split(mark)
    ways = []
    for chosen in product([False, True], repeat=len(pieces) - 1):
        members = [pieces[0]]
        for cut, piece in zip(chosen, pieces[1:], strict=True):
            if cut:
                members.append(piece)
            else:
                members[-1] += mark + piece
        ways.append([member.strip() for member in members])
    return ways


@unhurried
@given(
    st.lists(st.text("aab,,;~ ", min_size=1, max_size=5).filter(str.strip), min_size=1, max_size=6, unique_by=str.strip),
    st.text("aab,,;~ ", min_size=1, max_size=8).filter(str.strip),
    st.sampled_from(["{}", "[]", "()", ("", "")]),
)
def test_separators_inside_labels_are_no_obstacle_while_all_cuts_agree(labels: list[str], body: str, around: Any) -> None:
    known = {label.strip(): label for label in labels}
    found = {
        frozenset(known[member] for member in way)
        for mark in ",;~"
        for way in cuts(body.strip(), mark)
        if all(member in known for member in way)
    }
    if around == ("", "") and body.strip() in known:
        found = {frozenset({known[body.strip()]})}  # a label wins over a set
    attribute = labelled(*labels)
    text = f"{around[0]}{body}{around[1]}"
    if len(found) == 1:
        assert covered(attribute, text) == next(iter(found))
    else:
        assert ("in more than one way" in refusal(attribute, text)) == (len(found) > 1)


@unhurried
@given(st.lists(WORDS, min_size=1, max_size=6, unique_by=str.casefold), st.data())
def test_a_node_covers_the_leaves_below_it_alone_and_in_sets(words: list[str], data: st.DataObject) -> None:
    groups = [data.draw(st.integers(0, 2)) for _ in words]
    lines = "".join(f'"{word}";node {group}!;*\n' for word, group in zip(words, groups, strict=True))
    tree = parse(lines, "tree.csv")
    attribute = Attribute("x", "categorical", tree.leaves, None, tree)
    below = {group: {word for word, other in zip(words, groups, strict=True) if other == group} for group in groups}
    for group, leaves in below.items():
        assert covered(attribute, f"node {group}!") == leaves
        assert covered(attribute, f"{{{words[0]}, node {group}!}}") == leaves | {words[0]}
    assert covered(attribute, "*") == set(words)


DOMAINS = [
    numeric(-3, 0, 5, 20),
    numeric(-0.5, 0.1, 1e300),
    numeric(0, 10**15, 10**18, unit="ns"),
    numeric(-(10**17), 10**15, unit="us"),
    labelled("1", "02", "3.5"),
    labelled("a", "a,b", "b", "<=5", "{c}", "d~e"),
]
PIECES = st.sampled_from(
    [
        *"[](){}<>≤≥=+-–−,;~*'\"\\ \n\0",
        "inf",
        "∞",
        "to",
        "20",
        "-5",
        "1e",
        "9999",
        "2001-05",
        "-03",
        "T10:00",
        "Z",
        "+99",
        "a",
        "b",
        "nan",
        "٣",
        "²",
    ]
)
NOISE = st.one_of(st.text(max_size=30), st.lists(PIECES, max_size=12).map("".join))


@hypothesis.settings(unhurried, max_examples=400)
@given(st.sampled_from(DOMAINS), NOISE)
def test_any_text_is_read_or_refused_in_one_line(attribute: Attribute, value: str) -> None:
    reader = Reader(attribute)
    try:
        reading = reader(value)
    except InputError:
        assert refusal(attribute, value).isprintable()
    else:
        assert reading.covers.shape == (len(attribute.levels),)
        assert reader(value) is reading
        np.testing.assert_array_equal(reader(f" {value}\t").covers, reading.covers)


STRANGE = [pd.NA, pd.NaT, pd.Interval(0, 1), np.float32(1), np.datetime64("NaT"), pd.Series([1]), object, ...]
SINGLE = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(), st.decimals(), st.complex_numbers(), st.fractions()),
    *(st.dates(), st.datetimes(), st.times(), st.timedeltas(), st.uuids(), st.binary(max_size=5), st.text(max_size=5)),
    st.sampled_from(STRANGE),
)
OBJECTS = st.recursive(
    SINGLE,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.tuples(inner), st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=4,
)


@unhurried
@given(st.sampled_from(DOMAINS), OBJECTS)
def test_any_object_is_read_or_refused_in_one_line(attribute: Attribute, value: object) -> None:
    try:
        assert Reader(attribute)(value).covers.shape == (len(attribute.levels),)
    except InputError:
        assert refusal(attribute, value).isprintable()


@pytest.mark.parametrize("attribute", DOMAINS, ids=range(len(DOMAINS)))
@pytest.mark.parametrize(
    "seed",
    [
        "1",
        "-",
        "{",
        "'",
        "{'a'",
        "a,",
        "{a,",
        "*",
        "a*",
        "<",
        "[",
        " ",
        "1,",
        "{1,",
        "~",
        "\\",
        "to",
        "9-",
        "é",
        "{'\\",
        "a,b,",
    ],
)
def test_a_megabyte_of_garbage_is_refused_without_a_search(attribute: Attribute, seed: str) -> None:
    """The test suite would not end if any form tried all cuts of it."""
    long = seed * (1_000_000 // len(seed)) + "!"
    with pytest.raises(InputError) as caught:
        Reader(attribute)(long)
    assert len(str(caught.value)) < 600


CELLS = st.text(max_size=6)


@unhurried
@given(st.lists(st.tuples(CELLS, CELLS, st.lists(CELLS, min_size=1, max_size=3)), max_size=6))
def test_a_mapping_file_gives_back_what_a_csv_writer_wrote(rows: list[tuple[str, str, list[str]]]) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=";", lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(
        [column, published, *originals] for column, published, originals in rows
    )
    expected: dict[str, dict[str, list[str]]] = {}
    for column, published, originals in rows:
        expected.setdefault(column, {})[published] = originals
    valid = rows and all(column and all(originals) for column, _, originals in rows)
    if valid and len(rows) == sum(map(len, expected.values())):
        assert parse_mapping(text.getvalue(), "map.csv") == expected
    else:
        with pytest.raises(InputError, match=r"^map\.csv"):
            parse_mapping(text.getvalue(), "map.csv")


@unhurried
@given(st.text(max_size=60))
def test_any_mapping_text_is_read_or_refused_in_one_line(text: str) -> None:
    try:
        assert parse_mapping(text, "map.csv")
    except InputError:
        with pytest.raises(InputError) as caught:
            parse_mapping(text, "map.csv")
        assert str(caught.value).isprintable()
