"""Which results no longer belong to the present configuration, inputs or code, and how to renew them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rolewise.config import Config, canonical_json, digest, for_cell, training_subset
from rolewise.errors import DataError
from rolewise.grid import Cell
from rolewise.runs.graph import Graph
from rolewise.runs.provenance import code_fingerprint, inputs


@dataclass(frozen=True)
class Stale:
    """A result that is older than what is behind it."""

    cell: str
    seed: int
    reasons: tuple[str, ...]
    command: str


def audit(config: Config, files: Sequence[Path] = ()) -> list[Stale]:
    """Every finished result of the grid that is stale; results not made yet are not listed.

    `files` are the configuration files over config.yaml, for the commands to name.
    """
    graph = Graph(config)
    found = [_training(config, graph, files, *run) for run in graph.trained]
    found += [_evaluation(config, graph, files, *run) for run in graph.trained + graph.base]
    return [item for item in found if item is not None]


def has_results(config: Config) -> bool:
    """Whether there is a result of the grid that an audit could judge."""
    graph = Graph(config)
    made = graph.paths(graph.trained, "manifest.json")
    made += graph.paths(graph.trained + graph.base, "evaluations.parquet")
    return any(Path(file).is_file() for file in made)


def _training(
    config: Config, graph: Graph, files: Sequence[Path], cell: Cell, seed: int
) -> Stale | None:
    manifest_file = graph.layout.cell(cell, seed) / "manifest.json"
    if not manifest_file.is_file():
        return None
    manifest = _read(manifest_file)
    if manifest is None:
        reason = f"{manifest_file.name}: damaged"
        command = _renew(manifest_file.with_name("summary.json"), files, force=manifest_file)
        return Stale(cell.name, seed, (reason,), command)
    subset = json.loads(canonical_json(training_subset(config, cell)))
    settings = _changed(manifest["config"], subset)
    steps = for_cell(config, cell).training.steps
    if manifest["steps"] != steps:
        settings.append(f"training.steps: {manifest['steps']} then, {steps} now")
    summary = manifest_file.with_name("summary.json")
    if settings:
        return Stale(cell.name, seed, tuple(settings), _renew(summary, files))
    try:
        present = inputs(config, cell)
    except DataError as error:
        return Stale(cell.name, seed, (str(error),), _renew(summary, files))
    behind = _changed_content(manifest["inputs"], present)
    if code_fingerprint() not in manifest["code"]:
        behind.append("code: a module that can change a training has changed")
    if not behind:
        return None
    command = _renew_afresh(cell, seed, files, summary, manifest_file)
    return Stale(cell.name, seed, tuple(behind), command)


def _evaluation(
    config: Config, graph: Graph, files: Sequence[Path], cell: Cell, seed: int
) -> Stale | None:
    folder = graph.layout.cell(cell, seed)
    if not (folder / "evaluations.parquet").is_file():
        return None
    # The name of the state holds the settings; without any state nothing can be said.
    state = graph.layout.evaluation_state(config, cell, seed)
    if state.is_dir():
        return None if cell.trained else _base_inputs(config, state, folder, files, cell, seed)
    if not list(state.parent.glob("evaluate-*")):
        return None
    if cell.trained and manifest_hash(folder) != digest(training_subset(config, cell)):
        return None  # the training is stale, which covers it
    reason = "evaluation: its settings have changed"
    command = _renew(folder / "summary.json", files, force=folder / "evaluations.parquet")
    return Stale(cell.name, seed, (reason,), command)


def _base_inputs(
    config: Config, state: Path, folder: Path, files: Sequence[Path], cell: Cell, seed: int
) -> Stale | None:
    """Whether data, model or prompts of an untrained evaluation, of which no manifest tells, changed."""
    identity = state / "identity.json"
    if not identity.is_file():
        return None
    try:
        behind = _changed_content(json.loads(identity.read_text())["inputs"], inputs(config, cell))
    except DataError as error:
        behind = [str(error)]
    if not behind:
        return None
    command = _renew_afresh(
        cell, seed, files, folder / "summary.json", folder / "evaluations.parquet"
    )
    return Stale(cell.name, seed, tuple(behind), command)


def _changed_content(then: dict[str, str], now: dict[str, str]) -> list[str]:
    return [f"{name}: its content has changed" for name in now if then.get(name) != now[name]]


def manifest_hash(folder: Path) -> str | None:
    """Hash of the settings that the training in `folder` was made under; None without a manifest."""
    file = folder / "manifest.json"
    return (_read(file) or {}).get("config_hash") if file.is_file() else None


def _read(manifest: Path) -> dict | None:
    """The content of a cell's manifest; None if it is damaged."""
    try:
        content = json.loads(manifest.read_text())
    except ValueError:
        return None
    needed = {"config", "config_hash", "steps", "inputs", "code"}
    return content if isinstance(content, dict) and needed <= content.keys() else None


def _renew(target: Path, files: Sequence[Path], force: Path | None = None) -> str:
    # The target comes first: options that take lists would swallow it.
    named = f" --configfile {' '.join(map(str, files))}" if files else ""
    return f"snakemake {target} --cores all{named}" + (f" --forcerun {force}" if force else "")


def _renew_afresh(cell: Cell, seed: int, files: Sequence[Path], target: Path, force: Path) -> str:
    # What has changed is no part of the name of the state, so that the old state has to go.
    named = "".join(f" --configfile {file}" for file in files)
    fresh = f"rolewise clean --state --cell {cell.name} --seed {seed} --yes{named} && "
    return fresh + _renew(target, files, force=force)


def _changed(then: object, now: object, key: str = "") -> list[str]:
    if isinstance(then, dict) and isinstance(now, dict):
        return [
            line
            for name in sorted(then.keys() | now.keys())
            for line in _changed(then.get(name), now.get(name), f"{key}.{name}".lstrip("."))
        ]
    if then == now:
        return []
    return [f"{key}: {json.dumps(then)} then, {json.dumps(now)} now"]
