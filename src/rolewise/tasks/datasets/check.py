"""What is in prepared data: counts, prompt lengths, and rows that deserve a second look."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from rolewise.config import Caps, Config
from rolewise.errors import DataError
from rolewise.policy.tokenizer import ChatTokenizer
from rolewise.runs.layout import layout
from rolewise.tasks.problem import Problem, read_problems
from rolewise.tasks.prompts import ROOT, Prompts
from rolewise.workflows.base import user

BARS = 30
LISTED = 5
_LIMIT = re.compile(
    r"(\d[\d_,]*)\s*(?:<=|≤|\\leq?)\s*\$?([A-Za-z])\$?\s*(?:<=|≤|\\leq?)\s*(\d[\d_,]*(?:\^\{?\d+\}?)?)"
)
_SEVERAL = re.compile(
    r"\b(?:(?:print|output|return|find)\s+any\b|any\s+(?:of\s+them|valid|correct|such)\b"
    r"|(?:multiple|several|many)\s+(?:\w+\s+)?(?:answers|solutions))",
    re.IGNORECASE,
)


def check(config: Config, task: str, prompt_root: Path = ROOT) -> str:
    """A page of text on the prepared data of a task.

    Lengths are of the rendered generator prompt, in tokens of each model that is there, otherwise in
    words. Flags are hints: limits and several right answers are read from the statement.
    """
    places = layout(config)
    folder = places.data(task)
    parts = {name: read_problems(folder / f"{name}.jsonl") for name in ("train", "validation")}
    manifest = _manifest(folder)
    lines = [f"{task}  ({folder})"]
    lines += [f"  {name}: {len(problems)} problems" for name, problems in parts.items()]
    if "revision" in manifest:
        lines.append(f"  revision: {manifest['revision']}")
    problems = [*parts["train"], *parts["validation"]]
    tests = sorted(len(p.tests) for p in problems)
    if tests[-1]:
        calls = sum(p.fn_name is not None for p in problems)
        lines.append(
            f"  hidden tests: {sum(tests)} (median {tests[len(tests) // 2]} a problem); "
            f"{calls} problems call a function, {len(problems) - calls} use stdin"
        )
    lines += _listed("dropped", [f"{d['id']}: {d['reason']}" for d in manifest.get("dropped", [])])
    lines += _prompt_lengths(config, task, problems, prompt_root)
    lines += _listed("tests outside the stated limits", limit_breaches(problems))
    lines += _listed("several right answers, no checker", several_answers(problems))
    return "\n".join(lines)


def _prompt_lengths(
    config: Config, task: str, problems: Sequence[Problem], root: Path
) -> list[str]:
    prompts = Prompts(config.prompts, task, root)
    texts = [prompts.render("generator", problem=p, hint="") for p in problems]
    lines = []
    for scale in config.grid.scales:
        folder = layout(config).model(scale)
        if (folder / "tokenizer.json").is_file():
            tokenizer = ChatTokenizer(folder, config.enable_thinking)
            rendered = [tokenizer.render(user(text)) for text in texts]
            lengths = [len(ids) for ids in tokenizer.encode_batch(rendered)]
            lines += _lengths(f"{scale} tokens", lengths, problems, config.caps[task])
    words = [len(text.split()) for text in texts]
    return lines or _lengths("words (no model is built yet)", words, problems, None)


def _manifest(folder: Path) -> dict:
    path = folder / "manifest.json"
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path}: unreadable ({error}); run `snakemake --cores 1 {path}`"
        ) from error


def _lengths(
    unit: str, lengths: Sequence[int], problems: Sequence[Problem], caps: Caps | None
) -> list[str]:
    lines = [f"  generator prompt, {unit}: {histogram_summary(lengths)}"]
    lines += [f"    {line}" for line in histogram(lengths)]
    for workflow, cap in (caps.prompt if caps else {}).items():
        over = [
            f"{p.id}: {length}" for p, length in zip(problems, lengths, strict=True) if length > cap
        ]
        lines += _listed(f"over the prompt cap of {workflow} ({cap})", over)
    return lines


def histogram_summary(lengths: Sequence[int]) -> str:
    """Smallest, median, 99 % quantile and largest."""
    ordered = sorted(lengths)
    middle, high = ordered[len(ordered) // 2], ordered[int(0.99 * (len(ordered) - 1))]
    return f"min {ordered[0]}, median {middle}, 99 % {high}, max {ordered[-1]}"


def histogram(lengths: Sequence[int], bins: int = 8) -> list[str]:
    """One line per bin of equal width: range, count, bar."""
    low, high = min(lengths), max(lengths)
    width = max(1, -(-(high - low + 1) // bins))
    counts = [0] * (-(-(high - low + 1) // width))
    for length in lengths:
        counts[(length - low) // width] += 1
    digits, most = len(str(high)), max(counts)
    return [
        f"{low + k * width:>{digits}}-{low + (k + 1) * width - 1:<{digits}} {count:>6} "
        f"{'#' * -(-count * BARS // most)}"
        for k, count in enumerate(counts)
    ]


def limit_breaches(problems: Sequence[Problem]) -> list[str]:
    """Tests that break the limit of the one variable that their statement bounds.

    Only for statements with a single limit `low <= n <= high` and tests of a single integer.
    """
    found = []
    for problem in problems:
        limits = _LIMIT.findall(problem.prompt)
        if len(limits) != 1:
            continue
        low, _, high = limits[0]
        bounds = _number(low), _number(high)
        for test in problem.tests:
            value = _single_integer(test.input)
            if value is not None and not bounds[0] <= value <= bounds[1]:
                found.append(f"{problem.id}: {value}, stated {low} to {high}")
    return found


def several_answers(problems: Sequence[Problem]) -> list[str]:
    """Code problems whose statement admits several right outputs, which a fixed one would reject."""
    return [
        f"{p.id}: '{match[0]}'"
        for p in problems
        if p.tests and (match := _SEVERAL.search(p.prompt))
    ]


def _number(text: str) -> int:
    base, _, power = re.sub(r"[_,{}]", "", text).partition("^")
    return int(base) ** int(power or 1)


def _single_integer(value: object) -> int | None:
    if isinstance(value, list):
        value = value[0] if len(value) == 1 else None
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and re.fullmatch(r"\s*-?\d{1,30}\s*", value):
        return int(value)
    return None


def _listed(title: str, items: Sequence[str]) -> list[str]:
    shown = [f"    {item}" for item in items[:LISTED]]
    more = [f"    ... and {len(items) - LISTED} more"] if len(items) > LISTED else []
    return [f"  {title}: {len(items) or 'none'}", *shown, *more]
