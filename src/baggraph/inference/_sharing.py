"""Base models that several plans have in common, trained once."""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import torch

from baggraph.data._fingerprint import digest, fingerprint
from baggraph.data.bags import Bags
from baggraph.data.graph import BagGraph
from baggraph.inference.stack import StackFit

_fits: ContextVar[dict[str, StackFit] | None] = ContextVar("shared base models", default=None)


@contextmanager
def sharing_base_models() -> Iterator[None]:
    """Inside, a base model that was trained once is taken as it is by every further plan that trains the same one.

    Training depends on the seed alone, so nothing changes but the time; fits are forgotten at the end.
    """
    token = _fits.set({})
    try:
        yield
    finally:
        _fits.reset(token)


def trained_once(
    make: Callable[[], StackFit], plan: Any, bags: Bags, observed: BagGraph | None, arrays: Sequence[Any]
) -> StackFit:
    """What ``make`` trains, or the fit of an equal network on equal bags, graph, targets, weights and seeds."""
    known = _fits.get()
    key = None if known is None else _key(plan, bags, observed, arrays)
    if known is None or key is None:
        return make()
    if key not in known:
        known[key] = make()
    return known[key]


class _Structure(pickle.Pickler):
    """Pickles networks without the values of their parameters, which the seed draws anew, nor where they are stored."""

    def reducer_override(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return NotImplemented
        content = b"" if isinstance(value, torch.nn.Parameter) else value.detach().cpu().numpy().tobytes()
        return tuple, ((str(value.dtype), tuple(value.shape), content),)


def _key(plan: Any, bags: Bags, observed: BagGraph | None, arrays: Sequence[Any]) -> str | None:
    """Hash of everything a base model depends on; None where the network cannot be pickled."""
    content = io.BytesIO()
    try:
        _Structure(content).dump((plan.network, plan.loss, dict(plan.training)))
    except (pickle.PicklingError, AttributeError, TypeError):
        return None
    sink = hashlib.sha256(content.getvalue())
    sink.update(fingerprint(bags).encode())
    for array in arrays:
        values = np.ascontiguousarray(array)
        sink.update(f"{values.dtype} {values.shape}".encode())
        sink.update(values.tobytes())
    sink.update(digest(observed).encode())
    return sink.hexdigest()
