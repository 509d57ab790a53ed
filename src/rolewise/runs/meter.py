"""What a run costs over all its attempts, including those that were killed."""

from __future__ import annotations

import os
import time

from rolewise.runs.provenance import code_fingerprint
from rolewise.runs.state import StateDir

LOG = "attempts"


class Meter:
    """Counts this attempt; `attempt` is its number, from 1. One meter per process and state."""

    def __init__(self, state: StateDir, gpus: int = 0):
        self._state = state
        self._gpus = gpus
        self._started = time.monotonic()
        self.attempt = 1 + max((row["attempt"] for row in state.rows(LOG)), default=0)

    def beat(self) -> None:
        """Record the seconds spent so far; call it at every step, a killed attempt counts up to here."""
        wall = time.monotonic() - self._started
        row = {"attempt": self.attempt, "wall_s": wall, "cpu_s": cpu_seconds()}
        row |= {"gpu_s": wall * self._gpus, "code": code_fingerprint()}
        self._state.append(LOG, [row])

    def code(self) -> list[str]:
        """Fingerprints of the code behind the run, in order; more than one if it changed midway.

        Rewriting the manifest of a finished run does not count: no beat, no code.
        """
        return list(dict.fromkeys(row["code"] for row in self._state.rows(LOG)))

    def totals(self) -> dict[str, float]:
        """Attempts, wall, CPU and GPU seconds over all attempts that did a step, for the manifest."""
        last = {row["attempt"]: row for row in self._state.rows(LOG)}
        sums = {k: sum(row[k] for row in last.values()) for k in ("wall_s", "cpu_s", "gpu_s")}
        return {"attempts": len(last), **{k: round(v, 3) for k, v in sums.items()}}


def cpu_seconds() -> float:
    """CPU seconds of this process and its finished children."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system
