"""Print what pycanon makes of published tables, as JSON; runs in the environment of anjana, which brings pycanon."""

from __future__ import annotations

import json
import sys

import pandas as pd
from pycanon import anonymity

request = json.load(sys.stdin)
answers = []
for path in request["paths"]:
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    keys, secret = request["quasi_identifiers"], [request["sensitive"]]
    answers.append(
        {
            "k": int(anonymity.k_anonymity(table, keys)),
            "l": int(anonymity.l_diversity(table, keys, secret)),
            "t": float(anonymity.t_closeness(table, keys, secret)),
            "entropy_l": int(anonymity.entropy_l_diversity(table, keys, secret)),
            "recursive_cl": [float(one) for one in anonymity.recursive_c_l_diversity(table, keys, secret)],
        }
    )
json.dump(answers, sys.stdout)
