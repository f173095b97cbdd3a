"""Black boxes audited from end to end; the figures come from a loop that shares no code with the toolkit."""

from __future__ import annotations

from contextlib import chdir

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import BernoulliNB

import dit_dask as dit
from dit_dask.errors import InputError, RunError
from tests.black_boxes import strangers
from tests.black_boxes.asking import HERE, SCHEMA, ask, people, stranger

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
    result = ask(stranger("decades"), records=FEW)
    np.testing.assert_allclose(result.distances()["distance"], expected(strangers.decades, FEW), rtol=0, atol=1e-12)


def test_a_class_is_built_and_used():
    result = ask(stranger("Generaliser", params={"width": 20}), records=FEW)
    wanted = expected(lambda frame: strangers.decades(frame, 20), FEW)
    np.testing.assert_allclose(result.distances()["distance"], wanted, rtol=0, atol=1e-12)


def test_the_order_of_published_rows_changes_no_bit():
    plain = ask(stranger("decades"), records=FEW).distances()
    for name in ("unsorted", "decades"):
        pd.testing.assert_frame_equal(ask(stranger(name), records=FEW).distances(), plain, check_exact=True)


def test_an_oracle_that_only_reorders_rows_and_sets_is_deterministic():
    entry = ask(stranger("restless"), records=FEW).tests[0]
    assert entry["oracle"]["deterministic"]
    assert not entry["oracle"]["order_matters"]


def test_equal_rows_are_asked_once(tmp_path):
    log = tmp_path / "calls"
    result = ask(stranger("counted", params={"log": str(log)}))
    frame = people().drop(columns="name")
    assert frame.duplicated().any()
    assert len(log.read_text().splitlines()) == 2 + len(frame.drop_duplicates())
    distances = result.distances()
    assert len(distances) == 60
    multiplicity = frame.groupby(list(frame.columns))["age"].transform("size")
    np.testing.assert_array_equal(distances["multiplicity"], multiplicity)
    for _, group in distances.groupby(frame.apply(tuple, axis=1)):
        assert group["distance"].nunique() == 1


def test_an_oracle_that_minds_the_order_is_asked_for_every_row():
    result = ask(stranger("in_order"))
    assert result.tests[0]["oracle"]["order_matters"]
    assert result.tests[0]["oracle"]["deterministic"]
    frame = people().drop(columns="name")
    distances = result.distances()["distance"]
    wanted = expected(strangers.in_order, list(range(60)))
    np.testing.assert_allclose(distances, wanted, rtol=0, atol=1e-12)
    assert distances.groupby(frame.apply(tuple, axis=1)).nunique().max() > 1  # equal rows, different places


def test_rows_that_differ_in_a_column_only_the_oracle_sees_are_not_equal(tmp_path):
    log = tmp_path / "calls"
    ask(stranger("counted", params={"log": str(log)}, columns=["name"]))
    assert len(log.read_text().splitlines()) == 2 + 60
    result = ask(stranger("sees_names", columns=["name"]), records=FEW)
    np.testing.assert_allclose(result.distances()["distance"], expected(strangers.decades, FEW), rtol=0, atol=1e-12)


def test_a_second_adversary_costs_no_call(tmp_path, monkeypatch):
    monkeypatch.chdir(HERE)
    log = tmp_path / "calls"
    sanitizer = stranger("counted", params={"log": str(log)}, cache=str(tmp_path / "cache"))

    def run(*adversaries: str) -> int:
        before = len(log.read_text().splitlines()) if log.exists() else 0
        tests = [{"sanitizer": sanitizer, "adversary": adversary, "records": FEW} for adversary in adversaries]
        dit.audit(people(), schema=SCHEMA, tests=tests)
        return len(log.read_text().splitlines()) - before

    assert run("bernoulli-nb", "conditional-frequency") == 2 + len(people().drop(columns="name").iloc[FEW].drop_duplicates())
    assert run("sklearn.tree.DecisionTreeClassifier") == 1  # the check that it still gives the same release


