"""Which study Table 9 and Figure 8 are made from."""

import pandas as pd
import pytest

from rolewise.paper import build
from rolewise.paper.study import Study
from rolewise.records import CELLS, write_csv
from rolewise.runs import reference
from tests.configs import config

VARIANT = {"name": "votes-1", "set": {"workflow.votes": 1}}


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    own = config(tmp_path / "mechanism", settings={"grid.variants": [VARIANT], "preset": "effects"})
    write_csv(tmp_path / "mechanism/tables/cells.csv", pd.DataFrame(columns=list(CELLS)))
    reference.pack(own, tmp_path / "shipped", tables_only=True)
    monkeypatch.setattr(build, "MECHANISM", tmp_path / "shipped")


def study(tmp_path, variants=()):
    own = config(tmp_path, settings={"grid.variants": list(variants)})
    return Study(own, pd.DataFrame(columns=list(CELLS)))


def test_a_study_without_interventions_shows_the_shipped_ones_and_says_so(tmp_path, shipped):
    own = study(tmp_path)
    source = build.source_of(own, "table", 9)
    assert source.config.preset == "effects"
    assert build._labelled("Caption.", own, source).startswith("Shipped reference results")
    assert build.source_of(own, "table", 1) is own


def test_a_study_with_interventions_shows_its_own(tmp_path, shipped):
    own = study(tmp_path, [VARIANT])
    assert build.source_of(own, "figure", 8) is own
    assert build._labelled("Caption.", own, own) == "Caption."


def test_without_shipped_results_the_study_speaks_for_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "MECHANISM", tmp_path / "nowhere")
    own = study(tmp_path)
    assert build.source_of(own, "figure", 8) is own
