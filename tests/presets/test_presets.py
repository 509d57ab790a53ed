"""Every preset is valid over config.yaml, says what it is, and holds the values of the protocol."""

from pathlib import Path

import pytest
import yaml

from rolewise.config import for_cell, load
from rolewise.grid import base_cells, matches, parse_cell, trained_cells
from rolewise.runs.graph import Graph

FOLDER = Path("workflow/presets")
PRESETS = sorted(path.stem for path in FOLDER.glob("*.yaml"))


def preset(name):
    return load(["config.yaml", FOLDER / f"{name}.yaml"])


def flat(value, key=""):
    """Dotted keys and values of a nested mapping."""
    if not isinstance(value, dict):
        return {key: value}
    found = {}
    for name, inner in value.items():
        found |= flat(inner, f"{key}.{name}" if key else str(name))
    return found


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_valid_has_its_own_folder_and_says_how_to_launch_it(name):
    config = preset(name)
    assert config.preset == name and config.results_dir == f"results/{name}"
    header = [
        line for line in (FOLDER / f"{name}.yaml").read_text().split("\n\npreset:")[0].split("\n")
    ]
    assert all(line.startswith("#") or not line for line in header)
    assert f"--configfile workflow/presets/{name}.yaml" in "\n".join(header)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_swaps_roles_of_cells_that_table_10_shows(name):
    config = preset(name)
    swapped = {cell for cell, _ in Graph(config).swaps}
    assert swapped and not any(cell.variant for cell in swapped)
    for wanted in config.evaluation.role_swap:
        assert any(matches(cell, wanted) for cell in swapped)


def test_the_mechanism_preset_trains_what_its_variants_are_compared_with():
    trained = trained_cells(preset("mechanism"))
    main = [cell for cell in trained if not cell.variant]
    assert [cell.name for cell in main] == [
        "Eval-Opt-SP-0.3M-Math", "Voting-IP-0.3M-Math", "Voting-IP-0.3M-Code",
        "Voting-SP-0.3M-Math", "Orch-Workers-IP-0.3M-Math", "Orch-Workers-SP-0.3M-Math",
        "SA-RL-0.3M-Math",
    ]  # fmt: skip
    assert {cell.name.partition("~")[0] for cell in trained} <= {cell.name for cell in main}
    assert len(Graph(preset("mechanism")).swaps) == 6 * 5


@pytest.mark.parametrize("name", ["paper", "paper-released-code"])
def test_the_paper_presets_have_the_whole_grid(name):
    config = preset(name)
    trained = [cell.name for cell in trained_cells(config)]
    assert len(trained) == 42 and len(base_cells(config)) == 24
    assert "Voting-IP-1.7B-Math" in trained and "SA-RL-4B-Code" in trained


def test_the_paper_preset_has_the_values_of_the_protocol():
    config = preset("paper")
    own = for_cell(config, parse_cell(config, "Voting-IP-1.7B-Math"))
    training, loss, optimizer = own.training, own.training.loss, own.training.optimizer
    assert (training.steps, training.prompts_per_step, training.episodes_per_prompt) == (500, 64, 8)
    assert (optimizer.kind, optimizer.lr, optimizer.weight_decay) == ("adamw", 2e-5, 0.01)
    assert (optimizer.betas, optimizer.clip_norm, optimizer.warmup) == ((0.9, 0.999), 1.0, 15)
    assert (loss.clip_low, loss.clip_high, loss.dual_clip) == (0.2, 0.28, 3.0)
    assert (loss.kl_anchor, loss.importance, loss.denominator) == ({}, "off", "rows")
    assert (own.lora.rank, own.lora.alpha) == (64, 32)
    assert (own.sampling.temperature, own.sampling.top_p, own.sampling.top_k) == (0.7, 1.0, 0)
    assert own.enable_thinking is False and own.training.dtype == "bfloat16"
    assert (training.update.minibatch, training.update.steps) == (512, "natural")
    assert training.advantage.group_by == "episode" and training.advantage.eps == 1e-6
    assert (own.reward.code, own.reward.math, own.reward.format_penalty) == (
        "fraction", "equivalent", -0.1,
    )  # fmt: skip
    assert own.caps["Math"].model_dump() == {
        "prompt": {"default": 20480, "Single": 15360, "Eval-Opt": 30720}, "response": 5120,
    }  # fmt: skip
    assert own.caps["Code"].model_dump() == {
        "prompt": {"default": 10240, "Single": 4096}, "response": 2048,
    }  # fmt: skip
    assert own.workflow.max_iterations == {"Math": 3, "Code": 2}
    assert (own.workflow.votes, own.workflow.workers, own.workflow.history) == (3, 3, "shared")
    assert own.tasks["Math"].expect == {"train": 12704, "validation": 1412}
    assert (own.tasks["Math"].seed, own.tasks["Code"].validation) == (42, 1000)
    assert (own.evaluation.samples, own.evaluation.trajectory_problems) == (1, 100)
    assert [config.models[s].repo for s in config.grid.scales] == [
        "Qwen/Qwen3-0.6B", "Qwen/Qwen3-1.7B", "Qwen/Qwen3-4B",
    ]  # fmt: skip


def test_the_released_code_preset_differs_by_its_switches_only():
    paper, released = (
        flat(yaml.safe_load((FOLDER / f"{name}.yaml").read_text()))
        for name in ("paper", "paper-released-code")
    )
    different = {k for k in paper | released if paper.get(k) != released.get(k)}
    assert {key: released[key] for key in different - {"preset", "results_dir"}} == {
        "sampling.logprobs": "raw",
        "training.advantage.group_by": "released",
        "training.optimizer.tick": "role_update",
        "training.update.order": "by_length",
        "training.update.remainder": "kept",
        "reward.code": "all_pass",
        "reward.format_penalty": 0.0,
    }
