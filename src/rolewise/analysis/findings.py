"""Findings 1-5 of the study: whether multi-agent RL pays, for whom, and how stably."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy import stats

from rolewise.analysis.evidence import (
    CELL,
    CONTRADICTED,
    MATCHED,
    SIGNIFICANT,
    SUPPORTED,
    UNDECIDED,
    Claim,
    Evidence,
    ends_of,
    judge_ends,
    judge_means,
    judge_share,
    no_data,
)
from rolewise.analysis.statistics import Interval, share_interval, sign_p
from rolewise.grid import Cell

STUDIED = ("Eval-Opt", "Voting", "Orch-Workers")
MATCH_MARGIN = 0.05
MAJORITY = 0.5


def beats_base(evidence: Evidence) -> list[Claim]:
    """Finding 1, first half: wins are cells whose peak gain is above 0 after Holm's correction."""
    statement = "Multi-agent RL beats the base model in the large majority of cells."
    gains = evidence.gains("gain_base", "best")
    if gains.empty:
        return [no_data("1a", 1, statement, "no cell has a gain over its base model")]
    clear = gains["p"] < SIGNIFICANT
    wins, losses = int((clear & (gains.value > 0)).sum()), int((clear & (gains.value < 0)).sum())
    share, verdict = judge_share(wins, losses, len(gains), MAJORITY)
    learned = (
        "By construction of this preset there is something to learn: its models are made to stop"
        " short, so this speaks to the machinery only. "
        if evidence.embedded
        else ""
    )
    return [
        Claim(
            "1a", 1, statement,
            "share of cells whose peak beats the base model (report half, Holm over all cells)",
            share.value, share.lo, share.hi, len(gains), verdict,
            f"{learned}{wins} clear wins, {losses} clear losses, {len(gains) - wins - losses} unclear;"
            f" mean gain {100 * gains.value.mean():.1f} points. Wilson interval over cells, which"
            f" share models and problems. {evidence.limits}",
            by_construction=evidence.embedded,
        )
    ]  # fmt: skip


def matches_single_agent(evidence: Evidence) -> list[Claim]:
    """Finding 1, second half: a cell matches SA-RL if it is at most `MATCH_MARGIN` worse for certain."""
    statement = "Multi-agent RL matches or beats SA-RL in most cells."
    gains = evidence.gains("gain_sa", "best")
    if gains.empty:
        return [no_data("1b", 1, statement, "no cell can be compared with SA-RL")]
    beats = (gains.p < SIGNIFICANT) & (gains.value > 0)
    wins = int((beats | (gains.lo > -MATCH_MARGIN)).sum())
    losses = int(((gains.p < SIGNIFICANT) & (gains.value < 0) & (gains.lo <= -MATCH_MARGIN)).sum())
    share, verdict = judge_share(wins, losses, len(gains), MAJORITY)
    return [
        Claim(
            "1b", 1, statement,
            f"share of cells whose peak is above SA-RL's, or for certain not more than "
            f"{100 * MATCH_MARGIN:.0f} points below (report half, same problems)",
            share.value, share.lo, share.hi, len(gains), verdict,
            f"{int(beats.sum())} beat SA-RL, {wins - int(beats.sum())} match it, {losses} are clearly"
            f" worse, {len(gains) - wins - losses} unclear; mean difference"
            f" {100 * gains.value.mean():.1f} points. {evidence.limits}",
        )
    ]  # fmt: skip


