"""The Python API of an audit: frames or URLs in, data frames out."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dit_dask import run
from dit_dask.audit.disclosure import exact_folder
from dit_dask.audit.grammar import check_config
from dit_dask.audit.parts import read_distances
from dit_dask.audit.statistics import by_name
from dit_dask.audit.summary import TestSummary, read_curves
from dit_dask.audit.verdict import RunVerdict
from dit_dask.deciding.explanation import Case, explain
from dit_dask.deciding.figures import figures_of
from dit_dask.deciding.frontier import choose_loss, find_frontier
from dit_dask.deciding.reopening import worst_test
from dit_dask.deciding.tuning import Tuning, first_parameter
from dit_dask.deciding.tuning import tune as tune_config
from dit_dask.errors import DitError, InputError, describe_value, unknown
from dit_dask.execution import measures as measuring
from dit_dask.execution import progress
from dit_dask.execution.runner import TaskRunner
from dit_dask.inputs.load import load_with
from dit_dask.inputs.source import read_text
from dit_dask.measures.base import MeasureEntry
from dit_dask.measures.synthetic import closeness as closest
from dit_dask.measures.synthetic.closeness import Closeness
from dit_dask.releasing.sanitized import sanitize_test
from dit_dask.reporting import charts
from dit_dask.storage.folder import Folder

if TYPE_CHECKING:
    import pandas as pd
    from distributed import Client

    from dit_dask.config.document import Config


@dataclass(frozen=True, eq=False)
class Result:
    """A finished audit."""

    folder: Folder
    summaries: Sequence[TestSummary]
    entries: Sequence[MeasureEntry]
    verdict: RunVerdict
    values: Mapping[str, tuple[str, ...]]
    """The values of each sensitive attribute in the order that `predicted` counts them; they stay in this process."""
    labels: pd.Index[Any]
    """Of every used row: its label in the index of the frame given, or its position in the source."""
    prepared: run.PreparedRun = field(repr=False)
    frame: pd.DataFrame | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """The run folder."""
        return self.folder.url

    @property
    def passed(self) -> bool:
        """Whether every gate passed; False where one cannot be judged, or none is set."""
        return self.verdict.status == "passed"

    @property
    def tests(self) -> list[dict[str, Any]]:
        """The objects of summary.json, one for each test."""
        return [one.document() for one in self.summaries]

    @property
    def measures(self) -> list[dict[str, Any]]:
        """The objects of measures.json, one for each measure and release."""
        return [entry.document() for entry in self.entries]

    @property
    def summary(self) -> pd.DataFrame:
        """One row a test; quantiles and shares are columns such as `quantiles[0.99]`."""
        import pandas as pd

        keyed = {name: statistic for name, statistic in by_name().items() if statistic.keys}
        rows = []
        for test in self.tests:
            row: dict[str, Any] = {}
            for name, value in test.items():
                if name in keyed:
                    row |= {keyed[name].label(key): figure for key, figure in value.items()}
                else:
                    row[name] = value
            rows.append(row)
        return pd.DataFrame(rows, columns=None if rows else ["test"]).set_index("test")

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values of the sensitive attribute, where there is one; `values` has those of several."""
        if len(self.values) > 1:
            raise InputError(f"secrets: there are {len(self.values)} sensitive attributes; values has those of each")
        return next(iter(self.values.values()))

    def distances(self, test: str | int = 0) -> pd.DataFrame:
        """The rows of one test, by id or position, indexed like the frame given; a simulation also has unbiased and stderr.

        Of a file the index is the position in the source. Rows that were dropped or not tested are absent.
        """
        joined = read_distances(self.folder, self._test_id(test))
        return joined.set_axis(self.labels[joined["record"].to_numpy()])

    def release(self, test: str | int = 0) -> pd.DataFrame:
        """What a test publishes, with readable generalised values, indexed like the frame given; suppressed rows are absent.

        Noisy counts are a table of counts. A release that does not tell which row is whose is numbered from 0.
        """
        chosen = self._test_id(test)
        built = next(one for one in self.prepared.tests if one.id == chosen)
        return sanitize_test(built, self.prepared.rows).frame(self.labels)

    def epsilon_delta(self, test: str | int = 0) -> pd.DataFrame:
        """For each epsilon the largest Pr[d >= epsilon] of any person, with bounds for all persons and epsilons at once.

        Columns: mean, worst, at_least, at_most, noise_worst. Of a test without repeats every probability is 0 or 1: an error.
        """
        import pandas as pd

        identity = self._test_id(test)
        repeats = next(one for one in self.summaries if one.test == identity).repeats
        if repeats is None:
            raise InputError(f"epsilon_delta: {identity} has no repeats, so its distances have no distribution; set repeats")
        return pd.DataFrame([asdict(point) for point in repeats.curve]).set_index("epsilon")

    def worst(self, top: int = 10, test: str | int | None = None, *, show_values: bool = False) -> pd.DataFrame:
        """Explain the persons with the largest distances, of one test or of that with the largest delta; one row each.

        It is found by brute force and compared with the stored distances. With `show_values` the frame also has the values of
        the persons' rows.
        """
        import pandas as pd

        if isinstance(top, bool) or not isinstance(top, int) or top < 1:
            raise InputError(f"top must be an integer >= 1; got {describe_value(top)}")
        chosen = worst_test(self.summaries) if test is None else self._test_id(test)
        config, built = self.prepared.config, {one.id: one for one in self.prepared.tests}
        cells = self._cells() if show_values else None
        found = explain(Case(config, built[chosen], read_distances(self.folder, chosen), partial(_read, config), cells), top)
        frame = pd.DataFrame([one.flat() for one in found])
        return frame.set_axis(self.labels[frame["record"].to_numpy()])

    def frontier(self, risk: str = "delta") -> pd.DataFrame:
        """The sanitised tests that no other one beats in both a risk and the loss of utility, the smallest loss first.

        The risk is delta, mean, share_over[0.1] or mean_gain. The loss is the first of certainty_penalty, query_error[0.5],
        tvd[2] and discernibility that all tests have; it is the first column.
        """
        import pandas as pd

        tests = [one for one in self.summaries if one.is_sanitised]
        points = [figures_of([one]) for one in tests]
        loss = choose_loss(points) if points else None
        places = find_frontier(points, risk, loss)
        frame = pd.DataFrame(
            [points[place] for place in places], pd.Index([tests[place].test for place in places], name="test")
        )
        return frame if loss is None else frame[[loss, *(name for name in frame.columns if name != loss)]]

    def _cells(self) -> pd.DataFrame:
        """The used rows as they were given."""
        config = self.prepared.config
        return load_with(config, [], self.frame)[1]

    def _test_id(self, test: str | int) -> str:
        """The id of a test that is given by its id or its position."""
        ids = [one.test for one in self.summaries]
        if isinstance(test, int) and not isinstance(test, bool):
            if not -len(ids) <= test < len(ids):
                raise InputError(f"test must be an id or a position from 0 to {len(ids) - 1}; got {test}")
            return ids[test]
        if test not in ids:
            raise unknown("test", test, ids)
        return test

    def measured(self, measure: str) -> pd.DataFrame:
        """What a measure says of each record, by its id: `record` and the measure's columns, indexed like `distances`."""
        import pyarrow.parquet as pq

        ids = [entry.id for entry in self.entries if entry.columns]
        content = self.folder.read(f"measures/{measure}.parquet") if measure in ids else None
        if content is None:
            raise unknown("measure", measure, ids)
        frame: pd.DataFrame = pq.read_table(io.BytesIO(content)).to_pandas()
        return frame.set_axis(self.labels[frame["record"].to_numpy()])

    def plot(self) -> charts.Figure:
        """Draw the cumulative distribution of every test; notebooks show it, `save(path)` keeps it."""
        return charts.cumulative(read_curves(exact_folder(self.folder)))


