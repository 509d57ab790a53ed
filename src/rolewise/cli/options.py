"""Options that every subcommand shares."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rolewise.config import Config, load
from rolewise.runs.graph import RESOLVED

ConfigFiles = Annotated[
    list[Path] | None,
    typer.Option("--configfile", help="Merged over config.yaml, as Snakemake does; repeatable."),
]
Seed = Annotated[int, typer.Option(help="Seed of the run.", min=0)]
CellName = Annotated[str, typer.Argument(help="Cell, e.g. `Voting-IP-0.3M-Math`.")]


def read_config(files: list[Path] | None) -> Config:
    """config.yaml of the current folder with `files` merged over it.

    A configuration that Snakemake has settled stands alone, so that editing config.yaml does not
    change the jobs of a running study.
    """
    settled = [file for file in files or [] if file.parent == RESOLVED]
    return load(settled or ["config.yaml", *(files or [])])
