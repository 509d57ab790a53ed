"""The columns of every file that a cell leaves behind: the contract between running and analysing.

Nothing here computes; `docs/reference` is generated from these descriptions.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

EVALUATIONS = {
    "step": "training step of the checkpoint (0 = untrained)",
    "problem": "problem id",
    "split": "select or report half of the validation problems",
    "sample": "sample index",
    "correct": "whether the graded output solves the problem (Code: all hidden tests)",
    "reward": "outcome reward of the episode",
    "format_ok": "whether an answer could be parsed from the graded output",
    "status": "grader's status (Math: correct, wrong, no_answer; Code: pass, wrong_answer, ...)",
    "abnormal": "prompt over the cap or engine error; counted as wrong",
    "fallbacks": "role outputs of the episode that could not be parsed",
    "calls": "role calls of the episode",
    "tokens": "completion tokens of all calls",
    "prompt_tokens": "prompt tokens of all calls",
    "truncated": "calls that hit the response cap",
}

TRAJECTORIES = {
    "step": "training step of the checkpoint (0 = untrained)",
    "checkpoint": "base, early, best or terminal (joined by + where one step is several)",
    "problem": "problem id",
    "sample": "sample index",
    "role": "role of the call",
    "slot": "index among parallel calls of the role",
    "turn": "index among successive calls of the role",
    "call": "order of the call within the episode",
    "prompt": "rendered prompt",
    "text": "completion",
    "tokens": "completion tokens",
    "distinct_tokens": "distinct token ids among them",
    "prompt_tokens": "prompt tokens",
    "finish_reason": "stop, length or error",
    "entropy": "mean entropy over the completion, nats, at the sampling temperature",
    "logprob": "sum of the log-probabilities of the completion",
    "parsed": "value parsed from the role's output (verdict, selection, strategies), as text",
    "fallback": "whether parsing failed and the documented fallback was used",
    "answer": "the role's own answer, if it gave one",
    "answer_key": "equal for equal answers (Math: without blanks; Code: digest of test outputs)",
    "role_correct": "whether the role's own output is right (null: the role gives none)",
    "graded": "whether this call's output was the one graded for the episode",
    "correct": "whether the episode solved the problem",
    "reward": "outcome reward of the episode",
}

REGRADED = ("checkpoint", "answer", "answer_key", "role_correct")
CALLS = {name: text for name, text in TRAJECTORIES.items() if name not in REGRADED}

SWAPS = {"trained": "roles that use their trained adapter, joined by +"} | EVALUATIONS

METRICS = {
    "step": "training step, from 1",
    "role": "role, or `all` for the whole step",
    "adapter": "adapter that the role updates",
    "rows": "calls trained on",
    "tokens": "completion tokens trained on",
    "episodes": "episodes of the step",
    "optimizer_steps": "optimiser steps that the role's rows took part in",
    "lr": "learning rate of the adapter",
    "reward": "mean outcome reward of the episodes",
    "success": "share of episodes solved",
    "format_error": "share of episodes without a parsable answer",
    "abnormal": "share of episodes over the cap or with an engine error",
    "advantage_std": "standard deviation of the rows' advantages",
    "groups": "advantage groups",
    "zero_variance_groups": "groups whose rewards are all equal",
    "fallback": "share of calls that could not be parsed",
    "truncated": "share of calls that hit the response cap",
    "length_mean": "mean completion tokens",
    "length_std": "standard deviation of completion tokens",
    "length_q50": "median completion tokens",
    "length_q90": "90 % quantile of completion tokens",
    "boxed": "share of calls with a complete box",
    "code_block": "share of calls with a fenced Python block",
    "terse": "share of calls that are a terse pick or verdict",
    "capture": "largest move to another role's first shape: 0 unmoved, 1 arrived (null: no such role)",
    "entropy": "mean token entropy at the sampling temperature, nats",
    "perplexity": "training perplexity: mean over rows of exp(-mean log pi)",
    "top_prob": "mean probability of the most likely token",
    "distinct": "share of distinct tokens among emitted ones",
    "chi2_mismatch": "mean over tokens of rho^2 - 1, sampler against trainer before the update "
    "(empty with raw log-probs, of another temperature)",
    "chi2_update": "mean over tokens of rho^2 - 1, after against before the update",
    "kl_sampler": "KL(sampler || trainer) before the update, k3 estimate, nats per token "
    "(empty with raw log-probs)",
    "kl_base": "KL(role || base) on the probe rows, k3 estimate (null between probes)",
    "ratio_update_max": "largest pi_after / pi_before over the step's tokens",
    "ratio_update_q999": "99.9 % quantile of the same",
    "ratio_loss_max": "largest in-loss policy ratio",
    "clip_fraction": "share of tokens whose ratio was clipped in the loss",
    "grad_norm": "norm of the adapter's gradient before clipping (role `all`: maximum)",
    "role_grad_norm": "norm of the role's gradient summed over the step",
    "role_grad_share": "g_r . G / |G|^2, sums to 1 over the roles of an adapter",
    "role_grad_mass": "|g_r| / sum of |g| over the roles of the adapter",
    "slots": "n parallel slots whose gradients were told apart (null between slot ledgers)",
    "coherence": "|sum g|^2 / (n sum |g|^2) over them: 1 all equal, 1/n all orthogonal",
    "coherence_within": "the same within blocks of problems, numerator and denominator summed over blocks",
    "coherence_null": "mean of coherence_within with slots shuffled between blocks of problems",
    "coherence_null_hi": "95 % quantile of the same",
    "amplification": "|sum g| / mean |g| over parallel slots",
    "cos_ema": "cosine with the running mean of the role's earlier gradients",
    "delta_theta": "norm of the adapter's change in this step",
    "alarms": "drift alarms raised, joined by +",
}

GRADIENTS = {
    "step": "training step",
    "adapter": "adapter updated",
    "level": "role, slot, turn, or layer",
    "a": "first part: role, role:slot, role@turn",
    "b": "second part for pairs, else empty",
    "quantity": "norm, share, mass, cosine, delta",
    "value": "its value",
}

TIMINGS = {
    "attempt": "how often the cell was started",
    "step": "training step or checkpoint",
    "phase": "start, sample, grade, update, metrics, checkpoint, evaluate",
    "wall_s": "wall seconds",
    "cpu_s": "CPU seconds of the process and its children",
    "tokens": "tokens sampled or trained in the phase",
}

CELLS = {
    "workflow": "Single, Eval-Opt, Voting, Orch-Workers or your own",
    "policy": "Base, SA, IP, SP",
    "scale": "model scale",
    "task": "Math or Code",
    "variant": "intervention, empty for the study's own cells",
    "seed": "seed",
    "step": "training step of the value",
    "checkpoint": "base, early, best, terminal, or empty for the steps between",
    "role": "role, or `all`",
    "split": "select, report, all or train",
    "metric": "accuracy, reward, format_ok, ... or a metric of metrics.parquet",
    "value": "its value",
    "lo": "lower end of the 95 % interval (empty: none)",
    "hi": "upper end",
    "n": "problems (or rows) behind the value",
}


def write_text(path: Path, text: str) -> None:
    """Write `text` so that readers see the old file or the whole new one, never a part."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Write `data` atomically and durably: temporary file, fsync, rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as handle:
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_parquet(path: Path, frame: pd.DataFrame, columns: dict[str, str]) -> None:
    """Write exactly `columns`, in order, atomically; a missing or unknown column is a ValueError."""
    if set(frame.columns) != set(columns):
        raise ValueError(f"{path.name}: columns differ: {set(frame.columns) ^ set(columns)}")
    buffer = io.BytesIO()
    frame[list(columns)].to_parquet(buffer, index=False)
    write_bytes(path, buffer.getvalue())


def write_csv(path: Path, frame: pd.DataFrame) -> None:
    """Write a csv file atomically, floats with enough digits to be read back exactly."""
    write_text(path, frame.to_csv(index=False))
