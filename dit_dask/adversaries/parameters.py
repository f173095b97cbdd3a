"""Which parameters of a scikit-learn classifier allow a faster way to its beliefs: those that are not named have defaults."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

Condition = Callable[[Any], bool]


def anything(_value: Any) -> bool:
    """Any value."""
    return True


def one_of(*values: Any) -> Condition:
    """One of some names."""
    return lambda value: isinstance(value, str) and value in values


def integer(least: int) -> Condition:
    """An integer of at least so much."""
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= least


def number(least: float, most: float) -> Condition:
    """A number between both."""
    return lambda value: isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most


def switch(value: Any) -> bool:
    """True or false."""
    return isinstance(value, bool)


def jobs(value: Any) -> bool:
    """A number of threads, which does not affect results."""
    return value is None or (isinstance(value, int) and value != 0)


def sklearn_name(model: Any) -> str:
    """The name of scikit-learn's class; empty for every other one, because a subclass may do anything."""
    return type(model).__name__ if type(model).__module__.startswith("sklearn.") else ""


def has_parameters(model: Any, conditions: Mapping[str, Condition]) -> bool:
    """Whether the parameters that are named have such values, and all others their defaults."""
    defaults = {name: entry.default for name, entry in inspect.signature(type(model)).parameters.items()}
    for name, value in model.get_params(deep=False).items():
        if not (conditions[name](value) if name in conditions else _is_default(value, defaults[name])):
            return False
    return True


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (isinstance(value, bool | int | float | str) and value == default)
