"""Constraints as data: each checks a value from a config, and describes itself as JSON Schema.

A record may build a frozen value (`into`), so that a config is parsed once, at the edge. Fields declare what they mean, and
`rewrite` walks a document along these declarations: redaction, digests and deployments need no lists of names.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from dit_dask.errors import InputError, describe_value, unknown

LARGEST_INTEGER = 2**63 - 1
REQUIRED: Any = object()
DROP: Any = object()
Decide: TypeAlias = "Callable[[Field, Any, str], Any]"
"""Given a field, its value and its place: the value to go on with, or DROP."""


class Constraint(Protocol):
    """A constraint on one value."""

    def check(self, value: Any, where: str) -> Any:
        """Return the normalised value or raise InputError naming the place."""
        ...

    def schema(self) -> dict[str, Any]:
        """Describe the constraint as JSON Schema."""
        ...

    def rewrite(self, document: Any, decide: Decide, where: str) -> Any:
        """Copy a document along the declarations of its fields; what the constraint does not know is copied as it is."""
        ...


class Leaf:
    """A constraint without fields below it."""

    def rewrite(self, document: Any, _decide: Decide, _where: str) -> Any:
        """Copy the value."""
        return document


def refuse(where: str, expected: str, got: object) -> InputError:
    """Phrase every wrong value the same way."""
    return InputError(f"{where} must be {expected}; got {describe_value(got)}")


@dataclass(frozen=True)
class Integer(Leaf):
    """A whole number."""

    least: int | None = None
    most: int = LARGEST_INTEGER

    def check(self, value: Any, where: str) -> int:
        """Booleans and 3.0 are not integers."""
        is_integer = isinstance(value, int) and not isinstance(value, bool)
        if not is_integer or (self.least is not None and value < self.least):
            raise refuse(where, "an integer" + ("" if self.least is None else f" >= {self.least}"), value)
        if not -LARGEST_INTEGER <= value <= self.most:
            raise refuse(where, f"an integer of at most {self.most:,}", value)
        return int(value)

    def schema(self) -> dict[str, Any]:
        """Describe the constraint as JSON Schema."""
        lower = {} if self.least is None else {"minimum": self.least}
        return {"type": "integer"} | lower | ({} if self.most == LARGEST_INTEGER else {"maximum": self.most})


@dataclass(frozen=True)
class Number(Leaf):
    """A real number; `inf`, `.inf` and `1e-3` are read also where YAML leaves them as text."""

    above: float | None = None

    def check(self, value: Any, where: str) -> float:
        """NaN is never a number here."""
        number = math.nan
        if isinstance(value, int | float) and not isinstance(value, bool):
            with suppress(OverflowError):  # 10^400 as an integer
                number = float(value)
        elif isinstance(value, str) and re.fullmatch(r"[+-]?(\.?inf|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)", value):
            number = float(value.replace(".inf", "inf"))
        if math.isnan(number) or (self.above is not None and number <= self.above):
            raise refuse(where, "a number" + ("" if self.above is None else f" > {self.above:g}"), value)
        return number

    def schema(self) -> dict[str, Any]:
        """Describe the constraint as JSON Schema."""
        bound = {} if self.above is None else {"exclusiveMinimum": self.above}
        return {"anyOf": [{"type": "number"} | bound, {"type": "string", "pattern": r"^([+-]?\.?inf|[0-9.eE+-]+)$"}]}


@dataclass(frozen=True)
class Text(Leaf):
    """A string, optionally of a pattern that `what` describes."""

    pattern: str = r"(?s).+"
    what: str = "a non-empty text"

    def check(self, value: Any, where: str) -> str:
        """Numbers are not silently read as text."""
        if not isinstance(value, str) or not re.fullmatch(self.pattern, value):
            raise refuse(where, self.what, value)
        return value

    def schema(self) -> dict[str, Any]:
        """Describe the constraint as JSON Schema."""
        return {"type": "string", "description": self.what}


@dataclass(frozen=True)
class NameOrFile(Leaf):
    """One of a few names, or the path of a file."""

    names: tuple[str, ...]

    def check(self, value: Any, where: str) -> str:
        """Any text may be a path."""
        return Text().check(value, where)

    def schema(self) -> dict[str, Any]:
        """Describe the constraint as JSON Schema."""
        return Text().schema()


@dataclass(frozen=True)
class Choice(Leaf):
    """One of a few names."""

    names: tuple[str, ...]

    def check(self, value: Any, where: str) -> str:
        """Name the nearest known name."""
        if not isinstance(value, str):
            raise refuse(where, "one of " + ", ".join(self.names), value)
        if value not in self.names:
            raise unknown(where, value, self.names)
        return value

    def schema(self) -> dict[str, Any]:
        """Describe the constraint as JSON Schema."""
        return {"enum": list(self.names)}


@dataclass(frozen=True)
class Const(Leaf):
    """One fixed value, such as the config version."""

    value: Any

    def check(self, value: Any, where: str) -> Any:
        """True is not 1."""
        if value != self.value or type(value) is not type(self.value):
            raise refuse(where, repr(self.value), value)
        return value

    def schema(self) -> dict[str, Any]:
        """Describe the constraint as JSON Schema."""
        return {"const": self.value}


@dataclass(frozen=True)
class Anything(Leaf):
    """A value that only its receiver can judge, such as a classifier's parameter."""

    def check(self, value: Any, where: str) -> Any:  # noqa: ARG002
        """Pass the value on."""
        return value

    def schema(self) -> dict[str, Any]:
        """Describe the constraint as JSON Schema."""
        return {}


