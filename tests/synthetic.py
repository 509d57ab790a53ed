"""A complete, deterministic results folder without training anything, for tests of what reads one.

The numbers are invented and follow plausible curves. `cliff_cell` falls after its peak, in
`captured_cell` the evaluator drifts into writing the generator's answers, every cell holds hostile
text (markup, right-to-left script, very long completions).
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

from rolewise.analysis.collect import write_cells
from rolewise.analysis.outcomes import choose_checkpoints, mark_steps, outcomes
from rolewise.analysis.summarise import Inputs, summary_of
from rolewise.config import Config
from rolewise.grid import BASE, Cell, base_cells, base_of, seeds_of, trained_cells
from rolewise.records import (
    EVALUATIONS,
    GRADIENTS,
    METRICS,
    TIMINGS,
    TRAJECTORIES,
    write_parquet,
    write_text,
)
from rolewise.runs.layout import Layout
from rolewise.sampling.base import call_seed
from rolewise.tasks.problem import Problem, Test, split_halves, write_problems
from tests.synthetic_text import episode

ROLES = {
    "Single": ("generator",),
    "Eval-Opt": ("generator", "evaluator"),
    "Voting": ("generator", "aggregator"),
    "Orch-Workers": ("orchestrator", "worker", "synthesizer"),
}
PARALLEL = {"Voting": "generator", "Orch-Workers": "worker"}


def cliff_cell(config: Config) -> Cell:
    """The cell whose accuracy falls after its peak."""
    scales = config.grid.scales
    return Cell("Voting", "IP", scales[min(1, len(scales) - 1)], "Math")


def captured_cell(config: Config) -> Cell:
    """The cell whose evaluator comes to answer like the generator."""
    return Cell("Eval-Opt", "SP", config.grid.scales[0], "Code")


def problems(config: Config, task: str, count: int | None = None) -> list[Problem]:
    """Validation problems of the study, solvable by hand."""
    count = count or getattr(config.tasks[task], "validation", 80)
    made = []
    for i in range(count):
        a, b = 2 + i % 9, 3 + i % 17
        if task == "Math":
            made.append(Problem(f"math-{i:04d}", task, f"Compute {a} * {b} + {i}.", str(a * b + i)))
        else:
            tests = tuple(Test(f"{n}\n", f"{a * n + b}\n") for n in (0, 1, 5))
            text = f"Read an integer n and print {a} * n + {b}."
            made.append(Problem(f"code-{i:04d}", task, text, tests=tests, meta={"a": a, "b": b}))
    return made


def checkpoints(config: Config, cell: Cell) -> list[int]:
    """Evaluated steps of a cell, the untrained one first."""
    if cell.policy == BASE:
        return [0]
    training = config.training
    steps = range(training.checkpoint_every, training.steps + 1, training.checkpoint_every)
    return [0, *steps]


def accuracy_curve(config: Config, cell: Cell) -> np.ndarray:
    """Expected accuracy at each evaluated step."""
    base = 0.3 + 0.05 * config.grid.scales.index(cell.scale) + 0.05 * (cell.task == "Math")
    t = np.asarray(checkpoints(config, cell)) / config.training.steps
    height = {"SA": 0.22, "IP": 0.32, "SP": 0.25}.get(cell.policy, 0.0)
    speed = {"IP": 6.0}.get(cell.policy, 4.0)
    curve = base + height * (1 - np.exp(-speed * t))
    if cell == cliff_cell(config):
        curve = curve - 0.4 * np.clip((t - 0.6) / 0.4, 0, 1)
    return np.clip(curve, 0.02, 0.98)


def write_study(root: Path, config: Config) -> Layout:
    """Write every file of a finished study below `root`, up to `tables/cells.csv`.

    Functions that take only a configuration look below `config.results_dir`, so make it `root`.
    Takes seconds; share it among the tests of a module.
    """
    layout = Layout(Path(root))
    solved = {task: problems(config, task) for task in config.grid.tasks}
    for task, made in solved.items():
        write_text(layout.data(task) / "validation.jsonl", write_problems(made))
        manifest = {"task": task, "train": 0, "validation": len(made)}
        write_text(layout.data(task) / "manifest.json", json.dumps(manifest))
    for cell in base_cells(config) + trained_cells(config):
        for seed in seeds_of(config, cell):
            write_cell(layout, config, cell, seed, solved[cell.task])
    _summarise(layout, config)
    for scale in config.evaluation.transfer_scales:
        for task in config.grid.tasks:
            for workflow in config.grid.workflows:
                for seed in config.seeds:
                    _write_transfer(layout, config, Cell(workflow, "SA", scale, task), seed, solved)
    write_cells(config.model_copy(update={"results_dir": str(root)}))
    return layout


def _summarise(layout: Layout, config: Config) -> None:
    for cell in base_cells(config) + trained_cells(config):
        for seed in seeds_of(config, cell):
            folder = layout.cell(cell, seed)
            found = outcomes(pd.read_parquet(folder / "evaluations.parquet"))
            inputs = Inputs(found)
            if cell.trained:
                base = layout.cell(base_of(config, cell), seed) / "evaluations.parquet"
                inputs = Inputs(
                    found,
                    outcomes(pd.read_parquet(base)),
                    pd.read_parquet(folder / "metrics.parquet"),
                    pd.read_parquet(folder / "timings.parquet"),
                    json.loads((folder / "manifest.json").read_text()),
                )
            summary = summary_of(config, cell, seed, inputs)
            write_text(folder / "summary.json", json.dumps(summary, indent=2) + "\n")


def write_cell(
    layout: Layout, config: Config, cell: Cell, seed: int, solved: list[Problem]
) -> None:
    """Write the files of one cell."""
    rng = np.random.default_rng(call_seed("synthetic", cell.name, seed))
    folder = layout.cell(cell, seed)
    evaluations = evaluation_rows(config, cell, seed, solved, rng)
    write_parquet(folder / "evaluations.parquet", evaluations, EVALUATIONS)
    marks = choose_checkpoints(outcomes(evaluations)) if cell.trained else {"base": 0}
    trajectories = trajectory_rows(config, cell, evaluations, solved, marks=marks, rng=rng)
    write_parquet(folder / "trajectories.parquet", trajectories, TRAJECTORIES)
    write_text(folder / "manifest.json", json.dumps(_manifest(cell, seed), indent=2))
    if cell.trained:
        write_parquet(folder / "metrics.parquet", metric_rows(config, cell, rng), METRICS)
        write_parquet(folder / "gradients.parquet", gradient_rows(config, cell, rng), GRADIENTS)
        write_parquet(folder / "timings.parquet", timing_rows(config, cell), TIMINGS)


def evaluation_rows(
    config: Config, cell: Cell, seed: int, solved: list[Problem], rng: np.random.Generator
) -> pd.DataFrame:
    """One row per evaluated step, problem and sample."""
    shared = np.random.default_rng(call_seed("difficulty", cell.task, cell.scale, seed))
    difficulty = shared.normal(0, 1.0, len(solved))
    halves = split_halves(solved)
    frames = []
    for step, accuracy in zip(checkpoints(config, cell), accuracy_curve(config, cell), strict=True):
        logit = np.log(accuracy / (1 - accuracy)) * 1.2
        for sample in range(config.evaluation.samples):
            correct = rng.random(len(solved)) < 1 / (1 + np.exp(difficulty - logit))
            ok = correct | (rng.random(len(solved)) < 0.75 + 0.2 * step / config.training.steps)
            status = np.where(correct, "correct" if cell.task == "Math" else "pass", "wrong")
            if cell.task == "Code":
                status = np.where(correct, "pass", np.where(ok, "wrong_answer", "no_code"))
                reward = np.where(correct, 1.0, np.where(ok, 1 / 3, 0.0))
            else:
                status = np.where(ok, status, "no_answer")
                reward = np.where(correct, 1.0, np.where(ok, 0.0, config.reward.format_penalty))
            calls = {"Single": 1, "Eval-Opt": 4, "Voting": 4}.get(cell.workflow, 5)
            tokens = rng.integers(8, 40, len(solved)) * calls
            frames.append(
                pd.DataFrame(
                    {
                        "step": step,
                        "problem": [p.id for p in solved],
                        "split": [halves[p.id] for p in solved],
                        "sample": sample,
                        "correct": correct,
                        "reward": reward,
                        "format_ok": ok,
                        "status": status,
                        "abnormal": False,
                        "fallbacks": (rng.random(len(solved)) < 0.05).astype(int),
                        "calls": calls,
                        "tokens": tokens,
                        "prompt_tokens": tokens * 3,
                        "truncated": (rng.random(len(solved)) < 0.02).astype(int),
                    }
                )
            )
    return pd.concat(frames, ignore_index=True)


def trajectory_rows(
    config: Config,
    cell: Cell,
    evaluations: pd.DataFrame,
    solved: list[Problem],
    *,
    marks: dict[str, int],
    rng: np.random.Generator,
) -> pd.DataFrame:
    """One row per role call of the first problems at the analysed checkpoints."""
    names = mark_steps(marks)
    keep = solved[: config.evaluation.trajectory_problems]
    first = evaluations[evaluations["sample"] == 0].set_index(["step", "problem"])
    drift = 0.9 if cell == captured_cell(config) else 0.05
    rows = []
    for step, name in names.items():
        progress = step / config.training.steps
        for index, problem in enumerate(keep):
            outcome = first.loc[(step, problem.id)]
            calls = episode(
                cell.workflow,
                problem,
                bool(outcome["correct"]),
                bool(outcome["format_ok"]),
                capture=drift * progress,
                narrow=progress * (cell.policy in ("IP", "SP")),
                hostile=index if cell.trained else None,
                rng=rng,
            )
            for order, call in enumerate(calls):
                words = call["text"].split()
                count = max(1, len(words))
                rows.append(
                    call
                    | {
                        "step": step,
                        "checkpoint": name,
                        "problem": problem.id,
                        "sample": 0,
                        "call": order,
                        "prompt": f"<|im_start|>user\n{call['role']}: {problem.prompt}"
                        "<|im_end|>\n<|im_start|>assistant\n",
                        "tokens": count,
                        "distinct_tokens": max(1, len(set(words))),
                        "prompt_tokens": 12 + 4 * order,
                        "finish_reason": "length" if count > 500 else "stop",
                        "entropy": float(0.9 - 0.6 * progress + 0.1 * rng.random()),
                        "logprob": float(-count * (0.8 - 0.5 * progress)),
                        "correct": bool(outcome["correct"]),
                        "reward": float(outcome["reward"]),
                    }
                )
    return pd.DataFrame(rows)[list(TRAJECTORIES)]


def metric_rows(config: Config, cell: Cell, rng: np.random.Generator) -> pd.DataFrame:
    """One row per training step and role, `all` for the whole step."""
    roles = ROLES.get(cell.workflow, ("generator",))
    steps = config.training.steps
    falls = cell == cliff_cell(config)
    noisy = 2.0 if cell.policy == "IP" else 1.0
    rows = []
    for step in range(1, steps + 1):
        t = step / steps
        for position, role in enumerate(("all", *roles)):
            drift = 1 + 4 * noisy * t**3 * (falls and role in ("all", "generator"))
            episodes = config.training.prompts_per_step * config.training.episodes_per_prompt
            slots = 3 if role == PARALLEL.get(cell.workflow) else 1
            rows.append(
                {
                    "step": step,
                    "role": role,
                    "adapter": role if cell.policy == "IP" and role != "all" else "shared",
                    "rows": episodes * slots,
                    "tokens": episodes * slots * (20 + position),
                    "episodes": episodes,
                    "optimizer_steps": 2,
                    "lr": config.training.optimizer.lr * min(1, step / 5),
                    "reward": 0.3 + 0.3 * t + 0.02 * rng.normal(),
                    "success": float(np.clip(0.3 + 0.3 * t + 0.03 * rng.normal(), 0, 1)),
                    "format_error": 0.2 * (1 - t),
                    "abnormal": 0.0,
                    "advantage_std": 0.9,
                    "groups": config.training.prompts_per_step,
                    "zero_variance_groups": int(rng.integers(0, 3)),
                    "fallback": 0.05 * (1 - t),
                    "truncated": 0.02,
                    "length_mean": 20.0 * drift,
                    "length_std": 5.0 * drift,
                    "length_q50": 19.0 * drift,
                    "length_q90": 30.0 * drift,
                    "boxed": 1.0,
                    "code_block": 0.0,
                    "terse": 0.0,
                    "capture": None if role == "all" else 0.1 * t,
                    "entropy": (0.9 - 0.3 * noisy * t) + 0.01 * rng.random(),
                    "perplexity": 1.5 * drift + 0.02 * rng.random(),
                    "top_prob": 0.6 + 0.2 * t,
                    "distinct": 0.6 - 0.1 * t,
                    "chi2_mismatch": 1e-6,
                    "chi2_update": 0.01 * noisy * drift**2 * (1 + 0.2 * rng.random()),
                    "kl_sampler": 1e-7,
                    "kl_base": 0.2 * t * drift
                    if step % config.ledger.kl_probe_every == 0
                    else None,
                    "ratio_update_max": 1 + 0.5 * noisy * drift * (1 + rng.random()),
                    "ratio_update_q999": 1 + 0.1 * noisy * drift,
                    "ratio_loss_max": 1 + 0.2 * noisy,
                    "clip_fraction": 0.01 * noisy,
                    "grad_norm": 0.5 * noisy * drift * (1 + 0.3 * rng.random()),
                    "role_grad_norm": None if role == "all" else 0.4 * noisy * drift / position,
                    "role_grad_share": None
                    if role == "all"
                    else (1.0 if cell.policy == "IP" else 1 / len(roles)),
                    "role_grad_mass": None
                    if role == "all"
                    else (1.0 if cell.policy == "IP" else 1 / len(roles)),
                    **_coherence(config, cell, role, step, rng),
                    "cos_ema": None if role == "all" else float(np.clip(0.3 + 0.2 * t, -1, 1)),
                    "delta_theta": 0.01 * noisy,
                    "alarms": "perplexity" if drift > 2 else "",
                }
            )
    return pd.DataFrame(rows)[list(METRICS)]


def _coherence(
    config: Config, cell: Cell, role: str, step: int, rng: np.random.Generator
) -> dict[str, float | None]:
    measured = role == PARALLEL.get(cell.workflow) and step % config.ledger.every == 0
    if not measured:
        names = [name for name in METRICS if name.startswith("coherence")]
        return dict.fromkeys(("slots", "amplification", *names))
    value = 0.5 + 0.05 * float(rng.normal())
    return {
        "slots": 3,
        "coherence": value,
        "coherence_within": 0.4 + 0.05 * float(rng.normal()),
        "coherence_null": 0.36,
        "coherence_null_hi": 0.42,
        "amplification": 3 * value**0.5,
    }


def gradient_rows(config: Config, cell: Cell, rng: np.random.Generator) -> pd.DataFrame:
    """The long-form ledger: norms, shares and cosines of roles."""
    roles = ROLES.get(cell.workflow, ("generator",))
    rows = []
    for step in range(1, config.training.steps + 1):
        for i, a in enumerate(roles):
            adapter = a if cell.policy == "IP" else "shared"
            share = 1.0 if cell.policy == "IP" else 1 / len(roles)
            for quantity, value in (("norm", 0.4 + 0.1 * rng.random()), ("share", share)):
                rows.append((step, adapter, "role", a, "", quantity, value))
            if cell.policy != "IP":
                for b in roles[i + 1 :]:
                    rows.append((step, adapter, "role", a, b, "cosine", 0.2 + 0.1 * rng.random()))
    return pd.DataFrame(rows, columns=list(GRADIENTS))


def timing_rows(config: Config, cell: Cell) -> pd.DataFrame:
    """Seconds and tokens of every phase."""
    rows = [(1, 0, "start", 2.0, 1.5, 0)]
    for step in range(1, config.training.steps + 1):
        rows.append((1, step, "sample", 0.2, 0.19, 1200))
        rows.append((1, step, "grade", 0.02, 0.02, 0))
        rows.append((1, step, "update", 0.3, 0.29, 1100))
    rows.append((1, config.training.steps, "evaluate", 1.2, 1.1, 9000))
    return pd.DataFrame(rows, columns=list(TIMINGS))


def _manifest(cell: Cell, seed: int) -> dict:
    return {
        "cell": cell.name,
        "seed": seed,
        "steps": 40 if cell.trained else 0,
        "wall_s": 20.0,
        "cpu_s": 19.0,
        "peak_memory_mb": 700.0,
        "sandbox_tier": 1,
    }


def _write_transfer(
    layout: Layout, config: Config, cell: Cell, seed: int, solved: dict[str, list[Problem]]
) -> None:
    rng = np.random.default_rng(call_seed("transfer", cell.workflow, cell.scale, cell.task, seed))
    rows = evaluation_rows(config, cell, seed, solved[cell.task], rng)
    last = rows[rows["step"] == rows["step"].max()].reset_index(drop=True)
    folder = layout.transfer(cell.workflow, cell.scale, cell.task, seed)
    write_parquet(folder / "evaluations.parquet", last, EVALUATIONS)
