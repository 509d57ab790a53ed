"""Shows a study's results in README.md: Table 1 and Figures 1, 3, 7, with the hash of their source.

rolewise reference pack                                     a finished study -> results/reference
snakemake --cores 2 tables figures --config frozen=true     -> results/frozen
python docs/fill_results.py [FOLDER]                        default: results/frozen
"""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
from pathlib import Path

from rolewise.records import write_text

DOCS = Path(__file__).parent
README = DOCS.parent / "README.md"
SHOWN = DOCS / "results"
FIGURES = (1, 3, 7)
BLOCK = re.compile(r"(<!-- results: begin -->\n).*(<!-- results: end -->)", re.DOTALL)


def block(results: Path) -> str:
    """Markdown of Table 1 and Figures 3 and 7 of the study in `results`, with its captions."""
    source = hashlib.sha256((results / "tables/cells.csv").read_bytes()).hexdigest()
    table = (results / "tables/table_1.md").read_text(encoding="utf-8").strip()
    pictures = [
        f"![Figure {n}](docs/results/figure_{n}.png)\n\n"
        + (results / f"figures/figure_{n}.md").read_text(encoding="utf-8").strip()
        for n in FIGURES
        if n != 1
    ]
    return "\n\n".join([f"<!-- cells.csv sha256 {source} -->", table, *pictures])


def filled(text: str, results: Path) -> str:
    """`text` with the results between its two marks replaced."""
    if not BLOCK.search(text):
        sys.exit(f"{README}: the marks of the results are missing")
    return BLOCK.sub(lambda match: f"{match[1]}{block(results)}\n{match[2]}", text)


def main() -> None:
    """Copy the figures and rewrite the README."""
    results = Path(sys.argv[1] if len(sys.argv) > 1 else "results/frozen")
    wanted = [results / "tables/cells.csv", results / "tables/table_1.md"]
    wanted += [results / f"figures/figure_{n}.{kind}" for n in FIGURES for kind in ("png", "md")]
    if missing := [str(path) for path in wanted if not path.is_file()]:
        sys.exit(f"missing: {', '.join(missing)}; `snakemake --cores 2 tables figures` makes them")
    SHOWN.mkdir(exist_ok=True)
    for n in FIGURES:
        shutil.copyfile(results / f"figures/figure_{n}.png", SHOWN / f"figure_{n}.png")
    write_text(README, filled(README.read_text(encoding="utf-8"), results))
    print(f"README.md and {SHOWN.relative_to(DOCS.parent)} show {results}")


if __name__ == "__main__":
    main()
