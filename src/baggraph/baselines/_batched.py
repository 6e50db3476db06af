"""Minimising many functions of one kind at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from baggraph.baselines._input import Matrix, Vector

LossAndGradient = Callable[[Matrix], tuple[Vector, Matrix]]
SUFFICIENT = 1e-4


def descend(function: LossAndGradient, start: Matrix, *, steps: int, tolerance: float = 1e-6) -> tuple[Matrix, Vector]:
    """Points (S, p) and losses (S,) after descent of S functions, each with a step of its own.

    Gradient steps of the length of Barzilai and Borwein (1988); a step that does not lower its loss is taken back and
    quartered.  No loss ever rises, and none is touched again once a step lowers it by less than the tolerance.

    >>> points, losses = descend(lambda x: ((x**2).sum(axis=1), 2 * x), np.array([[3.0], [-1.0]]), steps=20)
    >>> bool(np.abs(points).max() < 1e-3)
    True
    """
    points = start
    losses, gradients = function(points)
    lengths = 0.1 / np.maximum(np.linalg.norm(gradients, axis=1), 1e-12)
    done = np.zeros(len(points), dtype=bool)
    for _ in range(steps):
        tried = points - lengths[:, None] * gradients
        new_losses, new_gradients = function(tried)
        squares = np.einsum("ij,ij->i", gradients, gradients)
        good = ~done & (new_losses <= losses - SUFFICIENT * lengths * squares)
        moved, turned = tried - points, new_gradients - gradients
        curvature = np.einsum("ij,ij->i", moved, turned)
        secant = np.einsum("ij,ij->i", moved, moved) / np.where(curvature > 0, curvature, 1.0)
        lengths = np.where(good, np.where(curvature > 0, secant, 2 * lengths), lengths / 4)
        done |= good & (losses - new_losses <= tolerance * (1 + np.abs(new_losses)))
        points = np.where(good[:, None], tried, points)
        gradients = np.where(good[:, None], new_gradients, gradients)
        losses = np.where(good, new_losses, losses)
        if done.all():
            break
    return points, losses
