from __future__ import annotations

import io
import os
import re
import tarfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from baggraph.datasets import newsgroups_recipe as recipe
from baggraph.errors import DataFileError, ParameterError

GROUPS = ["alt.made", "comp.made", "sci.made"]
SIZES = {"smallest": 4, "largest": 16, "total": 200, "n_bags": 20, "n_positive": 8}
AGAIN = "; fetch it again, or build it with counts_from_archive"
ARCHIVE = (
    "newsgroups: expected the archive 20news-bydate.tar.gz with folders 20news-bydate-train and 20news-bydate-test"
)


def made_corpus(posts_a_group: int = 150, own_terms: int = 15, seed: int = 3) -> recipe.Corpus:
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
    return recipe.Corpus(sp.csr_array(counts.astype(np.int32)), terms, category, GROUPS)


@pytest.fixture(scope="module")
def corpus() -> recipe.Corpus:
    return made_corpus()


def same_corpus(left: recipe.Corpus, right: recipe.Corpus) -> bool:
    return (
        left.counts.shape == right.counts.shape
        and (left.counts != right.counts).nnz == 0
        and left.terms.tolist() == right.terms.tolist()
        and left.category.tolist() == right.category.tolist()
        and left.category_names == right.category_names
    )


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
    assert bags.sizes.tolist() == [9, 16, 8, 8, 16, 4, 15, 6, 8, 12, 15, 10, 8, 15, 11, 6, 8, 4, 14, 7]
    assert np.flatnonzero(bags.y).tolist() == [1, 2, 6, 7, 8, 13, 15, 19]
    assert bags.instance_names[:4].tolist() == ["post-368", "post-403", "post-318", "post-383"]


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
    shuffled = recipe.Corpus(corpus.counts[rows][:, columns], corpus.terms[columns], corpus.category[rows], GROUPS)
    names = [c.terms[recipe.honest_terms(c)].tolist() for c in (corpus, shuffled)]
    assert names[0] == names[1]


def test_ties_go_by_alphabet_and_taken_terms_to_the_next_best():
    columns = np.array(list("dabc"))
    counts = sp.csr_array(np.array([[0, 1, 1, 0], [0, 3, 0, 1], [0, 0, 1, 0]]))
    made = recipe.Corpus(counts, columns, np.array([0, 1, 1]), ["one", "two"])
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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target": "alt.mad"}, "the name of a newsgroup, got 'alt.mad'; did you mean 'alt.made'?"),
        ({"n_positive": 21}, "2 bags or more, not more positive ones, got 21 of 20; correct the numbers"),
        ({"n_bags": 1, "n_positive": 1}, "2 bags or more, not more positive ones, got 1 of 1; correct the numbers"),
        (
            {"witness_rate": 0.0},
            "a witness_rate above 0 and at most 1, got 0.0; 0.03 is that of the original sets",
        ),
        ({"random_state": -1}, "a random_state of 0 or more, got -1; pass another integer"),
        (
            {"total": 91},
            "sizes that 20 bags can meet, got total=91 with smallest=4 and largest=16; "
            "total must lie between 92 and 308",
        ),
        (
            {"total": 309},
            "sizes that 20 bags can meet, got total=309 with smallest=4 and largest=16; "
            "total must lie between 92 and 308",
        ),
        (
            {"total": 2000, "largest": 300},
            "2000 posts of the target newsgroups, got {} that hold any of the terms; use fewer or smaller bags",
        ),
    ],
)
def test_refusals(corpus, changes, message):
    arguments = {"target": "alt.made", **SIZES, **changes}
    if arguments["total"] == 2000:
        arguments |= {"n_positive": 20, "witness_rate": 1.0}
        terms = recipe.honest_terms(corpus)
        filled = (corpus.counts[:, terms].sum(axis=1) > 0) & (corpus.category == 0)
        message = message.format(filled.sum())
    with pytest.raises(ParameterError) as caught:
        recipe.build(corpus, **arguments)
    assert str(caught.value) == "newsgroups: expected " + message


def test_sizes_below_one_or_upside_down_are_refused(corpus):
    for smallest, largest in ((0, 16), (17, 16)):
        with pytest.raises(ParameterError) as caught:
            recipe.build(corpus, "alt.made", **SIZES | {"smallest": smallest, "largest": largest})
        got = f"smallest={smallest} and largest={largest}; correct the numbers"
        assert str(caught.value) == f"newsgroups: expected sizes of 1 or more, in order, got {got}"


# ---------------------------------------------------------------------- files of counts


def test_counts_survive_a_round_trip(corpus, tmp_path):
    recipe.write_counts(corpus, tmp_path / "counts.npz")
    assert same_corpus(recipe.read_counts(tmp_path / "counts.npz"), corpus)
    assert [path.name for path in tmp_path.iterdir()] == ["counts.npz"]


