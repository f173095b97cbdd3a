# %% [markdown]
# # The papers beside our figures
#
# `dit reproduce NAME` computes the papers' tables again; this notebook reads what it wrote. `deck` takes seconds; `v1` and `v2` take minutes and are used in the same way.

# %%
import subprocess
import sys

done = subprocess.run(
    [sys.executable, "-m", "dit_dask", "reproduce", "deck", "--out", "results/deck", "--quiet"], check=True, capture_output=True
)

# %% [markdown]
# Every row has the published number, ours, and what explains a difference.

# %%
import pandas as pd

pd.read_csv("results/deck/deck-worked.csv")

# %% [markdown]
# Charts are SVG files.

# %%
from IPython.display import SVG

SVG(filename="results/deck/deck-identity.svg")

# %% [markdown]
# ## The decision
#
# Where published figures and ours agree, or where the difference has a cause that is named, the tool may be used for the rest of the audit.

# %%
table = pd.read_csv("results/deck/deck-worked.csv")
reproduced = (table["explained by"] == "reproduced").sum()
unexplained = table["explained by"].isna().sum()
print(
    f"{reproduced} of {len(table)} figures are reproduced, {len(table) - reproduced - unexplained} differ for a cause that is named"
)
print(
    "decision:",
    "use the discrimination rate" if unexplained == 0 else f"do not use it yet: {unexplained} figures differ without a cause",
)
