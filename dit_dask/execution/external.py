"""The external sanitizers of a run: checked, given a cache, and probed on the cluster before the rows to test are chosen."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dit_dask.audit.test import Test
from dit_dask.config.document import Config
from dit_dask.engines import ReleaseProcedure
from dit_dask.engines.priority import estimated_influence
from dit_dask.errors import InputError
from dit_dask.execution.progress import Progress, Silent
from dit_dask.execution.runner import TaskRunner
from dit_dask.execution.session import TaskSession
from dit_dask.storage.folder import Folder
from dit_dask.storage.location import Location
from dit_dask.storage.redaction import public_url

if TYPE_CHECKING:
    from dit_dask.sanitizers.external import ExternalSanitizer
    from dit_dask.sanitizers.external.probe import ProbeResult
    from dit_dask.values.arrays import Floats, Ints

CACHE = ".releases"


def prepare_sanitizers(tests: Sequence[Test], config: Config, output: Folder) -> tuple[list[Test], dict[str, str]]:
    """Check that every external sanitizer can be called, and give it a folder for its cache; also return digests of code."""
    prepared: dict[int, ExternalSanitizer] = {}
    digests: dict[str, str] = {}
    prepared_tests = []
    for test in tests:
        sanitizer = test.external
        if sanitizer is None:
            prepared_tests.append(test)
            continue
        if id(sanitizer) not in prepared:
            checked, code = _check_callable(sanitizer, is_local=config.cluster.is_local)
            digests |= {f"{checked.where}: {name}": digest for name, digest in code.items()}
            prepared[id(sanitizer)] = checked.with_cache(_choose_cache(test, config, output))
        digests |= _digest_releases(prepared[id(sanitizer)], test)
        prepared_tests.append(test.with_external(prepared[id(sanitizer)]))
    return prepared_tests, digests


def _check_callable(sanitizer: ExternalSanitizer, *, is_local: bool) -> tuple[ExternalSanitizer, Mapping[str, str]]:
    """On a cluster of other machines the code may be there only, and is then known by name."""
    try:
        return sanitizer.prepare()
    except InputError:
        if is_local or not sanitizer.is_callable:
            raise
        return sanitizer, {}


def _choose_cache(test: Test, config: Config, output: Folder) -> Folder | None:
    """Releases are kept where the config says, else beside the runs, but in no bucket that was not named for it."""
    from dit_dask.sanitizers.external import NO_CACHE

    cache = test.config.sanitizer.settings["cache"]
    if cache == NO_CACHE or (test.external is not None and not test.external.is_callable):
        return None
    if cache is not None:
        options = config.output.storage_options if "://" in cache else {}
        return Folder(Location(cache, options), personal=True)
    personal = output.for_personal_data()  # releases without one person each, compared, show that person
    return None if "://" in personal.location.url else personal.child(CACHE)


def _digest_releases(sanitizer: ExternalSanitizer, test: Test) -> dict[str, str]:
    """Releases that were made elsewhere must all be there before anything starts; another version of them is another run."""
    from dit_dask.sanitizers.external.calls import Precomputed

    if not isinstance(sanitizer.caller, Precomputed) or sanitizer.match is not None:
        return {}
    needed = rows_to_remove(test, sanitizer, order_matters=bool(sanitizer.order_matters))
    present = sanitizer.caller.present(needed)
    absent = [record for record in needed.tolist() if record not in present]
    if absent:
        first = public_url(sanitizer.caller.url(absent[0]))
        raise InputError(
            f"{sanitizer.where}.without: {len(absent):,} of {len(needed):,} releases are missing, the first is {first} "
            "(dit leave-out writes the tables to sanitise)"
        )
    versions = json.dumps(sorted(present.items()))
    return {f"{sanitizer.where}: without": hashlib.sha256(versions.encode()).hexdigest()}


def rows_to_test(test: Test, sanitizer: ExternalSanitizer, *, order_matters: bool) -> Ints:
    """Return (rows,): the row whose removal stands for each audited row's; equal rows share one unless their order matters.

    Where persons have several rows, equal rows of two are different: others leave the table with them.
    """
    is_single = order_matters or test.rows.table.subject is not None
    return np.arange(len(sanitizer.frame)) if is_single else sanitizer.representatives(np.asarray(test.audited))


def rows_to_remove(test: Test, sanitizer: ExternalSanitizer, *, order_matters: bool) -> Ints:
    """Return the rows, ascending, whose removals the test needs; that of a person's first row removes all of its rows."""
    needed = np.unique(rows_to_test(test, sanitizer, order_matters=order_matters)[test.audited])
    return np.array([row for row, _ in test.rows.table.removals(needed)], np.int64)


