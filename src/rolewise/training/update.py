"""One update: rows become role gradients, role gradients become optimiser steps, all of it accounted.

The tokens of every role (on ledger steps also of every slot, turn and block of problems) add up in an
accumulator of their own during the one backward pass, so the ledger costs no extra one.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from rolewise.config import Config
from rolewise.errors import TrainingError
from rolewise.policy.lora import Targets
from rolewise.policy.policy import Policy
from rolewise.policy.scoring import Packing, score
from rolewise.sampling import parallel
from rolewise.sampling.base import call_seed
from rolewise.training.batches import microbatches, minibatches
from rolewise.training.ledger import (
    Coherence,
    PartKey,
    RoleShare,
    coherence,
    ledger_rows,
    role_shares,
)
from rolewise.training.objective import TokenLoss, clipped_loss, importance_weights, k3
from rolewise.training.optimizer import AdapterOptimizer
from rolewise.training.rescoring import RowScorer
from rolewise.training.rows import Row

BLOCKS = 4


@dataclass
class RoleUpdate:
    """What an update did to one role."""

    optimizer_steps: int = 0
    ratio_max: float = float("nan")
    clipped: int = 0
    loss_tokens: int = 0
    share: RoleShare | None = None
    coherence: Coherence | None = None
    cos_ema: float = float("nan")
    kl_base: float = float("nan")


@dataclass
class AdapterUpdate:
    """What an update did to one adapter; `grad_norm` is the largest of its optimiser steps."""

    grad_norm: float
    lr: float
    delta: float


@dataclass
class UpdateReport:
    """Everything an update leaves behind; arrays are per row of the input.

    `before` and `after` the update, log-probabilities of the row's tokens where they were measured.
    `comparable`: whether the sampler's are at the same temperature.
    """

    roles: dict[str, RoleUpdate]
    adapters: dict[str, AdapterUpdate]
    gradients: list[dict]
    before: list[np.ndarray | None]
    after: list[np.ndarray] | None
    comparable: bool
    skipped_steps: int = 0


@dataclass
class _Sums:
    """Gradients of one adapter, summed over the optimiser steps of an update."""

    roles: dict[str, Tensor] = field(default_factory=dict)
    parts: dict[PartKey, Tensor] = field(default_factory=dict)

    def add(self, parts: dict[PartKey, Tensor]) -> None:
        for key, gradient in parts.items():
            self.parts[key] = self.parts[key] + gradient if key in self.parts else gradient
        for role, gradient in by_role(parts).items():
            known = self.roles.get(role)
            self.roles[role] = gradient if known is None else known + gradient


class Updater:
    """Owns the optimisers of a policy's adapters and applies updates to it."""

    def __init__(self, policy: Policy, config: Config, seed: int):
        self.policy, self.config, self.seed = policy, config, seed
        self.scorer = RowScorer(policy, config)
        self.optimizers = {
            name: AdapterOptimizer(adapter, config.training)
            for name, adapter in policy.adapters.items()
        }
        # Raw log-probs are of another temperature, and a correction tells sampler and trainer apart.
        self.recomputed = (
            not config.sampling.at_temperature or config.training.loss.importance != "off"
        )
        # Another sampler than the trainer itself is measured against it.
        self.rescore = self.recomputed or config.sampling.backend != "torch"

    def update(
        self, step: int, rows: list[Row], *, ledger: bool, probe: bool, ratios: bool = True
    ) -> UpdateReport:
        """Train every adapter on its rows (advantages filled in).

        `ledger` also tells slots apart, `probe` measures KL to base, `ratios` scores the rows again
        after the update.
        Raises TrainingError if a gradient is not finite. Rows without signal are left out of the
        backward pass, which changes nothing because denominators are fixed beforehand.
        """
        for i, row in enumerate(rows):
            row.index = i
        roles: dict[str, RoleUpdate] = defaultdict(RoleUpdate)
        comparable = self.config.sampling.at_temperature
        report = UpdateReport(roles, {}, [], [None] * len(rows), None, comparable)
        if self.rescore:
            report.before = []
            for row, values in zip(rows, self.scorer.distributions(rows), strict=True):
                logprobs, row.entropies_T, row.top_probs_T = values
                report.before.append(logprobs)
        if probe:
            for role, value in self.scorer.kl_base(rows).items():
                roles[role].kl_base = value
        trained = self.config.training.train_roles
        first: dict[int, np.ndarray] = {}
        for name, optimizer in self.optimizers.items():
            own = [
                row
                for row in rows
                if row.adapter == name
                and not np.isnan(row.reward)
                and (trained is None or row.role in trained)
            ]
            self._update_adapter(step, name, optimizer, own, ledger, report, first)
            if self.config.training.optimizer.tick == "role_update":
                # As released: one schedule for all adapters, a tick for every role that was updated.
                updated = {row.role for row in own if roles[row.role].optimizer_steps}
                for other in self.optimizers.values():
                    other.ticks += len(updated)
        _merge_processes(roles)
        if not self.rescore:
            for found in parallel.collect([first]):
                first |= found
            report.before = [first.get(row.index) for row in rows]
        if self.config.training.optimizer.tick == "step":
            for optimizer in self.optimizers.values():
                optimizer.ticks += 1
        if ratios:
            report.after = self.scorer.logprobs(rows)
        return report

    def _update_adapter(
        self,
        step: int,
        name: str,
        optimizer: AdapterOptimizer,
        rows: list[Row],
        ledger: bool,
        report: UpdateReport,
        first: dict[int, np.ndarray],
    ) -> None:
        settings = self.config.training
        theta = self.policy.adapters[name].theta
        start, sums = theta.clone(), _Sums()
        norms, lrs = [], [optimizer.lr]
        cosines: dict[str, list[float]] = defaultdict(list)
        blocks = problem_blocks(rows) if ledger else None
        seed = call_seed(self.seed, "minibatches", step, name)
        for number, batch in enumerate(minibatches(rows, settings.update, seed)):
            parts = self._gradients(
                step, name, batch, blocks, report, first if number == 0 else None
            )
            if not parts:
                report.skipped_steps += 1
                continue
            parts = self._weigh(parts)
            sums.add(parts)
            gradients = by_role(parts)
            for role, value in optimizer.remember(gradients).items():
                cosines[role].append(value)
            done = optimizer.step(gradients)
            if not np.isfinite(done.grad_norm):
                raise TrainingError(
                    f"step {step}: the gradient of adapter '{name}' is not finite; lower "
                    "training.optimizer.lr or inspect the last rows of metrics.jsonl"
                )
            norms.append(done.grad_norm)
            lrs.append(done.lr)
            for role in gradients:
                report.roles[role].optimizer_steps += 1
        delta = theta - start
        report.adapters[name] = AdapterUpdate(
            grad_norm=max(norms, default=0.0), lr=max(lrs), delta=float(delta.norm())
        )
        self._account(step, name, sums, delta, cosines, ledger, report)

    def _gradients(
        self,
        step: int,
        name: str,
        batch: list[Row],
        blocks: dict[tuple[str, str], int] | None,
        report: UpdateReport,
        first: dict[int, np.ndarray] | None,
    ) -> dict[PartKey, Tensor]:
        """Flat gradients by part, the loss already divided; empty if no row carries signal."""
        settings = self.config.training.loss
        denominator = (
            len(batch) if settings.denominator == "rows" else len({row.episode for row in batch})
        )
        weights = role_token_weights(batch) if settings.role_weights == "token" else {}

        def part_of(row: Row) -> PartKey:
            if blocks is None:
                return (row.role, 0, 0, 0)
            return (row.role, row.slot, row.turn, blocks.get((row.role, row.problem), 0))

        rows = [row for row in batch if row.advantage != 0 or settings.kl_anchor.get(row.role)]
        theta = self.policy.adapters[name].theta
        keys = sorted({part_of(row) for row in rows})
        flats_PS = theta.new_zeros(len(keys), len(theta))
        factors = {row.role: weights.get(row.role, 1.0) / denominator for row in rows}
        ordered = sorted(rows, key=part_of)
        for micro in microbatches(
            parallel.share(ordered), self.config.training.update.microbatch_tokens, part_of
        ):
            places = [keys.index(part_of(row)) for row in micro]
            self._backward(name, micro, places, flats_PS, factors, report, first)
        parallel.add_up(flats_PS)
        return dict(zip(keys, flats_PS, strict=True))

    def _backward(
        self,
        name: str,
        rows: list[Row],
        parts_R: list[int],
        flats_PS: Tensor,
        factors: dict[str, float],
        report: UpdateReport,
        first: dict[int, np.ndarray] | None,
    ) -> None:
        settings = self.config.training.loss
        device = self.policy.backbone.device
        packing = Packing([(r.prompt_ids, r.completion_ids) for r in rows], device, parts_R)
        linear = self.policy.linears[name]
        linear.targets = Targets(flats_PS, packing.segments)
        scores = score(
            self.policy.backbone,
            linear,
            packing,
            self.config.sampling.temperature,
            recompute=self.config.training.gradient_checkpointing,
        )
        new_T = scores.logprobs_T

        def per_token(values: Sequence[float]) -> Tensor:
            return torch.tensor(values, dtype=torch.float32, device=device)[packing.row_T]

        sampled_T = torch.from_numpy(np.concatenate([r.old_logprobs_T for r in rows])).to(device)
        old_T = sampled_T
        if self.recomputed:
            known = [report.before[r.index] for r in rows]
            old_T = torch.from_numpy(np.concatenate(known)).to(device)
        token_loss = clipped_loss(new_T, old_T, per_token([r.advantage for r in rows]), settings)
        # Mean over the tokens of a row, then over rows: every row weighs the same.
        weight_T = per_token([factors[r.role] / r.tokens for r in rows])
        loss_T = token_loss.loss_T * importance_weights(old_T, sampled_T, settings)
        betas = [settings.kl_anchor.get(r.role, 0.0) for r in rows]
        if any(betas):
            base_T = self.scorer.score(packing, None).logprobs_T
            loss_T = loss_T + per_token(betas) * k3(new_T, base_T)
        (loss_T * weight_T).sum().backward()
        _log_ratios(rows, packing, token_loss, report)
        if first is not None:
            values = new_T.detach().cpu().split(packing.lengths_R.tolist())
            first.update({r.index: v.numpy() for r, v in zip(rows, values, strict=True)})

    def _weigh(self, parts: dict[PartKey, Tensor]) -> dict[PartKey, Tensor]:
        """With `role_weights: norm`, scale every role's gradient to the mean of their norms."""
        if self.config.training.loss.role_weights != "norm":
            return parts
        norms = {role: float(g.norm()) for role, g in by_role(parts).items()}
        mean = sum(norms.values()) / len(norms)
        return {
            key: gradient * (mean / norms[key[0]]) if norms[key[0]] else gradient
            for key, gradient in parts.items()
        }

    def _account(
        self,
        step: int,
        name: str,
        sums: _Sums,
        delta: Tensor,
        cosines: dict[str, list[float]],
        ledger: bool,
        report: UpdateReport,
    ) -> None:
        if not sums.roles:
            return
        for role, entry in role_shares(sums.roles).items():
            report.roles[role].share = entry
            report.roles[role].cos_ema = float(np.mean(cosines[role]))
        if ledger:
            for role in sums.roles:
                cells: dict[tuple[int, int], Tensor] = {}
                for (owner, slot, _, block), g in sorted(sums.parts.items()):
                    if owner == role:
                        cells[slot, block] = cells[slot, block] + g if (slot, block) in cells else g
                report.roles[role].coherence = coherence(
                    cells, self.config.ledger.permutations, call_seed(self.seed, "null", step, role)
                )
        layers: dict[int, list[slice]] = defaultdict(list)
        if self.config.ledger.by_layer:
            for site in self.policy.adapters[name].sites.values():
                layers[site.layer] += [site.a, *site.b]
        parts = sums.parts if ledger else {}
        report.gradients += ledger_rows(step, name, sums.roles, parts, delta, layers)


