"""The filter decides as the policy says, checked by interpreting it, for both architectures."""

from __future__ import annotations

import errno
import struct

import pytest

from rolewise.sandbox.seccomp import compile_filter, for_process
from rolewise.sandbox.syscalls import AUDIT_ARCH, CallTable

ALLOW, KILL, EPERM, ENOSYS = 0x7FFF0000, 0x80000000, 0x50000 | errno.EPERM, 0x50000 | errno.ENOSYS
MACHINES = list(AUDIT_ARCH)


def decide(program: bytes, arch: int, number: int, *arguments: int) -> int:
    """What the kernel would answer: the few BPF instructions the compiler uses."""
    data = struct.pack("=IIQ6Q", number, arch, 0, *(*arguments, *[0] * (6 - len(arguments))))
    code = list(struct.iter_unpack("=HBBI", program))
    at = accumulator = 0
    for _ in range(len(code)):
        operation, if_true, if_false, value = code[at]
        at += 1
        if operation == 0x20:
            [accumulator] = struct.unpack_from("=I", data, value)
        elif operation == 0x06:
            return value
        elif operation == 0x05:
            at += value
        else:
            test = {0x15: accumulator == value, 0x35: accumulator >= value,
                    0x45: bool(accumulator & value)}[operation]  # fmt: skip
            at += if_true if test else if_false
    raise AssertionError("the filter did not end")


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("tier", [1, 2, 3])
def test_every_group_of_calls_gets_its_answer(machine, tier):
    table = CallTable(machine)
    program = compile_filter(table, tier, forks=False)

    def answer(number, *arguments):
        return decide(program, table.audit_arch, number, *arguments)

    assert {answer(n) for n in table.allowed.values()} == {ALLOW}
    assert {answer(n) for n in table.fatal.values()} == {KILL}
    assert {answer(n) for n in table.missing.values()} == {ENOSYS}
    assert {answer(n) for n in table.spawning.values()} == {EPERM}
    assert {answer(n) for n in table.private.values()} == {ALLOW if tier == 1 else EPERM}
    known = set(table.number.values())
    assert {answer(n) for n in range(1000) if n not in known} == {EPERM}
    assert answer(0x40000000 + 1) == KILL
    assert decide(program, 0x40000003, 1) == KILL


@pytest.mark.parametrize("machine", MACHINES)
def test_arguments_decide_checked_calls(machine):
    table = CallTable(machine)
    first, second, third = (
        for_process(compile_filter(table, tier, forks=tier == 1), 77) for tier in (1, 2, 3)
    )

    def answer(program, name, *arguments):
        return decide(program, table.audit_arch, table.checked[name], *arguments)

    assert answer(second, "openat", 0, 0, 0o2000000) == ALLOW
    for flag in (1, 2, 0o100, 0o1000, 0o20000000):
        assert answer(second, "openat", 0, 0, flag) == EPERM
        assert answer(first, "openat", 0, 0, flag) == ALLOW
    assert answer(third, "openat", 0, 0, 0) == EPERM
    assert answer(second, "kill", 77, 9) == ALLOW
    assert {answer(second, "kill", pid, 9) for pid in (78, 0, 0xFFFFFFFF)} == {EPERM}
    assert answer(second, "clone", 0x3D0F00) == ALLOW
    assert answer(second, "clone", 17) == EPERM
    assert answer(first, "clone", 17) == ALLOW
    for namespace in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert answer(first, "clone", 17 | namespace) == EPERM
        assert answer(second, "clone", 0x3D0F00 | namespace) == EPERM
    for program in (first, second, third):
        assert answer(program, "socketpair", 1, 1 | 0o2000000) == ALLOW
        assert {answer(program, "socketpair", *a) for a in ((1, 2), (1, 5), (2, 1))} == {EPERM}
        assert {answer(program, "fcntl", 0, c) for c in (0, 1, 2, 3, 4, 1030)} == {ALLOW}
        assert {answer(program, "fcntl", 0, c) for c in (5, 6, 8, 10, 1024, 1033)} == {EPERM}
        assert answer(program, "prlimit64", 0) == ALLOW
        assert answer(program, "prlimit64", 1) == EPERM
        assert {answer(program, "prctl", o) for o in (1, 4, 8, 22, 38)} == {EPERM}


@pytest.mark.parametrize("machine", MACHINES)
def test_no_number_has_two_names(machine):
    numbers = list(CallTable(machine).number.values())
    assert len(numbers) == len(set(numbers))


def test_machines_without_a_table_are_refused():
    with pytest.raises(KeyError):
        CallTable("riscv64")
