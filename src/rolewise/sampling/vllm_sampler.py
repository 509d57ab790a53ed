"""The vLLM sampler: a LoRA per role under a new name and id per version, each proven to be served.

Every request has its own seed. Where a build of vLLM cannot sample with seeds (tried at the start), draws
come from torch's generator, seeded at the start of every `serving` block by the requests that open it.
Either way the same calls give the same tokens, but log-probs round by batch, so a resumed training
equals an uninterrupted one in distribution, not bit by bit.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from rolewise.errors import TrainingError
from rolewise.policy.policy import Policy
from rolewise.sampling import parallel
from rolewise.sampling.base import Completion, Request, call_seed
from rolewise.sampling.liveness import (
    PROBE_TEXTS,
    Probe,
    Served,
    check_served,
    make_probe,
    trainer_logprobs,
)
from rolewise.sampling.vllm_engine import Engine, check_context, close_engine, open_engine
from rolewise.workflows.base import user

if TYPE_CHECKING:
    from vllm.lora.request import LoRARequest

    from rolewise.sampling.stage import Stage

log = logging.getLogger(__name__)

# Ids of LoRAs, never used twice in a process.
_ids = itertools.count(1)


@contextlib.contextmanager
def open_vllm(stage: Stage, policy: Policy) -> Iterator[VllmSampler]:
    """A sampler of `policy` on this process's engine; adapters are unloaded in the end."""
    settings = stage.config.sampling
    rollout = stage.rollout(None)
    longest = rollout.prompt_cap + rollout.response_cap
    folder = stage.layout.model(stage.cell.scale)
    check_context(folder, longest, stage.cell.task)
    processed = settings.logprobs == "processed"
    engine = open_engine(folder, policy, longest, processed, settings.vllm)
    texts = [
        stage.tokenizer.encode(stage.tokenizer.render(user(problem.prompt)))
        for problem in stage.problems[:PROBE_TEXTS]
    ]
    texts = [text[: rollout.prompt_cap] for text in texts]
    sampler = VllmSampler(
        engine,
        policy,
        eos_ids=stage.tokenizer.eos_ids,
        temperature=settings.temperature,
        processed=processed,
        probe=make_probe(policy.backbone, texts),
    )
    try:
        yield sampler
    finally:
        sampler.close()
        if parallel.world() > 1:
            # The engine uses, and in the end destroys, the process group that this run has joined.
            close_engine()


