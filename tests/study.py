"""A study small enough to train within a test: real data, a real model of a few thousand parameters."""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
import shutil
import tempfile
from pathlib import Path

from rolewise.config import Config
from rolewise.models.embedded import build
from rolewise.runs.layout import layout
from rolewise.tasks.problem import write_problems
from tests.configs import config

SETTINGS = {
    "prompts": "compact",
    "models.0.1M": {
        "kind": "embedded", "hidden_size": 32, "layers": 2, "heads": 2, "kv_heads": 1,
        "head_dim": 16, "intermediate_size": 64, "vocab_size": 400, "warm_start_steps": 60,
        "warm_start_batch": 16, "warm_start_lr": 5e-3,
    },
    "tasks.Math.train": 40,
    "tasks.Math.validation": 20,
    "tasks.Code.train": 40,
    "tasks.Code.validation": 20,
    "lora": {"rank": 4, "alpha": 8},
    "training.steps": 4,
    "training.checkpoint_every": 2,
    "training.prompts_per_step": 3,
    "training.optimizer.lr": 3e-3,
    "training.update.minibatch": 16,
    "ledger.every": 2,
    "ledger.permutations": 20,
    "evaluation.trajectory_problems": 5,
}  # fmt: skip


@functools.cache
def _prepared(head_dim: int) -> Path:
    root = Path(tempfile.mkdtemp(prefix="rolewise-study-"))
    small = config(root, settings=_flat(head_dim))
    places = layout(small)
    for task, spec in small.tasks.items():
        module = importlib.import_module(f"rolewise.tasks.generators.{spec.generator}")
        splits = module.generate(spec.train, spec.validation, spec.seed, spec.options)
        files = {}
        for name, problems in zip(("train", "validation"), splits, strict=True):
            text = write_problems(problems)
            places.data(task).mkdir(parents=True, exist_ok=True)
            (places.data(task) / f"{name}.jsonl").write_text(text)
            files[f"{name}.jsonl"] = hashlib.sha256(text.encode()).hexdigest()
        (places.data(task) / "manifest.json").write_text(json.dumps({"files": files}))
    build(small, "0.1M", root / "data", places.model("0.1M"))
    return root


def _flat(head_dim: int) -> dict:
    # A scale's name holds a dot, so its model cannot be set by a dotted key.
    return {k: v for k, v in SETTINGS.items() if not k.startswith("models.")} | {
        "models": {"0.1M": SETTINGS["models.0.1M"] | {"head_dim": head_dim}}
    }


def tiny_study(folder: Path, settings: dict | None = None, head_dim: int = 16) -> Config:
    """The configuration of a fresh study in `folder`, data and model prepared, nothing trained."""
    shutil.copytree(_prepared(head_dim), folder, dirs_exist_ok=True)
    return config(folder, settings=_flat(head_dim) | (settings or {}))
