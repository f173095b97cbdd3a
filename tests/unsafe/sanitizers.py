"""Third-party sanitizers of the gallery, unsafe ones and safe ones; they run in child processes only."""

from __future__ import annotations

import pandas as pd


def bands(frame: pd.DataFrame) -> pd.DataFrame:
    """Publish fixed bands of 20 years, and no town."""
    low = frame["age"] // 20 * 20
    return frame.assign(age=[f"[{start}, {start + 20})" for start in low], town="*")


def ignores_its_input(frame: pd.DataFrame) -> pd.DataFrame:
    """Publish the same four rows whatever it gets."""
    return pd.DataFrame({"age": ["[20, 80)"] * 4, "town": "*", "illness": sorted(frame["illness"].unique())[:1] * 4})


def returns_a_stored_result(_frame: pd.DataFrame, stored: str) -> pd.DataFrame:
    """Publish what was made from the whole table earlier."""
    return bands(pd.read_csv(stored))


def publishes_everything(frame: pd.DataFrame) -> pd.DataFrame:
    """Forget to sanitise."""
    return frame


def exposes_one_person(frame: pd.DataFrame) -> pd.DataFrame:
    """Publish bands, but the oldest person as they are."""
    oldest = frame["age"].to_numpy().argmax()
    released = bands(frame).reset_index(drop=True)
    released.loc[oldest, ["age", "town"]] = [str(frame["age"].iloc[oldest]), frame["town"].iloc[oldest]]
    return released


def exposes_one_age(frame: pd.DataFrame) -> pd.DataFrame:
    """Publish bands, but the age of the oldest person, whose town stays suppressed."""
    oldest = frame["age"].to_numpy().argmax()
    released = bands(frame).reset_index(drop=True)
    released.loc[oldest, "age"] = str(frame["age"].iloc[oldest])
    return released


def bands_of_two_widths(frame: pd.DataFrame) -> pd.DataFrame:
    """Publish bands of 20 or of 60 years, depending on the town, which is suppressed: two classes cover every person."""
    released = bands(frame)
    return released.assign(age=released["age"].where(frame["town"] < "e", "[20, 80)"))


def adds_the_names(frame: pd.DataFrame) -> pd.DataFrame:
    """Publish bands, and beside them a column that nobody asked for."""
    return bands(frame).assign(name=[f"person {number}" for number in frame.index])


def suppresses_outliers(frame: pd.DataFrame) -> pd.DataFrame:
    """Publish every person of a frequent pair of age and town as they are, and suppress the others."""
    size = frame.groupby(["age", "town"])["age"].transform("size").to_numpy()
    released = frame.astype({"age": str})
    released.loc[size < 2, ["age", "town"]] = "*"
    return released
