"""Saved models come back bit for bit in another process; damaged ones are refused, and nothing in them is ever run."""

from __future__ import annotations

import hashlib
import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors import numpy as safetensors
from sklearn.base import clone

import baggraph as bg
from baggraph.data._fingerprint import digest
from baggraph.errors import DataFileError, ParameterError
from baggraph.estimators._saving import load
from baggraph.estimators.process import BagProcessClassifier, BagProcessRegressor
from baggraph.graphs.wiring import AbstractWiring
from baggraph.nn import segment_mean

N, NEW = 24, 5


def made(seed, count, *, sparse=False):
    import scipy.sparse as sp

    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 6, size=count))])
    values = rng.normal(size=(offsets[-1], 3)) + np.repeat(np.arange(count) % 2, np.diff(offsets))[:, None]
    return bg.Bags(
        sp.csr_array(values * (values > 0)) if sparse else values, offsets, ids=[f"{seed}-{i}" for i in range(count)]
    )


CLASSES, NUMBERS = np.array(["calm", "stormy"] * (N // 2), dtype=object), np.linspace(0.1, 0.9, N)
FIT, MORE = made(0, N), made(1, NEW)
RING = bg.BagGraph.from_edges(
    [(a, b, 0.1 + k) for k, (a, b) in enumerate(zip(FIT.ids[:-1], FIT.ids[1:], strict=True))], FIT.ids
)
UNION = bg.BagGraph.from_edges(
    [*RING.to_table().itertuples(index=False, name=None), *((FIT.ids[i], MORE.ids[i], 0.3) for i in range(NEW))],
    [*FIT.ids, *MORE.ids],
)
SHORT = {"epochs": 4, "n_draws": 3, "random_state": 7}


class Own(torch.nn.Module):
    """An encoder as a user would write it, with a buffer."""

    def __init__(self, width=4):
        super().__init__()
        self.layer, self.width, self.level_widths = torch.nn.Linear(3, width), width, (width,)
        self.register_buffer("shift", torch.zeros(width))

    def forward(self, instances, offsets):
        return segment_mean(torch.tanh(self.layer(instances) + self.shift), offsets)


def shifted():
    own = Own()
    own.shift += 0.25
    return own


MODELS = {
    "learned": (bg.BagGraphClassifier(**SHORT), CLASSES),
    "calibrated ensemble": (bg.BagGraphClassifier(**SHORT, n_members=3, calibration=0.3), CLASSES),
    "three classes, balanced": (bg.BagGraphClassifier(**SHORT, class_weight="balanced"), np.arange(N) % 3),
    "weights by class, knn": (bg.BagGraphClassifier(**SHORT, graph="knn", class_weight={"calm": 2.0}), CLASSES),
    "boolean, linear": (bg.BagGraphClassifier(**SHORT, head="linear"), np.arange(N) % 2 == 0),
    "unlabelled bags": (bg.BagGraphClassifier(**SHORT), np.array([None, "a", "b", *["a", None, "b"] * 7], dtype=object)),
    "hidden layers, no draws": (bg.BagGraphClassifier(epochs=4, n_draws=0, hidden=(6,), encoder="attention"), CLASSES),
    "draws of graphs, rounds": (bg.BagGraphClassifier(**SHORT, n_graph_draws=2, rounds=2, embedding="last"), CLASSES),
    "observed": (bg.BagGraphClassifier(**SHORT, observed=RING, trust=0.5), CLASSES),
    "settings of a graph": (bg.BagGraphClassifier(**SHORT, graph=bg.LearnedGraph(2, local_scaling=True)), CLASSES),
    "own encoder": (bg.BagGraphClassifier(**SHORT, encoder=shifted()), CLASSES),
    "mi-net, float64": (bg.BagGraphClassifier(**SHORT, encoder="mi-net", precision="float64"), CLASSES),
    "generator": (bg.BagGraphClassifier(epochs=4, n_draws=3, random_state=np.random.RandomState(3)), CLASSES),
    "squared": (bg.BagGraphRegressor(**SHORT), NUMBERS),
    "shares on a given graph": (bg.BagGraphRegressor(**SHORT, loss="bce", graph=UNION), NUMBERS),
    "several targets, own noise": (bg.BagGraphRegressor(**SHORT, loss="gaussian"), np.stack([NUMBERS, -NUMBERS], 1)),
    "held-out intervals": (bg.BagGraphRegressor(**SHORT, calibration=0.3, n_members=2), NUMBERS),
}  # fmt: skip


PLACED = FIT.replace(graph=RING, coords=np.stack([NUMBERS, NUMBERS**2], axis=1))
PROCESSES = {
    "targets, places and graph": (BagProcessRegressor(), PLACED, np.exp(NUMBERS)),
    "classes of text": (BagProcessClassifier(), PLACED, CLASSES),
    "several targets": (BagProcessRegressor(parts="rbf"), FIT, np.stack([NUMBERS, -NUMBERS], 1)),
    "three classes": (BagProcessClassifier(parts=("near", "far")), FIT, np.arange(N) % 3),
    "a graph of more bags": (BagProcessRegressor(graph=UNION), FIT, NUMBERS),
}


@pytest.mark.parametrize("name", PROCESSES)
def test_processes_come_back_bit_for_bit(name, tmp_path):
    model, bags, y = PROCESSES[name]
    model = clone(model).fit(bags, y)
    again = load(model.save(tmp_path / "model"))
    new = MORE.replace(coords=np.linspace(0, 1, 2 * NEW).reshape(NEW, 2)) if bags is PLACED else MORE
    assert same_posterior(model.posterior_, again.posterior_)
    assert same_posterior(model.predict_posterior(new), again.predict_posterior(new))
    assert np.array_equal(model.transduction_, again.transduction_)
    assert model.shares_ == again.shares_
    assert model.graph_ == again.graph_
    rewritten(tmp_path / "model", lambda d: d["model"]["state"]["_ids"]["items"].reverse())
    with pytest.raises(DataFileError, match="the same bags in posterior and"):
        load(tmp_path / "model")


COMMITTEES = {
    "text, known graph": (bg.AutoBagClassifier(), PLACED, CLASSES),
    "networks inside": (bg.AutoBagClassifier(members=["average kernel", "kernel process", "bag graph"]), FIT, CLASSES),
    "three classes, a graph of more bags": (bg.AutoBagClassifier(graph=UNION), FIT, np.arange(N) % 3),
    "one target, places and graph": (bg.AutoBagRegressor(), PLACED, np.exp(NUMBERS)),
    "two targets": (bg.AutoBagRegressor(), FIT, np.stack([NUMBERS, -NUMBERS], 1)),
}


@pytest.mark.parametrize("name", COMMITTEES)
def test_committees_come_back_bit_for_bit(name, tmp_path):
    model, bags, y = COMMITTEES[name]
    model = clone(model).fit(bags, y)
    again = load(model.save(tmp_path / "model"))
    new = MORE.replace(coords=np.linspace(0, 1, 2 * NEW).reshape(NEW, 2)) if bags is PLACED else MORE
    assert same_posterior(model.posterior_, again.posterior_)
    assert same_posterior(model.predict_posterior(new), again.predict_posterior(new))
    assert np.array_equal(model.transduction_, again.transduction_)
    assert set(vars(again)) - {"notes_"} == set(vars(model))
    assert again.contributions().equals(model.contributions())
    assert again.graph_gain() == model.graph_gain()
    assert (again.graph_, again.skipped_) == (model.graph_, [])
    ask = (lambda m: m.predict_set(new)) if hasattr(model, "predict_set") else (lambda m: m.predict_interval(new))
    assert np.array_equal(ask(model), ask(again))
    rewritten(tmp_path / "model", lambda d: d["model"]["state"]["_maker"]["ids"]["items"].reverse())
    with pytest.raises(DataFileError, match="the same bags in posterior and fit"):
        load(tmp_path / "model")


def test_a_forest_whose_walks_would_never_end_is_refused(tmp_path):
    model = bg.AutoBagClassifier(members=["trees"]).fit(FIT, CLASSES)
    (seat,) = model.committees_[0].seats
    seat.scorer.forest.left[-2:] = 0
    with pytest.raises(DataFileError, match="members that know these bags"):
        load(model.save(tmp_path / "model"))


def fitted(name):
    if name in COMMITTEES:
        model, bags, y = COMMITTEES[name]
        return clone(model).fit(bags, y)
    model, y = MODELS[name]
    return clone(model).fit(FIT, y)


def same_posterior(left, right):
    same = np.array_equal(left.draws, right.draws) and np.array_equal(left.ids, right.ids)
    noise = left.variance is right.variance is None or np.array_equal(left.variance, right.variance)
    return same and noise and np.array_equal(left.classes, right.classes)


# ---------------------------------------------------------------------- coming back


@pytest.mark.parametrize("name", MODELS)
def test_everything_comes_back_bit_for_bit(name, tmp_path):
    model = fitted(name)
    own = Own() if name == "own encoder" else None
    again = load(model.save(tmp_path / "model", notes={"unit": "m", "scale": [0.1, None]}), encoder=own)
    assert type(again) is type(model)
    assert same_posterior(model.posterior_, again.posterior_)
    assert same_posterior(model.predict_posterior(MORE), again.predict_posterior(MORE))
    assert np.array_equal(model.transduction_, again.transduction_)
    assert np.array_equal(model.embedding_, again.embedding_)
    assert np.array_equal(model.loss_curve_, again.loss_curve_)
    assert model.graphs_ == again.graphs_
    assert again.notes_ == {"unit": "m", "scale": [0.1, None]}
    assert set(vars(again)) - {"notes_"} == set(vars(model))
    unlike = {"encoder", "graph", "observed", "random_state"}
    plain = {k: v for k, v in model.get_params().items() if k not in unlike}
    assert {k: v for k, v in again.get_params().items() if k not in unlike} == plain
    if model.conformal_ is not None:
        ask = (lambda m: m.predict_set(MORE)) if hasattr(model, "predict_set") else (lambda m: m.predict_interval(MORE))
        assert np.array_equal(ask(model), ask(again))


@pytest.mark.parametrize("name", ["learned", "calibrated ensemble", "observed"])
def test_a_loaded_model_makes_the_graph_anew_where_asked(name, tmp_path):
    model = fitted(name)
    again = load(model.save(tmp_path / "model"))
    assert same_posterior(model.predict_posterior(MORE, joint=True), again.predict_posterior(MORE, joint=True))


def test_a_loaded_model_is_saved_and_fitted_again(tmp_path):
    model = fitted("calibrated ensemble")
    again = load(load(model.save(tmp_path / "a")).save(tmp_path / "b"))
    assert same_posterior(model.predict_posterior(MORE), again.predict_posterior(MORE))
    assert same_posterior(again.fit(FIT, CLASSES).posterior_, model.posterior_)


def test_sparse_bags(tmp_path):
    model = bg.BagGraphClassifier(**SHORT).fit(made(0, N, sparse=True), CLASSES)
    again = load(model.save(tmp_path / "model"))
    new = made(1, NEW, sparse=True)
    assert same_posterior(model.predict_posterior(new), again.predict_posterior(new))


ELSEWHERE = """
import sys
import numpy as np
import baggraph as bg
model = bg.load(sys.argv[1])
posterior = model.predict_posterior(bg.read(sys.argv[2]))
np.savez(sys.argv[3], new=posterior.draws, ids=posterior.ids.astype(str), seen=model.posterior_.draws)
"""


@pytest.mark.parametrize("name", ["calibrated ensemble", "held-out intervals", "networks inside", "two targets"])
def test_predictions_of_another_process_are_identical(name, tmp_path):
    model = fitted(name)
    model.save(tmp_path / "model")
    MORE.to_npz(tmp_path / "new.npz")
    paths = [tmp_path / "model", tmp_path / "new.npz", tmp_path / "found.npz"]
    subprocess.run([sys.executable, "-c", ELSEWHERE, *map(str, paths)], check=True, timeout=120)
    found = np.load(paths[2])
    here = model.predict_posterior(MORE)
    assert np.array_equal(found["new"], here.draws)
    assert np.array_equal(found["seen"], model.posterior_.draws)
    assert found["ids"].tolist() == here.ids.tolist()


# ---------------------------------------------------------------------- what save refuses


class Odd(AbstractWiring):
    def wire(self, stack, ids):
        return bg.BagGraphClassifier, stack, ids


def test_save_refuses_what_it_could_not_bring_back(tmp_path):
    with pytest.raises(Exception, match="not fitted"):
        bg.BagGraphClassifier().save(tmp_path / "model")
    model = fitted("learned").set_params(hidden=(9,))
    with pytest.raises(ParameterError, match="the parameters of the fit"):
        model.save(tmp_path / "model")
    model = fitted("learned").set_params(graph=Odd())
    with pytest.raises(ParameterError, match="parts that the format knows, got a Odd"):
        model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_only_a_model_is_overwritten_and_only_where_asked(tmp_path):
    model = fitted("learned")
    model.save(tmp_path / "model")
    with pytest.raises(DataFileError, match=r"got a model in .*; pass overwrite=True"):
        model.save(tmp_path / "model")
    other = fitted("boolean, linear")
    other.save(tmp_path / "model", overwrite=True)
    assert same_posterior(load(tmp_path / "model").posterior_, other.posterior_)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    with pytest.raises(DataFileError, match="got something else"):
        model.save(tmp_path / "thesis", overwrite=True)
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == "years of work"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model", "thesis"]


def test_an_encoder_is_asked_for_and_compared(tmp_path):
    fitted("own encoder").save(tmp_path / "own")
    fitted("learned").save(tmp_path / "named")
    with pytest.raises(ParameterError, match=r"the encoder that the model was fitted with \(.*Own\), got none"):
        load(tmp_path / "own")
    with pytest.raises(DataFileError, match=r"encoder.shift of shape \(5,\).*pass the encoder"):
        load(tmp_path / "own", encoder=Own(width=5))
    with pytest.raises(ParameterError, match="expected no encoder"):
        load(tmp_path / "named", encoder=Own())


# ---------------------------------------------------------------------- damage


class Trap:
    """Leaves a mark where it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return (open, (str(self.mark), "w"))


def rewritten(folder, change, *, signed=True):
    """Change the header; signed, as by somebody who also computes digests anew."""
    document = json.loads((folder / "model.json").read_text())
    change(document)
    if signed:
        body = document["model"]
        body["files"] = {
            p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.iterdir() if p.name != "model.json"
        }
        document["digest"] = digest(body)
    (folder / "model.json").write_text(json.dumps(document))


def body(change):
    return lambda folder: rewritten(folder, lambda document: change(document["model"]))


def arrays(change):
    def act(folder):
        found = safetensors.load_file(folder / "arrays.safetensors")
        change(found)
        (folder / "arrays.safetensors").write_bytes(safetensors.save(found))
        rewritten(folder, lambda document: None)

    return act


def replaced(name, content):
    return lambda folder: (folder / name).write_bytes(content)


def cut(name, share):
    return lambda folder: (folder / name).write_bytes(
        (folder / name).read_bytes()[: int(share * (folder / name).stat().st_size)]
    )


def flipped(name, place):
    def act(folder):
        content = bytearray((folder / name).read_bytes())
        content[int(place * len(content))] ^= 1
        (folder / name).write_bytes(content)

    return act


def graph(change):
    def act(folder):
        table = change(pq.read_table(folder / "graph-0.parquet"))
        pq.write_table(table, folder / "graph-0.parquet")
        rewritten(folder, lambda document: None)

    return act


def swapped_ids(table):
    names = table.column("bag").to_pylist()
    return table.set_column(0, "bag", pa.array([names[1], names[0], *names[2:]]))


def pickled(name, *, signed):
    def act(folder):
        (folder / name).write_bytes(pickle.dumps(Trap(folder.parent / "trap sprung")))
        if signed:
            rewritten(folder, lambda document: None)

    return act


def swap_ids_of_fit(model):
    ids = model["state"]["_fitted"]["ids"]["items"]
    ids[0], ids[1] = ids[1], ids[0]


def set_state(name, value):
    return body(lambda model: model["state"].__setitem__(name, value))


def set_parameter(name, value):
    return body(lambda model: model["parameters"].__setitem__(name, value))


def renamed_weights(found):
    name = next(name for name in found if "parameters/encoder" in name)
    found[name + "x"] = found.pop(name)


def narrow_weights(found):
    name = next(name for name in found if "parameters/encoder" in name and found[name].ndim == 3)
    found[name] = found[name][:, :, :2].copy()


def nan_draws(found):
    found["posterior/draws"][0, 0, 0] = np.nan


DAMAGES = {
    # somebody's disk
    "no folder": (shutil.rmtree, "no folder"),
    "empty folder": (lambda folder: [p.unlink() for p in folder.iterdir()], "no model.json in"),
    "header missing": (lambda folder: (folder / "model.json").unlink(), "no model.json in"),
    "header empty": (replaced("model.json", b""), "model.json as it was saved, got no JSON"),
    "header truncated": (cut("model.json", 0.5), "model.json as it was saved, got no JSON"),
    "header not text": (replaced("model.json", bytes(range(256))), "model.json as it was saved, got no JSON"),
    "header a bit flipped": (flipped("model.json", 0.4), "model.json as it was saved"),
    "header nested without end": (replaced("model.json", b"[" * 100_000), "model.json as it was saved, got no JSON"),
    "weights missing": (lambda folder: (folder / "arrays.safetensors").unlink(), "arrays.safetensors .* no such file"),
    "weights empty": (replaced("arrays.safetensors", b""), "arrays.safetensors .* got 0 bytes"),
    "weights truncated": (cut("arrays.safetensors", 0.9), "arrays.safetensors .* not those that were written"),
    "weights a bit flipped": (flipped("arrays.safetensors", 0.9), "arrays.safetensors .* not those"),
    "graph missing": (lambda folder: (folder / "graph-0.parquet").unlink(), "graph-0.parquet .* no such file"),
    "graph truncated": (cut("graph-0.parquet", 0.7), "graph-0.parquet .* not those"),
    "graph a bit flipped": (flipped("graph-0.parquet", 0.3), "graph-0.parquet .* not those"),
    "files exchanged": (lambda folder: shutil.copy(folder / "graph-0.parquet", folder / "arrays.safetensors"), "not those"),
    # other versions, other things
    "newer version": (
        lambda folder: rewritten(folder, lambda d: d.__setitem__("version", 2)),
        r"version 2, written by baggraph .*; update baggraph",
    ),
    "version a word": (lambda folder: rewritten(folder, lambda d: d.__setitem__("version", "one")), "version 'one'"),
    "another format": (replaced("model.json", b'{"format": "torch"}'), "a header of something else"),
    "a list": (replaced("model.json", b"[]"), "a header of something else"),
    "unknown kind": (body(lambda m: m.__setitem__("kind", "os.system")), "AutoBagRegressor, got 'os.system'; update"),
    "kind of another": (body(lambda m: m.__setitem__("kind", "BagGraphRegressor")), "parts fit together"),
    "unknown part": (body(lambda m: m["state"]["scaler_"].__setitem__("is", "subprocess.Popen")), "'subprocess.Popen'"),
    # altered by somebody who computes the digests anew
    "altered unsigned": (
        lambda folder: rewritten(folder, lambda d: d["model"]["parameters"].__setitem__("n_draws", 9), signed=False),
        "facts that were altered",
    ),
    "pickle for weights": (pickled("arrays.safetensors", signed=False), "arrays.safetensors .* not those"),
    "pickle for weights, signed": (pickled("arrays.safetensors", signed=True), "arrays.safetensors .* no safetensors"),
    "pickle for the graph, signed": (pickled("graph-0.parquet", signed=True), "graph-0.parquet .* no table of a graph"),
    "pickle for the header": (pickled("model.json", signed=False), "model.json as it was saved, got no JSON"),
    "wrong feature count": (set_state("n_features_in_", 4), r"encoder.*of shape \(1, 256, 4\).*got \(1, 256, 3\)"),
    "scaler of fewer features": (
        arrays(lambda found: found.update({k: v[:2].copy() for k, v in found.items() if k.startswith("scaler")})),
        "a scaler of 3 features",
    ),
    "weights of fewer features": (arrays(narrow_weights), r"of shape \(1, 256, 3\).*got \(1, 256, 2\)"),
    "a weight renamed": (arrays(renamed_weights), "parts fit together"),
    "draws not a number": (arrays(nan_draws), "finite draws"),
    "ids of the fit swapped": (body(swap_ids_of_fit), "the same bags in posterior, embedding and graph"),
    "ids of the graph swapped": (graph(swapped_ids), "the same bags in posterior, embedding and graph"),
    "graph without a bag": (graph(lambda table: table.slice(1)), "graph-0.parquet as it was saved"),
    "graph with another column": (graph(lambda table: table.rename_columns(["bag", "n", "weights"])), "no table of a graph"),
    "seeds of more members": (body(lambda m: m["state"]["_fitted"]["seeds"].append(1)), "parts|shape"),
    "a parameter too many": (set_parameter("shell", "rm"), "'shell'"),
    "a parameter of another kind": (set_parameter("epochs", "many"), "epochs a whole number"),
    "a method overwritten": (set_state("predict", "nothing"), "KeyError: 'predict'"),
    "state missing": (body(lambda m: m["state"].pop("_fitted")), "KeyError: '_fitted'"),
    "a path out of the folder": (
        lambda folder: rewritten(
            folder,
            lambda d: (d["model"].__setitem__("files", {"../../etc/passwd": ""}), d.__setitem__("digest", digest(d["model"]))),
            signed=False,
        ),
        "a list of files that is not one",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sound") / "model"
    fitted("learned").save(folder)
    load(folder)
    return folder


def test_the_table_of_damages_is_long_enough():
    assert len(DAMAGES) >= 30


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_a_clear_error_and_runs_nothing(name, sound, tmp_path):
    act, text = DAMAGES[name]
    folder = tmp_path / "model"
    shutil.copytree(sound, folder)
    act(folder)
    with pytest.raises(bg.errors.BagError, match=text) as caught:
        load(folder)
    message = str(caught.value)
    assert message.startswith("load: expected ")
    assert "; " in message
    assert "\n" not in message
    assert not (tmp_path / "trap sprung").exists()


def test_the_trap_works(tmp_path):
    """Else the test above would prove nothing."""
    pickle.loads(pickle.dumps(Trap(tmp_path / "trap sprung"))).close()
    assert (tmp_path / "trap sprung").exists()


def test_no_pickle_is_within_reach():
    """Neither our code nor any reader that it calls is asked to unpickle."""
    import baggraph.estimators._packing as packing
    import baggraph.estimators._parcel as parcel
    import baggraph.estimators._saved_networks as networks
    import baggraph.estimators._saved_processes as processes
    import baggraph.estimators._saving as saving

    for module in (packing, parcel, networks, processes, saving):
        text = Path(module.__file__).read_text()
        assert not any(
            word in text for word in ("import pickle", "torch.load", "joblib", "allow_pickle", "eval(", "import_module")
        )
