"""What the Snakefile asks: targets, params and priorities of every job. Pure but for `resolve`."""

from __future__ import annotations

import fcntl
import os
import sys
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from rolewise.config import (
    Config,
    EmbeddedModel,
    canonical_json,
    digest,
    evaluation_subset,
    for_cell,
    training_subset,
    untrained_subset,
)
from rolewise.errors import RolewiseError
from rolewise.grid import (
    BASE,
    SINGLE,
    SINGLE_AGENT,
    Cell,
    base_of,
    matches,
    seeds_of,
    trained_cells,
    transfers,
    unknown_cell,
)
from rolewise.records import write_text
from rolewise.runs.layout import Layout

RESOLVED = Path(".snakemake/rolewise")
REFERENCE = "results/reference"
REDRAWN = "results/frozen"
TABLES, FIGURES = range(1, 11), range(1, 9)

Run = tuple[Cell, int]


def settle(config: Config) -> Config:
    """The configuration with `results_dir` settled for frozen mode.

    Frozen and left at the default folder means: redraw the shipped reference results, into a folder
    of their own, so that neither they nor a running study are touched.
    """
    if config.frozen and config.results_dir == Config.model_fields["results_dir"].default:
        return config.model_copy(update={"results_dir": REDRAWN})
    return config


def prepare_jobs(config: Config) -> None:
    """Give jobs this environment's programs and the settled configuration (`$ROLEWISE_CONFIG`).

    Its path is neither a param nor part of a command's text, so that a setting that changes no
    result reruns nothing.
    """
    programs = Path(sys.prefix) / "bin"
    if not (programs / "rolewise").exists():
        raise RolewiseError(
            f"rolewise is not installed in {sys.prefix}, the environment of this snakemake; "
            "run `make install`, then `.venv/bin/snakemake`"
        )
    os.environ["PATH"] = f"{programs}{os.pathsep}{os.environ.get('PATH', '')}"
    os.environ["ROLEWISE_CONFIG"] = str(hold(config))


def hold(config: Config) -> Path:
    """`resolve`, and keep the file from being cleaned away for as long as this process lives."""
    while True:
        path = resolve(config)
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:  # cleaned away in between
            continue
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        if path.exists() and os.path.samestat(os.fstat(descriptor), path.stat()):
            return path  # the descriptor stays open: it is the hold
        os.close(descriptor)


def resolve(config: Config, folder: Path = RESOLVED) -> Path:
    """Write the whole configuration once, under a name made of its content; returns the file."""
    content = config.model_dump(mode="json")
    path = folder / f"{digest(content)}.yaml"
    if not path.exists():
        write_text(path, yaml.safe_dump(content, sort_keys=False))
    return path


