"""What tables and figures say, recomputed from the files of the runs."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from rolewise.grid import Cell
from rolewise.paper import (
    figure_2,
    figure_3,
    figure_4,
    figure_5,
    figure_6,
    figure_7,
    table_1,
    table_2,
    table_3,
    table_4,
    table_7,
    table_8,
)
from rolewise.paper.style import styled
from rolewise.runs.layout import layout

LEVELS = {"base": "Base", "sa": "SA", "sp": "SP", "ip": "IP"}


def evaluations(study, cell):
    return pd.read_parquet(layout(study.config).cell(cell, 0) / "evaluations.parquet")


def accuracies(study, cell, split):
    """Step -> problem -> share of samples that solve it, by plain loops."""
    found = {}
    for row in evaluations(study, cell).itertuples():
        if row.split == split:
            found.setdefault(row.step, {}).setdefault(row.problem, []).append(float(row.correct))
    return {step: {p: sum(x) / len(x) for p, x in of.items()} for step, of in found.items()}


def mean(values):
    return math.fsum(values) / len(values)


def best_step(study, cell):
    curve = {s: mean(of.values()) for s, of in accuracies(study, cell, "select").items() if s > 0}
    return min(curve, key=lambda step: (-curve[step], step))


def test_table_1_agrees_with_the_evaluations(study):
    table = table_1.data(study).set_index("workflow")
    for workflow, (level, policy) in itertools.product(study.config.grid.workflows, LEVELS.items()):
        cell = Cell("Single" if policy == "SA" else workflow, policy, "0.3M", "Math")
        step = 0 if policy == "Base" else best_step(study, cell)
        report = accuracies(study, cell, "report")[step]
        assert table.loc[workflow, level] == pytest.approx(mean(report.values()), abs=1e-12)
        assert table.loc[workflow, "n"] == len(report)
        if policy != "Base":
            last = accuracies(study, cell, "report")[study.config.training.steps]
            assert table.loc[workflow, f"{level}_terminal"] == pytest.approx(mean(last.values()))


def test_differences_of_table_1_are_paired(study):
    table = table_1.data(study).set_index("workflow")
    for name, (_, policy, _) in table_1.DIFFERENCES.items():
        workflow = "Single" if policy == "SA" else "Voting"
        first, second = name.split("_minus_")
        expected = table.loc[workflow, first] - table.loc[workflow, second]
        assert table.loc[workflow, name] == pytest.approx(expected)
        assert table.loc[workflow, f"{name}_lo"] <= table.loc[workflow, name]


def test_corrected_p_values_are_not_below_the_raw_ones(study):
    table = table_1.data(study)
    raw = study.rows("ip_minus_sp_p", "report")
    raw = raw[raw.checkpoint.str.contains("best")].value
    adjusted = table.ip_minus_sp_p.dropna()
    assert len(adjusted) == len(raw) == 3
    assert adjusted.min() >= raw.min() and adjusted.max() <= 1


def test_table_2_agrees_with_the_metrics(study):
    table = table_2.data(study).set_index(["cell", "role"])
    cell = Cell("Voting", "IP", "0.3M", "Math")
    metrics = pd.read_parquet(layout(study.config).cell(cell, 0) / "metrics.parquet")
    rows = metrics[metrics.role == "generator"].sort_values("step")
    found = table.loc[(cell.name, "generator")]
    assert found.perplexity_first == rows.perplexity.iloc[0]
    assert found.perplexity_extreme == rows.perplexity.max()
    assert found.entropy_extreme == rows.entropy.min()
    assert found.grad_norm_terminal == rows.grad_norm.iloc[-1]


def test_table_3_reads_the_transfer_evaluations(study):
    table = table_3.data(study).set_index("workflow")
    folder = layout(study.config).transfer("Voting", "0.3M", "Math", 0)
    rows = pd.read_parquet(folder / "evaluations.parquet")
    assert table.loc["Voting", "value"] == pytest.approx(
        rows[rows.split == "report"].correct.mean()
    )
    assert table.loc["SA-RL", "value"] == pytest.approx(table_1.data(study).sa.iloc[0])


def test_table_4_names_the_papers_cells_and_their_stand_ins(study):
    table = table_4.data(study)
    assert list(table.paper_cell.unique()) == study.config.paper.amplification_cells
    assert set(table.cell) == {"Voting-IP-0.3M-Math", "Orch-Workers-IP-0.3M-Math"}
    accuracy = table[(table.metric == "accuracy") & (table.cell == "Voting-IP-0.3M-Math")].iloc[0]
    rows = evaluations(study, Cell("Voting", "IP", "0.3M", "Math"))
    assert accuracy.terminal == pytest.approx(rows[rows.step == rows.step.max()].correct.mean())
    shown = table_4.display(table)
    assert "any slot right (%)" in set(shown.signature)


def test_table_7_has_every_cell_and_hides_what_they_share(study):
    table = table_7.data(study)
    assert len(table) == 3 * 2 + 1
    assert "learning rate" in table and "learning rate" not in table_7.display(table)
    assert "learning rate 2e-05" in table_7.caption(study, table)
    assert table.set_index("cell").adapters["Orch-Workers-IP-0.3M-Math"] == 3
    assert table.set_index("cell").adapters["Orch-Workers-SP-0.3M-Math"] == 1


def test_table_8_divides_the_gain_by_what_it_cost(study):
    table = table_8.data(study).set_index("cell")
    row = table.loc["Voting-IP-0.3M-Math"]
    assert row.per_hour == pytest.approx(100 * row.gain / (row.cpu_s / 3600))
    assert row.per_million == pytest.approx(100 * row.gain / (row.tokens_trained / 1e6))
    cells = table.drop(index=[table_8.TOTAL, table_8.RATIO])
    assert table.loc[table_8.TOTAL, "cpu_s"] == pytest.approx(cells.cpu_s.sum())
    assert table.loc[table_8.RATIO, "tokens_sampled"] == pytest.approx(1)


def drawn_points(figure):
    """Coordinates of every scatter point and marked line of a figure."""
    points = []
    for axes in figure.axes:
        for collection in axes.collections:
            points += [tuple(map(float, xy)) for xy in collection.get_offsets()]
        for line in axes.lines:
            points += [tuple(map(float, xy)) for xy in line.get_xydata()]
    return points


def near(points, x, y):
    return any(math.isclose(x, a) and math.isclose(y, b) for a, b in points)


@pytest.mark.parametrize("module", [figure_3, figure_5])
def test_matched_cells_are_drawn_where_the_csv_says(study, module):
    data = module.data(study)
    with styled():
        points = drawn_points(module.draw(data, study))
    assert len(data) and all(near(points, row.sp, row.ip) for row in data.itertuples())


def test_changes_are_drawn_where_the_csv_says(study):
    data = figure_2.data(study)
    with styled():
        heights = [y for _, y in drawn_points(figure_2.draw(data, study))]
    assert all(any(math.isclose(value, y) for y in heights) for value in data.value)


@pytest.mark.parametrize("module", [figure_4, figure_6, figure_7])
def test_curves_are_drawn_where_the_csv_says(study, module):
    data = module.data(study)
    with styled():
        points = drawn_points(module.draw(data, study))
    curves = data[data.step > 0]
    assert len(curves) and all(near(points, row.step, row.value) for row in curves.itertuples())


def test_the_cliff_cell_is_the_one_shown(study):
    assert "Voting-IP-0.3M-Math" in set(figure_6.data(study).cell)


def test_the_fall_in_the_title_is_that_of_the_curve(study):
    data = figure_6.data(study)
    cell = Cell("Voting", "IP", "0.3M", "Math")
    rows = data[(data.cell == cell.name) & (data.panel == figure_6.ACCURACY)]
    curve = rows.set_index("step").value
    drop = study.one(cell, "cliff_drop", "terminal")
    assert curve[best_step(study, cell)] - curve.iloc[-1] == pytest.approx(100 * drop.value)
    assert f"n = {drop.n:.0f}" in figure_6._verdict(study, cell, True)


def test_the_caption_of_figure_6_promises_no_cliff_and_explains_negative_chi2(study):
    caption = figure_6.caption(study, figure_6.data(study))
    assert "cliff" not in figure_6.TITLE and "the estimate can be negative" in caption


@pytest.mark.parametrize("module", [figure_6, figure_7])
def test_legends_of_roles_lie_on_no_curve(study, module):
    with styled():
        figure = module.draw(module.data(study), study)
        figure.draw_without_rendering()
    legends = [(axes, axes.get_legend()) for axes in figure.axes if axes.get_legend()]
    assert legends
    for axes, legend in legends:
        box = legend.get_window_extent()
        assert box.y0 >= axes.bbox.y1 and box.y1 <= axes.title.get_window_extent().y0


def test_both_dotted_lines_of_figure_7_are_named(study):
    with styled():
        figure = figure_7.draw(figure_7.data(study), study)
    [words] = [text.get_text() for text in figure.legends[0].texts if "above" in text.get_text()]
    assert "equal shares" in words and "orthogonal slots" in words


def test_policies_stand_in_figure_2_as_in_its_legend(study):
    with styled():
        figure = figure_2.draw(figure_2.data(study), study)
    named = [text.get_text() for text in figure.legends[0].texts]
    assert sorted(figure_2.OFFSET, key=figure_2.OFFSET.get) == [n for n in named if n != "SA-RL"]


def test_no_accuracy_axis_of_figure_3_goes_above_100(study):
    data = figure_3.data(study).assign(ip=99.0, sp=98.0, ip_hi=100.0, sp_hi=100.0)
    with styled():
        [axes] = figure_3.draw(data, study).axes
    assert axes.get_xlim()[1] == axes.get_ylim()[1] == 100


def test_gradient_shares_are_those_of_the_shared_adapter(study):
    data = figure_7.data(study)
    shares = data[data.panel == figure_7.SHARE]
    assert set(shares.policy) == {"SP"}
    sums = shares.groupby(["workflow", "step"]).value.sum()
    assert np.allclose(sums, 1)
