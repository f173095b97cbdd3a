"""Every published value is written so that our own reader takes it for what it is."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dit_dask.releasing.labels import label_values
from dit_dask.releasing.sanitized import tabulate
from dit_dask.sanitizers.external.release_reader import ReleaseReader
from dit_dask.sanitizers.properties import find_properties, group_counts
from dit_dask.values.hierarchy import flat
from dit_dask.values.release import Release, Sets
from dit_dask.values.schema import Attribute, Schema, Secret
from dit_dask.values.table import Rows, Table
from tests.properties.code_tables import procedures, tables


def rows_of(table: Table) -> Rows:
    index = np.repeat(np.arange(table.distinct), table.weights)
    return Rows(table, index, len(index), 0, table.weights, source_row=np.arange(len(index)))


@settings(max_examples=40)
@given(tables(), procedures())
def test_a_written_release_is_read_back_with_the_same_classes(table: Table, procedure) -> None:
    names = [f"q{place}" for place in range(len(table.schema.quasi_identifiers))]
    renamed = [
        Attribute(name, one.kind, one.levels, one.values, one.hierarchy, one.unit)
        for name, one in zip(names, table.schema.quasi_identifiers, strict=True)
    ]
    table = Table(Schema(tuple(renamed), table.schema.sensitive), table.codes, table.secret, table.weights)
    release = procedure.publish(table)
    rows = rows_of(table)
    frame = tabulate(release, rows, None).frame()
    assume(not (frame[names] == "*").all(axis=1).any() or (frame[names] == "*").all(axis=None))
    found = ReleaseReader(table.schema, {})(frame)
    assert (found.rows, found.nearest) == (rows.used, 0)
    assert sorted(group_counts(found.release).tolist()) == sorted(group_counts(release).tolist())
    sizes = frame.groupby(names).size()
    properties = find_properties(group_counts(release))
    assert (properties.k, properties.classes) == (sizes.min(), len(sizes))
    assert properties.l == frame.groupby(names)["secret"].nunique().min()
    shares = frame.groupby(names)["secret"].value_counts(normalize=True).unstack(fill_value=0.0)
    whole = frame["secret"].value_counts(normalize=True).reindex(shares.columns)
    assert abs(properties.t - (shares - whole).abs().sum(axis=1).max() / 2) < 1e-12


LABELS = st.lists(
    st.text("ab,;~{}'\"\\* 1", min_size=1, max_size=4).filter(lambda text: text.strip().strip("*")),
    min_size=2,
    max_size=6,
    unique_by=lambda text: text.strip().casefold(),
)


@given(LABELS, st.data())
def test_sets_of_any_labels_are_named_or_refused_but_never_misread(labels: list[str], data: st.DataObject) -> None:
    from dit_dask.errors import InputError
    from dit_dask.sanitizers.external.published_values import Reader

    chosen = data.draw(st.lists(st.booleans(), min_size=len(labels), max_size=len(labels)).filter(any))
    tree = flat(labels)
    attribute = Attribute("q", "categorical", tree.leaves, None, tree)
    schema = Schema((attribute,), Secret("s", ("x", "y")))
    release = Release(schema, Sets(np.zeros((1, 1), np.int32), (np.array([chosen]),)), np.array([[1, 1]]))
    try:
        (text,) = label_values(release, 0).labels
    except InputError:
        return
    assert Reader(attribute)(text).covers.tolist() == chosen


def test_dates_and_ordered_labels_are_readable() -> None:
    from tests.audits import loaded

    frame = pd.DataFrame(
        {
            "birth": ["2001-01-05", "2001-03-09", "2002-01-01", "2002-07-07"],
            "often": ["never", "often", "always", "never"],
            "s": list("xyxy"),
        }
    )
    order = ["never", "often", "always"]
    schema = {"quasi_identifiers": {"birth": {"kind": "date"}, "often": {"kind": "ordinal", "order": order}}, "sensitive": "s"}
    table = loaded(frame, schema).table
    sets = (np.array([[True, True, False, False], [False, False, True, False]]), np.array([[True, True, False], [True] * 3]))
    release = Release(table.schema, Sets(np.array([[0, 0], [1, 1]], np.int32), sets), np.array([[1, 1], [1, 1]]))
    assert label_values(release, 0).labels == ["[2001-01-05, 2001-03-09]", "2002-01-01"]
    assert label_values(release, 1).labels == ["{never, often}", "{never, often, always}"]
