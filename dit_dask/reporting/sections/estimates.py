"""What is estimated: simulations, repeats of random sanitizers, samples of rows; and external sanitizers."""

from __future__ import annotations

from dit_dask.audit.summary import TestSummary
from dit_dask.engines.influence import Exceedance
from dit_dask.reporting import charts
from dit_dask.reporting.blocks import (
    Block,
    Drawing,
    Marked,
    ReportedRun,
    ReportSection,
    Span,
    Strong,
    Table,
    code,
    paragraph,
    small,
    split_table,
)
from dit_dask.reporting.text import number, share


def simulated(run: ReportedRun) -> ReportSection | None:
    """What sampling noise does to a simulated delta."""
    tests = [(one, one.simulation) for one in run.summaries if one.simulation is not None]
    if not tests:
        return None
    about = paragraph(
        "A simulated delta is the published estimate: the mean gap between sorted samples, which is never negative and "
        "therefore too large on average, and the maximum over records more so. At small epsilon it is mostly sampling noise. "
        "The unbiased estimate and its interval come from the same samples; ",
        code("method: exact"),
        " needs none.",
    )
    header = [
        "test",
        "delta, as published",
        "largest unbiased d",
        "95% interval for delta",
        "samples a side",
        "coupling",
        "epsilon lost, at least",
        "epsilon claimed",
    ]
    rows: list[list[Span]] = [
        [
            code(one.test),
            number(one.delta),
            number(found.largest_unbiased),
            f"{number(found.delta_interval[0])} to {number(found.delta_interval[1])}",
            number(one.parameters.get("samples")),
            str(one.parameters.get("coupling")),
            number(found.effective_epsilon.at_least if found.effective_epsilon else None),
            number(one.parameters["sanitizer"].get("epsilon")),
        ]
        for one, found in tests
    ]
    more = small("Epsilon and delta_dp are parameters of the mechanism; delta is the result of this test.")
    return ReportSection("sampling-noise", "What sampling does", [about, Table("Simulated tests", header, rows), more])


def external(run: ReportedRun) -> ReportSection | None:
    """How sanitizers behaved that are known only by what they return."""
    tests = [(one, one.external.probe) for one in run.summaries if one.external is not None]
    if not tests:
        return None
    about = paragraph(
        "These sanitizers are known only by what they return. Those that can be called were first called twice on the whole "
        "table; a dash means that it cannot be called. Rows that it suppressed or left out count as absent."
    )
    keys = {
        "deterministic": "deterministic",
        "order_matters": "order-dependent",
        "rows": "rows published",
        "suppressed": "suppressed",
        "absent": "left out",
        "nearest": "numbers read as the nearest",
    }
    rows: list[list[Span]] = [
        [code(one.test), *(number(probe.get(key)) for key in keys), _skipped(one)] for one, probe in tests
    ]
    table = Table("External sanitizers", ["test", *keys.values(), "rows skipped"], rows)
    return ReportSection("external", "External sanitizers", [about, table])


def _skipped(summary: TestSummary) -> Span:
    count = summary.figure("skipped")
    return Marked(number(count), "failed") if count else number(count)


def repeated(run: ReportedRun) -> ReportSection | None:
    """What repeats of a random sanitizer show above the noise."""
    tests = [(one, one.repeats) for one in run.summaries if one.repeats is not None]
    if not tests:
        return None
    about = paragraph(
        "These tests draw at random, in the sanitizer, in the training of the adversary, or in both: d is the distance between "
        "the distributions of the beliefs over the repeats. It is never negative, so noise alone makes it positive: ",
        Strong("noise"),
        " is the same where nothing was removed: the largest d of any row beside delta, the expected d beside the mean. A "
        "delta of that size shows nothing. Gates judge what is ",
        Strong("above the noise"),
        ": each end of an interval holds with 95% confidence, that of delta for all rows at once. The p-value is the "
        "probability of so large a d if the removal changes nothing; rows count as significant after Holm's correction.",
    )
    header = ["test", "repeats"]
    header += [f"{name}{end}" for name in ("delta", "mean") for end in ("", ", noise", " above the noise")]
    header += ["smallest p-value", "significant rows"]
    rows: list[list[Span]] = []
    for one, found in tests:
        row: list[Span] = [code(one.test), number(found.count)]
        for name, noise in (("delta", found.noise), ("mean", found.expected_noise)):
            low, high = found.excess[name].interval
            row += [number(one.figure(name)), number(noise), f"{number(low)} to {number(high)}"]
        rows.append([*row, number(found.p_value), f"{number(found.significant)} of {number(one.figure('records'))}"])
    blocks: list[Block] = [about, *split_table("What is above the noise", header, rows)]
    for one, found in tests:
        blocks += _epsilon_delta(one, found) if found.curve else []
    return ReportSection("repeats", "What repeats show", blocks)


CURVES = {
    "largest of any person": "worst",
    "at most, for all persons and ε at once": "at_most",
    "at least": "at_least",
    "mean over persons": "mean",
    "largest, nothing removed": "noise_worst",
}


def _epsilon_delta(one: TestSummary, found: Exceedance) -> list[Block]:
    """The (epsilon, delta) curve of a test, with its numbers."""
    about = paragraph(
        code(one.test),
        ": for each ε the largest probability, over all persons, that a single draw with and a single draw without the person "
        "give d ≥ ε (v1, definition 1). Each bound holds with 95% confidence, for all persons tested and all ε at once; "
        "between two ε the upper bound of the smaller one holds. What randomness alone gives is beside it. "
        f"The d between distributions is too large by about {number(found.bias['delta'])} where it is largest, "
        f"by {number(found.bias['mean'])} on average.",
    )
    series = {words: [(point.epsilon, getattr(point, name)) for point in found.curve] for words, name in CURVES.items()}
    panel = charts.Panel("Pr[d ≥ ε]", series)
    wide, narrow = (
        charts.over_parameter("epsilon (logarithmic)", [panel], is_log=True, width=width).svg
        for width in (charts.WIDTH, charts.NARROW)
    )
    rows: list[list[Span]] = [
        [number(point.epsilon), *(number(getattr(point, name)) for name in CURVES.values())] for point in found.curve
    ]
    numbers = Table(f"Pr[d ≥ ε] of {one.test}", ["ε", *CURVES], rows)
    return [about, Drawing(f"Pr[d ≥ ε] of {one.test}.", wide, narrow, numbers)]


def sampled(run: ReportedRun) -> ReportSection | None:
    """What a sample of rows says about all."""
    tests = [(one, one.sampling) for one in run.summaries if one.sampling is not None]
    if not tests:
        return None
    about = paragraph(
        "Only a random sample of the rows was tested. The shares of all rows lie in these exact binomial intervals "
        f"({100 * tests[0][1].confidence:.0f}% each). The maximum is another matter: a sample bounds how many rows may lie "
        "above the largest d that it met, never how far above they lie."
    )
    limits = list(tests[0][1].share_over)
    header = ["test", "tested", "of", *(f"d>{limit}" for limit in limits), "rows above delta, at most"]
    rows: list[list[Span]] = [
        [
            code(one.test),
            number(one.figure("subjects")),
            number(found.rows),
            *(f"{share(found.share_over[limit][0])} to {share(found.share_over[limit][1])}" for limit in limits),
            share(found.above_delta_at_most),
        ]
        for one, found in tests
    ]
    return ReportSection("sample", "What a sample says", [about, *split_table("Samples", header, rows)])
