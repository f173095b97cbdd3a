"""Threshold profiles: named lists of gates with where they come from. None is the default, and none is about inference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Profile:
    """Gates that a body or the literature asks for, and in words which, where, and what they do not say."""

    gates: Sequence[str]
    provenance: str


INFERENCE = " It says nothing about what is inferred without re-identification: set a gate on delta beside it."
CHECKED = " The figure was compared with secondary sources, not with the guidance itself: read it first."
PROFILES = {
    "ema-0.09": Profile(
        ("smallest_class >= 11", "claims hold"),
        "European Medicines Agency, external guidance on the implementation of policy 0070 (publication of clinical data), "
        "EMA/90915/2016: it recommends a threshold of 0.09 for the probability of re-identification. "
        "Taken here as a smallest class of 11 (1/11 = 0.0909, rounded to 0.09), for an attacker who knows that the "
        "person is in the table." + CHECKED + INFERENCE,
    ),
    "health-canada-0.09": Profile(
        ("smallest_class >= 11", "claims hold"),
        "Health Canada, guidance on the public release of clinical information: it recommends a threshold of 0.09 for the "
        "probability of re-identification. Taken here as a smallest class of 11 (1/11 = 0.0909, rounded to 0.09)."
        + CHECKED
        + INFERENCE,
    ),
    "cell-size-5": Profile(
        ("smallest_class >= 5", "claims hold"),
        "A smallest cell of five (a probability of 0.2), a rule of thumb for health data that is released under a contract; "
        "not meant for public releases. No single document is its source." + INFERENCE,
    ),
}
