"""The config as a whole: the keys of its tests and measures, which the registered components decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import islice
from typing import Any

from dit_dask.audit.gates import Gate, parse, parse_all
from dit_dask.audit.procedures import DEFAULT, PROCEDURES
from dit_dask.config.components import Component
from dit_dask.config.constraints import Anything, Constraint, Field, ListOf, MapOf, NameOrFile, Record, declared
from dit_dask.config.document import (
    TOP,
    Config,
    MeasureConfig,
    TestConfig,
    check_document,
    config_folder,
    default_name,
    secret_texts,
)
from dit_dask.config.profiles import PROFILES
from dit_dask.config.sweep import MOST_POINTS, expand
from dit_dask.config.yaml import read_document
from dit_dask.errors import InputError, unknown
from dit_dask.measures import MEASURES
from dit_dask.sanitizers import SANITIZERS
from dit_dask.storage.redaction import hide, mask_credentials, mask_named, remember_secrets


class TestDocument:
    """A test as a config writes it: its sanitizer decides which keys it has."""

    __test__ = False

    def __init__(self) -> None:
        self._records: dict[tuple[str, bool], Record] = {}  # looking for components takes some ms, a sweep has many points

    def record(self, document: Any) -> Record:
        """The keys that this test may have."""
        sanitizer = document.get("sanitizer") if isinstance(document, Mapping) else None
        name = sanitizer.get("name") if isinstance(sanitizer, Mapping) else sanitizer
        kind = SANITIZERS[name] if isinstance(name, str) and name in SANITIZERS else None
        key = (DEFAULT, True) if kind is None else (kind.procedure, kind.disjoint)
        if key not in self._records:
            self._records[key] = PROCEDURES[key[0]].record(key[1])
        return self._records[key]

    def check(self, value: Any, where: str) -> TestConfig:
        """Check one point of a sweep."""
        if not isinstance(value, Mapping):
            raise InputError(f"{where} must be a mapping with a sanitizer")
        checked: TestConfig = self.record(value).check(value, where)
        return replace(checked, where=where)

    def schema(self) -> dict[str, Any]:
        """Describe all kinds of tests as JSON Schema."""
        return {"anyOf": [kind.record(True).schema() for kind in PROCEDURES.values()]}

    def rewrite(self, document: Any, decide: Any, where: str) -> Any:
        """Rewrite by the keys that this test has."""
        return self.record(document).rewrite(document, decide, where)


def measure_component() -> Component:
    """A measure as a config writes it."""
    return Component(MEASURES.records())


def config_record() -> Record:
    """The whole config, with the keys of all registered components."""
    measures = Field(ListOf(measure_component()), [], description=TOP["measures"].description)
    return Record(dict(TOP) | {"tests": Field(ListOf(TestDocument()), []), "measures": measures})


def json_schema() -> dict[str, Any]:
    """The whole config as JSON Schema, for editors."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "dit_dask config, version 1"}
    something = [{"required": [key], "properties": {key: {"minItems": 1}}} for key in ("tests", "measures")]
    return head | config_record().schema() | {"anyOf": something}


def read_config(path: str, overrides: Sequence[str] = ()) -> Config:
    """Read a config file: the one edge where it becomes typed values."""
    return check_config(read_document(path, overrides), config_folder(path), default_name(path))


def check_config(document: Mapping[str, Any], folder: str, name: str = "audit") -> Config:
    """Check a whole config document, every point of every sweep included; needs no data."""
    remember_secrets(secret_texts(config_record(), document))  # also an error about a wrong value must not show them
    config = check_document(document, folder, name)
    tests = tuple(islice(_test_points(document.get("tests", [])), MOST_POINTS + 1))
    measures = tuple(islice(_measure_points(document.get("measures", [])), MOST_POINTS + 1))
    for key, points in {"tests": tests, "measures": measures}.items():
        if len(points) > MOST_POINTS:
            raise InputError(f"{key}: at most {MOST_POINTS:,} can be in one config; got more")
    if not tests and not measures:
        raise InputError("tests: at least one test or one measure is needed; got none")
    checked = replace(config, tests=tuple(_check_secret(test, config) for test in tests), measures=measures)
    if len(checked.points) > MOST_POINTS:
        raise InputError(f"tests: at most {MOST_POINTS:,} can be in one config; got more, one for each sensitive attribute")
    read_gates(checked)
    return checked


def _check_secret(test: TestConfig, config: Config) -> TestConfig:
    """A test may choose among the sensitive attributes of the schema; where there is no list, there is nothing to choose."""
    schema = config.checked_schema
    known = [secret.name for secret in schema.secrets]
    if test.sensitive is not None and test.sensitive not in known:
        raise unknown(f"{test.where}.sensitive: attribute", test.sensitive, known)
    return test if schema.listed else replace(test, sensitive=None)


