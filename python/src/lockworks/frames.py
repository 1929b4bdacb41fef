# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Make data frames of what the command prints."""

import re
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeAlias

# "pandas", "polars", or None: pandas, or polars where only that is installed.
Library: TypeAlias = Literal["pandas", "polars"] | None
# A pandas.DataFrame or a polars.DataFrame, as the library says.
Frame: TypeAlias = Any
Row: TypeAlias = dict[str, Any]


def flat(row: Row, prefix: str = "") -> Row:
    """The row with a column for each part of a nested value: `{"a": {"b": 1}}` has `a.b`."""
    columns: Row = {}
    for name, value in row.items():
        if isinstance(value, dict):
            columns |= flat(value, f"{prefix}{name}.")
        else:
            columns[prefix + name] = value
    return columns


def of_rows(rows: Iterable[Row], library: Library) -> Frame:
    """A data frame with these rows. A row need not have all columns."""
    rows = [flat(row) for row in rows]
    names = dict.fromkeys(name for row in rows for name in row)
    # A nested value may be null in a row, and have parts in another one.
    nested = {name[: match.start()] for name in names for match in re.finditer(r"\.", name)}
    columns = {name: [row.get(name) for row in rows] for name in names if name not in nested}
    return of_columns(columns, library)


def of_columns(columns: dict[str, list[Any]], library: Library) -> Frame:
    """A data frame with these columns, which have the same length."""
    if _library(library) == "polars":
        import polars

        return polars.DataFrame(columns)
    import pandas

    return pandas.DataFrame(columns)


def of_csv(path: Path, library: Library) -> Frame:
    """A data frame with the rows of a CSV file."""
    if _library(library) == "polars":
        import polars

        return polars.read_csv(path, infer_schema_length=None)
    import pandas

    return pandas.read_csv(path)


def _library(library: Library) -> str:
    if library not in ("pandas", "polars", None):
        raise ValueError(f"frame={library!r}: it must be 'pandas', 'polars' or None")
    if library is None:
        return "pandas" if find_spec("pandas") or not find_spec("polars") else "polars"
    return library
