"""Any scikit-learn classifier with predict_proba, named by its import path."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask import seeds
from dit_dask.config.constraints import Anything, Field, MapOf, Record
from dit_dask.config.registry import Context, Kind
from dit_dask.errors import InputError, unknown
from dit_dask.values.release import Release

if TYPE_CHECKING:
    from dit_dask.encoders import Encoder
    from dit_dask.values.arrays import Codes, Floats


@dataclass(frozen=True, eq=False)
class Classifier:
    """Trains a fresh clone of `model` on the encoded classes."""

    model: Any
    weighted: bool

    def beliefs(self, release: Release, encoder: Encoder, target: Codes) -> Floats:
        """One sample for each secret present in a class, weighted by its count where the model takes weights, else repeated."""
        from sklearn.base import clone

        where, secret = np.nonzero(release.counts)
        beliefs = np.zeros(release.counts.shape[1])
        if (secret == secret[0]).all():
            beliefs[secret[0]] = 1.0
            return beliefs
        features, count = encoder.classes(release, target)[where], release.counts[where, secret]
        model = clone(self.model)
        if self.weighted:
            model.fit(features, secret, sample_weight=count.astype(float))
        else:
            model.fit(np.repeat(features, count, axis=0), np.repeat(secret, count))
        beliefs[model.classes_] = model.predict_proba(encoder.target(release, target)[None, :])[0]
        return beliefs


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
    if "random_state" in known and arguments.get("random_state") is None:  # null would make every training differ
        arguments["random_state"] = seeds.integer(context.seed, context.test, bits=24)
    try:
        model = factory(**arguments)
    except (TypeError, ValueError) as error:
        raise InputError(f"{where}.params: {error}") from error
    _require_methods(model, parameters["name"], where)
    return Classifier(model, has_fit_parameter(model, "sample_weight"))


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
