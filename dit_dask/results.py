"""A finished audit as Python callers see it: figures, distances, explanations, drawings and the report."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.audit.disclosure import exact_folder, read_results
from dit_dask.audit.other_audit import read_run_config
from dit_dask.audit.parts import read_distances
from dit_dask.audit.statistics import by_name
from dit_dask.audit.summary import TestSummary, read_complete, read_curves
from dit_dask.audit.verdict import RunVerdict
from dit_dask.deciding.explanation import explain
from dit_dask.deciding.figures import figures_of
from dit_dask.deciding.frontier import choose_loss, find_frontier
from dit_dask.deciding.reopening import AuditInputs, make_case, reopen_inputs, with_private, worst_test
from dit_dask.errors import InputError, describe_value, unknown
from dit_dask.inputs.load import load_with
from dit_dask.measures.base import MeasureEntry
from dit_dask.releasing.sanitized import sanitize_test
from dit_dask.reporting import charts, html, notebook
from dit_dask.reporting.sections.tail import draw_tail
from dit_dask.storage.folder import Folder
from dit_dask.storage.location import Location

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """A finished audit, as `dit.audit` and `dit.open` return it.

    Attributes
    ----------
    verdict : RunVerdict
        The status (passed, failed, inconclusive or none), one verdict for each gate and test, controls and warnings.
    summary : pandas.DataFrame
        One row for each test.
    url : str
        The run folder.

    Examples
    --------
    >>> import dit_dask as dit, pandas as pd
    >>> people = pd.DataFrame({"age": [20, 21, 22, 23, 60, 61, 62, 63] * 5, "ill": ["flu", "none"] * 20})
    >>> schema = {"quasi_identifiers": {"age": {"kind": "numeric"}}, "sensitive": "ill"}
    >>> result = dit.audit(people, schema=schema, tests=[{"sanitizer": {"name": "mondrian", "k": 5}}], gates=["delta <= 0.5"])
    >>> result.verdict.status
    'failed'
    >>> result.distances("mondrian-k5").columns[:4].tolist()
    ['record', 'row', 'multiplicity', 'distance']
    """

    folder: Folder
    summaries: Sequence[TestSummary]
    entries: Sequence[MeasureEntry]
    verdict: RunVerdict
    load_inputs: Callable[[], AuditInputs]
    frame: pd.DataFrame | None = field(default=None)

    def __repr__(self) -> str:
        return notebook.short_text(self.summaries, self.verdict, self.url)

    def _repr_html_(self) -> str:
        return notebook.result_html(self.summaries, self.verdict, self.url)

    @cached_property
    def inputs(self) -> AuditInputs:
        """The config, the used rows and the tests; those of an opened run are read when they are first needed."""
        return self.load_inputs()

    @cached_property
    def values(self) -> Mapping[str, tuple[str, ...]]:
        """The values of each sensitive attribute in the order that `predicted` counts them; they stay in this process."""
        return {name: rows.table.schema.sensitive.levels for name, rows in self.inputs.rows.by_secret.items()}

    @cached_property
    def labels(self) -> pd.Index[Any]:
        """Of every used row: its label in the index of the frame given, or its position in the source."""
        return self._label_rows(np.asarray(self.inputs.rows.source_row))

    def _label_rows(self, rows: Any) -> pd.Index[Any]:
        import pandas as pd

        labels: pd.Index[Any] = pd.Index(rows) if self.frame is None else self.frame.index[rows]
        return labels

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
        """The rows of one test, indexed like the frame given; of a file the index is the position in the source.

        Rows that were dropped or not tested are absent.

        Parameters
        ----------
        test
            The id of a test, or its position.

        Returns
        -------
        pandas.DataFrame
            `record`, `row`, `multiplicity`, `distance` and more; a simulation also has `unbiased` and `stderr`.
        """
        chosen = self._test_id(test)
        joined = read_distances(self.folder, chosen)
        if not len(joined):
            raise InputError(
                f"{self.url} has no records of {chosen}: they are in output.private, which cannot be read from here"
            )
        return joined.set_axis(self._label_rows(joined["row"].to_numpy()))

    def release(self, test: str | int = 0) -> pd.DataFrame:
        """What a test publishes, indexed like the frame given; suppressed rows are * or absent.

        Noisy counts are a table of counts. A release that does not tell which row is whose is numbered from 0.

        Parameters
        ----------
        test
            The id of a test, or its position.
        """
        chosen = self._test_id(test)
        built = next(one for one in self.inputs.tests if one.id == chosen)
        return sanitize_test(built, self.inputs.rows).frame(self.labels)

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
        """Explain the persons with the largest distances; one row each.

        Explanations are found by brute force and compared with the stored distances, so they need the data: an opened run
        reads the source that its config names, or gets a frame from `dit.open(url, data=frame)`.

        Parameters
        ----------
        top
            How many persons.
        test
            The id or position of a test; that with the largest delta by default.
        show_values
            Also show the values of the persons' rows.
        """
        import pandas as pd

        if isinstance(top, bool) or not isinstance(top, int) or top < 1:
            raise InputError(f"top must be an integer >= 1; got {describe_value(top)}")
        chosen = worst_test(self.summaries) if test is None else self._test_id(test)
        cells = self._cells() if show_values else None
        found = explain(make_case(self.inputs, self.folder, chosen, cells), top)
        frame = pd.DataFrame([one.flat() for one in found])
        return frame.set_axis(self.labels[frame["record"].to_numpy()])

    def frontier(self, risk: str = "delta") -> pd.DataFrame:
        """The sanitised tests that no other one beats in both a risk and the loss of utility, the smallest loss first.

        Parameters
        ----------
        risk
            delta, mean, share_over[0.1] or mean_gain.

        Returns
        -------
        pandas.DataFrame
            The loss is the first column: the first of certainty_penalty, query_error[0.5], tvd[2] and discernibility that all
            tests have.
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

    def plot_tail(self) -> charts.Figure:
        """Draw the share of persons with a distance above d, both axes logarithmic, with thresholds and gates."""
        figure = draw_tail(html.read_reported_run(exact_folder(self.folder)))
        if figure is None:
            raise InputError("plot_tail: the run has no distances to draw")
        return figure

    def plot_frontier(self, risk: str = "delta") -> charts.Figure:
        """Draw a risk of every sanitised test against its loss of utility; a line joins those that no other one beats."""
        tests = [one for one in self.summaries if one.is_sanitised]
        points = {one.test: figures_of([one]) for one in tests}
        loss = choose_loss(list(points.values())) if points else None
        if loss is None:
            raise InputError("plot_frontier: these releases have no measure of utility")
        best = set(self.frontier(risk).index)
        choices = [
            charts.Choice(name, lost, at_risk, name in best)
            for name, point in points.items()
            if (lost := point[loss]) is not None and (at_risk := point[risk]) is not None
        ]
        return charts.scatter(choices, loss, risk)

    def report(self) -> str:
        """Return the path or URL of report.html; it is written again if it is absent."""
        if self.folder.read(html.NAME) is None:
            self.folder.write(html.NAME, html.render(html.read_reported_run(self.folder)).encode())
        return f"{self.url.rstrip('/')}/{html.NAME}"

    def _cells(self) -> pd.DataFrame:
        """The used rows as they were given."""
        known = self.inputs.cells
        return load_with(self.inputs.config, [], self.frame)[1] if known is None else known

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


def open_result(location: Location, source: str | None, frame: pd.DataFrame | None) -> Result:
    """Read a finished run; its data is read only when something needs it."""
    shared = Folder(location)
    manifest, _ = read_complete(shared)
    folder = with_private(shared, manifest)
    results = read_results(folder)

    def load() -> AuditInputs:
        return reopen_inputs(folder, manifest, read_run_config(manifest, source), frame)

    return Result(folder, results.summaries, results.entries, results.verdict, load, frame)
