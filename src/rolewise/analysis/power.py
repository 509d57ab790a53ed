"""What a comparison of two accuracies on the same problems could have found, by the test in use. Pure."""

from __future__ import annotations

import functools
import math

import numpy as np
import scipy

from rolewise.config import Config

DISCORDANT = 0.2
ALPHA, POWER = 0.05, 0.8


@functools.lru_cache
def detectable_difference(n: int) -> float | None:
    """Smallest difference of two accuracies on `n` problems that exact McNemar finds with `POWER`.

    `DISCORDANT` is the assumed share of problems that only one of the two solves; a larger
    difference takes as many. Never below the smallest difference that the exact test can call one,
    six discordant pairs at 5 %. To a thousandth, rounded up; None if even a difference of 1 is missed.
    """
    low, high = 0, 1000
    if mcnemar_power(n, 1.0, DISCORDANT, ALPHA) < POWER:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        found = mcnemar_power(n, middle / 1000, DISCORDANT, ALPHA) >= POWER
        low, high = (low, middle) if found else (middle, high)
    fewest = math.ceil(1 - math.log2(ALPHA))
    return max(high / 1000, fewest / n)


def mcnemar_power(n: int, difference: float, discordant: float, alpha: float) -> float:
    """Chance that the two-sided exact McNemar test of `n` pairs rejects, for a true `difference`.

    Discordant pairs are binomial, each a win with the odds that give the difference.
    """
    binom = scipy.stats.binom
    share = max(discordant, difference)
    pairs = np.arange(n + 1)
    # Rejected: at most `last` wins or losses of so many pairs, the tail below alpha / 2.
    last = binom.ppf(alpha / 2, pairs, 0.5)
    last -= binom.cdf(last, pairs, 0.5) > alpha / 2
    wins = (1 + difference / share) / 2
    rejected = binom.cdf(last, pairs, wins) + binom.cdf(last, pairs, 1 - wins)
    return float(binom.pmf(pairs, n, share) @ rejected)


def power_note(config: Config, n: int) -> str:
    """A sentence on what one comparison of `n` problems finds; empty unless the exact test is in use."""
    if len(config.seeds) > 1 or config.evaluation.samples > 1 or n < 1:
        return ""
    found = detectable_difference(n)
    reach = "no difference is" if found is None else f"a difference of {100 * found:.1f} points is"
    return (
        f"With {n} problems {reach} found with {100 * POWER:.0f} % power: one exact McNemar test at"
        f" {100 * ALPHA:.0f} %, without Holm's correction, if {100 * DISCORDANT:.0f} % of the problems"
        " (or as many as the difference takes) are solved by only one of the two."
    )
