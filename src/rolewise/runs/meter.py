"""What a run costs over all its attempts, including those that were killed."""

from __future__ import annotations

import os
import time

from rolewise.runs.state import StateDir

LOG = "attempts"


class Meter:
    """Counts this attempt; `attempt` is its number, from 1. One meter per process and state."""

    def __init__(self, state: StateDir, gpus: int = 0):
        self._state = state
        self._gpus = gpus
        self._started = time.monotonic()
        self.attempt = 1 + max((row["attempt"] for row in state.rows(LOG)), default=0)
        self.beat()

    def beat(self) -> None:
        """Record the seconds spent so far; call it at every step, a killed attempt counts up to here."""
        wall = time.monotonic() - self._started
        row = {"attempt": self.attempt, "wall_s": wall, "cpu_s": cpu_seconds()}
        self._state.append(LOG, [row | {"gpu_s": wall * self._gpus}])

    def totals(self) -> dict[str, float]:
        """Attempts, wall, CPU and GPU seconds over all attempts, for the manifest."""
        self.beat()
        last = {row["attempt"]: row for row in self._state.rows(LOG)}
        sums = {k: sum(row[k] for row in last.values()) for k in ("wall_s", "cpu_s", "gpu_s")}
        return {"attempts": len(last), **{k: round(v, 3) for k, v in sums.items()}}


def cpu_seconds() -> float:
    """CPU seconds of this process and its finished children."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system
