"""What can be deleted without losing a result: state that a result has superseded, and state on request."""

from __future__ import annotations

import contextlib
import fcntl
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from rolewise.analysis.sources import read_table
from rolewise.config import Config, digest, training_subset
from rolewise.errors import DataError, StateError
from rolewise.grid import Cell
from rolewise.runs.audit import manifest_hash
from rolewise.runs.graph import RESOLVED, Graph
from rolewise.runs.state import StateDir

DRAWN = ["step", "problem", "sample", "correct", "reward", "tokens"]


@dataclass(frozen=True)
class Removable:
    """A folder or file that can go, with its size in bytes and the reason."""

    path: Path
    size: int
    reason: str


def leftovers(config: Config) -> list[Removable]:
    """State whose cell has a newer result, of this configuration, and settled configurations of old runs."""
    graph = Graph(config)
    found = [
        _removable(path, "older state: the cell's result is of this configuration")
        for run in graph.trained + graph.base
        for path in _superseded(graph, *run)
    ]
    present = f"{digest(config.model_dump(mode='json'))}.yaml"
    return found + [
        _removable(path, "configuration of an earlier run")
        for path in sorted(RESOLVED.glob("*.yaml"))
        if path.name != present and not _held(path)
    ]


def kept(config: Config) -> list[Removable]:
    """State of other configurations that `leftovers` spares: nothing of this one replaces it."""
    graph = Graph(config)
    runs = graph.trained + graph.base
    spared = {path for run in runs for path in [*_states(graph, *run), *_superseded(graph, *run)]}
    return [
        _removable(path, "state of another configuration")
        for path in sorted(graph.layout.root.glob("state/*/seed*/*"))
        if path.is_dir() and path not in spared
    ]


def state_of(config: Config, cells: Iterable[str], seeds: Iterable[int]) -> list[Removable]:
    """Resumable state of the named cells and seeds (none named: all of them)."""
    graph = Graph(config)
    chosen_cells = {graph.cell(name) for name in cells}
    chosen_seeds = set(seeds)
    return [
        _removable(path, "resumable state: a rerun starts from the beginning")
        for cell, seed in graph.trained + graph.base
        if (not chosen_cells or cell in chosen_cells) and (not chosen_seeds or seed in chosen_seeds)
        for path in _states(graph, cell, seed)
        if path.is_dir()
    ]


def remove(items: list[Removable]) -> None:
    """Delete `items`; a state that a process is using is a StateError and nothing is deleted."""
    for item in items:
        holder = StateDir(item.path).holder()
        if holder is not None:
            raise StateError(
                f"{item.path} is in use by process {holder.get('pid')} on {holder.get('host')}; "
                "stop it first"
            )
    for item in items:
        if item.path.is_dir():
            shutil.rmtree(item.path)
        else:
            # Under the lock: a run that starts now waits for it and then makes the file anew.
            with _lock(item.path) as free:
                if free:
                    item.path.unlink()


@contextlib.contextmanager
def _lock(file: Path) -> Iterator[bool]:
    """Hold the lock of a settled configuration; False if a Snakemake that runs has it (`graph.hold`)."""
    with open(file, "rb+") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            free = True
        except BlockingIOError:
            free = False
        yield free


def _held(file: Path) -> bool:
    with _lock(file) as free:
        return not free


def _superseded(graph: Graph, cell: Cell, seed: int) -> list[Path]:
    """State of other configurations whose result gave way to one of this configuration.

    State that a result in the folder was made from, or that waits to become one, is not among it.
    """
    own = _states(graph, cell, seed)
    others = [p for p in sorted(own[0].parent.glob("*")) if p.is_dir() and p not in own]
    if not others:
        return []
    folder = graph.layout.cell(cell, seed)
    trained = cell.trained and manifest_hash(folder) == digest(training_subset(graph.config, cell))
    evaluated = (trained or not cell.trained) and _evaluated_from(own[-1], folder)
    gone = {"train": trained, "evaluate": evaluated}
    return [path for path in others if gone.get(path.name.partition("-")[0])]


def _evaluated_from(state: Path, folder: Path) -> bool:
    """Whether the evaluations in `folder` are those of `state`, row for row."""
    shards = sorted(state.glob("evaluations_*.parquet"))
    if not shards:
        return False
    try:
        result = read_table(folder / "evaluations.parquet")
        made = pd.concat([read_table(shard) for shard in shards])
    except DataError:
        return False
    made = made[made["step"].isin(result["step"].unique())]
    return made[DRAWN].to_numpy().tolist() == result[DRAWN].to_numpy().tolist()


def _states(graph: Graph, cell: Cell, seed: int) -> list[Path]:
    evaluation = graph.layout.evaluation_state(graph.config, cell, seed)
    if not cell.trained:
        return [evaluation]
    return [graph.layout.training_state(graph.config, cell, seed), evaluation]


def _removable(path: Path, reason: str) -> Removable:
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    return Removable(path, sum(p.stat().st_size for p in files), reason)
