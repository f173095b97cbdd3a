# %% [markdown]
# # A first audit
#
# A table of people is to be published after k-anonymity. How much does any one person's record change what an adversary can infer about that person? This notebook needs no network: it audits a census-like table that is part of the package.

# %%
import dit_dask as dit
from dit_dask.inputs import datasets

people = datasets.census(rows=600, seed=7)
people.head()

# %% [markdown]
# ## What an adversary knows, and what nobody should infer
#
# Quasi-identifiers are what an adversary may know about a person; the sensitive column is what the adversary wants to infer. Hierarchies define how categories are generalised; the package has some under `dit://hierarchies/`.

# %%
schema = {
    "quasi_identifiers": {
        "age": {"kind": "numeric"},
        "education": {"kind": "categorical", "hierarchy": "dit://hierarchies/adult-education.csv"},
        "marital-status": {"kind": "categorical", "hierarchy": "dit://hierarchies/adult-marital-status.csv"},
        "sex": {"kind": "categorical"},
    },
    "sensitive": "occupation",
}

# %% [markdown]
# ## Run it
#
# A list where one value is expected is a sweep: one test for each value. `raw` is the table without sanitising. Pass a Dask client as `client=` to distribute the work over a cluster; without one it runs in this process.

# %%
result = dit.audit(
    people,
    schema=schema,
    tests=[{"sanitizer": "raw"}, {"sanitizer": {"name": "mondrian", "k": [2, 5, 20]}}],
    gates=["delta <= 1.5"],
    seed=7,
)
result.summary[["delta", "mean", "quantiles[0.99]", "share_over[0.1]", "classes", "claim_holds"]]

# %% [markdown]
# **delta** is the largest distance d: the prediction about one person changed by this much when their record was removed. With the default distance (Σ|p − p′|) it is between 0 and 2.

# %%
result.plot()

# %% [markdown]
# ## Which records have the largest distance?
#
# Records are positions in the table, so an audit does not leak the data it audits. If you have the table, you can look them up.

# %%
worst = result.distances("mondrian-k5").nlargest(5, "distance")
worst

# %%
print("all gates together:", result.verdict.status)
for verdict in result.verdict.verdicts:
    print(verdict.status, verdict.gate, verdict.test, verdict.reason)

# %% [markdown]
# ## The decision
#
# The raw table and the strongest k are far apart. With the limit of this notebook the release of k = 20 is the only one to consider; the next notebook chooses k with a limit that somebody can defend.

# %%
passed = sorted({one.test for one in result.verdict.verdicts} - {one.test for one in result.verdict.verdicts if not one.passed})
print("decision:", f"publish {passed[-1]}" if passed else "do not publish any of these releases")
