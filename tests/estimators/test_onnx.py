"""ONNX files say what the model says, in another runtime."""

from __future__ import annotations

import json

import numpy as np
import pytest

import baggraph as bg
from baggraph.errors import ParameterError

onnxruntime = pytest.importorskip("onnxruntime")

N = 20
rng = np.random.default_rng(0)
BAGS = [(rng.normal(size=(n, 3)) + k % 2).astype(np.float32) for k, n in enumerate(rng.integers(1, 6, size=N))]
NEW = [rng.normal(size=(n, 3)).astype(np.float32) for n in (1, 2, 7, 50)]
CLASSES, NUMBERS = ["calm", "stormy"] * (N // 2), np.linspace(0.1, 0.9, N)
ALONE = {"graph": None, "n_draws": 0, "epochs": 5}

MODELS = {
    "rff-pool": (bg.BagGraphClassifier(**ALONE), CLASSES),
    "rff-pool, attention, gelu": (
        bg.BagGraphClassifier(**ALONE, pooling="attention", encoder_options={"activation": "gelu"}),
        CLASSES,
    ),
    "logsumexp": (bg.BagGraphClassifier(**ALONE, pooling="logsumexp"), CLASSES),
    "members, calibrated": (bg.BagGraphClassifier(**ALONE, n_members=3, calibration=0.4), CLASSES),
    "three classes, hidden layer": (bg.BagGraphClassifier(**ALONE, hidden=(5,), encoder="res-pool"), np.arange(N) % 3),
    "gated attention": (bg.BagGraphClassifier(**ALONE, encoder="gated-attention"), CLASSES),
    "mi-net max": (bg.BagGraphClassifier(**ALONE, encoder="mi-net"), CLASSES),
    "mi-net mean": (bg.BagGraphClassifier(**ALONE, encoder="mi-net", pooling="mean", scaling="none"), CLASSES),
    "deep sets, unit norm": (bg.BagGraphRegressor(**ALONE, encoder="deep-sets", scaling="unit-norm"), 1e3 * NUMBERS),
    "two targets, own noise": (bg.BagGraphRegressor(**ALONE, loss="gaussian"), np.stack([NUMBERS, -NUMBERS], 1)),
    "shares": (bg.BagGraphRegressor(**ALONE, loss="bce", encoder="attention"), NUMBERS),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_file_says_what_the_model_says(name, tmp_path):
    model, y = MODELS[name]
    model.fit(BAGS, y)
    session = onnxruntime.InferenceSession(model.to_onnx(tmp_path / "model.onnx"))
    wanted = model.predict_posterior(NEW).mean
    found = [session.run(None, {"instances": bag}) for bag in NEW]
    assert np.allclose(np.concatenate([prediction for prediction, _ in found]), wanted, rtol=1e-4, atol=1e-5)
    inside = [session.run(["embedding"], {"instances": bag})[0] for bag in BAGS]
    assert np.allclose(np.concatenate(inside), model.embedding_, rtol=1e-4, atol=1e-5)
    classes = json.loads(session.get_modelmeta().custom_metadata_map["classes"])
    assert classes == (list(model.classes_) if hasattr(model, "classes_") else None)


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"graph": "learned"}, "a model without a graph"),
        ({"encoder": "set-transformer"}, "whose operations ONNX has, got SetTransformer"),
        ({"encoder": "mi-net", "pooling": "logsumexp"}, "whose operations ONNX has, got MiNet"),
    ],
)
def test_what_cannot_be_written(parameters, text, tmp_path):
    model = bg.BagGraphClassifier(**{**ALONE, **parameters}).fit(BAGS, CLASSES)
    with pytest.raises(ParameterError, match=text):
        model.to_onnx(tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []
