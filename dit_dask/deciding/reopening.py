"""A finished run with its data again: the config of its manifest, the rows it was made from, and its tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dit_dask.audit.build import build_tests, external_columns
from dit_dask.audit.manifest import Manifest
from dit_dask.audit.other_audit import read_run_config
from dit_dask.audit.parts import read_distances
from dit_dask.audit.summary import TestSummary, read_complete
from dit_dask.audit.test import Test
from dit_dask.config.document import Config
from dit_dask.deciding.explanation import Case
from dit_dask.errors import InputError, unknown
from dit_dask.inputs.load import load_with
from dit_dask.inputs.source import read_text
from dit_dask.storage.documents import parse_mapping
from dit_dask.storage.folder import Folder
from dit_dask.storage.location import Location
from dit_dask.values.table import Rows

if TYPE_CHECKING:
    import pandas as pd

REMOVED = "records/removed.json"  # of a round of hardening
CHANGE = "what_if"  # the parameter of a test on a table of which an attribute was changed


def reopen_test(
    url: str, test: str | None = None, *, data: str | None = None, config: str | None = None, shows_values: bool = False
) -> Case:
    """Read a finished run and its data; without an id the sanitised test with the largest delta.

    The data is that of the run's config, or the table `data` in its place; `config` is the file that the run was made from,
    where the manifest alone does not say where things are.
    """
    folder = Folder(Location(url.rstrip("/"), {}))
    manifest, summaries = read_complete(folder)
    chosen = choose_test([one.test for one in summaries], test) if test is not None else worst_test(summaries)
    stored = with_private(folder, manifest)
    inputs = reopen_inputs(stored, manifest, read_run_config(manifest, data, config))
    return make_case(inputs, stored, chosen, inputs.cells if shows_values else None)


@dataclass(frozen=True, eq=False)
class AuditInputs:
    """What a run was made from: its config, the used rows and its tests; `cells` are the used rows as they were read."""

    config: Config
    rows: Rows
    tests: Sequence[Test]
    cells: pd.DataFrame | None = field(default=None, repr=False)


def make_case(inputs: AuditInputs, folder: Folder, test: str, cells: pd.DataFrame | None) -> Case:
    """What an explanation of a test needs; with `cells` it shows values."""
    built = {one.id: one for one in inputs.tests}
    if test not in built and any(test.startswith(f"{one}.") for one in built):
        raise InputError(
            f"{test} is an alternative of dit tune --attributes, whose table is not kept: explain the table as it is with "
            f"--test {next(one for one in built if test.startswith(f'{one}.'))}, or make the change in the config, "
            "dit run it, and explain that run"
        )
    if test not in built:
        raise unknown("test of the config", test, built)
    distances = read_distances(folder, test)
    if not len(distances):
        raise InputError(f"{folder.url} has no records of {test}: they are in output.private, which cannot be read from here")
    return Case(inputs.config, built[test], distances, _reader(inputs.config), cells)


def reopen_inputs(folder: Folder, manifest: Manifest, config: Config, frame: pd.DataFrame | None = None) -> AuditInputs:
    """Read the data of a finished run again, and build its tests; a frame takes the place of the config's source."""
    if any(point.sanitizer.name == "function" for point in config.tests):
        raise InputError("the run's sanitizer is a function that it was given by value, which it does not hold; audit again")
    rows, cells = _load(config, manifest, folder, frame)
    return AuditInputs(config, rows, build_tests(config, rows, _reader(config)), cells)


def choose_test(ids: list[str], test: str) -> str:
    """Return the id if there is such a test, or name the nearest."""
    if test not in ids:
        raise unknown("--test", test, ids)
    return test


def worst_test(summaries: Sequence[TestSummary]) -> str:
    """The sanitised test of the table as it is with the largest delta, the first of equals."""
    unchanged = [one for one in summaries if CHANGE not in one.parameters]
    judged = [one for one in unchanged if one.is_sanitised] or unchanged
    if not judged:
        raise InputError("dit explain: the run has measures only; persons are explained by tests")
    return max(judged, key=lambda one: -1.0 if one.delta is None else one.delta).test


def _reader(config: Config) -> Any:
    return lambda path, where: read_text(path, config, where)


def _load(config: Config, manifest: Manifest, folder: Folder, frame: pd.DataFrame | None) -> tuple[Rows, Any]:
    """Load the rows of a run, without those that `dit harden` left out."""
    if config.data.source == "frame" and not manifest.files and frame is None:
        raise InputError("data: the run audited a frame of Python, which it does not hold; give it: dit.open(url, data=frame)")
    rows, cells = load_with(config, [], frame, external_columns(config))
    removed = parse_mapping(folder.read(REMOVED)).get("record", [])
    if removed and max(removed) < rows.used:
        kept = np.ones(rows.used, bool)
        kept[removed] = False
        rows, cells = rows.only(kept), cells[kept].reset_index(drop=True)
    if rows.digest() != manifest.input.digest:
        raise InputError(
            f"data: this table is not the one that was audited: it has {rows.used:,} used rows, the run {manifest.input.used:,}"
            + ("" if rows.used != manifest.input.used else ", with other values or in another order")
            + "; give the right one with --data TABLE (in Python: data=)"
        )
    return rows, cells


def with_private(folder: Folder, manifest: Manifest) -> Folder:
    """The folder with the place of its personal data, if that is another one."""
    private = manifest.config.get("output", {}).get("private")
    if not private:
        return folder
    url = private if isinstance(private, str) else private["url"]
    return replace(folder, private=Location(f"{url.rstrip('/')}/{folder.name}", {}))
