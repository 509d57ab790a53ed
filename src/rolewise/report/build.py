"""Writes the report: a folder of static pages that works from a disk, without server or network."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import jinja2

from rolewise.analysis.sources import read_json, read_table
from rolewise.config import Config
from rolewise.report import pages
from rolewise.report.captured import CAPTURED_MEANS, captured_calls
from rolewise.report.episodes import build_shards
from rolewise.report.guidance import guidance
from rolewise.report.study import Run, Study, if_there, read_study
from rolewise.report.tables import read_exhibits
from rolewise.report.text import script_json
from rolewise.workflows.base import topology

MINIATURE = (
    "These are miniature models that the pipeline trained itself. They show that the machinery works "
    "and what the mechanisms look like; they are not evidence about pretrained models."
)
STATIC = Path(__file__).parent / "static"
TEMPLATES = Path(__file__).parent / "templates"


def build_report(config: Config) -> Path:
    """Write `report/` below `config.results_dir` and return its index page.

    The folder is built aside and moved into place, so readers see the old report or the new one.
    Without `tables/cells.csv` a DataError says how to make it; anything else may be missing.
    """
    study = read_study(config)
    target = study.layout.root / "report"
    aside = target.with_name(".report.new")
    shutil.rmtree(aside, ignore_errors=True)
    shutil.copytree(STATIC, aside / "static")
    browsable = _write_data(study, aside / "data")
    _write_pages(study, browsable, aside)
    shutil.rmtree(target, ignore_errors=True)
    aside.rename(target)
    return target / "index.html"


def _write_data(study: Study, folder: Path) -> set[str]:
    """The trajectory shards and their catalogue; returns the keys of runs that have episodes."""
    folder.mkdir(parents=True)
    problems = {task: study.problems(task) for task in study.config.grid.tasks}
    browsable = set()
    for run in study.runs.values():
        if run.trajectories is None:
            continue
        calls = read_table(run.trajectories)
        if calls.empty:
            continue
        shape = topology(study.config, run.cell.workflow)
        calls = calls.assign(captured=captured_calls(calls, study.config.signatures))
        shards = build_shards(calls, problems[run.cell.task], shape.roles)
        write_shard(folder, run.slug, shards.index)
        for i, chunk in enumerate(shards.chunks):
            write_shard(folder, f"{run.slug}.t{i}", chunk)
        browsable.add(run.key)
    write_shard(folder, "catalogue", {"runs": catalogue(study, browsable)})
    return browsable


def write_shard(folder: Path, name: str, payload: Any) -> None:
    """Write a data file that the browser loads with a script tag: `<name>.js`."""
    text = f"rolewise.shard({script_json(name)}, {script_json(payload)});\n"
    (folder / f"{name}.js").write_text(text, encoding="ascii")


def catalogue(study: Study, browsable: set[str]) -> list[dict[str, Any]]:
    """Every run with the keys of the runs it can be compared with; `shard` only where there is one."""

    def related(run: Run, relation: str) -> str | None:
        other = study.counterpart(run, relation)
        return other.key if other else None

    return [
        {
            "key": run.key,
            "cell": run.cell.name,
            "policy": run.cell.policy,
            "shard": run.slug if run.key in browsable else None,
            **{relation: related(run, relation) for relation in ("base", "twin", "single")},
        }
        for run in study.runs.values()
    ]


def _write_pages(study: Study, browsable: set[str], folder: Path) -> None:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shared = {
        "study": {
            "preset": study.config.preset,
            "frozen": study.config.frozen,
            "results": str(study.layout.root),
        },
        "miniature": MINIATURE,
        "embedded": any(model.kind == "embedded" for model in study.config.models.values()),
    }

    def write(template: str, target: str, title: str, **context: Any) -> None:
        page = environment.get_template(f"{template}.html.j2").render(
            shared, title=title, current=target, root="../" * target.count("/"), **context
        )
        path = folder / target
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page.lstrip(), encoding="utf-8")

    claims = if_there(read_json, study.layout.root / "claims" / "claims.json") or []
    tables = _copy_exhibits(study.layout.tables, "table", folder)
    figures = _copy_exhibits(study.layout.figures, "figure", folder)
    advice = guidance(claims)
    first = pages.overview(study, claims, browsable)
    write("index", "index.html", "Overview", advice=advice, figures=figures, **first)
    write("claims", "claims.html", "Claims", claims=claims, advice=advice)
    names = {run.cell.name: run.slug for run in reversed(study.runs.values())}
    write("tables", "tables.html", "Tables", exhibits=tables, pages=names)
    write("figures", "figures.html", "Figures", exhibits=figures)
    write("cells", "cells.html", "Cells", rows=pages.cells(study, browsable))
    for run in study.runs.values():
        context = pages.cell(study, run, browsable)
        write("cell", f"cells/{run.slug}.html", run.cell.name, **context)
    write(
        "trajectories",
        "trajectories.html",
        "Trajectories",
        browsable=[run for run in study.runs.values() if run.key in browsable],
        many_seeds=len({run.seed for run in study.runs.values()}) > 1,
        captured_means=CAPTURED_MEANS,
    )


def _copy_exhibits(source: Path, kind: str, folder: Path) -> list:
    """The tables or figures, their files copied so that the report can be passed on alone."""
    exhibits = read_exhibits(source, kind)
    (folder / "files").mkdir(exist_ok=True)
    for exhibit in exhibits:
        for file in exhibit.files:
            shutil.copyfile(file, folder / "files" / file.name)
    return exhibits