@dataclass(frozen=True)
class Refused(Leaf):
    """A key that other tests have: the reason says why this one does not."""

    reason: str

    def check(self, value: Any, where: str) -> None:
        """Only nothing passes."""
        if value is not None:
            raise InputError(f"{where}: {self.reason}")

    def schema(self) -> dict[str, Any]:
        """Describe the constraint as JSON Schema."""
        return {"type": "null"}


@dataclass(frozen=True)
class ListOf:
    """A list of equal things."""

    of: Constraint
    least: int = 0

    def check(self, value: Any, where: str) -> list[Any]:
        """Check every item under its own place."""
        if not isinstance(value, list):
            raise refuse(where, "a list", value)
        if len(value) < self.least:
            raise InputError(f"{where} must be a list of at least {self.least}; got {len(value)}")
        return [self.of.check(item, f"{where}[{i}]") for i, item in enumerate(value)]

    def schema(self) -> dict[str, Any]:
        """Describe the constraint as JSON Schema."""
        return {"type": "array", "items": self.of.schema(), "minItems": self.least}

    def rewrite(self, document: Any, decide: Decide, where: str) -> Any:
        """Rewrite every item."""
        if not isinstance(document, list | tuple):
            return document
        return [self.of.rewrite(item, decide, f"{where}[{place}]") for place, item in enumerate(document)]


@dataclass(frozen=True)
class MapOf:
    """A mapping from free names to equal things."""

    of: Constraint
    least: int = 0

    def check(self, value: Any, where: str) -> dict[str, Any]:
        """Names are texts: YAML reads a bare `no` or `1` as something else, and that is an error."""
        if not isinstance(value, Mapping) or len(value) < self.least:
            raise refuse(where, "a mapping" + (f" of at least {self.least} name" if self.least else ""), value)
        for name in value:
            if not isinstance(name, str):
                raise refuse(f"{where}: the name {name!r}", "a text (quote it)", name)
        return {name: self.of.check(item, f"{where}.{name}") for name, item in value.items()}

    def schema(self) -> dict[str, Any]:
        """Describe the constraint as JSON Schema."""
        return {"type": "object", "additionalProperties": self.of.schema(), "minProperties": self.least}

    def rewrite(self, document: Any, decide: Decide, where: str) -> Any:
        """Rewrite every item."""
        if not isinstance(document, Mapping):
            return document
        return {name: self.of.rewrite(item, decide, f"{where}.{name}") for name, item in document.items()}


@dataclass(frozen=True)
class Field:
    """One key of a record: what it takes, its default, and what it means.

    `sweep`: a list of values makes one test for each. `affects_result=False`: the key says how, not what, so it is no part of
    a run's identity. `only_if_set`: at its default it is none either, so that a new key does not rename earlier runs. `file`: a
    path relative to the config, which a deployed audit takes along. `secret`: it may hold credentials, so its values are never
    shown.
    """

    constraint: Constraint
    default: Any = REQUIRED
    sweep: bool = False
    description: str = ""
    affects_result: bool = True
    file: bool = False
    secret: bool = False
    only_if_set: bool = False

    def schema(self) -> dict[str, Any]:
        """Describe the key, and the list where it may sweep."""
        single = self.constraint.schema()
        shape = {"anyOf": [single, {"type": "array", "items": single, "minItems": 1}]} if self.sweep else dict(single)
        return shape | ({"description": self.description} if self.description else {})


