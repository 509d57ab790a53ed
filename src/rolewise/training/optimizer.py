"""One optimiser per adapter: schedule, clipping, damping, and a state that can be saved exactly."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.optim.adamw import adamw

from rolewise.config import Training
from rolewise.policy.adapters import Adapter


@dataclass(frozen=True)
class StepReport:
    """What one optimiser step did. Norms are of the whole adapter."""

    grad_norm: float
    lr: float
    delta: Tensor


class AdapterOptimizer:
    """AdamW (or SGD) on an adapter's flat vector, linear warm-up, then constant."""

    def __init__(self, adapter: Adapter, settings: Training):
        self.adapter, self.settings = adapter, settings
        self.moments: dict[str, Tensor] = {}
        if settings.optimizer.kind == "adamw":
            zero = torch.zeros_like(adapter.theta)
            self.moments = {
                "step": torch.tensor(0.0),
                "exp_avg": zero,
                "exp_avg_sq": zero.clone(),
            }
        self.ticks = 0
        self.ema: dict[str, Tensor] = {}

    @property
    def lr(self) -> float:
        """Learning rate of the current tick: rises linearly over `warmup` ticks."""
        options = self.settings.optimizer
        return options.lr * min(1.0, (self.ticks + 1) / max(1, options.warmup))

    def step(self, role_gradients: dict[str, Tensor]) -> StepReport:
        """Apply the sum of the roles' gradients: damp, clip to `clip_norm`, update.

        With damping, each role's gradient is scaled by f = 1 - strength * max(0, cos(g, ema)), and
        Adam's update by the factor this shortens the whole gradient, since Adam would cancel a mere
        rescaling. The running mean takes up the undamped gradient first, so that it cannot freeze.
        """
        total = sum(role_gradients.values())
        norm = float(total.norm())
        damped, factor = self._damp(role_gradients, total)
        clip = self.settings.optimizer.clip_norm
        length = float(damped.norm())
        if length > clip:
            damped = damped * (clip / length)
        before = self.adapter.theta.clone()
        lr = self.lr
        self._move(damped, lr)
        delta = self.adapter.theta - before
        if factor < 1.0 and self.settings.optimizer.kind == "adamw":
            delta = delta * factor
            self.adapter.theta.copy_(before + delta)
        self.adapter.version += 1
        return StepReport(norm, lr, delta)

    def _move(self, gradient: Tensor, lr: float) -> None:
        options, theta = self.settings.optimizer, self.adapter.theta
        if options.kind == "sgd":
            theta.sub_(gradient + options.weight_decay * theta, alpha=lr)
            return
        # The classes of torch.optim import a compiler, which takes a second and 70 MB.
        adamw(
            [theta],
            [gradient],
            [self.moments["exp_avg"]],
            [self.moments["exp_avg_sq"]],
            [],
            [self.moments["step"]],
            foreach=False,
            amsgrad=False,
            beta1=options.betas[0],
            beta2=options.betas[1],
            lr=lr,
            weight_decay=options.weight_decay,
            eps=options.eps,
            maximize=False,
        )

    def remember(self, role_gradients: dict[str, Tensor]) -> dict[str, float]:
        """Cosine of each role's gradient with the running mean of its earlier ones; then update it."""
        weight = 2 / (self.settings.damping.window + 1)
        cosines = {}
        for role, gradient in role_gradients.items():
            if role in self.ema:
                cosines[role] = cosine(gradient, self.ema[role])
                self.ema[role] = torch.lerp(self.ema[role], gradient, weight)
            else:
                cosines[role] = float("nan")
                self.ema[role] = gradient.clone()
        return cosines

    def _damp(self, gradients: dict[str, Tensor], total: Tensor) -> tuple[Tensor, float]:
        strength = self.settings.damping.strength
        if not strength:
            return total, 1.0
        parts = [
            gradient * (1 - strength * max(0.0, cosine(gradient, self.ema[role])))
            for role, gradient in gradients.items()
        ]
        damped = sum(parts)
        length = float(total.norm())
        return damped, float(damped.norm()) / length if length else 1.0

    def state(self) -> dict[str, Tensor]:
        """Everything but the adapter itself, as tensors by name."""
        tensors = {f"inner.{name}": value for name, value in self.moments.items()}
        tensors |= {f"ema.{role}": value for role, value in self.ema.items()}
        return tensors | {"ticks": torch.tensor(self.ticks)}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Inverse of `state`."""
        device = self.adapter.theta.device
        # Tensors that lie in a mapped file are not aligned, and dot products round by alignment.
        tensors = {name: value.clone() for name, value in tensors.items()}
        self.ticks = int(tensors["ticks"])
        self.ema = {
            name.removeprefix("ema."): value.to(device)
            for name, value in tensors.items()
            if name.startswith("ema.")
        }
        self.moments = {
            name: tensors[f"inner.{name}"].to("cpu" if name == "step" else device)
            for name in self.moments
        }


def cosine(a: Tensor, b: Tensor) -> float:
    """Cosine of two flat vectors; 0 if either is zero."""
    lengths = float(a.norm()) * float(b.norm())
    return float(a @ b) / lengths if lengths else 0.0
