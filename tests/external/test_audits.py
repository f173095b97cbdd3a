"""External sanitizers audited from end to end; the figures come from a loop that shares no code with the toolkit."""

from __future__ import annotations

from contextlib import chdir

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import BernoulliNB

import dit_dask as dit
from dit_dask.errors import InputError, RunError
from tests.external import sample_sanitizers
from tests.external.people_audit import HERE, SCHEMA, audit, people, python_sanitizer

FEW = [0, 7, 19, 33, 59]


def beliefs(release: pd.DataFrame, target: pd.Series) -> np.ndarray:
    """What scikit-learn's naive Bayes believes of a target, given ages as [low, high) and towns by their first letter."""
    low, high = (release["age"].str.extract(r"\[(\d+), (\d+)\)").astype(int)[place] for place in (0, 1))
    features = pd.DataFrame(
        {
            "age": (low <= target["age"]) & (target["age"] < high),
            "town": release["town"].str[0] == target["town"][0],
            "job": release["job"] == target["job"],
        }
    )
    model = BernoulliNB().fit(features.astype(int).to_numpy(), release["illness"])
    return model.predict_proba(np.ones((1, 3)))[0]


def expected(sanitize, records: list[int]) -> list[float]:
    """The published procedure, spelled out."""
    frame = people()
    found = []
    for record in records:
        sides = [beliefs(sanitize(table), frame.iloc[record]) for table in (frame, frame.drop(index=record))]
        found.append(float(np.abs(sides[0] - sides[1]).sum()))
    return found


def test_a_function_is_audited_as_published():
    result = audit(python_sanitizer("decades"), records=FEW)
    np.testing.assert_allclose(result.distances()["distance"], expected(sample_sanitizers.decades, FEW), rtol=0, atol=1e-12)


def test_a_class_is_built_and_used():
    result = audit(python_sanitizer("Generaliser", params={"width": 20}), records=FEW)
    wanted = expected(lambda frame: sample_sanitizers.decades(frame, 20), FEW)
    np.testing.assert_allclose(result.distances()["distance"], wanted, rtol=0, atol=1e-12)


def test_the_order_of_published_rows_changes_no_bit():
    plain = audit(python_sanitizer("decades"), records=FEW).distances()
    for name in ("unsorted", "decades"):
        pd.testing.assert_frame_equal(audit(python_sanitizer(name), records=FEW).distances(), plain, check_exact=True)


def test_a_sanitizer_that_only_reorders_rows_and_sets_is_deterministic():
    entry = audit(python_sanitizer("new_order_every_call"), records=FEW).tests[0]
    assert entry["oracle"]["deterministic"]
    assert not entry["oracle"]["order_matters"]


def test_equal_rows_cost_one_call(tmp_path):
    log = tmp_path / "calls"
    result = audit(python_sanitizer("logs_calls", params={"log": str(log)}))
    frame = people().drop(columns="name")
    assert frame.duplicated().any()
    assert len(log.read_text().splitlines()) == 2 + len(frame.drop_duplicates())
    distances = result.distances()
    assert len(distances) == 60
    multiplicity = frame.groupby(list(frame.columns))["age"].transform("size")
    np.testing.assert_array_equal(distances["multiplicity"], multiplicity)
    for _, group in distances.groupby(frame.apply(tuple, axis=1)):
        assert group["distance"].nunique() == 1


def test_an_order_dependent_sanitizer_is_called_for_every_row():
    result = audit(python_sanitizer("every_other_row"))
    assert result.tests[0]["oracle"]["order_matters"]
    assert result.tests[0]["oracle"]["deterministic"]
    frame = people().drop(columns="name")
    distances = result.distances()["distance"]
    wanted = expected(sample_sanitizers.every_other_row, list(range(60)))
    np.testing.assert_allclose(distances, wanted, rtol=0, atol=1e-12)
    assert distances.groupby(frame.apply(tuple, axis=1)).nunique().max() > 1  # equal rows, different places


