"""Worker processes that judge pairs of answers and may be killed at any moment without loss."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from rolewise.errors import RolewiseError

TRIES = 3
# CPU time decides, so that a busy machine gives the same verdicts; this is for a stopped worker.
WALL_PER_CPU = 8.0


@dataclass
class _Worker:
    """One process with at most one pair in work."""

    process: subprocess.Popen[bytes]
    job: int = -1
    deadline: float = 0.0
    reply: bytes = b""
    fresh: bool = True


class MathPool:
    """Up to `workers` processes, started when first needed; each pair may cost `cpu_s` CPU seconds.

    A worker that dies from outside gives its pair to a new one; after `TRIES` deaths on one pair
    the verdict is `grader_crash`. RolewiseError if workers cannot even start.
    """

    def __init__(self, workers: int, cpu_s: float):
        self._size = workers
        self._cpu_s = cpu_s
        self._workers: list[_Worker] = []

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[str]:
        """Status of each pair: correct, wrong, grader_timeout or grader_crash."""
        statuses = [""] * len(pairs)
        waiting = deque(range(len(pairs)))
        deaths = [0] * len(pairs)
        while waiting or any(worker.job >= 0 for worker in self._workers):
            self._assign(pairs, waiting)
            for worker, readable in self._wait():
                status = self._collect(worker) if readable else self._give_up(worker)
                if status is None:
                    continue
                job, worker.job, worker.reply, worker.fresh = worker.job, -1, b"", False
                if status == "died":
                    deaths[job] += 1
                    if deaths[job] < TRIES:
                        waiting.appendleft(job)
                        continue
                    status = "grader_crash"
                statuses[job] = status
        return statuses

    def close(self) -> None:
        """End all workers; nothing of them is left."""
        while self._workers:
            self._end(self._workers[0])

    def _assign(self, pairs: Sequence[tuple[str, str]], waiting: deque[int]) -> None:
        idle = [worker for worker in self._workers if worker.job < 0]
        while waiting and (idle or len(self._workers) < self._size):
            worker = idle.pop() if idle else self._start()
            worker.job = waiting.popleft()
            worker.deadline = time.monotonic() + WALL_PER_CPU * self._cpu_s
            try:
                worker.process.stdin.write(json.dumps(pairs[worker.job]).encode() + b"\n")
                worker.process.stdin.flush()
            except BrokenPipeError:
                pass  # it died while idle; its output ends too, and the pair is given out again

    def _wait(self) -> list[tuple[_Worker, bool]]:
        """Busy workers that have something to read (True) or are past their deadline (False)."""
        busy = [worker for worker in self._workers if worker.job >= 0]
        patience = min(worker.deadline for worker in busy) - time.monotonic()
        with selectors.DefaultSelector() as selector:
            for worker in busy:
                selector.register(worker.process.stdout, selectors.EVENT_READ, worker)
            ready = [key.data for key, _ in selector.select(max(patience, 0.0))]
        now = time.monotonic()
        late = [w for w in busy if w not in ready and w.deadline <= now]
        return [(w, True) for w in ready] + [(w, False) for w in late]

    def _collect(self, worker: _Worker) -> str | None:
        """The pair's status, `died`, or None while the reply is incomplete."""
        chunk = os.read(worker.process.stdout.fileno(), 4096)
        if chunk:
            worker.reply += chunk
            return worker.reply.decode().strip() if chunk.endswith(b"\n") else None
        code = self._end(worker, kill=False)
        if code == 1 and worker.fresh:
            raise RolewiseError(
                "the math grader cannot start; run `python -m rolewise.tasks.math_worker 3` to see why"
            )
        return "grader_timeout" if code == -signal.SIGPROF else "died"

    def _give_up(self, worker: _Worker) -> str:
        self._end(worker)
        return "grader_timeout"

    def _start(self) -> _Worker:
        # -P: a sympy.py in the current folder must not be imported. A fixed hash seed: the order
        # of sympy's sets, hence its cost, is the same in every run.
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "rolewise.tasks.math_worker", str(self._cpu_s)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=os.environ | {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"},
        )
        worker = _Worker(process)
        self._workers.append(worker)
        return worker

    def _end(self, worker: _Worker, kill: bool = True) -> int:
        """Forget and reap a worker; without `kill` its end of output says that it is ending."""
        self._workers.remove(worker)
        process = worker.process
        if kill:
            process.kill()
        process.stdout.close()
        with contextlib.suppress(BrokenPipeError):  # the pair that it never read
            process.stdin.close()
        return process.wait()
