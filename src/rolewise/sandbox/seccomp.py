"""The seccomp filter: an allow-list of system calls, compiled to a search tree of BPF."""

from __future__ import annotations

import ctypes
import errno
import struct

from rolewise.sandbox.kernel import syscall
from rolewise.sandbox.syscalls import CallTable

_KILL, _ERRNO, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_REFUSE = _ERRNO | errno.EPERM
_LOAD, _RETURN, _JUMP = 0x20, 0x06, 0x05
_IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT = 0x15, 0x35, 0x45
_X32_BIT = 0x40000000
_SET_MODE_FILTER = 1

# A pid that no process has; `for_process` puts the real one in its place.
_SELF = 0x7FFFFFF1

_WRITING = 0o1 | 0o2 | 0o100 | 0o1000 | 0o20000000  # any open that creates, writes or truncates
_NEW_NAMESPACES = 0x7E020080
_THREAD = 0x00010000
_AF_UNIX, _SOCK_STREAM = 1, 1
_FCNTL = (0, 1, 2, 3, 4, 1030)  # duplicate, descriptor flags, status flags
_IOCTL = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)  # is it a terminal, size, non-blocking
_PRCTL = (15, 16)  # thread name

Code = list[tuple[int, int, int, int]]


def _act(action: int) -> Code:
    return [(_RETURN, 0, 0, action)]


def _load_argument(index: int) -> Code:
    return [(_LOAD, 0, 0, 16 + 8 * index)]


def _one_of(index: int, values: tuple[int, ...], then: Code) -> Code:
    """Refuse unless the low word of the argument is one of `values`."""
    code = _load_argument(index)
    code += [(_IF_EQUAL, len(values) - i, 0, value) for i, value in enumerate(values)]
    return [*code, *_act(_REFUSE), *then]


def _no_bits(index: int, mask: int, then: Code) -> Code:
    return [*_load_argument(index), (_IF_ANY_BIT, 0, 1, mask), *_act(_REFUSE), *then]


def _some_bits(index: int, mask: int, then: Code) -> Code:
    return [*_load_argument(index), (_IF_ANY_BIT, 1, 0, mask), *_act(_REFUSE), *then]


def _checks(tier: int, forks: bool) -> dict[str, Code]:
    """What is asked of the arguments of the checked calls."""
    allow = _act(_ALLOW)
    checks = {
        "socketpair": _one_of(0, (_AF_UNIX,), _no_bits(1, 0xF & ~_SOCK_STREAM, allow)),
        "fcntl": _one_of(1, _FCNTL, allow),
        "ioctl": _one_of(1, _IOCTL, allow),
        "prctl": _one_of(0, _PRCTL, allow),
        "prlimit64": _one_of(0, (0,), allow),
        "sched_setaffinity": _one_of(0, (0,), allow),
        "setpriority": _one_of(0, (0,), _one_of(1, (0,), allow)),
        "clone": _no_bits(0, _NEW_NAMESPACES, allow),
    }
    if not forks:
        checks["clone"] = _some_bits(0, _THREAD, checks["clone"])
    if tier == 1:  # signals end at the process namespace, writing at the read-only mounts
        return checks | dict.fromkeys(("open", "openat", "kill", "tgkill"), allow)
    checks |= dict.fromkeys(("kill", "tgkill"), _one_of(0, (_SELF,), allow))
    if tier == 2:
        checks |= {"open": _no_bits(1, _WRITING, allow), "openat": _no_bits(2, _WRITING, allow)}
    return checks


def _policy(table: CallTable, tier: int, forks: bool) -> dict[int, Code]:
    codes = dict.fromkeys(table.allowed.values(), _act(_ALLOW))
    codes |= dict.fromkeys(table.missing.values(), _act(_ERRNO | errno.ENOSYS))
    codes |= dict.fromkeys(table.fatal.values(), _act(_KILL))
    if tier == 1:
        codes |= dict.fromkeys(table.private.values(), _act(_ALLOW))
    if forks:
        codes |= dict.fromkeys(table.spawning.values(), _act(_ALLOW))
    checks = _checks(tier, forks)
    return codes | {n: checks[name] for name, n in table.checked.items() if name in checks}


def _tree(intervals: list[tuple[int, Code]]) -> Code:
    """Binary search over (first number, code) pairs, with the number already loaded."""
    if len(intervals) == 1:
        return intervals[0][1]
    middle = len(intervals) // 2
    left, right = _tree(intervals[:middle]), _tree(intervals[middle:])
    split = [(_IF_AT_LEAST, 0, 1, intervals[middle][0]), (_JUMP, 0, 0, len(left))]
    return [*split, *left, *right]


def compile_filter(table: CallTable, tier: int, forks: bool) -> bytes:
    """The filter of `tier` (1, 2 or 3) for one architecture, ready for `for_process`.

    `forks` allows child processes and exec; only for tier 1.
    """
    policy = _policy(table, tier, forks)
    intervals: list[tuple[int, Code]] = []
    for number in range(max(policy) + 2):
        code = policy.get(number, _act(_REFUSE))
        if not intervals or intervals[-1][1] != code:
            intervals.append((number, code))
    intervals.append((_X32_BIT, _act(_KILL)))
    program = [
        (_LOAD, 0, 0, 4),
        (_IF_EQUAL, 1, 0, table.audit_arch),
        *_act(_KILL),
        (_LOAD, 0, 0, 0),
        *_tree(intervals),
    ]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def for_process(compiled: bytes, pid: int) -> bytes:
    """The filter in which `pid` is the only process that may be signalled (tiers 2 and 3)."""
    return compiled.replace(struct.pack("=I", _SELF), struct.pack("=I", pid))


def enter(compiled: bytes) -> None:
    """Apply the filter to this process for good; needs no_new_privs."""
    buffer = ctypes.create_string_buffer(compiled, len(compiled))
    program = struct.pack("@HP", len(compiled) // 8, ctypes.addressof(buffer))
    syscall("seccomp", _SET_MODE_FILTER, 0, ctypes.c_char_p(program))
