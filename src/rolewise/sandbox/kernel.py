"""Linux calls that Python does not offer, as thin functions that raise OSError."""

from __future__ import annotations

import ctypes
import os

from rolewise.sandbox.syscalls import native_table

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
MNT_DETACH = 2

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_KEEPCAPS = 1, 4, 8
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38

CAP_DAC_READ_SEARCH = 2

_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_MOUNT_ATTR_RDONLY, _MOUNT_ATTR_NOSUID, _MOUNT_ATTR_NODEV = 1, 2, 4
_SIGCHLD = 17

# PyDLL keeps the interpreter lock during the call: a child must find the lock held by itself.
_libc = ctypes.PyDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
TABLE = native_table()


def syscall(name: str, *args: object) -> int:
    """The raw system call; integers are passed as 64-bit, OSError on failure."""
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    result = _libc.syscall(ctypes.c_long(TABLE.number[name]), *words)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")
    return result


def prctl(option: int, value: int = 0) -> None:
    """prctl with one argument."""
    syscall("prctl", option, value, 0, 0, 0)


def unshare(flags: int) -> None:
    """New namespaces for this process."""
    syscall("unshare", flags)


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """mount(2)."""

    def text(value: str | None) -> ctypes.c_char_p:
        return ctypes.c_char_p(value.encode() if value is not None else None)

    syscall("mount", text(source), text(target), text(kind), flags, text(data))


def unmount(target: str) -> None:
    """Detach the mount at `target` from the tree."""
    syscall("umount2", ctypes.c_char_p(target.encode()), MNT_DETACH)


def make_read_only(target: str) -> None:
    """The mounts at and below `target` become read-only, without devices and set-uid programs."""
    attributes = (ctypes.c_uint64 * 4)(
        _MOUNT_ATTR_RDONLY | _MOUNT_ATTR_NOSUID | _MOUNT_ATTR_NODEV, 0, 0, 0
    )
    path = ctypes.c_char_p(target.encode())
    syscall("mount_setattr", _AT_FDCWD, path, _AT_RECURSIVE, ctypes.byref(attributes), 32)


def pivot_root(new_root: str) -> None:
    """`new_root` becomes the root; the old one is gone."""
    os.chdir(new_root)
    here = ctypes.c_char_p(b".")
    syscall("pivot_root", here, here)
    unmount(".")
    os.chdir("/")


def fork_into(flags: int) -> int:
    """fork() into new namespaces; returns as os.fork does."""
    ctypes.pythonapi.PyOS_BeforeFork()
    pid = -1
    try:
        pid = syscall("clone", flags | _SIGCHLD, 0, 0, 0, 0)
    finally:
        if pid == 0:
            ctypes.pythonapi.PyOS_AfterFork_Child()
        else:
            ctypes.pythonapi.PyOS_AfterFork_Parent()
    return pid


def set_capabilities(bits: int) -> None:
    """Permitted and effective capabilities become `bits`, inheritable ones none."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    low, high = bits & 0xFFFFFFFF, bits >> 32
    data = (ctypes.c_uint32 * 6)(low, low, 0, high, high, 0)
    syscall("capset", ctypes.byref(header), ctypes.byref(data))


def drop_bounding_set() -> None:
    """No exec can ever give a capability back."""
    for capability in range(64):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:
            return  # past the last capability of this kernel, or none held at all
