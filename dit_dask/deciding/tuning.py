"""Choosing a parameter: the whole curve over its values, what it costs, and the weakest value that passes every gate."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dit_dask import run
from dit_dask.audit.statistics import Figure, plain
from dit_dask.audit.verdict import RunVerdict, Status, Verdict
from dit_dask.config.document import Config, TestConfig
from dit_dask.config.registry import Tunable
from dit_dask.deciding.figures import figures_of, refuse_impossible, write_beside
from dit_dask.deciding.frontier import DRAWN_RISKS, choose_loss, find_frontier
from dit_dask.errors import InputError
from dit_dask.execution.progress import Progress
from dit_dask.execution.workers import Workers
from dit_dask.reporting import charts, html
from dit_dask.sanitizers import SANITIZERS

if TYPE_CHECKING:
    import pandas as pd

NAME, DRAWING, FRONTIER = "tune.json", "tune.svg", "frontier.svg"


@dataclass(frozen=True)
class Parameter:
    """The parameter that is tuned: its sanitizer, its name, and how its values compare."""

    sanitizer: str
    name: str
    tunable: Tunable

    def read(self, values: Sequence[Any]) -> list[float]:
        """Check values as the config would, the weakest first."""
        constraint = SANITIZERS[self.sanitizer].parameters.fields[self.name].constraint
        found = [constraint.check(_number(value), "--values") for value in values]
        if not found:
            raise InputError("--values must name at least one value; got none")
        return self.tunable.by_strength(found)


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, str) and re.fullmatch(r"\s*\d{1,18}\s*", value) else value


@dataclass(frozen=True)
class Point:
    """One value of the parameter: the tests that have it, their worst figures, and what the gates say of them."""

    value: float
    tests: Sequence[str]
    figures: Mapping[str, Figure]
    verdicts: Sequence[Verdict]
    frontier: Sequence[str] = ()

    @property
    def status(self) -> Status:
        """Passed only if every gate passed for all of its tests."""
        return RunVerdict(self.verdicts).status

    def document(self) -> dict[str, Any]:
        """As tune.json has it."""
        return {
            "value": plain(self.value),
            "tests": list(self.tests),
            **{name: plain(value) for name, value in self.figures.items()},
            "status": self.status,
            "frontier": list(self.frontier),
        }

    def first_problem(self) -> str:
        """The first gate that is not passed, and why."""
        found = next(one for status in ("failed", "inconclusive") for one in self.verdicts if one.status == status)
        word = "fails" if found.status == "failed" else "cannot be judged by"
        return f"{word} {found.gate} ({found.reason})"


@dataclass(frozen=True, eq=False)
class Tuning:
    """The curve, weakest value first, the value that is recommended, and why, or why none is."""

    parameter: Parameter
    points: Sequence[Point]
    loss: str | None
    recommended: float | None
    reason: str
    result: run.RunResult

    @property
    def has_gates(self) -> bool:
        """Whether there was anything to judge by."""
        return any(point.status != "none" for point in self.points)

    @property
    def curve(self) -> pd.DataFrame:
        """One row for each value, the weakest first."""
        import pandas as pd

        rows = [
            {
                self.parameter.name: point.value,
                **point.figures,
                "status": point.status,
                "on_frontier": "delta" in point.frontier,
            }
            for point in self.points
        ]
        return pd.DataFrame(rows).set_index(self.parameter.name)

    def frontier(self, risk: str = "delta") -> pd.DataFrame:
        """The rows of the curve that no other one beats in both this risk and the loss of utility, the smallest loss first."""
        return self.curve.iloc[find_frontier([point.figures for point in self.points], risk, self.loss)]

    def plot(self) -> charts.Figure:
        """Draw risks and loss over the parameter; notebooks show it, `save(path)` keeps it."""
        drawn = (*DRAWN_RISKS, *([] if self.loss is None else [self.loss]))
        panels = []
        for name in drawn:
            known = [(point.value, figure) for point in self.points if (figure := point.figures[name]) is not None]
            if known:
                panels.append(charts.Panel(name, {name: sorted(known)}))
        values = [point.value for point in self.points]
        is_log = min(values) > 0 and max(values) > 20 * min(values) and max(values) < float("inf")
        return charts.over_parameter(self.parameter.name, panels, is_log=is_log, marked=self.recommended)

    def plot_frontier(self, risk: str = "delta") -> charts.Figure:
        """Draw a risk against the loss of utility."""
        if self.loss is None:
            raise InputError("frontier: these releases have no measure of utility")
        best = find_frontier([point.figures for point in self.points], risk, self.loss)
        choices = [
            charts.Choice(
                f"{self.parameter.name} = {point.value:g}", lost, at_risk, place in best, point.value == self.recommended
            )
            for place, point in enumerate(self.points)
            if (lost := point.figures[self.loss]) is not None and (at_risk := point.figures[risk]) is not None
        ]
        return charts.scatter(choices, self.loss, risk)

    def document(self) -> dict[str, Any]:
        """As tune.json has it."""
        return {
            "sanitizer": self.parameter.sanitizer,
            "parameter": self.parameter.name,
            "stronger": "larger" if self.parameter.tunable.is_rising else "smaller",
            "loss": self.loss,
            "recommended": plain(self.recommended),
            "reason": self.reason,
            "values": [point.document() for point in self.points],
        }


def tune(
    config: Config,
    workers: Workers,
    progress: Progress,
    *,
    values: Sequence[Any] = (),
    parameter: str | None = None,
    frame: pd.DataFrame | None = None,
    fresh: bool = False,
) -> Tuning:
    """Run every value as one sweep, and choose; what an earlier session did is not done again."""
    refuse_impossible(config)
    chosen = find_parameter(config, parameter)
    swept = replace(config, name=f"{config.name}-tune", stop_on_breach=False)
    swept = replace(swept, tests=_sweep(config, chosen, _values(config, chosen, values, frame)))
    prepared = run.prepare(swept, frame)
    result = run.run(prepared, workers, progress, fresh=fresh)
    points = _points(chosen, prepared, result)
    loss = choose_loss([point.figures for point in points])
    on = {risk: find_frontier([point.figures for point in points], risk, loss) for risk in DRAWN_RISKS}
    points = [
        replace(point, frontier=[risk for risk in DRAWN_RISKS if place in on[risk]]) for place, point in enumerate(points)
    ]
    found = Tuning(chosen, points, loss, *recommend(chosen.name, points), result)
    _write(found)
    return found


def first_parameter(component: Mapping[str, Any], name: str | None, values: Sequence[Any]) -> dict[str, Any]:
    """Set the parameter that is to be tuned, where a sanitizer is given without one."""
    sanitizer = component.get("name")
    tunable = SANITIZERS[sanitizer].tunable if isinstance(sanitizer, str) and sanitizer in SANITIZERS else {}
    is_set = name in component if name is not None else any(key in component for key in tunable)
    chosen = name if name is not None else next(iter(tunable), None)
    if is_set or chosen is None or chosen not in tunable:
        return dict(component)  # what is wrong with it, the config says
    return {**component, chosen: values[0] if len(values) else tunable[chosen].grid[0]}


def find_parameter(config: Config, name: str | None) -> Parameter:
    """The only tunable parameter that the tests of a config set, or the one of a name."""
    found: dict[tuple[str, str], Parameter] = {}
    for point in config.tests:
        tunable = SANITIZERS[point.sanitizer.name].tunable
        for key, one in tunable.items():
            if point.sanitizer.parameters.get(key) is not None and name in (None, key):
                found[point.sanitizer.name, key] = Parameter(point.sanitizer.name, key, one)
    shown = ", ".join(f"{key} of {sanitizer}" for sanitizer, key in found)
    if not found:
        known = sorted({key for one in SANITIZERS for key in SANITIZERS[one].tunable})
        asked = "" if name is None else f" called {name!r}"
        raise InputError(f"tests: no test sets a parameter{asked} that can be tuned ({', '.join(known)})")
    if len(found) > 1:
        raise InputError(f"--parameter is missing: the tests set {shown}; tune one sanitizer's parameter at a time")
    return next(iter(found.values()))


def _values(config: Config, parameter: Parameter, given: Sequence[Any], frame: pd.DataFrame | None) -> list[float]:
    """The values that are given, or those of the config's sweep, or as many of the parameter's own as the table allows."""
    if given:
        return parameter.read(given)
    own: list[float] = [point.sanitizer.parameters[parameter.name] for point in config.tests if _has(point, parameter)]
    if len(set(own)) > 1:
        return parameter.tunable.by_strength(own)
    most = float("inf")
    if parameter.tunable.at_most is not None:
        table = run.prepare(replace(config, measures=(), gates=()), frame).rows.table
        limits = {"persons": table.persons // 2, "secrets": len(table.schema.sensitive.levels)}
        most = limits[parameter.tunable.at_most]
    return parameter.tunable.by_strength([*own, *(value for value in parameter.tunable.grid if value <= most)])


def _has(point: TestConfig, parameter: Parameter) -> bool:
    return point.sanitizer.name == parameter.sanitizer and point.sanitizer.parameters.get(parameter.name) is not None


def _sweep(config: Config, parameter: Parameter, values: Sequence[float]) -> tuple[TestConfig, ...]:
    """Each test that differs in more than the parameter, with every value; of those that do not, the gates of all."""
    bases: dict[str, TestConfig] = {}
    for point in config.tests:
        if _has(point, parameter):
            base = _with_value(point, parameter.name, values[0])
            first = bases.setdefault(repr(base.identity()), base)
            gates = list(dict.fromkeys([*first.gates, *base.gates]))
            bases[repr(base.identity())] = replace(first, gates=gates)
    return tuple(_with_value(base, parameter.name, value) for base in bases.values() for value in values)


def _with_value(point: TestConfig, name: str, value: float) -> TestConfig:
    parameters = {**point.sanitizer.parameters, name: value}
    return replace(point, sanitizer=replace(point.sanitizer, parameters=parameters), label=None)


def _points(parameter: Parameter, prepared: run.PreparedRun, result: run.RunResult) -> list[Point]:
    """Put together what belongs to each value; a verdict of no value counts for all."""
    values = {test.id: test.config.sanitizer.parameters[parameter.name] for test in prepared.tests}
    for entry in result.measures:
        if entry.sanitizer is not None and entry.sanitizer.get("name") == parameter.sanitizer:
            values[entry.id] = entry.sanitizer.get(parameter.name)
    points = []
    for value in parameter.tunable.by_strength({values[test.id] for test in prepared.tests}):
        summaries = [one for one in result.summaries if values[one.test] == value]
        verdicts = [one for one in result.verdict.verdicts if values.get(one.test, value) == value]
        points.append(Point(value, [one.test for one in summaries], figures_of(summaries), verdicts))
    return points


def recommend(name: str, points: Sequence[Point]) -> tuple[float | None, str]:
    """Choose the weakest value that passes every gate, and say why in one sentence; points are in order of strength."""
    if all(point.status == "none" for point in points):
        return None, "no value is recommended, because no gate says what is safe enough: set gates, or choose from the frontier"
    passed = [place for place, point in enumerate(points) if point.status == "passed"]
    if not passed:
        last = points[-1]
        weak = [point for point in points if point.status == "inconclusive"]
        if len(weak) == len(points):
            return None, f"no value is recommended, because none can be judged: {name} = {last.value:g} {last.first_problem()}"
        return None, f"no value passes every gate: the strongest, {name} = {last.value:g}, {last.first_problem()}"
    best = points[passed[0]]
    reason = f"{name} = {best.value:g} is the weakest of {len(points)} values that passes every gate ({_main_figures(best)})"
    if passed[0] > 0:
        weaker = points[passed[0] - 1]
        reason += f"; {name} = {weaker.value:g} {weaker.first_problem()}"
    stronger = [point for point in points[passed[0] + 1 :] if point.status != "passed"]
    if stronger:
        shown = ", ".join(f"{point.value:g}" for point in stronger)
        reason += f"; the curve is not monotone: the stronger {name} = {shown} {'do' if len(stronger) > 1 else 'does'} not pass"
    return best.value, reason


def _main_figures(point: Point) -> str:
    names = ("delta", "certainty_penalty", "query_error[0.5]")
    known = [(name, figure) for name in names if (figure := point.figures[name]) is not None]
    return ", ".join(f"{name} {figure:.4g}" for name, figure in known[:2])


def _write(found: Tuning) -> None:
    """Write the curve and its drawings to the run folder, and the report again, which shows the curve."""
    folder, summaries = found.result.folder, found.result.summaries
    write_beside(folder, NAME, found.document(), summaries)
    if folder.private is None or not found.result.withheld:
        folder.write(DRAWING, found.plot().svg.encode())
        if found.loss is not None:
            folder.write(FRONTIER, found.plot_frontier().svg.encode())
        folder.write(html.NAME, html.render(html.read_reported_run(folder)).encode())
