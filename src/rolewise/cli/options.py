"""Options that every subcommand shares."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from rolewise.config import Config, load
from rolewise.runs.graph import RESOLVED

ConfigFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--configfile",
        help="Merged over config.yaml; repeat it for several files (snakemake: once, `--configfile a b`).",
    ),
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


def given_configfiles(arguments: list[str]) -> list[str]:
    """The values of `--configfile` on a command line; not those that Snakemake has settled."""
    text = "\0".join(arguments)
    found = re.findall(r"(?:^|\0)--configfile[=\0]([^\0]+)", text)
    return [file for file in found if Path(file).parent != RESOLVED]


def with_configfiles(message: str, files: list) -> str:
    """`message` with `files` added to the commands it advises: Snakemake takes them all at once."""
    named = {
        "rolewise": "".join(f" --configfile {file}" for file in files),
        "snakemake": " --configfile " + " ".join(map(str, files)),
    }

    def completed(command: re.Match[str]) -> str:
        known = "--configfile" in command[0]
        return command[0] if known else f"`{command[1]} {command[2]}{named[command[1]]}`"

    return re.sub(r"`(rolewise|snakemake) ([^`]+)`", completed, message) if files else message
