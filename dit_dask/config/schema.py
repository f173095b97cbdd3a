"""The keys of `schema`: what the columns of a table mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import Any

from dit_dask.config.constraints import Choice, Decide, Field, Flag, Integer, ListOf, MapOf, Number, OneOf, Record, Text
from dit_dask.config.data import MARK, Mark
from dit_dask.errors import InputError

DATE_LEVELS = ("day", "month", "quarter", "year", "decade")
KIND_KEYS: Mapping[str, tuple[str, ...]] = {
    "numeric": (),
    "categorical": ("hierarchy",),
    "ordinal": ("order",),
    "date": ("hierarchy", "format", "dayfirst", "zone"),
    "boolean": (),
}
"""The kinds of a quasi-identifier, and the keys that each takes beside `kind`."""


@dataclass(frozen=True)
class HierarchyRule:
    """A hierarchy that is made from the values themselves, or read from a file in ARX's form."""

    prefix: Sequence[int] | None = None
    dates: Sequence[str] | None = None
    bands: Sequence[float] | None = None
    levels: str | None = None


@dataclass(frozen=True)
class AttributeConfig:
    """A quasi-identifier."""

    kind: str
    hierarchy: str | HierarchyRule | None = None
    order: Sequence[Mark] | None = None
    format: Sequence[str] | None = None
    dayfirst: bool | None = None
    zone: str | None = None


@dataclass(frozen=True)
class SensitiveConfig:
    """A sensitive attribute: a column, numbers in bins, values that a file maps to others, or the joint value of several.

    `where` is its place in the config, for messages.
    """

    name: str
    hierarchy: str | None = None
    order: Sequence[Mark] | None = None
    bins: int | Sequence[float] | None = None
    derived_from: str | None = None
    map: str | None = None
    joint: tuple[SensitiveConfig, ...] = ()
    where: str = field(default="schema.sensitive", compare=False)

    @property
    def column(self) -> str:
        """The column that it is read from."""
        return self.derived_from or self.name

    @property
    def members(self) -> tuple[SensitiveConfig, ...]:
        """The attributes whose joint value it is; itself if it is none."""
        return self.joint or (self,)

    def document(self) -> dict[str, Any]:
        """The keys as a config writes them."""
        if self.joint:
            return {"joint": [member.document() for member in self.joint], "name": self.name}
        keys = ("name", "hierarchy", "order", "bins", "derived_from", "map")
        return {"from" if key == "derived_from" else key: getattr(self, key) for key in keys}


@dataclass(frozen=True)
class SchemaConfig:
    """The keys of `schema`; `sensitive` is a tuple where the config has a list."""

    quasi_identifiers: Mapping[str, AttributeConfig]
    sensitive: SensitiveConfig | tuple[SensitiveConfig, ...]
    subject: str | None = None

    @property
    def secrets(self) -> tuple[SensitiveConfig, ...]:
        """The sensitive attributes: each has its own tests."""
        return self.sensitive if isinstance(self.sensitive, tuple) else (self.sensitive,)

    @property
    def listed(self) -> tuple[str, ...]:
        """The names of the sensitive attributes, if the config has a list; tests then say which one they are about."""
        return tuple(secret.name for secret in self.sensitive) if isinstance(self.sensitive, tuple) else ()

    @property
    def members(self) -> tuple[SensitiveConfig, ...]:
        """The sensitive attributes, joint ones taken apart, each once."""
        return tuple({member.name: member for secret in self.secrets for member in secret.members}.values())

    @property
    def columns(self) -> list[str]:
        """The columns that a row must have a value in, each once."""
        return list(dict.fromkeys([*self.quasi_identifiers, *(member.column for member in self.members)]))

    @property
    def subject_columns(self) -> list[str]:
        """The column of the subject, if there is one."""
        return [] if self.subject is None else [self.subject]

    def document(self) -> dict[str, Any]:
        """The keys as a config writes them."""
        secrets = [secret.document() for secret in self.secrets]
        document = asdict(self) | {"sensitive": secrets if self.listed else secrets[0]}
        return {key: value for key, value in document.items() if key != "subject" or value is not None}