def audit(
    data: pd.DataFrame | str | os.PathLike[str],
    *,
    schema: Mapping[str, Any],
    tests: Sequence[Mapping[str, Any]] = (),
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
    quiet: bool = True,
    show_values: bool = False,
) -> Result:
    """Run the differential inference test on a DataFrame or URL.

    All arguments but `client`, `quiet` and `show_values` are keys of a config file and are checked as there; `missing`, `limit`
    and `sample` are keys of its `data`. Without a client the work is done in this process; with one it is spread over that
    cluster, and `output` must be a place that its workers can write to. Without `output` the run folder is in a temporary one,
    which is removed together with the result, at the latest when Python ends. `output` may be a mapping as in a config file,
    with a place for `private`. With `show_values` the text of an error also holds values of the data that few rows share.
    """
    source, frame = _check_data(data)
    _workers(client)
    arguments = {
        "name": name,
        "schema": schema,
        "tests": tests,
        "measures": measures,
        "gates": gates,
        "claims": claims,
        "controls": controls,
        "stop_on_breach": stop_on_breach,
        "seed": seed,
    }
    keys = {"missing": missing, "limit": limit, "sample": sample}
    about_data = {key: value for key, value in keys.items() if value is not None}
    document = _document({"version": 1, "data": {"source": source, **about_data}, **arguments})
    return _in_output(document, output, lambda whole: _run(whole, frame, client, quiet=quiet), show_values=show_values)


