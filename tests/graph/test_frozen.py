"""Frozen mode redraws finished results on a fresh clone, beside a running study, without training."""

import shutil

import pytest
import yaml

from rolewise.config import parse, with_settings
from rolewise.runs import reference
from tests.configs import raw
from tests.graph.project import Project, copy_project
from tests.synthetic import write_study

FROZEN = ("--config", "frozen=true")


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Project:
    """A fresh clone that ships reference results (synthetic ones, of one scale)."""
    project = copy_project(tmp_path_factory.mktemp("clone"))
    small = {"grid.workflows": ["Voting"], "training.steps": 10}
    settings = with_settings(raw() | {"results_dir": "results"}, small)
    (project.path / "config.yaml").write_text(yaml.safe_dump(settings))
    elsewhere = tmp_path_factory.mktemp("finished")
    made = parse(with_settings(settings, {"results_dir": str(elsewhere)}))
    write_study(elsewhere, made)
    reference.pack(made, project.path / "results/reference")
    return project


def lock(project: Project) -> None:
    """Leave the folder as a Snakemake that is running the whole study leaves it."""
    done = project.snakemake("-n", "--summary")
    outputs = [
        line.split("\t")[0] for line in done.stdout.splitlines() if line.startswith("results/")
    ]
    assert "results/figures/figure_2.png" in outputs
    locks = project.path / ".snakemake/locks"
    locks.mkdir(parents=True, exist_ok=True)
    (locks / "0.output.lock").write_text("\n".join(outputs) + "\n")


def test_no_job_upstream_of_the_cut_line_exists(clone):
    planned = clone.planned(settings=FROZEN)
    assert planned.pop("unpack_reference") == 1
    kept = {"judge_claims", "write_report"}
    assert {rule for rule in planned if not rule.startswith(("table_", "figure_"))} == kept
    assert len(planned) == 10 + 8 + 2


def test_figures_are_drawn_while_another_run_holds_the_lock(clone, tmp_path):
    shutil.copytree(clone.path, tmp_path / "clone")
    project = Project(tmp_path / "clone")
    lock(project)
    blocked = project.snakemake("figure_2", "--cores", "1")
    assert blocked.returncode != 0
    assert "lock" in blocked.stdout.lower()

    shipped = sorted(p for p in (project.path / "results/reference").rglob("*"))
    drawn = project.snakemake("figure_2", "--cores", "1", *FROZEN)
    assert drawn.returncode == 0, drawn.stdout[-3000:]
    assert (project.path / "results/frozen/figures/figure_2.png").stat().st_size > 1000
    assert sorted(p for p in (project.path / "results/reference").rglob("*")) == shipped
    assert {p.name for p in (project.path / "results").iterdir()} == {"reference", "frozen"}
    assert project.planned("figure_2", settings=FROZEN) == {}


def test_a_study_that_is_not_finished_cannot_be_frozen(fresh):
    done = fresh.snakemake("figures", "-n", "--config", "frozen=true", "results_dir=results/none")
    assert done.returncode != 0
    assert "results/none/tables/cells.csv is not there" in done.stdout


@pytest.mark.long
def test_everything_after_the_cut_line_is_made_from_the_reference(clone):
    done = clone.snakemake("all", "--cores", "1", *FROZEN)
    assert done.returncode == 0, done.stdout[-3000:]
    made = clone.path / "results/frozen"
    assert len(list((made / "figures").glob("figure_*.png"))) == 8
    assert len(list((made / "tables").glob("table_*.md"))) == 10
    assert (made / "report/index.html").is_file()
    assert (made / "claims/claims.json").is_file()
    assert clone.planned(settings=FROZEN) == {}
    assert {p.name for p in (clone.path / "results").iterdir()} == {"reference", "frozen"}
    report = clone.snakemake("--report", "report.zip", *FROZEN)
    assert report.returncode == 0, report.stdout[-3000:]
    assert (clone.path / "report.zip").stat().st_size > 100_000