def test_stored_zeros_and_repeats_are_no_posts_with_a_term(tmp_path):
    path = tmp_path / "counts.npz"
    np.savez(path, **layout(data=[0, 1, 2, 1], indices=[0, 1, 1, 0], indptr=[0, 3, 4]))
    assert recipe.read_counts(path).counts.toarray().tolist() == [[0, 3], [1, 0]]
    assert recipe.read_counts(path).counts.nnz == 2


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


@pytest.mark.parametrize("key", recipe.KEYS)
def test_a_missing_key_is_named(tmp_path, key):
    path = tmp_path / "counts.npz"
    arrays = layout()
    del arrays[key]
    np.savez(path, **arrays)
    with pytest.raises(DataFileError) as caught:
        recipe.read_counts(path)
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
        recipe.read_counts(path)
    expected = f"newsgroups: expected categories and terms for 2 posts and 2 terms in {path}, got {got}{AGAIN}"
    assert str(caught.value) == expected


@pytest.mark.parametrize("changes", [{"indices": [0, 7]}, {"indptr": [0, 1]}, {"shape": [2, 2, 2]}])
def test_broken_matrices_are_refused(tmp_path, changes):
    path = tmp_path / "counts.npz"
    np.savez(path, **layout(**changes))
    with pytest.raises(DataFileError, match=re.escape(f"counts as a CSR matrix in {path}, got a broken one (")):
        recipe.read_counts(path)


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
            recipe.read_counts(path)


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
    corpus = recipe.counts_from_archive(write_archive(tmp_path / "news.tar.gz", POSTS))
    assert corpus.terms.tolist() == ["moon", "orbit", "the"]
    assert corpus.category_names == ["alt.made", "sci.made"]
    assert corpus.category.tolist() == [0, 0, 1, 1]
    assert corpus.counts.toarray().tolist() == [[0, 1, 1], [1, 1, 1], [2, 1, 1], [3, 0, 1]]


def test_order_of_members_line_ends_and_compression_change_nothing(tmp_path):
    plain = recipe.counts_from_archive(write_archive(tmp_path / "one.tar.gz", POSTS))
    dos = [(name, content.replace(b"\n", b"\r\n")) for name, content in POSTS[::-1]]
    assert same_corpus(plain, recipe.counts_from_archive(write_archive(tmp_path / "two.tar.gz", dos)))


def test_posts_without_subject_or_body_are_kept(tmp_path):
    bare = [("20news-bydate-train/alt.made/9", b"From: orbit moon the\n"), ("20news-bydate-train/alt.made/10", b"")]
    corpus = recipe.counts_from_archive(write_archive(tmp_path / "news.tar.gz", POSTS + bare))
    assert corpus.category.tolist() == [0, 0, 0, 0, 1, 1]
    assert corpus.counts.sum(axis=1).tolist() == [2, 0, 0, 3, 4, 4]


def test_odd_members_are_not_read(tmp_path):
    expected = recipe.counts_from_archive(write_archive(tmp_path / "plain.tar.gz", POSTS))
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
    assert same_corpus(recipe.counts_from_archive(odd_archive), expected)


def test_archives_without_posts_are_refused(tmp_path):
    path = write_archive(tmp_path / "news.tar.gz", [post("elsewhere/1", "moon", "moon")])
    with pytest.raises(DataFileError) as caught:
        recipe.counts_from_archive(path)
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
        recipe.counts_from_archive(path)


def test_archive_counts_can_be_stored_and_built_from(tmp_path):
    members = []
    for group, words in (("alt.made", "abcdefghijkl"), ("sci.made", "mnopqrstuvwx")):
        for number in range(24):
            body = " ".join(2 * words[(number + shift) % 12] for shift in range(4))
            members.append(post(f"20news-bydate-train/{group}/{number}", "", body))
    recipe.write_counts(recipe.counts_from_archive(write_archive(tmp_path / "n.tar.gz", members)), tmp_path / "c.npz")
    bags = recipe.build(
        recipe.read_counts(tmp_path / "c.npz"), "sci.made", smallest=2, largest=4, total=12, n_bags=4, n_positive=2
    )
    assert (bags.n_features, bags.n_instances, bags.instance_y.sum()) == (20, 12, 2)


# ---------------------------------------------------------------------- the corpus itself


def test_the_real_corpus_meets_the_published_sizes():
    folder = os.environ.get("BAGGRAPH_DATA")
    path = Path(folder or "") / "newsgroups_rebuilt" / "corpus_counts.npz"
    if not folder or not path.is_file():
        pytest.skip("BAGGRAPH_DATA names no folder with newsgroups_rebuilt/corpus_counts.npz")
    corpus = recipe.read_counts(path)
    assert corpus.counts.shape == (18846, 43255)
    bags = recipe.build(corpus, "alt.atheism", smallest=22, largest=76, total=5443)
    assert (len(bags), bags.n_instances, bags.n_features, bags.y.sum()) == (100, 5443, 200, 50)
    assert (bags.sizes.min(), bags.sizes.max()) == (22, 76)
    assert 0.025 < bags.instance_y[np.repeat(bags.y, bags.sizes) == 1].mean() < 0.035
