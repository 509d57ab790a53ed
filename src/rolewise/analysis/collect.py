"""All cells in one tidy table, `tables/cells.csv`: what every table, figure and claim starts from."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import multiprocessing
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd

from rolewise.analysis import detectors, measures
from rolewise.analysis.outcomes import (
    MEASURED,
    SPLITS,
    Outcomes,
    interval_of,
    outcomes,
    require_same_problems,
)
from rolewise.analysis.signatures import Checkpoint, signatures
from rolewise.analysis.sources import read_json, read_table
from rolewise.analysis.statistics import (
    Interval,
    bootstrap_means,
    mean_interval,
    paired_interval,
    paired_p,
    pass_at_k,
)
from rolewise.config import Config, for_cell
from rolewise.errors import DataError
from rolewise.grid import (
    ISOLATED,
    SHARED,
    SINGLE,
    SINGLE_AGENT,
    Cell,
    base_cells,
    base_of,
    seeds_of,
    trained_cells,
    transfers,
)
from rolewise.records import CELLS, METRICS, write_csv
from rolewise.runs.layout import Layout, layout
from rolewise.workflows.base import topology

POINTS = 60
TRANSFER = "transfer"
Row = dict[str, object]


def write_cells(config: Config, allow_missing: bool = False, processes: int = 1) -> Path:
    """Write `collect` to `tables/cells.csv` and return its path."""
    path = layout(config).tables / "cells.csv"
    write_csv(path, collect(config, allow_missing, processes))
    return path


def collect(config: Config, allow_missing: bool = False, processes: int = 1) -> pd.DataFrame:
    """Rows of `records.CELLS` of every cell and seed, base cells first, in the order of the grid.

    A cell without results is a DataError that names all such cells; with `allow_missing` it is one
    row with metric `missing` and no value. Cells are shared out among `processes`.
    """
    places = layout(config)
    cells = [
        (c, s) for c in base_cells(config) + trained_cells(config) for s in seeds_of(config, c)
    ]
    gaps = [key for key in cells if not _finished(places, *key)]
    if gaps and not allow_missing:
        names = ", ".join(f"{cell}/seed{seed}" for cell, seed in gaps[:5])
        names += ", ..." if len(gaps) > 5 else ""
        raise DataError(
            f"{len(gaps)} of {len(cells)} cells have no results ({names}); run "
            "`snakemake --cores all`, or ask for --allow-missing to see the gaps"
        )
    # Every share takes its turn, because trained cells take longer and come last.
    shares = [cells[first::processes] for first in range(min(processes, len(cells)))]
    if len(shares) > 1:
        # Spawned, because a fork of a process with Arrow's threads may hang.
        with ProcessPoolExecutor(len(shares), multiprocessing.get_context("spawn")) as pool:
            found = list(pool.map(_rows_of, itertools.repeat(config), shares))
    else:
        found = [_rows_of(config, share) for share in shares]
    turns = itertools.chain.from_iterable(itertools.zip_longest(*found, fillvalue=[]))
    rows = list(itertools.chain.from_iterable(turns))
    rows += _Study(config, places).transfers(allow_missing)
    return pd.DataFrame(rows, columns=list(CELLS))


def _finished(places: Layout, cell: Cell, seed: int) -> bool:
    return (places.cell(cell, seed) / "summary.json").is_file()


def _rows_of(config: Config, cells: list[tuple[Cell, int]]) -> list[list[Row]]:
    """The rows of every one of `cells`."""
    study = _Study(config, layout(config))
    gap = _value("", 0, measures.MISSING, Interval(None, None, None, 0))
    return [
        list(_rows(*key, study.values(*key) if _finished(study.places, *key) else [gap]))
        for key in cells
    ]


class _Study:
    """The cells' files; what several cells are compared with is read once."""

    def __init__(self, config: Config, places: Layout):
        self.config = config
        self.places = places
        self.outcomes = functools.cache(self._outcomes)
        self.summary = functools.cache(self._summary)
        self.base_checkpoint = functools.cache(self._base_checkpoint)

    def _outcomes(self, cell: Cell, seed: int) -> Outcomes:
        return outcomes(read_table(self.places.cell(cell, seed) / "evaluations.parquet"))

    def _summary(self, cell: Cell, seed: int) -> dict:
        return read_json(self.places.cell(cell, seed) / "summary.json")

    def _base_checkpoint(self, cell: Cell, seed: int) -> Checkpoint:
        calls = read_table(self.places.cell(cell, seed) / "trajectories.parquet")
        return Checkpoint.of(calls, self.config.signatures)

    def values(self, cell: Cell, seed: int) -> Iterator[Row]:
        summary = self.summary(cell, seed)
        names = _names(summary["steps"])
        yield from _evaluated(self.outcomes(cell, seed), names, self.config.signatures.bootstrap)
        evaluations = read_table(self.places.cell(cell, seed) / "evaluations.parquet")
        yield from _episode_means(evaluations, names)
        yield from _passed(evaluations, names, self.config.signatures.bootstrap)
        if cell.trained:
            yield from self._compared(cell, seed, summary)
            yield from _detected(summary)
            metrics = read_table(self.places.cell(cell, seed) / "metrics.parquet")
            yield from _training(metrics)
        yield from self._signatures(cell, seed)
        yield from self._swapped(cell, seed)

    def _swapped(self, cell: Cell, seed: int) -> Iterator[Row]:
        """Accuracy with only a role trained, and with all but it, where roles were swapped."""
        path = self.places.cell(cell, seed) / "swaps.parquet"
        if not path.is_file():
            return
        frame = read_table(path)
        roles = topology(for_cell(self.config, cell), cell.workflow).roles
        for role in roles:
            others = "+".join(r for r in roles if r != role)
            for metric, mixture in (("accuracy_only", role), ("accuracy_without", others)):
                found = outcomes(frame[frame["trained"] == mixture].drop(columns="trained"))
                (step,) = found.steps
                for split in SPLITS:
                    share = interval_of(
                        found, "accuracy", step, split, self.config.signatures.bootstrap
                    )
                    yield _value("best", step, metric, share, split, role=role)

    def _compared(self, cell: Cell, seed: int, summary: dict) -> Iterator[Row]:
        single = Cell(SINGLE, SINGLE_AGENT, cell.scale, cell.task)
        twin = dataclasses.replace(cell, policy=SHARED)
        plain = dataclasses.replace(cell, variant="")
        base = base_of(self.config, cell)
        others = [("gain_base", base)]
        if cell.policy != SINGLE_AGENT:
            others.append(("gain_sa", single))
        if cell.policy == ISOLATED:
            others.append(("ip_minus_sp", twin))
        if cell.variant:
            others.append(("minus_plain", plain))
        own = self.outcomes(cell, seed)
        for metric, other in others:
            if not _finished(self.places, other, seed):
                continue
            theirs, steps = self.outcomes(other, seed), self.summary(other, seed)["steps"]
            require_same_problems(own, theirs)
            for name, step in summary["steps"].items():
                for split in SPLITS:
                    a = own.of("accuracy", step, split)
                    b = theirs.of("accuracy", steps.get(name, 0), split)
                    found = paired_interval(a, b, self.config.signatures.bootstrap)
                    yield _value(name, step, metric, found, split)
                    if metric in ("gain_base", "gain_sa", "ip_minus_sp"):
                        p = Interval(paired_p(a, b), None, None, len(a))
                        yield _value(name, step, f"{metric}_p", p, split)

    def _signatures(self, cell: Cell, seed: int) -> Iterator[Row]:
        own = for_cell(self.config, cell)
        base = base_of(self.config, cell) if cell.trained else cell
        if not _finished(self.places, base, seed):
            return
        calls = read_table(self.places.cell(cell, seed) / "trajectories.parquet")
        shape = topology(own, cell.workflow)
        for (step, name), rows in calls.groupby(["step", "checkpoint"], sort=True):
            then = self.base_checkpoint(base, seed)
            now = Checkpoint.of(rows, own.signatures) if cell.trained else then
            for found in signatures(now, then, shape, own.signatures, own.workflow.workers):
                yield _value(name, step, found.metric, found.interval, role=found.role)
                if cell.trained and found.metric.startswith("capture_by_"):
                    verdict = float(detectors.captured(found.interval))
                    metric = found.metric.replace("capture_", "captured_")
                    n = found.interval.n
                    yield _value(
                        name, step, metric, Interval(verdict, None, None, n), role=found.role
                    )

    def transfers(self, allow_missing: bool) -> Iterator[Row]:
        """Generator-only transfer as policy SA, variant `transfer`."""
        for workflow, scale, task, seed in transfers(self.config):
            cell = Cell(workflow, SINGLE_AGENT, scale, task, TRANSFER)
            path = self.places.transfer(workflow, scale, task, seed) / "evaluations.parquet"
            if allow_missing and not path.is_file():
                gap = Interval(None, None, None, 0)
                yield from _rows(cell, seed, [_value("", 0, measures.MISSING, gap)])
                continue
            found = outcomes(read_table(path))
            names = dict.fromkeys(found.steps, "best")
            resamples = self.config.signatures.bootstrap
            yield from _rows(cell, seed, _evaluated(found, names, resamples))


