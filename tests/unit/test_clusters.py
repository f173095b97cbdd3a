"""What is known about a cluster before anything is asked of it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from dit_dask import cluster
from dit_dask.cluster import address, versions
from dit_dask.config import cluster as cluster_spec
from dit_dask.errors import InputError
from tests.audits import WORKED_SCHEMA, checked

HOST = {"python": "3.11.7.final.0"}
PACKAGES = {name: "1.2.3" for name in versions.RULES if name != "python"}


def side(python: str = "3.11.7", **packages: str | None) -> dict[str, Any]:
    return {
        "host": {"python": f"{python}.final.0"},
        "packages": PACKAGES | {k.replace("_learn", "-learn"): v for k, v in packages.items()},
    }


def test_equal_versions_are_no_skew() -> None:
    assert versions.skew(side(), side(), {"a": side(), "b": side()}) == []


def test_patch_releases_may_differ_where_they_change_no_result() -> None:
    assert versions.skew(side(), side(python="3.11.2"), {"a": side(python="3.11.2", numpy="1.2.9", pandas="1.2.0")}) == []


@pytest.mark.parametrize(
    ("workers", "said"),
    [
        ([side(python="3.12.1")], "python 3.11.7 here, 3.12.1 on a worker"),
        ([side(), side(numpy="1.3.0")], "numpy 1.2.3 here, 1.3.0 on a worker"),
        ([side(dask="1.2.4")], "dask 1.2.3 here, 1.2.4 on a worker"),
        ([side(dit_dask=None)], "dit_dask 1.2.3 here, none on a worker"),
        ([side(scikit_learn="2.0.0"), side(scikit_learn="3.0.0")], "scikit-learn 1.2.3 here, 2.0.0 on a worker"),
    ],
)
def test_a_difference_is_named_once(workers: list[dict[str, Any]], said: str) -> None:
    assert versions.skew(side(), side(), dict(enumerate(workers))) == [said]


def test_a_scheduler_needs_no_data_packages() -> None:
    assert versions.skew(side(), side(pandas=None, dit_dask=None), {"a": side()}) == []
    assert versions.skew(side(), side(distributed="9"), {"a": side()}) == ["distributed 1.2.3 here, 9 on a scheduler"]


@pytest.mark.parametrize(
    ("place", "warned"),
    [
        ("tcp://127.0.0.1:8786", False),
        ("tcp://127.9.9.9:8786", False),
        ("tcp://localhost:8786", False),
        ("tcp://[::1]:8786", False),
        ("tls://scheduler.example.org:8786", False),
        ("tcp://10.0.0.7:8786", True),
        ("tcp://localhost.example.org:8786", True),
        ("tcp://[fe80::1]:8786", True),
    ],
)
def test_plain_tcp_beyond_this_machine_is_warned_about(place: str, warned: bool) -> None:
    said = address.warning(place)
    assert (said is not None) == warned
    if said is not None:
        assert "can run code" in said


@pytest.mark.parametrize(
    ("text", "size"),
    [("2Gi", 2**31), ("512Mi", 2**29), ("1G", 10**9), ("250M", 250_000_000), ("4096", 4096), ("64Ki", 65536), ("1k", 1000)],
)
def test_memory_quantities_are_bytes(text: str, size: int) -> None:
    assert cluster_spec.BYTES.check(text, "x") == text
    assert cluster_spec.memory_bytes(text) == size


@pytest.mark.parametrize("text", ["0", "2GB", "-1Gi", "1.5Gi", "Gi", 2])
def test_other_quantities_are_refused(text: object) -> None:
    with pytest.raises(InputError, match="a Kubernetes memory quantity such as 2Gi"):
        cluster_spec.BYTES.check(text, "cluster.kubernetes.scratch")


@pytest.mark.parametrize(
    "image",
    [
        "dit:0.1.0",
        "registry.example.org/team/dit:0.1.0",
        "localhost:5000/dit:dev",
        f"example.org/dit@sha256:{'a' * 64}",
        f"dit:1@sha256:{'0' * 64}",
    ],
)
def test_images_that_are_pinned_pass(image: str) -> None:
    assert cluster_spec.IMAGE.check(image, "--image") == image


@pytest.mark.parametrize(
    "image",
    [
        "dit",
        "dit:latest",
        "example.org/dit",
        "Dit:1",
        "dit:",
        "dit:1 2",
        "dit@sha256:abc",
        f"dit:latest@sha256:{'0' * 64}",
        "http://x/dit:1",
    ],
)
def test_other_images_are_refused(image: str) -> None:
    with pytest.raises(InputError, match="--image must be an image with a tag other than latest, or a digest"):
        cluster_spec.IMAGE.check(image, "--image")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"kind": "kubernets"}, "cluster.kind: unknown 'kubernets'; did you mean 'kubernetes'?"),
        ({"kind": "address", "address": "tcp://host"}, "cluster.address must be an address such as tls://HOST:PORT"),
        ({"kubernetes": {"imag": "x"}}, "did you mean 'image'?"),
        ({"kubernetes": {"namespace": "Not_A_Name"}}, "cluster.kubernetes.namespace must be a Kubernetes name"),
        ({"kubernetes": {"adaptive": {"minimum": 3, "maximum": 2}}}, "minimum must be at most maximum; got 3 and 2"),
        ({"kubernetes": {"resources": {"worker": {"cpu": "much"}}}}, "cluster.kubernetes.resources.worker.cpu must be"),
        ({"kubernetes": {"tolerations": [{"effect": "Never"}]}}, "cluster.kubernetes.tolerations[0].effect: unknown 'Never'"),
        ({"tls": {"ca": "ca.crt"}}, "cluster.tls.cert is missing"),
    ],
)
def test_wrong_cluster_keys_are_named(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        checked(WORKED_SCHEMA, cluster=given)


def test_certificate_files_are_relative_to_the_config() -> None:
    given = {"tls": {"ca": "c/ca.crt", "cert": "/abs/me.crt", "key": "me.key"}}
    found = checked(WORKED_SCHEMA, folder="/somewhere", cluster=given).cluster.tls
    assert found == cluster_spec.TlsFiles("/somewhere/c/ca.crt", "/abs/me.crt", "/somewhere/me.key")


def kubernetes(**settings: Any) -> cluster_spec.ClusterConfig:
    return checked(WORKED_SCHEMA, cluster={"kind": "kubernetes", "workers": 3, "kubernetes": settings}).cluster


@pytest.mark.parametrize(
    ("settings", "variables", "said"),
    [
        ({}, (), "cluster.kubernetes.image is missing"),
        (
            {"image": "dit:1"},
            ("S3_KEY", "S3_SECRET"),
            "cluster.kubernetes.secret is missing: which Secret holds ${S3_KEY}, ${S3_SECRET}",
        ),
        ({"image": "dit:1", "tls_secret": "tls"}, (), "needs certificates: set cluster.tls"),
    ],
)
def test_what_kubernetes_needs_is_asked_for_before_work_starts(settings: dict[str, Any], variables: Any, said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        cluster.check(kubernetes(**settings), variables)


def test_workers_and_memory_of_kubernetes_come_from_the_config() -> None:
    assert cluster.workers(kubernetes(image="dit:1")) == 3
    assert cluster.workers(kubernetes(adaptive={"maximum": 9})) == 9
    assert cluster.memory(kubernetes(resources={"worker": {"memory": "3Gi"}})) == 3 * 2**30


def test_without_kr8s_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(InputError, match=re.escape("pip install 'dit_dask[kubernetes]'")):
        cluster.check(kubernetes(image="dit:1"))