class Graph:
    """The jobs of one configuration; params are canonical JSON, so that equal settings are equal text."""

    def __init__(self, config: Config):
        self.config = config
        self.layout = Layout(Path(config.results_dir))
        self._params: dict[tuple[str, str], str] = {}

    @cached_property
    def trained(self) -> list[Run]:
        """Every training, as cell and seed."""
        return [(c, s) for c in trained_cells(self.config) for s in seeds_of(self.config, c)]

    @cached_property
    def base(self) -> list[Run]:
        """Every evaluation of an untrained workflow, as cell and seed.

        As `grid.base_cells` and `grid.seeds_of`, in one pass over the trainings.
        """
        return sorted({(base_of(self.config, cell), seed) for cell, seed in self.trained})

    @cached_property
    def transfers(self) -> list[tuple[str, str, str, int]]:
        """Every generator-only transfer, as workflow, scale, task and seed."""
        return transfers(self.config)

    @cached_property
    def swaps(self) -> list[Run]:
        """Trainings whose roles are swapped with base ones: those of several roles that are asked for."""
        return [
            (cell, seed)
            for cell, seed in self.trained
            if cell.policy != SINGLE_AGENT
            and any(matches(cell, wanted) for wanted in self.config.evaluation.role_swap)
        ]

    @cached_property
    def _cells(self) -> dict[str, Cell]:
        return {cell.name: cell for cell, _ in self.trained + self.base}

    def cell(self, name: str) -> Cell:
        """The cell called `name`; an unknown name is an error that suggests the nearest one."""
        if name not in self._cells:
            raise unknown_cell(name, self._cells)
        return self._cells[name]

    def paths(self, runs: list[Run], *names: str) -> list[str]:
        """The files `names` of every run."""
        return [str(self.layout.cell(cell, seed) / name) for cell, seed in runs for name in names]

    def data_params(self, task: str) -> str:
        """What changes the problems of `task`."""
        return canonical_json(self._dump["tasks"][task])

    def model_params(self, scale: str) -> str:
        """What changes the base model of `scale`; an embedded one learns from tasks and prompts.

        Workflows of one's own are no part of its lessons, so that adding one keeps every model.
        """
        spec = self._dump["models"][scale]
        if not self.learns_from_tasks(scale):
            return canonical_json(spec)
        keys = ("tasks", "prompts", "workflow", "caps", "enable_thinking")
        extensions = {"workflows": {}, "tasks": self._dump["extensions"]["tasks"]}
        return canonical_json(
            {"model": spec, "extensions": extensions} | {key: self._dump[key] for key in keys}
        )

    def learns_from_tasks(self, scale: str) -> bool:
        """Whether the pipeline trains the model itself, on transcripts of the grid's tasks."""
        return isinstance(self.config.models[scale], EmbeddedModel)

    def train_params(self, name: str) -> str:
        """What changes a training, with its number of steps."""
        return self._cached("train", name)

    def evaluate_params(self, name: str) -> str:
        """What changes the evaluation of a cell, given its checkpoints."""
        return self._cached("evaluate", name)

    def summarise_params(self) -> str:
        """What changes the summary of a cell, given its evaluations."""
        keys = ("trajectory_problems", "samples")
        return canonical_json(
            {"evaluation": {k: self._dump["evaluation"][k] for k in keys}}
            | {"entropy_ratio": self._dump["alarms"]["entropy_ratio"]}
            | {"signatures": self._dump["signatures"]}
        )

    def paper_params(self) -> str:
        """What changes tables, figures and claims, given the tidy results."""
        return canonical_json({key: self._dump[key] for key in ("preset", "paper", "signatures")})

    def transfer_params(self, workflow: str, scale: str, task: str) -> str:
        """What changes a transfer evaluation, given the SA-RL adapter."""
        return canonical_json(evaluation_subset(self.config, Cell(workflow, BASE, scale, task)))

    def single_agent(self, scale: str, task: str) -> Cell:
        """The SA-RL cell that a transfer takes its adapter from."""
        return self.cell(Cell(SINGLE, SINGLE_AGENT, scale, task).name)

    def priority(self, name: str) -> int:
        """Relative length of a training (1..99): long ones start first, the end is not idle."""
        return max(1, round(99 * self._costs[name] / max(self._costs.values())))

    @cached_property
    def _dump(self) -> dict[str, Any]:
        return self.config.model_dump()

    @cached_property
    def _costs(self) -> dict[str, float]:
        return {cell.name: self._cost(cell) for cell, _ in self.trained}

    def _cost(self, cell: Cell) -> float:
        # Scales are listed from small to large; a call costs about as much as any other.
        own = self._own(cell)
        calls = {
            SINGLE: 1,
            "Voting": own.workflow.votes + 1,
            "Orch-Workers": own.workflow.workers + 2,
            "Eval-Opt": 2 * own.workflow.max_iterations[cell.task],
        }.get(cell.workflow, 4)
        size = 1 + own.grid.scales.index(cell.scale)
        cap = own.caps[cell.task].response
        return size * calls * cap * own.training.steps * own.training.episodes_per_prompt

    def _own(self, cell: Cell) -> Config:
        return for_cell(self.config, cell)

    def _cached(self, stage: str, name: str) -> str:
        # Snakemake asks several times per job, and once per seed.
        key = (stage, name)
        if key not in self._params:
            cell = self.cell(name)
            if stage == "train":
                steps = self._own(cell).training.steps
                value = {"steps": steps} | training_subset(self.config, cell)
            else:
                value = evaluation_subset(self.config, cell)
                if not cell.trained:
                    value |= untrained_subset(self.config, cell)
            self._params[key] = canonical_json(value)
        return self._params[key]
