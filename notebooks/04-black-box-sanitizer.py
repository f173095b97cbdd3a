# %% [markdown]
# # A black-box sanitizer
#
# Your own code sanitises the table. It need not be known to dit_dask: a function from a frame to a frame is enough. Here it is a function of this notebook.

# %%
import dit_dask as dit
from dit_dask.inputs import datasets

people = datasets.census(rows=120, seed=5)[["age", "sex", "occupation"]]
schema = {"quasi_identifiers": {"age": {"kind": "numeric"}, "sex": {"kind": "categorical"}}, "sensitive": "occupation"}


def decades(frame, width=10):
    """Publish ages as ranges."""
    low = frame["age"] // width * width
    return frame.assign(age=low.astype(str) + "-" + (low + width - 1).astype(str))


def decades_without_small_groups(frame, k=5):
    """The same, and leave out groups of fewer than k."""
    ranges = decades(frame, 20)
    return ranges[ranges.groupby(["age", "sex"])["age"].transform("size") >= k]


# %% [markdown]
# Functions run in processes of their own, once for each distinct person. `claim` says what the release promises; the audit counts whether it keeps the promise. A run of a function by value cannot be repeated from its folder: put the function into a module where that is needed.

# %%
result = dit.audit(
    people,
    schema=schema,
    tests=[
        {"sanitizer": {"name": "python", "target": decades, "claim": {"k": 5}}, "label": "decades"},
        {"sanitizer": {"name": "python", "target": decades_without_small_groups, "claim": {"k": 5}}, "label": "grouped"},
    ],
    gates=["claims hold", "mean_gain <= 0.1"],
    claims="report",
)
result.summary[["delta", "mean", "mean_gain", "classes", "smallest_class", "claim_holds"]]

# %%
result.plot_tail()

# %% [markdown]
# ## The decision

# %%
for test in ("decades", "grouped"):
    problems = [one.reason for one in result.verdict.verdicts if one.test == test and not one.passed]
    print(f"decision on {test}:", "publish" if not problems else f"do not publish: {'; '.join(problems)}")
