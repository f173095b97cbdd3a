"""The examples of docs/third-party-tools.md, as data."""

from __future__ import annotations

import re
from typing import Any

import yaml

from tests.conftest import ROOT


def sanitizers() -> list[dict[str, Any]]:
    """Every sanitizer that the page tells people to type."""
    page = (ROOT / "docs" / "third-party-tools.md").read_text("utf-8")
    return [yaml.safe_load(block)["sanitizer"] for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)]


def functions() -> list[dict[str, Any]]:
    """Those that are Python functions."""
    return [sanitizer for sanitizer in sanitizers() if sanitizer["name"] == "python"]


def argv(program: str) -> list[str]:
    """The argument list of the one command that calls a program."""
    (found,) = [entry["argv"] for entry in sanitizers() if entry["name"] == "command" and entry["argv"][0].endswith(program)]
    return found


def python_example() -> str:
    """The source of the user's own function."""
    page = (ROOT / "docs" / "third-party-tools.md").read_text("utf-8")
    (source,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    return source
