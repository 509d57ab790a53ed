"""Small configurations for tests: every key the schema requires, no file involved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rolewise.config import Config, parse, with_settings

PAPER_SCALES = {"0.1M": "0.6B", "0.3M": "1.7B", "0.8M": "4B"}


def raw(scales: tuple[str, ...] = ("0.1M",)) -> dict[str, Any]:
    """A complete unchecked configuration over `scales`: all workflows, policies and tasks."""
    model = {
        "kind": "embedded",
        "hidden_size": 16,
        "layers": 1,
        "heads": 2,
        "kv_heads": 1,
        "head_dim": 8,
        "intermediate_size": 32,
        "vocab_size": 256,
        "warm_start_steps": 5,
        "warm_start_batch": 4,
        "warm_start_lr": 3e-3,
    }

    def data(generator: str) -> dict[str, Any]:
        return {"kind": "procedural", "generator": generator, "train": 64, "validation": 80}

    return {
        "preset": "test",
        "grid": {
            "workflows": ["Eval-Opt", "Voting", "Orch-Workers"],
            "policies": ["IP", "SP"],
            "scales": list(scales),
            "tasks": ["Math", "Code"],
        },
        "models": {scale: dict(model) for scale in scales},
        "tasks": {"Math": data("arithmetic"), "Code": data("programs")},
        "prompts": "compact",
        "caps": {task: {"prompt": {"default": 256}, "response": 48} for task in ("Math", "Code")},
        "training": {
            "steps": 40,
            "prompts_per_step": 4,
            "episodes_per_prompt": 4,
            "checkpoint_every": 5,
        },
        "evaluation": {"trajectory_problems": 12, "transfer_scales": list(scales)[:1]},
        "signatures": {
            "bootstrap": 400,
            "terse_aggregator_tokens": 8,
            "terse_evaluator_tokens": 16,
            "code_block_lines": 2,
        },
        "paper": {"scale_of": {scale: PAPER_SCALES[scale] for scale in scales}},
    }


def config(
    results_dir: str | Path = "results",
    scales: tuple[str, ...] = ("0.1M",),
    settings: dict[str, Any] | None = None,
) -> Config:
    """The checked small configuration; `settings` maps dotted keys to values."""
    return parse(with_settings(raw(scales), {"results_dir": str(results_dir)} | (settings or {})))
