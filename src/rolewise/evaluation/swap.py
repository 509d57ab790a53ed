"""Role swap: trained roles among base partners and the reverse; who learned, who is carried (Table 10)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from rolewise.config import Config, for_cell
from rolewise.errors import RolewiseError
from rolewise.evaluation.evaluate import (
    best_step,
    check_inputs,
    evaluate_policy,
    intact,
    require_checkpoint,
)
from rolewise.grid import Cell
from rolewise.policy.policy import routes, saved_policy
from rolewise.records import SWAPS, write_parquet
from rolewise.runs.layout import layout
from rolewise.runs.signals import stop_requested
from rolewise.runs.state import StateDir
from rolewise.sampling.stage import open_stage
from rolewise.workflows.base import topology


def mixtures(roles: Sequence[str]) -> list[tuple[str, ...]]:
    """Sets of roles to leave trained: each role alone, and all roles but one; each set once."""
    alone = [(role,) for role in roles]
    others = [tuple(r for r in roles if r != role) for role in roles]
    return [m for m in dict.fromkeys(alone + others) if 0 < len(m) < len(roles)]


def swap_roles(config: Config, cell: Cell, seed: int) -> Path:
    """Evaluate every mixture of trained and base roles at the best checkpoint; returns swaps.parquet.

    Draws are those of the cell's own evaluation, so that differences are paired.
    """
    roles = topology(for_cell(config, cell), cell.workflow).roles
    if not cell.trained or len(roles) < 2:
        raise RolewiseError(f"{cell}: a role swap needs a trained cell of several roles")
    places = layout(config)
    step = best_step(config, cell, seed)
    checkpoint = require_checkpoint(StateDir(places.training_state(config, cell, seed)), step)
    check_inputs(config, cell, seed)
    shards = places.evaluation_state(config, cell, seed) / "swaps"
    files = {m: shards / "+".join(m) / f"evaluations_{step:06d}.parquet" for m in mixtures(roles)}
    missing = [m for m, file in files.items() if not intact(file)]
    if missing:
        with open_stage(config, cell, "validation") as stage, stop_requested() as stop:
            policy = saved_policy(cell, roles, checkpoint / "adapters", stage.backbone)
            trained = routes(cell.policy)
            for mixture in missing:
                evaluate_policy(
                    stage,
                    policy,
                    lambda role, mixture=mixture: trained(role) if role in mixture else None,
                    step,
                    seed,
                    files[mixture].parent,
                )
                stop.check(f"the swap with {', '.join(mixture)} trained is evaluated")
    frame = pd.concat(
        [pd.read_parquet(file).assign(trained="+".join(m)) for m, file in files.items()]
    )
    target = places.cell(cell, seed) / "swaps.parquet"
    write_parquet(target, frame, SWAPS)
    return target
