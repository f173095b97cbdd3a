"""How many rows meet each of many predicates: conjunctions of comparisons of single columns with values."""
from __future__ import annotations

import numpy as np

from dit_dask.kernels.compiled import compiled
from dit_dask.kernels.weigh import Floats, Longs

EQUAL, UNEQUAL, AT_MOST, AT_LEAST, BELOW, ABOVE = range(6)


@compiled
def count_matches(rows: Floats, columns: Longs, operators: Longs, values: Floats, counts: Longs, match: Longs) -> None:
    """Set counts[p] to the rows that meet predicate p and match[p] to the last of them.

    rows is (columns, n); columns, operators and values are (predicates, conditions); an operator of -1 is no condition.
    A missing cell (NaN) equals only a missing value, and meets no other comparison except UNEQUAL with a value.
    """
    for predicate in range(len(columns)):
        found, last = 0, -1
        for row in range(rows.shape[1]):
            holds = True
            for condition in range(columns.shape[1]):
                operator = operators[predicate, condition]
                if operator < 0:
                    continue
                cell, value = rows[columns[predicate, condition], row], values[predicate, condition]
                if operator == EQUAL:
                    holds = cell == value or (np.isnan(cell) and np.isnan(value))
                elif operator == UNEQUAL:
                    holds = not (cell == value or (np.isnan(cell) and np.isnan(value)))
                elif operator == AT_MOST:
                    holds = cell <= value
                elif operator == AT_LEAST:
                    holds = cell >= value
                elif operator == BELOW:
                    holds = cell < value
                else:
                    holds = cell > value
                if not holds:
                    break
            if holds:
                found += 1
                last = row
        counts[predicate], match[predicate] = found, last
