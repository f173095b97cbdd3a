"""The Python API of an audit: frames or URLs in, data frames out."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dit_dask import run
from dit_dask.audit.grammar import check_config
from dit_dask.deciding.reopening import AuditInputs
from dit_dask.deciding.tuning import Tuning, first_parameter
from dit_dask.deciding.tuning import tune as tune_config
from dit_dask.errors import DitError, InputError, describe_value
from dit_dask.execution import measures as measuring
from dit_dask.execution import progress
from dit_dask.execution.reading import Gatherer
from dit_dask.execution.runner import TaskRunner
from dit_dask.execution.workers import Workers, connect_early
from dit_dask.inputs.arguments import read_data, sanitizer_document, tests_document, to_document, to_pandas
from dit_dask.measures.synthetic import closeness as closest
from dit_dask.measures.synthetic.closeness import Closeness
from dit_dask.results import Result, open_result
from dit_dask.storage.location import Location
from dit_dask.values.pieces import PieceColumn

if TYPE_CHECKING:
    import pandas as pd
    from distributed import Client


def audit(
    data: Any,
    *,
    schema: Mapping[str, Any],
    tests: Sequence[Any] = (),
    measures: Sequence[Mapping[str, Any] | str] = (),
    client: Client | None = None,
    name: str = "audit",
    missing: Sequence[str | float] | Mapping[str, Sequence[str | float]] = (),
    limit: int | None = None,
    sample: Mapping[str, int] | None = None,
    gates: Sequence[str] = (),
    claims: str = "fail",
    controls: bool = True,
    stop_on_breach: bool = False,
    output: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    seed: int = 0,
    quiet: bool | None = None,
    show_values: bool = False,
) -> Result:
    """Run the differential inference test on a frame, a file or a URL.

    All arguments but `client`, `quiet` and `show_values` are keys of a config file and are checked as there.

    Parameters
    ----------
    data
        A frame of pandas, Dask or polars, a path or a URL. Frames of Dask and polars are turned into one of pandas.
    schema
        `quasi_identifiers`, `sensitive`, and `subject` where a person has several rows.
    tests
        Mappings as in a config. A sanitizer may also be an object such as `dit.Mondrian(k=5)` or any function from a frame to
        a frame, a lambda or a function of a notebook among them; either may stand for the whole test. Functions run in
        processes of their own. A run of a function by value is never resumed and never counts as one that was done before.
    measures
        Names or mappings as in a config.
    client
        A Client of dask.distributed. Without one the work is done in this process; with one it is spread over that cluster,
        and `output` must be a place that its workers can write to.
    name
        The first part of the name of the run folder.
    missing, limit, sample
        Keys of `data` in a config: marks of missing values, the first rows only, or a sample of rows.
    gates
        Conditions such as `"delta <= 0.1"`; the verdict says which of them passed.
    claims
        What a broken claim of a sanitizer does: "fail" or "report".
    controls
        Whether the raw table and a fully suppressed one are tested, too.
    stop_on_breach
        Whether to stop as soon as a gate has failed.
    output
        A path, a URL, or a mapping as in a config, with a place for `private`. Without it the run folder is in a temporary
        one, which is removed together with the result, at the latest when Python ends.
    seed
        The seed of all randomness.
    quiet
        Whether to show no progress; by default it is shown in notebooks only.
    show_values
        Whether the text of an error may hold values of the data that few rows share.

    Returns
    -------
    Result
        The finished audit.

    Examples
    --------
    >>> import dit_dask as dit, pandas as pd
    >>> people = pd.DataFrame({"age": [20, 21, 22, 23, 60, 61, 62, 63] * 5, "ill": ["flu", "none"] * 20})
    >>> schema = {"quasi_identifiers": {"age": {"kind": "numeric"}}, "sensitive": "ill"}
    >>> result = dit.audit(people, schema=schema, tests=[dit.Mondrian(k=5)], gates=["delta <= 0.5"])
    >>> result.verdict.status
    'failed'

    A function as the sanitizer:

    >>> def decades(frame):
    ...     low = frame["age"] // 10 * 10
    ...     return frame.assign(age=low.astype(str) + "-" + (low + 9).astype(str))
    >>> dit.audit(people, schema=schema, tests=[decades]).summary.index.tolist()
    ['function-decades']
    """
    source, frame = read_data(data)
    _workers(client)
    arguments = {
        "name": name,
        "schema": schema,
        "tests": tests_document(tests),
        "measures": measures,
        "gates": gates,
        "claims": claims,
        "controls": controls,
        "stop_on_breach": stop_on_breach,
        "seed": seed,
    }
    keys = {"missing": missing, "limit": limit, "sample": sample}
    about_data = {key: value for key, value in keys.items() if value is not None}
    document = to_document({"version": 1, "data": {"source": source, **about_data}, **arguments})
    return _in_output(document, output, lambda whole: _run(whole, frame, client, quiet=quiet), show_values=show_values)


def tune(
    data: Any,
    *,
    schema: Mapping[str, Any],
    sanitizer: Any,
    values: Sequence[float] = (),
    parameter: str | None = None,
    gates: Sequence[str] = (),
    test: Mapping[str, Any] | None = None,
    client: Client | None = None,
    name: str = "audit",
    missing: Sequence[str | float] | Mapping[str, Sequence[str | float]] = (),
    limit: int | None = None,
    sample: Mapping[str, int] | None = None,
    claims: str = "fail",
    output: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    seed: int = 0,
    quiet: bool | None = None,
    show_values: bool = False,
) -> Tuning:
    """Audit a sanitizer with every value of one parameter, and recommend the weakest that passes every gate.

    Parameters
    ----------
    data, schema, gates, client, name, missing, limit, sample, claims, output, seed, quiet, show_values
        As of `audit`.
    sanitizer
        A name, a mapping as in a config, or an object such as `dit.Mondrian(k=5)`.
    values
        The values to try; those of the parameter's own grid by default.
    parameter
        The parameter to tune; the one that the sanitizer sets by default, or the first that can be tuned (k of mondrian,
        epsilon of laplace).
    test
        Further keys of the test, such as adversary or distance.

    Returns
    -------
    Tuning
        `curve`, `recommended`, `reason`, `frontier()`, `plot()` and `plot_frontier()`.

    Examples
    --------
    >>> import dit_dask as dit, pandas as pd
    >>> people = pd.DataFrame({"age": [20, 21, 22, 23, 60, 61, 62, 63] * 5, "ill": ["flu", "none", "none", "flu"] * 10})
    >>> schema = {"quasi_identifiers": {"age": {"kind": "numeric"}}, "sensitive": "ill"}
    >>> tuned = dit.tune(people, schema=schema, sanitizer="mondrian", values=[2, 5, 10], gates=["delta <= 0.1"])
    >>> tuned.recommended  # of this table a larger k is not always safer: see tuned.curve
    2
    """
    source, frame = read_data(data)
    component = sanitizer_document(sanitizer)
    component = {"name": component} if isinstance(component, str) else dict(component)
    chosen = first_parameter(component, parameter, values)
    tests = [{**(test or {}), "sanitizer": chosen}]
    arguments = {"name": name, "schema": schema, "tests": tests, "gates": gates, "claims": claims, "seed": seed}
    keys = {"missing": missing, "limit": limit, "sample": sample}
    about_data = {key: value for key, value in keys.items() if value is not None}
    document = to_document({"version": 1, "data": {"source": source, **about_data}, **arguments})

    def choose(whole: Mapping[str, Any]) -> Tuning:
        checked = check_config(whole, folder=str(Path.cwd()))
        shown = progress.choose_progress(quiet=quiet)
        given = to_document(list(values))
        return tune_config(checked, _workers(client), shown, values=given, parameter=parameter, frame=frame)

    return _in_output(document, output, choose, show_values=show_values)


Finished = TypeVar("Finished", bound=object)


def _in_output(
    document: Mapping[str, Any], output: Any, work: Callable[[Mapping[str, Any]], Finished], *, show_values: bool
) -> Finished:
    """Work with an output, or with a temporary one that is removed together with the result."""
    temporary = tempfile.mkdtemp(prefix="dit-") if output is None else None
    try:
        result = work({**document, "output": temporary or to_document(output)})
    except BaseException as error:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
        if isinstance(error, DitError) and show_values and error.hidden:
            raise type(error)(error.revealed()) from error
        raise
    if temporary is not None:
        weakref.finalize(result, shutil.rmtree, temporary, ignore_errors=True)
    return result


def _workers(client: Client | None) -> Workers:
    """The workers of a client; without one the work is done in this process."""
    if client is None:
        return Workers(None, 1)
    if not hasattr(client, "scheduler_info"):
        raise InputError(f"client must be a Client of dask.distributed; got {describe_value(client)}")
    return Workers(lambda: nullcontext(client), max(1, len(client.scheduler_info(n_workers=-1)["workers"])))


def _run(document: Mapping[str, Any], frame: pd.DataFrame | None, client: Client | None, *, quiet: bool | None) -> Result:
    checked = check_config(document, folder=str(Path.cwd()))
    shown = progress.choose_progress(quiet=quiet)
    chosen = _workers(client)
    with connect_early(chosen, checked) if frame is None else nullcontext(chosen) as workers:
        prepared = run.prepare(checked, frame, gather=Gatherer(workers.client, shown))
        finished = run.run(prepared, workers, shown)
    inputs = (
        None if isinstance(prepared.rows.index, PieceColumn) else AuditInputs(prepared.config, prepared.rows, prepared.tests)
    )
    name = prepared.folder.name
    del prepared  # a result must not keep rows on workers, which it outlives

    def load() -> AuditInputs:
        """Rows that workers kept are read again when they are asked for."""
        if inputs is not None:
            return inputs
        again = run.prepare(checked)
        if again.folder.name != name:
            raise InputError("data: the source has changed since it was audited; run the audit again")
        return AuditInputs(again.config, again.rows, again.tests)

    return Result(finished.folder, finished.summaries, finished.measures, finished.verdict, load, frame)


def open(  # named as users call it
    url: str | os.PathLike[str], *, data: Any = None, storage_options: Mapping[str, Any] | None = None
) -> Result:
    """Open a finished run, of `dit run` or of `dit.audit`.

    Parameters
    ----------
    url
        The run folder: a path or a URL.
    data
        The table that was audited: a frame, a path or a URL. Only what needs the data reads it, such as `worst()`; by default
        it reads the source that the run's config names.
    storage_options
        Credentials and other options of the URL's filesystem.

    Returns
    -------
    Result
        As `audit` returned it.

    Examples
    --------
    >>> import dit_dask as dit, pandas as pd
    >>> people = pd.DataFrame({"age": [20, 21, 22, 23, 60, 61, 62, 63] * 5, "ill": ["flu", "none"] * 20})
    >>> schema = {"quasi_identifiers": {"age": {"kind": "numeric"}}, "sensitive": "ill"}
    >>> url = dit.audit(people, schema=schema, tests=[dit.Mondrian(k=5)], output="runs").url
    >>> dit.open(url).summary.index.tolist()
    ['mondrian-k5']
    >>> len(dit.open(url, data=people).worst(3))
    3
    """
    if not isinstance(url, str | os.PathLike):
        raise InputError(f"url must be a path or a URL of a run folder; got {describe_value(url)}")
    source = os.fspath(data) if isinstance(data, str | os.PathLike) else None
    frame = None if data is None or source is not None else to_pandas(data)
    return open_result(Location(os.fspath(url).rstrip("/"), storage_options or {}), source, frame)


def closeness(
    training: pd.DataFrame,
    synthetic: pd.DataFrame,
    holdout: pd.DataFrame,
    distance: str = "buckets",
    *,
    bins: int = 10,
    columns: Sequence[str] | None = None,
    kinds: Mapping[str, str] | None = None,
    level: float = closest.LEVEL,
    client: Client | None = None,
) -> Closeness:
    """Ask whether a synthetic table memorised its training records, by comparison with a holdout.

    Parameters
    ----------
    training
        What the synthesizer was shown.
    synthetic
        What it made.
    holdout
        Records of the same population that it was not shown.
    distance
        buckets (in how many columns the buckets differ), gower or euclidean.
    bins
        How many buckets a column of numbers has; of the distance buckets only.
    columns
        The columns to compare; all by default.
    kinds
        The kind of a column, such as {"code": "categorical"} for numbers that are names.
    level
        The probability of any false alarm among all tests.
    client
        A Client of dask.distributed on which the records are searched; the result is the same to the bit.

    Returns
    -------
    Closeness
        `passed` and `reason`, and the figures behind them.

    Examples
    --------
    >>> import dit_dask as dit, numpy as np, pandas as pd
    >>> rng = np.random.default_rng(1)
    >>> training, holdout = (pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc")) for _ in range(2))
    >>> dit.closeness(training, training, holdout, "euclidean").passed  # a copy is no synthetic table
    False
    """
    search = closest.search_in_process if client is None else partial(measuring.search_on_cluster, TaskRunner(client))
    frames = (training, synthetic, holdout)
    return closest.closeness(*frames, distance, bins=bins, columns=columns, kinds=kinds, level=level, search=search)
