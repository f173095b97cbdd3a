"""Charts that measures describe and reports draw."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from dit_dask.measures.base import BarChart, CurvePanel, CurvePanels
from dit_dask.reporting.charts import BASELINE, COLOURS, cumulative, draw

SVG = "{http://www.w3.org/2000/svg}"


def drawn(svg: str) -> tuple[list[str], list[ET.Element], ET.Element]:
    root = ET.fromstring(svg)
    return [text.text or "" for text in root.iter(f"{SVG}text")], list(root.iter(f"{SVG}rect")), root


def test_a_bar_is_as_long_as_its_rate_and_nothing_is_drawn_where_none_applies() -> None:
    chart = BarChart({"age": [0.5, None], "<b>": [1.0, 0.25]}, ["original", "k=5"], "Rates & more")
    texts, rectangles, root = drawn(draw(chart))
    bars, legend = rectangles[:3], rectangles[3:]
    widths = [float(bar.attrib["width"]) for bar in bars]
    assert widths == pytest.approx([0.5 * widths[1], widths[1], 0.25 * widths[1]], abs=0.1)
    assert [bar.attrib["fill"] for bar in bars] == [BASELINE, BASELINE, COLOURS[0]]
    assert [key.attrib["fill"] for key in legend] == [BASELINE, COLOURS[0]]
    assert {"age", "<b>", "original", "k=5", "0.500"} <= set(texts)
    assert root.attrib["aria-label"] == "Rates & more"


def test_one_series_needs_no_legend() -> None:
    texts, rectangles, _ = drawn(draw(BarChart({"age": [0.5]}, ["rate"], "Rates")))
    assert [bar.attrib["fill"] for bar in rectangles] == [COLOURS[0]]
    assert "rate" not in texts


def test_panels_have_a_curve_for_each_series() -> None:
    panel = CurvePanel([0.0, 1.0, 2.0], {"holdout": [0.0, 0.5, 1.0], "synthetic": [0.5, 0.5, 1.0]})
    texts, keys, root = drawn(draw(CurvePanels({"dcr": panel, "nndr": panel}, "Closeness")))
    paths = list(root.iter(f"{SVG}path"))
    assert [path.attrib["stroke"] for path in paths] == [*COLOURS[:2], *COLOURS[:2]]
    assert [key.attrib["fill"] for key in keys] == list(COLOURS[:2])
    assert [texts.count(name) for name in ("dcr", "nndr", "holdout", "synthetic", "2")] == [1, 1, 1, 1, 2]
    assert paths[0].attrib["d"].count("L") == 7


def test_infinite_distances_are_drawn_at_the_right_edge() -> None:
    curve = np.array([0.0, 0.01, np.inf]), np.array([0.25, 0.5, 1.0])
    texts, _, root = drawn(cumulative({"a & b": curve}).svg)
    (path,) = root.iter(f"{SVG}path")
    assert path.attrib["d"].endswith("L744.0,184.0L744.0,16.0L744.0,16.0")
    assert {"a & b", "0.01", "100%"} <= set(texts)


def test_what_no_drawer_knows_is_refused() -> None:
    with pytest.raises(TypeError, match="no drawing for str"):
        draw("<svg/>")
