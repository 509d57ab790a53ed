"""Attacks on the sandbox: programs that print `yes` where they get what they should not.

`@name@` stands for a fact of the `World` fixture. `held` looks at the outcome; the outside facts
(files, decoy, listeners, survivors) are checked by the test for every attack.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rolewise.config import SandboxLimits
from rolewise.sandbox.job import Outcome

Check = Callable[[Outcome], bool]

LIBC = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"


def refused(outcome: Outcome) -> bool:
    return b"yes" not in outcome.stdout + outcome.stderr


def violation(outcome: Outcome) -> bool:
    return refused(outcome) and outcome.violation


def has(status: str) -> Check:
    return lambda outcome: refused(outcome) and outcome.status == status


def killed_by(number: int) -> Check:
    return lambda outcome: outcome.status == "runtime_error" and outcome.signal == number


def says(text: bytes) -> Check:
    return lambda outcome: outcome.status == "pass" and outcome.stdout == text


@dataclass(frozen=True)
class Attack:
    name: str
    program: str
    held: Check = refused
    tiers: tuple[int, ...] = (1, 2, 3)
    limits: SandboxLimits = SandboxLimits()  # noqa: RUF009 (frozen)


def each(actions: str, setup: str = "import os") -> str:
    """A program that tries each expression of `actions` (one a line); any success prints yes."""
    tries = "\n".join(
        f"try:\n    {line.strip()}\n    print('yes', {index})\nexcept (OSError, ValueError): pass"
        for index, line in enumerate(actions.strip().splitlines())
    )
    return f"{setup}\n{tries}\n"


def calls(lines: str) -> str:
    """Raw system calls through libc, each of which must fail."""
    tries = "\n".join(
        f"print('yes' * ({line.strip()} >= 0))" for line in lines.strip().splitlines()
    )
    return f"{LIBC}{tries}\n"


CONFIDENTIALITY = [
    Attack("01 hidden file", "print('yes', open('@hidden@').read())"),
    Attack("02 environment", "import os\nprint('yes' * ('@secret@' in repr(os.environ)))"),
    Attack(
        "03 grader in /proc",
        each(
            "\n".join(
                f"open('/proc/@judge@/{name}', 'rb').read(1)"
                for name in ("environ", "mem", "maps", "fd/0", "root/etc/passwd", "cmdline")
            )
        ),
    ),
    Attack(
        "04 list folders",
        "import os\nfor d in ('/proc', '/home', '/root', '/tmp', '/var/log', '@folder@'):\n"
        "    try: print('yes' * len(os.listdir(d)))\n    except OSError: pass",
    ),
    Attack(
        "05 ptrace",
        calls("libc.ptrace(16, @judge@, 0, 0)\nlibc.ptrace(0x4206, @judge@, 0, 0)"),
        violation,
    ),
    Attack(
        "06 process_vm_readv",
        LIBC + "b = ctypes.create_string_buffer(64)\n"
        "class V(ctypes.Structure): _fields_ = [('p', ctypes.c_void_p), ('n', ctypes.c_size_t)]\n"
        "v = V(ctypes.addressof(b), 64)\n"
        "r = libc.process_vm_readv(@judge@, ctypes.byref(v), 1, ctypes.byref(v), 1, 0)\n"
        "print('yes' * (r >= 0))",
        violation,
    ),
    Attack("07 pidfd_getfd", calls("libc.syscall(434, @judge@, 0)\nlibc.syscall(438, 3, 0, 0)")),
    Attack(
        "08 inherited descriptors",
        "import os\nfor fd in range(3, 256):\n    try: os.fstat(fd); print('yes')\n"
        "    except OSError: pass",
    ),
    Attack(
        "11 symlink",
        "import os\nos.symlink('@hidden@', 'link')\nprint('yes', open('link').read())",
    ),
    Attack("12 hard link", "import os\nos.link('@hidden@', 'link')\nprint('yes')"),
    Attack("13 open by handle", calls("libc.syscall(304, 3, 0, 0)"), violation),
    Attack(
        "14 leftovers",
        "import os\nfor d in ('/tmp', '/dev/shm', '.'):\n"
        "    try: print('yes' * ('leftover' in os.listdir(d)))\n    except OSError: pass\n"
        "try: open('leftover', 'w').write('x')\nexcept OSError: pass",
    ),
    Attack(
        "15 SysV memory and queues",
        calls(
            "libc.shmget(4242, 4096, 0o1666)\nlibc.msgget(4242, 0o1666)\nlibc.semget(42, 1, 0o1666)"
        ),
    ),
    Attack(
        "16 file locks",
        each(
            "fcntl.flock(f, fcntl.LOCK_EX)\nfcntl.lockf(f, fcntl.LOCK_SH)",
            "import fcntl, os\nf = os.open('/dev/null', os.O_RDWR)",
        ),
        tiers=(1, 2),
    ),
    Attack("17 keyring", calls("libc.syscall(250, 0, -3, 0)"), violation),
    Attack("18 existence", "import os\nprint('yes' * os.path.exists('@hidden@'))", tiers=(1,)),
]

INTEGRITY = [
    Attack(
        "19 change files",
        each(
            """open('@canary@', 'a')
            os.rename('@canary@', '@canary@x')
            os.truncate('@canary@', 0)
            os.chmod('@canary@', 0o777)
            os.unlink('@canary@')
            open('@folder@/new', 'w')
            os.mkdir('@folder@/new')
            os.symlink('x', '@folder@/new')"""
        ),
    ),
    Attack(
        "20 truncate on open",
        each("os.open('@canary@', os.O_TRUNC)\nos.open(os.__file__, os.O_RDONLY | os.O_TRUNC)"),
    ),
    Attack(
        "21 change through a descriptor",
        each(
            "os.fchmod(f, 0o777)\nos.utime(f)\nos.fchown(f, 0, 0)",
            "import os\nf = os.open(os.__file__, os.O_RDONLY)",
        ),
        tiers=(1, 2),
    ),
    Attack(
        "22 write the library",
        each(
            """open(os.__file__, 'r+')
            open(os.path.dirname(os.__file__) + '/x.pth', 'w')
            open(os.path.dirname(os.__file__) + '/sitecustomize.py', 'w')
            open(os.path.dirname(os.__file__) + '/site-packages/x.pth', 'w')"""
        ),
    ),
    *(
        Attack(f"23 {name}", calls(call), violation)
        for name, call in {
            "remount": "libc.mount(b'none', b'/', None, 0x1020, None)",
            "umount": "libc.umount2(b'/', 2)",
            "pivot_root": "libc.syscall(155, b'.', b'.')",
            "chroot": "libc.chroot(b'/')",
        }.items()
    ),
    *(
        Attack(f"24 {name}", calls(call), violation)
        for name, call in {
            "unshare": "libc.unshare(0x10000000)",
            "setns": "libc.setns(0, 0)",
        }.items()
    ),
    Attack(
        "24 clone into namespaces",
        LIBC + "for flag in (0x10000000, 0x20000000, 0x40000000, 0x20000):\n"
        "    for number in (56, 435):\n        r = libc.syscall(number, flag | 17, 0, 0, 0, 0)\n"
        "        if r == 0: os._exit(0)\n        print('yes' * (r > 0))",
    ),
    Attack(
        "25 become root",
        each("os.setuid(0)\nos.setgid(0)\nos.setgroups([0])\nos.setresuid(0, 0, 0)")
        + calls(
            "libc.syscall(126, ctypes.create_string_buffer(8), ctypes.create_string_buffer(24))"
        ),
    ),
    Attack(
        "26 execute",
        each(
            """os.posix_spawn('/bin/sh', ['sh'], {})
            os.posix_spawn('/bin/su', ['su'], {})
            os.posix_spawn('/usr/bin/python3', ['python3'], {})
            os.memfd_create('x')"""
        )
        + calls("libc.syscall(322, 0, b'', 0, 0, 0x1000)"),
    ),
    *(
        Attack(f"27 {name}", calls(f"libc.syscall({number}, 0, 0, 0, 0, 0)"), violation)
        for name, number in {
            "io_uring": 425,
            "bpf": 321,
            "perf_event_open": 298,
            "userfaultfd": 323,
        }.items()
    ),
    Attack(
        "28 32-bit calls",
        LIBC + "import mmap\nm = mmap.mmap(-1, 4096, prot=7)\n"
        "m.write(bytes.fromhex('b814000000cd80c3'))\n"
        "f = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))\n"
        "print('yes' * (f() > 0))",
        violation,
    ),
    Attack("29 x32 calls", calls("libc.syscall(0x40000000 + 39)"), violation),
    Attack(
        "30 raise limits",
        each(
            """resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
            resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
            resource.prlimit(@judge@, resource.RLIMIT_NOFILE, (3, 3))""",
            "import os, resource",
        )
        + calls("libc.prctl(4, 1, 0, 0, 0)\nlibc.prctl(38, 0, 0, 0, 0)\nlibc.prctl(1, 0, 0, 0, 0)"),
    ),
    Attack(
        "31 devices",
        each(
            "\n".join(
                f"open('/dev/{d}', 'rb')"
                for d in ["mem", "kmsg", "tty", "vda", "zero", "fuse", "kvm"]
            )
        ),
    ),
    Attack(
        "63 undo guards",
        each("posix.kill(@judge@, 9)", "import posix, sys, gc\nsys.modules.clear()"),
    ),
]

NETWORK_AND_SIGNALS = [
    Attack(
        "32 TCP", "import socket\nsocket.create_connection(('127.0.0.1', @tcp@), 1)\nprint('yes')"
    ),
    Attack(
        "33 UDP",
        "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "s.sendto(b'x', ('127.0.0.1', @udp@))\nprint('yes')",
    ),
    Attack(
        "34 unix sockets",
        each(
            """socket.socket(socket.AF_UNIX).connect('@unix@')
            socket.socket(socket.AF_UNIX).connect(chr(0) + '@abstract@')
            socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b'x', '@unix@')""",
            "import socket",
        ),
    ),
    Attack(
        "35 listen", "import socket\ns = socket.socket()\ns.bind(('', 0))\ns.listen()\nprint('yes')"
    ),
    Attack(
        "36 other families",
        each(
            "\n".join(
                f"socket.socket({family}, {kind}, 0)"
                for family, kind in ((16, 3), (17, 3), (38, 5), (40, 1), (10, 1))
            ),
            "import socket",
        ),
    ),
    Attack(
        "37 kill the grader",
        "import os\nfor pid in (@judge@, os.getppid(), @decoy@):\n    for number in (9, 19):\n"
        "        try: os.kill(pid, number)\n        except OSError: pass\nprint('alive')",
        says(b"alive\n"),
    ),
    Attack(
        "38 kill everything",
        "import os\nfor act in (lambda: os.kill(-1, 9), lambda: os.killpg(0, 15),"
        " lambda: os.kill(0, 9)):\n    try: act()\n    except OSError: pass",
    ),
    Attack(
        "39 other ways to signal",
        calls(
            "libc.syscall(424, 3, 9, 0, 0)\nlibc.syscall(129, @judge@, 9, 0)\n"
            "libc.syscall(200, @judge@, 9)\nlibc.syscall(234, @judge@, @judge@, 9)"
        ),
    ),
    Attack(
        "40 signal by descriptor owner",
        "import fcntl, os, socket\na, b = socket.socketpair()\n"
        "fcntl.fcntl(a, fcntl.F_SETOWN, @decoy@)\nprint('yes')",
    ),
    Attack(
        "41 settings of the grader",
        each(
            """resource.prlimit(@decoy@, resource.RLIMIT_NOFILE, (3, 3))
            os.sched_setaffinity(@decoy@, {0})
            os.setpriority(os.PRIO_PROCESS, @decoy@, 19)""",
            "import os, resource",
        )
        + calls("libc.syscall(251, 1, @decoy@, 0)"),
    ),
]

ATTACKS = CONFIDENTIALITY + INTEGRITY + NETWORK_AND_SIGNALS
