"""The black boxes of a run: made ready, examined, and told which rows stand for which."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.audit.test import Test
from dit_dask.config.document import Config
from dit_dask.errors import InputError
from dit_dask.execution.progress import Progress, Silent
from dit_dask.sanitizers.external import NO_CACHE, ExternalSanitizer
from dit_dask.sanitizers.external.calls import Precomputed
from dit_dask.sanitizers.external.probe import ProbeResult
from dit_dask.storage.folder import Folder
from dit_dask.storage.location import Location
from dit_dask.storage.redaction import public_url

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats, Ints

CACHE = ".releases"


def ready(tests: Sequence[Test], config: Config, output: Folder) -> tuple[list[Test], dict[str, str]]:
    """Check that every black box can be asked, and give each its place in a cache; also return digests of their code."""
    known: dict[int, ExternalSanitizer] = {}
    code: dict[str, str] = {}
    made = []
    for test in tests:
        oracle = test.oracle
        if oracle is None:
            made.append(test)
            continue
        if id(oracle) not in known:
            found, digests = _ready(oracle, is_local=config.cluster.kind == "local")
            code |= {f"{found.where}: {name}": digest for name, digest in digests.items()}
            known[id(oracle)] = found.with_cache(_cache(test, config, output))
        code |= _files(known[id(oracle)], test)
        made.append(test.asking(known[id(oracle)]))
    return made, code


def _ready(oracle: ExternalSanitizer, *, is_local: bool) -> tuple[ExternalSanitizer, Mapping[str, str]]:
    """Make an oracle ready; on a cluster of other machines its code may be there only, and is then known by name."""
    try:
        return oracle.prepare()
    except InputError:
        if is_local or not oracle.is_callable:
            raise
        return oracle, {}


def _cache(test: Test, config: Config, output: Folder) -> Folder | None:
    """Releases are kept where the config says, else beside the runs, but in no bucket that was not named for it."""
    asked = test.config.sanitizer.settings["cache"]
    if asked == NO_CACHE or (test.oracle is not None and not test.oracle.is_callable):
        return None
    if asked is not None:
        options = config.output.storage_options if "://" in asked else {}
        return Folder(Location(asked, options))
    return None if "://" in output.location.url else output.child(CACHE)


def _files(oracle: ExternalSanitizer, test: Test) -> dict[str, str]:
    """Releases that were made elsewhere must all be there before anything starts; another version of them is another run."""
    if not isinstance(oracle.caller, Precomputed):
        return {}
    needed = np.unique(rows_to_test(test, oracle, order_matters=bool(oracle.order_matters))[test.audited])
    present = oracle.caller.present(needed)
    absent = [record for record in needed.tolist() if record not in present]
    if absent:
        first = public_url(oracle.caller.url(absent[0]))
        raise InputError(
            f"{oracle.where}.without: {len(absent):,} of {len(needed):,} releases are missing, the first is {first} "
            "(dit leave-out writes the tables to sanitise)"
        )
    versions = json.dumps(sorted(present.items()))
    return {f"{oracle.where}: without": hashlib.sha256(versions.encode()).hexdigest()}


def rows_to_test(test: Test, oracle: ExternalSanitizer, *, order_matters: bool) -> Ints:
    """Return (rows,): the row whose removal stands for each audited row's; equal rows share one unless their order matters."""
    return np.arange(len(oracle.frame)) if order_matters else oracle.representatives(test.audited)


def forget(tests: Sequence[Test]) -> None:
    """Empty the caches of the black boxes."""
    for test in tests:
        if test.oracle is not None and test.oracle.cache is not None:
            test.oracle.cache.clear()


def assumed(tests: Sequence[Test]) -> tuple[list[Test], dict[str, ProbeResult]]:
    """What a plan can say without a call: every call takes its whole time limit, and equal rows are tested once."""

    def ask(test: Test) -> tuple[ProbeResult, Floats]:
        limit = float(test.config.sanitizer.settings.get("timeout", 0.0))
        minds = test.oracle is not None and bool(test.oracle.order_matters)
        return ProbeResult(True, minds, limit, 0, 0, 0, 0), np.zeros(test.rows.used)

    return examine(tests, {}, ask, Silent(), hurry=False)


def examine(
    tests: Sequence[Test],
    known: Mapping[str, Mapping[str, Any]],
    ask: Callable[[Test], tuple[ProbeResult, Floats]],
    progress: Progress,
    *,
    hurry: bool,
) -> tuple[list[Test], dict[str, ProbeResult]]:
    """Find out how each black box behaves and which rows must be tested; `known` is what an earlier session found, by test.

    Records at risk go first where the order of work costs nothing: in a hurry, or when releases are cached for a resume.
    """
    asked: dict[tuple[int, int], tuple[ProbeResult, Floats | None]] = {}
    settled, found = [], {}
    for test in tests:
        oracle = test.oracle
        if oracle is None:
            settled.append(test)
            continue
        by_risk = hurry or oracle.cache is not None
        key = (id(oracle), test.parameters.get("repeats", 1))
        if test.id in known and not by_risk:
            asked[key] = (ProbeResult(**known[test.id]), None)
        elif key not in asked:
            fresh, risk = ask(test)
            asked[key] = (ProbeResult(**known[test.id]) if test.id in known else fresh, risk if by_risk else None)
            if test.id not in known:
                progress.note(f"{test.id}: the sanitizer is {fresh.description()}")
        examined, estimated_influence = asked[key]
        if examined.deterministic is False and test.parameters.get("repeats", 1) == 1:
            raise InputError(
                f"{oracle.where} gave two different releases of the same table: it draws at random, and one draw would report "
                "noise as risk; set repeats (20 or more) on the test"
            )
        found[test.id] = examined
        free = examined.deterministic is not False or oracle.order_matters is False
        index = rows_to_test(test, oracle, order_matters=bool(examined.order_matters) or not free)
        settled.append(replace(test, rows=replace(test.rows, index=index), estimated_influence=estimated_influence))
    return settled, found
