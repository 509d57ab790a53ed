"""The commands behind the rules, as Snakemake calls them."""

import subprocess
import sys

import pytest
import yaml
from typer.testing import CliRunner

from rolewise.cli import app
from rolewise.errors import DataError
from tests.configs import raw

runner = CliRunner()


@pytest.fixture
def project(study, tmp_path, monkeypatch):
    """A project folder whose results are those of the synthetic study."""
    monkeypatch.chdir(tmp_path)
    settings = study.config.model_dump() | {"results_dir": "results"}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(settings))
    (tmp_path / "results" / "tables").mkdir(parents=True)
    study.cells.to_csv(tmp_path / "results" / "tables" / "cells.csv", index=False)
    return tmp_path


def test_a_table_and_a_figure_need_only_the_cells_table(project):
    for command in (["table", "3"], ["figure", "3"]):
        result = runner.invoke(app, command, catch_exceptions=False)
        assert result.exit_code == 0
        assert all((project / line).is_file() for line in result.output.split())


def test_a_missing_cells_table_says_how_to_make_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(raw()))
    with pytest.raises(DataError, match="snakemake"):
        runner.invoke(app, ["table", "1"], catch_exceptions=False)


@pytest.mark.parametrize("command", ["collect", "table", "figure", "claims"])
def test_help_shows_an_example(command):
    assert (
        f"rolewise {command}" in runner.invoke(app, [command, "--help"]).output.split("Example")[1]
    )


def test_drawing_imports_no_training_library(project):
    code = (
        "import sys; from rolewise.cli import app\n"
        "app(['figure', '4'], standalone_mode=False)\n"
        "sys.exit(bool({'torch', 'transformers', 'snakemake'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=project, check=False).returncode == 0
