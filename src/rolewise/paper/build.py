"""Builds a table or a figure of the study by its number."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

from rolewise.errors import RolewiseError
from rolewise.paper.output import write_figure, write_table
from rolewise.paper.study import Study
from rolewise.runs.layout import layout

TABLES = range(1, 11)
FIGURES = range(1, 9)


def build_table(study: Study, number: int) -> list[Path]:
    """Write Table `number` below `results_dir`; returns the files."""
    module = _module("table", number, TABLES)
    data = module.data(study)
    return write_table(
        layout(study.config),
        number,
        title=module.TITLE,
        caption=module.caption(study, data),
        data=data,
        display=module.display(data),
    )


def build_figure(study: Study, number: int) -> list[Path]:
    """Write Figure `number` below `results_dir`; returns the files."""
    from rolewise.paper.style import styled

    module = _module("figure", number, FIGURES)
    data = module.data(study)
    with styled():
        return write_figure(
            layout(study.config),
            number,
            title=module.TITLE,
            caption=module.caption(study, data),
            data=data,
            figure=module.draw(data, study),
            formats=study.config.paper.figure_format,
        )


def _module(kind: str, number: int, known: range) -> ModuleType:
    if number not in known:
        raise RolewiseError(
            f"there is no {kind} {number}; {kind}s are {known.start} to {known.stop - 1}"
        )
    return importlib.import_module(f"rolewise.paper.{kind}_{number}")
