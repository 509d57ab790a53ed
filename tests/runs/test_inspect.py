"""The commands that look after a study, as a user types them."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

from rolewise.runs import doctor
from rolewise.sandbox import tiers
from rolewise.sandbox.tiers import TierReport
from tests.configs import raw

ROLEWISE = Path(sys.executable).parent / "rolewise"
COMMANDS = ["grid", "status", "audit", "doctor", "clean", "config-schema"]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(raw()))
    return tmp_path


def rolewise(folder, *arguments):
    command = [str(ROLEWISE), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_grid_lists_every_cell_as_json(folder):
    cells = json.loads(rolewise(folder, "grid", "--json").stdout)
    assert len(cells) == 14 + 8
    assert cells[0] == {
        "cell": "Eval-Opt-IP-0.1M-Math",
        "workflow": "Eval-Opt",
        "policy": "IP",
        "scale": "0.1M",
        "task": "Math",
        "variant": "",
        "trained": True,
        "seeds": [0],
    }


def test_a_pipe_gets_whole_lines(folder):
    lines = rolewise(folder, "grid").stdout.splitlines()
    assert any("Orch-Workers-SP-0.1M-Code" in line and "Code" in line.split() for line in lines)
    assert "22 waiting" in rolewise(folder, "status").stdout


def test_the_state_of_a_study_without_results_says_how_to_run_it(folder):
    assert not (folder / "results").exists()
    told = " ".join(rolewise(folder, "status").stdout.split())
    assert "results: 22 waiting; no such results folder yet, `snakemake --cores all` runs" in told
    (folder / "results").mkdir()
    assert "no such results folder" not in rolewise(folder, "status").stdout


def test_a_clean_study_passes_the_audit(folder):
    done = rolewise(folder, "audit")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "results has no finished results of this study yet.\n"


def test_cleaning_is_dry_unless_told_otherwise(folder):
    old = folder / ".snakemake/rolewise/000000000000.yaml"
    old.parent.mkdir(parents=True)
    old.write_text("preset: old\n")
    assert "nothing is deleted without --yes" in rolewise(folder, "clean").stdout
    assert old.is_file()
    assert "deleted 1 item(s)" in rolewise(folder, "clean", "--yes").stdout
    assert not old.exists()


def test_cleaning_keeps_state_that_no_result_replaces_and_says_so(folder):
    old = folder / "results/state/Voting-IP-0.1M-Math/seed0/train-000000000000"
    old.mkdir(parents=True)
    done = rolewise(folder, "clean", "--yes")
    assert "deleted 0 item(s)" in done.stdout
    assert "kept: 1 state folder(s)" in done.stdout
    assert old.is_dir()


def test_selecting_cells_without_state_is_refused(folder):
    done = rolewise(folder, "clean", "--cell", "Voting-IP-0.1M-Math", "--yes")
    assert done.returncode == 2
    assert "add --state" in done.stderr


def test_the_schema_is_json_with_every_section(folder):
    schema = json.loads(rolewise(folder, "config-schema").stdout)
    assert schema["$schema"].endswith("2020-12/schema")
    assert schema["additionalProperties"] is False
    assert {"grid", "training", "sandbox"} <= schema["properties"].keys()


def test_the_shipped_configuration_satisfies_the_published_schema(folder):
    schema = json.loads(rolewise(folder, "config-schema").stdout)
    jsonschema.validate(yaml.safe_load(Path("config.yaml").read_text()), schema)


def test_the_doctor_knows_this_machine(folder):
    done = rolewise(folder, "doctor")
    for line in ("processor cores", "memory", "sandbox", "snakemake"):
        assert line in done.stdout, done.stderr
    assert done.returncode in (0, 1)
    assert ("missing" in done.stdout) == (done.returncode == 1)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_has_an_example(folder, command):
    shown = rolewise(folder, command, "--help").stdout
    assert f"rolewise {command}" in shown.split("Example", 1)[1]


def test_a_missing_configuration_is_one_line(tmp_path):
    done = rolewise(tmp_path, "status")
    assert done.returncode == 2
    assert done.stderr.startswith("rolewise: error: config.yaml: no such configuration file")
    assert done.stderr.count("\n") == 1


def test_a_settled_configuration_stands_alone(folder):
    settled = folder / ".snakemake/rolewise/abc.yaml"
    settled.parent.mkdir(parents=True)
    shutil.copy(folder / "config.yaml", settled)
    (folder / "config.yaml").write_text("seeds: [broken\n")
    done = rolewise(folder, "grid", "--json", "--configfile", ".snakemake/rolewise/abc.yaml")
    assert len(json.loads(done.stdout)) == 22


def test_a_weaker_sandbox_than_asked_for_is_missing_with_advice(monkeypatch):
    weak = TierReport(4, ("everything",), "0/9", ("no Linux here",))
    monkeypatch.setattr(tiers, "probe", lambda: weak)
    found = next(item for item in doctor.examine(Path(), 2) if item.what == "sandbox")
    assert found.level == "missing"
    assert "no Linux here" in found.found
    assert "What to do" in found.advice
