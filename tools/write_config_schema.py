"""Write the JSON Schema of the config into the package, for editors: python tools/write_config_schema.py."""

from __future__ import annotations

import json
from pathlib import Path

from dit_dask.audit.grammar import json_schema

TARGET = Path(__file__).parents[1] / "dit_dask" / "config.schema.json"

if __name__ == "__main__":
    TARGET.write_text(json.dumps(json_schema(), indent=1) + "\n", "utf-8")
