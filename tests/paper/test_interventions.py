"""Which study Table 9 and Figure 8 are made from."""

from types import SimpleNamespace

import pandas as pd
import pytest

from rolewise.grid import Cell
from rolewise.paper import build, effects, figure_8
from rolewise.paper.study import Study
from rolewise.paper.style import styled
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
    with styled():
        figure = figure_8.draw(figure_8.data(source), source)
    assert "Shipped reference results, preset effects" in figure.get_supxlabel()
    assert "Shipped" not in own.footer()


def test_a_study_with_interventions_shows_its_own(tmp_path, shipped):
    own = study(tmp_path, [VARIANT])
    assert build.source_of(own, "figure", 8) is own
    assert build._labelled("Caption.", own, own) == "Caption."


def test_without_shipped_results_the_study_speaks_for_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "MECHANISM", tmp_path / "nowhere")
    own = study(tmp_path)
    assert build.source_of(own, "figure", 8) is own


def test_a_capture_that_only_the_intervention_brings_about_is_seen():
    plain, changed = (Cell("Voting", "SP", "0.3M", "Math", name) for name in ("", "votes-1"))
    scores = {
        (plain, "capture_by_generator", "aggregator"): 0.1,
        (changed, "capture_by_aggregator", "generator"): 0.7,
    }

    def one(cell, metric, _checkpoint, _split, role):
        return SimpleNamespace(value=scores.get((cell, metric, role), float("nan")))

    found = SimpleNamespace(config=config(), one=one)
    assert effects._most_captured(found, plain, changed) == ("generator", "capture_by_aggregator")
    assert effects._most_captured(found, plain) == ("aggregator", "capture_by_generator")
