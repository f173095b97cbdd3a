"""What fields declare, and what is made of it: redaction, digests, files and secrets of a whole config."""

from __future__ import annotations

import json
from importlib import metadata

import pytest

from dit_dask.audit.grammar import check_config, config_record, named_files, redact, redact_test, secret_values
from dit_dask.config import registry
from dit_dask.config.components import Component
from dit_dask.config.constraints import Field, Integer, ListOf, MapOf, Record, Text, declared, result_document

SCHEMA = {"quasi_identifiers": {"x": {"kind": "numeric"}}, "sensitive": "s"}
INNER = Record({"path": Field(Text(), None, file=True), "options": Field(MapOf(Text()), {}, secret=True, affects_result=False)})
OUTER = Record(
    {
        "thing": Field(Component({"a": INNER}), sweep=True),
        "many": Field(ListOf(INNER), []),
        "k": Field(Integer(1), 1, sweep=True),
    }
)
DOCUMENT = {
    "thing": [{"name": "a", "path": "x.csv", "options": {"key": "S1"}}, {"name": "a", "path": "y.csv"}],
    "many": [{"options": {"key": "S2"}}, {"path": "z.csv"}],
    "k": [1, 2],
    "unknown": {"path": "not declared"},
}

CONFIG = {
    "version": 1,
    "data": {"source": "https://user:pw@host/a.csv", "storage_options": {"key": "SECRET0"}},
    "schema": {
        "quasi_identifiers": {"town": {"kind": "categorical", "hierarchy": "town.csv"}},
        "sensitive": {"name": "illness", "hierarchy": "illness.csv"},
    },
    "tests": [
        {"sanitizer": {"name": "mondrian", "k": [2, 5]}, "distance": {"name": "wasserstein", "ground": ["hierarchy", "m.csv"]}},
        {
            "sanitizer": {
                "name": "python",
                "target": "m:f",
                "mapping": "mapping.csv",
                "params": {"env": {"A": "SECRET1"}, "k": 5},
            }
        },
        {"sanitizer": {"name": "command", "argv": ["a", "{input}", "{output}"], "env": {"TOKEN": "SECRET2"}}},
        {"sanitizer": {"name": "precomputed", "full": "f", "without": "w", "storage_options": {"list": ["SECRET3"]}}},
        {"sanitizer": "raw"},
    ],
    "measures": [
        {"name": "discrimination", "attack": "semantic", "semantic": {"hierarchy": "groups.csv", "level": 1}},
        {"name": "accuracy", "synthetic": {"source": "s.csv", "storage_options": {"key": "SECRET4"}}},
    ],
    "output": {"url": "s3://out", "storage_options": {"secret": "SECRET5", "by_reference": "${NAME}"}},
}


def test_fields_are_found_in_sweeps_lists_and_components() -> None:
    files = declared(OUTER, DOCUMENT, lambda field: field.file)
    assert files == [("thing[0].path", "x.csv"), ("thing[1].path", "y.csv"), ("many[1].path", "z.csv")]
    secrets = declared(OUTER, DOCUMENT, lambda field: field.secret)
    assert secrets == [("thing[0].options", {"key": "S1"}), ("many[0].options", {"key": "S2"})]


def test_a_result_document_lacks_only_what_cannot_change_a_result() -> None:
    assert result_document(OUTER, DOCUMENT) == {
        "thing": [{"name": "a", "path": "x.csv"}, {"name": "a", "path": "y.csv"}],
        "many": [{}, {"path": "z.csv"}],
        "k": [1, 2],
        "unknown": {"path": "not declared"},
    }


def test_every_file_of_a_config_is_named_and_no_name_is_taken_for_a_file() -> None:
    assert named_files(CONFIG) == [
        ("schema.quasi_identifiers.town.hierarchy", "town.csv"),
        ("schema.sensitive.hierarchy", "illness.csv"),
        ("tests[0].distance.ground", "m.csv"),
        ("tests[1].sanitizer.mapping", "mapping.csv"),
        ("measures[0].semantic.hierarchy", "groups.csv"),
    ]


def test_every_secret_of_a_config_is_found_and_masked() -> None:
    assert [where for where, _ in secret_values(CONFIG)] == [
        "data.storage_options",
        "tests[1].sanitizer.params",
        "tests[2].sanitizer.argv",
        "tests[2].sanitizer.env",
        "tests[3].sanitizer.storage_options",
        "measures[1].synthetic.storage_options",
        "output.storage_options",
    ]
    shown = redact(config_record(), CONFIG)
    text = json.dumps(shown)
    assert not any(secret in text for secret in ("SECRET", "user", "pw@"))
    assert shown["output"]["storage_options"]["by_reference"] == "${NAME}"
    assert shown["tests"][1]["sanitizer"]["params"]["k"] == 5


def test_redaction_leaves_ordinary_parameters_alone() -> None:
    parameters = {"sanitizer": {"name": "mondrian", "k": 5}, "distance": {"name": "emd"}, "records": {"sample": 5, "seed": 1}}
    assert redact_test(parameters) == parameters


def test_no_secret_is_in_the_text_form_of_a_value_that_travels_to_workers() -> None:
    config = check_config(CONFIG | {"tests": CONFIG["tests"][2:4], "measures": CONFIG["measures"][1:]}, ".")
    assert not any(secret in repr([config, config.tests, config.measures]) for secret in ("SECRET", "pw@"))


def test_a_sweep_of_hundreds_of_points_reads_the_registries_once() -> None:
    calls: list[str] = []
    original = metadata.entry_points
    registry._entry_points.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metadata, "entry_points", lambda **given: calls.append(str(given)) or original(**given))
        tests = [{"sanitizer": {"name": "mondrian", "k": list(range(2, 302))}}]
        config = check_config({"version": 1, "data": {"source": "a.csv"}, "schema": SCHEMA, "tests": tests}, ".")
    assert len(config.tests) == 300
    assert len(calls) == len(set(calls)) <= 6
