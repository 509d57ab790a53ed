"""Evaluation of a cell's checkpoints on the validation problems, a resumable shard per checkpoint."""

from __future__ import annotations

import io
import logging
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from rolewise.config import Config, evaluation_subset, for_cell, training_subset
from rolewise.errors import DataError
from rolewise.grid import Cell
from rolewise.policy.policy import Policy, routes, saved_policy
from rolewise.records import CALLS, EVALUATIONS, write_bytes, write_csv, write_parquet
from rolewise.runs import provenance
from rolewise.runs.layout import layout
from rolewise.runs.signals import Stop, stop_requested
from rolewise.runs.state import StateDir
from rolewise.sampling.episodes import Episode
from rolewise.sampling.stage import Graded, Stage, open_sampler, open_stage, sample_and_grade
from rolewise.tasks.grade import Grade, reward_of
from rolewise.tasks.problem import split_halves
from rolewise.training.loop import checkpoint_steps
from rolewise.workflows.judging import parsed_text

log = logging.getLogger(__name__)


def evaluation_steps(config: Config, cell: Cell) -> list[int]:
    """Steps to evaluate: 0 for a base cell, else every checkpoint."""
    return checkpoint_steps(for_cell(config, cell)) if cell.trained else [0]


def evaluate(config: Config, cell: Cell, seed: int) -> Path:
    """Evaluate every checkpoint of `cell`; writes evaluations.parquet and accuracy.csv.

    Finished checkpoints are not evaluated again.
    """
    folder = layout(config).cell(cell, seed)
    shards = layout(config).evaluation_state(config, cell, seed)
    training = StateDir(layout(config).training_state(config, cell, seed)) if cell.trained else None
    steps = evaluation_steps(config, cell)
    with stop_requested(for_cell(config, cell).training.max_wall) as stop, StateDir(shards).lock():
        check_inputs(config, cell, seed)
        names = ("calls", "evaluations")
        missing = [s for s in steps if not all(intact(_shard(shards, n, s)) for n in names)]
        if missing:
            with open_stage(config, cell, "validation") as stage:
                for step in missing:
                    policy = _policy(stage, training, step)
                    evaluate_policy(stage, policy, routes(cell.policy), step, seed, shards)
                    _check(stop, step)
    frame = pd.concat([pd.read_parquet(_shard(shards, "evaluations", step)) for step in steps])
    write_csv(folder / "accuracy.csv", accuracy_table(frame))
    write_parquet(folder / "evaluations.parquet", frame, EVALUATIONS)
    return folder / "evaluations.parquet"


def check_inputs(config: Config, cell: Cell, seed: int) -> None:
    """Refuse (StateError) to evaluate on other data, model or prompts than trained on, or to mix shards."""
    state = StateDir(layout(config).evaluation_state(config, cell, seed))
    state.check_identity(provenance.identity(config, cell, evaluation_subset(config, cell)))
    if cell.trained:
        training = StateDir(layout(config).training_state(config, cell, seed))
        # Only the training itself may say what its state belongs to.
        if (training.path / "identity.json").is_file():
            training.check_identity(
                provenance.identity(config, cell, training_subset(config, cell))
            )


def evaluate_policy(
    stage: Stage, policy: Policy, adapter_of, step: int, seed: int, shards: Path
) -> None:
    """Evaluate one policy on the stage's problems and write its two shards, evaluations last.

    Seeds do not depend on the step: checkpoints are compared on the same draws.
    """
    settings = stage.config.evaluation
    starts = [(p, k) for p in stage.problems for k in range(settings.samples)]
    with open_sampler(stage, policy) as sampler:
        graded = sample_and_grade(stage.rollout(adapter_of), sampler, starts, (seed, "evaluate"))
    rewards = [reward_of(stage.cell.task, g, stage.config.reward) for g in graded.grades]
    rows = _evaluation_rows(stage, graded, rewards, step)
    shown = {p.id for p in stage.problems[: settings.trajectory_problems]}
    calls = [
        row
        for episode, grade, reward in zip(graded.episodes, graded.grades, rewards, strict=True)
        if episode.problem.id in shown
        for row in call_rows(episode, grade, reward, step)
    ]
    log.info(
        "%s seed %d  checkpoint %d  accuracy %.3f (n = %d)",
        stage.cell, seed, step, sum(r["correct"] for r in rows) / len(rows), len(rows),
    )  # fmt: skip
    for name, table, columns in (("calls", calls, CALLS), ("evaluations", rows, EVALUATIONS)):
        buffer = io.BytesIO()
        pd.DataFrame(table, columns=list(columns)).to_parquet(buffer, index=False)
        write_bytes(_shard(shards, name, step), buffer.getvalue())


