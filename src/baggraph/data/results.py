"""ResultTable: scores with their provenance, a row a number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from baggraph.errors import InvalidBagsError, ParameterError, closest, name_some

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ResultTable"]

_TEXT, _WHOLE, _REAL = pa.string(), pa.int64(), pa.float64()
KEY = ("task", "method", "dataset", "repeat", "fold", "seed", "metric")
SCHEMA = pa.schema(
    [
        ("task", _TEXT),
        ("method", _TEXT),
        ("dataset", _TEXT),
        ("repeat", _WHOLE),
        ("fold", _WHOLE),
        ("seed", _WHOLE),
        ("metric", _TEXT),
        ("value", _REAL),
        ("note", _TEXT),
        ("error", _TEXT),
        ("setting", _TEXT),
        ("chosen", _TEXT),
        ("n_train", _WHOLE),
        ("n_test", _WHOLE),
        ("code_version", _TEXT),
        ("recipe_sha256", _TEXT),
        ("data_sha256", _TEXT),
        ("device", _TEXT),
        ("libraries", _TEXT),
        ("wall_time", _REAL),
        ("finished", _TEXT),
    ]
)
AGGREGATES = ("mean", "median", "std", "min", "max", "count")


@dataclass(frozen=True, eq=False, repr=False)
class ResultTable:
    """A row per task, method, data set, split, seed and metric: a value, and where it comes from.

    Parameters
    ----------
    rows
        What :meth:`from_rows`, :meth:`read` and the other makers pass: an Arrow table.

    Notes
    -----
    ``task``, ``method``, ``dataset``, ``repeat``, ``fold``, ``seed`` and ``metric`` name a row, and no two rows share
    all of them.  ``value`` is NaN where a score is not defined, and ``note`` says why; where the task failed, ``error``
    is its traceback.  ``setting`` is transductive or inductive, ``chosen`` the parameters that nested selection took
    (JSON), ``n_train`` and ``n_test`` count bags.  The rest is provenance: ``code_version``, ``recipe_sha256`` (method,
    parameters, splits and setting), ``data_sha256``, ``device``, ``libraries`` (JSON), ``wall_time`` in seconds of the
    task, and when it ``finished``.

    Examples
    --------
    >>> table = ResultTable.from_rows(
    ...     {"method": m, "dataset": "d", "metric": "accuracy", "fold": f, "value": v}
    ...     for m, scores in {"a": [0.5, 1.0], "b": [0.25, 0.5]}.items() for f, v in enumerate(scores))
    >>> table
    ResultTable: 4 rows, 2 methods, 1 data set, 1 metric
    >>> table.pivot("accuracy")
    method     a      b
    dataset
    d       0.75  0.375

    """

    rows: Any

    def __post_init__(self) -> None:
        if not isinstance(self.rows, pa.Table) or self.rows.schema.names != SCHEMA.names:
            got = f"a {type(self.rows).__name__}"
            raise _wrong("an Arrow table of the columns of results", got, "make it with ResultTable.from_rows")
        object.__setattr__(self, "rows", self.rows.cast(SCHEMA))
        self._refuse_twins()

    def _refuse_twins(self) -> None:
        distinct = self.rows.group_by(list(KEY)).aggregate([([], "count_all")])
        if distinct.num_rows < self.rows.num_rows:
            twice = distinct.filter(pc.greater(distinct["count_all"], 1)).select(KEY).slice(0, 1).to_pylist()[0]
            got = " ".join(f"{name}={value!r}" for name, value in twice.items()) + " more than once"
            raise _wrong("every row once", got, "name the methods differently, or read the folder, where the last wins")

    # ------------------------------------------------------------------ making

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, Any]]) -> ResultTable:
        """A table of mappings from column to value; what is left out is empty, numbers of splits and seeds are 0."""
        zeros = dict.fromkeys(("repeat", "fold", "seed"), 0)
        filled = [{"task": "", **zeros, "value": np.nan, **row} for row in rows]
        unknown = sorted({name for row in filled for name in row} - set(SCHEMA.names))
        if unknown:
            raise _wrong("the columns of results", repr(unknown[0]), closest(unknown[0], SCHEMA.names))
        return cls(pa.Table.from_pylist(filled, schema=SCHEMA))

    @classmethod
    def from_frame(cls, frame: pd.DataFrame) -> ResultTable:
        """The table that :meth:`frame` gave, perhaps with fewer rows."""
        absent = [name for name in SCHEMA.names if name not in frame]
        if absent:
            raise _wrong(f"a column {absent[0]!r}", "none", "pass what table.frame() returned")
        return cls(pa.Table.from_pandas(frame, SCHEMA, preserve_index=False, safe=False))

    @classmethod
    def concat(cls, tables: Sequence[ResultTable]) -> ResultTable:
        """All rows of several tables; no row may be in two of them."""
        return cls(pa.concat_tables([SCHEMA.empty_table(), *(table.rows for table in tables)]))

    @classmethod
    def read(cls, folder: str | Path) -> ResultTable:
        """Everything that was appended to a folder; of rows of the same name, the last one written counts."""
        from baggraph.data._results_disk import read_parts

        return cls(_last_of_twins(read_parts(Path(folder), SCHEMA)))

    def append(self, folder: str | Path) -> Path:
        """Write these rows as one new file into a folder, whole or not at all, beside what others write there.

        >>> import tempfile
        >>> table = ResultTable.from_rows([{"method": "a", "dataset": "d", "metric": "auc", "value": 0.5}])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = table.append(folder)
        ...     ResultTable.read(folder) == table
        True
        """
        from baggraph.data._results_disk import write_part

        return write_part(self.rows, Path(folder))

    # ------------------------------------------------------------------ looking

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def names(self, column: str) -> list[Any]:
        """Distinct values of a column, in order of appearance."""
        self._check_column(column)
        return list(pc.unique(self.rows[column]).to_pylist())

    @property
    def failed(self) -> ResultTable:
        """The rows of tasks that failed; their column ``error`` has the traceback."""
        return ResultTable(self.rows.filter(pc.is_valid(self.rows["error"])))

    def frame(self) -> pd.DataFrame:
        """All rows as a DataFrame of its own."""
        return self.rows.to_pandas()

    def filter(self, **wanted: Any) -> ResultTable:
        """The rows whose columns have these values, or one of these values.

        >>> rows = [{"method": m, "dataset": "d", "metric": "auc"} for m in "abc"]
        >>> ResultTable.from_rows(rows).filter(method=["a", "c"], metric="auc").names("method")
        ['a', 'c']
        """
        kept = self.rows
        for column, values in wanted.items():
            self._check_column(column)
            many = isinstance(values, list | tuple | set | frozenset | np.ndarray | range)
            listed = pa.array(list(values) if many else [values], type=SCHEMA.field(column).type)
            kept = kept.filter(pc.is_in(kept[column], value_set=listed))
        return ResultTable(kept)

    def pivot(
        self, metric: str, *, index: Any = "dataset", columns: Any = "method", aggregate: str = "mean"
    ) -> pd.DataFrame:
        """One metric laid out in two directions, in order of appearance; NaN wherever one of the values is.

        ``aggregate`` is mean, median, std (with one degree of freedom less), min, max or count.
        """
        if aggregate not in AGGREGATES:
            remedy = closest(aggregate, AGGREGATES)
            raise ParameterError("results", expected="an aggregate", got=repr(aggregate), remedy=remedy)
        groups = [index] if isinstance(index, str) else list(index)
        across = [columns] if isinstance(columns, str) else list(columns)
        for name in (*groups, *across):
            self._check_column(name)
        chosen = self._of_metric(metric).frame()
        grouped = chosen.groupby([*groups, *across], sort=False, dropna=False)["value"]
        values = grouped.agg(aggregate)
        if aggregate != "count":
            values = values.where(grouped.count() == grouped.size())  # pandas leaves out NaN, and says nothing
        return values.unstack(across, sort=False)

    def summary(self, metric: str) -> pd.DataFrame:
        """Mean, and spread by name, of every method on every data set.

        ``sd_splits`` is the standard deviation over splits and seeds, ``sd_repeats`` that of the means of repeats,
        ``n`` the number of values, and ``failed`` counts those among them that are NaN and left out.
        """
        chosen = self._of_metric(metric).frame()
        grouped = chosen.groupby(["dataset", "method"], sort=False)["value"]
        of_repeats = chosen.groupby(["dataset", "method", "repeat"], sort=False)["value"].mean()
        found = grouped.agg(["mean", "std", "size", "count"])
        found["sd_repeats"] = of_repeats.groupby(["dataset", "method"], sort=False).std()
        found["failed"] = found["size"] - found["count"]
        found = found.rename(columns={"std": "sd_splits", "size": "n"})
        return found[["mean", "sd_splits", "sd_repeats", "n", "failed"]]

    def _of_metric(self, metric: str) -> ResultTable:
        if metric not in self.names("metric"):
            remedy = closest(metric, self.names("metric"))
            raise ParameterError("results", expected="a metric of this table", got=repr(metric), remedy=remedy)
        return self.filter(metric=metric)

    @staticmethod
    def _check_column(name: str) -> None:
        if name not in SCHEMA.names:
            remedy = closest(name, SCHEMA.names)
            raise ParameterError("results", expected="a column of results", got=repr(name), remedy=remedy)

    def __eq__(self, other: object) -> bool:
        return self.frame().equals(other.frame()) if isinstance(other, ResultTable) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        def count(n: int, word: str) -> str:
            return f"{n:,} {word}" + ("" if n == 1 else "s")

        counts = [("method", "method"), ("dataset", "data set"), ("metric", "metric")]
        parts = [count(len(self), "row"), *(count(len(self.names(column)), word) for column, word in counts)]
        if len(self.failed):
            errors = self.failed.names("method")
            parts.append(f"{count(len(self.failed), 'row')} of failed tasks ({name_some(errors)})")
        return "ResultTable: " + ", ".join(parts)


def _last_of_twins(rows: pa.Table) -> pa.Table:
    numbered = rows.append_column("_row", pa.array(np.arange(rows.num_rows)))
    last = numbered.group_by(list(KEY)).aggregate([("_row", "max")])["_row_max"]
    return rows.take(np.sort(last.to_numpy().astype(np.int64)))


def _wrong(expected: str, got: str, remedy: str) -> InvalidBagsError:
    return InvalidBagsError("results", expected=expected, got=got, remedy=remedy)
