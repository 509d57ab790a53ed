"""Tier 1: namespaces of its own and a read-only root that holds nothing but Python."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from rolewise.sandbox import kernel

# The tree is assembled over a directory that exists everywhere and that Python never reads.
_STAGE = "/sys"
_SYSTEM = ("/usr/lib", "/usr/lib64", "/usr/lib32", "/usr/libx32", "/lib", "/lib64", "/lib32")
_DEVICES = ("/dev/null", "/dev/urandom", "/dev/random")
SCRATCH = "/box/work"  # not below /tmp: Python itself may be installed there
_BOX, _STDIN = "/box", "/box/stdin"
_WORKER_NAMESPACES = (
    kernel.CLONE_NEWUSER
    | kernel.CLONE_NEWNS
    | kernel.CLONE_NEWPID
    | kernel.CLONE_NEWNET
    | kernel.CLONE_NEWIPC
    | kernel.CLONE_NEWUTS
    | kernel.CLONE_NEWCGROUP
)
TEST_NAMESPACES = kernel.CLONE_NEWPID | kernel.CLONE_NEWNS | kernel.CLONE_NEWIPC


@dataclass(frozen=True)
class Readable:
    """What a program may read: `trees` without `hidden`, and `packages` even inside `hidden`."""

    trees: tuple[str, ...]
    hidden: tuple[str, ...]
    packages: tuple[str, ...]


def readable_files(packages: tuple[str, ...]) -> Readable:
    """The system's libraries and this interpreter's own, without installed packages."""
    base = Path(sys.base_prefix)
    trees = [path for path in _SYSTEM if os.path.isdir(path)]
    own = [str(base / "lib"), str(base / "bin")] if base != Path("/usr") else []
    stdlib = Path(os.__file__).parent
    hidden = [stdlib / "site-packages", stdlib / "dist-packages"]
    hidden += [Path("/usr/lib/python3/dist-packages"), base / "lib/python3/dist-packages"]
    existing = dict.fromkeys(str(path) for path in hidden if path.is_dir())
    return Readable(tuple(trees + own), tuple(existing), packages)


def _bind(source: str, place: str) -> None:
    target = _STAGE + place
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        Path(target).touch()
    kernel.mount(source, target, None, kernel.MS_BIND | kernel.MS_REC)


def package_place(folder: str) -> str:
    """Where the tree shows a package: all side by side, whatever their folders are called outside."""
    return f"/packages/{os.path.basename(folder)}"


def _build_tree(readable: Readable) -> None:
    """Assemble the new root at the stage; needs a private mount namespace."""
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    quiet = kernel.MS_NOSUID | kernel.MS_NODEV
    kernel.mount("tmpfs", _STAGE, "tmpfs", quiet, "mode=755,size=1m")
    for path in readable.trees:
        if os.path.islink(path):
            os.makedirs(_STAGE + os.path.dirname(path), exist_ok=True)
            os.symlink(os.readlink(path), _STAGE + path)
        else:
            _bind(path, path)
    for path in readable.hidden:
        if os.path.isdir(_STAGE + path):
            kernel.mount("tmpfs", _STAGE + path, "tmpfs", quiet, "mode=755,size=64k")
    for path in readable.packages:
        _bind(path, package_place(path))
    if os.path.exists("/etc/ld.so.cache"):
        _bind("/etc/ld.so.cache", "/etc/ld.so.cache")
    for path in readable.trees:
        for parent in list(Path(path).parents)[:-1]:
            if not any(parent.is_relative_to(tree) for tree in readable.trees):
                os.chmod(f"{_STAGE}{parent}", 0o111)  # the way to a library tells nothing else
    os.mkdir(_STAGE + _BOX)
    if not os.path.exists(_STAGE + "/tmp"):
        os.symlink(SCRATCH, _STAGE + "/tmp")
    os.makedirs(_STAGE + "/dev")
    os.symlink(_STDIN, _STAGE + "/dev/stdin")
    for device in _DEVICES:
        Path(_STAGE + device).touch()
    kernel.make_read_only(_STAGE)
    for device in _DEVICES:
        kernel.mount(device, _STAGE + device, None, kernel.MS_BIND)


def _map_identity(uid: int, gid: int) -> None:
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")


def drop_user(uid: int) -> None:
    """Become the ordinary user `uid`, without groups."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # or the process could not write its own uid map


def enter(readable: Readable, uid: int | None) -> None:
    """Move into new namespaces as `uid` (None: as the present user) and fork their process 1.

    Returns in process 1 only; the calling process waits for it and ends with it. OSError where the
    machine does not allow it.
    """
    if uid is not None:
        kernel.unshare(kernel.CLONE_NEWNS)
        _build_tree(readable)
        drop_user(uid)
    user, group = os.geteuid(), os.getegid()
    kernel.unshare(_WORKER_NAMESPACES)
    _map_identity(user, group)
    if uid is None:
        _build_tree(readable)
    child = os.fork()
    if child:
        os.closerange(3, 1 << 16)
        os.waitpid(child, 0)
        os._exit(0)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, 9)


def open_process_table() -> int | None:
    """A descriptor of /proc for the new process namespace; None where mounting it is forbidden."""
    flags = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC | kernel.MS_RDONLY
    try:
        kernel.mount("proc", "/proc", "proc", flags)
    except PermissionError:
        return None
    return os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def change_root() -> None:
    """Make the stage the root of this process and of all its children."""
    kernel.mount(_STAGE, _STAGE, None, kernel.MS_BIND | kernel.MS_REC)
    kernel.pivot_root(_STAGE)


def mount_scratch(megabytes: int, stdin: int) -> None:
    """A private, small file system for one test: the folder SCRATCH, and a copy of its input.

    The copy serves programs that open /dev/stdin, which usually needs /proc.
    """
    length = os.fstat(stdin).st_size
    flags = kernel.MS_NOSUID | kernel.MS_NODEV
    size = (megabytes << 20) + length
    kernel.mount("tmpfs", _BOX, "tmpfs", flags, f"size={size},nr_inodes=1024,mode=755")
    os.mkdir(SCRATCH, 0o700)
    copy = os.open(_STDIN, os.O_WRONLY | os.O_CREAT, 0o400)
    copied = 0
    while copied < length:
        copied += os.sendfile(copy, stdin, copied, length - copied)
    os.close(copy)
    os.chmod(_BOX, 0o555)