def _to_sensitive(**keys: Any) -> SensitiveConfig:
    """Build the value; `from` is a word of Python's."""
    return SensitiveConfig(derived_from=keys.pop("from"), **keys)


def _to_joint(joint: Sequence[SensitiveConfig | str], name: str | None) -> SensitiveConfig:
    members = tuple(SensitiveConfig(member) if isinstance(member, str) else member for member in joint)
    return SensitiveConfig(name or "+".join(member.name for member in members), joint=members)


def _to_attribute(**keys: Any) -> AttributeConfig:
    formats = keys.pop("format")
    return AttributeConfig(format=[formats] if isinstance(formats, str) else formats, **keys)


RULE = Record(
    {
        "prefix": Field(ListOf(Integer(1), 1), None, description="lengths of the prefixes of a code, longest first"),
        "dates": Field(ListOf(Choice(DATE_LEVELS), 1), None, description="periods of a date, shortest first"),
        "bands": Field(ListOf(Number(0), 1), None, description="widths of intervals of numbers, narrowest first"),
        "levels": Field(Text(), None, description="file of lines leaf;level 1;level 2;… as ARX writes it", file=True),
    },
    HierarchyRule,
)
HIERARCHY = OneOf([(str, Text()), (dict, RULE)], "the path of a file, or a mapping with prefix, dates, bands or levels")
FORMAT = OneOf([(str, Text()), (list, ListOf(Text(), 1))], "a format such as '%d/%m/%Y', or a list of formats")
ATTRIBUTE = Record(
    {
        "kind": Field(Choice(tuple(KIND_KEYS))),
        "hierarchy": Field(
            HIERARCHY,
            None,
            description="file of lines leaf;parent;…;*, or {prefix: […]}, {dates: […]}, {bands: […]}, {levels: FILE}; "
            "without one the attribute is flat",
            file=True,
        ),
        "order": Field(ListOf(MARK, 2), None, description="of an ordinal: all its values, in order", only_if_set=True),
        "format": Field(FORMAT, None, description="of dates, such as '%d/%m/%Y'", only_if_set=True),
        "dayfirst": Field(Flag(), None, description="of dates: whether 03/04/2020 is in April", only_if_set=True),
        "zone": Field(Text(), None, description="of times with a time zone: the one they are converted to", only_if_set=True),
    },
    _to_attribute,
)
BINS = OneOf([(int, Integer(2)), (list, ListOf(Number(), 2))], "a number of bins >= 2 or a list of edges")
SENSITIVE = Record(
    {
        "name": Field(Text()),
        "hierarchy": Field(Text(), None, file=True),
        "order": Field(ListOf(MARK, 2), None, description="the whole domain, in order; sorted values otherwise"),
        "bins": Field(
            BINS,
            None,
            description="of numbers: so many intervals of equal frequency, or their edges (closed on the right, the first on "
            "both sides)",
            only_if_set=True,
        ),
        "from": Field(Text(), None, description="the column that it is derived from, by `map`", only_if_set=True),
        "map": Field(
            Text(), None, description="file of lines value;derived value; * is any other value", file=True, only_if_set=True
        ),
    },
    _to_sensitive,
)
MEMBER = OneOf([(str, Text()), (dict, SENSITIVE)], "a column name or a mapping")
JOINT = Record(
    {
        "joint": Field(ListOf(MEMBER, 2), description="attributes whose values together are one sensitive value"),
        "name": Field(Text(), None, description="of the joint attribute; the names of its members by default"),
    },
    _to_joint,
)


