"""The config file: reading YAML safely, overriding single keys, and checking everything but the tests' parts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dit_dask.config import cluster as cluster_spec
from dit_dask.config.constraints import Anything, Choice, Const, Field, Flag, Integer, ListOf, MapOf, OneOf, Record, Text
from dit_dask.errors import InputError
from dit_dask.storage.location import Location

MOST_VALUES = 100_000
STORAGE_OPTIONS = MapOf(Anything())
MARK = OneOf([((str, int, float), Anything())], "a text or a number")
NAME = Text(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", "1 to 64 letters, digits, dots, dashes or underscores")

LATEST = Record(
    {"latest": Field(Text(), description="a glob, whose last name counts, or a small file that names the newest one")}
)

DATA = Record(
    {
        "source": Field(
            OneOf([(str, Text()), (dict, LATEST)], "a path, a URL, or {latest: URL}"),
            description="path or fsspec URL of .csv, .csv.gz or .parquet files; globs; dit://census; or {latest: URL}",
        ),
        "storage_options": Field(STORAGE_OPTIONS, {}, description="passed to the filesystem; ${NAME} reads the environment"),
        "missing": Field(
            OneOf([(list, ListOf(MARK)), (dict, MapOf(ListOf(MARK)))], "a list of marks, or a mapping from columns to lists"),
            [],
            description="marks of missing cells, for all columns or by column; empty cells are always missing",
        ),
        "limit": Field(Integer(1), None, description="use the first N complete rows"),
        "sample": Field(
            Record({"rows": Field(Integer(1)), "seed": Field(Integer(0), 0)}),
            None,
            description="use a seeded sample of complete rows",
        ),
    }
)
ATTRIBUTE = Record(
    {
        "kind": Field(Choice(("numeric", "categorical"))),
        "hierarchy": Field(Text(), None, description="file of lines leaf;parent;…;*; without one the attribute is flat"),
    }
)
SENSITIVE = Record(
    {
        "name": Field(Text()),
        "hierarchy": Field(Text(), None),
        "order": Field(ListOf(MARK, 2), None, description="the whole domain, in order; sorted values otherwise"),
    }
)
SCHEMA = Record(
    {
        "quasi_identifiers": Field(MapOf(ATTRIBUTE, 1)),
        "sensitive": Field(OneOf([(str, Text()), (dict, SENSITIVE)], "a column name or a mapping")),
    }
)
OUTPUT = OneOf(
    [(str, Text()), (dict, Record({"url": Field(Text()), "storage_options": Field(STORAGE_OPTIONS, {})}))],
    "a path, a URL or a mapping",
)
TOP = {
    "version": Field(Const(1)),
    "name": Field(NAME, None, description="names the run folder; the config's file name by default"),
    "data": Field(DATA),
    "schema": Field(SCHEMA),
    "tests": Field(ListOf(Anything()), []),
    "measures": Field(ListOf(Anything()), [], description="numbers about the table and its releases beside the tests"),
    "gates": Field(ListOf(Text()), [], description="conditions such as 'delta <= 0.1' that every test must meet"),
    "stop_on_breach": Field(Flag(), False, description="end the run as soon as a gate cannot be met any more"),
    "output": Field(OUTPUT, "runs/", description="folder or URL under which the run folder is made"),
    "cluster": Field(cluster_spec.CLUSTER, cluster_spec.DEFAULT),
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
    """A checked config; `raw` is the document as written, which resume and the manifest rely on."""

    raw: Mapping[str, Any] = field(repr=False)
    name: str
    folder: str
    data: Mapping[str, Any] = field(repr=False)
    schema: Mapping[str, Any]
    tests: Sequence[Mapping[str, Any]]
    measures: Sequence[Any]
    gates: Sequence[str]
    stop_on_breach: bool
    output: Location
    cluster: Mapping[str, Any]
    seed: int


def read(path: str, overrides: Sequence[str] = (), *, needs_schema: bool = True) -> Config:
    """Load a config file and apply `dotted.key=value` overrides; without a schema only its data can be looked at."""
    try:
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise InputError(f"config {path}: {reason}") from error
    raw = _parsed(text, f"config {path}")
    if not isinstance(raw, dict):
        raise InputError(f"config {path}: expected a mapping with version, data, schema and tests at the top")
    _measure(raw, {}, path)
    for override in overrides:
        _apply(raw, override)
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(path).stem).strip("-._")[:64] or "audit"
    return check(raw, folder=str(Path(path).resolve().parent), default_name=stem, needs_schema=needs_schema)


def check(raw: Mapping[str, Any], folder: str, default_name: str = "audit", *, needs_schema: bool = True) -> Config:
    """Check a config document; the parameters of its tests are checked when they are expanded."""
    if "version" not in raw:
        raise InputError("version is missing; expected version: 1")
    _refuse_references(raw)
    checked = Record(TOP if needs_schema else TOP | {"schema": Field(SCHEMA, None)}).check(raw, "")
    if checked["data"]["limit"] is not None and checked["data"]["sample"] is not None:
        raise InputError("data: limit and sample exclude each other; got both")
    schema = {} if checked["schema"] is None else _schema(checked["schema"])
    cluster = _placed(checked["cluster"], folder)
    output = checked["output"]
    location = Location(output, {}) if isinstance(output, str) else Location(output["url"], output["storage_options"])
    return Config(
        raw=raw,
        name=checked["name"] or default_name,
        folder=folder,
        data=checked["data"],
        schema=schema,
        tests=checked["tests"],
        measures=checked["measures"],
        gates=checked["gates"],
        stop_on_breach=checked["stop_on_breach"],
        output=location,
        cluster=cluster,
        seed=checked["seed"],
    )


def _schema(checked: Mapping[str, Any]) -> dict[str, Any]:
    """Write the sensitive attribute out, and refuse what no column can be."""
    sensitive, quasi = checked["sensitive"], checked["quasi_identifiers"]
    if isinstance(sensitive, str):
        sensitive = {"name": sensitive, "hierarchy": None, "order": None}
    if sensitive["name"] in quasi:
        raise InputError(f"schema.sensitive {sensitive['name']!r} is also among the quasi_identifiers")
    for name, attribute in quasi.items():
        if attribute["kind"] == "numeric" and attribute["hierarchy"] is not None:
            raise InputError(f"schema.quasi_identifiers.{name}: a numeric attribute takes no hierarchy")
    return {"quasi_identifiers": quasi, "sensitive": sensitive}


def _parsed(text: str, where: str) -> Any:
    try:
        return _strict_loader()(text).get_single_data()
    except Exception as error:  # PyYAML lets errors of any type out, such as that of a date with 13 months
        raise InputError(f"{where}: not valid YAML: {_one_line(error)}") from error


def _strict_loader() -> Any:
    import yaml

    class Loader(yaml.SafeLoader):
        """Safe loading that takes a key written twice for the mistake it is."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            """Refuse duplicate keys."""
            seen: set[Any] = set()
            for key_node, _ in node.value:
                if key_node.tag == "tag:yaml.org,2002:merge":
                    continue
                key = self.construct_object(key_node, deep=True)
                if isinstance(key, str) and key in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key!r} is written twice", key_node.start_mark
                    )
                if isinstance(key, str):
                    seen.add(key)
            return super().construct_mapping(node, deep)

    # YAML 1.1 reads 1e-3 as text; people mean the number
    Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789"))
    return Loader


def _placed(cluster: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """Hold the keys of a cluster against each other; certificate files are relative to the config, as all inputs are."""
    if (cluster["kind"] == "address") != (cluster["address"] is not None):
        raise InputError("cluster.address goes with kind: address, and only with it")
    adaptive = cluster["kubernetes"]["adaptive"]
    if adaptive is not None and adaptive["minimum"] > adaptive["maximum"]:
        limits = f"{adaptive['minimum']} and {adaptive['maximum']}"
        raise InputError(f"cluster.kubernetes.adaptive: minimum must be at most maximum; got {limits}")
    if cluster["tls"] is None:
        return dict(cluster)
    return {**cluster, "tls": {name: str(Path(folder) / Path(file).expanduser()) for name, file in cluster["tls"].items()}}


def _measure(value: Any, known: dict[int, int], path: str) -> int:
    """Count the values that aliases stand for, so that a small file cannot grow without bound, or contain itself."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in known:
        known[id(value)] = MOST_VALUES + 1  # what is met again while it is being counted contains itself
        items = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_measure(item, known, path) for item in items)
    if known[id(value)] > MOST_VALUES:
        raise InputError(f"config {path}: more than {MOST_VALUES:,} values, aliases written out")
    return known[id(value)]


