"""k-anonymity, l-diversity and t-closeness by full-domain generalisation and suppression, as the library anjana does them.

Properties of the library that its users should know are in docs/third-party-tools.md; the calls here correct some of them:
- It measures l and t through row labels used as positions: a table whose labels are not 0..n-1 would be measured on wrong rows.
- After suppressing rows it returns a column `index`: where each published row was in the original table. It is dropped.
- It writes into the hierarchies that it is given, prints to standard output, and signals failure by an empty table.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

from dit_dask.adapters import inputs
from dit_dask.adapters.levels import Source, build_levels
from dit_dask.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


def k_anonymity(
    frame: pd.DataFrame,
    quasi_identifiers: Sequence[str],
    k: int,
    hierarchies: Mapping[str, Source] | None = None,
    suppression: float = 0,
) -> pd.DataFrame:
    """Generalise whole columns until every class has k rows, suppressing up to `suppression` percent of the rows.

    hierarchies: by column, a path of `leaf;parent;…;*` lines, a mapping {value: [parent, …, "*"]}, or widths [5, 20]
    of intervals between their multiples; a column without one is either published as it is or as `*`.
    """
    return _anonymise("k_anonymity", frame, quasi_identifiers, hierarchies, suppression, {"k": _check_k(frame, k)})


def l_diversity(
    frame: pd.DataFrame,
    quasi_identifiers: Sequence[str],
    sensitive: str,
    k: int,
    l: int,  # noqa: E741 - the name of the parameter in the literature
    hierarchies: Mapping[str, Source] | None = None,
    suppression: float = 0,
) -> pd.DataFrame:
    """Make the table k-anonymous, then generalise on until every class has l distinct sensitive values.

    Only the first of the two steps suppresses rows (docs/third-party-tools.md).
    """
    (secret,) = inputs.check_columns(frame, [sensitive], "sensitive")
    distinct = int(frame[secret].nunique())
    goal = {
        "k": _check_k(frame, k),
        "l_div": inputs.check_integer("l", l, 1, distinct, "the distinct sensitive values of the table"),
    }
    return _anonymise("l_diversity", frame, quasi_identifiers, hierarchies, suppression, {"sens_att": secret, **goal})


def t_closeness(
    frame: pd.DataFrame,
    quasi_identifiers: Sequence[str],
    sensitive: str,
    k: int,
    t: float,
    hierarchies: Mapping[str, Source] | None = None,
    suppression: float = 0,
) -> pd.DataFrame:
    """Make the table k-anonymous, then generalise on until every class is within t of all published rows.

    The distance is half the sum of differences for text, and the ordered earth mover's distance for a sensitive number.
    """
    (secret,) = inputs.check_columns(frame, [sensitive], "sensitive")
    goal = {"k": _check_k(frame, k), "t": inputs.check_number("t", t, 1, inclusive=True)}
    return _anonymise("t_closeness", frame, quasi_identifiers, hierarchies, suppression, {"sens_att": secret, **goal})


def _check_k(frame: pd.DataFrame, k: int) -> int:
    return inputs.check_integer("k", k, 1, len(frame), "the rows of the table")


def _anonymise(
    method: str,
    frame: pd.DataFrame,
    quasi_identifiers: Sequence[str],
    hierarchies: Mapping[str, Source] | None,
    suppression: float,
    goal: Mapping[str, Any],
) -> pd.DataFrame:
    import pandas as pd

    columns = inputs.check_columns(frame, quasi_identifiers, "quasi_identifiers")
    sources = dict(hierarchies or {})
    inputs.check_columns(frame[columns], [*sources] or columns, "hierarchies")
    # anjana would publish a table without rows, and its checks fail on that
    limit = inputs.check_number("suppression", suppression, 100, inclusive=False)
    generalisations = {
        name: {
            height: pd.Series(level, dtype=object) for height, level in enumerate(build_levels(frame[name], sources.get(name)))
        }
        for name in columns
    }
    library = inputs.import_library("anjana.anonymity", "anjana")
    table = frame.reset_index(drop=True).astype(dict.fromkeys(columns, object))
    output = io.StringIO()
    with redirect_stdout(output):
        release = getattr(library, method)(
            data=table, ident=[], quasi_ident=columns, supp_level=limit, hierarchies=generalisations, **goal
        )
    if release.empty:
        raise InputError(f"anjana cannot reach {method} with {dict(goal)}: {output.getvalue().strip() or 'it gives no reason'}")
    published: pd.DataFrame = release[list(frame.columns)]
    return published
