import io
import json

import pytest

from rolewise.errors import ConfigError
from rolewise.tasks.datasets.hygiene import normalise
from rolewise.tasks.generators import arithmetic, programs
from rolewise.tasks.problem import write_problems

GENERATORS = {"Math": arithmetic, "Code": programs}
COUNTS = {"Math": (2000, 400), "Code": (1000, 400)}


def outputs(program, problem):
    """What a program gives on each test, or the name of its error; only for our own programs."""
    found = []
    for test in problem.tests:
        printed, lines = io.StringIO(), iter(str(test.input).split("\n"))
        space = {
            "print": lambda *values, to=printed: to.write(" ".join(map(str, values)) + "\n"),
            "input": lambda source=lines: next(source),
        }
        try:
            exec(program, space)
            value = space["f"](*test.input) if problem.fn_name else printed.getvalue()
        except TypeError as error:
            value = type(error).__name__
        found.append(value)
    return found


@pytest.mark.parametrize("task", GENERATORS)
def test_counts_ids_and_questions_are_as_asked_and_never_repeat(task):
    train, validation = GENERATORS[task].generate(*COUNTS[task], 0, {})
    both = [*train, *validation]
    assert (len(train), len(validation)) == COUNTS[task]
    assert len({p.id for p in both}) == len(both)
    assert len({normalise(p.prompt) for p in both}) == len(both)
    assert {p.task for p in both} == {task}


@pytest.mark.parametrize("task", GENERATORS)
def test_the_seed_decides_the_problems(task):
    first, again, other = (
        write_problems(GENERATORS[task].generate(50, 20, seed, {})[0]) for seed in (1, 1, 2)
    )
    assert first == again != other


@pytest.mark.parametrize("task", GENERATORS)
def test_asking_for_too_many_problems_names_how_many_there_are(task):
    with pytest.raises(ConfigError, match="lower the counts"):
        GENERATORS[task].generate(10**6, 1, 0, {})


@pytest.mark.parametrize("task", GENERATORS)
def test_an_unknown_option_is_refused_by_name(task):
    with pytest.raises(ConfigError, match="colour"):
        GENERATORS[task].generate(1, 1, 0, {"colour": 3})


def test_wider_operands_give_more_arithmetic():
    train, _ = arithmetic.generate(5000, 100, 0, {"largest_term": 20})
    assert max(int(p.answer) for p in train if p.meta["operation"] == "add") > 30


def test_arithmetic_answers_equal_the_formulas_of_symbolic_prompts():
    train, _ = arithmetic.generate(2000, 400, 0, {})
    checked = 0
    for problem in train:
        formula = problem.prompt.removeprefix("Find ").removeprefix("Compute ")
        for sign, apply in (("+", int.__add__), ("-", int.__sub__), ("*", int.__mul__)):
            left, found, right = formula.partition(sign)
            if found:
                assert apply(int(left), int(right)) == int(problem.answer)
                checked += 1
    assert checked > 300


def test_arithmetic_mistakes_are_wrong_and_the_lazy_one_is_named_in_the_question():
    train, _ = arithmetic.generate(2000, 400, 0, {})
    for problem in train:
        assert problem.meta["solution"] == problem.answer not in problem.meta["mistakes"]
    lazy = [p.meta["mistakes"][0] in p.prompt for p in train]
    assert sum(lazy) / len(lazy) > 0.95


def test_half_of_the_programs_read_stdin_and_half_are_functions():
    train, validation = programs.generate(1000, 400, 0, {})
    functions = [p.fn_name is not None for p in [*train, *validation]]
    assert 0.45 < sum(functions) / len(functions) < 0.55
    assert all((p.starter_code != "") == (p.fn_name is not None) for p in train)


def test_solutions_pass_every_hidden_test_and_mistakes_fail_some():
    train, validation = programs.generate(300, 100, 0, {})
    for problem in [*train, *validation]:
        wanted = [test.output for test in problem.tests]
        assert len(wanted) >= 3
        assert outputs(problem.meta["solution"], problem) == wanted
        for mistake in problem.meta["mistakes"]:
            assert outputs(mistake, problem) != wanted


def test_expected_outputs_are_computed_from_the_described_steps():
    steps = programs.Steps(("x",), ("+", 5), ("*", 3))
    expression = steps.expression()
    assert expression.text() == "(x+5)*3"
    assert expression.value({"x": 2}) == 21
    assert json.loads(programs._function_problem(steps).to_json())["tests"][0]["output"] == 24
