"""The written pages and the blocks in them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Settings that make a synthetic study quick to write.
BRIEF = {
    "evaluation.trajectory_problems": 6,
    "evaluation.transfer_scales": [],
    "signatures.bootstrap": 40,
    "training.steps": 20,
    "tasks.Math.validation": 40,
}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# A block may be preceded by `<!-- test: plan -->` (checked, never run), `<!-- test: text -->` (cannot
# be checked here) or `<!-- file: NAME -->` (the commands of the page find it under that name).
_BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>test|file): (?P<value>\S+) -->\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A fenced block, with the page it stands on and the mark before it."""

    page: str
    kind: str
    text: str
    mark: str = ""
    value: str = ""


def blocks(kind: str) -> Iterator[Block]:
    """All blocks of one kind, in the order of the pages."""
    for page in PAGES:
        for match in _BLOCK.finditer(page.read_text(encoding="utf-8")):
            if match["kind"] == kind:
                name = page.relative_to(ROOT).as_posix()
                yield Block(name, kind, match["text"], match["mark"] or "", match["value"] or "")


def commands(block: Block) -> list[list[str]]:
    """The commands of a shell block as words; continued lines are one."""
    text = block.text.replace("\\\n", " ")
    lines = (shlex.split(line, comments=True) for line in text.splitlines())
    return [words for words in lines if words]


def files_of(page: str) -> dict[str, str]:
    """Name -> content of the files that a page has its reader write."""
    return {b.value: b.text for b in blocks("yaml") if b.page == page and b.mark == "file"}
