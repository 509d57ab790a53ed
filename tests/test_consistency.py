"""Settings that would have no effect, or two meanings, are refused when a configuration is read."""

import pytest

from rolewise.config import parse, with_settings
from rolewise.errors import ConfigError
from tests.configs import raw

MODEL = raw()["models"]["0.1M"]


def complaints(settings):
    with pytest.raises(ConfigError) as caught:
        parse(with_settings(raw(), settings))
    return caught.value.problems


def override(settings, **match):
    return {"grid.overrides": [{"match": match, "set": settings}]}


def variants(*several):
    return {"grid.variants": [{"name": "v"} | one for one in several]}


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"grid.exclude": [{"workflow": ["Votng"]}]}, "grid.exclude[0].workflow: 'Votng' is not"),
        ({"grid.exclude": [{"policy": ["ip"]}]}, "grid.exclude[0].policy: 'ip' is not one of"),
        ({"grid.exclude": [{"scale": ["9B"]}]}, "grid.exclude[0].scale: '9B' is not one of 0.1M"),
        ({"grid.exclude": [{"variant": ["w"]}]}, "grid.exclude[0].variant: 'w' is not one of"),
        ({"grid.main": [{"workflow": ["Votng"]}]}, "grid.main[0].workflow: 'Votng' is not one of"),
        ({"grid.main": [{"scale": ["9B"]}]}, "grid.main[0].scale: '9B' is not one of 0.1M"),
        ({"grid.main": [{"wrkflow": ["Voting"]}]}, "grid.main.0.wrkflow: unknown key"),
        ({"grid.main": [{}, {"policy": ["Base"]}]}, "grid.main[1]: selects no cell of the grid"),
        ({"grid.main": "Voting"}, "grid.main: Input should be a valid list"),
        ({"evaluation.role_swap": [{"task": ["Mth"]}]}, "evaluation.role_swap[0].task: 'Mth'"),
        (override({"training.steps": 5}, task=["Mth"]), "grid.overrides[0].match.task: 'Mth'"),
        (variants({"match": {"policy": ["RL"]}}), "grid.variants[v].match.policy: 'RL' is not"),
        ({"caps.Math.prompt.Votng": 50}, "caps.Math.prompt: 'Votng' is not one of"),
        ({"caps.math": {"prompt": {"default": 9}, "response": 9}}, "caps: 'math' is not one of"),
        ({"workflow.max_iterations": {"Math": 1, "Code": 1, "math": 2}}, "workflow.max_iterations: 'math' is not one of"),
        ({"tasks.Math.validation": 1}, "tasks.Math.procedural.validation: Input should be great"),
        ({"models": {"0.1M": MODEL | {"heads": 3, "kv_heads": 2}}}, "heads (3) must be a multiple"),
        ({"models": {"0.1M": MODEL | {"head_dim": 7}}}, "head_dim (7) must be even"),
        ({"seeds": [1, 1]}, "seeds: values repeat: [1, 1]"),
        ({"grid.policies": ["IP", "IP"]}, "grid.policies: values repeat: ['IP', 'IP']"),
        ({"grid.tasks": ["Math", "Math"]}, "grid.tasks: values repeat"),
        (variants({"seeds": [0, 0]}), "grid.variants[v].seeds: values repeat: [0, 0]"),
        (variants({"seeds": []}), "grid.variants[v].seeds: empty"),
        (variants({}, {"set": {"lora.rank": 2}}), "grid.variants[v]: two variants of this name"),
        (variants({}, {"seeds": [4]}), "grid.variants[v]: two variants of this name differ"),
        (variants({}, {}), "grid.variants: two variants of one name match Eval-Opt-IP-0.1M-Math~v"),
        (override({"seeds": [5]}), "grid.overrides[0].set: seeds cannot differ between cells"),
        (override({"tasks.Math.train": 5}), "tasks.Math.train cannot differ between cells"),
        (override({"resources.threads": 2}), "resources.threads cannot differ between cells"),
        (override({"evaluation.role_swap": []}), "evaluation.role_swap cannot differ"),
        (override({"training.steps.x": 5}), "grid.overrides[0].set: training.steps.x: steps is a"),
        ({"training.optimizer.lr": float("inf")}, "training.optimizer.lr: Input should be a fin"),
        ({"training.optimizer.betas": [0.9, 1.0]}, "training.optimizer.betas.1: Input should be"),
        ({"grid.workflows": ["Votng"]}, "grid.workflows: 'Votng' is not one of Eval-Opt, Orch-Workers, Voting; did you mean 'Voting'?"),
        ({"grid.exclude": [{"task": ["math"]}]}, "'math' is not one of Code, Math; did you mean 'Math'?"),
        ({"traning.steps": 5}, "traning: unknown key; did you mean 'training'?"),
        ({"training.optimizer.lrr": 5}, "training.optimizer.lrr: unknown key; did you mean 'lr'?"),
        ({"grid.main": [{"wrkflow": []}]}, "grid.main.0.wrkflow: unknown key; did you mean 'workflow'?"),
        ({"models": {"0.1M": MODEL | {"layrs": 3}}}, "layrs: unknown key; did you mean 'layers'?"),
        ({"extensions.workflows": {"A/B": "x:y"}}, "extensions.workflows.A/B.[key]: String"),
    ],
)  # fmt: skip
def test_a_setting_that_would_do_nothing_or_two_things_is_refused(settings, complaint):
    assert any(complaint in line for line in complaints(settings))


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"grid.tasks": []}, "grid.tasks: empty, so that the study has no cell"),
        ({"grid.scales": [], "evaluation.transfer_scales": []}, "grid.scales: empty, so that"),
        ({"grid.exclude": [{}]}, "grid.exclude: leaves out every cell of the grid"),
        ({"grid.workflows": [], "grid.single_agent": False}, "grid.workflows: empty and grid.sing"),
        ({"grid.policies": [], "grid.single_agent": False}, "grid.policies: empty and grid.singl"),
    ],
)
def test_a_grid_without_cells_is_told_by_the_key_that_empties_it(settings, complaint):
    [line] = complaints(settings)
    assert line.startswith(complaint)


def test_settings_of_cells_may_differ_and_variants_may_share_a_name_for_other_cells():
    settings = override({"evaluation.samples": 2, "caps.Math.response": 9}, policy=["Base"])
    both = variants({"match": {"task": ["Math"]}}, {"match": {"task": ["Code"]}})
    found = parse(with_settings(raw(), settings | both))
    assert [v.name for v in found.grid.variants] == ["v", "v"]


def test_every_mistake_is_told_at_once():
    found = complaints({"seeds": [1, 1], "grid.exclude": [{"policy": ["ip"], "task": ["Mth"]}]})
    assert len(found) == 3
