"""Which isolation this machine offers: found by trying it and attacking it, not by reading versions."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass

from rolewise.errors import SandboxError
from rolewise.sandbox import landlock
from rolewise.sandbox.pool import Pool, single
from rolewise.sandbox.selftest import ATTACKS, bait, job_of

_ADVICE = (
    "allow user namespaces (Ubuntu: an AppArmor profile with `userns` for the interpreter; a "
    "container: CAP_SYS_ADMIN or the default seccomp profile), use a Linux kernel 5.13 or newer "
    "for Landlock, or run in a Linux virtual machine"
)
_LOST = {
    1: (),
    2: ("scratch files", "child processes", "secrecy of which paths exist"),
    3: ("scratch files", "child processes", "secrecy of which paths exist", "late imports"),
    4: ("everything",),
}


@dataclass(frozen=True)
class TierReport:
    """The strongest tier that works here (4: none).

    `lost` says what it lacks against tier 1, `self_test` how many attacks it withstood, `refused`
    why each stronger tier is not used.
    """

    tier: int
    lost: tuple[str, ...]
    self_test: str
    refused: tuple[str, ...]

    @property
    def summary(self) -> str:
        """One line for `doctor` and manifests."""
        if self.tier == 4:
            return f"no sandbox: {'; '.join(self.refused)}"
        lost = f"; lost: {', '.join(self.lost)}" if self.lost else ""
        refused = f"; not available: {'; '.join(self.refused)}" if self.refused else ""
        return f"sandbox tier {self.tier} of 3, self-test {self.self_test}{lost}{refused}"


@functools.cache
def probe() -> TierReport:
    """Try the tiers, strongest first; once per process, in about half a second."""
    refused = []
    for tier in (1, 2, 3):
        try:
            return _try_tier(tier, tuple(refused))
        except (SandboxError, OSError) as error:
            refused.append(str(error))
    return TierReport(4, _LOST[4], f"0/{len(ATTACKS)}", tuple(refused))


def _try_tier(tier: int, refused: tuple[str, ...]) -> TierReport:
    pool = Pool(tier, 1)
    try:
        with bait() as values:
            outcomes = pool.run([single(job_of(attack, values)) for attack in ATTACKS])
        lost = (*_LOST[tier], *pool.lost)
    finally:
        pool.close()
    failed = [a.name for a, o in zip(ATTACKS, outcomes, strict=True) if not a.held(o)]
    if failed:
        raise SandboxError(f"sandbox tier {tier} did not withstand: {', '.join(failed)}")
    if tier == 1 and not _has_landlock():
        lost = (*lost, "Landlock as a second layer")
    return TierReport(tier, lost, f"{len(ATTACKS)}/{len(ATTACKS)}", refused)


def _has_landlock() -> bool:
    try:
        return landlock.abi() > 0
    except OSError:
        return False


def require(min_tier: int) -> TierReport:
    """`probe()`, or SandboxError where it is weaker than `sandbox.min_tier` accepts."""
    report = probe()
    if report.tier <= min_tier:
        return report
    reasons = "; ".join(report.refused)
    accept = (
        f", or accept less isolation with `sandbox.min_tier: {report.tier}`"
        if report.tier < 4
        else ""
    )
    raise SandboxError(
        f"generated programs need sandbox tier {min_tier}, this machine ({os.uname().sysname} "
        f"{os.uname().release}) offers {'none' if report.tier == 4 else report.tier}: {reasons}. "
        f"What to do: {_ADVICE}{accept}"
    )
