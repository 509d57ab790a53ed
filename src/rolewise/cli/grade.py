"""Subcommands that grade or parse outputs read from files; they need no configuration."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

import typer

from rolewise.config import Config, Reward, Sandbox
from rolewise.errors import DataError

Row = dict[str, Any]
PANEL = "Grade and parse outputs"
GRADE = "Grade outputs as training does.\n\nExample: `rolewise grade math outputs.jsonl`"
PARSE = "Parse what roles say, as the workflows do.\n\nExample: `rolewise parse verdict critiques.jsonl`"
BATCH = 256
REWARD, SANDBOX = Reward(), Sandbox()

Rows = Annotated[Path, typer.Argument(help="JSON lines; `-` is standard input.", metavar="FILE")]
Penalty = Annotated[float, typer.Option(max=0, help="Math: reward of an output without answer.")]


def register(app: typer.Typer) -> None:
    """Add the subcommands of this module to `app`."""
    grade = typer.Typer(no_args_is_help=True, help=GRADE)
    grade.command("math")(grade_math)
    grade.command("code")(grade_code)
    parse = typer.Typer(no_args_is_help=True, help=PARSE)
    parse.command("verdict")(parse_verdict)
    parse.command("selection")(parse_selection)
    parse.command("strategies")(parse_strategies)
    app.add_typer(grade, name="grade", rich_help_panel=PANEL)
    app.add_typer(parse, name="parse", rich_help_panel=PANEL)


def grade_math(
    file: Rows,
    reward_math: Annotated[
        Literal["equivalent", "exact"], typer.Option(help="Equal values, or equal text.")
    ] = REWARD.math,
    format_penalty: Penalty = REWARD.format_penalty,
) -> None:
    """Grade math outputs: lines with `id`, `completion`, `ground_truth`.

    Prints `id, answer, correct, format_ok, reward` a line. Exit code 1 if a line was malformed.

    Example: `rolewise grade math rollouts.jsonl > grades.jsonl`
    """
    from rolewise.tasks.grade import reward_of
    from rolewise.tasks.math_grader import MathGrader
    from rolewise.tasks.problem import Problem

    reward = Reward(math=reward_math, format_penalty=format_penalty)

    def read(row: Row) -> tuple[Problem, str]:
        return Problem(str(row.get("id")), "Math", "", answer=_truth(row)), _completion(row)

    with MathGrader.from_reward(reward) as grader:

        def judge(batch: list[tuple[Row, tuple[Problem, str]]]) -> Iterator[Row]:
            grades = grader.grade_many([item for _, item in batch])
            for (row, _), grade in zip(batch, grades, strict=True):
                yield {
                    "id": row.get("id"),
                    "answer": grade.answer,
                    "correct": grade.correct,
                    "format_ok": grade.format_ok,
                    "reward": reward_of("Math", grade, reward),
                }

        _run(file, read, judge)


def grade_code(
    file: Rows,
    reward_code: Annotated[
        Literal["fraction", "all_pass"], typer.Option(help="Share of the tests, or all or nothing.")
    ] = REWARD.code,
    min_tier: Annotated[
        int, typer.Option(min=1, max=3, help="Weakest sandbox accepted (1 = strongest).")
    ] = SANDBOX.min_tier,
) -> None:
    """Grade programs: lines with `id`, `completion`, `tests`, `mode`, `fn_name`, `limits`.

    Prints `id, status, passed, total, reward` a line. Exit code 1 if a line was malformed.

    Example: `zcat rollouts.jsonl.gz | rolewise grade code - > grades.jsonl`
    """
    from rolewise.tasks.code_grader import CodeGrader, problem_of_row
    from rolewise.tasks.grade import reward_of
    from rolewise.tasks.problem import Problem

    reward = Reward(code=reward_code)

    def read(row: Row) -> tuple[Problem, str]:
        return problem_of_row(row), _completion(row)

    with tempfile.TemporaryDirectory(prefix="rolewise-") as folder:
        # The two sections that a grader reads; its cache ends with the command.
        config = Config.model_construct(
            reward=reward, sandbox=Sandbox(min_tier=min_tier), results_dir=folder
        )
        with CodeGrader(config) as grader:

            def judge(batch: list[tuple[Row, tuple[Problem, str]]]) -> Iterator[Row]:
                grades = grader.grade_many([item for _, item in batch])
                for (row, _), grade in zip(batch, grades, strict=True):
                    yield {
                        "id": row.get("id"),
                        "status": grade.status,
                        "passed": grade.passed,
                        "total": grade.total,
                        "reward": reward_of("Code", grade, reward),
                    }

            _run(file, read, judge)


def parse_verdict(file: Rows) -> None:
    """Parse evaluator outputs: lines with `id`, `output`.

    Prints `id, value, fallback` a line; value is Correct, Incorrect or null. Exit code 1 if a line
    was malformed.

    Example: `rolewise parse verdict critiques.jsonl`
    """
    from rolewise.tasks import parsing

    _parse(file, lambda row: parsing.parse_verdict(_text(row, "output")))


def parse_selection(file: Rows) -> None:
    """Parse aggregator outputs: lines with `id`, `output`, `n_candidates`.

    Prints `id, value, fallback` a line; value is a number from 1 or null. Exit code 1 if a line was
    malformed.

    Example: `rolewise parse selection choices.jsonl`
    """
    from rolewise.tasks import parsing

    _parse(
        file,
        lambda row: parsing.parse_selection(_text(row, "output"), _count(row, "n_candidates")),
    )


def parse_strategies(
    file: Rows,
    workers: Annotated[
        int, typer.Option(min=1, help="Most strategies, for lines without `n_strategies`.")
    ] = 3,
) -> None:
    """Parse orchestrator outputs: lines with `id`, `output` and, if known, `n_strategies`.

    A line with `n_strategies` must hold exactly so many, others 1 to `--workers`. Prints `id, value,
    fallback` a line; value maps numbers to texts or is null. Exit code 1 if a line was malformed.

    Example: `rolewise parse strategies plans.jsonl`
    """
    from rolewise.tasks import parsing

    def read(row: Row) -> dict[int, str] | None:
        text = _text(row, "output")
        if "n_strategies" not in row:
            return parsing.parse_strategies(text, workers) or None
        asked = _count(row, "n_strategies")
        return parsing.parse_strategies(text, asked, fewest=asked) or None

    _parse(file, read)


def _parse(file: Path, read: Callable[[Row], Any]) -> None:
    def judge(batch: list[tuple[Row, Any]]) -> Iterator[Row]:
        for row, value in batch:
            yield {"id": row.get("id"), "value": value, "fallback": value is None}

    _run(file, read, judge)


def _run(
    file: Path,
    read: Callable[[Row], Any],
    judge: Callable[[list[tuple[Row, Any]]], Iterable[Row]],
) -> None:
    """Read, judge and print batch by batch in order; malformed lines become error rows and exit 1.

    `read` checks one row and raises DataError; `judge` gets the good rows of a batch.
    """
    failed = False
    with _open(file) as lines:
        numbered = iter(enumerate(lines, 1))
        while batch := list(islice(numbered, BATCH)):
            results: list[Row | None] = []
            good: list[tuple[Row, Any]] = []
            for number, line in batch:
                if not line.strip():
                    continue
                try:
                    row = _row(line)
                    good.append((row, read(row)))
                    results.append(None)
                except DataError as error:
                    results.append({"line": number, "error": str(error)})
                    failed = True
            judged = iter(judge(good))
            for result in results:
                print(json.dumps(next(judged) if result is None else result))
            sys.stdout.flush()
    if failed:
        raise typer.Exit(1)


def _open(file: Path) -> contextlib.AbstractContextManager[BinaryIO]:
    if str(file) == "-":
        return contextlib.nullcontext(sys.stdin.buffer)
    try:
        return open(file, "rb")
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror})") from error


def _row(line: bytes) -> Row:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"not a line of JSON: {error}") from error
    if not isinstance(row, dict):
        raise DataError("a line must be a JSON object")
    return row


def _text(row: Row, key: str) -> str:
    if not isinstance(row.get(key), str):
        raise DataError(f"{key}: the line needs it as text")
    return row[key]


def _count(row: Row, key: str) -> int:
    value = row.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise DataError(f"{key}: the line needs it as a positive integer")
    return value


def _truth(row: Row) -> str:
    value = row.get("ground_truth")
    if isinstance(value, int | float) and not isinstance(value, bool):
        return json.dumps(value)
    return _text(row, "ground_truth")


def _completion(row: Row) -> str:
    """The output: `completion`, or `completion_repeat` (prefix, unit, times, suffix)."""
    parts = row.get("completion_repeat")
    if parts is None:
        return _text(row, "completion")
    if not isinstance(parts, dict):
        raise DataError("completion_repeat: must be a mapping of prefix, unit, times and suffix")
    prefix, unit, suffix = (_text(parts, key) for key in ("prefix", "unit", "suffix"))
    return prefix + unit * _count(parts, "times") + suffix