def test_rows_that_differ_in_a_column_only_the_sanitizer_sees_are_not_equal(tmp_path):
    log = tmp_path / "calls"
    audit(python_sanitizer("logs_calls", params={"log": str(log)}, columns=["name"]))
    assert len(log.read_text().splitlines()) == 2 + 60
    result = audit(python_sanitizer("sees_names", columns=["name"]), records=FEW)
    np.testing.assert_allclose(result.distances()["distance"], expected(sample_sanitizers.decades, FEW), rtol=0, atol=1e-12)


def test_a_second_adversary_costs_no_call(tmp_path, monkeypatch):
    monkeypatch.chdir(HERE)
    log = tmp_path / "calls"
    sanitizer = python_sanitizer("logs_calls", params={"log": str(log)}, cache=str(tmp_path / "cache"))

    def run(*adversaries: str) -> int:
        before = len(log.read_text().splitlines()) if log.exists() else 0
        tests = [{"sanitizer": sanitizer, "adversary": adversary, "records": FEW} for adversary in adversaries]
        dit.audit(people(), schema=SCHEMA, tests=tests)
        return len(log.read_text().splitlines()) - before

    assert run("bernoulli-nb", "conditional-frequency") == 2 + len(people().drop(columns="name").iloc[FEW].drop_duplicates())
    assert run("sklearn.tree.DecisionTreeClassifier") == 1  # the check that it still gives the same release


def test_a_damaged_cache_is_filled_again(tmp_path):
    sanitizer = python_sanitizer("decades", cache=str(tmp_path / "cache"))
    before = audit(sanitizer, records=FEW).distances()
    kept = list((tmp_path / "cache").rglob("*.npz"))
    assert len(kept) == 1 + len(people().drop(columns="name").iloc[FEW].drop_duplicates())
    for place, path in enumerate(kept):
        path.write_bytes(b"" if place % 2 else path.read_bytes()[:40])
    pd.testing.assert_frame_equal(audit(sanitizer, records=FEW).distances(), before, check_exact=True)


def test_the_cache_holds_no_label(tmp_path):
    audit(python_sanitizer("decades", cache=str(tmp_path / "cache")), records=FEW)
    releases = list((tmp_path / "cache").rglob("*.npz"))
    assert releases
    for path in releases:
        with np.load(path) as kept:
            assert kept.files
            assert all(kept[name].dtype.kind in "iub" for name in kept.files)


def test_suppressed_and_absent_rows_are_counted_and_left_out():
    frame = people()
    entry = audit(python_sanitizer("suppresses"), records=FEW).tests[0]
    gone = int((frame["age"] < 22).sum())
    hidden = int(((frame["job"] == "cook") & (frame["age"] > 45)).sum())
    assert gone
    assert hidden
    assert entry["oracle"]["suppressed"] == hidden
    assert entry["oracle"]["absent"] == gone
    assert entry["oracle"]["rows"] == len(frame) - gone - hidden


def test_more_rows_than_were_given_are_taken_as_they_are():
    assert audit(python_sanitizer("doubles_rows"), records=FEW).tests[0]["oracle"]["rows"] == 120


def test_a_column_of_nulls_is_a_suppressed_column():
    plain = audit(python_sanitizer("decades"), records=FEW).distances()
    hidden = audit(python_sanitizer("null_ages"), records=FEW).distances()
    assert not plain.equals(hidden)
    pd.testing.assert_frame_equal(hidden, audit(python_sanitizer("starred_ages"), records=FEW).distances(), check_exact=True)


def test_a_stated_claim_is_checked():
    entry = audit(python_sanitizer("decades", claim={"k": 5}), records=FEW).tests[0]
    release = sample_sanitizers.decades(people())
    sizes = release.groupby(["age", "town", "job"]).size()
    assert entry["claim_holds"] == bool((sizes >= 5).all())
    assert entry["smallest_class"] == sizes.min()
    assert entry["claim_broken"]["classes"] == int((sizes < 5).sum())


