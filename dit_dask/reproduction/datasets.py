"""The papers' two tables: which columns they used, which rows, and random samples of Adult."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from dit_dask.audit.build import build_tests
from dit_dask.audit.grammar import check_config
from dit_dask.audit.test import Test
from dit_dask.config.document import Config
from dit_dask.errors import InputError
from dit_dask.inputs import datasets
from dit_dask.inputs.load import load
from dit_dask.inputs.source import read_text
from dit_dask.values.table import Rows

ADULT_ROWS = 10_000
TRAINING_ROWS = 30_162  # complete ones, which come first
NUMERIC = ("age", "hours-per-week")
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "adult": ("age", "education", "marital-status", "hours-per-week", "native-country"),
    "adult-train": (),
    "internet": ("age", "country", "education_attainment", "major_occupation", "marital_status", "race"),
    "internet-v2": ("age", "race", "education_attainment", "major_occupation", "marital_status"),
}
SECRETS = {"adult": "occupation", "internet": "household_income"}
KNOWN = {"adult": "adult", "internet": "internet-usage"}


@dataclass(frozen=True)
class Selection:
    """Rows and columns of a dataset: a random sample of Adult by its seed, the columns in order, how values are grouped."""

    dataset: str
    sample: int | None = None
    columns: tuple[str, ...] = ()
    hierarchies: str = "papers"  # the authors'; package: those that this package has; flat: values directly below the root
    keeps_incomplete: bool = False  # "?" is then a value like any other, which only flat hierarchies have

    @property
    def key(self) -> str:
        """A name for what was computed of it."""
        parts = [self.dataset, *([] if self.sample is None else [f"sample{self.sample}"])]
        parts += [] if self.hierarchies == "papers" else [self.hierarchies]
        parts += ["incomplete"] if self.keeps_incomplete else []
        return "-".join([*parts, *("" if not self.columns else ["-".join(name[:4] for name in self.columns)])])


@dataclass(frozen=True)
class Source:
    """Where the tables are: a folder, or wherever `dit data` finds them."""

    folder: str | None = None

    def path(self, dataset: str) -> str:
        """The file of a dataset."""
        file = datasets.DATASETS[KNOWN[dataset]].file
        if self.folder is None:
            return datasets.locate(KNOWN[dataset])
        found = Path(self.folder).expanduser().absolute() / file
        if not found.is_file():
            raise InputError(f"--data: {self.folder} must be a folder with {file}; there is none")
        return str(found)

    def config(self, chosen: Selection, tests: Sequence[Mapping[str, Any]]) -> Config:
        """The config of some tests on a selection."""
        base = chosen.dataset.partition("-")[0]
        columns = chosen.columns or COLUMNS[chosen.dataset]
        data: dict[str, Any] = {"source": self.path(base)}
        if not chosen.keeps_incomplete:
            data["missing"] = ["?"] if base == "adult" else {"age": ["Not-Say"]}
        if chosen.dataset == "adult-train":
            data["limit"] = TRAINING_ROWS
        if chosen.sample is not None:
            data["sample"] = {"rows": ADULT_ROWS, "seed": chosen.sample}
        quasi = {name: self._attribute(base, name, chosen.hierarchies) for name in columns}
        schema = {"quasi_identifiers": quasi, "sensitive": SECRETS[base]}
        document = {"version": 1, "data": data, "schema": schema, "tests": list(tests), "seed": 7}
        return check_config(document, str(Path.cwd()))

    def has_authors_hierarchies(self, dataset: str) -> bool:
        """Whether the authors' hierarchies are beside the table; else those of this package take their place."""
        return self._hierarchy(dataset, "marital-status" if dataset == "adult" else "marital_status").is_file()

    def _hierarchy(self, base: str, name: str) -> Path:
        return Path(self.path(base)).parent / "hierarchies" / f"kassem_{base}_{name}.csv"

    def _attribute(self, base: str, name: str, hierarchies: str) -> dict[str, Any]:
        if name in NUMERIC:
            return {"kind": "numeric"}
        if hierarchies == "flat":
            return {"kind": "categorical"}
        authors = self._hierarchy(base, name)
        is_authors = hierarchies == "papers" and authors.is_file()
        return {"kind": "categorical", "hierarchy": str(authors) if is_authors else f"dit://hierarchies/{base}-{name}.csv"}

    def rows(self, chosen: Selection) -> Rows:
        """Read the rows of a selection."""
        return _load(self, chosen)

    def tests(self, chosen: Selection, tests: Sequence[Mapping[str, Any]]) -> list[Test]:
        """Build tests on a selection."""
        config = self.config(chosen, tests)
        return build_tests(config, self.rows(chosen), lambda path, where: read_text(path, config, where))


@lru_cache(maxsize=4)
def _load(source: Source, chosen: Selection) -> Rows:
    return load(source.config(chosen, [{"sanitizer": "raw"}]))
