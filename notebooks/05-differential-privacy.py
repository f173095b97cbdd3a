# %% [markdown]
# # Differential privacy: what sampling hides
#
# A histogram is published with Laplace noise. The promise is about the distribution of releases, so one release shows nothing: the test compares distributions, in closed form where that is possible, else by simulation.

# %%
import dit_dask as dit
from dit_dask.inputs import datasets

people = datasets.census(rows=200, seed=2)
schema = {"quasi_identifiers": {"age": {"kind": "numeric"}, "sex": {"kind": "categorical"}}, "sensitive": "occupation"}
noisy = {"name": "laplace", "bins": {"age": 3}}
exact = dit.audit(people, schema=schema, tests=[{"sanitizer": {**noisy, "epsilon": [0.1, 1, 10]}, "method": "exact"}])
exact.summary[["delta", "mean", "claim_holds"]]

# %% [markdown]
# ## The same by simulation
#
# A simulated distance is never negative, so noise makes it too large. With few samples the figure is mostly noise: it falls as samples are added, while the truth does not change.

# %%
tests = [
    {"sanitizer": {**noisy, "epsilon": 0.1}, "method": "simulate", "samples": samples, "label": f"samples-{samples}"}
    for samples in (100, 1000, 10000)
]
simulated = dit.audit(people, schema=schema, tests=tests, claims="report")
truth = exact.summary["delta"].iloc[0]
simulated.summary[["delta", "mean"]].assign(truth=truth)

# %%
simulated.plot()

# %% [markdown]
# ## The decision
#
# Use the closed form where there is one. Where there is none, add samples until the figure no longer falls, and read the standard errors.

# %%
largest = simulated.summary["delta"].iloc[-1]
print(f"decision: judge epsilon = 0.1 by the closed form, delta {truth:.4f}; 10,000 samples say {largest:.4f}")
