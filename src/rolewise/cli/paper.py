"""Subcommands behind the tables and figures: everything here takes seconds and never trains."""

from __future__ import annotations

from typing import Annotated

import typer

from rolewise.cli.options import ConfigFiles, read_config

Number = Annotated[int, typer.Argument(help="Number in the paper.")]

AllowMissing = Annotated[
    bool, typer.Option("--allow-missing", help="Leave gaps for cells without results.")
]


def register(app: typer.Typer) -> None:
    """Add the subcommands of this module to `app`."""
    for command in (collect, table, figure, claims):
        app.command(rich_help_panel="Tables and figures")(command)


def collect(
    configfile: ConfigFiles = None,
    allow_missing: AllowMissing = False,
    processes: Annotated[int, typer.Option(min=1, help="Processes that share the cells.")] = 1,
) -> None:
    """Gather the results of all cells into `tables/cells.csv`, the source of every table and figure.

    Example: `rolewise collect --configfile workflow/presets/smoke.yaml`
    """
    from rolewise.analysis.collect import write_cells

    _say([write_cells(read_config(configfile), allow_missing, processes)])


def table(number: Number, configfile: ConfigFiles = None) -> None:
    """Write one table (csv, md, tex) from `tables/cells.csv`.

    Example: `rolewise table 1`
    """
    from rolewise.paper.build import build_table
    from rolewise.paper.study import load

    _say(build_table(load(read_config(configfile)), number))


def figure(number: Number, configfile: ConfigFiles = None) -> None:
    """Draw one figure (png, pdf, and its numbers as csv) from `tables/cells.csv`.

    Example: `rolewise figure 3`
    """
    from rolewise.paper.build import build_figure
    from rolewise.paper.study import load

    _say(build_figure(load(read_config(configfile)), number))


def claims(configfile: ConfigFiles = None) -> None:
    """Say which of the study's findings the results support (`claims/claims.json` and `.md`).

    Example: `rolewise claims`
    """
    from rolewise.analysis.claims import write_claims
    from rolewise.analysis.evidence import CONTRADICTED, SUPPORTED, UNDECIDED
    from rolewise.analysis.sources import read_json

    written = write_claims(read_config(configfile))
    _say(written)
    given = [claim["verdict"] for claim in read_json(written[0])]
    verdicts = (SUPPORTED, CONTRADICTED, UNDECIDED)
    typer.echo(", ".join(f"{given.count(verdict)} {verdict}" for verdict in verdicts))


def _say(paths: list) -> None:
    for path in paths:
        typer.echo(path)
