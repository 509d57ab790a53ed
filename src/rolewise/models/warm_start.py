"""Training a tiny causal model from scratch on transcripts, on the CPU, reproducibly."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import Qwen3ForCausalLM

from rolewise.errors import TrainingError

BATCHES_SORTED = 32
LAST_SHARE = 0.05


@dataclass(frozen=True)
class Row:
    """Token ids of a conversation and the weight of each one's prediction, 0 for prompts."""

    ids: tuple[int, ...]
    weights: tuple[float, ...]


def train(
    model: Qwen3ForCausalLM, rows: Sequence[Row], steps: int, batch: int, lr: float, seed: int
) -> float:
    """Cross-entropy training in place; gives the mean loss of the last 5 % of steps, nats.

    AdamW with a linear warm-up and a cosine decay. Rows of similar length share a batch, so little
    padding is computed; padding stands on the right, where a causal model never looks.
    """
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(
        parameters, lr=lr, betas=(0.9, 0.98), weight_decay=0.01, fused=True
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate(step, steps))
    model.train()
    tail: list[float] = []
    for step, chosen in zip(range(steps), _batches(rows, batch, random.Random(seed)), strict=False):
        loss = _loss(model, [rows[i] for i in chosen])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
        if step >= steps * (1 - LAST_SHARE) - 1:
            tail.append(loss.item())
            if not math.isfinite(tail[-1]):
                raise TrainingError(
                    f"warm start: the loss is {tail[-1]} at step {step + 1}; lower warm_start_lr"
                )
    model.eval()
    return sum(tail) / len(tail)


def _rate(step: int, steps: int) -> float:
    warmup = max(1, steps // 20)
    if step < warmup:
        return (step + 1) / warmup
    return 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup)))


def _batches(rows: Sequence[Row], size: int, rng: random.Random) -> Iterator[list[int]]:
    """Endless batches of row indices: shuffled, sorted by length within a window, shuffled again."""
    while True:
        order = rng.sample(range(len(rows)), len(rows))
        window = size * BATCHES_SORTED
        for start in range(0, len(order), window):
            near = sorted(order[start : start + window], key=lambda i: len(rows[i].ids))
            batches = [near[k : k + size] for k in range(0, len(near), size)]
            rng.shuffle(batches)
            yield from batches


def _loss(model: Qwen3ForCausalLM, rows: Sequence[Row]) -> Tensor:
    width = max(len(row.ids) for row in rows)
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    weights = torch.zeros(len(rows), width)
    for k, row in enumerate(rows):
        ids[k, : len(row.ids)] = torch.tensor(row.ids)
        weights[k, : len(row.ids)] = torch.tensor(row.weights)
    hidden = model.model(input_ids=ids[:, :-1], use_cache=False).last_hidden_state
    ids, weights = ids[:, 1:], weights[:, 1:]
    wanted = weights > 0
    losses = F.cross_entropy(model.lm_head(hidden[wanted]), ids[wanted], reduction="none")
    return (losses * weights[wanted]).sum() / weights.sum()
