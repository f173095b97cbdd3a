"""The discrimination rate as a measure: how far key attributes refine a target."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dit_dask.measures.kind import Evidence, Finding, MeasureKind
from dit_dask.measures.tally import Tally, rate
from dit_dask.registry import Context
from dit_dask.spec import Field, Items, Record, Text


@dataclass(frozen=True)
class Discrimination:
    """The rate of some keys over a target column."""

    target: str
    keys: tuple[str, ...]

    def find(self, evidence: Evidence) -> Finding:
        """Count values, keys and pairs."""
        frame = evidence.frame
        keys = frame.groupby(list(self.keys)).ngroup().to_numpy()
        target = frame.groupby(self.target).ngroup().to_numpy()
        pairs = np.unique(np.column_stack([keys, target]), axis=0, return_counts=True)[1]
        found = rate(Tally.of(np.bincount(target)), Tally.of(np.bincount(keys)), Tally.of(pairs))
        return Finding(found.value, [], len(frame))


def _build(parameters: Mapping[str, Any], _context: Context) -> Discrimination:
    return Discrimination(parameters["target"], tuple(parameters["keys"]))


KIND = MeasureKind(
    Record(
        {
            "target": Field(Text(), about="the column whose values are refined"),
            "keys": Field(Items(Text(), 1), about="the columns that an attacker knows"),
        }
    ),
    _build,
    columns=lambda parameters: [parameters["target"], *parameters["keys"]],
)
