"""How rows become mini-batches (one optimiser step each) and micro-batches (one pass each). Pure."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rolewise.config import Update
from rolewise.training.rows import Row


def minibatches(rows: list[Row], settings: Update, seed: int) -> list[list[Row]]:
    """Rows of one adapter, split into optimiser steps.

    `natural`: `minibatch` rows per step; a remainder joins the last mini-batch (`merged`) or is a step of
    its own (`kept`). `one_per_adapter`: all rows in one. Order is shuffled or by length.
    """
    if not rows:
        return []
    if settings.order == "by_length":
        ordered = sorted(rows, key=lambda r: len(r.prompt_ids) + r.tokens)
    else:
        ordered = [rows[i] for i in np.random.default_rng(seed).permutation(len(rows))]
    if settings.steps == "one_per_adapter":
        return [ordered]
    size = settings.minibatch
    chunks = [ordered[i : i + size] for i in range(0, len(ordered), size)]
    if settings.remainder == "merged" and len(chunks) > 1 and len(chunks[-1]) < size:
        chunks[-2:] = [chunks[-2] + chunks[-1]]
    return chunks


def microbatches(
    rows: list[Row], tokens: int, part_of: Callable[[Row], tuple] = lambda row: ()
) -> list[list[Row]]:
    """Rows in groups of at most `tokens` tokens, a shared prompt counted once, like lengths together.

    Rows of one part (whose gradients are to be told apart) stay adjacent and share prompts only among
    themselves. A row longer than the budget is a group of its own.
    """
    ordered = sorted(rows, key=lambda r: (part_of(r), len(r.prompt_ids), r.prompt_ids, r.tokens))
    groups: list[list[Row]] = []
    used, last = 0, None
    for row in ordered:
        owner = (part_of(row), row.prompt_ids)
        cost = row.tokens + (0 if owner == last else len(row.prompt_ids))
        if not groups or used + cost > tokens:
            groups.append([])
            used, cost = 0, row.tokens + len(row.prompt_ids)
        groups[-1].append(row)
        used, last = used + cost, owner
    return groups