def depends_jointly(evidence: Evidence) -> list[Claim]:
    """Finding 2: gains differ between settings by more than sampling error, and more than by policy.

    Cochran's Q over workflow, task and scale (policies averaged) asks whether they differ by more than
    sampling error; epsilon^2 compares how much policy and the settings explain, with the jackknife
    over settings: the two runs of a setting are trained apart, so their spread holds that of training.
    """
    first = "The gain depends jointly on workflow, task and scale, not on policy sharing alone."
    second = "Workflow rankings are not constant over tasks and scales."
    gains = evidence.per_cell("gain_base", "best", "report").dropna()
    settings = gains.groupby(MATCHED, sort=False).value.mean() if len(gains) else gains
    if len(settings) < 3 or gains.policy.nunique() < 2:
        what = "fewer than three settings under both policies"
        return [no_data("2a", 2, first, what), no_data("2b", 2, second, what)]
    share, lo, hi = ends_of(jackknife(gains, surplus))
    variance = ((gains.hi - gains.lo) / (2 * stats.norm.ppf(0.975))) ** 2
    by_setting = variance.groupby([gains[k] for k in MATCHED], sort=False)
    errors = np.sqrt(by_setting.sum()) / by_setting.count()
    q, p = cochran(settings.to_numpy(), errors.to_numpy())
    verdict = judge_ends(lo, hi) if p < SIGNIFICANT else UNDECIDED
    claims = [
        Claim(
            "2a", 2, first,
            "epsilon^2 of workflow x task x scale minus that of policy, over the cells' peak gains",
            share, lo, hi, len(gains), verdict,
            f"Cochran's Q = {q:.1f} over {len(settings)} settings, p = {p:.2g}: the settings"
            f" {'differ' if p < SIGNIFICANT else 'do not clearly differ'} by more than sampling error."
            f" Interval: jackknife over settings. {evidence.limits}",
        )
    ]  # fmt: skip
    return [*claims, _reversal(evidence, gains, second)]


def _reversal(evidence: Evidence, gains: pd.DataFrame, statement: str) -> Claim:
    winners, found = rankings(gains)
    if found is None:
        return no_data("2b", 2, statement, "no two workflows were trained in the same setting")
    verdict = SUPPORTED if found.lo > 0 else UNDECIDED
    cells = [Cell(*key) for key in gains[CELL].itertuples(index=False)]
    verdict, few = evidence.over_runs(verdict, *cells)
    leads = ", ".join(f"{w} {k}x" for w, k in winners.value_counts().items())
    return Claim(
        "2b", 2, statement,
        "peak gain by which two workflows lead each other, each in its best setting: the smaller of both"
        " leads, of the pair where it is clearest; negative: one always leads",
        found.value, found.lo, found.hi, len(winners), verdict,
        f"Best workflow by setting: {leads}. Interval: those of the two cells added up, not corrected for"
        f" the search.{few} {evidence.limits}",
    )  # fmt: skip


def surplus(gains: pd.DataFrame) -> float:
    """epsilon^2 of workflow x task x scale minus that of policy."""
    return explained(gains, MATCHED) - explained(gains, ["policy"])


def jackknife(gains: pd.DataFrame, statistic: Callable[[pd.DataFrame], float]) -> np.ndarray:
    """Pseudo-values of a statistic, leaving one setting out at a time; NaN where it is undefined then."""
    setting = gains.groupby(MATCHED, sort=False).ngroup()
    k = setting.nunique()
    without = np.array([statistic(gains[setting != i]) for i in range(k)])
    return k * statistic(gains) - (k - 1) * without


def explained(gains: pd.DataFrame, keys: list[str]) -> float:
    """epsilon^2: share of the variance of `value` between the groups of `keys`, corrected for their number.

    1 - (within-group mean square) / (total mean square); around 0 when groups do not matter.
    """
    groups = gains.groupby(keys).value
    freedom = len(gains) - groups.ngroups
    total = gains.value.var(ddof=1)
    if freedom < 1 or not total:
        return float("nan")
    within = ((gains.value - groups.transform("mean")) ** 2).sum() / freedom
    return float(1 - within / total)


def cochran(values: np.ndarray, errors: np.ndarray) -> tuple[float, float]:
    """Cochran's Q of equal means with known standard errors, and its p-value (chi^2)."""
    weights = 1 / np.maximum(errors, 1e-9) ** 2
    mean = (weights * values).sum() / weights.sum()
    q = float((weights * (values - mean) ** 2).sum())
    return q, float(stats.chi2.sf(q, len(values) - 1))


