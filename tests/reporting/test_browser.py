"""The report in a real browser: sizes, dark, print, toggles, and names that try to run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dit_dask.cli import main
from tests.reporting.browser import CHROMIUM, Browser
from tests.reporting.runs import hostile_config, measured_run

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")]
WIDTHS = (360, 480, 600, 720, 721, 768, 1024, 1300, 1600)
PICTURES = os.environ.get("DIT_PICTURES")  # a folder where pictures are kept for people to look at

OUTSIDE = """[...document.querySelectorAll("svg.chart")].flatMap(svg => {
  const box = svg.getBoundingClientRect();
  if (!box.width) return [];
  return [...svg.querySelectorAll("text, circle, rect")].filter(part => {
    const own = part.getBoundingClientRect();
    return own.left < box.left - 1 || own.right > box.right + 1 || own.top < box.top - 1 || own.bottom > box.bottom + 1;
  }).map(part => part.tagName + " " + part.textContent);
})"""
SCROLLED = """[...document.querySelectorAll(".scroll")].filter(one => one.scrollWidth > one.clientWidth + 1)
  .map(one => one.getAttribute("aria-label"))"""
SMALL_TEXT = """Math.min(...[...document.querySelectorAll("svg.chart text")].filter(one => one.getBoundingClientRect().width)
  .map(one => parseFloat(getComputedStyle(one).fontSize) * one.getCTM().a))"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def page(hostile_run: Path) -> Path:
    return hostile_run / "report.html"


@pytest.fixture(scope="module")
def measures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return measured_run(tmp_path_factory.mktemp("measures")) / "report.html"


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tuned")
    config = hostile_config(folder, measures=[], tests=[{"sanitizer": {"name": "mondrian", "k": 5}}], gates=["delta <= 1.9"])
    assert main(["tune", str(config), "--values", "2,5,20", "--out", str(folder / "runs")]) in (0, 1)
    (document,) = folder.rglob("tune.json")
    assert main(["report", str(document.parent)]) == 0
    return document.parent / "report.html"


def keep(browser: Browser, name: str) -> None:
    if PICTURES:
        browser.picture(Path(PICTURES) / f"{name}.png")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_cut_off_at_any_width(browser: Browser, page: Path, width: int, scheme: str) -> None:
    browser.media(scheme)
    browser.open(page, width)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate(OUTSIDE) == []
    assert browser.evaluate(SMALL_TEXT) >= 9
    keep(browser, f"{scheme}-{width}")


@pytest.mark.parametrize("width", [360, 1024, 1300, 1600])
def test_tables_of_measures_and_criteria_need_no_scrolling_on_a_desk(browser: Browser, measures: Path, width: int) -> None:
    browser.media()
    browser.open(measures, width)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate(OUTSIDE) == []
    if width >= 1024:
        assert browser.evaluate(SCROLLED) == []
    keep(browser, f"measures-{width}")


@pytest.mark.parametrize("width", [360, 721, 1300])
def test_the_frontier_and_the_recommended_value_are_readable_at_any_width(browser: Browser, tuned: Path, width: int) -> None:
    browser.media()
    browser.open(tuned, width)
    assert browser.evaluate("document.querySelectorAll('#tuned svg').length") == 2
    assert browser.evaluate(OUTSIDE) == []
    assert browser.evaluate(SMALL_TEXT) >= 9
    keep(browser, f"tuned-{width}")


def test_the_console_is_silent_and_nothing_is_asked_for(browser: Browser, page: Path) -> None:
    browser.complaints.clear()
    browser.requests.clear()
    browser.open(page, 1300)
    assert browser.complaints == []
    assert set(browser.requests) == {page.as_uri()}
    assert browser.evaluate("document.title").startswith("Audit ")


def test_dark_pages_are_dark_with_light_letters_and_paper_is_white(browser: Browser, page: Path) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    ink = "getComputedStyle(document.querySelector('svg.chart')).fill"
    browser.media("light")
    browser.open(page, 1024)
    light = browser.evaluate(ground), browser.evaluate(ink)
    browser.media("dark")
    dark = browser.evaluate(ground), browser.evaluate(ink)
    assert light == ("rgb(255, 255, 255)", "rgb(31, 35, 40)")
    assert dark == ("rgb(20, 24, 29)", "rgb(230, 237, 243)")
    browser.media("dark", "print")
    assert browser.evaluate(ground) == "rgb(255, 255, 255)"
    browser.media()


def test_it_prints_with_all_numbers(browser: Browser, page: Path) -> None:
    browser.media()
    browser.open(page, 1024)
    printed = browser.pdf()
    assert printed.startswith(b"%PDF-")
    assert browser.evaluate("[...document.querySelectorAll('details')].every(one => one.open)")
    browser.media(media="print")
    browser.call("Emulation.setDeviceMetricsOverride", width=688, height=900, deviceScaleFactor=1, mobile=False)
    assert browser.evaluate("document.documentElement.scrollWidth") <= 688  # A4 without its margins
    if PICTURES:
        (Path(PICTURES) / "printed.pdf").write_bytes(printed)
    browser.media()


def test_series_can_be_hidden_by_click_and_by_key_and_shown_again(browser: Browser, page: Path) -> None:
    browser.open(page, 1300)
    hidden = "document.querySelectorAll('#tail .wide [data-series=\"1\"].off').length"
    legend = "document.querySelector('#tail .wide .toggle[data-series=\"1\"]')"
    assert browser.evaluate(hidden) == 0
    browser.evaluate(f"{legend}.dispatchEvent(new MouseEvent('click', {{bubbles: true}}))")
    assert browser.evaluate(hidden) >= 2
    assert browser.evaluate(f"{legend}.getAttribute('aria-pressed')") == "false"
    browser.evaluate(f"{legend}.dispatchEvent(new KeyboardEvent('keydown', {{key: 'Enter', bubbles: true}}))")
    assert browser.evaluate(hidden) == 0


def test_pointing_at_a_curve_tells_its_numbers(browser: Browser, page: Path) -> None:
    browser.open(page, 1300)
    browser.evaluate("document.querySelector('#tail .wide').scrollIntoView()")
    place = browser.evaluate(
        "(() => { const box = document.querySelector('#tail .wide .hit').getBoundingClientRect();"
        " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
    )
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=place[0], y=place[1])
    assert "of persons above" in browser.evaluate("document.getElementById('hint').textContent")
    assert browser.evaluate("document.documentElement.scrollWidth") <= 1300


def test_no_name_or_value_runs_as_a_script(browser: Browser, page: Path) -> None:
    browser.complaints.clear()
    browser.open(page, 1024)
    assert browser.evaluate("document.scripts.length") == 1
    assert browser.evaluate("document.images.length") == 0
    assert "alert(1)" in browser.evaluate("document.querySelector('main').textContent")
    assert browser.complaints == []


def test_a_script_that_got_in_would_be_refused(browser: Browser, page: Path, tmp_path: Path) -> None:
    changed = tmp_path / "changed.html"
    changed.write_text(page.read_text("utf-8").replace("</main>", "<script>window.ran = 1</script></main>"), "utf-8")
    browser.complaints.clear()
    browser.open(changed, 1024)
    assert browser.evaluate("window.ran === undefined")
    assert "Content Security Policy" in str(browser.complaints)
