"""What is in prepared data: counts, prompt lengths, and rows that deserve a second look."""

from __future__ import annotations

import json
import math
import re
import sys
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
_SPELLINGS = [
    (re.compile(pattern), new)
    for pattern, new in (
        (r"\\[,;!() ]|\{,\}|[${}]", ""),
        (r"\\leq?(?:slant)?(?![a-z])|&le;|[≤⩽]", "<="),
        (r"\\geq?(?:slant)?(?![a-z])|&ge;|[≥⩾]", ">="),
        (r"\\lt(?![a-z])|&lt;", "<"),
        (r"\*\*", "^"),
        (r"\\(?:cdot|times)(?![a-z])|[·⋅∙×]", "*"),
        ("−", "-"),
    )
]
# A run of digits is one number, whole: `++` keeps a part of it from being tried.
_INTEGER = r"(?:\d{1,3}(?:[, _]\d{3})++|\d{1,30}+)(?!\d)"
_POWER = rf"{_INTEGER}(?:\s?\^\s?\d{{1,2}}+|e\d{{1,2}}+)?"
_SUM = rf"-?{_POWER}(?:\s?[-+*]\s?{_POWER})*+"
_LIMIT = re.compile(
    rf"(?<![^\s(\[,;:`])(?<![-+*/^=<>]\s)(?:(?P<low>{_SUM})\s*(?P<above><=?)\s*|(?<=\())"
    rf"[A-Za-z]\s*(?P<below><=?)\s*(?P<high>{_SUM})(?!\s?[-+*/^!%<>=(]|[\w\\]|[.,]\d|\s\d)"
)
_RELATION = re.compile(r"<|(?<![-=])>")
_SEVERAL = re.compile(
    r"""\b(?:
      (?<!not\ )(?<!n't\ )(?<!never\ )(?:print|output|return|find)\s+any\b
      | any\s+(?:one\s+)?(?:of\s+(?:them|these|those)|valid|correct|such)\b
      | (?:print|output|return|list|answer)[^.\n]{0,80}\bin\s+(?:any|arbitrary|whatever)\s+order\b
      | (?:multiple|several|(?<!how\ )many|more\s+than\s+one)\s+
        (?:(?:possible|valid|correct|right|optimal|different|such)\s+){0,2}(?:answer|solution)s?\b
    )""",
    re.IGNORECASE | re.VERBOSE,
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

    Only for statements whose only relations are a single limit `low <= n < high`, or one in brackets,
    `(n < high)`, and for tests of a single integer: any other relation may be what bounds it.
    """
    found = []
    for problem in problems:
        limit = _limit(problem.prompt)
        for test in problem.tests if limit else ():
            value = _single_integer(test.input)
            if value is not None and value not in limit:
                found.append(f"{problem.id}: {value}, stated {limit.start} to {limit.stop - 1}")
    return found


def _limit(statement: str) -> range | None:
    """The integers that the only limit of a statement allows; None if there is no such limit."""
    for pattern, new in _SPELLINGS:
        statement = pattern.sub(new, statement)
    match = _LIMIT.search(statement)
    if match is None or len(_RELATION.findall(statement)) != len(_RELATION.findall(match[0])):
        return None
    high = _number(match["high"]) + (match["below"] == "<=")
    if match["low"] is None:
        return range(-sys.maxsize, high)
    return range(_number(match["low"]) + (match["above"] == "<"), high)


def several_answers(problems: Sequence[Problem]) -> list[str]:
    """Code problems whose statement admits several right outputs, which a fixed one would reject."""
    return [
        f"{p.id}: '{match[0]}'"
        for p in problems
        if p.tests and (match := _SEVERAL.search(p.prompt))
    ]


def _number(text: str) -> int:
    """The value of a sum of products of powers, written without brackets."""
    text = re.sub(r"[\s,_]", "", text)
    products = re.findall(r"([-+]?)([^-+]+)", text)
    return sum(int(f"{sign}1") * math.prod(map(_power, term.split("*"))) for sign, term in products)


def _power(text: str) -> int:
    if "e" in text:
        base, _, zeros = text.partition("e")
        return int(base) * 10 ** int(zeros)
    base, _, power = text.partition("^")
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
