"""Run a command on GPUs that no other job of this node holds: `python -m rolewise.runs.gpu_lease N -- COMMAND`.

Snakemake counts GPUs but hands out no device. Each device is one locked file; this process takes N of
them and becomes the command, so that the lease ends exactly when the command does, even by kill -9.
"""

from __future__ import annotations

import fcntl
import os
import re
import sys
import tempfile
import time
from pathlib import Path

from rolewise.errors import RolewiseError

USAGE = "usage: python -m rolewise.runs.gpu_lease N -- COMMAND [ARGUMENT ...]"
_POLL_S = 0.2


def visible_devices(environment: dict[str, str]) -> list[str]:
    """Devices this job may use: CUDA_VISIBLE_DEVICES if it is set, else every NVIDIA device node."""
    named = environment.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [device.strip() for device in named.split(",") if device.strip()]
    nodes = (re.fullmatch(r"nvidia(\d+)", path.name) for path in Path("/dev").glob("nvidia*"))
    return sorted((match[1] for match in nodes if match), key=int)


def lease_folder(environment: dict[str, str]) -> Path:
    """Where the lock files of this node and user live (`ROLEWISE_LEASE_DIR` overrides)."""
    default = Path(tempfile.gettempdir()) / f"rolewise-gpu-{os.getuid()}"
    return Path(environment.get("ROLEWISE_LEASE_DIR", default))


def acquire(count: int, devices: list[str], folder: Path) -> list[str]:
    """Wait for `count` free devices and hold them until this process, or what it becomes, ends."""
    if count > len(devices):
        offered = ", ".join(devices) or "none"
        raise RolewiseError(
            f"a job asks for {count} GPU(s), this machine offers {offered}; lower resources.gpu in "
            "the configuration (0 = CPU)"
        )
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # One taker at a time, first come first served: jobs with many devices are not starved, and
    # two takers cannot each hold half of what the other needs.
    queue = _open(folder / "queue")
    fcntl.flock(queue, fcntl.LOCK_EX)
    held: dict[str, int] = {}
    while True:
        for device in devices:
            if device not in held and len(held) < count:
                descriptor = _open(folder / re.sub(r"\W", "_", device))
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    held[device] = descriptor
                except BlockingIOError:
                    os.close(descriptor)
        if len(held) == count:
            break
        time.sleep(_POLL_S)
    os.close(queue)
    for descriptor in held.values():
        os.set_inheritable(descriptor, True)
    return list(held)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def main(arguments: list[str]) -> None:
    """Take the lease and become the command; under Slurm, or for 0 GPUs, only the latter."""
    if len(arguments) < 3 or arguments[1] != "--" or not arguments[0].isdecimal():
        raise RolewiseError(USAGE)
    count, command = int(arguments[0]), arguments[2:]
    environment = dict(os.environ)
    if count and "SLURM_JOB_ID" not in environment:
        leased = acquire(count, visible_devices(environment), lease_folder(environment))
        environment["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(leased)
    try:
        os.execvpe(command[0], command, environment)
    except FileNotFoundError as error:
        raise RolewiseError(f"{command[0]}: no such command") from error


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except RolewiseError as failure:
        print(f"rolewise: error: {failure}", file=sys.stderr)
        sys.exit(failure.exit_code)
