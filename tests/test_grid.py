"""Which cells share a base cell, and which transfers exist."""

import pytest

from rolewise.grid import Cell, base_cells, base_of, trained_cells, transfers
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


def test_the_main_cells_can_be_all_none_or_those_that_a_list_selects():
    def names(main):
        damped = {"name": "d", "match": {"workflow": ["Voting"], "policy": ["IP"]}}
        study = config(settings={"grid.main": main, "grid.variants": [damped]})
        return [cell.name for cell in trained_cells(study)], [c.name for c in base_cells(study)]

    variants = ["Voting-IP-0.1M-Math~d", "Voting-IP-0.1M-Code~d"]
    assert len(names(True)[0]) == 3 * 2 * 2 + 2 + len(variants)
    assert names(False)[0] == variants
    single = {"workflow": ["Single"], "task": ["Math"]}
    trained, base = names([single, {"policy": ["SP"], "workflow": ["Voting", "Eval-Opt"]}])
    assert trained == [
        "Eval-Opt-SP-0.1M-Math", "Eval-Opt-SP-0.1M-Code",
        "Voting-SP-0.1M-Math", "Voting-SP-0.1M-Code", "SA-RL-0.1M-Math", *variants,
    ]  # fmt: skip
    assert "Single-Base-0.1M-Math" in base and "Orch-Workers-Base-0.1M-Math" not in base


def test_transfers_need_a_trained_single_agent():
    assert ("Voting", "0.1M", "Code", 0) in transfers(config())
    assert len(transfers(config(settings={"seeds": [0, 3]}))) == 3 * 2 * 2
    assert transfers(config(settings={"grid.single_agent": False})) == []
    assert transfers(config(settings={"grid.main": False})) == []
