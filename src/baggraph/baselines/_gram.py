"""Methods that see bags through a table of pairs, which is computed once and sliced by folds."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from baggraph.baselines._classifier import BagClassifier, Index, _squeezed
from baggraph.baselines._input import Matrix, Vector, as_bags
from baggraph.baselines._svc import Expansion, Points, fit_svc
from baggraph.data._choosing import positions
from baggraph.data._columns import canonical_column, missing_mask
from baggraph.data._instances import gather_rows
from baggraph.data.bags import Bags
from baggraph.errors import InvalidBagsError


@dataclass(frozen=True)
class Gram(Points):
    """Values between bags, or between their instances, that can be divided by bags.

    ``values`` (R, C) belong to rows ``row_offsets[b]:row_offsets[b + 1]`` of bag ``b``; so do columns.  A slice keeps
    the table that it was taken from, and copies of it what is asked for.

    >>> gram = Gram(np.arange(9.0).reshape(3, 3), np.array([0, 1, 3]), np.array([0, 1, 3]))
    >>> gram.take([1], [0]).values.tolist()
    [[3.0], [6.0]]
    """

    table: Matrix
    row_offsets: Index
    column_offsets: Index
    rows: Index | None = None  # of the table; None is all of them
    columns: Index | None = None

    @classmethod
    def of(cls, values: Any) -> Gram:
        """A Gram of bags (B, B') as they are, or one that is a Gram already."""
        if isinstance(values, Gram):
            return values
        table = np.asarray(values, dtype=np.float64)
        if table.ndim != 2:
            got, remedy = f"shape {table.shape}", "pass what gram(bags) returned, or a slice of it"
            raise InvalidBagsError("gram", expected="a table of pairs", got=got, remedy=remedy)
        return cls(table, np.arange(table.shape[0] + 1), np.arange(table.shape[1] + 1))

    @property
    def shape(self) -> tuple[int, int]:
        """Number of bags along rows and columns."""
        return len(self.row_offsets) - 1, len(self.column_offsets) - 1

    @property
    def values(self) -> Matrix:
        """The table of this slice, (R, C)."""
        return self.table if self.rows is None else self.table[np.ix_(self.rows, self._columns)]

    @property
    def _rows(self) -> Index:
        return np.arange(self.table.shape[0]) if self.rows is None else self.rows

    @property
    def _columns(self) -> Index:
        return np.arange(self.table.shape[1]) if self.columns is None else self.columns

    def take(self, rows: Any, columns: Any) -> Gram:
        """The table of these bags (positions, or where a mask is true) against those."""
        row_index, row_offsets = gather_rows(self.row_offsets, positions(rows, self.shape[0], {}))
        column_index, column_offsets = gather_rows(self.column_offsets, positions(columns, self.shape[1], {}))
        return Gram(self.table, row_offsets, column_offsets, self._rows[row_index], self._columns[column_index])

    def block(self, rows: Index, columns: Index) -> Matrix:
        """Values at these rows and columns of this slice."""
        return self.table[np.ix_(self._rows[rows], self._columns[columns])]

    def apply(self, function: Expansion) -> Vector:
        """Values of an expansion in the columns, (R,); only columns with a coefficient are read."""
        used = np.flatnonzero(function.coef)
        # Columns lie one after the other in memory where the table is large (see all_pairs).
        values = function.coef[used] @ np.take(self.table.T, self._columns[used], axis=0)
        return values[self._rows] + function.intercept

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype=dtype) if copy else np.asarray(self.values, dtype=dtype)


class GramClassifier(BagClassifier):
    """A classifier whose evidence is a :class:`Gram`, so that cross-validation slices one table.

    ``gram(bags)`` needs no label.  ``fit_gram(K.take(train, train), y[train])`` and then
    ``decide_gram(K.take(test, train))`` is what ``fit`` and ``decision_function`` do with tables of their own.
    """

    @abstractmethod
    def _evidence(self, anchor: Any, bags: Bags) -> Gram:
        """The table of bags against those of the anchor."""

    def gram(self, bags: Any, others: Any = None) -> Gram:
        """The table of bags against others, by default themselves.

        Whatever is learned without labels (scaling, a width, a codebook) is learned from ``others``.
        """
        self._check()
        rows = as_bags(bags, self._stage)
        columns = rows if others is None else as_bags(others, self._stage, rows.n_features)
        return self._evidence(self._anchor(columns), rows)

    def fit_gram(self, gram: Any, y: Any) -> Any:
        """Learn from the table of training bags against themselves; those without a label are left out."""
        self._check()
        table = Gram.of(gram)
        labels = canonical_column(y, "label", table.shape[0], lambda b: f"bag {b}")
        if table.shape[0] != table.shape[1] or missing_mask(labels).all():
            got, remedy = f"a table of {table.shape} with {len(labels)} labels", "pass gram(bags) and y"
            raise InvalidBagsError(self._stage, expected="a square table, and labels", got=got, remedy=remedy)
        known = np.flatnonzero(~missing_mask(labels))
        if len(known) < len(labels):
            table = table.take(known, known)
        self._fit_evidence(table, labels[known])
        self.trained_on_, self.n_columns_ = known, len(labels)
        self.__dict__.pop("anchor_", None)  # bags of an earlier fit say nothing about this table
        return self

    def decide_gram(self, gram: Any) -> NDArray[np.float64]:
        """Scores, as of ``decision_function``, from the table of bags against those given to ``fit_gram``."""
        return _squeezed(self._scores(self._sliced(gram)))

    def predict_gram(self, gram: Any) -> NDArray[Any]:
        """Classes, as of ``predict``, from the table of bags against those given to ``fit_gram``."""
        return self._classes_of(self._scores(self._sliced(gram)))

    def predict_proba_gram(self, gram: Any) -> NDArray[np.float64]:
        """Probabilities, as of ``predict_proba``, from the table of bags against those given to ``fit_gram``."""
        return self._probabilities_of(self._scores(self._sliced(gram)))

    def _sliced(self, gram: Any) -> Gram:
        check_is_fitted(self, "trained_on_")
        table = Gram.of(gram)
        if table.shape[1] != self.n_columns_:
            got, remedy = f"{table.shape[1]}", "slice the table as for fit_gram"
            raise InvalidBagsError(self._stage, expected=f"{self.n_columns_} columns", got=got, remedy=remedy)
        if len(self.trained_on_) == self.n_columns_:
            return table
        return table.take(np.arange(table.shape[0]), self.trained_on_)

    def _part(self, evidence: Gram, rows: Index, columns: Index) -> Gram:
        return evidence.take(rows, columns)


class KernelSVM(GramClassifier):
    """A support vector machine on a table of bags against bags."""

    C: float

    def _train(self, evidence: Gram, sign: Vector) -> Expansion:
        return fit_svc(evidence, sign, self.C)

    def _score(self, model: Expansion, evidence: Gram) -> Vector:
        return evidence.apply(model)
