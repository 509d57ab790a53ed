"""The estimate: sums that can be checked by hand, refusals that name the key."""

import dataclasses
import json
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from rolewise.cli import app
from rolewise.config import for_cell, parse, read_raw
from rolewise.errors import RolewiseError
from rolewise.grid import parse_cell
from rolewise.planning.assumptions import DEVICES, Assumptions
from rolewise.planning.estimate import episode_calls, plan_cell
from rolewise.planning.sizes import size_of
from rolewise.planning.study import assumptions, plan_study
from rolewise.policy.adapters import sites_of
from tests.configs import config as small_config

NOWHERE = Path("no/such/folder")
REFERENCE = Path(__file__).parents[2] / "results/reference/cells"
PAPER = ["config.yaml", "workflow/presets/paper.yaml"]


def paper_config():
    """The preset with sizes from its specifications, whatever models lie in results/."""
    return parse(read_raw(PAPER) | {"results_dir": str(NOWHERE)})


def paper(**sampling):
    own = paper_config()
    changed = own.sampling.model_copy(update=sampling)
    return own.model_copy(update={"sampling": changed})


def plan(config, name, device="H100", **changes):
    cell = parse_cell(config, name)
    own = for_cell(config, cell)
    training = own.training.model_copy(update=changes)
    own = own.model_copy(update={"training": training})
    size = size_of(own.models[cell.scale], NOWHERE)
    return plan_cell(own, cell, size, DEVICES[device], 1000, Assumptions())


@pytest.mark.parametrize(("scale", "billions"), [("0.6B", 0.596), ("1.7B", 1.72), ("4B", 4.02)])
def test_published_sizes_are_those_of_the_models(scale, billions):
    size = size_of(paper_config().models[scale], NOWHERE)
    assert size.parameters / 1e9 == pytest.approx(billions, rel=5e-3)
    assert size.adapter(64) == sites_of(size.shape, 64)[1]


def test_key_value_cache_of_a_token_is_counted_by_hand():
    assert size_of(paper_config().models["0.6B"], NOWHERE).kv_bytes(2) == 2 * 28 * 8 * 128 * 2


def test_calls_of_an_episode_follow_the_topology():
    config, assume = paper_config(), Assumptions()
    calls = episode_calls(config, "Voting", "Math", assume)
    assert [(c.role, c.count) for c in calls] == [("generator", 3), ("aggregator", 1)]
    assert calls[1].prompt == 200 + 3 * 1280 and calls[0].response == 5120 / 4
    assert [c.prompts(4, 32) for c in calls] == [4, 32]
    assert len(episode_calls(config, "Eval-Opt", "Math", assume)) == 6
    assert [c.count for c in episode_calls(config, "Orch-Workers", "Code", assume)] == [1, 3, 1]


def test_the_paper_preset_fits_where_it_says():
    for device in ("H100", "H200"):
        for one in plan_study(paper_config(), *assumptions(device, None)):
            assert one.refusals == [], (one.cell, device)
            assert 0 < one.training_gib < DEVICES[device].memory_gib


def test_more_work_takes_longer_and_more_steps_take_proportionally():
    config = paper_config()
    small, large = (plan(config, f"Voting-IP-{s}-Math") for s in ("0.6B", "4B"))
    assert small.total_hours < large.total_hours
    once, twice = (plan(config, "SA-RL-0.6B-Math", steps=n) for n in (100, 200))
    assert twice.total_hours == pytest.approx(2 * once.total_hours, rel=0.05)
    isolated, shared = (plan(config, f"Voting-{p}-0.6B-Math") for p in ("IP", "SP"))
    assert (isolated.adapters, shared.adapters) == (2, 1)
    assert isolated.memory["adapters"] > shared.memory["adapters"]


