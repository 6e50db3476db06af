"""The method that saves."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class Savable:
    """An estimator that can be written to a folder."""

    def save(self, folder: str | Path, *, overwrite: bool = False, notes: Any = None) -> Path:
        """Write the fitted model to a folder of JSON, safetensors and Parquet; ``baggraph.load`` gives it back.

        ``notes`` is anything that JSON can hold, and comes back as ``notes_``.  Only another model is overwritten.
        """
        from baggraph.estimators._saving import save

        return save(self, folder, overwrite=overwrite, notes=notes)
