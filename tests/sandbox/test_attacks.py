"""Every attack fails in every tier, changes nothing outside and leaves the worker usable."""

from __future__ import annotations

import os

import psutil
import pytest

from rolewise.config import SandboxLimits
from rolewise.sandbox.job import Job
from rolewise.sandbox.pool import Pool, single
from tests.sandbox.attacks import ATTACKS, LIBC
from tests.sandbox.attacks_on_resources import RESOURCES
from tests.sandbox.world import SECRET, world

LIMITS = SandboxLimits()
CASES = [
    pytest.param(tier, attack, id=f"tier{tier}-{attack.name.replace(' ', '-')}")
    for tier in (1, 2, 3)
    for attack in ATTACKS + RESOURCES
    if tier in attack.tiers
]


@pytest.fixture(scope="module")
def outside(tmp_path_factory):
    os.environ["ROLEWISE_TEST_TOKEN"] = SECRET
    with world(tmp_path_factory.mktemp("outside")) as made:
        yield made
    del os.environ["ROLEWISE_TEST_TOKEN"]


@pytest.fixture(scope="module")
def pools():
    made = {tier: Pool(tier, 1) for tier in (1, 2, 3)}
    yield made
    for pool in made.values():
        pool.close()


def run(pool: Pool, program: bytes, stdin: bytes = b"", limits: SandboxLimits = LIMITS):
    [outcome] = pool.run([single(Job(program, limits, stdin=stdin))])
    return outcome


def family(pool: Pool) -> list[int]:
    """The processes of the only worker: launcher and worker, or the worker alone."""
    [worker] = pool.workers
    process = psutil.Process(worker.process.pid)
    return sorted([process.pid, *(child.pid for child in process.children(recursive=True))])


@pytest.mark.parametrize(("tier", "attack"), CASES)
def test_attack_is_stopped_and_changes_nothing_outside(tier, attack, pools, outside):
    pool = pools[tier]
    assert run(pool, b"print(1)").stdout == b"1\n"
    facts, processes = outside.facts(), family(pool)

    outcome = run(pool, outside.program(attack.program), limits=attack.limits)

    assert attack.held(outcome), outcome
    assert outcome.status != "infra"
    assert SECRET.encode() not in outcome.stdout + outcome.stderr or "secret" in attack.program
    assert outside.facts() == facts
    assert family(pool) == processes
    assert run(pool, b"print(sum(map(int, input().split())))", b"1 2 3").stdout == b"6\n"


@pytest.mark.parametrize("tier", [1, 2, 3])
def test_nothing_of_one_test_is_in_the_memory_of_the_next(tier, pools):
    marker = b"previous-test-marker"
    scan = (
        LIBC + "import re\npattern = re.compile(b'previous[-]test[-]marker')\n"
        "page = 4096\nvector = ctypes.create_string_buffer(1)\n"
        "libc.sbrk.restype = ctypes.c_void_p\nseen = 0\n"
        "def mapped(p): return libc.mincore(ctypes.c_void_p(p), page, vector) == 0\n"
        "arena = id(object()) & ~0xFFFFF\nheap = libc.sbrk(0) & ~(page - 1)\n"
        "for start, step, count in ((arena, page, 256), (heap - page, -page, 4096)):\n"
        "    for i in range(count):\n        p = start + i * step\n"
        "        if not mapped(p): break\n        seen += 1\n"
        "        if pattern.search(ctypes.string_at(p, page)): print('yes')\n"
        "print('scanned', seen > 100)\n"
    )
    pool = pools[tier]
    kept = run(pool, b"print(input()) # " + marker, marker)
    assert kept.stdout == marker + b"\n"
    assert run(pool, scan.encode()).stdout == b"scanned True\n"


@pytest.mark.parametrize("tier", [1, 2, 3])
def test_core_files_and_helpers_are_switched_off(tier, pools):
    program = b"import resource\nprint(resource.getrlimit(resource.RLIMIT_CORE))"
    assert run(pools[tier], program).stdout == b"(1, 1)\n"
