"""Logistic regression on patterns: Newton's method to the unique optimum of scikit-learn's objective.

Solvers stop at a gradient of 1e-4 a row, which is about what one record among 10,000 changes: beliefs from two such models
differ by the solver's path as well as by the record. The optimum itself depends on the table alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.adversaries.patterns import Patterns

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats

MOST_COEFFICIENTS = 512  # the Hessian has the square of that
MOST_STEPS = 60
SURE_STEP = 1e-6  # where the decrement is below, the loss is too flat to compare, and full steps converge
LAST_STEP = 1e-11  # convergence is quadratic: the error after such a step is that of rounding


def logistic_beliefs(model: Any, patterns: Patterns) -> Floats | None:
    """Return (n,) beliefs, or None where the model is too large or Newton's method does not converge."""
    present = np.flatnonzero(patterns.counts.any(axis=0))
    features = patterns.features(patterns.distinct)
    if model.fit_intercept:
        features = np.column_stack([features, np.ones(len(features))])
    if len(present) * features.shape[1] > MOST_COEFFICIENTS:
        return None
    penalty = np.full(features.shape[1], 1.0 / model.C)
    if model.fit_intercept:
        penalty[-1] = 0.0
    counts = patterns.counts[:, present].astype(np.float64)
    objective = _Binary(features, counts, penalty) if len(present) == 2 else _Multinomial(features, counts, penalty)
    coefficients = minimise(objective)
    if coefficients is None:
        return None
    beliefs = np.zeros(patterns.counts.shape[1])
    beliefs[present] = objective.probabilities(coefficients, np.ones((1, features.shape[1])))[0]
    return beliefs


class _Multinomial:
    """Softmax over K secrets: coefficients[K · f], all of them penalised but the intercepts."""

    def __init__(self, features: Floats, counts: Floats, penalty: Floats) -> None:
        self.features, self.counts, self.total = features, counts, counts.sum(axis=1)
        self.secrets, self.width = counts.shape[1], features.shape[1]
        self.penalty = np.tile(penalty, self.secrets)
        self.products = (features[:, :, None] * features[:, None, :]).reshape(len(features), -1)
        # adding a constant to all intercepts changes nothing: a term along that direction makes the optimum unique
        self.gauge = np.kron(np.ones((self.secrets, self.secrets)), np.diag((penalty == 0).astype(np.float64)))

    def start(self) -> Floats:
        """The shares of the secrets, no feature used."""
        start = np.zeros((self.secrets, self.width))
        if self.penalty[-1] == 0:
            shares = np.log(self.counts.sum(axis=0))
            start[:, -1] = shares - shares.mean()
        return start.ravel()

    def probabilities(self, coefficients: Floats, features: Floats) -> Floats:
        """Return (m, K)."""
        scores = features @ coefficients.reshape(self.secrets, self.width).T
        raised = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares: Floats = raised / raised.sum(axis=1, keepdims=True)
        return shares

    def loss(self, coefficients: Floats) -> float:
        """The negative log-likelihood and the penalty."""
        scores = self.features @ coefficients.reshape(self.secrets, self.width).T
        top = scores.max(axis=1)
        log_sums = np.log(np.exp(scores - top[:, None]).sum(axis=1)) + top
        return float(self.total @ log_sums - (self.counts * scores).sum() + (self.penalty * coefficients**2).sum() / 2)

    def derivatives(self, coefficients: Floats) -> tuple[Floats, Floats]:
        """Return the gradient and the Hessian."""
        shares = self.probabilities(coefficients, self.features)
        gradient = ((self.total[:, None] * shares - self.counts).T @ self.features).ravel() + self.penalty * coefficients
        spread = -shares[:, :, None] * shares[:, None, :]
        spread[:, np.arange(self.secrets), np.arange(self.secrets)] += shares
        spread *= self.total[:, None, None]
        blocks = spread.reshape(len(spread), -1).T @ self.products
        size = self.secrets * self.width
        hessian = blocks.reshape(self.secrets, self.secrets, self.width, self.width).transpose(0, 2, 1, 3).reshape(size, size)
        return gradient, hessian + np.diag(self.penalty) + self.gauge


class _Binary:
    """One score for the second of two secrets, as scikit-learn has it: its penalty is half that of a softmax."""

    def __init__(self, features: Floats, counts: Floats, penalty: Floats) -> None:
        self.features, self.counts, self.total, self.penalty = features, counts, counts.sum(axis=1), penalty

    def start(self) -> Floats:
        """The shares of the secrets, no feature used."""
        start = np.zeros(len(self.penalty))
        if self.penalty[-1] == 0:
            first, second = self.counts.sum(axis=0)
            start[-1] = np.log(second / first)
        return start

    def probabilities(self, coefficients: Floats, features: Floats) -> Floats:
        """Return (m, 2)."""
        scores = features @ coefficients
        return np.column_stack([np.exp(-np.logaddexp(0, scores)), np.exp(-np.logaddexp(0, -scores))])

    def loss(self, coefficients: Floats) -> float:
        """The negative log-likelihood and the penalty."""
        scores = self.features @ coefficients
        fit = self.total @ np.logaddexp(0, scores) - self.counts[:, 1] @ scores
        return float(fit + (self.penalty * coefficients**2).sum() / 2)

    def derivatives(self, coefficients: Floats) -> tuple[Floats, Floats]:
        """Return the gradient and the Hessian."""
        shares = self.probabilities(coefficients, self.features)
        gradient = self.features.T @ (self.total * shares[:, 1] - self.counts[:, 1]) + self.penalty * coefficients
        weight = self.total * shares[:, 0] * shares[:, 1]
        return gradient, (self.features.T * weight) @ self.features + np.diag(self.penalty)


def minimise(objective: _Multinomial | _Binary) -> Floats | None:
    """Return the coefficients of the least loss, or None if they are not found."""
    coefficients = objective.start()
    for _ in range(MOST_STEPS):
        gradient, hessian = objective.derivatives(coefficients)
        try:
            step: Floats = np.linalg.solve(hessian, gradient).astype(np.float64, copy=False)
        except np.linalg.LinAlgError:
            return None
        decrement = float(gradient @ step)
        if not np.isfinite(decrement):
            return None
        if decrement > SURE_STEP:
            step = _shorten(objective, coefficients, step, decrement)
        coefficients = coefficients - step
        if decrement <= LAST_STEP:
            return coefficients
    return None


def _shorten(objective: _Multinomial | _Binary, coefficients: Floats, step: Floats, decrement: float) -> Floats:
    """Halve a step until the loss falls enough."""
    loss, share = objective.loss(coefficients), 1.0
    while objective.loss(coefficients - share * step) > loss - share * decrement / 10 and share > 1e-6:
        share /= 2
    return share * step
