"""Twenty text sets rebuilt from the 20 Newsgroups corpus: bags of posts, some of them from a target group.

After Zhou, Sun and Li, "Multi-instance learning by treating instances as non-i.i.d. samples" (ICML 2009).
Numbers and sizes of the bags are theirs.  The terms are not: theirs were chosen set by set with the target
posts in view and give the bag labels away; here one list of terms, fixed before any bag exists, serves all sets.

Every random choice is a stable sort of raw PCG64 words, whose stream NumPy keeps from version to version.
"""

from __future__ import annotations

import re
import tarfile
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from baggraph.data.bags import Bags
from baggraph.data.readers._atomic import replacing
from baggraph.errors import DataFileError, ParameterError, closest

__all__ = ["Corpus", "build", "counts_from_archive", "honest_terms", "read_counts", "write_counts"]

STAGE = "newsgroups"
KEYS = ("data", "indices", "indptr", "shape", "vocab", "category", "category_names")
MEMBER = re.compile(r"20news-bydate-(train|test)/([a-z][a-z0-9.-]*)/(\d+)")
WORD = re.compile(r"(?<![a-z])[a-z]{2,20}(?![a-z])")
SUBJECT = re.compile(r"^subject:(.*(?:\n[ \t].*)*)", re.MULTILINE)
RARE = 3  # a term counts from this many posts on


@dataclass(frozen=True, eq=False)
class Corpus:
    """How often each of V terms stands in each of n posts, and the newsgroup of each post.

    Parameters
    ----------
    counts : (n, V) CSR of integers
    terms : (V,) text
    category : (n,) integers, positions in ``category_names``
    category_names : list of text

    """

    counts: sp.csr_array
    terms: NDArray[np.str_]
    category: NDArray[np.int64]
    category_names: list[str]


# ---------------------------------------------------------------------- reading and writing


def read_counts(path: str | Path) -> Corpus:
    """Read the counts that :func:`write_counts` wrote.

    >>> read_counts("nowhere.npz")
    Traceback (most recent call last):
        ...
    baggraph.errors.DataFileError: newsgroups: expected a file of term counts, got nowhere.npz (...); fetch it
    again, or build it with counts_from_archive
    """
    arrays = _load_arrays(Path(path))
    missing = [key for key in KEYS if key not in arrays]
    if missing:
        raise _bad_counts(f"key {missing[0]!r} in {path}", f"only {', '.join(sorted(arrays)) or 'no key'}")
    try:
        # scipy wants signed indices; the file stores them as short as they fit.
        signed = [arrays[key].astype(np.int32) for key in ("indices", "indptr")]
        counts = sp.csr_array((arrays["data"].astype(np.int32), *signed), shape=tuple(arrays["shape"]))
        counts.check_format()
    except (ValueError, TypeError) as error:
        raise _bad_counts(f"counts as a CSR matrix in {path}", f"a broken one ({error})") from error
    counts.sum_duplicates()
    counts.eliminate_zeros()
    category, terms = arrays["category"].astype(np.int64), arrays["vocab"].astype(str)
    names = arrays["category_names"].astype(str).tolist()
    if counts.shape != (len(category), len(terms)) or not np.isin(category, np.arange(len(names))).all():
        got = f"{len(category)} categories out of {len(names)} and {len(terms)} terms"
        raise _bad_counts("categories and terms for {} posts and {} terms in {}".format(*counts.shape, path), got)
    return Corpus(counts, terms, category, names)


