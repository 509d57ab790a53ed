import re

import pytest

from rolewise.config import load
from rolewise.tasks.boxed import last_box
from rolewise.tasks.code_blocks import last_python_block
from rolewise.tasks.parsing import parse_selection, parse_strategies, parse_verdict
from rolewise.tasks.problem import Problem, Test
from rolewise.tasks.prompts import Prompts

SETS, TASKS = ("compact", "full"), ("Math", "Code")
VARIABLES = {
    "generator": {"hint": ""},
    "worker": {"strategy": "count"},
    "aggregator": {"candidates": ["first attempt", "second attempt", "third attempt"]},
    "evaluator": {},
    "evaluator_last": {"answer": "an answer"},
    "refine": {},
    "refine_last": {"answer": "an answer", "critique": "a critique"},
    "orchestrator": {"workers": 3},
    "synthesizer": {
        "answers": [{"strategy": "count", "answer": "one"}, {"strategy": "", "answer": "two"}]
    },
}
SOLVING = ("generator", "worker", "refine", "refine_last", "synthesizer")
PROBLEMS = {
    "Math": Problem("m", "Math", "what is 3 plus 4", answer="7"),
    "Code": Problem("c", "Code", "print twice the input", tests=(Test("1\n", "2\n"),)),
}
FUNCTION = Problem(
    "f", "Code", "double x", tests=(Test([1], 2),), fn_name="twice", starter_code="def twice(x):"
)


def render(name, task, template, problem=None, **changes):
    variables = {"hint": ""} | VARIABLES[template] | changes
    return Prompts(name, task).render(template, problem=problem or PROBLEMS[task], **variables)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("template", VARIABLES)
def test_templates_render_without_gaps_and_show_what_the_role_must_see(name, task, template):
    text = render(name, task, template)
    assert "\n\n\n" not in text
    shared_history = template in ("evaluator", "refine")
    assert (PROBLEMS[task].prompt in text) != shared_history
    for value in ("first attempt", "third attempt", "an answer", "a critique", "one", "two"):
        if value in str(VARIABLES[template]):
            assert value in text


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("task", TASKS)
def test_roles_are_told_apart_by_their_prompts(name, task):
    texts = {t: render(name, task, t, answers=[], candidates=[]) for t in VARIABLES}
    assert len(set(texts.values())) == len(texts)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("task", TASKS)
def test_a_worker_without_strategy_reads_the_prompt_of_a_generator(name, task):
    assert render(name, task, "worker", strategy="") == render(name, task, "generator")


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("task", TASKS)
def test_hints_reach_the_generator(name, task):
    assert "work backwards" in render(name, task, "generator", hint="work backwards")


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("template", SOLVING)
def test_the_answer_format_of_math_roles_parses_when_followed_to_the_letter(name, template):
    literal = re.findall(r"\\boxed\{\w+\}", render(name, "Math", template))[-1]
    assert last_box(re.sub(r"\{\w+\}", "{7}", literal)) == "7"


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("template", SOLVING)
def test_the_answer_format_of_code_roles_parses_when_followed_to_the_letter(name, template):
    asked = render(name, "Code", template)
    fence = asked[asked.rindex("```python") :].split("\n")[0]
    assert last_python_block(f"{fence}\nprint(2)\n```").strip() == "print(2)"


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("task", TASKS)
def test_selection_verdict_and_plan_parse_when_the_prompt_is_followed_to_the_letter(name, task):
    box = re.findall(r"\\boxed\{number\}", render(name, task, "aggregator"))[-1]
    assert parse_selection(box.replace("number", "2"), 3) == 2
    for template in ("evaluator", "evaluator_last"):
        verdicts = re.findall(r"\\boxed\{(?:Correct|Incorrect)\}", render(name, task, template))
        assert [parse_verdict(v) for v in verdicts] == ["Correct", "Incorrect"]
    lines = re.findall(r"^STRATEGY .*: .*$", render(name, task, "orchestrator"), re.MULTILINE)
    plan = "\n".join(line.replace(" n:", f" {k}:") for k, line in enumerate(lines, 1))
    assert list(parse_strategies(plan, 3)) == list(range(1, len(lines) + 1))


@pytest.mark.parametrize("template", ("generator", "worker", "refine_last", "synthesizer"))
def test_full_code_prompts_say_whether_a_function_or_a_program_is_wanted(template):
    function = render("full", "Code", template, FUNCTION)
    assert "`twice`" in function and "def twice(x):" in function
    assert "standard input" not in function and "\n\n\n" not in function
    assert "standard input" in render("full", "Code", template)


def test_every_prompt_set_of_the_presets_exists_for_every_task():
    config = load(["config.yaml"])
    for task in config.grid.tasks:
        assert list(Prompts(config.prompts, task).folder.glob("*.j2"))
