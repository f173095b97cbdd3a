"""The statement of an evidence pack, under the headings that assessors look for.

Headings are those of ISO/IEC 27559 (clauses 6 to 9) and of the anonymisation reports of the European Medicines Agency and
Health Canada. The titles of the clauses are those in the published table of contents of AS/NZS ISO/IEC 27559:2024, which
adopts ISO/IEC 27559:2022 unchanged. What the audit knows is filled in; what only the owner of the data knows is marked.
"""

from __future__ import annotations

from collections.abc import Sequence

from dit_dask.config.profiles import PROFILES
from dit_dask.reporting.blocks import (
    Block,
    Listing,
    Paragraph,
    ReportedRun,
    ReportSection,
    Span,
    Strong,
    Table,
    code,
    codes,
    paragraph,
)
from dit_dask.reporting.scope import describe_limits, describe_rows, limits_figures
from dit_dask.reporting.sections.criteria import criteria_blocks
from dit_dask.reporting.sections.verdict import worst_test
from dit_dask.reporting.text import NOTHING, WORDS, control_names, number
from dit_dask.reporting.words import sanitizer_words

TO_COMPLETE = "To be completed by the owner of the data: "


def statement(run: ReportedRun) -> list[ReportSection]:
    """All sections, in the order of the two standards, then the three criteria."""
    return [_about(run), *_iso(run), *_ema(run), _criteria(run)]


def open_point(words: str) -> Paragraph:
    """What only the owner knows."""
    return paragraph(Strong(TO_COMPLETE), words)


def _about(run: ReportedRun) -> ReportSection:
    blocks: list[Block] = [
        paragraph(
            "Audit ", code(run.manifest.config["name"]), ", run ", code(run.name), ": ", Strong(WORDS[run.verdict.status]), "."
        ),
        paragraph(
            "The headings are those of the standard and of the guidance; this text certifies conformity with neither. "
            f"Paragraphs that begin with “{TO_COMPLETE.strip()}” must be written before the statement is used."
        ),
    ]
    return ReportSection("about", "About this statement", blocks)


def _iso(run: ReportedRun) -> list[ReportSection]:
    return [
        ReportSection(
            "iso-6",
            "ISO/IEC 27559, clause 6: Context assessment",
            [
                open_point("who receives the data, under which agreement and controls against misuse (threat modelling)."),
                open_point("what the persons were told, and the impact on them (transparency and impact assessment)."),
                paragraph(
                    "The audit assumes an adversary who has the release, knows the quasi-identifiers of a person, and knows "
                    "that the person may be in the table; no control of the recipient is taken into account."
                ),
            ],
        ),
        ReportSection("iso-7", "ISO/IEC 27559, clause 7: Data assessment", [*_variables(run), *_attacks(run)]),
        ReportSection(
            "iso-8",
            "ISO/IEC 27559, clause 8: Identifiability assessment and mitigation",
            [*_initial_risk(run), *_threshold(run), *_residual_risk(run)],
        ),
        ReportSection(
            "iso-9",
            "ISO/IEC 27559, clause 9: De-identification governance",
            [
                open_point("who approves the release, and on which date."),
                open_point("how the release is watched after publication, and what happens in an incident."),
                paragraph(
                    "The run can be repeated: the config, the seed, the digest of the input and the versions are here. ",
                    code("dit history"),
                    " compares it with later runs.",
                ),
            ],
        ),
    ]


def _ema(run: ReportedRun) -> list[ReportSection]:
    utility = open_point("the effect of the anonymisation on the use of the data, where it is not measured here.")
    return [
        ReportSection(
            "ema-methodology",
            "Anonymisation report: Anonymisation methodology",
            [
                *_methodology(run),
                open_point("why this methodology fits the purpose of the release."),
            ],
        ),
        ReportSection(
            "ema-variables",
            "Anonymisation report: Variables and anonymisation techniques",
            [*_variables(run), _techniques(run), open_point("direct identifiers that were removed before the audit.")],
        ),
        ReportSection("ema-initial-risk", "Anonymisation report: Initial risk", _initial_risk(run)),
        ReportSection("ema-threshold", "Anonymisation report: Threshold", _threshold(run)),
        ReportSection("ema-residual-risk", "Anonymisation report: Residual risk", [*_residual_risk(run), utility]),
    ]


