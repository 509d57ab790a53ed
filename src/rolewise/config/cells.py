"""Which cells a study has: the grid, what differs for some of its cells, and how cells are selected."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from rolewise.config.section import Name, OrMore, Section


class Match(Section):
    """Selects cells; a field left out matches everything."""

    workflow: list[str] | None = Field(None, description="workflow names")
    policy: list[str] | None = Field(None, description="SA, IP, SP or Base")
    scale: list[str] | None = Field(None, description="model scales")
    task: list[str] | None = Field(None, description="Math, Code")
    variant: list[str] | None = Field(
        None, description="names from grid.variants; '' for main cells"
    )


def _every_or_none(value: Any) -> Any:
    """True selects every cell, false none."""
    return ([{}] if value else []) if isinstance(value, bool) else value


Selection = Annotated[
    list[Match], BeforeValidator(_every_or_none, json_schema_input_type=bool | list[Match])
]


class Override(Section):
    """Settings that differ for some cells: `set` maps dotted keys to values."""

    match: Match = Field(Match(), description="cells it applies to")
    set: dict[str, Any] = Field(description="dotted keys and their values")


class Variant(Section):
    """An intervention: the matched cells are trained again under `set`, named `<cell>~<name>`."""

    name: Name = Field(description="appended to the cell's name as ~name")
    match: Match = Field(Match(), description="cells that are trained again")
    set: dict[str, Any] = Field({}, description="dotted keys and their values")
    seeds: list[OrMore] | None = Field(None, description="seeds of this variant; default: seeds")


class Grid(Section):
    """Which cells exist."""

    workflows: list[str] = Field(description="multi-agent workflows")
    policies: list[Literal["IP", "SP"]] = Field(description="how role updates are routed")
    scales: list[Name] = Field(description="model scales, keys of `models`")
    tasks: list[str] = Field(description="tasks, keys of `tasks`")
    single_agent: bool = Field(True, description="train the single-agent baseline (SA-RL)")
    main: Selection = Field(
        True,
        validate_default=True,
        description="main cells to train, beside the variants; true: all, false: none",
    )
    exclude: list[Match] = Field([], description="cells to leave out")
    overrides: list[Override] = Field([], description="settings that differ for some cells")
    variants: list[Variant] = Field([], description="interventions")
