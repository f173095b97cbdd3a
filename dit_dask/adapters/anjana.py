"""k-anonymity, l-diversity and t-closeness by full-domain generalisation and suppression, as the library anjana does them.

What the library does that its users should know is in docs/third-party-tools.md; the calls here make up for some of it:
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
from dit_dask.adapters.levels import Source, levels
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
    return _anonymised("k_anonymity", frame, quasi_identifiers, hierarchies, suppression, {"k": _k(frame, k)})


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
    (secret,) = inputs.present(frame, [sensitive], "sensitive")
    distinct = int(frame[secret].nunique())
    goal = {"k": _k(frame, k), "l_div": inputs.whole("l", l, 1, distinct, "the distinct sensitive values of the table")}
    return _anonymised("l_diversity", frame, quasi_identifiers, hierarchies, suppression, {"sens_att": secret, **goal})


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
    (secret,) = inputs.present(frame, [sensitive], "sensitive")
    goal = {"k": _k(frame, k), "t": inputs.share("t", t, 1, inclusive=True)}
    return _anonymised("t_closeness", frame, quasi_identifiers, hierarchies, suppression, {"sens_att": secret, **goal})


def _k(frame: pd.DataFrame, k: int) -> int:
    return inputs.whole("k", k, 1, len(frame), "the rows of the table")


def _anonymised(
    method: str,
    frame: pd.DataFrame,
    quasi_identifiers: Sequence[str],
    hierarchies: Mapping[str, Source] | None,
    suppression: float,
    goal: Mapping[str, Any],
) -> pd.DataFrame:
    import pandas as pd

    columns = inputs.present(frame, quasi_identifiers, "quasi_identifiers")
    trees = dict(hierarchies or {})
    inputs.present(frame[columns], [*trees] or columns, "hierarchies")
    # all rows gone would be a release to anjana, and its checks fail on an empty table
    limit = inputs.share("suppression", suppression, 100, inclusive=False)
    ladders = {
        name: {height: pd.Series(level, dtype=object) for height, level in enumerate(levels(frame[name], trees.get(name)))}
        for name in columns
    }
    library = inputs.library("anjana.anonymity", "anjana")
    table = frame.reset_index(drop=True).astype(dict.fromkeys(columns, object))
    said = io.StringIO()
    with redirect_stdout(said):
        release = getattr(library, method)(
            data=table, ident=[], quasi_ident=columns, supp_level=limit, hierarchies=ladders, **goal
        )
    if release.empty:
        raise InputError(f"anjana cannot reach {method} with {dict(goal)}: {said.getvalue().strip() or 'it gives no reason'}")
    published: pd.DataFrame = release[list(frame.columns)]
    return published
