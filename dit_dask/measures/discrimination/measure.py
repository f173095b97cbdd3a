"""The discrimination rate as a measure: of keys over a target in the table, or of an attack on a release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.config.constraints import Choice, Field, Flag, Integer, ListOf, Number, Record, Text
from dit_dask.config.registry import Context
from dit_dask.errors import InputError, unknown
from dit_dask.measures.applicability import NO_PERSONS, is_about_persons
from dit_dask.measures.base import OTHER_TABLE, MeasureInput, MeasureKind, MeasureResult, Source
from dit_dask.measures.discrimination import attacks
from dit_dask.measures.discrimination.chance import chance_by_shuffling, chance_of_table, correct
from dit_dask.measures.discrimination.contingency import (
    MISSING,
    ContingencyTable,
    Profile,
    bootstrap,
    encode_columns,
    number_combinations,
    profile_of_records,
)
from dit_dask.measures.discrimination.histogram import ESTIMATORS
from dit_dask.measures.discrimination.listing import list_by_value, list_partitions, round_count, round_figure
from dit_dask.measures.discrimination.presentation import present
from dit_dask.measures.discrimination.published import Members, count_rows, find_members
from dit_dask.measures.discrimination.semantic import Semantic, number_groups, resolve_groups
from dit_dask.values.release import Release
from dit_dask.values.schema import MIN_DISCLOSED_COUNT

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats, Ints


@dataclass(frozen=True)
class Sampling:
    """How the number is estimated: an estimator of entropy, and the level of a bootstrap interval if one is configured."""

    estimator: str
    level: float | None
    replicates: int

    def interval(self, table: ContingencyTable, inputs: MeasureInput) -> dict[str, Any]:
        """Return the interval as measures.json has it, if one is configured."""
        if self.level is None:
            return {}
        rng = inputs.stream("bootstrap")
        low, high = bootstrap(table, self.level, self.replicates, rng)
        more: dict[str, Any] = {"interval": [low, high], "level": self.level}
        rate = table.profile(self.estimator).rate.value
        if not low <= rate <= high:
            more["interval_reason"] = BIASED.format("above" if rate > high else "below")
        return more

    def chance(self, table: ContingencyTable, rate: float, inputs: MeasureInput, *, is_worst: bool = False) -> dict[str, Any]:
        """Return the level that chance alone would give, and what the rate says beyond it; counts must be whole rows."""
        if not np.issubdtype(table.count.dtype, np.integer):
            return {}
        if self.estimator == "plug-in" and not is_worst:
            level = chance_of_table(table)
        else:
            compute = partial(_rate_of_worst if is_worst else _rate_of, estimator=self.estimator)
            level = chance_by_shuffling(table, compute, inputs.stream("chance"))
        return {"chance": level, "corrected": correct(rate, level)}


BIASED = (
    "the rate is {} the interval: few rows make it too high, and the interval, moved down by twice that bias, is one for the "
    "rate of a larger population"
)
BIASED_COMPLEMENT = (
    "what remains unknown is {} the interval: few rows make it too low, and the interval, moved up by twice that bias, is one "
    "for a larger population"
)


def _rate_of(table: ContingencyTable, estimator: str) -> float:
    return table.profile(estimator).rate.value


def _rate_of_worst(table: ContingencyTable, estimator: str) -> float:
    """Return the largest rate over the partitions {value, rest}."""
    return max(rate.value for rate in attacks.partition_rates(table, estimator).values())


@dataclass(frozen=True)
class OfTable:
    """The rate of some columns over another one, or over the record itself."""

    target: str | None
    keys: tuple[str, ...]
    groups: Any
    missing: str | None
    sampling: Sampling
    show_values: bool

    def find(self, inputs: MeasureInput) -> MeasureResult:
        """Code the columns, count the pairs, list the keys."""
        names = [*self.keys] if self.target is None else [self.target, *self.keys]
        cells = inputs.cells
        columns, kept = encode_columns({name: cells.frame[name] for name in names}, self.missing, counts=cells.counts)
        keys, counts = columns if self.target is None else columns[1:], cells.counts[kept]
        key = number_combinations([column.codes for column in keys])
        of_cells = np.full(len(kept), -1)
        of_cells[kept] = key
        if self.target is None:
            profile = profile_of_records(np.bincount(key, counts).astype(np.int64))
            more = {} if self.sampling.level is None else self._interval_of_records(of_cells[cells.index], inputs)
        else:
            table = ContingencyTable.of(key, columns[0].codes, counts)
            if self.groups is not None:
                table = table.group_values(self.groups(columns[0].all_labels()))
            profile = table.profile(self.sampling.estimator)
            more = self.sampling.interval(table, inputs) | self.sampling.chance(table, profile.rate.value, inputs)
        first = np.unique(key, return_index=True)[1]

        def label(number: int) -> Any:
            texts = [_to_text(column.label(column.codes[first[number]])) for column in keys]
            return texts[0] if len(texts) == 1 else texts

        shown = profile
        if self.target is None and not self.show_values:  # H(record | key) is the logarithm of the count: round that too
            rounded = np.array([max(1, round_count(count)) for count in profile.count])
            shown = replace(profile, conditional=np.log2(rounded))
        return MeasureResult(
            profile.rate.value,
            list_by_value(shown, label, show_values=self.show_values),
            int(counts.sum()),
            _format_entropies(profile) | more,
            _per_record(profile, of_cells),
            cells.index,
        )

    def _interval_of_records(self, key: Ints, inputs: MeasureInput) -> dict[str, Any]:
        """Return the interval over the record itself, of which every row has its own; key[n] is -1 for dropped rows."""
        return self.sampling.interval(ContingencyTable.of_records(key[key >= 0]), inputs)


@dataclass(frozen=True)
class OfRelease:
    """An attack on a release; positions are those of the keys in the schema."""

    attack: str
    positions: tuple[int, ...]
    knowledge: str
    groups: Any
    sampling: Sampling
    show_values: bool

    def find(self, inputs: MeasureInput) -> MeasureResult:
        """Run the attack; every record gets the figures of its own class."""
        release, table = inputs.release, inputs.rows.table
        assert release is not None  # noqa: S101 - of_releases guarantees one  # nosec B101
        membership: Members | None = None
        if self.attack == "identity" and self.knowledge == "white-box":
            result, membership = attacks.white_box(release, table, self.positions, self.sampling.estimator)
        elif self.attack == "identity":
            result = attacks.guess_identity(release, self.positions, self._known_frequencies(inputs))
        elif self.attack == "skewness" and self.groups is None:
            result = attacks.skewness(release, self.positions, self.sampling.estimator)
        else:
            groups = None if self.groups is None else self.groups(release.schema.sensitive.levels)
            result = attacks.homogeneity(release, self.positions, groups, self.sampling.estimator)
        membership = find_members(release, table) if membership is None else membership
        profile, more, is_rare = result.profile, dict(result.more), False
        if "partitions" in more:
            is_rare = self._is_rare_partition(more["worst"]["count"], int(release.counts.sum()))
            more |= self._disclose_partitions(more, is_rare=is_rare)
        rows = None if self.show_values else count_rows(table, self.positions)
        label = partial(result.published.label, rows=rows)
        entries = list_by_value(profile, label, show_values=self.show_values, is_rare_target=is_rare)
        more |= _format_entropies(profile)
        if result.contingency is not None:
            more |= self.sampling.interval(result.contingency, inputs)
        if self.attack != "identity":
            more |= self._chance(release, profile.rate.value, inputs)
        more |= {} if is_about_persons(inputs) else {"note": NO_PERSONS}
        value = profile.rate.value
        if self.attack == "background-knowledge":  # what remains unknown to the attacker
            value = 1 - value
            complement = (lambda rate: 1 - rate) if self.show_values else (lambda rate: round_figure(1 - rate))
            entries = [entry | {"rate": complement(entry["rate"])} for entry in entries]
            more |= {"interval": [1 - end for end in reversed(more["interval"])]} if "interval" in more else {}
            more |= {name: 1 - more[name] for name in ("chance", "corrected") if name in more}
            if "interval_reason" in more:
                more["interval_reason"] = BIASED_COMPLEMENT.format("below" if value < more["interval"][0] else "above")
        columns = _average_over_classes(profile, membership, result.published.group, table.distinct)
        return MeasureResult(value, entries, round(float(profile.count.sum())), more, columns, inputs.rows.index)

    def _chance(self, release: Release, rate: float, inputs: MeasureInput) -> dict[str, Any]:
        """Return the rate of published values over a shuffled sensitive attribute."""
        is_worst = self.attack == "skewness" and self.groups is None
        groups = None if self.groups is None else self.groups(release.schema.sensitive.levels)
        table = attacks.homogeneity(release, self.positions, groups, "plug-in").contingency
        return {} if table is None else self.sampling.chance(table, rate, inputs, is_worst=is_worst)

    def _is_rare_partition(self, count: int, total: int) -> bool:
        """Tell whether one side of {value, rest} has so few rows that figures of single classes would show them."""
        return not self.show_values and 0 < min(count, total - count) < MIN_DISCLOSED_COUNT

    def _disclose_partitions(self, more: Mapping[str, Any], *, is_rare: bool) -> dict[str, Any]:
        """Return `worst` and `partitions` as measures.json has them."""
        partitions = list_partitions(more["partitions"], show_values=self.show_values)
        named = [line for line in partitions if line["value"] == more["worst"]["value"]]
        unnamed = {"value": None, "rate": more["worst"]["rate"]}  # the rate is the value of the measure
        return {"worst": named[0] if named and not is_rare else unnamed, "partitions": partitions}

    def _known_frequencies(self, inputs: MeasureInput) -> list[Floats | None]:
        attributes = [inputs.rows.table.schema.quasi_identifiers[position] for position in self.positions]
        if self.knowledge == "black-box":
            return [None] * len(attributes)
        other = inputs.tables["external"]
        for attribute in attributes:
            if attribute.name not in other.columns:
                raise InputError(f"external: no column {attribute.name!r}; it must have the keys as columns")
        return [attacks.frequencies(attribute, other[attribute.name], "external") for attribute in attributes]


def _to_text(label: Any) -> str | None:
    return None if label is None else str(label)


def _format_entropies(profile: Profile) -> dict[str, Any]:
    rate = profile.rate
    more: dict[str, Any] = {"entropy": rate.entropy, "conditional_entropy": rate.conditional}
    return more | ({"reason": rate.reason} if rate.reason else {})


def _per_record(profile: Profile, key: Ints) -> dict[str, Floats]:
    """Return the figures of each key; NaN for rows that were dropped."""
    pairs = {"refinement": profile.refinements, "rate": profile.rates}
    return {name: np.where(key < 0, np.nan, values[key]) for name, values in pairs.items()}


def _average_over_classes(profile: Profile, membership: Members, group: Ints, distinct: int) -> dict[str, Floats]:
    """Average over the classes of each distinct record; NaN where no class covers it."""
    share = np.bincount(membership.record, membership.share, distinct)
    columns = {}
    for name, values in {"refinement": profile.refinements, "rate": profile.rates}.items():
        total = np.bincount(membership.record, membership.share * values[group[membership.holder]], distinct)
        columns[name] = np.divide(total, share, out=np.full(distinct, np.nan), where=share > 0)
    return columns


class Groups:
    """The groups that a config's `semantic` describes, for any labels."""

    def __init__(self, semantic: Mapping[str, Any], context: Context) -> None:
        self._where = f"{context.where}.semantic"
        self._groups = resolve_groups(semantic, lambda path: context.read(path, self._where))  # workers may not see the file

    def __call__(self, labels: Sequence[Any]) -> Ints:
        """Return the group of each label."""
        return number_groups(self._groups, labels, self._where)


