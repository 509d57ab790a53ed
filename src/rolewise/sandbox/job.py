"""What is run in the sandbox, and what came of it."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rolewise.config import SandboxLimits

STDERR_KEPT = 4096
_OUT_OF_MEMORY = re.compile(rb"(?:[\w.]+\.)?\w*MemoryError\b")  # numpy has one of its own


@dataclass(frozen=True)
class Job:
    """One process: `program` with `stdin`, or the `calls` (lists of arguments) of `fn_name`."""

    program: bytes
    limits: SandboxLimits
    stdin: bytes = b""
    fn_name: str | None = None
    calls: tuple[Any, ...] = ()

    def call_payload(self, tokens: Sequence[str]) -> bytes:
        """The calls as the candidate reads them, with the token that each result has to carry."""
        task = {"fn_name": self.fn_name, "calls": self.calls, "tokens": list(tokens)}
        return json.dumps(task).encode()


def genuine_results(written: bytes, tokens: Sequence[str]) -> bytes:
    """The lines behind the tokens, in order, up to the first that is missing or not complete."""
    lines, position = [], 0
    for token in tokens:
        found = written.find(token.encode(), position)
        end = written.find(b"\n", found) + 1
        if found < 0 or not end:
            break
        lines.append(written[found + len(token) : end])
        position = end
    return b"".join(lines)


@dataclass(frozen=True)
class Outcome:
    """How the process ended. `stdout` is at most one byte longer than the limit allows.

    `status` is pass (ended well, nothing compared yet), runtime_error, timeout, memory,
    output_limit or infra; `violation` says that it made a forbidden system call, `doubtful` that the
    machine may be to blame for the ending: it was busy, or someone else killed the process.
    """

    status: str
    stdout: bytes = b""
    stderr: bytes = b""
    results: bytes = b""
    cpu: float = 0.0
    wall: float = 0.0
    signal: int = 0
    violation: bool = False
    doubtful: bool = False
    detail: str = ""


def classify(reply: dict, limits: SandboxLimits, stdout: bytes, stderr: bytes) -> str:
    """The status that the worker's report and the output's size amount to."""
    if not reply["ran"]:
        return "infra"
    if reply["killed"] == "memory":
        return "memory"
    ending = reply["status"] & 0x7F
    if reply["killed"] or reply["cpu"] >= limits.cpu_s or ending == signal.SIGXCPU:
        return "timeout"
    if ending == signal.SIGXFSZ or len(stdout) > limits.output_kb * 1024:
        return "output_limit"
    if reply["status"] != 0:
        last = stderr.strip().rpartition(b"\n")[2]
        return "memory" if _OUT_OF_MEMORY.match(last) else "runtime_error"
    return "pass"
