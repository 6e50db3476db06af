"""Counts survive their file, archives are counted by the rules, and whatever is neither is refused."""

from __future__ import annotations

import io
import re
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from baggraph.datasets.newsgroups_corpus import KEYS, Corpus, counts_from_archive, read_counts, write_counts
from baggraph.datasets.newsgroups_recipe import build
from baggraph.errors import DataFileError

AGAIN = "; fetch it again, or build it with counts_from_archive"
ARCHIVE = (
    "newsgroups: expected the archive 20news-bydate.tar.gz with folders 20news-bydate-train and 20news-bydate-test"
)


def same_corpus(left: Corpus, right: Corpus) -> bool:
    return (
        left.counts.shape == right.counts.shape
        and (left.counts != right.counts).nnz == 0
        and left.terms.tolist() == right.terms.tolist()
        and left.category.tolist() == right.category.tolist()
        and left.category_names == right.category_names
    )


# ---------------------------------------------------------------------- files of counts


@given(table=hnp.arrays(np.int32, hnp.array_shapes(min_dims=2, max_dims=2), elements=st.integers(0, 9)))
@settings(deadline=None, max_examples=25)
def test_counts_survive_a_round_trip(table):
    posts, width = table.shape
    corpus = Corpus(
        sp.csr_array(table), np.array([f"t{i}" for i in range(width)]), np.arange(posts) % 2, ["one", "two"]
    )
    with TemporaryDirectory() as folder:
        path = Path(folder, "counts.npz")
        write_counts(corpus, path)
        assert same_corpus(read_counts(path), corpus)
        assert list(Path(folder).iterdir()) == [path]


def test_stored_zeros_and_repeats_are_no_posts_with_a_term(tmp_path):
    path = tmp_path / "counts.npz"
    np.savez(path, **layout(data=[0, 1, 2, 1], indices=[0, 1, 1, 0], indptr=[0, 3, 4]))
    assert read_counts(path).counts.toarray().tolist() == [[0, 3], [1, 0]]
    assert read_counts(path).counts.nnz == 2


def layout(**changes):
    plain = {
        "data": [1, 1],
        "indices": [0, 1],
        "indptr": [0, 1, 2],
        "shape": [2, 2],
        "vocab": ["a", "b"],
        "category": [0, 1],
        "category_names": ["one", "two"],
    }
    return {key: np.array(value) for key, value in (plain | changes).items()}


@pytest.mark.parametrize("key", KEYS)
def test_a_missing_key_is_named(tmp_path, key):
    path = tmp_path / "counts.npz"
    arrays = layout()
    del arrays[key]
    np.savez(path, **arrays)
    with pytest.raises(DataFileError) as caught:
        read_counts(path)
    others = ", ".join(sorted(arrays))
    assert str(caught.value) == f"newsgroups: expected key {key!r} in {path}, got only {others}{AGAIN}"


@pytest.mark.parametrize(
    ("changes", "got"),
    [
        ({"category": [0]}, "1 categories out of 2 and 2 terms"),
        ({"category": [0, 2]}, "2 categories out of 2 and 2 terms"),
        ({"vocab": ["a"]}, "2 categories out of 2 and 1 terms"),
    ],
)
def test_columns_that_do_not_fit_are_refused(tmp_path, changes, got):
    path = tmp_path / "counts.npz"
    np.savez(path, **layout(**changes))
    with pytest.raises(DataFileError) as caught:
        read_counts(path)
    expected = f"newsgroups: expected categories and terms for 2 posts and 2 terms in {path}, got {got}{AGAIN}"
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    "changes", [{"indices": [0, 7]}, {"indptr": [0, 1]}, {"shape": [2, 2, 2]}, {"category": ["one", "two"]}]
)
def test_broken_matrices_are_refused(tmp_path, changes):
    path = tmp_path / "counts.npz"
    np.savez(path, **layout(**changes))
    with pytest.raises(
        DataFileError, match=re.escape(f"a CSR matrix and category numbers in {path}, got broken ones (")
    ):
        read_counts(path)


