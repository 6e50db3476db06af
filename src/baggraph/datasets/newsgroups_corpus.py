"""The 20 Newsgroups corpus as counts of terms: read from the archive once, and kept in a small file."""

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

from baggraph.data.readers._atomic import replacing
from baggraph.errors import DataFileError

__all__ = ["Corpus", "counts_from_archive", "read_counts", "write_counts"]

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
        category = arrays["category"].astype(np.int64)
    except (ValueError, TypeError) as error:
        raise _bad_counts(f"a CSR matrix and category numbers in {path}", f"broken ones ({error})") from error
    counts.sum_duplicates()
    counts.eliminate_zeros()
    terms, names = arrays["vocab"].astype(str), arrays["category_names"].astype(str).tolist()
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


def _bad_counts(expected: str, got: str) -> DataFileError:
    remedy = "fetch it again, or build it with counts_from_archive"
    return DataFileError(STAGE, expected=expected, got=got, remedy=remedy)


def _bad_archive(got: str) -> DataFileError:
    expected = "the archive 20news-bydate.tar.gz with folders 20news-bydate-train and 20news-bydate-test"
    return DataFileError(STAGE, expected=expected, got=got, remedy="fetch it again")
