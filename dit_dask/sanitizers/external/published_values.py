"""Parses published values: each one becomes the set of original values that it covers."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dit_dask.errors import InputError
from dit_dask.sanitizers.external.scale import LONGEST_NUMBER, MalformedError, Scale, Span, parse_fraction
from dit_dask.values.arrays import Bools
from dit_dask.values.hierarchy import ROOT, Hierarchy, flat
from dit_dask.values.schema import Attribute

CACHE_BYTES = 2**26  # of readings that one reader keeps
MAX_QUOTED = 60  # characters of an unreadable value
NULLS = frozenset({"", "NA", "<NA>", "NaN", "nan", "NaT", "None", "NULL", "null"})
DASHES = str.maketrans("–−", "--")  # the en dash and the minus sign
DATE_MASK = re.compile(r"[0-9*]{4}(?:-[0-9*]{2}){0,2}")
NUMBER_MASK = re.compile(r"-?[0-9*]+")
QUOTED = re.compile(r"""'([^'\\]*(?:\\.[^'\\]*)*)'|"([^"\\]*(?:\\.[^"\\]*)*)\"""", re.DOTALL)
GAP = re.compile(r"\s*[,;~]?\s*")
AMBIGUOUS = "it can be cut into labels in more than one way"
BELOW, ABOVE = {"<=": True, "=<": True, "≤": True, "<": False}, {">=": True, "=>": True, "≥": True, ">": False}
BRACES = {"frozenset({": "})", "{": "}"}
BRACKETS = {"[": "]", "c(": ")", "(": ")"}  # lists of Python, vectors of R, tuples

READ_AS = {"ordinal": "categorical"}  # names in an order


@dataclass(frozen=True, eq=False)
class Reading:
    """What one published value says about an attribute; `covers` has one entry per level and must not be written to."""

    covers: Bools
    suppressed: bool  # the value was the suppression mark itself, or null
    nearest: bool  # a number outside the domain, read as the nearest level or levels


class Reader:
    """Reads the published values of one attribute and caches the readings: values repeat over thousands of releases."""

    def __init__(self, attribute: Attribute, mapping: Mapping[str, Sequence[str]] | None = None) -> None:
        self._name = attribute.name
        self._domain = _build_domain(attribute)
        self._forms = FORMS["date" if attribute.unit else READ_AS.get(attribute.kind, attribute.kind)]
        self._cache: dict[str, Reading] = {}
        self._cache_size = max(256, CACHE_BYTES // len(attribute.levels))
        self._mapped = {published: self._read_mapped(published, originals) for published, originals in (mapping or {}).items()}

    def __call__(self, value: object) -> Reading:
        """Read one cell: text, a number, a date, an interval, a null, or a collection of them."""
        if isinstance(value, list | tuple | set | frozenset | np.ndarray):
            return self._read_collection(list(value.flat) if isinstance(value, np.ndarray) else list(value))
        text = value if type(value) is str else self._format(value)
        mapped = self._mapped.get(text) or self._mapped.get(text.strip())
        if mapped is not None:
            return mapped
        reading = self._cache.get(text)
        if reading is None:
            reading = self._read(text)
            if len(self._cache) >= self._cache_size:
                self._cache.clear()
            self._cache[text] = reading
        return reading

    def _read_mapped(self, published: str, originals: Sequence[str]) -> Reading:
        """Read the originals of a mapped value; they are not looked up in the mapping again."""
        if not originals:
            raise InputError(f"column {self._name!r}: the mapping lists no original value for {_quote(published)}")
        return _unite(self._read(original, f" that the mapping lists for {_quote(published)}") for original in originals)

    def _read_collection(self, members: Sequence[object]) -> Reading:
        if not members or any(isinstance(member, list | tuple | set | frozenset | np.ndarray) for member in members):
            raise InputError(f"column {self._name!r}: a published collection must hold single values, at least one")
        return _unite(self(member) for member in members)

    def _format(self, value: object) -> str:
        """Write a value as a file would hold it, null as the empty text."""
        import pandas as pd

        try:
            return "" if pd.isna(value) is True else str(value)  # type: ignore[call-overload]
        except Exception as error:  # integers of thousands of digits, signalling NaNs, any error of a third-party object
            raise InputError(f"column {self._name!r}: cannot convert to text a published {type(value).__name__}") from error

    def _read(self, text: str, where: str = "") -> Reading:
        """Try an exact label first, then each form."""
        names = self._domain.names
        if names is not None and text in names.exact:
            return self._domain.reading([names.exact[text]])
        cause = ""
        try:
            for form in self._forms:
                reading = form.read(self._domain, text.strip())
                if reading is not None:
                    return reading
        except MalformedError as error:
            cause = f" ({error})"
        *most, last = (form.shown for form in self._forms)
        shown, hidden = (f"the published value {_quote(text)}{where}", ()) if where else ("a published value", (text,))
        raise InputError(
            f"column {self._name!r}: cannot read {shown}{cause}; "
            f"expected {', '.join(most)} or {last}; a mapping file (key mapping) can say what other values cover",
            hidden=hidden,
        )


def parse_mapping(text: str, where: str) -> dict[str, dict[str, list[str]]]:
    """Read lines `column;published value;original value[;…]`, whose originals may be any accepted form."""
    mapping: dict[str, dict[str, list[str]]] = {}
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=";")
    try:
        for row in filter(None, reader):
            line = f"{where}, line {reader.line_num}"
            if len(row) < 3 or not row[0]:
                raise InputError(
                    f"{line}: expected column;published value;original value[;original value…]; got {len(row)} cells"
                )
            column, published, *originals = row
            if "" in originals:
                raise InputError(f"{line}: the published value {_quote(published)} has an empty original value")
            if published in mapping.setdefault(column, {}):
                raise InputError(f"{line}: the published value {_quote(published)} of column {column!r} is listed twice")
            mapping[column][published] = originals
    except csv.Error as error:
        raise InputError(f"{where}, line {reader.line_num}: {error}") from error
    if not mapping:
        raise InputError(
            f"{where}: the mapping is empty; expected lines column;published value;original value[;original value…]"
        )
    return mapping


class _Names:
    """The labels of a categorical attribute and of its hierarchy, as slices of codes."""

    def __init__(self, hierarchy: Hierarchy) -> None:
        nodes = zip(hierarchy.names, hierarchy.low, hierarchy.high, strict=True)
        self.exact = {name: slice(int(low), int(high) + 1) for name, low, high in nodes}
        root = hierarchy.names[0]
        if not root.strip(ROOT):
            del self.exact[root]  # the mark of suppression, or the nameless root of a flat hierarchy
        self.labels = [label.strip() for label in hierarchy.leaves]
        self.alike = _keep_unambiguous((name.strip().casefold(), codes) for name, codes in self.exact.items())
        numbers = ((parse_fraction(label), slice(code, code + 1)) for code, label in enumerate(hierarchy.leaves))
        self.numbers = _keep_unambiguous((number, codes) for number, codes in numbers if number is not None)
        self.inside = {mark: max(name.count(mark) for name in self.exact) for mark in ",;~"}

    def find(self, text: str) -> slice | None:
        """Find the label written exactly so, else the only one that differs in case, outer space or as number text."""
        return self.exact.get(text) or self.alike.get(text.casefold()) or self.numbers.get(parse_fraction(text))

    def split(self, body: str, mark: str) -> Bools | None:
        """Return (labels,): whether covered, if cut at a mark that labels may hold; raise MalformedError if cuts differ."""
        pieces = body.split(mark)
        reached = {0: np.zeros(len(self.labels), bool)}
        disputed: set[int] = set()
        for start in range(len(pieces)):
            covers = reached.pop(start, None)
            longest = min(len(pieces), start + 1 + self.inside[mark])
            for stop in range(start + 1, longest + 1) if covers is not None else ():
                codes = self.find(mark.join(pieces[start:stop]).strip())
                if covers is not None and codes is not None:
                    longer = covers.copy() if self.inside[mark] else covers
                    longer[codes] = True
                    earlier = reached.setdefault(stop, longer)
                    if start in disputed or (earlier is not longer and not np.array_equal(earlier, longer)):
                        disputed.add(stop)
        if len(pieces) in disputed:
            raise MalformedError(AMBIGUOUS)
        return reached.get(len(pieces))


@dataclass(frozen=True, eq=False)
class _Domain:
    """What an attribute's values can be read as: points on a scale, names, or (labels that are all numbers) both."""

    size: int
    scale: Scale | None
    names: _Names | None

    def reading(self, pieces: Iterable[Any], *, suppressed: bool = False, nearest: bool = False) -> Reading:
        """Cover the codes in any of the pieces."""
        covers = np.zeros(self.size, bool)
        for codes in pieces:
            covers[codes] = True
        covers.setflags(write=False)
        return Reading(covers, suppressed, nearest)


def _build_domain(attribute: Attribute) -> _Domain:
    levels, size = attribute.levels, len(attribute.levels)
    if attribute.kind == "numeric":
        return _Domain(size, Scale(levels, np.arange(size), attribute.unit), None)
    numbers = [parse_fraction(str(level)) for level in levels]
    scale = None
    if None not in numbers:
        order = sorted(range(size), key=lambda code: numbers[code] or 0)
        scale = Scale([numbers[code] for code in order], np.array(order))
    return _Domain(size, scale, _Names(attribute.hierarchy or flat([str(level) for level in levels])))


def _keep_unambiguous(named: Iterable[tuple[Any, slice]]) -> dict[Any, slice]:
    """Keep the names that have one meaning, and no empty one."""
    ranges: dict[Any, set[tuple[int, int]]] = {}
    for name, codes in named:
        ranges.setdefault(name, set()).add((codes.start, codes.stop))
    return {name: slice(*next(iter(all_codes))) for name, all_codes in ranges.items() if len(all_codes) == 1 and name != ""}


def _unite(readings: Iterable[Reading]) -> Reading:
    first, *others = readings
    covers = first.covers.copy()
    for other in others:
        covers |= other.covers
    covers.setflags(write=False)
    members = [first, *others]
    return Reading(covers, all(member.suppressed for member in members), any(member.nearest for member in members))


def _quote(text: str) -> str:
    return repr(text if len(text) <= MAX_QUOTED else text[: MAX_QUOTED - 1] + "…")


def _split_quoted(body: str) -> list[str] | None:
    """Return the members of 'a', "b" as Python, NumPy and R print them."""
    members, start = [], 0
    while start < len(body):
        match = QUOTED.match(body, start)
        if match is None:
            return None
        members.append(re.sub(r"\\(.)", r"\1", match[1] or match[2] or "", flags=re.DOTALL))
        start = GAP.match(body, match.end()).end()  # type: ignore[union-attr]
    return members


def _strip_brackets(text: str, wrappers: Mapping[str, str]) -> str | None:
    for opening, closing in wrappers.items():
        if text.startswith(opening) and text.endswith(closing) and len(text) >= len(opening) + len(closing):
            return text[len(opening) : -len(closing)].strip()
    return None


def _read_suppression(domain: _Domain, text: str) -> Reading | None:
    """`*`, nothing, or null; all stars where labels are masked (for numbers they count digits)."""
    stars = text == ROOT or (domain.names is not None and not text.strip(ROOT))
    return domain.reading([slice(None)], suppressed=True) if stars or text in NULLS else None


def _read_label(domain: _Domain, text: str) -> Reading | None:
    codes = domain.names.find(text) if domain.names else None
    return None if codes is None else domain.reading([codes])


def _read_points(domain: _Domain, texts: Sequence[str]) -> Reading | None:
    """Read numbers or dates, each as its level or else the nearest."""
    scale = domain.scale
    spans = [scale.span(text) for text in dict.fromkeys(texts)] if scale else []
    if scale is None or not spans or None in spans:
        return None
    exact = [scale.between(span, span) for span in spans if span]
    nearest = [scale.nearest(span) for span, codes in zip(spans, exact, strict=True) if span and not len(codes)]
    return domain.reading(exact + nearest, nearest=bool(nearest))


def _read_point(domain: _Domain, text: str) -> Reading | None:
    return _read_points(domain, [text.translate(DASHES)])


def _read_interval(domain: _Domain, text: str) -> Reading | None:
    return _read_half_line(domain, text) or _read_between(domain, text)


def _read_half_line(domain: _Domain, text: str) -> Reading | None:
    """`<45`, `≥ 45`, and `45+`."""
    scale = domain.scale
    if scale is None:
        return None
    text = f">={text[:-1]}" if text.endswith("+") else text
    sign = next((sign for sign in (*BELOW, *ABOVE) if text.startswith(sign)), None)
    span = scale.span(text[len(sign) :].translate(DASHES)) if sign else None
    if sign is None or span is None:
        return None
    if sign in BELOW:
        return domain.reading([scale.between((-np.inf, -np.inf), span, (True, BELOW[sign]))])
    return domain.reading([scale.between(span, (np.inf, np.inf), (ABOVE[sign], True))])


def _read_between(domain: _Domain, text: str) -> Reading | None:
    """`[20, 30)`, `]20, 30[`, `[20-29]`, and without brackets `20-30`, both ends closed."""
    scale = domain.scale
    if scale is None or not 3 <= len(text) <= 2 * LONGEST_NUMBER:
        return None
    bracketed = text[0] in "[(]" and text[-1] in "])["
    closed = (text[0] == "[", text[-1] == "]") if bracketed else (True, True)
    body = (text[1:-1] if bracketed else text).translate(DASHES)
    alone = scale.span(body) if bracketed and all(closed) else None
    # in a categorical column ~ joins the members of a set; a bare 20;30 could be either
    marks = [mark for mark in (",", ";", "~", "to") if (mark != ";" or bracketed) and (mark != "~" or domain.names is None)]
    ends = (alone, alone) if alone else _split_ends(scale, body, marks)
    return None if ends is None else domain.reading([scale.between(*ends, closed)])


def _split_ends(scale: Scale, body: str, marks: Sequence[str]) -> tuple[Span, Span] | None:
    """Cut at the separator, or at the one hyphen that leaves two numbers or dates."""
    mark = next((mark for mark in marks if mark in body), "-")
    cuts = [match.span() for match in re.finditer(re.escape(mark), body)]
    pairs = [(scale.bound(body[:start]), scale.bound(body[stop:])) for start, stop in cuts]
    complete = [(low, high) for low, high in pairs if low is not None and high is not None]
    return complete[0] if len(complete) == 1 else None


def _read_number_set(domain: _Domain, text: str) -> Reading | None:
    """`{20, 25}`; lists in brackets are left out, because two of their members would read as an interval."""
    body = _strip_brackets(text, BRACES)
    if body is None:
        return None
    return _read_points(domain, _split_quoted(body) or re.split("[,;]", body.translate(DASHES)))


def _read_label_set(domain: _Domain, text: str) -> Reading | None:
    """`{France, Germany}`, `['a' 'b']`, `France~Germany`: every way to cut it must give the same labels."""
    names = domain.names
    if names is None:
        return None
    bodies = {text: False, _strip_brackets(text, BRACKETS): False, _strip_brackets(text, BRACES): True}
    readings = []
    for body, braces in bodies.items():
        if body:
            quoted = [names.find(member.strip()) for member in _split_quoted(body) or [""]]
            # where labels are numbers, brackets and commas make intervals
            marks = ",;~" if braces or domain.scale is None else "~"
            cuts = [names.split(body, mark) for mark in marks]
            readings += [domain.reading(quoted)] * all(quoted) + [domain.reading([cut]) for cut in cuts if cut is not None]
    if any(not np.array_equal(readings[0].covers, other.covers) for other in readings):
        raise MalformedError(AMBIGUOUS)
    return readings[0] if readings else None


def _read_number_mask(domain: _Domain, text: str) -> Reading | None:
    """`2*` is 20 to 29, `012**` is 1200 to 1299 as a code of five digits, `2001-05-**` is a month."""
    scale = domain.scale
    form = DATE_MASK if scale and scale.unit else NUMBER_MASK
    if scale is None or ROOT not in text or len(text) > LONGEST_NUMBER or not form.fullmatch(text):
        return None
    fits = re.compile(re.escape(text).replace(r"\*", "[0-9]")).fullmatch
    padded = len(text) if text.startswith("0") else 0
    texts = [level[: len(text)] if scale.unit else level.zfill(padded) for level in scale.texts]
    return domain.reading([scale.codes[index] for index, level in enumerate(texts) if fits(level)])


def _read_label_mask(domain: _Domain, text: str) -> Reading | None:
    """`355**`, one character per star; `2*` also any longer label, where none of its own length fits."""
    labels = domain.names.labels if domain.names else []
    if ROOT not in text or len(text) > max(map(len, labels), default=0):
        return None
    fits = re.compile(re.escape(text).replace(r"\*", "."), re.DOTALL).fullmatch
    codes = [code for code, label in enumerate(labels) if len(label) == len(text) and fits(label)]
    if not codes and text.find(ROOT) == len(text) - 1:
        codes = [code for code, label in enumerate(labels) if len(label) > len(text) and label.startswith(text[:-1])]
    return domain.reading([codes]) if codes else None


class _Form(NamedTuple):
    """A way to write a generalised value, and how errors show it."""

    shown: str
    read: Callable[[_Domain, str], Reading | None]


FORMS = {
    "numeric": (
        _Form("a number", _read_point),
        _Form("an interval ([20, 30), 20-30, <45, ≥45)", _read_interval),
        _Form("a set ({20, 25})", _read_number_set),
        _Form("*", _read_suppression),
        _Form("a mask (2*)", _read_number_mask),
    ),
    "date": (
        _Form("a date (2001-12-31, 2001-12, 2001)", _read_point),
        _Form("an interval ([2001-01-01, 2002-01-01), 2001-2005, <2001-07)", _read_interval),
        _Form("a set ({2001-01-01, 2003-01-01})", _read_number_set),
        _Form("*", _read_suppression),
        _Form("a mask (2001-12-**)", _read_number_mask),
    ),
    "categorical": (
        _Form("a label of the table or the hierarchy", _read_label),
        _Form("*", _read_suppression),
        _Form("an interval where all labels are numbers ([20, 30), <45)", _read_interval),
        _Form("a set ({France, Germany}, France~Germany)", _read_label_set),
        _Form("a mask (355**)", _read_label_mask),
    ),
}
