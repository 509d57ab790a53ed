"""The process of one test: it locks itself in, then reads and runs the untrusted program."""

from __future__ import annotations

import atexit
import builtins
import gc
import json
import linecache
import math
import os
import random
import re
import resource
import signal
import sys
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rolewise.sandbox import kernel, landlock, seccomp
from rolewise.sandbox.namespaces import SCRATCH

_MEGABYTE = 1 << 20
_DEPTH = 64
_RECURSION_LIMIT = 1000
# What may still write when the interpreter ends: finalizers, files never closed, open generators.
_LATE_WRITER = re.compile(rb"__del__|open|IOBase|Wrapper|Buffered|weakref|yield")

# What the problem sites that state problems as calls import before the program.
_CALL_PREAMBLE = """
from typing import *
import bisect, collections, functools, heapq, itertools, math, operator, random, re, string, sys
from bisect import bisect_left, bisect_right, insort
from collections import Counter, OrderedDict, defaultdict, deque
from copy import copy, deepcopy
from functools import cache, cmp_to_key, lru_cache, partial, reduce
from heapq import heapify, heappop, heappush, heappushpop, heapreplace, nlargest, nsmallest
from itertools import accumulate, chain, combinations, groupby, permutations, product
from math import ceil, comb, floor, gcd, inf, isqrt, lcm, log2, sqrt
from string import ascii_lowercase, ascii_uppercase, digits
"""


@dataclass(frozen=True)
class Lock:
    """How a candidate of this worker locks itself in."""

    tier: int
    filter: bytes
    ruleset: int | None
    process_limit: int | None
    capabilities: int


def run_program(lock: Lock, limits: dict, fds: list[int], ready: int) -> None:
    """Lock in, run the program as `python main.py` would, and end the process.

    `fds`: stdin, stdout, stderr, program.
    """
    *_, program = _lock_in(lock, limits, fds, ready)
    source = _read_all(program)
    sys.argv = ["main.py"]
    linecache.cache["main.py"] = (lambda: source.decode("utf-8", "replace"),)
    late = _LATE_WRITER.search(source) is not None
    os._exit(_exit_code_of(lambda: _run_as_main(source), late))


def _run_as_main(source: bytes) -> None:
    """Run the program in a new `__main__` with the names that the interpreter gives it."""
    main = types.ModuleType("__main__")
    names = {"__builtins__": builtins, "__file__": "main.py", "__cached__": None}
    main.__dict__.update(names, __annotations__={})
    sys.modules["__main__"] = main
    _renew_recursion_limit()
    exec(compile(source, "main.py", "exec", dont_inherit=True), main.__dict__)


def run_calls(lock: Lock, limits: dict, fds: list[int], ready: int) -> None:
    """Lock in, make each call in a fresh run of the program, and end the process.

    `fds`: stdin, stdout, stderr, program, calls, results. One line of results a call: its token,
    then `[value]` as `encode` makes it, or the name of the exception.
    """
    *_, program, calls, results = _lock_in(lock, limits, fds, ready)
    source = _read_all(program)
    task = json.loads(_read_all(calls))
    lines = _result_lines(source, task["fn_name"], task["calls"])
    for _ in _reports(results, task.pop("tokens"), lines):
        pass
    os._exit(0)


def _reports(results: int, tokens: list[str], lines: Iterable[str]) -> Iterator[int]:
    """Writes each line behind its token as it is drawn.

    `map` holds the tokens, no frame that is alive during a call does; and the collector lists no
    frozen object. A program that writes to every descriptor therefore reports nothing.
    """
    write = os.write

    def report(token: str, line: str) -> int:
        return write(results, f"{token}{line}\n".encode())

    reports = map(report, tokens, lines)
    gc.freeze()
    return reports


def _result_lines(source: bytes, fn_name: str, calls: list) -> Iterator[str]:
    """What each call returns or raises, as JSON."""
    preamble = compile(_CALL_PREAMBLE, "preamble.py", "exec")
    to_json = json.JSONEncoder(check_circular=False, separators=(",", ":")).encode
    for arguments in calls:
        random.seed(0)
        _renew_recursion_limit()
        try:
            module = types.ModuleType("solution")
            sys.modules["solution"] = module
            exec(preamble, module.__dict__)
            exec(compile(source, "main.py", "exec", dont_inherit=True), module.__dict__)
            value = _find_function(module.__dict__, fn_name)(*arguments)
            line = to_json([encode(value)])
        except BaseException as error:
            line = to_json(type(error).__name__)
        yield line


def _renew_recursion_limit() -> None:
    """As many frames as from a shell: those below the program, and `exec`, do not count."""
    below, frame = 0, sys._getframe()
    while frame is not None:
        below, frame = below + 1, frame.f_back
    sys.setrecursionlimit(_RECURSION_LIMIT + below)


def _find_function(names: dict[str, Any], name: str) -> Any:
    solution = names.get("Solution")
    if isinstance(solution, type) and (hasattr(solution, name) or name not in names):
        return getattr(solution(), name)
    return names[name]


