"""Where no split changes, the rest of the table is in the classes that it was in."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings

from dit_dask.deciding.splits import find_changed_split
from dit_dask.engines import ReleaseProcedure
from dit_dask.sanitizers.claims import place_records
from dit_dask.values.coarsening import alternatives, change_table
from dit_dask.values.table import Table
from tests.properties.code_tables import procedures, tables

RNG = np.random.default_rng(0)


@settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck), max_examples=100)
@given(tables(40), procedures())
def test_equal_splits_mean_equal_classes(table: Table, procedure: ReleaseProcedure) -> None:
    names = [f"attribute {place}" for place in range(table.codes.shape[1])]
    before = procedure.sanitizer.release(table, RNG)
    for record in range(table.distinct):
        rest = table.without(record)
        after = procedure.sanitizer.release(rest, RNG)
        found = find_changed_split(before.tree, after.tree, table.codes[[record]], names)
        places = place_records(before, rest.codes), place_records(after, rest.codes)
        together = [place[:, None] == place[None, :] for place in places if place is not None]
        if found is None:
            # t-closeness compares with the whole table: a removal may change splits that the record does not come to
            assert np.array_equal(*together) or procedure.sanitizer.predicates.t is not None
        else:
            assert found.level >= 1
            assert found.attribute is not None or found.attribute_without is not None


@settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck), max_examples=100)
@given(tables(40))
def test_a_coarser_table_has_the_same_rows_and_joins_values_only(table: Table) -> None:
    for alternative in alternatives(table):
        changed, index = change_table(table, alternative)
        assert changed.rows == table.rows
        assert np.array_equal(changed.secret[index], table.secret)
        names = [one.name for one in table.schema.quasi_identifiers]
        place = names.index(alternative.attribute)
        others = [position for position in range(len(names)) if position != place]
        kept = others if alternative.change == "dropped" else list(range(len(names)))
        new = changed.codes[index]
        for position, old in enumerate(kept):
            if old != place:
                assert np.array_equal(new[:, position], table.codes[:, old])
            else:  # equal stays equal, and neighbours on a scale stay in order
                order = np.argsort(table.codes[:, old], kind="stable")
                assert (np.diff(new[order, position]) >= 0).all() or table.schema.quasi_identifiers[old].values is None
                pairs = np.unique(np.column_stack([table.codes[:, old], new[:, position]]), axis=0)
                assert len(pairs) == len(np.unique(table.codes[:, old]))
            levels = len(changed.schema.quasi_identifiers[position].levels)
            assert new[:, position].max() < levels
