"""Version checks: what must agree between this process and the cluster for equal results, before work starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dit_dask.errors import InputError

if TYPE_CHECKING:
    from distributed import Client


def _exact(version: str) -> str:
    return version


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


# code is sent as bytecode of one minor Python, and Dask releases are not compatible with each other;
# the others compute or store results, and their patch releases promise not to change any
RULES: dict[str, Callable[[str], str]] = {
    "python": _minor,
    "dask": _exact,
    "distributed": _exact,
    "dit_dask": _exact,
    "cloudpickle": _minor,
    "numpy": _minor,
    "numba": _minor,
    "pandas": _minor,
    "pyarrow": _minor,
    "scikit-learn": _minor,
    "scipy": _minor,
    "POT": _minor,
    "fsspec": _minor,
}
SCHEDULER = ("python", "dask", "distributed", "cloudpickle")  # it handles tasks, not data


def check(client: Client) -> None:
    """Raise InputError for a cluster whose scheduler or workers run other versions than this client."""
    packages = [name for name in RULES if name != "python"]
    found: dict[str, Any] = client.get_versions(packages=packages)
    differences = skew(found["client"], found["scheduler"], found["workers"])
    if differences:
        raise InputError(f"cluster: versions differ: {'; '.join(differences)}; install the same ones on both sides")


def skew(client: Mapping[str, Any], scheduler: Mapping[str, Any] | None, workers: Mapping[str, Any]) -> list[str]:
    """List each package that differs, once, with its versions on both sides."""
    mine, differences = _versions(client), []
    for name, rule in RULES.items():
        places = [("worker", _versions(one)) for one in workers.values()]
        if scheduler is not None and name in SCHEDULER:
            places.append(("scheduler", _versions(scheduler)))
        for place, theirs in places:
            here, there = mine[name], theirs.get(name)
            if there is None or rule(here) != rule(there):
                differences.append(f"{name} {here} here, {there or 'none'} on a {place}")
                break
    return differences


def _versions(side: Mapping[str, Any]) -> dict[str, str]:
    """Return versions by name; Python is reported as 3.11.2.final.0, apart from the packages."""
    python = ".".join(side["host"]["python"].split(".")[:3])
    return {"python": python} | {name: version for name, version in side["packages"].items() if version}
