"""Any scikit-learn classifier with predict_proba, named by its import path."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask import seeds
from dit_dask.adversaries.patterns import MOST_ATTRIBUTES, Patterns
from dit_dask.adversaries.shortcuts import Learn, shortcuts_of
from dit_dask.adversaries.statistics import Summarised, summary_of
from dit_dask.config.constraints import Anything, Field, MapOf, Record
from dit_dask.config.registry import Context, Kind
from dit_dask.encoders.tf import TF
from dit_dask.errors import InputError, unknown
from dit_dask.values.release import Release

if TYPE_CHECKING:
    from dit_dask.encoders import Encoder
    from dit_dask.values.arrays import Codes, Floats


MEMO_FLOATS = 2**20


@dataclass(frozen=True, eq=False)
class Classifier:
    """Beliefs of a fresh clone of `model`, trained on the encoded classes or computed without training it.

    `seed` is what its random_state comes from, if the user set none.
    """

    model: Any
    weighted: bool
    memo: dict[bytes, Floats] = field(default_factory=dict)
    seed: int | None = None

    def redraw(self, *purpose: object) -> Classifier:
        """The same classifier with a random_state of its own for this purpose; itself if the user set one, or it has none."""
        if self.seed is None:
            return self
        from sklearn.base import clone

        model = clone(self.model).set_params(random_state=seeds.integer(self.seed, "training", *purpose))
        return replace(self, model=model, memo={})

    def beliefs(self, release: Release, encoder: Encoder, target: Codes) -> Floats:
        """Equal training rows give equal beliefs, so nothing is learned twice; one secret left is certain."""
        if not isinstance(encoder, TF) or len(target) > MOST_ATTRIBUTES:
            return self.learn(release, encoder, target)(target)
        patterns = _encode(release, target.tobytes(), target.dtype.str)
        key = patterns.digest
        if key not in self.memo:
            learned = _certain(release) if _is_constant(release) else self._learn(patterns)
            if learned is None:
                learned = self.learn(release, encoder, target)(target)
            if (len(self.memo) + 1) * len(learned) > MEMO_FLOATS:
                self.memo.clear()
            self.memo[key] = learned
        return self.memo[key]

    def _learn(self, patterns: Patterns) -> Floats | None:
        for learn in self.shortcuts:
            beliefs = learn(self.model, patterns)
            if beliefs is not None:
                return beliefs
        return None

    @cached_property
    def shortcuts(self) -> tuple[Learn, ...]:
        """The ways to the same beliefs that need less training, the fastest first."""
        return shortcuts_of(self.model)

    @cached_property
    def summarised(self) -> Summarised | None:
        """The same model from statistics of a release, where it is a function of them."""
        summary = summary_of(self.model, weighted=self.weighted)
        return None if summary is None else Summarised(self.model, summary)

    def learn(self, release: Release, encoder: Encoder, target: Codes) -> Callable[[Codes], Floats]:
        """Learn from statistics where that is exact; else, and for targets about which rounding could decide, train.

        Targets are predicted one by one, so that the last bits do not depend on which come together.
        """
        if _is_constant(release):
            return lambda _target: _certain(release)
        from_statistics = None if self.summarised is None else self.summarised.learn(release, encoder, target)
        if from_statistics is None:
            return self.train(release, encoder, target)
        trained: list[Callable[[Codes], Floats]] = []

        def predict(target: Codes) -> Floats:
            beliefs = from_statistics(target)
            if beliefs is not None:
                return beliefs
            if not trained:
                trained.append(self.train(release, encoder, target))
            return trained[0](target)

        return predict

    def train(self, release: Release, encoder: Encoder, target: Codes) -> Callable[[Codes], Floats]:
        """Train on a sample for each secret of a class, weighted by its count where weights are taken, else repeated."""
        from sklearn.base import clone

        where, secret = np.nonzero(release.counts)
        features, count = encoder.classes(release, target)[where], release.counts[where, secret]
        model = clone(self.model)
        if self.weighted:
            model.fit(features, secret, sample_weight=count.astype(float))
        else:
            model.fit(np.repeat(features, count, axis=0), np.repeat(secret, count))

        def predict(target: Codes) -> Floats:
            beliefs = np.zeros(release.counts.shape[1])
            beliefs[model.classes_] = model.predict_proba(encoder.target(release, target)[None, :])[0]
            return beliefs

        return predict


@lru_cache(maxsize=1)
def _encode(release: Release, target: bytes, dtype: str) -> Patterns:
    """Encode once for all classifiers of a panel."""
    return Patterns.of(release, np.frombuffer(target, dtype))


def _is_constant(release: Release) -> bool:
    return bool(np.count_nonzero(release.counts.any(axis=0)) == 1)


def _certain(release: Release) -> Floats:
    certain: Floats = np.any(release.counts, axis=0).astype(np.float64)
    return certain


def training_threads(adversaries: Iterable[object]) -> AbstractContextManager[object]:
    """Limit BLAS and OpenMP to one thread while classifiers learn: workers share the cores, and tables are small."""
    if not any(isinstance(adversary, Classifier) for adversary in adversaries):
        return nullcontext()
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[object] = threadpool_limits(1)
    return limits


def _build(parameters: Mapping[str, Any], context: Context) -> Classifier:
    from sklearn.utils.validation import has_fit_parameter

    where = f"{context.where}.adversary"
    factory = _import_class(parameters["name"], where)
    arguments = dict(parameters["params"])
    signature = inspect.signature(factory).parameters
    known, open_ended = set(signature), any(entry.kind is entry.VAR_KEYWORD for entry in signature.values())
    for name in arguments:
        if name not in known and not open_ended:
            raise unknown(f"{where}.params: parameter of {parameters['name']}", name, known)
    seed = None
    if "random_state" in known and arguments.get("random_state") is None:  # null would make every training differ
        seed = arguments["random_state"] = seeds.integer(context.seed, context.test, bits=24)
    try:
        model = factory(**arguments)
    except (TypeError, ValueError) as error:
        raise InputError(f"{where}.params: {error}") from error
    _require_methods(model, parameters["name"], where)
    return Classifier(model, has_fit_parameter(model, "sample_weight"), seed=seed)


def _import_class(path: str, where: str) -> Any:
    module, _, name = path.rpartition(".")
    try:
        imported = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"{where}: cannot import {path!r}: {error}") from error
    if not inspect.isclass(imported):
        raise InputError(f"{where} must be the import path of a class; got {path!r}, a {type(imported).__name__}")
    _require_methods(imported, path, where)  # before it is called: a third-party constructor may have side effects
    return imported


def _require_methods(model: Any, path: str, where: str) -> None:
    if not hasattr(model, "fit") or not hasattr(model, "predict_proba"):
        raise InputError(f"{where}: {path} must have fit and predict_proba (SVC: set probability: true)")


KIND = Kind(Record({"params": Field(MapOf(Anything()), {}, description="constructor arguments")}), _build)
