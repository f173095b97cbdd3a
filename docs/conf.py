"""How Sphinx builds the site: `make docs`. Commands, keys and functions are read from the code when it is built."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

project = "dit_dask"
author = "the dit_dask maintainers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
html_theme = "furo"
html_title = "dit_dask"
html_static_path: list[str] = []
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "dollarmath"]
exclude_patterns = ["examples"]
napoleon_google_docstring = False
napoleon_use_ivar = True
autodoc_typehints = "none"
autodoc_preserve_defaults = True
suppress_warnings = ["misc.highlighting_failure"]  # examples show an ellipsis where readers put their own values

FOLDER = Path(__file__).parent
GENERATED = FOLDER / "reference"
OUTSIDE = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)#]+)(?:#[^)]*)?\)")


def setup(app: Any) -> None:
    """Write the generated pages first, and name files of the repository that are no pages."""
    app.connect("builder-inited", lambda _app: write_reference())
    app.connect("source-read", name_files)


def name_files(_app: Any, page: str, source: list[str]) -> None:
    """A link to a file outside docs/ becomes its path: the site may be served without the repository."""

    def path(link: re.Match[str]) -> str:
        target = (FOLDER / page).parent / link[2]
        inside = os.path.relpath(os.path.normpath(target), FOLDER)
        if not target.exists():
            raise FileNotFoundError(f"docs/{page}.md links to {link[2]}, which does not exist")
        if inside.startswith(".."):
            shown = os.path.relpath(os.path.normpath(target), FOLDER.parent)
            return f"`{shown}`" if link[1].strip("`") == shown else f"{link[1]} (`{shown}`)"
        return link[0]

    source[0] = OUTSIDE.sub(path, source[0])


def write_reference() -> None:
    """Write the pages that are made from the code."""
    GENERATED.mkdir(exist_ok=True)
    (GENERATED / "commands.md").write_text(commands_page(), "utf-8")
    (GENERATED / "keys.md").write_text(keys_page(), "utf-8")


def commands_page() -> str:
    """What --help says of every command."""
    from dit_dask.cli import main

    def help_of(*words: str) -> str:
        os.environ["COLUMNS"] = "100"
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
            main([*words, "--help"])
        return shown.getvalue()

    first = help_of()
    names = re.findall(r"^    ([a-z][a-z-]+)(?=\s|$)", first, re.MULTILINE)
    parts = ["# Commands\n\nMade from `--help` when this page was built.\n", f"```text\n{first}```\n"]
    parts += [f"## dit {name}\n\n```text\n{help_of(name)}```\n" for name in names]
    return "\n".join(parts)


def keys_page() -> str:
    """Every key of a config, from the constraints that check it."""
    schema = json.loads((files("dit_dask") / "config.schema.json").read_text("utf-8"))
    lines = [
        "# Keys of a config",
        "",
        "Made from the constraints that check a config. [Configuration](../configuration.md) explains them.",
    ]
    for name, shape in schema["properties"].items():
        lines += ["", f"## {name}", "", shape.get("description", ""), *_table(shape)]
    return "\n".join(lines) + "\n"


def _table(shape: Mapping[str, Any]) -> list[str]:
    rows = list(dict.fromkeys(_rows("", shape)))
    return ["", "| key | takes | meaning |", "|---|---|---|", *rows] if rows else []


def _rows(prefix: str, shape: Mapping[str, Any]) -> list[str]:
    """One row for each key below a shape; alternatives and items of lists are looked through."""
    found = []
    for inner in [*shape.get("anyOf", []), *([shape["items"]] if isinstance(shape.get("items"), dict) else [])]:
        named = inner.get("properties", {}).get("name", {}).get("const")
        found += _rows(f"{prefix}[{named}]." if named else prefix, inner)
    for key, value in shape.get("properties", {}).items():
        meaning = str(value.get("description", "")).replace("|", "\\|")
        if key != "name" or "const" not in value:
            found.append(f"| `{prefix}{key}` | {_kind(value)} | {meaning} |")
        found += _rows(f"{prefix}{key}.", value)
    return found


def _kind(shape: Mapping[str, Any]) -> str:
    if "enum" in shape:
        return ", ".join(f"`{value}`" for value in shape["enum"]).replace("\t", "\\t").replace("|", "\\|")
    if "anyOf" in shape:
        return " or ".join(dict.fromkeys(_kind(one) for one in shape["anyOf"]))
    limits = [f"{word} {shape[key]}" for key, word in (("minimum", ">="), ("exclusiveMinimum", ">")) if key in shape]
    kind = shape.get("type", f"`{shape['const']}`" if "const" in shape else "anything")
    return " ".join([str(kind), *limits])