def test_a_cache_that_was_damaged_is_asked_again(tmp_path):
    sanitizer = stranger("decades", cache=str(tmp_path / "cache"))
    before = ask(sanitizer, records=FEW).distances()
    kept = list((tmp_path / "cache").rglob("*.npz"))
    assert len(kept) == 1 + len(people().drop(columns="name").iloc[FEW].drop_duplicates())
    for place, path in enumerate(kept):
        path.write_bytes(b"" if place % 2 else path.read_bytes()[:40])
    pd.testing.assert_frame_equal(ask(sanitizer, records=FEW).distances(), before, check_exact=True)


def test_the_cache_holds_no_label(tmp_path):
    ask(stranger("decades", cache=str(tmp_path / "cache")), records=FEW)
    for path in (tmp_path / "cache").rglob("*.npz"):
        with np.load(path) as kept:
            assert all(kept[name].dtype.kind in "iub" for name in kept.files)


def test_suppressed_and_absent_rows_are_counted_and_left_out():
    frame = people()
    entry = ask(stranger("suppressing"), records=FEW).tests[0]
    gone = int((frame["age"] < 22).sum())
    hidden = int(((frame["job"] == "cook") & (frame["age"] > 45)).sum())
    assert gone
    assert hidden
    assert entry["oracle"]["suppressed"] == hidden
    assert entry["oracle"]["absent"] == gone
    assert entry["oracle"]["rows"] == len(frame) - gone - hidden


def test_more_rows_than_were_given_are_taken_as_they_are():
    assert ask(stranger("doubles"), records=FEW).tests[0]["oracle"]["rows"] == 120


def test_a_column_of_nulls_is_a_suppressed_column():
    plain = ask(stranger("decades"), records=FEW).distances()
    hidden = ask(stranger("holes"), records=FEW).distances()
    assert not plain.equals(hidden)
    pd.testing.assert_frame_equal(hidden, ask(stranger("stars"), records=FEW).distances(), check_exact=True)


def test_a_stated_claim_is_checked():
    entry = ask(stranger("decades", claim={"k": 5}), records=FEW).tests[0]
    release = strangers.decades(people())
    sizes = release.groupby(["age", "town", "job"]).size()
    assert entry["claim_holds"] == bool((sizes >= 5).all())
    assert entry["smallest_class"] == sizes.min()
    assert entry["claim_broken"]["classes"] == int((sizes < 5).sum())


@pytest.mark.parametrize("name", ["noise", "drawn", "global_noise"])
def test_an_oracle_that_draws_at_random_needs_repeats(name):
    with pytest.raises(InputError, match=r"tests\[0\]\.sanitizer gave two different releases .* set repeats"):
        ask(stranger(name), records=FEW)


def test_repeats_compare_laws_and_show_the_noise():
    result = ask(stranger("drawn"), records=[0, 7], repeats=12)
    entry, rows = result.tests[0], result.distances()
    assert entry["engine"] == "repeated"
    assert not entry["oracle"]["deterministic"]
    again = ask(stranger("drawn"), records=[0, 7], repeats=12).distances()
    pd.testing.assert_frame_equal(rows, again, check_exact=True)  # the seed is ours
    assert (rows["stderr"] > 0).all()
    assert (rows["noise"] > 0).all()
    assert set(rows) >= {"over_0.001", "over_0.1"}
    assert entry["repeats"]["noise"] == pytest.approx(rows["noise"].max())


def test_repeats_need_a_distance_between_laws():
    with pytest.raises(InputError, match=r"tests\[0\]\.distance must be emd, tv, emd-v1 where repeats"):
        ask(stranger("drawn"), records=FEW, repeats=5, distance="kl")


def test_repeats_draw_anew_from_a_global_state():
    rows = ask(stranger("global_noise"), records=[0], repeats=8).distances()
    assert (rows["noise"] > 0).all()
    assert (rows["stderr"] > 0).all()


