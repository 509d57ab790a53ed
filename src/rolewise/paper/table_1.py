"""Table 1: validation accuracy of base model, SA-RL, SP and IP, and their differences."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from rolewise.analysis.power import power_note
from rolewise.analysis.statistics import holm, paired_p, seed_interval
from rolewise.grid import BASE, ISOLATED, SHARED, SINGLE, SINGLE_AGENT, Cell
from rolewise.paper.study import GAP, KEYS, Estimate, Study
from rolewise.paper.text import interval, number

TITLE = "Validation accuracy by task, scale and workflow"

LEVELS = {"base": BASE, "sa": SINGLE_AGENT, "sp": SHARED, "ip": ISOLATED}
HEADINGS = {"base": "base", "sa": "SA-RL", "sp": "SP", "ip": "IP"}
# Column -> (metric of the paired difference, policy of the cell that holds it, heading).
DIFFERENCES = {
    "sa_minus_base": ("gain_base", SINGLE_AGENT, "SA-RL − base"),
    "sp_minus_base": ("gain_base", SHARED, "SP − base"),
    "ip_minus_base": ("gain_base", ISOLATED, "IP − base"),
    "sp_minus_sa": ("gain_sa", SHARED, "SP − SA-RL"),
    "ip_minus_sa": ("gain_sa", ISOLATED, "IP − SA-RL"),
    "ip_minus_sp": ("ip_minus_sp", ISOLATED, "IP − SP"),
}
ALPHA = 0.05


def data(study: Study) -> pd.DataFrame:
    """A row per task, scale and workflow, accuracies as shares.

    `<level>` (of the grid's policies) with `_lo`, `_hi`: report half, trained cells at the best
    checkpoint; `<level>_select`: the half it was chosen on; `<level>_terminal`: the last checkpoint.
    `<difference>` with `_lo`, `_hi`: paired, same problems; `_p`: adjusted by Holm's method over all
    cells of the comparison.
    """
    config = study.config
    policies = [BASE, *config.grid.policies, *([SINGLE_AGENT] if config.grid.single_agent else [])]
    levels = {name: policy for name, policy in LEVELS.items() if policy in policies}
    differences = {
        name: DIFFERENCES[name] for name in DIFFERENCES if set(name.split("_minus_")) <= set(levels)
    }
    adjusted = {metric: _adjusted(study, metric) for metric, _, _ in differences.values()}
    rows = []
    for task in config.grid.tasks:
        for scale in config.grid.scales:
            for workflow in _workflows(study):
                row: dict[str, object] = {"task": task, "scale": scale, "workflow": workflow}
                for level, policy in levels.items():
                    row |= _level(study, level, _cell(workflow, policy, scale, task))
                for name, (metric, policy, _) in differences.items():
                    cell = _cell(workflow, policy, scale, task)
                    own = workflow == SINGLE or policy != SINGLE_AGENT
                    found = study.one(cell, metric, "best") if own else GAP
                    row |= _estimate(name, found)
                    row[f"{name}_p"] = adjusted[metric].get(cell, math.nan) if own else math.nan
                base = study.one(_cell(workflow, BASE, scale, task), "accuracy", "base")
                row |= {"n": base.n, "seeds": base.seeds}
                rows.append(row)
    return pd.DataFrame(rows)


def _workflows(study: Study) -> list[str]:
    return [*([SINGLE] if study.config.grid.single_agent else []), *study.config.grid.workflows]


def _cell(workflow: str, policy: str, scale: str, task: str) -> Cell:
    return Cell(SINGLE if policy == SINGLE_AGENT else workflow, policy, scale, task)


def _level(study: Study, level: str, cell: Cell) -> dict[str, object]:
    if cell.policy == BASE:
        return _estimate(level, study.one(cell, "accuracy", "base"))
    return {
        **_estimate(level, study.one(cell, "accuracy", "best")),
        f"{level}_select": study.one(cell, "accuracy", "best", "select").value,
        f"{level}_terminal": study.one(cell, "accuracy", "terminal").value,
    }


def _estimate(name: str, found: Estimate) -> dict[str, object]:
    return {name: found.value, f"{name}_lo": found.lo, f"{name}_hi": found.hi}


def _adjusted(study: Study, metric: str) -> dict[Cell, float]:
    """Holm-adjusted p-value of every study cell's difference at the best checkpoint, report half.

    One seed: the paired test over problems; three or more: the t test over seeds' differences.
    """
    single = len(study.config.seeds) == 1
    rows = study.rows(f"{metric}_p" if single else metric, "report")
    best = rows.checkpoint.str.split("+").map(lambda names: "best" in names).astype(bool)
    found = {}
    for key, group in rows[best & (rows.variant == "")].groupby(KEYS, sort=False):
        values = group.value.dropna().to_numpy()
        if single and len(values):
            found[Cell(*key)] = float(values[0])
        elif seed_interval(values):
            found[Cell(*key)] = paired_p(values, np.zeros(len(values)))
    return dict(zip(found, holm(np.array(list(found.values()))), strict=True)) if found else {}


def display(data: pd.DataFrame) -> pd.DataFrame:
    """Levels in percent, differences in points with intervals; a star marks differences that survive the correction."""
    rows = []
    for row in data.to_dict("records"):
        shown = {key: row[key] for key in ("task", "scale", "workflow")}
        shown |= {HEADINGS[name]: number(100 * row[name]) for name in HEADINGS if name in row}
        for name, (_, _, heading) in DIFFERENCES.items():
            if name not in row:
                continue
            p = row[f"{name}_p"]
            star = "*" if p < ALPHA else ""
            shown[heading] = _points(row, name) + star
        rows.append(shown)
    return pd.DataFrame(rows)


def _points(row: dict, name: str) -> str:
    ends = (row[name], row[f"{name}_lo"], row[f"{name}_hi"])
    return interval(*(100 * end for end in ends), signed=True)


def caption(study: Study, data: pd.DataFrame) -> str:
    """What the columns are, how small an effect could have been seen."""
    return (
        "Accuracy in percent on the report half; trained cells at the checkpoint that is best on "
        "the select half, so that picking a peak cannot flatter. Differences in points, paired on "
        f"the same problems; SA-RL is compared with the base model of the single agent. Brackets: "
        f"{study.interval} (those of the levels are in the csv); *: p < {ALPHA} after Holm's correction over all cells of a comparison. "
        f"{_detectable(study, data)}{study.footer()}"
    )


def _detectable(study: Study, data: pd.DataFrame) -> str:
    if data.empty:
        return ""
    note = power_note(study.config, int(n)) if np.isfinite(n := data.n.min()) else ""
    return f"{note} " if note else ""