def _build(parameters: Mapping[str, Any], context: Context) -> OfTable | OfRelease:
    where, semantic, level = context.where, parameters["semantic"], parameters["interval"]
    if level is not None and not 0 < level < 1:
        raise InputError(f"{where}.interval must be a level between 0 and 1, such as 0.95; got {level:g}")
    sampling = Sampling(parameters["estimator"], level, parameters["replicates"])
    groups = None if semantic is None else Groups(semantic, context)
    if parameters["attack"] is not None:
        return _build_attack(parameters, context, groups, sampling)
    keys, target = parameters["keys"], parameters["target"]
    for name in ("knowledge", "external"):
        if parameters[name] is not None:
            raise InputError(f"{where}.{name} goes with attack: identity")
    if keys is None:
        raise InputError(f"{where}.keys is missing")
    if target in keys:
        raise InputError(f"{where}: the target {target!r} is also among the keys")
    if len(set(keys)) < len(keys):
        raise InputError(f"{where}.keys names a column twice")
    if target is None and parameters["estimator"] != "plug-in":
        raise InputError(
            f"{where}.estimator: over the person every row is a value of its own, so nothing has to be estimated; "
            f"expected plug-in, got {parameters['estimator']}"
        )
    if target is None and semantic is not None:
        raise InputError(f"{where}.semantic regroups a target column; {where}.target is missing")
    return OfTable(target, tuple(keys), groups, parameters["missing"], sampling, parameters["show_values"])


