"""Warm workers and the one loop that feeds them; only this side compares and decides."""

from __future__ import annotations

import array
import importlib.util
import json
import logging
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypeVar

import rolewise
from rolewise.config import SandboxLimits
from rolewise.errors import SandboxError
from rolewise.sandbox.job import STDERR_KEPT, Job, Outcome, classify, genuine_results
from rolewise.sandbox.namespaces import SCRATCH
from rolewise.sandbox.zygote import Plan

log = logging.getLogger(__name__)

T = TypeVar("T")
Steps = Generator[Job, Outcome, T]

_START_S = 20.0
_GRACE_S = 5.0
_TESTS_PER_WORKER = 5000
_FIRST_UID, _UIDS = 61100, 4000
_BOOTSTRAP = (
    "import sys; sys.path.insert(0, sys.argv[1]); from rolewise.sandbox.zygote import main; "
    "del sys.path[0]; main()"
)
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": SCRATCH,
    "TMPDIR": SCRATCH,
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "2",
}
# The stack limit has to be in place before the interpreter starts.
_LAUNCH = 'ulimit -S -s 65536 2>/dev/null; exec "$@"'


def allowed_packages() -> tuple[str, ...]:
    """Folders of the installed packages that programs may import: numpy and its libraries."""
    spec = importlib.util.find_spec("numpy")
    if spec is None or spec.origin is None:
        return ()
    folder = Path(spec.origin).parent
    return tuple(str(p) for p in (folder, folder.with_name("numpy.libs")) if p.is_dir())


class Worker:
    """One worker process, idle or with one job; `fileno` becomes readable when it has answered."""

    def __init__(self, tier: int, slot: int):
        self.tier, self.slot = tier, slot
        self.served = 0
        self.job: Job | None = None
        self._files: list[int] = []
        self._tokens: list[str] = []
        self._start()

    def _start(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        judge = os.pidfd_open(os.getpid())
        uid = _FIRST_UID + (os.getpid() * 8 + self.slot) % _UIDS if os.geteuid() == 0 else None
        plan = Plan(self.tier, uid, allowed_packages(), theirs.fileno(), judge)
        source = str(Path(rolewise.__file__).parent.parent)
        python = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
        arguments = [python, "-s", "-S", "-P", "-B", "-c", _BOOTSTRAP]
        try:
            self.process = subprocess.Popen(
                ["/bin/sh", "-c", _LAUNCH, "sh", *arguments, source, json.dumps(asdict(plan))],
                env=_ENVIRONMENT,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), judge),
                start_new_session=True,
            )
        finally:
            theirs.close()
            os.close(judge)
        self.channel = ours

    def fileno(self) -> int:
        """The channel's descriptor."""
        return self.channel.fileno()

    def wait_until_ready(self) -> dict | None:
        """The worker's greeting: `lost`, or `error` where the tier does not work; None if it died."""
        ready, _, _ = select.select([self], [], [], _START_S)
        return self._message() if ready else None

    def _message(self) -> dict | None:
        try:
            data = self.channel.recv(1 << 16)
        except ConnectionError:
            return None
        return json.loads(data) if data else None

    def send(self, job: Job) -> None:
        """Start a job; ConnectionError when the worker is gone."""
        calls = job.fn_name is not None
        contents = [job.stdin, b"", b"", job.program]
        # New for each call, so that a program can forge no result of the calls to come.
        self._tokens = [secrets.token_hex(16) for _ in job.calls]
        contents += [job.call_payload(self._tokens), b""] if calls else []
        self._files = [_memory_file(content) for content in contents]
        self.job, self.deadline = job, time.monotonic() + 10 * (2 * job.limits.cpu_s + 2) + _GRACE_S
        request = json.dumps({"limits": job.limits.model_dump(), "calls": calls}).encode()
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", self._files))
        self.channel.sendmsg([request], [rights])

    def receive(self) -> Outcome:
        """The outcome of the job; infra when the worker died."""
        assert self.job is not None
        limits = self.job.limits
        reply = self._message()
        if reply is None:
            outcome = Outcome("infra", detail="the worker process died")
        else:
            cap = limits.output_kb * 1024
            stdout, stderr = os.pread(self._files[1], cap + 1, 0), _tail(self._files[2])
            written = os.pread(self._files[5], 64 << 20, 0) if len(self._files) > 5 else b""
            status = classify(reply, limits, stdout, stderr)
            ending = reply["status"] & 0x7F
            outcome = Outcome(
                status,
                stdout,
                stderr,
                genuine_results(written, self._tokens),
                cpu=reply["cpu"],
                wall=reply["wall"],
                signal=ending,
                violation=ending == signal.SIGSYS,
                doubtful=_is_doubtful(reply, limits),
                detail=reply["detail"],
            )
        self.served += 1
        self.forget()
        return outcome

    def forget(self) -> None:
        """Close the job's files."""
        for fd in self._files:
            os.close(fd)
        self._files, self.job = [], None

    def stop(self) -> None:
        """End the worker and everything inside it; once is enough."""
        if self.channel.fileno() < 0:
            return
        self.forget()
        self.process.kill()
        self.process.wait()
        # Its namespace dies with it, a moment later; the channel closes when that has happened.
        select.select([self.channel], [], [], _GRACE_S)
        self.channel.close()


def _is_doubtful(reply: dict, limits: SandboxLimits) -> bool:
    if reply["killed"] is None:
        return reply["status"] == signal.SIGKILL and reply["cpu"] < limits.cpu_s
    return reply["starved"] and reply["cpu"] < limits.cpu_s / 2


