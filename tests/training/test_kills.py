"""Kill -9 at random moments of a training and its evaluation: reruns end bit-identical."""

import json
import os
import random
import shutil
import subprocess
import sys
import time

import pandas as pd
import pytest

from rolewise.grid import parse_cell
from rolewise.runs.layout import layout
from tests.study import tiny_study
from tests.training.test_loop import fingerprint

PROGRAM = """
import json, sys
from pathlib import Path
from rolewise.config import parse
from rolewise.evaluation.evaluate import evaluate
from rolewise.grid import parse_cell
from rolewise.training.loop import train
config = parse(json.loads(Path(sys.argv[1]).read_text()))
cell = parse_cell(config, sys.argv[2])
train(config, cell, 0)
evaluate(config, cell, 0)
print("finished")
"""
STEPS = {"training.steps": 12, "training.checkpoint_every": 3}
CELLS = ("Orch-Workers-SP-0.1M-Math", "Voting-IP-0.1M-Code")


def start(folder, name) -> subprocess.Popen:
    config = tiny_study(folder, STEPS)
    (folder / "config.json").write_text(json.dumps(config.model_dump()))
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder / "config.json"), name],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def outcome(folder, name):
    """Everything that must not depend on kills: state, evaluations and calls, without clocks."""
    config = tiny_study(folder, STEPS)
    state = {
        key: value
        for key, value in fingerprint(config, name).items()
        if not key.endswith(("adapter_config.json", "files.json", "identity.json"))
    }
    cell = parse_cell(config, name)
    evaluations = pd.read_parquet(layout(config).cell(cell, 0) / "evaluations.parquet")
    shards = layout(config).evaluation_state(config, cell, 0)
    calls = pd.concat(map(pd.read_parquet, sorted(shards.glob("calls_*.parquet"))))
    return state, evaluations, calls


@pytest.mark.parametrize(
    ("name", "kills"),
    [
        *((name, 4) for name in CELLS),
        *(pytest.param(name, 20, marks=pytest.mark.long) for name in CELLS),
    ],
)
def test_kills_at_random_moments_leave_no_trace(tmp_path, name, kills):
    began = time.monotonic()
    whole = start(tmp_path / "whole", name)
    assert "finished" in whole.communicate()[0]
    seconds = time.monotonic() - began
    rng = random.Random(f"{name}{kills}")
    killed = 0
    while killed < kills:
        run = start(tmp_path / "killed", name)
        # The first quarter is start-up, where there is nothing to lose yet.
        try:
            run.communicate(timeout=seconds * rng.uniform(0.25, 1))
        except subprocess.TimeoutExpired:
            run.kill()
            run.communicate()
            killed += 1
        else:
            # It was through before its moment came: begin again, and strike sooner.
            shutil.rmtree(tmp_path / "killed")
            seconds *= 0.8
    assert "finished" in start(tmp_path / "killed", name).communicate()[0]
    expected, found = outcome(tmp_path / "whole", name), outcome(tmp_path / "killed", name)
    assert found[0] == expected[0]
    for one, other in zip(found[1:], expected[1:], strict=True):
        pd.testing.assert_frame_equal(one, other, check_exact=True)
