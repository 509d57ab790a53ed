"""What each page of the report shows: contexts for the templates."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import pandas as pd

from rolewise.analysis.evidence import CONTRADICTED, SUPPORTED, UNDECIDED
from rolewise.report.charts import spark_points
from rolewise.report.curves import cell_charts
from rolewise.report.study import Run, Study
from rolewise.workflows.base import topology

CHECKPOINTS = ("early", "best", "terminal")
ROLE_MEASURES = {
    "role_accuracy": "own outputs that are right",
    "parse_fallback": "outputs that could not be parsed",
    "length_q50": "median completion, tokens",
    "terse": "terse picks or verdicts",
    "code_block": "outputs with a Python block",
    "hedging": "outputs that hedge",
}
PROVENANCE = (
    "preset", "steps", "config_hash", "code", "git", "machine", "sandbox_tier", "packages",
    "wall_s", "cpu_s", "gpu_s", "peak_memory_mb",
)  # fmt: skip


def overview(study: Study, claims: list[dict], browsable: set[str]) -> dict[str, Any]:
    """The first page: what ran, what it cost, what it supports."""
    runs = list(study.runs.values())
    trained = [run for run in runs if run.cell.trained]
    manifests = [run.manifest for run in runs if run.manifest]
    given = [claim["verdict"] for claim in claims]
    gpu = _cost(trained, "gpu_s")
    seeds = sorted({run.seed for run in runs})
    return {
        "facts": [
            ("trained cells, of those planned", f"{_present(trained)} of {len(trained)}"),
            ("base evaluations", f"{_present(runs) - _present(trained)}"),
            ("cells with episodes to browse", f"{len(browsable)}"),
            (f"seed{'s' * (len(seeds) > 1)}: {', '.join(map(str, seeds))}", f"{len(seeds)}"),
            ("model scales", ", ".join(study.config.grid.scales)),
            ("problems behind an accuracy", _range(_problems(runs))),
            (
                "tier of the sandbox",
                _range(m["sandbox_tier"] for m in manifests if "sandbox_tier" in m),
            ),
            ("tokens trained on", _count(_cost(trained, "tokens_trained"))),
            ("processor time of training", _duration(_cost(trained, "cpu_s"))),
            *([("GPU time of training", _duration(gpu))] if any(gpu) else []),
            ("largest memory of a cell", _memory(_cost(trained, "peak_memory_mb"))),
        ],
        "missing": [run.key for run in runs if not run.present],
        "manifests": bool(manifests),
        "verdicts": [
            (v, given.count(v)) for v in (SUPPORTED, CONTRADICTED, UNDECIDED) if v in given
        ],
    }


def cells(study: Study, browsable: set[str]) -> list[dict[str, Any]]:
    """The table of all runs, trained ones first as the configuration lists them."""
    rows = []
    for run in study.runs.values():
        curve = [value.value for value in run.curve("accuracy", "report")]
        base = study.counterpart(run, "base")
        rows.append(
            {
                "run": run,
                "base": base.value("accuracy", "base") if base else None,
                "best": run.value("accuracy", "best"),
                "terminal": run.value("accuracy", "terminal"),
                "gain": run.value("gain_base", "best"),
                "fell": fell(run),
                "spark": spark_points(curve) if len(curve) > 1 else "",
                "browsable": run.key in browsable,
            }
        )
    return rows


def cell(study: Study, run: Run, browsable: set[str]) -> dict[str, Any]:
    """One run's page."""
    base = study.counterpart(run, "base")
    return {
        "run": run,
        "values": [
            ("base model, same workflow", base.value("accuracy", "base") if base else None),
            ("best checkpoint", run.value("accuracy", "best")),
            ("terminal checkpoint", run.value("accuracy", "terminal")),
            ("gain over base, best", run.value("gain_base", "best")),
            ("gain over single-agent RL, best", run.value("gain_sa", "best")),
            ("fall from best to terminal", run.value("cliff_drop", "terminal")),
        ],
        "fell": fell(run),
        "roles": roles(study, run),
        "charts": cell_charts(run),
        "alarms": alarms(run.metrics),
        "provenance": provenance(run.manifest or {}),
        "browsable": run.key in browsable,
        "twin": study.counterpart(run, "twin"),
        "single": study.counterpart(run, "single"),
    }


def fell(run: Run) -> bool:
    """Whether the cell fell off an accuracy cliff, as the detector says."""
    cliff = run.value("cliff", "terminal")
    return cliff is not None and cliff.value == 1


def roles(study: Study, run: Run) -> list[dict[str, Any]]:
    """What each role's outputs are like under the base model and at the analysed checkpoints."""
    base = study.counterpart(run, "base")
    places = [(base, "base")] + [(run, name) for name in CHECKPOINTS if run.cell.trained]
    found = []
    for role in topology(study.config, run.cell.workflow).roles:
        for metric, meaning in ROLE_MEASURES.items():
            values = [
                source.value(metric, name, "all", role) if source else None
                for source, name in places
            ]
            if any(values):
                found.append({"role": role, "meaning": meaning, "values": values})
    return found


def alarms(metrics: pd.DataFrame | None) -> list[dict[str, Any]]:
    """Each kind of drift alarm per role: its first step and on how many steps it stood."""
    if metrics is None:
        return []
    raised = metrics[["step", "role", "alarms"]].dropna()
    raised = raised.assign(kind=raised["alarms"].str.split("+")).explode("kind")
    raised = raised[raised["kind"].str.len() > 0]
    return [
        {"role": role, "kind": kind, "first": int(rows["step"].min()), "count": len(rows)}
        for (role, kind), rows in raised.groupby(["role", "kind"])
    ]


def provenance(manifest: dict[str, Any]) -> list[tuple[str, str]]:
    """The manifest's entries that a reader asks for, as text."""
    return [(name, _flat(manifest[name])) for name in PROVENANCE if manifest.get(name) is not None]


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {item}" for key, item in value.items() if item is not None)
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def _present(runs: Iterable[Run]) -> int:
    return sum(run.present for run in runs)


def _problems(runs: Iterable[Run]) -> set[int]:
    return {value.n for run in runs for value in run.curve("accuracy", "report")}


def _cost(runs: Iterable[Run], metric: str) -> list[float]:
    values = [run.value(metric, "terminal", "train") for run in runs]
    return [value.value for value in values if value is not None]


def _range(values: Iterable[Any]) -> str:
    known = sorted({value for value in values if value is not None})
    if not known:
        return "not recorded"
    return str(known[0]) if len(known) == 1 else f"{known[0]} to {known[-1]}"


def _duration(seconds: list[float]) -> str:
    if not seconds:
        return "not recorded"
    total = math.fsum(seconds)
    for unit, size in (("h", 3600), ("min", 60)):
        if total >= size:
            return f"{total / size:.1f} {unit}"
    return f"{total:.0f} s"


def _count(values: list[float]) -> str:
    if not values:
        return "not recorded"
    total = math.fsum(values)
    for unit, size in (("billion", 1e9), ("million", 1e6)):
        if total >= size:
            return f"{total / size:.1f} {unit}"
    return f"{total:,.0f}"


def _memory(megabytes: list[float]) -> str:
    return f"{max(megabytes) / 1024:.2f} GiB" if megabytes else "not recorded"