@pytest.mark.parametrize("kind", ["list", "tuple", "set"])
def test_several_values_in_a_cell_are_a_set(kind):
    wanted = ask(stranger("as_lists", params={"kind": "text"}), records=FEW).distances()
    found = ask(stranger("as_lists", params={"kind": kind}), records=FEW).distances()
    pd.testing.assert_frame_equal(found, wanted, check_exact=True)
    if kind != "set":
        wanted = ask(stranger("ages_as_lists", params={"kind": "text"}), records=FEW).distances()
        found = ask(stranger("ages_as_lists", params={"kind": kind}), records=FEW).distances()
        pd.testing.assert_frame_equal(found, wanted, check_exact=True)


def test_workers_with_several_threads_agree():
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=1, threads_per_worker=4, processes=False, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
        chdir(HERE),
    ):
        found = dit.audit(people(), schema=SCHEMA, tests=[{"sanitizer": stranger("decades")}], client=client).distances()
    pd.testing.assert_frame_equal(found, ask(stranger("decades")).distances(), check_exact=True)


def test_a_function_that_ends_its_process_is_a_failed_call():
    with pytest.raises(RunError, match="it exited with code 0 but returned nothing, without record 7"):
        ask(stranger("leaves_quietly", retries=0), records=[7])


def test_a_function_may_change_its_working_directory(tmp_path):
    ask(stranger("wanders", params={"to": str(tmp_path)}), records=[7])
    assert not list(tmp_path.iterdir())


def test_a_run_that_skipped_everyone_is_refused():
    with pytest.raises(RunError, match=r"2 of 2 records were skipped \(0, 7\); the first because .* it raised ValueError"):
        ask(stranger("always_fails", on_error="skip", allow_skipped=2), records=[0, 7])


def test_limits_without_end_and_limits_that_are_too_short():
    assert len(ask(stranger("decades", timeout="inf"), records=[7]).distances()) == 1
    with pytest.raises(RunError, match=r"it took longer than its 1e-06 s"):
        ask(stranger("decades", timeout=1e-6, retries=0), records=[7])


def test_a_suppressed_secret_is_an_absent_row():
    entry = ask(stranger("hides_secrets"), records=FEW).tests[0]
    assert entry["oracle"]["suppressed"] == 4


def test_a_cache_filled_by_other_code_is_not_taken_for_chance(tmp_path, monkeypatch):
    (tmp_path / "helper.py").write_text("WIDTH = 10\n")
    (tmp_path / "mine.py").write_text(
        "import helper\n\n\ndef f(frame):\n    low = frame['age'] // helper.WIDTH * helper.WIDTH\n"
        "    return frame.assign(age=[f'[{a}, {a + helper.WIDTH})' for a in low])\n"
    )
    monkeypatch.chdir(tmp_path)
    sanitizer = {"name": "python", "target": "mine:f", "cache": str(tmp_path / "cache")}
    dit.audit(people(), schema=SCHEMA, tests=[{"sanitizer": sanitizer, "records": [7]}])
    (tmp_path / "helper.py").write_text("WIDTH = 20\n")
    with pytest.raises(InputError, match="the cache holds releases of other code than runs now; --fresh empties it"):
        dit.audit(
            people(), schema=SCHEMA, tests=[{"sanitizer": sanitizer, "adversary": "conditional-frequency", "records": [7]}]
        )


def test_a_sample_with_skipped_rows_claims_less():
    result = ask(stranger("fails_on_the_oldest", on_error="skip", allow_skipped=5), records={"sample": 40, "seed": 1})
    entry = result.tests[0]
    assert entry["skipped"] == 1
    assert entry["sampling"]["above_delta_at_most"] is None
    over = round(entry["share_over"]["0.1"] * entry["records"])
    from scipy.stats import binomtest

    low, high = entry["sampling"]["share_over"]["0.1"]
    assert low == pytest.approx(binomtest(over, 40).proportion_ci(0.95, "exact").low)
    assert high == pytest.approx(binomtest(over + 1, 40).proportion_ci(0.95, "exact").high)


