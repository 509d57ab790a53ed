"""Landlock: a process gives up every file it was not explicitly left."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable

from rolewise.sandbox.kernel import syscall

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
_FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE
_RIGHTS_OF_ABI = {1: 1 << 13, 2: 1 << 14, 3: 1 << 15, 4: 1 << 15, 5: 1 << 16}
_NET_BIND_AND_CONNECT = 3
_SCOPE_SOCKETS_AND_SIGNALS = 3


def abi() -> int:
    """Version of Landlock that the kernel offers; OSError when there is none."""
    return syscall("landlock_create_ruleset", 0, 0, 1)


def all_rights() -> int:
    """Every file-system right this kernel can withhold."""
    return _RIGHTS_OF_ABI[min(abi(), 5)] - 1


def create_ruleset() -> int:
    """A ruleset (file descriptor) that withholds all file rights, TCP and, where known, scopes."""
    version = abi()
    fields = [all_rights()]
    if version >= 4:
        fields.append(_NET_BIND_AND_CONNECT)
    if version >= 6:
        fields.append(_SCOPE_SOCKETS_AND_SIGNALS)
    attributes = struct.pack(f"={len(fields)}Q", *fields)
    return syscall("landlock_create_ruleset", ctypes.c_char_p(attributes), len(attributes), 0)


def allow(ruleset: int, paths: Iterable[str], rights: int) -> None:
    """Leave `rights` below each existing path."""
    for path in paths:
        try:
            handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        granted = rights if os.path.isdir(path) else rights & _FILE_RIGHTS
        rule = ctypes.c_char_p(struct.pack("=Qi", granted, handle))
        try:
            syscall("landlock_add_rule", ruleset, 1, rule, 0)
        finally:
            os.close(handle)


def enter(ruleset: int) -> None:
    """Apply the ruleset to this process for good; needs no_new_privs."""
    syscall("landlock_restrict_self", ruleset, 0)
