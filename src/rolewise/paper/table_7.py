"""Table 7: hyperparameters of every cell, from the configuration that its training reads."""

from __future__ import annotations

from typing import Any

import pandas as pd

from rolewise.config import Config, for_cell
from rolewise.grid import Cell, seeds_of, trained_cells
from rolewise.paper.study import Study, labels
from rolewise.policy.routing import adapters_of
from rolewise.workflows.base import topology

TITLE = "Hyperparameters"

LABELS = ["cell", "workflow", "policy", "scale", "task"]


def data(study: Study) -> pd.DataFrame:
    """A row per trained cell, variants included, a column per setting."""
    return pd.DataFrame([_settings(study.config, cell) for cell in trained_cells(study.config)])


def _settings(config: Config, cell: Cell) -> dict[str, Any]:
    own = for_cell(config, cell)
    training, optimizer, loss = own.training, own.training.optimizer, own.training.loss
    caps = own.caps[cell.task]
    reward = (
        f"{own.reward.math}, penalty {own.reward.format_penalty}"
        if cell.task == "Math"
        else own.reward.code
    )
    return labels(cell) | {
        "adapters": len(adapters_of(cell.policy, topology(own, cell.workflow).roles)),
        "LoRA rank": own.lora.rank,
        "LoRA alpha": own.lora.alpha,
        "optimiser": optimizer.kind,
        "learning rate": optimizer.lr,
        "betas": "{}, {}".format(*optimizer.betas),
        "weight decay": optimizer.weight_decay,
        "gradient clip": optimizer.clip_norm,
        "warm-up": optimizer.warmup,
        "tick": optimizer.tick,
        "steps": training.steps,
        "prompts per step": training.prompts_per_step,
        "episodes per prompt": training.episodes_per_prompt,
        "checkpoint every": training.checkpoint_every,
        "advantage group": training.advantage.group_by,
        "normalisation": training.advantage.normalise,
        "clip": f"{loss.clip_low}, {loss.clip_high}",
        "dual clip": loss.dual_clip if loss.dual_clip is not None else "off",
        "loss denominator": loss.denominator,
        "role weights": loss.role_weights,
        "KL anchors": ", ".join(f"{role} {beta}" for role, beta in loss.kl_anchor.items())
        or "none",
        "optimiser steps": training.update.steps,
        "mini-batch rows": training.update.minibatch,
        "order": training.update.order,
        "reward": reward,
        "temperature": own.sampling.temperature,
        "prompt cap": caps.prompt.get(cell.workflow, caps.prompt["default"]),
        "response cap": caps.response,
        "evaluation samples": own.evaluation.samples,
        "precision": training.dtype,
        "seeds": ", ".join(map(str, seeds_of(config, cell))),
    }


def display(data: pd.DataFrame) -> pd.DataFrame:
    """Only the settings in which cells differ, equal cells of a workflow and policy in one row."""
    if data.empty:
        return data
    settings = _varying(data)
    groups = data.groupby(["workflow", "policy", *settings], sort=False, dropna=False)
    rows = [
        dict(zip(["workflow", "policy", *settings], key, strict=True))
        | {name: ", ".join(group[name].unique()) for name in ("scale", "task")}
        for key, group in groups
    ]
    return pd.DataFrame(rows)[["workflow", "policy", "scale", "task", *settings]].astype(str)


def _varying(data: pd.DataFrame) -> list[str]:
    return [name for name in data.columns.drop(LABELS) if data[name].nunique() > 1]


def caption(study: Study, data: pd.DataFrame) -> str:
    """The settings that all cells share, and the preset."""
    if data.empty:
        return study.footer(None)
    common = data.columns.drop([*LABELS, *_varying(data)])
    listed = "; ".join(f"{name} {data[name].iloc[0]}" for name in common)
    return f"Common to all cells: {listed}. Preset: {study.config.preset}."