def tune(
    data: pd.DataFrame | str | os.PathLike[str],
    *,
    schema: Mapping[str, Any],
    sanitizer: Mapping[str, Any] | str,
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
    quiet: bool = True,
    show_values: bool = False,
) -> Tuning:
    """Audit a sanitizer with every value of one parameter, and recommend the weakest that passes every gate.

    The result has `curve`, `recommended`, `reason`, `frontier()`, `plot()` and `plot_frontier()`. The parameter is the one that
    the sanitizer sets, or the first that can be tuned (k of mondrian, epsilon of laplace); without values, those of its default
    grid. `test` has further keys of the test, such as adversary or distance; the other arguments are those of `audit`.
    """
    source, frame = _check_data(data)
    component = {"name": sanitizer} if isinstance(sanitizer, str) else dict(sanitizer)
    chosen = first_parameter(component, parameter, values)
    tests = [{**(test or {}), "sanitizer": chosen}]
    arguments = {"name": name, "schema": schema, "tests": tests, "gates": gates, "claims": claims, "seed": seed}
    keys = {"missing": missing, "limit": limit, "sample": sample}
    about_data = {key: value for key, value in keys.items() if value is not None}
    document = _document({"version": 1, "data": {"source": source, **about_data}, **arguments})

    def choose(whole: Mapping[str, Any]) -> Tuning:
        checked = check_config(whole, folder=str(Path.cwd()))
        shown = progress.choose_progress(quiet=quiet)
        given = _document(list(values))
        return tune_config(checked, _workers(client), shown, values=given, parameter=parameter, frame=frame)

    return _in_output(document, output, choose, show_values=show_values)


Finished = TypeVar("Finished", bound=object)


def _in_output(
    document: Mapping[str, Any], output: Any, work: Callable[[Mapping[str, Any]], Finished], *, show_values: bool
) -> Finished:
    """Work with an output, or with a temporary one that is removed together with the result."""
    temporary = tempfile.mkdtemp(prefix="dit-") if output is None else None
    try:
        result = work({**document, "output": temporary or _document(output)})
    except BaseException as error:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
        if isinstance(error, DitError) and show_values and error.hidden:
            raise type(error)(error.revealed()) from error
        raise
    if temporary is not None:
        weakref.finalize(result, shutil.rmtree, temporary, ignore_errors=True)
    return result


def _workers(client: Client | None) -> run.Workers:
    """The workers of a client; without one the work is done in this process."""
    if client is None:
        return run.Workers(None, 1)
    if not hasattr(client, "scheduler_info"):
        raise InputError(f"client must be a Client of dask.distributed; got {describe_value(client)}")
    return run.Workers(lambda: nullcontext(client), max(1, len(client.scheduler_info(n_workers=-1)["workers"])))


def _run(document: Mapping[str, Any], frame: pd.DataFrame | None, client: Client | None, *, quiet: bool) -> Result:
    import pandas as pd

    checked = check_config(document, folder=str(Path.cwd()))
    prepared = run.prepare(checked, frame)
    finished = run.run(prepared, _workers(client), progress.choose_progress(quiet=quiet))
    values = {name: rows.table.schema.sensitive.levels for name, rows in prepared.rows.by_secret.items()}
    positions = prepared.rows.source_row
    labels = pd.Index(positions) if frame is None else frame.index[positions]
    found = finished.folder, finished.summaries, finished.measures, finished.verdict
    return Result(*found, values, labels, prepared, frame)


def _read(config: Config, path: str, where: str) -> str:
    return read_text(path, config, where)


def _check_data(data: pd.DataFrame | str | os.PathLike[str]) -> tuple[str, pd.DataFrame | None]:
    """Return the source as a config has it, and the frame that takes its place."""
    import pandas as pd

    if isinstance(data, pd.DataFrame):
        return "frame", data
    if isinstance(data, str | os.PathLike):
        return os.fspath(data), None
    raise InputError(f"data must be a DataFrame, a path or a URL; got {describe_value(data)}")


def _document(value: Any) -> Any:
    """Write an argument as a config file would have it, so that it can be checked as one."""
    if isinstance(value, Mapping):
        return {key: _document(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_document(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    return os.fspath(value) if isinstance(value, os.PathLike) else value


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
    """Compare the distances synthetic → training with holdout → training.

    The holdout must come from the same population as the training records and must not have been shown to the synthesizer.
    `distance` is buckets (in how many columns the buckets differ; `bins` is for these only), gower or euclidean; `kinds`
    may say that a column of numbers is categorical. `level` is the probability of any false alarm among all tests. With a
    client the records are searched in blocks on its cluster; the result is the same to the bit.
    """
    search = closest.search_in_process if client is None else partial(measuring.search_on_cluster, TaskRunner(client))
    frames = (training, synthetic, holdout)
    return closest.closeness(*frames, distance, bins=bins, columns=columns, kinds=kinds, level=level, search=search)
