"""Every table and figure is built from whole, holed, small and seeded studies."""

import dataclasses
import importlib

import pandas as pd
import pytest

from rolewise.analysis.claims import judge
from rolewise.analysis.evidence import Evidence
from rolewise.errors import RolewiseError
from rolewise.grid import base_cells, trained_cells
from rolewise.paper import build, figure_8
from rolewise.paper.build import FIGURES, TABLES, build_figure, build_table
from rolewise.paper.output import markdown
from rolewise.paper.study import Study
from rolewise.paper.style import styled
from rolewise.runs.layout import layout
from tests.configs import config


def elsewhere(study, folder, cells=None, **settings):
    """The study with its outputs below `folder`."""
    moved = study.config.model_copy(update={"results_dir": str(folder), **settings})
    return Study(moved, study.cells if cells is None else cells)


def without(study, workflow, policy):
    """The study's cells less one workflow under one policy."""
    cells = study.cells
    return cells[(cells.workflow != workflow) | (cells.policy != policy)].reset_index(drop=True)


def build_all(study):
    """Everything there is to build; returns the files by name."""
    paths = [path for n in TABLES for path in build_table(study, n)]
    paths += [path for n in FIGURES for path in build_figure(study, n)]
    return {path.name: path for path in paths}


def lay_out(study):
    """Every table as data, text and caption, every figure laid out without saving it.

    Returns (`table_1` or `figure_1` -> data, the same -> text).
    """
    data, text = {}, {}
    for kind, numbers in (("table", TABLES), ("figure", FIGURES)):
        for n in numbers:
            module = importlib.import_module(f"rolewise.paper.{kind}_{n}")
            name = f"{kind}_{n}"
            data[name] = module.data(study)
            text[name] = module.caption(study, data[name])
            if kind == "table":
                text[name] += markdown(module.display(data[name]), "")
            else:
                with styled():
                    module.draw(data[name], study).draw_without_rendering()
    return data, text


def test_everything_is_written_beside_its_numbers(study, tmp_path, monkeypatch):
    monkeypatch.setattr(build, "MECHANISM", tmp_path / "nothing shipped")
    files = build_all(elsewhere(study, tmp_path))
    for n in TABLES:
        assert {f"table_{n}.{kind}" for kind in ("csv", "md", "tex")} <= set(files)
    for n in FIGURES:
        assert {f"figure_{n}.{kind}" for kind in ("csv", "md", "png", "pdf")} <= set(files)
    assert all(path.stat().st_size > 0 for path in files.values())
    assert all("preset test" in files[f"figure_{n}.md"].read_text().lower() for n in FIGURES)


def test_a_missing_cell_leaves_gaps(study):
    data, text = lay_out(Study(study.config, without(study, "Voting", "IP")))
    row = next(line for line in text["table_1"].splitlines() if "| Voting" in line)
    assert "—" in row
    assert "Missing: Voting-0.3M-Math" in text["figure_3"]
    figure_2 = data["figure_2"]
    gone = (figure_2.workflow == "Voting") & (figure_2.policy == "IP")
    assert figure_2.value.isna().equals(gone)


def test_an_empty_cells_table_leaves_only_gaps(study):
    data, _ = lay_out(Study(study.config, study.cells.head(0)))
    assert data["table_1"].ip.isna().all()


def test_a_grid_of_one_cell_is_enough(study):
    settings = {
        "grid.workflows": ["Voting"],
        "grid.policies": ["SP"],
        "grid.tasks": ["Math"],
        "grid.single_agent": False,
        "evaluation.transfer_scales": [],
    }
    small = config("results", ("0.3M",), settings)
    cells = study.cells
    own = (cells.workflow == "Voting") & cells.policy.isin(["SP", "Base"])
    data, _ = lay_out(Study(small, cells[own].reset_index(drop=True)))
    assert len(data["table_1"]) == 1


SOME = [{"workflow": ["Single", "Voting"]}, {"workflow": ["Eval-Opt"], "policy": ["SP"]}]


