"""Text files in many dialects are read back as they were written, or refused with the name of the key to set."""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from dit_dask.audit.grammar import check_config
from dit_dask.errors import InputError
from dit_dask.inputs.load import load
from dit_dask.values.table import Rows

SCHEMA = {
    "quasi_identifiers": {"größe": {"kind": "numeric"}, "count": {"kind": "numeric"}, "town": {"kind": "categorical"}},
    "sensitive": "ill",
}
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # every example is a file: shrinking takes minutes
NAMES = ["größe", "count", "town", "ill"]
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "latin-1", "cp1252")
dialects = st.fixed_dictionaries(
    {
        "separator": st.sampled_from([",", ";", "\t", "|"]),
        "encoding": st.sampled_from(ENCODINGS),
        "decimal": st.sampled_from([".", ","]),
        "quote": st.sampled_from(['"', "'"]),
        "quoting": st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
        "newline": st.sampled_from(["\n", "\r\n"]),
        "packing": st.sampled_from(["", ".gz", ".zst"]),
    }
)
labels = st.text(st.sampled_from(list("abcXYZ öéß ,;|\"'.-19\t\n")), min_size=1, max_size=8).filter(lambda text: text.strip())
rows = st.lists(
    st.tuples(
        st.decimals(-1000, 100_000, places=2), st.integers(0, 9_999), labels, st.sampled_from(["Grippe", "Krebs", "gesünd"])
    ),
    min_size=3,
    max_size=40,
).filter(lambda table: len({row[3] for row in table}) > 1)


def written(table: Sequence[tuple[Any, ...]], dialect: dict[str, Any]) -> bytes:
    """The table as text, by Python's own writer."""
    file = io.StringIO(newline="")
    writer = csv.writer(
        file,
        delimiter=dialect["separator"],
        quotechar=dialect["quote"],
        quoting=dialect["quoting"],
        lineterminator=dialect["newline"],
    )
    writer.writerow(NAMES)
    for size, count, town, ill in table:
        writer.writerow([str(size).replace(".", dialect["decimal"]), count, town, ill])
    content = file.getvalue().encode(dialect["encoding"])
    packings = {".gz": "gzip", ".zst": "zstd"}
    if dialect["packing"]:
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, packings[dialect["packing"]]) as packed:
            packed.write(content)
        content = sink.getvalue().to_pybytes()
    return content


def read_back(content: bytes, dialect: dict[str, Any], told: dict[str, str] | None) -> Rows:
    with tempfile.TemporaryDirectory() as folder:
        name = f"table.csv{dialect['packing']}"
        (Path(folder) / name).write_bytes(content)
        data = {"source": name} | ({} if told is None else {"csv": told})
        document = {"version": 1, "data": data, "schema": SCHEMA, "tests": [{"sanitizer": "raw"}]}
        return load(check_config(document, folder))


def cells(loaded: Rows) -> list[tuple[Any, ...]]:
    """The rows in words, which the codes stand for."""
    table, schema = loaded.table, loaded.table.schema
    columns = [
        [attribute.levels[code] for code in table.codes[loaded.index, place]]
        for place, attribute in enumerate(schema.quasi_identifiers)
    ]
    return list(zip(*columns, [schema.sensitive.levels[code] for code in table.secret[loaded.index]], strict=True))


def expected(table: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [(float(size) + 0.0, count, town, ill) for size, count, town, ill in table]


@settings(max_examples=100, deadline=None, phases=PHASES)
@given(rows, dialects)
def test_a_dialect_that_is_given_is_read_back_exactly(table: list[tuple[Any, ...]], dialect: dict[str, Any]) -> None:
    told = {key: dialect[key] for key in ("separator", "encoding", "decimal", "quote")}
    assert cells(read_back(written(table, dialect), dialect, told)) == expected(table)


@settings(max_examples=200, deadline=None, phases=PHASES)
@given(rows, dialects)
def test_a_dialect_that_is_found_is_right_or_the_error_names_the_key(
    table: list[tuple[Any, ...]], dialect: dict[str, Any]
) -> None:
    try:
        found = cells(read_back(written(table, dialect), dialect, None))
    except InputError as error:
        assert "data.csv" in str(error)  # noqa: PT017 - the other outcome is checked, too
    else:
        assert found == expected(table)
