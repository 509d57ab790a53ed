"""The clipped policy-gradient objective of one row, and its optional terms. Pure tensor functions.

T: tokens of all rows of a micro-batch, one row after the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rolewise.config import Loss

LOG_RATIO_LIMIT = 20.0


@dataclass(frozen=True)
class TokenLoss:
    """Loss of every token, and what is logged of the policy ratio."""

    loss_T: Tensor
    ratio_T: Tensor
    clipped_T: Tensor


def log_ratio(new_T: Tensor, old_T: Tensor) -> Tensor:
    """log(pi_new / pi_old), limited to +-20 so that its exponential stays finite."""
    return (new_T - old_T).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)


def clipped_loss(new_T: Tensor, old_T: Tensor, advantage_T: Tensor, settings: Loss) -> TokenLoss:
    """PPO's clipped surrogate with asymmetric range and dual clip (to be minimised).

    `-min(ratio A, clip(ratio, 1 - low, 1 + high) A)`; for A < 0 at most `dual_clip * |A|`.
    """
    ratio = log_ratio(new_T, old_T).exp()
    bounded = ratio.clamp(1 - settings.clip_low, 1 + settings.clip_high)
    plain, limited = -ratio * advantage_T, -bounded * advantage_T
    loss = torch.maximum(plain, limited)
    clipped = limited > plain
    if settings.dual_clip is not None:
        ceiling = -settings.dual_clip * advantage_T
        cut = (advantage_T < 0) & (loss > ceiling)
        loss = torch.where(cut, ceiling, loss)
        clipped = clipped | cut
    return TokenLoss(loss, ratio.detach(), clipped)


def importance_weights(trainer_T: Tensor, sampler_T: Tensor, settings: Loss) -> Tensor:
    """Weights pi_trainer / pi_sampler that undo a mismatch: off (1), truncated or masked at the cap."""
    if settings.importance == "off":
        return torch.ones_like(trainer_T)
    weight = log_ratio(trainer_T, sampler_T).exp()
    if settings.importance == "truncate":
        return weight.clamp(max=settings.importance_cap)
    return torch.where(weight <= settings.importance_cap, weight, torch.zeros_like(weight))


def k3(log_pi_T: Tensor, log_reference_T: Tensor) -> Tensor:
    """Estimate of KL(pi || reference) per sampled token: r - log r - 1 with r = reference / pi.

    As a value it is unbiased for tokens drawn from pi. As a loss its gradient is that of the reverse
    direction, KL(reference || pi), weighted by the samples.
    """
    log_r = log_ratio(log_reference_T, log_pi_T)
    return log_r.exp() - log_r - 1


def chi2(new_T: Tensor, old_T: Tensor) -> Tensor:
    """rho^2 - 1 per token, log rho clamped to +-20 (mean over tokens: chi-square divergence)."""
    return (2 * log_ratio(new_T, old_T)).exp() - 1
