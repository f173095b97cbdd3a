# %% [markdown]
# # Synthetic data
#
# Is a synthetic table similar to the original, but not too similar? Two made-up synthesizers: one draws every column from its own distribution, one copies training rows and changes a few ages.

# %%
import numpy as np
import pandas as pd

import dit_dask as dit
from dit_dask.inputs import datasets

rng = np.random.default_rng(4)
people = datasets.census(rows=1200, seed=4)[["age", "education", "sex", "occupation"]]
training, holdout = people.iloc[:600], people.iloc[600:]
independent = pd.DataFrame({name: rng.choice(training[name], 600) for name in training})
copied = training.sample(600, replace=True, random_state=4).reset_index(drop=True)
copied["age"] = copied["age"] + rng.choice([0, 0, 0, 1], 600)
tables = {"independent columns": independent, "copied rows": copied}

# %% [markdown]
# ## Similar?
#
# `tvd` is the mean distance of all tables of one, two and three columns; `expected` is what a perfect release would score.

# %%
scores = {name: dit.accuracy(training, table) for name, table in tables.items()}
pd.DataFrame({name: {"tvd": score.tvd, "expected": score.expected.tvd} for name, score in scores.items()}).T

# %% [markdown]
# ## Too similar?
#
# Training and holdout come from the same population. If synthetic rows tell them apart, training was memorised.

# %%
near = {name: dit.closeness(training, table, holdout) for name, table in tables.items()}
pd.DataFrame({name: {"passed": one.passed, "identical": one.identical, "reason": one.reason} for name, one in near.items()}).T

# %% [markdown]
# ## The decision
#
# Closeness says that copies were found, or that none were; it does not say what can be inferred about a person. To decide on a synthesizer, audit it: `sanitizer: {name: python, target: …}` with repeats.

# %%
for name, one in near.items():
    print(f"decision on {name}:", "audit the synthesizer next" if one.passed else "do not publish")
