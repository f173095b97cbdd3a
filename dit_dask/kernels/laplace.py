"""Beliefs from Laplace-noised counts, exactly: one-dimensional integrals of positive terms.

A count c is published as 1 + X, X = max(0, c + Laplace(1/ε)); the belief in cell j is its share of all n cells.
With φ(s) = E e^(−sX) and ψ(s) = E (1+X) e^(−sX), E[p_j] = ∫ e^(−ns) ψ_j Π_{k≠j} φ_k ds over s > 0. Every term below
is positive, so nothing cancels: the relative error stays near rounding for all ε and counts.
"""
from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dit_dask.kernels.compiled import compiled

STEP = 0.125
FIRST = -32  # steps below v = 0: v = -4
SERIES_BELOW = 0.5  # where differences of exponentials lose digits
LATE = np.array([1.0 / (math.factorial(k) * (k + 2)) for k in range(15, -1, -1)])


@compiled
def _mean_exponential(x: float) -> float:
    """∫₀¹ e^(−xy) dy."""
    return 1.0 if x == 0.0 else -math.expm1(-x) / x


@compiled
def _late_exponential(x: float) -> float:
    """∫₀¹ y e^(−xy) dy for x < SERIES_BELOW."""
    total = 0.0
    for coefficient in LATE:
        total = total * -x + coefficient
    return total


@compiled
def _triangle(s: float, epsilon: float) -> float:
    """∫∫ e^(−sx−εy) over x, y > 0, x + y < 1: the second divided difference of e^(−z) at 0, s, ε."""
    small, large = min(s, epsilon), max(s, epsilon)
    if large >= SERIES_BELOW:
        return (_mean_exponential(small) - math.exp(-small) * _mean_exponential(large - small)) / large
    homogeneous, power, factorial, total = 1.0, 1.0, 0.5, 0.5
    for k in range(1, 16):
        power *= -large
        homogeneous = homogeneous * -small + power
        factorial /= k + 2
        total += homogeneous * factorial
    return total


@compiled
def _rising(c: float, s: float, epsilon: float) -> float:
    """∫₀^c e^(−sx) e^(−ε(c−x)) dx: noise between −c and 0."""
    return c * math.exp(-min(s, epsilon) * c) * _mean_exponential(abs(s - epsilon) * c)


@compiled
def _phi_psi(c: float, s: float, epsilon: float) -> tuple[float, float]:
    """Return φ, and ψ = φ + E X e^(−sX)."""
    r = 1.0 / (s + epsilon)
    tail = epsilon * r  # products are grouped so that no extreme ε overflows
    if c == 0.0:  # most cells of most tables
        phi = 0.5 + 0.5 * tail
        return phi, phi + 0.5 * tail * r
    x = abs(s - epsilon) * c
    larger, ratio = math.exp(-min(s, epsilon) * c), math.exp(-x)
    if x >= SERIES_BELOW:
        whole = (1.0 - ratio) / x
        late = (whole - ratio) / x
    else:
        whole, late = _mean_exponential(x), _late_exponential(x)
    far, near, shape = (larger * ratio, larger, late) if s >= epsilon else (larger, larger * ratio, whole - late)
    rising = epsilon * c * larger
    phi = 0.5 * near + 0.5 * (rising * whole + far * tail)
    return phi, phi + 0.5 * (rising * (c * shape) + far * tail * (c + r))


@compiled
def _phi_drop(c: float, s: float, epsilon: float) -> float:
    """φ of c − 1 less φ of c, c ≥ 1: the integral of s E[e^(−sX); X > 0] from c − 1 to c."""
    before = c - 1.0
    noise_below = epsilon * _mean_exponential(epsilon) * _rising(before, s, epsilon)
    rest = epsilon * _triangle(s, epsilon) + _mean_exponential(s) * (epsilon / (s + epsilon))
    return 0.5 * s * (noise_below + math.exp(-s * before) * rest)


@compiled
def _scale(cells: int, total: float, epsilon: float) -> tuple[float, int]:
    """Return s₀ and the last step of the double-exponential rule s = s₀ exp(v − e^(−v))."""
    start = 1.0 / (cells + total + cells / epsilon)
    end = max(4.0, math.log(50.0 / (cells * start)) + 0.5)
    return start, math.ceil(end / STEP)


@compiled
def _node(step: int, start: float) -> tuple[float, float]:
    """Return the abscissa and the weight of one step."""
    v = step * STEP
    decay = math.exp(-v)
    s = start * math.exp(v - decay)
    return s, STEP * s * (1.0 + decay)


