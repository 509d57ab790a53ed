"""Does training work on this device, and how fast? Voting steps of a random Qwen3-shaped model, no vLLM.

Trains a few steps under Isolated- and Shared-Policy in bf16 with gradient checkpointing, asserts what must
hold in that precision, and prints tokens per second and peak memory. Eight minutes at most on one GPU:

    python benchmarks/gpu_check.py
    python benchmarks/gpu_check.py --device cpu --shape tiny --prompt-tokens 16 --tokens 16   # a rehearsal
    python benchmarks/gpu_check.py --device cpu --prompts 2 --episodes 4 --steps 1 --policies IP --limit-gib 20
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections import defaultdict

import numpy as np
import torch

from rolewise.config import Config, parse, read_raw, with_settings
from rolewise.planning.sizes import PUBLISHED
from rolewise.policy.adapters import Adapter
from rolewise.policy.backbone import GROUPS, Backbone, Shape
from rolewise.policy.lora import Targets
from rolewise.policy.policy import Policy
from rolewise.policy.routing import adapter_of, adapters_of
from rolewise.policy.scoring import Packing, score
from rolewise.sampling.base import Completion, Request, call_seed
from rolewise.sampling.torch_sampler import TorchSampler
from rolewise.training.rows import Row
from rolewise.training.update import Updater

ROLES = ("generator", "aggregator")
VOTES = 3
TINY = Shape(
    layers=2, hidden=64, heads=4, kv_heads=2, head_dim=16, intermediate=128, vocab=512,
    rope_theta=1e6, norm_eps=1e-6,
)  # fmt: skip
SHAPES = {"tiny": TINY, "0.6B": PUBLISHED["Qwen/Qwen3-0.6B"][0]}
# Relative error of a sum of bf16 products taken in parts; root mean square of log-prob differences.
SUM_TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 2e-2}
LOGPROB_TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 0.1}


def random_backbone(shape: Shape, dtype: torch.dtype, device: str) -> Backbone:
    """A model of the given shape whose activations stay of order one."""
    generator = torch.Generator(device).manual_seed(0)

    def random(*size: int, scale: float) -> torch.Tensor:
        drawn = torch.randn(*size, generator=generator, device=device, dtype=torch.float32)
        return (drawn * scale).to(dtype)

    def ones(size: int) -> torch.Tensor:
        return torch.ones(size, device=device, dtype=dtype)

    # Outputs of a few nats of spread, as a trained model's are.
    embed = random(shape.vocab, shape.hidden, scale=3 * shape.hidden**-0.5)
    weights = {"model.embed_tokens.weight": embed, "model.norm.weight": ones(shape.hidden)}
    for i in range(shape.layers):
        prefix = f"model.layers.{i}."
        for member in (member for members in GROUPS.values() for member in members):
            outputs, inputs = shape.linear_sizes(member)
            weights[f"{prefix}{member}.weight"] = random(outputs, inputs, scale=inputs**-0.5)
        for norm in ("input_layernorm", "post_attention_layernorm"):
            weights[f"{prefix}{norm}.weight"] = ones(shape.hidden)
        for norm in ("self_attn.q_norm", "self_attn.k_norm"):
            weights[f"{prefix}{norm}.weight"] = ones(shape.head_dim)
    return Backbone._assemble(shape, weights)


def random_policy(backbone: Backbone, policy: str, config: Config) -> Policy:
    """Adapters that already differ from the base model, so that serving another would show."""
    adapters = {}
    for seed, name in enumerate(adapters_of(policy, ROLES)):
        made = Adapter.fresh(backbone.shape, config.lora.rank, config.lora.alpha, seed)
        noise = torch.Generator().manual_seed(seed)
        theta = made.theta + torch.randn(made.theta.shape, generator=noise) * 1e-3
        adapters[name] = Adapter(made.shape, made.rank, made.alpha, theta.to(backbone.device))
    return Policy(backbone, adapters)


class Sampling:
    """Samples calls and counts tokens and seconds."""

    def __init__(self, policy: Policy, routing: str, config: Config):
        self.policy, self.routing, self.config = policy, routing, config
        self.tokens, self.seconds = 0, 0.0

    def run(
        self, role: str, prompts: list[tuple[int, ...]], tokens: int, *seed
    ) -> list[Completion]:
        """One completion of exactly `tokens` tokens per prompt."""
        sampler = TorchSampler(
            self.policy.backbone,
            self.policy.linear,
            eos_ids=frozenset(),
            temperature=self.config.sampling.temperature,
        )
        began = time.perf_counter()
        name = adapter_of(self.routing, role)
        sampler.submit(
            [
                (i, Request(prompt, name, call_seed(*seed, role, i), tokens))
                for i, prompt in enumerate(prompts)
            ]
        )
        done: dict[int, Completion] = {}
        while sampler.open:
            done.update(sampler.advance())
        synchronise(self.policy.backbone)
        self.seconds += time.perf_counter() - began
        self.tokens += sum(len(completion.ids) for completion in done.values())
        return [done[i] for i in range(len(prompts))]


def voting_rows(sampling: Sampling, options: argparse.Namespace, step: int) -> list[Row]:
    """The rows of one Voting step: generators, and aggregators that read what the generators wrote."""
    generator = np.random.default_rng(step)
    vocab = sampling.policy.backbone.shape.vocab
    problems = [
        tuple(generator.integers(0, vocab, options.prompt_tokens).tolist())
        for _ in range(options.prompts)
    ]
    episodes = [problem for problem in problems for _ in range(options.episodes)]
    asked = [problem for problem in episodes for _ in range(VOTES)]
    written = sampling.run("generator", asked, options.tokens, step)
    part = options.prompt_tokens // (VOTES + 1)
    read = [
        sum((c.ids[:part] for c in written[e * VOTES : (e + 1) * VOTES]), problem[:part])
        for e, problem in enumerate(episodes)
    ]
    chosen = sampling.run("aggregator", read, options.tokens, step)
    rewards = generator.normal(size=len(episodes))
    calls = [("generator", i // VOTES, i % VOTES, asked[i], c) for i, c in enumerate(written)]
    calls += [("aggregator", e, 0, read[e], c) for e, c in enumerate(chosen)]
    return [
        Row(
            role=role,
            slot=slot,
            turn=0,
            adapter=adapter_of(sampling.routing, role),
            episode=episode,
            problem=f"p{episode // options.episodes}",
            prompt_ids=prompt,
            completion_ids=completion.ids,
            old_logprobs_T=completion.logprobs_T,
            reward=float(rewards[episode]),
            advantage=float(rewards[episode]),
            entropies_T=completion.entropies_T,
            top_probs_T=completion.top_probs_T,
            index=i,
        )
        for i, (role, episode, slot, prompt, completion) in enumerate(calls)
    ]


def check_sum(policy: Policy, rows: list[Row], config: Config) -> float:
    """Relative error of the sum of the gradients of roles and slots against the gradient in one piece."""
    name = rows[0].adapter
    by_part: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        part = f"{row.role} {row.slot}"
        if row.adapter == name and len(by_part[part]) < 2:
            by_part[part].append(row)
    chosen = [row for own in by_part.values() for row in own]
    theta, linear = policy.adapters[name].theta, policy.linears[name]

    def gradient(parts_R: list[int]) -> torch.Tensor:
        packing = Packing(
            [(r.prompt_ids, r.completion_ids) for r in chosen], policy.backbone.device, parts_R
        )
        flats_PS = theta.new_zeros(max(parts_R) + 1, len(theta))
        linear.targets = Targets(flats_PS, packing.segments)
        scores = score(
            policy.backbone, linear, packing, config.sampling.temperature, recompute=True
        )
        scores.logprobs_T.mean().backward()
        return flats_PS.sum(0)

    # Parts share no prompt, so that equal prompts of two parts are run twice; the gradient is the same.
    whole = gradient([0] * len(chosen))
    parts = gradient([i for i, own in enumerate(by_part.values()) for _ in own])
    return float((whole - parts).norm() / whole.norm())


def run(policy_name: str, backbone: Backbone, config: Config, options: argparse.Namespace) -> dict:
    """Train `options.steps` steps under a policy; asserts the invariants and gives the figures."""
    policy = random_policy(backbone, policy_name, config)
    updater = Updater(policy, config, 0)
    sampling = Sampling(policy, policy_name, config)
    dtype, frozen = backbone.dtype, backbone.layers[0].linear["qkv"].clone()
    trained, seconds, mismatch, error = 0, 0.0, 0.0, 0.0
    for step in range(1, options.steps + 1):
        rows = voting_rows(sampling, options, step)
        before = {name: adapter.theta.clone() for name, adapter in policy.adapters.items()}
        scored = updater.scorer.logprobs(rows)
        difference = np.concatenate(
            [a - row.old_logprobs_T for a, row in zip(scored, rows, strict=True)]
        )
        mismatch = max(mismatch, float(np.sqrt(np.mean(difference**2))))
        error = max(error, check_sum(policy, rows, config))
        began = time.perf_counter()
        report = updater.update(step, rows, ledger=True, probe=step == 1)
        synchronise(backbone)
        seconds += time.perf_counter() - began
        trained += sum(row.tokens for row in rows)
        assert all(np.isfinite(values).all() for values in report.after), "log-probs not finite"
        for name, entry in report.adapters.items():
            assert np.isfinite(entry.grad_norm) and entry.grad_norm > 0, f"{name}: {entry}"
            assert not torch.equal(before[name], policy.adapters[name].theta), f"{name} stood still"
        for role in ROLES:
            assert report.roles[role].share is not None, f"no gradient of {role}"
        print(f"  {policy_name} step {step}: {sampling.seconds:.1f} s sampling so far, "
              f"{seconds:.1f} s updating", flush=True)  # fmt: skip
    assert torch.equal(frozen, backbone.layers[0].linear["qkv"]), "the base model changed"
    assert mismatch < LOGPROB_TOLERANCE[dtype], f"sampler and trainer differ by {mismatch:.3g} nats"
    assert error < SUM_TOLERANCE[dtype], (
        f"gradients of roles and slots miss their sum by {error:.3g}"
    )
    return {
        "policy": policy_name,
        "sampled_tokens_per_s": round(sampling.tokens / sampling.seconds, 1),
        "trained_tokens_per_s": round(trained / seconds, 1),
        "sampler_trainer_rms_nats": mismatch,
        "sum_of_parts_relative_error": error,
        "peak_gib": round(peak_gib(backbone), 2),
    }


def synchronise(backbone: Backbone) -> None:
    """Wait for the device, so that clocks tell the truth."""
    if backbone.device.type == "cuda":
        torch.cuda.synchronize()


def peak_gib(backbone: Backbone) -> float:
    """Largest memory so far in GiB: of the GPU, else of the process."""
    if backbone.device.type == "cuda":
        return torch.cuda.max_memory_allocated() / 2**30
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def read_options(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--shape", default="0.6B", choices=SHAPES)
    parser.add_argument("--dtype", default="bfloat16", choices=("bfloat16", "float32"))
    parser.add_argument("--policies", nargs="+", default=["IP", "SP"], choices=("IP", "SP"))
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--episodes", type=int, default=8)
    parser.add_argument("--prompt-tokens", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=512, help="of every completion")
    parser.add_argument("--microbatch-tokens", type=int, default=16384)
    parser.add_argument("--limit-gib", type=float, help="fail above this peak memory")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> list[dict]:
    """Run the check and print one JSON line per policy; AssertionError if an invariant breaks."""
    options = read_options(arguments)
    if options.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("gpu_check: no GPU here; rehearse with --device cpu --shape tiny")
    settings = {
        "sampling.backend": "torch",
        "training.update.microbatch_tokens": options.microbatch_tokens,
        "training.update.minibatch": 64,
    }
    paper = read_raw(["config.yaml", "workflow/presets/paper.yaml"])
    config = parse(with_settings(paper, settings))
    backbone = random_backbone(SHAPES[options.shape], getattr(torch, options.dtype), options.device)
    results = []
    for policy in options.policies:
        results.append(run(policy, backbone, config, options))
        print(json.dumps(results[-1]), flush=True)
    peak = max(result["peak_gib"] for result in results)
    if options.limit_gib is not None and peak > options.limit_gib:
        raise SystemExit(f"gpu_check: peak memory {peak} GiB, limit {options.limit_gib} GiB")
    return results


if __name__ == "__main__":
    main()