HOSTILE = {
    "renames": "it returned no column 'town'",
    "empties": "it returned an empty table",
    "nothing": "it raised TypeError",
    "unreadable": r"column 'age': cannot read the published value 'about thirty-ish'",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_wrong_table_is_one_line(name):
    with pytest.raises(RunError, match=rf"tests\[0\]\.sanitizer: {HOSTILE[name]}.*, on the whole table"):
        ask(stranger(name), records=FEW)


def test_an_oracle_that_hangs_is_ended_and_named():
    with pytest.raises(RunError, match=r"tests\[0\]\.sanitizer: it took longer than its 1 s, without record 7"):
        ask(stranger("hangs", timeout=1, retries=0), records=[7])


def test_an_oracle_that_crashes_is_named():
    with pytest.raises(RunError, match=r"it was killed by SIGSEGV, without record 7"):
        ask(stranger("dies", retries=1), records=[7])


def test_an_oracle_that_fails_now_and_then_is_tried_again(tmp_path):
    (tmp_path / "state").mkdir()
    plain = ask(stranger("decades"), records=FEW).distances()
    moody = ask(stranger("moody", params={"state": str(tmp_path / "state")}, retries=2), records=FEW).distances()
    pd.testing.assert_frame_equal(moody, plain, check_exact=True)


def test_skipped_records_are_listed_and_block_completion_unless_allowed():
    oldest = int(people()["age"].idxmax())
    frame = people()
    assert (frame["age"] == frame["age"].max()).sum() == 1
    with pytest.raises(
        RunError, match=rf"1 of 3 records were skipped \({oldest}\); the first because .*it raised ValueError"
    ) as caught:
        ask(stranger("fails_on_the_oldest", on_error="skip"), records=sorted({0, 7, oldest}))
    assert "secret-value" not in str(caught.value)
    result = ask(stranger("fails_on_the_oldest", on_error="skip", allow_skipped=1), records=sorted({0, 7, oldest}))
    entry, rows = result.tests[0], result.distances().set_index("record")
    assert entry["skipped"] == 1
    assert entry["skipped_records"] == [oldest]
    assert entry["records"] == 2
    assert rows.loc[oldest, ["distance", "predicted", "predicted_without"]].isna().all()
    assert rows.drop(index=oldest)["distance"].notna().all()


def test_messages_of_a_stranger_are_shown_only_if_asked():
    with pytest.raises(RunError) as quiet:
        ask(stranger("fails_on_the_oldest"), people().query("age < 60"), records=[0])
    assert "secret-value" not in str(quiet.value)
    with pytest.raises(RunError, match="ValueError: secret-value-of-someone"):
        ask(stranger("fails_on_the_oldest", show_stderr=True), people().query("age < 60"), records=[0])


def test_gigabytes_of_talk_and_litter_do_no_harm():
    plain = ask(stranger("decades"), records=[0, 7]).distances()
    for name in ("shouts", "writes_elsewhere"):
        pd.testing.assert_frame_equal(ask(stranger(name), records=[0, 7]).distances(), plain, check_exact=True)


def test_strangers_do_not_see_the_secrets_of_the_run(tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary-1234")
    ask(stranger("tells_its_environment", params={"to": str(tmp_path / "told")}), records=[0])
    told = (tmp_path / "told").read_text()
    assert "canary-1234" not in told
    assert "PATH=" in told
    assert not (tmp_path / told.rsplit("cwd=", 1)[1]).exists()  # its folder is gone


def test_what_cannot_be_imported_is_said_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(HERE)
    for target, why in {
        "strangers:nobody": "has no attribute 'nobody'",
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

    entry = ask(stranger("decades"), records={"sample": 20, "seed": 1}).tests[0]
    sampling = entry["sampling"]
    assert sampling["rows"] == 60
    for name, interval in sampling["share_over"].items():
        exact = binomtest(round(entry["share_over"][name] * 20), 20).proportion_ci(0.95, "exact")
        np.testing.assert_allclose(interval, [exact.low, exact.high], rtol=1e-9, atol=1e-12)
    assert (1 - sampling["above_delta_at_most"]) ** 20 == pytest.approx(0.05)
