"""Method, limits, versions, seed and the command to reproduce."""

from __future__ import annotations

from dit_dask.reporting.blocks import Block, Command, Facts, ReportedRun, ReportSection, Strong, code, codes, paragraph, small


def method(run: ReportedRun) -> ReportSection:
    """The last section: how the figures were obtained, what they do not say, and how to obtain them again."""
    manifest = run.manifest
    blocks: list[Block] = []
    if any(one.release_only is None for one in run.summaries):
        removed = "person" if manifest.input.persons else "row"
        blocks.append(
            paragraph(
                f"Each {removed} that was tested was removed, the rest was sanitised again, the adversaries learned "
                "again, and the audit measured by how much the prediction about that very person moved: d. ",
                Strong("delta"),
                " is the largest d. A d near 0 means that the person's secret is inferred equally well without their record; a "
                "large d means that the release says something about them that only their record contains. With the default "
                "distance (",
                code("emd"),
                ", Σ|p − p′|) d lies between 0 and 2.",
            )
        )
    if run.summaries:
        linked = any(entry.measure == "composition" for entry in run.measures)
        blocks.append(
            paragraph(
                Strong("Limits. "),
                "A small delta holds for this table, this sanitizer and these adversaries. It is evidence, not a "
                "proof: another adversary may learn more, and what is true of a whole group can be inferred about its "
                "members whether or not they are in the table. Linking with other tables is not tested here"
                f"{', except with the release of the measure composition' if linked else ''}.",
            )
        )
    engines = sorted({one.engine for one in run.summaries})
    blocks += [
        Facts(
            [
                ("engines", codes(engines) or ["none"]),
                ("seed", [code(manifest.seed)]),
                ("digest of the input", [code(manifest.input.digest)]),
                ("run", [code(run.name)]),
                ("versions", [", ".join(f"{name} {version}" for name, version in manifest.versions.items())]),
            ]
        ),
        paragraph("The same config and the same data give the same figures:"),
        Command("dit run CONFIG --fresh"),
    ]
    if run.is_private:
        blocks.append(small("This report tells positions of persons: it is personal data."))
    elif run.measures:
        blocks.append(
            small(
                "No record is named, not even by its position; a value is named only where at least 10 records share it, "
                "unless a measure is set to show values."
            )
        )
    else:
        blocks.append(small("No record is named, not even by its position; this report holds no value of any record."))
    return ReportSection("method", "Method, limits and how to reproduce", blocks)
