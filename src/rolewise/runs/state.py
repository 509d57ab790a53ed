"""Resumable state of one run: locked, identified, saved so that a kill at any moment loses nothing.

A checkpoint is a folder `step_000010` that appears whole or not at all; `files.json` inside holds the
SHA-256 of every file, so that a damaged checkpoint is noticed and the one before it is used.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import logging
import os
import re
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rolewise.config import canonical_json
from rolewise.errors import StateError
from rolewise.records import write_text

log = logging.getLogger(__name__)

FILES = "files.json"
_held: set[int] = set()


def _release_in_child() -> None:
    # A forked helper that outlives its killed parent must not keep the parent's lock.
    for descriptor in _held:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_release_in_child)


class StateDir:
    """One folder of resumable state; every failure to write is a StateError and leaves it as it was."""

    def __init__(self, path: Path | str):
        self.path = Path(path)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the folder; if another process does, a StateError names it (host, pid, command)."""
        with self._writing("lock the folder"):
            self.path.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        _held.add(descriptor)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise StateError(_describe_holder(self.path, os.read(descriptor, 4096))) from error
            holder = {
                "host": socket.gethostname(),
                "pid": os.getpid(),
                "command": " ".join(sys.argv),
                "since": time.strftime("%Y-%m-%d %H:%M:%S"),
            }
            with self._writing("lock the folder"):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, json.dumps(holder).encode(), 0)
            self._sweep()
            yield
        finally:
            _held.discard(descriptor)
            os.close(descriptor)

    def holder(self) -> dict | None:
        """Who holds the folder now: host, pid, command, since; None if nobody does."""
        try:
            descriptor = os.open(self.path / "lock", os.O_RDWR)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _read_holder(os.read(descriptor, 4096))
        finally:
            os.close(descriptor)
        return None

    def check_identity(self, identity: dict) -> None:
        """Store what this state belongs to, or refuse, naming the keys that differ from the stored."""
        file = self.path / "identity.json"
        if not file.exists():
            with self._writing("record the configuration"):
                write_text(file, canonical_json(identity) + "\n")
            return
        try:
            stored = json.loads(file.read_text())
        except ValueError as error:
            raise StateError(
                f"{file}: damaged ({error}); delete the folder {self.path} to start afresh"
            ) from error
        wanted = json.loads(canonical_json(identity))
        differences = _differences(stored, wanted)
        if differences:
            listed = "\n".join(f"  {line}" for line in differences)
            raise StateError(
                f"{self.path}: this state was made under other settings or inputs:\n{listed}\n"
                "restore them, or start afresh with `rolewise clean --state` (deletes the state)"
            )

    def save(self, step: int, write: Callable[[Path], None]) -> Path:
        """Save a checkpoint: `write(folder)` fills a temporary folder, which then appears whole.

        `write` has to let OSError through when the disk refuses (serialise to bytes, then write).
        """
        target = self.checkpoint(step)
        temporary = self.path / f".tmp-{target.name}"
        with self._writing(f"save step {step}"):
            self.path.mkdir(parents=True, exist_ok=True)
            try:
                _remove(temporary)
                temporary.mkdir()
                write(temporary)
                hashes = {name: _sha256(temporary / name) for name in _files(temporary)}
                (temporary / FILES).write_text(json.dumps(hashes, indent=1, sort_keys=True) + "\n")
                _sync_tree(temporary)
                if target.exists():
                    self._discard(target)
                os.replace(temporary, target)
                _sync(self.path)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
            write_text(self.path / "LATEST", f"{target.name}\n")
        return target

    def checkpoint(self, step: int) -> Path:
        """Folder of the checkpoint of `step` (whether or not it exists)."""
        return self.path / f"step_{step:06d}"

    def steps(self) -> list[int]:
        """Steps that have a checkpoint folder, ascending; their content is not verified."""
        found = (re.fullmatch(r"step_(\d{6,})", p.name) for p in self.path.glob("step_*"))
        return sorted(int(match[1]) for match in found if match)

    def latest(self, max_step: int | None = None) -> tuple[int, Path] | None:
        """The newest intact checkpoint (up to `max_step`); damaged ones are passed over, with a warning."""
        for step in reversed(self.steps()):
            if max_step is not None and step > max_step:
                continue
            folder = self.checkpoint(step)
            found = damage(folder)
            if found is None:
                return step, folder
            log.warning("%s is damaged (%s); falling back to an earlier checkpoint", folder, found)
        return None

    def prune(self, keep: set[int]) -> None:
        """Delete every checkpoint whose step is not in `keep`."""
        with self._writing("delete old checkpoints"):
            for step in self.steps():
                if step not in keep:
                    self._discard(self.checkpoint(step))

    def append(self, name: str, rows: list[dict]) -> None:
        """Append `rows` to the log `name` durably; all of them are kept or, after a crash, none.

        One call is one line (a JSON list), so that a torn line never leaves half a step behind.
        """
        line = json.dumps(rows, default=_plain) + "\n"
        with self._writing(f"append to {name}"):
            self.path.mkdir(parents=True, exist_ok=True)
            with open(self._log_file(name), "ab", buffering=0) as handle:
                size = os.fstat(handle.fileno()).st_size
                try:
                    _write_all(handle.fileno(), line.encode())
                    os.fsync(handle.fileno())
                except OSError:
                    os.ftruncate(handle.fileno(), size)
                    raise

    def rows(self, name: str) -> list[dict]:
        """Every row of the log `name`, up to the first line that is torn or damaged."""
        file = self._log_file(name)
        rows: list[dict] = []
        if not file.exists():
            return rows
        for number, line in enumerate(file.read_bytes().splitlines(keepends=True), 1):
            try:
                batch = json.loads(line) if line.endswith(b"\n") else None
            except ValueError:
                batch = None
            if not isinstance(batch, list):
                log.warning("%s: line %d is damaged; the rest is dropped", file, number)
                break
            rows += batch
        return rows

    def last_step(self, name: str) -> int:
        """The last step that the log `name` holds (0: none): resume from a checkpoint not after it."""
        return max((row["step"] for row in self.rows(name)), default=0)

    def truncate(self, name: str, step: int) -> list[dict]:
        """Drop rows of later steps and a torn end from the log `name`; returns the rows kept."""
        kept = [row for row in self.rows(name) if row["step"] <= step]
        if self._log_file(name).exists():
            with self._writing(f"truncate {name}"):
                write_text(self._log_file(name), json.dumps(kept) + "\n" if kept else "")
        return kept

    def _log_file(self, name: str) -> Path:
        return self.path / f"{name}.jsonl"

    def _discard(self, folder: Path) -> None:
        # Renamed first: a half-deleted checkpoint must not look like a damaged one.
        rubbish = self.path / f".old-{folder.name}"
        _remove(rubbish)
        os.replace(folder, rubbish)
        _remove(rubbish)

    def _sweep(self) -> None:
        for leftover in [*self.path.glob(".tmp-*"), *self.path.glob(".old-*")]:
            shutil.rmtree(leftover, ignore_errors=True)
        for leftover in self.path.glob(".*.tmp"):
            leftover.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _writing(self, action: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StateError(
                f"{self.path}: could not {action}: {error.strerror or error}; "
                f"{_remedy(error)}; what was saved before is intact"
            ) from error


def _remedy(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return (
            "free disk space or raise the quota (`rolewise clean` lists what can go), then rerun "
            "the same command"
        )
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return "make the folder writable or set results_dir elsewhere, then rerun the same command"
    return "check the disk, then rerun the same command"


def _read_holder(content: bytes) -> dict:
    try:
        return json.loads(content)
    except ValueError:  # it has only just taken the lock
        return {}


def _describe_holder(path: Path, content: bytes) -> str:
    holder = _read_holder(content)
    if not holder:
        return f"{path} is in use by another process; wait for it, then rerun"
    return (
        f"{path} is in use by process {holder['pid']} on {holder['host']} since "
        f"{holder['since']} ({holder['command']}); wait for it or stop it "
        f"(`kill {holder['pid']}` on {holder['host']}), then rerun"
    )


def _differences(stored: Any, wanted: Any, key: str = "") -> list[str]:
    if isinstance(stored, dict) and isinstance(wanted, dict):
        return [
            line
            for name in sorted(stored.keys() | wanted.keys())
            for line in _differences(
                stored.get(name), wanted.get(name), f"{key}.{name}" if key else name
            )
        ]
    if stored == wanted:
        return []
    return [f"{key}: {json.dumps(stored)} then, {json.dumps(wanted)} now"]


def _files(folder: Path) -> list[str]:
    return sorted(
        str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and p.name != FILES
    )


def _sha256(file: Path) -> str:
    with open(file, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def damage(folder: Path) -> str | None:
    """What differs from the recorded hashes of a checkpoint; None if it is intact."""
    try:
        recorded = json.loads((folder / FILES).read_text())
        for name, sha256 in recorded.items():
            if _sha256(folder / name) != sha256:
                return f"{name} differs from its recorded hash"
    except (OSError, ValueError, AttributeError) as error:
        return str(error)
    return None


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_tree(folder: Path) -> None:
    for path in [*folder.rglob("*"), folder]:
        _sync(path)


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _plain(value: Any) -> Any:
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be logged")
