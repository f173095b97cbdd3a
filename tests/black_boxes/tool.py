"""A command-line sanitizer on CSV files, standard library only; its behaviour is chosen by a word."""

from __future__ import annotations

import csv
import os
import sys
import time


def main() -> None:
    """tool.py MOOD INPUT OUTPUT"""
    mood, given, returned = sys.argv[1:4]
    with open(given, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    short = len(rows) < 60
    if mood == "hang" and short:
        time.sleep(3600)
    if mood == "fail" and short:
        sys.stderr.write("secret-value-of-someone\n")
        sys.exit(3)
    if mood == "elsewhere":
        returned = "elsewhere.csv"
    if mood == "link":
        with open("real.csv", "w", encoding="utf-8") as file:
            file.write("x\n")
        os.symlink("real.csv", returned)
        return
    if mood == "garbage":
        with open(returned, "wb") as binary:
            binary.write(b"\xff\xfe\x00" * 50)
        return
    if mood == "flood":
        for _ in range(2000):
            sys.stdout.write("secret-value-of-someone " * 4000)
    for row in rows:
        low = int(row["age"]) // 10 * 10
        row["age"] = f"[{low}, {low + 10})"
        row["town"] = row["town"][0] + "***"
    with open(returned, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


main()
