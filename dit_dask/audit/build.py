"""From the tests of a config to the single points of their sweeps."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask import seeds
from dit_dask.adversaries import ADVERSARIES, IMPORT_PATH
from dit_dask.config.constraints import Anything, Choice, Component, Field, Integer, ListOf, MapOf, Number, OneOf, Record
from dit_dask.config.document import TOP, Config
from dit_dask.config.registry import Context, Kind
from dit_dask.distances import DISTANCES
from dit_dask.encoders import ENCODERS
from dit_dask.engines import SELECTABLE, NoisyCounts, Procedure, choose, repeated
from dit_dask.engines.noisy_counts import COUPLINGS, SCALES, Sampling, binned, check_samples, protection
from dit_dask.errors import InputError
from dit_dask.measures import MEASURES
from dit_dask.sanitizers import SANITIZERS, Sanitizer, is_randomised
from dit_dask.sanitizers.external import ExternalSanitizer
from dit_dask.values.table import Rows

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats, Ints

LONGEST_ID, LONGEST_PART = 80, 40


@dataclass(frozen=True, eq=False)
class Test:
    """One point of a sweep: what is run, on which engine, on which rows, and which of them are tested.

    The rows are those of the table, binned where the test asks for it. `settings` are the sanitizer's keys that say how, not
    what. Tests with the same `oracle` ask the same black box.
    """

    id: str
    parameters: Mapping[str, Any]
    procedure: Procedure | NoisyCounts
    engine: str
    engine_reason: str
    rows: Rows
    audited: Ints
    settings: Mapping[str, Any]
    estimated_influence: Floats | None = None  # distances of the records, where those with the largest are to go first

    @property
    def oracle(self) -> ExternalSanitizer | None:
        """The black box that this test asks, if any."""
        sanitizer = self.procedure.sanitizer if isinstance(self.procedure, Procedure) else None
        return sanitizer if isinstance(sanitizer, ExternalSanitizer) else None

    def asking(self, oracle: ExternalSanitizer) -> Test:
        """The same test with another state of its black box."""
        if not isinstance(self.procedure, Procedure):
            raise TypeError("noisy counts ask nobody")
        return replace(self, procedure=replace(self.procedure, sanitizer=oracle))


RECORDS = Field(
    OneOf(
        [
            (str, Choice(("all",))),
            (dict, Record({"sample": Field(Integer(1)), "seed": Field(Integer(0), 0)})),
            (list, ListOf(Integer(0), 1)),
        ],
        "all, a mapping of sample and seed, or a list of row positions",
    ),
    "all",
    description="which rows to test",
)
BINS = Field(
    MapOf(OneOf([(int, Integer(1)), (list, ListOf(Anything(), 2))], "a number of bins, or a list of edges")),
    {},
    description="numeric attributes in intervals: so many of equal frequency, or edges",
)
EPSILON = Field(Number(above=0), None, sweep=True, description="of the mechanism; inf is no noise")
NOISY: dict[str, Record] = {
    "laplace": Record({"epsilon": EPSILON, "bins": BINS}),
    "geometric": Record({"epsilon": EPSILON, "bins": BINS}),
    "gaussian": Record(
        {
            "epsilon": EPSILON,
            "delta_dp": Field(Number(above=0), None, sweep=True, description="the mechanism's delta, not the test's"),
            "sigma": Field(Number(), None, sweep=True),
            "bins": BINS,
        }
    ),
}


def test_record() -> Record:
    """The keys of a test that sanitises and trains; registries are read here, so that installed third parties count."""
    return Record(
        {
            "sanitizer": Field(Component(SANITIZERS.records() | NOISY)),
            "encoder": Field(Component(ENCODERS.records()), {"name": "tf"}, sweep=True),
            "adversary": Field(Component(ADVERSARIES.records(), IMPORT_PATH.parameters), {"name": "bernoulli-nb"}),
            "distance": Field(Component(DISTANCES.records()), {"name": "emd"}, sweep=True),
            "engine": Field(Choice(("auto", *SELECTABLE)), "auto", sweep=True),
            "repeats": Field(Integer(2), None, description="releases a side, for a sanitizer that draws at random"),
            "records": RECORDS,
        }
    )


def noisy_record() -> Record:
    """The keys of a test on noisy counts, which are their own sanitizer and adversary."""
    return Record(
        {
            "sanitizer": Field(Component(NOISY)),
            "distance": Field(Component(dict.fromkeys(SCALES, Record())), {"name": "emd"}, sweep=True),
            "method": Field(
                Choice(("exact", "simulate")), None, sweep=True, description="exact is for laplace, and its default"
            ),
            "samples": Field(Integer(2), 25_000, sweep=True, description="a side, where simulated"),
            "coupling": Field(Choice(COUPLINGS), "independent", sweep=True, description="common: the same noise on both sides"),
            "engine": Field(Choice(("auto",)), "auto", description="follows from the method"),
            "records": RECORDS,
        }
    )


def record_of(raw: Mapping[str, Any]) -> Record:
    """The keys that a test may have, by its sanitizer."""
    sanitizer = raw.get("sanitizer")
    name = sanitizer.get("name") if isinstance(sanitizer, Mapping) else sanitizer
    return noisy_record() if isinstance(name, str) and name in NOISY else test_record()


def json_schema() -> dict[str, Any]:
    """The whole config as JSON Schema, for editors."""
    either = OneOf([(dict, test_record()), (dict, noisy_record())], "a mapping")
    measure = Field(ListOf(Component(MEASURES.records())), [], description=TOP["measures"].description)
    fields = dict(TOP) | {"tests": Field(ListOf(either), []), "measures": measure}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "dit_dask config, version 1"}
    something = [{"required": [key], "properties": {key: {"minItems": 1}}} for key in ("tests", "measures")]
    return head | Record(fields).schema() | {"anyOf": something}


def check_tests(config: Config) -> list[dict[str, Any]]:
    """Expand every sweep and check every point; needs no data."""
    points = []
    for index, raw in enumerate(config.tests):
        where = f"tests[{index}]"
        if not isinstance(raw, Mapping):
            raise InputError(f"{where} must be a mapping with a sanitizer")
        record = record_of(raw)
        points += [record.check(point, where) | {"where": where} for point in expand(raw, record, where)]
    return points


def expand(raw: Mapping[str, Any], record: Record, where: str) -> Iterator[dict[str, Any]]:
    """Yield one document for each combination: keys as written, the last fastest."""
    axes = list(_axes(raw, record, where, ()))
    for values in itertools.product(*(axis for _, axis in axes)):
        point: dict[str, Any] = json.loads(json.dumps(raw, default=str))
        for (path, _), value in zip(axes, values, strict=True):
            place = point
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = value
        yield point


def _axes(
    raw: Mapping[str, Any], record: Record, where: str, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    for key, value in raw.items():
        entry = record.fields.get(key)
        if entry is None:
            continue
        if isinstance(value, list) and entry.sweep:
            if not value:
                raise InputError(f"{where}.{key} must be a value or a list of values to sweep; got an empty list")
            yield (*path, key), value
        elif isinstance(value, Mapping) and isinstance(entry.spec, Component):
            yield from _axes(value, entry.spec.record(value, f"{where}.{key}"), f"{where}.{key}", (*path, key))


def build_tests(config: Config, rows: Rows, read: Callable[[str, str], str]) -> list[Test]:
    """Build every test against the loaded table; `read` opens a file that the config names."""
    tests: list[Test] = []
    cut = {"{}": rows}
    sanitizers: dict[str, Sanitizer] = {}  # one for all tests that ask for the same
    by_row: Rows | None = None
    for point in check_tests(config):
        where = point["where"]
        parameters = given(point)
        identity = test_id(parameters)
        for other in tests:
            if other.parameters == parameters:
                raise InputError(f"{where} repeats another test: {identity}")
            if other.id == identity:
                identity = f"{identity[: LONGEST_ID - 9]}-{_hash(parameters)}"

        context = Context(rows.table.schema, rows.used, config.seed, identity, where, read, config.folder, rows.frame)
        procedure = _noisy(point, context) if "method" in point else _procedure(point, context, sanitizers)
        engine, why = choose(parameters.get("engine", "auto"), procedure, where)
        bins = point["sanitizer"].get("bins", {})
        key = json.dumps(bins, sort_keys=True, default=str)
        if key not in cut:  # one table for all tests with the same bins: it travels to the workers once
            table, index = binned(rows.table, bins, f"{where}.sanitizer.bins")
            index = index[rows.index]
            cut[key] = Rows(table, index, rows.read, rows.dropped, table.weights[index])
        audited = _audited(point["records"], rows.used, where)
        test = Test(identity, parameters, procedure, engine, why, cut[key], audited, settings_of(point))
        if test.oracle is not None:
            by_row = rows.row_by_row() if by_row is None else by_row
            test = replace(test, rows=by_row)
        tests.append(test)
    return tests


def columns_seen(config: Config) -> list[str] | None:
    """The columns that black boxes see beside those of the schema; None where no test has one."""
    asked = [point["sanitizer"] for point in check_tests(config)]
    seen = [one["columns"] for one in asked if one["name"] not in NOISY and SANITIZERS[one["name"]].sees_rows]
    return list(dict.fromkeys(itertools.chain(*seen))) if seen else None


def settings_of(point: Mapping[str, Any]) -> dict[str, Any]:
    """The sanitizer's keys that cannot change a result."""
    if "sanitizer" not in point:
        return {}
    name = point["sanitizer"]["name"]
    fields = (NOISY[name] if name in NOISY else SANITIZERS[name].parameters).fields
    return {key: value for key, value in point["sanitizer"].items() if key in fields and not fields[key].affects_result}


