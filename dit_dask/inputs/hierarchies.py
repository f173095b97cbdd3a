"""Hierarchy files that a config names."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dit_dask.config.document import Config
from dit_dask.errors import InputError, quote
from dit_dask.inputs.source import read_text
from dit_dask.storage.redaction import public_url
from dit_dask.values.arrays import Ints
from dit_dask.values.hierarchy import Hierarchy, parse
from dit_dask.values.schema import MIN_DISCLOSED_COUNT


def read_hierarchy(
    name: str, path: str, labels: Sequence[str], config: Config, where: str, rows_of: Callable[[str], Ints]
) -> Hierarchy:
    """Read a hierarchy that has a leaf for every label; `rows_of` finds the rows of a label."""
    hierarchy = parse(read_text(path, config, where), public_url(path))
    known = set(hierarchy.leaves)
    missing = [label for label in labels if label not in known]
    if missing:
        raise missing_values(f"{where}: {public_url(path)} has no leaf for", name, missing, rows_of)
    return hierarchy


def missing_values(problem: str, column: str, missing: Sequence[str], rows_of: Callable[[str], Ints]) -> InputError:
    """Phrase that values of a column are unknown: the most frequent is shown if many rows share it, else where it stands."""
    common = max(missing, key=lambda label: len(rows_of(label)))
    rows = rows_of(common)
    if not len(rows) or len(rows) >= MIN_DISCLOSED_COUNT:  # of the config alone, or of many people
        return InputError(
            f"{problem} the value {quote(common)} of column {column!r}, one of {len(missing):,}", hidden=missing[:5]
        )
    first = int(min(rows_of(label)[0] for label in missing if len(rows_of(label))))
    return InputError(
        f"{problem} {len(missing):,} values of column {column!r}, first in used row {first} (--show-values shows them)",
        hidden=missing[:5],
    )
