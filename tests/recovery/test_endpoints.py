"""An attacker with measures.json or the report reads the names of published values."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd

import dit_dask as dit

SCHEMA = {"quasi_identifiers": {"age": {"kind": "numeric"}, "town": {"kind": "categorical"}}, "sensitive": "illness"}
HIGHEST, RICHEST = 117, 98765432


def people(highest: int = HIGHEST, low: int = 30) -> pd.DataFrame:
    """Two hundred people, one of them much older than all others and alone in their town."""
    rng = np.random.default_rng(3)
    age = np.append(rng.integers(low, low + 5, 199), highest)
    town = np.append(rng.choice(["Aby", "Bree", "Cuse"], 199), "Solitude")
    return pd.DataFrame({"age": age, "town": town, "illness": rng.choice(["cold", "flu", "gout"], 200)})


def shown(folder: Path) -> str:
    names = ("measures.json", "report.html", "summary.json", "manifest.json", "index.json")
    return "\n".join(path.read_text() for name in names if (path := folder / name).exists())


def audit(frame: pd.DataFrame, sanitizer: dict, **more: object) -> dit.Result:
    measures = [{"name": "discrimination", "attack": ["identity", "homogeneity"], "keys": [key]} for key in ("age", "town")]
    tests = [{"sanitizer": sanitizer, "records": [0]}]
    return dit.audit(frame, schema=SCHEMA, tests=tests, measures=[measure | more for measure in measures])


def test_the_end_of_an_interval_does_not_show_the_oldest_person() -> None:
    result = audit(people(), {"name": "mondrian", "k": 20})
    text = shown(Path(result.url))
    assert not re.search(rf"\b{HIGHEST}\b", text)
    assert "Solitude" not in text
    intervals = [line["value"] for entry in result.measures for line in entry["by_value"] if str(line["value"]).startswith("[")]
    assert any(name.endswith("…]") for name in intervals)  # it was there, without its end
    assert f"{HIGHEST}]" in json.dumps(audit(people(), {"name": "mondrian", "k": 20}, show_values=True).measures)


def test_the_report_names_no_value_of_the_original_that_the_release_generalises() -> None:
    frame = people().assign(town=[f"Town{number % 8}" for number in range(200)])
    result = audit(frame, {"name": "mondrian", "k": 60})
    assert any(str(line["value"]).startswith("Town") for entry in result.measures for line in entry["by_value"])
    published = {str(line["value"]) for entry in result.measures if entry["sanitizer"] for line in entry["by_value"]}
    report = (Path(result.url) / "report.html").read_text()
    assert {name for name in frame["town"] if re.search(rf">{name}<", report)} <= published


def hide_all(frame: pd.DataFrame) -> pd.DataFrame:
    """A black box that publishes * for every age."""
    return frame.assign(age="*")


def test_the_report_shows_no_range_where_the_black_box_published_a_star() -> None:
    result = audit(people(RICHEST, 20000), {"name": "python", "target": f"{__name__}:hide_all", "timeout": 60})
    text = shown(Path(result.url))
    assert str(RICHEST) not in text
    of_age = [entry for entry in result.measures if entry["parameters"]["keys"] == ["age"] and entry["sanitizer"]]
    assert of_age
    assert {line["value"] for entry in of_age for line in entry["by_value"]} == {"*"}
