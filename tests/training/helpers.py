"""Rows of a small random policy, sampled from it, for tests of the update."""

from __future__ import annotations

import numpy as np
import torch

from rolewise.config import Config
from rolewise.policy.policy import Policy
from rolewise.policy.routing import adapter_of
from rolewise.sampling.base import Request, call_seed
from rolewise.sampling.torch_sampler import TorchSampler
from rolewise.training.rows import Row
from tests.configs import config as small_config
from tests.tiny import adapter, backbone, token_ids

ROLES = ("generator", "aggregator")


def make_config(settings: dict | None = None) -> Config:
    quick = {"ledger.permutations": 20, "training.update.minibatch": 1000}
    return small_config(settings=quick | (settings or {}))


def make_policy(policy: str, roles: tuple[str, ...] = ROLES) -> Policy:
    names = dict.fromkeys(adapter_of(policy, role) for role in roles)
    return Policy(backbone(), {name: adapter(seed, 0.2) for seed, name in enumerate(names)})


def make_rows(
    policy: Policy,
    routing: str,
    *,
    problems: int = 4,
    episodes: int = 2,
    slots: int = 3,
    roles: tuple[str, ...] = ROLES,
) -> list[Row]:
    """Rows of `slots` generators and one call of every other role per episode, sampled from `policy`."""
    calls = [("generator", slot) for slot in range(slots)] + [(role, 0) for role in roles[1:]]
    sampler = TorchSampler(policy.backbone, policy.linear, eos_ids=frozenset({1}), temperature=0.7)
    asked = []
    for problem in range(problems):
        for episode in range(episodes):
            for role, slot in calls:
                prompt = token_ids(5, problem) if role == "generator" else token_ids(9, len(asked))
                key = (problem, problem * episodes + episode, role, slot)
                asked.append((key, Request(prompt, adapter_of(routing, role), call_seed(key), 6)))
    sampler.submit([(i, request) for i, (_, request) in enumerate(asked)])
    done = {}
    while sampler.open:
        done.update(sampler.advance())
    advantages = np.random.default_rng(0).normal(size=problems * episodes)
    return [
        Row(
            role=role,
            slot=slot,
            turn=0,
            adapter=request.adapter,
            episode=episode,
            problem=f"p{problem}",
            prompt_ids=request.prompt_ids,
            completion_ids=done[i].ids,
            old_logprobs_T=done[i].logprobs_T,
            reward=1.0,
            advantage=float(advantages[episode]),
            entropies_T=done[i].entropies_T,
            top_probs_T=done[i].top_probs_T,
        )
        for i, ((problem, episode, role, slot), request) in enumerate(asked)
    ]


def gradient_of(policy: Policy, rows: list[Row], name: str, denominator: int) -> torch.Tensor:
    """The policy gradient of `rows` written out anew: no clipping, one row at a time."""
    own = policy.adapters[name]
    theta = own.theta.clone().requires_grad_()
    total = torch.zeros(())
    for row in rows:
        ids = torch.tensor(row.prompt_ids + row.completion_ids)
        start = len(row.prompt_ids) - 1

        def attend(_, q, k, v):
            q, k, v = (t.transpose(0, 1)[None] for t in (q, k, v))
            k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], dim=1) for t in (k, v))
            out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return out[0].transpose(0, 1)

        def linear(layer, group, x):
            a, bs = own.factors(theta, own.sites[layer, group])
            deltas = [b @ part for b, part in zip(bs, a.split(own.rank), strict=True)]
            weight = policy.backbone.layers[layer].linear[group] + torch.cat(deltas) * own.scale
            return x @ weight.T

        hidden = policy.backbone.forward(ids, torch.arange(len(ids)), attend, linear)
        log_p = (policy.backbone.logits(hidden[start:-1]) / 0.7).log_softmax(-1)
        new = log_p[range(row.tokens), list(row.completion_ids)]
        ratio = (new - torch.from_numpy(row.old_logprobs_T)).exp()
        total = total - (ratio * row.advantage).mean() / denominator
    return torch.autograd.grad(total, theta)[0]
