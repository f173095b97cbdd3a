"""Look for known vulnerabilities in the installed packages; without a network, say so and pass.

Usage: python tools/audit_dependencies.py
"""

from __future__ import annotations

import json
import subprocess
import sys

SECONDS = 90
COMMAND = (
    *(sys.executable, "-m", "pip_audit", "--skip-editable", "--progress-spinner", "off"),
    *("--timeout", "10", "--format", "json"),
)


def main() -> int:
    """Return 1 if a package is known to be vulnerable, else 0."""
    try:
        done = subprocess.run(COMMAND, capture_output=True, text=True, timeout=SECONDS, check=False)
        found = json.loads(done.stdout)["dependencies"]
    except subprocess.TimeoutExpired:
        print(f"dependency audit: no answer within {SECONDS} s; nothing was checked")
        return 0
    except ValueError:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        print(f"dependency audit: the vulnerability database cannot be reached; nothing was checked ({last[:120]})")
        return 0
    checked = [one for one in found if "vulns" in one]
    if not checked:
        print(f"dependency audit: none of {len(found)} packages could be looked up; nothing was checked")
        return 0
    vulnerable = [one for one in checked if one["vulns"]]
    for one in vulnerable:
        known = ", ".join(f"{item['id']} (mended in {', '.join(item['fix_versions']) or 'none'})" for item in one["vulns"])
        print(f"{one['name']} {one['version']}: {known}")
    print(f"dependency audit: {len(checked)} of {len(found)} packages looked up, {len(vulnerable)} vulnerable")
    return 1 if vulnerable else 0


if __name__ == "__main__":
    sys.exit(main())
