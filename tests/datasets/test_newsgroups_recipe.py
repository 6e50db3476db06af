"""Rebuilt sets meet their numbers, know nothing of labels where they must not, and stay what they are."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from baggraph.datasets import newsgroups_recipe as recipe
from baggraph.datasets.newsgroups_corpus import Corpus, read_counts
from baggraph.errors import ParameterError

GROUPS = ["alt.made", "comp.made", "sci.made"]
SIZES = {"smallest": 4, "largest": 16, "total": 200, "n_bags": 20, "n_positive": 8}


def made_corpus(posts_a_group: int = 150, own_terms: int = 15, seed: int = 3) -> Corpus:
    """Groups with terms of their own, common terms, and a few posts that hold nothing."""
    generator = np.random.default_rng(seed)
    width = own_terms * len(GROUPS) + 5
    category = np.repeat(np.arange(len(GROUPS)), posts_a_group)
    rate = np.full((len(category), width), 0.05)
    for group in range(len(GROUPS)):
        rate[category == group, group * own_terms : (group + 1) * own_terms] = 0.4
    counts = generator.poisson(rate)
    counts[::40] = 0
    terms = np.array([f"t{i:03}" for i in generator.permutation(width)])
    return Corpus(sp.csr_array(counts.astype(np.int32)), terms, category, GROUPS)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return made_corpus()


# ---------------------------------------------------------------------- laws of the sets


@st.composite
def possible_sizes(draw):
    n_bags = draw(st.integers(2, 12))
    smallest = draw(st.integers(1, 6))
    largest = draw(st.integers(smallest, 14))
    total = draw(st.integers((n_bags - 1) * smallest + largest, smallest + (n_bags - 1) * largest))
    return {"smallest": smallest, "largest": largest, "total": total, "n_bags": n_bags}


@given(
    sizes=possible_sizes(),
    share=st.floats(0, 1),
    rate=st.floats(0.01, 1),
    target=st.sampled_from(GROUPS),
    seed=st.integers(0, 2**40),
)
@settings(deadline=None, max_examples=60)
def test_every_set_meets_its_numbers(corpus, sizes, share, rate, target, seed):
    n_positive = int(share * sizes["n_bags"])
    bags = recipe.build(corpus, target, **sizes, n_positive=n_positive, witness_rate=rate, random_state=seed)
    assert (bags.sizes.min(), bags.sizes.max(), bags.n_instances) == (
        sizes["smallest"],
        sizes["largest"],
        sizes["total"],
    )
    assert (len(bags), bags.y.sum()) == (sizes["n_bags"], n_positive)
    assert len(set(bags.instance_names)) == bags.n_instances
    witnesses = np.add.reduceat(bags.instance_y, bags.offsets[:-1])
    expected = [max(1, round(rate * int(size))) if label else 0 for size, label in zip(bags.sizes, bags.y, strict=True)]
    assert witnesses.tolist() == expected
    assert np.maximum.reduceat(bags.instance_y, bags.offsets[:-1]).tolist() == bags.y.tolist()
    assert np.allclose(sp.linalg.norm(bags.instances, axis=1), 1, atol=1e-6)


def test_features_names_and_labels_belong_to_the_posts(corpus):
    bags = recipe.build(corpus, "comp.made", **SIZES)
    rows = [int(name.removeprefix("post-")) for name in bags.instance_names]
    assert (corpus.category[rows] == 1).astype(int).tolist() == bags.instance_y.tolist()
    columns = [corpus.terms.tolist().index(term) for term in bags.feature_names]
    counts = corpus.counts.toarray()
    idf = np.log((1 + len(counts)) / (1 + (counts > 0).sum(axis=0))) + 1
    expected = (counts * idf)[rows][:, columns]
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert bags.instances.dtype == np.float32
    assert np.allclose(bags.instances.toarray(), expected, atol=1e-6)
    assert bags.ids[:2].tolist() == ["bag-000", "bag-001"]
    assert bags.metadata["name"] == "newsgroups-rebuilt/comp.made"
    assert bags.metadata["recipe"]["witness_rate"] == 0.03


def test_same_seed_same_set_other_seed_or_target_another(corpus):
    first = recipe.build(corpus, "alt.made", **SIZES, random_state=5)
    assert first == recipe.build(made_corpus(), "alt.made", **SIZES, random_state=np.int64(5))
    other = recipe.build(corpus, "alt.made", **SIZES, random_state=6)
    assert first.instance_names.tolist() != other.instance_names.tolist()
    assert first.y.tolist() != other.y.tolist()
    assert recipe.build(corpus, "sci.made", **SIZES, random_state=5).y.tolist() != first.y.tolist()


def test_the_random_choices_are_pinned(corpus):
    # A change here changes every published set: it needs a new name, not a new expectation.
    bags = recipe.build(corpus, "alt.made", **SIZES)
    assert bags.sizes.tolist() == [16, 11, 8, 16, 16, 16, 10, 7, 14, 16, 6, 8, 6, 4, 13, 6, 8, 7, 5, 7]
    assert np.flatnonzero(bags.y).tolist() == [0, 3, 4, 5, 6, 12, 15, 19]
    assert bags.instance_names[:4].tolist() == ["post-283", "post-186", "post-238", "post-428"]


def test_positive_bags_and_their_witnesses_stand_anywhere(corpus):
    labels, places = [], []
    for seed in range(30):
        bags = recipe.build(corpus, "alt.made", **SIZES, random_state=seed)
        labels.append(bags.y)
        places += [np.flatnonzero(bag.instance_y)[0] / len(bag.instance_y) for bag in bags if bag.y]
    assert np.mean(labels, axis=0).min() > 0.15
    assert np.mean(labels, axis=0).max() < 0.7
    assert 0.35 < np.mean(places) < 0.6


def test_sizes_know_nothing_of_labels(corpus):
    sets = [recipe.build(corpus, "alt.made", **SIZES, random_state=seed) for seed in range(60)]
    difference = [bags.sizes[bags.y == 1].mean() - bags.sizes[bags.y == 0].mean() for bags in sets]
    assert abs(np.mean(difference)) < 3 * np.std(difference) / np.sqrt(len(sets))


# ---------------------------------------------------------------------- terms


def test_terms_are_one_list_for_all_sets_and_seeds(corpus):
    expected = corpus.terms[recipe.honest_terms(corpus)].tolist()
    assert expected == sorted(expected)
    for target in GROUPS:
        for seed in (0, 1):
            bags = recipe.build(corpus, target, **SIZES, random_state=seed)
            assert bags.feature_names.tolist() == expected


def test_every_group_gives_its_own_terms(corpus):
    owners = recipe.honest_terms(corpus, per_group=15) // 15
    assert np.bincount(owners).tolist() == [15, 15, 15]


def test_terms_do_not_depend_on_the_order_of_posts_or_columns(corpus):
    generator = np.random.default_rng(0)
    rows, columns = generator.permutation(len(corpus.category)), generator.permutation(len(corpus.terms))
    shuffled = Corpus(corpus.counts[rows][:, columns], corpus.terms[columns], corpus.category[rows], GROUPS)
    names = [c.terms[recipe.honest_terms(c)].tolist() for c in (corpus, shuffled)]
    assert names[0] == names[1]


def test_ties_go_by_alphabet_and_taken_terms_to_the_next_best():
    columns = np.array(list("dabc"))
    counts = sp.csr_array(np.array([[0, 1, 1, 0], [0, 3, 0, 1], [0, 0, 1, 0]]))
    made = Corpus(counts, columns, np.array([0, 1, 1]), ["one", "two"])
    # "a" and "b" are alike for the first group; "a" would be the best of the second, then "c"
    assert made.terms[recipe.honest_terms(made, 1)].tolist() == ["a", "c"]


def test_too_few_terms_is_an_error(corpus):
    with pytest.raises(ParameterError) as caught:
        recipe.honest_terms(corpus, per_group=60)
    assert re.fullmatch(
        r"newsgroups: expected 60 terms of their own for the posts of alt.made, got \d+; "
        r"lower per_group or use a larger corpus",
        str(caught.value),
    )


# ---------------------------------------------------------------------- refusals


def refusal(corpus: Corpus, **changes: object) -> str:
    with pytest.raises(ParameterError) as caught:
        recipe.build(corpus, **{"target": "alt.made", **SIZES, **changes})
    return str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target": "alt.mad"}, "the name of a newsgroup, got 'alt.mad'; did you mean 'alt.made'?"),
        ({"n_positive": 21}, "2 bags or more, not more positive ones, got 21 of 20; correct the numbers"),
        ({"n_bags": 1, "n_positive": 1}, "2 bags or more, not more positive ones, got 1 of 1; correct the numbers"),
        ({"witness_rate": 0.0}, "a witness_rate above 0 and at most 1, got 0.0; 0.03 is that of the original sets"),
        ({"random_state": -1}, "a random_state of 0 or more, got -1; pass another integer"),
        ({"smallest": 0}, "sizes of 1 or more, in order, got smallest=0 and largest=16; correct the numbers"),
        ({"smallest": 17}, "sizes of 1 or more, in order, got smallest=17 and largest=16; correct the numbers"),
    ],
)
def test_refusals(corpus, changes, message):
    assert refusal(corpus, **changes) == f"newsgroups: expected {message}"


@pytest.mark.parametrize("total", [91, 309])
def test_totals_out_of_reach_are_refused(corpus, total):
    assert refusal(corpus, total=total) == (
        f"newsgroups: expected sizes that 20 bags can meet, got total={total} with smallest=4 and largest=16; "
        "total must lie between 92 and 308"
    )


def test_too_few_posts_is_an_error(corpus):
    filled = corpus.counts[:, recipe.honest_terms(corpus)].sum(axis=1) > 0
    assert refusal(corpus, largest=300, total=2000, n_positive=20, witness_rate=1.0) == (
        f"newsgroups: expected 2000 posts of the target newsgroups, got {(filled & (corpus.category == 0)).sum()} "
        "that hold any of the terms; use fewer or smaller bags"
    )


# ---------------------------------------------------------------------- the corpus itself


@pytest.mark.needs("newsgroups_rebuilt/corpus_counts.npz")
def test_the_real_corpus_meets_the_published_sizes(real):
    corpus = read_counts(real / "newsgroups_rebuilt" / "corpus_counts.npz")
    assert corpus.counts.shape == (18846, 43255)
    bags = recipe.build(corpus, "alt.atheism", smallest=22, largest=76, total=5443)
    assert (len(bags), bags.n_instances, bags.n_features, bags.y.sum()) == (100, 5443, 200, 50)
    assert (bags.sizes.min(), bags.sizes.max()) == (22, 76)
    assert 0.025 < bags.instance_y[np.repeat(bags.y, bags.sizes) == 1].mean() < 0.035
