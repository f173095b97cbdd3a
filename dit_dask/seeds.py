"""Random streams that depend on the seed and on what they are for, never on order or place."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def integer(seed: int, *purpose: object, bits: int = 32) -> int:
    """Derive a non-negative integer of so many bits from the seed and its purpose."""
    text = "\x1f".join(str(part) for part in (seed, *purpose))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[: bits // 8], "big")


def stream(seed: int, *purpose: object) -> np.random.Generator:
    """Open the one Philox stream of this seed and purpose."""
    import numpy as np

    return np.random.Generator(np.random.Philox(key=integer(seed, *purpose, bits=128)))


def shuffled(rng: np.random.Generator, size: int) -> NDArray[np.int32]:
    """Return what rng.permutation(size) does, in half the memory."""
    import numpy as np

    numbers = np.arange(size, dtype=np.int32)
    rng.shuffle(numbers)
    return numbers