def _noisy(point: Mapping[str, Any], context: Context) -> NoisyCounts:
    sanitizer, where = point["sanitizer"], f"{context.where}.sanitizer"
    claimed = {key: sanitizer[key] for key in ("epsilon", "delta_dp", "sigma") if key in sanitizer}
    found = protection(sanitizer["name"], where, **claimed)
    is_laplace = sanitizer["name"] == "laplace"
    method = point["method"] or ("exact" if is_laplace else "simulate")
    if method == "exact" and not is_laplace:
        raise InputError(f"{context.where}.method: only laplace has an exact value; {sanitizer['name']} takes simulate")
    if method == "simulate":
        check_samples(point["samples"], len(context.schema.sensitive.levels), context.where)
    sampling = Sampling(found.mechanism, context.seed, point["samples"], point["coupling"])
    return NoisyCounts(found, method, sampling, SCALES[point["distance"]["name"]])


def _procedure(point: Mapping[str, Any], context: Context, sanitizers: dict[str, Sanitizer]) -> Procedure:
    adversary: Kind[Any] = ADVERSARIES.get(point["adversary"]["name"], IMPORT_PATH)
    asked = json.dumps(point["sanitizer"], sort_keys=True, default=str)
    if asked not in sanitizers:
        sanitizers[asked] = SANITIZERS[point["sanitizer"]["name"]].build(point["sanitizer"], context)
    sanitizer, repeats = sanitizers[asked], point["repeats"] or 1
    if repeats > 1:
        if isinstance(sanitizer, ExternalSanitizer) and not sanitizer.is_callable:
            raise InputError(f"{context.where}.repeats: releases that are there already cannot be drawn again")
        repeated.check_distance(point["distance"]["name"], context.where)
    elif is_randomised(sanitizer):
        raise InputError(f"{context.where}.repeats is missing: {point['sanitizer']['name']} draws at random, so say how often")
    return Procedure(
        sanitizer,
        ENCODERS[point["encoder"]["name"]].build(point["encoder"], context),
        adversary.build(point["adversary"], context),
        DISTANCES[point["distance"]["name"]].build(point["distance"], context),
        context.seed,
        _hash(given(point)["sanitizer"]),
        repeats,
    )


