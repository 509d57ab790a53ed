"""What the command line says when a name is unknown or the machine refuses: one line, no traceback."""

import sys

import pytest
import yaml

from rolewise import __version__, cli
from rolewise.cli.options import given_configfiles, with_configfiles
from tests.configs import raw


def said(monkeypatch, capsys, tmp_path, *arguments, results="results"):
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(raw() | {"results_dir": results}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["rolewise", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    return capsys.readouterr().err.splitlines()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("model", "9B"), "unknown scale '9B'; this study has 0.1M"),
        (
            ("transfer", "Votng", "0.1M", "Math"),
            "unknown workflow 'Votng'; this study has Eval-Opt, Voting, Orch-Workers; did you mean",
        ),
        (("show", "voting-ip-0.1m-math"), "results: no such results folder; `snakemake --cores"),
        (("transfer", "Voting", "9B", "Math"), "unknown scale '9B'"),
        (("transfer", "Voting", "0.1M", "Mth"), "unknown task 'Mth'; this study has Code, Math"),
    ],
)
def test_an_unknown_name_is_told_with_the_known_ones(
    monkeypatch, capsys, tmp_path, arguments, line
):
    (found,) = said(monkeypatch, capsys, tmp_path, *arguments)
    assert found.startswith(f"rolewise: error: {line}")


def test_a_results_folder_that_is_a_file_is_one_line(monkeypatch, capsys, tmp_path):
    (tmp_path / "taken").write_text("")
    (found,) = said(monkeypatch, capsys, tmp_path, "data", "Math", results="taken")
    assert "taken/data/Math: Not a directory; a part of this path is a file" in found
    assert (tmp_path / "taken").read_text() == ""


def test_a_negative_seed_is_refused(monkeypatch, capsys, tmp_path):
    found = said(monkeypatch, capsys, tmp_path, "train", "Voting-IP-0.1M-Math", "--seed", "-1")
    assert any("--seed" in line for line in found)
    assert not (tmp_path / "results").exists()


def test_hints_carry_the_configuration_files_that_were_given(monkeypatch, capsys, tmp_path):
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text("results_dir: gone\n")
    files = ("--configfile", "a.yaml", "--configfile=b.yaml")
    (found,) = said(monkeypatch, capsys, tmp_path, "claims", *files)
    assert "`snakemake --cores 1 gone/tables/cells.csv --configfile a.yaml b.yaml`" in found


def test_hints_of_rolewise_repeat_the_option_and_settled_files_are_not_named():
    hint = "`rolewise grid` lists all cells; `make test`, `snakemake -n --configfile c.yaml`"
    assert with_configfiles(hint, ["a", "b"]) == hint.replace(
        "rolewise grid", "rolewise grid --configfile a --configfile b"
    )
    assert with_configfiles(hint, []) == hint
    assert given_configfiles(["train", "--configfile", ".snakemake/rolewise/0.yaml"]) == []


def test_cells_of_different_tasks_are_not_compared(monkeypatch, capsys, tmp_path):
    (tmp_path / "results").mkdir()
    cells = ("Voting-IP-0.1M-Math", "Voting-IP-0.1M-Code")
    (found,) = said(monkeypatch, capsys, tmp_path, "compare", *cells)
    assert "cells of different tasks" in found


def test_a_folder_that_is_no_clone_is_told(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["rolewise", "grid"])
    with pytest.raises(SystemExit):
        cli.main()
    assert "change into the folder of the clone" in capsys.readouterr().err


def test_a_training_without_data_leaves_no_state(monkeypatch, capsys, tmp_path):
    (found,) = said(monkeypatch, capsys, tmp_path, "train", "Voting-IP-0.1M-Math", "--seed", "5")
    assert "results/data/Math/manifest.json: not there" in found
    assert not (tmp_path / "results").exists()


def test_the_version_is_printed(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["rolewise", "--version"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code in (None, 0)
    assert capsys.readouterr().out == f"rolewise {__version__}\n"
