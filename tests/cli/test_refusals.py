"""What the command line says when a name is unknown or the machine refuses: one line, no traceback."""

import sys

import pytest
import yaml

from rolewise import cli
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
            "unknown workflow 'Votng'; this study has Eval-Opt",
        ),
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
