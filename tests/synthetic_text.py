"""Role outputs of invented episodes: right and wrong answers, verdicts, picks, hostile text."""

from __future__ import annotations

import json

import numpy as np

from rolewise.tasks.problem import Problem

HOSTILE = (
    "<script>document.title = 'owned'</script> </script><img src=x onerror=alert(1)> & < > \" '",
    "π ≈ 3.14159, naïve café, 数学の答え, 😀, \u202eright to left\u202c, עברית",
    "step " * 4000,
)


def solution(problem: Problem, right: bool, parsable: bool, choice: int) -> tuple[str, str | None]:
    """An output and the answer in it; `choice` picks among the wrong answers."""
    wrong = 1 + choice
    if problem.task == "Math":
        answer = str(int(problem.answer or "0") + (0 if right else wrong))
        if not parsable:
            return f"So we get {answer}, I think.", None
        return f"We multiply, then add.\nThe answer is \\boxed{{{answer}}}.", answer
    a, b = problem.meta["a"], problem.meta["b"] + (0 if right else wrong)
    program = f"n = int(input())\nr = {a} * n\nprint(r + {b})"
    if not parsable:
        return f"The program prints {a} * n + {b}.", None
    return f"Here is the program.\n```python\n{program}\n```", program


def episode(
    workflow: str,
    problem: Problem,
    correct: bool,
    format_ok: bool,
    *,
    capture: float,
    narrow: float,
    hostile: int | None,
    rng: np.random.Generator,
) -> list[dict]:
    """The calls of one episode whose graded output has the given outcome."""

    def call(role, text, answer, right, *, slot=0, turn=0, parsed=None, fallback=False):
        return {
            "role": role,
            "slot": slot,
            "turn": turn,
            "text": text,
            "parsed": parsed,
            "fallback": fallback,
            "answer": answer,
            "answer_key": None if answer is None else "".join(answer.split()),
            "role_correct": right,
            "graded": False,
        }

    def solve(role, right, parsable=True, **where):
        choice = 0 if rng.random() < narrow else int(rng.integers(0, 4))
        text, answer = solution(problem, right, parsable, choice)
        return call(role, text, answer, right and parsable, **where)

    if workflow == "Eval-Opt":
        first = bool(correct and rng.random() < 0.7)
        calls = [solve("generator", first, format_ok or first)]
        calls.append(_verdict(call, problem, first, 0, capture=capture, rng=rng))
        if not first:
            calls.append(solve("generator", correct, format_ok, turn=1))
            calls.append(_verdict(call, problem, correct, 1, capture=capture, rng=rng))
        graded = 0 if first else 2
    elif workflow == "Voting":
        pick = int(rng.integers(0, 3))
        calls = []
        for slot in range(3):
            right = correct if slot == pick else bool(rng.random() < 0.4)
            calls.append(solve("generator", right, format_ok or slot != pick, slot=slot))
        calls.append(
            call("aggregator", f"\\boxed{{{pick + 1}}}", None, correct, parsed=str(pick + 1))
        )
        graded = pick
    elif workflow == "Orch-Workers":
        plan = {1: "work from the left", 2: "estimate, then correct", 3: "check each term"}
        text = "\n".join(f"STRATEGY {n}: {line}" for n, line in plan.items())
        calls = [call("orchestrator", text, None, None, parsed=json.dumps(plan))]
        for slot in range(3):
            calls.append(solve("worker", bool(rng.random() < 0.5), slot=slot))
        calls.append(solve("synthesizer", correct, format_ok))
        graded = 4
    else:
        calls = [solve("generator", correct, format_ok)]
        graded = 0
    calls[graded]["graded"] = True
    if hostile is not None and hostile < len(HOSTILE):
        calls[0]["text"] = f"{HOSTILE[hostile]}\n{calls[0]['text']}"
    return calls


def _verdict(call, problem, judged, turn, *, capture, rng):
    says = "Correct" if judged == bool(rng.random() < 0.8) else "Incorrect"
    text = f"\\boxed{{{says}}}" if says == "Correct" else f"\\boxed{{{says}}} Check the sum."
    if rng.random() < capture:
        own, _ = solution(problem, judged, True, 0)
        text = f"{own}\n{text}"
    return call("evaluator", text, None, (says == "Correct") == judged, turn=turn, parsed=says)
