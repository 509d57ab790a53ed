"""Which settings a result depends on: they name its state and decide whether it is still valid."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from rolewise.config.reading import for_cell
from rolewise.config.schema import Config
from rolewise.grid import Cell


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no blanks: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def digest(value: Any) -> str:
    """The first 12 hex digits of the SHA-256 of `canonical_json(value)`."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:12]


def training_subset(config: Config, cell: Cell) -> dict:
    """What changes the result of training `cell`: the params of its rule and the name of its state.

    The number of steps and wall limits are left out, so that a run can be extended.
    """
    own = for_cell(config, cell).model_dump()
    training = {
        k: v
        for k, v in own["training"].items()
        if k not in ("steps", "max_wall", "keep_checkpoints")
    }
    return _episodes(config, cell, own) | {
        "model": own["models"][cell.scale],
        "training": training,
        "lora": own["lora"],
        "ledger": own["ledger"],
        "threads": own["resources"]["threads"],
        "processes": own["resources"]["processes"],
    }


def _episodes(config: Config, cell: Cell, own: dict) -> dict:
    """What changes the episodes of `cell` under any model: of its trainings and evaluations alike."""
    keys = ("prompts", "enable_thinking", "workflow", "sampling", "reward", "sandbox")
    return {
        "cell": cell.name,
        "data": own["tasks"][cell.task],
        "caps": own["caps"][cell.task],
        "extensions": _extensions(config, cell),
    } | {key: own[key] for key in keys}


def _extensions(config: Config, cell: Cell) -> dict:
    """The extensions that `cell` uses: adding a workflow or a task renews no other cell."""
    return {
        "workflows": _only(config.extensions.workflows, cell.workflow),
        "tasks": _only(config.extensions.tasks, cell.task),
    }


def _only(entries: dict[str, str], name: str) -> dict[str, str]:
    return {name: entries[name]} if name in entries else {}


def evaluation_subset(config: Config, cell: Cell) -> dict:
    """What changes the evaluation of a checkpoint of `cell`, given the checkpoint."""
    own = for_cell(config, cell).model_dump()
    settings = own["evaluation"].items()
    return _episodes(config, cell, own) | {
        "evaluation": {k: v for k, v in settings if k not in ("transfer_scales", "role_swap")}
    }


def untrained_subset(config: Config, cell: Cell) -> dict:
    """What changes the evaluation of an untrained workflow besides `evaluation_subset`."""
    own = for_cell(config, cell).model_dump()
    return {
        "model": own["models"][cell.scale],
        "dtype": own["training"]["dtype"],
        "threads": own["resources"]["threads"],
    }