@compiled
def _distance(values: NDArray[np.int64], repeats: NDArray[np.int64], own: int, cells: int, epsilon: float) -> float:
    """Integrate one pattern given as distinct counts with repeats; the record's own cell is one of values[own]."""
    total = 0.0
    for k in range(len(values)):
        total += values[k] * repeats[k]
    start, last = _scale(cells, total, epsilon)
    integral = 0.0
    for step in range(FIRST, last + 1):
        s, weight = _node(step, start)
        product, ratios = weight * math.exp(-cells * s), 0.0
        for k in range(len(values)):
            others = repeats[k] - (k == own)
            if others > 0:
                phi, psi = _phi_psi(values[k], s, epsilon)
                product *= phi**others
                if product == 0.0:  # underflow: beyond the nodes that contribute, and ψ / φ may be 0 / 0
                    break
                ratios += others * (psi / phi)
        integral += product * ratios * _phi_drop(values[own], s, epsilon)
    return 2.0 * integral


@compiled
def _mean_belief(values: NDArray[np.int64], repeats: NDArray[np.int64], own: int, cells: int, epsilon: float) -> float:
    """Integrate the expected belief in one of the cells that count values[own]."""
    total = 0.0
    for k in range(len(values)):
        total += values[k] * repeats[k]
    start, last = _scale(cells, total, epsilon)
    integral = 0.0
    for step in range(FIRST, last + 1):
        s, weight = _node(step, start)
        product = weight * math.exp(-cells * s)
        for k in range(len(values)):
            phi, psi = _phi_psi(values[k], s, epsilon)
            product *= phi ** (repeats[k] - (k == own))
            if k == own:
                product *= psi
        integral += product
    return integral


@compiled
def _runs(counts: NDArray[np.int64], cells: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct values of descending counts and their repeats; the cells that are not listed count 0."""
    values, repeats = np.zeros(len(counts) + 1, np.int64), np.zeros(len(counts) + 1, np.int64)
    used = 0
    for count in counts:
        if count == 0:
            break
        if used == 0 or values[used - 1] != count:
            values[used] = count
            used += 1
        repeats[used - 1] += 1
    repeats[used] = cells - repeats[:used].sum()
    return values[: used + 1], repeats[: used + 1]


@compiled
def _distances(counts: NDArray[np.int64], own: NDArray[np.int64], cells: int, epsilon: float) -> NDArray[np.float64]:
    found = np.empty(len(counts))
    for pattern in range(len(counts)):
        values, repeats = _runs(counts[pattern], cells)
        place = np.searchsorted(-values, -counts[pattern, own[pattern]])
        found[pattern] = _distance(values, repeats, place, cells, epsilon)
    return found


@compiled
def _beliefs(counts: NDArray[np.int64], cells: int, epsilon: float) -> NDArray[np.float64]:
    found = np.empty((len(counts), cells))
    for pattern in range(len(counts)):
        values, repeats = _runs(counts[pattern], cells)
        cell = 0
        for place in range(len(values)):
            if repeats[place] > 0:
                found[pattern, cell : cell + repeats[place]] = _mean_belief(values, repeats, place, cells, epsilon)
                cell += repeats[place]
    return found


def distances(counts: NDArray[np.int64], own: NDArray[np.int64], cells: int, epsilon: float) -> NDArray[np.float64]:
    """Return (m,): Σ_j W1 between the beliefs with and without one record, exactly.

    counts[m, k]: the counts of a tuple, descending, k ≤ cells, every further cell counts 0; own[m]: the place in counts of
    the record's cell. One value depends on its own pattern only, so no grouping of patterns can change it.
    """
    if math.isinf(epsilon):
        total = counts.sum(axis=1).astype(np.float64)
        mine = counts[np.arange(len(counts)), own]
        closed: NDArray[np.float64] = 2.0 * (cells - 1 + (total - mine)) / ((cells + total) * (cells + total - 1))
        return closed
    result: NDArray[np.float64] = _distances(counts, own, cells, epsilon)
    return result


def mean_beliefs(counts: NDArray[np.int64], cells: int, epsilon: float) -> NDArray[np.float64]:
    """Return (m, cells): E[p_j] for descending counts[m, k], k ≤ cells, every further cell counts 0."""
    if math.isinf(epsilon):
        padded = np.pad(counts, ((0, 0), (0, cells - counts.shape[1])))
        sure: NDArray[np.float64] = (1.0 + padded) / (cells + padded.sum(axis=1, keepdims=True))
        return sure
    result: NDArray[np.float64] = _beliefs(counts, cells, epsilon)
    return result
