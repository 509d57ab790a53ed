"""The check for GPUs, rehearsed on a tiny model; at the size of Qwen3-0.6B it takes many minutes."""

import json

import pytest

from benchmarks import gpu_check

TINY = ["--device", "cpu", "--shape", "tiny", "--prompts", "2", "--episodes", "2", "--steps", "2",
        "--prompt-tokens", "8", "--tokens", "6"]  # fmt: skip


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_the_invariants_hold_and_the_figures_are_printed(dtype, capsys):
    results = gpu_check.main([*TINY, "--dtype", dtype])
    assert [result["policy"] for result in results] == ["IP", "SP"]
    assert all(result["trained_tokens_per_s"] > 0 for result in results)
    printed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert [json.loads(line) for line in printed] == results


def test_a_sampler_of_another_policy_is_found(monkeypatch):
    sampler = gpu_check.TorchSampler
    monkeypatch.setattr(
        gpu_check,
        "TorchSampler",
        lambda backbone, linear, **options: sampler(
            backbone, lambda name: backbone.plain_linear, **options
        ),
    )
    with pytest.raises(AssertionError, match="sampler and trainer differ"):
        gpu_check.main([*TINY, "--dtype", "float32", "--policies", "SP"])


def test_too_much_memory_fails():
    with pytest.raises(SystemExit, match="peak memory"):
        gpu_check.main([*TINY, "--policies", "IP", "--limit-gib", "0.001"])


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_voting_step_at_the_size_of_qwen3_fits_20_gib():
    # CPUs without bf16 arithmetic emulate it, many times slower than float32.
    arguments = ["--device", "cpu", "--dtype", "float32"]
    arguments += ["--prompts", "2", "--episodes", "4", "--steps", "1"]
    limits = ["--policies", "IP", "--microbatch-tokens", "8192", "--limit-gib", "20"]
    (result,) = gpu_check.main(arguments + limits)
    assert 1 < result["peak_gib"] < 20
