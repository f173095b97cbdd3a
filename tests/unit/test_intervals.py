"""Confidence limits, with SciPy's compiled functions alone and with its whole package."""

from __future__ import annotations

import subprocess
import sys

import pytest

ALONE = """
import sys
from dit_dask.values.intervals import lower_limit, special, student_factor, upper_limit
found = lower_limit(5, 100, 0.025), upper_limit(5, 100, 0.025), student_factor(0.025, 7)
assert "scipy.special" not in sys.modules
"""
BESIDE_A_THREAD = """
import sys, threading
from dit_dask.values.intervals import lower_limit, special, student_factor, upper_limit
end = threading.Event()
thread = threading.Thread(target=end.wait)
thread.start()
found = lower_limit(5, 100, 0.025), upper_limit(5, 100, 0.025), student_factor(0.025, 7)
end.set()
assert special() is sys.modules["scipy.special"]
"""
COMPARE = """
from scipy.special import betaincinv, stdtrit
assert special().betaincinv is betaincinv
assert found == (betaincinv(5, 96, 0.025), betaincinv(6, 95, 0.975), stdtrit(7, 0.975))
from scipy import stats
interval = stats.binomtest(5, 100).proportion_ci(0.95)
assert abs(interval.low - found[0]) < 1e-11 and abs(interval.high - found[1]) < 1e-11  # it searches for the root
"""


@pytest.mark.parametrize("program", [ALONE, BESIDE_A_THREAD])
def test_limits_are_those_of_scipy_which_can_be_imported_afterwards(program: str) -> None:
    done = subprocess.run([sys.executable, "-c", program + COMPARE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
