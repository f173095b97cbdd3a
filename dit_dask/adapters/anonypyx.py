"""Mondrian as the library anonypyx does it: median cuts, no hierarchies, sets of categories.

It cuts a category's values in their order of appearance, so its release depends on the order of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dit_dask.adapters import inputs
from dit_dask.adapters.levels import format_number
from dit_dask.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

# the library's two definitions of t-closeness; it offers the second only if every quasi-identifier is categorical
CLOSENESS = ("max distance", "earth mover's distance")


def mondrian(
    frame: pd.DataFrame,
    quasi_identifiers: Sequence[str],
    sensitive: str,
    k: int,
    l: int | None = None,  # noqa: E741 - the name of the parameter in the literature
    t: float | None = None,
    closeness: str = CLOSENESS[0],
) -> pd.DataFrame:
    """Cut the table into classes of at least k rows, publishing `[low, high]` for numbers and `{a, b}` for categories.

    l: distinct sensitive values in every class. t: how far a class may be from the table, by `closeness`:
    the largest difference between two shares, or half the sum of the differences.
    """
    library = inputs.import_library("anonypyx", "anonypyx")
    columns = inputs.check_columns(frame, quasi_identifiers, "quasi_identifiers")
    (secret,) = inputs.check_columns(frame.drop(columns=columns), [sensitive], "sensitive")
    goal: dict[str, Any] = {"k": inputs.check_integer("k", k, 1, len(frame), "the rows of the table")}
    if l is not None:
        goal["l"] = inputs.check_integer("l", l, 1, int(frame[secret].nunique()), "the distinct sensitive values of the table")
    if t is not None:
        goal["t"] = inputs.check_number("t", t, 1, inclusive=True)
        goal["closeness_metric"] = inputs.check_choice("closeness", closeness, CLOSENESS)
    encoded = _EncodedTable(frame, columns, secret)
    if t is not None and closeness == CLOSENESS[1] and len(encoded.labels) < len(columns):
        raise InputError(f"closeness {closeness!r} needs categorical quasi-identifiers only; anonypyx has no other")
    release = library.Anonymiser(encoded.table, feature_columns=encoded.features, sensitive_column="secret", **goal).anonymise()
    return encoded.decode(release)


class _EncodedTable:
    """A table with neutral column names: the library joins column names and values, and two joins could be equal."""

    def __init__(self, frame: pd.DataFrame, columns: Sequence[str], secret: str) -> None:
        import pandas as pd

        self.columns, self.secret = columns, secret
        self.features = [f"q{position}" for position in range(len(columns))]
        self.labels: dict[str, list[str]] = {}
        # a categorical column also has the values that a class lacks; else the library's t-closeness would ignore them
        table = {"secret": frame[secret].astype("category").reset_index(drop=True)}
        for feature, column in zip(self.features, columns, strict=True):
            values = frame[column].reset_index(drop=True)
            is_number = pd.api.types.is_numeric_dtype(values)
            # the library divides by the range of a number: for a constant that is NaN, which changes the order of cuts
            if not is_number or values.nunique() == 1:
                codes, labels = pd.factorize(values, sort=True)
                self.labels[feature] = _check_labels(
                    [format_number(label) if is_number else str(label) for label in labels], column
                )
                values = pd.Series([str(code) for code in codes]).astype("category")
            table[feature] = values
        self.table = pd.DataFrame(table)[[*self.features, "secret"]]

    def decode(self, release: pd.DataFrame) -> pd.DataFrame:
        """Return one row a record: the library publishes one a class and sensitive value, with a count."""
        import pandas as pd

        published = {
            column: self._format_sets(release, feature) if feature in self.labels else _format_ranges(release, feature)
            for feature, column in zip(self.features, self.columns, strict=True)
        }
        rows = pd.DataFrame(published, dtype=object)
        rows[self.secret] = release["secret"].astype(self.table["secret"].cat.categories.dtype)
        return rows.loc[rows.index.repeat(release["count"])].reset_index(drop=True)

    def _format_sets(self, release: pd.DataFrame, feature: str) -> list[str]:
        labels = self.labels[feature]
        members = release[[f"{feature}_{code}" for code in range(len(labels))]].to_numpy(dtype=bool)
        return [_format_set([labels[code] for code in row.nonzero()[0]], labels) for row in members]


def _format_ranges(release: pd.DataFrame, feature: str) -> list[str]:
    bounds = zip(release[f"{feature}_min"], release[f"{feature}_max"], strict=True)
    return [format_number(low) if low == high else f"[{format_number(low)}, {format_number(high)}]" for low, high in bounds]


def _check_labels(labels: list[str], column: str) -> list[str]:
    """Raise InputError for labels that no notation of sets can hold."""
    if any("," in label for label in labels) and any("~" in label for label in labels):
        raise InputError(f"column {column!r} has values with ',' and values with '~'; sets of them could not be read back")
    return labels


def _format_set(members: list[str], labels: list[str]) -> str:
    """Write a set as {a, b}, or as a~b where values contain commas."""
    if len(members) == 1:
        return members[0]
    return "~".join(members) if any("," in label for label in labels) else f"{{{', '.join(members)}}}"
