"""Where tensors live."""

from __future__ import annotations

import torch


def chosen_device(name: str) -> torch.device:
    """The device of that name; ``"auto"`` is a GPU where there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)
