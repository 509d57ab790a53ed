"""The worker: imports the standard library once, locks itself in, forks one process per test.

Started as `python -s -S -P -B -c ...`; it reads no program and no input, its children do.
"""

from __future__ import annotations

import _sitebuiltins
import array
import builtins
import contextlib
import gc
import importlib
import importlib.machinery
import importlib.util
import json
import os
import select
import signal
import socket
import struct
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from rolewise.sandbox import candidate, kernel, landlock, namespaces, seccomp
from rolewise.sandbox.process_table import ProcessTable

_STACK = 64 << 20
_REPORT = struct.Struct("=id")  # wait status, CPU seconds
_TICK = 0.05
# What short programs import. Every further library makes every fork dearer.
_PRELOADED = [
    "abc", "array", "atexit", "bisect", "cmath", "collections", "collections.abc", "contextlib",
    "copy", "dataclasses", "datetime", "decimal", "encodings.utf_8_sig", "enum", "errno",
    "fractions", "functools", "heapq", "inspect", "io", "itertools", "json", "math", "numbers",
    "operator", "os", "queue", "random", "re", "resource", "select", "signal", "socket", "stat",
    "statistics", "string", "struct", "subprocess", "sys", "textwrap", "threading", "time",
    "traceback", "types", "typing",
]  # fmt: skip
# What programs of tier 3, which cannot open a file, find imported besides.
_PRELOADED_WITHOUT_FILES = [
    "argparse", "asyncio", "base64", "binascii", "calendar", "codecs", "concurrent.futures",
    "csv", "difflib", "gc", "getpass", "glob", "graphlib", "hashlib", "html", "importlib",
    "keyword", "linecache", "locale", "logging", "mmap", "pathlib", "pickle", "platform", "pprint",
    "sched", "secrets", "selectors", "shutil", "tempfile", "timeit", "tokenize", "unicodedata",
    "uuid", "warnings", "weakref", "zlib",
]  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """What the judge asks of a worker; `uid` None means: stay the present user."""

    tier: int
    uid: int | None
    packages: tuple[str, ...]
    socket: int
    judge: int


@dataclass
class Worker:
    """The state of a running worker."""

    plan: Plan
    lock: candidate.Lock
    channel: socket.socket
    table: ProcessTable | None
    lost: list[str]


class _AllowedPackages(importlib.machinery.PathFinder):
    """Finds the few installed packages that programs may import, and nothing beside them."""

    folders: ClassVar[dict[str, str]] = {}

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        if path is not None or fullname not in cls.folders:
            return None
        folder = cls.folders[fullname]
        return importlib.util.spec_from_file_location(
            fullname, f"{folder}/__init__.py", submodule_search_locations=[folder]
        )


def main() -> None:
    """Entry point of the worker process; argv[2] is the plan as JSON."""
    raw = json.loads(sys.argv[2])
    plan = Plan(**(raw | {"packages": tuple(raw["packages"])}))
    channel = socket.socket(fileno=plan.socket)
    try:
        worker = _prepare(plan, channel)
    except OSError as error:
        channel.send(json.dumps({"error": str(error)}).encode())
        return
    channel.send(json.dumps({"lost": worker.lost}).encode())
    while True:
        events = dict(_wait([channel.fileno(), plan.judge], None))
        if plan.judge in events:
            return
        request, fds = _receive(channel)
        if request is None:
            return
        reply = _run_test(worker, request, fds)
        channel.send(json.dumps(reply).encode())


