"""Cells of the study: their names, their enumeration and the settings that apply to each. Pure."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rolewise.errors import RolewiseError

if TYPE_CHECKING:
    from rolewise.config import Config, Match

SINGLE = "Single"
BASE, SINGLE_AGENT, ISOLATED, SHARED = "Base", "SA", "IP", "SP"
# Settings that change what the untrained workflow does or how it is judged.
ROLLOUT_SECTIONS = (
    "workflow", "caps", "sampling", "tasks", "prompts", "reward", "enable_thinking", "evaluation",
    "sandbox",
)  # fmt: skip


@dataclass(frozen=True, order=True)
class Cell:
    """One training (or, for policy `Base`, one untrained evaluation) of a workflow.

    `variant` names an intervention of `grid.variants`; it is empty for the study's own cells.
    """

    workflow: str
    policy: str
    scale: str
    task: str
    variant: str = ""

    @property
    def name(self) -> str:
        """The paper's spelling: `Voting-IP-1.7B-Math`, `SA-RL-1.7B-Math`, `Voting-Base-1.7B-Math`."""
        if self.policy == SINGLE_AGENT:
            stem = f"SA-RL-{self.scale}-{self.task}"
        else:
            stem = f"{self.workflow}-{self.policy}-{self.scale}-{self.task}"
        return f"{stem}~{self.variant}" if self.variant else stem

    @property
    def trained(self) -> bool:
        """Whether the cell has a training run behind it."""
        return self.policy != BASE

    @property
    def base(self) -> Cell:
        """The untrained evaluation that this cell is compared with."""
        return Cell(self.workflow, BASE, self.scale, self.task, self.variant)

    def __str__(self) -> str:
        return self.name


def matches(cell: Cell, match: Match) -> bool:
    """Whether every field that `match` names holds the cell's value (a list means any of them)."""
    wanted = match.model_dump(exclude_none=True)
    return all(getattr(cell, field) in values for field, values in wanted.items())


def trained_cells(config: Config) -> list[Cell]:
    """Every cell that is trained: the main cells of `grid.main`, then variants of any cell."""
    cells = main_cells(config)
    chosen = [cell for cell in cells if any(matches(cell, m) for m in config.grid.main)]
    variants = [
        Cell(cell.workflow, cell.policy, cell.scale, cell.task, variant.name)
        for variant in config.grid.variants
        for cell in cells
        if matches(cell, variant.match)
    ]
    return chosen + variants


def main_cells(config: Config) -> list[Cell]:
    """Every cell that the grid spans, excluded ones left out; `grid.main` says which are trained."""
    grid = config.grid
    cells = [
        Cell(workflow, policy, scale, task)
        for workflow, policy, scale, task in itertools.product(
            grid.workflows, grid.policies, grid.scales, grid.tasks
        )
    ]
    if grid.single_agent:
        cells += [
            Cell(SINGLE, SINGLE_AGENT, scale, task)
            for scale, task in itertools.product(grid.scales, grid.tasks)
        ]
    return [cell for cell in cells if not any(matches(cell, m) for m in grid.exclude)]


def base_cells(config: Config) -> list[Cell]:
    """Untrained evaluations: one for every workflow, scale, task and variant that is trained.

    A variant that changes nothing the base model sees shares the plain base cell.
    """
    return sorted({base_of(config, cell) for cell in trained_cells(config)})


def base_of(config: Config, cell: Cell) -> Cell:
    """The base cell of `cell`; plain unless its variant sets a key of `ROLLOUT_SECTIONS`."""
    variant = next((v for v in config.grid.variants if v.name == cell.variant), None)
    if variant and any(key.split(".")[0] in ROLLOUT_SECTIONS for key in variant.set):
        return cell.base
    return Cell(cell.workflow, BASE, cell.scale, cell.task)


def transfers(config: Config) -> list[tuple[str, str, str, int]]:
    """Generator-only transfers: workflow, scale, task, seed; none without a trained SA-RL cell."""
    single = {
        (cell.scale, cell.task): seeds_of(config, cell)
        for cell in trained_cells(config)
        if cell.policy == SINGLE_AGENT and not cell.variant
    }
    grid = config.grid
    return [
        (workflow, scale, task, seed)
        for scale in config.evaluation.transfer_scales
        for task in grid.tasks
        for workflow in grid.workflows
        for seed in single.get((scale, task), [])
    ]


def seeds_of(config: Config, cell: Cell) -> list[int]:
    """Seeds of a cell: the variant's own list if it has one, else the study's.

    A base cell needs one evaluation per seed only when sampling depends on the seed, which it does.
    """
    named = {v.name: v.seeds for v in config.grid.variants if v.seeds is not None}
    if cell.trained:
        return named.get(cell.variant, config.seeds)
    users = [c for c in trained_cells(config) if base_of(config, c) == cell]
    return sorted({s for c in users for s in named.get(c.variant, config.seeds)})


def parse_cell(config: Config, name: str) -> Cell:
    """The cell called `name`; an unknown name is an error that suggests the nearest one."""
    known = {cell.name: cell for cell in trained_cells(config) + base_cells(config)}
    if name in known:
        return known[name]
    raise unknown_cell(name, known)


def unknown_cell(name: str, known: Iterable[str]) -> RolewiseError:
    """The error of a cell that is none of `known`; it suggests the nearest one, however far."""
    near = nearest(name, known, cutoff=0)
    hint = f"did you mean '{near}'? " if near else ""
    return RolewiseError(f"unknown cell '{name}'; {hint}`rolewise grid` lists all cells")


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known name most like `name`, whatever their case; None if none is alike enough."""
    spelled = {candidate.lower(): candidate for candidate in known}
    found = difflib.get_close_matches(name.lower(), spelled, n=1, cutoff=cutoff)
    return spelled[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: `; did you mean 'Voting'?`, or nothing."""
    near = nearest(name, known)
    return f"; did you mean '{near}'?" if near else ""