def encode(value: Any, depth: int = 0) -> Any:
    """A JSON value that stands for `value`; what JSON lacks becomes `{"": kind, "v": content}`.

    Subclasses are reduced to their built-in base, so no method of theirs takes part.
    """
    if value is None or value is True or value is False:
        return value
    if depth > _DEPTH:
        return {"": "deep", "v": None}
    kind = type(value)
    if not issubclass(kind, int) and kind.__module__.partition(".")[0] == "numpy":
        value = value.item() if getattr(value, "ndim", 1) == 0 else value
        kind = type(value)
    if issubclass(kind, int):
        number = int.__add__(value, 0)
        return number if -(1 << 53) < number < 1 << 53 else {"": "int", "v": hex(number)}
    if issubclass(kind, float):
        number = float.__add__(value, 0.0)
        return number if math.isfinite(number) else {"": "float", "v": float.__repr__(number)}
    if issubclass(kind, str):
        return str.__str__(value)
    if issubclass(kind, list | tuple):
        base = list if issubclass(kind, list) else tuple
        items = [encode(item, depth + 1) for item in base.__iter__(value)]
        return items if base is list else {"": "tuple", "v": items}
    if issubclass(kind, dict):
        pairs = dict.items(value)
        return {"": "dict", "v": [[encode(k, depth + 1), encode(v, depth + 1)] for k, v in pairs]}
    return {"": "other", "v": kind.__name__[:80]}


def _exit_code_of(run: Callable[[], None], late: bool) -> int:
    """Run as the interpreter runs a script: hooks, threads, exit handlers, flushing, exit code.

    `late`: finalizers too. They cost the time to free every object, which the kernel does faster.
    """
    code, collect = 0, gc.collect
    try:
        run()
    except SystemExit as stop:
        code = _code_of(stop)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    try:
        threading._shutdown()
        atexit._run_exitfuncs()
    except BaseException:
        sys.excepthook(*sys.exc_info())
    well = _flush()
    if late:
        sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__
        sys.modules.pop("__main__", None)
        collect()
        well = _flush() and well
    return code if well else code or 120


def _flush() -> bool:
    """Whether everything that was printed could be written."""
    well = True
    for name in ("stdout", "__stdout__", "stderr"):
        stream = getattr(sys, name, None)
        try:
            if stream is not None and not getattr(stream, "closed", False):
                stream.flush()
        except BaseException:
            well = False
    return well


def _code_of(stop: SystemExit) -> int:
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code & 0xFF if -(1 << 63) <= stop.code < 1 << 63 else 255
    print(stop.code, file=sys.stderr)
    return 1


def _read_all(fd: int) -> bytes:
    with open(fd, "rb") as handle:
        return handle.read()


def _lock_in(lock: Lock, limits: dict, fds: list[int], ready: int) -> list[int]:
    for target in range(3):
        os.dup2(fds[target], target)
    kept = sorted({*fds[3:], ready})
    if lock.ruleset is not None:
        kept = sorted({*kept, lock.ruleset})
    for low, high in zip([2, *kept], [*kept, 1 << 16], strict=True):
        os.closerange(low + 1, high)
    os.setsid()
    os.chdir(SCRATCH if lock.tier == 1 else "/")
    _renew_interpreter()
    _limit(limits, lock.process_limit)
    if lock.tier > 1:
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    kernel.set_capabilities(lock.capabilities)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    _enter_landlock(lock)
    seccomp.enter(seccomp.for_process(lock.filter, os.getpid()))
    os.write(ready, b"r")
    os.close(ready)
    return fds


def _enter_landlock(lock: Lock) -> None:
    ruleset = lock.ruleset
    if ruleset is None:
        return
    if lock.tier == 1:
        landlock.allow(ruleset, [SCRATCH], landlock.all_rights())
    landlock.enter(ruleset)
    os.close(ruleset)


def _renew_interpreter() -> None:
    """Streams, signals, seeds and defaults as in an interpreter that was just started."""
    sys.stdin = sys.__stdin__ = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.__stderr__ = os.fdopen(
        2, "w", encoding="utf-8", errors="backslashreplace", closefd=False, buffering=1
    )
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.stack_size(8 * _MEGABYTE)
    random.seed(0)


def _limit(limits: dict, process_limit: int | None) -> None:
    seconds = math.ceil(limits["cpu_s"])
    memory = limits["memory_mb"] * _MEGABYTE
    files = max(8 * _MEGABYTE, limits["output_kb"] * 1024 + 4096)
    wanted = {
        resource.RLIMIT_CPU: (seconds, seconds + 1),
        resource.RLIMIT_DATA: memory,
        resource.RLIMIT_AS: memory + 512 * _MEGABYTE,
        resource.RLIMIT_FSIZE: files,
        resource.RLIMIT_NOFILE: 64,
        resource.RLIMIT_CORE: 1,  # 0 still starts a core-dump helper; 1 is too small for both
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_SIGPENDING: 64,
    }
    if process_limit is not None:
        wanted[resource.RLIMIT_NPROC] = process_limit
    for limit, value in wanted.items():
        soft, hard = value if isinstance(value, tuple) else (value, value)
        ceiling = resource.getrlimit(limit)[1]
        if ceiling != resource.RLIM_INFINITY:
            soft, hard = min(soft, ceiling), min(hard, ceiling)
        resource.setrlimit(limit, (soft, hard))
