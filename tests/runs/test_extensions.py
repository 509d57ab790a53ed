"""Mistakes in workflows and tasks of one's own are told before anything is made for them."""

import textwrap
from pathlib import Path

import pytest

from rolewise.errors import ConfigError
from rolewise.runs.extensions import check_extensions
from tests.configs import config

MINE = """
from pathlib import Path
from rolewise.workflows.base import Call, Outcome, Topology, user

def relay(template, role, graded="solver"):
    def run(problem, task, config):
        yield [Call("solver", user(task.ask("generator", problem)))]
        yield [Call(role, user(task.ask(template, problem, other="x")))]
        return Outcome((graded, 0, 0))
    return run

def shape(run, **changes):
    settings = dict(roles=("solver", "critic"), main_role="solver") | changes
    return Topology("Relay", run, **settings)

def breaks(problem, task, config):
    yield [Call("solver", user(task.ask("generator", problem)))]
    raise KeyError("nothing")

GOOD = shape(relay("aside", "critic"), prompts=Path(__file__).with_name("prompts"))
PROMPTLESS = shape(relay("no_such", "critic"))
STRANGER = shape(relay("generator", "judge"))
UNGRADED = shape(relay("generator", "critic", "nobody"))
HEADLESS = shape(relay("generator", "critic"), main_role="boss")
BREAKS = shape(breaks)
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder with the project's prompts and a module `relays_<test>`, whose name it returns."""
    (tmp_path / "workflow").mkdir()
    (tmp_path / "workflow/prompts").symlink_to(Path("workflow/prompts").resolve())
    name = f"relays_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(textwrap.dedent(MINE))
    for task, text in (("Math", "Also {{ other }}"), ("Code", "Also {{ others }}")):
        folder = tmp_path / "prompts/compact" / task
        folder.mkdir(parents=True)
        (folder / "aside.j2").write_text(text)
    monkeypatch.chdir(tmp_path)
    return name


def complaints(tasks=("Math",), **workflows):
    settings = {
        "extensions.workflows": workflows,
        "grid.workflows": ["Voting", *workflows],
        "grid.tasks": list(tasks),
    }
    with pytest.raises(ConfigError) as caught:
        check_extensions(config(settings=settings))
    return caught.value.problems


def test_sound_extensions_pass(home):
    settings = {"extensions.workflows": {"Relay": f"{home}:GOOD"}, "grid.workflows": ["Relay"]}
    check_extensions(config(settings=settings | {"grid.tasks": ["Math"]}))


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("MISSING", "cannot import '{home}:MISSING': module"),
        ("Path", "{home}:Path is not a Topology"),
        ("PROMPTLESS", "prompt workflow/prompts/compact/Math/no_such.j2: 'no_such.j2' not found"),
        ("STRANGER", "it calls 'judge', which is not one of its roles, solver, critic"),
        ("UNGRADED", "it grades ('nobody', 0, 0), which is none of its calls"),
        ("HEADLESS", "main_role 'boss' is not one of its roles, solver, critic"),
        ("BREAKS", "an episode of Math fails: KeyError: 'nothing'"),
    ],
)
def test_a_broken_workflow_is_told_in_one_line(home, name, complaint):
    [line] = complaints(Mine=f"{home}:{name}")
    assert line.startswith(f"extensions.workflows.Mine: {complaint.format(home=home)}")
    assert "\n" not in line


def test_every_mistake_is_told_at_once(home):
    found = complaints(
        ("Math", "Code"),
        Nope="nope.nope:NOPE",
        Relay=f"{home}:GOOD",
        Other=f"{home}:HEADLESS",
    )
    assert len(found) == 3
    assert found[0] == (
        "extensions.workflows.Nope: cannot import 'nope.nope:NOPE': No module named 'nope'"
    )
    assert "compact/Code/aside.j2: 'others' is undefined" in found[2]


def test_an_own_task_needs_a_grader_and_a_folder_of_prompts(home):
    base = config().model_dump()
    settings = {
        "extensions.tasks": {"Sums": f"{home}:MINE"},
        "grid.tasks": ["Sums"],
        "tasks.Sums": base["tasks"]["Math"],
        "caps.Sums": base["caps"]["Math"],
        "workflow.max_iterations": {"Sums": 1},
    }
    with pytest.raises(ConfigError) as caught:
        check_extensions(config(settings=settings))
    grader, prompts = caught.value.problems
    assert grader.startswith("extensions.tasks.Sums: cannot import")
    assert prompts.startswith(
        "extensions.tasks.Sums: prompts: no folder workflow/prompts/compact/Sums"
    )