def _prepare(plan: Plan, channel: socket.socket) -> Worker:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    extra = _PRELOADED_WITHOUT_FILES if plan.tier == 3 else []
    for name in _PRELOADED + extra:
        importlib.import_module(name)
    # `-S` leaves these out, programs count on them.
    builtins.exit = _sitebuiltins.Quitter("exit", "Ctrl-D (i.e. EOF)")
    builtins.quit = _sitebuiltins.Quitter("quit", "Ctrl-D (i.e. EOF)")
    socket.if_nameindex = list  # asks the kernel by netlink, which is closed; there are none
    place = namespaces.package_place if plan.tier == 1 else str
    _AllowedPackages.folders = {os.path.basename(p): place(p) for p in plan.packages}
    sys.meta_path.append(_AllowedPackages)
    readable = namespaces.readable_files(plan.packages)
    ruleset, process_table, capabilities, process_limit = None, None, 0, 64
    lost: list[str] = []
    if plan.tier == 1:
        namespaces.enter(readable, plan.uid)
        process_table = namespaces.open_process_table()
        namespaces.change_root()
    else:
        with contextlib.suppress(OSError):
            process_table = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)
        try:
            capabilities, process_limit = _become_user(plan)
        except OSError as error:
            process_limit = None
            lost.append(f"a user of its own ({error.strerror})")
        if plan.tier == 2:
            ruleset = landlock.create_ruleset()
            _allow_reading(ruleset, readable)
        if process_limit is None:
            lost.append("a limit on threads")
    # Child processes are allowed where all of them can be watched and ended.
    forks = plan.tier == 1 and process_table is not None
    if plan.tier == 1 and not forks:
        lost.append("child processes")
    if process_table is None:
        lost.append("telling a sleeping program from a busy machine")
    kernel.drop_bounding_set()
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    filter_ = seccomp.compile_filter(kernel.TABLE, plan.tier, forks)
    lock = candidate.Lock(plan.tier, filter_, ruleset, process_limit, capabilities)
    gc.collect()
    gc.freeze()
    table = None if process_table is None else ProcessTable(process_table)
    return Worker(plan, lock, channel, table, lost)


def _become_user(plan: Plan) -> tuple[int, int | None]:
    """Tiers 2 and 3: drop to the worker's user; capabilities to keep and the process limit."""
    if plan.uid is None:
        return 0, None  # the limit would count every process of the user, not the program's alone
    kernel.prctl(kernel.PR_SET_KEEPCAPS, 1)
    namespaces.drop_user(plan.uid)
    # The interpreter may live in a folder that only root can enter; Landlock decides what may
    # be read, so the right to pass folders gives nothing else.
    kept = 1 << kernel.CAP_DAC_READ_SEARCH if plan.tier == 2 else 0
    kernel.set_capabilities(kept)
    return kept, 64


def _allow_reading(ruleset: int, readable: namespaces.Readable) -> None:
    read = landlock.READ_FILE | landlock.READ_DIR
    stdlib = os.path.dirname(os.__file__)
    hidden = {*readable.hidden, *(os.path.realpath(path) for path in readable.hidden)}
    inside = [entry.path for entry in os.scandir(stdlib) if entry.path not in hidden]
    libraries = [e.path for e in os.scandir(f"{sys.base_prefix}/lib") if ".so" in e.name]
    system = [path for path in readable.trees if not path.startswith(sys.base_prefix)]
    if sys.base_prefix == "/usr":
        system = [e.path for path in system for e in os.scandir(path) if "python" not in e.name]
    landlock.allow(ruleset, [*inside, *libraries, *system, *readable.packages], read)
    landlock.allow(ruleset, [stdlib], landlock.READ_DIR)
    landlock.allow(ruleset, ["/etc/ld.so.cache", "/dev/urandom", "/dev/random"], read)
    landlock.allow(ruleset, ["/dev/null"], read | landlock.WRITE_FILE)


def _receive(channel: socket.socket) -> tuple[dict | None, list[int]]:
    fds = array.array("i")
    message, ancillary, _, _ = channel.recvmsg(1 << 16, socket.CMSG_SPACE(8 * fds.itemsize))
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
    return (json.loads(message) if message else None), list(fds)


def _wait(fds: list[int], seconds: float | None) -> list[tuple[int, int]]:
    poller = select.poll()
    for fd in fds:
        poller.register(fd, select.POLLIN)
    return poller.poll(None if seconds is None else max(0, seconds) * 1000)


