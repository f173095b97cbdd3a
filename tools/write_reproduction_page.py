"""Writes docs/reproduction.md and its pictures from the folders that `dit reproduce` wrote.

python tools/write_reproduction_page.py FOLDER [--date YYYY-MM-DD]      FOLDER has v1, v2, encodings, deck, anita, classifiers
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from dit_dask.reproduction.report import render  # noqa: E402
from dit_dask.reproduction.run import NEEDS  # noqa: E402

PACKAGES = ("dit_dask", "numpy", "scikit-learn", "numba")
HEAD = """# The papers, reproduced

Written by `python tools/write_reproduction_page.py`, from what these commands compute; do not edit.

    dit reproduce v1            # or v2, encodings, deck, anita, classifiers
    dit reproduce v1 --quick    # two random samples of Adult instead of ten, and a short search
    dit reproduce v1 --data FOLDER --out URL

Each command writes tables (CSV, JSON), charts (SVG) and a page into its output folder. Finished pieces are kept in `pieces/`,
so a command that was interrupted goes on where it stopped. An output folder of another version, or of another reproduction, is
refused. The data are looked for in `--data`, in the folder DIT_DATA, in the cache, and are downloaded if they are in none of
them; the authors' hierarchies are used if they are in `hierarchies/` beside the tables, else those of this package.

`ours` is the median over random samples of Adult, `least` and `most` their range; Internet Usage has no sample. The column
"explained by" says what the difference to the published number is due to; *unexplained* numbers are followed by a search over
variants. Published numbers are those that texts and tables state; no figure was measured.
"""


def build(documents: dict[str, dict[str, Any]], about: dict[str, str]) -> str:
    """The page from the numbers of all reproductions."""
    stamp = ", ".join(f"{name} {value}" for name, value in about.items())
    parts = [HEAD, f"Computed with {stamp}. Seconds are processor time on a busy machine of two cores.\n"]
    for name, document in documents.items():
        parts.append(f"## `dit reproduce {name}`: {document['title']}\n\n{render(document, 'reproduction/')}")
    return "\n".join(parts)


def main() -> None:
    """Collect the numbers and the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--date", default=datetime.datetime.now(tz=datetime.UTC).date().isoformat())
    options = parser.parse_args()
    target = ROOT / "docs" / "reproduction"
    target.mkdir(exist_ok=True)
    for old in target.iterdir():
        old.unlink()
    documents = {}
    for name in NEEDS:
        documents[name] = json.loads((options.folder / name / "tables.json").read_text("utf-8"))
        for picture in documents[name]["charts"]:
            (target / f"{picture}.svg").write_bytes((options.folder / name / f"{picture}.svg").read_bytes())
    about = {"date": options.date, "Python": platform.python_version(), **{name: version(name) for name in PACKAGES}}
    numbers = {"about": about, "documents": documents}
    (target / "numbers.json").write_text(json.dumps(numbers, ensure_ascii=False, separators=(",", ":")) + "\n", "utf-8")
    (ROOT / "docs" / "reproduction.md").write_text(build(documents, about), "utf-8")


if __name__ == "__main__":
    main()
