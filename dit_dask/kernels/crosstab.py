"""How far two tables of codes are apart, one cross-tabulation after the other."""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dit_dask.kernels.compiled import compiled, inner
from dit_dask.kernels.weigh import Floats, Ints, Longs

DENSE = 1 << 18  # above so many cells sorting is cheaper than counting in place


@compiled
def divergences(first: Ints, second: Ints, times: Longs, others: Longs, sizes: Longs, combinations: Longs) -> Floats:
    """Return (combinations, 2): L1 and Hellinger distance of the relative frequencies of codes first[n, d] and second[m, d].

    They stand for times[n] and others[m] rows. Column c has sizes[c] codes; each row of combinations lists the columns of one
    cross-tabulation.
    """
    rows = times.sum(), others.sum()
    found = np.empty((len(combinations), 2))
    keys = np.empty(len(first), np.int64), np.empty(len(second), np.int64)
    counts = np.zeros((2, DENSE), np.int64)
    for place in range(len(combinations)):
        columns = combinations[place]
        cells = 1
        for column in columns:
            cells *= sizes[column]
        number(first, columns, sizes, keys[0])
        number(second, columns, sizes, keys[1])
        if cells <= DENSE:
            counts[:, :cells] = 0
            for row, key in enumerate(keys[0]):
                counts[0, key] += times[row]
            for row, key in enumerate(keys[1]):
                counts[1, key] += others[row]
            found[place] = apart(counts[0, :cells], counts[1, :cells], rows[0], rows[1])
        else:
            order = np.argsort(keys[0]), np.argsort(keys[1])
            here, there = matched(keys[0][order[0]], keys[1][order[1]], times[order[0]], others[order[1]])
            found[place] = apart(here, there, rows[0], rows[1])
    return found


@inner
def number(codes: Ints, columns: Longs, sizes: Longs, keys: Longs) -> None:
    """Write to keys[n] the cell that each row falls into."""
    for row in range(len(codes)):
        key = 0
        for column in columns:
            key = key * sizes[column] + codes[row, column]
        keys[row] = key


@inner
def matched(first: Longs, second: Longs, times: Longs, others: Longs) -> tuple[Longs, Longs]:
    """Return how often each key that occurs is among the sorted first and second ones, keys ascending."""
    counts = np.zeros((2, len(first) + len(second)), np.int64)
    here = there = cells = 0
    while here < len(first) or there < len(second):
        is_mine = there == len(second) or (here < len(first) and first[here] < second[there])
        key = first[here] if is_mine else second[there]
        while here < len(first) and first[here] == key:
            counts[0, cells] += times[here]
            here += 1
        while there < len(second) and second[there] == key:
            counts[1, cells] += others[there]
            there += 1
        cells += 1
    return counts[0, :cells], counts[1, :cells]


@inner
def apart(here: Longs, there: Longs, rows: int, others: int) -> NDArray[np.float64]:
    """Return the L1 distance, from whole numbers and so rounded once, and the Hellinger distance."""
    whole, squares = 0, 0.0
    for cell in range(len(here)):
        whole += abs(here[cell] * others - there[cell] * rows)
        root = np.sqrt(here[cell] / rows) - np.sqrt(there[cell] / others)
        squares += root * root
    return np.array([whole / (float(rows) * float(others)), np.sqrt(min(1.0, squares / 2.0))])
