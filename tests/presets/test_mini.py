"""The problems and prompts of the mini preset: right, disjoint, and examples that keep the chat's form."""

import re
from pathlib import Path

import pytest

from rolewise.config import load
from rolewise.errors import ConfigError
from rolewise.tasks.boxed import last_box
from rolewise.tasks.code_blocks import last_python_block
from rolewise.tasks.generators import simple
from rolewise.tasks.parsing import parse_selection, parse_strategies, parse_verdict
from rolewise.tasks.prompts import Prompts
from tests.tasks.test_prompts import VARIABLES

MAKERS = {"Math": simple.sums, "Code": simple.programs}
QUESTION = {
    "Math": re.compile(r"What is \d+ [+-] \d+\?"),
    "Code": re.compile(r"(?:Read x\. Print|Define f\(x\):) x \w+ \d+\."),
}
EXAMPLE = re.compile(r"<\|im_start\|>assistant\n(.*?)<\|im_end\|>", re.DOTALL)


def made(task):
    spec = load(["config.yaml", "workflow/presets/mini.yaml"]).tasks[task]
    return MAKERS[task](spec.train, spec.validation, spec.seed, spec.options)


@pytest.mark.parametrize("task", MAKERS)
def test_problems_are_distinct_disjoint_and_the_same_for_a_seed(task):
    train, validation = made(task)
    assert len({p.prompt for p in [*train, *validation]}) == len(train) + 200
    assert made(task) == (train, validation)


def test_answers_of_sums_are_right_and_not_negative():
    for problem in made("Math")[0]:
        a, sign, b = re.fullmatch(r"What is (\d+) ([+-]) (\d+)\?", problem.prompt).groups()
        assert int(problem.answer) == (int(a) + int(b) if sign == "+" else int(a) - int(b)) >= 0


def test_tests_of_programs_tell_the_operations_apart():
    for problem in made("Code")[0]:
        word, constant = re.search(r"x (\w+) (\d+)\.$", problem.prompt).groups()
        results = {
            name: [apply(x, int(constant)) for x in simple.INPUTS]
            for name, apply in simple.OPERATIONS.items()
        }
        expected = [int(test.output) for test in problem.tests]
        assert [name for name, values in results.items() if values == expected] == [word]


def test_too_many_problems_and_unknown_options_are_refused():
    with pytest.raises(ConfigError, match="the generator has"):
        simple.sums(10_000, 10, 0, {})
    with pytest.raises(ConfigError, match=r"simple:programs.*biggest"):
        simple.programs(10, 10, 0, {"biggest": 3})


@pytest.mark.parametrize("task", MAKERS)
@pytest.mark.parametrize("template", VARIABLES)
def test_every_role_sees_the_problem_after_well_formed_examples(task, template):
    problem = made(task)[0][0]
    text = Prompts("mini", task).render(
        template, problem=problem, **({"hint": ""} | VARIABLES[template])
    )
    examples = EXAMPLE.findall(text)
    assert text.count("<|im_end|>") == 2 * len(examples)
    assert text.count("<|im_start|>user\n") == len(examples)
    shown = text.rpartition("<|im_start|>user\n")[2]
    assert (problem.prompt in shown) == (template not in ("evaluator", "refine"))


PARSERS = {
    "aggregator": lambda text, task: parse_selection(text, 3),
    "evaluator_last": lambda text, task: parse_verdict(text),
    "orchestrator": lambda text, task: parse_strategies(text, 3),
}


@pytest.mark.parametrize("task", MAKERS)
@pytest.mark.parametrize("template", [t for t in VARIABLES if t not in ("evaluator", "refine")])
def test_examples_show_an_output_that_can_be_parsed(task, template):
    text = Prompts("mini", task).render(
        template, problem=made(task)[0][0], **({"hint": ""} | VARIABLES[template])
    )
    solve = last_box if task == "Math" else last_python_block
    parse = PARSERS.get(template, lambda text, task: solve(text))
    for example in EXAMPLE.findall(text):
        assert parse(example, task), example


@pytest.mark.parametrize("task", MAKERS)
def test_no_example_is_a_problem_of_the_study(task):
    templates = Path(f"workflow/prompts/mini/{task}").glob("*.j2")
    shown = set(QUESTION[task].findall("".join(path.read_text() for path in templates)))
    assert shown
    generated = {p.prompt for part in made(task) for p in part}
    assert shown <= simple.SHOWN and not generated & shown
