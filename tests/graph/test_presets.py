"""Dry runs of the presets for large and for pretrained models list what they promise."""

import pytest


@pytest.mark.parametrize(
    ("preset", "trainings", "bases", "models"),
    [("paper", 42, 24, 3), ("paper-released-code", 42, 24, 3), ("mini", 4, 4, 1)],
)
def test_a_preset_lists_its_whole_grid(fresh, preset, trainings, bases, models):
    planned = fresh.planned(configfile=f"workflow/presets/{preset}.yaml")
    assert planned["train_cell"] == planned["evaluate_cell"] == trainings
    assert planned["evaluate_base"] == bases
    assert (planned["make_model"], planned["prepare_data"]) == (models, 2)
