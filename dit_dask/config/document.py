"""The config document: read safely from YAML, single keys overridden, parsed once into frozen values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from dit_dask.config import cluster
from dit_dask.config.components import ComponentConfig
from dit_dask.config.constraints import (
    Anything,
    Choice,
    Const,
    Constraint,
    Field,
    Flag,
    Integer,
    ListOf,
    OneOf,
    Record,
    Text,
    declared,
)
from dit_dask.config.data import DATA, STORAGE_OPTIONS, DataConfig
from dit_dask.config.profiles import PROFILES
from dit_dask.config.schema import SCHEMA, SchemaConfig, check_schema
from dit_dask.config.yaml import read_document
from dit_dask.errors import InputError, quote
from dit_dask.storage.filesystem import resolved_texts
from dit_dask.storage.location import Location, OutputLocation
from dit_dask.storage.redaction import hidden_texts, remember_secrets, texts, url_secrets

NAME = Text(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", "1 to 64 letters, digits, dots, dashes or underscores")


@dataclass(frozen=True)
class RecordSample:
    """A seeded sample of the rows to test."""

    sample: int
    seed: int


@dataclass(frozen=True)
class TestConfig:
    """One point of a sweep. Noisy counts have method, samples and coupling; others encoder, adversary, prior and repeats."""

    __test__ = False

    sanitizer: ComponentConfig
    distance: ComponentConfig
    engine: str
    records: str | RecordSample | Sequence[int]
    encoder: ComponentConfig | None = None
    adversary: Sequence[ComponentConfig] | None = None
    prior: str | None = None
    repeats: int | None = None
    method: str | None = None
    samples: int | None = None
    coupling: str | None = None
    sensitive: str | None = None
    label: str | None = None
    gates: Sequence[str] = ()
    where: str = ""
    keys: tuple[str, ...] = ()
    """The keys that a test of this kind has, in the order in which documents list them."""

    def identity(self) -> dict[str, Any]:
        """The parameters that can change a result, as ids, digests and summaries hold them."""
        shown = {key: _identity(getattr(self, key)) for key in self.keys if key != "gates"}
        return {
            key: value
            for key, value in shown.items()
            if key not in ("prior", "repeats", "sensitive", "label") or value is not None
        }

    def document(self) -> dict[str, Any]:
        """All keys, those that cannot change a result too."""
        values = {key: getattr(self, key) for key in self.keys}
        components = {key: _document(value) for key, value in values.items() if isinstance(value, ComponentConfig | tuple)}
        return self.identity() | components | ({"gates": list(self.gates)} if self.gates else {})


def _identity(value: Any) -> Any:
    if isinstance(value, ComponentConfig):
        return value.identity()
    if isinstance(value, tuple):  # of components; one alone is written as such
        several = [component.identity() for component in value]
        return several[0] if len(several) == 1 else several
    return asdict(value) if isinstance(value, RecordSample) else value


def _document(value: ComponentConfig | tuple[ComponentConfig, ...]) -> Any:
    if isinstance(value, ComponentConfig):
        return value.document()
    several = [component.document() for component in value]
    return several[0] if len(several) == 1 else several


@dataclass(frozen=True)
class MeasureConfig:
    """One point of a measure's sweep."""

    where: str
    measure: ComponentConfig


PLACE = {"url": Field(Text()), "storage_options": STORAGE_OPTIONS}
PRIVATE = Field(
    OneOf([(str, Text()), (dict, Record(PLACE, Location))], "a path, a URL or a mapping"),
    None,
    description="where records/ and per-record measures go, which are personal data; in the run folder by default",
    affects_result=False,
)
OUTPUT = OneOf(
    [(str, Text()), (dict, Record(PLACE | {"private": PRIVATE}, OutputLocation))],
    "a path, a URL or a mapping",
)
TOP = {
    "version": Field(Const(1)),
    "name": Field(NAME, None, description="names the run folder; the config's file name by default"),
    "data": Field(DATA),
    "schema": Field(SCHEMA),
    "tests": Field(ListOf(Anything()), []),
    "measures": Field(ListOf(Anything()), [], description="numbers about the table and its releases beside the tests"),
    "gates": Field(
        ListOf(Text()), [], description="conditions such as 'delta <= 0.1' that every test must meet", affects_result=False
    ),
    "profile": Field(
        Choice(tuple(PROFILES)),
        None,
        description="gates that a body or the literature asks for, beside `gates`; none by default",
        affects_result=False,
    ),
    "claims": Field(
        Choice(("fail", "report")),
        "fail",
        description="fail: a broken claim of a sanitizer fails the run; report: it is a warning",
        affects_result=False,
    ),
    "controls": Field(
        Flag(), True, description="test the raw and the suppressed table beside every audit", affects_result=False
    ),
    "stop_on_breach": Field(
        Flag(), False, description="end the run as soon as a gate cannot be met any more", affects_result=False
    ),
    "output": Field(OUTPUT, "runs/", description="folder or URL under which the run folder is made", affects_result=False),
    "cluster": Field(cluster.CLUSTER, cluster.DEFAULT, affects_result=False),
    "seed": Field(Integer(0), 0),
}


def references(value: Any) -> list[str]:
    """The names that a document refers to as ${NAME}, in alphabetical order."""
    if isinstance(value, Mapping | list):
        items = value.values() if isinstance(value, Mapping) else value
        return sorted({name for item in items for name in references(item)})
    return sorted(set(re.findall(r"\$\{(\w+)\}", value))) if isinstance(value, str) else []


