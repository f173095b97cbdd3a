"""`python -m dit_dask` is `dit`."""

from __future__ import annotations

from dit_dask.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
