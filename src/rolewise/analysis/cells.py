"""Reading `tables/cells.csv`; apart from `collect`, because a figure need not load what gathers it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from rolewise.config import Config
from rolewise.errors import DataError
from rolewise.records import CELLS
from rolewise.runs.layout import layout

NUMBERS = ("seed", "step", "value", "lo", "hi", "n")


def read_cells(config: Config) -> pd.DataFrame:
    """`tables/cells.csv` as `collect` made it; absent numbers are NaN, absent names empty.

    A missing file, or one with other columns, is a DataError.
    """
    return read_cells_file(layout(config).tables / "cells.csv")


def read_cells_file(path: Path) -> pd.DataFrame:
    """`read_cells` of any such table, also a compressed one."""
    if not path.is_file():
        raise DataError(f"{path}: no such file; `snakemake --cores 1 {path}` makes it")
    texts = dict.fromkeys(set(CELLS) - set(NUMBERS), str)
    empty = {name: [""] for name in NUMBERS}
    try:
        frame = pd.read_csv(path, dtype=texts, keep_default_na=False, na_values=empty)
    except ValueError as error:
        raise DataError(f"{path}: damaged ({error}); run `rolewise collect`") from error
    if odd := set(CELLS) ^ set(frame.columns):
        raise DataError(
            f"{path}: columns missing or unknown: {', '.join(sorted(odd))}; run `rolewise collect`"
        )
    return frame
