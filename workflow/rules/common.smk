# Configuration, paths and wildcards that every rule shares.
import re
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

try:
    from rolewise.config import parse as parse_config
    from rolewise.errors import ConfigError, RolewiseError
    from rolewise.grid import base_of
    from rolewise.runs.extensions import check_extensions
    from rolewise.runs.graph import (
        FIGURES,
        REDRAWN,
        REFERENCE,
        TABLES,
        Graph,
        prepare_jobs,
        settle,
    )
except ModuleNotFoundError as error:
    raise WorkflowError(
        f"{error}: this snakemake runs in {sys.prefix}; run `make install`, then .venv/bin/snakemake"
    )

try:
    study = Graph(settle(parse_config(config)))
    check_extensions(study.config)
    prepare_jobs(study.config)
except ConfigError as error:
    raise WorkflowError("The configuration is invalid:", *error.problems)
except RolewiseError as error:
    raise WorkflowError(str(error))

ROOT = study.config.results_dir
if (
    study.config.frozen
    and ROOT != REDRAWN
    and not Path(ROOT, "tables/cells.csv").is_file()
):
    raise WorkflowError(
        f"frozen: {ROOT}/tables/cells.csv is not there; frozen mode redraws a finished study "
        f"(leave out results_dir to redraw {REFERENCE}), or unset `frozen` to run it"
    )
CELL = f"{ROOT}/cells/{{cell}}/seed{{seed}}"
TRANSFER = f"{ROOT}/transfer/{{wf}}-{{scale}}-{{task}}/seed{{seed}}"
LOGS = f"{ROOT}/logs"
BENCHMARKS = f"{ROOT}/benchmarks"
# Needed by cluster deployments and the linter; inert unless `--sdm conda` is given.
ENVIRONMENT = "../../environment.yml"


def alternatives(names):
    """A regular expression that matches exactly `names`."""
    return "|".join(map(re.escape, names))


wildcard_constraints:
    cell=r"[^/]+",
    wf=alternatives(study.config.grid.workflows),
    scale=alternatives(study.config.models),
    task=alternatives(study.config.tasks),
    seed=r"[0-9]+",
    n=r"[0-9]+",


# Told apart by what follows the workflow: a scale may be called `Base` as well.
UNTRAINED = rf"(?:{alternatives(['Single', *study.config.grid.workflows])})-Base-[^/]+"
TRAINED = rf"(?!{UNTRAINED})[^/]+"


def known_cell(wildcards):
    """The cell a file is asked for; an unknown name stops with the nearest known one."""
    try:
        return study.cell(wildcards.cell)
    except RolewiseError as error:
        raise WorkflowError(str(error))


def transfer_files(name):
    """The file `name` of every generator-only transfer."""
    return [
        f"{ROOT}/transfer/{wf}-{scale}-{task}/seed{seed}/{name}"
        for wf, scale, task, seed in study.transfers
    ]


def model_inputs(wildcards):
    """Data of every task, also outside the grid, for a model that learns from it; else nothing."""
    tasks = study.config.tasks if study.learns_from_tasks(wildcards.scale) else []
    return [ancient(f"{ROOT}/data/{task}/manifest.json") for task in tasks]


def single_agent_files(wildcards):
    """Adapter and checkpoint choice of the SA-RL cell that a transfer borrows."""
    cell = study.single_agent(wildcards.scale, wildcards.task)
    return study.paths([(cell, wildcards.seed)], "manifest.json", "accuracy.csv")


def base_files(wildcards):
    """Evaluations of the untrained workflow that a cell is compared with."""
    base = base_of(study.config, known_cell(wildcards))
    return study.paths([(base, wildcards.seed)], "evaluations.parquet")
