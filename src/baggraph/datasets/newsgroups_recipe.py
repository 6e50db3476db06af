"""Twenty text sets rebuilt from the 20 Newsgroups corpus: bags of posts, some of them from a target group.

After Zhou, Sun and Li, "Multi-instance learning by treating instances as non-i.i.d. samples" (ICML 2009).
Numbers and sizes of the bags are theirs.  The terms are not: theirs were chosen set by set with the target
posts in view and give the bag labels away; here one list of terms, fixed before any bag exists, serves all sets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from baggraph.data.bags import Bags
from baggraph.datasets._keys import keys
from baggraph.datasets.newsgroups_corpus import Corpus
from baggraph.errors import ParameterError, closest

__all__ = ["build", "honest_terms"]

STAGE = "newsgroups"
Draw = Callable[[str, int], NDArray[Any]]  # uniform numbers for a purpose


# ---------------------------------------------------------------------- terms and features


def honest_terms(corpus: Corpus, per_group: int = 10) -> NDArray[np.int64]:
    """The terms that tell the newsgroups apart, ``per_group`` of each, as columns in the order of the alphabet.

    Score of term t for group g: count of t in g / count of all terms in g · log(posts / posts with t).  Ties go
    by alphabet, and a term that an earlier group took leaves its place to the next best.  No bag, and so no bag
    label, exists yet.

    >>> counts = sp.csr_array([[2, 1, 0], [0, 1, 3]])
    >>> honest_terms(Corpus(counts, np.array(["god", "the", "gpu"]), np.array([0, 1]), ["belief", "chips"]), 1)
    array([0, 2])
    """
    rarity = np.log(corpus.counts.shape[0] / np.maximum(_posts_with(corpus), 1))
    alphabet = np.argsort(corpus.terms, kind="stable")
    taken = np.zeros(len(alphabet), dtype=bool)
    for group, name in enumerate(corpus.category_names):
        count = corpus.counts[np.flatnonzero(corpus.category == group)].sum(axis=0)
        score = (count / max(count.sum(), 1) * rarity)[alphabet]
        best = np.argsort(-score, kind="stable")
        best = best[(score[best] > 0) & ~taken[best]][:per_group]
        if len(best) < per_group:
            expected, got = f"{per_group} terms of their own for the posts of {name}", str(len(best))
            raise ParameterError(STAGE, expected=expected, got=got, remedy="lower per_group or use a larger corpus")
        taken[best] = True
    return alphabet[taken]


def _posts_with(corpus: Corpus) -> NDArray[np.int64]:
    return np.bincount(corpus.counts.indices, minlength=corpus.counts.shape[1])


def _unit_tfidf(corpus: Corpus, columns: NDArray[np.int64]) -> sp.csr_array:
    """Count · (log((1 + posts) / (1 + posts with the term)) + 1), rows scaled to length one."""
    idf = np.log((1 + corpus.counts.shape[0]) / (1 + _posts_with(corpus)[columns])) + 1
    weighted = sp.csr_array(corpus.counts[:, columns].astype(np.float64).multiply(idf))
    length = np.sqrt(weighted.multiply(weighted).sum(axis=1))
    weighted.data /= np.repeat(length, np.diff(weighted.indptr))
    return weighted.astype(np.float32)


# ---------------------------------------------------------------------- bags


def build(
    corpus: Corpus,
    target: str,
    *,
    smallest: int,
    largest: int,
    total: int,
    n_bags: int = 100,
    n_positive: int = 50,
    witness_rate: float = 0.03,
    random_state: int = 0,
) -> Bags:
    """Bags of posts; ``max(1, round(witness_rate · size))`` posts of a positive bag are from the target group.

    The sizes meet ``smallest``, ``largest`` and ``total`` exactly and know nothing of the labels.  No post is used
    twice, and none that holds no term at all.  Features: TF-IDF of :func:`honest_terms`, rows of length one.

    >>> counts = sp.csr_array(np.tile(np.eye(40, dtype=int), (5, 1)))
    >>> corpus = Corpus(counts, np.array([f"t{i:02}" for i in range(40)]), np.arange(200) % 40 // 20, ["cars", "bikes"])
    >>> build(corpus, "bikes", smallest=3, largest=9, total=30, n_bags=6, n_positive=3)
    Bags newsgroups-rebuilt/bikes: 6 bags, 30 instances, 20 features (float32, sparse ...)
      sizes   3 to 9, median 4.5
      labels  0 ×3, 1 ×3
      inside  0 ×27, 1 ×3 (labels of instances)
    """
    _check(corpus, target, n_bags, n_positive, witness_rate, random_state)
    _check_sizes(smallest, largest, total, n_bags)

    def draw(purpose: str, count: int) -> NDArray[Any]:
        return keys(random_state, f"{purpose} of {target}", count)

    columns = honest_terms(corpus)
    features = _unit_tfidf(corpus, columns)
    sizes = _draw_sizes(draw, smallest, largest, total, n_bags)
    positive = _order(draw("labels", n_bags)) < n_positive
    witnesses = np.where(positive, np.maximum(1, np.rint(witness_rate * sizes)), 0).astype(np.int64)
    is_target = corpus.category == corpus.category_names.index(target)
    rows = _deal(draw, np.diff(features.indptr) > 0, is_target, sizes, witnesses)
    return Bags(
        features[rows],
        np.concatenate([[0], np.cumsum(sizes)]),
        positive.astype(np.int64),
        ids=[f"bag-{bag:03}" for bag in range(n_bags)],
        feature_names=corpus.terms[columns],
        instance_names=[f"post-{row}" for row in rows],
        instance_y=is_target[rows].astype(np.int64),
        metadata={
            "name": f"newsgroups-rebuilt/{target}",
            "recipe": {"terms": "ten a newsgroup by class TF-IDF, the same for all sets", "witness_rate": witness_rate},
            "random_state": int(random_state),
        },
    )


def _check(corpus: Corpus, target: str, n_bags: int, n_positive: int, witness_rate: float, random_state: int) -> None:
    if target not in corpus.category_names:
        raise _wrong("the name of a newsgroup", repr(target), closest(target, corpus.category_names))
    if not 0 <= n_positive <= n_bags or n_bags < 2:
        raise _wrong("2 bags or more, not more positive ones", f"{n_positive} of {n_bags}", "correct the numbers")
    if not 0 < witness_rate <= 1:
        raise _wrong("a witness_rate above 0 and at most 1", f"{witness_rate}", "0.03 is that of the original sets")
    if random_state < 0:
        raise _wrong("a random_state of 0 or more", str(random_state), "pass another integer")


def _check_sizes(smallest: int, largest: int, total: int, n_bags: int) -> None:
    if not 1 <= smallest <= largest:
        got = f"smallest={smallest} and largest={largest}"
        raise _wrong("sizes of 1 or more, in order", got, "correct the numbers")
    least, most = (n_bags - 1) * smallest + largest, smallest + (n_bags - 1) * largest
    if not least <= total <= most:
        got = f"total={total} with smallest={smallest} and largest={largest}"
        raise _wrong(f"sizes that {n_bags} bags can meet", got, f"total must lie between {least} and {most}")


def _draw_sizes(draw: Draw, smallest: int, largest: int, total: int, n_bags: int) -> NDArray[np.int64]:
    """One bag of either extreme; the others even about their mean, moved by ones until the total is met."""
    free, room = n_bags - 2, largest - smallest
    above = total - smallest * (n_bags - 1) - largest  # posts that the free bags hold beyond the smallest size
    middle, spread = (above // free, min(above, free * room - above) // free) if free else (0, 0)
    extra = middle - spread + np.floor(draw("sizes", free) * (2 * spread + 1)).astype(np.int64)
    order = _order(draw("turns to be moved", free))
    while gap := above - int(extra.sum()):
        movable = order[extra[order] < room] if gap > 0 else order[extra[order] > 0]
        extra[movable[: abs(gap)]] += np.sign(gap)
    return np.concatenate([[smallest, largest], smallest + extra])[_order(draw("places of sizes", n_bags))]


def _deal(
    draw: Draw,
    usable: NDArray[np.bool_],
    is_target: NDArray[np.bool_],
    sizes: NDArray[np.int64],
    witnesses: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Rows of the corpus, bag after bag, the target's posts at random places within their bags."""
    rows, bags = [], []
    for what, pool, wanted in (("target", is_target, witnesses), ("other", ~is_target, sizes - witnesses)):
        posts = np.flatnonzero(usable & pool)
        if len(posts) < wanted.sum():
            got = f"{len(posts)} that hold any of the terms"
            raise _wrong(f"{wanted.sum()} posts of the {what} newsgroups", got, "use fewer or smaller bags")
        rows.append(posts[_order(draw(f"{what} posts", len(posts)))][: wanted.sum()])
        bags.append(np.repeat(np.arange(len(sizes)), wanted))
    places = draw("places of posts", int(sizes.sum()))
    return np.concatenate(rows)[np.lexsort((places, np.concatenate(bags)))]


def _order(uniform: NDArray[Any]) -> NDArray[np.int64]:
    """A random permutation."""
    return np.argsort(uniform, kind="stable")


def _wrong(expected: str, got: str, remedy: str) -> ParameterError:
    return ParameterError(STAGE, expected=expected, got=got, remedy=remedy)
