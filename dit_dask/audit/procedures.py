"""The kinds of procedures that a test may run: which keys such a test has, and how it is built from them."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from dit_dask.adversaries import ADVERSARIES, IMPORT_PATH, TABLE_READER, Adversary, default_panel
from dit_dask.adversaries.prior import read_prior
from dit_dask.audit.identity import short_hash
from dit_dask.config.components import Component, ComponentConfig, Components
from dit_dask.config.constraints import Choice, Field, Integer, ListOf, OneOf, Record, Refused, Text
from dit_dask.config.document import RecordSample, TestConfig
from dit_dask.config.registry import Context, Kind
from dit_dask.distances import DISTANCES
from dit_dask.encoders import ENCODERS
from dit_dask.encoders.names import EncoderComponent
from dit_dask.engines import SELECTABLE, NoisyCounts, Procedure, ReleaseProcedure, repeated
from dit_dask.engines.noisy_counts import COUPLINGS, SCALES, Sampling, check_samples
from dit_dask.errors import InputError
from dit_dask.sanitizers import SANITIZERS, is_randomised, noise, tables

DEFAULT = "release"
MOST_REPEATS = 100_000
RECORDS = Field(
    OneOf(
        [
            (str, Choice(("all",))),
            (dict, Record({"sample": Field(Integer(1)), "seed": Field(Integer(0), 0)}, RecordSample)),
            (list, ListOf(Integer(0), 1)),
        ],
        "all, a mapping of sample and seed, or a list of row positions",
    ),
    "all",
    description="which rows to test",
)


LABEL = Field(
    Text(r"[a-z0-9][a-z0-9._-]{0,39}", "1 to 40 lower-case letters, digits, dots, dashes or underscores"),
    None,
    description="the id of the test, instead of one made from its parameters",
)
SENSITIVE = Field(
    Text(),
    None,
    sweep=True,
    description="which attribute of the list schema.sensitive the test is about; without it one test for each",
)
GATES = Field(ListOf(Text()), [], description="gates for this test only", affects_result=False)


def records_of(procedure: str) -> dict[str, Record]:
    """The parameters of all sanitizers that are audited by this procedure."""
    return {name: SANITIZERS[name].parameters for name in SANITIZERS if SANITIZERS[name].procedure == procedure}


def _test_record(fields: Mapping[str, Field]) -> Record:
    named = {**fields, "sensitive": SENSITIVE, "label": LABEL, "gates": GATES}
    return Record(named, partial(TestConfig, keys=tuple(named)))


def release_record(disjoint: bool) -> Record:
    """The keys of a test that sanitises and trains; registries are read here, so that installed third parties count."""
    panel = tuple(ComponentConfig(name) for name in default_panel(disjoint=disjoint))
    return _test_record(
        {
            "sanitizer": Field(Component(SANITIZERS.records())),
            "encoder": Field(EncoderComponent(ENCODERS.records()), ComponentConfig("tf"), sweep=True),
            "adversary": Field(
                _adversaries(panel), panel, description="panel, one adversary, or a list: the largest distance counts"
            ),
            "prior": Field(
                Text(),
                None,
                sweep=True,
                file=True,
                description="file of lines value;probability: what adversaries know of the sensitive value before",
            ),
            "distance": Field(Component(DISTANCES.records()), ComponentConfig("emd"), sweep=True),
            "engine": Field(Choice(("auto", *SELECTABLE)), "auto", sweep=True),
            "repeats": Field(
                Integer(2, MOST_REPEATS),
                None,
                description="releases and trainings a side, for a sanitizer or an adversary that draws at random",
            ),
            "records": RECORDS,
        }
    )


def _adversaries(panel: tuple[ComponentConfig, ...]) -> Components:
    hint = "; the import path of a scikit-learn classifier such as sklearn.tree.DecisionTreeClassifier is allowed, too"
    names = ChainMap({"panel": Record()}, cast("dict[str, Record]", ADVERSARIES.records()))
    return Components(Component(names, IMPORT_PATH.parameters, hint), {"panel": panel})


def build_release(point: TestConfig, context: Context, sanitizer: Any) -> ReleaseProcedure:
    """Build the procedure of a sanitizer that publishes a table."""
    if point.encoder is None or point.adversary is None:
        raise TypeError("a test of this kind has an encoder and an adversary")
    repeats = point.repeats or 1
    if repeats > 1:
        if not getattr(sanitizer, "is_callable", True):
            raise InputError(f"{context.where}.repeats: releases that are there already cannot be drawn again")
        repeated.check_distance(point.distance.name, context.where)
    elif is_randomised(sanitizer):
        raise InputError(f"{context.where}.repeats is missing: {point.sanitizer.name} draws at random, so say how often")
    return ReleaseProcedure(
        sanitizer,
        ENCODERS[point.encoder.name].build(point.encoder.keys, context),
        _build_adversaries(point.adversary, context),
        DISTANCES[point.distance.name].build(point.distance.keys, context),
        context.seed,
        short_hash(point.sanitizer.identity()),
        repeats,
        by_person=context.persons < context.rows,
        prior=None if point.prior is None else read_prior(point.prior, context),
    )


def _build_adversaries(components: Sequence[ComponentConfig], context: Context) -> dict[str, Adversary]:
    """Build each adversary under its own name: that of the class for an import path, with a digest where two would be alike."""
    built: dict[str, Adversary] = {}
    for component in components:
        name = component.name if component.name in ADVERSARIES else component.name.rpartition(".")[2]
        is_taken = any(name == other.name.rpartition(".")[2] for other in components if other is not component)
        kind: Kind[Any] = ADVERSARIES.get(component.name, IMPORT_PATH)
        built[f"{name}-{short_hash(component.identity())}" if is_taken else name] = kind.build(component.keys, context)
    return built


def tables_record(_disjoint: bool) -> Record:
    """The keys of a test on published tables, which are read by one adversary."""
    fields = dict(release_record(disjoint=True).fields)
    kept = ("prior", "distance", "repeats", "records")
    return _test_record(
        {
            "sanitizer": Field(Component(records_of(tables.PROCEDURE))),
            **{key: fields[key] for key in kept},
            "engine": Field(Choice(("auto",)), "auto", description="tables are counted again for every person"),
        }
    )


def build_tables(point: TestConfig, context: Context, sanitizer: Any) -> ReleaseProcedure:
    """Build the procedure of published tables: their reader is the adversary."""
    if context.persons < context.rows:
        raise InputError(
            f"{context.where}.sanitizer: tables count rows, one of each person; schema.subject says that some have several"
        )
    reader = (ComponentConfig(TABLE_READER),)
    return build_release(replace(point, encoder=ComponentConfig("tf"), adversary=reader), context, sanitizer)


def noisy_record(_disjoint: bool) -> Record:
    """The keys of a test on noisy counts, which are their own sanitizer and adversary."""
    method = Field(Choice(("exact", "simulate")), None, sweep=True, description="exact is for laplace, and its default")
    coupling = Field(Choice(COUPLINGS), "independent", sweep=True, description="common: the same noise on both sides")
    return _test_record(
        {
            "sanitizer": Field(Component(records_of(noise.PROCEDURE))),
            "distance": Field(Component(dict.fromkeys(SCALES, Record())), ComponentConfig("emd"), sweep=True),
            "method": method,
            "samples": Field(Integer(2), 25_000, sweep=True, description="a side, where simulated"),
            "coupling": coupling,
            "prior": Field(Refused("noisy counts are the belief itself, so a test of them takes no prior"), None),
            "engine": Field(Choice(("auto",)), "auto", description="follows from the method"),
            "records": RECORDS,
        }
    )


def build_noisy(point: TestConfig, context: Context, protection: noise.Protection) -> NoisyCounts:
    """Build the procedure of counts with noise."""
    if point.samples is None or point.coupling is None:
        raise TypeError("a test of this kind has samples and a coupling")
    if context.persons < context.rows:
        raise InputError(
            f"{context.where}.sanitizer: the noise of {point.sanitizer.name} is for one row a person; schema.subject says that "
            "some have several"
        )
    has_value = protection.mechanism.has_closed_form
    method = point.method or ("exact" if has_value else "simulate")
    if method == "exact" and not has_value:
        raise InputError(f"{context.where}.method: only laplace has an exact value; {point.sanitizer.name} takes simulate")
    if method == "simulate":
        check_samples(point.samples, len(context.schema.sensitive.levels), context.where)
    sampling = Sampling(protection.mechanism, context.seed, point.samples, point.coupling)
    return NoisyCounts(protection, method, sampling, SCALES[point.distance.name])


@dataclass(frozen=True)
class ProcedureKind:
    """The keys of a test, which depend on whether the sanitizer's classes are disjoint, and how its procedure is built."""

    record: Callable[[bool], Record]
    build: Callable[[TestConfig, Context, Any], Procedure]


PROCEDURES = {
    DEFAULT: ProcedureKind(release_record, build_release),
    noise.PROCEDURE: ProcedureKind(noisy_record, build_noisy),
    tables.PROCEDURE: ProcedureKind(tables_record, build_tables),
}
