"""Ask other tools, and dit_dask, about two tables: a copy of 1,000 training persons, and its columns permuted independently.

python benchmarks/comparison.py

Only what is installed in the environment of this Python is asked; run it in several, because their requirements differ. None of
them is needed by dit_dask. The other 1,000 persons of docs/examples/people.csv are the holdout.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

PEOPLE = Path(__file__).parents[1] / "docs" / "examples" / "people.csv"
KEYS, SECRET = ["age", "sex", "town"], "diagnosis"
Figures = Mapping[str, str]


def ask_anonymeter(training: pd.DataFrame, published: pd.DataFrame, holdout: pd.DataFrame) -> Figures:
    """Inference of the diagnosis from the other columns, 500 attacks."""
    evaluators = importlib.import_module("anonymeter.evaluators")
    attack = evaluators.InferenceEvaluator(
        ori=training, syn=published, control=holdout, aux_cols=KEYS, secret=SECRET, n_attacks=500
    )
    risk = attack.evaluate(n_jobs=1).risk(confidence_level=0.95)
    return {"inference risk": f"{risk.value:.3f} ({risk.ci[0]:.3f} to {risk.ci[1]:.3f})"}


def ask_sdmetrics(training: pd.DataFrame, published: pd.DataFrame, holdout: pd.DataFrame) -> Figures:
    """Protection scores: 1 is best. Categorical disclosure, and distances against random data and against a holdout."""
    metrics = importlib.import_module("sdmetrics.single_table")
    kinds = {"age": "numerical", "sex": "categorical", "town": "categorical", "diagnosis": "categorical"}
    metadata = {"columns": {name: {"sdtype": kind} for name, kind in kinds.items()}}
    disclosure = metrics.DisclosureProtection.compute(
        real_data=training,
        synthetic_data=published,
        known_column_names=KEYS,
        sensitive_column_names=[SECRET],
        continuous_column_names=["age"],
    )
    baseline = metrics.DCRBaselineProtection.compute(
        real_data=training, synthetic_data=published, metadata=metadata, table_name=None
    )
    overfitting = metrics.DCROverfittingProtection.compute(
        real_training_data=training, synthetic_data=published, real_validation_data=holdout, metadata=metadata, table_name=None
    )
    return {
        "DisclosureProtection": f"{disclosure:.3f}",
        "DCRBaselineProtection": f"{baseline:.3f}",
        "DCROverfittingProtection": f"{overfitting:.3f}",
    }


def ask_mostlyai_qa(training: pd.DataFrame, published: pd.DataFrame, holdout: pd.DataFrame) -> Figures:
    """Accuracy, and shares and distances of the closest records."""
    qa = importlib.import_module("mostlyai.qa")
    with tempfile.TemporaryDirectory() as folder:
        _, metrics = qa.report(
            syn_tgt_data=published, trn_tgt_data=training, hol_tgt_data=holdout, report_path=str(Path(folder) / "report.html")
        )
    figures = metrics.model_dump()
    return {
        f"{group}.{name}": f"{figures[group][name]:.3f}"
        for group, names in {
            "accuracy": ["overall"],
            "distances": ["ims_training", "ims_holdout", "dcr_training", "dcr_holdout"],
        }.items()
        for name in names
        if (figures.get(group) or {}).get(name) is not None
    }


def ask_pycanon(training: pd.DataFrame, published: pd.DataFrame, holdout: pd.DataFrame) -> Figures:
    """The properties that the published table has."""
    del training, holdout  # it looks at the published table alone
    anonymity = importlib.import_module("pycanon.anonymity")
    return {
        "k": str(anonymity.k_anonymity(published, KEYS)),
        "l": str(anonymity.l_diversity(published, KEYS, [SECRET])),
        "t": f"{anonymity.t_closeness(published, KEYS, [SECRET]):.3f}",
    }


def ask_dit_dask(training: pd.DataFrame, published: pd.DataFrame, holdout: pd.DataFrame) -> Figures:
    """Whether training was memorised, and inference of the diagnosis from the other columns; nothing is sanitised again."""
    dit = importlib.import_module("dit_dask")
    near = dit.closeness(training, published, holdout)
    guessed = dit.attribute_inference(training, published, holdout, [SECRET])
    return {
        "closeness": "passed" if near.passed else "FAIL" if near.passed is False else "undecided",
        "inference risk": f"{guessed.risk:.3f} ({guessed.interval[0]:.3f} to {guessed.interval[1]:.3f})",
    }


TOOLS: Mapping[str, Callable[[pd.DataFrame, pd.DataFrame, pd.DataFrame], Figures]] = {
    "anonymeter": ask_anonymeter,
    "sdmetrics": ask_sdmetrics,
    "mostlyai-qa": ask_mostlyai_qa,
    "pycanon": ask_pycanon,
    "dit_dask": ask_dit_dask,
}


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def main() -> None:
    """Print one line for each tool, table and figure."""
    random = np.random.default_rng(7)
    np.random.seed(7)  # noqa: NPY002 - some of the tools draw from NumPy's global generator
    order = random.permutation(2000)
    people = pd.read_csv(PEOPLE).iloc[order].reset_index(drop=True)
    training, holdout = people[:1000], people[1000:].reset_index(drop=True)
    permuted: dict[str, Any] = {name: random.permutation(training[name].to_numpy()) for name in people}
    tables = {"a copy": training.copy(), "columns permuted": pd.DataFrame(permuted)}
    out = sys.stdout.write
    for tool, ask in TOOLS.items():
        version = _version(tool)
        if version is None:
            out(f"{tool}: not installed here\n")
            continue
        for name, published in tables.items():
            for figure, value in ask(training, published, holdout).items():
                out(f"{tool} {version} | {name} | {figure} | {value}\n")


if __name__ == "__main__":
    main()
