"""The worked examples of v1, appendix A.1, sets that external sanitizers publish, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.naive_bayes import GaussianNB

from dit_dask.adversaries import beliefs_about
from dit_dask.adversaries.classifier import Classifier
from dit_dask.encoders import Encoder, is_relative
from dit_dask.encoders.by_kind import to_bits
from dit_dask.encoders.names import CATEGORICAL, CONTINUOUS, NAMES
from dit_dask.encoders.tf import TF
from dit_dask.engines import ENGINES
from dit_dask.engines.brute_force import influence
from dit_dask.engines.controls import attainable_by
from dit_dask.errors import InputError
from dit_dask.sanitizers.raw import Raw
from dit_dask.values.release import Ranges, Release, Sets
from dit_dask.values.schema import Schema
from tests.audits import WORKED, WORKED_SCHEMA, checked, loaded, points
from tests.properties.test_power import candidates, planted

# flat hierarchies are in the order of labels; that of the appendix is Male, Female
AGES = list(range(15, 91))
SCHEMA = {
    "quasi_identifiers": {
        "age": {"kind": "numeric"},
        "gender": {"kind": "categorical"},
    },
    "sensitive": "disease",
}
FRAME = pd.DataFrame({"age": AGES, "gender": ["Male", "Woman"] * 38, "disease": ["Flu", "Cough"] * 38})


def built(encoder: Any, frame: pd.DataFrame = FRAME, **schema: Any) -> Any:
    described = SCHEMA | schema
    return points(loaded(frame, described), described, [{"sanitizer": "raw", "encoder": encoder}])[0]


def release_of(schema: Schema, ages: list[tuple[int, int]], genders: list[tuple[int, int]]) -> Release:
    """Classes that publish intervals of ages, and ranges of genders by their codes."""
    low = [[AGES.index(age[0]), gender[0]] for age, gender in zip(ages, genders, strict=True)]
    high = [[AGES.index(age[1]), gender[1]] for age, gender in zip(ages, genders, strict=True)]
    return Release(schema, Ranges(np.array(low, np.int32), np.array(high, np.int32)), np.ones((len(ages), 2), np.int64))


def encoded(encoder: Any, ages: list[tuple[int, int]]) -> list[list[float]]:
    """The features of ages alone: gender is TF, the last feature."""
    test = built(encoder)
    release = release_of(test.rows.table.schema, ages, [(0, 0)] * len(ages))
    return test.procedure.encoder.classes(release, np.zeros(2, np.int32))[:, :-1].tolist()


def test_scaling_of_the_appendix() -> None:
    assert encoded("scaling-tf", [(30, 30), (35, 55), (15, 15), (90, 90)]) == [[0.2], [0.4], [0.0], [1.0]]


def test_bounds_of_the_appendix() -> None:
    assert encoded("bounds-tf", [(30, 30), (35, 55)]) == [[0.2, 0.2], [20 / 75, 40 / 75]]  # printed as 0.267 and 0.534


def test_binary_of_the_appendix_without_its_misprints() -> None:
    """The appendix prints 0001101 for 15, which is 13, and shifts 45 to 28 instead of 30."""
    assert encoded("binary-tf", [(30, 30), (35, 55)]) == [[0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1, 0]]


@pytest.mark.parametrize("cut", ["width", "frequency"])
def test_quantiles_of_the_appendix(cut: str) -> None:
    encoder = {"continuous": "quantiles-after", "quantiles": 5, "cut": cut}
    assert encoded(encoder, [(35, 55), (15, 90)]) == [[0, 1, 1, 0, 0], [1, 1, 1, 1, 1]]


def test_the_quantiles_that_the_appendix_prints_are_equally_wide() -> None:
    ends = [(15, 29), (30, 44), (45, 59), (60, 74), (75, 90)]
    encoder = {"continuous": "quantiles-after", "cut": "width"}
    assert encoded(encoder, ends) == np.eye(5).tolist()
    assert encoded({"continuous": "quantiles-after"}, ends) != np.eye(5).tolist()  # 76 ages: the first has 16 of them


def test_quantiles_of_equal_frequency_follow_the_rows() -> None:
    frame = pd.DataFrame({"age": [15] * 50 + [16] * 26 + [17, 90] * 12, "gender": "Male", "disease": ["Flu", "Cough"] * 50})
    encoder = built({"continuous": "quantiles-after", "quantiles": 4}, frame).procedure.encoder
    raw = Release(
        built("tf", frame).rows.table.schema,
        Ranges(*[np.array([[0, 0], [1, 0], [2, 0], [3, 0]], np.int32)] * 2),
        np.ones((4, 2), np.int64),
    )
    assert encoder.classes(raw, np.zeros(2, np.int32))[:, :-1].tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]]


@pytest.mark.parametrize(
    ("categorical", "male", "female", "both"),
    [
        ("hot", [1, 0], [0, 1], [1, 1]),
        ("binary", [0, 1], [1, 0], [1, 1]),
        ("hot-after", [1, 0, 0], [0, 1, 0], [0, 0, 1]),
    ],
)
def test_the_genders_of_the_appendix(categorical: str, male: list[int], female: list[int], both: list[int]) -> None:
    test = built({"categorical": categorical})
    release = release_of(test.rows.table.schema, [(15, 90)] * 4, [(0, 1), (0, 0), (1, 1), (0, 1)])
    encoder = test.procedure.encoder
    assert encoder.classes(release, np.zeros(2, np.int32))[:, 1:].tolist() == [both, male, female, both]
    assert [encoder.target(release, np.array([0, code], np.int32)).tolist()[1:] for code in (0, 1)] == [male, female]


@pytest.mark.parametrize(("categorical", "other"), [("binary", [0, 1]), ("hot-after", [1, 0])])
def test_a_value_that_is_not_published_takes_the_narrowest_that_covers_it(categorical: str, other: list[int]) -> None:
    test = built({"categorical": categorical})
    encoder, schema = test.procedure.encoder, test.rows.table.schema
    release = release_of(schema, [(15, 90)] * 2, [(0, 0), (0, 1)])
    both = encoder.classes(release, np.zeros(2, np.int32))[1, 1:]
    assert encoder.target(release, np.array([0, 1], np.int32))[1:].tolist() == both.tolist()
    assert encoder.target(release, np.array([0, 0], np.int32))[1:].tolist() == other
    only_male = release_of(schema, [(15, 90)], [(0, 0)])
    assert not encoder.target(only_male, np.array([0, 1], np.int32))[1:].any()  # nothing covers it


@given(st.lists(st.floats(0, 1e300), min_size=1, max_size=5))
def test_bits_are_those_of_the_whole_part(numbers: list[float]) -> None:
    length = int(max(numbers)).bit_length() + 1
    expected = [[float(digit) for digit in format(int(number), "b").zfill(length)] for number in numbers]
    assert to_bits(np.array(numbers), length).tolist() == expected


def test_dates_are_counted_in_days() -> None:
    frame = FRAME.assign(age=pd.date_range("2020-01-01", periods=76).astype(str))
    schema = SCHEMA["quasi_identifiers"] | {"age": {"kind": "date"}}
    assert built("binary-tf", frame, quasi_identifiers=schema).procedure.encoder.target(
        release_of(built("tf").rows.table.schema, [(15, 15)], [(0, 0)]), np.array([9, 0], np.int32)
    ).tolist() == [0, 0, 0, 1, 0, 0, 1, 1]


def sets_of(schema: Schema, ages: list[list[int]]) -> Release:
    """Classes that publish sets of ages."""
    sets = np.zeros((len(ages), len(AGES)), bool)
    for row, covered in zip(sets, ages, strict=True):
        row[[AGES.index(age) for age in covered]] = True
    value = np.column_stack([np.arange(len(ages)), np.zeros(len(ages))]).astype(np.int32)
    return Release(schema, Sets(value, (sets, np.ones((1, 2), bool))), np.ones((len(ages), 2), np.int64))


@pytest.mark.parametrize("name", NAMES)
def test_sets_without_gaps_are_encoded_as_ranges(name: str) -> None:
    test = built(name if name == "tf" else {"continuous": NAMES[name][0], "categorical": NAMES[name][1]})
    encoder, schema, target = test.procedure.encoder, test.rows.table.schema, np.array([3, 1], np.int32)
    if name.startswith("quantiles-before"):
        return  # there are no ages any more
    ranges = release_of(schema, [(15, 20), (16, 16), (35, 55)], [(0, 1)] * 3)
    sets = sets_of(schema, [list(range(15, 21)), [16], list(range(35, 56))])
    np.testing.assert_array_equal(encoder.classes(sets, target), encoder.classes(ranges, target))
    np.testing.assert_array_equal(encoder.target(sets, target), encoder.target(ranges, target))


@pytest.mark.parametrize("continuous", ["scaling", "bounds", "binary"])
def test_a_set_with_gaps_has_no_interval(continuous: str) -> None:
    test = built({"continuous": continuous})
    release = sets_of(test.rows.table.schema, [[15, 90], [16]])
    with pytest.raises(InputError) as refusal:
        test.procedure.encoder.classes(release, np.zeros(2, np.int32))
    assert str(refusal.value) == (
        f"tests[0].encoder: {continuous} needs intervals; the sanitizer publishes sets of 'age' that leave out values between "
        "their ends, in 1 of 2 classes (quantiles-after and tf encode any set)"
    )


def test_a_set_with_gaps_meets_only_the_quantiles_of_its_values() -> None:
    test = built({"continuous": "quantiles-after"})
    release = sets_of(test.rows.table.schema, [[15, 90], [15, 16]])
    classes = test.procedure.encoder.classes(release, np.zeros(2, np.int32))
    assert classes[:, :-1].tolist() == [[1, 0, 0, 0, 1], [1, 0, 0, 0, 0]]


def test_quantiles_before_are_categories_that_the_sanitizer_sees() -> None:
    test = built({"continuous": "quantiles-before", "categorical": "hot", "quantiles": 4})
    age = test.rows.table.schema.quasi_identifiers[0]
    assert (age.kind, age.values, age.levels) == ("categorical", None, tuple(f"quantile {n} of 4" for n in (1, 2, 3, 4)))
    assert test.rows.table.codes[test.rows.index, 0].tolist() == sorted([0, 1, 2, 3] * 19)
    assert test.rows.multiplicity.tolist() == [sum(test.rows.index == record) for record in range(test.rows.table.distinct)]


def test_tests_with_the_same_quantiles_share_one_table() -> None:
    rows = loaded(FRAME, SCHEMA)
    tests = [{"sanitizer": {"name": "mondrian", "k": [2, 3]}, "encoder": ["quantiles-before-hot", "scaling-hot", "tf"]}]
    before, scaling, tf, again, *_ = points(rows, SCHEMA, tests)
    assert before.rows is again.rows
    assert scaling.rows is tf.rows is rows


@pytest.mark.parametrize("subject", [None, "who"])
@pytest.mark.parametrize("categorical", CATEGORICAL)
def test_quantiles_before_are_the_same_as_a_table_that_has_them(subject: str | None, categorical: str) -> None:
    rng = np.random.default_rng(8)
    frame = pd.DataFrame({"age": rng.integers(15, 90, 60), "town": rng.choice(list("abc"), 60)})
    frame = frame.assign(disease=rng.choice(["flu", "cough", "gout"], 60), who=rng.integers(0, 40, 60))
    cuts = sorted(frame["age"])[14:45:15]  # the 15th, 30th and 45th smallest age
    labels = [f"quantile {sum(age > cut for cut in cuts) + 1} of 4" for age in frame["age"]]
    found = []
    for table, kind, continuous in ((frame, "numeric", "quantiles-before"), (frame.assign(age=labels), "categorical", "tf")):
        schema = {"quasi_identifiers": {"age": {"kind": kind}, "town": {"kind": "categorical"}}, "sensitive": "disease"}
        schema |= {} if subject is None else {"subject": subject}
        more = {"quantiles": 4} if kind == "numeric" else {}
        encoder = {"continuous": continuous, "categorical": categorical, **more}
        (test,) = points(loaded(table, schema), schema, [{"sanitizer": {"name": "mondrian", "k": 2}, "encoder": encoder}])
        everyone = np.arange(test.rows.table.distinct)
        shifts = ENGINES[test.engine].influence(test.rows.table, everyone, test.procedure).shifts
        found.append([shifts[name].distance[test.rows.index] for name in ("bernoulli-nb", "conditional-frequency")])
        found[-1].append(test.rows.multiplicity[test.rows.index])
    np.testing.assert_array_equal(found[0], found[1])


def test_a_planted_person_is_encoded_like_the_others() -> None:
    rows = loaded(WORKED, WORKED_SCHEMA)
    (test,) = points(rows, WORKED_SCHEMA, [{"sanitizer": "raw", "encoder": "bounds-hot", "adversary": "bernoulli-nb"}])
    procedure, table = test.procedure, rows.table
    (adversary,) = procedure.adversaries.values()
    distances = []
    for q, secret in candidates(table):
        released = [Raw().release(one, np.random.default_rng(0)) for one in (planted(table, q, secret), table)]
        sides = [adversary.beliefs(release, procedure.encoder, np.array(q, np.int32)) for release in released]
        distances.append(np.abs(sides[0] - sides[1]).sum())
    found = attainable_by(procedure, table)
    assert found is not None
    assert found.distance == max(distances)


class Counting(GaussianNB):
    """Counts how often it is trained."""

    trained = 0

    def fit(self, *arguments: Any, **more: Any) -> Any:
        Counting.trained += 1
        return super().fit(*arguments, **more)


@pytest.mark.parametrize(
    ("encoder", "times"), [("scaling-hot", 1 + 4), ("scaling-tf", 5 + 4)]
)  # one disease is left without one record
def test_a_model_that_is_not_relative_to_the_target_is_trained_once_for_all(encoder: str, times: int) -> None:
    rows = loaded(WORKED, WORKED_SCHEMA)
    adversary = {"name": f"{__name__}.Counting"}
    (test,) = points(rows, WORKED_SCHEMA, [{"sanitizer": "raw", "encoder": encoder, "adversary": adversary}])
    Counting.trained = 0
    influence(test.rows.table, np.arange(5), test.procedure)
    assert Counting.trained == times


def test_a_model_without_a_person_is_trained_once_for_all_rows_of_that_person() -> None:
    frame = pd.DataFrame({"age": [1, 2, 3, 4, 5, 6], "who": list("aaabbc"), "disease": list("xyxyxy")})
    schema = {"subject": "who", "quasi_identifiers": {"age": {"kind": "numeric"}}, "sensitive": "disease"}
    test = {"sanitizer": "raw", "encoder": {"continuous": "scaling"}, "adversary": {"name": f"{__name__}.Counting"}}
    (test,) = points(loaded(frame, schema), schema, [test])
    Counting.trained = 0
    influence(test.rows.table, np.arange(6), test.procedure)
    assert Counting.trained == 1 + 3


def test_learning_once_gives_the_beliefs_of_learning_for_each_target() -> None:
    rows = loaded(FRAME, SCHEMA)
    (test,) = points(rows, SCHEMA, [{"sanitizer": {"name": "mondrian", "k": 4}, "encoder": "bounds-hot-after"}])
    release, encoder = test.procedure.publish(rows.table), test.procedure.encoder
    assert not is_relative(encoder)
    for adversary in (*test.procedure.adversaries.values(), Classifier(GaussianNB(), weighted=True)):
        each = [adversary.beliefs(release, encoder, target) for target in rows.table.codes]
        np.testing.assert_array_equal(beliefs_about(adversary, release, encoder, rows.table.codes), each)


@pytest.mark.parametrize("name", ["tf", {"continuous": "tf", "categorical": "tf"}, {"continuous": "tf"}, {"name": "tf"}])
def test_tf_for_both_kinds_is_tf(name: Any) -> None:
    test = built(name)
    assert isinstance(test.procedure.encoder, TF)
    assert (test.id, test.engine) == ("raw", "exact")


def test_where_no_attribute_is_of_a_kind_its_encoding_does_not_matter() -> None:
    frame, schema = FRAME[["age", "disease"]], {"age": {"kind": "numeric"}}
    relative: Encoder = built({"continuous": "scaling", "categorical": "tf"}, frame, quasi_identifiers=schema).procedure.encoder
    assert not is_relative(relative)
    assert isinstance(built({"categorical": "hot"}, frame, quasi_identifiers=schema).procedure.encoder, TF)


def test_other_encoders_leave_to_the_exact_engine_what_encodes_nothing() -> None:
    test = built("scaling-hot")
    assert (test.id, test.engine) == ("raw.scaling-hot", "mixed")
    assert test.engine_reason == "the exact engine needs TF; got scaling-hot"
    with pytest.raises(
        InputError, match=r"tests\[0\].engine: exact cannot run this test: the exact engine needs TF; got bounds-tf"
    ):
        points(loaded(FRAME, SCHEMA), SCHEMA, [{"sanitizer": "raw", "encoder": "bounds-tf", "engine": "exact"}])


def test_a_pair_sweeps() -> None:
    test = {"sanitizer": "raw", "encoder": {"continuous": list(CONTINUOUS[:3]), "categorical": list(CATEGORICAL)}}
    names = [point.encoder.name for point in checked(SCHEMA, [test]).tests]
    assert names == [f"{continuous}-{categorical}" for continuous in CONTINUOUS[:3] for categorical in CATEGORICAL]


@pytest.mark.parametrize(
    ("encoder", "line"),
    [
        ("sclaing-hot", "tests[0].encoder: unknown 'sclaing-hot'"),
        ({"continuous": "sclaing"}, "tests[0].encoder.continuous: unknown 'sclaing'"),
        ({"categorical": "cold"}, "known: binary, hot, hot-after, tf"),
        ({"categorical": "hot", "kontinuous": "scaling"}, "tests[0].encoder: key: unknown 'kontinuous'"),
        (
            {"continuous": "scaling", "quantiles": 4},
            "tests[0].encoder.quantiles is for continuous: quantiles-before or quantiles-after; got scaling",
        ),
        ({"continuous": "quantiles-after", "quantiles": 1}, "tests[0].encoder.quantiles must be an integer >= 2; got 1"),
        ({"continuous": "quantiles-after", "cut": "height"}, "tests[0].encoder.cut"),
        ({}, "tests[0].encoder.name is missing"),
        ({"continuous": 3}, "tests[0].encoder.continuous must be one of scaling, bounds"),
    ],
)
def test_wrong_encoders_are_one_clear_line(encoder: Any, line: str) -> None:
    with pytest.raises(InputError) as refusal:
        checked(SCHEMA, [{"sanitizer": "raw", "encoder": encoder}])
    assert line in str(refusal.value)
