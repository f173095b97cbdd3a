"""What the columns of an unknown table seem to be: their kind, marks of missing cells, and the evidence for it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dit_dask.config.schema import AttributeConfig, HierarchyRule
from dit_dask.errors import InputError
from dit_dask.inputs.dates import parse_dates
from dit_dask.inputs.dialect import COMMA_DECIMAL, Dialect
from dit_dask.values.numbers import DECIMAL, INTEGER
from dit_dask.values.schema import MIN_DISCLOSED_COUNT

if TYPE_CHECKING:
    import pandas as pd

MARKS = ("?", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "#N/A", "-", "--", ".", "k.A.", "n.a.")
NEAR_UNIQUE = 0.9  # of the rows have a value of their own: the column names people
MOST_CATEGORIES = 500
MOST_LISTED = 100  # categories of a hierarchy file
SCALES = (
    "never rarely sometimes often always",
    "never seldom sometimes often always",
    "nie selten manchmal oft immer",
    "none mild moderate severe",
    "low medium high",
    "niedrig mittel hoch",
    "poor fair good excellent",
    "strongly disagree|disagree|neutral|agree|strongly agree",
    "very dissatisfied|dissatisfied|neutral|satisfied|very satisfied",
)
PAIRS = ({"yes", "no"}, {"ja", "nein"}, {"true", "false"}, {"y", "n"}, {"j", "n"}, {"t", "f"}, {"0", "1"}, {"oui", "non"})
POSTCODE = r"(?i).*(zip|post_?code|postal|plz|postleitzahl).*"
DIAGNOSIS = r"[A-Z]\d{2}(\.[0-9A-Z]{1,4})?"
CODE = r"[A-Z]{0,2}\d{3,8}"


@dataclass(frozen=True)
class ColumnDraft:
    """A column: what it seems to be, why, and why it cannot be a quasi-identifier, if it cannot."""

    name: str
    attribute: AttributeConfig
    evidence: str
    distinct: int
    unique: float
    rare: int = 0
    marks: tuple[str, ...] = ()
    left_out: str = ""
    labels: tuple[str, ...] = field(default=(), repr=False)
    missing: int = 0

    @property
    def is_number(self) -> bool:
        """Whether the values are numbers."""
        return self.attribute.kind == "numeric"


def draft_column(name: str, cells: pd.Series[Any], dialect: Dialect | None) -> ColumnDraft:
    """Guess what a column is."""
    marks = _find_marks(cells, dialect)
    present = cells[~(cells.isna() | cells.astype(str).isin(["", *marks]))]
    counts = present.value_counts()
    distinct, rows = len(counts), max(len(present), 1)
    unique = float((counts == 1).sum()) / rows
    if distinct < 2:
        return ColumnDraft(name, AttributeConfig("categorical"), "", distinct, unique, left_out="it has fewer than 2 values")
    attribute, evidence = _guess_attribute(name, present, counts, dialect)
    rare = int((counts < MIN_DISCLOSED_COUNT).sum())
    labels = tuple(sorted(map(str, counts.index))) if attribute.kind == "categorical" and distinct <= MOST_LISTED else ()
    left_out = _reason_to_leave_out(name, attribute, present, unique, distinct)
    missing = len(cells) - len(present)
    return ColumnDraft(name, attribute, evidence, distinct, unique, rare, tuple(marks), left_out, labels, missing)


def _find_marks(cells: pd.Series[Any], dialect: Dialect | None) -> list[str]:
    """Known marks that the column has, and a text that ten or more rows of a column of numbers share."""
    if cells.dtype.kind in "iufbM":
        return []
    counts = cells.dropna().astype(str).value_counts()
    marks = [mark for mark in MARKS if mark in counts.index]
    others = [label for label in counts.index if label and label not in marks]
    texts = [label for label in others if not _is_number(label, dialect)]
    if len(texts) == 1 and len(others) > MIN_DISCLOSED_COUNT and counts[texts[0]] >= MIN_DISCLOSED_COUNT:
        marks.append(texts[0])
    return marks


def _is_number(text: str, dialect: Dialect | None) -> bool:
    forms = (COMMA_DECIMAL, DECIMAL) if dialect is not None and dialect.decimal == "," else (DECIMAL,)
    return any(re.fullmatch(form, text) for form in forms)


def _reason_to_leave_out(name: str, attribute: AttributeConfig, cells: pd.Series[Any], unique: float, distinct: int) -> str:
    share = f"unique in {unique:.1%} of rows"
    if attribute.kind == "categorical" and unique >= NEAR_UNIQUE:
        return f"it seems to identify people: {share}"
    if attribute.kind == "numeric" and unique >= NEAR_UNIQUE and _is_count_up(cells, distinct):
        return f"it seems to number the rows: {share}"
    if attribute.kind == "categorical" and distinct > MOST_CATEGORIES and not isinstance(attribute.hierarchy, HierarchyRule):
        return f"it has {distinct:,} different texts and no structure that is known here"
    return "it repeats and has the name of an identifier" if is_subject_name(name) else ""


def _is_count_up(cells: pd.Series[Any], distinct: int) -> bool:
    """Tell whether whole numbers are nearly consecutive."""
    texts = cells.astype(str)
    if not texts.str.fullmatch(INTEGER).all():
        return False
    numbers = [int(text) for text in texts]
    return max(numbers) - min(numbers) < 2 * distinct


def is_subject_name(name: str) -> bool:
    """Tell whether a name says that a column identifies persons or groups."""
    return re.fullmatch(r"(?i).*(_|\b)(id|ids|key|pseudonym|uuid)|.*(Id|ID)|(?i:person|patient|household)", name) is not None


def _guess_attribute(
    name: str, cells: pd.Series[Any], counts: pd.Series[Any], dialect: Dialect | None
) -> tuple[AttributeConfig, str]:
    """Return the kind of a column and what speaks for it."""
    labels = [str(label) for label in counts.index]
    folded = {label.casefold() for label in labels}
    if cells.dtype.kind == "b" or folded in PAIRS:
        return AttributeConfig("boolean"), "two values of a known pair"
    order = _find_scale(labels)
    if order:
        return AttributeConfig("ordinal", order=order), f"its {len(order)} values are a known scale"
    code = _find_code(name, labels)
    if code is not None:
        return code
    if cells.dtype.kind in "iuf" or all(_is_number(label, dialect) for label in labels):
        return AttributeConfig("numeric"), f"all its {len(labels):,} values are numbers"
    return _find_dates(cells, counts, dialect) or (AttributeConfig("categorical"), f"{len(labels):,} different texts")


def _find_scale(labels: Sequence[str]) -> list[str]:
    spelled = {label.casefold().strip(): label for label in labels}
    for scale in SCALES:
        words = scale.split("|") if "|" in scale else scale.split()
        if len(labels) > 2 and len(spelled) == len(labels) and set(spelled) <= set(words):
            return [spelled[word] for word in words if word in spelled]
    return []


def _find_code(name: str, labels: Sequence[str]) -> tuple[AttributeConfig, str] | None:
    """Recognise diagnoses, postcodes and other codes of one length, whose first characters are groups."""
    if all(re.fullmatch(DIAGNOSIS, label) for label in labels):
        rule = HierarchyRule(prefix=(3, 1))
        return AttributeConfig("categorical", rule), "all values have the form of ICD-10 codes: chapters are letters"
    shortest = min(map(len, labels))
    is_postcode = re.fullmatch(POSTCODE, name) is not None and shortest > 2
    is_zero_padded = all(re.fullmatch(CODE, label) for label in labels) and any(label.startswith("0") for label in labels)
    if is_postcode or (is_zero_padded and len(set(map(len, labels))) == 1 and shortest > 2):
        rule = HierarchyRule(prefix=tuple(range(shortest - 1, max(shortest - 4, 0), -1)))
        return AttributeConfig("categorical", rule), "postcodes or codes of digits: the first digits are larger areas"
    return None


def _find_dates(cells: pd.Series[Any], counts: pd.Series[Any], dialect: Dialect | None) -> tuple[AttributeConfig, str] | None:
    rule = HierarchyRule(dates=("month", "year", "decade"))
    is_european = dialect is not None and (dialect.decimal == "," or dialect.separator == ";")
    guesses: Mapping[str, AttributeConfig] = {
        "all values are dates": AttributeConfig("date", rule),
        "dates; the order of day and month is a guess": AttributeConfig("date", rule, dayfirst=is_european),
        "dates; the order of day and month is a guess that fits": AttributeConfig("date", rule, dayfirst=not is_european),
        "times with a time zone, which days are counted in is a guess": AttributeConfig("date", rule, zone="UTC"),
    }
    for evidence, attribute in guesses.items():
        try:
            parse_dates(str(cells.name), list(counts.index), attribute, counts.to_numpy())
        except (InputError, AttributeError, TypeError):
            continue
        return attribute, evidence
    return None
