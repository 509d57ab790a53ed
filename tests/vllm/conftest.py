"""One small study whose model vLLM's CPU kernels accept, shared so that the engine starts once."""

import pytest
import torch

from rolewise.grid import parse_cell
from rolewise.policy.adapters import Adapter
from rolewise.policy.policy import fresh_policy
from rolewise.sampling.stage import open_stage
from tests.study import tiny_study

CELL = "Voting-IP-0.1M-Math"


@pytest.fixture(scope="session")
def study(tmp_path_factory):
    settings = {"sampling.backend": "vllm", "training.steps": 3}
    return tiny_study(tmp_path_factory.mktemp("study"), settings, head_dim=32)


@pytest.fixture
def stage(study):
    with open_stage(study, parse_cell(study, CELL), "train") as opened:
        yield opened


@pytest.fixture
def policy(stage):
    """Adapters of every role that differ from each other and from the base model."""
    made = fresh_policy(stage.config, stage.cell, stage.topology.roles, 0, stage.backbone)
    for seed, adapter in enumerate(made.adapters.values()):
        disturb(adapter, seed)
    return made


def disturb(adapter: Adapter, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    adapter.theta += torch.randn(adapter.theta.shape, generator=generator) * 0.05
    adapter.version += 1
