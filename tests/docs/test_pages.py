"""What README and documentation show is true: links, commands, files, excerpts."""

import re
import subprocess
from functools import cache

import pytest
import typer

from docs.generate import commands as subcommands
from docs.generate import pages as generated
from rolewise.cli import app
from rolewise.config import Config, load
from rolewise.grid import base_cells, trained_cells
from tests.configs import config
from tests.docs.pages import BRIEF, PAGES, ROOT, blocks, commands, files_of
from tests.synthetic import write_study

SHELL = list(blocks("sh"))
CHECKED = [block for block in SHELL if block.value != "text"]
COMMANDS = dict(subcommands(typer.main.get_command(app), "rolewise"))
PROGRAMS = {"make", "rolewise", "snakemake", "python", "cp"}
CELL = re.compile(r"\b[A-Z][\w-]*-(?:Base|IP|SP|RL)-[\w.]+-[A-Z]\w+")


def slug(heading):
    kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return kept.replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_resolve(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("http"):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        assert path.exists(), f"{page.name}: {target}"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in map(slug, headings), f"{page.name}: {target}"


def test_every_page_is_listed_on_the_front_page_and_in_the_navigation():
    front = (ROOT / "docs/index.md").read_text()
    navigation = (ROOT / "mkdocs.yml").read_text()
    for page in PAGES[1:]:
        name = page.relative_to(ROOT / "docs").as_posix()
        if name != "index.md" and not name.startswith("results/"):
            assert f"({name})" in front and name in navigation, name


def test_generated_pages_are_current():
    for name, text in generated().items():
        written = (ROOT / "docs/reference" / name).read_text(encoding="utf-8")
        assert written == text, f"{name}: run `python docs/generate.py`"


def test_every_configuration_key_is_documented():
    rows = re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", generated()["config.md"], re.MULTILINE)
    assert [key for key, meaning in rows if not meaning.strip()] == []
    assert set(Config.model_fields) <= {key for key, _ in rows}


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_every_command_has_an_example_that_parses(name):
    examples = re.findall(r"`([^`]+)`", COMMANDS[name].help.partition("Example")[2])
    assert examples
    for example in examples:
        for part in example.split("|"):
            words = part.split(">")[0].split()
            if words[0] == "rolewise":
                check_rolewise(words, "config.yaml")


def check_rolewise(words, *files):
    """The subcommand exists, takes these arguments, and the cells it names exist."""
    words = [word for word in words if word != "--debug"]
    name = next(n for k in (3, 2) if (n := " ".join(words[:k])) in COMMANDS)
    COMMANDS[name].make_context(name, words[len(name.split()) :])
    for word in words:
        if CELL.fullmatch(word):
            assert word in cell_names(*files), word


@cache
def cell_names(*files):
    study = load([ROOT / name for name in files])
    return {cell.name for cell in trained_cells(study) + base_cells(study)}


@pytest.mark.parametrize("block", CHECKED, ids=lambda b: f"{b.page}:{b.text.split()[1]}")
def test_commands_of_the_pages_exist(block):
    for words in commands(block):
        assert words[0] in PROGRAMS, words
        if words[0] == "rolewise" and "--help" not in words:
            given = [word for word in words if (ROOT / word).is_file()]
            check_rolewise(words, "config.yaml", *given)
        # Snakemake reads only the last of repeated flags, and says nothing.
        assert words[0] != "snakemake" or words.count("--configfile") < 2, words
        if words[0] == "make":
            done = subprocess.run(
                ["make", "-n", *words[1:]], cwd=ROOT, capture_output=True, check=False
            )
            assert done.returncode == 0, done.stderr
        if words[0] == "python":
            assert (ROOT / words[1]).is_file()
        for word in words:
            if word.endswith(".yaml") and word not in files_of(block.page):
                assert (ROOT / word).is_file(), word


FILES = [block for block in blocks("yaml") if block.mark == "file"]


@pytest.mark.parametrize("block", FILES, ids=lambda b: b.value)
def test_configurations_of_the_pages_are_valid(block, tmp_path):
    (tmp_path / block.value).write_text(block.text)
    assert trained_cells(load([ROOT / "config.yaml", tmp_path / block.value]))


@pytest.mark.parametrize(
    ("page", "example"),
    [
        ("docs/howto/new-workflow.md", "docs/examples/debate"),
        ("docs/howto/new-task.md", "docs/examples/largest"),
    ],
)
def test_excerpts_stand_in_the_examples(page, example):
    source = (ROOT / f"{example}.py").read_text() + (ROOT / f"{example}.yaml").read_text()
    shown = [b for kind in ("python", "yaml") for b in blocks(kind) if b.page == page]
    assert shown
    for block in shown:
        if block.kind == "python":
            for line in block.text.splitlines():
                assert line.strip() in ("...", "") or line in source, line
        elif block.mark != "file":
            assert '{Debate: "docs.examples.debate:DEBATE"}' in block.text


def test_the_ledger_page_runs_on_a_study(tmp_path, monkeypatch):
    only = {"grid.workflows": ["Orch-Workers"], "grid.policies": ["SP"], "grid.tasks": ["Math"]}
    settings = BRIEF | only | {"grid.single_agent": False}
    write_study(tmp_path / "results", config(tmp_path / "results", ("0.3M",), settings))
    monkeypatch.chdir(tmp_path)
    space = {}
    for block in blocks("python"):
        if block.page == "docs/howto/read-ledger.md":
            exec(compile(block.text, block.page, "exec"), space)
    assert {"worker", "synthesizer"} <= set(space["roles"]["role"])
    assert len(space["workers"]) and len(space["pairs"])
