"""Findings 6-10 of the study: how policies fail, through which role, and what that means for choosing."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from rolewise.analysis.detectors import CAPTURE_SCORE
from rolewise.analysis.evidence import (
    CELL,
    CONTRADICTED,
    SIGNIFICANT,
    SUPPORTED,
    UNDECIDED,
    Claim,
    Evidence,
    Verdict,
    at_checkpoint,
    ends_of,
    is_cell,
    judge_ends,
    judge_means,
    judge_reach,
    no_data,
    spearman,
)
from rolewise.analysis.statistics import Interval
from rolewise.grid import ISOLATED, SHARED, Cell

CLIMB = 1.5
STEADY = 1.25


def shared_fails_elsewhere(evidence: Evidence) -> list[Claim]:
    """Finding 6: the late cliff of one SP cell, the drifting aggregator of another."""
    return [
        _one_cliff(evidence, "6a", 6, "Orch-Workers-SP-4B-Math", "falls off a late cliff"),
        _verbose_aggregator(evidence),
    ]


def _one_cliff(evidence: Evidence, claim_id: str, finding: int, name: str, said: str) -> Claim:
    statement = f"{name} {said}."
    cell = evidence.of_paper_cell(name)
    drop = Interval(None, None, None, 0)
    if cell is not None:
        drop = evidence.value(cell, "cliff_drop", "terminal", "report")
    if cell is None or drop.value is None:
        return no_data(claim_id, finding, statement, f"no finished cell stands for {name}")
    threshold = evidence.config.signatures.cliff_drop
    verdict, few = evidence.over_runs(judge_reach(drop, threshold), cell)
    return Claim(
        claim_id, finding, statement, "peak minus terminal accuracy, report half",
        drop.value, drop.lo, drop.hi, drop.n, verdict,
        f"A cliff is a drop of at least {threshold:g} whose interval excludes 0.{few}"
        f" {evidence.limits}",
        judged_on=evidence.judged_on([cell]),
    )  # fmt: skip


def _verbose_aggregator(evidence: Evidence) -> Claim:
    name = "Voting-SP-4B-Math"
    statement = f"{name} holds its accuracy, but its aggregator drifts from a terse pick to prose."
    cell = evidence.of_paper_cell(name)
    if cell is None:
        return no_data("6b", 6, statement, f"no cell stands for {name}")
    base = Cell(cell.workflow, "Base", cell.scale, cell.task)
    before = evidence.value(base, "terse", "base", role="aggregator")
    after = evidence.value(cell, "terse", "terminal", role="aggregator")
    drop = evidence.value(cell, "cliff_drop", "terminal", "report")
    if before.lo is None or after.hi is None or drop.value is None:
        return no_data("6b", 6, statement, f"{cell} lacks trajectories or accuracies")
    fell = judge_reach(drop, evidence.config.signatures.cliff_drop)
    verdict: Verdict = UNDECIDED
    if after.hi < before.lo and fell == CONTRADICTED:
        verdict = SUPPORTED
    elif after.lo >= before.lo or fell == SUPPORTED:
        verdict = CONTRADICTED
    verdict, few = evidence.over_runs(verdict, cell)
    return Claim(
        "6b", 6, statement, "share of terse picks of the aggregator at the end",
        after.value, after.lo, after.hi, after.n, verdict,
        f"Under the base model {before.value:.2f} [{before.lo:.2f}, {before.hi:.2f}]; accuracy fell by"
        f" {100 * drop.value:.1f} points after its peak. Drift means that the intervals are apart.{few}"
        f" {evidence.limits}",
        judged_on=evidence.judged_on([cell]),
    )  # fmt: skip


def amplification(evidence: Evidence) -> list[Claim]:
    """Finding 7: the repeated role drifts, its partners do not, then accuracy descends."""
    return [
        _drift(evidence, "7a", "Voting-IP-1.7B-Math", "generator"),
        _drift(evidence, "7b", "Orch-Workers-IP-1.7B-Math", "worker"),
        _coherent(evidence),
    ]


def _drift(evidence: Evidence, claim_id: str, name: str, role: str) -> Claim:
    statement = (
        f"{name}: the {role}'s chi2 and perplexity climb, the other roles' stay near their first "
        "values, then accuracy descends."
    )
    cell = evidence.of_paper_cell(name)
    growths = {} if cell is None else growth_by_role(evidence, cell)
    if cell is None or role not in growths:
        return no_data(claim_id, 7, statement, f"no finished cell stands for {name}")
    drop = evidence.value(cell, "cliff_drop", "terminal", "report")
    own = [over_seeds(values) for values in growths.pop(role)]
    verdict, few = evidence.over_runs(
        judge_drift(
            own,
            [over_seeds(values).value for pair in growths.values() for values in pair],
            judge_reach(drop, evidence.config.signatures.cliff_drop),
        ),
        cell,
    )
    partners = ", ".join(f"{r} {_factors(*map(over_seeds, pair))}" for r, pair in growths.items())
    chi2, perplexity = own
    return Claim(
        claim_id, 7, statement,
        f"growth of the {role}'s training perplexity, last over first quarter of training",
        *(None if end is None else float(np.exp(end)) for end in (perplexity.value, perplexity.lo, perplexity.hi)),
        perplexity.n, verdict,
        f"chi2 and perplexity: {_factors(chi2, perplexity)}; of the other roles: {partners}; drop after the"
        f" peak {100 * (drop.value or 0):.1f} points. A climb is at least x{CLIMB:g}, steady at most"
        f" x{STEADY:g}; chi2 is estimated and has no factor where a quarter's mean is not positive."
        f" A course of one run has no interval.{few} {evidence.limits}",
        judged_on=evidence.judged_on([cell]),
    )  # fmt: skip


def judge_drift(own: list[Interval], others: list[float | None], fell: Verdict) -> Verdict:
    """Whether a role's log growths all climb, everyone else's are known and steady, and accuracy falls.

    contradicted: accuracy or one of its own growths certainly does not.
    """
    parts = [fell, *(judge_reach(grown, np.log(CLIMB)) for grown in own)]
    if CONTRADICTED in parts:
        return CONTRADICTED
    steady = all(value is not None and value <= np.log(STEADY) for value in others)
    return SUPPORTED if steady and set(parts) == {SUPPORTED} else UNDECIDED


def _factors(*grown: Interval) -> str:
    return ", ".join("no factor" if g.value is None else f"x{np.exp(g.value):.2f}" for g in grown)


def over_seeds(growths: np.ndarray) -> Interval:
    """Mean log growth with its t interval over seeds; empty where a seed has no factor."""
    if not len(growths) or np.isnan(growths).any():
        return Interval(None, None, None, len(growths))
    return Interval(*ends_of(np.log(growths)), len(growths))


def growth_by_role(evidence: Evidence, cell: Cell) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Role -> growth of chi2_update and of perplexity by seed: mean of the last over the first quarter.

    Roles whose perplexity has none are left out; that of chi2 may be NaN.
    """
    cells = evidence.cells
    mine = cells[is_cell(cells, cell) & (cells.split == "train") & (cells.role != "all")]
    found = {}
    for role, rows in mine.groupby("role", sort=True):
        chi2, perplexity = (
            np.array([growth(curve) for _, curve in rows[rows.metric == m].groupby("seed")])
            for m in ("chi2_update", "perplexity")
        )
        if len(perplexity) and not np.isnan(perplexity).any():
            found[str(role)] = chi2, perplexity
    return found


