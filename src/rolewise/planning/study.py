"""The plan of every training of a study, on one device."""

from __future__ import annotations

import json

from rolewise.config import Config, for_cell
from rolewise.errors import RolewiseError
from rolewise.grid import seeds_of, trained_cells
from rolewise.planning.assumptions import DEVICES, Assumptions, Device
from rolewise.planning.estimate import Plan, plan_cell
from rolewise.planning.sizes import size_of
from rolewise.runs.layout import layout


def assumptions(device: str, response_share: float | None) -> tuple[Device, Assumptions]:
    """The device called `device` and the assumptions with what was overridden."""
    if device not in DEVICES:
        raise RolewiseError(f"unknown device '{device}'; known: {', '.join(DEVICES)}")
    if response_share is None:
        return DEVICES[device], Assumptions()
    if not 0 < response_share <= 1:
        raise RolewiseError(f"--response-share: {response_share} is not above 0 and at most 1")
    return DEVICES[device], Assumptions(response_share=response_share)


def plan_study(config: Config, device: Device, assume: Assumptions) -> list[Plan]:
    """One plan per training: a cell that is trained under several seeds appears once for each."""
    places = layout(config)
    sizes = {
        scale: size_of(config.models[scale], places.model(scale)) for scale in config.grid.scales
    }
    plans = []
    for cell in trained_cells(config):
        own = for_cell(config, cell)
        problems = validation_problems(own, cell.task)
        one = plan_cell(own, cell, sizes[cell.scale], device, problems, assume)
        plans += [one] * len(seeds_of(config, cell))
    return plans


def validation_problems(config: Config, task: str) -> int:
    """Validation problems of a task: as prepared, else as configured."""
    manifest = layout(config).data(task) / "manifest.json"
    if manifest.is_file():
        return json.loads(manifest.read_text())["counts"]["validation"]
    spec = config.tasks[task]
    expected = getattr(spec, "expect", {}).get("validation")
    if expected is None and not isinstance(spec.validation, int):
        raise RolewiseError(
            f"tasks.{task}: the number of validation problems is not known before `rolewise data "
            f"{task}`; prepare the data or name it under tasks.{task}.expect"
        )
    return expected or spec.validation
