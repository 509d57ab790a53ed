"""Subcommands that make results: data, model, train, evaluate, summarise, transfer."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable
from typing import Annotated

import typer

from rolewise.cli.options import CellName, ConfigFiles, Seed, read_config
from rolewise.config import Config
from rolewise.errors import RolewiseError
from rolewise.grid import Cell, did_you_mean, parse_cell

TaskName = Annotated[str, typer.Argument(help="Math, Code or a task of your own.")]
Scale = Annotated[str, typer.Argument(help="Model scale, a key of `models`.")]


def register(app: typer.Typer) -> None:
    """Add the subcommands of this module to `app`."""
    app.command(rich_help_panel="Run")(data)
    app.command(rich_help_panel="Run")(model)
    app.command(rich_help_panel="Run")(train)
    app.command(rich_help_panel="Run")(evaluate)
    app.command(rich_help_panel="Run")(summarise)
    app.command(rich_help_panel="Run")(transfer)
    app.command(rich_help_panel="Run")(swap)


def data(
    task: TaskName,
    configfile: ConfigFiles = None,
    check: Annotated[
        bool, typer.Option(help="Only print counts, prompt lengths and what exceeds the caps.")
    ] = False,
) -> None:
    """Prepare the problems of a task.

    Example: `rolewise data Math`, then `rolewise data Math --check`.
    """
    from rolewise.runs.layout import layout
    from rolewise.tasks.datasets.check import check as describe
    from rolewise.tasks.datasets.prepare import prepare

    config = _start(configfile)
    if check:
        typer.echo(describe(config, task))
    else:
        prepare(config, task, layout(config).data(task))


def model(scale: Scale, configfile: ConfigFiles = None) -> None:
    """Train or fetch the base model of a scale.

    Example: `rolewise model 0.3M`
    """
    from rolewise.models.make import make
    from rolewise.runs.layout import layout

    config = _start(configfile)
    _known("scale", scale, config.models)
    places = layout(config)
    make(config, scale, places.root / "data", places.model(scale))


def train(cell: CellName, seed: Seed = 0, configfile: ConfigFiles = None) -> None:
    """Train a cell; continues where an earlier attempt stopped.

    Example: `rolewise train Voting-IP-0.3M-Math --seed 0`
    """
    config, known = _begin(configfile, cell)
    processes = config.resources.processes
    if processes > 1 and "WORLD_SIZE" not in os.environ:
        launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
        os.execv(sys.executable, [sys.executable, *launch, *sys.argv])
    from rolewise.training.loop import train as run

    run(config, known, seed)


def evaluate(cell: CellName, seed: Seed = 0, configfile: ConfigFiles = None) -> None:
    """Evaluate every checkpoint of a cell on the validation problems.

    Example: `rolewise evaluate Voting-IP-0.3M-Math`
    """
    from rolewise.evaluation.evaluate import evaluate as run

    run(*_begin(configfile, cell), seed)


def summarise(cell: CellName, seed: Seed = 0, configfile: ConfigFiles = None) -> None:
    """Choose checkpoints, regrade roles and write the summary of a cell.

    Example: `rolewise summarise Voting-IP-0.3M-Math`
    """
    from rolewise.analysis.summarise import summarise as run

    config = _start(configfile)
    run(config, parse_cell(config, cell), seed)


def transfer(
    workflow: Annotated[str, typer.Argument(help="Voting, Eval-Opt, ...")],
    scale: Scale,
    task: TaskName,
    seed: Seed = 0,
    configfile: ConfigFiles = None,
) -> None:
    """Evaluate the single-agent adapter in the main role of a workflow.

    Example: `rolewise transfer Voting 0.3M Math`
    """
    from rolewise.evaluation.transfer import transfer as run

    config = _start(configfile)
    _known("workflow", workflow, config.grid.workflows)
    _known("scale", scale, config.models)
    _known("task", task, config.tasks)
    run(config, workflow, scale, task, seed)


def swap(cell: CellName, seed: Seed = 0, configfile: ConfigFiles = None) -> None:
    """Evaluate every mixture of trained and base roles of a cell, at its best checkpoint.

    Example: `rolewise swap Voting-IP-0.3M-Math`
    """
    from rolewise.evaluation.swap import swap_roles

    config = _start(configfile)
    swap_roles(config, parse_cell(config, cell), seed)


def _known(what: str, name: str, names: Iterable[str]) -> None:
    if name not in names:
        raise RolewiseError(
            f"unknown {what} '{name}'; this study has {', '.join(names)}{did_you_mean(name, names)}"
        )


def _start(configfile: ConfigFiles) -> Config:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s  %(message)s", datefmt="%H:%M:%S")
    return read_config(configfile)


def _begin(configfile: ConfigFiles, name: str) -> tuple[Config, Cell]:
    """Configuration and cell, once data, model and prompts are there: a refusal leaves no state."""
    from rolewise.runs.provenance import inputs

    config = _start(configfile)
    cell = parse_cell(config, name)
    inputs(config, cell)
    return config, cell
