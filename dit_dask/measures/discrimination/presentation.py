"""How discrimination rates are presented: rates of the table, attacks on original and releases side by side, worst values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dit_dask.measures.base import BarChart, Entries, MeasureEntry, Section

MOST_VALUES = 5
ABOUT = (
    "The discrimination rate of keys over a target is 1 − H(target | keys) / H(target): 0 where they tell nothing about it, "
    "1 where they determine it."
)
ABOUT_ATTACKS = (
    "Identity: how far published values give back the original ones. Homogeneity: how far they give away the sensitive value; "
    "background knowledge is what an attacker still has to learn then. Skewness: the same for whether someone has one "
    "sensitive value or not, for the value given away most. Semantic: the same for groups of sensitive values. "
    "The original is what an attacker would learn if the table were published as it is."
)
ABOUT_VALUES = (
    "Rate is 1 − p(y) H(X|Y=y) / H(X), as published; it nears 1 for any rare value. Refinement, 1 − H(X|Y=y) / H(X), is what "
    "someone with that value loses; below 0 the value leaves more doubt than there was. Values that fewer than 10 rows share "
    "are not named; figures have two decimals, and numbers of rows are rounded to multiples of five. "
    "Values of the original are in measures.json only: the report shows no more than the releases."
)
ABOUT_CHANCE = (
    "By chance is the mean rate if the sensitive values are shuffled among the records: keys with many values seem to tell "
    "something about any target. Corrected is (rate − chance) / (1 − chance). An attack is not about persons if the release "
    "has synthetic records or noisy counts: what it publishes belongs to nobody."
)
ABOUT_SKEWNESS = "How far the published values tell whether someone has the sensitive value or any other."


def present(entries: Entries) -> list[Section]:
    """Show the rates of the table, then the attacks, then the values that give away most."""
    of_table = [entry for entry in entries if "attack" not in entry.parameters]
    of_releases = [entry for entry in entries if "attack" in entry.parameters]
    sections = []
    if of_table:
        rows = [
            [subject(entry), entry.value, *_chance(entry), *_interval(entry), entry.more["entropy"], entry.records]
            for entry in of_table
        ]
        names = ("discrimination rate", "rate", "by chance", "corrected", "interval", "entropy, bits", "rows")
        chart = BarChart({row[0]: [row[1]] for row in rows}, ["rate"], "Discrimination rates")
        sections.append(Section("Discrimination rates of the table", ABOUT, names, rows, chart))
    if of_releases:
        sections += [_side_by_side(of_releases), *_chance_levels(of_releases)]
    rows = [
        [subject(entry), release_name(entry), value_name(line), line["count"], line["rate"], line["refinement"]]
        for entry in entries
        if entry.sanitizer is not None or entry.parameters.get("show_values", False)
        for line in entry.by_value[:MOST_VALUES]
        if "partitions" not in entry.more
    ]
    columns = ("measure", "of", "value", "rows", "rate", "refinement")
    if rows:
        sections.append(Section("Published values that give away most", ABOUT_VALUES, columns, rows, detail=True))
    lines = [
        [subject(entry), release_name(entry), value_name(line), line["count"], line["rate"]]
        for entry in entries
        for line in sorted(entry.more.get("partitions", ()), key=lambda line: -float(line["rate"]))[:MOST_VALUES]
    ]
    if lines:
        title, header = "Sensitive values given away most", ("measure", "of", "sensitive value", "rows", "rate")
        sections.append(Section(title, ABOUT_SKEWNESS, header, lines, detail=True))
    return sections


def _side_by_side(entries: Entries) -> Section:
    names = list(dict.fromkeys(release_name(entry) for entry in entries))
    table: dict[str, dict[str, Any]] = {}
    for entry in entries:
        table.setdefault(subject(entry), {})[release_name(entry)] = entry.value
    groups = {measure: [values.get(name) for name in names] for measure, values in table.items()}
    rows = [[measure, *values] for measure, values in groups.items()]
    chart = BarChart(groups, names, "Attacks on the original and on the releases")
    return Section("Attacks on the releases", ABOUT_ATTACKS, ("attack", *names), rows, chart)


def _chance_levels(entries: Entries) -> list[Section]:
    """Show the chance levels of the attacks, and which releases they say nothing about persons of."""
    rows = [
        [subject(entry), release_name(entry), entry.value, *_chance(entry), "no" if "note" in entry.more else "yes"]
        for entry in entries
        if "chance" in entry.more or "note" in entry.more
    ]
    names = ("attack", "of", "rate", "by chance", "corrected", "about persons")
    return [Section("Attacks and chance", ABOUT_CHANCE, names, rows)] if rows else []


def _chance(entry: MeasureEntry) -> list[float | None]:
    return [entry.more.get("chance"), entry.more.get("corrected")]


def subject(entry: MeasureEntry) -> str:
    """Say in a few words what was measured."""
    given = entry.parameters
    keys = ", ".join(given["keys"]) if "keys" in given else "all quasi-identifiers"
    if "attack" not in given:
        text = f"{keys} → {given.get('target', 'the record itself')}"
    else:
        text = (
            given["attack"]
            + (f" ({given.get('knowledge', 'white-box')})" if given["attack"] == "identity" else "")
            + f": {keys}"
        )
    if "sensitive" in given and given.get("attack") != "identity":
        text += f" → {given['sensitive']}"
    if "semantic" in given and given.get("attack") != "semantic":
        text += ", grouped"
    return text if given["estimator"] == "plug-in" else f"{text}, {given['estimator']}"


def release_name(entry: MeasureEntry) -> str:
    """Name what the measure was taken of."""
    sanitizer = entry.sanitizer
    if sanitizer is None:
        return "original"
    shown = [f"{key}={value}" for key, value in sanitizer.items() if key != "name" and value != "strict"]
    return " ".join([sanitizer["name"], *shown])


def value_name(line: Mapping[str, Any]) -> str:
    """Name a value or combination; missing cells and pooled values say so."""
    if "values" in line:
        return f"{line['values']:,} more, not named"
    value = line["value"]
    parts = value if isinstance(value, list) else [value]
    return ", ".join("(missing)" if part is None else part for part in parts)


def _interval(entry: MeasureEntry) -> list[str | None]:
    ends = entry.more.get("interval")
    return [None if ends is None else f"{ends[0]:.4f} to {ends[1]:.4f}"]
