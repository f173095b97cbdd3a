"""Writes members.csv, a made-up table, and release.csv: bands of ten years and postcodes cut to two digits, made by hand.

Usage: python make_tables.py FOLDER
"""

from __future__ import annotations

import random
import sys
from pathlib import Path


def write_tables(folder: Path, rows: int = 500) -> None:
    """Write both tables; the same rows every time."""
    draw = random.Random(11)  # noqa: S311 - made-up people
    original, release = ["member,age,postcode,plan"], ["member,age,postcode,plan"]
    for member in range(rows):
        age, postcode = draw.randint(18, 79), f"{draw.choice('123')}{draw.choice('01')}{draw.randint(0, 99):02d}"
        plan = draw.choices(("basic", "family", "gold"), (6, 3, 1))[0]
        low = age // 10 * 10
        original.append(f"m{member},{age},{postcode},{plan}")
        release.append(f"m{member},{low}-{low + 9},{postcode[:2]}**,{plan}")
    for name, lines in {"members.csv": original, "release.csv": release}.items():
        (folder / name).write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    write_tables(Path(sys.argv[1]))
