"""Every finding on a small made set that has it, and on a twin that has not; the real sets where they are at hand."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kruskal, pearsonr, spearmanr

import baggraph as bg
from baggraph import datasets
from baggraph.data.results import ResultTable
from baggraph.errors import DataFileError, InvalidBagsError, ParameterError
from baggraph.evaluation._audit_graph import agreement
from baggraph.evaluation._audit_scores import rows_for
from baggraph.evaluation._findings import SEVERITIES, TITLES
from baggraph.evaluation._renumbering import rewire
from baggraph.evaluation._shuffles import Shuffles
from baggraph.evaluation.audit import Audit, Finding, audit

N = 80
RNG = np.random.default_rng(7)
Y = RNG.permutation(np.repeat([0, 1], N // 2))
SIZES = RNG.integers(3, 7, size=N)
OFFSETS = np.concatenate([[0], np.cumsum(SIZES)])
PER_ROW = np.repeat(Y, SIZES)
X = RNG.normal(size=(OFFSETS[-1], 6)) + 0.6 * (PER_ROW[:, None] - 0.5) * (np.arange(6) < 2)
IDS = [f"site {name}" for name in "".join(chr(97 + i % 26) for i in range(N))]
IDS = [f"{name}{chr(97 + i // 26)}" for i, name in enumerate(IDS)]
GRID = np.argwhere(np.ones((8, 10))).astype(float)
LATTICE = (np.abs(GRID[:, None] - GRID[None]).sum(axis=2) == 1).astype(float)
FIELD = np.sin(GRID[:, 0] / 2) + np.cos(GRID[:, 1] / 3)


def plain(**changes):
    """Bags that two columns tell something of, and nothing else does."""
    return bg.Bags(
        changes.pop("X", X),
        changes.pop("offsets", OFFSETS),
        changes.pop("y", Y),
        ids=changes.pop("ids", IDS),
        **changes,
    )


def extra(column):
    return plain(X=np.c_[X, column])


def by_size():
    sizes = np.where(Y == 1, 8, 3)
    rng = np.random.default_rng(0)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return plain(X=rng.normal(size=(offsets[-1], 6)), offsets=offsets)


def sorted_by_label():
    return plain().take(np.argsort(Y, kind="stable"))


def named_by_label():
    return plain(ids=[f"{'tumour' if y else 'normal'} {i}" for i, y in enumerate(Y)])


def zeros_in_one_class():
    keep = np.random.default_rng(1).random(X.shape) < np.where(PER_ROW == 1, 0.9, 0.5)[:, None]
    return plain(X=X * keep)


def meaningless_labels():
    return plain(X=np.random.default_rng(20).normal(size=X.shape))


def chosen_columns():
    rng = np.random.default_rng(3)
    words = (rng.random((len(X), 60)) < 0.02) * PER_ROW[:, None]
    return plain(X=np.c_[X, words])


def neutral_columns():
    return plain(X=np.c_[X, np.random.default_rng(3).random((len(X), 60)) < 0.02])


def one_bag_twice():
    rows = X.copy()
    first, other = np.flatnonzero(SIZES == 4)[:2]
    rows[OFFSETS[other] : OFFSETS[other + 1]] = rows[OFFSETS[first] : OFFSETS[first + 1]][::-1]
    return plain(X=rows)


def one_instance_twice():
    rows = X.copy()
    rows[OFFSETS[5]] = rows[OFFSETS[9]]
    return plain(X=rows)


def wired(adjacency, y=FIELD, **more):
    return plain(y=y, graph=bg.BagGraph(sp.csr_array(adjacency), IDS), **more)


def exchanged(seed=0):
    order = np.random.default_rng(seed).permutation(N)
    return LATTICE[order][:, order]


FAULTS = {
    "BG101": (by_size, plain),
    "BG102": (sorted_by_label, plain),
    "BG103": (named_by_label, plain),
    "BG104": (lambda: plain(X=X * np.where(PER_ROW == 1, 4, 1)[:, None]), plain),
    "BG105": (zeros_in_one_class, plain),
    "BG106": (by_size, plain),
    "BG107": (meaningless_labels, plain),
    "BG201": (lambda: extra(1 + PER_ROW), lambda: extra(np.random.default_rng(4).permutation(1 + PER_ROW))),
    "BG202": (chosen_columns, neutral_columns),
    "BG203": (
        lambda: extra(np.repeat(np.random.default_rng(5).permutation(N), SIZES)),
        lambda: extra(np.arange(len(X))),
    ),
    "BG301": (one_bag_twice, plain),
    "BG302": (one_instance_twice, plain),
    "BG401": (lambda: extra(np.full(len(X), 2.0)), plain),
    "BG402": (lambda: extra(np.repeat(np.arange(N) == 11, SIZES)), plain),
    "BG403": (lambda: extra(1e7 * RNG.normal(size=len(X))), plain),
    "BG501": (lambda: wired(LATTICE, y=np.random.default_rng(6).permutation(FIELD)), lambda: wired(LATTICE)),
    "BG502": (lambda: wired(exchanged(), coords=GRID), lambda: wired(LATTICE, coords=GRID)),
    "BG601": (plain, lambda: plain().take(np.arange(12))),
}


@pytest.mark.parametrize("code", FAULTS)
def test_a_fault_is_found_and_its_clean_twin_is_not_blamed(code):
    faulty, clean = FAULTS[code]
    assert code in audit(faulty()).codes
    assert code not in audit(clean()).codes


def test_bags_with_nothing_wrong_have_nothing_above_a_note():
    assert audit(plain()).codes == ["BG601"]


def test_every_code_has_a_test_and_a_line_in_the_guide():
    tested = {*FAULTS, "BG303", "BG602"}
    guide = Path(__file__).parents[2] / "docs" / "guide" / "audit.md"
    assert tested == set(TITLES)
    assert [code for code in TITLES if code not in guide.read_text(encoding="utf-8")] == []


# ---------------------------------------------------------------------- what findings say


def test_the_ingredient_of_a_mean_is_found_by_name():
    price = np.random.default_rng(0).lognormal(7, 1, size=len(X))
    y = np.add.reduceat(price, OFFSETS[:-1]) / SIZES
    names = [*"abcdef", "price"]
    found = next(f for f in audit(plain(X=np.c_[X, price], y=y, feature_names=names)).findings if f.code == "BG201")
    assert found.severity == "serious"
    assert "'price'" in found.measured
    assert "'price'" in found.advice


def test_the_ingredient_of_a_clipped_mean_is_found_too():
    price = np.random.default_rng(0).lognormal(7, 1, size=len(X)) * np.repeat(
        np.exp(np.random.default_rng(1).normal(size=N)), SIZES
    )
    price[::50] *= 300  # which clipping hides from the label, and not from the mean of the column
    y = np.add.reduceat(np.minimum(price, np.percentile(price, 95)), OFFSETS[:-1]) / SIZES
    found = audit(plain(X=np.c_[X, np.minimum(price, np.percentile(price, 99))], y=y))
    assert next(f for f in found.findings if f.code == "BG201").severity == "warning"


def test_twins_say_how_often_splits_part_them_and_that_labels_differ():
    bags = one_bag_twice()
    first, other = np.flatnonzero(SIZES == 4)[:2]
    parted = np.zeros((1, N), dtype=int)
    parted[0, other] = 1
    y = Y.copy()
    y[other] = 1 - y[first]
    found = next(f for f in audit(bags.replace(splits={"mine": parted}, y=y)).findings if f.code == "BG301")
    assert found.numbers["bags"] == 2
    assert found.numbers["with_another_label"] == 2
    assert found.numbers["parted"] == {"mine": 1.0}
    assert "the splits 'mine' part 100 %" in found.measured
    together = np.arange(N)[None] % 5
    together[0, [first, other]] = 0
    kept = next(f for f in audit(bags.replace(splits={"mine": together})).findings if f.code == "BG301")
    assert kept.numbers["parted"] == {"mine": 0.0}


def test_copies_of_instances_say_how_often_splits_part_them():
    rows = X.copy()
    rows[OFFSETS[5]] = rows[OFFSETS[9]]
    rows[OFFSETS[20]] = rows[OFFSETS[21]]
    fold = np.arange(N) % 4
    fold[5], fold[9], fold[20], fold[21] = 0, 1, 2, 2
    found = next(f for f in audit(plain(X=rows, splits={"mine": fold[None]})).findings if f.code == "BG302")
    assert found.numbers["instances"] == 4
    assert found.numbers["parted"] == {"mine": 0.5}
    assert found.numbers["with_another_label"] == 2 * int(Y[5] != Y[9]) + 2 * int(Y[20] != Y[21])


def test_shared_bags_are_found_by_id_and_by_content_but_not_by_counting():
    one = plain()
    same_names = plain(X=X[:, ::-1] + 5).take(np.arange(30))
    same_content = plain(ids=None).take(np.arange(20, 45))
    strangers = plain(X=X + 1, ids=None)
    found = {
        f.numbers["set"]: f
        for f in audit(one, beside={"names": same_names, "content": same_content, "none": strangers}).findings
        if f.code == "BG303"
    }
    assert {name: f.numbers["bags"] for name, f in found.items()} == {"names": 30, "content": 25}
    assert found["content"].numbers["same_instances"] == 25
    counted = plain(ids=None)
    assert "BG303" not in audit(counted, beside={"none": strangers}).codes


def test_scores_beside_a_constant():
    rows = pd.DataFrame({"dataset": "mine", "method": ["a", "b"], "metric": "accuracy", "mean": [0.51, 0.49]})
    found = next(f for f in audit(plain(), scores=rows).findings if f.code == "BG602")
    assert found.severity == "serious"
    assert found.numbers["constant"] == pytest.approx(0.5)
    percent = rows.assign(mean=100 * rows["mean"])
    assert next(f for f in audit(plain(), scores=percent).findings if f.code == "BG602").numbers[
        "constant"
    ] == pytest.approx(50)
    assert "BG602" not in audit(plain(), scores=rows.assign(mean=[0.9, 0.95])).codes
    mixed = next(f for f in audit(plain(), scores=rows.assign(mean=[0.9, 0.45])).findings if f.code == "BG602")
    assert (mixed.severity, mixed.numbers["poor"]) == ("warning", 1)


def test_errors_are_better_when_they_are_small():
    y = FIELD
    rows = pd.DataFrame({"method": ["good", "bad"], "metric": "rmse", "mean": [0.1 * y.std(), 1.2 * y.std()]})
    found = next(f for f in audit(plain(y=y), scores=rows).findings if f.code == "BG602")
    assert "'bad'" in found.measured
    assert "'good'" not in found.measured.partition(";")[0]


def test_shares_are_scored_by_the_side_of_one_half():
    share = np.clip(0.5 + 0.2 * np.random.default_rng(0).normal(size=N) + 0.1, 0, 1)
    rows = pd.DataFrame({"method": ["constant"], "metric": ["accuracy"], "mean": [100 * (share > 0.5).mean()]})
    assert "BG602" in audit(plain(y=share), scores=rows).codes


def test_result_tables_are_scores_too():
    from baggraph.baselines import MajorityClassifier, OneNumberClassifier

    methods = {"majority": MajorityClassifier(), "size": OneNumberClassifier(number="size")}
    table = bg.cross_validate(methods, plain(), folds=5, repeats=2, metrics=["accuracy"])
    assert isinstance(table, ResultTable)
    assert "BG602" in audit(plain(), scores=table).codes


def test_scores_of_other_sets_are_left_out_and_unreadable_ones_refused(tmp_path):
    rows = pd.DataFrame({"dataset": ["a", "b"], "metric": "accuracy", "mean": [0.1, 0.2]})
    named = plain(metadata={"name": "family/b"})
    assert rows_for(named, rows)["mean"].tolist() == [0.2]
    with pytest.raises(InvalidBagsError, match="scores on 'c'"):
        rows_for(plain(metadata={"name": "c"}), rows)
    with pytest.raises(InvalidBagsError, match="a column 'mean'"):
        rows_for(named, rows.rename(columns={"mean": "score"}))
    with pytest.raises(InvalidBagsError, match="a table of scores"):
        rows_for(named, 0.5)
    with pytest.raises(DataFileError, match=r"nowhere\.csv"):
        rows_for(named, tmp_path / "nowhere.csv")


# ---------------------------------------------------------------------- the object


def test_audits_are_text_table_and_json():
    found = audit(sorted_by_label())
    text = str(found)
    assert all(part in text for f in found.findings for part in (f.code, f.title))
    assert found.frame()["code"].tolist() == found.codes
    facts = json.loads(found.to_json())
    assert [f["code"] for f in facts["findings"]] == found.codes
    assert {f["severity"] for f in facts["findings"]} <= set(SEVERITIES)


def test_findings_come_with_the_most_serious_first():
    many = [
        Finding(code, severity, "m", "w", "a")
        for code, severity in (("BG401", "note"), ("BG201", "serious"), ("BG203", "warning"))
    ]
    found = Audit("x", tuple(many))
    assert (found.codes, found.worst) == (["BG201", "BG203", "BG401"], "serious")
    assert [f.code for f in found.above("note")] == ["BG201", "BG203"]


def test_wrong_arguments_are_answered():
    with pytest.raises(InvalidBagsError, match="expected Bags, got a ndarray"):
        audit(np.zeros((3, 2)))
    with pytest.raises(ParameterError, match="other Bags by name"):
        audit(plain(), beside=[plain()])


def test_the_same_audit_twice():
    assert audit(sorted_by_label()).to_json() == audit(sorted_by_label()).to_json()


@pytest.mark.parametrize(
    "bags",
    [
        plain().replace(y=None),
        plain(y=np.where(np.arange(N) < 70, np.nan, 1.0)),
        plain(y=np.zeros(N, int)),
        plain(y=np.c_[FIELD, FIELD[::-1]]),
        plain(y=[f"class {i % 3}" for i in range(N)]),
        plain(X=sp.csr_array(X)),
        plain().take([0]),
        wired(np.zeros((N, N))),
        plain(y=[*range(N - 1), None]),
    ],
    ids=[
        "no labels",
        "few labels",
        "one class",
        "two targets",
        "text",
        "sparse",
        "one bag",
        "no edges",
        "integers",
    ],
)
def test_no_bags_are_too_odd(bags):
    assert isinstance(str(audit(bags)), str)


# ---------------------------------------------------------------------- laws and oracles


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_rank_tests_agree_with_scipy(seed):
    rng = np.random.default_rng(seed)
    y, x = rng.integers(0, 3, size=60), rng.normal(size=60)
    assert Shuffles.of(y, True, 0).of_number(x) == pytest.approx(
        kruskal(*(x[y == c] for c in range(3))).pvalue, abs=0.06
    )
    real = 0.3 * x + rng.normal(size=60)
    assert Shuffles.of(real, False, 0).of_number(x) == pytest.approx(spearmanr(x, real).pvalue, abs=0.06)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_agreement_is_homophily_and_morans_i(seed):
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.random((20, 20)) * (rng.random((20, 20)) < 0.3), 1)
    graph = bg.BagGraph(sp.csr_array(weights + weights.T), range(20))
    classes, values = rng.integers(0, 3, size=20), rng.normal(size=20)
    for y, classify, known in ((classes, True, graph.homophily(classes)), (values, False, graph.morans_i(values))):
        shuffles = Shuffles.of(y, classify, 0, 50)
        observed, shuffled = agreement(graph.adjacency, shuffles)
        assert observed == pytest.approx(known)
        measure = graph.homophily if classify else graph.morans_i
        assert shuffled[3] == pytest.approx(measure(y[shuffles.orders[3]]))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_rewiring_keeps_degrees_and_stays_a_graph(seed):
    rng = np.random.default_rng(seed)
    edges = np.triu(rng.random((15, 15)) < 0.3, 1)
    edges = (edges | edges.T).astype(float)
    new = rewire(edges, rng)
    assert (new.sum(axis=0) == edges.sum(axis=0)).all()
    assert (new == new.T).all()
    assert not new.diagonal().any()
    assert set(np.unique(new)) <= {0.0, 1.0}


def test_labels_that_mean_nothing_raise_few_alarms():
    """30 permutations at a level of 1 % an audit: 3 or more alarms are a chance of one in 300."""
    alarms = 0
    for seed in range(30):
        y = np.random.default_rng(seed).permutation(Y)
        alarms += any(f.severity != "note" for f in audit(neutral_columns().replace(y=y), random_state=seed).findings)
    assert alarms <= 2


def test_no_finding_depends_on_the_order_of_instances():
    order = np.concatenate(
        [start + np.random.default_rng(0).permutation(n) for start, n in zip(OFFSETS[:-1], SIZES, strict=True)]
    )
    assert audit(plain(X=X[order])).codes == audit(plain()).codes


def test_the_target_is_found_by_the_correlation_of_scipy():
    target = np.random.default_rng(0).normal(size=N)
    noisy = np.repeat(target + 0.1 * np.random.default_rng(1).normal(size=N), SIZES)
    found = next(f for f in audit(plain(X=np.c_[X, noisy], y=target)).findings if f.code == "BG201")
    mean = np.add.reduceat(noisy, OFFSETS[:-1]) / SIZES
    assert found.numbers["correlation"] == pytest.approx(pearsonr(mean, target).statistic)
    assert found.severity == "warning"


# ---------------------------------------------------------------------- embedded and real sets


@pytest.mark.parametrize("seed", range(3))
def test_digits_with_a_fair_witness_rate_have_notes_only(seed):
    found = audit(datasets.load("digits-bags", random_state=seed))
    assert found.worst == "note"
    assert not {"BG101", "BG102", "BG103", "BG104", "BG105"} & set(found.codes)


def test_synthetic_bags_have_a_graph_that_holds_what_it_says():
    assert not {"BG501", "BG502"} & set(audit(datasets.load("synthetic")).codes)


def finding(found: Audit, code: str) -> Finding:
    return next(f for f in found.findings if f.code == code)


@pytest.mark.needs("nyc_rental/raw")
def test_rents_as_published_leak_the_price_and_their_graph_is_renumbered(real):
    published, sound = audit(datasets.load("rental", as_published=True)), audit(datasets.load("rental"))
    assert "'price'" in finding(published, "BG201").measured
    assert "'neighbourhood'" in finding(published, "BG203").measured
    assert finding(published, "BG502").severity == "warning"
    assert not {"BG201", "BG203", "BG501", "BG502"} & set(sound.codes)


@pytest.mark.needs("newsgroups")
def test_graphics_leaks_by_its_norms(real):
    bags = datasets.load("newsgroups/comp.graphics")
    found = finding(audit(bags), "BG104")
    assert found.severity == "serious"
    assert 1 - found.numbers["rule"] == pytest.approx(0.78, abs=0.02)
    assert finding(audit(bags), "BG202").numbers["columns"] == 141


@pytest.mark.needs("newsgroups_rebuilt/corpus_counts.npz")
@pytest.mark.parametrize("group", ["comp.graphics", "sci.med", "talk.politics.misc"])
def test_rebuilt_newsgroups_do_not(real, group):
    found = audit(datasets.load(f"newsgroups-rebuilt/{group}"))
    assert found.worst == "note"
    assert not {"BG104", "BG105", "BG202"} & set(found.codes)


@pytest.mark.needs("mil_benchmark/raw")
def test_musk_sets_share_72_molecules_and_fox_has_87_zero_columns(real):
    assert finding(audit(datasets.load("musk1")), "BG303").measured.startswith("72 of 92 bags are also among")
    assert finding(audit(datasets.load("musk2")), "BG303").numbers["bags"] == 72
    assert finding(audit(datasets.load("fox")), "BG401").numbers["zero"] == 87


@pytest.mark.needs("mil_benchmark/raw")
def test_benchmarks_take_seconds(real):
    started = time.process_time()
    for name in ("musk1", "musk2", "fox", "tiger", "elephant"):
        audit(datasets.load(name))
    assert time.process_time() - started < 30


@pytest.mark.needs("us_election_2016/regions.parquet")
def test_printed_scores_of_the_election_are_those_of_a_constant(real):
    printed = pd.DataFrame(
        {
            "experiment": "election",
            "dataset": ["us2016"] * 4 + ["other"],
            "algorithm": ["Deep Sets", "B-DS-GCN", "Deep Sets", "B-DS-GCN", "x"],
            "metric": ["accuracy", "accuracy", "nd", "nd", "nd"],
            "mean": [73.22, 74.29, 22.35, 21.47, 1.0],
            "std_error": [3.22, 3.15, 2.66, 2.45, 1.0],
        }
    )
    found = [f for f in audit(datasets.load("election/zcta"), scores=printed.iloc[:4]).findings if f.code == "BG602"]
    assert {f.numbers["metric"]: f.severity for f in found} == {"accuracy": "serious", "nd": "serious"}
    assert {f.numbers["metric"]: round(f.numbers["constant"], 1) for f in found} == {"accuracy": 74.5, "nd": 21.6}
