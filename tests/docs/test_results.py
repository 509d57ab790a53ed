"""The README shows the shipped reference results, and only those."""

import gzip
import hashlib
import re

from docs import fill_benchmarks
from docs.fill_results import FIGURES, README, SHOWN, filled
from tests.docs.pages import ROOT

REFERENCE = ROOT / "results/reference"


def test_results_are_filled_in_between_the_marks(tmp_path):
    for folder in ("tables", "figures"):
        (tmp_path / folder).mkdir()
    (tmp_path / "tables/cells.csv").write_text("workflow\n")
    (tmp_path / "tables/table_1.md").write_text("a caption\n\n| a table |\n")
    for n in FIGURES:
        (tmp_path / f"figures/figure_{n}.md").write_text(f"caption {n}\n")
    text = "before\n<!-- results: begin -->\nold\n<!-- results: end -->\nafter\n"
    once = filled(text, tmp_path)
    assert filled(once, tmp_path) == once
    assert once.startswith("before\n") and once.endswith("\nafter\n") and "old" not in once
    assert "| a table |" in once and "docs/results/figure_3.png" in once and "caption 7" in once


def test_the_readme_shows_the_shipped_reference_results():
    shown = re.findall(r"<!-- cells.csv sha256 (\w+) -->", README.read_text(encoding="utf-8"))
    table = gzip.decompress((REFERENCE / "tables/cells.csv.gz").read_bytes())
    assert shown == [hashlib.sha256(table).hexdigest()]
    assert all((SHOWN / f"figure_{n}.png").is_file() for n in FIGURES)


def test_the_performance_page_shows_the_measurements_in_the_repository():
    page = fill_benchmarks.PAGE.read_text(encoding="utf-8")
    marks = {match[2] for match in fill_benchmarks.BLOCK.finditer(page)}
    assert marks == {"machine", "contenders", "summary", "scaling"}
    assert fill_benchmarks.filled(page, fill_benchmarks.MEASURED) == page