def _methodology(run: ReportedRun) -> list[Block]:
    """What was done, and nothing that was not."""
    words = [f"{limit}." for limit in describe_limits(run.summaries)]
    if any(one.release_only is None for one in run.summaries):
        words = [
            "Every person who is tested is removed in turn, the rest is sanitised again, adversaries learn again, and the "
            "change of their belief about that person is measured.",
            *words,
            "The property that a sanitizer claims is checked by code that it does not share.",
        ]
    names = list(dict.fromkeys(entry.measure for entry in run.measures))
    measured: list[Span] = ["Measures: ", *codes(names), "."] if names else []
    return [paragraph(" ".join(["Quantitative.", *words])), *([paragraph(*measured)] if measured else [])]


def _criteria(run: ReportedRun) -> ReportSection:
    blocks = [*criteria_blocks(run), open_point("why these limits answer the three questions for this release.")]
    return ReportSection("criteria", "Opinion 05/2014 (WP216): singling out, linkability, inference", blocks)


def _variables(run: ReportedRun) -> list[Block]:
    schema = run.manifest.config["schema"]
    rows: list[list[Span]] = [
        [code(name), "quasi-identifier", str(column.get("kind", NOTHING)), "yes" if column.get("hierarchy") else "no"]
        for name, column in schema["quasi_identifiers"].items()
    ]
    rows += [[code(name), "sensitive attribute", NOTHING, NOTHING] for name in run.manifest.secrets]
    subject = schema.get("subject")
    rows += [[code(subject), "tells whose rows belong together", NOTHING, NOTHING]] if subject else []
    return [
        paragraph(f"{describe_rows(run.manifest.input)}."),
        Table("Variables", ["variable", "role", "kind", "generalised by a hierarchy"], rows),
    ]


def _attacks(run: ReportedRun) -> list[Block]:
    names = list(dict.fromkeys(name for one in run.summaries for name in one.adversaries))
    if not names:
        return [paragraph("No inference test was run.")]
    return [paragraph("Adversaries that were tried (attack modelling): ", *codes(names), ".")]


def _techniques(run: ReportedRun) -> Table:
    rows: list[list[Span]] = [[code(one.test), sanitizer_words(one.parameters["sanitizer"])] for one in run.summaries]
    return Table("Techniques", ["test", "technique"], rows)


def _initial_risk(run: ReportedRun) -> Sequence[Block]:
    names = control_names(run.verdict.controls)
    rows: list[list[Span]] = [
        [name, number(one.statistics.figure("delta")), number(one.statistics.figure("mean"))]
        for name, one in zip(names, run.verdict.controls, strict=True)
        if one.control == "raw"
    ]
    if not rows:
        return [open_point("the risk of the table before anonymisation; this run has no control of the raw table.")]
    return [
        paragraph("The risk of the table as it is, before anonymisation:"),
        Table("Initial risk", ["control", "worst case (delta)", "average"], rows),
    ]


def _threshold(run: ReportedRun) -> list[Block]:
    config = run.manifest.config
    profile = config.get("profile")
    gates = list(dict.fromkeys(one.gate for one in run.verdict.verdicts))
    blocks: list[Block] = []
    if profile in PROFILES:
        blocks.append(paragraph("Profile ", code(profile), ": ", PROFILES[profile].provenance))
    if gates:
        blocks += [paragraph("The release had to meet:"), Listing([[code(gate)] for gate in gates])]
    if not limits_figures(run.verdict, {entry.measure for entry in run.measures}):
        blocks.append(open_point("the threshold for the risk, and why it is acceptable; this run has no gate on a figure."))
    else:
        blocks.append(open_point("why this threshold is acceptable for the persons and the recipients."))
    return blocks


def _residual_risk(run: ReportedRun) -> list[Block]:
    rows: list[list[Span]] = [
        [code(one.test), number(one.delta), number(one.figure("mean")), number(one.smallest_class), number(one.claim_holds)]
        for one in run.summaries
        if one.is_sanitised
    ]
    worst = worst_test(run.summaries)
    checks: list[list[Span]] = [[code(one.test or NOTHING), code(one.gate), WORDS[one.status]] for one in run.verdict.verdicts]
    blocks: list[Block] = []
    if rows:
        header = ["test", "worst case (delta)", "average", "smallest class", "claim holds"]
        blocks.append(Table("Residual risk of the releases", header, rows))
    if worst is not None and worst.worst_adversary:
        blocks.append(paragraph("The worst case was found by the adversary ", code(worst.worst_adversary), "."))
    if checks:
        blocks.append(Table("Checks", ["test", "gate", "result"], checks))
    return [
        *blocks,
        paragraph("Verdict: ", Strong(WORDS[run.verdict.status]), ". report.html and report.pdf have the reasons."),
    ]