@pytest.mark.parametrize("name", ["unseeded_half", "random_half", "global_state_half"])
def test_a_random_sanitizer_needs_repeats(name):
    with pytest.raises(InputError, match=r"tests\[0\]\.sanitizer gave two different releases .* set repeats"):
        audit(python_sanitizer(name), records=FEW)


def test_repeats_compare_laws_and_show_the_noise():
    result = audit(python_sanitizer("random_half"), records=[0, 7], repeats=12)
    entry, rows = result.tests[0], result.distances()
    assert entry["engine"] == "repeated"
    assert not entry["oracle"]["deterministic"]
    again = audit(python_sanitizer("random_half"), records=[0, 7], repeats=12).distances()
    pd.testing.assert_frame_equal(rows, again, check_exact=True)  # the seed is ours
    assert (rows["stderr"] > 0).all()
    assert (rows["noise"] > 0).all()
    assert set(rows) >= {"over_0.001", "over_0.1"}
    assert entry["repeats"]["noise"] == pytest.approx(rows["noise"].max())


def test_repeats_need_a_distance_between_laws():
    with pytest.raises(InputError, match=r"tests\[0\]\.distance must be emd, tv, emd-v1 with repeats"):
        audit(python_sanitizer("random_half"), records=FEW, repeats=5, distance="kl")


def test_repeats_draw_anew_from_a_global_state():
    rows = audit(python_sanitizer("global_state_half"), records=[0], repeats=8).distances()
    assert (rows["noise"] > 0).all()
    assert (rows["stderr"] > 0).all()


@pytest.mark.parametrize("kind", ["list", "tuple", "set"])
def test_several_values_in_a_cell_are_a_set(kind):
    wanted = audit(python_sanitizer("as_lists", params={"kind": "text"}), records=FEW).distances()
    found = audit(python_sanitizer("as_lists", params={"kind": kind}), records=FEW).distances()
    pd.testing.assert_frame_equal(found, wanted, check_exact=True)
    if kind != "set":
        wanted = audit(python_sanitizer("ages_as_lists", params={"kind": "text"}), records=FEW).distances()
        found = audit(python_sanitizer("ages_as_lists", params={"kind": kind}), records=FEW).distances()
        pd.testing.assert_frame_equal(found, wanted, check_exact=True)


def test_workers_with_several_threads_agree():
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=1, threads_per_worker=4, processes=False, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
        chdir(HERE),
    ):
        found = dit.audit(
            people(),
            schema=SCHEMA,
            tests=[{"sanitizer": python_sanitizer("decades"), "adversary": "bernoulli-nb"}],
            client=client,
        ).distances()
    pd.testing.assert_frame_equal(found, audit(python_sanitizer("decades")).distances(), check_exact=True)


def test_a_function_that_ends_its_process_is_a_failed_call():
    with pytest.raises(RunError, match="it exited with code 0 but returned nothing, without record 7"):
        audit(python_sanitizer("exits_with_0", retries=0), records=[7])


def test_a_function_may_change_its_working_directory(tmp_path):
    audit(python_sanitizer("changes_directory", params={"to": str(tmp_path)}), records=[7])
    assert not list(tmp_path.iterdir())


def test_a_run_that_skipped_everyone_is_refused():
    with pytest.raises(RunError, match=r"2 of 2 records were skipped \(0, 7\); the first because .* it raised ValueError"):
        audit(python_sanitizer("always_fails", on_error="skip", allow_skipped=2), records=[0, 7])


def test_limits_without_end_and_limits_that_are_too_short():
    assert len(audit(python_sanitizer("decades", timeout="inf"), records=[7]).distances()) == 1
    with pytest.raises(RunError, match=r"it took longer than its 1e-06 s"):
        audit(python_sanitizer("decades", timeout=1e-6, retries=0), records=[7])


def test_a_suppressed_secret_is_an_absent_row():
    entry = audit(python_sanitizer("hides_secrets"), records=FEW).tests[0]
    assert entry["oracle"]["suppressed"] == 4


