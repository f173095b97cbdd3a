"""Sanitizers, distances and verdicts in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

Parameters = Mapping[str, Any]


def sanitizer_words(parameters: Parameters) -> str:
    """Say what a sanitizer does, such as 5-anonymity (Mondrian, strict); of one that is not known here its parameters."""
    name = str(parameters["name"])
    words = SANITIZERS.get(name)
    return words(parameters) if words else _with_parameters(name, parameters)


def _with_parameters(words: str, parameters: Parameters) -> str:
    shown = [f"{key} = {value}" for key, value in parameters.items() if key != "name" and _is_scalar(value)]
    return f"{words} ({', '.join(shown)})" if shown else words


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int | float) and value != ""


def _mondrian(parameters: Parameters) -> str:
    return _classes("Mondrian", [str(parameters.get("variant", "strict"))], parameters)


def _full_domain(parameters: Parameters) -> str:
    suppression = parameters.get("suppression") or 0
    return _classes("full-domain", [f"at most {suppression:.3g} suppressed"] if suppression else [], parameters)


def _classes(algorithm: str, shown: list[str], parameters: Parameters) -> str:
    """Say what an algorithm claims of its classes."""
    claims = [words.format(value=_plain(parameters[key])) for key, words in CLASS_CLAIMS.items() if parameters.get(key)]
    if not claims:
        return _with_parameters(algorithm, parameters)
    ordered = ["ordered"] if parameters.get("ground") == "ordered" else []
    return f"{' and '.join(claims)} ({', '.join([algorithm, *shown, *ordered])})"


def _plain(value: Any) -> str:
    return f"({', '.join(f'{one:g}' for one in value)})" if isinstance(value, list) else f"{value:g}"


CLASS_CLAIMS = {
    "k": "{value}-anonymity",
    "l": "{value}-diversity",
    "entropy_l": "entropy {value}-diversity",
    "recursive_cl": "recursive {value}-diversity",
    "t": "{value}-closeness",
}


def _noise(kind: str) -> Callable[[Parameters], str]:
    def words(parameters: Parameters) -> str:
        keys = ("epsilon", "delta_dp", "sigma")
        shown = [f"{key} = {parameters[key]}" for key in keys if parameters.get(key) is not None]
        return f"counts with {kind} noise ({', '.join(shown)})"

    return words


def _external(kind: str, key: str) -> Callable[[Parameters], str]:
    def words(parameters: Parameters) -> str:
        value = parameters.get(key)
        shown = " ".join(map(str, value)) if isinstance(value, list | tuple) else value
        return f"{kind} {shown}" if shown else kind

    return words


SANITIZERS: dict[str, Callable[[Parameters], str]] = {
    "raw": lambda _parameters: "the table as it is (raw)",
    "suppressed": lambda _parameters: "all quasi-identifiers suppressed",
    "mondrian": _mondrian,
    "full-domain": _full_domain,
    "laplace": _noise("Laplace"),
    "geometric": _noise("geometric"),
    "gaussian": _noise("Gaussian"),
    "marginals": lambda parameters: _with_parameters("synthetic data from noisy marginals", parameters),
    "resample": lambda parameters: _with_parameters("rows drawn again from the table", parameters),
    "python": _external("the Python function", "target"),
    "function": _external("a Python function given by value, which this run alone can repeat:", "function"),
    "command": _external("the command", "argv"),
    "precomputed": _external("a release made elsewhere:", "full"),
}

# the largest value that each distance can take, and what half of it or all of it means
LARGEST = {"emd": 2.0, "tv": 1.0, "emd-v1": 0.5, "js": math.log(2), "hellinger": 1.0, "kl": math.inf, "max-ratio": math.inf}
MOVED = {"emd": 0.5, "tv": 1.0, "emd-v1": 2.0}  # times d: the share of the belief that moved to other values


def largest_distance(parameters: Parameters) -> float | None:
    """The largest value that the distance of a test can take; None where it depends on the data."""
    return LARGEST.get(_distance_name(parameters))


def delta_sentence(parameters: Parameters, delta: float) -> str:
    """Explain a delta: how much of an adversary's belief one record moves."""
    name = _distance_name(parameters)
    share = MOVED.get(name)
    if share is None:
        return f"delta is measured by {name}: 0 where the record changes nothing; the more it changes, the larger."
    moved = 100 * share * delta
    return (
        f"For the person at most risk, the record moves {moved:.3g}% of what an adversary believes about the sensitive value "
        f"from some values to others (delta {delta:.4g} of at most {LARGEST[name]:g})."
    )


def _distance_name(parameters: Parameters) -> str:
    distance = parameters.get("distance", "emd")
    return str(distance["name"] if isinstance(distance, Mapping) else distance)
