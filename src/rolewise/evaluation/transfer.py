"""Generator-only transfer: the SA-RL adapter in the main role of a workflow, base partners (Table 3)."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from rolewise.config import Config, digest, evaluation_subset, training_subset
from rolewise.evaluation.evaluate import (
    accuracy_table,
    best_step,
    evaluate_policy,
    intact,
    require_checkpoint,
)
from rolewise.grid import BASE, SINGLE, SINGLE_AGENT, Cell
from rolewise.policy.adapters import Adapter
from rolewise.policy.policy import Policy
from rolewise.records import EVALUATIONS, write_parquet, write_text
from rolewise.runs.layout import layout
from rolewise.runs.state import StateDir
from rolewise.sampling.stage import open_stage


def transfer(config: Config, workflow: str, scale: str, task: str, seed: int) -> Path:
    """Evaluate the best SA-RL checkpoint as the main role of `workflow`; returns its summary.json.

    The checkpoint is the one best on the select half in the single-agent evaluation.
    """
    source = Cell(SINGLE, SINGLE_AGENT, scale, task)
    target = Cell(workflow, BASE, scale, task)
    folder = layout(config).transfer(workflow, scale, task, seed)
    step = best_step(config, source, seed)
    checkpoint = require_checkpoint(
        StateDir(layout(config).training_state(config, source, seed)), step
    )
    key = digest(
        {
            "evaluation": evaluation_subset(config, target),
            "source": training_subset(config, source),
            "step": step,
        }
    )
    shards = layout(config).root / "state" / "transfer" / f"{workflow}-{scale}-{task}" / key
    file = shards / f"seed{seed}" / f"evaluations_{step:06d}.parquet"
    if not intact(file):
        with open_stage(config, target, "validation") as stage:
            adapter = Adapter.load(
                checkpoint / "adapters" / "generator",
                stage.backbone.shape,
                str(stage.backbone.device),
            )
            main = stage.topology.main_role
            policy = Policy(stage.backbone, {main: adapter})
            evaluate_policy(
                stage, policy, lambda role: main if role == main else None, step, seed, file.parent
            )
    frame = pd.read_parquet(file)
    write_parquet(folder / "evaluations.parquet", frame, EVALUATIONS)
    table = accuracy_table(frame)
    summary = {
        "workflow": workflow,
        "scale": scale,
        "task": task,
        "seed": seed,
        "source": source.name,
        "step": step,
        "accuracy": {
            row.split: {"value": row.accuracy, "n": int(row.n)} for row in table.itertuples()
        },
    }
    write_text(folder / "summary.json", json.dumps(summary, indent=1))
    return folder / "summary.json"