@pytest.mark.parametrize("main", [SOME, [{"policy": ["SA"]}], False])
def test_main_cells_that_the_grid_leaves_out_are_gaps(study, main, tmp_path):
    settings = {
        "grid.main": main,
        "grid.variants": [{"name": "damped", "match": {"policy": ["IP"]}}],
        "evaluation.transfer_scales": [],
    }
    some = config("results", ("0.3M",), settings)
    keys = ["workflow", "policy", "scale", "task", "variant"]
    kept = {tuple(getattr(c, k) for k in keys) for c in trained_cells(some) + base_cells(some)}
    own = [key in kept for key in study.cells[keys].itertuples(index=False, name=None)]
    cells = study.cells[own].reset_index(drop=True)
    build_all(elsewhere(Study(some, cells), tmp_path))
    data, _ = lay_out(Study(some, cells))
    trained = {cell for cell in trained_cells(some) if not cell.variant}
    assert set(data["table_2"].get("cell", [])) == {cell.name for cell in trained}
    assert len(data["figure_2"]) == len(trained)
    assert set(data["table_9"].variant) == {"damped"}
    assert judge(Evidence(some, cells))


def test_a_preset_that_names_no_cells_for_a_table_gets_an_empty_one(study, tmp_path):
    kinds = ("amplification_cells", "capture_cells", "frequency_cells")
    paper = study.config.paper.model_copy(update={kind: [] for kind in kinds})
    files = build_all(elsewhere(study, tmp_path, paper=paper))
    for n in (4, 5, 6):
        assert pd.read_csv(files[f"table_{n}.csv"]).empty


def test_three_seeds_give_intervals_over_seeds(seeded):
    data, text = lay_out(seeded)
    table = data["table_1"]
    assert (table.seeds == 3).all()
    voting = table[table.workflow == "Voting"].iloc[0]
    peaks = seeded.by_seed(
        dataclasses.replace(_cell(seeded), policy="IP"), "accuracy", "best", "report"
    )
    assert voting.ip == pytest.approx(peaks.mean())
    assert voting.ip_lo < voting.ip < voting.ip_hi
    assert "t interval over 3 seeds" in text["figure_2"]


def _cell(study):
    return study.paper_cell("Voting-IP-1.7B-Math")


def test_interventions_are_paired_by_seed(seeded):
    drawn = figure_8.data(seeded)
    damped = drawn[(drawn.variant == "damped") & (drawn.measure == "peak")].iloc[0]
    plain, changed = (
        seeded.by_seed(
            dataclasses.replace(_cell(seeded), variant=variant), "accuracy", "best", "report"
        )
        for variant in ("", "damped")
    )
    assert damped.effect == pytest.approx(100 * (changed - plain).mean())
    assert damped.seeds == 3 and damped.lo <= damped.effect <= damped.hi
    single = drawn[(drawn.variant == "wide") & (drawn.measure == "fall")]
    assert (single.seeds == 1).all() and single.lo.isna().all()


def test_a_study_without_interventions_says_so(study, tmp_path, monkeypatch):
    monkeypatch.setattr(build, "MECHANISM", tmp_path / "nothing shipped")
    moved = elsewhere(study, tmp_path)
    paths = {path.suffix: path for path in build_table(moved, 9)}
    assert "not run in this preset" in paths[".md"].read_text()
    assert pd.read_csv(paths[".csv"]).empty


def test_an_unknown_number_is_refused(study):
    with pytest.raises(RolewiseError, match="1 to 10"):
        build_table(study, 11)
    with pytest.raises(RolewiseError, match="1 to 8"):
        build_figure(study, 0)


def test_figures_are_the_same_bytes_every_time(study, tmp_path):
    first, second = (
        {
            path.name: path.read_bytes()
            for path in build_figure(elsewhere(study, tmp_path / name), 3)
        }
        for name in ("one", "two")
    )
    assert first == second
    assert not list(layout(study.config).root.glob("figures/*"))
