"""The in-process sampler: exact log-probs, draws of a call's own, nothing lost."""

import numpy as np
import pytest
import torch

from rolewise.policy.lora import AdapterLinear
from rolewise.policy.policy import Policy
from rolewise.policy.scoring import Packing, score
from rolewise.sampling.base import Request, call_seed
from rolewise.sampling.torch_sampler import TorchSampler
from tests.tiny import adapter, backbone, token_ids

EOS = frozenset({1, 2})


def sampler(policy: Policy, **options) -> TorchSampler:
    settings = {"eos_ids": EOS, "temperature": 0.7} | options
    return TorchSampler(policy.backbone, policy.linear, **settings)


def drain(one: TorchSampler) -> dict:
    done = {}
    while one.open:
        done.update(one.advance())
    return done


def requests(count: int, adapter_name: str | None = "a", tokens: int = 12) -> list[Request]:
    return [
        Request(token_ids(4 + i % 5, i // 3), adapter_name, call_seed(i), tokens)
        for i in range(count)
    ]


@pytest.fixture
def policy() -> Policy:
    return Policy(backbone(), {"a": adapter(0, 0.3), "b": adapter(1, 0.3)})


def test_logprobs_are_those_of_the_trainer(policy):
    asked = requests(40)
    one = sampler(policy)
    one.submit(list(enumerate(asked)))
    done = drain(one)
    rows = [(asked[i].prompt_ids, done[i].ids) for i in range(40)]
    with torch.no_grad():
        scores = score(
            policy.backbone, policy.linear("a"), Packing(rows, torch.device("cpu")), 0.7,
            distribution=True,
        )  # fmt: skip
    for name, values in (("logprobs_T", scores.logprobs_T), ("entropies_T", scores.entropies_T)):
        sampled = np.concatenate([getattr(done[i], name) for i in range(40)])
        assert np.abs(sampled - values.numpy()).max() < 1e-5


def test_a_draw_does_not_depend_on_the_batch(policy):
    asked = requests(30)
    together = sampler(policy)
    together.submit(list(enumerate(asked)))
    whole = drain(together)
    for i in (0, 7, 29):
        alone = sampler(policy)
        alone.submit([(0, asked[i])])
        assert drain(alone)[0].ids == whole[i].ids
    crowded = sampler(policy, max_rows=4)
    crowded.submit(list(enumerate(asked)))
    assert {i: c.ids for i, c in drain(crowded).items()} == {i: c.ids for i, c in whole.items()}


def test_late_requests_join_and_every_ticket_returns_once(policy):
    one = sampler(policy, max_rows=16)
    asked = requests(60, "a") + requests(60, "b")
    one.submit(list(enumerate(asked[:20])))
    seen, position = [], 20
    while one.open:
        seen += [ticket for ticket, _ in one.advance()]
        if position < len(asked):
            one.submit([(position, asked[position]), (position + 1, asked[position + 1])])
            position += 2
    assert sorted(seen) == list(range(len(asked)))


def test_a_completion_ends_with_its_end_token_or_at_its_limit(policy):
    one = sampler(policy)
    one.submit(list(enumerate(requests(80, tokens=9))))
    for completion in drain(one).values():
        assert all(i not in EOS for i in completion.ids[:-1])
        if completion.finish_reason == "stop":
            assert completion.ids[-1] in EOS
        else:
            assert len(completion.ids) == 9
        assert len(completion.logprobs_T) == len(completion.ids)


def test_each_request_is_served_by_its_own_adapter(policy):
    prompt = token_ids(6, 0)
    outputs = {}
    for name in (None, "a", "b"):
        one = sampler(policy)
        one.submit([(i, Request(prompt, name, i, 1)) for i in range(64)])
        outputs[name] = drain(one)[0].entropies_T[0]
        with torch.no_grad():
            packing = Packing([(prompt, (5,))], torch.device("cpu"))
            expected = score(
                policy.backbone, policy.linear(name), packing, 0.7, distribution=True
            ).entropies_T[0]
        assert abs(outputs[name] - float(expected)) < 1e-5
    assert len(set(outputs.values())) == 3


def test_an_updated_adapter_is_served_at_once(policy):
    one = sampler(policy)
    request = Request(token_ids(6, 0), "a", 3, 1)
    one.submit([(0, request)])
    before = drain(one)[0].entropies_T[0]
    policy.adapters["a"].theta.mul_(3)
    policy.adapters["a"].version += 1
    one.submit([(0, request)])
    assert drain(one)[0].entropies_T[0] != before


def test_draws_follow_the_distribution(policy):
    prompt = token_ids(6, 0)
    one = sampler(policy, max_rows=4096)
    one.submit([(i, Request(prompt, "a", call_seed("draw", i), 1)) for i in range(4000)])
    counts = np.bincount([c.ids[0] for c in drain(one).values()], minlength=40) / 4000
    with torch.no_grad():
        packing = Packing([(prompt, (i,)) for i in range(40)], torch.device("cpu"))
        p = score(policy.backbone, policy.linear("a"), packing, 0.7).logprobs_T.exp().numpy()
    assert abs(p.sum() - 1) < 1e-4
    assert np.abs(counts - p).max() < 4 * np.sqrt(p.max() / 4000)


def test_raw_logprobs_are_at_temperature_one(policy):
    asked = requests(5)
    one = sampler(policy, processed=False)
    one.submit(list(enumerate(asked)))
    done = drain(one)
    rows = [(asked[i].prompt_ids, done[i].ids) for i in range(5)]
    with torch.no_grad():
        values = score(
            policy.backbone, policy.linear("a"), Packing(rows, torch.device("cpu")), 1.0
        ).logprobs_T
    raw = np.concatenate([done[i].logprobs_T for i in range(5)])
    assert np.abs(raw - values.numpy()).max() < 1e-5


def test_the_linear_layers_of_the_base_model_carry_no_adapter(policy):
    assert policy.linear(None) == policy.backbone.plain_linear
    assert isinstance(policy.linear("a"), AdapterLinear)
