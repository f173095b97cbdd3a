"""Write three tables of the kinds that people have: hospital discharges, a payroll and a survey. All persons are invented.

python tools/make_worked_tables.py FOLDER [--rows N] [--seed S]
"""

from __future__ import annotations

import argparse
import csv
import datetime
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

Row = Sequence[object]
FIRST_DAY = datetime.date(1930, 1, 1)
DIAGNOSES = ("I21.9", "I21.0", "I50.1", "C34.1", "C50.9", "J18.9", "J45.0", "E11.9", "K35.8", "S72.0")
WARDS = ("cardiology", "oncology", "medicine", "surgery")
GRADES = ("E5", "E6", "E9", "E11", "E13")
DEPARTMENTS = ("sales", "research", "production", "administration")
ANSWERS = ("nie", "selten", "manchmal", "oft", "immer")
TOWNS = ("München", "Köln", "Düsseldorf", "Nürnberg", "Lübeck", "Berlin")


def discharges(rng: np.random.Generator, rows: int) -> list[Row]:
    """Several visits a patient: patient_id repeats, birth, sex and postcode with it; visit_id is unique."""
    table: list[Row] = [("visit_id", "patient_id", "birth", "sex", "postcode", "admitted", "ward", "icd", "days")]
    patient = 0
    while len(table) <= rows:
        patient += 1
        birth = FIRST_DAY + datetime.timedelta(days=int(rng.integers(0, 30_000)))
        sex, postcode = rng.choice(["f", "m"]), f"{rng.integers(10, 14):02}{rng.integers(0, 40):03}"
        chronic = rng.choice(DIAGNOSES)
        for _ in range(min(int(rng.geometric(0.35)), rows + 1 - len(table))):
            admitted = datetime.date(2023, 1, 1) + datetime.timedelta(days=int(rng.integers(0, 730)))
            icd = chronic if rng.random() < 0.6 else rng.choice(DIAGNOSES)
            ward = WARDS[1] if icd.startswith("C") else WARDS[0] if icd.startswith("I") else rng.choice(WARDS[2:])
            stay = "?" if rng.random() < 0.02 else int(rng.geometric(0.2))
            visit = 100_000 + len(table)
            table.append((visit, f"P{patient:05}", birth.isoformat(), sex, postcode, admitted.isoformat(), ward, icd, stay))
    return table


def payroll(rng: np.random.Generator, rows: int) -> list[Row]:
    """One row an employee, with a numeric secret that depends on grade and years."""
    table: list[Row] = [("employee_no", "age", "gender", "department", "grade", "hired", "salary")]
    for number in range(rows):
        age, grade = int(rng.integers(19, 66)), int(rng.integers(0, len(GRADES)))
        years = int(rng.integers(0, min(age - 18, 40)))
        salary = 24_000 + 9_000 * grade + 400 * years + int(rng.normal(0, 2_500))
        hired = f"{rng.integers(1, 29):02}/{rng.integers(1, 13):02}/{2024 - years}"
        gender, department = rng.choice(["female", "male"]), rng.choice(DEPARTMENTS)
        table.append((number + 1, age, gender, department, GRADES[grade], hired, max(salary, 20_000)))
    return table


def survey(rng: np.random.Generator, rows: int) -> list[Row]:
    """Ordinal answers, umlauts and decimal commas."""
    table: list[Row] = [("Wohnort", "Alter", "Größe", "Raucher", "Sport", "Schlafstörung")]
    for _ in range(rows):
        sport = int(rng.integers(0, len(ANSWERS)))
        sleep = int(np.clip(4 - sport + rng.integers(-1, 2), 0, 4))
        size = f"{rng.normal(1.72, 0.1):.2f}".replace(".", ",")
        answer = "k.A." if rng.random() < 0.03 else ANSWERS[sport]
        table.append((rng.choice(TOWNS), int(rng.integers(18, 90)), size, rng.choice(["ja", "nein"]), answer, ANSWERS[sleep]))
    return table


TABLES: dict[str, tuple[Callable[[np.random.Generator, int], list[Row]], str, str]] = {
    "discharges.csv": (discharges, ",", "utf-8"),
    "payroll.csv": (payroll, ",", "utf-8"),
    "survey.csv": (survey, ";", "latin-1"),
}


def write_tables(folder: Path, rows: int = 3000, seed: int = 7) -> list[Path]:
    """Write the tables and return their paths; the same seed gives the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for place, (name, (make, separator, encoding)) in enumerate(TABLES.items()):
        paths.append(folder / name)
        with paths[-1].open("w", encoding=encoding, newline="") as file:
            writer = csv.writer(file, delimiter=separator, lineterminator="\n")
            writer.writerows(make(np.random.default_rng([seed, place]), rows))
    return paths


def main() -> None:
    """Parse the arguments and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    for path in write_tables(options.folder, options.rows, options.seed):
        print(path)


if __name__ == "__main__":
    main()
