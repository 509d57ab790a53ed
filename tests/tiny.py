"""A random Qwen3-shaped model of a few thousand parameters, for tests of sampling and training."""

from __future__ import annotations

import torch

from rolewise.policy.adapters import Adapter
from rolewise.policy.backbone import GROUPS, Backbone, Shape

SHAPE = Shape(
    layers=2,
    hidden=32,
    heads=4,
    kv_heads=2,
    head_dim=8,
    intermediate=48,
    vocab=40,
    rope_theta=10000.0,
    norm_eps=1e-6,
)


def tensors(seed: int = 0) -> dict[str, torch.Tensor]:
    """Weights under their Hugging Face names."""
    generator = torch.Generator().manual_seed(seed)

    def random(*size: int) -> torch.Tensor:
        return torch.randn(*size, generator=generator) * 0.2

    weights = {"model.embed_tokens.weight": random(SHAPE.vocab, SHAPE.hidden)}
    weights["model.norm.weight"] = 1 + random(SHAPE.hidden)
    for i in range(SHAPE.layers):
        prefix = f"model.layers.{i}."
        for members in GROUPS.values():
            for member in members:
                weights[f"{prefix}{member}.weight"] = random(*SHAPE.linear_sizes(member))
        for name, size in (
            ("input_layernorm", SHAPE.hidden),
            ("post_attention_layernorm", SHAPE.hidden),
            ("self_attn.q_norm", SHAPE.head_dim),
            ("self_attn.k_norm", SHAPE.head_dim),
        ):
            weights[f"{prefix}{name}.weight"] = 1 + random(size)
    return weights


def backbone(seed: int = 0, dtype: torch.dtype = torch.float32) -> Backbone:
    """The random model."""
    return Backbone._assemble(SHAPE, {k: v.to(dtype) for k, v in tensors(seed).items()})


def adapter(seed: int = 0, size: float = 0.05) -> Adapter:
    """An adapter whose B is not zero, so that it changes the model."""
    made = Adapter.fresh(SHAPE, rank=4, alpha=8, seed=seed)
    made.theta += (
        torch.randn(made.theta.shape, generator=torch.Generator().manual_seed(seed)) * size
    )
    made.version += 1
    return made


def token_ids(count: int, seed: int) -> tuple[int, ...]:
    """Random token ids above the special ones (0..3)."""
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randint(4, SHAPE.vocab, (count,), generator=generator).tolist())