def rankings(gains: pd.DataFrame) -> tuple[pd.Series, Interval | None]:
    """The leading workflow per task, scale and policy, and how clearly an order reverses.

    For every pair of workflows the smaller of the largest leads either way; of these the one with
    the highest lower end. None without a pair.
    """
    settings = gains.groupby(["task", "scale", "policy"], sort=False)
    winners = settings.apply(lambda g: g.loc[g.value.idxmax(), "workflow"], include_groups=False)
    leads: dict[tuple[str, str], Interval] = {}
    for _, group in settings:
        for a, b in itertools.permutations(group.itertuples(), 2):
            lead = Interval(a.value - b.value, a.lo - b.hi, a.hi - b.lo, len(settings))
            key = (a.workflow, b.workflow)
            leads[key] = max(leads.get(key, lead), lead, key=_lower_end)
    weaker = [min(leads[a, b], leads[b, a], key=_lower_end) for a, b in leads if a < b]
    return winners, max(weaker, key=_lower_end, default=None)


def _lower_end(found: Interval) -> float:
    return found.lo


def isolated_peaks_higher(evidence: Evidence) -> list[Claim]:
    """Finding 3: sign of IP - SP at the peak, its change until the end, and the 1.7B Math case."""
    first = "IP more often has the higher matched-cell peak."
    second = "IP's advantage shrinks or reverses late in training."
    peak = evidence.per_cell("ip_minus_sp", "best", "report")
    last = evidence.per_cell("ip_minus_sp", "terminal", "report")
    if peak.empty:
        what = "no pair of matched IP and SP cells"
        return [no_data("3a", 3, first, what), no_data("3b", 3, second, what), _case(evidence)]
    wins, losses = int((peak.value > 0).sum()), int((peak.value < 0).sum())
    share = share_interval(wins, wins + losses)
    p = sign_p(wins, losses)
    verdict = UNDECIDED if p >= SIGNIFICANT else (SUPPORTED if wins > losses else CONTRADICTED)
    both = peak.merge(last, on=CELL, suffixes=("", "_last"))
    change = (both.value_last - both.value).to_numpy()
    value, lo, hi = ends_of(-change)
    return [
        Claim(
            "3a", 3, first, "share of untied matched pairs in which IP peaks higher (report half)",
            share.value, share.lo, share.hi, wins + losses, verdict,
            f"IP higher in {wins}, SP in {losses}, equal in {len(peak) - wins - losses}; sign test"
            f" p = {p:.2g}. {evidence.limits}",
        ),
        Claim(
            "3b", 3, second,
            "mean over matched pairs of (IP - SP at the peak) - (IP - SP at the end), accuracy",
            value, lo, hi, len(both), judge_ends(lo, hi),
            f"Mean difference {100 * both.value.mean():.1f} points at the peak,"
            f" {100 * both.value_last.mean():.1f} at the end; t interval over pairs."
            f" {evidence.limits}",
        ),
        _case(evidence),
    ]  # fmt: skip


def _case(evidence: Evidence) -> Claim:
    statement = (
        "1.7B Math: IP peaks higher in all three workflows, then falls back towards or below SP."
    )
    named = [evidence.of_paper_cell(f"{workflow}-IP-1.7B-Math") for workflow in STUDIED]
    cells = [cell for cell in named if cell is not None]
    found = [
        (evidence.value(cell, "ip_minus_sp", "best", "report"),
         evidence.value(cell, "ip_minus_sp", "terminal", "report"))
        for cell in cells
    ]  # fmt: skip
    complete = all(value.value is not None for pair in found for value in pair)
    if len(found) < len(STUDIED) or not complete:
        what = "no cells of this preset stand for IP and SP at 1.7B Math in all three workflows"
        return no_data("3c", 3, statement, what)
    as_said = [a.value > 0 and b.value < a.value for a, b in found]
    certain = [(a.lo or 0) > 0 and b.value < a.value for a, b in found]
    against = [a.hi is not None and a.hi < 0 for a, _ in found]
    verdict = SUPPORTED if all(certain) else (CONTRADICTED if any(against) else UNDECIDED)
    verdict, few = evidence.over_runs(verdict, *cells)
    detail = ", ".join(f"{100 * a.value:+.1f} -> {100 * b.value:+.1f}" for a, b in found)
    share = share_interval(sum(as_said), len(found))
    return Claim(
        "3c", 3, statement, "share of workflows in which IP leads at the peak and loses ground after",
        share.value, share.lo, share.hi, len(found), verdict,
        f"IP - SP in points, peak -> end, by workflow: {detail}; supported only if every peak"
        f" difference is clearly above 0.{few} {evidence.limits}",
        judged_on=evidence.judged_on(cells),
    )  # fmt: skip


