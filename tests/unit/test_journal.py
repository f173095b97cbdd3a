"""Opening a run folder: what an earlier session or another version left there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dit_dask.audit import manifest
from dit_dask.audit.journal import Opened, open_journal
from dit_dask.storage.folder import Folder
from dit_dask.storage.location import Location
from tests.manifests import CONFIG, new_manifest


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(Location(str(tmp_path / "run"), {}))


def test_an_earlier_session_goes_on_with_the_present_config(folder: Folder) -> None:
    open_journal(folder, new_manifest(seed=1))
    journal, opened = open_journal(folder, new_manifest(config=CONFIG | {"gates": ["delta < 1"]}))
    assert opened is Opened.EARLIER_SESSION
    assert (journal.manifest.seed, journal.manifest.config["gates"]) == (1, ["delta < 1"])


@pytest.mark.parametrize("change", [{}, {"timings": {"started": "then", "new_key": 1}}, {"parts": {"test": [{"odd": 1}]}}])
def test_nothing_of_another_version_is_taken_over(folder: Folder, change: dict[str, object]) -> None:
    document = new_manifest(versions={"dit_dask": "0.0.1"}).document() | change
    folder.write(manifest.NAME, json.dumps(document).encode())
    folder.write("records/test/part-00000.parquet", b"a part")
    _, opened = open_journal(folder, new_manifest())
    assert opened is Opened.OTHER_VERSION
    assert folder.names("records/test") == set()


def test_a_damaged_manifest_is_no_reason_to_discard_parts(folder: Folder) -> None:
    folder.write(manifest.NAME, b'{"schema_version": 1, "versions": {"dit_dask": "1"}')
    folder.write("records/test/part-00000.parquet", b"a part")
    _, opened = open_journal(folder, new_manifest())
    assert opened is Opened.NOTHING
    assert folder.names("records/test") == {"part-00000.parquet"}
