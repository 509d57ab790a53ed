"""What can be deleted without losing a result: state of other configurations, and state on request."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rolewise.config import Config, digest
from rolewise.errors import StateError
from rolewise.grid import Cell
from rolewise.runs.graph import RESOLVED, Graph
from rolewise.runs.state import StateDir


@dataclass(frozen=True)
class Removable:
    """A folder or file that can go, with its size in bytes and the reason."""

    path: Path
    size: int
    reason: str


def leftovers(config: Config) -> list[Removable]:
    """State that no cell of the present configuration uses, and settled configurations of old runs."""
    graph = Graph(config)
    wanted = {
        path for cell, seed in graph.trained + graph.base for path in _states(graph, cell, seed)
    }
    root = graph.layout.root
    found = [
        _removable(path, "state of another configuration")
        for path in sorted(root.glob("state/*/seed*/*"))
        if path.is_dir() and path not in wanted
    ]
    present = f"{digest(config.model_dump(mode='json'))}.yaml"
    return found + [
        _removable(path, "configuration of an earlier run")
        for path in sorted(RESOLVED.glob("*.yaml"))
        if path.name != present
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
            item.path.unlink()


def _states(graph: Graph, cell: Cell, seed: int) -> list[Path]:
    evaluation = graph.layout.evaluation_state(graph.config, cell, seed)
    if not cell.trained:
        return [evaluation]
    return [graph.layout.training_state(graph.config, cell, seed), evaluation]


def _removable(path: Path, reason: str) -> Removable:
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    return Removable(path, sum(p.stat().st_size for p in files), reason)