def isolated_falls(evidence: Evidence) -> list[Claim]:
    """Finding 4: cliffs under IP against cliffs under SP, exact McNemar over matched pairs."""
    statement = "IP falls off a terminal accuracy cliff more often."
    pairs = evidence.pairs("cliff", "report")
    if pairs.empty:
        return [no_data("4", 4, statement, "no pair of matched IP and SP cells")]
    wins, losses = int((pairs.ip > pairs.sp).sum()), int((pairs.ip < pairs.sp).sum())
    p = sign_p(wins, losses)
    verdict = UNDECIDED if p >= SIGNIFICANT else (SUPPORTED if wins > losses else CONTRADICTED)
    difference = (pairs.ip - pairs.sp).to_numpy()
    return [
        Claim(
            "4", 4, statement, "difference in cliff rate, IP minus SP, over matched pairs",
            *ends_of(difference), len(pairs), verdict,
            f"Cliffs in {pairs.ip.sum():g} IP and {pairs.sp.sum():g} SP cells of {len(pairs)} pairs;"
            f" only under IP in {wins}, only under SP in {losses}; McNemar p = {p:.2g}."
            f" {evidence.limits}",
        )
    ]  # fmt: skip


AMPLITUDES = {
    "5a": ("ratio_update_max_max", "the larger maximum token-level policy ratio"),
    "5b": ("grad_norm_max", "the larger maximum gradient norm"),
    "5c": ("entropy_collapse_depth", "the deeper entropy collapse"),
}
PLATEAUS = (("5d", "plateau_step", "earlier"), ("5e", "plateau_level", "lower"))


def isolated_swings(evidence: Evidence) -> list[Claim]:
    """Finding 5: amplitudes per matched pair and where SP's plateaus lie; Holm over its claims."""
    samples, said = {}, {}
    for claim_id, (metric, words) in AMPLITUDES.items():
        pairs = evidence.pairs(metric)
        if metric == "entropy_collapse_depth":
            samples[claim_id] = pairs.ip - pairs.sp
            what = f"mean difference in {metric}, IP minus SP, over matched pairs"
        else:
            pairs = pairs[(pairs > 0).all(axis=1)]
            samples[claim_id] = np.log(pairs.ip / pairs.sp)
            what = f"mean log ratio of {metric}, IP to SP, over matched pairs"
        said[claim_id] = (f"IP shows {words} across matched cells.", what)
    for claim_id, metric, words in PLATEAUS:
        pairs = evidence.pairs(metric, "all")
        samples[claim_id] = pairs.ip - pairs.sp
        what = f"mean {metric}, IP minus SP, over pairs in which both curves stop rising"
        said[claim_id] = (f"SP usually plateaus {words} than IP.", what)
    verdicts = judge_means([values.to_numpy() for values in samples.values()])
    claims = []
    for (claim_id, series), verdict in zip(samples.items(), verdicts, strict=True):
        values = series.to_numpy()
        statement, what = said[claim_id]
        if not len(values):
            claims.append(no_data(claim_id, 5, statement, "no matched pair has both values"))
            continue
        claims.append(
            Claim(
                claim_id, 5, statement, what, *ends_of(values), len(values), verdict,
                f"IP above SP in {int((values > 0).sum())} of {len(values)} pairs; t interval over"
                f" pairs, verdicts corrected over the claims of this finding. {evidence.limits}",
            )
        )  # fmt: skip
    return claims
