"""The claims ledger: every finding of the study held against this run's tidy table."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

from tabulate import tabulate

from rolewise.analysis import findings, mechanisms
from rolewise.analysis.cells import read_cells
from rolewise.analysis.evidence import CONTRADICTED, SUPPORTED, UNDECIDED, Claim, Evidence
from rolewise.analysis.power import power_note
from rolewise.analysis.statistics import FEWEST_UNITS
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
    return [finished(claim) for finding in FINDINGS for claim in finding(evidence)]


def finished(claim: Claim) -> Claim:
    """The claim as it is published: without an interval no verdict, and first what it was judged on.

    A statistic that the data leave undefined (NaN) has no value.
    """
    verdict = UNDECIDED if claim.lo is None else claim.verdict
    undefined = claim.value is None or math.isnan(claim.value)
    on = f"Judged on {claim.judged_on}. " if claim.judged_on else ""
    return dataclasses.replace(
        claim,
        value=None if undefined else claim.value,
        verdict=verdict,
        why=on + claim.why,
        by_construction=claim.by_construction and verdict != UNDECIDED,
    )


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
            (c.id, _cell(c.statement), _where(c), _verdict(c), _cell(c.statistic), _number(c), c.n)
            for c in claims
        ],
        headers=(
            "id",
            "study's statement",
            "judged on",
            "verdict",
            "statistic",
            "value [95 %]",
            "n",
        ),
        tablefmt="pipe",
        disable_numparse=True,
    )
    reasons = "\n".join(f"- **{c.id}** ({_verdict(c)}): {c.why}" for c in claims)
    return (
        "# Claims ledger\n\n"
        f"Preset `{evidence.config.preset}`. {basis(evidence)}\n\n"
        f"{', '.join(f'{count} {verdict}' for verdict, count in counts)}{_built(claims)}. A verdict is given"
        " only where the data decide; everything else is not decidable here: what has no interval, and what"
        f" is said of single cells as long as fewer than {FEWEST_UNITS} seeds of them ran.\n\n"
        f"{table}\n\n## Why\n\n{reasons}\n"
    )


def basis(evidence: Evidence) -> str:
    """Seeds, problems, and the smallest gain that one cell could show."""
    text = evidence.limits
    counts = evidence.rows("accuracy", "base", "report").n
    if counts.empty:
        return text
    text = f"{text} {power_note(evidence.config, int(counts.min()))}".rstrip()
    if evidence.embedded:
        text += (
            " The models are miniatures that the pipeline makes itself: they speak to the machinery"
            " and its dynamics, not to pretrained models."
        )
    return text


def _built(claims: list[Claim]) -> str:
    ids = [c.id for c in claims if c.by_construction]
    return f" (by construction of the preset: {', '.join(ids)})" if ids else ""


def _where(claim: Claim) -> str:
    return claim.judged_on or ("all" if claim.n else "–")


def _verdict(claim: Claim) -> str:
    return f"{claim.verdict}, by construction" if claim.by_construction else claim.verdict


def _number(claim: Claim) -> str:
    if claim.value is None:
        return "–"
    ends = "" if claim.lo is None else f" [{claim.lo:.3f}, {claim.hi:.3f}]"
    return f"{claim.value:.3f}{ends}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
