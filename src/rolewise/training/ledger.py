"""The gradient ledger: who pushes an adapter, how hard, and whether together. Pure vector arithmetic.

Inputs are the flat gradients of the parts of one adapter's update, before clipping; a role's parts
are its (slot, turn, block) cells, where a block is a fixed share of the step's problems.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rolewise.training.optimizer import cosine

PartKey = tuple[str, int, int, int]


@dataclass(frozen=True)
class RoleShare:
    """A role's part in its adapter's gradient."""

    norm: float
    share: float
    mass: float


@dataclass(frozen=True)
class Coherence:
    """How far parallel slots push in one direction: 1 = all equal, 1/n = all orthogonal."""

    value: float
    null_mean: float
    null_high: float
    amplification: float


def role_shares(gradients: dict[str, Tensor]) -> dict[str, RoleShare]:
    """Norm |g|, share g . G / |G|^2 (sums to 1) and mass |g| / sum |g| of every role."""
    total = sum(gradients.values())
    square = float(total @ total)
    norms = {role: float(g.norm()) for role, g in gradients.items()}
    whole = sum(norms.values())
    return {
        role: RoleShare(
            norm=norms[role],
            share=float(g @ total) / square if square else float("nan"),
            mass=norms[role] / whole if whole else float("nan"),
        )
        for role, g in gradients.items()
    }


def coherence(
    parts: dict[tuple[int, int], Tensor], permutations: int, seed: int
) -> Coherence | None:
    """Coherence |sum g|^2 / (n sum |g|^2) of slots, from gradients by (slot, block); None for one slot.

    The null shuffles slot labels within every block, which keeps the sum and breaks any slot's
    identity; `null_high` is its 95 % quantile. Amplification is |sum g| / mean |g|.
    """
    slots = sorted({slot for slot, _ in parts})
    blocks = sorted({block for _, block in parts})
    n = len(slots)
    if n < 2:
        return None
    keys = [(slot, block) for slot in slots for block in blocks if (slot, block) in parts]
    stacked = torch.stack([parts[key] for key in keys])
    gram = (stacked @ stacked.T).double().cpu().numpy()
    labels = np.array([slots.index(slot) for slot, _ in keys])
    square = float(gram.sum())

    def squares(assigned: np.ndarray) -> np.ndarray:
        """|g|^2 of every slot, for each row of slot labels `(trials, parts)`."""
        member = (assigned[:, None, :] == np.arange(n)[None, :, None]).astype(float)
        return (member @ gram * member).sum(-1).clip(min=0)

    own = squares(labels[None])[0]
    if not own.sum():
        return None
    rng = np.random.default_rng(seed)
    members = [[i for i, (_, b) in enumerate(keys) if b == block] for block in blocks]
    shuffled = np.tile(labels, (permutations, 1))
    for trial in shuffled:
        for index in members:
            trial[index] = rng.permutation(labels[index])
    null = square / (n * squares(shuffled).sum(-1))
    return Coherence(
        value=square / (n * own.sum()),
        null_mean=float(np.mean(null)) if permutations else float("nan"),
        null_high=float(np.quantile(null, 0.95)) if permutations else float("nan"),
        amplification=float(np.sqrt(square) / np.sqrt(own).mean()),
    )


def ledger_rows(
    step: int,
    adapter: str,
    roles: dict[str, Tensor],
    parts: dict[PartKey, Tensor],
    delta: Tensor,
    layers: dict[int, list[slice]] | None,
) -> list[dict]:
    """Rows of gradients.parquet for one adapter and step.

    Norms, shares and masses of roles, slots and turns; cosines between roles and between the slots of a
    role; `delta`: how far the adapter moved against the role's gradient, -delta . g / |g|.
    """
    rows = []

    def add(level: str, a: str, b: str, quantity: str, value: float) -> None:
        rows.append(
            {
                "step": step,
                "adapter": adapter,
                "level": level,
                "a": a,
                "b": b,
                "quantity": quantity,
                "value": value,
            }
        )

    def shares_and_cosines(level: str, gradients: dict[str, Tensor]) -> None:
        for name, entry in role_shares(gradients).items():
            add(level, name, "", "norm", entry.norm)
            add(level, name, "", "share", entry.share)
            add(level, name, "", "mass", entry.mass)
        names = list(gradients)
        for i, a in enumerate(names):
            for b in names[i + 1 :]:
                add(level, a, b, "cosine", cosine(gradients[a], gradients[b]))

    shares_and_cosines("role", roles)
    for role, gradient in roles.items():
        norm = float(gradient.norm())
        if norm:
            add("role", role, "", "delta", -float(delta @ gradient) / norm)
    for role in roles:
        by_slot = _sum_by(parts, role, f"{role}:", 1)
        by_turn = _sum_by(parts, role, f"{role}@", 2)
        if len(by_slot) > 1:
            shares_and_cosines("slot", by_slot)
        if len(by_turn) > 1:
            shares_and_cosines("turn", by_turn)
        for layer, slices in (layers or {}).items():
            square = sum(float(roles[role][s].square().sum()) for s in slices)
            add("layer", role, str(layer), "norm", square**0.5)
    return rows


def _sum_by(parts: dict[PartKey, Tensor], role: str, prefix: str, field: int) -> dict[str, Tensor]:
    sums: dict[str, Tensor] = {}
    for key in sorted(parts):
        if key[0] == role:
            label = f"{prefix}{key[field]}"
            sums[label] = sums[label] + parts[key] if label in sums else parts[key].clone()
    return sums
