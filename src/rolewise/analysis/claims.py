"""The claims ledger: every finding of the study held against this run's tidy table."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
from scipy import stats
from tabulate import tabulate

from rolewise.analysis import findings, mechanisms
from rolewise.analysis.cells import read_cells
from rolewise.analysis.evidence import CONTRADICTED, SUPPORTED, UNDECIDED, Claim, Evidence
from rolewise.analysis.statistics import minimum_detectable_effect
from rolewise.config import Config
from rolewise.records import write_text
from rolewise.runs.layout import layout

FINDINGS = (
    findings.beats_base,
    findings.matches_single_agent,
    findings.depends_jointly,
    findings.isolated_peaks_higher,
    findings.isolated_falls,
    findings.isolated_swings,
    mechanisms.shared_fails_elsewhere,
    mechanisms.amplification,
    mechanisms.role_capture,
    mechanisms.slots_narrow,
    mechanisms.choose_and_monitor,
)


def judge(evidence: Evidence) -> list[Claim]:
    """All claims, in the order of the findings."""
    return [claim for finding in FINDINGS for claim in finding(evidence)]


def write_claims(config: Config) -> list[Path]:
    """Write `claims/claims.json` (a list of claims) and `claims.md`; returns both paths."""
    evidence = Evidence(config, read_cells(config))
    claims = judge(evidence)
    folder = layout(config).root / "claims"
    rows = [dataclasses.asdict(claim) for claim in claims]
    text = json.dumps(rows, indent=2, ensure_ascii=False, allow_nan=False)
    write_text(folder / "claims.json", text + "\n")
    write_text(folder / "claims.md", as_markdown(evidence, claims))
    return [folder / "claims.json", folder / "claims.md"]


def as_markdown(evidence: Evidence, claims: list[Claim]) -> str:
    """The ledger as a page: what it rests on, the counts, a table, and the reasons."""
    counts = [
        (v, sum(c.verdict == v for c in claims)) for v in (SUPPORTED, CONTRADICTED, UNDECIDED)
    ]
    table = tabulate(
        [
            (c.id, _cell(c.statement), c.verdict, _cell(c.statistic), _number(c), c.n)
            for c in claims
        ],
        headers=("id", "statement", "verdict", "statistic", "value [95 %]", "n"),
        tablefmt="pipe",
        disable_numparse=True,
    )
    reasons = "\n".join(f"- **{c.id}** ({c.verdict}): {c.why}" for c in claims)
    return (
        "# Claims ledger\n\n"
        f"Preset `{evidence.config.preset}`. {basis(evidence)}\n\n"
        f"{', '.join(f'{count} {verdict}' for verdict, count in counts)}. A verdict is given only where"
        " the data decide; everything else is not decidable here.\n\n"
        f"{table}\n\n## Why\n\n{reasons}\n"
    )


def basis(evidence: Evidence) -> str:
    """Seeds, problems, and the smallest gain that one cell could show."""
    text = evidence.limits
    gains = evidence.per_cell("gain_base", "best", "report").dropna()
    if gains.empty:
        return text
    n = int(gains.n.median())
    errors = (gains.hi - gains.lo) / (2 * stats.norm.ppf(0.975))
    effect = minimum_detectable_effect(float(np.median(errors)) * np.sqrt(n), n)
    text += (
        f" {n} report-half problems; smallest gain of one cell found with 80 % power:"
        f" {100 * effect:.1f} points."
    )
    if evidence.embedded:
        text += (
            " The models are miniatures that the pipeline makes itself: they speak to the machinery"
            " and its dynamics, not to pretrained models."
        )
    return text


def _number(claim: Claim) -> str:
    if claim.value is None:
        return "–"
    ends = "" if claim.lo is None else f" [{claim.lo:.3f}, {claim.hi:.3f}]"
    return f"{claim.value:.3f}{ends}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
