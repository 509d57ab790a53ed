"""Attacks on resources and on the verdict itself: bombs, loops, crashes, forgeries."""

from __future__ import annotations

import os
import signal

from rolewise.config import SandboxLimits
from tests.sandbox.attacks import Attack, each, has, killed_by, says

QUICK = SandboxLimits(cpu_s=0.3)
SMALL = SandboxLimits(cpu_s=3, memory_mb=128)

RESOURCES = [
    Attack(
        "42 fork bomb",
        "import os\nn = 0\ntry:\n    while n < 100:\n        if os.fork() == 0:\n"
        "            os.read(os.pipe()[0], 1)\n        n += 1\nexcept OSError: pass\n"
        "print('yes' * (n > 64))",
    ),
    Attack(
        "43 daemon",
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
        "        time.sleep(600)\n    os._exit(0)",
    ),
    Attack(
        "44 daemon holds stdout",
        "import os, time\nprint(5, flush=True)\nif os.fork() == 0: time.sleep(600)",
    ),
    Attack(
        "45 thread bomb",
        "import threading, time\nthreading.stack_size(32768)\nn = 0\ntry:\n"
        "    while n < 200:\n        threading.Thread(target=time.sleep, args=(9,), daemon=True)"
        ".start(); n += 1\nexcept RuntimeError: pass\nprint('yes' * (n > 64))",
        tiers=(1, 2, 3) if os.geteuid() == 0 else (1,),  # a loss that the tier report names
    ),
    Attack(
        "46 memory bomb",
        "x = []\nfor _ in range(4000): x.append(bytearray(1 << 20))\nprint('yes')",
        has("memory"),
        limits=SMALL,
    ),
    Attack(
        "47 shared memory bomb",
        "import mmap\nx = []\nfor _ in range(20):\n    m = mmap.mmap(-1, 100 << 20)\n"
        "    x.append(m)\nprint('yes')",
        limits=SMALL,
    ),
    Attack(
        "47 memory files",
        each("os.memfd_create('x')\nopen('/dev/zero', 'r+b')"),
    ),
    Attack(
        "48 endless stdout",
        "import sys\nwhile True: sys.stdout.write('x' * 1000000)",
        has("output_limit"),
    ),
    Attack(
        "48 endless stderr",
        "import sys\nwhile True: sys.stderr.write('x' * 1000000)",
        has("runtime_error"),
    ),
    Attack(
        "49 fill scratch",
        "import os\nn = 0\ntry:\n    for i in range(5000):\n        open(f'f{i}', 'w').close(); n += 1\n"
        "except OSError: pass\nprint('yes' * (n > 1024))\nsize = 0\ntry:\n    for i in range(9):\n"
        "        with open(f'f{i}', 'wb') as f: size += f.write(bytes(4 << 20)); f.flush()\n"
        "except OSError: pass\nprint('yes' * (size > 20 << 20))\n"
        "try: open('/dev/shm/x', 'w'); print('yes')\nexcept OSError: pass",
    ),
    Attack("50 endless loop", "while True: pass", has("timeout"), limits=QUICK),
    Attack(
        "50 signals ignored",
        "import signal\nfor s in range(1, 65):\n    try: signal.signal(s, signal.SIG_IGN)\n"
        "    except (OSError, ValueError): pass\nwhile True: pass",
        has("timeout"),
        limits=QUICK,
    ),
    Attack(
        "50 exit handler",
        "import atexit\n@atexit.register\ndef f():\n    while True: pass",
        has("timeout"),
        limits=QUICK,
    ),
    Attack(
        "50 regular expression",
        "import re\nre.match('(a*)*b', 'a' * 40)",
        has("timeout"),
        limits=QUICK,
    ),
    Attack("51 sleep", "import time\ntime.sleep(600)", has("timeout"), limits=QUICK),
    Attack("51 stop itself", "import os\nos.kill(os.getpid(), 19)", has("timeout"), limits=QUICK),
    Attack(
        "52 threads outside the lock",
        "import random, threading, zlib\nd = random.randbytes(1 << 22)\ndef f():\n"
        "    while True: zlib.compress(d, 9)\n"
        "for _ in range(8): threading.Thread(target=f).start()",
        has("timeout"),
        tiers=(1, 2),
        limits=QUICK,
    ),
    Attack(
        "53 descriptors",
        "import os\nn = 0\ntry:\n    while n < 1000: os.dup(0); n += 1\nexcept OSError: pass\n"
        "print('yes' * (n > 64))",
    ),
    Attack(
        "54 C stack",
        "import sys\nsys.setrecursionlimit(10**8)\ndef f(_): return list(map(f, [0]))\nf(0)",
        killed_by(signal.SIGSEGV),
    ),
    Attack("54 null pointer", "import ctypes\nctypes.string_at(0)", killed_by(signal.SIGSEGV)),
    Attack("54 abort", "import os\nos.abort()", killed_by(signal.SIGABRT)),
    Attack("55 kill itself", "import os\nos.kill(os.getpid(), 9)", killed_by(signal.SIGKILL)),
    Attack("56 exit early", "import os\nprint('42')\nos._exit(0)", says(b"")),
    Attack(
        "58 set-up exit code",
        "import os, sys\nsys.stderr.write('the worker process died')\nos._exit(97)",
        has("runtime_error"),
    ),
    Attack(
        "60 write to every descriptor",
        "import os\nfor fd in range(3, 64):\n    try: os.write(fd, b'r'); print('yes')\n"
        "    except OSError: pass",
    ),
    Attack("62 long line", "x = '" + "a" * 200_000 + "'", says(b"")),
    Attack(
        "62 brackets", "(" * 1000 + ")" * 1000, lambda o: o.status in ("runtime_error", "memory")
    ),
    Attack("62 null bytes", "print('no')\x00", has("runtime_error")),
    Attack("62 surrogate", "print('\udc80')", has("runtime_error")),
]