def growth(curve: pd.DataFrame) -> float:
    """Mean of the last quarter of a curve's steps over the mean of the first.

    NaN below 4 steps, and where one of them is not positive: such a pair has no factor.
    """
    values = curve.sort_values("step").value.to_numpy()
    quarter = len(values) // 4
    if not quarter or min(values[:quarter].mean(), values[-quarter:].mean()) <= 0:
        return float("nan")
    return float(values[-quarter:].mean() / values[:quarter].mean())


def _coherent(evidence: Evidence) -> Claim:
    statement = "Under IP the updates of parallel agents of one role are coherent."
    rows = evidence.cells
    rows = rows[(rows.split == "train") & (rows.policy == ISOLATED)]
    names = ["coherence", "slots", "coherence_within", "coherence_null_hi"]
    ledgers = rows[rows.metric.isin(names)].pivot_table(
        index=[*CELL, "seed", "role", "step"], columns="metric", values="value", observed=True
    )
    ledgers = ledgers.reindex(columns=names).dropna(subset=["coherence", "slots"])
    if ledgers.empty:
        return no_data("7c", 7, statement, "no slot ledger of an IP cell that counts its slots")
    orthogonal = 1 / ledgers.slots
    surplus = (ledgers.coherence - orthogonal).groupby(CELL, observed=True).mean().to_numpy()
    nulls = ledgers.dropna()
    above = int((nulls.coherence_within > nulls.coherence_null_hi).sum())
    return Claim(
        "7c", 7, statement,
        "mean over cells of coherence minus 1/n, that of n orthogonal slots",
        *ends_of(surplus), len(surplus), judge_means([surplus])[0],
        f"Coherence {ledgers.coherence.mean():.2f}, orthogonal slots {orthogonal.mean():.2f}; t interval"
        f" over cells. Slots of the same problems cohere above their null (95 %) in {above} of"
        f" {len(nulls)} ledgers: there the shared episode adds to it. {evidence.limits}",
    )  # fmt: skip


