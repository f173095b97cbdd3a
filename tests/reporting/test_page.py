"""The report as text: order, policy, names that try to be markup, what may not be in it."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from dit_dask.cli import main
from dit_dask.reporting.charts import canvas
from tests.reporting.runs import HOSTILE, finished_run

VOID = {"meta", "br", "img", "link", "input", "hr"}


class Page(HTMLParser):
    """Collects tags, and checks that they are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def text(hostile_run: Path) -> str:
    return (hostile_run / "report.html").read_text("utf-8")


def test_sections_come_in_the_order_of_a_decision(text: str) -> None:
    order = re.findall(r'<section id="([a-z-]+)"', text)
    expected = ["verdict", "audited", "scale", "tail", "parameter", "adversaries", "persons", "measures", "figures", "method"]
    assert [name for name in order if name in expected] == expected
    assert "FAIL." in text
    assert "5-anonymity (Mondrian, strict)" in text
    assert "dit explain" in text
    assert len(text) < 3_000_000


def test_names_stay_text_and_the_page_is_well_formed(text: str) -> None:
    page = Page(text)
    tags = [tag for tag, _ in page.tags]
    assert tags.count("script") == 1
    assert "img" not in tags
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on") or name == "style"]
    assert HOSTILE[2] not in text
    assert "\u202e" not in text


def test_the_policy_allows_this_script_and_this_style_only(text: str) -> None:
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', text)
    digests = {
        f"sha256-{base64.b64encode(hashlib.sha256(found.encode()).digest()).decode()}"
        for found in (*re.findall(r"<style>(.*?)</style>", text, re.S), *re.findall(r"<script[^>]*>(.*?)</script>", text, re.S))
    }
    allowed = policy.replace("&#39;", "'")
    assert {f"'{digest}'" for digest in digests} == set(re.findall(r"'sha256-[^']+'", allowed))
    assert "default-src 'none'" in allowed
    assert "unsafe" not in allowed
    assert not re.search(r'(?:src|href)="(?!#)', text)
    assert "url(" not in text


def test_every_table_has_headers_and_every_chart_words_and_numbers(text: str) -> None:
    page = Page(text)
    charts = [attributes for tag, attributes in page.tags if tag == "svg"]
    assert len(charts) == 2 * text.count("<figure>") > 0
    assert all(attributes.get("aria-label") for attributes in charts)
    assert text.count("<details>") == text.count("<figure>")
    assert text.count("<table>") == text.count("<caption>") == text.count("<thead>")
    assert [tag for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)][:2] == ["h1", "h2"]


def test_a_shared_report_has_no_position_and_a_private_one_has(hostile_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "row in the source" not in (hostile_run / "report.html").read_text("utf-8")
    assert main(["report", str(hostile_run), "--private"]) == 0
    private = Path(capsys.readouterr().out.strip())
    assert "row in the source" in private.read_text("utf-8")
    assert private.stat().st_mode & 0o077 == 0
    text = private.read_text("utf-8")
    assert "class with them: " in text  # why, for the test with the largest delta
    assert "one level coarser: " in text
    assert "dit explain " in text  # and how to ask about the other tests
    private.unlink()


def test_a_private_report_is_written_without_the_table_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = finished_run(tmp_path, tests=[{"sanitizer": {"name": "mondrian", "k": 5}}], measures=[], controls=False)
    (tmp_path / "people.csv").unlink()
    capsys.readouterr()
    assert main(["report", str(run), "--private"]) == 0
    captured = capsys.readouterr()
    assert "the persons at most risk are not explained: " in captured.err
    text = (run / "report-private.html").read_text("utf-8")
    assert "row in the source" in text
    assert f"dit explain {run.name} --test mondrian-k5" in text


def luminance(colour: str) -> float:
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4 for channel in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def test_colours_have_the_contrast_of_wcag_aa(text: str) -> None:
    themes = [dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block)) for block in re.findall(r":root \{(.*?)\}", text, re.S)]
    assert len(themes) == 2
    for theme, series in zip(themes, (canvas.COLOURS, canvas.DARK_COLOURS), strict=True):
        for name in ("ink", "soft", "good", "bad", "open", "link"):
            assert contrast(theme[name], theme["page"]) >= 4.5, name
            assert contrast(theme[name], theme["panel"]) >= 4.5, name
        assert min(contrast(one, theme["page"]) for one in series) >= 3
        assert contrast(theme["base"], theme["page"]) >= 3
