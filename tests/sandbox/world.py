"""What an attack must not reach: files, a bystander process, listeners, and the facts about them."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

SECRET = "judge-secret-7d1f"


@dataclass(frozen=True)
class World:
    folder: Path
    decoy: psutil.Process
    listeners: tuple[socket.socket, ...]
    values: dict[str, str]

    def facts(self) -> dict[str, object]:
        """Everything an attack could have changed."""
        canary = self.folder / "canary"
        return {
            "files": sorted(os.listdir(self.folder)),
            "canary": (canary.read_text(), canary.stat().st_mode, canary.stat().st_mtime_ns),
            "decoy": (
                self.decoy.status() in ("sleeping", "idle"),
                self.decoy.nice(),
                self.decoy.cpu_affinity(),
                self.decoy.rlimit(psutil.RLIMIT_NOFILE),
                self.decoy.ionice(),
            ),
            "connections": sum(_was_reached(listener) for listener in self.listeners),
        }

    def program(self, text: str) -> bytes:
        for name, value in self.values.items():
            text = text.replace(f"@{name}@", value)
        return text.encode("utf-8", "surrogatepass")


def _was_reached(listener: socket.socket) -> bool:
    try:
        if listener.type == socket.SOCK_DGRAM:
            return bool(listener.recv(16))
        listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def world(folder: Path) -> Iterator[World]:
    folder.chmod(0o777)
    for name in ("canary", "hidden"):
        (folder / name).write_text(SECRET)
        (folder / name).chmod(0o666)
    abstract = f"rolewise-test-{os.getpid()}"
    with contextlib.ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        unix = stack.enter_context(socket.socket(socket.AF_UNIX))
        unix.bind(str(folder / "unix"))
        (folder / "unix").chmod(0o777)
        nameless = stack.enter_context(socket.socket(socket.AF_UNIX))
        nameless.bind("\0" + abstract)
        for listener in (unix, nameless):
            listener.listen()
        listeners = (tcp, udp, unix, nameless)
        for listener in listeners:
            listener.setblocking(False)
        decoy = stack.enter_context(subprocess.Popen(["sleep", "600"]))
        stack.callback(decoy.kill)
        values = {
            "hidden": folder / "hidden",
            "canary": folder / "canary",
            "folder": folder,
            "secret": SECRET,
            "judge": os.getpid(),
            "decoy": decoy.pid,
            "tcp": tcp.getsockname()[1],
            "udp": udp.getsockname()[1],
            "unix": folder / "unix",
            "abstract": abstract,
        }
        texts = {name: str(value) for name, value in values.items()}
        yield World(folder, psutil.Process(decoy.pid), listeners, texts)
