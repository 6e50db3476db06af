"""VLAD by hand; Fisher vectors as derivatives of the likelihood; components as scikit-learn has them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture

import baggraph as bg
from baggraph.baselines import FisherVectorSVM, VladSVM
from baggraph.baselines._codebook import Components, power_normalised
from baggraph.baselines.mi_fv import Mixture, fisher_vectors
from baggraph.baselines.mi_vlad import residuals


def test_vlad_by_hand():
    """Centres (0, 0) and (10, 0).  Bag one has (1, 2) and (-1, 0) at the first, bag two (9, 3) at the second."""
    rows = np.array([[1.0, 2.0], [-1.0, 0.0], [9.0, 3.0]])
    sums = residuals(rows, np.array([0, 2, 3]), np.array([[0.0, 0.0], [10.0, 0.0]]))
    assert sums.tolist() == [[0.0, 2.0, 0.0, 0.0], [0.0, 0.0, -1.0, 3.0]]
    np.testing.assert_allclose(power_normalised(sums), [[0, 1, 0, 0], [0, 0, -0.5, np.sqrt(3) / 2]])


def mixture(random, d=3, k=2):
    book = GaussianMixture(k, covariance_type="diag")
    book.weights_ = np.array([0.3, 0.7])
    book.means_, book.covariances_ = random.normal(size=(k, d)), random.uniform(0.5, 2.0, size=(k, d))
    book.precisions_cholesky_ = 1 / np.sqrt(book.covariances_)
    return book


def test_fisher_vectors_are_scaled_derivatives_of_the_log_likelihood():
    """By the mean: times s / sqrt(w); by the deviation s: times s / sqrt(2 w); by the logit of the weight: / sqrt(w)."""
    random = np.random.default_rng(0)
    book, rows = mixture(random), random.normal(size=(5, 3))
    logits, means, deviations = np.log(book.weights_), book.means_, np.sqrt(book.covariances_)

    def likelihood(logits, means, deviations):
        weights = np.exp(logits) / np.exp(logits).sum()
        squares = (((rows[:, None] - means) / deviations) ** 2).sum(axis=2)
        densities = weights * np.exp(-squares / 2) / deviations.prod(axis=1) / (2 * np.pi) ** 1.5
        return np.log(densities.sum(axis=1)).mean()

    def slope(position):
        parts = [logits, means, deviations]

        def at(entry, step):
            moved = [part.copy() for part in parts]
            moved[position][entry] += step
            return likelihood(*moved)

        entries = np.ndindex(parts[position].shape)
        return np.array([(at(e, 1e-5) - at(e, -1e-5)) / 2e-5 for e in entries]).reshape(parts[position].shape)

    root = np.sqrt(book.weights_)
    expected = [
        slope(0) / root,
        (slope(1) * deviations / root[:, None]).ravel(),
        (slope(2) * deviations / np.sqrt(2) / root[:, None]).ravel(),
    ]
    found = fisher_vectors(rows, np.array([0, 5]), Mixture.of(book))[0]
    np.testing.assert_allclose(found, np.concatenate(expected), atol=1e-8)


def test_fisher_vectors_are_those_of_scikit_image():
    feature = pytest.importorskip("skimage.feature")
    random = np.random.default_rng(1)
    book, rows = mixture(random), random.normal(size=(9, 3))
    offsets = np.array([0, 4, 9])
    theirs = np.array([feature.fisher_vector(rows[a:b], book) for a, b in ((0, 4), (4, 9))])
    theirs[:, 8:] *= -1  # their deviations fall where the likelihood rises
    np.testing.assert_allclose(fisher_vectors(rows, offsets, Mixture.of(book)), theirs, atol=1e-12)


@pytest.mark.parametrize("shape", [(30, 5), (4, 9)])
@pytest.mark.parametrize("energy", [1.0, 0.9, 0.5])
def test_components_are_those_of_scikit_learn(shape, energy):
    rows = np.random.default_rng(0).normal(size=shape) * np.arange(1, shape[1] + 1)
    theirs = PCA(energy if energy < 1 else min(shape[0] - 1, shape[1]), svd_solver="full").fit(rows)
    found, expected = Components.of(rows, energy)(rows), theirs.transform(rows)
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-8)


@pytest.mark.parametrize("model", [VladSVM(n_centers=1), FisherVectorSVM(n_components=1)])
def test_bags_without_variance_are_answered(model):
    bags = bg.Bags(np.ones((8, 3)), range(9), [0, 1] * 4)
    assert set(model.fit(bags).predict(bags)) <= {0, 1}
    assert np.isfinite(model.vectors(bags)).all()


@pytest.mark.parametrize("model", [VladSVM(energy=0.9), FisherVectorSVM(energy=0.9)])
def test_vectors_have_length_one_and_make_the_table(model):
    random = np.random.default_rng(0)
    bags = bg.Bags.from_list([random.normal(size=(5, 4)) + b % 2 for b in range(12)], y=np.arange(12) % 2)
    vectors = model.fit(bags).vectors(bags)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0)
    np.testing.assert_allclose(model.gram(bags), vectors @ vectors.T, atol=1e-12)
    expected = model.decision_function(bags)
    np.testing.assert_allclose(model.fit_gram(model.gram(bags), bags.y).decide_gram(model.gram(bags)), expected)
