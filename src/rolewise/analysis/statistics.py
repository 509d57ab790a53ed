"""Intervals, tests and corrections; every comparison is made on the same problems.

`scipy.stats` takes a second to import; named through `scipy`, it loads when a test is asked for.

Array suffixes: `_P` problems, `_K` independent columns, `_R` bootstrap resamples.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy
from scipy import special

from rolewise.errors import RolewiseError

RESAMPLES = 2000
LEVEL = 0.95
FEWEST_UNITS = 3


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval (None: there is none) and the problems behind it."""

    value: float | None
    lo: float | None
    hi: float | None
    n: int

    @property
    def excludes_zero(self) -> bool:
        """Whether there is an interval and 0 lies outside it."""
        return self.lo is not None and self.hi is not None and (self.lo > 0 or self.hi < 0)

    def reaches(self, threshold: float) -> bool:
        """Whether the value is positive and at least `threshold`, and the interval excludes 0."""
        # Rounding must not keep a value from a threshold that it equals.
        large = self.value is not None and self.value > 0 and self.value >= threshold - 1e-12
        return large and self.excludes_zero


NOTHING = Interval(None, None, None, 0)


@functools.lru_cache(maxsize=16)
def resample_counts(n: int, resamples: int = RESAMPLES, seed: int = 0) -> np.ndarray:
    """How often each of `n` problems is drawn in each resample, (resamples, n); equal for equal arguments."""
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(n, np.full(n, 1 / n), size=resamples).astype(float)
    counts.setflags(write=False)
    return counts


