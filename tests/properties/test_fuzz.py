"""Whatever a config or hierarchy file holds, it is understood or refused in one line; nothing else happens."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dit_dask.audit.grammar import read_config
from dit_dask.config import document as config
from dit_dask.errors import InputError
from dit_dask.run import test_names as names
from dit_dask.values import hierarchy
from tests.conftest import CONFIG

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)
KEYS = [
    "version",
    "name",
    "data",
    "data.source",
    "data.source.latest",
    "data.storage_options",
    "data.missing",
    "data.limit",
    "data.sample",
    "schema",
    "schema.quasi_identifiers",
    "schema.quasi_identifiers.age",
    "schema.quasi_identifiers.age.kind",
    "schema.sensitive",
    "schema.sensitive.order",
    "tests",
    "tests.0",
    "tests.0.sanitizer",
    "tests.0.sanitizer.k",
    "tests.0.sanitizer.l",
    "tests.0.encoder",
    "tests.0.adversary",
    "tests.0.adversary.params",
    "tests.0.distance",
    "tests.0.engine",
    "tests.0.records",
    "tests.0.samples",
    "gates",
    "output",
    "output.url",
    "cluster",
    "cluster.workers",
    "cluster.stall_minutes",
    "cluster.address",
    "seed",
]


def understood(text: bytes, *overrides: str) -> config.Config | None:
    """Read a config file as the command does; return None where it is refused, in one line."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "audit.yaml"
        path.write_bytes(text)
        try:
            checked = read_config(str(path), overrides)
            names(checked)
        except InputError as error:
            one_line(error)
            return None
        return checked


def one_line(error: InputError) -> None:
    assert str(error)
    assert "\n" not in str(error)


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
@example(b"a: &a [*a]")
@example(b"? [1, 2]\n: 3")
@example(b"version: 1\nversion: 1")
@example(b"!!python/object/apply:os.system ['true']")
@example(b"x: " + b"[" * 2000)
@example(b"\xff\xfe")
@example(b"version: 2026-13-45")
@example(b"version: !!timestamp x")
@example(b"version: !!int ''")
@settings(deadline=None)
def test_any_bytes_are_a_config_or_refused(text: bytes) -> None:
    assert understood(text) is None


@given(VALUES)
@settings(deadline=None)
def test_any_document_is_a_config_or_refused(document: object) -> None:
    assert understood(yaml.safe_dump(document).encode()) is None


@given(st.sampled_from(KEYS), VALUES)
@settings(deadline=None, max_examples=200)
def test_any_value_at_any_key_is_understood_or_refused(key: str, value: object) -> None:
    text = yaml.safe_dump(value, default_flow_style=True).removesuffix("\n...\n").strip()
    understood(CONFIG.encode(), f"{key}={text}")


@given(st.text(max_size=60))
@settings(deadline=None)
def test_any_override_is_understood_or_refused(override: str) -> None:
    understood(CONFIG.encode(), override)


def test_the_config_that_is_mutated_is_itself_a_good_one() -> None:
    assert understood(CONFIG.encode()) is not None


@given(st.text(max_size=300) | st.lists(st.text("ab*; \n\"'", max_size=12)).map("\n".join))
@example('a;"b\n')
@example("a;b;*\nb;a;*")
@example("a\x00;*")
@settings(deadline=None)
def test_any_text_is_a_hierarchy_or_refused(text: str) -> None:
    try:
        tree = hierarchy.parse(text, "tree.csv")
    except InputError as error:
        one_line(error)
        return
    assert len(set(tree.leaves)) == len(tree.leaves)
    assert (tree.low <= tree.high).all()
    assert (tree.low[0], tree.high[0]) == (0, len(tree.leaves) - 1)
    for node in range(1, len(tree.names)):
        parent = tree.parent[node]
        assert tree.low[parent] <= tree.low[node] <= tree.high[node] <= tree.high[parent]


@given(
    st.recursive(
        st.text("abcdef", min_size=1, max_size=3), lambda inner: st.lists(inner, min_size=1, max_size=4), max_leaves=20
    )
)
@settings(deadline=None)
def test_every_tree_is_read_back_as_it_was_written(shape: object) -> None:
    lines: list[str] = []
    leaves: list[str] = []

    def walk(node: object, path: list[str]) -> None:
        if isinstance(node, list):
            for place, child in enumerate(node):
                walk(child, [f"n{len(path)}-{place}-{path[0]}" if isinstance(child, list) else "", *path])
        else:
            leaves.append(f"{node}{len(leaves)}")
            lines.append(";".join([leaves[-1], *(name for name in path if name)]))

    walk(shape if isinstance(shape, list) else [shape], ["*"])
    assert hierarchy.parse("\n".join(lines), "tree.csv").leaves == tuple(leaves)


def test_a_name_without_end_is_refused() -> None:
    with pytest.raises(InputError, match="line 2: not a line of leaf"):
        hierarchy.parse("a;*\n" + "b" * 140_000 + ";*", "tree.csv")


def test_a_refusal_names_its_line() -> None:
    with pytest.raises(InputError, match="line 2"):
        hierarchy.parse("a;*\nb", "tree.csv")