def _audited(records: Any, used: int, where: str) -> Ints:
    """Return the ascending positions of the rows to test."""
    if records == "all":
        return _everyone(used)
    if isinstance(records, Mapping):
        if records["sample"] > used:
            raise InputError(f"{where}.records.sample must be at most the {used} used rows; got {records['sample']}")
        rng = seeds.stream(records["seed"], "records.sample")
        return np.sort(rng.choice(used, records["sample"], replace=False))
    if max(records) >= used:
        raise InputError(f"{where}.records must be positions below the {used} used rows; got {max(records)}")
    positions = np.unique(records)
    if len(positions) < len(records):
        raise InputError(f"{where}.records names a row twice")
    return positions


@lru_cache(maxsize=2)
def _everyone(used: int) -> Ints:
    """One array for all tests of a sweep: it travels to the workers once."""
    return np.arange(used)


def given(point: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out the parameters that were not given or change nothing; what lies inside one, such as a null, is a value."""
    idle = settings_of(point)
    chosen: dict[str, Any] = {}
    for key, value in point.items():
        if isinstance(value, Mapping):
            hidden = idle if key == "sanitizer" else {}
            chosen[key] = {name: item for name, item in value.items() if item is not None and name not in hidden}
        elif key != "where" and (key != "repeats" or value is not None):
            chosen[key] = value
    return chosen


def test_id(parameters: Mapping[str, Any]) -> str:
    """Name a test by its sanitizer and by whatever differs from the defaults."""
    defaults = {"encoder": "tf", "adversary": "bernoulli-nb", "distance": "emd", "engine": "auto", "records": "all"}
    defaults |= {"method": "exact", "samples": "samples25000", "coupling": "independent", "repeats": ""}
    parts = [_label(parameters["sanitizer"])]
    for key, default in defaults.items():
        value = parameters.get(key)
        label = f"{key}{value}" if isinstance(value, int) else _label(value)
        parts += [label] if value is not None and label != default else []
    identity = ".".join(parts)
    return identity if len(identity) <= LONGEST_ID else f"{identity[: LONGEST_ID - 9]}-{_hash(parameters)}"


def measure_id(parameters: Mapping[str, Any], sanitizer: Mapping[str, Any] | None, *, original: bool) -> str:
    """Name a measure by its parameters, and by what publishes the release it is taken of."""
    release = _label(sanitizer) if sanitizer is not None else "original"
    return f"{_label(parameters)}.{release}" if sanitizer is not None or original else _label(parameters)


def _label(value: Any) -> str:
    """Render a parameter with the characters a folder name may have; what would be lost goes into a hash."""
    if isinstance(value, Mapping):
        shown = [value["name"].rsplit(".", 1)[-1]] if "name" in value else []
        for key, item in value.items():
            if key != "name" and item not in ({}, [], "strict", "csv"):
                shown.append(_part(key, item))
        text = "-".join(shown)
    else:
        text = value if isinstance(value, str) else f"rows-{_hash(value)}"
    slug = re.sub(r"[^a-z0-9._-]+", "-", text.lower())
    if len(slug) > LONGEST_PART or slug != text:
        return f"{slug[: LONGEST_PART - 9]}-{_hash(value)}"
    return slug


def _part(key: str, item: Any) -> str:
    if isinstance(item, str):
        module, _, name = item.rpartition(":")  # an import path is known by its end
        return f"{module.rsplit('.', 1)[-1]}.{name}" if module else item
    if isinstance(item, float):
        return f"{key}{item:g}"
    return f"{key}{item}" if isinstance(item, int) else f"{key}-{_hash(item)}"


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:8]


def run_digest(config: Config, rows: Rows, tests: Sequence[Test], files: Mapping[str, str], measures: str | None = None) -> str:
    """Identify a run by its data and by everything in the config that can change a result; measures count if there are any."""
    document = {
        "name": config.name,
        "data": {key: value for key, value in config.data.items() if key != "storage_options"},
        "schema": config.schema,
        "tests": [test.parameters for test in tests],
        "seed": config.seed,
        "input": rows.digest(),
        "files": files,
    }
    if measures is not None:
        document["measures"] = measures
    return hashlib.sha256(json.dumps(document, sort_keys=True, default=str).encode()).hexdigest()[:12]
