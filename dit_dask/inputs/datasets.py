"""Known tables: a census drawn from an embedded model, and public datasets by name, from disk or downloaded."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dit_dask import errors, seeds

if TYPE_CHECKING:
    import pandas as pd

    from dit_dask.values.arrays import Ints

SCHEME = "dit://"
CENSUS = "census"
HIERARCHIES = "hierarchies/"
ADULT_HEADER = (
    "age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,race,sex,"
    "capital-gain,capital-loss,hours-per-week,native-country,income,split"
)
INTERNET_HEADER = (
    "actual_time,age,community_building,community_membership_family,community_membership_hobbies,"
    "community_membership_none,community_membership_other,community_membership_political,"
    "community_membership_professional,community_membership_religious,community_membership_support,country,"
    "disability_cognitive,disability_hearing,disability_motor,disability_not_impaired,disability_not_say,"
    "disability_vision,education_attainment,falsification_of_information,gender,household_income,"
    "how_you_heard_about_survey_banner,how_you_heard_about_survey_friend,how_you_heard_about_survey_mailing_list,"
    "how_you_heard_about_survey_others,how_you_heard_about_survey_printed_media,"
    "how_you_heard_about_survey_remebered,how_you_heard_about_survey_search_engine,"
    "how_you_heard_about_survey_usenet_news,how_you_heard_about_survey_www_page,major_geographical_location,"
    "major_occupation,marital_status,most_import_issue_facing_the_internet,opinions_on_censorship,"
    "primary_computing_platform,primary_language,primary_place_of_www_access,race,not_purchasing_bad_experience,"
    "not_purchasing_bad_press,not_purchasing_cant_find,not_purchasing_company_policy,"
    "not_purchasing_easier_locally,not_purchasing_enough_info,not_purchasing_judge_quality,"
    "not_purchasing_never_tried,not_purchasing_no_credit,not_purchasing_not_applicable,not_purchasing_not_option,"
    "not_purchasing_other,not_purchasing_prefer_people,not_purchasing_privacy,not_purchasing_receipt,"
    "not_purchasing_security,not_purchasing_too_complicated,not_purchasing_uncomfortable,"
    "not_purchasing_unfamiliar_vendor,registered_to_vote,sexual_preference,web_ordering,web_page_creation,"
    "who_pays_for_access_dont_know,who_pays_for_access_other,who_pays_for_access_parents,"
    "who_pays_for_access_school,who_pays_for_access_self,who_pays_for_access_work,willingness_to_pay_fees,"
    "years_on_internet,pseudonym"
)


def adult_csv(downloads: Sequence[bytes]) -> bytes:
    """Join UCI's adult.data and adult.test, whose labels end in a dot, to one CSV with a `split` column."""
    train, test = downloads
    rows = [[*row, "train"] for row in _adult_rows(train)]
    rows += [[*row[:-1], row[-1].removesuffix("."), "test"] for row in _adult_rows(test)]
    return _join_csv(ADULT_HEADER, rows)


def _adult_rows(download: bytes) -> Iterator[list[str]]:
    for line in download.decode("utf-8").split("\n"):
        if line.strip() and not line.startswith("|"):  # adult.test opens with a comment
            yield [cell.strip() for cell in line.split(",")]


def internet_csv(downloads: Sequence[bytes]) -> bytes:
    """Turn the tab-separated survey without header into a CSV; empty cells become `?`."""
    (survey,) = downloads
    lines = (line.removesuffix("\r") for line in survey.decode("utf-8").split("\n"))
    return _join_csv(INTERNET_HEADER, ([cell or "?" for cell in line.split("\t")] for line in lines if line))


def _join_csv(header: str, rows: Iterable[Sequence[str]]) -> bytes:
    """Write unquoted lines; a row of another width, or with a comma in a cell, is not the known dataset."""
    commas = header.count(",")
    lines = [header]
    for number, row in enumerate(rows, 1):
        line = ",".join(row)
        if line.count(",") != commas:
            raise ValueError(f"row {number} has {line.count(',') + 1} cells; expected {commas + 1}")
        lines.append(line)
    return ("\n".join(lines) + "\n").encode("utf-8")


