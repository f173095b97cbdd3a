"""Exact nearest rows of mixed data, as many as asked for, with one rule for ties: of equally near rows the lower number wins.

Distances, trees and bounds are those of `nearest`. A distinct row has several members: the numbers of the rows that are equal
to it, ascending. A node is left out only if its bound is above the worst distance kept, so all equally near rows are compared.
"""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dit_dask.kernels.compiled import compiled, inner
from dit_dask.kernels.nearest import apart, bound
from dit_dask.kernels.weigh import Floats, Longs

Masks = NDArray[np.uint64]


@inner
def insert(distance: float, number: int, distances: Floats, numbers: Longs) -> bool:
    """Keep a row among the nearest, sorted by distance and number; return whether it was near enough."""
    place = len(numbers)
    while place > 0 and (distance < distances[place - 1] or (distance == distances[place - 1] and number < numbers[place - 1])):
        place -= 1
    if place == len(numbers):
        return False
    for position in range(len(numbers) - 1, place, -1):
        distances[position], numbers[position] = distances[position - 1], numbers[position - 1]
    distances[place], numbers[place] = distance, number
    return True


@compiled
def search_several(queries: Floats, rows: Floats, starts: Longs, members: Longs, kinds: Longs, scales: Floats, nodes: Longs,
                   bounds: Floats, masks: Masks, distances: Floats, numbers: Longs) -> None:
    """Fill distances and numbers, (queries, k), with the nearest members; members[starts[r]:starts[r + 1]] are those of row r.

    Distances begin as infinite and numbers as larger than every member.
    """
    stack = np.empty(len(nodes), np.int64)
    least = np.empty(len(nodes))
    width, last = rows.shape[1], numbers.shape[1] - 1
    for query in range(len(queries)):
        own, kept, kept_numbers = queries[query], distances[query], numbers[query]
        stack[0], least[0] = 0, 0.0
        top = 1
        while top > 0:
            top -= 1
            if least[top] > kept[last]:
                continue
            node = stack[top]
            left = nodes[node, 2]
            if left >= 0:
                limit = np.inf if np.isinf(kept[last]) else np.nextafter(kept[last], np.inf)
                near = bound(own, bounds[0, left], bounds[1, left], masks[left], kinds, scales, limit)
                far = bound(own, bounds[0, left + 1], bounds[1, left + 1], masks[left + 1], kinds, scales, limit)
                first, second = left, left + 1
                if far < near:
                    near, far, first, second = far, near, second, first
                stack[top], least[top] = second, far
                stack[top + 1], least[top + 1] = first, near
                top += 2
                continue
            for row in range(nodes[node, 0], nodes[node, 1]):
                total = 0.0
                for column in range(width):
                    total += apart(own[column], rows[row, column], kinds[column], scales[column])
                    if total > kept[last]:
                        break
                if total <= kept[last]:
                    for position in range(starts[row], starts[row + 1]):
                        if not insert(total, members[position], kept, kept_numbers):
                            break
