# %% [markdown]
# # Three tables of the kind that people have
#
# Hospital discharges with several visits a patient, a payroll with a numeric secret, and a survey with ordinal answers, umlauts, semicolons and decimal commas. All persons are invented by a seeded script of this repository. For each table: what is published, what nobody should infer, and a decision at the end.

# %%
import runpy
from pathlib import Path

import pandas as pd

import dit_dask as dit
from dit_dask import cli

script = Path(dit.__file__).parents[1] / "tools" / "make_worked_tables.py"
runpy.run_path(str(script))["write_tables"](Path("worked"), rows=600)
discharges = pd.read_csv("worked/discharges.csv", dtype=str, index_col="visit_id")
discharges.head()

# %% [markdown]
# ## From a table to a first config
#
# `dit init` looks at the columns and drafts a config that `dit run` accepts as it is. Every guess is a comment beside its evidence.

# %%
cli.main(["init", "worked/discharges.csv", "--to", "worked/discharges.yaml", "--yes"])  # in a terminal: dit init …
print(Path("worked/discharges.yaml").read_text("utf-8"))

# %% [markdown]
# ## Discharges: a patient has several rows
#
# `subject` says whose rows belong together: they leave the table together, and k is counted in persons. Without it a class of five rows may be one patient, and the other visits stay in the table when one is removed.

# %%
quasi_identifiers = {
    "birth": {"kind": "date"},
    "sex": {"kind": "categorical"},
    "postcode": {"kind": "categorical", "hierarchy": {"prefix": [4, 3, 2]}},
}
gates = ["mean_gain <= 0.05", "share_over[0.5] <= 0.1"]
tests = [{"sanitizer": {"name": "mondrian", "k": [2, 5, 20]}}]
columns = ["subjects", "records", "delta", "mean", "mean_gain", "classes", "smallest_class"]

rows = dit.audit(discharges, schema={"quasi_identifiers": quasi_identifiers, "sensitive": "icd"}, tests=tests, gates=gates)
schema = {"subject": "patient_id", "quasi_identifiers": quasi_identifiers, "sensitive": "icd"}
persons = dit.audit(discharges, schema=schema, tests=tests, gates=gates)
pd.concat({"rows": rows.summary[columns], "persons": persons.summary[columns]})

# %% [markdown]
# Distances are indexed like the table, so the visits with the largest ones are found again by their labels.

# %%
worst = persons.distances("mondrian-k5").nlargest(3, "distance")
discharges.loc[worst.index, ["birth", "sex", "postcode"]].assign(distance=worst["distance"])

# %% [markdown]
# ## Payroll: a numeric secret, and two secrets at once
#
# Nearly all salaries differ, so they are put into bins. A list of sensitive attributes has one test for each, and `joint` asks for both together.

# %%
payroll = dit.audit(
    "worked/payroll.csv",
    schema={
        "quasi_identifiers": {
            "age": {"kind": "numeric"},
            "gender": {"kind": "categorical"},
            "department": {"kind": "categorical"},
        },
        "sensitive": [{"name": "salary", "bins": 5}, "grade", {"joint": ["salary", "grade"]}],
    },
    tests=tests,
    gates=gates,
)
payroll.summary[["delta", "mean", "mean_gain", "share_over[0.1]"]]

# %%
payroll.plot()

# %% [markdown]
# ## Survey: ordered answers in a European file
#
# Separator, encoding and decimal sign are found by looking at the file. Answers have an order, and "k.A." (not answered) is missing.

# %%
answers = ["nie", "selten", "manchmal", "oft", "immer"]
survey = dit.audit(
    "worked/survey.csv",
    missing={"Sport": ["k.A."]},
    schema={
        "quasi_identifiers": {
            "Wohnort": {"kind": "categorical"},
            "Alter": {"kind": "numeric"},
            "Größe": {"kind": "numeric"},
            "Raucher": {"kind": "boolean"},
            "Sport": {"kind": "ordinal", "order": answers},
        },
        "sensitive": {"name": "Schlafstörung", "order": answers},
    },
    tests=tests,
    gates=gates,
)
survey.summary[["records", "delta", "mean", "mean_gain"]]

# %% [markdown]
# ## The decision
#
# A release may go out with the smallest k whose gates all pass, for every sensitive attribute.


# %%
def smallest_k(result):
    failed = {verdict.test for verdict in result.verdict.verdicts if not verdict.passed}
    k_of = {one["test"]: one["parameters"]["sanitizer"]["k"] for one in result.tests}
    passing = set(k_of.values()) - {k_of[test] for test in failed}
    return f"publish with k = {min(passing)}" if passing else "do not publish: coarsen the quasi-identifiers, or raise k"


results = {"discharges, by rows": rows, "discharges, by persons": persons, "payroll": payroll, "survey": survey}
pd.Series({name: smallest_k(result) for name, result in results.items()}, name="decision").to_frame()

# %% [markdown]
# The limits are the decision of whoever is responsible for the release; the audit says what they mean on this table. Discharges are decided by persons, because the rows of a patient are not independent.
