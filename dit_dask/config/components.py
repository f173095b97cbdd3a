"""Components that a config names, such as a sanitizer or adversaries: a name with parameters, one of several, or a list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dit_dask.config.constraints import Const, Decide, Field, Record, Text, refuse
from dit_dask.errors import InputError, unknown


@dataclass(frozen=True)
class ComponentConfig:
    """A component that a config names: its parameters, and the settings that cannot change a result."""

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict, repr=False)  # they may hold secrets
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def keys(self) -> dict[str, Any]:
        """Parameters and settings together, as a component is built from them."""
        return {"name": self.name, **self.parameters, **self.settings}

    def document(self) -> dict[str, Any]:
        """Parameters and settings that were given."""
        return {key: value for key, value in self.keys.items() if value is not None}

    def identity(self) -> dict[str, Any]:
        """The parameters that were given; what lies inside one, such as a null, is a value."""
        return {"name": self.name} | {key: value for key, value in self.parameters.items() if value is not None}


@dataclass(frozen=True)
class Component:
    """A registered thing with parameters: its name alone, or a mapping of `name` and parameters."""

    kinds: Mapping[str, Record]
    otherwise: Record | None = None  # for names that are import paths
    hint: str = ""  # what else a name may be

    def record(self, value: Any, where: str) -> Record:
        """Find the parameters of the thing named, plus `name` itself."""
        name = value.get("name") if isinstance(value, Mapping) else value
        if name is None and isinstance(value, Mapping):
            raise InputError(f"{where}.name is missing")
        if not isinstance(name, str):
            raise refuse(f"{where}.name" if isinstance(value, Mapping) else where, "a name", name)
        chosen = self.kinds.get(name) or (self.otherwise if "." in name else None)
        if chosen is None:
            raise unknown(where, name, self.kinds, self.hint)
        return Record({"name": Field(Text()), **chosen.fields})

    def check(self, value: Any, where: str) -> ComponentConfig:
        """Fill in the defaults, and set apart what cannot change a result."""
        record = self.record(value, where)
        checked = record.check(value if isinstance(value, Mapping) else {"name": value}, where)
        name, affects = checked.pop("name"), {key: entry.affects_result for key, entry in record.fields.items()}
        parameters = {key: item for key, item in checked.items() if affects[key]}
        return ComponentConfig(name, parameters, {key: item for key, item in checked.items() if not affects[key]})

    def schema(self) -> dict[str, Any]:
        """Describe the constraint as JSON Schema."""
        shapes: list[dict[str, Any]] = [{"enum": list(self.kinds)}]
        for name, record in self.kinds.items():
            shapes.append(Record({"name": Field(Const(name)), **record.fields}).schema())
        if self.otherwise:
            path = Text(r".+\..+", "an import path such as sklearn.tree.DecisionTreeClassifier")
            shapes += [path.schema(), Record({"name": Field(path), **self.otherwise.fields}).schema()]
        return {"anyOf": shapes}

    def rewrite(self, document: Any, decide: Decide, where: str) -> Any:
        """Rewrite by the parameters of the thing named; an unknown name is left alone."""
        name = document.get("name") if isinstance(document, Mapping) else None
        if not isinstance(name, str) or not (name in self.kinds or (self.otherwise and "." in name)):
            return document
        return self.record(document, where).rewrite(document, decide, where)


@dataclass(frozen=True)
class Components:
    """One component, a list of different ones, or the name of a fixed set of them."""

    of: Component
    sets: Mapping[str, tuple[ComponentConfig, ...]]

    def check(self, value: Any, where: str) -> tuple[ComponentConfig, ...]:
        """Write every way out as the components it stands for."""
        members = self._members(value)
        if members:
            return members
        if not isinstance(value, list):
            return (self.of.check(value, where),)
        if not value:
            raise InputError(f"{where} must be a name or a list of at least one; got an empty list")
        checked: list[ComponentConfig] = []
        for place, item in enumerate(value):
            members = self._members(item)
            if members:
                names = ", ".join(component.name for component in members)
                raise InputError(f"{where}[{place}] must be a single one; got a name that stands for several: {names}")
            component = self.of.check(item, f"{where}[{place}]")
            if component in checked:
                raise InputError(f"{where}[{place}]: {component.name} is listed twice")
            checked.append(component)
        return tuple(checked)

    def _members(self, value: Any) -> tuple[ComponentConfig, ...]:
        name = value.get("name") if isinstance(value, Mapping) and len(value) == 1 else value
        return self.sets.get(name, ()) if isinstance(name, str) else ()

    def schema(self) -> dict[str, Any]:
        """Describe the constraint as JSON Schema."""
        single = self.of.schema()
        return {"anyOf": [{"enum": list(self.sets)}, *single["anyOf"], {"type": "array", "items": single, "minItems": 1}]}

    def rewrite(self, document: Any, decide: Decide, where: str) -> Any:
        """Rewrite one component, or every one of a list."""
        if isinstance(document, list | tuple):
            return [self.of.rewrite(item, decide, f"{where}[{place}]") for place, item in enumerate(document)]
        return self.of.rewrite(document, decide, where)
