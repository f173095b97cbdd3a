"""Charts that measures describe and reports draw."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from dit_dask.errors import InputError
from dit_dask.measures.base import BarChart, CurvePanel, CurvePanels
from dit_dask.reporting.charts import BASELINE, COLOURS, NARROW, WIDTH, Choice, Panel, cumulative, draw, over_parameter, scatter

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
    assert keys == []
    assert [path.attrib["stroke"] for path in paths] == list(COLOURS[:2]) * 3  # the legend has a line of each series, too
    assert [texts.count(name) for name in ("dcr", "nndr", "holdout", "synthetic", "2")] == [1, 1, 1, 1, 2]
    assert paths[0].attrib["d"].count("L") == 7


def test_infinite_distances_are_drawn_at_the_right_edge() -> None:
    curve = np.array([0.0, 0.01, np.inf]), np.array([0.25, 0.5, 1.0])
    texts, _, root = drawn(cumulative({"a & b": curve}).svg)
    path, _ = root.iter(f"{SVG}path")
    assert path.attrib["d"].endswith("L744.0,184.0L744.0,16.0L744.0,16.0")
    assert {"a & b", "0.01", "100%"} <= set(texts)


LONG = [f"{place}-" + "mondrian-k5.conditional-frequency.wasserstein-ordered." * 3 for place in range(20)]
LETTER = 7.0  # of 12 pixels


def assert_inside(svg: str) -> None:
    """Every text begins and ends inside of the drawing, if a letter is 7 pixels wide."""
    _, _, root = drawn(svg)
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    for text in root.iter(f"{SVG}text"):
        size = LETTER * len(text.text or "") * float(text.attrib.get("font-size", 12)) / 12
        start = {"start": 0.0, "middle": size / 2, "end": size}[text.attrib["text-anchor"]]
        left = float(text.attrib["x"]) - start
        assert 0 <= left <= left + size <= width, text.text
        assert 10 <= float(text.attrib["y"]) <= height - 3, text.text


@pytest.mark.parametrize("count", [1, 2, 16])
def test_no_name_in_a_drawing_is_clipped(count: int) -> None:
    curve = np.array([0.001, 0.5, 2.0]), np.array([0.2, 0.6, 1.0])
    assert_inside(cumulative(dict.fromkeys(LONG[:count], curve)).svg)
    assert_inside(draw(BarChart({name: [1.0] * count for name in LONG[:count]}, LONG[:count], "Rates")))
    panel = CurvePanel([0.0, 1.0], {name: [0.5, 1.0] for name in LONG[:count]})
    assert_inside(draw(CurvePanels({"distance to the closest record": panel, "nearest by second nearest": panel}, "Closeness")))


def test_a_drawing_is_saved_as_svg_and_as_nothing_else(tmp_path: Path) -> None:
    figure = cumulative({"a": (np.array([0.1]), np.array([1.0]))})
    figure.save(str(tmp_path / "curves.svg"))
    assert (tmp_path / "curves.svg").read_text() == figure.svg
    with pytest.raises(InputError, match=r"save writes SVG: the path must end with .svg; got .*p.png"):
        figure.save(str(tmp_path / "p.png"))
    assert not (tmp_path / "p.png").exists()


def test_what_no_drawer_knows_is_refused() -> None:
    with pytest.raises(TypeError, match="no drawing for str"):
        draw("<svg/>")


def test_a_recommended_value_does_not_look_like_the_limit_of_a_gate() -> None:
    panel = Panel("distance d", {"delta": [(2.0, 0.4), (5.0, 0.2)]})
    svg = over_parameter("k", [panel], is_log=False, marked=5.0).svg
    assert "recommended: k = 5" in svg
    assert 'class="limit"' not in svg


@pytest.mark.parametrize("width", [WIDTH, NARROW])
def test_names_on_a_frontier_end_inside_the_drawing(width: int) -> None:
    names = ["k = 2", "a long name of a release at the right end", "k = 20"]
    choices = [Choice(name, place / 2, 1 - place / 2, is_best=True) for place, name in enumerate(names)]
    root = ET.fromstring(scatter(choices, "loss", "delta", width).svg)
    for text in root.iter(f"{SVG}text"):
        if text.attrib.get("font-size") == "10":
            length = LETTER * len(text.text or "") * (-1 if text.attrib["text-anchor"] == "end" else 1)
            assert 0 <= float(text.attrib["x"]) + length <= width
