"""Reading what runs left behind; whatever is missing or malformed is named, with its remedy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from rolewise.errors import DataError
from rolewise.runs.state import StateDir

DAMAGED = "delete it and run `snakemake --cores all` again"


def read_table(path: Path) -> pd.DataFrame:
    """A parquet file; missing or unreadable is a DataError."""
    _require(path)
    try:
        return pd.read_parquet(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{path}: not a readable parquet file ({error}); {DAMAGED}") from error


def read_log(state: Path, name: str, columns: dict[str, str]) -> pd.DataFrame:
    """The log `name` of a training's state; every row has exactly the keys `columns`, in their order.

    A missing log, or a row with an unknown or a missing key, is a DataError.
    """
    _require(state / f"{name}.jsonl")
    rows = StateDir(state).rows(name)
    for number, row in enumerate(rows, 1):
        odd = set(row) ^ set(columns)
        if odd:
            raise DataError(
                f"{state / name}.jsonl, row {number}: keys missing or unknown: "
                f"{', '.join(sorted(odd))}; the log was written by another version, train the cell again"
            )
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