def _run_test(worker: Worker, request: dict, fds: list[int]) -> dict:
    report_read, report_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    ready_read, ready_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    began = time.monotonic()
    if worker.plan.tier == 1:
        pid = kernel.fork_into(namespaces.TEST_NAMESPACES)
        if pid == 0:
            _end_with(_init, worker, request, fds, ready_write, report_write)
    else:
        pid = os.fork()
        if pid == 0:
            _end_with(_candidate, worker, request, fds, ready_write)
    for fd in [*fds, report_write, ready_write]:
        os.close(fd)
    killed, starved, cpu = _watch(worker, pid, request["limits"], began)
    _, status, usage = os.wait4(pid, 0)
    ready, report = _drain(ready_read), _drain(report_read)
    if worker.plan.tier > 1:
        cpu = max(cpu, usage.ru_utime + usage.ru_stime)
    elif report:
        status, seconds = _REPORT.unpack(report)
        cpu = max(cpu, seconds)
    reported = worker.plan.tier > 1 or bool(report) or killed is not None
    return {
        "ran": reported and ready.startswith(b"r"),
        "detail": ready[:500].decode("utf-8", "replace"),
        "status": status,
        "killed": killed,
        "starved": starved,
        "cpu": cpu,
        "wall": time.monotonic() - began,
    }


def _drain(fd: int) -> bytes:
    try:
        return os.read(fd, 4096)
    except BlockingIOError:
        return b""
    finally:
        os.close(fd)


def _end_with(function, worker: Worker, request: dict, fds: list[int], ready: int, *more) -> None:
    """Run `function` in this child; never return into the worker's loop."""
    try:
        function(worker, request, fds, ready, *more)
    except BaseException:
        with contextlib.suppress(OSError):
            os.write(ready, b"!" + traceback.format_exc()[-400:].encode())
    finally:
        os._exit(97)


def _candidate(worker: Worker, request: dict, fds: list[int], ready: int) -> None:
    run = candidate.run_calls if request["calls"] else candidate.run_program
    run(worker.lock, request["limits"], fds, ready)


def _init(worker: Worker, request: dict, fds: list[int], ready: int, report: int) -> None:
    """Process 1 of the test's namespace: when it ends, the kernel ends everything inside."""
    os.setsid()
    namespaces.mount_scratch(16, fds[0])
    if _landlock_available():
        ruleset = landlock.create_ruleset()
        landlock.allow(ruleset, ["/"], landlock.READ_FILE | landlock.READ_DIR | landlock.EXECUTE)
        landlock.allow(ruleset, ["/dev/null"], landlock.READ_FILE | landlock.WRITE_FILE)
        worker.lock = candidate.Lock(**(vars(worker.lock) | {"ruleset": ruleset}))
    child = os.fork()
    if child == 0:
        _end_with(_candidate, worker, request, fds, ready)
    while True:
        pid, status, usage = os.wait4(-1, 0)
        if pid == child:
            break
    os.write(report, _REPORT.pack(status, usage.ru_utime + usage.ru_stime))
    os._exit(0)


def _landlock_available() -> bool:
    try:
        return landlock.abi() > 0
    except OSError:
        return False


def _watch(worker: Worker, pid: int, limits: dict, began: float) -> tuple[str | None, bool, float]:
    """Wait for the test to end, or end it at a limit.

    Returns what it was killed for (cpu, memory, wall or None), whether the machine rather than the
    program may be to blame, and the CPU time seen. Time spent waiting for a core does not count
    where the process table tells it; a busy machine then only delays the verdict.
    """
    table = worker.table
    allowance = 2 * limits["cpu_s"] + 2 if table is None else limits["cpu_s"] + 1
    pidfd = os.pidfd_open(pid)
    killed, starved, cpu = None, False, 0.0
    seen: dict[str, tuple[int, int]] = {}
    try:
        while killed is None:
            ended = dict(_wait([pidfd, worker.plan.judge], _TICK))
            if worker.plan.judge in ended:
                os.kill(pid, signal.SIGKILL)
                os._exit(0)
            if pidfd in ended:
                break
            waited = memory = 0.0
            if table is not None:
                # In its own namespace everything but this process and the test's init is the test.
                running = table.others(pid) if worker.plan.tier == 1 else [pid]
                cpu, waited = table.times(running, seen)
                memory = table.memory_beyond_own(running)
            elapsed = time.monotonic() - began
            if cpu >= limits["cpu_s"]:
                killed = "cpu"
            elif memory > limits["memory_mb"] + 256:
                killed = "memory"
            elif elapsed - cpu - waited > allowance:
                killed, starved = "wall", table is None
            elif elapsed > 10 * allowance:
                killed, starved = "wall", True
        if killed is not None:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    finally:
        os.close(pidfd)
    return killed, starved, cpu
