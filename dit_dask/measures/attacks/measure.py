"""The measures `singling-out`, `linkability` and `attribute-inference`: attacks on a table of records, with a control group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.config.constraints import Field, Integer, ListOf, Number, Record, Text
from dit_dask.config.registry import Context
from dit_dask.errors import InputError, unknown
from dit_dask.measures.attacks import inference, linkability, singling_out
from dit_dask.measures.attacks.risk import AttackRisk
from dit_dask.measures.attacks.success import CONFIDENCE, AttackResult
from dit_dask.measures.attacks.tables import AttackTables
from dit_dask.measures.base import Entries, MeasureInput, MeasureKind, MeasureResult, Section
from dit_dask.measures.synthetic.accuracy_measure import NO_RECORDS
from dit_dask.measures.synthetic.closeness_measure import SPLIT_HERE
from dit_dask.measures.synthetic.tables import (
    COLUMNS,
    HOLDOUT,
    SYNTHETIC,
    InputKey,
    Roles,
    list_columns,
    list_tables,
    parse_roles,
    prepare_tables,
)

if TYPE_CHECKING:
    from dit_dask.values.arrays import Floats

Attack = Callable[[AttackTables], AttackRisk]
ABOUT = (
    " An attack that succeeds against the training records as often as against records that the release has not seen (the "
    "control) tells about the population, not about persons: the risk is the excess, (rate − control) / (1 − control), with a "
    "95% interval unless the config sets another. Guessing is what somebody achieves who knows the release but not the person."
)
DESCRIPTIONS = {
    singling_out.NAME: "Singling out: a predicate that exactly one published record meets is met by exactly one person.",
    linkability.NAME: "Linkability: two sets of columns of a person have the same nearest published record.",
    inference.NAME: "Attribute inference: the nearest published record has the person's secret.",
}
TITLES = {
    singling_out.NAME: "Singling out",
    linkability.NAME: "Linkability",
    inference.NAME: "Attribute inference",
}
NO_LIMIT = "this measure has no limit of its own: set a gate such as '{name}.risk <= 0.05'"


@dataclass(frozen=True)
class AttackMeasure:
    """One attack on every training record and every control record."""

    name: str
    roles: Roles
    attack: Attack

    def find(self, inputs: MeasureInput) -> MeasureResult:
        """Attack all records."""
        compared = prepare_tables(InputKey(inputs), self.roles)
        if compared is None or compared.holdout is None:
            return MeasureResult(None, [], 0, {"passed": None, "reason": NO_RECORDS})
        frames = {"training": compared.original, "synthetic": compared.synthetic, "holdout": compared.holdout}
        try:
            found = self.attack(AttackTables.of(frames, kinds=compared.kinds, seed=inputs.seed))
        except InputError as error:
            raise InputError(f"{inputs.measure}: {error}") from error
        found = found.with_doubt("" if self.roles.fraction is None else SPLIT_HERE)
        columns = {
            f"success.{name}": _spread(values, compared.positions, inputs.rows.used) for name, values in found.successes.items()
        }
        sizes = {"rows": [len(frame) for frame in frames.values()], "dropped": compared.dropped}
        by_value = [describe_result(result) for result in found.results]
        return MeasureResult(found.risk, by_value, len(compared.original), describe_risk(found) | sizes, columns)


def _spread(values: Floats, positions: Any, used: int) -> Floats:
    spread = np.full(used, np.nan)
    spread[np.asarray(positions)] = values
    return spread


def describe_result(result: AttackResult) -> dict[str, Any]:
    """Return one object of `by_value`."""
    return {
        "name": result.name,
        "attacks": result.attacks,
        "rate": result.rate,
        "control_attacks": result.control_attacks,
        "control_rate": result.control_rate,
        "naive_rate": result.baseline_rate,
        "risk": result.risk,
        "interval": list(result.interval()),
    }


def describe_risk(found: AttackRisk) -> dict[str, Any]:
    """Return what joins the object in measures.json."""
    more: dict[str, Any] = {
        "risk": found.risk,
        "passed": None,
        "reason": NO_LIMIT.format(name=found.name),
        "doubts": list(found.doubts),
        "intervals": {figure: list(found.interval) for figure in ("risk", "value")},
        "attainable": dict.fromkeys(("risk", "value"), found.attainable),
    }
    if found.results:
        worst = describe_result(found.worst)
        more |= {"risk_of": worst["name"], **{name: worst[name] for name in ("rate", "control_rate", "naive_rate")}}
    return more


def _present(entries: Entries) -> list[Section]:
    name = entries[0].measure
    header = (name, "what", "risk", "interval", "rate", "control", "guessing", "attacks", "doubts")
    rows: list[list[Any]] = []
    for entry in entries:
        if entry.value is None:
            rows.append([entry.id, "; ".join(entry.more.get("doubts", ())) or entry.more.get("reason", ""), *[None] * 7])
            continue
        doubts = "; ".join(entry.more["doubts"]) or None
        for one in entry.by_value or [
            {**entry.more, "name": entry.more["risk_of"], "interval": entry.more["intervals"]["risk"]}
        ]:
            low, high = one["interval"]
            figures = [one["risk"], f"{low:.3g} to {high:.3g}", one["rate"], one["control_rate"], one["naive_rate"]]
            rows.append([entry.id, one["name"], *figures, one.get("attacks"), doubts])
    return [Section(TITLES[name], DESCRIPTIONS[name] + ABOUT, header, rows)]


def _build_singling_out(parameters: Mapping[str, Any], context: Context) -> AttackMeasure:
    width, columns = parameters["columns_of_predicate"], len(_list_compared(parameters, context))
    if width is not None and width > columns:
        raise InputError(
            f"{context.where}.columns_of_predicate must be an integer from 1 to the {columns} columns; got {width}"
        )
    attack = partial(
        singling_out.attack_singling_out,
        columns_of_predicate=parameters["columns_of_predicate"],
        sets=parameters["sets"],
        **_common(parameters, context),
    )
    return AttackMeasure(singling_out.NAME, parse_roles(parameters, context.where), attack)


def _build_linkability(parameters: Mapping[str, Any], context: Context) -> AttackMeasure:
    sides = tuple(tuple(side) for side in parameters["sides"])
    names = [name for side in sides for name in side]
    if len(sides) != 2 or len(set(names)) < len(names):
        raise InputError(
            f"{context.where}.sides must be two lists of columns that have none in common; got {parameters['sides']!r}"
        )
    _check_known(names, parameters, context, "sides")
    attack = partial(linkability.attack_links, sides=sides, neighbours=parameters["neighbours"], **_common(parameters, context))
    return AttackMeasure(linkability.NAME, parse_roles(parameters, context.where), attack)


def _build_inference(parameters: Mapping[str, Any], context: Context) -> AttackMeasure:
    secrets = parameters["secrets"] or list(_secrets(parameters, context))
    known = parameters["known"]
    _check_known(secrets, parameters, context, "secrets")
    _check_known(known or (), parameters, context, "known")
    if set(known or ()) & set(secrets):
        raise InputError(f"{context.where}.known must not contain a secret; got {sorted(set(known) & set(secrets))!r}")
    if not 0 <= parameters["tolerance"] < 1:
        raise InputError(f"{context.where}.tolerance must be a number from 0 to below 1; got {parameters['tolerance']:g}")
    attack = partial(
        inference.attack_secrets,
        secrets=secrets,
        known=known,
        tolerance=parameters["tolerance"],
        **_common(parameters, context),
    )
    return AttackMeasure(inference.NAME, parse_roles(parameters, context.where), attack)


def _common(parameters: Mapping[str, Any], context: Context) -> dict[str, Any]:
    if not 0 < parameters["confidence"] < 1:
        raise InputError(f"{context.where}.confidence must be a number between 0 and 1; got {parameters['confidence']:g}")
    return {"sample": parameters["sample"], "confidence": parameters["confidence"]}


def _secrets(parameters: Mapping[str, Any], context: Context) -> Sequence[str]:
    """The sensitive columns that the tables have; a release has those of one attribute."""
    return context.schema.sensitive.columns if parameters["synthetic"] is None else context.secrets


def _list_compared(parameters: Mapping[str, Any], context: Context) -> list[str]:
    seen = [*(one.name for one in context.schema.quasi_identifiers), *_secrets(parameters, context)]
    return list(parameters["columns"] or seen)


def _check_known(names: Sequence[str], parameters: Mapping[str, Any], context: Context, key: str) -> None:
    """Refuse columns that the attack does not see."""
    compared = _list_compared(parameters, context)
    for name in names:
        if name not in compared:
            raise unknown(f"{context.where}.{key}", name, compared)


NAMES = ListOf(Text(), 1)
SHARED = {
    "synthetic": SYNTHETIC,
    "holdout": HOLDOUT,
    "columns": COLUMNS,
    "sample": Field(
        Integer(2), None, description="attack so many records of each table, or try so many predicates, instead of all"
    ),
    "confidence": Field(Number(0), CONFIDENCE, description="confidence of the intervals"),
}


def _kind(own: Mapping[str, Field], build: Callable[[Mapping[str, Any], Context], AttackMeasure]) -> MeasureKind:
    return MeasureKind(
        Record({**SHARED, **own}),
        build,
        columns=list_columns,
        tables=list_tables,
        of_releases=lambda parameters: parameters["synthetic"] is None,
        present=_present,
    )


SINGLING_OUT = _kind(
    {
        "columns_of_predicate": Field(
            Integer(1), None, description="columns of a predicate of several columns; by default 3, or all if there are fewer"
        ),
        "sets": Field(Integer(1), singling_out.SETS, description="column sets that are drawn for every published record"),
    },
    _build_singling_out,
)
LINKABILITY = _kind(
    {
        "sides": Field(ListOf(NAMES, 2), description="two lists of columns: what is known from one source and from another"),
        "neighbours": Field(Integer(1), 1, description="nearest published records that are considered"),
    },
    _build_linkability,
)
INFERENCE = _kind(
    {
        "secrets": Field(NAMES, None, description="columns to guess; the sensitive ones by default"),
        "known": Field(NAMES, None, description="columns that are known of a person; all others by default"),
        "tolerance": Field(
            Number(-1), inference.TOLERANCE, description="how far a guessed number may be off, as a part of the guess"
        ),
    },
    _build_inference,
)