@dataclass(frozen=True)
class Dataset:
    """A public dataset: where it comes from and how its downloads become the one CSV with this digest."""

    name: str
    file: str
    home: str
    licence: str
    urls: tuple[str, ...]
    to_csv: Callable[[Sequence[bytes]], bytes]
    sha256: str


DATASETS: dict[str, Dataset] = {
    dataset.name: dataset
    for dataset in (
        Dataset(
            name="adult",
            file="adult.csv",
            home="https://archive.ics.uci.edu/dataset/2/adult",
            licence="CC BY 4.0; Becker, B. & Kohavi, R. (1996). Adult. UCI ML Repository. doi:10.24432/C5XW20",
            urls=(
                "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.data",
                "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.test",
            ),
            to_csv=adult_csv,
            sha256="d99d5b2c07ff6c7e09b6e0cefe115f6835d5c7b6efebdb9276238f1243c6369b",
        ),
        Dataset(
            name="internet-usage",
            file="internet_usage.csv",
            home="https://archive.ics.uci.edu/ml/datasets/Internet+Usage+Data",
            licence="UCI lists its datasets as CC BY 4.0; check the terms of GVU, Georgia Tech (1997), to redistribute",
            urls=(
                # pinned to a commit, so that the bytes cannot change
                "https://raw.githubusercontent.com/kassemal/diffTesting/"
                "03ea55ddd1ea304be7307519abe863bda4c6077c/data/internet.data",
            ),
            to_csv=internet_csv,
            sha256="170f901e8aa9e614e43545917d39332088c4f90e5260f1eaf12919b4beb7613b",
        ),
    )
}


def census(rows: int = 10_000, seed: int = 7) -> pd.DataFrame:
    """Draw a table that looks like UCI Adult, from its counts alone; a longer table begins with the shorter one.

    rows: how many records, at least 1. seed: the same seed gives the same table on every platform.
    """
    import numpy as np
    import pandas as pd

    if rows < 1:
        raise errors.InputError(f"census: rows must be an integer >= 1; got {rows}")
    model = json.loads((_package_data() / "census.json").read_text(encoding="utf-8"))
    codes = _census_codes(model, rows, seed)
    values: dict[str, list[Any]] = {name: list(counts) for name, counts in model["marginals"].items()}
    for name, derived in model["derived"].items():
        codes[name] = codes[derived["from"]]
        values[name] = [derived["values"][value] for value in values[derived["from"]]]
    columns = {}
    for name in model["columns"]:
        kind = np.int64 if name in model["numeric"] else object
        columns[name] = np.array(values[name], dtype=kind)[codes[name]]
    return pd.DataFrame(columns)


def _census_codes(model: Mapping[str, Any], rows: int, seed: int) -> dict[str, Ints]:
    """Return (rows,) positions among the values of each attribute, drawn from the root of the tree downwards."""
    import numpy as np

    root = model["edges"][0]["parent"]
    weights = np.array([list(model["marginals"][root].values())], dtype=np.int64)
    codes = {root: _draw_codes(weights, np.zeros(rows, dtype=np.int64), seed, root)}
    for edge in model["edges"]:
        parent, child = edge["parent"], edge["child"]
        weights = _edge_weights(model["marginals"][parent], model["marginals"][child], edge["counts"])
        codes[child] = _draw_codes(weights, codes[parent], seed, child)
    return codes


def _edge_weights(parent: Mapping[str, int], child: Mapping[str, int], counts: Mapping[str, Mapping[str, int]]) -> Ints:
    """Return (parent, child) weights: the published cells, and suppressed records spread by what is missing of the child.

    So the child keeps its marginal, and a parent value without any published cell draws from the child alone.
    """
    import numpy as np

    cells = np.array([[counts.get(p, {}).get(c, 0) for c in child] for p in parent], dtype=np.int64)
    hidden = np.maximum(np.array(list(parent.values())) - cells.sum(axis=1), 0)
    marginal = np.array(list(child.values()))
    missing = np.maximum(marginal - cells.sum(axis=0), 0)
    spread = missing if missing.any() else marginal
    return np.asarray(cells * spread.sum() + hidden[:, None] * spread, dtype=np.int64)


