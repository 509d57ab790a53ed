"""Where everything lives below `results_dir`. Pure paths; the Snakefile and the commands share them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rolewise.config import (
    Config,
    digest,
    evaluation_subset,
    training_subset,
    untrained_subset,
)
from rolewise.grid import Cell


@dataclass(frozen=True)
class Layout:
    """Paths of one results folder."""

    root: Path

    def data(self, task: str) -> Path:
        """Folder of a task's problems: manifest.json, train.jsonl, validation.jsonl."""
        return self.root / "data" / task

    def model(self, scale: str) -> Path:
        """Folder of a base model in Hugging Face format, with manifest.json."""
        return self.root / "models" / scale

    def cell(self, cell: Cell, seed: int) -> Path:
        """Folder of a cell's results."""
        return self.root / "cells" / cell.name / f"seed{seed}"

    def transfer(self, workflow: str, scale: str, task: str, seed: int) -> Path:
        """Folder of a generator-only transfer evaluation."""
        return self.root / "transfer" / f"{workflow}-{scale}-{task}" / f"seed{seed}"

    def log(self, stage: str, cell: Cell, seed: int) -> Path:
        """Output of the last attempt at a stage (train, evaluate, summarise) of a cell."""
        return self.root / "logs" / stage / f"{cell.name}-seed{seed}.log"

    @property
    def tables(self) -> Path:
        """Folder of tables, with cells.csv."""
        return self.root / "tables"

    @property
    def figures(self) -> Path:
        """Folder of figures."""
        return self.root / "figures"

    def training_state(self, config: Config, cell: Cell, seed: int) -> Path:
        """Resumable state of a training: one folder per configuration that changes its result."""
        name = digest(training_subset(config, cell))
        return self.root / "state" / cell.name / f"seed{seed}" / f"train-{name}"

    def evaluation_state(self, config: Config, cell: Cell, seed: int) -> Path:
        """Finished evaluation shards: `evaluations_000010.parquet`, `calls_000010.parquet`."""
        subset = evaluation_subset(config, cell)
        if cell.trained:
            subset["training"] = training_subset(config, cell)
        else:
            subset |= untrained_subset(config, cell)
        return self.root / "state" / cell.name / f"seed{seed}" / f"evaluate-{digest(subset)}"


def layout(config: Config) -> Layout:
    """The layout of `config.results_dir`."""
    return Layout(Path(config.results_dir))
