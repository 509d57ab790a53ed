"""The data step: a task's training and validation problems, with a manifest that vouches for them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rolewise.config import Config, HubData, ProceduralData
from rolewise.errors import ConfigError, DataError
from rolewise.records import write_text
from rolewise.tasks.datasets import dapo_math, deepcoder
from rolewise.tasks.datasets.hub import load_rows, local_revision, pinned_revision
from rolewise.tasks.datasets.hygiene import Dropped, assert_sound, distinct, without_overlap
from rolewise.tasks.problem import Problem, write_problems

VERSION = 1  # raise it when prepared problems change for an unchanged configuration


@dataclass(frozen=True)
class Prepared:
    """Problems of a task, what was left out, and facts for the manifest."""

    train: list[Problem]
    validation: list[Problem]
    dropped: list[Dropped]
    facts: dict[str, Any]


def prepare(config: Config, task_name: str, out_folder: Path) -> dict:
    """Write train.jsonl, validation.jsonl and, last, manifest.json; gives back the manifest.

    Byte-identical when run again: a revision that was resolved once stays.
    """
    spec = config.tasks.get(task_name)
    if spec is None:
        known = ", ".join(config.tasks)
        raise ConfigError([f"tasks: '{task_name}' is not configured (tasks: {known})"])
    if isinstance(spec, ProceduralData):
        prepared = _procedural(spec, task_name)
    else:
        prepared = _published(config, spec, out_folder)
    train, overlap = without_overlap(prepared.train, prepared.validation)
    dropped = [*prepared.dropped, *overlap]
    assert_sound(train, prepared.validation, f"tasks.{task_name}")
    # Checkpoints are chosen on one half of the validation problems and reported on the other.
    for part, problems, least in (("train", train, 1), ("validation", prepared.validation, 2)):
        if len(problems) < least:
            raise DataError(
                f"tasks.{task_name}: {len(problems)} {part} problems are left, at least {least} are "
                f"needed; ask for more ({len(dropped)} were dropped)"
            )
    texts = {
        "train.jsonl": write_problems(train),
        "validation.jsonl": write_problems(prepared.validation),
    }
    manifest = {
        "task": task_name,
        "version": VERSION,
        "spec": spec.model_dump(),
        **prepared.facts,
        "counts": {"train": len(train), "validation": len(prepared.validation)},
        "dropped": [asdict(row) for row in dropped],
        "files": {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()},
    }
    for name, text in texts.items():
        write_text(out_folder / name, text)
    text = json.dumps(manifest, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    write_text(out_folder / "manifest.json", text)
    return manifest


def _procedural(spec: ProceduralData, task_name: str) -> Prepared:
    from rolewise.workflows.base import load_object

    path = spec.generator
    if ":" not in path:
        path = f"rolewise.tasks.generators.{path}:generate"
    generate: Callable[..., tuple[list[Problem], list[Problem]]] = load_object(path)
    train, validation = generate(spec.train, spec.validation, spec.seed, spec.options)
    wrong = {p.task for p in [*train, *validation]} - {task_name}
    if wrong:
        raise ConfigError(
            [f"tasks.{task_name}.generator: '{spec.generator}' makes {wrong.pop()} problems"]
        )
    return Prepared(train, validation, [], {})


def _published(config: Config, spec: HubData, out_folder: Path) -> Prepared:
    revision = local_revision(spec.repo) or pinned_revision(
        spec.repo, "dataset", spec.revision, out_folder
    )
    rows = load_rows(spec.repo, spec.subset, revision)
    split = _dapo_math if spec.kind == "dapo_math" else _deepcoder
    prepared = split(config, spec, rows)
    return Prepared(
        prepared.train,
        prepared.validation,
        prepared.dropped,
        {"revision": revision, "rows": len(rows), **prepared.facts},
    )


def _dapo_math(config: Config, spec: HubData, rows: Any) -> Prepared:
    """Random split of all rows first, as published; then faulty rows are dropped from each part."""
    numbered = rows.add_column("_number", list(range(len(rows))))
    parts = numbered.train_test_split(test_size=spec.validation, seed=spec.seed)
    raw = {"train": parts["train"], "validation": parts["test"]}
    _expect(spec, {name: len(part) for name, part in raw.items()})
    found, dropped = {}, []
    both = [("train", row) for row in raw["train"]] + [
        ("validation", row) for row in raw["validation"]
    ]
    parsed = [(part, _parse(dapo_math.to_problem, row, dropped)) for part, row in both]
    held = {p.id: part for part, p in parsed if p is not None}
    # Held-out rows come first: of a repeated question it is the training row that goes.
    order = sorted((p for _, p in parsed if p is not None), key=lambda p: held[p.id] == "train")
    kept, repeated = distinct(order)
    found = {name: [p for p in kept if held[p.id] == name] for name in raw}
    return Prepared(
        found["train"],
        found["validation"],
        [*dropped, *repeated],
        {"split": {name: len(part) for name, part in raw.items()}},
    )


def _deepcoder(config: Config, spec: HubData, rows: Any) -> Prepared:
    """Usable problems, shuffled; the first are held out."""
    import numpy as np

    if not isinstance(spec.validation, int):
        raise ConfigError(["tasks.*.validation: deepcoder takes a number of problems"])
    dropped: list[Dropped] = []
    numbered = rows.add_column("_number", list(range(len(rows))))
    parsed = [_parse(deepcoder.to_problem, row, dropped) for row in numbered]
    problems, repeated = distinct([p for p in parsed if p is not None])
    dropped += repeated
    if spec.verify_references:
        from rolewise.tasks.datasets.references import verified

        problems, failing = verified(config, problems, spec.verify_references)
        dropped += failing
    # The permutation that `datasets.Dataset.shuffle` draws.
    order = np.random.default_rng(spec.seed).permutation(len(problems))
    shuffled = [problems[i] for i in order]
    validation, train = shuffled[: spec.validation], shuffled[spec.validation :]
    _expect(spec, {"train": len(train), "validation": len(validation)})
    return Prepared(train, validation, dropped, {})


def _parse(
    to_problem: Callable[[dict, int], Problem | str], row: dict, dropped: list[Dropped]
) -> Problem | None:
    number = row.pop("_number")
    problem = to_problem(row, number)
    if isinstance(problem, str):
        dropped.append(Dropped(f"row {number}", problem))
        return None
    return problem


def _expect(spec: HubData, counts: dict[str, int]) -> None:
    wrong = [
        f"{name}: {counts.get(name)} instead of {count}"
        for name, count in spec.expect.items()
        if counts.get(name) != count
    ]
    if wrong:
        raise DataError(
            f"data set {spec.repo} ({spec.subset}): {'; '.join(wrong)}; the source has changed: pin "
            "its old `revision`, or change `expect` deliberately"
        )
