"""dit_dask: how much does any one person's record change what an adversary can infer about that person?

>>> import dit_dask as dit
>>> result = dit.audit(frame, schema={...}, tests=[{"sanitizer": {"name": "mondrian", "k": 5}}])  # doctest: +SKIP
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dit_dask.api import Result, audit
    from dit_dask.errors import DitError, InputError, RunError
    from dit_dask.rates import discrimination_by_value, discrimination_interval, discrimination_rate

__all__ = [
    "DitError",
    "InputError",
    "Result",
    "RunError",
    "__version__",
    "audit",
    "discrimination_by_value",
    "discrimination_interval",
    "discrimination_rate",
]

_HOMES = {"audit": "api", "Result": "api", "DitError": "errors", "InputError": "errors", "RunError": "errors"} | dict.fromkeys(
    ("discrimination_by_value", "discrimination_interval", "discrimination_rate"), "rates"
)


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