@dataclass(frozen=True)
class Config:
    """A checked config. `schema` is None only where just the data is looked at."""

    name: str
    folder: str
    data: DataConfig
    schema: SchemaConfig | None
    tests: Sequence[TestConfig]
    measures: Sequence[MeasureConfig]
    gates: Sequence[str]
    profile: str | None
    claims: str
    controls: bool
    stop_on_breach: bool
    output: OutputLocation
    cluster: cluster.ClusterConfig
    seed: int

    @property
    def worker_variables(self) -> list[str]:
        """The ${NAME}s that workers look up: those of the output and of the sanitizers' own storage."""
        places = [self.output, *([] if self.output.private is None else [self.output.private])]
        options = [dict(place.storage_options) for place in places]
        return references([*options, *(dict(test.sanitizer.settings) for test in self.tests)])

    @property
    def points(self) -> list[TestConfig]:
        """The tests: where the schema lists sensitive attributes, one for each that a test does not choose itself."""
        listed = self.checked_schema.listed
        return [
            replace(point, sensitive=name)
            for point in self.tests
            for name in (listed if listed and point.sensitive is None else (point.sensitive,))
        ]

    @property
    def checked_schema(self) -> SchemaConfig:
        """The schema of a config that was checked with one."""
        if self.schema is None:
            raise InputError("schema is missing")
        return self.schema


def default_name(path: str) -> str:
    """Name a run after its config file."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", Path(path).stem).strip("-._")[:64] or "audit"


def read_data_config(path: str, overrides: Sequence[str] = ()) -> Config:
    """Read a config whose data is to be looked at; it needs no schema, and its tests and measures are not read."""
    document = read_document(path, overrides)
    remember_secrets(secret_texts(Record(TOP), document))
    return check_document(document, config_folder(path), default_name(path), needs_schema=False)


def secret_texts(constraint: Constraint, document: Any) -> Iterator[str]:
    """Every text of a config that no message may show."""
    for _, value in declared(constraint, document, lambda entry: entry.secret):
        yield from resolved_texts(list(hidden_texts(value)))
    for text in texts(document):
        yield from url_secrets(text)


def config_folder(path: str) -> str:
    """The folder that a config's inputs are relative to."""
    return str(Path(path).resolve().parent)


def check_document(raw: Mapping[str, Any], folder: str, name: str = "audit", *, needs_schema: bool = True) -> Config:
    """Check everything but tests and measures, whose keys depend on the registered components (audit.grammar)."""
    if "version" not in raw:
        raise InputError("version is missing; expected version: 1")
    _refuse_references(raw)
    checked = Record(TOP if needs_schema else TOP | {"schema": Field(SCHEMA, None)}).check(raw, "")
    data, schema, output = checked["data"], checked["schema"], checked["output"]
    if data.limit is not None and data.sample is not None:
        raise InputError("data: limit and sample exclude each other; got both")
    return Config(
        name=checked["name"] or name,
        folder=folder,
        data=data,
        schema=None if schema is None else check_schema(schema),
        tests=(),
        measures=(),
        gates=checked["gates"],
        profile=checked["profile"],
        claims=checked["claims"],
        controls=checked["controls"],
        stop_on_breach=checked["stop_on_breach"],
        output=_check_output(output),
        cluster=_check_cluster(checked["cluster"], folder),
        seed=checked["seed"],
    )


def _check_output(output: str | OutputLocation) -> OutputLocation:
    """Write the places out, and refuse a private one that is the shared one."""
    if isinstance(output, str):
        return OutputLocation(output, {})
    private: Location | str | None = output.private
    if isinstance(private, str):
        private = Location(private, {})
    if private is not None and private.url.rstrip("/") == output.url.rstrip("/"):
        raise InputError("output.private must be another place than output.url; got the same")
    return replace(output, private=private)


def _check_cluster(chosen: cluster.ClusterConfig, folder: str) -> cluster.ClusterConfig:
    """Compare the keys of a cluster with each other; certificate files are relative to the config, as all inputs are."""
    if (chosen.kind == "address") != (chosen.address is not None):
        raise InputError("cluster.address goes with kind: address, and only with it")
    adaptive = chosen.kubernetes.adaptive
    if adaptive is not None and adaptive.minimum > adaptive.maximum:
        limits = f"{adaptive.minimum} and {adaptive.maximum}"
        raise InputError(f"cluster.kubernetes.adaptive: minimum must be at most maximum; got {limits}")
    if chosen.tls is None:
        return chosen
    files = {name: str(Path(folder) / Path(file).expanduser()) for name, file in asdict(chosen.tls).items()}
    return replace(chosen, tls=cluster.TlsFiles(**files))


def _refuse_references(value: Any, where: str = "", *, allowed: bool = False) -> None:
    """Say where a ${NAME} stands outside storage_options."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            _refuse_references(item, f"{where}.{key}" if where else str(key), allowed=allowed or key == "storage_options")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _refuse_references(item, f"{where}[{index}]", allowed=allowed)
    elif isinstance(value, str) and not allowed and re.search(r"\$\{\w+\}", value):
        raise InputError(f"{where}: ${{NAME}} is read only in storage_options; got {quote(value)}")
