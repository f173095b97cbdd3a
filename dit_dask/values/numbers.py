"""How text writes numbers."""

from __future__ import annotations

INTEGER = r"\s*[+-]?\d+\s*"
DECIMAL = r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*"