def _load_arrays(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            return {key: file[key] for key in file.files}
    except (OSError, ValueError, EOFError, TypeError, zipfile.BadZipFile, zlib.error) as error:
        raise _bad_counts("a file of term counts", f"{path} ({error})") from error


def write_counts(corpus: Corpus, path: str | Path) -> None:
    """Write the counts as ``.npz``, so that the archive need be parsed only once; complete or not at all."""
    with replacing(Path(path)) as draft, draft.open("wb") as file:
        np.savez_compressed(
            file,
            data=corpus.counts.data,
            indices=corpus.counts.indices,
            indptr=corpus.counts.indptr,
            shape=np.array(corpus.counts.shape, dtype=np.int64),
            vocab=np.asarray(corpus.terms, dtype=str),
            category=corpus.category,
            category_names=np.array(corpus.category_names, dtype=str),
        )


def counts_from_archive(path: str | Path) -> Corpus:
    """Count the words of ``20news-bydate.tar.gz``; nothing is unpacked.

    Of every post, the text of its Subject and its body; in lower case, words of 2 to 20 letters a-z; terms in
    three posts or more.  Posts go by newsgroup and number, terms by alphabet.  Only regular files named
    ``20news-bydate-{train,test}/<newsgroup>/<number>`` are read.
    """
    words: dict[tuple[str, int, str], list[str]] = {}
    try:
        with tarfile.open(path, "r:*") as archive:
            for member in archive:
                match = MEMBER.fullmatch(member.name) if member.isreg() else None
                file = archive.extractfile(member) if match else None
                if match and file:
                    words[match[2], int(match[3]), match[1]] = _words(file.read().decode("latin-1"))
    except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
        raise _bad_archive(f"{path} ({error})") from error
    if not words:
        raise _bad_archive(f"{path} without a post")
    return _count(words)


def _words(text: str) -> list[str]:
    head, _, body = text.replace("\r\n", "\n").lower().partition("\n\n")
    subject = SUBJECT.search(head)
    return WORD.findall((subject[1] if subject else "") + "\n" + body)


def _count(words: dict[tuple[str, int, str], list[str]]) -> Corpus:
    posts = sorted(words)
    terms = np.array(sorted({word for post in posts for word in words[post]}), dtype=str)
    place = {term: i for i, term in enumerate(terms.tolist())}
    columns = np.array([place[word] for post in posts for word in words[post]], dtype=np.int32)
    rows = np.repeat(np.arange(len(posts), dtype=np.int32), [len(words[post]) for post in posts])
    shape = (len(posts), len(terms))
    counts = sp.csr_array(sp.coo_array((np.ones(len(rows), np.int32), (rows, columns)), shape=shape))
    common = np.flatnonzero(np.bincount(counts.indices, minlength=len(terms)) >= RARE)
    names, category = np.unique([group for group, _, _ in posts], return_inverse=True)
    return Corpus(sp.csr_array(counts[:, common]), terms[common], category.astype(np.int64), names.tolist())


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
    columns = honest_terms(corpus)
    features = _unit_tfidf(corpus, columns)
    bits = np.random.PCG64((int(random_state) << 32) | zlib.crc32(target.encode()))
    sizes = _draw_sizes(bits, smallest, largest, total, n_bags)
    positive = _order(bits, n_bags) < n_positive
    witnesses = np.where(positive, np.maximum(1, np.rint(witness_rate * sizes)), 0).astype(np.int64)
    is_target = corpus.category == corpus.category_names.index(target)
    rows = _deal(bits, np.diff(features.indptr) > 0, is_target, sizes, witnesses)
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


def _order(bits: np.random.PCG64, count: int) -> NDArray[np.int64]:
    """A random permutation."""
    return np.argsort(bits.random_raw(count), kind="stable")


def _draw_sizes(bits: np.random.PCG64, smallest: int, largest: int, total: int, n_bags: int) -> NDArray[np.int64]:
    """One bag of either extreme; the others even about their mean, moved by ones until the total is met."""
    least, most = (n_bags - 1) * smallest + largest, smallest + (n_bags - 1) * largest
    if not 1 <= smallest <= largest:
        got = f"smallest={smallest} and largest={largest}"
        raise _wrong("sizes of 1 or more, in order", got, "correct the numbers")
    if not least <= total <= most:
        got = f"total={total} with smallest={smallest} and largest={largest}"
        raise _wrong(f"sizes that {n_bags} bags can meet", got, f"total must lie between {least} and {most}")
    free, room = n_bags - 2, largest - smallest
    above = total - smallest * (n_bags - 1) - largest  # posts that the free bags hold beyond the smallest size
    middle, spread = (above // free, min(above, free * room - above) // free) if free else (0, 0)
    extra = middle - spread + (bits.random_raw(free) % np.uint64(2 * spread + 1)).astype(np.int64)
    while gap := above - int(extra.sum()):
        step = 1 if gap > 0 else -1
        order = _order(bits, free)
        movable = order[(extra[order] < room) if step > 0 else (extra[order] > 0)]
        extra[movable[: abs(gap)]] += step
    return np.concatenate([[smallest, largest], smallest + extra])[_order(bits, n_bags)]


def _deal(
    bits: np.random.PCG64,
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
        rows.append(posts[_order(bits, len(posts))][: wanted.sum()])
        bags.append(np.repeat(np.arange(len(sizes)), wanted))
    mixed = np.lexsort((bits.random_raw(int(sizes.sum())), np.concatenate(bags)))
    return np.concatenate(rows)[mixed]


def _wrong(expected: str, got: str, remedy: str) -> ParameterError:
    return ParameterError(STAGE, expected=expected, got=got, remedy=remedy)


def _bad_counts(expected: str, got: str) -> DataFileError:
    remedy = "fetch it again, or build it with counts_from_archive"
    return DataFileError(STAGE, expected=expected, got=got, remedy=remedy)


def _bad_archive(got: str) -> DataFileError:
    expected = "the archive 20news-bydate.tar.gz with folders 20news-bydate-train and 20news-bydate-test"
    return DataFileError(STAGE, expected=expected, got=got, remedy="fetch it again")
