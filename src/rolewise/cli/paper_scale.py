"""Subcommands around large runs: plan them before launch, take their adapters elsewhere."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from rolewise.cli.options import CellName, ConfigFiles, Seed, read_config

PANEL = "Paper scale"


def register(app: typer.Typer) -> None:
    """Add the subcommands of this module to `app`."""
    app.command(rich_help_panel=PANEL)(plan)
    app.command(rich_help_panel=PANEL)(export)


def plan(
    configfile: ConfigFiles = None,
    device: Annotated[
        str | None,
        typer.Option(
            help="H200, H100, A100-80GB or CPU (a core); default: H100, or CPU without GPU."
        ),
    ] = None,
    response_share: Annotated[
        float | None, typer.Option(help="Mean completion length as a share of its cap.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Estimate memory and time of every cell before launch; exit 1 if one cannot fit, naming the key.

    Example: `rolewise plan --configfile workflow/presets/paper.yaml --device H200`
    """
    from rolewise.planning.assumptions import NOTES
    from rolewise.planning.study import assumptions, plan_study

    config = read_config(configfile)
    found = assumptions(device or ("H100" if config.resources.gpu else "CPU"), response_share)
    plans = plan_study(config, *found)
    if as_json:
        content = {
            "device": dataclasses.asdict(found[0]),
            "assumptions": dataclasses.asdict(found[1]),
            "cells": [dataclasses.asdict(plan) for plan in plans],
        }
        print(json.dumps(content, indent=1))
    else:
        _print_table(plans)
        for name, value in dataclasses.asdict(found[1]).items():
            print(f"  {name}: {value}")
        print(NOTES)
    for item in plans:
        for refusal in item.refusals:
            print(f"{item.cell} does not fit: {refusal}", file=sys.stderr)
    if any(item.refusals for item in plans):
        sys.exit(1)


def export(
    cell: CellName,
    to: Annotated[Path, typer.Option(help="Folder to write; one folder per adapter inside.")],
    checkpoint: Annotated[str, typer.Option(help="early, best, terminal or a step.")] = "best",
    merge: Annotated[
        bool, typer.Option("--merge", help="Whole models with the adapter merged.")
    ] = False,
    seed: Seed = 0,
    configfile: ConfigFiles = None,
) -> None:
    """Copy a checkpoint's adapters as PEFT folders, or merged into models, for use elsewhere.

    Example: `rolewise export Voting-IP-0.3M-Math --checkpoint best --to exported --merge`
    """
    from rolewise.analysis.export import export as write
    from rolewise.grid import parse_cell

    config = read_config(configfile)
    for folder in write(config, parse_cell(config, cell), seed, checkpoint, to, merge):
        print(folder)


def _print_table(plans: list) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    columns = ("cell", "update GiB", "sampling GiB", "cache tokens", "s/step", "sample", "grade",
               "update", "hours", "fits")  # fmt: skip
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="left" if column in ("cell", "fits") else "right")
    for item in plans:
        step = item.step_s
        table.add_row(
            item.cell,
            f"{item.training_gib:.1f}",
            f"{item.sampling_gib:.1f}",
            f"{item.kv_tokens:,}",
            f"{sum(step.values()):.1f}",
            *(f"{step[phase]:.1f}" for phase in ("sample", "grade", "update")),
            _hours(item.total_hours),
            "no" if item.refusals else "yes",
        )
    table.caption = (
        f"{len(plans)} trainings on {plans[0].device}, "
        f"{_hours(sum(item.total_hours for item in plans))} device-hours with evaluation"
    )
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def _hours(value: float) -> str:
    """Miniatures take minutes, a paper-scale study thousands of hours."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
