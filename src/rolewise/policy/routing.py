"""Which adapter a role reads and updates: the difference between Shared- and Isolated-Policy. Pure."""

from __future__ import annotations

from rolewise.grid import BASE, ISOLATED, SHARED, SINGLE_AGENT


def adapter_of(policy: str, role: str) -> str | None:
    """Name of the adapter of `role`: its own (IP, SA), the shared one (SP) or none (Base)."""
    return {BASE: None, SHARED: "shared", ISOLATED: role, SINGLE_AGENT: role}[policy]


def adapters_of(policy: str, roles: tuple[str, ...]) -> list[str]:
    """Names of all adapters of a workflow with these roles, in order, without repetition."""
    names = [adapter_of(policy, role) for role in roles]
    return [name for name in dict.fromkeys(names) if name is not None]
