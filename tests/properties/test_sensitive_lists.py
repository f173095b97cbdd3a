"""Several sensitive attributes in one run: each gives what it gives alone, and a joint one what a pasted column gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import dit_dask as dit
from tests.audits import checked, loaded, points

QUASI_IDENTIFIERS = {"age": {"kind": "numeric"}, "town": {"kind": "categorical"}}
TESTS = [
    {"sanitizer": {"name": "mondrian", "k": 2}},
    {"sanitizer": {"name": "mondrian", "l": 2}},
    {"sanitizer": {"name": "mondrian", "k": 3}, "adversary": "sklearn.tree.DecisionTreeClassifier", "records": [0, 1]},
    {"sanitizer": {"name": "laplace", "epsilon": 1}},
]
FIGURES = ("delta", "mean", "distinct", "records", "classes", "smallest_class", "claim_holds", "attainable", "argmax_changed")


@st.composite
def tables(draw: st.DrawFn) -> pd.DataFrame:
    """People with two sensitive attributes, one of them sometimes missing."""
    rows = draw(
        st.lists(
            st.tuples(st.integers(20, 24), st.sampled_from("xyz"), st.sampled_from("abc"), st.sampled_from(["u", "v", ""])),
            min_size=12,
            max_size=30,
        )
    )
    frame = pd.DataFrame(rows, columns=["age", "town", "illness", "job"])
    complete = frame[frame["job"] != ""]
    assume(len(complete) >= 8 and complete["illness"].nunique() > 1 and complete["job"].nunique() > 1)
    return frame


def audit(frame: pd.DataFrame, sensitive: Any) -> dit.Result:
    return dit.audit(frame, schema={"quasi_identifiers": QUASI_IDENTIFIERS, "sensitive": sensitive}, tests=TESTS)


def figures(summary: Mapping[str, Any]) -> dict[str, Any]:
    return {name: summary[name] for name in FIGURES}


@settings(max_examples=8)
@given(tables())
def test_a_list_gives_each_attribute_what_it_has_alone(frame: pd.DataFrame) -> None:
    complete = frame[frame["job"] != ""]  # a row that misses one of the attributes is dropped for all
    together = audit(frame, ["illness", "job", {"joint": ["illness", "job"]}])
    for sensitive in ("illness", "job", {"joint": ["illness", "job"]}):
        name = sensitive if isinstance(sensitive, str) else "illness-job"
        alone = audit(complete, sensitive)
        for test in alone.summary.index:
            pd.testing.assert_frame_equal(
                together.distances(f"{test}.{name}").drop(columns="row"),
                alone.distances(test).drop(columns="row"),
                check_exact=True,
            )
        chosen = [summary for summary in together.tests if summary["test"].endswith(f".{name}")]
        assert [figures(summary) for summary in chosen] == [figures(summary) for summary in alone.tests]
        controls = [control for control in together.verdict.controls if control.tests[0].endswith(f".{name}")]
        assert [control.statistics for control in controls] == [control.statistics for control in alone.verdict.controls]


@settings(max_examples=8)
@given(tables())
def test_a_joint_attribute_is_a_pasted_column(frame: pd.DataFrame) -> None:
    complete = frame[frame["job"] != ""].reset_index(drop=True)
    joint = audit(complete, {"joint": ["illness", "job"]})
    pasted = audit(complete.assign(both=complete["illness"] + " | " + complete["job"]), "both")
    assert joint.secrets == pasted.secrets
    for test in joint.summary.index:
        pd.testing.assert_frame_equal(joint.distances(test), pasted.distances(test), check_exact=True)
    assert [figures(summary) for summary in joint.tests] == [figures(summary) for summary in pasted.tests]


@given(
    st.lists(st.tuples(*(st.integers(0, size) for size in (9, 2, 3))), min_size=8, max_size=40),
    st.permutations(["pay", "illness", "job"]),
)
def test_joint_codes_are_those_of_the_members(rows: list[tuple[int, ...]], names: list[str]) -> None:
    frame = pd.DataFrame(rows, columns=["pay", "illness", "job"]).assign(age=range(len(rows)))
    assume(all(frame[name].nunique() > 1 for name in names) and (frame["pay"] > 4).nunique() > 1)
    described = [{"name": "pay", "bins": [0, 4, 9]} if name == "pay" else name for name in names]
    loaded_rows = loaded(
        frame, {"quasi_identifiers": {"age": {"kind": "numeric"}}, "sensitive": [*described, {"joint": names}]}
    )
    labels = {}
    for name, each in loaded_rows.by_secret.items():
        labels[name] = np.array(each.table.schema.sensitive.levels, object)[each.table.secret[each.index]]
    expected = [" | ".join(cells) for cells in zip(*(labels[name] for name in names), strict=True)]
    assert labels["+".join(names)].tolist() == expected
    shown = ["[0, 4]" if pay <= 4 else "(4, 9]" for pay in frame["pay"]]
    assert labels["pay"].tolist() == shown


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=60)


@given(st.lists(NAMES, min_size=2, max_size=4, unique=True).filter(lambda names: "q" not in names), st.integers(2, 9))
def test_ids_of_tests_are_unique_names_of_folders_that_end_with_the_attribute(names: list[str], k: int) -> None:
    rows = 12
    frame = pd.DataFrame({name: ["a", "b"] * (rows // 2) for name in names}).assign(q=range(rows))
    schema = {"quasi_identifiers": {"q": {"kind": "numeric"}}, "sensitive": list(names)}
    tests = [
        {"sanitizer": {"name": "mondrian", "k": k}},
        {"sanitizer": {"name": "mondrian", "k": k}, "label": "a" * 40},
        {"sanitizer": {"name": "mondrian", "k": k}, "records": {"sample": 3, "seed": 10**15}, "distance": "hellinger"},
    ]
    config = checked(schema, tests)
    built = points(loaded(frame, schema), schema, tests)
    ids = [test.id for test in built]
    assert len(set(ids)) == len(ids) == 3 * len(names)
    assert all(0 < len(one) <= 80 and not set(one) - set("abcdefghijklmnopqrstuvwxyz0123456789._-") for one in ids)
    assert [test.parameters["sensitive"] for test in built] == [point.sensitive for point in config.points] == 3 * names
