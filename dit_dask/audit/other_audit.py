"""Another audit that a measure is taken with: the config it is from, its rows, and which of its tests publishes the release."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dit_dask.audit.grammar import check_config, read_config
from dit_dask.audit.manifest import Manifest
from dit_dask.audit.summary import read_complete
from dit_dask.audit.test import Test
from dit_dask.config.document import Config
from dit_dask.errors import InputError, unknown
from dit_dask.inputs.counted import CountedRows
from dit_dask.measures.base import AuditSource, ReleaseOrigin
from dit_dask.storage.folder import Folder
from dit_dask.storage.location import Location
from dit_dask.values.table import Rows

if TYPE_CHECKING:
    import pandas as pd

CONFIG_FILES = (".yaml", ".yml", ".json")


@dataclass(frozen=True, eq=False)
class OpenedAudit:
    """The rows of another audit, as read and as codes, and its tests."""

    frame: pd.DataFrame = field(repr=False)
    rows: Rows = field(repr=False)
    tests: Sequence[Test] = field(repr=False)

    def choose_origin(self, source: AuditSource, sanitizer: Mapping[str, Any] | None, secret: str, where: str) -> ReleaseOrigin:
        """The release of the test that is named, or of the same sanitizer, or the only one; of the same sensitive attribute."""
        known = {test.id: test for test in self.tests if _publishes(test, secret)}
        if not known:
            raise InputError(f"{where}.with has no test that publishes a release about {secret!r}")
        if source.test is not None:
            if source.test not in known:
                raise unknown(f"{where}.test of the other audit", source.test, known)
            return self._origin(known[source.test])
        alike = [test for test in known.values() if test.parameters["sanitizer"] == sanitizer]
        chosen = alike[:1] or list(known.values())
        if len(chosen) > 1:
            raise InputError(f"{where}.test must name one of the releases of the other audit: {', '.join(known)}")
        return self._origin(chosen[0])

    def _origin(self, test: Test) -> ReleaseOrigin:
        return ReleaseOrigin(CountedRows.of(self.frame), test.rows, test.procedure)

    def document(self) -> dict[str, Any]:
        """What identifies it."""
        return {"rows": self.rows.digest(), "tests": [test.parameters for test in self.tests]}


OpenAudit = Callable[[AuditSource, str], OpenedAudit]


def _publishes(test: Test, secret: str) -> bool:
    is_about = test.rows.table.schema.sensitive.name == secret
    return test.procedure.publishes_release and test.recoded is None and is_about


def read_other_config(path: str, folder: str, where: str) -> tuple[Config, str | None]:
    """Read the config of another audit: its file, or the manifest of a finished run, of which also the digest of the rows."""
    place = path if "://" in path else str(Path(folder) / Path(path).expanduser())
    try:
        if place.endswith(CONFIG_FILES):
            return replace(read_config(place), measures=(), gates=()), None
        manifest, _ = read_complete(Folder(Location(place.rstrip("/"), {})))
        return read_run_config(manifest), manifest.input.digest
    except InputError as error:
        raise InputError(f"{where}.with: {error}", hidden=error.hidden) from error


def read_run_config(manifest: Manifest, data: str | None = None, path: str | None = None) -> Config:
    """The config of a run, of the manifest or of its own file; its measures are left out."""
    if path is not None:
        checked = read_config(path)
    else:
        checked = check_config(_without_nulls(manifest.config) | {"measures": [], "gates": []}, _config_folder(manifest))
    checked = replace(checked, measures=(), gates=())
    if data is None:
        return checked
    source = data if "://" in data else str(Path(data).expanduser().absolute())
    return replace(checked, data=replace(checked.data, source=source, storage_options={}))


def _without_nulls(value: Any) -> Any:
    """A document without the keys that were not given."""
    if isinstance(value, Mapping):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _config_folder(manifest: Manifest) -> str:
    """The folder that inputs are relative to: that from which the source leads to the file that was read, or this one."""
    source = manifest.config["data"]["source"]
    path = str(manifest.files[0]).removeprefix("file://") if manifest.files else ""
    if isinstance(source, str) and path.startswith("/") and path.endswith(f"/{source.removeprefix('./')}"):
        return path.removesuffix(source.removeprefix("./")).rstrip("/") or "/"
    return str(Path.cwd())