def _log_ratios(rows: list[Row], packing: Packing, loss: TokenLoss, report: UpdateReport) -> None:
    """Add the in-loss policy ratios and clip counts of a micro-batch to its roles."""
    ratios, clipped = loss.ratio_T.cpu().numpy(), loss.clipped_T.cpu().numpy()
    start = 0
    for role, run in itertools.groupby(rows, key=lambda row: row.role):
        stop = start + sum(row.tokens for row in run)
        entry = report.roles[role]
        entry.clipped += int(clipped[start:stop].sum())
        entry.loss_tokens += stop - start
        entry.ratio_max = float(np.fmax(entry.ratio_max, ratios[start:stop].max()))
        start = stop


def _merge_processes(roles: dict[str, RoleUpdate]) -> None:
    """Let policy ratios and clip counts cover the rows of every process."""
    own = {role: (e.clipped, e.loss_tokens, e.ratio_max) for role, e in roles.items()}
    for entry in roles.values():
        entry.clipped, entry.loss_tokens, entry.ratio_max = 0, 0, float("nan")
    for found in parallel.collect([own]):
        for role, (clipped, tokens, ratio) in found.items():
            entry = roles[role]
            entry.clipped += clipped
            entry.loss_tokens += tokens
            entry.ratio_max = float(np.fmax(entry.ratio_max, ratio))


def by_role(parts: dict[PartKey, Tensor]) -> dict[str, Tensor]:
    """Sum of the parts of every role."""
    sums: dict[str, Tensor] = {}
    for (role, *_), gradient in parts.items():
        sums[role] = sums[role] + gradient if role in sums else gradient
    return sums


def role_token_weights(rows: list[Row]) -> dict[str, float]:
    """Loss weights that give every role the same total of completion tokens."""
    tokens: dict[str, int] = defaultdict(int)
    for row in rows:
        tokens[row.role] += row.tokens
    mean = sum(tokens.values()) / len(tokens)
    return {role: mean / count for role, count in tokens.items()}


def problem_blocks(rows: list[Row]) -> dict[tuple[str, str], int]:
    """(role, problem) -> block, the problems in `BLOCKS` contiguous shares, for roles with several slots.

    Only their coherence asks for blocks; every further part costs small matrix products.
    """
    problems = list(dict.fromkeys(row.problem for row in rows))
    slots: dict[str, set[int]] = defaultdict(set)
    for row in rows:
        slots[row.role].add(row.slot)
    return {
        (role, problem): i * BLOCKS // len(problems)
        for i, problem in enumerate(problems)
        for role, own in slots.items()
        if len(own) > 1
    }
