"""The Dockerfile's steps, built on a base that this machine can make: Debian's own Python instead of the official image."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.unit.test_image_cache import COUNT_COMPILED

pytestmark = pytest.mark.slow


def output(*command: object) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr[-2000:]}"
    return done.stdout


def mirror() -> str:
    """Where this machine gets its Debian packages from."""
    lines = output("apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)").splitlines()
    found = [line.split()[0] for line in lines if re.search(r" (bookworm|stable) main$", line)]
    if not found:
        pytest.skip("no Debian mirror of bookworm in apt's sources")
    return found[0]


def pip_places() -> list[str]:
    """What pip needs to find packages as it does on this machine: its configuration, folders and certificates."""
    words = re.findall(r"(?:file://)?(/[\w./-]+)", output(sys.executable, "-m", "pip", "config", "list"))
    places = {"/etc/pip.conf", "/etc/ssl/certs", "/usr/share/ca-certificates", *words}
    places |= {str(Path(word).parent) for word in words if word.endswith("/simple")}  # an index links to files beside it
    kept = sorted(place for place in places if os.path.exists(place))
    return [place for place in kept if not any(place != other and place.startswith(f"{other}/") for other in kept)]


@pytest.fixture(scope="module")
def buildah(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """buildah with a storage of its own and a base image in it."""
    if not (shutil.which("buildah") and shutil.which("debootstrap")):
        pytest.skip("buildah and debootstrap are not installed")
    if os.geteuid() != 0:
        pytest.skip("a chroot build needs root")
    folder = tmp_path_factory.mktemp("image")
    command = ["buildah", "--root", f"{folder}/root", "--runroot", f"{folder}/run", "--storage-driver", "vfs"]
    output("debootstrap", "--variant=minbase", "--include=python3,python3-venv", "bookworm", folder / "base", mirror())
    container = output(*command, "from", "scratch").strip()
    output(*command, "copy", container, folder / "base", "/")
    output(*command, "commit", container, "dit-base")
    shutil.rmtree(folder / "base")
    yield command
    subprocess.run([*command, "rm", "--all"], capture_output=True, check=False)
    shutil.rmtree(folder, ignore_errors=True)


def test_the_image_runs_dit_as_an_unprivileged_user(buildah: list[str]) -> None:
    mounts = [word for place in pip_places() for word in ("--volume", f"{place}:{place}:ro")]
    output(
        *buildah, "build", "--isolation", "chroot", "--build-arg", "BASE=localhost/dit-base", *mounts, "--format", "docker",
        "--ignorefile", ROOT / "deploy" / "Dockerfile.dockerignore", "--file", ROOT / "deploy" / "Dockerfile",
        "--tag", "dit", ROOT,
    )  # fmt: skip
    container = output(*buildah, "from", "dit").strip()

    def run(*words: str) -> str:
        return output(*buildah, "run", "--isolation", "chroot", container, "--", *words).strip()

    assert re.fullmatch(r"dit \d+\.\d+\.\d+", run("dit", "--version"))
    assert run("id", "-u") == "10001"
    assert run("dask", "scheduler", "--version").startswith("dask")
    assert "DaskJob" in run("dit", "launch", "-h")
    assert run("python", "-c", "import kr8s, cryptography, numba; print('ok')") == "ok"
    healthy = output(*buildah, "inspect", "--type", "image", "--format", "{{.Docker.Config.Healthcheck.Test}}", "dit")
    assert healthy.strip() == "[CMD dit --version]"
    assert run("sh", "-c", "test ! -w /opt/dit && echo read-only") == "read-only"
    assert run("python", "-c", COUNT_COMPILED, "demo", "--out", "/scratch/runs", "--quiet").splitlines()[-1] == "0"