def _rows(cell: Cell, seed: int, values: Iterable[Row]) -> Iterator[Row]:
    named = {**dataclasses.asdict(cell), "seed": seed}
    for value in values:
        yield named | value


def _value(
    checkpoint: str,
    step: int,
    metric: str,
    found: Interval,
    split: str = "all",
    *,
    role: str = "all",
) -> Row:
    return {
        "step": int(step),
        "checkpoint": checkpoint,
        "role": role,
        "split": split,
        "metric": metric,
        "value": found.value,
        "lo": found.lo,
        "hi": found.hi,
        "n": found.n,
    }


def _names(steps: dict[str, int]) -> dict[int, str]:
    names: dict[int, list[str]] = {}
    for name, step in steps.items():
        names.setdefault(step, []).append(name)
    return {step: "+".join(found) for step, found in names.items()}


def _evaluated(found: Outcomes, names: dict[int, str], resamples: int) -> Iterator[Row]:
    for split in SPLITS:
        inside = np.ones(len(found.problems), bool) if split == "all" else found.splits == split
        values_PK = np.vstack([found.values[measure][:, inside] for measure in MEASURED]).T
        ends = np.column_stack(bootstrap_means(values_PK, resamples))
        for i, measure in enumerate(MEASURED):
            for j, step in enumerate(found.steps):
                mean, lo, hi = map(float, ends[i * len(found.steps) + j])
                interval = Interval(mean, lo, hi, int(inside.sum()))
                yield _value(names.get(step, ""), step, measure, interval, split)


