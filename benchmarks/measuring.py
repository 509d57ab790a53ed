"""Clocks, memory and the state of the machine. Standard library only."""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Iterable
from pathlib import Path


def pin_threads(count: int) -> None:
    """Fix the number of compute threads; call it before torch is imported."""
    if "torch" in sys.modules:
        raise RuntimeError("threads must be fixed before torch is imported")
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(count)
    os.environ |= {
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_VERBOSITY": "error",
        "WANDB_MODE": "disabled",
        "TRL_EXPERIMENTAL_SILENCE": "1",
    }
    import torch

    torch.set_num_threads(count)


class Laps:
    """Seconds per named part of a step, one dictionary per finished step."""

    def __init__(self) -> None:
        self.steps: list[dict[str, float]] = []
        self._open: dict[str, float] = {}
        self._began = time.perf_counter()

    def start(self) -> None:
        """Begin the first step now."""
        self._began = time.perf_counter()

    def add(self, part: str, seconds: float) -> None:
        """Add to a part of the running step."""
        self._open[part] = self._open.get(part, 0.0) + seconds

    def around(self, part: str, function, *args, **kwargs):
        """The function's result; its wall time is added to `part`."""
        began = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            self.add(part, time.perf_counter() - began)

    def close(self, **counts: float) -> None:
        """End the running step and begin the next."""
        now = time.perf_counter()
        self.steps.append(self._open | {"step": now - self._began} | counts)
        self._open, self._began = {}, now

    def column(self, name: str, warmup: int) -> list[float]:
        """Values of a part in every step after the warm-up."""
        return [step.get(name, 0.0) for step in self.steps[warmup:]]


def spread(values: Iterable[float]) -> dict[str, float]:
    """Median, least and greatest value."""
    values = list(values)
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def report_steps(laps: Laps, warmup: int, **more) -> None:
    """Print one JSON line: spread of every part, token rates, peak memory."""
    parts = {
        name: spread(laps.column(name, warmup)) for name in ("step", "sample", "grade", "update")
    }
    sampled, trained = laps.column("sampled", warmup), laps.column("trained", warmup)
    print(
        json.dumps(
            {
                "seconds": parts,
                "rows": spread(laps.column("rows", warmup))["median"],
                "sampled_tokens": spread(sampled)["median"],
                "trained_tokens": spread(trained)["median"],
                "sampled_tok_s": sum(sampled) / sum(laps.column("sample", warmup)),
                "trained_tok_s": sum(trained) / sum(laps.column("update", warmup)),
                "peak_memory_mb": peak_memory_mb(),
                **more,
            }
        ),
        flush=True,
    )


def peak_memory_mb() -> float:
    """Largest resident set of this process so far."""
    # `getrusage` would start at the size of the process that forked this one.
    (line,) = [x for x in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in x]
    return int(line.split()[1]) / 1024


def busy_seconds() -> float:
    """Core-seconds that all processes of the machine have used since it started."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _, _, irq, soft, steal = map(int, fields[:8])
    return (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")


def machine() -> dict:
    """Processor, cores, memory and system."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    facts = dict(
        (part.strip() for part in line.split(":", 1)) for line in lines[:30] if ":" in line
    )
    vector = [f for f in ("avx512f", "avx2", "avx") if f in facts.get("flags", "").split()]
    return {
        "processor": facts.get("model name", platform.processor()),
        "family_model": f"{facts.get('cpu family', '?')}/{facts.get('model', '?')}",
        "vector": vector[0] if vector else "none",
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
    }
