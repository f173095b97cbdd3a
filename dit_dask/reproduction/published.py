"""What the papers print: every number with the table, figure or sentence that it comes from.

Only numbers that the text or a table states are here. Figures whose values are nowhere written are drawn from our own results.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Number(NamedTuple):
    """A published number: how it is printed, and where."""

    text: str
    where: str

    @property
    def value(self) -> float:
        """The number."""
        return float(self.text)

    @property
    def rounding(self) -> float:
        """Half a unit of the last printed digit."""
        mantissa, _, exponent = self.text.partition("e")
        decimals = len(mantissa.partition(".")[2])
        return 0.5 * 10.0 ** (int(exponent or 0) - decimals)


K_VALUES = (1, 2, 5, 7, 20, 64, 80)
L_VALUES = (1, 2, 3, 4, 5, 6, 7)


def _row(where: str, names: str, values: tuple[int, ...], printed: str) -> dict[tuple[str, int], Number]:
    return {(names, value): Number(text, where) for value, text in zip(values, printed.split(), strict=True)}


LARGEST: Mapping[str, Mapping[tuple[str, int], Number]] = {
    "adult": {
        **_row("v1 table 1", "k", K_VALUES, "0.32 0.197 0.137 0.126 0.178 0.234 0.235"),
        **_row("v1 table 2", "l", L_VALUES, "0.32 0.21 0.213 0.04 0.028 0.0018 9.8e-05"),
    },
    "internet": {
        **_row("v1 table 3", "k", K_VALUES, "0.2 0.257 0.305 0.398 0.512 0.459 0.424"),
        **_row("v1 table 4", "l", L_VALUES, "0.2 0.15 0.43 0.17 9.6e-05 9.6e-05 9.6e-05"),
    },
}
LIMIT = 10**-2.5  # the distance over which v1 counts records
SHARES_OVER: Mapping[str, Mapping[tuple[str, int], Number]] = {
    "adult": {("k", 5): Number("0.54", "v1 §3.4.2, figure 5"), ("l", 5): Number("0.03", "v1 §3.4.2, figure 5")},
    "internet": {("k", 5): Number("0.35", "v1 §3.4.2, figure 6"), ("l", 5): Number("0.00", "v1 §3.4.2, figure 6")},
}
DISTINCT = {"adult": Number("7960", "v2 table 3"), "internet": Number("7049", "v2 table 3")}
BINNED = {"adult": Number("2952", "v2 §4.5.2"), "internet": Number("2926", "v2 §4.5.2")}
OUTLIERS = {
    "largest d at l = 3": Number("0.21", "v2 §4.5.1"),
    "records over 0.1 at l = 3": Number("1", "v2 §4.5.1"),
    "largest d at l = 2 without the outliers": Number("0.165", "v2 §4.5.1"),
    "largest d at l = 3 without the outliers": Number("0.092", "v2 §4.5.1"),
}
MINUTES = {  # v2 table 4, for one value of the parameter
    ("adult", "k"): Number("60.4", "v2 table 4"),
    ("adult", "l"): Number("76.1", "v2 table 4"),
    ("adult", "epsilon"): Number("341.85", "v2 table 4"),
    ("internet", "k"): Number("47.5", "v2 table 4"),
    ("internet", "l"): Number("50.2", "v2 table 4"),
    ("internet", "epsilon"): Number("263.37", "v2 table 4"),
}
ENCODING_ACCURACY = {
    ("adult", "tf"): Number("0.2280", "v1 appendix A.2, figure 8"),
    ("adult", "quantiles-before-tf"): Number("0.2280", "v1 appendix A.2, figure 8"),
    ("internet", "tf"): Number("0.2530", "v1 appendix A.2, figure 8"),
    ("internet", "quantiles-before-tf"): Number("0.2417", "v1 appendix A.2, figure 8"),
}
ENCODING_FEATURES = {
    ("adult", "tf"): Number("5", "v1 appendix A.2, figure 9"),
    ("adult", "scaling-tf"): Number("5", "v1 appendix A.2, figure 9"),
    ("adult", "quantiles-before-tf"): Number("5", "v1 appendix A.2, figure 9"),
    ("adult", "bounds-tf"): Number("7", "v1 appendix A.2, figure 9"),
    ("adult", "binary-hot-after"): Number("131", "v1 appendix A.2, figure 9"),
    ("internet", "tf"): Number("6", "v1 appendix A.2, figure 9"),
    ("internet", "scaling-tf"): Number("6", "v1 appendix A.2, figure 9"),
    ("internet", "quantiles-before-tf"): Number("6", "v1 appendix A.2, figure 9"),
    ("internet", "bounds-tf"): Number("7", "v1 appendix A.2, figure 9"),
    ("internet", "binary-hot-after"): Number("322", "v1 appendix A.2, figure 9"),
}
ENCODING_MINUTES = {
    ("adult", "quantiles-before-tf"): Number("28.67", "v1 appendix A.2, figure 10"),
    ("adult", "tf"): Number("30.17", "v1 appendix A.2, figure 10"),
    ("adult", "bounds-hot"): Number("52.19", "v1 appendix A.2"),
    ("adult", "binary-hot-after"): Number("84.34", "v1 appendix A.2"),
    ("internet", "quantiles-before-tf"): Number("28.64", "v1 appendix A.2, figure 10"),
    ("internet", "tf"): Number("29.37", "v1 appendix A.2, figure 10"),
    ("internet", "scaling-binary"): Number("65.53", "v1 appendix A.2"),
    ("internet", "binary-hot-after"): Number("112.26", "v1 appendix A.2"),
}
WORKED = (1.0, 1.0, 2 / 3, 1 / 3, 1 / 3)  # v2 table 1
DECK = {
    "SDR of Age over 9 subjects": Number("0.66", "deck, SDR Computation"),
    "identity, 2*": Number("1", "deck, Identity Attack Assessment"),
    "identity, ≥40": Number("0.78", "deck, Identity Attack Assessment"),
    "identity, 3*": Number("0.87", "deck, Identity Attack Assessment"),
    "identity, Age*": Number("0.66", "deck, Identity Attack Assessment"),
    "homogeneity, 3-anonymous, 2*": Number("1", "deck, Homogeneity Attack Assessment"),
    "homogeneity, 3-anonymous, ≥40": Number("0.70", "deck, Homogeneity Attack Assessment"),
    "homogeneity, 3-anonymous, 3*": Number("0.83", "deck, Homogeneity Attack Assessment"),
    "homogeneity, 3-anonymous, Age*": Number("0.52", "deck, Homogeneity Attack Assessment"),
    "homogeneity, 3-diverse, 2*": Number("0.78", "deck, Homogeneity Attack Assessment"),
    "homogeneity, 3-diverse, ≥40": Number("0.78", "deck, Homogeneity Attack Assessment"),
    "homogeneity, 3-diverse, 3*": Number("0.78", "deck, Homogeneity Attack Assessment"),
    "homogeneity, 3-diverse, Age*": Number("0.36", "deck, Homogeneity Attack Assessment"),
}