def read_gates(config: Config) -> list[Gate]:
    """Read the gates of a config, and check those of its tests; they may name its measures."""
    names = dict.fromkeys(point.measure.name for point in config.measures)
    asked = () if config.profile is None else PROFILES[config.profile].gates
    parsed = [*(parse(text, f"profile {config.profile}") for text in asked), *parse_all(config.gates, names)]
    if any(gate.kind in ("statistic", "claims") for gate in parsed) and not config.tests:
        raise InputError("gates: delta and the like judge tests, and this config has none")
    for point in config.tests:
        own_gates(point)
    return list({gate.text: gate for gate in parsed}.values())  # a profile may ask for what the config asks for, too


def own_gates(point: TestConfig) -> list[Gate]:
    """Read the gates of one test."""
    return [parse(text, f"{point.where}.gates[{place}]") for place, text in enumerate(point.gates)]


def _test_points(tests: Sequence[Any]) -> Iterator[TestConfig]:
    constraint = TestDocument()
    for index, document in enumerate(tests):
        where = f"tests[{index}]"
        if not isinstance(document, Mapping):
            raise InputError(f"{where} must be a mapping with a sanitizer")
        record = constraint.record(document)
        for point in expand(document, record, where):
            checked: TestConfig = record.check(point, where)
            yield replace(checked, where=where)


def _measure_points(measures: Sequence[Any]) -> Iterator[MeasureConfig]:
    component = measure_component()
    for index, document in enumerate(measures):
        where = f"measures[{index}]"
        record = component.record(document, where)
        written = document if isinstance(document, Mapping) else {"name": document}
        for point in expand(written, record, where):
            yield MeasureConfig(where, component.check(point, where))


def redact(constraint: Constraint, document: Any, key: bytes | None = None) -> Any:
    """Copy a document for people and files.

    Fields that may hold secrets are shown as digests with this key, or masked without one; so is what looks like a credential.
    """

    def decide(entry: Field, value: Any, _where: str) -> Any:
        if entry.secret:
            return hide(value, key, keep_ordinary=entry.affects_result)
        return mask_named(value) if isinstance(entry.constraint, MapOf) and isinstance(entry.constraint.of, Anything) else value

    return mask_credentials(constraint.rewrite(document, decide, ""))


def redact_test(parameters: Mapping[str, Any], key: bytes | None = None) -> dict[str, Any]:
    """The parameters of a test without secrets."""
    shown: dict[str, Any] = redact(TestDocument(), parameters, key)
    return shown


def redact_measure(parameters: Mapping[str, Any], key: bytes | None = None) -> dict[str, Any]:
    """The parameters of a measure without secrets."""
    shown: dict[str, Any] = redact(measure_component(), parameters, key)
    return shown


def redact_sanitizer(parameters: Mapping[str, Any], key: bytes | None = None) -> dict[str, Any]:
    """The parameters of a sanitizer without secrets."""
    shown: dict[str, Any] = redact(Component(SANITIZERS.records()), parameters, key)
    return shown


def resolve_config(config: Config, key: bytes) -> dict[str, Any]:
    """The config as it was understood, without secrets."""
    document = {
        "version": 1,
        "name": config.name,
        "data": asdict(config.data),
        "schema": config.checked_schema.document(),
        "tests": [point.document() for point in config.tests],
        "measures": [point.measure.document() for point in config.measures],
        "gates": config.gates,
        **({} if config.profile is None else {"profile": config.profile}),
        "claims": config.claims,
        "controls": config.controls,
        "stop_on_breach": config.stop_on_breach,
        "output": {name: value for name, value in asdict(config.output).items() if value is not None},
        "cluster": asdict(config.cluster),
        "seed": config.seed,
    }
    shown: dict[str, Any] = redact(config_record(), document, key)
    return shown


def secret_values(document: Any) -> list[tuple[str, Any]]:
    """Place and value of every field of a config document that may hold secrets."""
    return declared(config_record(), document, lambda entry: entry.secret)


def named_files(document: Any) -> list[tuple[str, str]]:
    """Place and path of every file that a config document names, swept ones included."""
    found: list[tuple[str, str]] = []

    def collect(entry: Field, value: Any, where: str) -> Any:
        names = entry.constraint.names if isinstance(entry.constraint, NameOrFile) else ()
        paths = value if isinstance(value, list) else [value]
        if entry.file:
            found.extend((where, path) for path in paths if isinstance(path, str) and path not in names)
        return value

    config_record().rewrite(document, collect, "")
    return found
