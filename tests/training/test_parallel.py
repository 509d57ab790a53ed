"""Two gloo processes give what one process gives."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from tests.study import tiny_study
from tests.training.test_loop import run, state_of

PROGRAM = """
import sys
from pathlib import Path
from rolewise.config import parse
from rolewise.grid import parse_cell
from rolewise.training.loop import train
import json
config = parse(json.loads(Path(sys.argv[1]).read_text()))
train(config, parse_cell(config, sys.argv[2]), 0)
"""


@pytest.mark.parametrize(
    "name",
    ["Voting-IP-0.1M-Math", pytest.param("Orch-Workers-SP-0.1M-Math", marks=pytest.mark.long)],
)
def test_two_processes_sample_the_same_tokens_and_train_alike(tmp_path, name):
    alone = tiny_study(tmp_path / "alone")
    run(alone, name)
    shared = tiny_study(tmp_path / "shared")
    (tmp_path / "config.json").write_text(json.dumps(shared.model_dump()))
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
        str(tmp_path / "program.py"), str(tmp_path / "config.json"), name,
    ]  # fmt: skip
    environment = os.environ | {"PYTHONPATH": os.getcwd(), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    one, two = state_of(alone, name).rows("metrics"), state_of(shared, name).rows("metrics")
    first = [[row["tokens"] for row in rows if row["step"] == 1] for rows in (one, two)]
    assert first[0] == first[1]
    norms = [[r["role_grad_norm"] for r in rows if r["step"] == 1] for rows in (one, two)]
    assert np.allclose(*norms, rtol=1e-5, equal_nan=True)
    for key in ("reward", "entropy", "grad_norm"):
        values = [[row[key] for row in rows if row["role"] == "all"] for rows in (one, two)]
        assert np.allclose(*values, rtol=1e-3, atol=1e-3), key
    assert state_of(shared, name).steps() == [2, 4]
