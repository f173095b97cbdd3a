# %% [markdown]
# # On a Dask cluster and on Kubernetes
#
# The same call on a cluster: give `dit.audit` a client. Here it is a cluster of two processes on this machine; the result is the same to the bit.

# %%
import dit_dask as dit
from dit_dask.inputs import datasets
from distributed import Client

people = datasets.census(rows=300, seed=8)
schema = {"quasi_identifiers": {"age": {"kind": "numeric"}, "sex": {"kind": "categorical"}}, "sensitive": "occupation"}
tests = [{"sanitizer": {"name": "mondrian", "k": [5, 20]}}]
here = dit.audit(people, schema=schema, tests=tests)
with Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
    there = dit.audit(people, schema=schema, tests=tests, client=client, gates=["mean_gain <= 0.05"])
there.summary[["delta", "mean", "mean_gain"]]

# %%
all(here.distances(test).equals(there.distances(test)) for test in there.summary.index)

# %%
there.plot_tail()

# %% [markdown]
# ## Kubernetes
#
# `dit deploy` writes the manifests of a one-off or scheduled audit; this cell only prints them. `kubectl apply -f` would start it.

# %%
import subprocess
import sys
from pathlib import Path

Path("audit.yaml").write_text("""version: 1
name: people
data: {source: "s3://in/people.csv"}
schema: {quasi_identifiers: {age: {kind: numeric}, sex: {kind: categorical}}, sensitive: occupation}
tests: [{sanitizer: {name: mondrian, k: 20}}]
gates: ["mean_gain <= 0.05"]
output: s3://out/audits
""")
command = [
    sys.executable,
    "-m",
    "dit_dask",
    "deploy",
    "audit.yaml",
    "--image",
    "registry.example/dit:1",
    "--schedule",
    "0 3 * * 1",
]
done = subprocess.run(command, capture_output=True, text=True)
print("\n".join((done.stdout or done.stderr).splitlines()[:25]))

# %% [markdown]
# ## The decision

# %%
failed = [one.test for one in there.verdict.verdicts if not one.passed]
print("decision:", "this machine is enough for 300 rows;", f"do not publish {', '.join(failed)}" if failed else "publish")
