"""The verdict of a whole run: by the gates of its config, by what its sanitizers claim, or by conditions that are set later."""

from __future__ import annotations

from collections.abc import Sequence

from dit_dask.audit.disclosure import Results
from dit_dask.audit.gates import CLAIMS, Gate, parse_forbidden
from dit_dask.audit.grammar import own_gates
from dit_dask.audit.test import Test
from dit_dask.audit.verdict import Evidence, RunVerdict, claim_verdict, judge
from dit_dask.audit.warnings import baseline_warnings, data_warnings, gate_warnings, release_warnings
from dit_dask.config.document import Config
from dit_dask.errors import InputError
from dit_dask.values.table import Rows


def judge_run(
    config: Config, gates: Sequence[Gate], tests: Sequence[Test], rows: Rows, person_ids: Sequence[str], results: Results
) -> RunVerdict:
    """Judge by the gates of the config and of its tests, and by what the sanitizers claim."""
    summaries = results.summaries
    own = {test.id: own_gates(test.config) for test in tests if test.config.gates}
    verdicts = judge(gates, _evidence(results), own)
    controls = results.verdict.controls if config.controls else ()
    warnings = [*data_warnings(rows, person_ids), *release_warnings(summaries), *baseline_warnings(summaries, controls)]
    warnings += gate_warnings(gates, own, summaries, rows, controls)
    judged = {verdict.test for verdict in verdicts if verdict.gate == CLAIMS}
    for one in summaries:
        if (one.claim_holds is False or one.claim_unknown) and one.test not in judged:
            broken = claim_verdict(one)
            if config.claims == "fail":
                verdicts.append(broken)
            else:
                warnings.append(f"{one.test}: {broken.reason}")
    return RunVerdict(verdicts, controls, config.controls, warnings)


def judge_again(results: Results, conditions: Sequence[str]) -> RunVerdict:
    """Judge a finished run by conditions that must not be; a claim that is broken fails it whatever they are.

    Without conditions its own verdict is repeated.
    """
    stored = results.verdict
    forbidden = [parse_forbidden(text, "--fail-on", {entry.measure for entry in results.entries}) for text in conditions]
    if not results.summaries and any(one.kind in ("statistic", "claims") for one in forbidden):
        raise InputError("dit gate: the run has measures only; delta and the like judge tests")
    if not forbidden:
        return stored
    judged = judge(forbidden, _evidence(results))
    broken = [one for one in stored.verdicts if one.gate == CLAIMS and one.status == "failed"]
    verdicts = [*judged, *(one for one in broken if one not in judged)]
    return RunVerdict(verdicts, stored.controls, stored.has_controls, stored.warnings)


def _evidence(results: Results) -> Evidence:
    return Evidence(results.summaries, results.entries, results.distributions())
