"""dit_dask: how much does any one person's record change what an adversary can infer about that person?

>>> import dit_dask as dit
>>> result = dit.audit(frame, schema={...}, tests=[{"sanitizer": {"name": "mondrian", "k": 5}}])  # doctest: +SKIP
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dit_dask.api import audit, closeness, open, tune
    from dit_dask.audit.controls import ControlSummary
    from dit_dask.audit.verdict import RunVerdict, Verdict
    from dit_dask.deciding.tuning import Tuning
    from dit_dask.errors import DitError, InputError, RunError
    from dit_dask.execution.rates import discrimination_by_value, discrimination_interval, discrimination_rate
    from dit_dask.measures.attacks.frames import attribute_inference, linkability, singling_out
    from dit_dask.measures.attacks.risk import AttackRisk
    from dit_dask.measures.synthetic.accuracy import Accuracy, accuracy
    from dit_dask.measures.synthetic.closeness import Closeness
    from dit_dask.measures.synthetic.events import flatten_events
    from dit_dask.releasing.estimators import Mondrian
    from dit_dask.results import Result

__all__ = [
    "Accuracy",
    "AttackRisk",
    "Closeness",
    "ControlSummary",
    "DitError",
    "InputError",
    "Mondrian",
    "Result",
    "RunError",
    "RunVerdict",
    "Tuning",
    "Verdict",
    "__version__",
    "accuracy",
    "attribute_inference",
    "audit",
    "closeness",
    "discrimination_by_value",
    "discrimination_interval",
    "discrimination_rate",
    "flatten_events",
    "linkability",
    "open",
    "singling_out",
    "tune",
]

_NAMES = {
    "api": ("audit", "closeness", "open", "tune"),
    "deciding.tuning": ("Tuning",),
    "audit.controls": ("ControlSummary",),
    "audit.verdict": ("RunVerdict", "Verdict"),
    "errors": ("DitError", "InputError", "RunError"),
    "measures.attacks.frames": ("attribute_inference", "linkability", "singling_out"),
    "measures.attacks.risk": ("AttackRisk",),
    "measures.synthetic.accuracy": ("Accuracy", "accuracy"),
    "measures.synthetic.closeness": ("Closeness",),
    "measures.synthetic.events": ("flatten_events",),
    "releasing.estimators": ("Mondrian",),
    "results": ("Result",),
    "execution.rates": ("discrimination_by_value", "discrimination_interval", "discrimination_rate"),
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load public names when they are first used, so that importing the package stays instant."""
    if name == "__version__":
        from importlib.metadata import version

        return version("dit_dask")
    if name in _HOMES:
        return getattr(import_module(f"dit_dask.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'dit_dask' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(ModuleType):
    """A package in which a public function may have the name of a folder: `dit.audit` stays the function."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _HOMES or not isinstance(value, ModuleType):  # importing dit_dask.audit.plan sets `audit` here
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
