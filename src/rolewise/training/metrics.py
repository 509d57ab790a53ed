"""What a training step logs: one row per role and one for the whole step. Pure."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from rolewise.config import Alarms
from rolewise.records import METRICS
from rolewise.sampling.episodes import Episode
from rolewise.tasks.grade import Grade
from rolewise.training.advantages import Groups, count_groups
from rolewise.training.objective import chi2, k3, log_ratio
from rolewise.training.rows import Row
from rolewise.training.update import RoleUpdate, UpdateReport

ALL = "all"


def step_metrics(
    step: int,
    episodes: list[Episode],
    grades: list[Grade],
    rewards: list[float],
    rows: list[Row],
    groups: Groups,
    report: UpdateReport,
) -> list[dict]:
    """Rows of metrics.parquet for one step (keys of `records.METRICS`).

    Alarms, and what the module `capture` adds, are left empty.
    """
    outcome = {
        "step": step,
        "episodes": len(episodes),
        "reward": float(np.nanmean(rewards)),
        "success": float(np.mean([g.correct for g in grades])),
        "format_error": float(np.mean([not g.format_ok for g in grades])),
        "abnormal": float(np.mean([e.abnormal is not None for e in episodes])),
    }
    roles = list(dict.fromkeys(row.role for row in rows))
    before = log_probs_before(rows, report)
    table = []
    for role in [ALL, *roles]:
        index = [i for i, row in enumerate(rows) if role in (ALL, row.role)]
        entry = dict.fromkeys(METRICS, float("nan")) | outcome | {"role": role, "alarms": ""}
        entry |= _row_metrics([rows[i] for i in index], [before[i] for i in index])
        entry |= _drift_metrics(rows, index, report, before)
        entry["fallback"] = _fallback_rate(episodes, None if role == ALL else role)
        if role == ALL:
            entry |= _whole_update(report, groups)
        else:
            own = [rows[i] for i in index]
            counted = count_groups([r.reward for r in own], [r.problem for r in own])
            entry |= _role_update(report.roles.get(role, RoleUpdate()), own[0].adapter, report)
            entry |= {"groups": counted.total, "zero_variance_groups": counted.zero_variance}
        table.append(entry)
    return table


def _row_metrics(rows: list[Row], logprobs: list[np.ndarray]) -> dict:
    lengths = np.array([row.tokens for row in rows])
    # Perplexity is a mean over sequences, entropy and concentration are means over tokens.
    perplexities = [np.exp(-np.mean(values)) for values in logprobs]
    ids = [i for row in rows for i in row.completion_ids]
    return {
        "rows": len(rows),
        "tokens": int(lengths.sum()),
        "advantage_std": float(np.std([row.advantage for row in rows])),
        "truncated": float(np.mean([row.truncated for row in rows])),
        "length_mean": float(lengths.mean()),
        "length_std": float(lengths.std()),
        "length_q50": float(np.quantile(lengths, 0.5)),
        "length_q90": float(np.quantile(lengths, 0.9)),
        "entropy": float(np.concatenate([row.entropies_T for row in rows]).mean()),
        "perplexity": float(np.mean(perplexities)),
        "top_prob": float(np.concatenate([row.top_probs_T for row in rows]).mean()),
        "distinct": len(set(ids)) / len(ids),
    }


def log_probs_before(rows: list[Row], report: UpdateReport) -> list[np.ndarray]:
    """The trainer's log-probabilities before the update, the sampler's where the trainer has none.

    The trainer's are at the sampling temperature; the sampler's may be at temperature 1, and then the
    trainer has all.
    """
    return [
        row.old_logprobs_T if known is None else known
        for row, known in zip(rows, report.before, strict=True)
    ]


def _drift_metrics(
    rows: list[Row], index: list[int], report: UpdateReport, before: list[np.ndarray]
) -> dict:
    entry = {}
    known = [i for i in index if report.before[i] is not None]
    if known and report.comparable:
        trainer = _tensor([report.before[i] for i in known])
        sampler = _tensor([rows[i].old_logprobs_T for i in known])
        entry["chi2_mismatch"] = float(chi2(trainer, sampler).mean())
        entry["kl_sampler"] = float(k3(sampler, trainer).mean())
    if report.after is None:
        return entry
    old = _tensor([before[i] for i in index])
    new = _tensor([report.after[i] for i in index])
    ratios = log_ratio(new, old).exp()
    entry["chi2_update"] = float(chi2(new, old).mean())
    entry["ratio_update_max"] = float(ratios.max())
    entry["ratio_update_q999"] = float(np.quantile(ratios.numpy(), 0.999))
    return entry


def _role_update(update: RoleUpdate, adapter: str, report: UpdateReport) -> dict:
    entry = {"adapter": adapter, "optimizer_steps": update.optimizer_steps}
    entry |= {"ratio_loss_max": update.ratio_max, "cos_ema": update.cos_ema}
    entry["kl_base"] = update.kl_base
    if update.loss_tokens:
        entry["clip_fraction"] = update.clipped / update.loss_tokens
    if adapter in report.adapters:
        whole = report.adapters[adapter]
        entry |= {"grad_norm": whole.grad_norm, "lr": whole.lr, "delta_theta": whole.delta}
    if update.share:
        entry |= {
            "role_grad_norm": update.share.norm,
            "role_grad_share": update.share.share,
            "role_grad_mass": update.share.mass,
        }
    if update.coherence:
        entry |= {
            "slots": update.coherence.slots,
            "coherence": update.coherence.value,
            "coherence_within": update.coherence.within,
            "coherence_null": update.coherence.null_mean,
            "coherence_null_hi": update.coherence.null_high,
            "amplification": update.coherence.amplification,
        }
    return entry


def _whole_update(report: UpdateReport, groups: Groups) -> dict:
    roles, adapters = report.roles.values(), report.adapters.values()
    tokens = sum(r.loss_tokens for r in roles)
    return {
        "adapter": "",
        "optimizer_steps": max((r.optimizer_steps for r in roles), default=0),
        "groups": groups.total,
        "zero_variance_groups": groups.zero_variance,
        "ratio_loss_max": _nan_max([r.ratio_max for r in roles]),
        "clip_fraction": sum(r.clipped for r in roles) / tokens if tokens else float("nan"),
        "grad_norm": max(a.grad_norm for a in adapters),
        "lr": max(a.lr for a in adapters),
        "delta_theta": max(a.delta for a in adapters),
    }


def _fallback_rate(episodes: list[Episode], role: str | None) -> float:
    flags = [
        parsed.fallback
        for episode in episodes
        for key, parsed in episode.parsed.items()
        if role in (None, key[0])
    ]
    return float(np.mean(flags)) if flags else float("nan")


def raise_alarms(first: dict, now: dict, settings: Alarms) -> list[str]:
    """Names of the drift alarms of one role: `now` against its `first` logged metrics."""
    checks: dict[str, Callable[[], bool]] = {
        "perplexity": lambda: (
            now["perplexity"] - 1 > settings.perplexity_ratio * max(first["perplexity"] - 1, 0.05)
        ),
        "chi2_update": lambda: now["chi2_update"] > settings.chi2_update,
        "entropy": lambda: now["entropy"] < settings.entropy_ratio * first["entropy"],
        "length": lambda: now["length_mean"] > settings.length_ratio * first["length_mean"],
        "capture": lambda: now["capture"] > settings.capture,
    }
    return [name for name, check in checks.items() if check()]


def _nan_max(values: list[float]) -> float:
    finite = [v for v in values if not np.isnan(v)]
    return max(finite) if finite else float("nan")


def _tensor(arrays: list[np.ndarray]) -> torch.Tensor:
    return torch.from_numpy(np.concatenate(arrays))
