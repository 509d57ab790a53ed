"""From a cell's trajectories to what the browser loads: a small index and chunks of text. Pure."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import pandas as pd

from rolewise.tasks.problem import Problem

EXCERPT = 160
CHUNK_CHARACTERS = 400_000
CALL_FIELDS = (
    "role", "slot", "turn", "prompt", "text", "tokens", "prompt_tokens", "finish_reason",
    "entropy", "parsed", "fallback", "answer", "role_correct", "graded", "captured",
)  # fmt: skip
_INTERNED = {"prompt", "text"}


@dataclass(frozen=True)
class Shards:
    """A run's index and its text chunks, as JSON-able values."""

    index: dict[str, Any]
    chunks: list[dict[str, Any]]


def build_shards(
    trajectories: pd.DataFrame, problems: dict[str, Problem], roles: tuple[str, ...]
) -> Shards:
    """The shards of one run.

    `trajectories` has the columns of `records.TRAJECTORIES` and a boolean `captured`. The index
    holds a row per episode with bit masks over `roles` of whose output is wrong, fell back or is
    captured; the texts of a problem at all checkpoints share a chunk of about `CHUNK_CHARACTERS`.
    """
    ordered = trajectories.sort_values(["step", "problem", "sample", "call"], kind="stable")
    steps = ordered.drop_duplicates("step")[["step", "checkpoint"]]
    steps = [(int(step), name) for step, name in steps.itertuples(index=False)]
    position = {step: i for i, (step, _) in enumerate(steps)}
    ids = list(dict.fromkeys(ordered["problem"]))
    number = {problem: i for i, problem in enumerate(ids)}
    bit = {role: 1 << i for i, role in enumerate(roles)}

    episodes: dict[str, list] = {
        key: []
        for key in (
            "problem", "checkpoint", "sample", "correct", "reward", "wrong", "fallback", "captured",
        )
    }  # fmt: skip
    texts: dict[int, list[tuple[int, list[dict]]]] = {i: [] for i in range(len(ids))}
    for i, ((step, problem, sample), calls) in enumerate(_episodes(ordered)):
        first = calls[0]
        episodes["problem"].append(number[problem])
        episodes["checkpoint"].append(position[step])
        episodes["sample"].append(int(sample))
        episodes["correct"].append(int(first["correct"]))
        episodes["reward"].append(round(float(first["reward"]), 3))
        for name, holds in (
            ("wrong", lambda call: call["role_correct"] is False),
            ("fallback", lambda call: call["fallback"]),
            ("captured", lambda call: call["captured"]),
        ):
            episodes[name].append(_mask(calls, bit, holds))
        texts[number[problem]].append((i, calls))

    chunks, chunk_of = _chunk(texts, [problems.get(problem) for problem in ids])
    index = {
        "roles": list(roles),
        "checkpoints": [{"step": step, "names": name.split("+")} for step, name in steps],
        "problems": [
            [problem, _excerpt(problems.get(problem)), chunk_of[i]] for i, problem in enumerate(ids)
        ],
        "episodes": episodes,
        "chunks": len(chunks),
    }
    return Shards(index, chunks)


def _episodes(ordered: pd.DataFrame):
    """((step, problem, sample), calls) of consecutive rows, calls as plain dictionaries."""
    key, calls = None, []
    for row in ordered.to_dict("records"):
        call = {name: _plain(value) for name, value in row.items()}
        own = (call["step"], call["problem"], call["sample"])
        if own != key and calls:
            yield key, calls
            calls = []
        key = own
        calls.append(call)
    if calls:
        yield key, calls


def _plain(value: Any) -> Any:
    """A numpy scalar as Python's own, a missing value as None."""
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return None
    return value.item() if hasattr(value, "item") else value


def _mask(calls: list[dict], bit: dict[str, int], holds) -> int:
    mask = 0
    for call in calls:
        if holds(call):
            mask |= bit[call["role"]]
    return mask


def _excerpt(problem: Problem | None) -> str:
    text = " ".join(problem.prompt.split()) if problem else ""
    return text if len(text) <= EXCERPT else text[: EXCERPT - 1] + "…"


def _chunk(
    texts: dict[int, list[tuple[int, list[dict]]]], problems: list[Problem | None]
) -> tuple[list[dict], list[int]]:
    """Chunks filled problem by problem, and the chunk of each problem; equal texts kept once."""
    chunks: list[dict] = []
    chunk_of: list[int] = []
    size = CHUNK_CHARACTERS
    strings: dict[str, int] = {}
    for i, problem in enumerate(problems):
        if size >= CHUNK_CHARACTERS:
            strings, size = {}, 0
            chunks.append({"strings": [], "problems": {}, "calls": {}})
        chunk = chunks[-1]
        chunk_of.append(len(chunks) - 1)
        if problem is not None:
            chunk["problems"][i] = {"prompt": problem.prompt, "reference": reference(problem)}
            size += len(problem.prompt)
        for episode, calls in texts[i]:
            rows = []
            for call in calls:
                row = []
                for name in CALL_FIELDS:
                    value = call[name]
                    if name in _INTERNED:
                        if value not in strings:
                            strings[value] = len(strings)
                            chunk["strings"].append(value)
                            size += len(value)
                        value = strings[value]
                    row.append(value)
                rows.append(row)
            chunk["calls"][episode] = rows
    return chunks, chunk_of


def reference(problem: Problem) -> str:
    """What a right output must achieve: the answer, or the hidden tests in short."""
    if problem.answer is not None:
        return problem.answer
    shown = [f"{_short(test.input)} → {_short(test.output)}" for test in problem.tests[:3]]
    more = len(problem.tests) - len(shown)
    return "\n".join(shown + ([f"and {more} more tests"] if more > 0 else []))


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = text.strip().replace("\n", "⏎")
    return text if len(text) <= 120 else text[:119] + "…"
