"""What the claims are judged on: values per cell from the tidy table, and rules from numbers to verdicts. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd
from scipy import stats

from rolewise.analysis.measures import MISSING
from rolewise.analysis.statistics import (
    FEWEST_UNITS,
    Interval,
    holm,
    seed_interval,
    share_interval,
)
from rolewise.config import Config
from rolewise.grid import ISOLATED, SHARED, Cell

SUPPORTED, CONTRADICTED, UNDECIDED = "supported", "contradicted", "not decidable here"
Verdict = Literal["supported", "contradicted", "not decidable here"]
CELL = ["workflow", "policy", "scale", "task"]
MATCHED = ["workflow", "scale", "task"]
SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Claim:
    """One statement of the study held against the results.

    `statement` is the study's own sentence, whatever the preset; `judged_on` the cells of this preset
    that stood in for those it names. `statistic` says what `value`, `lo`, `hi` (95 %) and `n` are; `why`
    how they led to the verdict. `by_construction`: the preset was built so that the claim can hold.
    """

    id: str
    finding: int
    statement: str
    statistic: str
    value: float | None
    lo: float | None
    hi: float | None
    n: int
    verdict: Verdict
    why: str
    judged_on: str = ""
    by_construction: bool = False


class Evidence:
    """The study's own cells (no interventions, no transfer) of `tables/cells.csv`."""

    def __init__(self, config: Config, cells: pd.DataFrame):
        self.config = config
        self.cells = cells[cells["variant"] == ""]
        self.missing = int((self.cells["metric"] == MISSING).sum())

    @property
    def embedded(self) -> bool:
        """Whether the pipeline itself made every model of the grid."""
        return all(self.config.models[s].kind == "embedded" for s in self.config.grid.scales)

    def rows(
        self, metric: str, checkpoint: str = "", split: str = "all", *, role: str = "all"
    ) -> pd.DataFrame:
        """Rows of one metric, role and split; those of a checkpoint, if one is named."""
        cells = self.cells
        found = cells[(cells.metric == metric) & (cells.split == split) & (cells.role == role)]
        return at_checkpoint(found, checkpoint).dropna(subset=["value"])

    def per_cell(
        self, metric: str, checkpoint: str = "", split: str = "all", *, role: str = "all"
    ) -> pd.DataFrame:
        """A row per multi-agent cell: value (mean over seeds), lo, hi, n, seeds.

        Three seeds or more: a t interval over seeds. Fewer, and equal ones: the problems' intervals,
        their outer ends, since two seeds say nothing about seeds.
        """
        found = self.rows(metric, checkpoint, split, role=role)
        found = found[found["policy"].isin((ISOLATED, SHARED))]
        rows = []
        for key, group in found.groupby(CELL, sort=False):
            ends = spread_of(group["value"].to_numpy()) or Interval(
                0, group["lo"].min(), group["hi"].max(), 0
            )
            rows.append(
                dict(zip(CELL, key, strict=True))
                | {"value": group["value"].mean(), "lo": ends.lo, "hi": ends.hi}
                | {"n": int(group["n"].min()), "seeds": len(group)}
            )
        return pd.DataFrame(rows, columns=[*CELL, "value", "lo", "hi", "n", "seeds"])

    def gains(self, metric: str, checkpoint: str, split: str = "report") -> pd.DataFrame:
        """`per_cell` of a compared metric with `p`, Holm-adjusted over all cells.

        p: t test over three seeds or more, else the largest of the seeds' problem-level p-values.
        """
        found = self.per_cell(metric, checkpoint, split)
        p_rows = self.rows(f"{metric}_p", checkpoint, split)
        values = self.rows(metric, checkpoint, split)
        raw = []
        for key in found[CELL].itertuples(index=False):
            of_cell = (values[CELL] == list(key)).all(axis=1)
            seeds = values.loc[of_cell, "value"]
            if len(seeds) >= FEWEST_UNITS and np.ptp(seeds) > 0:
                raw.append(float(stats.ttest_1samp(seeds, 0).pvalue))
            else:
                raw.append(
                    float(p_rows.loc[(p_rows[CELL] == list(key)).all(axis=1), "value"].max())
                )
        return found.assign(p=holm(np.asarray(raw)))

    def of_paper_cell(self, name: str) -> Cell | None:
        """The cell of this preset that stands for the paper's cell `name`; None if it has none."""
        grid = self.config.grid
        for scale in grid.scales:
            for workflow in grid.workflows:
                for policy in grid.policies:
                    for task in grid.tasks:
                        stands_for = self.config.paper.scale_of[scale]
                        if Cell(workflow, policy, stands_for, task).name == name:
                            return Cell(workflow, policy, scale, task)
        return None

    def judged_on(self, cells: Sequence[Cell]) -> str:
        """The names of cells and, where it is another one, the paper's scale that theirs stands for."""
        names = ", ".join(cell.name for cell in cells)
        stands_for = self.config.paper.scale_of
        scales = dict.fromkeys(c.scale for c in cells if stands_for[c.scale] != c.scale)
        notes = ", ".join(f"{scale} stands for {stands_for[scale]}" for scale in scales)
        return f"{names} ({notes})" if notes else names

    def over_runs(self, verdict: Verdict, *cells: Cell) -> tuple[Verdict, str]:
        """The verdict on a statement about single cells, and why it is none below three runs of each.

        Its unit is the seed: the interval over problems of one run says nothing about the next run.
        """
        runs = [self.cells[is_cell(self.cells, cell)].seed.nunique() for cell in cells]
        if min(runs, default=0) >= FEWEST_UNITS:
            return verdict, ""
        alone = {SUPPORTED: "speaks for the statement", CONTRADICTED: "speaks against it"}
        said = alone.get(verdict, "does not decide it either")
        return UNDECIDED, (
            f" A cell is judged over {FEWEST_UNITS} seeds or more, and fewer ran; what ran, with its"
            f" interval over problems, {said}."
        )

    def value(
        self, cell: Cell, metric: str, checkpoint: str = "", split: str = "all", role: str = "all"
    ) -> Interval:
        """One value of one cell (mean over seeds, ends as in `per_cell`); empty if not measured."""
        found = self.rows(metric, checkpoint, split, role=role)
        found = found[is_cell(found, cell)]
        if found.empty:
            return Interval(None, None, None, 0)
        over_seeds = spread_of(found["value"].to_numpy())
        if over_seeds is not None:
            return replace(over_seeds, n=int(found["n"].min()))
        lo, hi = found["lo"].min(), found["hi"].max()
        return Interval(
            float(found["value"].mean()),
            None if np.isnan(lo) else float(lo),
            None if np.isnan(hi) else float(hi),
            int(found["n"].min()),
        )

    def pairs(self, metric: str, split: str = "train", role: str = "all") -> pd.DataFrame:
        """A row per matched pair, columns ip and sp: the metric's value, seeds averaged."""
        found = self.per_cell(metric, split=split, role=role)
        wide = found.pivot(index=MATCHED, columns="policy", values="value")
        wide = wide.reindex(columns=[ISOLATED, SHARED]).dropna()
        return wide.set_axis(["ip", "sp"], axis=1)

    @property
    def limits(self) -> str:
        """What the number of seeds and gaps forbid to conclude."""
        seeds = len(self.config.seeds)
        text = (
            f"{seeds} seeds per cell."
            if seeds >= FEWEST_UNITS
            else f"{seeds} seed{'s' if seeds > 1 else ''} per cell: nothing is said about other seeds."
        )
        gaps = "1 cell is" if self.missing == 1 else f"{self.missing} cells are"
        return text + (f" {gaps} missing." if self.missing else "")


