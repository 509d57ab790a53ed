"""A worker process that judges pairs (answer, truth): JSON lines in, one status a line out.

Started by `math_pool`. It kills itself when a pair costs more CPU time than allowed, and it ends
when its parent does, however the parent ended.
"""

from __future__ import annotations

import json
import os
import queue
import resource
import select
import signal
import sys
import threading

MEMORY_BYTES = 3 * 2**30


def main(cpu_s: float) -> None:
    """Serve until standard input ends."""
    # The time limit below protects from long integers as it does from all else.
    sys.set_int_max_str_digits(0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    # The default action of the signal ends the process even inside one long C call, such as an
    # integer power, where a Python handler would never run.
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    jobs: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read_jobs, args=(jobs, os.getppid()), daemon=True).start()
    # Imported here: the parent imports this module's folder, never sympy.
    from rolewise.tasks.math_equivalence import equivalent
    from rolewise.tasks.math_values import TooLarge

    while True:
        answer, truth = json.loads(jobs.get())
        signal.setitimer(signal.ITIMER_PROF, cpu_s)
        try:
            status = "correct" if equivalent(answer, truth) else "wrong"
        except TooLarge:
            status = "grader_timeout"
        except Exception:  # whatever sympy raises on odd input is a verdict here, not an error
            status = "grader_crash"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        os.write(1, status.encode() + b"\n")


def _read_jobs(jobs: queue.SimpleQueue[bytes], parent: int) -> None:
    """Pass on complete lines; leave at once when the pipe ends or the parent is gone."""
    pending = b""
    while True:
        if not select.select([0], [], [], 1.0)[0]:
            # A copy of the pipe in another child of a dead parent would hide the end of input.
            if os.getppid() != parent:
                os._exit(0)
            continue
        chunk = os.read(0, 1 << 16)
        if not chunk:
            os._exit(0)
        *lines, pending = (pending + chunk).split(b"\n")
        for line in lines:
            jobs.put(line)


if __name__ == "__main__":
    main(float(sys.argv[1]))
