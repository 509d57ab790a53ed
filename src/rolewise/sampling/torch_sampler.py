"""The in-process sampler: decodes on the trainer's own weights, so there is nothing to synchronise.

Each adapter has one running batch. Equal prompts are computed once, finished rows leave at once, and
waiting calls of the adapter join as soon as there is room, so no role waits for another's stragglers.
Which batch runs next depends on counts of requests only, never on a clock: the same requests give
the same tokens. Suffixes: B running rows, L length of a prompt, T cache length.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from rolewise.policy.backbone import Backbone, Linear
from rolewise.sampling.base import Completion, Request

STEPS_PER_TURN = 8


class TorchSampler:
    """Implements `sampling.base.Sampler`; `linear_of(adapter)` gives the layers of an adapter."""

    def __init__(
        self,
        backbone: Backbone,
        linear_of: Callable[[str | None], Linear],
        *,
        eos_ids: frozenset[int],
        temperature: float,
        processed: bool = True,
        max_rows: int = 512,
    ):
        self._make = lambda name: _Batch(
            backbone, linear_of(name), eos_ids, temperature, processed, max_rows
        )
        self._batches: dict[str | None, _Batch] = {}

    def serving(self) -> AbstractContextManager[None]:
        """A block of sampling; the weights are the trainer's own, so there is nothing to bring about."""
        return nullcontext()

    def submit(self, requests: Sequence[tuple[int, Request]]) -> None:
        """Queue requests, each under a ticket of the caller's choice."""
        for ticket, request in requests:
            if request.adapter not in self._batches:
                self._batches[request.adapter] = self._make(request.adapter)
            self._batches[request.adapter].waiting.append((ticket, request))

    @property
    def open(self) -> int:
        """Requests queued or running."""
        return sum(batch.open for batch in self._batches.values())

    @torch.inference_mode()
    def advance(self) -> list[tuple[int, Completion]]:
        """Decode a few tokens of the fullest batch and give back what finished."""
        if not self.open:
            return []
        batch = max(self._batches.values(), key=lambda b: b.open)
        done = batch.admit()
        for _ in range(STEPS_PER_TURN):
            if not batch.running:
                break
            done += batch.step()
        if not self.open:
            # Caches are as large as the largest batch; an idle sampler keeps none.
            self._batches.clear()
        return done


