"""The environments and entry points that users start from agree with each other."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def conda_requirements():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    [pip] = [item["pip"] for item in environment["dependencies"] if isinstance(item, dict)]
    named = [item for item in environment["dependencies"] if isinstance(item, str)]
    return named, pip


def test_conda_and_pip_users_get_the_same_python():
    named, _ = conda_requirements()
    [python] = [item for item in named if item.startswith("python")]
    assert python.removeprefix("python") == PROJECT["requires-python"]


def test_conda_users_get_the_packages_of_pyproject():
    named, pip = conda_requirements()
    assert pip == ["-e .[dev]"]
    # Whatever conda itself installs must not be pinned a second time.
    pinned = {re.split(r"[<>=\[]", item)[0].lower() for item in PROJECT["dependencies"]}
    assert not pinned & {re.split(r"[<>=]", item)[0] for item in named}


def test_help_names_every_make_target():
    shown = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    [phony] = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    assert set(re.findall(r"^  make ([a-z-]+)", shown, flags=re.MULTILINE)) == set(phony.split())


def test_an_unfit_python_is_refused_with_advice(tmp_path):
    done = subprocess.run(
        ["make", "install", "PYTHON=false", f"VENV={tmp_path / 'venv'}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "Python 3.11 or 3.12 is needed" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_ci_runs_what_make_tests():
    script = ROOT / ".ci/run"
    assert os.access(script, os.X_OK)
    assert re.search(r"^make test$", script.read_text(), flags=re.MULTILINE)
    subprocess.run(["sh", "-n", script], check=True)


def test_the_citation_has_the_version_and_licence_of_the_package():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    assert "Apache License" in (ROOT / "LICENSE").read_text()
