"""What tables and figures start from: the tidy cells table and the configuration behind it."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from rolewise.analysis import measures
from rolewise.analysis.cells import read_cells
from rolewise.analysis.statistics import seed_interval
from rolewise.config import Config
from rolewise.grid import (
    ISOLATED,
    SHARED,
    SINGLE_AGENT,
    Cell,
    trained_cells,
)

MULTI_AGENT = (ISOLATED, SHARED)
KEYS = ["workflow", "policy", "scale", "task", "variant"]
COORDINATES = ["metric", "checkpoint", "split", "role"]
NUMBERS = ["value", "lo", "hi", "n"]


class Estimate(NamedTuple):
    """A value with its interval, the problems (or rows) behind it and its seeds; NaN is a gap."""

    value: float
    lo: float
    hi: float
    n: float
    seeds: float


GAP = Estimate(*[math.nan] * 5)


@dataclass(frozen=True, eq=False)
class Study:
    """Rows of `records.CELLS`, text columns without gaps, and the configuration.

    `shipped`: reference results that come with the project, shown in a study that has none of its own.
    """

    config: Config
    cells: pd.DataFrame
    shipped: bool = False

    @functools.cached_property
    def _places(self) -> dict[tuple[str, str], np.ndarray]:
        return self.cells.groupby(["metric", "role"], sort=False).indices

    @functools.cached_property
    def _single(self) -> tuple[dict[tuple, np.ndarray], np.ndarray]:
        """Where the rows of every cell and coordinate are, and their value, lo, hi and n."""
        courses = {*measures.CURVES_ALL, *measures.CURVES_ROLE, *measures.EVALUATED}
        rows = self.cells[(self.cells.checkpoint != "") | ~self.cells.metric.isin(courses)]
        # A step that is several checkpoints (`best+terminal`) counts as each of them.
        rows = rows.assign(checkpoint=rows.checkpoint.str.split("+")).explode("checkpoint")
        places = rows.groupby([*KEYS, *COORDINATES], sort=False).indices
        return places, rows[NUMBERS].to_numpy(dtype=float)

    def rows(self, metric: str, split: str, role: str = "all") -> pd.DataFrame:
        """Rows of one metric, split and role, of all cells, seeds and steps."""
        found = self.cells.take(self._places.get((metric, role), []))
        return found[found.split == split]

    def one(
        self,
        cell: Cell,
        metric: str,
        checkpoint: str = "",
        split: str = "report",
        role: str = "all",
    ) -> Estimate:
        """A metric of a cell at a checkpoint (empty for what belongs to none), seeds combined.

        `GAP` where there is none.
        """
        places, numbers = self._single
        key = (*(getattr(cell, name) for name in KEYS), metric, checkpoint, split, role)
        return over_seeds(numbers[places[key]]) if key in places else GAP

    def at(
        self,
        metric: str,
        checkpoint: str = "",
        split: str = "report",
        *,
        policies: Sequence[str] = (SINGLE_AGENT, ISOLATED, SHARED),
    ) -> pd.DataFrame:
        """The metric of every trained cell of the grid and these policies: its coordinates and
        `Estimate`; a cell without the value is a row of gaps."""
        plain = [c for c in trained_cells(self.config) if not c.variant and c.policy in policies]
        rows = [
            (c.workflow, c.policy, c.scale, c.task, *self.one(c, metric, checkpoint, split))
            for c in plain
        ]
        return pd.DataFrame(rows, columns=[*KEYS[:-1], *Estimate._fields])

    def curve(self, cell: Cell, metric: str, split: str, role: str = "all") -> pd.DataFrame:
        """step, value, lo, hi, n of a cell, seeds combined, steps ascending."""
        rows = of_cell(self.rows(metric, split, role), cell)
        numbers = rows[NUMBERS].to_numpy(dtype=float)
        found = [
            (step, *over_seeds(numbers[places]))
            for step, places in sorted(rows.groupby("step").indices.items())
        ]
        types = {"step": int} | dict.fromkeys(Estimate._fields, float)
        return pd.DataFrame(found, columns=list(types)).astype(types)

    def by_seed(
        self, cell: Cell, metric: str, checkpoint: str, split: str, role: str = "all"
    ) -> pd.Series:
        """A metric of a cell at a checkpoint, indexed by seed."""
        rows = of_cell(self.rows(metric, split, role), cell)
        return _named(rows, checkpoint).set_index("seed").value

    def steps(self, cell: Cell, checkpoint: str) -> list[int]:
        """The training steps of a checkpoint, one per seed, without repetition."""
        rows = of_cell(self.rows("accuracy", "report"), cell)
        return sorted(set(_named(rows, checkpoint).step))

    @property
    def dynamics(self) -> tuple[str, str]:
        """Scale and task of the dynamics figures: the paper's where the grid has them."""
        grid, stands_for = self.config.grid, self.config.paper.scale_of
        wanted = self.config.paper.dynamics_scale
        scale = next((s for s in grid.scales if stands_for[s] == wanted), grid.scales[-1])
        return scale, "Math" if "Math" in grid.tasks else grid.tasks[0]

    def scale_label(self, scale: str) -> str:
        """A scale and, if it is another one, the scale of the paper that it stands for."""
        paper = self.config.paper.scale_of[scale]
        return scale if paper == scale else f"{scale} (standing for {paper})"

    def paper_cell(self, name: str) -> Cell | None:
        """The cell of this preset that stands for the paper's cell `name`; None if there is none."""
        stands_for = self.config.paper.scale_of
        return next(
            (
                cell
                for cell in trained_cells(self.config)
                if Cell(cell.workflow, cell.policy, stands_for[cell.scale], cell.task).name == name
                and not cell.variant
            ),
            None,
        )

    def footer(self, split: str | None = "report") -> str:
        """Problems, seeds, interval and preset, for the end of a caption.

        `split` names the half whose problems are counted, None where none are.
        """
        seeds = self.config.seeds
        parts = [
            f"{'Shipped reference results, preset' if self.shipped else 'Preset'} {self.config.preset}"
        ]
        parts.append(f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}")
        if split:
            counts = sorted({int(n) for n in self.rows("accuracy", split).n if n > 0})
            parts.append(f"n = {' or '.join(map(str, counts)) or 0} problems")
        return f"{', '.join(parts)}."

    @property
    def interval(self) -> str:
        """What the intervals are, in words."""
        if len(self.config.seeds) == 1:
            return "95 % bootstrap interval over problems"
        if len(self.config.seeds) == 2:
            return "none, two seeds give no interval"
        return f"95 % t interval over {len(self.config.seeds)} seeds"