class _Batch:
    """Running rows of one adapter, kept in the first `running` rows of every buffer."""

    def __init__(
        self,
        backbone: Backbone,
        linear: Linear,
        eos_ids: frozenset[int],
        temperature: float,
        processed: bool,
        max_rows: int,
    ):
        self.backbone, self.linear = backbone, linear
        self.temperature, self.processed, self.max_rows = temperature, processed, max_rows
        self.waiting: deque[tuple[int, Request]] = deque()
        self.running = 0
        self.device = backbone.device
        self._eos = torch.tensor(sorted(eos_ids), device=self.device)
        self._tickets: list[int] = []
        self._rows = self._width = self._new_tokens = 0
        # Filled in by `_reserve`: per-row state and the caches (layer, key or value, B, K, T, E).
        self._length = self._generated = self._limit = torch.empty(0)
        self._last = self._ids = self._uniform = self._stats = self._cache = torch.empty(0)

    @property
    def open(self) -> int:
        return self.running + len(self.waiting)

    def admit(self) -> list[tuple[int, Completion]]:
        """Prefill waiting requests into free rows and draw their first tokens."""
        room = min(self.max_rows - self.running, len(self.waiting))
        # A few newcomers wait for company, since a prefill costs the same for one row as for many.
        if room == 0 or (self.running and len(self.waiting) < min(32, self.running // 4)):
            return []
        chosen = [self.waiting.popleft() for _ in range(room)]
        requests = [request for _, request in chosen]
        longest = max(len(r.prompt_ids) + r.max_tokens for r in requests)
        self._reserve(self.running + room, longest, max(r.max_tokens for r in requests))
        prompts = list(dict.fromkeys(r.prompt_ids for r in requests))
        index = {prompt: i for i, prompt in enumerate(prompts)}
        owner = torch.tensor([index[r.prompt_ids] for r in requests], device=self.device)
        rows = slice(self.running, self.running + room)
        last_hidden = self._prefill(prompts, owner, rows)
        lengths = torch.tensor([len(r.prompt_ids) for r in requests], device=self.device)
        self._length[rows] = lengths
        self._generated[rows] = 0
        self._limit[rows] = torch.tensor([r.max_tokens for r in requests], device=self.device)
        draws = np.zeros((room, self._new_tokens), np.float32)
        for row, request in zip(draws, requests, strict=True):
            generator = np.random.Generator(np.random.Philox(key=request.seed))
            generator.random(out=row[: request.max_tokens], dtype=np.float32)
        self._uniform[rows] = torch.from_numpy(draws).to(self.device)
        self._tickets += [ticket for ticket, _ in chosen]
        self.running += room
        self._draw(rows, self.backbone.logits(last_hidden)[owner])
        return self._release()

    def step(self) -> list[tuple[int, Completion]]:
        """Decode one token of every running row."""
        n = self.running
        rows = torch.arange(n, device=self.device)
        position = self._length[:n]
        reach = int(position.max()) + 1
        # Rows are shorter than the longest: what lies beyond their end is masked.
        hidden = torch.arange(reach, device=self.device)[None, :] > position[:, None]
        bias = torch.zeros(n, 1, 1, reach, device=self.device, dtype=self.backbone.dtype)
        bias.masked_fill_(hidden[:, None, None, :], float("-inf"))

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            keys, values = self._cache[layer].unbind(0)
            keys[rows, :, position] = k
            values[rows, :, position] = v
            heads, groups = q.shape[1], k.shape[1]
            q = q.view(n, groups, heads // groups, -1) * q.shape[-1] ** -0.5
            scores = (q @ keys[:n, :, :reach].transpose(-1, -2)).add_(bias)
            return (scores.softmax(-1) @ values[:n, :, :reach]).flatten(1, 2)

        hidden_BD = self.backbone.forward(self._last[:n], position, attend, self.linear)
        self._length[:n] += 1
        self._draw(slice(0, n), self.backbone.logits(hidden_BD))
        return self._release()

    def _prefill(self, prompts: list[tuple[int, ...]], owner: Tensor, rows: slice) -> Tensor:
        """Run distinct prompts once, copy their keys and values to `rows`; last hidden states."""
        lengths = torch.tensor([len(p) for p in prompts], device=self.device)
        count, width = len(prompts), int(lengths.max())
        grid = torch.zeros(count, width, dtype=torch.long, device=self.device)
        for i, prompt in enumerate(prompts):
            grid[i, : len(prompt)] = torch.tensor(prompt, device=self.device)
        positions = torch.arange(width, device=self.device).expand(count, width).reshape(-1)

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            # Padding lies to the right, where causal attention never looks.
            q, k, v = (t.view(count, width, *t.shape[1:]).transpose(1, 2) for t in (q, k, v))
            self._cache[layer][0][rows, :, :width] = k[owner]
            self._cache[layer][1][rows, :, :width] = v[owner]
            repeat = q.shape[1] // k.shape[1]
            k, v = (t.repeat_interleave(repeat, dim=1) for t in (k, v))
            out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return out.transpose(1, 2).flatten(0, 1)

        last = torch.arange(count, device=self.device) * width + lengths - 1
        return self.backbone.forward(grid.view(-1), positions, attend, self.linear, keep_M=last)

    def _draw(self, rows: slice, logits: Tensor) -> None:
        """Sample the next token of `rows` by inverting the cumulative distribution at their draw."""
        logits = logits.float()
        log_p = (logits / self.temperature).log_softmax(-1)
        p = log_p.exp()
        at = self._generated[rows]
        every = torch.arange(rows.start, rows.stop, device=self.device)
        cumulative = p.cumsum(-1)
        threshold = self._uniform[every, at][:, None] * cumulative[:, -1:]
        ids = torch.searchsorted(cumulative, threshold, right=True)[:, 0].clamp_(max=p.shape[1] - 1)
        recorded = log_p if self.processed else logits.log_softmax(-1)
        self._ids[every, at] = ids
        self._stats[0, every, at] = recorded.gather(1, ids[:, None])[:, 0]
        # A token without probability has log-probability -inf and no part in the entropy.
        bounded = log_p.clamp_min(torch.finfo(log_p.dtype).min)
        self._stats[1, every, at] = -torch.linalg.vecdot(p, bounded)
        self._stats[2, every, at] = p.amax(-1)
        self._last[rows] = ids
        self._generated[rows] += 1

    def _release(self) -> list[tuple[int, Completion]]:
        """Completions of rows that ended; the last running rows move into their places."""
        n = self.running
        stopped = torch.isin(self._last[:n], self._eos)
        ended = (stopped | (self._generated[:n] >= self._limit[:n])).nonzero()[:, 0]
        if not len(ended):
            return []
        counts = self._generated[ended].tolist()
        ids = self._ids[ended].cpu().numpy()
        stats = self._stats[:, ended].cpu().numpy()
        done = [
            (
                self._tickets[row],
                Completion(
                    ids=tuple(ids[i, :count].tolist()),
                    logprobs_T=stats[0, i, :count].copy(),
                    finish_reason="stop" if stop else "length",
                    entropies_T=stats[1, i, :count].copy(),
                    top_probs_T=stats[2, i, :count].copy(),
                ),
            )
            for i, (row, count, stop) in enumerate(
                zip(ended.tolist(), counts, stopped[ended].tolist(), strict=True)
            )
        ]
        self._compact(set(ended.tolist()))
        return done

    def _compact(self, ended: set[int]) -> None:
        left = self.running - len(ended)
        holes = sorted(row for row in ended if row < left)
        movers = [row for row in range(left, self.running) if row not in ended]
        if holes:
            to = torch.tensor(holes, device=self.device)
            source = torch.tensor(movers, device=self.device)
            for buffer in (self._length, self._generated, self._limit, self._last):
                buffer[to] = buffer[source]
            reach = int(self._length[:left].max()) if left else 0
            self._ids[to] = self._ids[source]
            self._uniform[to] = self._uniform[source]
            self._stats[:, to] = self._stats[:, source]
            self._cache[:, :, to, :, :reach] = self._cache[:, :, source, :, :reach]
            for hole, mover in zip(holes, movers, strict=True):
                self._tickets[hole] = self._tickets[mover]
        del self._tickets[left:]
        self.running = left

    def _reserve(self, rows: int, width: int, new_tokens: int) -> None:
        """Grow the buffers to hold `rows` rows of `width` tokens, keeping what runs."""
        if rows <= self._rows and width <= self._width and new_tokens <= self._new_tokens:
            return
        rows, width = max(rows, self._rows), max(width, self._width)
        new_tokens = max(new_tokens, self._new_tokens)
        shape, n = self.backbone.shape, self.running
        old = (self._length, self._generated, self._limit, self._last)
        whole = [torch.zeros(rows, dtype=torch.long, device=self.device) for _ in old]
        ids = torch.zeros(rows, new_tokens, dtype=torch.long, device=self.device)
        uniform = torch.zeros(rows, new_tokens, device=self.device)
        stats = torch.zeros(3, rows, new_tokens, device=self.device)
        size = (shape.layers, 2, rows, shape.kv_heads, width, shape.head_dim)
        cache = torch.zeros(size, device=self.device, dtype=self.backbone.dtype)
        if n:
            for new, buffer in zip(whole, old, strict=True):
                new[:n] = buffer[:n]
            ids[:n, : self._new_tokens] = self._ids[:n]
            uniform[:n, : self._new_tokens] = self._uniform[:n]
            stats[:, :n, : self._new_tokens] = self._stats[:, :n]
            cache[:, :, :n, :, : self._width] = self._cache[:, :, :n]
        self._length, self._generated, self._limit, self._last = whole
        self._ids, self._uniform, self._stats, self._cache = ids, uniform, stats, cache
        self._rows, self._width, self._new_tokens = rows, width, new_tokens
