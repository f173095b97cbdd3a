"""What sdmetrics says of two tables, in an environment of its own: its versions and ours would fight.

python tools/sdmetrics_oracle.py ENVIRONMENT TRAINING.csv SYNTHETIC.csv BINNED.csv BINNED_SYNTHETIC.csv
makes the virtual environment if it is not there, and prints a JSON object: the distance of every synthetic record to its
closest training record (Gower), the processor seconds that took, and TVComplement and ContingencySimilarity of the binned
tables by column and pair of columns.
"""

from __future__ import annotations

import json
import sys
import time
from itertools import combinations

from oracle_environment import run_inside


def answer(training: str, synthetic: str, binned: str, binned_synthetic: str) -> dict[str, object]:
    """Inside the environment: ask sdmetrics."""
    import pandas as pd
    from sdmetrics.column_pairs import ContingencySimilarity
    from sdmetrics.single_column import TVComplement
    from sdmetrics.single_table.privacy.dcr_utils import calculate_dcr

    real, fake = pd.read_csv(training), pd.read_csv(synthetic)
    sdtypes = {name: "categorical" if real[name].dtype == object else "numerical" for name in real}
    metadata = {"columns": {name: {"sdtype": sdtype} for name, sdtype in sdtypes.items()}}
    start = time.process_time()
    dcr = calculate_dcr(fake, real, metadata)
    seconds = time.process_time() - start
    one, other = pd.read_csv(binned, dtype=str), pd.read_csv(binned_synthetic, dtype=str)
    return {
        "dcr": dcr.tolist(),
        "seconds": seconds,
        "tv": {name: TVComplement.compute(one[name], other[name]) for name in one},
        "pairs": [[a, b, ContingencySimilarity.compute(one[[a, b]], other[[a, b]])] for a, b in combinations(one.columns, 2)],
    }


if __name__ == "__main__":
    if sys.argv[1] == "--inside":
        print(json.dumps(answer(*sys.argv[2:])))
    else:
        sys.exit(run_inside("sdmetrics", __file__, sys.argv[1:]))
