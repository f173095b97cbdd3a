"""Write constraints-hashed.txt: the packages that a run needs, each with the digest of its file, and no address.

Usage: python tools/write_hashed_constraints.py

The set is what dit_dask and its extra `kubernetes` require, as installed here, in the versions of constraints.txt. The files
are downloaded from the index that pip is configured with, for this platform and this version of Python: run it again for
another one.
"""

from __future__ import annotations

import hashlib
import platform
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

ROOT = Path(__file__).parent.parent
CONSTRAINTS, HASHED = ROOT / "constraints.txt", ROOT / "constraints-hashed.txt"
EXTRAS = ("kubernetes",)  # as in the image


def read_constraints(text: str) -> dict[str, str]:
    """Return versions by normalised name."""
    lines = [line.split(" ")[0].partition("==") for line in text.splitlines() if line and not line.startswith("#")]
    return {canonicalize_name(name): version for name, _, version in lines}


def runtime_set() -> list[str]:
    """Return the names of all packages that a run needs, and of those that these need."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    needed: set[tuple[str, str]] = set()
    waiting = [*project["dependencies"], *(line for extra in EXTRAS for line in project["optional-dependencies"][extra])]
    while waiting:
        requirement = Requirement(waiting.pop())
        name = canonicalize_name(requirement.name)
        for extra in ("", *requirement.extras):
            if (name, extra) not in needed:
                needed.add((name, extra))
                waiting.extend(_applicable(requires(name) or (), extra))
    return sorted({name for name, _ in needed})


def _applicable(lines: Iterable[str], extra: str) -> Iterator[str]:
    """Yield the requirements whose markers hold here for an extra."""
    for line in lines:
        marker = Requirement(line).marker
        if marker is None:
            if not extra:
                yield line
        elif marker.evaluate({"extra": extra}):
            yield line


def download(names: Iterable[str], versions: dict[str, str]) -> dict[str, str]:
    """Return the SHA-256 of the wheel of each package."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["-q", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "--dest", folder]
        wanted = [f"{name}=={versions[name]}" for name in names]
        subprocess.run([sys.executable, "-m", "pip", "download", *options, *wanted], check=True)
        files = sorted(Path(folder).iterdir())
        return {parse_wheel_filename(path.name)[0]: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def main() -> None:
    """Write the file."""
    versions, names = read_constraints(CONSTRAINTS.read_text("utf-8")), runtime_set()
    digests = download(names, versions)
    where = f"{platform.system()} {platform.machine()}, Python {sys.version_info.major}.{sys.version_info.minor}"
    lines = [
        f"# What a run needs, for {where}; written by tools/write_hashed_constraints.py from constraints.txt.",
        "# pip install --require-hashes --only-binary :all: --requirement constraints-hashed.txt && pip install --no-deps .",
        *(f"{name}=={versions[name]} --hash=sha256:{digests[name]}" for name in names),
    ]
    HASHED.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
