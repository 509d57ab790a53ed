"""What running processes use, read through a descriptor of /proc that they do not have."""

from __future__ import annotations

import os
import resource

_PAGE_MB = resource.getpagesize() / (1 << 20)


class ProcessTable:
    """Processes visible in the /proc that `descriptor` stands for; all readings may be stale."""

    def __init__(self, descriptor: int):
        self._descriptor = descriptor
        self._own_memory = self.memory(os.getpid())

    def others(self, init: int) -> list[int]:
        """All processes but this one and `init`."""
        numbers = (int(name) for name in os.listdir(self._descriptor) if name.isdigit())
        return [number for number in numbers if number not in (os.getpid(), init)]

    def times(self, processes: list[int], seen: dict[str, tuple[int, int]]) -> tuple[float, float]:
        """CPU seconds and seconds of waiting for a core, of all threads.

        `seen` keeps the last reading of each thread, so that ended ones go on counting.
        """
        for process in processes:
            for task in self._names(f"{process}/task"):
                fields = self._read(f"{process}/task/{task}/schedstat").split()
                if len(fields) >= 2:
                    seen[task] = (int(fields[0]), int(fields[1]))
        return (
            sum(on_cpu for on_cpu, _ in seen.values()) / 1e9,
            sum(in_queue for _, in_queue in seen.values()) / 1e9,
        )

    def memory_beyond_own(self, processes: list[int]) -> float:
        """Resident MB of processes, without what each shares with this one since its fork."""
        return sum(max(0.0, self.memory(process) - self._own_memory) for process in processes)

    def memory(self, process: int) -> float:
        """Resident MB of one process, 0 if it is gone."""
        fields = self._read(f"{process}/statm").split()
        return int(fields[1]) * _PAGE_MB if len(fields) > 1 else 0.0

    def _names(self, path: str) -> list[str]:
        try:
            folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY, dir_fd=self._descriptor)
        except OSError:
            return []
        try:
            return os.listdir(folder)
        except OSError:
            return []
        finally:
            os.close(folder)

    def _read(self, path: str) -> bytes:
        try:
            file = os.open(path, os.O_RDONLY, dir_fd=self._descriptor)
        except OSError:
            return b""
        try:
            return os.read(file, 4096)
        except OSError:
            return b""
        finally:
            os.close(file)
