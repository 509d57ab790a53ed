"""The files of one finished cell: logs as tables, regraded trajectories and `summary.json`."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from rolewise.analysis import detectors
from rolewise.analysis.outcomes import (
    MEASURED,
    SPLITS,
    Outcomes,
    choose_checkpoints,
    format_part,
    gain,
    interval_of,
    mark_steps,
    outcomes,
)
from rolewise.analysis.regrade import regrade
from rolewise.analysis.sources import read_json, read_log, read_table
from rolewise.analysis.statistics import Interval
from rolewise.config import Config, for_cell
from rolewise.errors import DataError
from rolewise.grid import Cell, base_of
from rolewise.records import (
    GRADIENTS,
    METRICS,
    TIMINGS,
    TRAJECTORIES,
    write_parquet,
    write_text,
)
from rolewise.runs.layout import layout
from rolewise.runs.state import StateDir
from rolewise.tasks.problem import read_problems
from rolewise.tasks.task import open_task
from rolewise.workflows.base import topology


def summarise(config: Config, cell: Cell, seed: int) -> Path:
    """Write metrics, gradients, timings and trajectories of a cell, then its `summary.json`.

    A base cell has evaluations and trajectories only. Missing or malformed input is a DataError. With
    `keep_checkpoints: analysis` only the early, best and terminal checkpoints are left in the state.
    """
    places = layout(config)
    own = for_cell(config, cell)
    folder = places.cell(cell, seed)
    found = outcomes(read_table(folder / "evaluations.parquet"))
    checkpoints = choose_checkpoints(found) if cell.trained else {"base": 0}

    metrics = timings = base = None
    if cell.trained:
        base_folder = places.cell(base_of(config, cell), seed)
        base = outcomes(read_table(base_folder / "evaluations.parquet"))
        state = places.training_state(config, cell, seed)
        metrics = read_log(state, "metrics", METRICS)
        timings = read_log(state, "timings", TIMINGS)
        gradients = read_log(state, "gradients", GRADIENTS)
        if metrics["step"].max() != checkpoints["terminal"]:
            raise DataError(
                f"{state / 'metrics.jsonl'}: ends at step {metrics['step'].max()}, but checkpoint "
                f"{checkpoints['terminal']} was evaluated; the log is damaged, train the cell again"
            )
        write_parquet(folder / "metrics.parquet", metrics, METRICS)
        write_parquet(folder / "gradients.parquet", gradients, GRADIENTS)
        write_parquet(folder / "timings.parquet", timings, TIMINGS)

    shards = places.evaluation_state(config, cell, seed)
    calls = pd.concat(
        [
            read_table(shards / f"calls_{step:06d}.parquet").assign(checkpoint=names)
            for step, names in mark_steps(checkpoints).items()
        ],
        ignore_index=True,
    )
    problems = read_problems(places.data(cell.task) / "validation.jsonl")
    with open_task(own, cell.task).grader as grader:
        main_role = topology(own, cell.workflow).main_role
        trajectories = regrade(calls, problems, grader, main_role)
    write_parquet(folder / "trajectories.parquet", trajectories, TRAJECTORIES)

    manifest_path = folder / "manifest.json"
    manifest = read_json(manifest_path) if manifest_path.exists() else {}
    summary = summary_of(config, cell, seed, Inputs(found, base, metrics, timings, manifest))
    text = json.dumps(summary, indent=2, ensure_ascii=False, allow_nan=False)
    write_text(folder / "summary.json", text + "\n")
    if cell.trained and own.training.keep_checkpoints == "analysis":
        training = StateDir(places.training_state(config, cell, seed))
        with training.lock():
            training.prune(set(checkpoints.values()))
    return folder / "summary.json"


@dataclass(frozen=True)
class Inputs:
    """What a summary is made from; a base cell has neither a base nor logs."""

    found: Outcomes
    base: Outcomes | None = None
    metrics: pd.DataFrame | None = None
    timings: pd.DataFrame | None = None
    manifest: dict = field(default_factory=dict)


def summary_of(config: Config, cell: Cell, seed: int, inputs: Inputs) -> dict:
    """The content of `summary.json`, pure: the cell, `results`, entropy collapse and cost."""
    own = for_cell(config, cell)
    checkpoints = choose_checkpoints(inputs.found) if cell.trained else {"base": 0}
    summary = {
        "preset": config.preset,
        "cell": cell.name,
        **dataclasses.asdict(cell),
        "seed": seed,
        **results(own, inputs.found, inputs.base, checkpoints),
    }
    if inputs.metrics is not None:
        summary["entropy_collapse"] = collapses(inputs.metrics, own.alarms.entropy_ratio)
    if inputs.timings is not None:
        summary["cost"] = cost(inputs.timings, inputs.manifest)
    return summary


def results(
    config: Config, found: Outcomes, base: Outcomes | None, checkpoints: dict[str, int]
) -> dict:
    """What evaluations say of a cell: accuracies, gain over the base cell, cliff, plateau.

    Every interval is `{value, lo, hi, n}`; `base` is None for a base cell.
    """
    resamples = config.signatures.bootstrap
    shown = {name: (found, step) for name, step in checkpoints.items()}
    if base is not None:
        shown = {"base": (base, 0), **shown}
    summary: dict = {"steps": checkpoints, "evaluated_steps": list(found.steps)}
    for measure in MEASURED:
        summary[measure] = {
            name: {
                split: as_dict(interval_of(source, measure, step, split, resamples))
                for split in SPLITS
            }
            for name, (source, step) in shown.items()
        }
    if base is None:
        return summary
    best, last = checkpoints["best"], checkpoints["terminal"]
    summary["peak"] = summary["accuracy"]["best"]["report"]
    summary["terminal"] = summary["accuracy"]["terminal"]["report"]
    summary["gain"], summary["format_part"], summary["format_share"] = {}, {}, {}
    for name, step in checkpoints.items():
        pair = ((found, step), (base, 0))
        gains = {split: gain(*pair, split, resamples) for split in SPLITS}
        parts = {split: format_part(*pair, split, resamples) for split in SPLITS}
        summary["gain"][name] = {split: as_dict(gains[split]) for split in SPLITS}
        summary["format_part"][name] = {split: as_dict(parts[split]) for split in SPLITS}
        summary["format_share"][name] = {s: share(parts[s], gains[s]) for s in SPLITS}
    fall = detectors.cliff(
        found.of("accuracy", best, "report"),
        found.of("accuracy", last, "report"),
        config.signatures.cliff_drop,
        resamples,
    )
    summary["cliff"] = {
        **as_dict(fall.drop),
        "threshold": config.signatures.cliff_drop,
        "verdict": fall.verdict,
    }
    steps = [step for step in found.steps if step > 0]
    curve = [found.of("accuracy", step, "all").mean() for step in steps]
    flat = detectors.plateau(np.asarray(steps), np.asarray(curve))
    summary["plateau"] = None if flat is None else dataclasses.asdict(flat)
    return summary


def share(part: Interval, whole: Interval) -> float | None:
    """`part` as a share of `whole`; None where there is no positive whole to share out."""
    if part.value is None or whole.value is None or whole.value <= 0:
        return None
    return part.value / whole.value


def collapses(metrics: pd.DataFrame, remaining: float) -> dict:
    """Entropy collapse per role, `all` included; None where no entropy was logged."""
    found = {}
    for role, rows in metrics.sort_values("step").groupby("role", sort=False):
        collapse = detectors.entropy_collapse(
            rows["step"].to_numpy(), rows["entropy"].to_numpy(dtype=float), remaining
        )
        found[str(role)] = None if collapse is None else dataclasses.asdict(collapse)
    return found


def cost(timings: pd.DataFrame, manifest: dict) -> dict:
    """Tokens and seconds by phase; what the manifest knows better (all attempts, memory) wins."""
    phases = timings.groupby("phase", sort=True)[["wall_s", "cpu_s", "tokens"]].sum()
    tokens = phases["tokens"]
    totals = {
        "tokens_sampled": int(tokens.get("sample", 0)),
        "tokens_trained": int(tokens.get("update", 0)),
        "wall_s": float(phases["wall_s"].sum()),
        "cpu_s": float(phases["cpu_s"].sum()),
        "gpu_s": 0.0,
        "attempts": int(timings["attempt"].max()),
        "peak_memory_mb": None,
    }
    known = {key: manifest[key] for key in totals if manifest.get(key) is not None}
    seconds = {
        str(phase): {"wall_s": float(row["wall_s"]), "cpu_s": float(row["cpu_s"])}
        for phase, row in phases.iterrows()
    }
    return totals | known | {"phases": seconds}


def as_dict(interval: Interval) -> dict:
    """The interval as plain JSON."""
    return dataclasses.asdict(interval)
