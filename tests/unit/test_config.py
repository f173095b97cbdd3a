from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from dit_dask.audit.grammar import check_config, config_record, json_schema, read_config, redact
from dit_dask.config.constraints import Number
from dit_dask.errors import InputError
from tests.audits import checked
from tests.conftest import ROOT

SCHEMA = {"quasi_identifiers": {"x": {"kind": "numeric"}}, "sensitive": "s"}
CONFIGS = sorted((ROOT / "configs").glob("*.yaml"))


def document(**more: Any) -> dict[str, Any]:
    return {"version": 1, "data": {"source": "a.csv"}, "schema": SCHEMA, "tests": [{"sanitizer": "raw"}]} | more


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_shipped_config_is_valid_and_fits_the_published_schema(path: Path) -> None:
    read = read_config(str(path))
    assert read.tests or read.measures
    jsonschema.validate(yaml.safe_load(path.read_text("utf-8")), json_schema())


def test_there_are_configs_to_check() -> None:
    assert {path.stem for path in CONFIGS} >= {"quickstart", "adult-k", "adult-l", "internet-k", "s3-audit"}


def test_the_published_schema_is_up_to_date() -> None:
    published = json.loads((files("dit_dask") / "config.schema.json").read_text("utf-8"))
    assert published == json_schema(), "run tools/write_config_schema.py"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "version must be 1; got 2"),
        ({"version": True}, "version must be 1; got True"),
        ({"versions": 1}, "unknown 'versions'; did you mean 'version'?"),
        ({"data": {"source": "a.csv", "limits": 3}}, "data: key: unknown 'limits'; did you mean 'limit'?"),
        ({"data": {"source": "a.csv", "limit": 0}}, "data.limit must be an integer >= 1; got 0"),
        ({"data": {"source": "a.csv", "limit": "ten"}}, "data.limit must be an integer >= 1; got 'ten'"),
        ({"data": {"source": "a.csv", "limit": 3, "sample": {"rows": 3}}}, "limit and sample exclude each other"),
        ({"data": {}}, "data.source is missing"),
        ({"data": {"source": "s3://${BUCKET}/a.csv"}}, "is read only in storage_options"),
        ({"schema": {"quasi_identifiers": {}, "sensitive": "s"}}, "at least 1 name"),
        (
            {"schema": {"quasi_identifiers": {"x": {"kind": "text"}}, "sensitive": "s"}},
            "known: boolean, categorical, date, numeric, ordinal",
        ),
        (
            {"schema": {"quasi_identifiers": {"x": {"kind": "numeric", "hierarchy": "h"}}, "sensitive": "s"}},
            "takes no hierarchy",
        ),
        (
            {"schema": {"quasi_identifiers": {"s": {"kind": "numeric"}}, "sensitive": "s"}},
            "is also among the quasi_identifiers",
        ),
        ({"tests": {}}, "tests must be a list; got a mapping"),
        ({"cluster": {"kind": "cloud"}}, "cluster.kind: unknown 'cloud'"),
        ({"cluster": {"kind": "address"}}, "cluster.address goes with kind: address"),
        ({"name": "../x"}, "name must be 1 to 64 letters"),
        ({"seed": -1}, "seed must be an integer >= 0"),
        ({"gates": "delta < 1"}, "gates must be a list"),
    ],
)
def test_a_wrong_config_says_what_was_expected_and_where(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        check_config(document(**change), ".")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ({}, "tests[0].sanitizer is missing"),
        ({"sanitizer": {"k": 2}}, "tests[0].sanitizer.name is missing"),
        ({"sanitizer": "mondrain"}, "did you mean 'mondrian'?"),
        ({"sanitizer": {"name": "mondrian", "k": 1}}, "tests[0].sanitizer.k must be an integer >= 2; got 1"),
        ({"sanitizer": {"name": "mondrian", "k": 2.5}}, "tests[0].sanitizer.k must be an integer >= 2; got 2.5"),
        ({"sanitizer": {"name": "mondrian", "k": []}}, "got an empty list"),
        ({"sanitizer": {"name": "mondrian", "K": 2}}, "did you mean 'k'?"),
        ({"sanitizer": "raw", "distance": "emdd"}, "did you mean 'emd'?"),
        (
            {"sanitizer": "raw", "adversary": []},
            "adversary must be a name or a list of at least one; got an empty list",
        ),
        ({"sanitizer": "raw", "adversary": ["bernoulli-nb"] * 2}, "tests[0].adversary[1]: bernoulli-nb is listed twice"),
        ({"sanitizer": "raw", "adversary": ["panel"]}, "must be a single one; got a name that stands for several"),
        (
            {"sanitizer": "raw", "adversary": "bayes"},
            "known: bernoulli-nb, conditional-frequency, narrowest-class, panel, published-tables; the import path of a",
        ),
        ({"sanitizer": "raw", "engine": "magic"}, "tests[0].engine: unknown 'magic'"),
        ({"sanitizer": "raw", "records": "some"}, "tests[0].records: unknown 'some'"),
        ({"sanitizer": "raw", "records": [-1]}, "tests[0].records[0] must be an integer >= 0"),
        ({"sanitizer": "raw", "records": {"sample": 0}}, "tests[0].records.sample must be an integer >= 1"),
        ("raw", "tests[0] must be a mapping"),
    ],
)
def test_a_wrong_test_says_what_was_expected_and_where(test: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        checked(SCHEMA, [test])
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, "tests: at least one test or one measure is needed; got none"),
        ({"measures": [{"name": "discrimation"}]}, "did you mean 'discrimination'?"),
        ({"measures": [{"name": "discrimination", "target": "s", "keys": []}]}, "keys must be a list of at least 1"),
        ({"measures": [{"target": "s"}]}, "measures[0].name is missing"),
        (
            {"measures": [{"name": "discrimination", "target": "s", "keys": ["x"]}], "gates": ["delta < 1"]},
            "gates: delta and the like judge tests",
        ),
    ],
)
def test_a_wrong_measure_says_what_was_expected_and_where(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        check_config(document(tests=[]) | change, ".")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("version: 1\n  bad: [", "not valid YAML"),
        ("- a\n- b\n", "expected a mapping"),
        ("version: 1\nname: a\nname: b\n", "written twice"),
        ("a: !!python/object/apply:os.system [echo]\n", "not valid YAML"),
        ("", "expected a mapping"),
        (
            "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
            + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)),
            "more than 100,000 values",
        ),
        ("tests: &a [*a]\n", "more than 100,000 values"),
        ("\x00\x01\x02", "not valid YAML"),
    ],
)
def test_a_file_that_is_no_config_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "audit.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        read_config(str(path))
    assert "\n" not in str(caught.value)


