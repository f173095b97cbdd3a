"""Kernels that were compiled when an image was built, for processes that cannot write to it.

numba uses a cache of compiled functions only where it can also write. NUMBA_CACHE_LOCATOR_CLASSES names this class in the
image (deploy/Dockerfile).
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from numba.core.caching import UserProvidedCacheLocator


class ImageCacheLocator(UserProvidedCacheLocator):  # type: ignore[misc]
    """The folder of NUMBA_CACHE_DIR, with links to what was compiled beside the source; new kernels are added as files."""

    def ensure_cache_path(self) -> None:
        """Make the folder, and link to every compiled kernel that it does not have."""
        super().ensure_cache_path()
        folder = Path(self.get_cache_path())
        for compiled in sorted(Path(self._py_file).parent.glob("__pycache__/*.nb[ic]")):
            with suppress(FileExistsError):  # made before, or by another process at this moment
                os.symlink(compiled, folder / compiled.name)
