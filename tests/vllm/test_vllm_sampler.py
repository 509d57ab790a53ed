"""vLLM behind the sampler interface: the trainer's log-probs, the right adapter, one version at a time."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from rolewise.errors import ConfigError, TrainingError
from rolewise.evaluation.evaluate import evaluate
from rolewise.grid import parse_cell
from rolewise.policy.policy import routes
from rolewise.policy.scoring import Packing, score
from rolewise.runs.layout import layout
from rolewise.runs.state import StateDir
from rolewise.sampling import vllm_engine
from rolewise.sampling.base import Request, call_seed
from rolewise.sampling.episodes import run_episodes
from rolewise.sampling.stage import open_sampler
from rolewise.sampling.vllm_engine import close_engine
from rolewise.sampling.vllm_sampler import VllmSampler
from rolewise.training.loop import train
from tests.study import tiny_study
from tests.vllm.conftest import CELL, disturb

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(600)]


def sample(sampler, requests):
    with sampler.serving():
        sampler.submit(list(enumerate(requests)))
        done = {}
        while sampler.open:
            done.update(sampler.advance())
    return [done[i] for i in range(len(requests))]


def trainer(policy, adapter, prompts, completions, temperature=0.7):
    rows = [(p, c.ids) for p, c in zip(prompts, completions, strict=True)]
    packing = Packing(rows, policy.backbone.device)
    with torch.no_grad():
        return score(
            policy.backbone, policy.linear(adapter), packing, temperature
        ).logprobs_T.numpy()


def prompts_of(stage, count):
    return [stage.tokenizer.encode(f"{p.prompt}\n") for p in stage.problems[:count]]


def requests(stage, adapter, count=12, tokens=16):
    return [
        Request(prompt, adapter, call_seed("test", i), tokens)
        for i, prompt in enumerate(prompts_of(stage, count))
    ]


def test_every_role_gets_the_logprobs_of_the_trainer_and_of_nobody_else(stage, policy):
    starts = [(problem, k) for problem in stage.problems[:6] for k in range(2)]
    with open_sampler(stage, policy) as sampler, sampler.serving():
        episodes = run_episodes(stage.rollout(routes("IP")), sampler, starts, ("t",))
    roles = stage.topology.roles
    for role in roles:
        calls = [c for e in episodes for c in e.calls if c.call.role == role]
        own = [c.completion for c in calls]
        sampled = np.concatenate([c.logprobs_T for c in own])
        prompts = [c.prompt_ids for c in calls]
        assert np.abs(sampled - trainer(policy, role, prompts, own)).max() < 1e-4
        for other in {None, *roles} - {role}:
            assert np.abs(sampled - trainer(policy, other, prompts, own)).max() > 0.05


def test_a_new_version_is_served_although_its_prompts_are_cached(stage, policy):
    asked = requests(stage, "generator")
    prompts = [r.prompt_ids for r in asked]
    with open_sampler(stage, policy) as sampler:
        before = sample(sampler, asked)
        old = trainer(policy, "generator", prompts, before)
        disturb(policy.adapters["generator"], 7)
        after = sample(sampler, asked)
    sampled = np.concatenate([c.logprobs_T for c in after])
    assert np.abs(np.concatenate([c.logprobs_T for c in before]) - old).max() < 1e-4
    assert np.abs(sampled - trainer(policy, "generator", prompts, after)).max() < 1e-4
    assert [c.ids for c in before] != [c.ids for c in after]


def test_two_versions_never_mix(stage, policy):
    with open_sampler(stage, policy) as sampler:
        with sampler.serving():
            sampler.submit(list(enumerate(requests(stage, "generator", 2))))
            sampler.advance()
            disturb(policy.adapters["generator"], 8)
            with pytest.raises(TrainingError, match="must not mix"):
                sampler.submit(list(enumerate(requests(stage, "generator", 2), 2)))
        assert sampler.open == 0


def test_calls_outside_of_a_serving_block_are_refused(stage, policy):
    with open_sampler(stage, policy) as sampler, pytest.raises(TrainingError, match="outside"):
        sampler.submit(list(enumerate(requests(stage, "generator", 1))))


def test_the_same_call_gives_the_same_tokens_in_any_company(stage, policy):
    asked = requests(stage, "generator")
    with open_sampler(stage, policy) as sampler:
        together = sample(sampler, asked)
        alone = [sample(sampler, [request])[0] for request in asked[:4]]
    assert [c.ids for c in alone] == [c.ids for c in together[:4]]


def test_without_seeds_the_same_calls_give_the_same_tokens(stage, policy, monkeypatch):
    close_engine()
    monkeypatch.setattr(vllm_engine, "seeds_work", lambda engine: False)
    asked = requests(stage, "generator")
    with open_sampler(stage, policy) as sampler:
        first = sample(sampler, asked)
        torch.manual_seed(99)
        again = sample(sampler, asked)
    close_engine()
    assert [c.ids for c in first] == [c.ids for c in again]
    assert len({c.ids for c in first}) > 1


def test_completions_end_with_an_end_token_or_at_the_limit(stage, policy):
    with open_sampler(stage, policy) as sampler:
        done = sample(sampler, requests(stage, None, 30, tokens=24))
    for completion in done:
        ended = completion.ids[-1] in stage.tokenizer.eos_ids
        assert completion.finish_reason == ("stop" if ended else "length")
        assert not set(completion.ids[:-1]) & stage.tokenizer.eos_ids
        assert len(completion.logprobs_T) == len(completion.ids)


def test_a_call_that_the_engine_refuses_is_an_error_and_harms_no_other(stage, policy):
    good = requests(stage, "generator", 2)
    longest = stage.rollout(None).prompt_cap + stage.rollout(None).response_cap
    bad = Request((5,) * (longest + 1), "generator", 1, 4)
    with open_sampler(stage, policy) as sampler:
        done = sample(sampler, [good[0], bad, good[1]])
    assert [c.finish_reason == "error" for c in done] == [False, True, False]
    assert done[1].ids == ()


def test_raw_logprobs_are_those_at_temperature_one(study, stage, policy):
    raw = study.model_copy(
        update={"sampling": study.sampling.model_copy(update={"logprobs": "raw"})}
    )
    own = type(stage)(**(vars(stage) | {"config": raw}))
    asked = requests(stage, "generator", 4)
    with open_sampler(own, policy) as sampler:
        done = sample(sampler, asked)
    expected = trainer(policy, "generator", [r.prompt_ids for r in asked], done, temperature=1.0)
    assert np.abs(np.concatenate([c.logprobs_T for c in done]) - expected).max() < 1e-4


def test_unknown_engine_arguments_are_named(stage, policy):
    close_engine()
    with pytest.raises(ConfigError, match=r"sampling\.vllm.*no_such"):
        vllm_engine.open_engine(Path("m"), policy, 64, True, {"no_such": 1})


def test_a_cell_trains_and_evaluates(tmp_path):
    config = tiny_study(tmp_path, {"sampling.backend": "vllm", "training.steps": 2}, head_dim=32)
    cell = parse_cell(config, "Eval-Opt-SP-0.1M-Code")
    manifest = json.loads(train(config, cell, 0).read_text())
    assert manifest["episodes"] == 2 * 3 * 4
    rows = StateDir(layout(config).training_state(config, cell, 0)).rows("metrics")
    assert {row["role"] for row in rows} == {"all", "generator", "evaluator"}
    assert all(abs(row["kl_sampler"]) < 1e-6 and abs(row["chi2_mismatch"]) < 1e-3 for row in rows)
    assert all(row["entropy"] > 0 for row in rows)
    evaluate(config, cell, 0)
    assert (layout(config).cell(cell, 0) / "accuracy.csv").is_file()


def stay(self, name):
    """A synchronisation that believes it has loaded the adapter."""
    self._served[name] = self._policy.adapters[name].version, self._served[name][1]


def serve_base(self, name):
    """A synchronisation that loads an adapter of zeros."""
    adapter = self._policy.adapters[name]
    kept = adapter.theta.clone()
    adapter.theta.zero_()
    load(self, name)
    adapter.theta.copy_(kept)


load = VllmSampler._load


@pytest.mark.parametrize(
    ("broken", "served"), [(stay, "but the version before"), (serve_base, "but the base model")]
)
def test_a_broken_synchronisation_stops_the_run(tmp_path, monkeypatch, broken, served):
    config = tiny_study(tmp_path, {"sampling.backend": "vllm", "training.steps": 4}, head_dim=32)

    def break_once_trained(self, name):
        trained = name in self._served and self._served[name][0] > 0
        (broken if trained else load)(self, name)

    monkeypatch.setattr(VllmSampler, "_load", break_once_trained)
    cell = parse_cell(config, CELL)
    with pytest.raises(TrainingError, match=f"does not serve what the trainer holds.*{served}"):
        train(config, cell, 0)
    rows = StateDir(layout(config).training_state(config, cell, 0)).rows("metrics")
    assert {row["step"] for row in rows} == {1, 2}


def test_the_engine_starts_no_process_and_leaves_none(stage, policy):
    def children():
        return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()

    before = children()
    with open_sampler(stage, policy) as sampler:
        sample(sampler, requests(stage, "generator", 2))
        assert children() == before


def test_two_processes_train_like_one(tmp_path):
    script = f"""
import sys
from pathlib import Path
from rolewise.grid import parse_cell
from rolewise.training.loop import train
from tests.study import tiny_study
settings = {{"sampling.backend": "vllm", "training.steps": 2, "resources.processes": 2}}
config = tiny_study(Path({str(tmp_path)!r}), settings, head_dim=32)
train(config, parse_cell(config, {CELL!r}), 0)
"""
    file = tmp_path / "run.py"
    file.write_text(script)
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(file)]
    environment = os.environ | {"PYTHONPATH": os.getcwd(), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *launch], env=environment, capture_output=True, text=True, timeout=400,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(list(tmp_path.glob("cells/*/seed0/manifest.json"))) == 1