def _episode_means(evaluations: pd.DataFrame, names: dict[int, str]) -> Iterator[Row]:
    for step, rows in evaluations.groupby("step", sort=True):
        calls = rows["calls"].sum()
        for metric, value in (
            ("episode_tokens", rows["tokens"].mean()),
            ("episode_truncated", rows["truncated"].sum() / calls),
            ("episode_fallback", rows["fallbacks"].sum() / calls),
            ("abnormal", rows["abnormal"].astype(float).mean()),
        ):
            interval = Interval(float(value), None, None, rows["problem"].nunique())
            yield _value(names.get(step, ""), step, metric, interval)


def _passed(evaluations: pd.DataFrame, names: dict[int, str], resamples: int) -> Iterator[Row]:
    """pass@k for k = all samples of a problem; nothing for a single sample, where it is accuracy."""
    for step, rows in evaluations.groupby("step", sort=True):
        for split in SPLITS:
            inside = rows if split == "all" else rows[rows["split"] == split]
            solved = inside.groupby("problem")["correct"].agg(["sum", "size"])
            k = int(solved["size"].min()) if len(solved) else 0
            if k > 1:
                values = pass_at_k(solved["sum"].to_numpy(), solved["size"].to_numpy(), k)
                found = mean_interval(values, resamples)
                yield _value(names.get(step, ""), step, "pass_at_all_samples", found, split)


def _detected(summary: dict) -> Iterator[Row]:
    last = summary["steps"]["terminal"]
    cliff = summary["cliff"]
    fall = Interval(cliff["value"], cliff["lo"], cliff["hi"], cliff["n"])
    yield _value("terminal", last, "cliff_drop", fall, "report")
    verdict = Interval(float(cliff["verdict"]), None, None, cliff["n"])
    yield _value("terminal", last, "cliff", verdict, "report")
    n = summary["accuracy"]["best"]["all"]["n"]
    flat = summary["plateau"] or {"step": None, "level": None}
    for metric, value in (("plateau_step", flat["step"]), ("plateau_level", flat["level"])):
        yield _value("", flat["step"] or 0, metric, Interval(value, None, None, n))
    for name, step in summary["steps"].items():
        for split in SPLITS:
            part = Interval(**summary["format_part"][name][split])
            yield _value(name, step, "format_part", part, split)
            portion = Interval(summary["format_share"][name][split], None, None, part.n)
            yield _value(name, step, "format_share", portion, split)
    for role, collapse in summary["entropy_collapse"].items():
        if collapse is not None:
            depth = Interval(collapse["depth"], None, None, 1)
            yield _value("", collapse["step"], "entropy_collapse_depth", depth, "train", role=role)
    for metric in measures.COSTS:
        found = Interval(summary["cost"][metric], None, None, 1)
        yield _value("terminal", last, metric, found, "train")


def _training(metrics: pd.DataFrame) -> Iterator[Row]:
    for role, rows in metrics.groupby("role", sort=False):
        # Studies of an earlier version lack the metrics that came later.
        logs = rows.sort_values("step").set_index("step").reindex(columns=list(METRICS))
        for metric in measures.CURVES_ALL if role == "all" else measures.CURVES_ROLE:
            yield from _curve(str(role), metric, logs[metric].astype(float).dropna())
        for metric in measures.EXTREMES:
            logged = logs[metric].astype(float).dropna()
            if logged.empty:
                continue
            for suffix, step in (
                ("first", logged.index[0]),
                ("max", logged.idxmax()),
                ("min", logged.idxmin()),
                ("last", logged.index[-1]),
            ):
                found = Interval(float(logged[step]), None, None, 1)
                yield _value("", step, f"{metric}_{suffix}", found, "train", role=str(role))


def _curve(role: str, metric: str, logged: pd.Series) -> Iterator[Row]:
    """At most `POINTS` values: windows of equal length by their mean, of maxima by their maximum."""
    width = -(-len(logged) // POINTS)
    if not width:
        return
    windows = np.arange(len(logged)) // width
    grouped = logged.groupby(windows)
    values = grouped.max() if metric.endswith(("_max", "grad_norm")) else grouped.mean()
    ends = pd.Series(logged.index).groupby(windows).last()
    for step, value in zip(ends, values, strict=True):
        yield _value(
            "", step, metric, Interval(float(value), None, None, width), "train", role=role
        )
