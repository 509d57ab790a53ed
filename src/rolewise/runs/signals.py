"""Stopping a run politely: a signal or the wall limit asks, the loop saves and leaves."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from types import FrameType

from rolewise.errors import Interrupted

WALL_LIMIT_EXIT = 75
# The terminal and Snakemake may both deliver one Ctrl-C; only a later signal means impatience.
_SAME_REQUEST_S = 1.0


class Stop:
    """Whether, and why, the run was asked to stop; calling it gives the answer."""

    def __init__(self, max_wall: float | None = None):
        self._started = time.monotonic()
        self._max_wall = max_wall
        self._signal: signal.Signals | None = None
        self._since = 0.0

    def __call__(self) -> bool:
        """True once a signal arrived or `max_wall` seconds have passed."""
        return self._signal is not None or self._over_limit()

    def check(self, saved: str) -> None:
        """Raise Interrupted (exit code 143, 130 or 75) if asked to stop; `saved` says what is safe."""
        if self._signal is not None:
            reason, code = f"stopped by {self._signal.name}", 128 + self._signal
        elif self._over_limit():
            reason, code = f"wall limit of {self._max_wall:g} s reached", WALL_LIMIT_EXIT
        else:
            return
        raise Interrupted(f"{reason}; {saved}; rerun the same command to continue", code)

    def _over_limit(self) -> bool:
        return self._max_wall is not None and time.monotonic() - self._started >= self._max_wall

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._signal is None:
            self._signal, self._since = signal.Signals(number), now
        elif now - self._since > _SAME_REQUEST_S:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)


@contextlib.contextmanager
def stop_requested(max_wall: float | None = None) -> Iterator[Stop]:
    """Turn SIGTERM and SIGINT into a request that the loop polls; a second, later signal kills.

    `max_wall` is in seconds from here. The previous handlers come back on leaving.
    """
    stop = Stop(max_wall)
    before = {n: signal.signal(n, stop._handle) for n in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
