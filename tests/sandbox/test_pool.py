"""Workers: honest programs run as from a shell, and nothing is lost or left when one is killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

import psutil
import pytest

from rolewise.config import SandboxLimits
from rolewise.sandbox.job import Job, classify, genuine_results
from rolewise.sandbox.pool import Pool, single

LIMITS = SandboxLimits()
SUM = b"print(sum(map(int, input().split())))"


@pytest.fixture(scope="module")
def pool():
    made = Pool(1, 1)
    yield made
    made.close()


@pytest.fixture(scope="module")
def second_tier():
    made = Pool(2, 1)
    yield made
    made.close()


def run(pool, program, stdin=b"", limits=LIMITS):
    [outcome] = pool.run([single(Job(program.encode(), limits, stdin=stdin))])
    return outcome


HONEST = {
    "deep recursion in a big thread": (
        "import sys, threading\nsys.setrecursionlimit(200000)\nthreading.stack_size(128 << 20)\n"
        "def f(n): return 0 if n == 0 else 1 + f(n - 1)\n"
        "t = threading.Thread(target=lambda: print(f(100000)))\nt.start()\nt.join()",
        "100000\n",
    ),
    "asyncio": (
        "import asyncio\nasync def f():\n    await asyncio.sleep(0.01)\n    print('done')\n"
        "asyncio.run(f())",
        "done\n",
    ),
    "lines from several kinds of reading": (
        "import fileinput, os\nprint([line.strip() for line in fileinput.input()])\n"
        "os.lseek(0, 0, 0)\nprint(os.read(0, 100))",
        "['abc', 'de']\nb'abc\\nde'\n",
    ),
    "stdin by number": ("print(len(open(0).read()))", "6\n"),
    "fifty threads": (
        "import threading\nn = []\nt = [threading.Thread(target=n.append, args=(i,)) "
        "for i in range(50)]\nfor x in t: x.start()\nfor x in t: x.join()\nprint(len(n))",
        "50\n",
    ),
    "decimal": ("from decimal import Decimal\nprint(Decimal('0.1') * 3)", "0.3\n"),
    "numpy": ("import numpy as np\nprint(int(np.arange(10).sum()))", "45\n"),
    "late import": ("import sqlite3, zoneinfo, csv\nprint(sqlite3.__name__)", "sqlite3\n"),
    "main guard": ("def main(): print('ran')\nif __name__ == '__main__': main()", "ran\n"),
    "pickle of an own class": (
        "import pickle\nclass A: x = 3\nprint(pickle.loads(pickle.dumps(A())).x)",
        "3\n",
    ),
    "exit handler": (
        "import atexit\natexit.register(print, 'last')\nprint('first')",
        "first\nlast\n",
    ),
    "replaced stdout": (
        "import io, sys\nsys.stdout = io.TextIOWrapper(open(1, 'wb'), write_through=False)\n"
        "print('kept')",
        "kept\n",
    ),
    "module of built-ins": (
        "print(__builtins__.len('abc'), type(__builtins__).__name__)",
        "3 module\n",
    ),
    "own source": (
        "import inspect\ndef f(): return 1\nprint(inspect.getsource(f), end='')",
        "def f(): return 1\n",
    ),
    "finalizer with names": (
        "class A:\n    def __del__(self): print('bye', x)\nx = 3\na = A()\na.me = a\nprint('hi')",
        "hi\nbye 3\n",
    ),
    "file never closed": ("out = open(1, 'w')\nout.write('late')\nprint('first')", "first\nlate"),
    "open generator": (
        "def g():\n    try: yield\n    finally: print('end')\nkept = g()\nnext(kept)",
        "end\n",
    ),
    "printing through an own stream": (
        "import sys\nclass Out(list):\n    def write(self, x): self.append(x)\n"
        "    def flush(self): sys.__stdout__.write(''.join(self))\nsys.stdout = Out()\nprint(5)",
        "5\n",
    ),
    "recursion as deep as from a shell": (
        "def f(n):\n    try: return f(n + 1)\n    except RecursionError: return n\nprint(f(0))",
        "998\n",
    ),
    "annotations of the module": (
        "print(__annotations__)\nx: int = 3\nprint(__annotations__)",
        "{}\n{'x': <class 'int'>}\n",
    ),
    "no stdout at the end": ("import sys\nprint(1)\nsys.stdout.flush()\ndel sys.stdout", "1\n"),
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_program_runs_as_from_a_shell(name, pool, second_tier):
    program, expected = HONEST[name]
    for tier in (pool, second_tier):
        outcome = run(tier, program, b"abc\nde")
        assert (outcome.status, outcome.stdout.decode()) == ("pass", expected), outcome.stderr


@pytest.mark.parametrize(
    ("last_words", "status"),
    [
        ("while True: pass", "timeout"),
        ("bytearray(1 << 30)", "pass"),  # an exception in a finalizer is only reported
        ("print('x' * 2000000)", "output_limit"),
        ("import os; os._exit(3)", "runtime_error"),
    ],
)
def test_finalizers_stay_within_the_limits(last_words, status, pool):
    program = f"class A:\n    def __del__(self):\n        {last_words}\na = A()"
    limits = SandboxLimits(cpu_s=0.5, memory_mb=128, output_kb=1024)
    assert run(pool, program, limits=limits).status == status


@pytest.mark.parametrize(
    ("code", "status"),
    [("None", "pass"), ("False", "pass"), ("3", "runtime_error"), ("2**70", "runtime_error")],
)
def test_the_exit_code_decides_as_from_a_shell(code, status, pool):
    assert run(pool, f"raise SystemExit({code})").status == status


def test_a_failing_program_fails_whatever_its_finalizers_do(pool):
    program = "class A:\n    def __del__(self): print('bye')\na = A()\nraise ValueError"
    outcome = run(pool, program)
    assert (outcome.status, outcome.stdout) == ("runtime_error", b"bye\n")


FORGERS = {
    "every descriptor": "for fd in OPEN:\n            os.write(fd, b'[6]\\n')",
    "half a line": "for fd in OPEN:\n            os.write(fd, b'[6')",
    "a token seen before": (
        "for fd in OPEN:\n            old = os.pread(fd, 32, 0)\n"
        "            os.write(fd, old + b'[6]\\n')"
    ),
    "a token in a frame": (
        "frame = sys._getframe()\n        while frame:\n"
        "            found += re.findall('[0-9a-f]{32}', repr(frame.f_locals))\n"
        "            frame = frame.f_back"
    ),
    "a token in an object": (
        "found += re.findall('[0-9a-f]{32}', repr([x for x in gc.get_objects()"
        " if type(x) in (list, tuple, map)]))"
    ),
}


@pytest.mark.parametrize("forger", FORGERS)
def test_only_what_a_call_returns_is_its_result(forger, pool):
    program = (
        "import gc, os, re, sys\ndef is_open(fd):\n    try: return bool(os.fstat(fd))\n"
        "    except OSError: return False\nOPEN = [*filter(is_open, range(3, 64))]\n"
        f"def f(x):\n    found = []\n    if OPEN:\n        {FORGERS[forger]}\n"
        "    return [x, len(found)]"
    )
    [outcome] = pool.run([single(Job(program.encode(), LIMITS, fn_name="f", calls=([0], [1])))])
    assert outcome.results == b"[[0,0]]\n[[1,0]]\n", outcome


def test_a_result_without_its_token_or_line_end_is_none():
    written = b"junk\naa[1]\nbb[2]\naa[3]\ncc[4]"
    assert genuine_results(written, ["aa", "bb", "cc"]) == b"[1]\n[2]\n"
    assert genuine_results(written, ["bb", "aa"]) == b"[2]\n[3]\n"
    assert genuine_results(written, ["dd", "aa"]) == b""


def test_files_in_the_working_directory_are_private_to_a_run(pool):
    program = "import os\nprint(os.listdir())\nopen('x', 'w').write('1')\nprint(open('x').read())"
    for _ in range(2):
        assert run(pool, program).stdout == b"[]\n1\n"


def test_temporary_files_work(pool):
    program = (
        "import tempfile\nwith tempfile.TemporaryFile('w+') as f:\n    f.write('a')\n    f.seek(0)\n"
        "    print(f.read())"
    )
    assert run(pool, program).stdout == b"a\n"


def test_stdin_can_be_opened_by_name(pool):
    program = "print(open('/dev/stdin').read(), input())\ntry: open('../x', 'w')\n"
    program += "except OSError: print('read-only')"
    assert run(pool, program, b"abc").stdout == b"abc abc\nread-only\n"


def test_child_processes_run_in_the_first_tier(pool):
    program = (
        "import subprocess, sys\n"
        "print(subprocess.run([sys.executable, '-S', '-c', 'print(7)'], capture_output=True).stdout)"
    )
    assert run(pool, program).stdout == b"b'7\\n'\n"


def test_use_close_to_every_limit_passes(pool):
    limits = SandboxLimits(cpu_s=2, memory_mb=256, output_kb=1024)
    big = run(pool, "import sys\nprint(len(sys.stdin.buffer.read()))", bytes(16 << 20), limits)
    assert big.stdout == b"16777216\n"
    full = run(pool, "print('x' * (1024 * 1024 - 1))", limits=limits)
    assert (full.status, len(full.stdout)) == ("pass", 1 << 20)
    assert run(pool, "x = bytearray(230 << 20)\nprint(len(x))", limits=limits).status == "pass"
    busy = "import time\nwhile time.process_time() < 1.6: pass\nprint(1)"
    spent = run(pool, busy, limits=limits)
    assert spent.status == "pass", spent


@pytest.mark.parametrize(
    ("last_line", "status"),
    [
        ("MemoryError", "memory"),
        ("numpy._core._exceptions._ArrayMemoryError: Unable to allocate", "memory"),
        ("ValueError: no MemoryError", "runtime_error"),
        ("MemoryErrors: of my own", "runtime_error"),
    ],
)
def test_libraries_may_run_out_of_memory_in_their_own_words(last_line, status):
    reply = {"ran": True, "killed": None, "cpu": 0.0, "status": 1 << 8}
    assert classify(reply, LIMITS, b"", f"Traceback\n{last_line}\n".encode()) == status


def test_one_byte_too_much_is_over_the_output_limit(pool):
    limits = SandboxLimits(output_kb=1)
    assert run(pool, "print('x' * 1023)", limits=limits).status == "pass"
    assert run(pool, "print('x' * 1024)", limits=limits).status == "output_limit"


def test_processes_of_one_program_share_the_memory_limit(pool):
    program = (
        "import os, time\nfor _ in range(12):\n    if os.fork() == 0:\n"
        "        x = bytearray(100 << 20)\n        time.sleep(60)\ntime.sleep(60)"
    )
    outcome = run(pool, program, limits=SandboxLimits(memory_mb=128, cpu_s=10))
    assert outcome.status == "memory"


def test_processes_of_one_program_share_the_time_limit(pool):
    program = "import os\nfor _ in range(3): os.fork()\nwhile True: pass"
    outcome = run(pool, program, limits=SandboxLimits(cpu_s=0.5))
    assert outcome.status == "timeout"


def test_output_is_the_same_on_every_run_and_worker():
    pool = Pool(1, 2)
    program = b"import random\nprint({'a', 'b', 'c', 'd'}, random.random(), hash('x'))"
    outcomes = pool.run([single(Job(program, LIMITS)) for _ in range(60)])
    pool.close()
    assert len({outcome.stdout for outcome in outcomes}) == 1
    assert len(outcomes[0].stdout) > 20


def inner_process(worker) -> int:
    """The process that does the work: in tier 1 a child of the launcher."""
    process = psutil.Process(worker.process.pid)
    return process.children()[0].pid if worker.tier == 1 else process.pid


def innermost_process(worker) -> int:
    """The process of the test that is running, if there is one."""
    return psutil.Process(worker.process.pid).children(recursive=True)[-1].pid


VICTIMS = {"launcher": lambda w: w.process.pid, "worker": inner_process, "test": innermost_process}


@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("tier", [1, 2])
def test_killing_processes_mid_batch_loses_nothing(tier, victim):
    pool = Pool(tier, 2)
    pool.run([single(Job(b"", LIMITS)) for _ in range(2)])
    done = threading.Event()
    kills = []

    def kill_often():
        while not done.wait(0.05) and len(kills) < 6:
            worker = pool.workers[len(kills) % len(pool.workers)]
            with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError, IndexError):
                pid = VICTIMS[victim](worker)
                os.kill(pid, signal.SIGKILL)
                kills.append(pid)

    killer = threading.Thread(target=kill_often)
    slow = b"import time\ntime.sleep(0.05)\n" + SUM
    killer.start()
    outcomes = pool.run([single(Job(slow, LIMITS, stdin=b"%d 1" % i)) for i in range(40)])
    done.set()
    killer.join()
    assert [int(outcome.stdout) for outcome in outcomes] == [i + 1 for i in range(40)]
    assert kills
    assert pool.counters.tests == 42
    pool.close()


JUDGE = """
import sys
from rolewise.config import SandboxLimits
from rolewise.sandbox.job import Job
from rolewise.sandbox.pool import Pool, single
pool = Pool(int(sys.argv[1]), 2)
pool.run([single(Job(b"", SandboxLimits())) for _ in range(2)])
print("ready", flush=True)
program = b"import os, time\\ntry: os.fork()\\nexcept OSError: pass\\ntime.sleep(60)"
pool.run([single(Job(program, SandboxLimits(cpu_s=30))) for _ in range(2)])
"""


@pytest.mark.parametrize("tier", [1, 2, 3])
def test_a_killed_judge_leaves_no_process(tier):
    judge = subprocess.Popen(
        [sys.executable, "-c", JUDGE, str(tier)], stdout=subprocess.PIPE, text=True
    )
    assert judge.stdout.readline() == "ready\n"
    expected = {1: 6, 2: 4, 3: 4}[tier]
    deadline = time.monotonic() + 20
    family = []
    while len(family) < expected and time.monotonic() < deadline:
        family = psutil.Process(judge.pid).children(recursive=True)
    assert len(family) >= expected
    judge.kill()
    judge.wait()
    _, alive = psutil.wait_procs(family, timeout=20)
    assert not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


def test_closing_the_pool_leaves_no_process_and_no_descriptor():
    before = set(os.listdir("/proc/self/fd"))
    pool = Pool(1, 2)
    pool.run([single(Job(SUM, LIMITS, stdin=b"1 2")) for _ in range(4)])
    family = psutil.Process().children(recursive=True)
    mine = {worker.process.pid for worker in pool.workers}
    mine |= {inner_process(worker) for worker in pool.workers}
    assert mine <= {process.pid for process in family}
    pool.close()
    assert not mine & {process.pid for process in psutil.Process().children(recursive=True)}
    assert set(os.listdir("/proc/self/fd")) == before


def test_a_worker_is_replaced_after_many_tests(monkeypatch):
    monkeypatch.setattr("rolewise.sandbox.pool._TESTS_PER_WORKER", 5)
    pool = Pool(1, 1)
    pool.run([single(Job(SUM, LIMITS, stdin=b"1 2")) for _ in range(3)])
    [first] = pool.workers
    outcomes = pool.run([single(Job(SUM, LIMITS, stdin=b"1 2")) for _ in range(4)])
    assert [outcome.stdout for outcome in outcomes] == [b"3\n"] * 4
    assert pool.workers[0] is not first
    assert not psutil.pid_exists(first.process.pid)
    pool.close()