@dataclass(frozen=True)
class Record:
    """A mapping with known keys; `into` builds the frozen value that the rest of the program works with."""

    fields: Mapping[str, Field] = field(default_factory=dict)
    into: Callable[..., Any] = dict

    def check(self, value: Any, where: str) -> Any:
        """Unknown keys name the nearest known one; absent keys take their defaults."""
        if not isinstance(value, Mapping):
            raise refuse(where or "the config", "a mapping", value)
        for key in value:
            if key not in self.fields:
                raise unknown(f"{where}: key" if where else "key", key, self.fields)
        dot = f"{where}." if where else ""
        checked = {}
        for key, entry in self.fields.items():
            if key in value:
                checked[key] = entry.constraint.check(value[key], dot + key)
            elif entry.default is REQUIRED:
                raise InputError(f"{dot}{key} is missing")
            else:
                checked[key] = entry.default
        return self.into(**checked) if self.into is not dict else checked

    def schema(self) -> dict[str, Any]:
        """Describe the constraint as JSON Schema."""
        required = [key for key, entry in self.fields.items() if entry.default is REQUIRED]
        properties = {key: entry.schema() for key, entry in self.fields.items()}
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    def rewrite(self, document: Any, decide: Decide, where: str) -> Any:
        """Decide about every known key, then rewrite what lies below it."""
        if not isinstance(document, Mapping):
            return document
        copy: dict[str, Any] = {}
        for key, value in document.items():
            entry, place = self.fields.get(key), f"{where}.{key}" if where else str(key)
            if entry is None:
                copy[key] = value
                continue
            decided = decide(entry, value, place)
            if decided is DROP:
                continue
            swept = entry.sweep and isinstance(decided, list)
            copy[key] = (ListOf(entry.constraint) if swept else entry.constraint).rewrite(decided, decide, place)
        return copy


@dataclass(frozen=True)
class OneOf:
    """A value that may be written in several shapes; the first spec of a matching Python type decides."""

    shapes: Sequence[tuple[type | tuple[type, ...], Constraint]]
    what: str

    def check(self, value: Any, where: str) -> Any:
        """Choose by shape, then check."""
        for shape, spec in self.shapes:
            if isinstance(value, shape) and not isinstance(value, bool):
                return spec.check(value, where)
        raise refuse(where, self.what, value)

    def schema(self) -> dict[str, Any]:
        """Describe the constraint as JSON Schema."""
        return {"anyOf": [spec.schema() for _, spec in self.shapes]}

    def rewrite(self, document: Any, decide: Decide, where: str) -> Any:
        """Rewrite by the shape that matches."""
        shape = next((inner for kind, inner in self.shapes if isinstance(document, kind)), None)
        return document if shape is None else shape.rewrite(document, decide, where)


@dataclass(frozen=True)
class Flag(Leaf):
    """Yes or no."""

    def check(self, value: Any, where: str) -> bool:
        """YAML reads true, yes and on as such; texts and numbers are not flags."""
        if not isinstance(value, bool):
            raise refuse(where, "true or false", value)
        return value

    def schema(self) -> dict[str, Any]:
        """Describe the constraint as JSON Schema."""
        return {"type": "boolean"}


def declared(constraint: Constraint, document: Any, chosen: Callable[[Field], bool]) -> list[tuple[str, Any]]:
    """Return place and value of the chosen fields of a document; what lies inside a chosen field belongs to it."""
    found: list[tuple[str, Any]] = []

    def collect(entry: Field, value: Any, where: str) -> Any:
        if chosen(entry):
            found.append((where, value))
            return DROP
        return value

    constraint.rewrite(document, collect, "")
    return found


def result_document(constraint: Constraint, document: Any) -> Any:
    """Copy a document without the fields that cannot change a result."""

    def keep(entry: Field, value: Any, _where: str) -> Any:
        is_default = entry.only_if_set and value == entry.default
        return value if entry.affects_result and not is_default else DROP

    return constraint.rewrite(document, keep, "")