def accuracy_table(evaluations: pd.DataFrame) -> pd.DataFrame:
    """Accuracy, reward and problems of every step, on each half and on all problems."""
    both = pd.concat([evaluations, evaluations.assign(split="all")])
    return (
        both.groupby(["step", "split"])
        .agg(accuracy=("correct", "mean"), reward=("reward", "mean"), n=("problem", "nunique"))
        .reset_index()
    )


def best_step(config: Config, cell: Cell, seed: int) -> int:
    """The checkpoint of `cell` with the highest accuracy on the select half; the earliest on a tie."""
    file = layout(config).cell(cell, seed) / "accuracy.csv"
    if not file.is_file():
        raise DataError(f"{file}: not there; `snakemake --cores 1 {file}` makes it")
    try:
        table = pd.read_csv(file)
    except ValueError as error:
        raise DataError(
            f"{file}: damaged ({error}); delete it, then `snakemake --cores 1 {file}` makes it again"
        ) from error
    rows = table[(table.split == "select") & table.step.isin(evaluation_steps(config, cell))]
    return int(rows.sort_values(["accuracy", "step"], ascending=[False, True]).iloc[0].step)


def intact(shard: Path) -> bool:
    """Whether a shard is there and readable; a damaged one is evaluated again, with a warning."""
    if not shard.is_file():
        return False
    try:
        pq.read_metadata(shard)
    except (pa.ArrowException, OSError) as error:
        log.warning("%s is damaged (%s); evaluating it again", shard, error)
        return False
    return True


def require_checkpoint(training: StateDir, step: int) -> Path:
    """The intact checkpoint of `step`; DataError if it is missing or damaged."""
    found = training.latest(step)
    if found is None or found[0] != step:
        raise DataError(
            f"{training.checkpoint(step)}: checkpoint missing or damaged; delete {training.path}, "
            "then `snakemake --force` the cell's manifest.json to train it again"
        )
    return found[1]


def call_rows(episode: Episode, grade: Grade, reward: float, step: int) -> list[dict]:
    """One row per call of an episode (keys of CALLS)."""
    rows = []
    for index, record in enumerate(episode.calls):
        parsed = episode.parsed.get(record.call.key)
        completion = record.completion
        entropies = completion.entropies_T
        rows.append(
            {
                "step": step,
                "problem": episode.problem.id,
                "sample": episode.sample,
                "role": record.call.role,
                "slot": record.call.slot,
                "turn": record.call.turn,
                "call": index,
                "prompt": record.prompt,
                "text": record.text,
                "tokens": len(completion.ids),
                "distinct_tokens": len(set(completion.ids)),
                "prompt_tokens": len(record.prompt_ids),
                "finish_reason": completion.finish_reason,
                "entropy": None if entropies is None else float(entropies.mean()),
                "logprob": float(completion.logprobs_T.sum()),
                "parsed": None if parsed is None else parsed_text(parsed.value),
                "fallback": bool(parsed and parsed.fallback),
                "graded": episode.outcome is not None and episode.outcome.graded == record.call.key,
                "correct": grade.correct,
                "reward": reward,
            }
        )
    return rows


def _evaluation_rows(stage: Stage, graded: Graded, rewards: list[float], step: int) -> list[dict]:
    halves = split_halves(stage.problems)
    return [
        {
            "step": step,
            "problem": episode.problem.id,
            "split": halves[episode.problem.id],
            "sample": episode.sample,
            "correct": grade.correct,
            "reward": reward,
            "format_ok": grade.format_ok,
            "status": grade.status,
            "abnormal": episode.abnormal is not None,
            "fallbacks": sum(parsed.fallback for parsed in episode.parsed.values()),
            "calls": len(episode.calls),
            "tokens": sum(len(c.completion.ids) for c in episode.calls),
            "prompt_tokens": sum(len(c.prompt_ids) for c in episode.calls),
            "truncated": sum(c.completion.finish_reason == "length" for c in episode.calls),
        }
        for episode, grade, reward in zip(graded.episodes, graded.grades, rewards, strict=True)
    ]


def _policy(stage: Stage, training: StateDir | None, step: int) -> Policy:
    if training is None:
        return Policy(stage.backbone, {})
    folder = require_checkpoint(training, step)
    return saved_policy(stage.cell, stage.topology.roles, folder / "adapters", stage.backbone)


def _shard(folder: Path, name: str, step: int) -> Path:
    return folder / f"{name}_{step:06d}.parquet"


def _check(stop: Stop, step: int) -> None:
    stop.check(f"checkpoint {step} is evaluated")