def labels(cell: Cell) -> dict[str, str]:
    """Name and coordinates of a cell, as columns of a row."""
    return {
        "cell": cell.name,
        "workflow": cell.workflow,
        "policy": cell.policy,
        "scale": cell.scale,
        "task": cell.task,
    }


def of_cell(rows: pd.DataFrame, cell: Cell) -> pd.DataFrame:
    """The rows of one cell."""
    wanted = [rows[key] == getattr(cell, key) for key in KEYS]
    return rows[np.logical_and.reduce(wanted)]


def _named(rows: pd.DataFrame, checkpoint: str) -> pd.DataFrame:
    # A step that is several checkpoints is named `best+terminal`.
    named = [checkpoint in names.split("+") for names in rows.checkpoint]
    return rows[np.array(named, dtype=bool)]


def over_seeds(numbers: np.ndarray) -> Estimate:
    """Rows of value, lo, hi, n, one per seed, as one: a single seed as it is, several by their mean
    with the t interval over seeds.

    Below three seeds a mean has no interval. n is that of one seed, the smallest of several.
    """
    known = numbers[~np.isnan(numbers[:, 0])]
    if len(known) == 0:
        return GAP
    if len(known) == 1:
        return Estimate(*map(float, known[0]), seeds=1)
    found = seed_interval(known[:, 0])
    lo, hi = (found.lo, found.hi) if found else (math.nan, math.nan)
    return Estimate(float(known[:, 0].mean()), lo, hi, float(known[:, 3].min()), len(known))


def load(config: Config) -> Study:
    """The study of `config.results_dir`; a missing or foreign cells table is a DataError."""
    return Study(config, read_cells(config))