def _build_attack(parameters: Mapping[str, Any], context: Context, groups: Groups | None, sampling: Sampling) -> OfRelease:
    where, attack, schema = context.where, parameters["attack"], context.schema
    _check_attack(parameters, context)
    names = [attribute.name for attribute in schema.quasi_identifiers]
    keys = parameters["keys"] or names
    for key in keys:
        if key not in names:
            raise unknown(f"{where}.keys: quasi-identifier", key, names)
    if len(set(keys)) < len(keys):
        raise InputError(f"{where}.keys names a column twice")
    if groups is not None:
        groups(schema.sensitive.levels)  # a value without a group is refused before any work
    knowledge = parameters["knowledge"] or "white-box"
    positions = tuple(names.index(key) for key in keys)
    return OfRelease(attack, positions, knowledge, groups, sampling, parameters["show_values"])


def _check_attack(parameters: Mapping[str, Any], context: Context) -> None:
    """Raise InputError for parameters that the attack does not take."""
    where, attack, knowledge = context.where, parameters["attack"], parameters["knowledge"]
    sensitive = context.schema.sensitive.name
    if parameters["target"] not in (None, sensitive) or (parameters["target"] and attack == "identity"):
        expected = "the keys themselves" if attack == "identity" else f"the sensitive attribute {sensitive!r}"
        raise InputError(f"{where}.target: the target of {attack} is {expected}; leave it out")
    if attack != "identity" and (knowledge or parameters["external"]):
        raise InputError(f"{where}.{'knowledge' if knowledge else 'external'} goes with attack: identity; got {attack}")
    if (knowledge == "grey-box") != (parameters["external"] is not None):
        raise InputError(f"{where}.external goes with knowledge: grey-box, and only with it")
    if attack == "semantic" and parameters["semantic"] is None:
        raise InputError(f"{where}.semantic is missing: the attack needs groups of sensitive values")
    if attack not in ("semantic", "skewness") and parameters["semantic"] is not None:
        raise InputError(f"{where}.semantic goes with attack: semantic or skewness; got {attack}")
    is_guess = attack == "identity" and knowledge in ("black-box", "grey-box")
    if is_guess and (parameters["estimator"] != "plug-in" or parameters["interval"] is not None):
        raise InputError(
            f"{where}: {knowledge} is computed from the release, not sampled: it takes no estimator and no interval"
        )
    if parameters["missing"] is not None:
        raise InputError(f"{where}.missing: a release has no missing cells; leave it out")


