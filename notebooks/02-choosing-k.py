# %% [markdown]
# # Choosing k
#
# A larger k usually protects better and always publishes less. `dit.tune` audits several values as one sweep and recommends the weakest one that passes every gate.

# %%
import dit_dask as dit
from dit_dask.inputs import datasets

people = datasets.census(rows=1500, seed=3)
schema = {
    "quasi_identifiers": {
        "age": {"kind": "numeric"},
        "education": {"kind": "categorical", "hierarchy": "dit://hierarchies/adult-education.csv"},
        "sex": {"kind": "categorical"},
    },
    "sensitive": "occupation",
}
gates = ["mean_gain <= 0.02", "share_over[0.5] <= 0.02"]
tuned = dit.tune(people, schema=schema, sanitizer="mondrian", values=[2, 5, 10, 20, 50, 100], gates=gates)
tuned.curve[["delta", "mean", "share_over[0.1]", "mean_gain", "certainty_penalty", "status"]]

# %% [markdown]
# The certainty penalty is what is lost: 0 publishes every value as it is, 1 suppresses all. Delta, the worst case, need not fall with k: without one person Mondrian may cut elsewhere.

# %%
tuned.plot()

# %% [markdown]
# ## What can be had for what
#
# Choices that no other one beats in both risk and loss are joined by a line.

# %%
tuned.plot_frontier(risk="mean")

# %% [markdown]
# ## Who is left at risk?
#
# The gates allow a few persons a large distance. The tail shows how many.

# %%
chosen = tuned.recommended or 100
result = dit.audit(people, schema=schema, tests=[dit.Mondrian(k=int(chosen))], gates=gates)
result.plot_tail()

# %%
result.worst(3)[["record", "distance", "adversary", "gain", "delta_without"]]

# %% [markdown]
# ## The decision

# %%
print("decision:", f"publish with k = {chosen:g}" if tuned.recommended else "do not publish: no k of this list passes")
print(tuned.reason)
