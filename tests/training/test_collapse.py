"""A learning rate that is far too high: the alarms ring first, the accuracy falls, the detector sees it."""

import numpy as np
import pytest

from rolewise.analysis.detectors import cliff
from rolewise.analysis.outcomes import outcomes
from rolewise.analysis.sources import read_table
from rolewise.config import parse, read_raw, with_settings
from rolewise.evaluation.evaluate import evaluate
from rolewise.grid import parse_cell
from rolewise.models.make import make
from rolewise.runs.layout import layout
from rolewise.tasks.datasets.prepare import prepare
from tests.training.test_loop import run, state_of

NAME = "SA-RL-0.1M-Math"
TOO_HIGH = {
    # At 1e-2 the fall begins in step 4, before any alarm has steps to compare.
    "training.optimizer.lr": 6e-3,
    "training.optimizer.clip_norm": 1000.0,
    "training.optimizer.warmup": 0,
    "training.checkpoint_every": 2,
}


@pytest.mark.long
@pytest.mark.timeout(900)
def test_alarms_ring_before_the_accuracy_falls_off_a_cliff(tmp_path):
    settings = TOO_HIGH | {"results_dir": str(tmp_path)}
    config = parse(with_settings(read_raw(["config.yaml"]), settings))
    places = layout(config)
    for task in config.tasks:
        prepare(config, task, places.data(task))
    make(config, "0.1M", tmp_path / "data", places.model("0.1M"))
    run(config, NAME)
    rows = [row for row in state_of(config, NAME).rows("metrics") if row["role"] == "generator"]
    rings = next(row["step"] for row in rows if row["alarms"])
    success = np.array([row["success"] for row in rows])
    # A fall is lasting: ten steps in a row, on average, below half of what the base model solves.
    means = np.convolve(success, np.ones(10) / 10, mode="valid")
    falls = 1 + int(np.argmax(means < success[:2].mean() / 2))
    assert means.min() < success[:2].mean() / 2
    assert rings < falls

    cell = parse_cell(config, NAME)
    evaluate(config, cell, 0)
    found = outcomes(read_table(places.cell(cell, 0) / "evaluations.parquet"))
    fall = cliff(
        found.of("accuracy", found.steps[0], "report"),
        found.of("accuracy", found.steps[-1], "report"),
        config.signatures.cliff_drop,
        config.signatures.bootstrap,
    )
    assert fall.verdict