def _memory_file(content: bytes) -> int:
    fd = os.memfd_create("job", os.MFD_CLOEXEC)
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _tail(fd: int) -> bytes:
    size = os.fstat(fd).st_size
    return os.pread(fd, STDERR_KEPT, max(0, size - STDERR_KEPT))


@dataclass
class Counters:
    """What a run's metadata reports about the sandbox."""

    tests: int = 0
    violations: int = 0
    infra: int = 0
    repeated: int = 0


@dataclass
class _Task:
    index: int
    steps: Steps
    job: Job
    failures: int = 0
    repeated: bool = False


@dataclass
class Pool:
    """`size` workers of one tier, started by the first run and replaced when they die or age."""

    tier: int
    size: int
    counters: Counters = field(default_factory=Counters)
    workers: list[Worker] = field(default_factory=list)
    lost: tuple[str, ...] = ()

    def run(self, steps: Sequence[Steps[T]]) -> list[T]:
        """Drive each generator (it yields jobs, gets outcomes) to its value, in order.

        SandboxError when the machine cannot run a program that is known to work.
        """
        results: list = [None] * len(steps)
        waiting: deque[_Task] = deque()
        for index, generator in enumerate(steps):
            self._advance(_Task(index, generator, None), None, results, waiting)
        running: dict[int, _Task] = {}
        finished = False
        try:
            self._fill(min(self.size, len(waiting)))
            while waiting or running:
                self._hand_out(waiting, running)
                self._collect(waiting, running, results)
            finished = True
        finally:
            if not finished:
                self.close()
        return results

    def _fill(self, size: int) -> None:
        fresh = range(len(self.workers), size)
        self.workers += [Worker(self.tier, slot) for slot in fresh]
        for position in fresh:
            self._greet(position)

    def _renew(self, position: int) -> None:
        self.workers[position].stop()
        self.workers[position] = Worker(self.tier, self.workers[position].slot)
        self._greet(position)

    def _greet(self, position: int) -> None:
        """Wait until the worker is ready; one that dies before is started again, twice."""
        for attempt in range(3):
            greeting = self.workers[position].wait_until_ready()
            if greeting is not None and "lost" in greeting:
                self.lost = tuple(greeting["lost"])
                return
            self.workers[position].stop()
            if greeting is not None or attempt == 2:
                reason = greeting["error"] if greeting else "the worker process died at its start"
                raise SandboxError(f"sandbox tier {self.tier} is not available here: {reason}")
            self.workers[position] = Worker(self.tier, self.workers[position].slot)

    def _hand_out(self, waiting: deque[_Task], running: dict[int, _Task]) -> None:
        for position in range(len(self.workers)):
            if not waiting:
                return
            if position in running:
                continue
            if self.workers[position].served >= _TESTS_PER_WORKER:
                self._renew(position)
            task = waiting.popleft()
            running[position] = task
            try:
                self.workers[position].send(task.job)
            except (BrokenPipeError, ConnectionError):
                continue  # `receive` finds the worker dead

    def _collect(self, waiting: deque[_Task], running: dict[int, _Task], results: list) -> None:
        poller = select.poll()
        position_of = {self.workers[p].fileno(): p for p in running}
        for fd in position_of:
            poller.register(fd, select.POLLIN)
        next_deadline = min(self.workers[p].deadline for p in running)
        ready = poller.poll(max(0, next_deadline - time.monotonic()) * 1000 + 1)
        answered = [position_of[fd] for fd, _ in ready]
        late = [p for p in running if self.workers[p].deadline < time.monotonic()]
        for position in dict.fromkeys(answered + late):
            task, worker = running.pop(position), self.workers[position]
            if position in answered:
                outcome = worker.receive()
            else:
                outcome = Outcome("infra", detail="the worker did not answer")
            if outcome.status == "infra":
                self._retry(task, position, outcome, results, waiting)
                continue
            if outcome.doubtful and not task.repeated:
                self.counters.repeated += 1
                task.repeated = True
                waiting.append(task)
                continue
            self.counters.tests += 1
            self.counters.violations += outcome.violation
            self._advance(task, outcome, results, waiting)

    def _retry(
        self, task: _Task, position: int, outcome: Outcome, results: list, waiting: deque[_Task]
    ) -> None:
        """A failure of the machinery is never a verdict: run again; twice in a row is looked into."""
        self.counters.infra += 1
        log.warning("sandbox worker failed (%s); the test is run again", outcome.detail.strip())
        self._renew(position)
        task.failures += 1
        if task.failures < 3:
            waiting.append(task)
            return
        if self._known_program(position).stdout != b"42\n":
            raise SandboxError(
                f"the sandbox fails on this machine ({outcome.detail.strip()}); "
                "`rolewise doctor` shows its state"
            )
        log.warning("a program broke its sandbox worker %d times; it fails", task.failures)
        self._advance(task, Outcome("runtime_error", detail=outcome.detail), results, waiting)

    def _known_program(self, position: int) -> Outcome:
        worker = self.workers[position]
        worker.send(Job(b"print(6 * 7)", SandboxLimits()))
        return worker.receive()

    @staticmethod
    def _advance(
        task: _Task, outcome: Outcome | None, results: list, waiting: deque[_Task]
    ) -> None:
        try:
            job = task.steps.send(outcome)
        except StopIteration as stop:
            results[task.index] = stop.value
            return
        waiting.append(_Task(task.index, task.steps, job))

    def close(self) -> None:
        """Stop all workers; a later run starts new ones."""
        for worker in self.workers:
            worker.stop()
        self.workers = []


def single(job: Job) -> Steps[Outcome]:
    """The steps of one job."""
    outcome = yield job
    return outcome