def test_what_cannot_fit_names_the_key_to_change():
    config = paper_config()
    (refusal,) = plan(config, "SA-RL-4B-Math", gradient_checkpointing=False).refusals
    assert refusal.startswith("training.gradient_checkpointing")
    huge = config.training.update.model_copy(update={"microbatch_tokens": 10**6})
    (refusal,) = plan(config, "SA-RL-4B-Math", update=huge).refusals
    assert refusal.startswith("training.update.microbatch_tokens")
    crowded = paper(vllm={"gpu_memory_utilization": 0.95})
    (refusal,) = plan(crowded, "Voting-IP-1.7B-Math").refusals
    assert "sampling.vllm.gpu_memory_utilization: at most 0.8" in refusal
    starved = paper(vllm={"gpu_memory_utilization": 0.06})
    (refusal,) = plan(starved, "Voting-IP-1.7B-Math").refusals
    assert "raise it" in refusal
    (refusal,) = plan(paper(backend="torch", max_rows=512), "Voting-IP-1.7B-Math").refusals
    assert refusal.startswith("sampling.max_rows")


def test_caps_beyond_the_context_are_refused():
    config = paper_config()
    caps = config.caps["Math"].model_copy(update={"prompt": {"default": 40000}})
    own = config.model_copy(update={"caps": config.caps | {"Math": caps}})
    assert plan(own, "Voting-IP-0.6B-Math").refusals[0].startswith("caps.Math")


def test_the_default_preset_takes_about_what_was_measured():
    """Of every cell within a factor 3 of the shipped timings, of all together within 2."""
    config = parse(read_raw(["config.yaml"]) | {"results_dir": str(NOWHERE)})
    planned, measured = {}, {}
    for one in plan_study(config, *assumptions("CPU", None)):
        timings = pd.read_parquet(REFERENCE / one.cell / "seed0/timings.parquet")
        phases = timings[timings["phase"].isin(one.step_s)]
        planned[one.cell] = sum(one.step_s.values())
        measured[one.cell] = phases["wall_s"].sum() / phases["step"].nunique()
    ratios = {cell: planned[cell] / measured[cell] for cell in planned}
    assert {c: r for c, r in ratios.items() if not 1 / 3 < r < 3} == {}
    assert 1 / 2 < sum(planned.values()) / sum(measured.values()) < 2


def test_miniatures_have_assumptions_of_their_own_and_larger_models_keep_theirs():
    assume = Assumptions()
    assert assume.of(embedded=False, procedural=False) == assume
    small = assume.of(embedded=True, procedural=True)
    assert small.problem("Math") == assume.embedded_problem_tokens
    assert small.tests_per_program == assume.procedural_tests_per_program
    calls = episode_calls(paper_config(), "Eval-Opt", "Math", small)
    assert [c.role for c in calls] == ["generator", "evaluator"]


def test_a_step_of_a_tiny_model_is_mostly_fixed_cost():
    config = small_config("nowhere")
    (one,) = (p for p in plan_study(config, *assumptions("CPU", None)) if "SA-RL-0.1M-Ma" in p.cell)
    steps = config.training.prompts_per_step * config.training.episodes_per_prompt
    steps = max(1, steps // config.training.update.minibatch)
    fixed = steps * Assumptions().optimizer_step_s
    assert fixed <= one.step_s["update"] < 2 * fixed


def test_one_plan_per_training_and_seed():
    config = small_config("nowhere", settings={"seeds": [0, 1]})
    plans = plan_study(config, *assumptions("CPU", 0.5))
    assert len(plans) == 2 * (12 + 2)


def test_overriding_assumptions():
    assert assumptions("H200", 0.5)[1] == dataclasses.replace(Assumptions(), response_share=0.5)
    with pytest.raises(RolewiseError, match="unknown device 'B52'; known: H200"):
        assumptions("B52", None)
    with pytest.raises(RolewiseError, match="response-share"):
        assumptions("H100", 1.5)


def test_the_command_prints_json_and_fails_when_something_cannot_fit():
    arguments = ["plan", "--configfile", PAPER[1], "--json"]
    fine = CliRunner().invoke(app, arguments)
    assert fine.exit_code == 0
    content = json.loads(fine.stdout)
    assert len(content["cells"]) == 42 and content["device"]["name"] == "H100"
    refused = CliRunner().invoke(app, [*arguments, "--device", "CPU"])
    assert refused.exit_code == 1 and "sampling.vllm.gpu_memory_utilization" in refused.stderr
