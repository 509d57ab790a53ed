"""What the estimate takes for granted. Every number is printed beside the plan and can be overridden."""

from __future__ import annotations

from dataclasses import dataclass, field

GIB = 2**30


@dataclass(frozen=True)
class Device:
    """One accelerator: memory in GiB, dense bf16 peak in FLOP/s, memory bandwidth in bytes/s.

    Data-sheet values; for `CPU`, one core as measured with matrix products in fp32.
    """

    name: str
    memory_gib: float
    flops: float
    bandwidth: float


DEVICES = {
    device.name: device
    for device in (
        Device("H200", 131.0, 989e12, 4.8e12),
        Device("H100", 74.5, 989e12, 3.35e12),
        Device("A100-80GB", 74.5, 312e12, 2.04e12),
        Device("CPU", 16.0, 170e9, 10e9),
    )
}


@dataclass(frozen=True)
class Assumptions:
    """Shares of the peak that are reached, and lengths of texts in tokens."""

    problem_tokens: dict[str, int] = field(default_factory=lambda: {"Math": 200, "Code": 600})
    response_share: float = 0.25  # mean completion length over the response cap
    train_efficiency: float = 0.30  # of peak FLOP/s, forward and backward
    prefill_efficiency: float = 0.40
    decode_efficiency: float = 0.50  # of memory bandwidth
    lora_decode: float = 0.75  # decoding with adapters against without
    tests_per_program: int = 30
    tests_per_second: float = 100.0  # per sandbox worker
    reserve_gib: float = 3.0  # CUDA context, fragmentation, communication buffers

    def problem(self, task: str) -> int:
        """Mean tokens of a problem with its instruction."""
        return self.problem_tokens.get(task, max(self.problem_tokens.values()))


NOTES = """\
Times: decoding reads weights and live key-value cache once per token of all running calls; prefill costs
2 FLOP per weight and token; an update costs 10 (forward, recomputation, backward through frozen weights,
log-probs before and after). No overlap of phases is assumed. Memory: fp32 adapters, AdamW moments,
role accumulators and running means; layer inputs kept by gradient checkpointing, one layer recomputed;
logits for a chunk of tokens. Episodes use every turn that the workflow allows."""