CAPTURES = (
    ("8a", "Eval-Opt-SP-0.6B-Code", "evaluator", "generator"),
    ("8b", "Eval-Opt-SP-1.7B-Math", "evaluator", "generator"),
    ("8c", "Voting-SP-4B-Math", "aggregator", "generator"),
    ("8d", "Orch-Workers-SP-4B-Math", "orchestrator", "worker"),
    ("8e", "Orch-Workers-SP-4B-Math", "synthesizer", "worker"),
)


def role_capture(evidence: Evidence) -> list[Claim]:
    """Finding 8: the named captures, and whether captors are the roles with more gradient mass."""
    claims = []
    for claim_id, name, role, other in CAPTURES:
        statement = f"{name}: the {role} is captured by the {other}."
        cell = evidence.of_paper_cell(name)
        score = Interval(None, None, None, 0)
        if cell is not None:
            score = evidence.value(cell, f"capture_by_{other}", "terminal", role=role)
        if cell is None or score.value is None or score.hi is None:
            claims.append(no_data(claim_id, 8, statement, f"no capture score of a cell for {name}"))
            continue
        twin = Cell(cell.workflow, ISOLATED, cell.scale, cell.task)
        control = evidence.value(twin, f"capture_by_{other}", "terminal", role=role)
        verdict, few = evidence.over_runs(judge_reach(score, CAPTURE_SCORE), cell)
        beside = "not measured" if control.value is None else f"{control.value:.2f}"
        claims.append(
            Claim(
                claim_id, 8, statement, "capture score at the end: 0 unmoved, 1 arrived",
                score.value, score.lo, score.hi, score.n, verdict,
                f"Capture is a score of at least {CAPTURE_SCORE:g} whose interval excludes 0. Its IP twin:"
                f" {beside}.{few} {evidence.limits}",
                judged_on=evidence.judged_on([cell]),
            )
        )  # fmt: skip
    return [*claims, _mass_captures(evidence)]


def _mass_captures(evidence: Evidence) -> Claim:
    statement = "Under SP the role with more gradient mass pulls the others towards itself."
    rows = evidence.cells
    rows = rows[(rows.policy == SHARED) & rows.value.notna()]
    mass = rows[(rows.metric == "role_grad_mass") & (rows.split == "train")]
    mass = mass.groupby([*CELL, "role"]).value.mean()
    scores = at_checkpoint(rows[rows.metric.str.startswith("capture_by_")], "terminal")
    pairs = []
    for key, score in scores.groupby([*CELL, "role", "metric"]).value.mean().items():
        captor = re.sub("^capture_by_", "", key[-1])
        own, theirs = (mass.get((*key[:4], role)) for role in (key[4], captor))
        if own is not None and theirs is not None:
            pairs.append((theirs - own, score))
    x, y = np.array(pairs).T if pairs else (np.empty(0), np.empty(0))
    found = spearman(x, y)
    if found.value is None:
        return no_data("8f", 8, statement, "too few SP cells with gradient mass and capture scores")
    return Claim(
        "8f", 8, statement,
        "rank correlation of the captor's surplus of gradient mass with the capture score",
        found.value, found.lo, found.hi, found.n, judge_ends(found.lo, found.hi),
        "Over ordered pairs of roles of all SP cells, which are not independent of each other."
        f" {evidence.limits}",
    )  # fmt: skip


