"""Verdicts on (program, test) pairs, in memory and in a file that concurrent processes share."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path

log = logging.getLogger(__name__)

_IN_MEMORY = 20_000  # about 6 MB; the file holds the rest
_CHUNK = 500
_BUSY_S = 30.0

Verdict = tuple[str, str]  # status, digest of the output


class VerdictCache:
    """Key (16 bytes) -> verdict. The file is optional and disposable: a broken one is replaced."""

    def __init__(self, path: Path | None):
        self.path = path
        self._memory: dict[bytes, Verdict] = {}
        self._file: sqlite3.Connection | None = None

    def get_many(self, keys: Iterable[bytes]) -> dict[bytes, Verdict]:
        """The verdicts known for `keys`."""
        wanted = dict.fromkeys(keys)
        found = {key: self._memory[key] for key in wanted if key in self._memory}
        missing = [key for key in wanted if key not in found]
        if missing and self.path is not None and self.path.exists():
            stored = self._guarded(lambda: self._select(missing)) or {}
            self._remember(stored)
            found |= stored
        return found

    def put_many(self, verdicts: Mapping[bytes, Verdict]) -> None:
        """Keep verdicts, for this process and for others."""
        if not verdicts:
            return
        self._remember(verdicts)
        if self.path is not None:
            self._guarded(lambda: self._insert(verdicts))

    def close(self) -> None:
        """Close the file; the next access opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _remember(self, verdicts: Mapping[bytes, Verdict]) -> None:
        if len(self._memory) + len(verdicts) > _IN_MEMORY:
            self._memory.clear()
        self._memory.update(verdicts)

    def _open(self) -> sqlite3.Connection:
        if self._file is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(self.path, timeout=_BUSY_S)
            self._file.execute("PRAGMA journal_mode=WAL")
            self._file.execute("PRAGMA synchronous=NORMAL")
            self._file.execute(
                "CREATE TABLE IF NOT EXISTS verdicts "
                "(key BLOB PRIMARY KEY, status TEXT NOT NULL, output TEXT NOT NULL) WITHOUT ROWID"
            )
        return self._file

    def _select(self, keys: list[bytes]) -> dict[bytes, Verdict]:
        found: dict[bytes, Verdict] = {}
        for start in range(0, len(keys), _CHUNK):
            chunk = keys[start : start + _CHUNK]
            marks = ",".join("?" * len(chunk))
            query = f"SELECT key, status, output FROM verdicts WHERE key IN ({marks})"
            found |= {key: (status, out) for key, status, out in self._open().execute(query, chunk)}
        return found

    def _insert(self, verdicts: Mapping[bytes, Verdict]) -> None:
        rows = [(key, *verdict) for key, verdict in verdicts.items()]
        file = self._open()
        with file:
            file.executemany("INSERT OR IGNORE INTO verdicts VALUES (?, ?, ?)", rows)

    def _guarded(self, action):
        """Run `action`; go on without a file that is unusable, replace one that is corrupt."""
        try:
            return action()
        except (sqlite3.OperationalError, OSError) as error:  # locked for long, read-only, full
            log.warning("%s: verdict cache is no longer used by this run: %s", self.path, error)
            self.close()
            self.path = None
        except sqlite3.DatabaseError as error:
            log.warning("%s: verdict cache is corrupt and starts anew: %s", self.path, error)
            self.close()
            for name in (self.path.name, f"{self.path.name}-wal", f"{self.path.name}-shm"):
                self.path.with_name(name).unlink(missing_ok=True)
        return None