@dataclass(frozen=True)
class SecretMapping:
    """A mapping that describes one sensitive attribute, or the joint value of several."""

    def _record(self, document: Any) -> Record:
        return JOINT if isinstance(document, Mapping) and "joint" in document else SENSITIVE

    def check(self, value: Any, where: str) -> SensitiveConfig:
        """Check by the keys that a mapping of this form has."""
        checked: SensitiveConfig = self._record(value).check(value, where)
        return checked

    def schema(self) -> dict[str, Any]:
        """Describe both forms as JSON Schema."""
        return {"anyOf": [SENSITIVE.schema(), JOINT.schema()]}

    def rewrite(self, document: Any, decide: Decide, where: str) -> Any:
        """Rewrite by the keys that a mapping of this form has."""
        return self._record(document).rewrite(document, decide, where)


SECRET = OneOf([(str, Text()), (dict, SecretMapping())], "a column name or a mapping")
SCHEMA = Record(
    {
        "quasi_identifiers": Field(MapOf(ATTRIBUTE, 1)),
        "sensitive": Field(
            OneOf([*SECRET.shapes, (list, ListOf(SECRET, 1))], "a column name, a mapping, or a list of these"),
            description="what nobody should infer; a list: one test for each; {joint: [a, b]}: their values together",
        ),
        "subject": Field(
            Text(),
            None,
            description="the column that says whose rows belong together: a person, a household; without it every row is one",
            only_if_set=True,
        ),
    },
    SchemaConfig,
)


def check_schema(schema: SchemaConfig) -> SchemaConfig:
    """Write the sensitive attributes out, and refuse what no column can be."""
    for name, attribute in schema.quasi_identifiers.items():
        _check_attribute(attribute, f"schema.quasi_identifiers.{name}")
    written: Any = schema.sensitive
    if isinstance(written, list):
        places = {f"schema.sensitive[{place}]": secret for place, secret in enumerate(written)}
        checked = replace(schema, sensitive=_check_secrets(places, schema))
    else:
        checked = replace(schema, sensitive=_check_secrets({"schema.sensitive": written}, schema)[0])
    _check_subject(checked)
    return checked


def _check_subject(schema: SchemaConfig) -> None:
    """Refuse a subject that is published or inferred."""
    if schema.subject in schema.quasi_identifiers:
        raise InputError(f"schema.subject {schema.subject!r} is also among the quasi_identifiers; an id must not be published")
    if schema.subject in {name for member in schema.members for name in (member.name, member.column)}:
        raise InputError(f"schema.subject {schema.subject!r} is also the sensitive attribute")


def _check_secrets(written: Mapping[str, SensitiveConfig | str], schema: SchemaConfig) -> tuple[SensitiveConfig, ...]:
    """Check sensitive attributes by their places; a name in a joint one means the attribute that the list describes so."""
    secrets = [
        replace(SensitiveConfig(secret) if isinstance(secret, str) else secret, where=where)
        for where, secret in written.items()
    ]
    described = {secret.name: secret for secret in secrets if not secret.joint}
    checked: dict[str, SensitiveConfig] = {}
    for secret in secrets:
        if secret.name in checked:
            raise InputError(f"{secret.where}: {secret.name!r} is listed twice")
        members = _check_members(secret, described)
        for member in members or (secret,):
            if member.name in schema.quasi_identifiers:
                raise InputError(f"{member.where} {member.name!r} is also among the quasi_identifiers")
            _check_sensitive(member)
        checked[secret.name] = replace(secret, joint=members)
    for secret in checked.values():
        if secret.joint and (secret.name in described or secret.name in schema.quasi_identifiers):
            raise InputError(f"{secret.where}.name: {secret.name!r} is the name of another attribute")
    return tuple(checked.values())


