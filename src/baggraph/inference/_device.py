"""Where tensors live."""

from __future__ import annotations

import torch

from baggraph.errors import ParameterError, closest


def chosen_device(name: str) -> torch.device:
    """The device of that name; ``"auto"`` is a GPU where there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        return torch.device(name)
    except RuntimeError as error:
        remedy = closest(str(name), ("auto", "cpu", "cuda"))
        raise ParameterError("device", expected="the name of a device", got=repr(name), remedy=remedy) from error