def _draw_codes(weights: Ints, parents: Ints, seed: int, attribute: str) -> Ints:
    """Return (n,) columns of the (parent, child) weights, each drawn from the row that `parents` names."""
    import numpy as np

    totals = weights.sum(axis=1)
    # integers and raw bits only: NumPy promises the same bits in every version, not the same floats
    bits = seeds.stream(seed, CENSUS, attribute).bit_generator.random_raw(len(parents)) >> np.uint64(1)
    targets = (totals.cumsum() - totals)[parents] + bits.astype(np.int64) % totals[parents]
    cells = np.searchsorted(weights.ravel().cumsum(), targets, side="right")
    return np.asarray(cells - parents * weights.shape[1], dtype=np.int64)


def locate(name: str) -> str:
    """Return the path of a known dataset: in the folder DIT_DATA, in the user's cache, or downloaded into it."""
    from dit_dask.storage import filesystem as store

    if name not in DATASETS:
        raise errors.unknown("dataset", name, DATASETS)
    dataset = DATASETS[name]
    folder = _data_folder()
    if folder and (folder / dataset.file).is_file():
        return str(folder / dataset.file)
    cached = _cache_folder() / dataset.file
    if not cached.is_file():
        try:
            content = dataset.to_csv([store.fetch(url) for url in dataset.urls])
            _store_download(content, cached, dataset.sha256)
        except Exception as failure:  # each filesystem, HTTP above all, has errors of its own
            searched = f"not in DIT_DATA ({folder})" if folder else "DIT_DATA is not set"
            raise errors.InputError(
                f"dataset {name}: {searched}, not in the cache ({cached}), and the download failed "
                f"({store.reason(failure)}); get it from {dataset.home}"
            ) from failure
    return str(cached)


def _store_download(content: bytes, path: Path, sha256: str) -> None:
    """Check a download's digest and write it atomically."""
    digest = hashlib.sha256(content).hexdigest()
    if digest != sha256:
        raise ValueError(f"not the known dataset: sha256 must be {sha256}; got {digest}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".download-", dir=path.parent) as scratch:
        complete = Path(scratch) / path.name
        complete.write_bytes(content)
        os.replace(complete, path)


def resolve(url: str) -> str:
    """Return the path that a `dit://` address stands for; `dit://census` and all other URLs stay as they are."""
    if not url.startswith(SCHEME):
        return url
    name = url.removeprefix(SCHEME)
    if name == CENSUS:
        return url
    if name.startswith(HIERARCHIES):
        return _find_hierarchy(name.removeprefix(HIERARCHIES))
    if name in DATASETS:
        return locate(name)
    raise errors.unknown(f"{SCHEME} address", name, [*DATASETS, CENSUS, f"{HIERARCHIES}NAME.csv"])


def _find_hierarchy(name: str) -> str:
    embedded = {path.name: path for path in (_package_data() / "hierarchies").glob("*.csv")}
    if name in embedded:
        return str(embedded[name])
    folder = _data_folder()
    if folder and Path(name).name == name and (folder / "hierarchies" / name).is_file():
        return str(folder / "hierarchies" / name)
    raise errors.unknown(f"{SCHEME}{HIERARCHIES}", name, embedded)


def _package_data() -> Path:
    return Path(str(resources.files("dit_dask").joinpath("data")))


def _data_folder() -> Path | None:
    """Return DIT_DATA as an absolute path: a relative one would be read from the config's folder."""
    from dit_dask.storage import filesystem as store

    folder = store.environment("DIT_DATA")
    return Path(folder).expanduser().absolute() if folder else None


def _cache_folder() -> Path:
    from dit_dask.storage import filesystem as store

    base = store.environment("XDG_CACHE_HOME")
    # the XDG specification ignores relative paths
    return (Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache") / "dit_dask"