class VllmSampler:
    """Implements `sampling.base.Sampler` on an engine; every version of an adapter is a LoRA of its own."""

    def __init__(
        self,
        engine: Engine,
        policy: Policy,
        *,
        eos_ids: frozenset[int],
        temperature: float,
        processed: bool,
        probe: Probe,
    ):
        self._engine, self._seeded, self._policy = engine.inner, engine.seeded, policy
        self._eos, self._temperature = sorted(eos_ids), temperature
        self._scale = temperature if processed else 1.0
        self._probe = probe
        self._sleeps = bool(engine.inner.vllm_config.model_config.enable_sleep_mode)
        self._serving = False
        self._fresh = True
        self._tickets: dict[str, int] = {}
        self._failed: list[tuple[int, Completion]] = []
        self._served: dict[str, tuple[int, LoRARequest]] = {}
        self._before: dict[str, np.ndarray] = {}
        self._base: np.ndarray | None = None
        self._count = 0

    @contextlib.contextmanager
    def serving(self) -> Iterator[None]:
        """Serve the policy as it is now, proven by a probe; the accelerator's memory is free afterwards."""
        self._wake()
        try:
            self._synchronise()
            self._serving = self._fresh = True
            yield
        finally:
            self._serving = False
            self._engine.abort_request(list(self._tickets))
            self._tickets.clear()
            self._rest()

    def submit(self, requests: Sequence[tuple[int, Request]]) -> None:
        """Queue requests, each under a ticket of the caller's choice."""
        if not self._serving:
            raise TrainingError("a call was submitted outside of `serving`")
        if self._fresh and not self._seeded and requests:
            torch.manual_seed(call_seed(*(request.seed for _, request in requests)) % 2**63)
            self._fresh = False
        from vllm.exceptions import VLLMClientError

        for ticket, request in requests:
            name = str(self._count)
            self._count += 1
            try:
                self._engine.add_request(
                    name,
                    {"prompt_token_ids": list(request.prompt_ids)},
                    self._parameters(request),
                    lora_request=self._lora(request.adapter),
                )
            except VLLMClientError as error:
                log.warning("vLLM refuses a call: %s", " ".join(str(error).split())[:200])
                self._failed.append((ticket, _error()))
                continue
            self._tickets[name] = ticket

    def advance(self) -> list[tuple[int, Completion]]:
        """One engine step, a token of every running call; gives back what finished."""
        done, self._failed = self._failed, []
        if self._tickets:
            done += [
                (self._ticket(output), self._completion(output))
                for output in self._engine.step()
                if output.finished
            ]
        return done

    @property
    def open(self) -> int:
        """Requests queued or running."""
        return len(self._tickets) + len(self._failed)

    def close(self) -> None:
        """Unload this policy's adapters; the engine stays, at rest, for the next policy."""
        self._wake()
        for _, lora in self._served.values():
            self._engine.remove_lora(lora.lora_int_id)
        self._served.clear()
        self._rest()

    def _wake(self) -> None:
        """Give the engine its memory back, what the trainer has cached first."""
        if self._sleeps and self._engine.is_sleeping():
            torch.cuda.empty_cache()
            self._engine.wake_up()

    def _rest(self) -> None:
        """Drop what was cached for this policy; on GPUs the weights move to the host until `_wake`."""
        self._engine.reset_prefix_cache()
        if self._sleeps:
            self._engine.sleep(level=1)

    def _lora(self, adapter: str | None) -> LoRARequest | None:
        if adapter is None:
            return None
        version, lora = self._served[adapter]
        if version != self._policy.adapters[adapter].version:
            raise TrainingError(
                f"adapter '{adapter}' changed while calls were sampled; two versions must not mix"
            )
        return lora

    def _parameters(self, request: Request) -> Any:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        return SamplingParams(
            temperature=self._temperature,
            max_tokens=request.max_tokens,
            seed=request.seed % 2**63 if self._seeded else None,
            stop_token_ids=self._eos,
            logprobs=0,
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )

    def _ticket(self, output: Any) -> int:
        return self._tickets.pop(output.request_id)

    def _completion(self, output: Any) -> Completion:
        (sequence,) = output.outputs
        if sequence.finish_reason not in ("stop", "length"):
            return _error()
        return Completion(tuple(sequence.token_ids), _logprobs(sequence), sequence.finish_reason)

    def _synchronise(self) -> None:
        """Load every adapter that changed since it was last served, and prove that it is served."""
        changed = [
            name
            for name, adapter in self._policy.adapters.items()
            if name not in self._served or self._served[name][0] != adapter.version
        ]
        for name in changed:
            self._load(name)
        if changed:
            self._engine.reset_prefix_cache()
        for name in changed:
            self._prove(name)

    def _load(self, name: str) -> None:
        """Give the engine the adapter under a name and id that were never used before."""
        from vllm.lora.request import LoRARequest

        adapter = self._policy.adapters[name]
        if name in self._served:
            self._engine.remove_lora(self._served[name][1].lora_int_id)
        # The engine keeps what it has read: without the folder it cannot read it again, and a LoRA
        # that it should have dropped fails instead of coming back.
        with tempfile.TemporaryDirectory(prefix="rolewise-lora-", dir=_memory_folder()) as folder:
            number = next(_ids)
            lora = LoRARequest(f"{name}@{adapter.version}#{number}", number, folder)
            adapter.save(Path(folder), self._engine.vllm_config.model_config.model)
            if not self._engine.add_lora(lora):
                raise TrainingError(f"vLLM did not load version {adapter.version} of '{name}'")
        self._served[name] = adapter.version, lora

    def _prove(self, name: str) -> None:
        """Compare engine and trainer on the probe, the adapter's earlier states being known."""
        own_T = trainer_logprobs(self._policy, name, self._probe, self._scale)
        if self._base is None:
            self._base = trainer_logprobs(self._policy, None, self._probe, self._scale)
        references = {"the base model": self._base}
        if name in self._before:
            references["the version before"] = self._before[name]
        served = Served(self._ask_probe(self._served[name][1]), own_T, references)
        spread = check_served(name, served, self._policy.backbone.dtype)
        log.debug("adapter '%s' is served; probe within %.2g nats", name, spread)
        self._before[name] = own_T

    def _ask_probe(self, lora: LoRARequest) -> np.ndarray:
        """The engine's log-probability of every token of the probe under a LoRA, text by text."""
        for i, (text, tokens) in enumerate(zip(self._probe.texts, self._probe.tokens, strict=True)):
            parameters = self._parameters(Request(text, None, call_seed("probe", i), 1))
            parameters.logprob_token_ids = list(tokens)
            parameters.logprobs = len(tokens)
            self._engine.add_request(
                f"probe-{i}", {"prompt_token_ids": list(text)}, parameters, lora_request=lora
            )
        found = {}
        while self._engine.has_unfinished_requests():
            for output in self._engine.step():
                if output.finished:
                    found[tuple(output.prompt_token_ids)] = output.outputs[0].logprobs[0]
        pairs = zip(self._probe.texts, self._probe.tokens, strict=True)
        return np.array([found[text][token].logprob for text, tokens in pairs for token in tokens])


def _logprobs(sequence: Any) -> np.ndarray:
    """Log-probability of each drawn token of a vLLM output."""
    pairs = zip(sequence.token_ids, sequence.logprobs, strict=True)
    return np.array([entry[token].logprob for token, entry in pairs], dtype=np.float32)


def _error() -> Completion:
    return Completion((), np.zeros(0, dtype=np.float32), "error")


def _memory_folder() -> str | None:
    """A folder in memory for files that are read once; None (the default) where there is none."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
