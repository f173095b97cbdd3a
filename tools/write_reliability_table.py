"""Run the faults of tests/cluster and write what they saw into docs/reliability.md.

Usage: python tools/write_reliability_table.py   (as root, so that nothing is skipped; some minutes)
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reliability.md"
FAULTS = ("tests/cluster/test_faults.py", "tests/cluster/test_reading.py")
BEGIN, END = "<!-- faults: written by tools/write_reliability_table.py -->", "<!-- end of faults -->"


def main() -> int:
    """Return pytest's exit code; the table is written also where a test failed, and says so."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "faults.xml"
        command = [sys.executable, "-m", "pytest", "-q", *FAULTS, *sys.argv[1:]]
        command += ["-o", "junit_family=xunit1", f"--junitxml={report}"]
        done = subprocess.run(command, cwd=ROOT, check=False)
        lines = ["| fault | what was seen | same bytes as the undisturbed run | seconds |", "|---|---|---|---|"]
        for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 - what pytest just wrote
            told = {one.get("name"): one.get("value") for one in case.iter("property")}
            skipped = case.find("skipped")
            if skipped is not None:
                lines.append(f"| {case.get('name')} | not run: {skipped.get('message')} | – | – |")
            elif "fault" in told:
                lines.append(f"| {told['fault']} | {told['seen']} | yes | {float(case.get('time', 0)):.0f} |")
            elif case.find("failure") is not None or case.find("error") is not None:
                lines.append(f"| {case.get('name')} | **failed** | no | {float(case.get('time', 0)):.0f} |")
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(before + BEGIN + "\n\n" + "\n".join(lines) + "\n\n" + END + after, "utf-8")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
