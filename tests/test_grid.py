"""Which cells share a base cell, and which transfers exist."""

import pytest

from rolewise.grid import Cell, base_of, transfers
from tests.configs import config

CELL = Cell("Voting", "IP", "0.1M", "Math", "other")


@pytest.mark.parametrize(
    ("settings", "own"),
    [
        ({"training.optimizer.lr": 0.1}, False),
        ({"workflow.votes": 5}, True),
        ({"workflow": {"votes": 5}}, True),
        ({"enable_thinking": True}, True),
        ({"evaluation.samples": 4}, True),
    ],
)
def test_a_variant_has_its_own_base_if_it_changes_what_the_untrained_workflow_does(settings, own):
    study = config(settings={"grid.variants": [{"name": "other", "set": settings}]})
    assert base_of(study, CELL).variant == ("other" if own else "")


def test_transfers_need_a_trained_single_agent():
    assert ("Voting", "0.1M", "Code", 0) in transfers(config())
    assert len(transfers(config(settings={"seeds": [0, 3]}))) == 3 * 2 * 2
    assert transfers(config(settings={"grid.single_agent": False})) == []
    assert transfers(config(settings={"grid.main": False})) == []