def test_a_cache_filled_by_other_code_is_not_taken_for_randomness(tmp_path, monkeypatch):
    (tmp_path / "helper.py").write_text("WIDTH = 10\n")
    (tmp_path / "mine.py").write_text(
        "import helper\n\n\ndef f(frame):\n    low = frame['age'] // helper.WIDTH * helper.WIDTH\n"
        "    return frame.assign(age=[f'[{a}, {a + helper.WIDTH})' for a in low])\n"
    )
    monkeypatch.chdir(tmp_path)
    sanitizer = {"name": "python", "target": "mine:f", "cache": str(tmp_path / "cache")}
    dit.audit(people(), schema=SCHEMA, tests=[{"sanitizer": sanitizer, "records": [7]}])
    # of another size: within a second Python takes the compiled code of a file of the same size for that of this one
    (tmp_path / "helper.py").write_text("WIDTH = 20  # years\n")
    with pytest.raises(InputError, match="the cache holds releases of other code than runs now; --fresh empties it"):
        dit.audit(
            people(), schema=SCHEMA, tests=[{"sanitizer": sanitizer, "adversary": "conditional-frequency", "records": [7]}]
        )


def test_a_sample_with_skipped_rows_claims_less():
    result = audit(python_sanitizer("fails_on_the_oldest", on_error="skip", allow_skipped=5), records={"sample": 40, "seed": 1})
    entry = result.tests[0]
    assert entry["skipped"] == 1
    assert entry["sampling"]["above_delta_at_most"] is None
    over = round(entry["share_over"]["0.1"] * entry["records"])
    from scipy.stats import binomtest

    low, high = entry["sampling"]["share_over"]["0.1"]
    assert low == pytest.approx(binomtest(over, 40).proportion_ci(0.95, "exact").low)
    assert high == pytest.approx(binomtest(over + 1, 40).proportion_ci(0.95, "exact").high)


WRONG_TABLES = {
    "renames": "it returned no column 'town'",
    "returns_empty": "it returned an empty table",
    "returns_nothing": "it raised TypeError",
    "unreadable_ages": r"column 'age': cannot read a published value;",
}


@pytest.mark.parametrize("name", WRONG_TABLES)
def test_a_wrong_table_is_one_line(name):
    with pytest.raises(RunError, match=rf"tests\[0\]\.sanitizer: {WRONG_TABLES[name]}.*, on the whole table"):
        audit(python_sanitizer(name), records=FEW)


def test_a_sanitizer_that_hangs_is_ended_and_named():
    with pytest.raises(RunError, match=r"tests\[0\]\.sanitizer: it took longer than its 5 s, without record 7"):
        audit(python_sanitizer("hangs", timeout=5, retries=0), records=[7])


def test_a_sanitizer_that_crashes_is_named():
    with pytest.raises(RunError, match=r"it was killed by SIGSEGV, without record 7"):
        audit(python_sanitizer("crashes", retries=1), records=[7])


def test_a_sanitizer_that_fails_sometimes_is_called_again(tmp_path):
    (tmp_path / "state").mkdir()
    plain = audit(python_sanitizer("decades"), records=FEW).distances()
    found = audit(
        python_sanitizer("fails_every_third_call", params={"state": str(tmp_path / "state")}, retries=2), records=FEW
    ).distances()
    pd.testing.assert_frame_equal(found, plain, check_exact=True)


def test_skipped_records_are_listed_and_block_completion_unless_allowed():
    oldest = int(people()["age"].idxmax())
    frame = people()
    assert (frame["age"] == frame["age"].max()).sum() == 1
    with pytest.raises(
        RunError, match=rf"1 of 3 records were skipped \({oldest}\); the first because .*it raised ValueError"
    ) as caught:
        audit(python_sanitizer("fails_on_the_oldest", on_error="skip"), records=sorted({0, 7, oldest}))
    assert "secret-value" not in str(caught.value)
    result = audit(python_sanitizer("fails_on_the_oldest", on_error="skip", allow_skipped=1), records=sorted({0, 7, oldest}))
    entry, rows = result.tests[0], result.distances().set_index("record")
    assert entry["skipped"] == 1
    assert entry["skipped_records"] == [oldest]
    assert entry["records"] == 2
    assert rows.loc[oldest, ["distance", "predicted", "predicted_without"]].isna().all()
    assert rows.drop(index=oldest)["distance"].notna().all()