def test_a_missing_config_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing.yaml: No such file"):
        read_config(str(tmp_path / "nothing.yaml"))


def test_overrides_set_keys_at_any_depth(config_file: Path) -> None:
    read = read_config(
        str(config_file), ["tests.0.sanitizer.k=7", "tests[1].distance=tv", "data.limit=20", "gates=['delta < 1']"]
    )
    assert read.tests[0].sanitizer.parameters["k"] == 7
    assert read.tests[-1].distance.name == "tv"
    assert read.data.limit == 20
    assert read.gates == ["delta < 1"]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("data.limit", "must be dotted.key=value"),
        ("tests.9.sanitizer=raw", "not a position in a list of 2"),
        ("seed.x=1", "is a single value"),
        ("data.limit=[", "not valid YAML"),
        ("data.limits=1", "did you mean 'limit'?"),
    ],
)
def test_a_wrong_override_is_explained(config_file: Path, override: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_config(str(config_file), [override])
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("value", "number"), [("inf", float("inf")), (".inf", float("inf")), ("1e-3", 0.001), (2, 2.0), (0.5, 0.5)]
)
def test_numbers_are_read_also_where_yaml_leaves_text(value: Any, number: float) -> None:
    assert Number(above=0).check(value, "epsilon") == number


@pytest.mark.parametrize("value", ["nan", float("nan"), 0, "-1", True, "one", None, [1]])
def test_what_is_no_positive_number_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="epsilon must be a number > 0"):
        Number(above=0).check(value, "epsilon")


def test_secrets_never_survive_redaction() -> None:
    shown = redact(
        config_record(),
        {
            "data": {
                "source": "https://user:pw@host/a.csv?sig=token",
                "storage_options": {"key": "K3Y", "client": {"p": "S3C"}},
            },
            "output": {"url": "s3://b", "storage_options": {"secret": "${NAME}", "list": ["x"]}},
        },
    )
    text = json.dumps(shown)
    assert not any(secret in text for secret in ("K3Y", "S3C", "pw@", "user", "token"))
    assert shown["output"]["storage_options"]["secret"] == "${NAME}"
    assert shown["data"]["source"] == "https://host/a.csv?***"


def test_anchors_and_plain_exponents_mean_what_they_say(tmp_path: Path) -> None:
    path = tmp_path / "audit.yaml"
    path.write_text(
        "version: 1\ndata: {source: a.csv}\n"
        "schema: {quasi_identifiers: {x: &n {kind: numeric}, y: *n}, sensitive: s}\n"
        "tests: [{sanitizer: raw, adversary: {name: a.B, params: {C: 1e-3}}}]\n"
    )
    read = read_config(str(path))
    assert read.checked_schema.quasi_identifiers["y"].kind == "numeric"
    assert read.tests[0].adversary[0].parameters["params"]["C"] == 0.001
