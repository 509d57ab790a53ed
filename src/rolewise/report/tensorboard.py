"""Training metrics as TensorBoard event files, one run per role, so that roles overlay in one chart."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from rolewise.errors import RolewiseError


def write_events(metrics: pd.DataFrame, folder: Path) -> None:
    """Write rows of `records.METRICS` to `folder/<role>/`, replacing an earlier export.

    Every numeric column is a scalar over the training step; nulls leave gaps. RolewiseError if
    TensorBoard is not installed.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise RolewiseError(
            "TensorBoard is not installed; install the extra `tensorboard`, or read "
            "metrics.parquet with pandas"
        ) from error
    for role, rows in metrics.groupby("role"):
        run = folder / str(role)
        for earlier in run.glob("events.out.tfevents.*"):
            earlier.unlink()
        columns = rows.drop(columns="step").select_dtypes("number")
        with SummaryWriter(run) as writer:
            for name, values in columns.items():
                for step, value in zip(rows["step"], values, strict=True):
                    if pd.notna(value):
                        writer.add_scalar(str(name), value, step)
