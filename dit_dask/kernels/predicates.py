"""Whether a part of a table may be published as a class, with and without one of its records.

A rule is (need, diverse, strict, limits, whole, logs). need: no numeric split of a part with a median below it is tried.
diverse: counts of secrets decide; else a part needs `need` records. strict: both sides of a numeric split are tested or, if
diverse, where they always are, numeric bounds are tightened to the records.
limits[LIMITS] has the numbers of the properties, where 0 means that one is not asked for:
    LEAST_SIZE: records; LARGEST_SHARE: l, no secret in more than 1 / l of them;
    ENTROPY: least entropy, in parts of LOG_UNIT;
    TAIL, TAIL_WHOLE, TAIL_REST, TAIL_PARTS: l and c = whole + rest / parts of recursive (c, l)-diversity;
    GROUND (EQUAL or ORDERED), FAR_WHOLE, FAR_REST, FAR_PARTS: t-closeness, whose sum is at most (whole + rest / parts) size;
    ONLY: the only secret that targets have, or -1 if they may have any.
whole[n]: the records of the table by secret, to which t-closeness compares, and TOTAL their number. logs[c] = c ln c, in parts
of LOG_UNIT. All of these are integers: a part is as valid after an update as it is when counted anew.

count[n + EXTRA] is a row of counts (kernels.weigh): `summarise` sets what `is_valid` needs beside the counts themselves. The
last columns are notes: SEEN, summarised; BROKEN, not valid; VERDICT, 2 if valid without a record of the only secret, 1 if not.
"""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dit_dask.kernels.compiled import inner, long
from dit_dask.kernels.weigh import EXTRA, Longs

Rule = tuple[int, bool, bool, Longs, Longs, Longs]

LOG_UNIT = 2**30
EQUAL, ORDERED = 1, 2
LEAST_SIZE, LARGEST_SHARE, ENTROPY, TAIL, TAIL_WHOLE, TAIL_REST, TAIL_PARTS = range(7)
GROUND, FAR_WHOLE, FAR_REST, FAR_PARTS, TOTAL, ONLY = range(7, 13)
LIMITS = 13
SIZE, MOST, TIES, MASS, LOGS, TOP, EDGE, SPARE, SEEN, BROKEN, VERDICT = range(EXTRA)  # of a row of counts, behind its n counts


@inner
def sum_largest(count: Longs, number: int) -> None:
    """Set TOP to the sum of the `number` largest counts, EDGE to the least of them, SPARE to how many others equal it."""
    secrets = len(count) - EXTRA
    top, edge, spare, left = long(0), count[secrets + MOST] + 1, long(0), number
    while left > 0 and edge > 0:
        following, alike = long(0), long(0)
        for secret in range(secrets):
            held = count[secret]
            if held < edge and held >= following:
                alike = alike + 1 if held == following else long(1)
                following = held
        taken = min(alike, left)
        top, left, edge, spare = top + taken * following, left - taken, following, alike - taken
    count[secrets + TOP], count[secrets + EDGE], count[secrets + SPARE] = top, edge, spare


@inner
def summarise(count: Longs, rule: Rule) -> None:
    """Set what is_valid needs of a row of counts whose SIZE and MOST are set."""
    limits, logs = rule[3], rule[5]
    secrets = len(count) - EXTRA
    ties, mass, entropy = long(0), long(0), long(0)
    for secret in range(secrets):
        held = count[secret]
        ties += held == count[secrets + MOST]
        mass += held
        if limits[ENTROPY] > 0:
            entropy += logs[held]
    count[secrets + TIES], count[secrets + MASS], count[secrets + LOGS] = ties, mass, entropy
    if limits[TAIL] > 0:
        sum_largest(count, limits[TAIL] - 1)


@inner
def is_close(count: Longs, removed: int, mass: int, rule: Rule) -> bool:
    """Return whether counts, without one of the removed secret if it is not -1, are as the whole table's up to the limit."""
    limits, whole = rule[3], rule[4]
    total, apart, run = limits[TOTAL], long(0), long(0)
    for secret in range(len(whole)):
        held = count[secret] - (1 if secret == removed else 0)
        difference = held * total - whole[secret] * mass
        run = run + difference if limits[GROUND] == ORDERED else difference
        apart += abs(run)
    return apart <= limits[FAR_WHOLE] * mass + limits[FAR_REST] * mass // limits[FAR_PARTS]


@inner
def is_valid(count: Longs, removed: int, rule: Rule) -> bool:
    """Return whether a part with a summarised row of counts is valid, without one record of the removed secret if not -1."""
    limits, logs = rule[3], rule[5]
    secrets = len(count) - EXTRA
    size, most, mass = count[secrets + SIZE], count[secrets + MOST], count[secrets + MASS]
    entropy, top = count[secrets + LOGS], count[secrets + TOP]
    if removed >= 0:
        held = count[removed]
        size, mass = size - 1, mass - 1
        if held == most and count[secrets + TIES] == 1:
            most -= 1
        if limits[ENTROPY] > 0:
            entropy += logs[held - 1] - logs[held]
        if held > count[secrets + EDGE] or (held == count[secrets + EDGE] and count[secrets + SPARE] == 0):
            top -= 1  # no other count takes its place: it was larger, so that it still is as large as any other
    if size < limits[LEAST_SIZE] or most * limits[LARGEST_SHARE] > size:
        return False
    if limits[ENTROPY] > 0 and logs[mass] - entropy < limits[ENTROPY] * mass:
        return False
    if limits[TAIL] > 0:
        tail = mass - top
        if most >= limits[TAIL_WHOLE] * tail + -(-limits[TAIL_REST] * tail // limits[TAIL_PARTS]):
            return False
    return limits[GROUND] == 0 or is_close(count, removed, mass, rule)


def list_logs(most: int) -> NDArray[np.int64]:
    """Return (most + 1,): c ln c of every count, in parts of LOG_UNIT."""
    counts = np.arange(most + 1, dtype=np.float64)
    return np.rint(counts * np.log(np.maximum(counts, 1.0)) * LOG_UNIT).astype(np.int64)
