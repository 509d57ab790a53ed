"""Reading what runs left behind; whatever is missing or malformed is named, with its remedy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from rolewise.errors import DataError

DAMAGED = "delete it and run `snakemake --cores all` again"


def read_table(path: Path) -> pd.DataFrame:
    """A parquet file; missing or unreadable is a DataError."""
    _require(path)
    try:
        return pd.read_parquet(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{path}: not a readable parquet file ({error}); {DAMAGED}") from error


def read_log(path: Path, columns: dict[str, str]) -> pd.DataFrame:
    """A JSON-lines log whose every row has exactly the keys `columns`, in their order.

    A malformed line, an unknown or a missing key is a DataError with the line number.
    """
    _require(path)
    rows = []
    with open(path, encoding="utf-8") as handle:
        for number, line in enumerate(handle, 1):
            try:
                row = json.loads(line)
            except ValueError as error:
                raise DataError(f"{path}:{number}: not JSON ({error}); {DAMAGED}") from error
            odd = set(row) ^ set(columns) if isinstance(row, dict) else {"a mapping"}
            if odd:
                raise DataError(
                    f"{path}:{number}: keys missing or unknown: {', '.join(sorted(odd))}; the log was "
                    "written by another version, train the cell again"
                )
            rows.append(row)
    return pd.DataFrame(rows, columns=list(columns))


def read_json(path: Path) -> Any:
    """A JSON file; missing or malformed is a DataError."""
    _require(path)
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path}: not JSON ({error}); {DAMAGED}") from error


def _require(path: Path) -> None:
    if not path.is_file():
        raise DataError(f"{path}: no such file; `snakemake --cores all` builds what is missing")
