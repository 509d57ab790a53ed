"""Twelve small attacks that a tier has to withstand before it is used. Under a second."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rolewise.config import SandboxLimits
from rolewise.sandbox.job import Job, Outcome

_SECRET = "rolewise-self-test-secret"
_QUICK = SandboxLimits(cpu_s=0.1, memory_mb=64)
_ROOMY = SandboxLimits(cpu_s=2.0, memory_mb=256)


@dataclass(frozen=True)
class Attack:
    """A program, and what must be true of its outcome. `@name@` is replaced before it runs."""

    name: str
    program: str
    held: Callable[[Outcome], bool] = lambda outcome: b"yes" not in outcome.stdout
    limits: SandboxLimits = _ROOMY


def _timed_out(outcome: Outcome) -> bool:
    return outcome.status == "timeout"


ATTACKS = (
    Attack("read a file", "print('yes' if open('@file@').read() else '')"),
    Attack("environment", "import os\nprint('yes' * ('@secret@' in str(os.environ)))"),
    Attack(
        "process table",
        "for name in ('environ', 'mem', 'maps', 'cmdline', 'root/etc/passwd', 'fd/0'):\n"
        "    try:\n        open('/proc/@judge@/' + name, 'rb').close(); print('yes')\n"
        "    except OSError: pass",
    ),
    Attack(
        "ptrace",
        "import ctypes\nlibc = ctypes.CDLL(None)\n"
        "for request in (16, 0x4206):\n    print('yes' * (libc.ptrace(request, @judge@, 0, 0) == 0))",
        lambda outcome: outcome.violation,
    ),
    Attack(
        "inherited descriptors",
        "import os\nfor fd in range(3, 256):\n"
        "    try:\n        os.fstat(fd); print('yes')\n    except OSError: pass",
    ),
    Attack(
        "change a file",
        "import os\nfor act in (lambda: open('@file@', 'a'), lambda: os.truncate('@file@', 0),\n"
        "            lambda: os.chmod('@file@', 0o777), lambda: os.rename('@file@', '@file@x'),\n"
        "            lambda: os.open('@file@', os.O_RDONLY | os.O_TRUNC)):\n"
        "    try:\n        act(); print('yes')\n    except OSError: pass",
    ),
    Attack(
        "nested namespace",
        "import ctypes\nprint('yes' * (ctypes.CDLL(None).unshare(0x10000000) == 0))",
        lambda outcome: outcome.violation,
    ),
    Attack(
        "loopback connection",
        "import socket\nsocket.create_connection(('127.0.0.1', @port@), 1)\nprint('yes')",
    ),
    Attack(
        "kill the grader",
        "import os\nfor pid in (@judge@, os.getppid()):\n    for number in (19, 9):\n"
        "        try: os.kill(pid, number)\n        except OSError: pass\nprint('alive')",
        lambda outcome: outcome.stdout == b"alive\n",
    ),
    Attack(
        "fork bomb",
        "import os\nn = 0\ntry:\n    while n < 100:\n        if os.fork() == 0:\n"
        "            os.read(os.pipe()[0], 1)\n        n += 1\nexcept OSError: pass\n"
        "print('yes' * (n >= 100))",
    ),
    Attack(
        "memory bomb",
        "x = []\nfor _ in range(200): x.append(bytearray(1 << 20))\nprint('yes')",
        lambda outcome: outcome.status == "memory",
        SandboxLimits(cpu_s=2.0, memory_mb=64),
    ),
    Attack("endless loop", "while True:\n    pass", _timed_out, _QUICK),
)


@contextlib.contextmanager
def bait() -> Iterator[dict[str, str]]:
    """A hidden file, a listener and this process, as values for the attacks' placeholders."""
    with (
        tempfile.TemporaryDirectory(prefix="rolewise-") as folder,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        file = Path(folder) / "hidden"
        file.write_text(_SECRET)
        values = {"file": file, "judge": os.getpid(), "port": listener.getsockname()[1]}
        yield {name: str(value) for name, value in values.items()} | {"secret": _SECRET}
        if file.read_text() != _SECRET:
            raise OSError("a program changed a file outside the sandbox")
        listener.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            listener.accept()
            raise OSError("a program reached a network listener outside the sandbox")


def job_of(attack: Attack, values: dict[str, str]) -> Job:
    """The attack with its placeholders filled in."""
    program = attack.program
    for name, value in values.items():
        program = program.replace(f"@{name}@", value)
    return Job(program.encode(), attack.limits)
