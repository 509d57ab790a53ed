"""What no single key of a configuration shows: names that match nothing, settings that would do nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rolewise.grid import (
    BASE,
    ISOLATED,
    SHARED,
    SINGLE,
    SINGLE_AGENT,
    did_you_mean,
    main_cells,
    matches,
    trained_cells,
)

if TYPE_CHECKING:
    from rolewise.config import Config, Match, Variant
    from rolewise.config.cells import Grid

TASKS = ("Math", "Code")
WORKFLOWS = ("Eval-Opt", "Voting", "Orch-Workers")
# These belong to the whole study: data, models and tables are shared by its cells.
STUDY_WIDE = (
    "preset",
    "results_dir",
    "frozen",
    "seeds",
    "grid",
    "models",
    "tasks",
    "signatures",
    "paper",
    "resources",
    "extensions",
    "evaluation.transfer_scales",
    "evaluation.role_swap",
)


def contradictions(config: Config) -> list[str]:
    """Every setting of a valid configuration that could have no effect or two meanings, with its key."""
    grid = config.grid
    tasks = {*config.tasks, *TASKS, *config.extensions.tasks}
    workflows = {*WORKFLOWS, SINGLE, *config.extensions.workflows}
    names = {
        "workflow": workflows,
        "policy": {BASE, SINGLE_AGENT, ISOLATED, SHARED},
        "scale": set(config.models),
        "task": tasks,
        "variant": {"", *(variant.name for variant in grid.variants)},
    }
    problems = [
        *_repeated("seeds", config.seeds),
        *_repeated("grid.workflows", grid.workflows),
        *_repeated("grid.policies", grid.policies),
        *_repeated("grid.scales", grid.scales),
        *_repeated("grid.tasks", grid.tasks),
        *_ambiguous(grid.variants),
        *_unknown("caps", config.caps, tasks),
        *_unknown("workflow.max_iterations", config.workflow.max_iterations, tasks),
    ]
    for task, caps in config.caps.items():
        problems += _unknown(f"caps.{task}.prompt", caps.prompt, workflows | {"default"})
    for i, match in enumerate(grid.exclude):
        problems += _match(f"grid.exclude[{i}]", match, names)
    problems += _main(config, names)
    for i, match in enumerate(config.evaluation.role_swap):
        problems += _match(f"evaluation.role_swap[{i}]", match, names)
    for i, override in enumerate(grid.overrides):
        problems += _match(f"grid.overrides[{i}].match", override.match, names)
        problems += _study_wide(f"grid.overrides[{i}].set", override.set)
    for variant in grid.variants:
        where = f"grid.variants[{variant.name}]"
        problems += _match(f"{where}.match", variant.match, names)
        problems += _study_wide(f"{where}.set", variant.set)
        problems += _repeated(f"{where}.seeds", variant.seeds or [])
        if variant.seeds == []:
            problems.append(f"{where}.seeds: empty; null means the study's seeds")
    cells = Counter() if problems else Counter(cell.name for cell in trained_cells(config))
    repeated = [name for name, count in cells.items() if count > 1]
    if repeated:
        problems.append(f"grid.variants: two variants of one name match {', '.join(repeated)}")
    return problems


def _repeated(key: str, values: Sequence[object]) -> list[str]:
    return [f"{key}: values repeat: {values}"] if len(set(values)) != len(values) else []


def _ambiguous(variants: Sequence[Variant]) -> list[str]:
    """Variants may share a name, to match several kinds of cells, but not differ in what it stands for."""
    first: dict[str, Variant] = {}
    return [
        f"grid.variants[{variant.name}]: two variants of this name differ in `set` or `seeds`"
        for variant in variants
        if (other := first.setdefault(variant.name, variant)).set != variant.set
        or other.seeds != variant.seeds
    ]


def _unknown(key: str, values: Iterable[str], allowed: set[str]) -> list[str]:
    listed = ", ".join(sorted(name for name in allowed if name))
    return [
        f"{key}: '{value}' is not one of {listed}{did_you_mean(value, allowed)}"
        for value in values
        if value not in allowed
    ]


def _main(config: Config, names: dict[str, set[str]]) -> list[str]:
    """Mistakes of `grid.main`: names unknown to the study, matches without a cell."""
    problems, cells = [], main_cells(config)
    if not cells:
        return [_empty(config.grid)]
    for i, match in enumerate(config.grid.main):
        unknown = _match(f"grid.main[{i}]", match, names)
        if not unknown and not any(matches(cell, match) for cell in cells):
            unknown = [f"grid.main[{i}]: selects no cell of the grid"]
        problems += unknown
    return problems


def _empty(grid: Grid) -> str:
    """Why the grid spans no cell."""
    for key in ("scales", "tasks"):
        if not getattr(grid, key):
            return f"grid.{key}: empty, so that the study has no cell; name at least one"
    if not grid.single_agent and not (grid.workflows and grid.policies):
        key = "policies" if grid.workflows else "workflows"
        return (
            f"grid.{key}: empty and grid.single_agent false, so that the study has no cell; "
            "name at least one, or set single_agent: true"
        )
    return "grid.exclude: leaves out every cell of the grid; narrow it"


def _match(key: str, match: Match, names: dict[str, set[str]]) -> list[str]:
    return [
        line
        for field, values in match.model_dump(exclude_none=True).items()
        for line in _unknown(f"{key}.{field}", values, names[field])
    ]


def _study_wide(key: str, settings: Iterable[str]) -> list[str]:
    return [
        f"{key}: {dotted} cannot differ between cells; set {whole} for the whole study"
        for dotted in settings
        for whole in STUDY_WIDE
        if dotted == whole or dotted.startswith(f"{whole}.")
    ]
