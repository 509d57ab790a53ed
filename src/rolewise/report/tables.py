"""Reads the tables and figures of the paper stage back for display. Captions stay theirs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

CELL_BREAK = re.compile(r"(?<!\\)\|")
NUMBERED = re.compile(r"(table|figure)_(\d+)$")


@dataclass(frozen=True)
class Grid:
    """One pipe table; `numeric` says which columns are set to the right."""

    head: list[str]
    numeric: list[bool]
    rows: list[list[str]]


@dataclass(frozen=True)
class Exhibit:
    """A table or a figure: its name, title, caption, tables and the files to download."""

    kind: str
    number: int
    title: str
    caption: str
    grids: list[Grid]
    picture: str | None
    files: list[Path]

    @property
    def anchor(self) -> str:
        """Its place on the page."""
        return f"{self.kind}-{self.number}"


def read_exhibits(folder: Path, kind: str) -> list[Exhibit]:
    """Every `<kind>_<n>.*` of `folder`, by number; empty if there is none."""
    grouped: dict[int, list[Path]] = {}
    for path in sorted(folder.glob(f"{kind}_*.*")):
        match = NUMBERED.match(path.stem)
        if match:
            grouped.setdefault(int(match.group(2)), []).append(path)
    return [_exhibit(kind, number, files) for number, files in sorted(grouped.items())]


def _exhibit(kind: str, number: int, files: list[Path]) -> Exhibit:
    by_suffix = {path.suffix: path for path in files}
    text = by_suffix[".md"].read_text() if ".md" in by_suffix else ""
    caption, grids = parse_markdown(text)
    label = f"{kind.capitalize()} {number}"
    title = re.match(rf"\*\*{label}\.\s*(.*?)\.?\*\*\s*", caption)
    picture = by_suffix.get(".svg") or by_suffix.get(".png")
    return Exhibit(
        kind=kind,
        number=number,
        title=title.group(1) if title else label,
        caption=(caption[title.end() :] if title else caption).replace("**", ""),
        grids=grids,
        picture=picture.name if picture else None,
        files=files,
    )


def parse_markdown(text: str) -> tuple[str, list[Grid]]:
    """The prose and the pipe tables of `text`; a line of a table starts with `|`."""
    prose: list[str] = []
    grids: list[Grid] = []
    block: list[list[str]] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            cells = CELL_BREAK.split(line.strip())[1:-1]
            block.append([cell.strip().replace(r"\|", "|") for cell in cells])
            continue
        if len(block) >= 2:
            head, rule, *rows = block
            numeric = [cell.endswith(":") and not cell.startswith(":") for cell in rule]
            grids.append(Grid(head, numeric, rows))
        block = []
        prose.append(line)
    return " ".join(" ".join(prose).split()), grids
