"""From the claims ledger to advice on choosing and watching a policy; no verdict, no advice. Pure.

A claim that holds by construction of the preset advises nothing either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rolewise.analysis.evidence import CONTRADICTED, SUPPORTED

CHOOSE, STOP, WATCH = "Which policy", "How long to train", "What to watch"


@dataclass(frozen=True)
class Rule:
    """What a reader should do if the claim `id` is supported, and what if it is contradicted."""

    id: str
    topic: str
    supported: str
    contradicted: str


@dataclass(frozen=True)
class Advice:
    """One piece of advice and the decided claim it rests on."""

    text: str
    claim: dict[str, Any]


RULES = (
    Rule(
        "1a",
        CHOOSE,
        "Train the workflow: RL beats the untrained workflow in most cells.",
        "Keep the untrained workflow as the one to beat: RL does not beat it in most cells.",
    ),
    Rule(
        "1b",
        CHOOSE,
        "A trained workflow is a sound choice beside single-agent RL: it matches or beats it mostly.",
        "Try single-agent RL first: most trained workflows stay behind it.",
    ),
    Rule(
        "2a",
        CHOOSE,
        "Decide by workflow, task and scale together; the policy alone says less.",
        "Decide the policy first: it says more than workflow, task and scale.",
    ),
    Rule(
        "10a",
        CHOOSE,
        "Try both policies on your workflow and task: neither is better everywhere.",
        "Start with the policy that leads here: it is ahead in most pairs and behind in none.",
    ),
    Rule(
        "3a",
        CHOOSE,
        "For the highest peak start with IP, and keep its best checkpoint.",
        "For the highest peak start with SP.",
    ),
    Rule(
        "3b",
        STOP,
        "Stop IP early, or select checkpoints on held-out problems: its lead shrinks.",
        "IP keeps its lead to the end: late checkpoints need no special care on its account.",
    ),
    Rule(
        "4",
        STOP,
        "Evaluate IP often: it falls off accuracy cliffs more often than SP.",
        "Evaluate SP often: it falls off accuracy cliffs more often than IP.",
    ),
    Rule(
        "5d",
        STOP,
        "Expect SP to level off earlier; its late steps pay less.",
        "Expect IP to level off earlier; its late steps pay less.",
    ),
    Rule(
        "5a",
        WATCH,
        "Under IP watch the token-level policy ratio: its maxima are larger.",
        "Under SP watch the token-level policy ratio: its maxima are larger.",
    ),
    Rule(
        "5b",
        WATCH,
        "Under IP watch the gradient norm: its maxima are larger.",
        "Under SP watch the gradient norm: its maxima are larger.",
    ),
    Rule(
        "5c",
        WATCH,
        "Under IP watch entropy: it collapses deeper.",
        "Under SP watch entropy: it collapses deeper.",
    ),
    Rule(
        "6b",
        WATCH,
        "Under SP read the aggregator's outputs even while accuracy holds.",
        "The aggregator's form was no early sign under SP here; accuracy tells more.",
    ),
    Rule(
        "7c",
        WATCH,
        "Count parallel agents of one role under IP as a larger step: their updates point one way.",
        "Parallel agents of one role did not push together under IP here.",
    ),
    Rule(
        "8f",
        WATCH,
        "Under SP balance the roles' gradient mass (`loss.role_weights: norm`): mass goes with capture.",
        "Gradient mass did not tell who captures whom here; read response shapes instead.",
    ),
    Rule(
        "9a",
        WATCH,
        "Under IP do not count on votes being independent: slots come to share wrong answers.",
        "Under IP parallel slots did not narrow; more of them can still help.",
    ),
    Rule(
        "9b",
        WATCH,
        "Under SP do not count on votes being independent: slots come to share wrong answers.",
        "Under SP parallel slots did not narrow; more of them can still help.",
    ),
    Rule(
        "10b",
        WATCH,
        "Monitor each role's perplexity: where it grows, accuracy falls later.",
        "A growing perplexity did not announce falls here; rely on held-out accuracy.",
    ),
)


def guidance(claims: list[dict[str, Any]]) -> dict[str, list[Advice]]:
    """Advice by topic that follows from the decided claims (as in claims.json), in rule order."""
    by_id = {claim["id"]: claim for claim in claims}
    found: dict[str, list[Advice]] = {}
    for rule in RULES:
        claim = by_id.get(rule.id, {})
        text = {SUPPORTED: rule.supported, CONTRADICTED: rule.contradicted}.get(
            claim.get("verdict", "")
        )
        if text is not None and not claim.get("by_construction"):
            found.setdefault(rule.topic, []).append(Advice(text, claim))
    return found
