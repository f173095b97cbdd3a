"""Writes a sanitised table in blocks, reads it back, and describes it in a JSON file beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from dit_dask.audit import manifest
from dit_dask.audit.test import Test
from dit_dask.audit.verdict import RunVerdict
from dit_dask.config.data import CsvConfig
from dit_dask.config.document import Config
from dit_dask.engines import ReleaseProcedure
from dit_dask.errors import InputError, RunError, unknown
from dit_dask.inputs.collapsed import frame_of
from dit_dask.inputs.columns import source_columns
from dit_dask.inputs.partitions import PartitionReader, gather_here, read_collapsed
from dit_dask.inputs.read import TextRules
from dit_dask.releasing.sanitized import SanitizedTable, sanitize_test
from dit_dask.run import PreparedRun, stored_verdict
from dit_dask.sanitizers.claims import Recheck, recheck
from dit_dask.sanitizers.external.release_reader import ReadRelease, ReleaseReader
from dit_dask.sanitizers.properties import find_properties, group_counts
from dit_dask.storage.documents import render_json
from dit_dask.storage.filesystem import filesystem
from dit_dask.storage.location import Location
from dit_dask.storage.redaction import public_url
from dit_dask.storage.streams import DigestedFile, new_file, refuse_existing, remove_file
from dit_dask.values.pieces import as_positions
from dit_dask.values.release import Release

if TYPE_CHECKING:
    import pandas as pd

    from dit_dask.values.arrays import Codes, Ints

TO = "--to"
FORMATS = ("csv", "parquet")
Policy = Literal["keep", "drop"]


@dataclass(frozen=True)
class ReleaseOptions:
    """How a release is written: where and as what, which other columns of the source it has, in which order."""

    to: str
    format: str | None = None
    columns: Policy | None = None
    keeps_subject: bool = False
    keeps_order: bool = False
    seed: int | None = None


@dataclass(frozen=True)
class WrittenRelease:
    """A release that was written, what the file beside it says, and what the gates of its run say, if that is finished."""

    url: str
    document: Mapping[str, Any]
    verdict: RunVerdict | None = None


class BrokenClaimError(RunError):
    """A release does not have the property that its sanitizer claims: it is not written."""


def write_release(prepared: PreparedRun, test_id: str, options: ReleaseOptions) -> WrittenRelease:
    """Sanitise the table as one test does, write it, read it back, and write the JSON file beside it."""
    test = find_test(prepared.tests, test_id)
    form, kept = check_options(prepared.config, options)
    location = _location(options.to, prepared.config)
    beside = _beside(location)
    sanitized = sanitize_test(test, prepared.rows)
    if sanitized.record is None:
        _refuse_row_options(test, options, kept)
    claim = _check_claim(test, sanitized.release)
    further = _read_further(prepared, kept)
    seed = prepared.config.seed if options.seed is None else options.seed
    order = None if options.keeps_order or sanitized.numbers else sanitized.order(seed, test.id)
    with new_file(location, TO) as file:
        _write_blocks(file, sanitized, form, order, further)
    try:
        verdict = stored_verdict(prepared)
        document = _describe(prepared, test, sanitized, claim) | {
            "run_verdict": None if verdict is None else verdict.status,
            "gate_status": None if verdict is None else verdict.about(test.id).status,
            "file": location.url.rpartition("/")[2],
            "sha256": file.digest(),
            "format": form,
            "columns": [*sanitized.columns, *sanitized.numbers, *kept],
            "kept_columns": kept,
            "order": "shuffled" if order is not None else "of the source" if sanitized.record is not None else "of the values",
        }
        if sanitized.release is not None:
            document["read_back"] = _read_back(location, sanitized)
        with new_file(beside, TO) as file:
            file.write(render_json(document))
    except BaseException:
        remove_file(location, TO)
        raise
    return WrittenRelease(public_url(location.url), document, verdict)


def check_options(config: Config, options: ReleaseOptions) -> tuple[str, list[str]]:
    """Refuse what could not be written, before any work; return the format and the columns that are published as they are."""
    form, location = _format(options), _location(options.to, config)
    for place in (location, _beside(location)):
        refuse_existing(place, TO)
    return form, _further_columns(config, options)


def _beside(location: Location) -> Location:
    """The place of the JSON file that describes a release."""
    return Location(f"{location.url}.json", location.storage_options)


def find_test(tests: Sequence[Test], test_id: str) -> Test:
    """The test of an id, or an error that names near ones."""
    for test in tests:
        if test.id == test_id:
            return test
    raise unknown("--test", test_id, [test.id for test in tests])


def _location(url: str, config: Config) -> Location:
    """The place; it has the credentials of the output, if it is in the same kind of storage."""
    output = config.output
    is_same = "://" in url and urlsplit(url).scheme == urlsplit(output.url).scheme
    return Location(url, output.storage_options if is_same else {})


def _format(options: ReleaseOptions) -> str:
    ending = next((form for form in FORMATS if options.to.endswith(f".{form}")), None)
    if ending is None:
        raise InputError(f"--to must end in .csv or .parquet; got {public_url(options.to).rpartition('/')[2]!r}")
    if options.format not in (None, ending):
        raise InputError(f"--format is {options.format}, but --to ends in .{ending}")
    return ending


def _further_columns(config: Config, options: ReleaseOptions) -> list[str]:
    """The columns of the source that are published as they are."""
    schema = config.checked_schema
    own = {*schema.columns, *schema.subject_columns}
    subject = list(schema.subject_columns) if options.keeps_subject else []
    if options.keeps_subject and not subject:
        raise InputError("--keep-subject: the config has no schema.subject")
    if options.columns == "drop":
        return subject
    further = [name for name in source_columns(config) if name not in own]
    if further and options.columns is None:
        names = ", ".join(repr(name) for name in further)
        raise InputError(
            f"the source has {len(further)} further column{'s' if len(further) > 1 else ''} that no test looks at ({names}): "
            "say --columns drop, or --columns keep if they may be published as they are"
        )
    return [*subject, *further]


def _read_further(prepared: PreparedRun, names: Sequence[str]) -> pd.DataFrame | None:
    """The kept columns of every used row; texts are categories, in a few bytes a cell."""
    if not names:
        return None
    read, _ = read_collapsed(prepared.config, names[:1], beside=names[1:])
    return frame_of(read, as_positions(prepared.rows.source_row))


def _refuse_row_options(test: Test, options: ReleaseOptions, kept: Sequence[str]) -> None:
    reason = f"{test.id} does not tell which row of the source a published row was"
    if options.keeps_order:
        raise InputError(f"--keep-order: {reason}")
    if kept:
        raise InputError(f"--columns keep: {reason}; say --columns drop")


def _check_claim(test: Test, release: Release | None) -> Recheck:
    procedure = test.procedure
    if release is not None and isinstance(procedure, ReleaseProcedure):
        found = recheck(release, procedure.sanitizer.claim, test.rows.table)
    else:
        found = procedure.recheck(test.rows.table)[0]
    if found.holds is False:
        broken = f"{found.broken_classes:,} classes of {found.broken_records:,} rows lack it" if found.broken_classes else ""
        raise BrokenClaimError(f"{test.id}: the claim of its sanitizer does not hold, so nothing is written: {broken}")
    return found


def _write_blocks(
    file: DigestedFile, sanitized: SanitizedTable, form: str, order: Codes | None, further: pd.DataFrame | None
) -> None:
    import pyarrow.parquet as pq
    from pyarrow import csv

    writer: Any = None
    for block in sanitized.blocks(order, further):
        if writer is None:
            is_csv = form == "csv"
            writer = csv.CSVWriter(file, block.schema) if is_csv else pq.ParquetWriter(file, block.schema, compression="zstd")
        writer.write_table(block)
    writer.close()


def _describe(prepared: PreparedRun, test: Test, sanitized: SanitizedTable, claim: Recheck) -> dict[str, Any]:
    stored = manifest.read(prepared.folder)
    return {
        "test": test.id,
        "sanitizer": test.shown_parameters["sanitizer"],
        "run": prepared.folder.name,
        "run_digest": prepared.folder.name.rpartition("-")[2],
        "run_status": None if stored is None else stored.status,
        "input_digest": prepared.rows.digest(),
        "rows": sanitized.rows,
        "dropped": prepared.rows.dropped,
        "left_out": prepared.rows.left_out,
        "suppressed": sanitized.suppressed,
        "classes": claim.classes,
        "smallest_class": claim.smallest_class,
        "claim_holds": claim.holds,
    }


def _read_back(location: Location, sanitized: SanitizedTable) -> dict[str, Any]:
    """Read the file as anybody's release and compare its classes with what was meant."""
    if sanitized.release is None:
        raise TypeError("counts are not read back as a release")
    path = filesystem(location, TO)[1]
    schema = sanitized.release.schema
    read_release = ReleaseReader(schema, {}, list(sanitized.columns))
    rules = TextRules(CsvConfig(separator=",", encoding="utf-8", quote='"', decimal="."), is_named=True)
    reader = PartitionReader(location, tuple(read_release.columns), rules, (), TO)  # rows of a release have few distinct ones
    written = gather_here(reader, reader.partitions(path))
    found: ReadRelease = read_release(frame_of(written, written.first), written.counts)
    expected = _expected_groups(sanitized)
    counts = group_counts(found.release)
    if sorted(map(tuple, counts.tolist())) != sorted(map(tuple, expected.tolist())):
        raise RunError(f"{TO}: what was written is not read back as it was meant; it was removed")
    return {"rows": found.rows, "suppressed": found.suppressed, **find_properties(counts).document()}


def _expected_groups(sanitized: SanitizedTable) -> Ints:
    """The groups that a reader finds: rows with * in every column are suppressed to them, unless all are."""
    release: Any = sanitized.release
    return group_counts(release.only(~release.suppressed))
