"""The values that all stages share: schema, hierarchy, table, release."""
