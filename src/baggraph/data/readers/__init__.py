"""Files to bags: one reader a format, and :func:`read`, which looks at the name of the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from baggraph.data.bags import Bags
from baggraph.errors import DataFileError

__all__ = ["read", "write"]

TABLES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")
OTHERS = (".npz", ".mat", ".data", ".svm", ".svmlight", ".libsvm")


def read(path: str | Path, **options: Any) -> Bags:
    r"""Bags from any file or folder that this package reads.

    ======================================  =====================================================
    a folder of ``.h5 .npy .pt`` files      one file a bag, ``labels=`` a table
    ``.csv .tsv .parquet``                  long table, ``bag=`` and ``target=`` name its columns
    ``.npz`` and our own ``.parquet``       everything that :class:`Bags` holds
    ``.mat``                                PRTools data sets and cells
    ``.data`` beside ``.names``             C4.5
    ``.svm .svmlight .libsvm``              svmlight with bag ids
    ======================================  =====================================================

    Options go to the reader: ``table.read_table``, ``features.read_features``, ``npz.read_npz``,
    ``parquet.read_parquet``, ``matlab.read_matlab``, ``c45.read_c45`` or ``svmlight.read_svmlight``.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "drugs.csv"
    ...     _ = path.write_text("molecule,musk,f1\nm1,1,0.5\nm1,1,0.25\nm2,0,1.5\n")
    ...     read(path, bag="molecule", target="musk")
    Bags: 2 bags, 3 instances, 1 feature (float64, dense, 24 bytes)
      sizes   1 to 2, median 1.5
      labels  0 ×1, 1 ×1
    """
    path = Path(path)
    if path.is_dir():
        from baggraph.data.readers.features import read_features

        return read_features(path, **options)
    if not path.is_file():
        raise DataFileError("read", expected="a file or folder", got=f"none at {path}", remedy="check the path")
    name = path.name.lower()
    if name.endswith(".parquet") and not options.get("bag"):
        from baggraph.data.readers import parquet

        if parquet.is_ours(path):
            return parquet.read_parquet(path, **options)
    if name.endswith(TABLES):
        from baggraph.data.readers.table import read_table

        return read_table(path, **options)
    return _read_other(path, name, options)


def _read_other(path: Path, name: str, options: dict[str, Any]) -> Bags:
    if name.endswith(".npz"):
        from baggraph.data.readers.npz import read_npz

        return read_npz(path, **options)
    if name.endswith(".mat"):
        from baggraph.data.readers.matlab import read_matlab

        return read_matlab(path, **options)
    if name.endswith(".data"):
        from baggraph.data.readers.c45 import read_c45

        return read_c45(path, **options)
    if name.endswith((".svm", ".svmlight", ".libsvm")):
        from baggraph.data.readers.svmlight import read_svmlight

        return read_svmlight(path, **options)
    known = ", ".join([*TABLES, *OTHERS])
    remedy = f"convert it to one of {known}, or pass a folder of .h5, .npy or .pt files"
    raise DataFileError("read", expected="a file of a known kind", got=path.name, remedy=remedy)


def write(bags: Bags, path: str | Path) -> Path:
    """Write bags to ``.parquet`` or ``.npz``; :func:`read` gives them back equal."""
    name = Path(path).name.lower()
    if name.endswith(".parquet"):
        return bags.to_parquet(path)
    if name.endswith(".npz"):
        return bags.to_npz(path)
    raise DataFileError(
        "write", expected="a name that ends in .parquet or .npz", got=name, remedy="choose one of these"
    )
