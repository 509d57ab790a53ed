"""What a results folder holds, read once for the report; a missing part is None, never an error."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from rolewise.analysis.cells import read_cells
from rolewise.analysis.measures import MISSING
from rolewise.analysis.sources import read_json, read_table
from rolewise.config import Config
from rolewise.grid import (
    ISOLATED,
    SHARED,
    SINGLE,
    SINGLE_AGENT,
    Cell,
    base_cells,
    base_of,
    seeds_of,
    trained_cells,
)
from rolewise.runs.layout import Layout, layout
from rolewise.tasks.problem import Problem, read_problems

KEY = ["workflow", "policy", "scale", "task", "variant", "seed"]


@dataclass(frozen=True)
class Value:
    """A number of `cells.csv` with its interval (None where there is none)."""

    value: float
    lo: float | None
    hi: float | None
    n: int
    step: int
    checkpoint: str


@dataclass(frozen=True)
class Run:
    """One cell under one seed, and what its folder and `cells.csv` hold of it."""

    cell: Cell
    seed: int
    folder: Path
    rows: pd.DataFrame

    @property
    def key(self) -> str:
        """Names the run in links: `Voting-IP-0.3M-Math/seed0`."""
        return f"{self.cell.name}/seed{self.seed}"

    @property
    def slug(self) -> str:
        """Names the run's files."""
        return f"{self.cell.name}.seed{self.seed}"

    @cached_property
    def manifest(self) -> dict[str, Any] | None:
        """Where the run comes from; None if it was not shipped."""
        return if_there(read_json, self.folder / "manifest.json")

    @cached_property
    def metrics(self) -> pd.DataFrame | None:
        """Training metrics, a row per step and role; None if absent."""
        return if_there(read_table, self.folder / "metrics.parquet")

    @property
    def trajectories(self) -> Path | None:
        """The file of role calls; None if absent."""
        path = self.folder / "trajectories.parquet"
        return path if path.is_file() else None

    @property
    def present(self) -> bool:
        """Whether the tidy table knows the run."""
        return not self.rows.empty

    @cached_property
    def _curves(self) -> dict[tuple[str, str, str], list[Value]]:
        curves: dict[tuple[str, str, str], list[Value]] = {}
        for row in self.rows.sort_values("step", kind="stable").itertuples(index=False):
            if not math.isnan(row.value):
                lo, hi = (None if math.isnan(end) else end for end in (row.lo, row.hi))
                value = Value(row.value, lo, hi, int(row.n), int(row.step), row.checkpoint)
                curves.setdefault((row.metric, row.split, row.role), []).append(value)
        return curves

    def curve(self, metric: str, split: str, role: str = "all") -> list[Value]:
        """Known values of one metric in order of steps."""
        return self._curves.get((metric, split, role), [])

    def value(
        self, metric: str, checkpoint: str, split: str = "report", role: str = "all"
    ) -> Value | None:
        """A metric at the checkpoint called `checkpoint`, None if unknown."""
        named = (
            v for v in self.curve(metric, split, role) if checkpoint in v.checkpoint.split("+")
        )
        return next(named, None)


@dataclass(frozen=True)
class Study:
    """Every run that the configuration asks for, found or not."""

    config: Config
    layout: Layout
    runs: dict[str, Run]

    def counterpart(self, run: Run, relation: str) -> Run | None:
        """The run that `run` is compared with: its `base`, its `twin` policy, its `single` agent."""
        cell = run.cell
        if relation == "base":
            other = base_of(self.config, cell) if cell.trained else cell
        elif relation == "twin":
            policy = {ISOLATED: SHARED, SHARED: ISOLATED}.get(cell.policy)
            if policy is None:
                return None
            other = Cell(cell.workflow, policy, cell.scale, cell.task, cell.variant)
        else:
            other = Cell(SINGLE, SINGLE_AGENT, cell.scale, cell.task)
        return self.runs.get(f"{other.name}/seed{run.seed}")

    def problems(self, task: str) -> dict[str, Problem]:
        """Validation problems by id; empty where the data are not at hand (frozen results)."""
        path = self.layout.data(task) / "validation.jsonl"
        return {p.id: p for p in read_problems(path)} if path.is_file() else {}


def read_study(config: Config) -> Study:
    """The study below `config.results_dir`; without `tables/cells.csv` there is nothing to report."""
    places = layout(config)
    cells = read_cells(config)
    cells = cells[cells["metric"] != MISSING]
    grouped = dict(iter(cells.groupby(KEY)))
    none = cells.iloc[:0]
    runs = {}
    for cell in trained_cells(config) + base_cells(config):
        for seed in seeds_of(config, cell):
            key = (cell.workflow, cell.policy, cell.scale, cell.task, cell.variant, seed)
            run = Run(cell, seed, places.cell(cell, seed), grouped.get(key, none))
            runs[run.key] = run
    return Study(config, places, runs)


def if_there(reader: Callable[[Path], Any], path: Path) -> Any | None:
    """What `reader` makes of `path`; None if there is no such file."""
    return reader(path) if path.is_file() else None
