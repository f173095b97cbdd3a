"""Look for known vulnerabilities in the installed packages; what could not be looked up is NOT CHECKED, and said so.

Usage: python tools/audit_dependencies.py [--require]

Exit codes: 0 nothing known, or nothing checked; 1 a vulnerable package; 2 nothing checked although --require was given.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

SECONDS = 90
SHOWN = 5
COMMAND = (
    *(sys.executable, "-m", "pip_audit", "--skip-editable", "--progress-spinner", "off"),
    *("--timeout", "10", "--format", "json"),
)


def main(words: Sequence[str]) -> int:
    """Return 1 if a package is known to be vulnerable."""
    try:
        done = subprocess.run(COMMAND, capture_output=True, text=True, timeout=SECONDS, check=False)
        found = json.loads(done.stdout)["dependencies"]
    except subprocess.TimeoutExpired:
        return _report_unchecked(f"the vulnerability database did not answer within {SECONDS} s", words)
    except ValueError:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        return _report_unchecked(f"the vulnerability database cannot be reached: {last[:120]}", words)
    checked = [package for package in found if "vulns" in package]
    if not checked:
        return _report_unchecked(f"none of {len(found)} packages could be looked up", words)
    vulnerable = [package for package in checked if package["vulns"]]
    for package in vulnerable:
        known = ", ".join(f"{item['id']} (fixed in {', '.join(item['fix_versions']) or 'none'})" for item in package["vulns"])
        print(f"{package['name']} {package['version']}: {known}")
    print(f"dependency audit: {len(checked)} of {len(found)} packages looked up, {len(vulnerable)} vulnerable")
    unchecked = [package["name"] for package in found if "vulns" not in package]
    if unchecked:
        more = f" and {len(unchecked) - SHOWN} more" if len(unchecked) > SHOWN else ""
        print(f"dependency audit: NOT CHECKED: {', '.join(unchecked[:SHOWN])}{more}")
    return 1 if vulnerable else 0


def _report_unchecked(why: str, words: Sequence[str]) -> int:
    print(f"dependency audit: NOT CHECKED: {why}; this says nothing about the packages (--require makes it a failure)")
    return 2 if "--require" in words else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
