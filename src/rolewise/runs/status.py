"""The state of every cell, read from the files it has left so far."""

from __future__ import annotations

import csv
import json
import statistics
from dataclasses import dataclass
from pathlib import Path

from rolewise.config import Config, for_cell
from rolewise.grid import Cell
from rolewise.runs.graph import Graph
from rolewise.runs.layout import Layout
from rolewise.runs.state import StateDir

RECENT = 10


@dataclass(frozen=True)
class CellStatus:
    """One cell and seed; what is not known yet is None."""

    cell: str
    seed: int
    state: str
    step: int | None = None
    steps: int | None = None
    reward: float | None = None
    accuracy: float | None = None
    eta_s: float | None = None
    note: str = ""


def study_status(config: Config) -> list[CellStatus]:
    """The state of every cell and seed: waiting, training, stopped, failed, trained, evaluating, evaluated or done."""
    graph = Graph(config)
    return [cell_status(config, graph.layout, *run) for run in graph.trained + graph.base]


def cell_status(config: Config, places: Layout, cell: Cell, seed: int) -> CellStatus:
    """The state of one cell and seed."""
    folder = places.cell(cell, seed)
    steps = for_cell(config, cell).training.steps if cell.trained else None
    progress = _progress(StateDir(places.training_state(config, cell, seed)), steps)
    known = {"steps": steps, "accuracy": _accuracy(folder)} | progress
    stage, state, note = _stage(config, places, cell, seed)
    if state != "training":
        known["eta_s"] = None
    if stage is None:
        known |= {"step": steps}
    return CellStatus(cell.name, seed, state, note=note, **known)


def _stage(config: Config, places: Layout, cell: Cell, seed: int) -> tuple[str | None, str, str]:
    folder = places.cell(cell, seed)
    training = places.training_state(config, cell, seed)
    if StateDir(training).holder() is not None:
        return "train", "training", ""
    evaluation = places.evaluation_state(config, cell, seed)
    if StateDir(evaluation).holder() is not None:
        done = len(list(evaluation.glob("evaluations_*.parquet")))
        return None, "evaluating", f"{done} checkpoint(s) finished"
    # A rerun deletes its own output first: what stands behind it is of the attempt before. Without
    # any state the results came from elsewhere, perhaps without their manifest.
    summarised = (folder / "summary.json").is_file()
    if (
        cell.trained
        and not (folder / "manifest.json").is_file()
        and (training.is_dir() or not summarised)
    ):
        state, note = _ended(places.log("train", cell, seed), training.is_dir(), "stopped")
        return "train", state, note
    before = "trained" if cell.trained else "waiting"
    evaluated = (folder / "evaluations.parquet").is_file()
    if not evaluated and (evaluation.is_dir() or not summarised):
        return None, *_ended(places.log("evaluate", cell, seed), False, before)
    if summarised:
        return None, "done", ""
    return None, *_ended(places.log("summarise", cell, seed), False, "evaluated")


def _ended(log: Path, started: bool, otherwise: str) -> tuple[str, str]:
    """State and last log line of a stage that is neither running nor finished."""
    line = last_line(log)
    asked_to_stop = "rerun the same command to continue" in line
    if line and not asked_to_stop and ("error" in line.lower() or "exception" in line.lower()):
        return "failed", line
    if otherwise == "stopped":
        return ("stopped", line) if started else ("waiting", "")
    return otherwise, ""


def last_line(log: Path) -> str:
    """The last line of a log that is not blank; empty if there is no log."""
    try:
        with open(log, "rb") as handle:
            handle.seek(max(0, log.stat().st_size - 4096))
            lines = handle.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _progress(state: StateDir, steps: int | None) -> dict:
    metrics = [row for row in state.rows("metrics") if row.get("role") == "all"]
    if not metrics or steps is None:
        return {"step": None, "reward": None, "eta_s": None}
    last = metrics[-1]
    seconds: dict[int, float] = {}
    for row in state.rows("timings"):
        seconds[row["step"]] = seconds.get(row["step"], 0.0) + row["wall_s"]
    recent = [seconds[step] for step in sorted(seconds)[-RECENT:]]
    eta = (steps - last["step"]) * statistics.mean(recent) if recent else None
    return {"step": last["step"], "reward": last.get("reward"), "eta_s": eta}


def _accuracy(folder: Path) -> float | None:
    """Accuracy on the report half: of the best checkpoint when it is chosen, else of the last."""
    try:
        peak = json.loads((folder / "summary.json").read_text()).get("peak")
        if peak:
            return peak["value"]
    except (OSError, ValueError):
        pass  # not summarised yet
    try:
        with open(folder / "accuracy.csv", newline="") as handle:
            rows = [row for row in csv.DictReader(handle) if row["split"] == "report"]
    except OSError:
        return None
    return float(max(rows, key=lambda row: int(row["step"]))["accuracy"]) if rows else None
