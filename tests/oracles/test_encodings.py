"""Every pair of encodings, from the table to the distance, against plain Python and scikit-learn on labels."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from sklearn.naive_bayes import BernoulliNB

from dit_dask.encoders.names import NAMES
from dit_dask.engines import ENGINES
from tests.audits import loaded, points
from tests.oracles import reference
from tests.oracles.encodings import believe_with, with_quantiles
from tests.properties.strategies import People, people

UNHURRIED = settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
THRESHOLD = {"name": "sklearn.naive_bayes.BernoulliNB", "params": {"binarize": 0.3}}


def test_there_are_24_encodings() -> None:
    assert len(NAMES) == len({*NAMES.values()}) == 24


@pytest.mark.parametrize("name", NAMES)
@settings(UNHURRIED, max_examples=3)
@given(table=people(16))
def test_distances_are_those_of_a_model_trained_on_every_published_row(name: str, table: People) -> None:
    pair = NAMES[name]
    with tempfile.TemporaryDirectory() as folder:
        before, schema = Path.cwd(), table.schema_in(Path(folder))
        os.chdir(folder)
        try:
            rows = loaded(table.frame, schema)
            tests = [
                {
                    "sanitizer": {"name": "mondrian", "k": 2},
                    "encoder": {"continuous": pair[0], "categorical": pair[1]},
                    "adversary": ["bernoulli-nb", THRESHOLD],
                }
            ]
            (test,) = points(rows, schema, tests)
        finally:
            os.chdir(before)
    audited = np.arange(test.rows.table.distinct)
    shifts = ENGINES[test.engine].influence(test.rows.table, audited, test.procedure).shifts
    records, attributes = table.records, list(table.attributes)
    if pair[0] == "quantiles-before":
        records, attributes = with_quantiles(records, attributes)
    for adversary, model in {"bernoulli-nb": BernoulliNB(), "BernoulliNB": BernoulliNB(binarize=0.3)}.items():
        beliefs = reference.leave_one_out(records, table.secrets, attributes, believe_with(pair, model), k=2)
        expected = [reference.emd(*sides) for sides in beliefs]
        # products and sums of logarithms round differently
        np.testing.assert_allclose(shifts[adversary].distance[test.rows.index], expected, atol=1e-9)