def move_caches(tests: Sequence[Test], output: Folder) -> int:
    """Move cached releases that earlier runs without `private` left in the shared place; return how many."""
    private, shared = output.for_personal_data().child(CACHE), Folder(output.location).child(CACHE)
    caches = [test.external.cache for test in tests if test.external is not None and test.external.cache is not None]
    ours = {cache.name: cache for cache in caches if cache.location.url == f"{private.location.url}/{cache.name}"}
    return 0 if output.private is None else sum(cache.take_over(shared.child(name)) for name, cache in ours.items())


def has_shared_cache(output: Folder) -> bool:
    """Tell whether releases are in the shared place, where runs without `private` keep them unless it is a bucket."""
    return "://" not in output.location.url and bool(Folder(output.location).child(CACHE).names(""))


def clear_caches(tests: Sequence[Test]) -> None:
    """Forget the releases of the external sanitizers."""
    for test in tests:
        if test.external is not None and test.external.cache is not None:
            test.external.cache.clear()


def assume_probe_results(tests: Sequence[Test]) -> tuple[list[Test], dict[str, ProbeResult]]:
    """What a plan can say without a call: every call takes its whole time limit, and equal rows are tested once."""
    from dit_dask.sanitizers.external.probe import ProbeResult

    def assume(test: Test) -> tuple[ProbeResult, Floats]:
        limit = float(test.config.sanitizer.settings.get("timeout", 0.0))
        order_matters = test.external is not None and bool(test.external.order_matters)
        return ProbeResult(True, order_matters, limit, 0, 0, 0, 0), np.zeros(test.rows.used)

    return probe_sanitizers(tests, {}, assume, Silent(), by_risk=False)


def probe_sanitizers(
    tests: Sequence[Test],
    known: Mapping[str, ProbeResult],
    probe_test: Callable[[Test], tuple[ProbeResult, Floats]],
    progress: Progress,
    *,
    by_risk: bool,
) -> tuple[list[Test], dict[str, ProbeResult]]:
    """Probe each external sanitizer once and choose the rows to test; `known` has the results of an earlier session, by test.

    Records at risk go first if `by_risk`, and where the order of work costs nothing: when releases are cached for a resume.
    """
    probes: dict[tuple[int, int], tuple[ProbeResult, Floats | None]] = {}
    probed_tests, results = [], {}
    for test in tests:
        sanitizer = test.external
        if sanitizer is None:
            probed_tests.append(test)
            continue
        orders = by_risk or sanitizer.cache is not None
        key = (id(sanitizer), test.parameters.get("repeats", 1))
        if test.id in known and not orders:
            probes[key] = (known[test.id], None)
        elif key not in probes:
            fresh, risk = probe_test(test)
            probes[key] = (known.get(test.id, fresh), risk if orders else None)
            if test.id not in known:
                progress.note(f"{test.id}: the sanitizer is {fresh.description()}")
        result, risk_of_records = probes[key]
        if result.deterministic is False and test.parameters.get("repeats", 1) == 1:
            raise InputError(
                f"{sanitizer.where} gave two different releases of the same table: it draws at random, and one draw would "
                "report noise as risk; set repeats (20 or more) on the test"
            )
        results[test.id] = result
        free = result.deterministic is not False or sanitizer.order_matters is False
        index = rows_to_test(test, sanitizer, order_matters=bool(result.order_matters) or not free)
        probed_tests.append(replace(test, rows=replace(test.rows, index=index), estimated_influence=risk_of_records))
    return probed_tests, results


def probe_on_cluster(runner: TaskRunner, test: Test) -> tuple[ProbeResult, Floats]:
    """Have a worker make the first calls of the external sanitizer of a test."""

    def work(session: TaskSession) -> tuple[ProbeResult, Floats]:
        key, description = f"first-calls-{test.id}", f"{test.id}: first calls"
        session.submit(probe_on_worker, session.scatter(test), key=key, description=description, retries=0)
        (result,) = (session.result(future) for future in session.completed())
        probe_result: tuple[ProbeResult, Floats] = result
        return probe_result

    return runner.run(work, task_seconds=float(test.config.sanitizer.settings.get("timeout", 0.0)))


def probe_on_worker(test: Test) -> tuple[ProbeResult, Floats]:
    """On a worker: call an external sanitizer for the whole table; also return the estimated influence of each record."""
    from dit_dask.sanitizers.external.probe import probe

    sanitizer, procedure, table = test.external, test.procedure, test.rows.table
    if sanitizer is None or not isinstance(procedure, ReleaseProcedure):
        raise TypeError("only external sanitizers are probed")
    return probe(sanitizer, table, procedure.rng), estimated_influence(table, procedure.publish(table), procedure)
