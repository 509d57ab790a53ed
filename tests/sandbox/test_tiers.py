"""The tier is found by trying; weaker machines are refused with advice."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rolewise.errors import SandboxError
from rolewise.sandbox import tiers
from rolewise.sandbox.selftest import ATTACKS

# Makes some system calls fail with EPERM in this process and its children, then probes.
PROBE_WITHOUT = """
import struct, sys
from rolewise.sandbox import kernel, seccomp, tiers
blocked = [kernel.TABLE.number[name] for name in sys.argv[1:]]
code = [(0x20, 0, 0, 0)]
for number in blocked:
    code += [(0x15, 0, 1, number), (0x06, 0, 0, 0x50001)]
code.append((0x06, 0, 0, 0x7FFF0000))
kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
seccomp.enter(b"".join(struct.pack("=HBBI", *c) for c in code))
report = tiers.probe()
print(report.tier, report.summary, sep="|")
"""


def probe_without(*calls: str) -> tuple[int, str]:
    command = [sys.executable, "-c", PROBE_WITHOUT, *calls]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    tier, _, summary = output.strip().partition("|")
    return int(tier), summary


def test_the_strongest_tier_works_and_withstands_the_self_test():
    report = tiers.probe()
    assert report.tier == 1
    assert report.self_test == f"{len(ATTACKS)}/{len(ATTACKS)}"
    assert report.summary.startswith("sandbox tier 1 of 3, self-test 12/12")
    assert tiers.probe() is report


def test_without_namespaces_the_second_tier_is_used_and_the_loss_is_named():
    tier, summary = probe_without("unshare")
    assert tier == 2
    assert "child processes" in summary
    assert "unshare" in summary


def test_without_landlock_the_third_tier_is_used():
    tier, summary = probe_without("unshare", "landlock_create_ruleset")
    assert tier == 3
    assert "late imports" in summary


def test_without_seccomp_there_is_no_sandbox():
    tier, summary = probe_without("unshare", "landlock_create_ruleset", "seccomp")
    assert tier == 4
    assert summary.startswith("no sandbox")


def test_a_weaker_tier_than_asked_is_refused_with_advice(monkeypatch):
    weak = tiers.TierReport(3, ("late imports",), "12/12", ("tier 2: no Landlock",))
    monkeypatch.setattr(tiers, "probe", lambda: weak)
    assert tiers.require(3) is weak
    with pytest.raises(SandboxError, match=r"tier 2.*offers 3.*Landlock.*sandbox\.min_tier: 3"):
        tiers.require(2)


def test_a_machine_without_any_tier_is_always_refused(monkeypatch):
    none = tiers.TierReport(4, ("everything",), "0/12", ("no seccomp",))
    monkeypatch.setattr(tiers, "probe", lambda: none)
    with pytest.raises(SandboxError, match=r"offers none.*virtual machine"):
        tiers.require(3)
