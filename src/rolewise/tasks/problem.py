"""The one schema of a problem, for procedural and for published data alike."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rolewise.errors import DataError


@dataclass(frozen=True)
class Test:
    """One hidden test: stdin and stdout, or the arguments and result of a call.

    `input` and `output` are text for stdin tests and JSON-able values for calls (`input` is the list
    of arguments).
    """

    __test__ = False  # not a pytest class

    input: Any
    output: Any


@dataclass(frozen=True)
class Problem:
    """A problem: Math has an `answer`; Code has hidden `tests` and, for calls, `fn_name`."""

    id: str
    task: str
    prompt: str
    answer: str | None = None
    tests: tuple[Test, ...] = ()
    fn_name: str | None = None
    starter_code: str = ""
    tolerance: float | None = None
    meta: dict[str, Any] = field(default_factory=dict, compare=False)

    def to_json(self) -> str:
        """One line of a data file."""
        return json.dumps(dataclasses.asdict(self), ensure_ascii=False, sort_keys=True)

    @staticmethod
    def from_json(line: str) -> Problem:
        """Inverse of `to_json`; raises ValueError, TypeError or KeyError on anything else."""
        raw = json.loads(line)
        raw["tests"] = tuple(Test(**test) for test in raw.get("tests", ()))
        return Problem(**raw)


def write_problems(problems: Iterable[Problem]) -> str:
    """The text of a data file."""
    return "".join(problem.to_json() + "\n" for problem in problems)


def read_problems(path: Path) -> list[Problem]:
    """All problems of a data file; a corrupt line is a DataError that names it."""
    return list(_read(path))


def _read(path: Path) -> Iterator[Problem]:
    if not path.is_file():
        raise DataError(f"{path}: no such data file; build it with `snakemake --cores 1 data`")
    with open(path, encoding="utf-8") as handle:
        for number, line in enumerate(handle, 1):
            try:
                yield Problem.from_json(line)
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise DataError(
                    f"{path}:{number}: not a problem ({error}); delete the file and run "
                    "`snakemake --cores 1 data` again"
                ) from error


def split_halves(problems: list[Problem]) -> dict[str, str]:
    """Problem id -> `select` or `report`, alternating, so that both halves are alike."""
    return {p.id: ("select", "report")[i % 2] for i, p in enumerate(problems)}
