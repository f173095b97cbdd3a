"""What anonymeter says of three tables, in an environment of its own: its versions and ours would fight.

python tools/anonymeter_oracle.py ENVIRONMENT TRAINING.csv RELEASE.csv CONTROL.csv REQUEST.json
makes the virtual environment if it is not there, and prints a JSON object with the rates and risks of anonymeter's attacks on
all records. The request has `sides`, `secrets` and `known` (columns), and `described`: pairs of a record of the release and
columns, from which anonymeter makes its own predicates.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

from oracle_environment import run_inside


def rates_and_risk(results: Any) -> dict[str, Any]:
    """What its results say."""
    risk = results.risk()
    return {
        "rate": results.attack_rate.value,
        "control_rate": results.control_rate.value,
        "risk": risk.value,
        "interval": list(risk.ci),
    }


def answer(training: str, release: str, control: str, request: str) -> dict[str, object]:
    """Inside the environment: ask anonymeter."""
    import numpy as np
    import pandas as pd
    import polars as pl
    from anonymeter.evaluators import InferenceEvaluator, LinkabilityEvaluator, SinglingOutEvaluator
    from anonymeter.evaluators import singling_out_evaluator as queries
    from anonymeter.stats.confidence import EvaluationResults

    warnings.simplefilter("ignore")
    tables = [pd.read_csv(path) for path in (training, release, control)]
    ori, syn, con = tables
    wanted = json.loads(Path(request).read_text("utf-8"))
    found: dict[str, object] = {}
    for neighbours in (1, 3):
        evaluator = LinkabilityEvaluator(ori, syn, wanted["sides"], len(ori), neighbours, con).evaluate(n_jobs=1)
        found[f"linkability {neighbours}"] = rates_and_risk(evaluator.results())
    for secret, regression in wanted["secrets"].items():
        attack = InferenceEvaluator(ori, syn, wanted["known"], secret, regression, len(ori), con).evaluate(n_jobs=1)
        found[f"inference {secret}"] = rates_and_risk(attack.results())
    frames = [pl.DataFrame(table) for table in tables]
    every = queries.univariate_singling_out_queries(frames[1], 10**9, np.random.default_rng(0))
    univariate = SinglingOutEvaluator(ori, syn, len(every), control=con).evaluate(mode="univariate")
    found["univariate"] = {"attacks": len(every), **rates_and_risk(univariate.results())}

    medians, dtypes = frames[1].median().to_dicts()[0], dict(frames[1].schema)
    records = frames[1].to_dicts()
    asked = [
        queries._query_from_record(records[row], dtypes, columns, medians, np.random.default_rng(0))
        for row, columns in wanted["described"]
    ]
    counts = [np.array(queries._evaluate_queries(frame, asked)) for frame in frames]
    chosen = counts[1] == 1
    successes = [int((counts[place][chosen] == 1).sum()) for place in (0, 2)]
    found["multivariate"] = {
        "counts": [part.tolist() for part in counts],
        **rates_and_risk(EvaluationResults(int(chosen.sum()), successes[0], 0, successes[1])),
    }
    return found


if __name__ == "__main__":
    if sys.argv[1] == "--inside":
        print(json.dumps(answer(*sys.argv[2:])))
    else:
        sys.exit(run_inside("anonymeter", __file__, sys.argv[1:]))
