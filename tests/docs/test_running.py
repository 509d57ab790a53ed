"""The commands of the pages run: planned in seconds, and for real on a study made small."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from rolewise.config import deep_merge
from tests.docs.pages import ROOT, Block, blocks, commands, files_of
from tests.graph.project import SMOKE, copy_project

README = "README.md"
# Pages in the order in which a reader goes through them; each finds what those before it left.
ORDER = (
    README,
    "docs/first-hour.md",
    "docs/howto/rerun.md",
    "docs/howto/extend.md",
    "docs/howto/new-workflow.md",
    "docs/howto/new-task.md",
    "docs/howto/new-objective.md",
    "docs/howto/own-model.md",
    "docs/howto/audit.md",
    "docs/howto/cluster.md",
    "docs/performance.md",
)
MAY_FIND_SOMETHING = ("audit", "doctor")


def project(folder: Path, page: str) -> Path:
    """A copy of the workflow and the examples in `folder`, with the files that a page asks for."""
    copied = copy_project(folder)
    shutil.copytree(ROOT / "docs/examples", folder / "docs/examples", dirs_exist_ok=True)
    (folder / "results/reference").mkdir(parents=True, exist_ok=True)
    (folder / "results/reference/manifest.json").touch()
    write_files(folder, page)
    return copied.path


def write_files(folder: Path, page: str) -> None:
    for name, text in files_of(page).items():
        (folder / name).write_text(small(text))


def small(text: str) -> str:
    """The same with the only scale of the smoke preset."""
    return text.replace("0.3M", "0.1M").replace("0.8M", "0.1M")


def execute(words: list[str], folder: Path) -> subprocess.CompletedProcess:
    programs = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    environment.pop("ROLEWISE_CONFIG", None)
    return subprocess.run(
        words,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def plan(block: Block, folder: Path) -> None:
    for words in commands(block):
        if words[0] in ("snakemake", "cp"):
            done = execute([*words, "-n"] if words[0] == "snakemake" else words, folder)
            assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout[-2000:]}"


def of_page(page: str) -> list[Block]:
    return [b for b in blocks("sh") if b.page == page and b.value != "text"]


def test_every_page_with_commands_is_followed():
    assert {b.page for b in blocks("sh")} <= set(ORDER)


def test_the_commands_of_the_readme_can_be_planned(tmp_path):
    folder = project(tmp_path, README)
    for block in of_page(README):
        plan(block, folder)


def test_a_base_model_waits_for_the_tasks_outside_the_grid_too(tmp_path):
    folder = project(tmp_path, README)
    done = execute(
        ["snakemake", "models", "-n", "--configfile", "docs/examples/debate.yaml"], folder
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Problems of Math" in done.stdout and "Problems of Code" in done.stdout


@pytest.mark.long
@pytest.mark.parametrize("page", ORDER[1:])
def test_the_commands_of_the_documentation_can_be_planned(page, tmp_path):
    folder = project(tmp_path, page)
    for block in of_page(page):
        plan(block, folder)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_following_the_pages_on_a_small_study(tmp_path):
    folder = project(tmp_path, README)
    (folder / "results/reference/manifest.json").unlink()
    whole = yaml.safe_load((ROOT / "config.yaml").read_text())
    whole = deep_merge(whole, yaml.safe_load((ROOT / SMOKE).read_text()))
    whole["results_dir"] = "results"
    whole["grid"] |= {"workflows": ["Voting"], "tasks": ["Math"]}
    (folder / "config.yaml").write_text(yaml.safe_dump(whole))
    for command in (["snakemake", "--cores", "2"], ["rolewise", "reference", "pack"]):
        done = execute(command, folder)
        assert done.returncode == 0, done.stdout[-3000:]
    for page in ORDER:
        write_files(folder, page)
        for block in of_page(page):
            if block.mark == "test":
                continue
            for words in commands(block):
                if words[0] == "make":
                    continue
                done = execute([small(word) for word in words], folder)
                accepted = (0, 1) if words[1] in MAY_FIND_SOMETHING else (0,)
                assert done.returncode in accepted, f"{' '.join(words)}\n{done.stdout[-3000:]}"
    assert (folder / "results/debate/tables/table_1.md").is_file()
    assert (folder / "results/my/cells/Voting-IP-0.1M-Math/seed0/summary.json").is_file()
