"""Synthetic studies as tables and figures see them: a configuration and a tidy cells table."""

import pytest

from rolewise.analysis.collect import write_cells
from rolewise.paper.study import load
from tests.configs import config
from tests.synthetic import write_study

QUICK = {
    "evaluation.trajectory_problems": 6,
    "signatures.bootstrap": 40,
    "training.steps": 20,
    "tasks.Math.validation": 40,
    "tasks.Code.validation": 40,
}


def build(folder, scales, settings):
    settings = config(folder, scales, QUICK | settings)
    write_study(folder, settings)
    write_cells(settings)
    return load(settings)


@pytest.fixture(scope="session")
def study(tmp_path_factory):
    """Every workflow and policy at one scale, on Math."""
    settings = {"evaluation.transfer_scales": ["0.3M"], "grid.tasks": ["Math"]}
    return build(tmp_path_factory.mktemp("study"), ("0.3M",), settings)


@pytest.fixture(scope="session")
def seeded(tmp_path_factory):
    """One workflow and task, three seeds, an intervention on IP and one on everything."""
    variants = [
        {"name": "damped", "match": {"policy": ["IP"]}, "set": {"training.damping.strength": 0.2}},
        {"name": "wide", "set": {"workflow.votes": 5}, "seeds": [0]},
    ]
    settings = {
        "grid.workflows": ["Voting"],
        "grid.tasks": ["Math"],
        "grid.single_agent": False,
        "grid.variants": variants,
        "seeds": [0, 1, 2],
        "evaluation.transfer_scales": [],
    }
    return build(tmp_path_factory.mktemp("seeded"), ("0.3M",), settings)