def _check_members(secret: SensitiveConfig, described: dict[str, SensitiveConfig]) -> tuple[SensitiveConfig, ...]:
    """The members of a joint attribute as they are described, here or elsewhere; the same in both places."""
    members: dict[str, SensitiveConfig] = {}
    for place, member in enumerate(secret.joint):
        where = f"{secret.where}.joint[{place}]"
        known = described.setdefault(member.name, replace(member, where=where))
        if member not in (known, SensitiveConfig(member.name)):
            raise InputError(f"{where}: {member.name!r} is described in another way by {known.where}")
        if member.name in members:
            raise InputError(f"{where}: {member.name!r} is listed twice")
        members[member.name] = known
    return tuple(members.values())


def _check_attribute(attribute: AttributeConfig, where: str) -> None:
    """Refuse keys that another kind takes, an ordinal without order, and rules that no tree can follow."""
    article = "an" if attribute.kind == "ordinal" else "a"
    for key in ("hierarchy", "order", "format", "dayfirst", "zone"):
        if getattr(attribute, key) is not None and key not in KIND_KEYS[attribute.kind]:
            raise InputError(f"{where}: {article} {attribute.kind} attribute takes no {key}")
    if attribute.kind == "ordinal" and attribute.order is None:
        raise InputError(f"{where}.order is missing: an ordinal attribute lists its values in order")
    if attribute.order is not None:
        check_order(attribute.order, f"{where}.order")
    if attribute.format is not None and attribute.dayfirst is not None:
        raise InputError(f"{where}: format and dayfirst exclude each other; got both")
    if isinstance(attribute.hierarchy, HierarchyRule):
        _check_rule(attribute.hierarchy, attribute.kind, f"{where}.hierarchy")


def check_order(order: Sequence[Mark], where: str) -> None:
    """Refuse an order that names a value twice."""
    levels = [str(level) for level in order]
    if len(set(levels)) < len(levels):
        raise InputError(f"{where} names a value twice")


def _check_rule(rule: HierarchyRule, kind: str, where: str) -> None:
    given = {key: value for key, value in asdict(rule).items() if value is not None}
    if len(given) != 1:
        got = ", ".join(given) or "none"
        raise InputError(f"{where} must have one of prefix, dates, bands and levels; got {got}")
    if "dates" in given and kind != "date":
        raise InputError(f"{where}.dates: only an attribute of kind date has dates; got kind {kind}")
    if kind == "date" and not {"dates", "levels"} & set(given):
        raise InputError(f"{where}: a date takes dates or levels; got {next(iter(given))}")
    if rule.prefix is not None and any(low >= high for high, low in pairwise(rule.prefix)):
        raise InputError(f"{where}.prefix must be lengths in descending order; got {list(rule.prefix)}")
    if rule.dates is not None:
        places = [DATE_LEVELS.index(level) for level in rule.dates]
        if any(low >= high for low, high in pairwise(places)):
            raise InputError(f"{where}.dates must be in the order {', '.join(DATE_LEVELS)}; got {', '.join(rule.dates)}")
    if rule.bands is not None:
        for narrow, wide in pairwise(rule.bands):
            if wide <= narrow or abs(wide / narrow - round(wide / narrow)) > 1e-9:
                got = f"{wide:g} after {narrow:g}"
                raise InputError(f"{where}.bands: every width must be a multiple of the one before; got {got}")


def _check_sensitive(sensitive: SensitiveConfig) -> None:
    where = sensitive.where
    if (sensitive.derived_from is None) != (sensitive.map is None):
        raise InputError(f"{where}: from and map go together; got only {'map' if sensitive.map else 'from'}")
    if sensitive.bins is not None and (sensitive.order is not None or sensitive.hierarchy or sensitive.map):
        raise InputError(f"{where}: bins have an order of their own; they exclude order, hierarchy and map")
    if sensitive.order is not None:
        check_order(sensitive.order, f"{where}.order")
    edges = sensitive.bins
    if isinstance(edges, Sequence) and any(low >= high for low, high in pairwise(edges)):
        raise InputError(f"{where}.bins must be edges in ascending order; got {[f'{edge:g}' for edge in edges]}")
