"""Saving fitted estimators, and loading them with every doubt spoken."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

from sklearn.utils.validation import check_is_fitted
from torch import nn

from baggraph.errors import BagError, DataFileError, ParameterError
from baggraph.estimators import _saved_committees, _saved_networks, _saved_processes
from baggraph.estimators._packing import Packer, Unpacker
from baggraph.estimators._parcel import read_parcel, write_parcel

__all__ = ["load"]

DAMAGED = "the model is damaged or was altered: copy it again, or fit it again"
UNREADABLE = (KeyError, IndexError, TypeError, ValueError, AttributeError, RuntimeError, RecursionError)


def kinds() -> dict[str, tuple[Any, ModuleType]]:
    """Estimators that can be saved, by the name that their files state, and what is special about their family."""
    from baggraph.estimators.auto import AutoBagClassifier
    from baggraph.estimators.auto_regressor import AutoBagRegressor
    from baggraph.estimators.classifier import BagGraphClassifier
    from baggraph.estimators.process import BagProcessClassifier, BagProcessRegressor
    from baggraph.estimators.regressor import BagGraphRegressor

    families = {
        _saved_networks: (BagGraphClassifier, BagGraphRegressor),
        _saved_processes: (BagProcessClassifier, BagProcessRegressor),
        _saved_committees: (AutoBagClassifier, AutoBagRegressor),
    }
    return {kind.__name__: (kind, family) for family, some in families.items() for kind in some}


def save(model: Any, folder: str | Path, *, overwrite: bool = False, notes: Any = None) -> Path:
    """See :meth:`BagGraphClassifier.save`."""
    packer = Packer()
    packer.parcel.facts = {**facts_of(model, packer), "notes": json.loads(json.dumps(notes))}
    write_parcel(packer.parcel, Path(folder), overwrite=overwrite)
    return Path(folder)


def facts_of(model: Any, packer: Packer) -> dict[str, Any]:
    """A fitted estimator as facts, its arrays and graphs in the packer's parcel."""
    check_is_fitted(model, "posterior_")
    kind, family = kinds().get(type(model).__name__, (None, _saved_networks))
    if kind is not type(model):
        got, remedy = type(model).__name__, f"save one of {', '.join(kinds())}"
        raise ParameterError("save", expected="an estimator of this package", got=got, remedy=remedy)
    parameters = model.get_params(deep=False)
    parameters |= {"verbose": 0} if "verbose" in parameters else {}
    state = {name: value for name, value in vars(model).items() if name not in {*parameters, *family.DERIVED}}
    return {
        "kind": type(model).__name__,
        **family.more_facts(model, packer),
        "parameters": {name: packer.pack(value, f"parameters/{name}") for name, value in parameters.items()},
        "state": {name: packer.pack(value, name.strip("_")) for name, value in state.items()},
    }


def load(folder: str | Path, *, encoder: nn.Module | None = None) -> Any:
    """A fitted estimator from a folder that ``save`` wrote; its predictions are the same, bit for bit.

    Nothing in the folder is run: it holds numbers and text alone, and every file is compared with its digest.  What was
    noted while saving is in ``notes_``.

    Parameters
    ----------
    folder
        What ``save`` was given.
    encoder
        Where the model was fitted with an encoder of your own: a module of the same make; its weights do not matter.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from baggraph.estimators import BagGraphClassifier
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(label, 1, size=(3, 2)) for label in (0, 2) * 10]
    >>> model = BagGraphClassifier(epochs=5, n_draws=3).fit(bags, ["calm", "stormy"] * 10)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = load(model.save(folder + "/model"))
    >>> np.array_equal(again.predict_proba(bags), model.predict_proba(bags))
    True

    """
    parcel = read_parcel(Path(folder))
    try:
        model = restored(parcel.facts, Unpacker(parcel), encoder)
        model.notes_ = parcel.facts["notes"]
    except (BagError, *UNREADABLE) as error:
        if isinstance(error, DataFileError | ParameterError) and error.stage == "load":
            raise
        got = " ".join(f"{type(error).__name__}: {error}".split())
        raise DataFileError("load", expected="a model whose parts fit together", got=got, remedy=DAMAGED) from error
    return model


def restored(facts: dict[str, Any], unpacker: Unpacker, encoder: nn.Module | None = None) -> Any:
    """The estimator of what :func:`facts_of` gave."""
    if facts["kind"] not in kinds():
        remedy = "update baggraph, or fit the model again"
        raise DataFileError("load", expected=f"one of {', '.join(kinds())}", got=repr(facts["kind"]), remedy=remedy)
    kind, family = kinds()[facts["kind"]]
    model, module = family.restore(kind, facts, unpacker, encoder)
    for name, fact in facts["state"].items():
        if hasattr(kind, name):
            raise KeyError(name)
        setattr(model, name, unpacker.unpack(fact, module=module))
    for what, fine in family.complete(model):
        if not fine:
            raise DataFileError("load", expected=what, got="parts of different models", remedy=DAMAGED)
    return model
