"""Building the report from whole, partial and frozen results."""

from __future__ import annotations

import shutil

import pytest

from rolewise.errors import DataError
from rolewise.report.build import build_report
from rolewise.runs.layout import Layout
from tests import configs


def pages(folder) -> list[str]:
    return [path.read_text() for path in sorted(folder.rglob("*.html"))]


@pytest.fixture
def copied(config, layout, tmp_path):
    """A copy of the study that a test may damage, with its configuration."""
    root = tmp_path / "study"
    shutil.copytree(layout.root, root, ignore=shutil.ignore_patterns("report"))
    return config.model_copy(update={"results_dir": str(root)}), Layout(root)


def test_every_page_forbids_what_it_does_not_carry(report):
    found = pages(report)
    assert len(found) > 15
    for page in found:
        assert "default-src 'none'; script-src 'self'; style-src 'self'" in page
        assert "http://" not in page and "https://" not in page
        assert " style=" not in page and "onclick" not in page


def test_report_is_replaced_as_a_whole(config, layout, report):
    (report / "stale.html").write_text("old")
    assert build_report(config) == report / "index.html"
    assert not (report / "stale.html").exists()
    assert not (report.parent / ".report.new").exists()


def test_missing_cell_shows_as_a_gap(copied):
    config, layout = copied
    shutil.rmtree(layout.root / "cells" / "Voting-SP-0.1M-Math")
    table = layout.tables / "cells.csv"
    lost = "Voting,SP,0.1M,Math,,0,"
    kept = [row for row in table.read_text().splitlines() if not row.startswith(lost)]
    gap = f"{lost}0,,all,all,missing,,,,0"
    table.write_text("\n".join([*kept, gap]) + "\n")
    folder = build_report(config).parent
    assert "Voting-SP-0.1M-Math/seed0" in (folder / "index.html").read_text()
    assert "without results here, shown as gaps: 1" in (folder / "index.html").read_text()
    assert "not run: no results of this cell" in (folder / "cells.html").read_text()
    assert "has not been run" in (folder / "cells/Voting-SP-0.1M-Math.seed0.html").read_text()
    assert "Voting-SP-0.1M-Math" not in (folder / "trajectories.html").read_text()


def test_an_untrained_cell_has_dashes_where_only_training_makes_numbers(report):
    page = (report / "cells.html").read_text()
    [row] = [row for row in page.split("<tr>") if ">Voting-Base-0.1M-Math<" in row]
    assert row.count("<td>–</td>") == 3
    own = (report / "cells/Voting-Base-0.1M-Math.seed0.html").read_text()
    assert "missing</span>" not in row + own


def test_frozen_results_degrade_with_a_note(copied):
    config, layout = copied
    for path in layout.root.rglob("*.parquet"):
        path.unlink()
    shutil.rmtree(layout.root / "data")
    for path in layout.root.rglob("manifest.json"):
        path.unlink()
    folder = build_report(config.model_copy(update={"frozen": True})).parent
    assert "Frozen results" in (folder / "index.html").read_text()
    assert "machine and sandbox are unknown" in (folder / "index.html").read_text()
    cell = (folder / "cells/Voting-IP-0.1M-Math.seed0.html").read_text()
    assert "Step-by-step training metrics are not in this results folder" in cell
    assert "No trajectories of this cell" in cell and "Gradient norm by role" in cell
    assert [path.name for path in (folder / "data").iterdir()] == ["catalogue.js"]


def test_claims_are_shown_with_their_verdicts_and_advice(report):
    page = (report / "claims.html").read_text()
    assert page.count('class="claim"') > 20
    assert "not decidable here" in page and "Choosing a policy" in page


def test_without_the_tidy_table_the_error_says_how_to_make_it(tmp_path):
    config = configs.config(tmp_path)
    with pytest.raises(DataError, match=r"cells\.csv: no such file; `snakemake --cores 1 "):
        build_report(config)
    assert list(tmp_path.iterdir()) == []
