"""A command-line sanitizer on CSV files, standard library only; its first argument chooses its behaviour."""

from __future__ import annotations

import csv
import os
import sys
import time


def main() -> None:
    """sample_command.py BEHAVIOUR INPUT OUTPUT"""
    behaviour, given, returned = sys.argv[1:4]
    with open(given, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    short = len(rows) < 60
    if behaviour == "hang" and short:
        time.sleep(3600)
    if behaviour == "fail" and short:
        sys.stderr.write("secret-value-of-someone\n")
        sys.exit(3)
    if behaviour == "elsewhere":
        returned = "elsewhere.csv"
    if behaviour == "link":
        with open("real.csv", "w", encoding="utf-8") as file:
            file.write("x\n")
        os.symlink("real.csv", returned)
        return
    if behaviour == "garbage":
        with open(returned, "wb") as binary:
            binary.write(b"\xff\xfe\x00" * 50)
        return
    if behaviour == "flood":
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
