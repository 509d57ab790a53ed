"""System call numbers and the policy of each call (x86_64 and aarch64). Standard library only.

Each entry is `name x86_64 aarch64`; `-` marks a call that the architecture does not have.
"""

from __future__ import annotations

import platform

# Always allowed: they reach only the process itself and files that are already open or readable.
_ALLOWED = """
read 0 63, write 1 64, readv 19 65, writev 20 66, pread64 17 67, pwrite64 18 68,
close 3 57, lseek 8 62, fstat 5 80, newfstatat 262 79, stat 4 -, lstat 6 -, statx 332 291,
statfs 137 43, fstatfs 138 44, readlink 89 -, readlinkat 267 78, access 21 -,
faccessat 269 48, faccessat2 439 439, getdents64 217 61, getcwd 79 17, chdir 80 49,
fchdir 81 50, dup 32 23, dup2 33 -, dup3 292 24, pipe 22 -, pipe2 293 59,
close_range 436 436, mmap 9 222, munmap 11 215, mprotect 10 226, mremap 25 216, brk 12 214,
madvise 28 233, mincore 27 232, msync 26 227, fsync 74 82, fdatasync 75 83,
ftruncate 77 46, sendfile 40 71, fadvise64 221 223, umask 95 166, poll 7 -, ppoll 271 73,
select 23 -, pselect6 270 72, epoll_create1 291 20, epoll_ctl 233 21, epoll_wait 232 -,
epoll_pwait 281 22, eventfd2 290 19, timerfd_create 283 85, timerfd_settime 286 86,
timerfd_gettime 287 87, signalfd4 289 74, sendto 44 206, recvfrom 45 207, sendmsg 46 211,
recvmsg 47 212, shutdown 48 210, getsockname 51 204, getpeername 52 205, getsockopt 55 209,
setsockopt 54 208, futex 202 98, set_robust_list 273 99, get_robust_list 274 100,
set_tid_address 218 96, rseq 334 293, membarrier 324 283, gettid 186 178, getpid 39 172,
getppid 110 173, getuid 102 174, geteuid 107 175, getgid 104 176, getegid 108 177,
getresuid 118 148, getresgid 120 150, getgroups 115 158, getpgrp 111 -, getpgid 121 155,
getsid 124 156, capget 125 90, getcpu 309 168, uname 63 160, sysinfo 99 179, times 100 153,
getrusage 98 165, getrlimit 97 163, rt_sigaction 13 134, rt_sigprocmask 14 135,
rt_sigreturn 15 139, rt_sigpending 127 136, rt_sigsuspend 130 133, rt_sigtimedwait 128 137,
sigaltstack 131 132, restart_syscall 219 128, pause 34 -, alarm 37 -, setitimer 38 103,
getitimer 36 102, timer_create 222 107, timer_settime 223 110, timer_gettime 224 108,
timer_getoverrun 225 109, timer_delete 226 111, clock_gettime 228 113,
clock_getres 229 114, clock_nanosleep 230 115, nanosleep 35 101, gettimeofday 96 169,
time 201 -, getrandom 318 278, sched_yield 24 124, sched_getaffinity 204 123,
sched_getparam 143 121, sched_getscheduler 145 120, sched_get_priority_max 146 125,
sched_get_priority_min 147 126, getpriority 140 141, arch_prctl 158 -, exit 60 93,
exit_group 231 94, wait4 61 260, waitid 247 95
"""

# Allowed after a look at the arguments (see seccomp.py).
_CHECKED = """
open 2 -, openat 257 56, socketpair 53 199, fcntl 72 25, ioctl 16 29, prctl 157 167,
prlimit64 302 261, sched_setaffinity 203 122, setpriority 141 140, clone 56 220,
kill 62 129, tgkill 234 131
"""

# Allowed only where every writable file is the test's own (tier 1).
_PRIVATE = """
mkdir 83 -, mkdirat 258 34, unlink 87 -, unlinkat 263 35, rmdir 84 -, rename 82 -,
renameat 264 38, renameat2 316 276, symlink 88 -, symlinkat 266 36, link 86 -, linkat 265 37,
creat 85 -, truncate 76 45, copy_file_range 326 285, fallocate 285 47
"""

# Allowed only where child processes are.
_SPAWNING = """
fork 57 -, vfork 58 -, execve 59 221, setsid 112 157, setpgid 109 154
"""

# Answered with ENOSYS, so that libc falls back to the older call, which can be checked.
_MISSING = """
clone3 435 435, openat2 437 437
"""

# No honest program makes these: the process is killed and the run counted as a violation.
_FATAL = """
ptrace 101 117, process_vm_readv 310 270, process_vm_writev 311 271, kcmp 312 272,
mount 165 40, umount2 166 39, pivot_root 155 41, chroot 161 51, unshare 272 97,
setns 308 268, bpf 321 280, perf_event_open 298 241, io_uring_setup 425 425,
io_uring_enter 426 426, io_uring_register 427 427, userfaultfd 323 282, keyctl 250 219,
add_key 248 217, request_key 249 218, kexec_load 246 104, kexec_file_load 320 294,
init_module 175 105, finit_module 313 273, delete_module 176 106,
open_by_handle_at 304 265, move_mount 429 429, open_tree 428 428, fsopen 430 430,
fsmount 432 432, fsconfig 431 431, fspick 433 433, mount_setattr 442 442, swapon 167 224,
swapoff 168 225, reboot 169 142, iopl 172 -, ioperm 173 -, acct 163 89, quotactl 179 60,
syslog 103 116
"""

# Used by the sandbox itself; refused inside it.
_OWN = """
capset 126 91, landlock_create_ruleset 444 444, landlock_add_rule 445 445,
landlock_restrict_self 446 446, seccomp 317 277, pidfd_open 434 434
"""


def _parse(table: str, column: int) -> dict[str, int]:
    rows = (entry.split() for entry in table.replace("\n", " ").split(",") if entry.strip())
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}


AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


class CallTable:
    """Numbers of one architecture by policy group, and `number` for the sandbox's own calls.

    Raises KeyError for an architecture without a table.
    """

    def __init__(self, machine: str):
        self.audit_arch = AUDIT_ARCH[machine]
        column = list(AUDIT_ARCH).index(machine) + 1
        self.allowed = _parse(_ALLOWED, column)
        self.checked = _parse(_CHECKED, column)
        self.private = _parse(_PRIVATE, column)
        self.spawning = _parse(_SPAWNING, column)
        self.missing = _parse(_MISSING, column)
        self.fatal = _parse(_FATAL, column)
        self.own = _parse(_OWN, column)
        self.number = self.allowed | self.checked | self.private | self.spawning
        self.number |= self.missing | self.fatal | self.own


def native_table() -> CallTable:
    """The table of this machine; OSError where there is none."""
    machine = platform.machine()
    if machine not in AUDIT_ARCH:
        raise OSError(f"no system call table for {machine}; known: {', '.join(AUDIT_ARCH)}")
    return CallTable(machine)
