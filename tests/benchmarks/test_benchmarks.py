"""The benchmark scripts run on their smallest load, and their arithmetic is right."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import ours, run, scaling
from benchmarks.measuring import Laps
from benchmarks.model import build
from benchmarks.workload import LOADS, boxed, reward, sums

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return build(tmp_path_factory.mktemp("bench") / "model", steps=0)


@pytest.mark.parametrize("workflow", ["single", "pair", "voting"])
def test_a_step_trains_every_sampled_row(model, workflow):
    bench, laps = ours.Bench(ours.defaults(model, workflow=workflow, load="tiny")), Laps()
    rows = bench.step(0, laps)
    load = LOADS["tiny"]
    calls = {"single": 1, "pair": 2, "voting": 4}[workflow]
    assert len(rows) == load.prompts * load.generations * calls == laps.steps[0]["rows"]
    assert sum(row.tokens for row in rows) == laps.steps[0]["sampled"]
    assert bench.mismatch_of(0)["max"] < 1e-5


def test_an_exact_load_ignores_the_end_of_turn(model):
    bench, laps = ours.Bench(ours.defaults(model, load="B", prompts=1, tokens=5)), Laps()
    assert {row.tokens for row in bench.step(0, laps)} == {5}


@pytest.mark.parametrize(
    "arguments",
    [
        ("limits", "--load", "tiny", "--repeats", "1"),
        ("ledger", "--load", "tiny", "--steps", "1", "--warmup", "1"),
        ("growth", "--sizes", "8", "--episodes", "8"),
    ],
)
def test_a_script_prints_one_line_of_json(model, arguments):
    name, *options = arguments
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}", str(model), *options],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    (line,) = done.stdout.splitlines()
    assert json.loads(line)


def _steps(seconds, rows=1, **more):
    spread = {"median": seconds, "min": seconds, "max": seconds}
    parts = dict.fromkeys(("step", "sample", "grade", "update"), spread)
    return {"seconds": parts, "rows": rows, "peak_memory_mb": 100 * seconds} | more


def test_the_summary_compares_what_it_says():
    rates = {"sampled_tok_s": 1000.0, "trained_tok_s": 1e4}
    overhead = {"roles": 0.01, "slots": 0.11, "ratios": 0.21}
    runs = {
        "ours A": [_steps(1.0, **rates), _steps(3.0, **rates), _steps(2.0, **rates)],
        "TRL A": [_steps(4.0)],
        "ours B": [_steps(2.0, **rates)],
        "TRL B": [_steps(3.0)],
        "limits B": [{"gemm_flops": 8.6e10}],
        "ours pair": [_steps(1.0)],
        "CoMLRL pair": [_steps(5.0)],
        "ours Voting": [_steps(2.0, rows=4)],
        "CoMLRL chain": [_steps(6.0, rows=2)],
        "ledger": [{"overhead": overhead, "every": 5}],
    }
    found = run.summarise(runs, [1.7, 1.9, 1.8])
    assert found == pytest.approx(
        {
            "sa_vs_trl_a": 2.0,
            "sa_vs_trl_b": 1.5,
            "memory_vs_trl_a": 0.5,
            "memory_vs_trl_b": 2 / 3,
            "pair_vs_comlrl": 5.0,
            "chain_vs_comlrl": 6.0,
            "sampling_tok_s_a": 1000.0,
            "sampling_tok_s_b": 1000.0,
            "update_gemm_share_b": 0.5,
            "ledger_overhead": 0.03,
            "ledger_overhead_roles": 0.01,
            "ledger_overhead_slot_step": 0.11,
            "ratio_pass_overhead": 0.2,
            "side_by_side": 1.8,
        }
    )


def test_an_exponent_is_the_slope_of_a_power_law():
    assert scaling.exponent({1: 3.0, 2: 12.0, 4: 48.0}) == pytest.approx(2.0)


def test_problems_and_rewards_are_the_same_for_every_contender():
    assert sums(3, seed=4) == sums(3, seed=4) != sums(3, seed=5)
    assert reward("am-z") == 0.5
    assert reward("") == 0.0
    assert boxed(r"so \boxed{3} or \boxed{4}") == "4"
