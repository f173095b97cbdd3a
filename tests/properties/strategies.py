"""Random tables of people: ties, duplicates, constant columns, hierarchies of every shape, rare secrets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from hypothesis import strategies as st

from tests.oracles import reference


@dataclass(frozen=True)
class People:
    """A table in the words of the package and in those of the reference."""

    frame: pd.DataFrame
    schema: dict[str, Any]
    hierarchies: dict[str, str]
    attributes: tuple[reference.Numeric | reference.Tree, ...]

    @property
    def records(self) -> list[tuple[Any, ...]]:
        """The quasi-identifiers of each row."""
        return list(self.frame.drop(columns="secret").itertuples(index=False, name=None))

    @property
    def secrets(self) -> list[str]:
        """The secret of each row."""
        return self.frame["secret"].tolist()

    def schema_in(self, folder: Path) -> dict[str, Any]:
        """The schema, with its hierarchies written to a folder."""
        for name, text in self.hierarchies.items():
            (folder / name).write_text(text)
        return self.schema


@st.composite
def trees(draw: st.DrawFn, name: str) -> tuple[tuple[str, ...], ...]:
    """Paths leaf, …, root of an unbalanced tree; chains of single children occur."""
    paths: list[tuple[str, ...]] = []

    def grow(above: tuple[str, ...], depth: int) -> None:
        for number in range(draw(st.integers(1, 3))):
            here = f"{above[0]}{number}"
            if depth > 0 and draw(st.booleans()):
                grow((here, *above), depth - 1)
            else:
                paths.append((here, *above))

    grow((name,), draw(st.integers(0, 4)))
    return tuple(paths)


@st.composite
def people(draw: st.DrawFn, most_rows: int = 40, least_rows: int = 9) -> People:
    """A table of 1 to 5 attributes whose rows often repeat."""
    rows = draw(st.integers(least_rows, most_rows))
    columns: dict[str, list[Any]] = {}
    described: dict[str, Any] = {}
    hierarchies: dict[str, str] = {}
    attributes: list[reference.Numeric | reference.Tree] = []
    for number in range(draw(st.integers(1, 5))):
        name = f"q{number}"
        if draw(st.booleans()):
            highest = draw(st.sampled_from([0, 1, 3, 10, 1000]))
            columns[name] = draw(st.lists(st.integers(0, highest), min_size=rows, max_size=rows))
            described[name] = {"kind": "numeric"}
            attributes.append(reference.Numeric(tuple(columns[name])))
        else:
            paths = draw(trees(f"t{number}_"))
            columns[name] = draw(st.lists(st.sampled_from([path[0] for path in paths]), min_size=rows, max_size=rows))
            hierarchies[f"{name}.csv"] = "".join(";".join(path) + "\n" for path in paths)
            described[name] = {"kind": "categorical", "hierarchy": f"{name}.csv"}
            attributes.append(reference.Tree(paths))
    secrets = draw(st.lists(st.sampled_from("aaaabbbccd"), min_size=rows, max_size=rows))
    secrets[:2] = ["a", "b"]  # a constant secret is an input error, tested elsewhere
    frame = pd.DataFrame(columns | {"secret": secrets})
    return People(frame, {"quasi_identifiers": described, "sensitive": "secret"}, hierarchies, tuple(attributes))


sanitizers = st.one_of(
    st.fixed_dictionaries({"k": st.integers(2, 8), "variant": st.sampled_from(["strict", "basic"])}),
    st.fixed_dictionaries({"l": st.integers(2, 4), "tighten": st.booleans()}),
)