def _one_line(error: Exception) -> str:
    return re.sub(r"\s+", " ", str(error)).strip()


def _apply(raw: dict[str, Any], override: str) -> None:
    """Set one key: names are separated by dots, list positions are numbers."""
    path, equals, text = override.partition("=")
    if not equals or not path:
        raise InputError(f"--set must be dotted.key=value; got {override!r}")
    value = _parsed(text, f"--set {path}")
    keys = re.sub(r"\[(\d+)\]", r".\1", path).split(".")
    place: Any = raw
    for depth, key in enumerate(keys):
        last = depth == len(keys) - 1
        if isinstance(place, list):
            if not key.isdecimal() or int(key) >= len(place):
                raise InputError(f"--set {path}: {key!r} is not a position in a list of {len(place)}")
            if last:
                place[int(key)] = value
            place = place[int(key)]
        elif isinstance(place, dict):
            if last:
                place[key] = value
            place = place.setdefault(key, {})
        else:
            raise InputError(f"--set {path}: {'.'.join(keys[:depth])} is a single value, it has no {key!r}")


def _refuse_references(value: Any, where: str = "", *, allowed: bool = False) -> None:
    """Say where a ${NAME} stands outside storage_options."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            _refuse_references(item, f"{where}.{key}" if where else str(key), allowed=allowed or key == "storage_options")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _refuse_references(item, f"{where}[{index}]", allowed=allowed)
    elif isinstance(value, str) and not allowed and re.search(r"\$\{\w+\}", value):
        raise InputError(f"{where}: ${{NAME}} is read only in storage_options; got {value!r}")
