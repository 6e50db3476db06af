"""Scaling of instances by statistics of the bags that a scaler was shown, and of no others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from baggraph.data._columns import frozen
from baggraph.data._instances import Instances, blocks, target_dtype
from baggraph.data.bags import Bags
from baggraph.errors import InvalidBagsError, ParameterError, closest, name_some

__all__ = ["InstanceScaler"]

KINDS = ("auto", "standard", "minmax", "maxabs", "unit-norm", "none")
KEEP_SPARSE = ("maxabs", "unit-norm", "none")
STATELESS = ("unit-norm", "none")
SMALLEST_SPREAD = 1e-12

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class InstanceScaler:
    """A scaling ``(x - center_) / scale_`` of every feature, or of every instance to norm one.

    ==============  =======================================================  ======
    kind            what instances of the fitted bags become                 sparse
    ==============  =======================================================  ======
    ``standard``    mean 0 and standard deviation 1                          no
    ``minmax``      0 to 1                                                   no
    ``maxabs``      largest absolute value 1                                 yes
    ``unit-norm``   each of Euclidean norm 1, or all zero; nothing to fit    yes
    ``none``        what they were; nothing to fit                           yes
    ``auto``        ``standard``, or ``maxabs`` where instances are sparse   yes
    ==============  =======================================================  ======

    Columns that do not vary (``standard``: a deviation within 1e-12 of the mean) are centred only.
    Statistics and arithmetic are in float64; the result has the type of the input.

    >>> bags = Bags([[1.0, 5.0], [3.0, 5.0]], [0, 1, 2])
    >>> scaler = InstanceScaler("standard").fit(bags)
    >>> scaler.center_.tolist(), scaler.scale_.tolist(), scaler.transform(bags).instances.tolist()
    ([2.0, 5.0], [1.0, 1.0], [[-1.0, 0.0], [1.0, 0.0]])
    """

    kind: str = "standard"
    center_: Any = field(default=None, repr=False)
    scale_: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise _bad_parameter("a kind of scaling", repr(self.kind), closest(self.kind, KINDS))
        if self.center_ is None and self.scale_ is None:
            return
        center, scale = (frozen(np.array(v, dtype=np.float64)) for v in (self.center_, self.scale_))
        if center.ndim != 1 or center.shape != scale.shape:
            raise _bad_parameter(
                "one centre and one scale a feature", f"shapes {center.shape} and {scale.shape}", "use fit"
            )
        usable = np.isfinite(center) & np.isfinite(scale) & (scale > 0)
        if not usable.all():
            first = int(np.argmin(usable))
            got = f"centre {center[first]} and scale {scale[first]} for feature {first}"
            raise _bad_parameter("finite centres and positive, finite scales", got, "look for enormous numbers there")
        object.__setattr__(self, "center_", center)
        object.__setattr__(self, "scale_", scale)

    def fit(self, bags: Bags) -> InstanceScaler:
        """A new scaler with ``center_`` and ``scale_`` (d,) from the instances of these bags, read block by block."""
        if self.kind == "auto":
            return InstanceScaler("maxabs" if bags.is_sparse else "standard").fit(bags)
        self._refuse_sparse(bags.instances)
        center, scale = np.zeros(bags.n_features), np.ones(bags.n_features)
        if self.kind == "standard":
            center, deviation = _mean_and_deviation(bags.instances)
            scale = np.where(deviation <= SMALLEST_SPREAD * np.abs(center), 1.0, deviation)
        elif self.kind == "minmax":
            center, largest = _range(bags.instances)
            scale = _one_where_zero(largest - center)
        elif self.kind == "maxabs":
            scale = _one_where_zero(_largest_magnitude(bags.instances))
        return InstanceScaler(self.kind, center, scale)

    def transform(self, bags: Bags) -> Bags:
        """The same bags with scaled instances; those of a memory map are read into memory."""
        if self.kind == "none":
            self._check(bags.instances)
            return bags
        if bags.is_sparse:
            return bags.replace(instances=self.transform_block(bags.instances), offsets=bags.offsets)
        scaled = np.empty(bags.instances.shape, dtype=bags.instances.dtype)
        for start, values in blocks(bags.instances):
            scaled[start : start + len(values)] = self.transform_block(values)
        return bags.replace(instances=frozen(scaled), offsets=bags.offsets)

    def transform_block(self, block: Instances) -> Instances:
        """Scaled rows (n, d) of an array, or of a sparse matrix as CSR.

        >>> InstanceScaler("unit-norm").transform_block(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
        [[0.6, 0.8], [0.0, 0.0]]
        """
        values, dtype = self._float64(block)
        if self.kind == "unit-norm":
            values = _unit_rows(values)
        elif sp.issparse(values):
            values.data /= self._column_scale(values)
        elif self.kind != "none":
            values = (values - self.center_) / self.scale_
        return values.astype(dtype, copy=False)

    def inverse_block(self, block: Instances) -> Instances:
        """Rows (n, d) as they were before scaling, to rounding.

        >>> InstanceScaler("standard", [2.0], [3.0]).inverse_block(np.array([[1.0]])).tolist()
        [[5.0]]
        """
        values, dtype = self._float64(block)
        if self.kind == "unit-norm":
            remedy = "keep the instances as they were, or use another kind"
            raise _bad_parameter("a kind of scaling that can be undone", "'unit-norm'", remedy)
        if sp.issparse(values):
            values.data *= self._column_scale(values)
        elif self.kind != "none":
            values = values * self.scale_ + self.center_
        return values.astype(dtype, copy=False)

    def to_dict(self) -> dict[str, Any]:
        """Kind, centre and scale as JSON can hold them, exactly.

        >>> InstanceScaler("none").to_dict()
        {'kind': 'none', 'center': None, 'scale': None}
        """
        center, scale = (None if v is None else v.tolist() for v in (self.center_, self.scale_))
        return {"kind": self.kind, "center": center, "scale": scale}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> InstanceScaler:
        """The scaler that :meth:`to_dict` wrote down."""
        if set(state) != {"kind", "center", "scale"}:
            raise _bad_parameter("keys 'kind', 'center' and 'scale'", name_some(state), "pass what to_dict returned")
        return cls(state["kind"], state["center"], state["scale"])

    def _float64(self, block: Instances) -> tuple[Instances, np.dtype[Any]]:
        self._check(block)
        dtype = target_dtype(block.dtype)
        if not sp.issparse(block):
            return np.asarray(block, dtype=np.float64), dtype
        matrix = sp.csr_array(block, dtype=np.float64, copy=True)
        matrix.sum_duplicates()
        return matrix, dtype

    def _column_scale(self, matrix: sp.csr_array) -> Vector | float:
        return 1.0 if self.kind == "none" else self.scale_[matrix.indices]

    def _check(self, block: Instances) -> None:
        self._refuse_sparse(block)
        if self.center_ is None and self.kind not in STATELESS:
            raise _bad_parameter("a fitted scaler", f"{self!r} before fit", "use what fit(bags) returns")
        if block.ndim != 2 or (self.center_ is not None and block.shape[1] != len(self.center_)):
            wanted = "rows of features" if self.center_ is None else f"{len(self.center_)} features, as in fit"
            remedy = "choose the columns that the scaler was fitted on"
            raise InvalidBagsError("scaling", expected=wanted, got=f"shape {block.shape}", remedy=remedy)

    def _refuse_sparse(self, block: Instances) -> None:
        if sp.issparse(block) and self.kind not in KEEP_SPARSE:
            remedy = 'use "maxabs", which keeps zeros zero'
            raise _bad_parameter("a kind that keeps sparse instances sparse", repr(self.kind), remedy)


def _bad_parameter(expected: str, got: str, remedy: str) -> ParameterError:
    return ParameterError("scaling", expected=expected, got=got, remedy=remedy)


def _one_where_zero(scale: Vector) -> Vector:
    return np.where(scale == 0, 1.0, scale)


def _mean_and_deviation(instances: Instances) -> tuple[Vector, Vector]:
    """Mean and standard deviation (d,) of blocks that are merged one by one.

    With ``n`` rows seen before and ``m`` new ones whose mean lies ``delta`` away, the mean moves by
    ``delta * m / (n + m)`` and the squares grow by those of the block and ``delta**2 * n * m / (n + m)``
    (Chan, Golub and LeVeque 1983, The American Statistician 37).
    """
    count, mean, squares = 0, np.zeros(instances.shape[1]), np.zeros(instances.shape[1])
    for _, block in blocks(instances):
        values = np.asarray(block, dtype=np.float64)
        new, center = len(values), values.mean(axis=0)
        values = values - center
        # The mean itself was rounded: what it missed by comes back as the mean of the differences.
        missed = values.mean(axis=0)
        delta, total = center + missed - mean, count + new
        mean = mean + delta * (new / total)
        squares += np.einsum("ij,ij->j", values, values) - new * missed**2 + delta**2 * (count * new / total)
        count = total
    return mean, np.sqrt(np.maximum(squares, 0.0) / count)


def _range(instances: Instances) -> tuple[Vector, Vector]:
    smallest, largest = np.full((2, instances.shape[1]), [[np.inf], [-np.inf]])
    for _, values in blocks(instances):
        np.minimum(smallest, values.min(axis=0), out=smallest)
        np.maximum(largest, values.max(axis=0), out=largest)
    return smallest, largest


def _largest_magnitude(instances: Instances) -> Vector:
    if sp.issparse(instances):
        largest = np.zeros(instances.shape[1])
        np.maximum.at(largest, instances.indices, np.abs(instances.data))
        return largest
    return np.maximum(*np.abs(_range(instances)))


def _unit_rows(values: Instances) -> Instances:
    """Rows of Euclidean norm one; dividing by the largest entry first keeps the squares in range."""
    if sp.issparse(values):
        row = np.repeat(np.arange(values.shape[0]), np.diff(values.indptr))
        largest = np.zeros(values.shape[0])
        np.maximum.at(largest, row, np.abs(values.data))
        values.data /= _one_where_zero(largest)[row]
        norms = np.sqrt(np.bincount(row, weights=values.data**2, minlength=values.shape[0]))
        values.data /= _one_where_zero(norms)[row]
        return values
    values = values / _one_where_zero(np.abs(values).max(axis=1, keepdims=True, initial=0.0))
    return values / _one_where_zero(np.sqrt(np.einsum("ij,ij->i", values, values)))[:, None]