def test_files_that_are_no_npz_are_refused(tmp_path):
    path = tmp_path / "counts.npz"
    np.savez(path, **layout())
    whole = path.read_bytes()
    array, pickled = io.BytesIO(), io.BytesIO()
    np.save(array, np.zeros(3))
    np.save(pickled, np.array([{}]), allow_pickle=True)
    for content in (b"", b"text", whole[: len(whole) // 2], array.getvalue(), pickled.getvalue()):
        path.write_bytes(content)
        with pytest.raises(DataFileError, match=re.escape(f"newsgroups: expected a file of term counts, got {path} (")):
            read_counts(path)


# ---------------------------------------------------------------------- the archive

HEAD = "From: someone@made.example\nSubject: {subject}\nLines: 3\n\n{body}\n"


def write_archive(path: Path, members: list[tuple[str, bytes]], odd: tuple[tarfile.TarInfo, ...] = ()) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for info in odd:
            archive.addfile(info)
    return path


def post(name: str, subject: str, body: str) -> tuple[str, bytes]:
    return name, HEAD.format(subject=subject, body=body).encode("latin-1")


POSTS = [
    post("20news-bydate-test/sci.made/10", "Moon", "the moon café moon"),
    post("20news-bydate-train/sci.made/9", "Re: Moon\n\tand Orbit", "The MOON x " + "z" * 21),
    post("20news-bydate-train/alt.made/700", "none", "moon the 2nd orbit"),
    post("20news-bydate-train/alt.made/8", "none", "don't orbit the caf"),
]


def test_archive_is_counted_by_the_rules(tmp_path):
    corpus = counts_from_archive(write_archive(tmp_path / "news.tar.gz", POSTS))
    assert corpus.terms.tolist() == ["moon", "orbit", "the"]
    assert corpus.category_names == ["alt.made", "sci.made"]
    assert corpus.category.tolist() == [0, 0, 1, 1]
    assert corpus.counts.toarray().tolist() == [[0, 1, 1], [1, 1, 1], [2, 1, 1], [3, 0, 1]]


def test_order_of_members_line_ends_and_compression_change_nothing(tmp_path):
    plain = counts_from_archive(write_archive(tmp_path / "one.tar.gz", POSTS))
    dos = [(name, content.replace(b"\n", b"\r\n")) for name, content in POSTS[::-1]]
    assert same_corpus(plain, counts_from_archive(write_archive(tmp_path / "two.tar.gz", dos)))


def test_posts_without_subject_or_body_are_kept(tmp_path):
    bare = [("20news-bydate-train/alt.made/9", b"From: orbit moon the\n"), ("20news-bydate-train/alt.made/10", b"")]
    corpus = counts_from_archive(write_archive(tmp_path / "news.tar.gz", POSTS + bare))
    assert corpus.category.tolist() == [0, 0, 0, 0, 1, 1]
    assert corpus.counts.sum(axis=1).tolist() == [2, 0, 0, 3, 4, 4]


def test_odd_members_are_not_read(tmp_path):
    expected = counts_from_archive(write_archive(tmp_path / "plain.tar.gz", POSTS))
    odd = []
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE):
        info = tarfile.TarInfo(f"20news-bydate-train/alt.made/{int(kind)}")
        info.type, info.linkname = kind, "20news-bydate-train/alt.made/8"
        odd.append(info)
    elsewhere = [
        post(name, "moon", "orbit the evil")
        for name in (
            "/20news-bydate-train/alt.made/1",
            "../20news-bydate-train/alt.made/1",
            "20news-bydate-train/../1",
            "20news-bydate-train/alt.made/1/2",
            "20news-bydate-train/alt.made/readme",
            "20news-18828/alt.made/1",
        )
    ]
    odd_archive = write_archive(tmp_path / "odd.tar.gz", elsewhere + POSTS, tuple(odd))
    assert same_corpus(counts_from_archive(odd_archive), expected)


def test_archives_without_posts_are_refused(tmp_path):
    path = write_archive(tmp_path / "news.tar.gz", [post("elsewhere/1", "moon", "moon")])
    with pytest.raises(DataFileError) as caught:
        counts_from_archive(path)
    assert str(caught.value) == f"{ARCHIVE}, got {path} without a post; fetch it again"


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.95])
def test_truncated_archives_are_refused(tmp_path, share):
    generator = np.random.default_rng(0)
    noise = ["".join(generator.choice(list("abcdefgh "), 3000)) for _ in range(20)]
    many = [post(f"20news-bydate-train/alt.made/{i}", "none", text) for i, text in enumerate(noise)]
    whole = write_archive(tmp_path / "news.tar.gz", many).read_bytes()
    path = tmp_path / "part.tar.gz"
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(DataFileError, match=re.escape(f"{ARCHIVE}, got {path} (")):
        counts_from_archive(path)


def test_archive_counts_can_be_stored_and_built_from(tmp_path):
    members = []
    for group, words in (("alt.made", "abcdefghijkl"), ("sci.made", "mnopqrstuvwx")):
        for number in range(24):
            body = " ".join(2 * words[(number + shift) % 12] for shift in range(4))
            members.append(post(f"20news-bydate-train/{group}/{number}", "", body))
    write_counts(counts_from_archive(write_archive(tmp_path / "n.tar.gz", members)), tmp_path / "c.npz")
    bags = build(read_counts(tmp_path / "c.npz"), "sci.made", smallest=2, largest=4, total=12, n_bags=4, n_positive=2)
    assert (bags.n_features, bags.n_instances, bags.instance_y.sum()) == (20, 12, 2)