def test_messages_of_a_sanitizer_are_shown_only_on_request():
    with pytest.raises(RunError) as quiet:
        audit(python_sanitizer("fails_on_the_oldest"), people().query("age < 60"), records=[0])
    assert "secret-value" not in str(quiet.value)
    with pytest.raises(RunError, match="ValueError: secret-value-of-someone"):
        audit(python_sanitizer("fails_on_the_oldest", show_stderr=True), people().query("age < 60"), records=[0])


def test_large_output_and_stray_files_change_nothing():
    plain = audit(python_sanitizer("decades"), records=[0, 7]).distances()
    for name in ("prints_a_lot", "writes_elsewhere"):
        pd.testing.assert_frame_equal(audit(python_sanitizer(name), records=[0, 7]).distances(), plain, check_exact=True)


def test_sanitizer_processes_do_not_see_the_secrets_of_the_run(tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary-1234")
    audit(python_sanitizer("writes_its_environment", params={"to": str(tmp_path / "told")}), records=[0])
    told = (tmp_path / "told").read_text()
    assert "canary-1234" not in told
    assert "PATH=" in told
    assert not (tmp_path / told.rsplit("cwd=", 1)[1]).exists()  # its folder is gone


def test_what_cannot_be_imported_is_said_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(HERE)
    for target, why in {
        "sample_sanitizers:nobody": "has no attribute 'nobody'",
        "no_such_module:f": "No module named 'no_such_module'",
    }.items():
        with pytest.raises(InputError, match=rf"tests\[0\]\.sanitizer: cannot import '{target}': .*{why}"):
            dit.audit(
                people(),
                schema=SCHEMA,
                tests=[{"sanitizer": {"name": "python", "target": target}}],
                output=str(tmp_path / "runs"),
            )
    assert not (tmp_path / "runs").exists()


def test_a_sample_says_what_it_can_and_cannot_say():
    from scipy.stats import binomtest

    entry = audit(python_sanitizer("decades"), records={"sample": 20, "seed": 1}).tests[0]
    sampling = entry["sampling"]
    assert sampling["rows"] == 60
    for name, interval in sampling["share_over"].items():
        exact = binomtest(round(entry["share_over"][name] * 20), 20).proportion_ci(0.95, "exact")
        np.testing.assert_allclose(interval, [exact.low, exact.high], rtol=1e-9, atol=1e-12)
    assert (1 - sampling["above_delta_at_most"]) ** 20 == pytest.approx(0.05)


@pytest.mark.parametrize("allowed", [0, 1])
def test_a_record_that_was_skipped_is_tested_by_the_next_run_and_its_part_is_replaced(tmp_path, allowed):
    oldest = int(people()["age"].idxmax())
    sanitizer = python_sanitizer(
        "fails_on_the_oldest_at_first",
        params={"state": str(tmp_path / "state")},
        on_error="skip",
        allow_skipped=allowed,
        retries=0,
    )
    records, output = sorted({0, 7, oldest}), str(tmp_path / "runs")
    if allowed:
        assert audit(sanitizer, records=records, output=output).tests[0]["skipped"] == 1
    else:
        with pytest.raises(RunError, match="the same command tries again"):
            audit(sanitizer, records=records, output=output)
    again = audit(sanitizer, records=records, output=output)
    expected = audit(python_sanitizer("decades"), records=records)
    assert (again.tests[0]["skipped"], again.tests[0]["skipped_records"]) == (0, [])
    for figure in ("delta", "mean", "records", "mean_gain", "argmax_changed"):
        assert again.tests[0][figure] == expected.tests[0][figure], figure
    pd.testing.assert_frame_equal(again.distances(), expected.distances(), check_exact=True)