def _list_columns(parameters: Mapping[str, Any]) -> list[str]:
    if parameters["attack"] is not None:
        return []
    return [name for name in (parameters["target"], *(parameters["keys"] or ())) if name is not None]


def _list_tables(parameters: Mapping[str, Any]) -> dict[str, Source]:
    other = parameters["external"]
    return {} if other is None else {"external": Source.of(other, parameters["keys"])}


KIND = MeasureKind(
    Record(
        {
            "target": Field(Text(), None, description="the column that is refined; without one, the record itself"),
            "keys": Field(
                ListOf(Text(), 1), None, description="the columns that an attacker knows; of an attack: all quasi-identifiers"
            ),
            "semantic": Field(Semantic(), None, description="groups of the target's values, or a level of a hierarchy"),
            "attack": Field(
                Choice(attacks.ATTACKS), None, sweep=True, description="on every release of the run, and on the original"
            ),
            "knowledge": Field(
                Choice(attacks.KNOWLEDGE), None, sweep=True, description="of an identity attack; white-box by default"
            ),
            "external": Field(OTHER_TABLE, None, description="the grey-box attacker's table; it has the keys as columns"),
            "missing": Field(Choice(MISSING), None, description="missing cells are a category of their own, or drop their row"),
            "estimator": Field(
                Choice(tuple(ESTIMATORS)), "plug-in", sweep=True, description="of entropy; plug-in is biased downwards"
            ),
            "interval": Field(Number(above=0), None, description="level of a bootstrap interval, such as 0.95; off by default"),
            "replicates": Field(Integer(50), 1000, description="of the bootstrap"),
            "show_values": Field(Flag(), False, description="also name values that fewer than 10 rows share"),
        }
    ),
    _build,
    columns=_list_columns,
    tables=_list_tables,
    of_releases=lambda parameters: parameters["attack"] is not None,
    present=present,
)
