from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest

from dit_dask.audit.plan import TestPlan, cut, first_rows, make, memory_needed
from dit_dask.errors import InputError
from dit_dask.inputs import datasets
from tests.audits import loaded, points

SCHEMA = {"quasi_identifiers": {"age": {"kind": "numeric"}, "sex": {"kind": "categorical"}}, "sensitive": "occupation"}
ROWS = loaded(datasets.census(300), SCHEMA)


@pytest.mark.parametrize("size", [1, 3, 50, 10_000])
def test_parts_cover_all_rows_and_begin_at_new_records(size: int) -> None:
    (point,) = points(ROWS, SCHEMA, [{"sanitizer": "raw"}])
    starts = first_rows(point)
    edges, first = cut(starts, size, 300), np.isin(np.arange(300), starts)
    assert (edges[0], edges[-1]) == (0, 300)
    assert (np.diff(edges) > 0).all()
    assert first[edges[:-1]].all()
    owned = [first[a:b].sum() for a, b in pairwise(edges)]
    assert max(owned) - min(owned) <= 1


def test_first_rows_are_counted_among_the_audited_ones_only() -> None:
    (point,) = points(ROWS, SCHEMA, [{"sanitizer": "raw", "records": {"sample": 80, "seed": 1}}])
    assert len(first_rows(point)) == len(np.unique(ROWS.index[point.audited]))


def test_a_plan_survives_the_manifest() -> None:
    tests = points(ROWS, SCHEMA, [{"sanitizer": {"name": "mondrian", "k": 3}, "engine": ["exact", "brute-force"]}])
    for one in make(tests, workers=2).values():
        assert TestPlan.read(json.loads(json.dumps(one.document()))).document() == one.document()
        assert one.distinct == ROWS.table.distinct
        assert 1 <= one.tasks <= one.distinct
        assert one.seconds == pytest.approx(one.tasks * one.cost.task + one.distinct * one.cost.record)
        assert one.seconds > 0


def test_what_cannot_fit_is_refused_with_both_numbers() -> None:
    assert memory_needed(None) > 20_000_000  # this process holds NumPy, at the least
    with pytest.raises(InputError, match=r"a worker needs about [\d,]+ MB and has 1 MB"):
        memory_needed(1_000_000)
