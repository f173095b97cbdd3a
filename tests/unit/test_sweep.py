from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from dit_dask.audit.identity import run_digest
from dit_dask.errors import InputError
from dit_dask.inputs import datasets
from tests.audits import checked, loaded, points

CENSUS = datasets.census(50)
SCHEMA = {
    "quasi_identifiers": {"age": {"kind": "numeric"}, "sex": {"kind": "categorical"}},
    "sensitive": {"name": "occupation", "order": sorted(CENSUS["occupation"].unique())},
}
ROWS = loaded(CENSUS, SCHEMA)


def ids(*tests: dict) -> list[str]:
    return [point.id for point in points(ROWS, SCHEMA, tests)]


def test_a_sweep_varies_the_last_written_key_fastest() -> None:
    test = {"distance": ["tv", "js"], "sanitizer": {"name": "mondrian", "variant": ["basic", "strict"], "k": [2, 3]}}
    found = [
        (p.parameters["distance"]["name"], p.parameters["sanitizer"]["variant"], p.parameters["sanitizer"]["k"])
        for p in points(ROWS, SCHEMA, [test])
    ]
    assert found == [(d, v, k) for d in ("tv", "js") for v in ("basic", "strict") for k in (2, 3)]


def test_ids_are_folder_names_that_tell_tests_apart() -> None:
    tests = [
        {"sanitizer": "raw"},
        {"sanitizer": {"name": "mondrian", "k": [2, 5]}},
        {"sanitizer": {"name": "mondrian", "k": 5, "variant": "basic"}, "distance": "tv"},
        {"sanitizer": "raw", "adversary": "conditional-frequency", "records": {"sample": 10, "seed": 4}},
        {"sanitizer": "raw", "records": [1, 2, 3]},
        {"sanitizer": "raw", "adversary": {"name": "sklearn.tree.DecisionTreeClassifier", "params": {"max_depth": 3}}},
        {"sanitizer": "raw", "adversary": {"name": "sklearn.tree.DecisionTreeClassifier", "params": {"max_depth": 4}}},
        {"sanitizer": "raw", "engine": "brute-force", "distance": {"name": "wasserstein", "ground": "ordered"}},
    ]
    found = ids(*tests)
    assert found[:5] == [
        "raw",
        "mondrian-k2",
        "mondrian-k5",
        "mondrian-k5-basic.tv",
        "raw.conditional-frequency.sample10-seed4",
    ]
    assert len(set(found)) == len(found)
    assert all(re.fullmatch(r"[a-z0-9._-]{1,80}", one) for one in found)
    assert found == ids(*tests)


def test_the_same_test_twice_is_an_error() -> None:
    with pytest.raises(InputError, match=r"tests\[1\] repeats another test: mondrian-k2"):
        ids({"sanitizer": {"name": "mondrian", "k": 2}}, {"sanitizer": {"name": "mondrian", "k": [3, 2]}, "encoder": "tf"})


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ({"sanitizer": {"name": "mondrian"}}, "needs at least one of k, l, entropy_l, recursive_cl, t"),
        ({"sanitizer": {"name": "mondrian", "k": 2, "tighten": False}}, "tighten: false is for l"),
        ({"sanitizer": {"name": "mondrian", "k": 51}}, "tests[0].sanitizer.k must be at most the table's 50 rows; got 51"),
        ({"sanitizer": "raw", "records": [3, 3]}, "names a row twice"),
        ({"sanitizer": "raw", "records": [50]}, "positions below the 50 used rows; got 50"),
        ({"sanitizer": "raw", "records": {"sample": 51}}, "at most the 50 used rows; got 51"),
    ],
)
def test_a_test_that_does_not_fit_the_table_is_refused(test: dict, message: str) -> None:
    with pytest.raises(InputError) as caught:
        ids(test)
    assert message in str(caught.value)


def test_a_sample_of_records_is_seeded_and_ascending() -> None:
    one, same, other = (
        points(ROWS, SCHEMA, [{"sanitizer": "raw", "records": {"sample": 20, "seed": s}}])[0].audited for s in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)
    assert (np.diff(one) > 0).all()


def test_the_digest_of_a_run_ignores_where_it_runs_and_covers_what_it_computes() -> None:
    def digest(**more: object) -> str:
        config = checked(SCHEMA, **({"tests": [{"sanitizer": "raw"}]} | more))
        return run_digest(config, ROWS, [test.identity() for test in config.tests], {})

    base = digest()
    assert base == digest(output="elsewhere/", cluster={"workers": 3}, gates=["delta < 1"])
    assert base == digest(tests=[{"sanitizer": {"name": "raw"}, "distance": "emd"}])
    assert base != digest(seed=1)
    assert base != digest(tests=[{"sanitizer": "raw", "distance": "tv"}])
    assert base == digest(data={"source": "frame", "storage_options": {"key": "rotated"}})


def test_a_third_party_sanitizer_is_found_by_its_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shout.py").write_text("from dit_dask.sanitizers.raw import KIND\n")
    info = tmp_path / "shout-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shout\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[dit_dask.sanitizers]\nshout = shout:KIND\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert ids({"sanitizer": "shout"}) == ["shout"]
    sys.modules.pop("shout")


def test_a_label_that_a_sweep_shares_begins_every_id_and_alone_is_the_id() -> None:
    sanitizer = {"name": "mondrian", "k": [2, 5]}
    assert ids({"label": "ours", "sanitizer": sanitizer}) == ["ours.mondrian-k2", "ours.mondrian-k5"]
    assert ids({"label": "ours", "sanitizer": {"name": "mondrian", "k": 2}}) == ["ours"]
