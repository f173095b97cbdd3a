"""The evidence pack: a zip file that shows what was audited, how, with which result; nothing in it is personal data."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from dit_dask.audit.disclosure import Results
from dit_dask.audit.summary import read_complete, read_curve_table, read_measures
from dit_dask.audit.verdict import read_verdict
from dit_dask.reporting import html
from dit_dask.reporting.pdf import render_pdf
from dit_dask.reporting.sections import make_sections
from dit_dask.reporting.signature import sign
from dit_dask.reporting.statement import statement
from dit_dask.storage.documents import render_json
from dit_dask.storage.folder import Folder

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

CHECKSUMS, SIGNATURE, PUBLIC_KEY = "SHA256SUMS", "SHA256SUMS.sig", "public-key.pem"
FILE_DATE = (1980, 1, 1, 0, 0, 0)  # the same run gives the same bytes


def make_pack(folder: Folder, key: Ed25519PrivateKey | None = None) -> bytes:
    """Make the pack of a finished run, signed if there is a key."""
    contents = collect(folder)
    sums = checksums(contents)
    contents[CHECKSUMS] = sums
    if key is not None:
        contents[SIGNATURE], contents[PUBLIC_KEY] = sign(key, sums)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as pack:
        for name, content in contents.items():
            entry = zipfile.ZipInfo(name, FILE_DATE)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            pack.writestr(entry, content)
    return buffer.getvalue()


def collect(folder: Folder) -> dict[str, bytes]:
    """The files of a pack: what can be shared of the run, whatever its folder holds."""
    manifest, summaries = read_complete(folder)
    results = Results(summaries, read_curve_table(folder), read_measures(folder), read_verdict(folder)).shareable()
    run = replace(html.reported_run(folder, manifest, results), worst=None)
    date = manifest.timings.finished or manifest.timings.started
    name = str(manifest.config["name"])
    told = statement(run)
    config = {key: value for key, value in manifest.config.items() if key not in ("cluster", "output")}  # where it ran
    environment = {
        "versions": dict(manifest.versions),
        "seed": manifest.seed,
        "started": manifest.timings.started,
        "finished": date,
    }
    return {
        "report.html": html.render(run).encode(),
        "report.pdf": render_pdf(f"Audit {name}", make_sections(run), date),
        "statement.html": html.render_sections(f"Evidence of the audit {name}", told).encode(),
        "statement.pdf": render_pdf(f"Evidence of the audit {name}", told, date),
        "verdict.json": render_json(results.verdict.document()),
        "summary.json": render_json([one.document() for one in results.summaries]),
        "measures.json": render_json([entry.document() for entry in results.entries]),
        "config.json": render_json(config),
        "environment.json": render_json(environment | {"run": run.name, "input": manifest.document()["input"]}),
    }


def checksums(contents: Mapping[str, bytes]) -> bytes:
    """The list that sha256sum --check reads."""
    return "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in sorted(contents.items())).encode()