def percentile_interval(estimates_RK: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper ends from bootstrap estimates of `n` problems; undefined (NaN) ones are left out.

    Expanded percentile interval (Hesterberg 2015): the percentile interval is too narrow by
    sqrt((n-1)/n) and by using normal instead of t quantiles; both are undone on the probability scale.
    """
    if n < 2:
        shape = np.shape(estimates_RK)[1:]
        return np.full(shape, np.nan), np.full(shape, np.nan)
    tail = _tail(n)
    quantile = np.nanquantile if np.isnan(estimates_RK).any() else np.quantile
    lo, hi = quantile(estimates_RK, [tail, 1 - tail], axis=0)
    return lo, hi


@functools.lru_cache
def _tail(n: int) -> float:
    t = special.stdtrit(n - 1, (1 - LEVEL) / 2)
    return float(special.ndtr(t * np.sqrt(n / (n - 1))))


def bootstrap_means(
    values_PK: np.ndarray, resamples: int = RESAMPLES, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means of the columns with their 95 % intervals over problems, three arrays of length K.

    A constant column has no spread to resample. If it is 0, 1 or -1, as a rate (or a difference of
    outcomes) never or always seen, the end that the bootstrap cannot find is the Wilson bound
    z^2 / (n + z^2) away.
    """
    values_PK = np.asarray(values_PK, dtype=float)
    n = len(values_PK)
    means_K = values_PK.mean(axis=0)
    lo_K, hi_K = percentile_interval(resample_counts(n, resamples, seed) @ values_PK / n, n)
    constant_K = (values_PK == values_PK[0]).all(axis=0)
    lo_K = np.where(constant_K, means_K - (means_K == 1) * _unseen(n), lo_K)
    hi_K = np.where(constant_K, means_K + np.isin(means_K, (0, -1)) * _unseen(n), hi_K)
    return means_K, lo_K, hi_K


@functools.lru_cache
def _unseen(n: int) -> float:
    z2 = special.ndtri((1 + LEVEL) / 2) ** 2
    return float(z2 / (n + z2))


def mean_interval(values_P: np.ndarray, resamples: int = RESAMPLES) -> Interval:
    """The mean over problems with its bootstrap interval; no problems give an empty interval."""
    values_P = np.asarray(values_P, dtype=float)
    if not len(values_P):
        return NOTHING
    if (values_P == values_P[0]).all():
        resamples = 1
    mean, lo, hi = bootstrap_means(values_P[:, None], resamples)
    return _interval(mean[0], lo[0], hi[0], len(values_P))


def paired_interval(a_P: np.ndarray, b_P: np.ndarray, resamples: int = RESAMPLES) -> Interval:
    """mean(a) - mean(b) over the same problems in the same order, problems resampled as pairs.

    When no pair differs the interval is the Wilson bound of a difference never seen, both ways.
    """
    difference_P = _differences(a_P, b_P)
    if len(difference_P) and not difference_P.any():
        reach = _unseen(len(difference_P))
        return Interval(0.0, -reach, reach, len(difference_P))
    return mean_interval(difference_P, resamples)


def _differences(a_P: np.ndarray, b_P: np.ndarray) -> np.ndarray:
    a_P, b_P = np.asarray(a_P, dtype=float), np.asarray(b_P, dtype=float)
    if a_P.shape != b_P.shape:
        raise RolewiseError(f"paired comparison of {len(a_P)} with {len(b_P)} problems")
    return a_P - b_P


def function_interval(
    columns_PK: np.ndarray,
    function: Callable[[np.ndarray], np.ndarray],
    resamples: int = RESAMPLES,
) -> Interval:
    """A function of column means with its bootstrap interval over problems.

    `function` maps means (..., K) to (...), NaN where undefined. An undefined estimate has no
    interval; n counts the problems.
    """
    columns_PK = np.asarray(columns_PK, dtype=float)
    n = len(columns_PK)
    if n == 0:
        return NOTHING
    value = float(function(columns_PK.mean(axis=0)))
    if np.isnan(value):
        return Interval(None, None, None, n)
    estimates_R = function(resample_counts(n, resamples) @ columns_PK / n)
    lo, hi = percentile_interval(np.asarray(estimates_R)[:, None], n)
    return _interval(value, lo[0], hi[0], n)


def ratio(means: np.ndarray) -> np.ndarray:
    """First column over second, NaN where the second is 0; for `function_interval`."""
    means = np.asarray(means, dtype=float)
    top, bottom = means[..., 0], means[..., 1]
    return np.divide(top, bottom, out=np.full(np.shape(top), np.nan), where=bottom != 0)


def ratio_interval(
    numerator_P: np.ndarray, denominator_P: np.ndarray, resamples: int = RESAMPLES
) -> Interval:
    """sum(numerator) / sum(denominator) with problems resampled; n counts problems that contribute.

    A rate that is 0 or 1 in every problem gets the Wilson bound of `bootstrap_means`; one problem
    that contributes has no interval.
    """
    columns_PK = np.column_stack([numerator_P, denominator_P]).astype(float)
    n = int((columns_PK[:, 1] != 0).sum())
    never = (columns_PK[:, 0] == 0).all()
    if n and (never or (columns_PK[:, 0] == columns_PK[:, 1]).all()):
        return mean_interval(np.full(n, 0.0 if never else 1.0), resamples)
    found = replace(function_interval(columns_PK, ratio, resamples), n=n)
    return replace(found, lo=None, hi=None) if n < 2 else found


def _interval(value: float, lo: float, hi: float, n: int) -> Interval:
    if n < 2 or np.isnan(lo):
        return Interval(float(value), None, None, n)
    return Interval(float(value), float(lo), float(hi), n)


def seed_interval(differences: np.ndarray) -> Interval | None:
    """Mean of paired differences of few units (seeds, cells) with its t interval; None below three.

    A bootstrap of so few clusters has no coverage, hence Student's t; None means not decidable.
    """
    differences = np.asarray(differences, dtype=float)
    n = len(differences)
    if n < FEWEST_UNITS:
        return None
    reach = special.stdtrit(n - 1, (1 + LEVEL) / 2) * differences.std(ddof=1) / np.sqrt(n)
    mean = float(differences.mean())
    return Interval(mean, float(mean - reach), float(mean + reach), n)


def paired_p(a_P: np.ndarray, b_P: np.ndarray) -> float:
    """Two-sided p-value of equal means on the same problems.

    Exact McNemar (sign test on discordant pairs) for outcomes of one sample, else the paired t test.
    Equal differences have no spread for a t test and get the sign test; so a single problem gives 1,
    as do pairs that do not differ at all.
    """
    difference_P = _differences(a_P, b_P)
    if not difference_P.any():
        return 1.0
    if np.isin(difference_P, (-1, 0, 1)).all() or (difference_P == difference_P[0]).all():
        return sign_p(int((difference_P > 0).sum()), int((difference_P < 0).sum()))
    return float(scipy.stats.ttest_1samp(difference_P, 0).pvalue)


def sign_p(wins: int, losses: int) -> float:
    """Two-sided sign test: p-value of `wins` against `losses` under even odds; 1 without any."""
    return float(scipy.stats.binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0


def share_interval(successes: int, n: int) -> Interval:
    """A share of `n` independent units with its Wilson interval."""
    if n == 0:
        return NOTHING
    found = scipy.stats.binomtest(successes, n).proportion_ci(LEVEL, method="wilson")
    return Interval(successes / n, float(found.low), float(found.high), n)


def pass_at_k(correct_P: np.ndarray, samples_P: np.ndarray, k: int) -> np.ndarray:
    """Unbiased pass@k per problem, 1 - C(n-c, k) / C(n, k), from c correct of n samples (Chen 2021).

    As a product over the c factors 1 - k / i, which no number of samples overflows. k above the
    samples of a problem is an error: it cannot be estimated.
    """
    correct_P, samples_P = np.asarray(correct_P), np.asarray(samples_P)
    if k < 1 or (samples_P < k).any():
        raise RolewiseError(
            f"pass@{k} needs at least {max(k, 1)} samples of every problem, found "
            f"{min(samples_P.tolist(), default=0)}; raise evaluation.samples"
        )
    pairs = zip(correct_P.tolist(), samples_P.tolist(), strict=True)
    return np.array([1 - np.prod(1 - k / np.arange(n - c + 1, n + 1)) for c, n in pairs])


def holm(p_values: np.ndarray) -> np.ndarray:
    """Holm's adjusted p-values (family-wise error), in the order given."""
    p_values = np.asarray(p_values, dtype=float)
    order = np.argsort(p_values, kind="stable")
    m = len(p_values)
    adjusted = np.maximum.accumulate(p_values[order] * (m - np.arange(m)))
    result = np.empty(m)
    result[order] = np.minimum(adjusted, 1)
    return result
