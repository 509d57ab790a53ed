"""Builds a table or a figure of the study by its number."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType

from rolewise.analysis.cells import read_cells_file
from rolewise.config import parse
from rolewise.errors import RolewiseError
from rolewise.paper.output import write_figure, write_table
from rolewise.paper.study import Study
from rolewise.runs.layout import layout

MECHANISM = Path("results/reference-mechanism")
INTERVENTIONS = {("table", 9), ("figure", 8)}
TABLES = range(1, 11)
FIGURES = range(1, 9)


def build_table(study: Study, number: int) -> list[Path]:
    """Write Table `number` below `results_dir`; returns the files."""
    module = _module("table", number, TABLES)
    source = source_of(study, "table", number)
    data = module.data(source)
    return write_table(
        layout(study.config),
        number,
        title=module.TITLE,
        caption=_labelled(module.caption(source, data), study, source),
        data=data,
        display=module.display(data),
    )


def build_figure(study: Study, number: int) -> list[Path]:
    """Write Figure `number` below `results_dir`; returns the files."""
    from rolewise.paper.style import styled

    module = _module("figure", number, FIGURES)
    source = source_of(study, "figure", number)
    data = module.data(source)
    with styled():
        return write_figure(
            layout(study.config),
            number,
            title=module.TITLE,
            caption=_labelled(module.caption(source, data), study, source),
            data=data,
            figure=module.draw(data, source),
            formats=study.config.paper.figure_format,
        )


def source_of(study: Study, kind: str, number: int) -> Study:
    """The study that a table or figure is made from.

    Interventions are those of the study; one that ran none shows the shipped results of the mechanism
    preset, if there are any.
    """
    shipped = (kind, number) in INTERVENTIONS and not study.config.grid.variants
    if shipped and (MECHANISM / "manifest.json").is_file():
        manifest = json.loads((MECHANISM / "manifest.json").read_text())
        return Study(
            parse(manifest["config"]),
            read_cells_file(MECHANISM / "tables/cells.csv.gz"),
            shipped=True,
        )
    return study


def _labelled(caption: str, study: Study, source: Study) -> str:
    if source is study:
        return caption
    return f"Shipped reference results of the {source.config.preset} preset. {caption}"


def _module(kind: str, number: int, known: range) -> ModuleType:
    if number not in known:
        raise RolewiseError(
            f"there is no {kind} {number}; {kind}s are {known.start} to {known.stop - 1}"
        )
    return importlib.import_module(f"rolewise.paper.{kind}_{number}")
