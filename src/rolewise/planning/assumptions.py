"""What the estimate takes for granted. Every number is printed beside the plan and can be overridden."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

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
    """Shares of the peak that are reached, fixed costs, and lengths of texts in tokens.

    `embedded_*` hold for embedded models, `procedural_*` for procedural tasks, as measured with the
    default preset.
    """

    problem_tokens: dict[str, int] = field(default_factory=lambda: {"Math": 200, "Code": 600})
    response_share: float = 0.25  # mean completion length over the response cap
    train_efficiency: float = 0.30  # of peak FLOP/s, forward and backward
    prefill_efficiency: float = 0.40
    decode_efficiency: float = 0.50  # of memory bandwidth
    lora_decode: float = 0.75  # decoding with adapters against without
    decode_step_s: float = 0.0025  # of the torch sampler, per token of all running calls
    optimizer_step_s: float = 0.012  # beside its FLOP
    eval_opt_turns: int | None = None  # null: all that the workflow allows
    tests_per_program: int = 30
    tests_per_second: float = 100.0  # per sandbox worker
    embedded_problem_tokens: int = 9  # phrases are single tokens
    embedded_eval_opt_turns: int = 1  # their evaluator rarely rejects
    procedural_tests_per_program: int = 3
    procedural_tests_per_second: float = 2500.0  # small programs, equal ones run once
    reserve_gib: float = 3.0  # CUDA context, fragmentation, communication buffers

    def problem(self, task: str) -> int:
        """Mean tokens of a problem with its instruction."""
        return self.problem_tokens.get(task, max(self.problem_tokens.values()))

    def of(self, embedded: bool, procedural: bool) -> Assumptions:
        """Those that hold for a kind of model and a kind of task."""
        changes: dict[str, object] = {}
        if embedded:
            changes["problem_tokens"] = dict.fromkeys(
                self.problem_tokens, self.embedded_problem_tokens
            )
            changes["eval_opt_turns"] = self.embedded_eval_opt_turns
        if procedural:
            changes["tests_per_program"] = self.procedural_tests_per_program
            changes["tests_per_second"] = self.procedural_tests_per_second
        return replace(self, **changes)


NOTES = """\
Times: decoding reads weights and live key-value cache once per token of all running calls; prefill costs
2 FLOP per weight and token; an update costs 10 (forward, recomputation, backward through frozen weights,
log-probs before and after), plus a fixed cost per optimiser step. No overlap of phases is assumed. Making
data and base models is left out. Memory: fp32 adapters, AdamW moments, role accumulators and running means;
layer inputs kept by gradient checkpointing, one layer recomputed; logits for a chunk of tokens. Episodes use
every turn that the workflow allows; the time of embedded models is that of one turn."""