def slots_narrow(evidence: Evidence) -> list[Claim]:
    """Finding 9: change of wrong-answer agreement against the base model, over cells; Holm over both."""
    samples = {}
    for claim_id, policy in (("9a", ISOLATED), ("9b", SHARED)):
        rows = evidence.cells
        rows = rows[
            (rows.metric == "wrong_agreement_gain") & (rows.policy == policy) & rows.value.notna()
        ]
        rows = at_checkpoint(rows, "terminal")
        samples[claim_id, policy] = rows.groupby(CELL).value.mean().to_numpy()
    claims = []
    for ((claim_id, policy), values), verdict in zip(
        samples.items(), judge_means(list(samples.values())), strict=True
    ):
        statement = (
            f"Under {policy} parallel slots agree more on the same wrong answer than before."
        )
        if not len(values):
            claims.append(no_data(claim_id, 9, statement, "no cell with parallel slots all wrong"))
            continue
        claims.append(
            Claim(
                claim_id, 9, statement, "mean change of wrong-answer agreement at the end, over cells",
                *ends_of(values), len(values), verdict,
                f"Higher than under the base model in {int((values > 0).sum())} of {len(values)} cells;"
                f" t interval over cells. {evidence.limits}",
            )
        )  # fmt: skip
    return claims


def choose_and_monitor(evidence: Evidence) -> list[Claim]:
    """Finding 10: neither policy wins everywhere, and drift of roles goes with falls."""
    first = "The better policy depends on workflow and task."
    second = "Role-level drift goes with later accuracy falls."
    gains = evidence.gains("ip_minus_sp", "terminal")
    claims = []
    if gains.empty:
        claims.append(no_data("10a", 10, first, "no pair of matched IP and SP cells"))
    else:
        clear = gains.p < SIGNIFICANT
        isolated = int((clear & (gains.value > 0)).sum())
        shared = int((clear & (gains.value < 0)).sum())
        one_sided = max(isolated, shared) > len(gains) / 2 and min(isolated, shared) == 0
        verdict = SUPPORTED if isolated and shared else (CONTRADICTED if one_sided else UNDECIDED)
        cells = [Cell(*key) for key in gains[CELL].itertuples(index=False)]
        verdict, few = evidence.over_runs(verdict, *cells)
        claims.append(
            Claim(
                "10a", 10, first, "mean terminal accuracy, IP minus SP, over matched pairs",
                *ends_of(gains.value.to_numpy()), len(gains), verdict,
                f"IP clearly better in {isolated} pairs, SP in {shared} (Holm over pairs); differences"
                f" from {100 * gains.value.min():.1f} to {100 * gains.value.max():.1f} points.{few}"
                f" {evidence.limits}",
            )
        )  # fmt: skip
    drops = evidence.per_cell("cliff_drop", "terminal", "report")
    drift, fall = [], []
    for row in drops.itertuples():
        cell = Cell(row.workflow, row.policy, row.scale, row.task)
        growths = growth_by_role(evidence, cell)
        if growths:
            drift.append(max(perplexity.mean() for _, perplexity in growths.values()))
            fall.append(row.value)
    found = spearman(np.array(drift), np.array(fall))
    if found.value is None:
        return [*claims, no_data("10b", 10, second, "too few cells with role metrics")]
    claims.append(
        Claim(
            "10b", 10, second,
            "rank correlation over cells of the largest growth of a role's perplexity with the drop",
            found.value, found.lo, found.hi, found.n, judge_ends(found.lo, found.hi),
            f"Correlation, not cause; growth is last over first quarter. {evidence.limits}",
        )
    )  # fmt: skip
    return claims