def at_checkpoint(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    """Rows of the checkpoint called `name`, also where one step is several; all of them without one."""
    inside = [not name or name in names.split("+") for names in rows["checkpoint"]]
    return rows[np.array(inside, dtype=bool)]


def is_cell(rows: pd.DataFrame, cell: Cell) -> pd.Series:
    """Which of `rows` are of `cell`, seeds and all."""
    return (rows[CELL] == [cell.workflow, cell.policy, cell.scale, cell.task]).all(axis=1)


def no_data(claim_id: str, finding: int, statement: str, what: str) -> Claim:
    """The claim without any evidence."""
    why = f"No data: {what}."
    return Claim(claim_id, finding, statement, "none", None, None, None, 0, UNDECIDED, why)


def judge_share(wins: int, losses: int, n: int, than: float = 0.5) -> tuple[Interval, Verdict]:
    """Whether most of `n` units are wins: the share of wins, and a verdict on its Wilson interval.

    supported: the lower end lies above `than`. contradicted: even with every unclear unit as a win
    the upper end lies below it.
    """
    share = share_interval(wins, n)
    if n == 0 or share.lo is None:
        return share, UNDECIDED
    if share.lo > than:
        return share, SUPPORTED
    best_case = share_interval(n - losses, n)
    return share, CONTRADICTED if best_case.hi < than else UNDECIDED


def judge_reach(found: Interval, threshold: float) -> Verdict:
    """supported: at least `threshold` and the interval excludes 0; contradicted: all of it lies below."""
    if found.value is None or found.hi is None:
        return UNDECIDED
    if found.reaches(threshold):
        return SUPPORTED
    return CONTRADICTED if found.hi < threshold else UNDECIDED


def judge_ends(lo: float | None, hi: float | None) -> Verdict:
    """supported if the interval lies above 0, contradicted if below, else (or without one) not decidable."""
    if lo is None or hi is None or lo <= 0 <= hi:
        return UNDECIDED
    return SUPPORTED if lo > 0 else CONTRADICTED


def judge_means(samples: list[np.ndarray]) -> list[Verdict]:
    """For each sample of units whether its mean is above 0 (supported) or below (contradicted).

    t tests with Holm's correction over the samples; fewer than three units decide nothing.
    """
    decidable = [i for i, x in enumerate(samples) if len(x) >= FEWEST_UNITS and np.ptp(x) > 0]
    adjusted = holm(np.array([stats.ttest_1samp(samples[i], 0).pvalue for i in decidable]))
    verdicts: list[Verdict] = [UNDECIDED] * len(samples)
    for i, p in zip(decidable, adjusted, strict=True):
        if p < SIGNIFICANT:
            verdicts[i] = SUPPORTED if samples[i].mean() > 0 else CONTRADICTED
    return verdicts


def ends_of(values: np.ndarray) -> tuple[float, float | None, float | None]:
    """Mean of `values` and the ends of its t interval over them.

    None below three values, and for equal ones: they show no spread to judge by.
    """
    found = spread_of(values) if len(values) else None
    return float(np.mean(values)), found and found.lo, found and found.hi


def spread_of(values: np.ndarray) -> Interval | None:
    """The t interval over units; None below three, and for equal ones, which show no spread."""
    return seed_interval(values) if np.ptp(values) > 0 else None


def spearman(x: np.ndarray, y: np.ndarray) -> Interval:
    """Rank correlation with its Fisher interval (Bonett and Wright's variance); n below 5: no interval."""
    n = len(x)
    if n < FEWEST_UNITS or np.ptp(x) == 0 or np.ptp(y) == 0:
        return Interval(None, None, None, n)
    r = float(stats.spearmanr(x, y).statistic)
    if n < 5 or abs(r) >= 1:
        return Interval(r, None, None, n)
    reach = stats.norm.ppf(0.975) * np.sqrt((1 + r**2 / 2) / (n - 3))
    lo, hi = np.tanh(np.arctanh(r) + np.array([-reach, reach]))
    return Interval(r, float(lo), float(hi), n)
