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
    """How far parallel slots push in one direction: 1 = all equal, 1/slots = all orthogonal.

    `within` compares them block by block, beside its null of slots from different blocks.
    """

    value: float
    slots: int
    within: float
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
    """Coherence |sum g|^2 / (n sum |g|^2) of n slots, from gradients by (slot, block); None for one slot.

    `within` is the same with numerator and denominator summed over blocks. Its null permutes the blocks
    of every slot, so that slots of different problems meet; `null_high` is the 95 % quantile. For one
    block these are NaN. Amplification is |sum g| / mean |g|.
    """
    slots = sorted({slot for slot, _ in parts})
    blocks = sorted({block for _, block in parts})
    n = len(slots)
    if n < 2:
        return None
    nothing = torch.zeros_like(next(iter(parts.values())))
    stacked = torch.stack([parts.get((slot, block), nothing) for slot in slots for block in blocks])
    gram = (stacked @ stacked.T).double().cpu().numpy()
    cells = np.arange(len(gram)).reshape(n, len(blocks))
    square = max(gram.sum(), 0.0)
    own = np.array([gram[np.ix_(row, row)].sum() for row in cells]).clip(min=0)
    if not own.sum():
        return None
    within, null = np.full(1, np.nan), np.empty(0)
    if len(blocks) > 1:
        shuffled = np.tile(cells, (permutations, 1, 1))
        shuffled = np.random.default_rng(seed).permuted(shuffled, axis=-1)
        within, null = (
            # (trials, slots, slots, blocks): the products of the cells that share a column.
            gram[c[:, :, None], c[:, None]].sum((1, 2, 3)) / (n * gram.trace())
            for c in (cells[None], shuffled)
        )
    return Coherence(
        value=float(square / (n * own.sum())),
        slots=n,
        within=float(within[0]),
        null_mean=float(null.mean()) if len(null) else float("nan"),
        null_high=float(np.quantile(null, 0.95)) if len(null) else float("nan"),
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
